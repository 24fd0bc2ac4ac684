"""The current states of all keys, in memory, and the order of the keys of a collection beside a dict in any order."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator
from operator import attrgetter

from noxu_storage.types import Key, KeyValue, Prefix

_partition = attrgetter("partition")


class KeyOrder:
    """Keys are appended as they come, and sorted when they are used: one pass, if they are already sorted, as they mostly are.

    `append` follows a key that is new in the dict, `clear` one that was removed.
    """

    __slots__ = ("_keys",)

    def __init__(self) -> None:
        self._keys: list[Key] = []  # complete if it is as long as the dict

    def append(self, key: Key) -> None:
        self._keys.append(key)

    def clear(self) -> None:
        self._keys.clear()

    def select(self, existing: Collection[Key], partition: str | None, after: Key | None) -> list[Key]:
        """Those of the dict `existing` in a partition, or in all, after a key, in order."""
        keys = self._keys
        if len(keys) != len(existing):
            keys[:] = existing
        keys.sort()
        low, high = 0, len(keys)
        if partition is not None:
            low, high = bisect_left(keys, partition, key=_partition), bisect_right(keys, partition, key=_partition)
        if after is not None:
            low = max(low, bisect_right(keys, after))
        return keys[low:high]


class _Collection:
    __slots__ = ("_order", "states")

    def __init__(self) -> None:
        self.states: dict[Key, KeyValue] = {}
        self._order = KeyOrder()

    def put(self, state: KeyValue) -> None:
        if state.key not in self.states:
            self._order.append(state.key)
        self.states[state.key] = state

    def remove(self, key: Key) -> None:
        del self.states[key]
        self._order.clear()

    def keys(self, partition: str | None, after: Key | None) -> list[Key]:
        """The keys of a partition, or of all, after a key, in order."""
        return self._order.select(self.states, partition, after)


class States:
    """The state of every key that exists."""

    def __init__(self) -> None:
        self._collections: dict[str, _Collection] = {}

    def get(self, key: Key) -> KeyValue | None:
        collection = self._collections.get(key.collection)
        return collection.states.get(key) if collection is not None else None

    def put(self, state: KeyValue) -> None:
        collection = self._collections.get(state.key.collection)
        if collection is None:
            collection = self._collections[state.key.collection] = _Collection()
        collection.put(state)

    def remove(self, key: Key) -> None:
        """Remove a key, if it exists."""
        if self.get(key) is not None:
            self._collections[key.collection].remove(key)

    def keys(self, prefix: Prefix, after: Key | None = None) -> Iterator[Key]:
        """The keys of a prefix after a key, in order. The states must not change meanwhile."""
        names = sorted(self._collections) if prefix.collection is None else [prefix.collection]
        for name in names:
            if (collection := self._collections.get(name)) is not None:
                yield from collection.keys(prefix.partition, after)

    def select(self, prefix: Prefix, after: Key | None = None, limit: int = 0) -> tuple[list[KeyValue], int]:
        """(At most `limit` states (0: all) of a prefix after a key, in order; how many more there are)."""
        keys = list(self.keys(prefix, after))
        shown = keys[:limit] if limit else keys
        return [self._collections[key.collection].states[key] for key in shown], len(keys) - len(shown)

    def count(self, prefix: Prefix) -> int:
        if prefix.partition is not None:
            return sum(1 for _ in self.keys(prefix))
        names = self._collections if prefix.collection is None else [prefix.collection]
        return sum(len(self._collections[name].states) for name in names if name in self._collections)
