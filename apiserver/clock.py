"""Time as an argument.

Two kinds of time run in a server. *Object time* is what objects and answers show and what their lives depend on: creation
and deletion, the times of field managers, the lifetime of Events, the validity of tokens, ages in tables. It comes from a
`Clock`, which tests replace. *Process time* bounds what a request or a client may cost: deadlines of requests and bodies,
stalled connections, retries. It stays on the event loop's own clock, whatever `Clock` is in use.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from typing import Final, Protocol


class Clock(Protocol):
    """Object time. Durations are in seconds."""

    def now(self) -> datetime:
        """The time of day, in UTC."""
        ...

    def monotonic(self) -> float:
        """A reading that only grows; differences are durations."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds`."""
        ...

    def timeout(self, seconds: float) -> AbstractAsyncContextManager[object]:
        """A context whose body is cancelled after `seconds`; it then raises TimeoutError."""
        ...


class SystemClock:
    """The time of the machine."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def timeout(self, seconds: float) -> AbstractAsyncContextManager[object]:
        return asyncio.timeout(seconds)


SYSTEM_CLOCK: Final[Clock] = SystemClock()
