"""The scale subresource: a custom resource's replicas as an autoscaling/v1 Scale."""

from __future__ import annotations

from typing import Final

from apiserver.api import errors
from apiserver.api.types import Json, Object
from apiserver.apply.goprint import default_format, go_type
from apiserver.registry.resource import Resource, ScalePaths


def _value_at(value: Object, path: str) -> Json:
    """What stands at `.a.b`; _ABSENT if it ends early. Raises ValueError if it goes through what is no map."""
    found: Json = value
    names = path.removeprefix(".").split(".")
    for n, name in enumerate(names, 1):
        if found is None:
            return _ABSENT
        if not isinstance(found, dict):
            raise ValueError(_mismatch(".".join(names[:n]), found, "map[string]interface{}"))
        found = found.get(name, _ABSENT)
        if found is _ABSENT:
            return _ABSENT
    return found


_ABSENT: Final = object()
"""Null is a value of a wrong type, as upstream."""


def _mismatch(path: str, value: Json, expected: str) -> str:
    return f".{path} accessor error: {default_format(value)} is of the type {go_type(value)}, expected {expected}"


def integer_at(value: Object, path: str) -> int | None:
    """Raises ValueError with upstream's text for anything but an integer."""
    found = _value_at(value, path)
    if found is _ABSENT:
        return None
    if type(found) is not int:
        raise ValueError(_mismatch(path.removeprefix("."), found, "int64"))
    return found


def text_at(value: Object, path: str) -> str | None:
    """Raises ValueError with upstream's text for anything but a string."""
    found = _value_at(value, path)
    if found is _ABSENT:
        return None
    if not isinstance(found, str):
        raise ValueError(_mismatch(path.removeprefix("."), found, "string"))
    return found


UNSET: Final = -(2**31)
"""Stands for replicas that are not there, while a Scale is patched."""


def scale_of(value: Object, resource: Resource, *, missing: int | None = None) -> Object:
    """The Scale of an object. Raises ApiError if it has no replicas, unless `missing` says what to show then."""
    paths = _paths(resource)
    metadata = value["metadata"]
    try:
        replicas = integer_at(value, paths.spec_replicas)
        status: Object = {"replicas": integer_at(value, paths.status_replicas) or 0}
        selector = text_at(value, paths.label_selector) if paths.label_selector else ""
    except ValueError as error:
        raise errors.plain_error(str(error)) from None
    if replicas is None:
        replicas = missing
    if replicas is None:
        raise errors.internal_error(f'the spec replicas field "{paths.spec_replicas}" does not exist')
    if selector:
        status["selector"] = selector
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: metadata[name] for name in kept if metadata.get(name)},
        "spec": {"replicas": replicas} if replicas else {},
        "status": status,
    }


def put(value: Object, resource: Resource, new_scale: Object) -> None:
    """Write a decoded Scale into its object, in place: the replicas, and the resourceVersion if it names one.

    Raises ApiError.
    """
    replicas = new_scale["spec"].get("replicas", 0)
    if replicas == UNSET:
        raise errors.bad_request(f'the spec replicas field "{_paths(resource).spec_replicas}" cannot be empty')
    set_replicas(value, resource, replicas)
    if new_scale["metadata"].get("resourceVersion"):
        value["metadata"]["resourceVersion"] = new_scale["metadata"]["resourceVersion"]


def set_replicas(value: Object, resource: Resource, replicas: int) -> None:
    """Write the replicas of a Scale into its object, in place. Raises ApiError if their place cannot be reached."""
    *parents, name = _paths(resource).spec_replicas.removeprefix(".").split(".")
    place: Json = value
    for parent in parents:
        place = place.setdefault(parent, {})
        if not isinstance(place, dict):
            raise errors.internal_error(f'the spec replicas field "{_paths(resource).spec_replicas}" cannot be set')
    place[name] = replicas


def _paths(resource: Resource) -> ScalePaths:
    if resource.scale is None:
        raise AssertionError("only resources with a scale subresource have a Scale")
    return resource.scale
