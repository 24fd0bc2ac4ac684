"""The scale subresource: a custom resource's replicas as an autoscaling/v1 Scale."""

from __future__ import annotations

from typing import Final

from noxu.api import errors
from noxu.go.text import default_format, go_type
from noxu.kinds.checks import selector_text
from noxu.registry.resource import Resource, ScalePaths
from noxu.values import ABSENT, Json, NotAMap, Object, nested_field


def _value_at(value: Object, path: str) -> Json:
    """The value at `.a.b`, ABSENT if it does not exist. Raises ValueError if a parent is not a map."""
    try:
        return nested_field(value, path.removeprefix("."), ABSENT, strict=True)
    except NotAMap as error:
        raise ValueError(_mismatch(error.path, error.value, "map[string]interface{}")) from None


def _mismatch(path: str, value: Json, expected: str) -> str:
    return f".{path} accessor error: {default_format(value)} is of the type {go_type(value)}, expected {expected}"


def integer_at(value: Object, path: str) -> int | None:
    """The integer at a path, None if it is absent. Raises ValueError with upstream's message for another type."""
    replicas = _value_at(value, path)
    if replicas is ABSENT:
        return None
    if type(replicas) is not int:
        raise ValueError(_mismatch(path.removeprefix("."), replicas, "int64"))
    return replicas


def _int32(number: int | None) -> int | None:
    """The replicas as a Scale has them: Go converts them without a check. A version without /scale stores any integer."""
    return None if number is None else (number + 2**31) % 2**32 - 2**31


def text_at(value: Object, path: str) -> str | None:
    """The string at a path, None if it is absent. Raises ValueError with upstream's message for another type."""
    text = _value_at(value, path)
    if text is ABSENT:
        return None
    if not isinstance(text, str):
        raise ValueError(_mismatch(path.removeprefix("."), text, "string"))
    return text


UNSET: Final = -(2**31)
"""Represents absent replicas while a Scale is patched."""


def scale_of(value: Object, resource: Resource, *, missing: int | None = None) -> Object:
    """The Scale of an object; `missing` replaces absent replicas. Raises ApiError, if `missing` is None also for these."""
    paths = _paths(resource)
    metadata = value["metadata"]
    try:
        replicas = _int32(integer_at(value, paths.spec_replicas))
        status: Object = {"replicas": _int32(integer_at(value, paths.status_replicas)) or 0}
        selector = _selector(value, resource, paths.label_selector) if paths.label_selector else ""
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


def _selector(value: Object, resource: Resource, path: str) -> str | None:
    """The selector as text; built-in kinds have a LabelSelector, or labels. Raises ValueError."""
    if resource.is_custom:
        return text_at(value, path)
    selector = _value_at(value, path)
    if not isinstance(selector, dict):
        return ""
    is_labels = all(isinstance(item, str) for item in selector.values())
    return selector_text({"matchLabels": selector} if is_labels else selector)


def put(value: Object, resource: Resource, new_scale: Object) -> None:
    """Write a decoded Scale into its object, in place: the replicas, and the resourceVersion if it has one.

    Raises ApiError.
    """
    replicas = new_scale["spec"].get("replicas", 0)
    if replicas == UNSET:
        raise errors.bad_request(f'the spec replicas field "{_paths(resource).spec_replicas}" cannot be empty')
    set_replicas(value, resource, replicas)
    if new_scale["metadata"].get("resourceVersion"):
        # in place: the lock of the write to come
        value["metadata"]["resourceVersion"] = new_scale["metadata"]["resourceVersion"]


def set_replicas(value: Object, resource: Resource, replicas: int) -> None:
    """Write the replicas of a Scale into its object, in place. Raises ApiError if a parent is not a map."""
    *parents, name = _paths(resource).spec_replicas.removeprefix(".").split(".")
    place: Json = value
    for parent in parents:
        place = place.setdefault(parent, {})  # in place, on the way down
        if not isinstance(place, dict):
            raise errors.internal_error(f'the spec replicas field "{_paths(resource).spec_replicas}" cannot be set')
    place[name] = replicas  # the only field that a Scale writes


def _paths(resource: Resource) -> ScalePaths:
    if resource.scale is None:
        raise AssertionError("only resources with a scale subresource have a Scale")
    return resource.scale
