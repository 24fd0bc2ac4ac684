"""What goes wrong while an expression is evaluated."""

from __future__ import annotations

from typing import Final


class CelError(Exception):
    """An error as CEL knows it: `||`, `&&` and the quantifiers may absorb it. The message is cel-go's."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class Cancelled(Exception):
    """The evaluation ends here; nothing absorbs this."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class CostExceeded(Cancelled):
    """The evaluation cost more than it may."""

    MESSAGE: Final = "operation cancelled: actual cost limit exceeded"

    def __init__(self) -> None:
        super().__init__(self.MESSAGE)


NO_SUCH_OVERLOAD: Final = "no such overload"


def no_such_overload() -> CelError:
    return CelError(NO_SUCH_OVERLOAD)
