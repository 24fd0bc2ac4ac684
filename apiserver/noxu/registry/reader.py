"""Read objects: the newest state from the watch cache, older states from the store."""

from __future__ import annotations

import asyncio
from typing import Final

from noxu.api import errors
from noxu.api.errors import ApiError, Qualified
from noxu.registry import corrupt_objects
from noxu.registry.cache import Collection, WatchCache
from noxu.registry.conversion.entries import entry_at
from noxu.registry.entry import Entry, key_of
from noxu.registry.resource import Resource
from noxu_storage.store import Store
from noxu_storage.types import Revision

_COMPONENTS: Final = Qualified("", "componentstatuses")
FRESHNESS_DEADLINE: Final = 3.0  # seconds that a request for a future revision waits; upstream's blockTimeout


class Reader:
    """Reads the objects of all resources."""

    def __init__(self, store: Store, cache: WatchCache) -> None:
        self.store = store
        self.cache = cache

    def loaded(self, resource: Resource) -> Collection | None:
        """The collection of a resource, None if the cache has not loaded it."""
        return self.cache.collections.get(resource.collection)

    async def collection(self, resource: Resource) -> Collection:
        """The collection of a resource, loaded on first use. Raises StoreError."""
        return self.cache.collections.get(resource.collection) or await self.cache.collection(resource.collection)

    async def get(self, resource: Resource, namespace: str, name: str) -> Entry:
        """The newest state of an object at the resource's version. Raises ApiError."""
        collection = self.cache.collections.get(resource.collection) or await self.collection(resource)
        entry = self.find_in(collection, resource, namespace, name)
        return entry if resource.versions.converter is None else await entry_at(entry, resource)

    async def find(self, resource: Resource, namespace: str, name: str) -> Entry:
        """The newest state of an object at its stored version. Raises ApiError NotFound."""
        return self.find_in(await self.collection(resource), resource, namespace, name)

    def find_in(self, collection: Collection, resource: Resource, namespace: str, name: str) -> Entry:
        """The same in the resource's collection."""
        key = key_of(resource, namespace, name)
        entry = collection.entries.get(key)
        if entry is None:
            if key in collection.corrupt:
                raise corrupt_objects.unreadable(resource, key, collection.corrupt[key])
            raise _absent(resource, name)
        return entry

    async def stored(self, resource: Resource, namespace: str, name: str) -> Entry | None:
        """The newest state of an object at its stored version, None if there is none; its collection is not loaded.

        Raises StoreError.
        """
        key = key_of(resource, namespace, name)
        if (collection := self.loaded(resource)) is not None and key not in collection.corrupt:
            return collection.entries.get(key)
        found = await self.store.get(key)
        return None if found is None else Entry(key, found.value, found.revision)

    def size(self, resource: Resource, namespace: str, name: str) -> int:
        """The stored size of an object in bytes; 0 if the cache does not have it."""
        collection = self.loaded(resource) if name else None
        entry = collection.entries.get(key_of(resource, namespace, name)) if collection else None
        return len(entry.stored) if entry else 0

    async def be_fresh(self) -> None:
        """Wait for what other servers with the same store have answered: reads without a resourceVersion show it.

        Raises StoreError.
        """
        if self.store.shared:
            await self.store.catch_up()
            await self.cache.reached(self.store.revision)

    async def reached(self, revision: Revision, *, waits: bool = True) -> None:
        """Wait up to FRESHNESS_DEADLINE for a future revision. Raises ApiError Timeout, StoreError.

        Without `waits`, only what other servers with the same store have answered is awaited.
        """
        if revision <= self.cache.revision:
            return
        if not waits:
            await self.be_fresh()
            if revision > self.cache.revision:
                raise too_large(revision, self.cache.revision, retry=False)
            return
        try:
            async with asyncio.timeout(FRESHNESS_DEADLINE):
                await self.store.catch_up()  # the revision may be one of another server, without an event here
                await self.cache.reached(revision)
        except TimeoutError:
            raise too_large(revision, self.cache.revision) from None


def _absent(resource: Resource, name: str) -> ApiError:
    if resource.group_resource == _COMPONENTS:  # upstream does not store them (registry/core/componentstatus)
        return errors.plain_error(f"Component not found: {name}")
    return errors.not_found(resource.group_resource, name)


def too_large(revision: Revision, current: Revision, *, retry: bool = True) -> ApiError:
    """The error for a resourceVersion that does not exist yet. `retry`: it has been awaited, and the client may try again."""
    error = errors.timeout(f"Too large resource version: {revision}, current: {current}", 1 if retry else 0)
    causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
    error.details = {"causes": causes, **({"retryAfterSeconds": 1} if retry else {})}
    return error
