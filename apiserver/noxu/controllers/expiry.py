"""Deletes expired objects: Events are retained for some time after their last write (`--event-ttl`).

Upstream gives them a lease in etcd: they are deleted without admission and finalizers, and watches get DELETED. So does a
server with etcd, where this controller does not run. The time of the last write is recorded when the write is observed. For
objects that were written before the start of the server, it is the newest time in the object, compared once with the time
of day. From then on lifetimes do not depend on the time of day, which may be set: like leases, they count the time that
passes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Final, Self

from noxu.controllers.controller import Controller, ControllerParts
from noxu.go.time import unix_nanos
from noxu.registry.cache import Change
from noxu.registry.resource import Resource
from noxu.registry.stored_object import StoredObject, object_at
from noxu.values import Object
from noxu_storage.types import Key, Revision

_TIMES: Final = (
    ("metadata", "creationTimestamp"), ("firstTimestamp",), ("lastTimestamp",), ("eventTime",), ("deprecatedFirstTimestamp",),
    ("deprecatedLastTimestamp",), ("series", "lastObservedTime"),
)  # fmt: skip


class ExpiryController(Controller[Key]):
    """Deletes the objects of one collection when they expire."""

    name = "event-ttl-controller"

    def __init__(self, parts: ControllerParts, resource: Resource, lifetime: float) -> None:
        """`lifetime` is in seconds after the last write."""
        super().__init__(parts, resource)
        self.lifetime = lifetime
        self._written: dict[Key, tuple[Revision, float]] = {}  # the revision, and its monotonic time in seconds

    def observe(self, change: Change) -> Iterable[Key]:
        if change.entry is None:
            self._written.pop(change.key, None)
            return ()
        self._written[change.key] = change.revision, self.clock.monotonic()
        return [change.key]

    def _take_over(self, idle: Self) -> None:
        super()._take_over(idle)
        self._written = idle._written.copy()

    def resync(self) -> Iterable[Key]:
        for deleted in self._written.keys() - self.collection.entries.keys():
            del self._written[deleted]
        return list(self.collection.keys)

    async def reconcile(self, key: Key) -> float | None:
        entry = self.collection.entries.get(key)
        if entry is None:
            return None
        remaining = self._last_write(entry) + self.lifetime - self.clock.monotonic()
        if remaining > 0:
            return remaining
        await self.persistence.remove(entry)  # a write in the meantime wins, and is observed
        return None

    def _last_write(self, entry: StoredObject) -> float:
        """The monotonic time of the last write, in seconds."""
        revision, written = self._written.get(entry.key, (0, 0.0))
        if revision != entry.revision:
            age = self.clock.now().timestamp() - last_write(object_at(entry, self.resource))
            written = self.clock.monotonic() - max(age, 0.0)
            self._written[entry.key] = entry.revision, written
        return written


def last_write(value: Object) -> float:
    """The newest time in an object, in seconds since 1970; infinite if there is none."""
    return max(_times(value), default=math.inf)


def _times(value: Object) -> Iterator[float]:
    texts = [_at(value, path) for path in _TIMES]
    texts += [managed.get("time") for managed in value["metadata"].get("managedFields") or ()]
    for text in texts:
        if isinstance(text, str) and text:
            yield unix_nanos(text) / 1e9


def _at(value: Object, path: tuple[str, ...]) -> object:
    field: object = value
    for name in path:
        field = field.get(name) if isinstance(field, dict) else None
    return field
