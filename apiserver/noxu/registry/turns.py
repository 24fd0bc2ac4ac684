"""Whose work runs in the threads: clients take turns, and so do the pieces of their work.

At most THREADS pieces run at a time, and at most one of each client. A piece that has run for SLICE seconds of processor time
passes its turn on, at the next check of its budget, if another one comes before it; then it waits in its thread until it
comes first again. First comes the piece of the client that has been served the least (start-time fair queueing: a client
that arrives begins with what the least served one of the others has), of its pieces the one that has run the least, of
those the oldest:

    six clients send a piece of 5 s each; a seventh sends one of 10 ms, 1 s later
        the first two run, for 20 ms; then the next two; after 60 ms each has been served for 20 ms, and so on
        the last one comes first as soon as one of the two that are running reaches the end of its slice: within 20 ms

A client is the user who is authenticated; without one the address, and on this machine, where all have the same, the
connection. What the server does by itself is a client, too. Because of the slices, short work also waits for little if one
person makes many connections, or one user runs many programs.

It also limits the processor time of requests, because neither the size of a body nor the cost of a rule limits it.

In the event loop, work that takes too long raises LoopBudgetExceeded, and is repeated in a thread. In a thread, a CEL rule
that takes too long ends with an error (RuleBudget), and the request as a whole with another one (ThreadBudget).

The limits are on processor time of the thread, not wall time, so the load of the machine does not change any result.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from contextvars import Context, ContextVar, copy_context
from importlib import import_module
from itertools import chain, count
from time import thread_time
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from noxu import cel
from noxu.api import errors
from noxu.cpu_budget import CURRENT

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

T = TypeVar("T")

THREADS: Final = 2
SLICE: Final = 0.02  # seconds of processor time
PAUSE: Final = 5  # iterations of the event loop after one that was used up: a short request takes so many
MAX_ITERATIONS: Final = 5000  # of the event loop, for which work waits while others use them up
MAX_PARKED: Final = 256  # pieces that wait in a thread of their own; beyond that a piece keeps its turn

CLIENT: Final[ContextVar[Hashable]] = ContextVar("client", default=None)
"""The client for whom this task works; None: the server itself."""


def own_context() -> Context:
    """A copy of the context in which the server works for itself: for tasks that a request may start, and that outlive it."""
    context = copy_context()
    context.run(CLIENT.set, None)
    return context


class Piece(Generic[T]):
    """A piece of work: a function that is called in a thread. `result` is what it returns or raises."""

    def __init__(self, work: Callable[[], T]) -> None:
        self.client = CLIENT.get()
        self.result: Future[T] = Future()
        self.used = 0.0  # seconds
        self.order = 0
        self.began = 0.0  # when its thread got this turn, in the time of the thread
        self.turn: threading.Event | None = None  # set when it is its turn again; None before it has begun
        self._work: Callable[[], T] | None = work

    def run(self) -> None:
        """Call the function in this thread, unless nobody awaits the result any more."""
        if not self.result.set_running_or_notify_cancel():
            return
        work, self._work = self._work, None  # it may refer to this piece
        assert work is not None
        self.turn, self.began = threading.Event(), thread_time()
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001 - it is raised where the result is awaited
            self.result.set_exception(error)
            del self  # to which the frames of the error refer
        else:
            self.result.set_result(result)


class Turns:
    """The pieces that run or wait, in the threads of a process. Its methods may be called in any thread."""

    def __init__(self, threads: int = THREADS) -> None:
        self._threads = threads
        self._lock = threading.Lock()
        self._running: set[Piece[Any]] = set()
        self._waiting: list[Piece[Any]] = []
        self._parked = 0  # of those that wait: have begun
        self._served: dict[Hashable, float] = {}  # seconds, by client, since the least served one had `_least`
        self._least = 0.0
        self._order = count()
        self._executor: ThreadPoolExecutor | None = None
        self._most = 0  # threads of the executor, about

    @property
    def running(self) -> int:
        """How many pieces run at this moment."""
        return len(self._running)

    def begin(self, piece: Piece[Any]) -> None:
        """Run a piece when it is its turn. Raises RuntimeError at the end of the interpreter."""
        with self._lock:
            piece.order = next(self._order)
            if all(other.client != piece.client for other in chain(self._running, self._waiting)):
                self._served[piece.client] = max(self._served.get(piece.client, 0.0), self._least)
            self._waiting.append(piece)
            starting = self._fill()
            executor = self._executor_for(starting)
        self._start(starting, executor)

    def pass_on(self, piece: Piece[Any]) -> None:
        """Let others run that come before a running piece. Called in its thread; returns when it is its turn again."""
        with self._lock:
            self._charge(piece)
            following = self._first(instead_of=piece)
            if following is None or self._parked >= MAX_PARKED or self._rank(piece) < self._rank(following):
                return
            assert piece.turn is not None
            piece.turn.clear()
            self._running.remove(piece)
            self._waiting.append(piece)
            self._parked += 1
            starting = self._fill()
            executor = self._executor_for(starting)
        self._start(starting, executor)
        piece.turn.wait()
        piece.began = thread_time()

    def withdraw(self, piece: Piece[Any]) -> None:
        """Nobody awaits a piece any more: it is not begun, or gets a turn at once, to end by itself."""
        with self._lock:
            piece.result.cancel()
            if piece not in self._waiting:
                return
            self._waiting.remove(piece)
            if piece.turn is None:
                self._forget(piece.client)
                return
            self._parked -= 1
            self._running.add(piece)
            piece.turn.set()

    def _run(self, first: list[Piece[Any]]) -> None:
        """Run a piece in this thread, and then those whose turn comes with its end. It is taken from the list: the frames of
        an error that it raises refer to the executor's, and these to the list."""
        piece: Piece[Any] | None = first.pop()
        while piece is not None:
            piece.run()
            piece = self._end(piece)

    def _end(self, piece: Piece[Any]) -> Piece[Any] | None:
        """The piece that has not begun whose turn it is now."""
        with self._lock:
            self._charge(piece)
            self._running.remove(piece)
            self._forget(piece.client)
            starting = self._fill()
            if not self._running and self._executor is not None and self._most > self._threads:
                self._executor.shutdown(wait=False)  # the threads of those that were parked are no longer needed
                self._executor, self._most = None, 0
            executor = self._executor_for(starting[1:])
        self._start(starting[1:], executor)
        return starting[0] if starting else None

    def _executor_for(self, starting: list[Piece[Any]]) -> ThreadPoolExecutor | None:
        if starting and self._executor is None:
            from concurrent.futures import (
                ThreadPoolExecutor,  # a server has nothing to offload before its first request
            )

            self._executor = ThreadPoolExecutor(self._threads + MAX_PARKED, "noxu-offload")
        self._most = max(self._most, len(self._running) + self._parked)
        return self._executor

    def _start(self, starting: list[Piece[Any]], executor: ThreadPoolExecutor | None) -> None:
        for piece in starting:
            assert executor is not None
            executor.submit(self._run, [piece])

    # -- the order; called with the lock

    def _fill(self) -> list[Piece[Any]]:
        """Give free turns to those that come first. Those of them that have not begun."""
        starting: list[Piece[Any]] = []
        while len(self._running) < self._threads and (piece := self._first()) is not None:
            self._waiting.remove(piece)
            self._running.add(piece)
            if piece.turn is None:
                starting.append(piece)
            else:
                self._parked -= 1
                piece.turn.set()
        return starting

    def _first(self, instead_of: Piece[Any] | None = None) -> Piece[Any] | None:
        """The piece that comes first, of those whose client has no turn already; None if there is none."""
        busy = {piece.client for piece in self._running if piece is not instead_of}
        return min((piece for piece in self._waiting if piece.client not in busy), key=self._rank, default=None)

    def _rank(self, piece: Piece[Any]) -> tuple[int, int, int]:
        """Lower ranks come first. Less than a slice makes no difference."""
        return round(self._served[piece.client] / SLICE), round(piece.used / SLICE), piece.order

    def _charge(self, piece: Piece[Any]) -> None:
        """Account for what a piece has used since its turn began. Called in its thread."""
        if piece.turn is None:  # it was cancelled before it began
            return
        now = thread_time()
        seconds, piece.began = now - piece.began, now
        piece.used += seconds
        self._served[piece.client] += seconds
        active = {item.client for item in chain(self._running, self._waiting)}
        self._least = max(self._least, min(self._served[client] for client in active))

    def _forget(self, client: Hashable) -> None:
        """Forget a client without further pieces; not yet one that has been served for longer than others are."""
        active = {item.client for item in chain(self._running, self._waiting)}
        if not active:
            self._served.clear()
        elif client not in active:
            least = self._least
            self._served = {key: served for key, served in self._served.items() if key in active or served > least}


