"""Offload large work to threads, and limit the number of large requests that are processed concurrently.

The work of a request grows with its weight in bytes: those of its body and those of the stored object. Up to LOOP_LIMIT it
runs in the event loop, under a budget of processor time if it may multiply (`cpu_budget`). Larger work runs in a thread:
the interpreter switches threads after SWITCH_INTERVAL, so the loop continues to serve other requests. Only a few pieces of
work run at a time, because with each one the loop waits longer for its turn; which ones, `turns` decides. Each has a
ThreadBudget, so that none of them takes too long. When the request ends, because its client has left, its deadline has
passed or the server stops, its work in a thread ends, too.

A decoded object takes up to fifty times the memory of its text (seventy times that of CBOR), so a large request waits for
room before it is decoded, and keeps it until it is answered: for one of SLOTS if it weighs more than MEDIUM, else for its
own weight of MEDIUM_ROOM. So those of usual sizes do not wait for the largest ones.

Offloaded functions are pure: they work on a draft or on bytes that nothing else changes at the same time.
"""

from __future__ import annotations

import asyncio
import gc
import inspect
import sys
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from importlib import import_module
from time import thread_time
from types import ModuleType
from typing import Any, Final, ParamSpec, TypeVar

from noxu.cpu_budget import limited_by
from noxu.registry.turns import SLICE, TURNS, LoopBudget, LoopBudgetExceeded, Piece, ThreadBudget, loop_turn

LOOP_LIMIT: Final = 16 * 1024  # bytes of JSON
_BRIEF: Final = 1024  # bytes
MEDIUM: Final = 256 * 1024  # bytes
MEDIUM_ROOM: Final = 4 * 1024 * 1024  # bytes of medium requests that are decoded at the same time
SLOTS: Final = 4  # larger requests that are decoded at the same time
SWITCH_INTERVAL: Final = (
    0.001  # seconds; each thread that computes may make the loop wait for so long, many times a request
)

P = ParamSpec("P")
T = TypeVar("T")

_imported: Final[set[str]] = set()  # completely: while a module is being imported, it is in `sys.modules` already
_has_threads: Final[ContextVar[bool]] = ContextVar("has_threads", default=True)


@contextmanager
def without_threads() -> Iterator[None]:
    """Run large work in the calling thread, under the same budget: for commands whose event loop does nothing else."""
    token = _has_threads.set(False)  # for this task and those that it starts
    try:
        yield
    finally:
        _has_threads.reset(token)


