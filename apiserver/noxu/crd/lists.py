"""Rules for x-kubernetes-list-type, -list-map-keys and -map-type.

Items of a set are distinguished by their value, items of a map by their keys: neither may be null, keys are required
scalars, and items of sets must be atomic (apiextensions/validation.go).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from noxu.api.field import (
    FieldError,
    Path,
    Verbatim,
    child,
    forbidden,
    invalid,
    key,
    not_supported,
    required,
)
from noxu.crd.internal import echo
from noxu.crd.types import SCHEMA_OR_LIST
from noxu.go.text import compact_json
from noxu.values import Object

LIST_TYPE: Final = "x-kubernetes-list-type"
MAP_TYPE: Final = "x-kubernetes-map-type"
KEYS: Final = "x-kubernetes-list-map-keys"

LIST_TYPES: Final = ["atomic", "set", "map"]
MAP_TYPES: Final = ["atomic", "granular"]


def single_items(schema: Object) -> Object | None:
    """The schema of all items, None if there is none or a list of schemas."""
    items = schema.get("items")
    return items if isinstance(items, dict) else None


def has_composite_items(schema: Object) -> bool:
    """Whether a schema is a set of items that are not atomic."""
    items = single_items(schema)
    if schema.get(LIST_TYPE) != "set" or items is None:
        return False
    if items.get("type") == "array":
        return bool(items.get(LIST_TYPE, "atomic") != "atomic")
    return bool(items.get("type") == "object" and items.get(MAP_TYPE) != "atomic")


def map_type_errors(schema: Object, path: Path) -> Iterator[FieldError]:
    map_type = schema[MAP_TYPE]
    yield from _owner_errors(schema, path, "object", MAP_TYPE)
    if map_type not in MAP_TYPES:
        yield not_supported(child(path, MAP_TYPE), map_type, MAP_TYPES)


def list_type_errors(schema: Object, path: Path, *, composite_sets: Callable[[], bool]) -> Iterator[FieldError]:
    """`composite_sets` is called if a set's items are not atomic; it returns whether they may be so."""
    list_type = schema.get(LIST_TYPE)
    keys = schema.get(KEYS) or []
    if list_type is not None:
        wrong_owner = list(_owner_errors(schema, path, "array", LIST_TYPE))
        yield from wrong_owner
        if not wrong_owner and has_composite_items(schema) and not composite_sets():
            items = schema["items"]
            name = LIST_TYPE if items["type"] == "array" else MAP_TYPE
            why = "must be atomic as item of a list with x-kubernetes-list-type=set"
            # upstream prints the list type in either case
            yield invalid(child(path, "items", name), Verbatim(compact_json(items.get(LIST_TYPE))), why)
        if list_type not in LIST_TYPES:
            yield not_supported(child(path, LIST_TYPE), list_type, LIST_TYPES)
    if keys and list_type != "map":
        why = "must be map if x-kubernetes-list-map-keys is non-empty"
        where = child(path, LIST_TYPE)
        yield required(where, why) if list_type is None else invalid(where, list_type, why)
    if list_type == "map":
        yield from _map_errors(schema, keys, path)


def _owner_errors(schema: Object, path: Path, type_: str, extension: str) -> Iterator[FieldError]:
    declared = schema.get("type", "")
    if declared != type_:
        why = f"must be {type_} if {extension} is specified"
        yield invalid(child(path, "type"), declared, why) if declared else required(child(path, "type"), why)


def _map_errors(schema: Object, keys: list[str], path: Path) -> Iterator[FieldError]:
    if not keys:
        yield required(child(path, KEYS), "must not be empty if x-kubernetes-list-type is map")
    items = schema.get("items")
    if items is None:
        yield required(child(path, "items"), "must have a schema if x-kubernetes-list-type is map")
        return
    if not isinstance(items, dict):
        why = "must only have a single schema if x-kubernetes-list-type is map"
        yield invalid(child(path, "items"), echo(SCHEMA_OR_LIST, items), why)
        return
    if items.get("type") != "object":
        why = "must be object if parent array's x-kubernetes-list-type is map"
        yield invalid(child(path, "items", "type"), items.get("type", ""), why)
        return
    seen = set()
    for name in keys:
        declared = (items.get("properties") or {}).get(name)
        if declared is None:
            yield invalid(child(path, KEYS), keys, "entries must all be names of item properties")
        elif declared.get("type") in ("array", "object"):
            why = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            yield invalid(
                child(path, "items", key("properties", name), "type"), items["type"], why
            )  # upstream prints the item's type
        if name in seen:
            yield invalid(child(path, KEYS), keys, "must not contain duplicate entries")
        seen.add(name)


def presence_errors(schema: Object, path: Path) -> Iterator[FieldError]:
    """Errors about items and keys that may be null or missing."""
    list_type = schema.get(LIST_TYPE)
    items = single_items(schema)
    if list_type not in ("set", "map") or items is None:
        return
    if items.get("nullable"):
        yield forbidden(child(path, "items", "nullable"), f"cannot be nullable when {LIST_TYPE} is {list_type}")
    if list_type == "set":
        return
    for name in schema.get(KEYS) or []:
        declared = (items.get("properties") or {}).get(name)
        if declared is None:
            continue
        where = child(path, "items", key("properties", name))
        why = "this property is in x-kubernetes-list-map-keys, so it"
        if name not in (items.get("required") or []) and declared.get("default") is None:
            yield required(child(where, "default"), f"{why} must have a default or be a required property")
        if declared.get("nullable"):
            yield forbidden(child(where, "nullable"), f"{why} cannot be nullable")
