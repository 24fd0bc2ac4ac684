"""Watch: a stream of events about one collection (upstream's pkg/endpoints/handlers/watch.go and its watch cache).

An event is made into bytes once per representation and those bytes go to every watcher. A stream that follows is told
of changes by the collection's `Fanout` and sends them at once. It falls behind when its client does not take what it
has been sent, and when objects are too big to be worked on in the loop or somebody has to be asked how they look: then
nothing is kept for it but the revision that it has reached, from which it catches up, from the cache or from the
store's log, as fast as its client takes it. A client that takes nothing for `STALLED_AFTER` seconds is cut off; it
resumes from the last resourceVersion that it has seen.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Literal, Protocol, TypeVar

from noxu.apiserver.api import codec, errors, protobuf
from noxu.apiserver.api.errors import ApiError
from noxu.apiserver.http.options import ListOptions, parse_revision
from noxu.apiserver.registry import corrupt_objects
from noxu.apiserver.registry.cache import Collection
from noxu.apiserver.registry.change import Change
from noxu.apiserver.registry.conversion.changes import changes_before_failure
from noxu.apiserver.registry.conversion.entries import entries_before_failure
from noxu.apiserver.registry.entry import Entry, body_at, is_rendered, object_at
from noxu.apiserver.registry.listing import Selection, select
from noxu.apiserver.registry.offload import LOOP_LIMIT, offload
from noxu.apiserver.registry.reader import Reader
from noxu.apiserver.registry.resource import Resource
from noxu.apiserver.values import Object
from noxu.storage.types import Compacted, Corrupt, Event, Prefix, Revision

MIN_TIMEOUT: Final = 1800.0  # seconds; a watch without timeoutSeconds lasts one to two times this
BOOKMARK_EVERY: Final = 60.0
BOOKMARK_BEFORE_END: Final = 2.0
HIGH_WATER: Final = 32 * 1024  # bytes that a connection may leave unsent before it falls behind
STALLED_AFTER: Final = 5.0  # seconds without taking anything
CHUNK: Final = 128  # events between two pauses
CHUNK_BYTES: Final = 128 * 1024

_AT_ONCE: Final = -1  # a stream's end that is before everything

T = TypeVar("T")
EventType = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"]


class _Unconvertible(Exception):
    """An object cannot be converted to the version that is watched: that ends the watch."""

    def __init__(self, error: ApiError) -> None:
        super().__init__(error)
        self.error = error


class _Unshowable(Exception):
    """An object cannot be shown as it was asked for, as a list: upstream ends the watch without a word."""


class Pipe(Protocol):
    """The client's end of a stream. Both raise ConnectionError when it is gone."""

    def write(self, data: bytes) -> int:
        """Send, without waiting; how many bytes the client has not taken yet."""
        ...

    async def drain(self) -> None:
        """Return when the client has taken most of what was sent."""
        ...


def frame(kind: EventType, body: bytes) -> bytes:
    return b'{"type":"%b","object":%b}\n' % (kind.encode(), body)


class Representation:
    """How a watch shows objects: as they are. What it makes is shared by all watches with an equal `key`."""

    def __init__(self, resource: Resource) -> None:
        self.resource = resource
        self.key: object = resource

    def weight(self, entry: Entry) -> int:
        """How many bytes there are to be worked on to show an entry."""
        return 0 if is_rendered(entry, self.resource) else len(entry.stored)

    def event(self, kind: EventType, entry: Entry, change: Change | None) -> bytes:
        """`change` is None for the initial state."""
        if change is None:
            return frame(kind, body_at(entry, self.resource))
        made = change.frames.get((kind, self.key))
        if made is None:
            made = change.frames[kind, self.key] = frame(kind, body_at(entry, self.resource))
        return made

    def bookmark(self, revision: Revision, *, initial_end: bool = False) -> bytes:
        return frame("BOOKMARK", codec.encode(bookmark(self.resource, revision, initial_end), sort_keys=False))

    def error(self, error: ApiError) -> bytes:
        return frame("ERROR", codec.encode(error.status, sort_keys=False))


