"""A change of one object, as those see it who watch its collection. It is made once and shared by all of them."""

from __future__ import annotations

import asyncio

from apiserver.api.errors import ApiError
from apiserver.registry.entry import Entry
from apiserver.registry.resource import Resource
from storage.types import Key, Revision

Outcomes = dict[tuple[Resource, bool], tuple[asyncio.Task[list[Entry | ApiError | None]], int]]
"""At a version, `before` (True) or `entry`: the n-th outcome of a task (see `conversion_changes`)."""


class Change:
    """One event. `before` is the old state under the change's revision, `entry` the new one; None: there is none."""

    __slots__ = ("before", "converted", "entry", "frames", "key", "revision", "weight")

    def __init__(self, key: Key, revision: Revision, entry: Entry | None, before: Entry | None) -> None:
        self.key = key
        self.revision = revision
        self.entry = entry
        self.before = before
        self.frames: dict[object, bytes] = {}  # what was already built, by representation
        self.converted: Outcomes | None = None  # what somebody was asked for already
        self.weight = max(len(one.stored) if one else 0 for one in (entry, before))
