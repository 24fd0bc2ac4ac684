"""The keys of a collection in order, kept beside a dict that has them in any order.

Keys are appended as they come, and sorted when they are used: one pass, if they are already sorted, as they mostly are.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection
from operator import attrgetter

from noxu_storage.types import Key

_partition = attrgetter("partition")


class KeyOrder:
    """`append` follows a key that is new in the dict, `clear` one that was removed."""

    __slots__ = ("_keys",)

    def __init__(self) -> None:
        self._keys: list[Key] = []  # complete if it is as long as the dict

    def append(self, key: Key) -> None:
        self._keys.append(key)

    def clear(self) -> None:
        self._keys.clear()

    def select(self, known: Collection[Key], partition: str | None, after: Key | None) -> list[Key]:
        """Those of the dict `known` in a partition, or in all, after a key, in order."""
        keys = self._keys
        if len(keys) != len(known):
            keys[:] = known
        keys.sort()
        low, high = 0, len(keys)
        if partition is not None:
            low, high = bisect_left(keys, partition, key=_partition), bisect_right(keys, partition, key=_partition)
        if after is not None:
            low = max(low, bisect_right(keys, after))
        return keys[low:high]
