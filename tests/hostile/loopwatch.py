"""How long does the event loop of a server block?

Two measures, for two ways of blocking. `cpu` is the time that the loop's thread worked on the longest single callback:
nobody else's load is in it. `gap` is how much later than it should a task woke up: that counts, too, a worker thread
that does not let go of the interpreter, but also whatever else the machine does, so a test repeats it.
"""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any, Self

TICK = 0.001


class LoopWatch:
    """While entered, `asyncio.Handle` measures what it runs. `follow` adds the ticking task, in the loop itself."""

    def __init__(self) -> None:
        self.thread = 0
        self.cpu = self.gap = 0.0
        self.worst = ""
        self._run = asyncio.Handle._run

    def __enter__(self) -> Self:
        run = self._run

        def measured(handle: Any) -> None:
            if threading.get_ident() != self.thread:
                run(handle)
                return
            began = time.thread_time()
            run(handle)
            took = time.thread_time() - began
            if took > self.cpu:
                self.cpu, self.worst = took, repr(handle)

        asyncio.Handle._run = measured  # type: ignore[method-assign]
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.Handle._run = self._run  # type: ignore[method-assign]

    def reset(self) -> None:
        self.cpu = self.gap = 0.0
        self.worst = ""

    async def follow(self) -> None:
        self.thread = threading.get_ident()
        before = time.perf_counter()
        while True:
            await asyncio.sleep(TICK)
            now = time.perf_counter()
            self.gap = max(self.gap, now - before - TICK)
            before = now
