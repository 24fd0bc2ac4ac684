"""Entries written to the store: optimistic locking by revision, and readable when the call returns.

A writer that another one overtakes repeats its work with the newer object. How often depends on others, so it is
counted (`attempt_again`): a change of one object waits for at most MAX_ATTEMPTS others, and is refused then. Upstream
repeats it until the request's deadline.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections.abc import Awaitable, Coroutine, Sequence
from time import perf_counter
from typing import Any, Final, Literal, Protocol, TypeVar

from noxu.api import codec, errors
from noxu.api.errors import ApiError
from noxu.instruments import MAX_SERIES, Counter, Family, Histogram, Labels
from noxu.registry import storage_form
from noxu.registry.authors import AUTHOR, Journal
from noxu.registry.cache import WatchCache
from noxu.registry.stored_object import StoredObject, as_read_from_protobuf
from noxu.values import Object
from noxu_storage.store import Store
from noxu_storage.transactions import Decide, StagedWrite
from noxu_storage.types import Conflict, Key, OutcomeUnknown, Revision, StoreError, TooLarge

MAX_ATTEMPTS: Final = (
    1000  # five times as many as requests that write at the same time; each means that another has written
)

T = TypeVar("T")
Operation = Literal["create", "update", "delete"]

BUCKETS: Final = (
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0
)  # fmt: skip
_FIRST: Final = BUCKETS[0]
LABELS: Final = ("operation", "group", "resource")


class StoreWrites(Protocol):
    """What writes of a store are needed: see `noxu_storage.store.Store`."""

    groups_writes: bool

    def put(
        self, key: Key, value: bytes, *, expected: Revision, replaced: bytes | None = None
    ) -> Coroutine[Any, Any, Revision]: ...

    def delete(
        self, key: Key, *, expected: Revision, replaced: bytes | None = None
    ) -> Coroutine[Any, Any, Revision]: ...


class Persistence:
    """Writes entries. Controllers use it directly; writes of clients go through `registry.write`."""

    def __init__(self, store: Store, cache: WatchCache, *, as_cbor: bool = False, as_protobuf: bool = False) -> None:
        """`as_cbor`, `as_protobuf`: the form in which makers of entries have to store custom resources and built-in kinds."""
        self.as_cbor = as_cbor
        self.as_protobuf = as_protobuf
        self.metrics = StoreMetrics()
        self.journal: Journal | None = None
        """Notes who has written each revision; None: nothing does."""
        self.writes: StoreWrites = store
        """Where entries are written; faults that are injected stand in between."""
        self._cache = cache

    def complete(self, key: Key, value: Object) -> StoredObject:
        """The entry of an object of a built-in kind that has all defaults, in the order of declaration."""
        return StoredObject(key, self._in_form(key, codec.encode(value, sort_keys=False)), 0)

    def create(self, entry: StoredObject) -> Awaitable[None]:
        """Store an entry under a new key. Raises storage.types.Conflict if the key exists, ApiError, StoreError."""
        return self._put(entry, 0, None)

    async def create_all(self, values: Sequence[tuple[Key, bytes]]) -> list[bool]:
        """Store complete objects of built-in kinds under new keys, and wait until they can be read.

        For each of them: whether it was stored. It was not if its key exists, or if the store failed. Each write is a task
        only where that makes one transaction of them: sixty tasks take a tenth of the start of a server in memory.
        """
        writes = (self._created(key, self._in_form(key, value)) for key, value in values)
        revisions = await asyncio.gather(*writes) if self.writes.groups_writes else [await write for write in writes]
        if newest := max(revisions, default=0):
            await self._cache.reached(newest)
        return [revision > 0 for revision in revisions]

    async def _created(self, key: Key, stored: bytes) -> Revision:
        """The revision of a new key, 0 if it was not stored."""
        try:
            revision = await self.metrics.measured("create", key, self.writes.put(key, stored, expected=0))
        except StoreError:
            return 0
        if self.journal is not None:
            self.journal.writes.append((revision, self.journal.clock.timestamp(), AUTHOR.get()))
        return revision

    def note(self, revision: Revision) -> None:
        """Note the author of a revision that was written without this class, such as that of a snapshot."""
        if self.journal is not None:
            self.journal.writes.append((revision, self.journal.clock.timestamp(), AUTHOR.get()))

    async def transact(self, decide: Decide) -> Revision:
        """Commit writes as one (`Store.transact`), and wait until they can be read. Returns the newest revision. Raises StoreError.

        They are written as they are: no entries are made, and faults that are injected do not stand in between.
        """
        store, number = self._cache.store, 0

        async def counted() -> Sequence[StagedWrite]:
            nonlocal number
            writes = await decide()
            number = len(writes)
            return writes

        newest = await store.transact(counted)
        if self.journal is not None:  # where others write, too, their revisions may be in between
            first = newest if store.shared else newest - number + 1
            time, author = self.journal.clock.timestamp(), AUTHOR.get()
            self.journal.writes.extend((revision, time, author) for revision in range(first, newest + 1) if number)
        await self._cache.reached(newest)
        return newest or store.revision

    def _in_form(self, key: Key, stored: bytes) -> bytes:
        """The JSON of a complete object as the store keeps it."""
        if not self.as_protobuf:
            return stored
        return as_read_from_protobuf(key.collection, stored)

    async def replace(self, entry: StoredObject, new: StoredObject) -> bool:
        """Replace `entry` by `new`; False if `entry` is no longer the stored one. Raises ApiError, StoreError."""
        try:
            await self._put(new, entry.revision, _stored(entry))
        except Conflict:
            await self.catch_up()
            return False
        return True

    async def _put(self, entry: StoredObject, expected: Revision, replaced: bytes | None) -> None:
        """Store an entry, and wait until the cache has it. Raises Conflict, ApiError."""
        entries = self._cache.expected
        # so the cache takes this entry, with its rendering, instead of decoding what the log brings
        entries[entry.key] = entry
        try:
            stored = entry.stored if entry.cbor is None else entry.cbor
            put = self.writes.put(entry.key, stored, expected=expected, replaced=replaced)
            entry.revision = await self.metrics.measured("update" if expected else "create", entry.key, put)
            if self.journal is not None:  # before what follows from the write, which may ask for its author
                self.journal.writes.append((entry.revision, self.journal.clock.timestamp(), AUTHOR.get()))
            if entry.revision > self._cache.revision:  # else the cache has it already, as in memory
                await self._cache.reached(entry.revision)
        except OutcomeUnknown:
            raise unknown_outcome() from None
        except TooLarge as refused:
            raise errors.plain_error(str(refused)) from None
        finally:
            if entries.get(entry.key) is entry:
                del entries[entry.key]  # unless a later write has put its own there
            entry.cbor = None  # it was for the store only: reads are served from JSON

    async def remove(self, entry: StoredObject) -> Revision:
        """Delete an entry: the revision of the deletion, 0 if `entry` is no longer the stored one.

        Raises ApiError, StoreError.
        """
        try:
            revision = await self._delete(entry.key, entry.revision, _stored(entry))
        except Conflict:
            await self.catch_up()
            return 0
        except OutcomeUnknown:
            raise unknown_outcome() from None
        await self._cache.reached(revision)
        return revision

    async def remove_corrupt(self, key: Key, revision: Revision) -> None:
        """Delete an unreadable object that was stored at `revision`. Raises StoreError."""
        await self._cache.reached(await self._delete(key, revision, None))

    async def _delete(self, key: Key, expected: Revision, replaced: bytes | None) -> Revision:
        delete = self.writes.delete(key, expected=expected, replaced=replaced)
        revision = await self.metrics.measured("delete", key, delete)
        if self.journal is not None:
            self.journal.writes.append((revision, self.journal.clock.timestamp(), AUTHOR.get()))
        return revision

    async def catch_up(self) -> None:
        """Wait until the cache has what won: a write of the key, or a transaction, which may have changed other keys only."""
        await self._cache.reached(self._cache.store.revision)


def _stored(entry: StoredObject) -> bytes | None:
    """The stored bytes of an entry, None if it has them in another form."""
    return None if entry.is_cbor else entry.stored


async def attempt_again(attempts: int, what: errors.Qualified, name: str) -> int:
    """The number of the next attempt at what another writer has prevented, when other tasks have had their turn.

    `attempts` is the number of those that have failed. Raises ApiError Conflict after MAX_ATTEMPTS.
    """
    if attempts >= MAX_ATTEMPTS:
        raise errors.modified(what, name)
    await asyncio.sleep(0)
    return attempts + 1


def unknown_outcome() -> ApiError:
    return errors.internal_error("the outcome of the write is unknown: storage failed while committing it")


# -- metrics -----------------------------------------------------------------------------------------------------------


class StoreMetrics:
    """The numbers of requests to the store (apiserver's pkg/storage/etcd3/metrics): writes, since reads are from the cache.

    They have the names of etcd's, which dashboards and alerts know, whichever store it is. A write ends when it is durable. One
    that conflicts with another is no error.
    """

    def __init__(self) -> None:
        self._durations = Histogram(
            "etcd_request_duration_seconds",
            "Etcd request latency in seconds for each operation and object type.",
            LABELS,
            BUCKETS,
        )
        self._known: dict[tuple[Operation, str], list[float]] = {}
        self._errors = Counter(
            "etcd_request_errors_total", "Etcd failed request counts for each operation and object type.", *LABELS
        )

    async def measured(self, operation: Operation, key: Key, request: Awaitable[T]) -> T:
        """The result of a request to the store."""
        began = perf_counter()
        try:
            return await request
        except Conflict:
            raise
        except StoreError:
            self._errors.add(_labels(operation, key.collection))
            raise
        finally:
            seconds = perf_counter() - began
            series = self._known.get((operation, key.collection)) or self._series(operation, key.collection)
            series[0 if seconds <= _FIRST else bisect_left(BUCKETS, seconds)] += 1
            series[-1] += seconds  # a list that `_durations` shares: what a scrape reads

    def _series(self, operation: Operation, collection: str) -> list[float]:
        if len(self._known) >= MAX_SERIES:
            self._known.clear()  # they are made again from `_durations`, which bounds them
        series = self._known[operation, collection] = self._durations.series(_labels(operation, collection))
        return series

    def families(self) -> list[Family]:
        durations = self._durations.family()
        counts: list[tuple[Labels, float]] = [
            (values, sum(numbers[:-1])) for values, numbers in durations.numbers if not isinstance(numbers, float)
        ]
        about = "Etcd request counts for each operation and object type."
        return [durations, Family("etcd_requests_total", "counter", about, LABELS, counts), self._errors.family()]


def _labels(operation: Operation, collection: str) -> Labels:
    group, _, plural = storage_form.group_and_plural(collection).partition("/")
    return operation, group, plural
