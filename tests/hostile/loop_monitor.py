"""How long is the event loop of a server blocked?

A task in the loop wakes up every millisecond and measures how late it is: a callback held the loop, or a worker thread
held the interpreter. Other processes must not count, however busy the machine is. So of two measurements, neither of
which is too small on an idle machine, the smaller one is taken:

- the processor time that this process used since the last wake-up: while the loop is blocked, something runs;
- the time on the clock, without the time during which the loop's thread was ready to run and had no processor (the second
  number of /proc/self/task/TID/schedstat, in nanoseconds; Linux).

For example, on a machine where each thread gets half a processor: a callback that computes for 30 ms takes 60 ms on the
clock, of which the thread waited 30 ms for the processor, and 30 ms of processor time. Blocked: 30 ms. If instead a worker
thread holds the interpreter for 30 ms, the loop waits 60 ms for the interpreter, which is no waiting for the processor, and
30 ms of processor time are used. Blocked: 30 ms.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from typing import NamedTuple

import orjson

from noxu.api.codec import MAX_BODY
from tests.timing import cpu_seconds

TICK = 0.001


class Sample(NamedTuple):
    """Seconds: the processor time of this process, the clock, and how long this thread has waited for a processor."""

    cpu: float
    clock: float
    queued: float

    @classmethod
    def take(cls) -> Sample:
        queued = 0
        with contextlib.suppress(OSError), open(f"/proc/self/task/{threading.get_native_id()}/schedstat", "rb") as file:  # noqa: PTH123 - many times a second
            queued = int(file.read().split()[1])
        return cls(time.process_time(), time.monotonic(), queued / 1e9)

    def blocked_since(self, before: Sample) -> float:
        on_clock = self.clock - before.clock - TICK - (self.queued - before.queued)
        return max(0.0, min(self.cpu - before.cpu, on_clock))


class LoopMonitor:
    """`run` runs in the monitored loop; `longest` is the longest time it was blocked since `reset`, in seconds."""

    def __init__(self) -> None:
        self.longest = 0.0

    def reset(self) -> None:
        self.longest = 0.0

    async def run(self) -> None:
        before = Sample.take()
        while True:
            await asyncio.sleep(TICK)
            after = Sample.take()
            self.longest = max(self.longest, after.blocked_since(before))
            before = after


def longest_block() -> float:
    """How long the loop may be blocked on this machine, in seconds: twice as long as one call that cannot be interrupted.

    That call parses the smallest objects, as many as fit into a body.
    """
    text = b"[" + b"{}," * (MAX_BODY // 3 - 1) + b"1]"
    return 2 * cpu_seconds(lambda: orjson.loads(text))
