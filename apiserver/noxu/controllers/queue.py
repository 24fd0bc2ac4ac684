"""A keyed work queue, as client-go's: the keys that a controller has to reconcile.

A key that is added twice before a worker takes it is processed once. A key that is added while a worker processes it is
processed again afterwards: a worker always sees the newest state, and no two workers process the same key at a time. A key
that failed is added again after a delay that doubles with each failure.

    add(k)            k is ready
    add_after(k, 60)  k is ready in 60 seconds of object time; of several such times the earliest counts
    get() → k         in the order in which keys became ready; add(k) now makes k ready again after done(k)
    retry(k)          k is ready again after a delay
    done(k)           has to follow each get()

The numbers of a work queue, with client-go's names (component-base's metrics/prometheus/workqueue).
"""

from __future__ import annotations

import asyncio
import heapq
import time
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from itertools import count
from typing import Final, Generic, TypeVar

from noxu.clock import Clock
from noxu.instruments import Family, Kind, exponential


class LazyEvent:
    """An `asyncio.Event` that is made when something waits: empty, it takes 760 bytes, and a server has sixty of them."""

    __slots__ = ("_event", "_is_set")

    def __init__(self) -> None:
        self._is_set = False
        self._event: asyncio.Event | None = None

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        self._is_set = True
        if self._event is not None:
            self._event.set()

    def clear(self) -> None:
        self._is_set = False
        if self._event is not None:
            self._event.clear()

    async def wait(self) -> None:
        """Return when it is set."""
        if self._is_set:
            return
        if self._event is None:
            self._event = asyncio.Event()
        await self._event.wait()


# -- metrics ----------------------------------------------------------------------------------------------------------


SECONDS: Final = exponential(10e-9, 10, 10)
_LABELS: Final = ("name",)


class QueueMetrics:
    """`adds` are the keys that became ready or were changed while they were processed, `retries` those that failed."""

    __slots__ = ("adds", "retries", "waited", "worked")

    def __init__(self) -> None:
        self.adds = 0
        self.retries = 0
        self.waited = [0.0] * (len(SECONDS) + 2)
        self.worked = [0.0] * (len(SECONDS) + 2)

    def taken(self, seconds: float) -> None:
        """A worker has taken a key that was ready for so long."""
        self.waited[bisect_left(SECONDS, seconds)] += 1
        self.waited[-1] += seconds

    def done(self, seconds: float) -> None:
        """A key was processed, which took so long."""
        self.worked[bisect_left(SECONDS, seconds)] += 1
        self.worked[-1] += seconds

    def families(self, name: str, depth: int, running: Sequence[float]) -> list[Family]:
        """`running` are the seconds for which each key that is being processed has been so."""
        rows: tuple[tuple[str, Kind, str, float | list[float]], ...] = (
            ("depth", "gauge", "Current depth of workqueue", depth),
            ("adds_total", "counter", "Total number of adds handled by workqueue", self.adds),
            (
                "queue_duration_seconds",
                "histogram",
                "How long in seconds an item stays in workqueue before being requested.",
                self.waited.copy(),
            ),
            (
                "work_duration_seconds",
                "histogram",
                "How long in seconds processing an item from workqueue takes.",
                self.worked.copy(),
            ),
            (
                "unfinished_work_seconds",
                "gauge",
                "How many seconds of work has done that is in progress and hasn't been observed by work_duration. Large "
                "values indicate stuck threads. One can deduce the number of stuck threads by observing the rate at which "
                "this increases.",
                sum(running),
            ),
            (
                "longest_running_processor_seconds",
                "gauge",
                "How many seconds has the longest running processor for workqueue been running.",
                max(running, default=0.0),
            ),
            ("retries_total", "counter", "Total number of retries handled by workqueue", self.retries),
        )
        return [
            Family(f"workqueue_{key}", kind, text, _LABELS, [((name,), number)], SECONDS if kind == "histogram" else ())
            for key, kind, text, number in rows
        ]


# -- queue ------------------------------------------------------------------------------------------------------------


FIRST_DELAY: Final = 0.005  # seconds before the first retry; client-go's
LONGEST_DELAY: Final = 10.0  # seconds

K = TypeVar("K", bound=Hashable)


