"""Time in tests: no test fails because the machine is busy, slow or used by others.

- An upper bound is on processor time, to which other processes increase little (`cpu_seconds`), with room to spare.
- Where processor time does not help, the order of events is checked: this was answered before that.
- A lower bound ("not before 0.3 s") may be read from the clock: a busy machine only adds to it.
- A condition is awaited with `eventually` or `eventually_async`. Their deadline, like every timeout of HANGS_AFTER
  seconds in a test, is a guard against hanging: reaching it means that something never happens, not that it is slow.

Deadlines of the server may be shortened (0.4 s instead of 60 s), but only where the test also holds if everything else
takes ten times as long.
"""

from __future__ import annotations

import asyncio
import gc
import inspect
import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, TypeVar, overload

T = TypeVar("T")

HANGS_AFTER: Final = 60.0  # seconds
_POLL: Final = 0.005  # seconds between two calls of a condition


def eventually(condition: Callable[[], T]) -> T:
    """Call `condition` until its result is true, and return that result. Raises AssertionError if it never is."""
    deadline = time.monotonic() + HANGS_AFTER
    while not (found := condition()):
        assert time.monotonic() < deadline, f"still {found!r} after {HANGS_AFTER:g} s"
        time.sleep(_POLL)
    return found


@overload
async def eventually_async(condition: Callable[[], Awaitable[T]]) -> T: ...


@overload
async def eventually_async(condition: Callable[[], T]) -> T: ...


async def eventually_async(condition: Callable[[], T | Awaitable[T]]) -> T:
    """Like `eventually`, without blocking the event loop; `condition` may be async."""
    deadline = time.monotonic() + HANGS_AFTER
    while True:
        result = condition()
        found: T = await result if inspect.isawaitable(result) else result
        if found:
            return found
        assert time.monotonic() < deadline, f"still {found!r} after {HANGS_AFTER:g} s"
        await asyncio.sleep(_POLL)


async def loop_turns(count: int = 50) -> None:
    """Let the event loop run what is ready. For tasks that wait for neither threads, sockets nor timers."""
    for _ in range(count):
        await asyncio.sleep(0)


def hang_guard() -> asyncio.Timeout:
    """`async with hang_guard():` around code that must end at some time."""
    return asyncio.timeout(HANGS_AFTER)


def cpu_seconds(work: Callable[[], object], *, tries: int = 3) -> float:
    """The processor time that `work` takes in this thread: the least of several tries, since a cache may be cold."""
    return min(_thread_time(work) for _ in range(tries))


def cpu_seconds_of(pid: int) -> float:
    """The processor time of a running process, all its threads included; 0 where there is no /proc.

    /proc/PID/stat is `PID (NAME) STATE …`. User and system time, in clock ticks, are the 14th and the 15th field.
    """
    stat = Path(f"/proc/{pid}/stat")
    if not stat.exists():
        return 0.0
    fields = stat.read_text().rpartition(")")[2].split()  # from the third field on: a name may contain anything
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def longest_block(work: Callable[[], Awaitable[T]]) -> tuple[T, float]:
    """The result of `work`, and the most processor time that the loop's thread used without a turn for other tasks."""
    longest, done = 0.0, asyncio.Event()

    async def watch() -> None:
        nonlocal longest
        while not done.is_set():
            before = time.thread_time()
            await asyncio.sleep(0.001)
            longest = max(longest, time.thread_time() - before)

    watching = asyncio.create_task(watch())
    await asyncio.sleep(0)
    gc.disable()  # a collection would visit all objects of the test session
    try:
        result = await work()
        done.set()
        await watching
    finally:
        gc.enable()
    return result, longest


def _thread_time(work: Callable[[], object]) -> float:
    start = time.thread_time()
    work()
    return time.thread_time() - start
