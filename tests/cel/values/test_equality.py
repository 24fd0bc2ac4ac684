"""Equality, addition of lists and containment, of values with and without a schema."""

from __future__ import annotations

from typing import Any

import pytest

from noxu.cel.errors import CelError
from noxu.cel.values.equality import add_lists, contains, equal
from noxu.cel.values.numbers import Uint
from noxu.cel.values.times import Duration, Timestamp
from noxu.cel.values.values import (
    NONE,
    Concatenation,
    JsonList,
    JsonObject,
    LazyMap,
    MapList,
    MapValue,
    Optional,
    SetList,
    UntypedList,
    UntypedMap,
    Value,
)
from noxu.schema.structural import parse
from tests.rows import rows

NO_OVERLOAD = "no such overload"
INTEGER = {"type": "integer"}
ITEM = {"type": "object", "properties": {"k": {"type": "string"}, "v": INTEGER}}
LIST = parse({"type": "array", "items": INTEGER})
SET = parse({"type": "array", "items": INTEGER, "x-kubernetes-list-type": "set"})
MAP_LIST = parse({"type": "array", "items": ITEM, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]})
OBJECT = parse(ITEM)


def plain(*items: Any) -> JsonList:
    return JsonList(list(items), LIST)


def set_(*items: Any) -> JsonList:
    return JsonList(list(items), SET)


def maps(**items: int) -> JsonList:
    return JsonList([{"k": key, "v": value} for key, value in items.items()], MAP_LIST)


def json(**fields: Any) -> JsonObject:
    return JsonObject(fields, OBJECT)


LAZY = LazyMap({})
ROWS: list[tuple[str, Value, Value, bool | str]] = [
    ("numbers of any types", 1, Uint(1), True),
    ("an int and a double", 1, 1.0, True),
    ("a boolean is no number", True, 1, False),
    ("a string and bytes", "a", b"a", False),
    ("null equals itself", None, None, True),
    ("and nothing else", None, 0, False),
    ("nor the other way round", "", None, False),
    ("durations", Duration(1), Duration(1), True),
    ("timestamps in different zones", Timestamp(0, 0, 60), Timestamp(0), True),
    ("a duration and a number", Duration(1), 1, False),
    ("optionals", Optional(1), Optional(1.0), True),
    ("empty optionals", NONE, NONE, True),
    ("an empty optional and another", NONE, Optional(1), False),
    ("lists", [1, 2], [1.0, Uint(2)], True),
    ("lists of different length", [1], [1, 2], False),
    ("a list and a map", [], MapValue(), False),
    ("elements that cannot be compared count as equal", [json(k="a")], [1], True),
    ("but not in a sum of lists", Concatenation([json(k="a")]), [1], NO_OVERLOAD),
    ("where a difference comes first", Concatenation([json(k="a"), 1]), [1, 2], False),
    ("maps", MapValue([("a", 1), ("b", 2)]), MapValue([("b", 2.0), ("a", 1)]), True),
    ("maps of different keys", MapValue([("a", 1)]), MapValue([("b", 1)]), False),
    ("keys of any type of number", MapValue([(1, "a")]), MapValue([(Uint(1), "a")]), True),
    ("lists of an object", plain(1, 2), plain(1, 2), True),
    ("and a list of the expression", plain(1, 2), [1, 2], True),
    ("in their order", plain(1, 2), plain(2, 1), False),
    ("a list of an object and something else", plain(1), 1, NO_OVERLOAD),
    ("sets in any order", set_(1, 2), set_(2, 1), True),
    ("sets with duplicates", set_(1, 2), set_(1, 1), False),
    ("a set tells types apart", set_(1), [1.0], False),
    ("a set of lists", set_(1), [[1]], "listSet operations are only supported on lists of scalar values"),
    ("lists of type map in any order", maps(a=1, b=2), maps(b=2, a=1), True),
    ("with another value", maps(a=1), maps(a=2), False),
    ("with another key", maps(a=1), maps(b=1), False),
    ("and an element that is no object", maps(a=1), [1], False),
    ("objects", json(k="a", v=1), json(v=1, k="a"), True),
    ("objects of different fields", json(k="a"), json(v=1), False),
    ("an object and a map", json(k="a"), MapValue([("k", "a")]), True),
    ("an object and something else", json(k="a"), 1, NO_OVERLOAD),
    ("a null of an object is absent", json(k=None), json(v=None), True),
    ("lists without a schema", UntypedList([1, {"a": [None]}]), UntypedList([1.0, {"a": [None]}]), True),
    ("and with other values", UntypedList([1]), UntypedList(["1"]), False),
    ("maps without a schema", UntypedMap({"a": 1, "b": None}), UntypedMap({"b": None, "a": 1}), True),
    ("with other keys", UntypedMap({"a": None}), UntypedMap({"b": None}), False),
    ("one of each", UntypedMap({"a": [1]}), MapValue([("a", [1])]), True),
    ("variables are themselves only", LAZY, LazyMap({}), False),
    ("and equal to themselves", LAZY, LAZY, True),
    ("variables and a map", LAZY, MapValue(), NO_OVERLOAD),
]


