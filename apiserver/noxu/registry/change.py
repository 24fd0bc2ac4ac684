"""A change of one object in a collection, and a batch of them. Watches share both, and what they derive from them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, Final

from noxu.api.errors import ApiError
from noxu.registry.entry import Entry
from noxu.registry.resource import Resource
from noxu_storage.types import Key, Revision

Conversions = dict[tuple[Resource, bool], tuple[asyncio.Task[list[Entry | ApiError | None]], int]]
"""By version and side (True: `before`): the task that converts it, and the index of its result in the task's list."""

MAX_SHARED_BYTES: Final = 1024 * 1024  # of what streams derive from one batch


class Change:
    """One event. `entry` is the new state, None if the object was deleted; `old` is the state that it replaced, None if the
    object was created."""

    __slots__ = ("_before", "converted", "entry", "frames", "key", "revision", "weight")

    def __init__(self, key: Key, revision: Revision, entry: Entry | None, old: Entry | None) -> None:
        self.key = key
        self.revision = revision
        self.entry = entry
        self._before = old
        self.frames: dict[object, bytes] = {}  # encoded watch events, by event type and representation
        self.converted: Conversions | None = None  # conversions by a webhook, under way or complete
        self.weight = max(len(entry.stored) if entry else 0, len(old.stored) if old else 0)  # bytes

    def frame(self, key: object, make: Callable[[], bytes]) -> bytes:
        """The encoded event of a key, which `make` encodes first. Threads that do so at the same time keep the first."""
        made = self.frames.get(key)
        return self.frames.setdefault(key, make()) if made is None else made

    @property
    def before(self) -> Entry | None:
        """The old state with the revision of the change, as events show it; a copy that is made when it is first read."""
        before = self._before
        if before is not None and before.revision != self.revision:
            before = self._before = before.with_revision(self.revision)
        return before


class Batch(list[Change]):
    """The changes that one round delivers to the streams of a partition, at least one. It is complete when it is delivered.

    `shared` is what a stream has derived from it for those that show the same: by their view, up to MAX_SHARED_BYTES.
    """

    __slots__ = ("_room", "shared")

    def __init__(self, changes: Iterable[Change] = ()) -> None:
        super().__init__(changes)
        self.shared: dict[object, Any] = {}
        self._room = MAX_SHARED_BYTES

    def share(self, view: object, derived: object, size: int) -> None:
        """Keep what was derived, unless there is no room for so many bytes: then each stream derives its own."""
        if size <= self._room:
            self._room -= size
            self.shared[view] = derived
