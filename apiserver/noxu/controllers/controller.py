"""The engine of all controllers: follow a collection, and reconcile the keys that its changes affect.

`Controller` follows one collection or several. `Reconciler` is the part of the engine that does not depend on the
collections. A controller defines which keys a change affects (`observe`), which keys to reconcile when changes may have
been missed (`resync`, which also withdraws what no longer exists), and how to reconcile a key (`reconcile`). The engine
does the rest:

- A key is reconciled by one worker at a time; after a failure it is retried, with a growing delay, until it succeeds.
- When the watch cache is reset, or the controller fails to process a change, it synchronises again.
- Many keys do not block the event loop: other tasks run after WORK_SLICE seconds of reconciliations.
- Its tasks are supervised: a bug is logged, and the task is restarted. `health` reports what fails. They start
  when there is something to do: in many servers most controllers never have a key.
- `stop` cancels everything that was started. It can be started again then.
- `take_over` starts it where another one was idle, without looking at what is stored. So a controller that knows more than
  its collections has to copy that (`_take_over`).

The users as whom the server itself writes: admission sees them.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Final, Generic, NamedTuple, Self, TypeVar

from noxu.api.errors import ApiError, internal_error
from noxu.clock import Clock, process_clock
from noxu.containment import Contained
from noxu.controllers.default_objects import APISERVER_MANAGER as APISERVER_MANAGER
from noxu.controllers.default_objects import FirstObject
from noxu.controllers.queue import LONGEST_DELAY, LazyEvent, WorkQueue
from noxu.registry.access import User
from noxu.registry.authors import AUTHOR, of_controller
from noxu.registry.cache import Change, Collection
from noxu.registry.draft import Writer
from noxu.registry.persistence import Persistence
from noxu.registry.reader import Reader
from noxu.registry.resource import Resource
from noxu.registry.served_resources import LiveResources
from noxu.registry.turns import own_context
from noxu.values import Object, cached_property
from noxu_storage.types import Revision, StoreError

if TYPE_CHECKING:
    from noxu.controllers.certificate_issuing import SigningCA

APISERVER: Final = User("system:apiserver", groups=("system:masters", "system:authenticated"))
"""kube-apiserver's loopback client."""
CONTROLLER_MANAGER: Final = "kube-controller-manager"
"""The field manager of the controllers of kube-controller-manager."""
KUBE_CONTROLLER_MANAGER: Final = User("system:kube-controller-manager", groups=("system:authenticated",))
"""kube-controller-manager itself."""


def controller(name: str) -> User:
    """A controller of kube-controller-manager, which has a service account of its own (--use-service-account-credentials)."""
    groups = ("system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated")
    return User(f"system:serviceaccount:kube-system:{name}", groups=groups)


# -- controller -------------------------------------------------------------------------------------------------------


RESYNC_DELAY: Final = 0.01  # seconds before the second attempt to synchronise; doubled with each further one
LONGEST_RESYNC_DELAY: Final = 1.0  # seconds
SETTLE_WITHIN: Final = 5.0  # seconds that a write waits for a key that fails
UNHEALTHY_AFTER: Final = 5.0  # seconds for which a key may fail
WORK_SLICE: Final = 0.01  # seconds

K = TypeVar("K", bound=Hashable)

log = logging.getLogger("noxu")


class _Failure(NamedTuple):
    """Why a key fails. `since` is the time of the first failure on the event loop's clock.

    `is_internal`: neither a webhook nor a client caused it.
    """

    since: float
    reason: str
    is_internal: bool


class ControllerParts(NamedTuple):
    """What controllers are made of.

    `root_ca` is the CA of the server's certificate in PEM, "" without TLS. `signing_ca` gives the CA that signs requests
    for certificates. `sign_token` makes the token of a service account for a Secret of that name.
    """

    reader: Reader
    writer: Writer
    persistence: Persistence
    served_resources: LiveResources
    clock: Clock
    root_ca: str
    signing_ca: Callable[[], SigningCA]
    sign_token: Callable[[Object, str], str] | None = None

    def resource(self, group: str, plural: str) -> Resource:
        """A built-in resource."""
        resource = self.served_resources.current.find(group, "v1", plural)
        assert resource is not None
        return resource


