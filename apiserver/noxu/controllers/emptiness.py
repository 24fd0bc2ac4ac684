"""Watch whether collections become empty: a namespace or definition is deleted after the objects in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from noxu.registry.cache import Change, Collection
from noxu_storage.types import Revision


class EmptinessWatch:
    """Calls `call` after a change that leaves a collection, or one of its partitions, empty; also when the watch ends.

    A `Watcher` of the cache.
    """

    def __init__(self, collection: Collection, partition: str | None, call: Callable[[], None]) -> None:
        """`partition` None: the whole collection."""
        self._collection = collection
        self._partition = partition
        self._call = call
        collection.watchers[self] = None

    def deliver(self, changes: Sequence[Change], revision: Revision) -> None:
        if self._collection.is_empty(self._partition):
            self._call()

    def end(self) -> None:
        self._call()

    def cancel(self) -> None:
        self._collection.watchers.pop(self, None)