TURNS: Final = Turns()
"""Of all servers in this process, which share the interpreter."""


# -- limits on processor time -----------------------------------------------------------------------------------------


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


class _LoopTurn:
    """The processor time that work with a budget has taken in this iteration of the event loop.

    Many requests that arrive together, each of which may take MAX_LOOP_SECONDS, share one iteration. The PAUSE iterations
    after it belong to others, so that a short request waits for one of them, not for one at each of its steps.
    """

    is_over = False
    """There is no time for more work in this iteration."""
    _spent = 0.0

    async def free(self) -> None:
        """Return when there is time for more work in this iteration; after MAX_ITERATIONS in any case."""
        for _ in range(MAX_ITERATIONS):
            if not self.is_over:
                return
            await asyncio.sleep(0)

    def spend(self, seconds: float) -> None:
        """Account for work that was done in this iteration."""
        self._spent += seconds  # no lock: only the loop spends
        self.is_over = self._spent > loop_seconds() / 2
        asyncio.get_running_loop().call_soon(self._end, PAUSE)

    def _end(self, pause: int) -> None:
        if self.is_over and pause:
            asyncio.get_running_loop().call_soon(self._end, pause - 1)
            return
        self._spent, self.is_over = 0.0, False


loop_turn: Final = _LoopTurn()


def _nothing() -> None: ...


_imported: Final[set[tuple[str, str]]] = set()


def _import(module: str, name: str) -> None:
    """Import a name of a module: a thread may import anything."""
    if (module, name) not in _imported:
        getattr(import_module(module), name)
        _imported.add((module, name))


def in_loop() -> bool:
    """Whether work runs in the event loop under a LoopBudget: it is repeated in a thread if it raises LoopBudgetExceeded."""
    return type(CURRENT.get()) is LoopBudget


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