class Converted(Representation):
    """Objects as a Table or as PartialObjectMetadata; nothing is shared, for a table's first event is different."""

    _frame: Callable[[EventType, bytes], bytes] = staticmethod(frame)

    def __init__(self, resource: Resource, make: Callable[[Object], bytes]) -> None:
        super().__init__(resource)
        self._make = make

    def weight(self, entry: Entry) -> int:
        return len(entry.stored)

    def event(self, kind: EventType, entry: Entry, change: Change | None) -> bytes:
        return self._frame(kind, self._shown(object_at(entry, self.resource)))

    def bookmark(self, revision: Revision, *, initial_end: bool = False) -> bytes:
        return self._frame("BOOKMARK", self._shown(bookmark(self.resource, revision, initial_end)))

    def _shown(self, value: Object) -> bytes:
        try:
            return self._make(value)
        except ApiError:
            raise _Unshowable from None


class InProtobuf(Converted):
    """Objects, or their metadata, as protobuf. `encode` makes a body of what is not to be converted: a Status."""

    _frame = staticmethod(protobuf.watch_event)

    def __init__(self, resource: Resource, make: Callable[[Object], bytes], encode: Callable[[Object], bytes]) -> None:
        super().__init__(resource, make)
        self._encode = encode

    def error(self, error: ApiError) -> bytes:
        return self._frame("ERROR", self._encode(error.status))


def bookmark(resource: Resource, revision: Revision, initial_end: bool) -> Object:
    """The object of a BOOKMARK event: a resourceVersion and nothing else."""
    metadata: Object = {"resourceVersion": str(revision)}
    if initial_end:
        metadata = {"annotations": {"k8s.io/initial-events-end": "true"}, **metadata}
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}


