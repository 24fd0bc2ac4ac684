"""Entries written to the store: optimistic locking by revision, and readable when the call returns.

A writer that another one overtakes repeats its work with the newer object. How often depends on others, so it is
counted (`attempt_again`): a change of one object waits for at most MAX_ATTEMPTS others, and is refused then. Upstream
repeats it until the request's deadline.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from typing import Final

from noxu.api import codec, errors
from noxu.api.errors import ApiError
from noxu.registry.cache import WatchCache
from noxu.registry.store_metrics import StoreMetrics
from noxu.registry.stored_object import StoredObject
from noxu.values import Object
from noxu_storage.store import Store
from noxu_storage.types import Conflict, Key, OutcomeUnknown, Revision, StoreError, TooLarge

MAX_ATTEMPTS: Final = (
    1000  # five times as many as requests that write at the same time; each means that another has written
)


class Persistence:
    """Writes entries. Controllers use it directly; writes of clients go through `registry.write`."""

    def __init__(self, store: Store, cache: WatchCache, *, as_cbor: bool = False, as_protobuf: bool = False) -> None:
        """`as_cbor`, `as_protobuf`: the form in which makers of entries have to store custom resources and built-in kinds."""
        self.as_cbor = as_cbor
        self.as_protobuf = as_protobuf
        self.metrics = StoreMetrics()
        self._store = store
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
        revisions = await asyncio.gather(*writes) if self._store.groups_writes else [await write for write in writes]
        if newest := max(revisions, default=0):
            await self._cache.reached(newest)
        return [revision > 0 for revision in revisions]

    async def _created(self, key: Key, stored: bytes) -> Revision:
        """The revision of a new key, 0 if it was not stored."""
        try:
            return await self.metrics.measured("create", key, self._store.put(key, stored, expected=0))
        except StoreError:
            return 0

    def _in_form(self, key: Key, stored: bytes) -> bytes:
        """The JSON of a complete object as the store keeps it."""
        if not self.as_protobuf:
            return stored
        from noxu.registry import etcd_built_in  # few servers store protobuf

        return etcd_built_in.as_read(key.collection, stored)

    async def replace(self, entry: StoredObject, new: StoredObject) -> bool:
        """Replace `entry` by `new`; False if `entry` is no longer the stored one. Raises ApiError, StoreError."""
        try:
            await self._put(new, entry.revision, _stored(entry))
        except Conflict as conflict:
            await self.catch_up(conflict)
            return False
        return True

    async def _put(self, entry: StoredObject, expected: Revision, replaced: bytes | None) -> None:
        """Store an entry, and wait until the cache has it. Raises Conflict, ApiError."""
        entries = self._cache.expected
        entries[entry.key] = entry
        try:
            put = self._store.put(entry.key, entry.written, expected=expected, replaced=replaced)
            entry.revision = await self.metrics.measured("update" if expected else "create", entry.key, put)
            if entry.revision > self._cache.revision:
                await self._cache.reached(entry.revision)
        except OutcomeUnknown:
            raise unknown_outcome() from None
        except TooLarge as refused:
            raise errors.plain_error(str(refused)) from None
        finally:
            if entries.get(entry.key) is entry:
                del entries[entry.key]
            entry.cbor = None

    async def remove(self, entry: StoredObject) -> Revision:
        """Delete an entry: the revision of the deletion, 0 if `entry` is no longer the stored one.

        Raises ApiError, StoreError.
        """
        try:
            revision = await self._delete(entry.key, entry.revision, _stored(entry))
        except Conflict as conflict:
            await self.catch_up(conflict)
            return 0
        except OutcomeUnknown:
            raise unknown_outcome() from None
        await self._cache.reached(revision)
        return revision

    async def remove_corrupt(self, key: Key, revision: Revision) -> None:
        """Delete an unreadable object that was stored at `revision`. Raises StoreError."""
        await self._cache.reached(await self._delete(key, revision, None))

    async def _delete(self, key: Key, expected: Revision, replaced: bytes | None) -> Revision:
        delete = self._store.delete(key, expected=expected, replaced=replaced)
        return await self.metrics.measured("delete", key, delete)

    async def catch_up(self, conflict: Conflict) -> None:
        """Wait until the cache has the write that won."""
        await self._cache.reached(conflict.current.revision if conflict.current else self._store.revision)


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
