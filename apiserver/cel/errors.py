"""Errors of evaluations: those that CEL's operators can absorb, and those that end the evaluation."""

from __future__ import annotations

from typing import Final


class CelError(Exception):
    """A CEL error value: `||`, `&&` and the quantifiers may absorb it. The message is cel-go's."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class Cancelled(Exception):
    """Ends the evaluation; no operator absorbs it."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class CostExceeded(Cancelled):
    """The evaluation exceeded its cost limit."""

    MESSAGE: Final = "operation cancelled: actual cost limit exceeded"

    def __init__(self) -> None:
        super().__init__(self.MESSAGE)


class Interrupted(Cancelled):
    """The evaluation exceeded its time limit."""

    MESSAGE: Final = "operation interrupted"

    def __init__(self) -> None:
        super().__init__(self.MESSAGE)


NO_SUCH_OVERLOAD: Final = "no such overload"


def no_such_overload() -> CelError:
    return CelError(NO_SUCH_OVERLOAD)
