"""Watch: a stream of events about one collection (upstream's pkg/endpoints/handlers/watch.go and its watch cache).

An event is encoded once per representation, and all watchers receive the same bytes. The collection's `Fanout` delivers
changes to the streams that follow it, which send them immediately: one write for all events of a batch, which streams
with the same view (selectors, representation, framing) share. What is unsent are references to these bytes, so a
connection costs no copy of its own: at most HIGH_WATER and one portion (CHUNK_BYTES and an event) are unsent of each, and
they are shared by all connections unless TLS encrypts them or a representation differs from watch to watch.

A stream falls behind if its client does not read, if objects are too large for the event loop, or if a webhook converts
them. Then the server keeps only the revision that the stream has reached; from there it catches up, from the cache or from the
store's log, as fast as its client reads. A client that reads nothing for `STALLED_AFTER` seconds is disconnected; it resumes
from the last resourceVersion that it has received.

For example, a stream at revision 7 whose client does not read: changes 8 and 9 are not queued for it. When the client
reads again, the stream takes both from the cache, sends them, is at revision 9, and follows the fan-out from there.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Protocol, TypeVar

from noxu.api import codec, errors, protobuf
from noxu.api.errors import ApiError
from noxu.http.exchange import ListOptions, parse_revision
from noxu.http.metrics import EventSizes, WatchMetrics, event_sizes
from noxu.registry import storage_form
from noxu.registry.cache import Change, Collection, Delivery, entries_of
from noxu.registry.conversion.converters import changes_before_failure, entries_before_failure
from noxu.registry.offload import LOOP_LIMIT, offload
from noxu.registry.reader import Reader, Selection, select, unlistable
from noxu.registry.resource import Resource
from noxu.registry.stored_object import StoredObject, body_at, is_rendered, object_at
from noxu.tables.jsonpath import CellBudget, limited_by
from noxu.values import Object
from noxu_storage.types import Compacted, Corrupt, Event, Prefix, Revision

if TYPE_CHECKING:
    from noxu.control.faults.streams import Ending, StreamFaults

BOOKMARK_EVERY: Final = 60.0
BOOKMARK_BEFORE_END: Final = 2.0
BOOKMARK_AFTER_INITIAL: Final = 0.5
"""Upstream registers a watch with initial events for a bookmark before they are sent, and sends it at the next tick of its
dispatcher, in up to 1.25 s. (Clients that do not request initial events get none if the watch lasts 2 s or less.)"""
HIGH_WATER: Final = 32 * 1024  # unsent bytes of a connection from which on its stream falls behind
STALLED_AFTER: Final = 5.0  # seconds without reading
CHUNK: Final = 128  # events between two pauses
CHUNK_BYTES: Final = 128 * 1024

_RANDOM: Final = random.SystemRandom()  # the generator of the random module belongs to the program that runs the server
_IMMEDIATELY: Final = -1  # an end of a stream that every revision has passed

T = TypeVar("T")
EventType = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"]


class _Unconvertible(Exception):
    """An object cannot be read or converted to the watched version. This ends the watch with an ERROR event."""

    def __init__(self, error: ApiError) -> None:
        super().__init__(error)
        self.error = error


class _Unrepresentable(Exception):
    """An object cannot be shown in the requested form, a list. This ends the watch without an event, as upstream does."""


class Pipe(Protocol):
    """The client's end of a stream. `write` and `drain` raise ConnectionError if the client is gone."""

    def framed(self, events: Sequence[bytes]) -> Sequence[bytes]:
        """What is to be written for encoded events: these, and what frames them. Equal for all pipes of one type."""
        ...

    def write(self, pieces: Sequence[bytes]) -> int:
        """Send without waiting; return the number of bytes that are still unsent. What is unsent is not copied."""
        ...

    async def drain(self) -> None:
        """Wait until most bytes are sent."""
        ...


def frame(kind: EventType, body: bytes) -> bytes:
    """An event with an encoded object, as a line of JSON."""
    return b'{"type":"%b","object":%b}\n' % (kind.encode(), body)


class _Events(NamedTuple):
    """The events of a batch of changes, as one write.

    `selection` keeps alive the selectors by whose ids streams find it (`Stream._view`).
    """

    pieces: Sequence[bytes]
    sizes: EventSizes
    selection: Selection


