"""Field ownership of resources: `noxu.apply` with their types, versions and conversions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Final, TypeVar
from weakref import WeakKeyDictionary

from noxu.api import codec
from noxu.api.errors import ApiError
from noxu.apply.fieldset import ANY, FieldSet, Path, field, of
from noxu.apply.manager import update
from noxu.apply.tracker import TRACKER, Tracker, path_of, relabel, to_scale
from noxu.apply.types import Type, is_implied_by, of_schema, of_struct
from noxu.crd import types
from noxu.go.structs import zero
from noxu.registry.conversion.converters import convert_one
from noxu.registry.offload import offload
from noxu.registry.resource import DEFINITION, Resource, Versions
from noxu.registry.scale import UNSET, scale_of
from noxu.values import Object

T = TypeVar("T")

_types: WeakKeyDictionary[Resource, Type] = WeakKeyDictionary()


def tracker(resource: Resource, subresource: str) -> Tracker:
    """The tracker of a subresource, created by the first write."""
    if subresource not in resource.trackers:
        # it goes with the resource: a changed definition has another one
        resource.trackers[subresource] = _new_tracker(resource, subresource)
    return resource.trackers[subresource]


def update_status(live: Object, new: Object, resource: Resource, *, manager: str, now: str) -> Object:
    """The new object with managedFields after `manager` has changed its status at the time `now`; see `apply.manager.update`."""
    return update(live, new, tracker(resource, "status"), manager=manager, now=now)


async def run_with_tracker(resource: Resource, subresource: str, compute: Callable[[Tracker], T], weight: int) -> T:
    """The result of `compute`, which is pure, with the tracker. Raises what it raises.

    `weight` is the number of bytes that it processes. If it needs a conversion by a webhook, `compute` is interrupted by
    _ConversionNeeded, and repeated when the webhook has responded.
    """
    plain_tracker = tracker(resource, subresource)
    if resource.versions.converter is None:
        return await offload(weight, compute, plain_tracker)
    conversions = _Conversions(resource)
    converting_tracker = replace(plain_tracker, convert=conversions.convert)
    while True:
        try:
            return await offload(max(weight, conversions.weight), compute, converting_tracker)
        except _ConversionNeeded as needed:
            await conversions.request(needed, weight)


_ConversionKey = tuple[str, bytes]
"""(the target version, the object as JSON)."""


class _ConversionNeeded(Exception):
    """A webhook has to convert an object to another version."""

    def __init__(self, value: Object, key: _ConversionKey) -> None:
        super().__init__()
        self.value = value
        self.key = key


class _Conversions:
    """The conversions by a webhook during one write. Like upstream, they go through the version of the request."""

    def __init__(self, resource: Resource) -> None:
        self.weight = 0  # bytes of the largest response
        self._resource = resource
        self._results: dict[_ConversionKey, Object | ApiError] = {}

    def convert(self, value: Object, api_version: str) -> Object:
        """Raises _ConversionNeeded or ApiError."""
        hub = self._resource.api_version
        if hub not in (value["apiVersion"], api_version):
            value = self.convert(value, hub)
        key = api_version, codec.encode(value, sort_keys=True)
        result = self._results.get(key)
        if result is None:
            raise _ConversionNeeded(value, key)
        if isinstance(result, ApiError):
            raise result
        return result

    async def request(self, needed: _ConversionNeeded, weight: int) -> None:
        api_version, _ = needed.key
        target = self._resource.versions.find(api_version)
        assert target is not None
        try:
            [self._results[needed.key]], weight = await convert_one(needed.value, target, weight)
            self.weight = max(self.weight, weight)
        except ApiError as error:
            self._results[needed.key] = error  # the next attempt raises it where it needs the result


def _new_tracker(resource: Resource, subresource: str) -> Tracker:
    """The tracker of a subresource, with two peculiarities of upstream.

    Custom resources are not converted for a comparison at another version, so that ownership cannot be determined if that
    version lacks a field. The reset fields of the main resource are those of its own version only, those of a custom
    resource's subresource are those of the versions that have it.
    """
    versions = resource.versions
    struct = resource.codec.struct
    reset = [resource]
    if subresource:
        reset = [version for version in versions.all if struct is not None or subresource in version.subresources]
    return Tracker(
        resource.api_version,
        resource.kind,
        {version.api_version: type_of(version) for version in versions.all},
        convert=relabel if struct is None else lambda value, api_version: _convert(versions, value, api_version),
        subresource=subresource,
        resets={
            version.api_version: _reset_fields(version.codec.reset_fields(version, subresource)) for version in reset
        },
        only=_pattern(only) if (only := changed_fields(resource, subresource)) else None,
        empty={} if struct is None else zero(struct),
        custom=struct is None,
        implied=struct is None and resource.schema is not None and is_implied_by(resource.schema),
        written=None if struct is None else resource.codec.written,
        created=types.written_without_versions if resource.type is DEFINITION else None,
        recurring=versions.recurring,
    )


def type_of(resource: Resource) -> Type:
    """The type of a resource's objects for field ownership, which says how their parts are told apart."""
    kind = _types.get(resource)
    if kind is None:
        struct = resource.codec.struct
        kind = _types[resource] = of_schema(resource.schema) if struct is None else of_struct(struct)
    return kind


def _convert(versions: Versions, value: Object, api_version: str) -> Object:
    target = versions.find(api_version)
    assert target is not None, "a tracker has only versions of its resource"
    return target.codec.convert(target, codec.decode_stored(codec.encode(value, sort_keys=False)))


def changed_fields(resource: Resource, subresource: str) -> tuple[str, ...]:
    """The dotted paths of the only fields that a write to this subresource can change; () if that is not limited."""
    declared = resource.table.subresource(subresource) if resource.table is not None else None
    return declared.only if declared is not None and not declared.kept else ()


def _pattern(names: tuple[str, ...]) -> FieldSet:
    """`spec.containers[*].resources`: any item of the list."""
    steps = (name.replace("[*]", f".{ANY}").split(".") for name in names)
    return of(*((*(step if step == ANY else field(step) for step in path),) for path in steps))


@cache
def _reset_fields(names: tuple[str, ...]) -> FieldSet:
    return of(*((*map(field, name.split(".")),) for name in names))


# -- /scale -----------------------------------------------------------------------------------------------------------

SCALE: Final = TRACKER


def owned_scale(value: Object, resource: Resource) -> Object:
    """The Scale of an object with the owners of its replicas, which responses do not contain.

    Absent replicas are `scale.UNSET`. Raises ApiError.
    """
    shown = scale_of(value, resource, missing=UNSET)
    owners = to_scale(value["metadata"].get("managedFields"), replicas_paths(resource))
    if owners:
        shown["metadata"]["managedFields"] = owners
    return shown


def replicas_paths(resource: Resource) -> dict[str, Path | None]:
    """The path of the replicas in each version."""
    return {
        version.api_version: path_of(version.scale.spec_replicas) if version.scale else None
        for version in resource.versions.all
    }