class Reconciler(ABC, Generic[K]):
    """Keys, and the workers that reconcile them."""

    name: ClassVar[str]
    """The name in health checks and logs."""
    workers: ClassVar[int] = 1
    on_process_time: ClassVar[bool] = False
    """Whether its delays are its own pauses, and not times of objects."""

    def __init__(self, parts: ControllerParts, followed: str) -> None:
        """`followed` names in messages what is followed."""
        self.reader, self.writer, self.persistence = parts.reader, parts.writer, parts.persistence
        self.served_resources, self.clock = parts.served_resources, parts.clock
        self.followed = followed
        self.fresh: dict[K, float | None] = {}
        """Keys whose objects were stored before the start; after so many seconds they are reconciled (None: after a change)."""
        self.stands_by = False
        """Another server runs it, or will: it does nothing here, which is no fault."""
        self._starting = False
        self._synchronised = LazyEvent()
        self._out_of_sync = LazyEvent()
        self._sync_failure = ""
        self._failures: dict[K, _Failure] = {}
        self._is_started = False
        self._has_ended = False
        self._tasks: list[asyncio.Task[None]] = []
        self._workers: list[asyncio.Task[None]] = []  # those of the tasks that reconcile; none, until there is a key
        self._is_paused = False
        self._synchronises = False  # there is a task that synchronises again

    @cached_property
    def queue(self) -> WorkQueue[K]:
        """Made with the first key: in most servers most controllers never have one, and 20 queues take 50 KB."""
        queue: WorkQueue[K] = WorkQueue(
            process_clock(self.clock) if self.on_process_time else self.clock, self._work_on
        )
        queue.is_stopped = self._has_ended
        return queue

    @property
    def _has_queue(self) -> bool:
        return "queue" in vars(self)

    def _reopen_queue(self) -> None:
        """Take keys again after `stop`."""
        self._has_ended = False
        if self._has_queue:
            self.queue.is_stopped = False

    # -- what a controller defines

    @abstractmethod
    async def _synchronise(self) -> None:
        """Make all keys ready, and receive all changes from then on. Ends with `_set_synchronised`. Raises StoreError."""

    @abstractmethod
    async def reconcile(self, key: K) -> float | None:
        """Do what the newest state of a key requires.

        Returns the seconds of object time after which to reconcile the key again; None: only after a change. It is
        retried after any exception.
        """

    def first_objects(self) -> Iterable[FirstObject]:
        """What it creates in a new store, as far as that is known before it starts. See default_objects.py."""
        return ()

    def inherit(self, before: Self) -> None:
        """Have what persons have asked of the one before, which ran until a restart of the server."""

    # -- start and stop

    async def start(self) -> None:
        """Synchronise, try to reconcile every key once, and continue in the background. Raises StoreError."""
        self._reopen_queue()
        await self._synchronise()
        keys = self.queue.ready if self._has_queue else []
        self._run()
        for key in keys:
            await self.queue.processed(key)

    def take_over(self, idle: Self, due: Mapping[K, float]) -> None:
        """Go on where another controller of this kind was idle: the store begins with what it has reconciled.

        `idle` does not run any more; what it knows is copied, or shared until it changes. `due`: by key, the seconds of object
        time after which to reconcile it again.
        """
        self._reopen_queue()
        self._is_started = True
        for key, seconds in due.items():
            self.queue.add_after(key, seconds)
        self._take_over(idle)
        self._set_synchronised()

    @abstractmethod
    def _take_over(self, idle: Self) -> None:
        """Receive all changes from now on, and know what `idle` knows. It does not wait."""

    def start_in_background(self) -> None:
        """Synchronise and reconcile in the background. What fails is retried; `health` reports it."""
        self._starting = True
        self.end()
        self._run()

    def _run(self) -> None:
        """Start the tasks for which there is work. The others start when there is some (`_work_on`, `_recover`)."""
        self._reopen_queue()
        self._is_started = True
        if self._out_of_sync.is_set():
            self._recover()
        if self._has_queue and self.queue.ready:
            self._work_on()

    def _work_on(self) -> None:
        """There is a key for the workers."""
        if self._is_started and not self._is_paused and not self._workers:
            self._workers = [self._supervised(self._work) for _ in range(self.workers)]

    def _recover(self) -> None:
        """It is out of sync."""
        if self._is_started and not self._synchronises:
            self._synchronises = True
            self._tasks.append(self._supervised(self._synchronise_again))

    async def stop(self) -> None:
        """Return when everything that was started has ended."""
        self._is_started = self._is_paused = self._synchronises = False
        tasks, self._tasks, self._workers = [*self._tasks, *self._workers], [], []
        for task in tasks:
            task.cancel()
        self._has_ended = True
        if self._has_queue:
            await self.queue.stop()
        if tasks:
            await asyncio.gather(*tasks, return_exceptions=True)
        self._failures.clear()
        self._sync_failure, self._starting = "", False

    async def interrupt(self) -> None:
        """Interrupt what is being reconciled, and reconcile nothing until `go_on`; then the interrupted keys come first.

        Changes are followed meanwhile.
        """
        self._is_paused = True
        workers, self._workers = self._workers, []
        for key in self.queue.unprocessed:
            self.queue.add(key)  # those that are processed become ready again when their workers have ended
        for task in workers:
            task.cancel()
        if workers:
            await asyncio.gather(*workers, return_exceptions=True)

    def go_on(self) -> None:
        """Go on after `interrupt`."""
        self._is_paused = False
        if self._has_queue and self.queue.ready:
            self._work_on()

    def _supervised(self, work: Callable[[], Awaitable[None]]) -> asyncio.Task[None]:
        async def run() -> None:
            while True:
                with Contained(f"{self.name}: {work.__name__}"):
                    await work()
                await asyncio.sleep(RESYNC_DELAY)

        name = f"{self.name}: {work.__name__}"
        context = own_context()
        context.run(AUTHOR.set, of_controller(self.name))  # whatever the task writes is the controller's
        return asyncio.get_running_loop().create_task(run(), name=name, context=context)

    # -- synchronising

    def end(self) -> None:
        """The cache was reset, or a change could not be processed: synchronise again."""
        self._synchronised.clear()
        self._out_of_sync.set()
        self._recover()

    @property
    def is_idle(self) -> bool:
        """Whether it has missed no change, and has tried to reconcile everything that was due until now."""
        return self._synchronised.is_set() and not (self._has_queue and self.queue.unprocessed)

    def rests(self, seconds: float) -> bool:
        """Whether it is idle, and has nothing to do in the next seconds but to try again what has failed."""
        return self.is_idle and all(after >= seconds or key in self._failures for key, after in self.due.items())

    @property
    def due(self) -> dict[K, float]:
        """The keys that it reconciles again later, and the seconds of object time until then."""
        return self.queue.due() if self._has_queue else {}

    @property
    def is_synchronised(self) -> bool:
        """Whether no change may have been missed."""
        return self._synchronised.is_set()

    def _set_synchronised(self) -> None:
        self._sync_failure, self._starting = "", False
        self._out_of_sync.clear()
        self._synchronised.set()

    async def _synchronise_again(self) -> None:
        await self._out_of_sync.wait()
        delay = RESYNC_DELAY
        while self._out_of_sync.is_set():
            with Contained(f"{self.name}: resync") as contained:
                try:
                    await self._synchronise()
                except (ApiError, StoreError) as error:
                    self._sync_failure = str(error) or repr(error)
            if contained.error is not None:
                self._sync_failure = repr(contained.error)
            if self._sync_failure:
                log.warning("%s cannot list %s: %s", self.name, self.followed, self._sync_failure)
                await asyncio.sleep(delay)
                delay = min(delay * 2, LONGEST_RESYNC_DELAY)

    # -- reconciling

    async def _work(self) -> None:
        time = asyncio.get_running_loop().time
        slice_ends = time() + WORK_SLICE
        while True:
            key = await self.queue.get()
            try:
                await self._attempt(key)
            finally:
                self.queue.done(key)
            if time() > slice_ends:
                await asyncio.sleep(0)
                slice_ends = time() + WORK_SLICE

    async def _attempt(self, key: K) -> None:
        """Reconcile a key, and schedule the next attempt."""
        reason, is_internal, again_after = "", True, None
        with Contained(f"{self.name}: {_text(key)}") as contained:
            try:
                again_after = await self.reconcile(key)
            except (ApiError, StoreError) as error:
                reason, is_internal = str(error) or repr(error), isinstance(error, StoreError)
        if contained.error is not None:
            reason = repr(contained.error)
        if not reason:
            self._failures.pop(key, None)
            self.queue.forget(key)
            if again_after is not None:
                self.queue.add_after(key, again_after)
            return
        now = asyncio.get_running_loop().time()
        since = self._failures[key].since if key in self._failures else now
        self._failures[key] = _Failure(since, reason, is_internal)
        delay = self.queue.retry(key)
        log.warning("%s: %s: %s; retrying in %.3g s", self.name, _text(key), reason, delay)
        if now - since > SETTLE_WITHIN:
            self.queue.release(key)

    async def settled(self, key: K) -> None:
        """Return when the newest state of a key has been reconciled.

        A key that fails is waited for for a few seconds only. Then the write is answered, and its effects come later, as
        they always do upstream.
        """
        if not self._synchronised.is_set():
            try:
                async with asyncio.timeout(SETTLE_WITHIN):
                    await self._synchronised.wait()
            except TimeoutError:
                return
        await self.queue.idle(key)

    async def observed(self) -> None:
        """Return when all changes that the cache has are observed. Raises ApiError if that takes too long."""
        if self._synchronised.is_set():
            return
        try:
            async with asyncio.timeout(SETTLE_WITHIN):
                await self._synchronised.wait()
        except TimeoutError:
            raise internal_error(self.sync_fault()) from None

    async def caught_up(self, *keys: K) -> None:
        """Return when it has tried to reconcile keys, or all keys that wait for it now. Raises ApiError."""
        await self.observed()
        for key in keys or self.queue.unprocessed:
            await self.queue.processed(key)

    def sync_fault(self) -> str:
        """Why it does not follow its objects, and what to do; empty if it does.

        A controller that is started in the background does not fail while it lists its objects for the first time.
        """
        if self.stands_by or self._synchronised.is_set() or (self._starting and not self._sync_failure):
            return ""
        reason = self._sync_failure or "not listed yet"
        return (
            f"cannot list {self.followed}: {reason}; "
            f"the next attempt is within {LONGEST_RESYNC_DELAY:g} s, see the log of the server"
        )

    def health(self) -> str:
        """What fails, since when, and what to do; empty if nothing does. Failures of webhooks and clients do not count."""
        if fault := self.sync_fault():
            return fault
        now = asyncio.get_running_loop().time()
        for key, (since, reason, is_internal) in self._failures.items():
            if is_internal and now - since > UNHEALTHY_AFTER:
                return (
                    f"{_text(key)} has failed {self.queue.failures(key)} times in {now - since:.0f} s: {reason}; "
                    f"the next attempt is within {LONGEST_DELAY:g} s, see the log of the server"
                )
        return ""


