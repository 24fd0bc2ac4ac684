"""Offload large work to a thread, and limit the number of large requests that are processed concurrently.

The work of a request grows with its weight in bytes: those of its body and those of the stored object. Up to LOOP_LIMIT it
runs in the event loop. Larger work runs in one thread: the interpreter switches threads every few milliseconds, so the
loop continues to serve other requests. There is only one thread, because with each further one the loop waits longer for
its turn. A decoded object takes up to fifty times the memory of its text, so a large request waits for a slot before it is
decoded, and keeps the slot until it is answered.

Offloaded functions are pure: they work on a draft or on bytes that nothing else changes at the same time.
"""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final, ParamSpec, TypeVar

LOOP_LIMIT: Final = 16 * 1024  # bytes of JSON
SLOTS: Final = 4  # large requests that are decoded at the same time

P = ParamSpec("P")
T = TypeVar("T")

_thread: Final = ThreadPoolExecutor(1, "noxu-offload")


async def offload(weight: int, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function in the loop if `weight`, in bytes, is at most LOOP_LIMIT, else in the thread."""
    if weight <= LOOP_LIMIT:
        return function(*args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(
        _thread, _collector.paused, partial(function, *args, **kwargs)
    )


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
