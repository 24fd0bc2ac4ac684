"""Admission configurations: read from the registry, and compiled once per revision.

A configuration is in force when the response to its write is sent: the watch cache is checked each time, at the cost of
two look-ups.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from noxu.registry.cache import Collection
from noxu.registry.reader import Reader
from noxu.registry.resource import Resource
from noxu.registry.stored_object import object_at
from noxu.values import Object
from noxu_storage.types import Key, Revision

T = TypeVar("T")


class CompiledConfigurations(Generic[T]):
    """All objects of one kind of configuration by name, compiled by `compile_`."""

    def __init__(self, resource: Resource, compile_: Callable[[Object], T]) -> None:
        self._resource = resource
        self._compile = compile_
        self._compiled: dict[Key, tuple[Revision, T]] = {}
        self._current: list[T] = []
        self._seen: tuple[Collection, Revision] | None = None

    async def all(self, reader: Reader) -> list[T]:
        """The configurations in force now. The list must not be changed."""
        collection = await reader.collection(self._resource)
        if self._seen is None or self._seen[0] is not collection or self._seen[1] != collection.changed:
            self._seen = (collection, collection.changed)
            self._compiled = {key: self._form(key, collection) for key in collection.keys}
            self._current = [compiled for _, compiled in self._compiled.values()]
        return self._current

    def _form(self, key: Key, collection: Collection) -> tuple[Revision, T]:
        entry = collection.entries[key]
        compiled = self._compiled.get(key)
        if compiled is not None and compiled[0] == entry.revision:
            return compiled
        return entry.revision, self._compile(object_at(entry, self._resource))
