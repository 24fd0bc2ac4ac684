"""Errors of evaluations: those that CEL's operators can absorb, and those that end the evaluation."""

from __future__ import annotations

from typing import Final

MAX_MESSAGE: Final = 10 * 1024
"""Characters of the error of an evaluation. It may quote texts that the expression has made."""


def shortened(message: str) -> str:
    """A message of at most MAX_MESSAGE characters, and what was left out."""
    if len(message) <= MAX_MESSAGE:
        return message
    return f"{message[:MAX_MESSAGE]}… ({len(message) - MAX_MESSAGE} more characters)"


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


class TimeExceeded(Cancelled):
    """The evaluation exceeded its time limit."""

    MESSAGE: Final = "operation interrupted"

    def __init__(self) -> None:
        super().__init__(self.MESSAGE)


class MemoryExceeded(Cancelled):
    """The evaluation makes values of more bytes than it may (`noxu.cel.memory`)."""

    PREFIX: Final = "operation cancelled: memory limit exceeded"

    def __init__(self, limit: int) -> None:
        """`limit` is in bytes."""
        super().__init__(f"{self.PREFIX} ({limit // 2**20} MiB of values)")


NO_SUCH_OVERLOAD: Final = "no such overload"


def no_such_overload() -> CelError:
    return CelError(NO_SUCH_OVERLOAD)
