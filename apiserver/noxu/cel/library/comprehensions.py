"""The functions that the macros transformMap and transformMapEntry expand to (cel-go's ext/comprehensions.go)."""

from __future__ import annotations

from typing import Final

from noxu.cel.errors import CelError
from noxu.cel.library.declarations import Overload, overload
from noxu.cel.memory import ENTRY, MAP, allocate
from noxu.cel.values.conversions import go_value
from noxu.cel.values.values import ABSENT, JsonObject, MapValue, Value


def insert(target: MapValue | JsonObject, key: Value, value: Value) -> MapValue:
    """The map with another entry. A map made by the comprehension is changed in place, a map of an object is copied."""
    if target.find(key) is not ABSENT:
        raise CelError(f"insert failed: key {go_value(key)} already exists")
    allocate(ENTRY)
    if not isinstance(target, MapValue):
        allocate(MAP + ENTRY * len(target))
        target = MapValue((name, target.find(name)) for name in target)
    target.set(key, value)
    return target


def insert_all(target: Value, entries: Value) -> Value:
    for key in entries:
        target = insert(target, key, entries.find(key))
    return target


OVERLOADS: Final[list[tuple[str, Overload]]] = [
    overload("@mapInsert_map_key_value", "cel::@mapInsert(map(K, V), K, V) -> map(K, V)", insert),
    overload("@mapInsert_map_map", "cel::@mapInsert(map(K, V), map(K, V)) -> map(K, V)", insert_all),
]
