"""Limits on the processor time of requests, because neither the size of a body nor the cost of a rule limits it.

In the event loop, work that takes too long raises LoopBudgetExceeded, and is repeated in a thread. In a thread, a CEL rule
that takes too long ends with an error (RuleBudget), and the request as a whole with another one (ThreadBudget).

The limits are on processor time of the thread, not wall time, so the load of the machine does not change any result.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from time import thread_time
from typing import Final

from noxu import cel
from noxu.api import errors
from noxu.cpu_budget import CURRENT
from noxu.registry.turns import TURNS

MAX_RULE_SECONDS: Final = 1.0  # for one rule, in a thread
MAX_LOOP_SECONDS: Final = 0.02  # for the stages of a write between two waits, in the event loop
MAX_LOOP_COST: Final = 20_000  # units of cost of one indivisible operation in the event loop; one takes about 1 µs
MAX_THREAD_SECONDS: Final = 10.0  # for a part of a request that runs in a thread
MAX_THREAD_COST: Final = 10_000_000  # units of cost of one indivisible operation in a thread
UNITS_PER_CHECK: Final = 250  # units of work after which the clock is read

TOO_MUCH_WORK: Final = (
    "the server stopped working on this request after {seconds:g} s of processor time; send a smaller object, or simplify "
    "the schema or the patch"
)


class LoopBudgetExceeded(Exception):
    """The work takes too long for the event loop and must be repeated in a thread."""


class WorkCancelled(Exception):
    """The request has ended meanwhile: its client left, its deadline has passed, or the server stops."""


class _Budget:
    """One time limit for all work. It starts with the first check; the clock is read every UNITS_PER_CHECK units."""

    # Two budgets are made for each write, and few of them are ever asked: these are defaults, not set for each.
    until = 0.0
    """The time of the thread at which it is over; 0 before the first check."""
    _left = 0

    def begin(self) -> None:
        """All rules share the time limit."""

    def check(self, upcoming_cost: int = 0) -> None:
        raise NotImplementedError

    def checkpoint(self) -> None:
        self.check()

    def spend(self, units: int) -> None:
        self._left -= units
        if self._left < 0:
            self._left = UNITS_PER_CHECK
            self.check(units)

    def require_imported(self, module: str, name: str) -> None:
        raise NotImplementedError

    def _is_over(self, seconds: float) -> bool:
        now = thread_time()
        self.until = self.until or now + seconds
        return now > self.until


def loop_seconds() -> float:
    """The processor time of work in the event loop: its share of MAX_LOOP_SECONDS.

    Work that runs in threads at the same time gets as much of the interpreter as the loop, so that the loop takes twice as
    long for the same work while one thread computes.
    """
    return MAX_LOOP_SECONDS / (1 + TURNS.running)


class LoopBudget(_Budget):
    """For work in the event loop: work that takes too long raises LoopBudgetExceeded."""

    _limit = 0.0

    def check(self, upcoming_cost: int = 0) -> None:
        if not self.until:
            self._limit = loop_seconds()
        if self._is_over(self._limit) or upcoming_cost > MAX_LOOP_COST:
            raise LoopBudgetExceeded

    def seconds(self) -> float:
        """The processor time since the first check."""
        return thread_time() - self.until + self._limit

    def require_imported(self, module: str, name: str) -> None:
        """Raise LoopBudgetExceeded unless a thread has imported it: while it does, the module is in `sys.modules` already."""
        if (module, name) not in _imported:
            raise LoopBudgetExceeded


def _nothing() -> None: ...


_imported: Final[set[tuple[str, str]]] = set()


def _import(module: str, name: str) -> None:
    """Import a name of a module: a thread may import anything."""
    if (module, name) not in _imported:
        getattr(import_module(module), name)
        _imported.add((module, name))


class ThreadBudget(_Budget):
    """For work in a thread: it ends with an error when it takes too long, and without one when it is cancelled.

    It is created where the work is awaited, and starts in the thread. After each `slice_` seconds it calls `pass_on`, which
    may let other work run first.
    """

    _is_cancelled = False
    _slice_ends = 0.0

    def __init__(self, slice_: float = MAX_THREAD_SECONDS) -> None:
        self._slice = slice_
        self.pass_on: Callable[[], None] = _nothing

    def end(self) -> None:
        """The work has ended: forget what passes its turn on."""
        self.pass_on = _nothing

    def cancel(self) -> None:
        """End the work at its next check. Callable from any thread."""
        self._is_cancelled = True

    def check(self, upcoming_cost: int = 0) -> None:
        """Raises ApiError Timeout, WorkCancelled."""
        if self._is_over(MAX_THREAD_SECONDS) or upcoming_cost > MAX_THREAD_COST:
            raise errors.timeout(TOO_MUCH_WORK.format(seconds=MAX_THREAD_SECONDS), 0)
        if (now := thread_time()) > self._slice_ends:
            if self._slice_ends:
                self.pass_on()
            self._slice_ends = now + self._slice  # what others do meanwhile is not in the time of this thread
        if self._is_cancelled:
            raise WorkCancelled

    def require_imported(self, module: str, name: str) -> None:
        _import(module, name)


class RuleBudget:
    """For CEL rules in a thread: one that takes too long ends with an error. The budget of the whole work holds, too."""

    def __init__(self) -> None:
        self._end = 0.0
        self._outer = CURRENT.get()

    def begin(self) -> None:
        self._end = thread_time() + MAX_RULE_SECONDS

    def check(self, upcoming_cost: int = 0) -> None:
        if thread_time() > self._end:
            raise cel.TimeExceeded
        if self._outer is not None:
            self._outer.check()

    def checkpoint(self) -> None:
        if self._outer is not None:
            self._outer.checkpoint()

    def spend(self, units: int) -> None:
        if self._outer is not None:
            self._outer.spend(units)

    def require_imported(self, module: str, name: str) -> None:
        _import(module, name)
