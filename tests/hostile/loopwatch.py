"""How long does the event loop of a server wait for its turn?

A task in the loop wakes up every millisecond and looks how much processor time the whole process has used since. While
something holds the loop, or a worker thread does not let go of the interpreter, that grows and the task does not wake
up. Other processes do not count, however busy the machine is; that is why it is not the clock on the wall.
"""

from __future__ import annotations

import asyncio
import time

TICK = 0.001


class LoopWatch:
    """`follow` runs in the loop that is watched; `worst` is the longest wait since the last `reset`, in seconds."""

    def __init__(self) -> None:
        self.worst = 0.0

    def reset(self) -> None:
        self.worst = 0.0

    async def follow(self) -> None:
        before = time.process_time()
        while True:
            await asyncio.sleep(TICK)
            now = time.process_time()
            self.worst = max(self.worst, now - before)
            before = now
