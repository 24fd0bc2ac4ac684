"""Clocks whose time a test sets."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

from noxu.clock import SystemClock

START: Final = datetime(2026, 1, 2, 3, 4, 5, 678901, UTC)


class StoppedClock(SystemClock):
    """The time of day never changes, so nothing that depends on it depends on the speed of the machine."""

    def now(self) -> datetime:
        return START


class ManualClock(SystemClock):
    """Time passes only when the test advances it. For one event loop.

    >>> clock = ManualClock()
    >>> sleeper = asyncio.create_task(clock.sleep(60))
    >>> await loop_turns()
    >>> clock.advance(60)  # wakes the sleeper, which runs in the next turn of the event loop
    """

    def __init__(self) -> None:
        self._elapsed = 0.0  # seconds
        self._jumped = 0.0  # seconds
        self._alarms: dict[object, tuple[float, Callable[[], None]]] = {}

    def now(self) -> datetime:
        return START + timedelta(seconds=self._elapsed + self._jumped)

    def monotonic(self) -> float:
        return self._elapsed

    @property
    def sleepers(self) -> int:
        """The number of tasks that wait for time to pass."""
        return len(self._alarms)

    def advance(self, seconds: float) -> None:
        """Let time pass, and wake the tasks whose time has come, in the order of their times."""
        self._elapsed += seconds
        for alarm, (at, ring) in sorted(self._alarms.items(), key=lambda item: item[1][0]):
            if at <= self._elapsed:
                del self._alarms[alarm]
                ring()

    def jump(self, seconds: float) -> None:
        """Set the time of day, as an administrator or NTP does. No time passes."""
        self._jumped += seconds

    async def sleep(self, seconds: float) -> None:
        woken = asyncio.get_running_loop().create_future()
        with self._alarm(seconds, lambda: None if woken.done() else woken.set_result(None)):
            await woken

    @contextlib.contextmanager
    def _alarm(self, seconds: float, ring: Callable[[], None]) -> Iterator[None]:
        alarm = object()
        self._alarms[alarm] = self._elapsed + seconds, ring
        try:
            yield
        finally:
            self._alarms.pop(alarm, None)