class WorkQueue(Generic[K]):
    """The queue of one controller, used on one event loop."""

    def __init__(self, clock: Clock, on_ready: Callable[[], object] = lambda: None) -> None:
        """`clock` measures `add_after`; retries run on the event loop's time. `on_ready` is called when a key is ready."""
        self._clock = clock
        self._on_ready = on_ready
        self.metrics = QueueMetrics()
        self._ready: OrderedDict[K, float] = (
            OrderedDict()  # since when; taking the first key of a dict walks over those taken before
        )
        self._processing: dict[K, float] = {}  # since when
        self._ready_again: dict[K, float] = {}  # added while they were processed: since when
        self._failures: dict[K, int] = {}
        self._retries: dict[K, asyncio.TimerHandle] = {}
        self._delayed: dict[K, float] = {}  # the time at which each key of `add_after` is ready
        self._schedule: list[tuple[float, int, K]] = []  # a heap; entries whose time is not that in `_delayed` are void
        self._order = count()
        self._timer: asyncio.Task[None] | None = None
        self._has_ready = LazyEvent()
        self._idle: dict[K, list[asyncio.Future[None]]] = {}
        self._processed: list[asyncio.Future[None]] = []
        self.is_stopped = False
        """Keys that are added are dropped."""

    def add(self, key: K) -> None:
        """Make a key ready now."""
        if self.is_stopped:
            return
        self._cancel_retry(key)
        waiting = self._ready_again if key in self._processing else self._ready
        if key in waiting:
            return
        self.metrics.adds += 1
        waiting[key] = time.monotonic()
        if waiting is self._ready:
            self._has_ready.set()
            self._on_ready()

    def _cancel_retry(self, key: K) -> None:
        if timer := self._retries.pop(key, None):
            timer.cancel()

    def add_after(self, key: K, seconds: float) -> None:
        """Make a key ready after `seconds` of object time, even if it becomes ready before for another reason."""
        at = self._clock.monotonic() + seconds
        if self.is_stopped or self._delayed.get(key, at + 1) <= at:
            return
        self._delayed[key] = at
        heapq.heappush(self._schedule, (at, next(self._order), key))
        if self._schedule[0][0] == at:
            self._set_timer()

    def retry(self, key: K) -> float:
        """Make a key that failed ready again, after the delay in seconds that is returned."""
        self.metrics.retries += 1
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        delay = min(FIRST_DELAY * 2.0 ** min(failures - 1, 30), LONGEST_DELAY)
        if not self.is_stopped:
            loop = asyncio.get_running_loop()
            self._retries[key] = loop.call_later(delay, self._retry_now, key)
        return delay

    def due(self) -> dict[K, float]:
        """The keys that are not ready yet, and the seconds until they are: 0 for those that have failed."""
        now = self._clock.monotonic()
        return {key: at - now for key, at in self._delayed.items()} | dict.fromkeys(self._retries, 0.0)

    def _retry_now(self, key: K) -> None:
        self._retries.pop(key, None)
        self.add(key)

    def retry_early(self, seconds: float) -> None:
        """Make the keys ready that will be retried within so many seconds."""
        latest = asyncio.get_running_loop().time() + seconds
        for key in [key for key, timer in self._retries.items() if timer.when() <= latest]:
            self.add(key)

    def begin_early(self, seconds: float) -> None:
        """Make the keys ready that will be within so many seconds."""
        latest = self._clock.monotonic() + seconds
        for key in [key for key, at in self._delayed.items() if at <= latest]:
            del self._delayed[key]
            self.add(key)

    def forget(self, key: K) -> None:
        """Reset the count of failures of a key that succeeded."""
        self._failures.pop(key, None)

    def failures(self, key: K) -> int:
        """The number of failures of a key since it last succeeded."""
        return self._failures.get(key, 0)

    async def get(self) -> K:
        """Take the next key; wait until there is one. After `stop`, wait until cancelled."""
        while not self._ready:
            self._has_ready.clear()
            await self._has_ready.wait()
        key, since = self._ready.popitem(last=False)
        now = self._processing[key] = time.monotonic()
        self.metrics.taken(now - since)
        return key

    def done(self, key: K) -> None:
        """End the processing of a key."""
        since = self._processing.pop(key, None)
        if since is not None:
            self.metrics.done(time.monotonic() - since)
        self._wake_processed()
        if key in self._ready_again:
            self._cancel_retry(key)
            self._ready[key] = self._ready_again.pop(key)
            self._has_ready.set()
        elif key not in self._retries:
            self.release(key)

    def _wake_processed(self) -> None:
        for future in self._processed:
            if not future.done():
                future.set_result(None)
        self._processed.clear()

    def is_idle(self, key: K) -> bool:
        """Whether a key is neither ready, nor processed, nor to be retried."""
        return key not in self._ready and key not in self._processing and key not in self._retries

    @property
    def ready(self) -> list[K]:
        """The ready keys, in order."""
        return list(self._ready)

    @property
    def unprocessed(self) -> list[K]:
        """The keys that are ready or processed."""
        return [*self._ready, *self._processing]

    async def processed(self, key: K) -> None:
        """Wait until a key is neither ready nor processed: its last attempt has ended, in success or in failure."""
        while key in self._ready or key in self._processing:
            future = asyncio.get_running_loop().create_future()
            self._processed.append(future)
            await future

    async def idle(self, key: K) -> None:
        """Wait until a key is idle, or released."""
        if not self.is_idle(key):
            future = asyncio.get_running_loop().create_future()
            self._idle.setdefault(key, []).append(future)
            await future

    def release(self, key: K) -> None:
        """Wake the tasks that wait for a key to become idle."""
        for future in self._idle.pop(key, ()):
            if not future.done():
                future.set_result(None)

    def families(self, name: str) -> list[Family]:
        """The metrics of the queue, whose controller has this name."""
        now = time.monotonic()
        return self.metrics.families(name, len(self._ready), [now - since for since in self._processing.values()])

    @property
    def depth(self) -> int:
        """The number of keys that are ready, processed, or to be retried."""
        return len(self._ready) + len(self._processing) + len(self._retries)

    async def stop(self) -> None:
        """Drop all keys, cancel all timers, and wake all waiting tasks. Keys that are added later are dropped, too."""
        self.is_stopped = True
        for retry in self._retries.values():
            retry.cancel()
        for keys in (self._ready, self._ready_again, self._retries, self._delayed, self._schedule, self._failures):
            keys.clear()
        for key in list(self._idle):
            self.release(key)
        self._wake_processed()
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
            await asyncio.gather(timer, return_exceptions=True)

    # -- object time

    def _set_timer(self) -> None:
        """Sleep until the earliest time of `add_after`."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().create_task(self._add_delayed())

    async def _add_delayed(self) -> None:
        while self._schedule:
            at, _, key = self._schedule[0]
            if self._delayed.get(key) == at:
                remaining = at - self._clock.monotonic()
                if remaining > 0:
                    await self._clock.sleep(remaining)
                    continue
                del self._delayed[key]
                self.add(key)
            heapq.heappop(self._schedule)
        self._timer = None
