"""The watch cache: all objects as stored bytes, and the recent changes to them.

GET sends the bytes of an entry, LIST joins those of many, and a watch event is encoded once for all watches. One task
follows the store's log and applies each commit as a whole; a writer waits with `reached` until its write can be read from
the cache. A collection is loaded on first use.

A commit at revision 8, which changes two objects while one writer and one informer wait:

    log: Batch(8, [put widgets/a, put gadgets/b])
      1. the collections apply the events                 entries, keys and `recent` are those of revision 8
      2. `revision` becomes 8
      3. the watchers of widgets and gadgets get their changes (controllers: they only put keys into queues), then those of
         the log
      4. the tasks in `reached(8)` are woken              the writer answers its client; a read by the client sees the write
      5. the fan-out begins a round                       the streams of clients get the events

The fan-out delivers the changes of one collection to its streams, a few in each iteration of the event loop: the time of a
write does not grow with the number of watches. Streams are grouped by partition, and one round of delivery passes all
changes since the previous round to all streams, STEP streams at a time. Changes that are written during a round belong to
the next round, so many streams receive several changes at once instead of delaying the writers. A stream whose client does
not read falls behind: it receives nothing until it has caught up by itself and follows again.

Two rounds, for the streams x and y (STEP = 1), while three changes are written:

    publish()   change 1   round up to 1: x gets [1]; y in the next iteration
    publish()   change 2   a round is under way: nothing to do
    publish()   change 3   likewise
    iteration              y gets [1]; the round is over, 3 > 1: round up to 3: x gets [2, 3]
    iteration              y gets [2, 3]; the round is over

Watches share a change and a delivery of changes, and what they derive from them.
"""

from __future__ import annotations

import asyncio
import logging
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice, takewhile
from typing import Any, Final, Protocol

from noxu.api.errors import ApiError
from noxu.containment import Contained, log_bug
from noxu.registry.offload import LOOP_LIMIT, offload
from noxu.registry.resource import Resource
from noxu.registry.storage_form import CBOR, as_json, weight
from noxu.registry.stored_object import StoredObject
from noxu_storage.store import Store
from noxu_storage.types import Batch, Compacted, Corrupt, Event, Key, KeyValue, Page, Prefix, Revision

Conversions = dict[tuple[Resource, bool], tuple[asyncio.Task[list[StoredObject | ApiError | None]], int]]
"""By version and side (True: `before`): the task that converts it, and the index of its result in the task's list."""

MAX_SHARED_BYTES: Final = 1024 * 1024  # of what streams derive from one batch


class Change:
    """One event. `entry` is the new state, None if the object was deleted; `old` is the state that it replaced, None if the
    object was created."""

    __slots__ = ("_before", "converted", "entry", "frames", "key", "revision", "weight")

    def __init__(self, key: Key, revision: Revision, entry: StoredObject | None, old: StoredObject | None) -> None:
        self.key = key
        self.revision = revision
        self.entry = entry  # shared with the collection, until the next change of the object
        self._before = old
        self.frames: dict[object, bytes] = {}  # encoded watch events, by event type and representation
        self.converted: Conversions | None = None  # conversions by a webhook, under way or complete
        self.weight = max(len(entry.stored) if entry else 0, len(old.stored) if old else 0)  # bytes

    def frame(self, key: object, make: Callable[[], bytes]) -> bytes:
        """The encoded event of a key, which `make` encodes first. Threads that do so at the same time keep the first."""
        frame = self.frames.get(key)
        return self.frames.setdefault(key, make()) if frame is None else frame  # one bytes object goes to every watcher

    @property
    def before(self) -> StoredObject | None:
        """The old state with the revision of the change, as events show it; a copy that is made when it is first read."""
        before = self._before
        if before is not None and before.revision != self.revision:
            before = self._before = before.with_revision(self.revision)  # a copy: the old state keeps its revision
        return before


class Delivery(list[Change]):
    """The changes that one round delivers to the streams of a partition, at least one. It is complete when it is delivered.

    `shared` is what a stream has derived from it for those that show the same: by their view, up to MAX_SHARED_BYTES.
    """

    __slots__ = ("_room", "shared")

    def __init__(self, changes: Iterable[Change] = ()) -> None:
        super().__init__(changes)
        self.shared: dict[object, Any] = {}
        self._room = MAX_SHARED_BYTES

    def share(self, view: object, derived: object, size: int) -> None:
        """Keep what was derived, unless there is no room for so many bytes: then each stream derives its own."""
        if size <= self._room:
            self._room -= size  # no lock: only the loop shares
            self.shared[view] = derived  # from now on other streams read it: it does not change


