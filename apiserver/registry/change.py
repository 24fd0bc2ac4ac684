"""A change of one object in a collection. All watches of the collection share it, and what they derive from it."""

from __future__ import annotations

import asyncio

from noxu.apiserver.api.errors import ApiError
from noxu.apiserver.registry.entry import Entry
from noxu.apiserver.registry.resource import Resource
from noxu.storage.types import Key, Revision

Conversions = dict[tuple[Resource, bool], tuple[asyncio.Task[list[Entry | ApiError | None]], int]]
"""By version and side (True: `before`): the task that converts it, and the index of its result in the task's list."""


class Change:
    """One event. `entry` is the new state, None if the object was deleted; `before` is the old state with the revision of
    the change, None if the object was created."""

    __slots__ = ("before", "converted", "entry", "frames", "key", "revision", "weight")

    def __init__(self, key: Key, revision: Revision, entry: Entry | None, before: Entry | None) -> None:
        self.key = key
        self.revision = revision
        self.entry = entry
        self.before = before
        self.frames: dict[object, bytes] = {}  # encoded watch events, by event type and representation
        self.converted: Conversions | None = None  # conversions by a webhook, under way or complete
        self.weight = max(len(entry.stored) if entry else 0, len(before.stored) if before else 0)  # bytes
