"""Field ownership of the resources that are served: `apiserver.apply` with their types, versions and conversions."""

from __future__ import annotations

from functools import cache
from typing import Final
from weakref import WeakKeyDictionary

from apiserver.api import codec
from apiserver.api.structs import zero
from apiserver.api.types import Object
from apiserver.apply import scale
from apiserver.apply.fieldset import FieldSet, Path, field, of
from apiserver.apply.tracker import Tracker, relabel
from apiserver.apply.types import Type, of_schema, of_struct
from apiserver.registry.resource import Resource, Versions

_trackers: WeakKeyDictionary[Resource, dict[str, Tracker]] = WeakKeyDictionary()
_types: WeakKeyDictionary[Resource, Type] = WeakKeyDictionary()


def tracker(resource: Resource, subresource: str) -> Tracker:
    """Who owns what is worked out with this; made when a resource is first written to."""
    known = _trackers.setdefault(resource, {})
    if subresource not in known:
        known[subresource] = _make(resource, subresource)
    return known[subresource]


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


def replicas_paths(resource: Resource) -> dict[str, Path | None]:
    """Where each version keeps its replicas."""
    return {
        one.api_version: scale.path_of(one.scale.spec_replicas) if one.scale else None for one in resource.versions.all
    }