class Representation:
    """The representation of objects in a watch; this one is plain JSON. Watches with an equal `key` share encoded events."""

    shares = True
    """Whether all its events, also the first, are those of any other one with an equal `key`."""

    def __init__(self, resource: Resource) -> None:
        self.resource = resource
        self.key: object = resource
        self.max_in_loop = CHUNK * LOOP_LIMIT
        """Bytes of changes whose events may be encoded at once in the event loop."""
        self.weigh: Callable[[int], int] | None = None
        """How many bytes have to be processed for an object of that many, if these are more."""

    def weight(self, entry: StoredObject) -> int:
        """The number of bytes to process for an event about the entry."""
        return 0 if is_rendered(entry, self.resource) else len(entry.stored)

    def event(self, kind: EventType, entry: StoredObject, change: Change | None) -> bytes:
        """An encoded event. `change` is None for the initial state."""
        if change is None:
            return frame(kind, body_at(entry, self.resource))
        # kept in the change, which all watches share
        return change.frame((kind, self.key), lambda: frame(kind, body_at(entry, self.resource)))

    def bookmark(self, revision: Revision, *, initial_end: bool = False) -> bytes:
        return frame("BOOKMARK", codec.encode(bookmark(self.resource, revision, initial_end), sort_keys=False))

    def error(self, error: ApiError) -> bytes:
        return frame("ERROR", codec.encode(error.status, sort_keys=False))


class Reencoded(Representation):
    """Objects as a Table or as PartialObjectMetadata. A table's first event is different, so streams do not share writes."""

    shares = False
    _frame: Callable[[EventType, bytes], bytes] = staticmethod(frame)

    def __init__(self, resource: Resource, make: Callable[[Object], bytes]) -> None:
        super().__init__(resource)
        self._make = make

    def weight(self, entry: StoredObject) -> int:
        return len(entry.stored) if self.weigh is None else self.weigh(len(entry.stored))

    def event(self, kind: EventType, entry: StoredObject, change: Change | None) -> bytes:
        return self._frame(kind, self._shown(object_at(entry, self.resource)))

    def bookmark(self, revision: Revision, *, initial_end: bool = False) -> bytes:
        return self._frame("BOOKMARK", self._shown(bookmark(self.resource, revision, initial_end)))

    def _shown(self, value: Object) -> bytes:
        try:
            return self._make(value)
        except ApiError:
            raise _Unrepresentable from None


class Summarized(Reencoded):
    """Tables or metadata in JSON. The first event has a table's columns, and the others are made from summaries.

    `is_joined` tells of which entries the event is only joined from bytes. Events with a `key` are shared: those without ages.
    """

    def __init__(
        self,
        resource: Resource,
        make: Callable[[Object], bytes],
        make_later: Callable[[StoredObject], bytes],
        is_joined: Callable[[StoredObject, Resource], bool],
        key: object = None,
    ) -> None:
        super().__init__(resource, make)
        self._make_later = make_later
        self._is_joined = is_joined
        self._is_first = True
        self.key = key

    def weight(self, entry: StoredObject) -> int:
        is_joined = not (self._is_first and self.weigh is not None) and self._is_joined(entry, self.resource)
        return 0 if is_joined else super().weight(entry)

    def event(self, kind: EventType, entry: StoredObject, change: Change | None) -> bytes:
        if self._is_first:
            self._is_first = False
            return super().event(kind, entry, change)
        if change is None or self.key is None:
            return frame(kind, self._make_later(entry))
        # kept in the change, which all watches share
        return change.frame((kind, self.key), lambda: frame(kind, self._make_later(entry)))

    def _shown(self, value: Object) -> bytes:
        self._is_first = False
        return super()._shown(value)


class InProtobuf(Reencoded):
    """Objects or their metadata as protobuf. `encode` encodes a Status, which is not converted."""

    _frame: Callable[[EventType, bytes], bytes] = staticmethod(protobuf.watch_event)

    def __init__(self, resource: Resource, make: Callable[[Object], bytes], encode: Callable[[Object], bytes]) -> None:
        super().__init__(resource, make)
        self._encode = encode

    def error(self, error: ApiError) -> bytes:
        return self._frame("ERROR", self._encode(error.status))