async def offload(weight: int, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function in the loop if `weight`, in bytes, is at most LOOP_LIMIT, else in a thread.

    Raises ApiError Timeout if it takes more processor time in a thread than a request may.
    """
    if weight <= LOOP_LIMIT:
        return function(*args, **kwargs)
    if not _has_threads.get():
        return _in_thread(ThreadBudget(), partial(function, *args, **kwargs))
    budget = ThreadBudget(SLICE)
    piece = Piece(partial(_in_thread, budget, partial(function, *args, **kwargs)))
    budget.pass_on = partial(TURNS.pass_on, piece)
    try:
        TURNS.begin(piece)
        return await asyncio.wrap_future(piece.result)
    except asyncio.CancelledError:
        budget.cancel()
        TURNS.withdraw(piece)
        piece.result.add_done_callback(_close)
        raise
    finally:
        del piece, budget  # which refer to an error, and its frames to them


def _close(result: Future[Any]) -> None:
    """Close the coroutine that work has returned, alone or in a tuple, when nobody awaits it any more."""
    if result.cancelled() or result.exception() is not None:
        return
    value = result.result()
    for item in value if isinstance(value, tuple) else (value,):
        if asyncio.iscoroutine(item):
            _close_unbegun(item)


def _close_unbegun(coroutine: Coroutine[Any, Any, Any]) -> None:
    """Close a coroutine that has not begun, and those that it was going to await: they are among its arguments."""
    arguments = inspect.getcoroutinelocals(coroutine)  # before it is closed, which forgets them
    coroutine.close()
    for argument in arguments.values():
        if asyncio.iscoroutine(argument):
            _close_unbegun(argument)


async def offload_if_long(weight: int, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """As `offload`, but what takes too long in the loop is repeated in a thread. For functions that change nothing."""
    if weight <= LOOP_LIMIT:
        if loop_turn.is_over:
            await loop_turn.free()
        budget = LoopBudget()
        try:
            with limited_by(budget):
                return function(*args, **kwargs)
        except LoopBudgetExceeded:
            weight = LOOP_LIMIT + 1
        finally:
            if budget.until:
                loop_turn.spend(budget.seconds())
    return await offload(weight, function, *args, **kwargs)


async def offload_briefly(weight: int, function: Callable[[], T]) -> T:
    """As `offload`, for work that many requests that arrive together may have: they share an iteration of the loop.

    `weight` 1024 and less does not count.
    """
    if weight <= _BRIEF:
        return function()
    if weight > LOOP_LIMIT:
        return await offload(weight, function)
    if loop_turn.is_over:
        await loop_turn.free()
    began = thread_time()
    try:
        return function()
    finally:
        loop_turn.spend(thread_time() - began)


async def imported(name: str) -> ModuleType:
    """A module of which servers need nothing at their start. A thread imports it, which takes long."""
    if name not in _imported:
        await offload(LOOP_LIMIT + 1, import_module, name)
        _imported.add(name)  # after the import is complete
    return import_module(name)


def _in_thread(budget: ThreadBudget, function: Callable[[], T]) -> T:
    if sys.getswitchinterval() > SWITCH_INTERVAL:
        sys.setswitchinterval(SWITCH_INTERVAL)
    try:
        with limited_by(budget):
            budget.check()
            return _collector.paused(function)
    finally:
        budget.end()


class LargeRequests:
    """The room for large requests of a server."""

    def __init__(self, slots: int = SLOTS, medium: int = MEDIUM_ROOM) -> None:
        """`medium` in bytes."""
        self._slots = _Room(slots)
        self._medium = _Room(medium)

    async def enter(self, weight: int) -> None:
        """Take the room for a request of so many bytes; wait until there is some."""
        if weight > MEDIUM:
            await self._slots.take(1)
        else:
            await self._medium.take(weight)
        _collector.pause()

    def leave(self, weight: int) -> None:
        """Give back what `enter` has taken for the same weight."""
        _collector.resume()
        if weight > MEDIUM:
            self._slots.give(1)
        else:
            self._medium.give(weight)


class _Room:
    """Units that requests share. Those for which there are too few wait, in the order in which they came."""

    def __init__(self, units: int) -> None:
        self._free = units
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    async def take(self, units: int) -> None:
        if not self._waiting and units <= self._free:
            self._free -= units
            return
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((units, place))  # first come, first served
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self.give(units)
            else:
                if (units, place) in self._waiting:
                    self._waiting.remove((units, place))
                self.give(0)  # those behind it may need less
            raise

    def give(self, units: int) -> None:
        self._free += units
        while self._waiting and self._waiting[0][0] <= self._free:
            taken, place = self._waiting.popleft()
            if not place.cancelled():
                self._free -= taken  # for the one that is woken, before others run
                place.set_result(None)


class _GarbageCollector:
    """Paused while work is offloaded, and while large requests hold a slot.

    A collection stops all threads while it visits all containers; a million of them take longer than the loop may block.
    Decoded objects contain no reference cycles, so they are freed without it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pauses = 0
        self._was_enabled = False

    def pause(self) -> None:
        with self._lock:
            self._pauses += 1
            if self._pauses == 1:
                self._was_enabled = gc.isenabled()
                gc.disable()  # for all threads of the process

    def resume(self) -> None:
        with self._lock:
            self._pauses -= 1
            if self._pauses == 0 and self._was_enabled:
                gc.enable()

    def paused(self, function: Callable[[], T]) -> T:
        self.pause()
        try:
            return function()
        finally:
            self.resume()


_collector: Final = _GarbageCollector()
