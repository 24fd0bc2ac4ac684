"""Deleting many: all objects of a resource, or those of one namespace in it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from apiserver.api.errors import ApiError
from apiserver.api.gotime import format_time
from apiserver.api.types import Object
from apiserver.registry.change import Change
from apiserver.registry.entry import read
from apiserver.registry.heavy import work
from apiserver.registry.resource import Resource
from apiserver.registry.store import AdmitDelete, DeleteOptions, Registry
from storage.types import Key, Revision

AT_ONCE: Final = 64  # deletions under way together: they share commits


async def admit_all(_: Object) -> None:
    """Deletions that the server itself decides are not judged."""


async def delete_keys(
    registry: Registry, resource: Resource, keys: Sequence[Key], options: DeleteOptions, admit: AdmitDelete
) -> None:
    """Delete objects, several at a time; those that are gone already are no error. Raises the first ApiError."""
    now = format_time(registry.sources.now())

    async def one(key: Key) -> None:
        try:
            await registry.delete(resource, key.partition[:-1], key.name, options, admit, now)
        except ApiError as error:
            if error.reason != "NotFound":
                raise

    for start in range(0, len(keys), AT_ONCE):
        results = await asyncio.gather(*map(one, keys[start : start + AT_ONCE]), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result


async def delete_all(registry: Registry, resource: Resource, namespace: str | None) -> None:
    """Delete every object of a resource (`namespace` None: everywhere).

    Each is deleted at the version that it is stored in: nobody has to be asked how it looks at another one. Those whose
    version is gone go without ado.
    """
    collection = await registry.collection(resource)
    keys: dict[Resource, list[Key]] = {}
    for key in list(collection.select(None if namespace is None else f"{namespace}/")):
        entry = collection.entries.get(key)
        if entry is None:
            continue
        try:
            stored = (await work(len(entry.stored), read, entry, resource.versions)).version
        except ApiError:  # its version is gone, so nobody can say what it waits for
            await registry.remove(entry)
        else:
            keys.setdefault(stored or resource, []).append(key)
    for version, some in keys.items():
        await delete_keys(registry, version, some, DeleteOptions(), admit_all)


class _Changed:
    """A watcher that only wants to know that something happened."""

    def __init__(self) -> None:
        self.event = asyncio.Event()

    def deliver(self, changes: Sequence[Change], revision: Revision) -> None:
        self.event.set()

    def end(self) -> None:
        self.event.set()


async def until_empty(registry: Registry, resource: Resource, namespace: str | None) -> None:
    """Return when there are no objects of the resource any more."""
    watcher = _Changed()
    while True:
        collection = await registry.collection(resource)
        if not collection.select(None if namespace is None else f"{namespace}/"):
            return
        collection.watchers[watcher] = None
        try:
            await watcher.event.wait()
        finally:
            collection.watchers.pop(watcher, None)
        watcher.event.clear()