class Stream:
    """One watch. The fan-out calls `deliver`, `fall_behind` and `end`; `run` is the handler's side of it."""

    def __init__(self, reader: Reader, selection: Selection, representation: Representation, pipe: Pipe) -> None:
        self.reader = reader
        self.selection = selection
        self.representation = representation
        self.pipe = pipe
        self.partition = selection.partition
        self.after: Revision = 0  # the client has been sent everything up to here
        self._cost = selection.cost
        self._asks = selection.resource.versions.converter is not None  # somebody has to be asked how objects look
        self._behind = True
        self._upto: Revision | None = None  # where it ends, once that is known
        self._wake = asyncio.Event()
        self._patience: asyncio.Timeout | None = None  # with a client that does not take what it was sent

    # -- the fan-out's side

    def deliver(self, changes: Sequence[Change], revision: Revision) -> bool:
        """Send changes of our partition; False if that is for the handler's side, or if it cannot go on like this."""
        new = changes if changes[0].revision > self.after else [one for one in changes if one.revision > self.after]
        frames = self._frames_at_once(new)
        if frames is None:
            return False
        self.after = max(self.after, revision)
        return not frames or self._write(frames) <= HIGH_WATER

    def _frames_at_once(self, changes: Sequence[Change]) -> bytes | None:
        """None if there is too much to do, or if one cannot be shown: then it is for the handler's side to see."""
        if not changes:
            return b""
        if self._asks or len(changes) > CHUNK or max(one.weight for one in changes) + self._cost > LOOP_LIMIT:
            return None
        try:
            frames = b"".join(self.frames(changes))
        except (ApiError, _Unshowable):
            return None
        return frames if len(frames) <= CHUNK_BYTES else None

    def fall_behind(self) -> None:
        self._behind = True
        self._wake.set()

    def end(self) -> None:
        """The resource has changed or is gone: what happened until now is sent, and nothing else."""
        self._upto = self._upto or self.reader.cache.revision
        self._wake.set()

    def stop(self) -> None:
        """End at once, and do not wait for a client that takes nothing."""
        self._upto = _AT_ONCE
        self._wake.set()
        if self._patience is not None and not self._patience.expired():
            self._patience.reschedule(0)

    def _write(self, frames: bytes) -> int:
        try:
            return self.pipe.write(frames)
        except ConnectionError:
            self.stop()
            return 0

    def frames(self, changes: Sequence[Change]) -> list[bytes]:
        """The events that changes are for this watch: objects that enter or leave the selection are ADDED, DELETED."""
        selection, event = self.selection, self.representation.event
        everything = selection.selects_all
        found: list[bytes] = []
        for change in changes:
            entry, before = change.entry, change.before
            was_in = before is not None and (everything or selection.matches(before))
            if entry is not None and (everything or selection.matches(entry)):
                found.append(event("MODIFIED" if was_in else "ADDED", entry, change))
            elif was_in and before is not None:
                found.append(event("DELETED", before, change))
        return found

    # -- the handler's side

    async def run(self, options: ListOptions, seconds: float) -> None:
        """Stream until the time is up, the resource changes, or the client does not keep up."""
        if seconds < 0:
            return
        deadline = time.monotonic() + seconds
        collection = await self.reader.collection(self.selection.resource)
        collection.streams.add(self)
        try:
            await self._start(collection, options)
            await self._live(collection, deadline, bookmarks=options.bookmarks)
        except (Compacted, Corrupt) as gap:
            oldest = gap.revision if isinstance(gap, Compacted) else self.reader.cache.revision
            await self._error(too_old(self.after, oldest))
        except _Unconvertible as failed:
            await self._error(errors.internal_error(failed.error.message))
        except _Unshowable:
            pass
        finally:
            collection.streams.remove(self)

    async def _start(self, collection: Collection, options: ListOptions) -> None:
        """Send the initial state, if it is asked for. Raises Compacted."""
        revision = self.after
        if revision and not options.initial_events:
            if revision < self.selection.resource.versions.since:
                raise Compacted(self.selection.resource.versions.since)
            return
        if revision:
            await self.reader.reached(revision)
        if corrupt := collection.corrupt_in(self.partition):
            raise _Unconvertible(corrupt_objects.unlistable(self.selection.resource, corrupt))
        entries = [collection.entries[key] for key in collection.select(self.partition)]
        self.after = self.reader.cache.revision
        if options.initial_events is False:
            return
        for some in portions(entries, lambda entry: len(entry.stored)):
            ready, error = await entries_before_failure(list(some), self.selection.resource)
            shown = ready if self.selection.selects_all else await select(ready, self.selection)
            await self._send(await offload(sum(map(self.representation.weight, shown)), self._added, shown))
            if error is not None:
                raise _Unconvertible(error)
        if options.initial_events and options.bookmarks:
            await self._send([self.representation.bookmark(self.after, initial_end=True)])

    def _added(self, entries: Sequence[Entry]) -> list[bytes]:
        return [self.representation.event("ADDED", entry, None) for entry in entries]

    async def _live(self, collection: Collection, deadline: float, *, bookmarks: bool) -> None:
        next_bookmark = _next_bookmark(time.monotonic(), deadline) if bookmarks else deadline
        owed = collection.changed  # what was before the watch is sent, however short that is
        while True:
            self._wake.clear()
            now = time.monotonic()
            if self._upto == _AT_ONCE or (now >= deadline and self.after >= owed):
                return
            if self._behind:
                await self._drain()
                await self._catch_up(collection)
                continue
            if self._upto is not None:
                return
            if now >= next_bookmark:
                at = max(collection.streams.delivered(self.reader.cache.revision), self.after)
                await self._send([self.representation.bookmark(at)])
                next_bookmark = _next_bookmark(now, deadline)
                continue
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(deadline, next_bookmark) - now):
                    await self._wake.wait()

    async def _catch_up(self, collection: Collection) -> None:
        """Send what has happened since; if that is nothing, follow. Raises Compacted."""
        changes = collection.since(self.after)
        if changes is None:
            await self._catch_up_from_log(collection)
        elif changes and not self._ends_at(self.after):
            upto = collection.changed if self._upto is None else self._upto
            await self._send_changes([change for change in changes if change.revision <= upto])
            self.after = upto
        else:
            self._behind = False
            if self._upto is None:
                collection.streams.follow(self)

    def _ends_at(self, revision: Revision) -> bool:
        return self._upto is not None and revision >= self._upto

    async def _catch_up_from_log(self, collection: Collection) -> None:
        """Send history from the store until the cache's recent changes take over."""
        prefix = Prefix(self.selection.resource.collection, self.partition)
        async for batch in self.reader.store.watch(prefix, after=self.after):
            upto = batch.revision if self._upto is None else self._upto
            await self._send_changes([_change(event) for event in batch.events if event.revision <= upto])
            self.after = batch.revision  # it may be ahead of the cache, which shall not send it again
            if self._ends_at(self.after) or collection.since(self.after) is not None:
                return
        raise Compacted(self.after)

    async def _send_changes(self, changes: Sequence[Change]) -> None:
        mine = [change for change in changes if self.partition in (None, change.key.partition)]
        for some in portions(mine, lambda change: change.weight + self._cost):
            error = None
            if self._asks:
                resource, everything = self.selection.resource, self.selection.selects_all
                some, error = await changes_before_failure(some, resource, with_before=not everything)
            try:
                frames = await offload(sum(map(self._weight, some)), self.frames, some)
            except ApiError as unreadable:
                raise _Unconvertible(unreadable) from None
            await self._send(frames)
            if error is not None:
                raise _Unconvertible(error)

    def _weight(self, change: Change) -> int:
        """How many bytes there are to be worked on to show a change, if it is to be shown."""
        if all(entry is None or self.selection.is_indexed(entry) for entry in (change.entry, change.before)):
            entry = change.entry or change.before
            return self._cost + (self.representation.weight(entry) if entry else 0)
        return self._cost + change.weight

    async def _send(self, frames: Sequence[bytes]) -> None:
        """Write, and give the client time to take it. Raises ConnectionError if it does not."""
        for some in portions(frames, len):
            self.pipe.write(b"".join(some))
            await self._drain()
            await asyncio.sleep(0)

    async def _drain(self) -> None:
        """Return when the client has taken most of what was sent. Raises ConnectionError if it does not keep up."""
        try:
            async with asyncio.timeout(STALLED_AFTER) as self._patience:
                await self.pipe.drain()
        except TimeoutError:
            raise ConnectionError("the client does not take its events") from None
        finally:
            self._patience = None

    async def _error(self, error: ApiError) -> None:
        await self._send([self.representation.error(error)])