class InCbor(InProtobuf):
    """Objects or their metadata as CBOR, which has no tables. Encoding takes long, so events are shared by `key`.

    `frame` makes an event of its type and an encoded object.
    """

    shares = True

    def __init__(
        self,
        resource: Resource,
        make: Callable[[Object], bytes],
        encode: Callable[[Object], bytes],
        frame: Callable[[EventType, bytes], bytes],
        key: object,
    ) -> None:
        super().__init__(resource, make, encode)
        self.key = ("cbor", key)
        self.max_in_loop = LOOP_LIMIT
        self._frame = frame

    def event(self, kind: EventType, entry: StoredObject, change: Change | None) -> bytes:
        encode = super().event
        if change is None:
            return encode(kind, entry, change)
        # kept in the change, which all watches share
        return change.frame((kind, self.key), lambda: encode(kind, entry, change))


def bookmark(resource: Resource, revision: Revision, initial_end: bool) -> Object:
    """The object of a BOOKMARK event: it has only a resourceVersion."""
    metadata: Object = {"resourceVersion": str(revision)}
    if initial_end:
        metadata = {"annotations": {"k8s.io/initial-events-end": "true"}, **metadata}
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}


class _Closed(Exception):
    """A fault ends the watch, as a server that restarts does."""


class Stream:
    """One watch. The fan-out calls `deliver`, `fall_behind` and `end`, the handler calls `run`."""

    def __init__(
        self,
        reader: Reader,
        selection: Selection,
        representation: Representation,
        pipe: Pipe,
        metrics: WatchMetrics | None = None,
    ) -> None:
        self._sent = (metrics or WatchMetrics()).of(selection.resource)
        self.reader = reader
        self.selection = selection
        self.representation = representation
        self.pipe = pipe
        self.partition = selection.partition
        self.after: Revision = 0  # everything up to here has been sent
        self._cost = selection.cost
        self._view: object = None
        """Streams of a partition with an equal view send the same events. None: this one shares none."""
        if representation.shares:
            self._view = (type(pipe), representation.key, id(selection.labels), id(selection.fields))
        self._converts = selection.resource.versions.converter is not None  # through a webhook
        self._behind = True
        self._end_revision: Revision | None = None  # None: not known yet
        self._wake = asyncio.Event()
        self._drain_timeout: asyncio.Timeout | None = None  # of the current `_drain`
        self._faults: StreamFaults | None = None
        self._ending: Ending = "stays"

    # -- the fan-out's side

    def deliver(self, changes: Delivery, revision: Revision) -> bool:
        """Send changes of the stream's partition. Return False if the stream falls behind."""
        if self._faults is not None:  # the handler's side does what they want, event by event
            return False
        are_new = changes[0].revision > self.after
        events: _Events | None = changes.shared.get(self._view) if are_new else None
        if events is None:
            events = (
                self._shared_events(changes)
                if are_new
                else self._events_in_loop([change for change in changes if change.revision > self.after])
            )
            if events is None:
                return False
        if revision > self.after:
            self.after = revision
        if not events.pieces:
            return True
        self._sent.events(events.sizes)  # measured once for all who share them
        try:
            return self.pipe.write(events.pieces) <= HIGH_WATER
        except ConnectionError:
            self.stop()
            return True

    def _shared_events(self, changes: Delivery) -> _Events | None:
        """The events of a batch, which streams with the same view share."""
        events = self._events_in_loop(changes)
        if events is not None and self._view is not None:
            # one bytes object for all streams: joined once
            events = events._replace(pieces=(b"".join(events.pieces),) if events.pieces else ())
            changes.share(self._view, events, events.sizes.total)  # the next stream with this view sends the same bytes
        return events

    def _events_in_loop(self, changes: Sequence[Change]) -> _Events | None:
        """The events of a few small changes; None if the handler must do it: too much work, or an object that fails."""
        if not changes:
            return _Events((), event_sizes(()), self.selection)
        if self._converts or len(changes) > CHUNK or max(change.weight for change in changes) + self._cost > LOOP_LIMIT:
            return None
        if sum(change.weight for change in changes) > self.representation.max_in_loop:
            return None
        if self.representation.weigh is not None and sum(map(self._weight, changes)) > LOOP_LIMIT:
            return None
        try:
            frames = self.frames(changes)
        except (ApiError, _Unrepresentable):
            return None
        sizes = event_sizes(frames)
        if sizes.total > CHUNK_BYTES:
            return None
        return _Events(self.pipe.framed(frames) if frames else (), sizes, self.selection)

    def fall_behind(self) -> None:
        self._behind = True
        self._wake.set()

    def end(self) -> None:
        """The resource has changed or is no longer served: end after the changes until now."""
        self._end_revision = self._end_revision or self.reader.cache.revision
        self._wake.set()

    def stop(self) -> None:
        """End immediately, also if the client does not read."""
        self._end_revision = _IMMEDIATELY
        self._wake.set()
        if self._drain_timeout is not None and not self._drain_timeout.expired():
            self._drain_timeout.reschedule(0)  # ends the wait of `_drain` now

    def hit_by(self, faults: StreamFaults | None, ending: Ending = "stays") -> None:
        """Let faults hit it from now on; None: no longer. `ending` says how it goes on after those before."""
        self._faults, self._ending = faults, ending
        self._wake.set()

    @property
    def is_behind(self) -> bool:
        """Whether there may be changes that it has not handed over, and is not kept from by a fault."""
        collection = self.reader.loaded(self.selection.resource)
        if collection is None or self._is_held:
            return False
        return self._behind or collection.streams.is_delivering

    @property
    def _is_held(self) -> bool:
        """Whether faults keep back everything that comes now."""
        limit = None if self._faults is None else self._faults.limit()
        return limit is not None and self.after >= limit

    def frames(self, changes: Sequence[Change]) -> list[bytes]:
        """The events of changes: an object that enters the selection is ADDED, one that leaves it DELETED."""
        selection, event = self.selection, self.representation.event
        everything = selection.selects_all
        frames: list[bytes] = []
        for change in changes:
            entry, before = change.entry, change.before
            was_in = before is not None and (everything or selection.matches(before))
            if entry is not None and (everything or selection.matches(entry)):
                frames.append(event("MODIFIED" if was_in else "ADDED", entry, change))
            elif was_in and before is not None:
                frames.append(event("DELETED", before, change))
        return frames

    # -- the handler's side

    async def run(self, options: ListOptions, seconds: float) -> None:
        """Stream until the time is up, the resource changes, or the client stalls. Raises ConnectionError, ApiError."""
        if seconds < 0:
            return
        deadline = time.monotonic() + seconds
        collection = await self.reader.collection(self.selection.resource)
        collection.streams.add(self)
        try:
            await self._start(collection, options)
            await self._live(collection, deadline, options)
        except (Compacted, Corrupt) as gap:
            oldest = gap.revision if isinstance(gap, Compacted) else self.reader.cache.revision
            await self._error(too_old(self.after, oldest))
        except _Unconvertible as failed:
            await self._error(errors.internal_error(failed.error.message))
        except (_Unrepresentable, _Closed):
            pass
        finally:
            collection.streams.remove(self)  # also if it never followed

    async def _start(self, collection: Collection, options: ListOptions) -> None:
        """Send the initial state if it is requested. Raises Compacted."""
        revision = self.after
        if revision and not options.initial_events:
            if revision < self.selection.resource.versions.since:
                raise Compacted(self.selection.resource.versions.since)
            return
        if revision:
            await self.reader.reached(revision)
        if corrupt := collection.corrupt_in(self.partition):
            raise _Unconvertible(unlistable(self.selection.resource, corrupt))
        limit = None if self._faults is None else self._faults.limit()
        single = self.selection.single
        if limit is not None:
            page = await self.reader.store.list(
                Prefix(self.selection.resource.collection, self.partition), revision=limit
            )
            entries = [entry for entry in await entries_of(page.items) if single in (None, entry.key)]
        elif single is None:
            entries, _ = collection.page(self.partition, None, 0)
        else:
            entries = [collection.entries[single]] if single in collection.entries else []
        # that of the entries above: nothing was awaited since
        self.after = self.reader.cache.revision if limit is None else limit
        if self._faults is not None and self._faults.hidden:
            name, hidden = self.selection.resource.collection, self._faults.hidden
            seen = await self._faults.as_seen(self.reader.store, name, entries, hidden, self.partition)
            entries = [entry for entry in seen if single in (None, entry.key)]
        if options.initial_events is False:
            return
        for portion in portions(entries, lambda entry: len(entry.stored)):
            ready, error = await entries_before_failure(list(portion), self.selection.resource)
            shown = ready if self.selection.selects_all else await select(ready, self.selection)
            await self._send(await offload(sum(map(self.representation.weight, shown)), self._added, shown))
            self._sent.initial(len(shown))
            if error is not None:
                raise _Unconvertible(error)
        if options.initial_events and options.bookmarks:
            await self._send([self.representation.bookmark(self.after, initial_end=True)])

    def _added(self, entries: Sequence[StoredObject]) -> list[bytes]:
        with limited_by(CellBudget()):
            return [self.representation.event("ADDED", entry, None) for entry in entries]

    async def _live(self, collection: Collection, deadline: float, options: ListOptions) -> None:
        next_bookmark = _first_bookmark(time.monotonic(), deadline, options)
        initial = collection.changed  # earlier changes are sent even if the watch is shorter than that takes
        while True:
            self._wake.clear()  # before the state is looked at: what happens later wakes again
            now = time.monotonic()
            if self._end_revision == _IMMEDIATELY or (now >= deadline and (self.after >= initial or self._is_held)):
                return
            ending, self._ending = self._ending, "stays"  # of the fault that is over
            if ending == "expires" or (ending == "expires if behind" and collection.changed > self.after):
                raise Compacted(self.reader.cache.revision)
            is_held = self._is_held
            if self._behind and not is_held:
                await self._drain()
                await self._catch_up(collection)
                continue
            if self._end_revision is not None and not is_held:
                return
            if now >= next_bookmark:
                at = max(collection.streams.delivered(self.reader.cache.revision), self.after)
                if self._faults is None or self._faults.sends_bookmarks:
                    await self._send([self.representation.bookmark(self.after if is_held else at)])
                next_bookmark = _next_bookmark(now, deadline)
                continue
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(deadline, next_bookmark) - now):
                    await self._wake.wait()

    async def _catch_up(self, collection: Collection) -> None:
        """Send the changes since `after`; follow the fan-out if there are none. Raises Compacted."""
        changes = collection.since(self.after)
        if changes is None:
            await self._catch_up_from_log(collection)
        elif changes and not self._ends_at(self.after):
            end = self._bounded(collection.changed)
            await self._send_changes([change for change in changes if change.revision <= end])
            self.after = end
        else:
            self._behind = False  # nothing is awaited until it follows, so no change is missed
            if self._end_revision is None:
                collection.streams.follow(self)  # from here on `deliver` is called, in the same turn of the loop

    def _bounded(self, revision: Revision) -> Revision:
        """A revision, or the one at which the stream ends or is held."""
        limit = None if self._faults is None else self._faults.limit()
        end = revision if self._end_revision is None else self._end_revision
        return end if limit is None else min(end, limit)

    def _ends_at(self, revision: Revision) -> bool:
        return self._is_held or (self._end_revision is not None and revision >= self._end_revision)

    async def _catch_up_from_log(self, collection: Collection) -> None:
        """Send changes from the store's log until the cache has the rest. Raises Compacted."""
        prefix = Prefix(self.selection.resource.collection, self.partition)
        async for batch in self.reader.store.watch(prefix, after=self.after):
            end = self._bounded(batch.revision)
            events = [event for event in batch.events if event.revision <= end]
            await self._send_changes(await offload(_weight_of(events), _changes, events))
            self.after = (
                min(batch.revision, end) if self._faults is not None else batch.revision
            )  # may be ahead of the cache, whose changes up to here are not sent again
            if self._ends_at(self.after) or collection.since(self.after) is not None:
                return
        raise Compacted(self.after)

    async def _send_changes(self, changes: Sequence[Change]) -> None:
        own = [change for change in changes if self.partition in (None, change.key.partition)]
        for portion in portions(own, self._weight):
            error = None
            if self._converts:
                resource, everything = self.selection.resource, self.selection.selects_all
                portion, error = await changes_before_failure(portion, resource, with_before=not everything)
            try:
                frames = await offload(sum(map(self._weight, portion)), self._frames_of_portion, portion)
            except ApiError as unreadable:
                raise _Unconvertible(unreadable) from None
            if self._faults is None:
                await self._send(frames)
            else:
                await self._send_through(self._faults, portion)
            if error is not None:
                raise _Unconvertible(error)

    async def _send_through(self, faults: StreamFaults, changes: Sequence[Change]) -> None:
        """Do with the events of changes what faults want. Raises _Closed, Compacted, ConnectionError."""
        for change in changes:
            frames = self._frames_of_portion([change])
            for step in faults.steps(change.key, change.revision) if frames else ():
                if step == "send":
                    await self._send(frames)
                elif step == "close":
                    raise _Closed
                elif step == "expire":
                    raise Compacted(self.reader.cache.revision)
                else:
                    await asyncio.sleep(step)

    def _frames_of_portion(self, changes: Sequence[Change]) -> list[bytes]:
        with limited_by(CellBudget()):
            return self.frames(changes)

    def _weight(self, change: Change) -> int:
        """The number of bytes to process for a change: few if the index decides that it is not selected."""
        if all(entry is None or self.selection.is_indexed(entry) for entry in (change.entry, change.before)):
            entry = change.entry or change.before
            return self._cost + (self.representation.weight(entry) if entry else 0)
        entry, weigh = change.entry or change.before, self.representation.weigh
        own = self.representation.weight(entry) if entry is not None and weigh is not None else 0
        return self._cost + max(change.weight, own)

    async def _send(self, frames: Sequence[bytes]) -> None:
        """Write events, and wait for the client to read them. Raises ConnectionError if it stalls."""
        for portion in portions(frames, len):
            self.pipe.write(self.pipe.framed(portion))
            self._sent.events(event_sizes(portion))
            await self._drain()
            await asyncio.sleep(0)

    async def _drain(self) -> None:
        """Wait until most bytes are sent. Raises ConnectionError after STALLED_AFTER seconds."""
        try:
            async with asyncio.timeout(STALLED_AFTER) as self._drain_timeout:
                await self.pipe.drain()
        except TimeoutError:
            if self._end_revision != _IMMEDIATELY:
                self._sent.terminated()
            raise ConnectionError("the client does not read its events") from None
        finally:
            self._drain_timeout = None

    async def _error(self, error: ApiError) -> None:
        await self._send([self.representation.error(error)])


