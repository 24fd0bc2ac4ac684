"""How a caller limits the processor time of pure work: validation, CEL, merging.

The cost of such work depends on more than the size of its input: a list of 500 integers against a schema with 5,000
alternatives is 2.5 million checks. Pure code has no clock. A caller that wants a time limit sets a `CpuBudget` as the
current one, and loops that multiply work account for it (`spend`). Without a budget, they do not stop.

The limit is on work between two calls of `spend`, so a loop whose iterations are cheap accounts for many of them at once,
and before a single step that takes long its cost is announced.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, Protocol


class CpuBudget(Protocol):
    """The time limit of some work. Each method may raise to end that work."""

    def begin(self) -> None:
        """Called before each CEL rule or expression."""

    def check(self, upcoming_cost: int = 0) -> None:
        """Called every `CHECK_INTERVAL` units of cost, and before an operation that costs `upcoming_cost` at once."""

    def checkpoint(self) -> None:
        """Called between long units of work, such as compiling rules."""

    def spend(self, units: int) -> None:
        """Called often, with the units of work that follow. A unit takes about a microsecond."""

    def require_imported(self, module: str, name: str) -> None:
        """Called before work that imports a name of a module that takes long to import."""


CHECK_INTERVAL: Final = 200
"""Units of cost between two calls of `CpuBudget.check`."""

CURRENT: Final[ContextVar[CpuBudget | None]] = ContextVar("cpu_budget", default=None)
"""The budget of the work in progress."""


def spend(units: int = 1) -> None:
    """Account for units of work with the current budget, if one is set."""
    budget = CURRENT.get()
    if budget is not None:
        budget.spend(units)


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


def require_imported(module: str, name: str) -> None:
    """Announce the import of a name of a module, which takes long, to the current budget, if one is set."""
    budget = CURRENT.get()
    if budget is not None:
        budget.require_imported(module, name)


@contextmanager
def limited_by(budget: CpuBudget) -> Iterator[None]:
    """Inside, `budget` is the current one."""
    token = CURRENT.set(budget)
    try:
        yield
    finally:
        CURRENT.reset(token)
