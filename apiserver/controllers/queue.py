"""A keyed work queue, as client-go's: what a controller has to look at, each key at most once at a time.

A key that is added while it is due stays due once. One that is added while it is worked on is due once more afterwards:
a worker always sees the newest state, and never works on a key twice at the same time. A key that failed is due again
after a delay that doubles with each failure.

    add(k)            due now
    add_after(k, 60)  due in 60 seconds of object time
    get() → k         in the order in which keys became due; add(k) now means: once more after done(k)
    retry(k)          due again after a delay
    done(k)           has to follow each get()
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Hashable
from itertools import count
from typing import Final, Generic, TypeVar

from noxu.apiserver.clock import Clock

FIRST_DELAY: Final = 0.005  # seconds before the first retry; client-go's
LONGEST_DELAY: Final = 10.0  # seconds

K = TypeVar("K", bound=Hashable)


class WorkQueue(Generic[K]):
    """See the module. For one event loop."""

    def __init__(self, clock: Clock) -> None:
        """`clock` measures `add_after`; retries run on the event loop's time."""
        self._clock = clock
        self._due: dict[K, None] = {}
        self._working: set[K] = set()
        self._due_again: set[K] = set()
        self._failures: dict[K, int] = {}
        self._retries: dict[K, asyncio.TimerHandle] = {}
        self._later: list[tuple[float, int, K]] = []
        self._order = count()
        self._alarm: asyncio.Task[None] | None = None
        self._has_due = asyncio.Event()
        self._idle: dict[K, list[asyncio.Future[None]]] = {}
        self._tried: list[asyncio.Future[None]] = []

    def add(self, key: K) -> None:
        """The key is due now."""
        if timer := self._retries.pop(key, None):
            timer.cancel()
        if key in self._working:
            self._due_again.add(key)
            return
        self._due[key] = None
        self._has_due.set()

    def add_after(self, key: K, seconds: float) -> None:
        """The key is due in so many seconds of object time, whatever else makes it due before."""
        at = self._clock.monotonic() + seconds
        heapq.heappush(self._later, (at, next(self._order), key))
        if self._later[0][0] == at:
            self._set_alarm()

    def retry(self, key: K) -> float:
        """The key failed: due again after the delay that is returned."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        delay = min(FIRST_DELAY * 2.0 ** min(failures - 1, 30), LONGEST_DELAY)
        if key not in self._due_again:
            loop = asyncio.get_running_loop()
            self._retries[key] = loop.call_later(delay, self._retry_now, key)
        return delay

    def _retry_now(self, key: K) -> None:
        self._retries.pop(key, None)
        self.add(key)

    def forget(self, key: K) -> None:
        """The key succeeded: its next failure is the first one."""
        self._failures.pop(key, None)

    async def get(self) -> K:
        """The next key, once there is one."""
        while not self._due:
            self._has_due.clear()
            await self._has_due.wait()
        key = next(iter(self._due))
        del self._due[key]
        self._working.add(key)
        return key

    def done(self, key: K) -> None:
        """The key is no longer worked on."""
        self._working.discard(key)
        self._wake_tried()
        if key in self._due_again:
            self._due_again.discard(key)
            self.add(key)
        elif key not in self._retries:
            self.release(key)

    def _wake_tried(self) -> None:
        for future in self._tried:
            if not future.done():
                future.set_result(None)
        self._tried.clear()

    def is_idle(self, key: K) -> bool:
        """Whether nothing is due for the key, under way, or to be retried."""
        return key not in self._due and key not in self._working and key not in self._retries

    @property
    def due(self) -> list[K]:
        """The keys that are due, in order."""
        return list(self._due)

    async def tried(self, key: K) -> None:
        """Return when the key is not due or worked on any more, whatever came of it."""
        while key in self._due or key in self._working:
            future = asyncio.get_running_loop().create_future()
            self._tried.append(future)
            await future

    async def idle(self, key: K) -> None:
        """Return when the key is idle, or released."""
        if not self.is_idle(key):
            future = asyncio.get_running_loop().create_future()
            self._idle.setdefault(key, []).append(future)
            await future

    def release(self, key: K) -> None:
        """Wake those who wait for a key to become idle."""
        for future in self._idle.pop(key, ()):
            if not future.done():
                future.set_result(None)

    @property
    def depth(self) -> int:
        """How many keys are due, worked on, or to be retried."""
        return len(self._due) + len(self._working) + len(self._retries)

    def stop(self) -> None:
        """Cancel everything that is scheduled, and wake everyone who waits."""
        for timer in self._retries.values():
            timer.cancel()
        self._retries.clear()
        self._later.clear()
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        for key in list(self._idle):
            self.release(key)
        self._wake_tried()

    # -- object time

    def _set_alarm(self) -> None:
        """Sleep until the earliest key of `add_after`."""
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm = asyncio.get_running_loop().create_task(self._wake_up())

    async def _wake_up(self) -> None:
        while self._later:
            left = self._later[0][0] - self._clock.monotonic()
            if left > 0:
                await self._clock.sleep(left)
                continue
            _, _, key = heapq.heappop(self._later)
            self.add(key)
        self._alarm = None
