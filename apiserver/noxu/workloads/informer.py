"""Follows the collections that workload controllers look at, and hands each change to those that follow its kind.

One informer for all of them, as upstream's shared informers: an object is decoded once for each of its changes, and the index is
up to date before any controller looks at it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Protocol, Self

from noxu.controllers.controller import Controller, ControllerParts
from noxu.registry.cache import Change
from noxu.registry.resource import Resource
from noxu.registry.stored_object import StoredObject, object_at
from noxu.values import Object
from noxu.workloads.objects import AUTOSCALERS, Objects
from noxu.workloads.writes import Kind, NamespacedName
from noxu_storage.types import Key


class Listener(Protocol):
    """A controller that an informer serves. Neither method waits."""

    def changed(self, kind: Kind, old: Object | None, new: Object | None) -> None:
        """An object was created (`old` is None), changed, or deleted (`new` is None)."""
        ...

    def reset(self) -> None:
        """Changes may be missing: look at everything again."""
        ...


class Informer(Controller[Key]):
    """It has no keys of its own."""

    name = "workload-informer"

    def __init__(self, parts: ControllerParts, kinds: Sequence[Kind]) -> None:
        self._parts = parts
        self._resources: dict[Kind, Resource] = {kind: _resource(parts, kind) for kind in kinds}
        super().__init__(parts, *self._resources.values())
        self._by_collection = {resource.collection: kind for kind, resource in self._resources.items()}
        self.objects = Objects()
        """The same one for as long as the server runs: it is changed in place, by the event loop only."""
        self.listeners: dict[Kind, list[Listener]] = {kind: [] for kind in kinds}

    def resource_of(self, kind: Kind) -> Resource:
        """That of any built-in kind, at the version at which controllers read and write it."""
        return self._resources.get(kind) or _resource(self._parts, kind)

    def listen(self, listener: Listener, kinds: Iterable[Kind]) -> None:
        for kind in kinds:
            self.listeners[kind].append(listener)

    def observe(self, change: Change) -> Iterable[Key]:
        kind = self._by_collection[change.key.collection]
        new = None if change.entry is None else self._decoded(kind, change.entry)
        if new is None:
            old = self.objects.remove(kind, NamespacedName(change.key.partition[:-1], change.key.name))
        else:
            old = self.objects.put(kind, new)
        for listener in self.listeners[kind]:
            listener.changed(kind, old, new)
        return ()

    def resync(self) -> Iterable[Key]:
        """Read all objects again: those that are gone leave the index."""
        self.objects.clear()
        self._read()
        for listener in dict.fromkeys(listener for listeners in self.listeners.values() for listener in listeners):
            listener.reset()
        return ()

    def _read(self) -> None:
        for kind, collection in zip(self._resources, (self.collection, *self.others), strict=True):
            for entry in collection.entries.values():
                self.objects.put(kind, self._decoded(kind, entry))

    def _take_over(self, idle: Self) -> None:
        super()._take_over(idle)
        self._read()  # its own objects: some differ from the template's

    def _decoded(self, kind: Kind, entry: StoredObject) -> Object:
        return object_at(entry, self._resources[kind])

    async def reconcile(self, key: Key) -> float | None:
        return None


_VERSIONS: Final[dict[Kind, str]] = {AUTOSCALERS: "v2"}
"""The versions at which controllers read a kind, if it is not v1."""


def _resource(parts: ControllerParts, kind: Kind) -> Resource:
    group, plural = kind
    resource = parts.served_resources.current.find(group, _VERSIONS.get(kind, "v1"), plural)
    assert resource is not None
    return resource
