"""Limits on the processor time of CEL rules, because their costs limit it only roughly.

The limits are on processor time of the thread, not wall time, so the load of the machine does not change any result.
"""

from __future__ import annotations

from time import thread_time
from typing import Final

from noxu.apiserver import cel

MAX_RULE_SECONDS: Final = 1.0  # for one rule, in a thread
MAX_LOOP_SECONDS: Final = 0.02  # for all rules of an object, in the event loop
MAX_LOOP_COST: Final = 20_000  # units of cost of one indivisible operation in the event loop; one takes about 1 µs


class LoopBudgetExceeded(Exception):
    """The work takes too long for the event loop and must be repeated in a thread."""


class ThreadBudget:
    """For work in a thread: a rule that takes too long ends with an error."""

    def __init__(self) -> None:
        self._end = 0.0

    def begin(self) -> None:
        self._end = thread_time() + MAX_RULE_SECONDS

    def check(self, upcoming_cost: int = 0) -> None:
        if thread_time() > self._end:
            raise cel.Interrupted

    def checkpoint(self) -> None:
        """Work other than evaluations is not limited."""

    def require_imported(self, name: str) -> None:
        """A thread may import anything."""


class LoopBudget:
    """For work in the event loop: work that takes too long raises LoopBudgetExceeded."""

    def __init__(self) -> None:
        self._end = 0.0

    def begin(self) -> None:
        """All rules share one time limit. It starts with the first check."""

    def check(self, upcoming_cost: int = 0) -> None:
        if upcoming_cost > MAX_LOOP_COST:
            raise LoopBudgetExceeded
        now = thread_time()
        self._end = self._end or now + MAX_LOOP_SECONDS
        if now > self._end:
            raise LoopBudgetExceeded

    def checkpoint(self) -> None:
        self.check()

    def require_imported(self, name: str) -> None:
        """Raise LoopBudgetExceeded if using that name of `noxu.apiserver.cel` would import modules of the engine."""
        if not cel.is_imported(name):
            raise LoopBudgetExceeded
