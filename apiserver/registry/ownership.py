"""Field ownership of the resources that are served: `apiserver.apply` with their types, versions and conversions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Final
from weakref import WeakKeyDictionary

from apiserver.api import codec
from apiserver.api.errors import ApiError
from apiserver.api.structs import zero
from apiserver.api.types import Object
from apiserver.apply import scale
from apiserver.apply.fieldset import FieldSet, Path, field, of
from apiserver.apply.tracker import Tracker, as_it_is, relabel
from apiserver.apply.types import Type, of_schema, of_struct
from apiserver.registry.conversion import convert_one
from apiserver.registry.heavy import work
from apiserver.registry.resource import Resource, Versions
from apiserver.registry.scale import UNSET, scale_of

_trackers: WeakKeyDictionary[Resource, dict[str, Tracker]] = WeakKeyDictionary()
_types: WeakKeyDictionary[Resource, Type] = WeakKeyDictionary()


def tracker(resource: Resource, subresource: str) -> Tracker:
    """Who owns what is worked out with this; made when a resource is first written to."""
    known = _trackers.setdefault(resource, {})
    if subresource not in known:
        known[subresource] = _make(resource, subresource)
    return known[subresource]


async def tracked(resource: Resource, subresource: str, do: Callable[[Tracker], Object], weight: int) -> Object:
    """What `do` makes of a tracker; it is pure, and may be called again. Raises what it raises.

    `weight` is how many bytes it works on. Where a webhook has to be asked how an object looks at another version,
    `do` begins anew when it has answered.
    """
    known = tracker(resource, subresource)
    if resource.versions.converter is None:
        return await work(weight, do, known)
    answers = _Answers(resource)
    asking = replace(known, convert=answers.at)
    while True:
        try:
            return await work(max(weight, answers.weight), do, asking)
        except _Unknown as unknown:
            await answers.ask(unknown, weight)


Looks = tuple[str, bytes]
"""A version, and an object as bytes that is to be converted to it."""


class _Unknown(Exception):
    """Somebody has to be asked how an object looks at another version."""

    def __init__(self, value: Object, key: Looks) -> None:
        super().__init__()
        self.value = value
        self.key = key


class _Answers:
    """How objects look at other versions, as far as is known; by version and what they look like.

    Upstream converts by way of the version that the request is about.
    """

    def __init__(self, resource: Resource) -> None:
        self.weight = 0  # bytes of the longest answer
        self._resource = resource
        self._known: dict[Looks, Object | ApiError] = {}

    def at(self, value: Object, api_version: str) -> Object:
        """Raises _Unknown or ApiError."""
        hub = self._resource.api_version
        if hub not in (value["apiVersion"], api_version):
            value = self.at(value, hub)
        key = api_version, codec.encode(value, sort_keys=True)
        found = self._known.get(key)
        if found is None:
            raise _Unknown(value, key)
        if isinstance(found, ApiError):
            raise found
        return found

    async def ask(self, unknown: _Unknown, weight: int) -> None:
        api_version, _ = unknown.key
        target = next(one for one in self._resource.versions.all if one.api_version == api_version)
        try:
            [self._known[unknown.key]], weight = await convert_one(unknown.value, target, weight)
            self.weight = max(self.weight, weight)
        except ApiError as error:
            self._known[unknown.key] = error


def _make(resource: Resource, subresource: str) -> Tracker:
    """As upstream has it: custom resources are compared at other versions as they are, so that ownership cannot be
    worked out where these do not know a field, and the main resource's reset fields are those of its version only."""
    versions = resource.versions
    struct = resource.behaviour.struct
    reset = versions.all if subresource else (resource,)
    return Tracker(
        resource.api_version,
        resource.kind,
        {one.api_version: _type(one) for one in versions.all},
        convert=relabel if struct is None else lambda value, api_version: _convert(versions, value, api_version),
        subresource=subresource,
        resets={one.api_version: _reset_fields(one.behaviour.reset_fields(one, subresource)) for one in reset},
        empty={} if struct is None else zero(struct),
        custom=struct is None,
        written=as_it_is if struct is None else resource.behaviour.written,
    )


def _type(resource: Resource) -> Type:
    found = _types.get(resource)
    if found is None:
        struct = resource.behaviour.struct
        found = _types[resource] = of_schema(resource.schema) if struct is None else of_struct(struct)
    return found


def _convert(versions: Versions, value: Object, api_version: str) -> Object:
    """Every version that is in the tracker's types is one of the resource's."""
    target = next(one for one in versions.all if one.api_version == api_version)
    return target.behaviour.convert(target, codec.decode_stored(codec.encode(value, sort_keys=False)))


@cache
def _reset_fields(names: tuple[str, ...]) -> FieldSet:
    return of(*((*map(field, name.split(".")),) for name in names))


# -- /scale -----------------------------------------------------------------------------------------------------------

SCALE: Final = scale.TRACKER


def owned_scale(value: Object, resource: Resource) -> Object:
    """The Scale of an object with the owners of its replicas: for writing only, answers do not tell them.

    `scale.UNSET` stands for replicas that are not there. Raises ApiError.
    """
    shown = scale_of(value, resource, missing=UNSET)
    owners = scale.to_scale(value["metadata"].get("managedFields"), replicas_paths(resource))
    if owners:
        shown["metadata"]["managedFields"] = owners
    return shown


def replicas_paths(resource: Resource) -> dict[str, Path | None]:
    """Where each version keeps its replicas."""
    return {
        one.api_version: scale.path_of(one.scale.spec_replicas) if one.scale else None for one in resource.versions.all
    }
