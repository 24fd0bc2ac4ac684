"""The engine that all controllers run on: follow a collection, bring about what follows from it, key by key.

A controller says which keys a change makes due (`observe`), which keys are due after everything may have changed
(`resync`, which also withdraws what is gone), and what to do about a key (`reconcile`). The engine does the rest:

- A key is worked on once at a time; what fails is retried with a growing delay, for as long as it takes.
- When the watch cache loses track of the log, or the controller itself fails to take a change, it synchronises anew.
- Its tasks are supervised: a bug is logged, and the task goes on. `health` says what is wrong.
- `stop` cancels everything that was started.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Hashable, Iterable, Sequence
from typing import ClassVar, Final, Generic, TypeVar

from noxu.apiserver.api.errors import ApiError
from noxu.apiserver.clock import Clock
from noxu.apiserver.containment import Contained
from noxu.apiserver.controllers.queue import WorkQueue
from noxu.apiserver.registry.cache import Collection
from noxu.apiserver.registry.change import Change
from noxu.apiserver.registry.reader import Reader
from noxu.apiserver.registry.resource import Resource
from noxu.storage.types import Revision, StoreError

RESYNC_DELAY: Final = 0.01  # seconds before the first attempt to synchronise again; doubled up to a second
SETTLE_WITHIN: Final = 5.0  # seconds that a write waits for what fails to follow from it
UNHEALTHY_AFTER: Final = 5.0  # seconds for which a key may fail

K = TypeVar("K", bound=Hashable)

log = logging.getLogger("noxu")


class Controller(ABC, Generic[K]):
    """A controller of one collection; a `Watcher` of the cache, and a `Follower` of the registry."""

    name: ClassVar[str]
    """As health checks and logs name it."""
    workers: ClassVar[int] = 1

    def __init__(self, reader: Reader, resource: Resource, clock: Clock) -> None:
        self.reader = reader
        self.resource = resource
        self.clock = clock
        self.queue: WorkQueue[K] = WorkQueue(clock)
        self.collection = Collection(resource.collection)
        """The collection as it is now; replaced when the cache had to begin anew."""
        self._synchronised = asyncio.Event()
        self._lost = asyncio.Event()
        self._sync_failure = ""
        self._failing: dict[K, tuple[float, str, bool]] = {}  # since when, why, whether it is the server's fault
        self._tasks: list[asyncio.Task[None]] = []

    # -- what a controller does

    @abstractmethod
    def observe(self, change: Change) -> Iterable[K]:
        """The keys that a change makes due. Called before its writer is answered: it must return at once."""

    @abstractmethod
    def resync(self) -> Iterable[K]:
        """All keys, at the start and whenever changes may have been missed. What is gone is withdrawn."""

    @abstractmethod
    async def reconcile(self, key: K) -> float | None:
        """Bring about what follows from the newest state of a key.

        Returns after how many seconds of object time to look again, None: when something changes. Whatever it raises, it
        is called again after a delay.
        """

    # -- life

    async def start(self) -> None:
        """Synchronise, work on every key once, and go on in the background. Raises StoreError."""
        await self._synchronise()
        keys = list(self.queue.due)
        self._tasks = [self._supervised(self._synchronise_when_lost)]
        self._tasks += [self._supervised(self._work) for _ in range(self.workers)]
        for key in keys:
            await self.queue.tried(key)

    async def stop(self) -> None:
        """Return when everything that was started has ended."""
        self.queue.stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self.collection.watchers.pop(self, None)

    def _supervised(self, work: Callable[[], Awaitable[None]]) -> asyncio.Task[None]:
        async def run() -> None:
            while True:
                with Contained(f"{self.name}: {work.__name__}"):
                    await work()
                await asyncio.sleep(RESYNC_DELAY)

        return asyncio.get_running_loop().create_task(run(), name=f"{self.name}: {work.__name__}")

    # -- following the collection

    def deliver(self, changes: Sequence[Change], revision: Revision) -> None:
        for change in changes:
            for key in self.observe(change):
                self.queue.add(key)

    def end(self) -> None:
        """The cache had to begin anew, or a change could not be taken: synchronise again."""
        self._synchronised.clear()
        self._lost.set()

    async def _synchronise(self) -> None:
        self.collection = await self.reader.collection(self.resource)
        for key in self.resync():  # from here to the end nothing waits, so no change is missed
            self.queue.add(key)
        self.collection.watchers[self] = None
        self._sync_failure = ""
        self._synchronised.set()

    async def _synchronise_when_lost(self) -> None:
        await self._lost.wait()
        self._lost.clear()
        delay = RESYNC_DELAY
        while not self._synchronised.is_set():
            try:
                await self._synchronise()
            except (ApiError, StoreError) as error:
                self._sync_failure = str(error)
                log.warning("%s cannot follow %s: %s", self.name, self.resource.collection, error)
                await asyncio.sleep(delay)
                delay = min(delay * 2, 1.0)

    # -- working

    async def _work(self) -> None:
        while True:
            key = await self.queue.get()
            try:
                await self._work_on(key)
            finally:
                self.queue.done(key)

    async def _work_on(self, key: K) -> None:
        failure, is_ours, again = "", True, None
        with Contained(f"{self.name}: {key}") as contained:
            try:
                again = await self.reconcile(key)
            except (ApiError, StoreError) as error:
                failure, is_ours = str(error), isinstance(error, StoreError)
        if contained.error is not None:
            failure = repr(contained.error)
        if not failure:
            self._failing.pop(key, None)
            self.queue.forget(key)
            if again is not None:
                self.queue.add_after(key, again)
            return
        now = asyncio.get_running_loop().time()
        since, _, _ = self._failing.get(key, (now, "", False))
        self._failing[key] = since, failure, is_ours
        delay = self.queue.retry(key)
        log.warning("%s: %s: %s; once more in %.3g s", self.name, key, failure, delay)
        if now - since > SETTLE_WITHIN:
            self.queue.release(key)

    async def settled(self, key: K) -> None:
        """Return when everything that follows from the newest state of a key has happened.

        What fails is waited for a few seconds: then the write is answered, and what follows comes later, as upstream's
        clients are used to.
        """
        if not self._synchronised.is_set():
            try:
                async with asyncio.timeout(SETTLE_WITHIN):
                    await self._synchronised.wait()
            except TimeoutError:
                return
        await self.queue.idle(key)

    def health(self) -> str:
        """What is wrong; empty if nothing is. Failures that are a webhook's or a client's fault do not count."""
        if not self._synchronised.is_set():
            return f"does not follow {self.resource.collection}: {self._sync_failure or 'synchronising'}"
        now = asyncio.get_running_loop().time()
        for key, (since, why, is_ours) in self._failing.items():
            if is_ours and now - since > UNHEALTHY_AFTER:
                return f"{key} fails since {now - since:.0f} s: {why}"
        return ""