def portions(items: Sequence[T], size: Callable[[T], int]) -> Iterator[Sequence[T]]:
    """As many at a time as take a few milliseconds: at most CHUNK, and CHUNK_BYTES but for the last one's."""
    start = total = 0
    for n, item in enumerate(items):
        if n - start == CHUNK or total > CHUNK_BYTES:
            yield items[start:n]
            start, total = n, 0
        total += size(item)
    if items:
        yield items[start:]


def start_revision(options: ListOptions) -> Revision:
    """Raises ApiError."""
    return parse_revision(options.resource_version, errors.plain_error)


def lifetime(options: ListOptions, random_share: Callable[[], float] = random.random) -> float:
    """How many seconds a watch lasts: as asked for, or some time so that not all clients come back at once."""
    return float(options.timeout) if options.timeout else MIN_TIMEOUT * (1 + random_share())


def too_old(revision: Revision, oldest: Revision) -> ApiError:
    return errors.expired(f"too old resource version: {revision} ({oldest})")


def _next_bookmark(now: float, deadline: float) -> float:
    """Every minute, and shortly before the end so that clients resume from close to now."""
    before_end = deadline - BOOKMARK_BEFORE_END
    return min(now + BOOKMARK_EVERY, before_end) if before_end > now else deadline


def _change(event: Event) -> Change:
    """A change from the store's log, for what is older than the cache remembers."""
    entry = None if event.value is None else Entry(event.key, event.value, event.revision)
    old = event.previous
    return Change(event.key, event.revision, entry, Entry(old.key, old.value, event.revision) if old else None)