# -- fanout -----------------------------------------------------------------------------------------------------------


STEP: Final = 16  # streams in each iteration of the loop; each takes about 10 µs, most of it in the kernel


class History(Protocol):
    """The changes of a collection."""

    changed: Revision
    """The revision of the newest change."""

    def since(self, revision: Revision) -> list[Change] | None:
        """The changes after `revision`, None if some of them are no longer kept."""
        ...


class ChangeStream(Protocol):
    """Receives the changes of one partition (None: of all). No method waits."""

    partition: str | None

    def deliver(self, changes: Delivery, revision: Revision) -> bool:
        """Send these changes, which are all up to `revision`. False if the stream can no longer follow."""
        ...

    def fall_behind(self) -> None:
        """Nothing is delivered until the stream follows again."""
        ...

    def end(self) -> None:
        """There are no further changes: the resource was deleted or its schema changed."""
        ...


class Fanout:
    """The streams of one collection."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._streams: dict[ChangeStream, None] = {}
        self._followers: dict[str | None, dict[ChangeStream, None]] = {}  # by partition
        self._delivered: Revision = 0  # the last complete round ended here
        self._round: Iterator[tuple[ChangeStream, Delivery]] | None = None  # deliveries that remain in this round
        self._round_end: Revision = 0  # the newest change in this round

    def add(self, stream: ChangeStream) -> None:
        """Register a stream: it is notified of the end, and of changes once it follows."""
        self._streams[stream] = None  # a dict, not a set: streams are served in the order in which they came

    def remove(self, stream: ChangeStream) -> None:
        self._streams.pop(stream, None)
        self._unfollow(stream)

    def follow(self, stream: ChangeStream) -> None:
        """Deliver future changes to a stream, which has all changes until now."""
        if self._round is None and not self._followers:
            self._delivered = self._history.changed  # no follower has missed what came before the first one
        # a round under way has its own list of deliveries
        self._followers.setdefault(stream.partition, {})[stream] = None

    def delivered(self, now: Revision) -> Revision:
        """The revision up to which all followers have every change: `now`, unless a round is under way."""
        return now if self._round is None else self._delivered

    @property
    def is_delivering(self) -> bool:
        """Whether a round is under way."""
        return self._round is not None

    def publish(self) -> None:
        """Deliver the changes since the last round; the first STEP streams have them when this returns."""
        if self._round is None:
            self._begin_round()
            self._step()

    def end(self) -> None:
        """Deliver all changes until now, and end all streams."""
        self.publish()
        while self._round is not None:
            self._deliver(self._round)
            self._end_round()
        for stream in list(self._streams):
            stream.end()

    def _begin_round(self) -> None:
        if not self._followers:
            return
        self._round_end = self._history.changed  # what is written from here on belongs to the next round
        changes = self._history.since(self._delivered)
        if changes is None:
            for stream in [stream for streams in self._followers.values() for stream in streams]:
                self._leave_behind(stream)
            self._delivered = self._round_end
        elif changes:
            # one list of changes, shared by all streams of a partition
            self._round = iter(self._deliveries(Delivery(changes)))

    def _deliveries(self, changes: Delivery) -> list[tuple[ChangeStream, Delivery]]:
        """Each follower with its changes."""
        by_partition: dict[str | None, Delivery] = {}
        for change in changes:
            by_partition.setdefault(change.key.partition, Delivery()).append(change)
        deliveries = [(stream, changes) for stream in self._followers.get(None, ())]
        for partition, partition_changes in by_partition.items():
            deliveries += [(stream, partition_changes) for stream in self._followers.get(partition, ())]
        return deliveries

    def _step(self) -> None:
        if self._round is None:  # `end` has completed the round
            return
        if self._deliver(islice(self._round, STEP)) < STEP:  # the iterator remembers how far this round has come
            self._end_round()
        if self._round is not None:
            asyncio.get_running_loop().call_soon(self._step)

    def _deliver(self, deliveries: Iterator[tuple[ChangeStream, Delivery]]) -> int:
        """The number of deliveries, including those to streams that have gone meanwhile."""
        count = 0
        while True:
            with Contained("a watch") as contained:
                for stream, changes in deliveries:
                    count += 1
                    if stream not in self._followers.get(stream.partition, ()):
                        continue  # it has fallen behind or was removed during the round
                    if not stream.deliver(changes, self._round_end):
                        self._leave_behind(stream)
            if contained.error is None:
                return count
            self._unfollow(stream)  # the one that failed; the rest of the deliveries follows
            stream.end()

    def _end_round(self) -> None:
        """End the round. Changes since its beginning begin the next one."""
        # a new round takes new deliveries; this one is never resumed
        self._delivered, self._round = self._round_end, None
        if self._delivered < self._history.changed:
            self._begin_round()

    def _leave_behind(self, stream: ChangeStream) -> None:
        self._unfollow(stream)
        stream.fall_behind()

    def _unfollow(self, stream: ChangeStream) -> None:
        streams = self._followers.get(stream.partition)
        if streams is not None:
            streams.pop(stream, None)
            if not streams:
                del self._followers[stream.partition]  # so that changes of other partitions are not sorted in vain


# -- the collections --------------------------------------------------------------------------------------------------


log = logging.getLogger("noxu")

MAX_RECENT: Final = (
    1024  # changes that a collection keeps for watches that resume; older ones come from the store's log
)
RESTART_DELAY: Final = 0.01  # seconds until the log is followed again after a failure; doubled up to a second
MAX_RECENT_BYTES: Final = 32 * 1024 * 1024  # of the objects in them


class Watcher(Protocol):
    """A part of the server that receives changes before their writers are answered. Neither method waits."""

    def deliver(self, changes: Sequence[Change], revision: Revision) -> None: ...

    def end(self) -> None:
        """The watch is over: the resource was deleted or changed, or the cache was reset. The watcher starts again."""
        ...


class LogWatcher(Protocol):
    """A part of the server that receives every change of the store before its writer is answered. Neither method waits.

    It sees the collections that the cache has not loaded, too, and does not cause them to be loaded.
    """

    def deliver(self, events: Sequence[Event], revision: Revision) -> None: ...

    def end(self) -> None:
        """The cache was reset, or the watcher failed: changes may be missing. The watcher starts again."""
        ...


class Collection:
    """The objects of one resource in the order of their keys, and its watches."""

    __slots__ = (
        "__weakref__", "_is_shared", "_recent", "_streams", "changed", "corrupt", "entries", "floor", "keys", "name",
        "recent_bytes", "watchers",
    )  # fmt: skip

    def __init__(self, name: str) -> None:
        self.name = name
        self.entries: dict[Key, StoredObject] = {}
        self.keys: list[Key] = []
        self.corrupt: dict[Key, Revision] = {}  # objects that could not be read; they are not in `entries`
        self._recent: deque[Change] | None = None  # most collections of a server never change, and are never watched
        self._streams: Fanout | None = None
        self.recent_bytes = 0
        self.floor: Revision = 0  # `recent` holds every change after this revision
        self.changed: Revision = 0  # the revision of the newest change
        self.watchers: dict[Watcher, None] = {}
        self._is_shared = False  # `entries` and `keys` are also those of other collections

    @property
    def recent(self) -> deque[Change]:
        """The newest changes: all after `floor`. Most collections of a server never change."""
        if self._recent is None:
            self._recent = deque()
        return self._recent

    @property
    def streams(self) -> Fanout:
        """The watches of clients. Most collections of a server have none."""
        if self._streams is None:
            self._streams = Fanout(self)  # made once: the streams register in it
        return self._streams

    def publish(self) -> None:
        """Deliver what has changed to the watches of clients."""
        if self._streams is not None:
            self._streams.publish()

    def end(self) -> None:
        """End the watches of clients, which have all changes until now."""
        if self._streams is not None:
            self._streams.end()

    def forget_streams(self) -> None:
        """Let go of the watches of clients, which refer to this: its cache has ended, and so have they."""
        self._streams = None  # a stream that is still open has it, until its client is gone

    def continued(self, replaced: Iterable[StoredObject] = ()) -> Collection:
        """The same collection of another cache, which begins with these objects. `replaced` are those that differ there.

        The first of them that changes copies what they share.
        """
        new = Collection(self.name)
        # shared until one of them changes: a template may have thousands of objects
        new.entries, new.keys = self.entries, self.keys
        new._is_shared = self._is_shared = True
        new.floor = new.changed = self.changed
        for entry in replaced:
            new._own()
            new.entries[entry.key] = entry
        return new

    def _own(self) -> None:
        """Stop sharing: from here on entries are added and removed in place."""
        if self._is_shared:
            self.entries, self.keys, self._is_shared = dict(self.entries), self.keys.copy(), False

    def apply(self, event: Event, expected: StoredObject | None = None) -> Change:
        """Apply an event. `expected` is the entry that the writer of the event prepared."""
        key = event.key
        if self._is_shared:
            self._own()
        if self.corrupt:
            self.corrupt.pop(key, None)  # its new value is read, or there is none
        cached = old = self.entries.get(key)
        if old is None and event.previous is not None:
            old = StoredObject(key, event.previous.value, event.previous.revision)
        entry = None
        if event.value is not None:
            if expected is not None and (expected.stored is event.value or expected.written == event.value):
                # the writer's own entry, rendered; it is answered with the same bytes
                entry, entry.revision = expected, event.revision
            else:
                entry = StoredObject(key, event.value, event.revision)
            if cached is None:
                insort(self.keys, key)  # in place: `select` may have handed out this very list, see there
            self.entries[key] = entry
        elif cached is not None:
            # both or none: a list never sees a key without its entry
            del self.entries[key], self.keys[bisect_left(self.keys, key)]
        change = Change(key, event.revision, entry, old)
        recent = self.recent
        recent.append(change)  # shared with watches that resume
        self.recent_bytes += change.weight
        while len(recent) > MAX_RECENT or self.recent_bytes > MAX_RECENT_BYTES:
            dropped = recent.popleft()
            self.recent_bytes -= dropped.weight
            self.floor = dropped.revision  # a watch from before this revision reads the store's log
        self.changed = event.revision
        return change

    def fill(self, entries: Iterable[StoredObject]) -> None:
        for entry in entries:
            self.entries[entry.key] = entry  # in place: no one else has this collection yet
        self.keys = sorted(self.entries)  # a new list, sorted once

    def corrupt_in(self, partition: str | None) -> dict[Key, Revision]:
        """The unreadable objects of one partition (None: of all)."""
        return {key: revision for key, revision in self.corrupt.items() if partition in (None, key.partition)}

    def forget_recent(self) -> None:
        """Forget the changes that were kept for watches that resume: these read the store's log."""
        self._recent = None
        self.recent_bytes = 0
        self.floor = self.changed

    def select(self, partition: str | None, after: Key | None = None) -> list[Key]:
        """The keys of one partition (None: of all) after the key `after`, in order. The list may be `self.keys` itself."""
        start = 0 if after is None else bisect_left(self.keys, (*after, ""))
        if partition is None:
            return self.keys[start:] if start else self.keys  # shared: the caller reads it before it waits
        first, last = self._bounds(partition)
        return self.keys[max(first, start) : last]

    def page(self, partition: str | None, after: Key | None, limit: int) -> tuple[list[StoredObject], int]:
        """(The first `limit` entries that `select` finds, 0: all; the number of those that follow)."""
        first, last = (0, len(self.keys)) if partition is None else self._bounds(partition)
        if after is not None:
            first = min(max(first, bisect_left(self.keys, (*after, ""))), last)
        end = min(first + limit, last) if limit else last
        # a new list: it stays as it is while others write
        return [self.entries[key] for key in self.keys[first:end]], last - end

    def count(self, partition: str | None) -> int:
        """The number of keys in a partition (None: in all)."""
        if partition is None:
            return len(self.keys)
        first, last = self._bounds(partition)
        return last - first

    def is_empty(self, partition: str | None) -> bool:
        """Whether there are no keys in a partition (None: at all)."""
        return not self.count(partition)

    def _bounds(self, partition: str) -> tuple[int, int]:
        """The indices of the first key of a partition and of the first one after it."""
        first = bisect_left(self.keys, Key(self.name, partition, ""))
        return first, bisect_left(self.keys, Key(self.name, partition + "\0", ""), lo=first)

    def entries_in(self, partition: str) -> list[StoredObject]:
        """The objects of one partition, in the order of their keys."""
        return [self.entries[key] for key in self.select(partition)]

    def since(self, revision: Revision) -> list[Change] | None:
        """The changes after `revision`, None if some of them are no longer in `recent`."""
        if revision < self.floor:
            return None
        if revision >= self.changed:
            return []
        changes = list(takewhile(lambda change: change.revision > revision, reversed(self.recent)))
        changes.reverse()
        return changes


