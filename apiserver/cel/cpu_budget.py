"""How callers limit the processor time of evaluations.

CEL's cost limits bound time only roughly. The engine has no clock of its own: a caller that wants a time limit passes a
`CpuBudget`, and the engine calls it at short intervals. Without one, only costs are limited.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final, Protocol


class CpuBudget(Protocol):
    """The time limit of some evaluations."""

    def begin(self) -> None:
        """Called before each rule or expression."""

    def check(self, upcoming_cost: int = 0) -> None:
        """Called every `CHECK_INTERVAL` units of cost, and before an operation that costs `upcoming_cost` at once.

        May raise to end the evaluation.
        """

    def checkpoint(self) -> None:
        """Called between units of other work, such as compiling rules. May raise to have the work repeated elsewhere."""


CHECK_INTERVAL: Final = 200
"""Units of cost between two calls of `CpuBudget.check`."""

CURRENT: Final[ContextVar[CpuBudget | None]] = ContextVar("cpu_budget", default=None)
"""The budget of the evaluation in progress, for functions that work for a long time on a single value."""


def check_cpu_budget() -> None:
    """Call `check` of the current budget, if one is set."""
    budget = CURRENT.get()
    if budget is not None:
        budget.check()


def checkpoint() -> None:
    """Call `checkpoint` of the current budget, if one is set."""
    budget = CURRENT.get()
    if budget is not None:
        budget.checkpoint()
