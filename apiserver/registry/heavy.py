"""Heavy work leaves the event loop, and few heavy requests are worked on at a time.

What a request costs grows with its bytes: those it brings and those of the object that it is about. Up to LIGHT bytes
it is worked on where it stands. More is done in one thread: the interpreter is handed over every few milliseconds, so
the loop goes on serving others. It is one thread for all because each further one makes the loop wait longer for its
turn; and as a decoded object takes up to fifty times the memory of its text, a heavy request waits for its turn before
it is decoded, and keeps it until it is answered.

What is done in the thread is pure: it works on a draft or on bytes that nobody else changes meanwhile.
"""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final, ParamSpec, TypeVar

LIGHT: Final = 16 * 1024  # bytes of JSON; the dearest take a few microseconds each
AT_ONCE: Final = 4  # heavy requests that may be decoded at the same time

P = ParamSpec("P")
T = TypeVar("T")

_thread: Final = ThreadPoolExecutor(1, "noxu-heavy")


async def work(weight: int, do: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do it here if its weight, in bytes, is light, in the thread if it is heavy."""
    if weight <= LIGHT:
        return do(*args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(_thread, _pauses.during, partial(do, *args, **kwargs))


class Turns:
    """The places for heavy requests of one server. Without a place a heavy request waits."""

    def __init__(self, at_once: int = AT_ONCE) -> None:
        self._places = asyncio.Semaphore(at_once)

    async def take(self) -> None:
        await self._places.acquire()
        _pauses.begin()

    def give_back(self) -> None:
        _pauses.end()
        self._places.release()


class _Pauses:
    """While there is heavy work, and while heavy requests have their turn, the garbage collector pauses.

    It stops everything to visit every container there is, and a million of them take longer than the loop may wait.
    Decoded objects are no garbage that it would be needed for.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wanted = 0
        self._resume = False

    def begin(self) -> None:
        with self._lock:
            self._wanted += 1
            if self._wanted == 1:
                self._resume = gc.isenabled()
                gc.disable()

    def end(self) -> None:
        with self._lock:
            self._wanted -= 1
            if self._wanted == 0 and self._resume:
                gc.enable()

    def during(self, do: Callable[[], T]) -> T:
        self.begin()
        try:
            return do()
        finally:
            self.end()


_pauses: Final = _Pauses()