async def entries_of(items: Sequence[KeyValue]) -> list[StoredObject]:
    """The entries of stored objects."""

    def make() -> list[StoredObject]:
        return [StoredObject(item.key, item.value, item.revision) for item in items]

    return await offload(weight([item.value for item in items]), make)


def _with_json(event: Event) -> Event:
    return event._replace(value=as_json(event.value or b""))


class WatchCache:
    """All collections, kept up to date from the store's log."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.revision: Revision = store.revision
        self.collections: dict[str, Collection] = {}
        self.watchers: dict[LogWatcher, None] = {}
        """The watchers of all collections."""
        self._loading: dict[str, asyncio.Task[Collection]] = {}
        self._waiting: deque[tuple[Revision, asyncio.Future[None]]] = deque()
        self._pending: dict[str, list[Event]] = {}
        self.expected: dict[Key, StoredObject] = {}
        """The entries of writes under way. The cache keeps these very entries, which are already rendered and indexed."""
        self.failure = ""
        """Why the cache does not follow the log; empty if it does."""
        self._resets = 0

    def begin_with(self, collections: Iterable[Collection], replaced: Iterable[StoredObject]) -> None:
        """Have collections of a cache that follows no log any more: the store begins with its states.

        `replaced` are the objects that differ from those, as in the store.
        """
        own: dict[str, list[StoredObject]] = {}
        for entry in replaced:
            own.setdefault(entry.key.collection, []).append(entry)
        for collection in collections:
            if not collection.corrupt:
                self.collections[collection.name] = collection.continued(own.get(collection.name, ()))

    async def keep_following(self) -> None:
        """Follow the log until the store is closed. After a failure, reset the cache and continue."""
        delay = RESTART_DELAY
        while True:
            with Contained("the watch cache") as contained:
                await self.follow()
                return
            self.failure = repr(contained.error)
            self.reset(self.store.revision)
            await asyncio.sleep(delay)
            delay = min(delay * 2, 1.0)
            self.failure = ""

    async def health(self) -> str:
        """Why the cache does not follow the log; empty if it does."""
        return self.failure

    async def follow(self) -> None:
        """Apply the log until the store is closed.

        If compaction overtakes it, the cache is reset. After any other failure call `reset` before this again, because a
        batch may have been applied in part.
        """
        while True:
            try:
                async for batch in self.store.watch(after=self.revision):
                    self._apply(await self._in_json(batch))
                return
            except (Compacted, Corrupt):
                self.reset(self.store.revision)
                await asyncio.sleep(0)  # however often: other tasks come first

    async def _in_json(self, batch: Batch) -> Batch:
        """The batch without values in CBOR that take long to decode, unless their writers have prepared entries."""
        expected = self.expected
        large = [
            event
            for event in batch.events
            if event.value is not None and len(event.value) > LOOP_LIMIT and event.value.startswith(CBOR)
            if event.key not in expected or expected[event.key].written != event.value
        ]
        if not large:
            return batch
        decoded = {event: await offload(len(event.value or b""), _with_json, event) for event in large}
        return batch._replace(events=[decoded.get(event, event) for event in batch.events])

    def reset(self, revision: Revision) -> None:
        """Drop all collections, end their watches, and continue the log at `revision`."""
        self.revision = revision
        self._resets += 1
        for collection in self.collections.values():
            self._end(collection)
        self.collections.clear()  # a reader that holds one keeps its last state
        watchers, self.watchers = list(self.watchers), {}  # a watcher that starts again registers in the new one
        for watcher in watchers:
            with Contained("a watcher of the log"):
                watcher.end()
        self._wake()

    def _apply(self, batch: Batch) -> None:
        changed: dict[Collection, list[Change]] = {}
        for event in batch.events:
            collection = self.collections.get(event.key.collection)
            if collection is not None:
                expected = self.expected.get(event.key)
                changed.setdefault(collection, []).append(collection.apply(event, expected))
            elif (pending := self._pending.get(event.key.collection)) is not None:
                pending.append(event)  # applied by `_load`, which has the page of an earlier revision
        self.revision = batch.revision  # only now: a reader that sees this revision finds its objects
        for collection, changes in changed.items():
            for watcher in list(collection.watchers):  # a copy: a watcher may end itself
                self._deliver(collection, watcher, changes)
        if self.watchers:
            # those of collections that are not loaded, too
            self._deliver_log([self._as_expected(event) for event in batch.events], batch.revision)
        self._wake()
        for collection in changed:
            collection.publish()

    def _deliver(self, collection: Collection, watcher: Watcher, changes: Sequence[Change]) -> None:
        """Deliver changes to a watcher. If it fails, only its own watch ends."""
        try:
            watcher.deliver(changes, self.revision)
        except Exception as bug:  # noqa: BLE001 - a bug in one controller must not end the others
            log_bug(f"a watcher of {collection.name}", bug)
            collection.watchers.pop(watcher, None)
            with Contained(f"a watcher of {collection.name}"):
                watcher.end()

    def _as_expected(self, event: Event) -> Event:
        """The event, with JSON instead of CBOR if its writer has prepared it."""
        if event.value is None or not event.value.startswith(CBOR):
            return event
        expected = self.expected.get(event.key)
        return event if expected is None or expected.written != event.value else event._replace(value=expected.stored)

    def _deliver_log(self, events: Sequence[Event], revision: Revision) -> None:
        """Deliver events to the watchers of the log. If one fails, only its own watch ends."""
        for watcher in list(self.watchers):
            try:
                watcher.deliver(events, revision)
            except Exception as bug:  # noqa: BLE001 - a bug in one controller must not end the others
                log_bug("a watcher of the log", bug)
                self.watchers.pop(watcher, None)
                with Contained("a watcher of the log"):
                    watcher.end()

    def _wake(self) -> None:
        """Wake the tasks that wait for this revision or an earlier one."""
        while self._waiting and self._waiting[0][0] <= self.revision:
            future = self._waiting.popleft()[1]
            if not future.done():
                future.set_result(None)

    async def reached(self, revision: Revision) -> None:
        """Wait until the cache has applied the log up to `revision`."""
        if revision <= self.revision:
            return
        future = asyncio.get_running_loop().create_future()
        # in the order of revisions: `_wake` stops at the first that is later
        insort(self._waiting, (revision, future), key=lambda pair: pair[0])
        await future

    async def collection(self, name: str) -> Collection:
        """The collection of that name, loaded on first use. Raises StoreError."""
        collection = self.collections.get(name)
        if collection is not None:
            return collection
        task = self._loading.get(name)
        if task is None:
            task = self._loading[name] = asyncio.ensure_future(self._load(name))
            # after a failure the next reader tries again
            task.add_done_callback(lambda _: self._loading.pop(name, None))
        return await asyncio.shield(task)  # a reader that leaves does not end it for the others

    async def _load(self, name: str) -> Collection:
        resets = -1
        while resets != self._resets:  # after a reset, events between the page and now are missing
            resets = self._resets
            pending = self._pending[name] = []  # `_apply` fills it while this waits
            try:
                page, corrupt = await self._list_stored(name)
                await self.reached(page.revision)
                entries = await entries_of(page.items)
            finally:
                del self._pending[name]
        collection = Collection(name)
        collection.fill(entries)
        collection.corrupt.update(corrupt)
        collection.floor = collection.changed = page.revision
        for event in pending:
            if event.revision > page.revision:
                collection.apply(event)
        self.collections[name] = collection  # complete: nothing has waited since the events were applied
        return collection

    async def _list_stored(self, name: str) -> tuple[Page, Mapping[Key, Revision]]:
        """(The objects of a collection in the store, those of them that cannot be read)."""
        try:
            return await self.store.list(Prefix(name)), {}
        except Corrupt as error:
            if error.page is None:
                raise
            log.error("%s: noxu check lists all corrupt values", error)  # noqa: TRY400 - corrupt data is not a bug
            return error.page, error.keys

    def withdraw(self, name: str) -> None:
        """End all watches of a collection that is no longer served, and keep nothing of its past, which refers to schemas.

        An empty one is dropped, and loaded again when it is used again.
        """
        self.end_watches(name)
        if (collection := self.collections.get(name)) is not None:
            collection.forget_recent()
            if not collection.keys and not collection.corrupt:
                del self.collections[name]

    def end_watches(self, name: str) -> None:
        """End all watches of a collection, because its resource changed or was deleted."""
        collection = self.collections.get(name)
        if collection is not None:
            self._end(collection)

    def _end(self, collection: Collection) -> None:
        collection.end()
        # a watcher that starts again registers in the new one
        watchers, collection.watchers = list(collection.watchers), {}
        for watcher in watchers:
            with Contained(f"a watcher of {collection.name}"):
                watcher.end()
