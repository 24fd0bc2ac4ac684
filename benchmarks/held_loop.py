"""How long an event loop is not free for others, while something is measured.

async with watched_loop() as held:
    ...
print(held.longest)     # seconds
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager


class HeldLoop:
    """`longest`: the longest time in seconds between two turns of the loop so far; it may be set to 0 to begin anew."""

    longest = 0.0


@asynccontextmanager
async def watched_loop(seconds: Callable[[], float] = time.perf_counter) -> AsyncIterator[HeldLoop]:
    """Look at each turn of the loop while the context is open. `seconds` may be processor time."""
    held = HeldLoop()

    async def watch() -> None:
        while True:
            began = seconds()
            await asyncio.sleep(0)
            held.longest = max(held.longest, seconds() - began)

    watcher = asyncio.create_task(watch())
    await asyncio.sleep(0)
    try:
        yield held
    finally:
        watcher.cancel()