class Controller(Reconciler[K]):
    """A controller of one or several collections; a `Watcher` of the cache, and a `Follower` of the registry."""

    follows: ClassVar[Sequence[tuple[str, str]]] = ()
    """The group and the plural of the built-in resources whose collections it follows."""
    collection: Collection
    """The current state of the first of them, from the first synchronisation on. A reset of the cache replaces it."""

    def __init__(self, parts: ControllerParts, *resources: Resource) -> None:
        """`resources` are those whose collections it follows, if they are not `follows`."""
        followed = resources or [parts.resource(*names) for names in self.follows]
        super().__init__(parts, " and ".join(resource.collection for resource in followed))
        self.resource, *self.other_resources = followed
        self.others: list[Collection] = []
        """Likewise, of the other resources, in their order."""
        self._followed: list[Collection] = []

    @abstractmethod
    def observe(self, change: Change) -> Iterable[K]:
        """The keys that a change affects. It must not block: the writer of the change is answered afterwards."""

    @abstractmethod
    def resync(self) -> Iterable[K]:
        """All keys, at the start and whenever changes may have been missed. Withdraws what no longer exists."""

    async def stop(self) -> None:
        self._unfollow()
        await super().stop()

    def deliver(self, changes: Sequence[Change], revision: Revision) -> None:
        for change in changes:
            for key in self.observe(change):
                self.queue.add(key)

    def end(self) -> None:
        self._unfollow()
        super().end()

    def _take_over(self, idle: Self) -> None:
        loaded = self.reader.cache.collections
        self.collection, *self.others = self._followed = [loaded[collection.name] for collection in idle._followed]
        self._receive_changes()

    def _receive_changes(self) -> None:
        for collection in self._followed:
            collection.watchers[self] = None

    def _unfollow(self) -> None:
        for collection in self._followed:
            collection.watchers.pop(self, None)

    async def _synchronise(self) -> None:
        collections = await self._load()
        while list(map(id, newest := await self._load())) != list(map(id, collections)):
            collections = newest  # the cache was reset between loading the collections and this task's turn
        self.collection, *self.others = self._followed = collections
        fresh, self.fresh = self.fresh, {}
        for key in self.resync():  # nothing is awaited from here to the end, so no change is missed
            if key not in fresh:
                self.queue.add(key)
            elif (seconds := fresh[key]) is not None:
                self.queue.add_after(key, seconds)
        self._receive_changes()
        self._set_synchronised()

    async def _load(self) -> list[Collection]:
        return [await self.reader.collection(resource) for resource in (self.resource, *self.other_resources)]


def _text(key: Hashable) -> str:
    """A key for people: a name, or the fields of a tuple."""
    return " ".join(_text(part) for part in key if part) if isinstance(key, tuple) else str(key)
