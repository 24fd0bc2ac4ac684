"""The parts of a plug-in about built-in kinds, and the objects that it reads besides that of the request.

A plug-in consists of a function for mutating admission, one for validating admission, or both.

Other objects are read from the watch cache.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from noxu.registry import reader
from noxu.registry.reader import key_of
from noxu.registry.resource import Resource
from noxu.registry.stored_object import object_at
from noxu.values import Object

if TYPE_CHECKING:
    from noxu.admission.attributes import Attributes

Check: TypeAlias = "Callable[[Attributes], Awaitable[None]]"
"""Raises ApiError to refuse. In mutating admission it may change `request.draft.new` in place."""


class PluginRules(NamedTuple):
    """The functions are called for creations and updates of the resources that the table names, subresources included."""

    mutate: Check | None = None
    validate: Check | None = None


# -- lookups ----------------------------------------------------------------------------------------------------------


def resource_of(request: Attributes, group: str, plural: str) -> Resource:
    """A built-in resource at version v1."""
    resource = request.served_resources.find(group, "v1", plural)
    assert resource is not None, plural
    return resource


async def find(request: Attributes, group: str, plural: str, name: str, namespace: str = "") -> Object | None:
    """An object, None if it does not exist. Raises ApiError if it cannot be read."""
    resource = resource_of(request, group, plural)
    collection, key = await request.reader.collection(resource), key_of(resource, namespace, name)
    if key in collection.corrupt:
        raise reader.unreadable(resource, key, collection.corrupt[key])
    entry = collection.entries.get(key)
    return None if entry is None else object_at(entry, resource)


async def objects(request: Attributes, group: str, plural: str, namespace: str = "") -> list[Object]:
    """All objects of a resource by name; of a namespaced one those in `namespace`. Raises ApiError if one is corrupt."""
    resource = resource_of(request, group, plural)
    collection, partition = await request.reader.collection(resource), f"{namespace}/" if namespace else ""
    if corrupt := collection.corrupt_in(partition):
        raise reader.unlistable(resource, corrupt)
    return [object_at(collection.entries[key], resource) for key in collection.select(partition)]


def newest_default(candidates: list[Object], *annotations: str) -> Object | None:
    """The class that has one of these annotations with the value "true": of several the newest, then the first by name."""

    def is_default(value: Object) -> bool:
        written = value["metadata"].get("annotations") or {}
        return any(written.get(name) == "true" for name in annotations)

    defaults = sorted(filter(is_default, candidates), key=lambda value: str(value["metadata"]["name"]))
    return max(defaults, key=lambda value: str(value["metadata"].get("creationTimestamp")), default=None)
