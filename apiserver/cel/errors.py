"""What goes wrong while an expression is evaluated."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final, Protocol


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


class Interrupted(Cancelled):
    """The evaluation took longer than it may."""

    MESSAGE: Final = "operation interrupted"

    def __init__(self) -> None:
        super().__init__(self.MESSAGE)


class Patience(Protocol):
    """How long evaluations may take. Whoever has a clock makes one: the engine has none."""

    def begin(self) -> None:
        """A rule begins."""

    def check(self, ahead: int = 0) -> None:
        """Asked now and then, and before something that costs much. Raises to end the evaluation."""

    def rest(self) -> None:
        """Asked between things that have to be done anyhow: rules are compiled. May raise to have it done elsewhere."""


PATIENCE_STEP: Final = 200
"""Units of cost after which patience is asked again."""

PATIENCE: Final[ContextVar[Patience | None]] = ContextVar("patience", default=None)
"""For functions that work long on one value."""


def check_patience() -> None:
    patience = PATIENCE.get()
    if patience is not None:
        patience.check()


def rest() -> None:
    patience = PATIENCE.get()
    if patience is not None:
        patience.rest()


NO_SUCH_OVERLOAD: Final = "no such overload"


def no_such_overload() -> CelError:
    return CelError(NO_SUCH_OVERLOAD)