def portions(items: Sequence[T], size: Callable[[T], int]) -> Iterator[Sequence[T]]:
    """Portions that take a few milliseconds: CHUNK items, or CHUNK_BYTES and the item that exceeds it."""
    start = total = 0
    for n, item in enumerate(items):
        if n - start == CHUNK or total > CHUNK_BYTES:
            yield items[start:n]
            start, total = n, 0
        total += size(item)
    if items:
        yield items[start:]


def start_revision(options: ListOptions) -> Revision:
    """The revision after which a watch starts. Raises ApiError."""
    return parse_revision(options.resource_version, errors.plain_error)


def lifetime(timeout: int | None, minimum: float, random_share: Callable[[], float] = _RANDOM.random) -> float:
    """The duration of a watch in seconds: as requested, or one to two times the minimum, so that clients do not reconnect simultaneously."""
    return float(timeout) if timeout else minimum * (1 + random_share())


def too_old(revision: Revision, oldest: Revision) -> ApiError:
    return errors.expired(f"too old resource version: {revision} ({oldest})")


def _first_bookmark(now: float, deadline: float, options: ListOptions) -> float:
    """The time of the first bookmark after the initial events: soon if the client waits for one, however short the watch."""
    if not options.bookmarks:
        return deadline
    return now + BOOKMARK_AFTER_INITIAL if options.initial_events else _next_bookmark(now, deadline)


def _next_bookmark(now: float, deadline: float) -> float:
    """The time of the next bookmark: a minute from now, and shortly before the end, so that clients resume from there."""
    before_end = deadline - BOOKMARK_BEFORE_END
    return min(now + BOOKMARK_EVERY, before_end) if before_end > now else deadline


def _changes(events: Sequence[Event]) -> list[Change]:
    return [_change(event) for event in events]


def _weight_of(events: Sequence[Event]) -> int:
    """The number of bytes to process for the changes of events: those in CBOR."""
    values = [event.value for event in events] + [event.previous.value for event in events if event.previous]
    return storage_form.weight(values)


def _change(event: Event) -> Change:
    """The change of an event of the store's log."""
    entry = None if event.value is None else StoredObject(event.key, event.value, event.revision)
    old = event.previous
    return Change(event.key, event.revision, entry, StoredObject(old.key, old.value, event.revision) if old else None)