@rows(("left", "right", "expected"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_equality(left: Value, right: Value, expected: bool | str) -> None:
    if isinstance(expected, str):
        with pytest.raises(CelError) as caught:
            equal(left, right)
        assert caught.value.message == expected
    else:
        assert equal(left, right) is expected


SUMS: list[tuple[str, Value, Value, type, list[Any]]] = [
    ("lists", [1], [2], Concatenation, [1, 2]),
    ("nothing and a list", [], [2], list, [2]),
    ("a list and nothing", [1], [], list, [1]),
    ("a list of an object", plain(1), [2], list, [1, 2]),
    ("sets", set_(1, 2), [2, 3], SetList, [1, 2, 3]),
    ("a union and a list", SetList([1]), [1, 2], SetList, [1, 2]),
]


@pytest.mark.parametrize(("left", "right", "kind", "items"), [row[1:] for row in SUMS], ids=[row[0] for row in SUMS])
def test_lists_are_added(left: Value, right: Value, kind: type, items: list[Any]) -> None:
    found = add_lists(left, right)
    assert (type(found), list(found)) == (kind, items)


def test_lists_of_type_map_are_merged() -> None:
    merged = add_lists(maps(a=1, b=2), maps(c=3, a=4))
    assert type(merged) is MapList
    assert [(item.find("k"), item.find("v")) for item in merged] == [("a", 4), ("b", 2), ("c", 3)]
    assert equal(merged, add_lists(merged, maps(b=2)))


def test_only_lists_are_added_to_lists() -> None:
    with pytest.raises(CelError, match=NO_OVERLOAD):
        add_lists([1], 1)


HOLDS: list[tuple[str, Value, Value, bool | str]] = [
    ("an element", [1, 2], 2.0, True),
    ("no element", [1, 2], 3, False),
    ("elements that cannot be compared are others", [json(k="a"), 1], 1, True),
    ("an element of an object's list", plain(1, 2), 2, True),
    ("which may have errors after it", JsonList([1, "x"], LIST), 1, True),
    ("or before it", JsonList(["x", 1], LIST), 1, True),
    ("but not instead of it", JsonList(["x"], LIST), 1, "invalid data, expected int, got string"),
    ("a key", MapValue([("a", 1)]), "a", True),
    ("a key of an object", json(k="a"), "k", True),
    ("not a value", MapValue([("a", 1)]), 1, False),
    ("something that contains nothing", 1, 1, NO_OVERLOAD),
]


@rows(("container", "value", "expected"), [row[1:] for row in HOLDS], ids=[row[0] for row in HOLDS])
def test_containment(container: Value, value: Value, expected: bool | str) -> None:
    if isinstance(expected, str):
        with pytest.raises(CelError) as caught:
            contains(container, value)
        assert caught.value.message == expected
    else:
        assert contains(container, value) is expected
