"""Time as an argument.

A server has two kinds of time. *Object time* is visible in objects and answers: creation and deletion, the times of field
managers, the expiry of Events, the validity of tokens, ages in tables. It comes from a `Clock`, which tests replace.
*Process time* limits the cost of a request or a client: deadlines of requests and bodies, stalled connections, retries.
It is always that of the event loop.
"""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from typing import Final, Protocol


class Clock(Protocol):
    """Object time. Durations are in seconds."""

    def now(self) -> datetime:
        """The time of day, in UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds since an arbitrary moment; never decreases."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds`."""
        ...


class SystemClock:
    """The time of the operating system."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


SYSTEM_CLOCK: Final[Clock] = SystemClock()
