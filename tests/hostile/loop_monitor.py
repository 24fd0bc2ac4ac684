"""How long is the event loop of a server blocked?

A task in the loop wakes up every millisecond and measures how late it is: a callback held the loop, or a worker thread
held the interpreter. Other processes must not count, however busy the machine is. So of two measurements, neither of
which is too small on an idle machine, the smaller one is taken:

- the processor time that this process used since the last wake-up: while the loop is blocked, something runs;
- the time on the clock, without the times during which threads of this process were ready to run and had no processor
  (the second number of /proc/self/task/TID/schedstat, in nanoseconds; Linux).

For example, a callback that computes for 30 ms on a machine where it gets half a processor: 60 ms on the clock, of
which the thread waited 30 ms for the processor, and 30 ms of processor time. Blocked: 30 ms.
"""

from __future__ import annotations

import asyncio
import os
import time
from typing import NamedTuple

TICK = 0.001
_TASKS = "/proc/self/task"


class Sample(NamedTuple):
    """Seconds: the processor time of this process, the clock, and by thread how long it has waited for a processor."""

    cpu: float
    clock: float
    queued: dict[str, float]

    @classmethod
    def take(cls) -> Sample:
        queued = {}
        for thread in os.listdir(_TASKS) if os.path.isdir(_TASKS) else ():  # noqa: PTH208, PTH112 - many times a second
            try:
                with open(f"{_TASKS}/{thread}/schedstat", "rb") as file:  # noqa: PTH123
                    queued[thread] = int(file.read().split()[1]) / 1e9
            except OSError:  # the thread has just ended
                continue
        return cls(time.process_time(), time.monotonic(), queued)

    def blocked_since(self, before: Sample) -> float:
        queued = sum(seconds - before.queued.get(thread, 0.0) for thread, seconds in self.queued.items())
        return max(0.0, min(self.cpu - before.cpu, self.clock - before.clock - TICK - queued))


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
