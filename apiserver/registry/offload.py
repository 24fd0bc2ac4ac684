"""Offload large work to threads, and limit the number of large requests that are processed concurrently.

The work of a request grows with its weight in bytes: those of its body and those of the stored object. Up to LOOP_LIMIT it
runs in the event loop, under a budget of processor time if it may multiply (`cpu_budget`). Larger work runs in a thread:
the interpreter switches threads after SWITCH_INTERVAL, so the loop continues to serve other requests. There are only a
few threads, because with each one the loop waits longer for its turn; and each piece of work has a ThreadBudget, so that
none of them occupies a thread for long. When the request ends, because its client has left, its deadline has passed or the
server stops, its work in a thread ends, too.

A decoded object takes up to fifty times the memory of its text (seventy times that of CBOR), so a large request waits for a
slot before it is decoded, and keeps the slot until it is answered.

Offloaded functions are pure: they work on a draft or on bytes that nothing else changes at the same time.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, partial
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Final, ParamSpec, TypeVar

from noxu.apiserver.cpu_budget import limited_by
from noxu.apiserver.registry.cpu_budget import LoopBudget, LoopBudgetExceeded, ThreadBudget

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

LOOP_LIMIT: Final = 16 * 1024  # bytes of JSON
SLOTS: Final = 4  # large requests that are decoded at the same time
THREADS: Final = 2
SWITCH_INTERVAL: Final = (
    0.001  # seconds; each thread that computes may make the loop wait for so long, many times a request
)

P = ParamSpec("P")
T = TypeVar("T")

_imported: Final[set[str]] = set()  # completely: while a module is being imported, it is in `sys.modules` already
_has_threads: Final[ContextVar[bool]] = ContextVar("has_threads", default=True)


@cache
def _threads() -> ThreadPoolExecutor:
    from concurrent.futures import ThreadPoolExecutor  # a server has nothing to offload before its first request

    return ThreadPoolExecutor(THREADS, "noxu-offload")


@contextmanager
def without_threads() -> Iterator[None]:
    """Run large work in the calling thread, under the same budget: for commands whose event loop does nothing else."""
    token = _has_threads.set(False)
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
    budget = ThreadBudget()
    if not _has_threads.get():
        return _in_thread(budget, partial(function, *args, **kwargs))
    try:
        return await asyncio.get_running_loop().run_in_executor(
            _threads(), _in_thread, budget, partial(function, *args, **kwargs)
        )
    except asyncio.CancelledError:
        budget.cancel()
        raise


async def offload_if_long(weight: int, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """As `offload`, but what takes too long in the loop is repeated in a thread. For functions that change nothing."""
    if weight <= LOOP_LIMIT:
        try:
            with limited_by(LoopBudget()):
                return function(*args, **kwargs)
        except LoopBudgetExceeded:
            weight = LOOP_LIMIT + 1
    return await offload(weight, function, *args, **kwargs)


async def imported(name: str) -> ModuleType:
    """A module of which servers need nothing at their start. A thread imports it, which takes long."""
    if name not in _imported:
        await offload(LOOP_LIMIT + 1, import_module, name)
        _imported.add(name)
    return import_module(name)


def _in_thread(budget: ThreadBudget, function: Callable[[], T]) -> T:
    if sys.getswitchinterval() > SWITCH_INTERVAL:
        sys.setswitchinterval(SWITCH_INTERVAL)
    with limited_by(budget):
        budget.check()
        return _collector.paused(function)


class LargeRequests:
    """The slots for large requests of a server."""

    def __init__(self, slots: int = SLOTS) -> None:
        self._slots = asyncio.Semaphore(slots)

    async def enter(self) -> None:
        """Take a slot; wait until one is free."""
        await self._slots.acquire()
        _collector.pause()

    def leave(self) -> None:
        _collector.resume()
        self._slots.release()


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
                gc.disable()

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
