"""What the macros transformMap and transformMapEntry build their maps with (cel-go's ext/comprehensions.go)."""

from __future__ import annotations

from typing import Final

from apiserver.cel.conversions import go_value
from apiserver.cel.errors import CelError
from apiserver.cel.library.declarations import Overload, overload
from apiserver.cel.values import ABSENT, JsonObject, MapValue, Value


def insert(target: MapValue | JsonObject, key: Value, value: Value) -> MapValue:
    """The map, with one more entry; the accumulator of a comprehension is changed in place."""
    if target.find(key) is not ABSENT:
        raise CelError(f"insert failed: key {go_value(key)} already exists")
    if not isinstance(target, MapValue):
        target = MapValue((one, target.find(one)) for one in target)
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
