"""Views of some objects of a resource: a client sees these as they were, and all others as they are.

No API server shows a list whose objects are of different moments. What it does is end a watch with 410, so a client that has
missed events of these objects lists again when the view is over: revisions never go back, and nothing is lost for good.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from noxu.registry.cache import Collection, entries_of
from noxu.registry.reader import Reader
from noxu.registry.resource import Resource
from noxu.registry.stored_object import StoredObject
from noxu_storage.store import Store
from noxu_storage.types import Key, Prefix, Revision


class Hidden(NamedTuple):
    """Objects that are shown as they were at a revision. `partition` None: of all namespaces; `name` None: all names."""

    rule: str
    partition: str | None
    name: str | None
    revision: Revision

    def has(self, key: Key) -> bool:
        return self.partition in (None, key.partition) and self.name in (None, key.name)


async def as_seen(
    store: Store,
    collection: str,
    entries: Sequence[StoredObject],
    hidden: Sequence[Hidden],
    partition: str | None = None,
) -> list[StoredObject]:
    """The entries of a partition (None: of all) with the hidden objects as they were, in the order of their keys. Raises StoreError."""
    seen = {entry.key: entry for entry in entries if not any(objects.has(entry.key) for objects in hidden)}
    for objects in hidden:
        page = await store.list(Prefix(collection, objects.partition or partition), revision=objects.revision)
        before = [item for item in page.items if objects.has(item.key) and partition in (None, item.key.partition)]
        seen |= {entry.key: entry for entry in await entries_of(before)}
    return [seen[key] for key in sorted(seen)]


class PartialReader(Reader):
    """Reads collections as a client with such a view sees them; for one request."""

    def __init__(self, reader: Reader, hidden: Sequence[Hidden]) -> None:
        super().__init__(reader.store, reader.cache)
        self._hidden = hidden

    async def collection(self, resource: Resource) -> Collection:
        there = await super().collection(resource)
        entries = list(there.entries.values())  # of one moment: what follows waits
        seen = Collection(there.name)
        seen.corrupt, seen.changed = dict(there.corrupt), there.changed
        for entry in await as_seen(self.store, there.name, entries, self._hidden):
            seen.entries[entry.key] = entry
            seen.keys.append(entry.key)
        return seen
