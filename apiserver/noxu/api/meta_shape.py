"""Whether metadata already has the form that coercion (`meta.coerce`) gives it, which it nearly always has.

A predicate per field, about the type and about what coercion would drop: empty texts and lists, zero. The order of fields
does not matter: custom resources are written with sorted keys.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from noxu.go.time import is_normal_time
from noxu.values import MAX_INT64, MIN_INT64, Json, Object

_NOTHING: Final[Object] = {}


def is_coerced(metadata: Json, old: Object = _NOTHING) -> bool:
    """Whether every field is known and in its final form. Those that are the same object in `old` are in that form."""
    return type(metadata) is dict and _in_shape(metadata, _OBJECT_META, old)


def _in_shape(value: Object, shape: Shape, old: Object = _NOTHING) -> bool:
    for name, item in value.items():
        if old and item is old.get(name, _NOTHING):
            continue
        check = shape.get(name)
        if check is None or not check(item):
            return False
    return True


def _is_nonempty_string(value: Json) -> bool:
    return type(value) is str and value != ""


def _is_list_of_strings(value: Json) -> bool:
    return type(value) is list and {*map(type, value)} == {str}


def _is_map_of_strings(value: Json) -> bool:
    return type(value) is dict and {*map(type, value.values())} == {str}


def _is_time(value: Json) -> bool:
    return type(value) is str and is_normal_time(value)


def _are_owner_references(value: Json) -> bool:
    return (
        type(value) is list
        and len(value) > 0
        and all(
            type(owner) is dict and owner.keys() >= _REQUIRED_OF_OWNER and _in_shape(owner, _OWNER_REFERENCE)
            for owner in value
        )
    )


def _are_managed_fields(value: Json) -> bool:
    return (
        type(value) is list
        and len(value) > 0
        and all(type(e) is dict and _in_shape(e, _MANAGED_FIELDS_ENTRY) for e in value)
    )


Shape: TypeAlias = dict[str, Callable[[Json], bool]]
_REQUIRED_OF_OWNER: Final = frozenset({"apiVersion", "kind", "name", "uid"})
_OWNER_REFERENCE: Final[Shape] = {
    **dict.fromkeys(_REQUIRED_OF_OWNER, _is_nonempty_string),
    "controller": lambda value: type(value) is bool,
    "blockOwnerDeletion": lambda value: type(value) is bool,
}
_MANAGED_FIELDS_ENTRY: Final[Shape] = {
    **dict.fromkeys(["manager", "operation", "apiVersion", "fieldsType", "subresource"], _is_nonempty_string),
    "time": _is_time,
    "fieldsV1": lambda value: type(value) is dict,
}
_OBJECT_META: Final[Shape] = {
    **dict.fromkeys(["name", "generateName", "namespace", "selfLink", "uid", "resourceVersion"], _is_nonempty_string),
    "generation": lambda value: type(value) is int and MIN_INT64 <= value <= MAX_INT64 and value != 0,
    "creationTimestamp": _is_time,
    "deletionTimestamp": _is_time,
    "deletionGracePeriodSeconds": lambda value: type(value) is int and MIN_INT64 <= value <= MAX_INT64,
    "labels": _is_map_of_strings,
    "annotations": _is_map_of_strings,
    "ownerReferences": _are_owner_references,
    "finalizers": _is_list_of_strings,
    "managedFields": _are_managed_fields,
}
