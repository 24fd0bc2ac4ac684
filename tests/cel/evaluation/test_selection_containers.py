"""Elements of lists and maps: by index, by key, and one after the other."""

from __future__ import annotations

from typing import Any

import pytest

from noxu.cel.errors import CelError
from noxu.cel.evaluation.selection import entries, select
from noxu.cel.values.numbers import Uint
from noxu.cel.values.values import (
    ABSENT,
    FailedConversion,
    JsonList,
    JsonObject,
    LazyMap,
    MapValue,
    UntypedList,
    UntypedMap,
)
from noxu.schema.structural import parse

LIST = JsonList([1, "x"], parse({"type": "array", "items": {"type": "integer"}}))
LABELS = JsonObject({"a": 1, "b": "x"}, parse({"type": "object", "additionalProperties": {"type": "integer"}}))


def fail() -> Any:
    raise CelError("no")


SELECTED: list[tuple[str, Any, Any, Any]] = [
    ("a key", MapValue([("a", 1)]), "a", 1),
    ("a key of an object", LABELS, "a", 1),
    ("a key without a schema", UntypedMap({"a": None}), "a", None),
    ("an index", [1, 2], 1, 2),
    ("an unsigned index", [1, 2], Uint(1), 2),
    ("a double as an index", UntypedList([1, 2]), 1.0, 2),
    ("an index of an object's list", LIST, 0, 1),
]


@pytest.mark.parametrize(("value", "key", "expected"), [row[1:] for row in SELECTED], ids=[row[0] for row in SELECTED])
def test_an_element_is_selected(value: Any, key: Any, expected: Any) -> None:
    assert select(value, key, presence=False) == expected
    assert select(value, key, presence=True) == expected


MISSING: list[tuple[str, Any, Any, str]] = [
    ("a key", MapValue(), "a", "no such key: a"),
    ("a field of a scalar", 1, "a", "no such key: a"),
    ("an index", [1], 1, "index out of bounds: 1"),
    ("a negative index", [1], -1, "index out of bounds: -1"),
    ("an index of an object's list", LIST, 2, "index out of bounds: 2"),
]


@pytest.mark.parametrize(("value", "key", "error"), [row[1:] for row in MISSING], ids=[row[0] for row in MISSING])
def test_an_element_is_missing(value: Any, key: Any, error: str) -> None:
    with pytest.raises(CelError) as caught:
        select(value, key, presence=False)
    assert caught.value.message == error
    assert select(value, key, presence=True) is ABSENT


WRONG: list[tuple[str, Any, Any, str]] = [
    ("a fraction", [1], 0.5, "unsupported index value 0.5 in list"),
    ("a large unsigned number", [1], Uint(2**63), "unsupported index value 9223372036854775808 in list"),
    ("a text", [1], "a", "unsupported index type 'string' in list"),
    ("a boolean", [1], True, "unsupported index type 'bool' in list"),
    ("an unsigned index of an object's list", LIST, Uint(0), "unsupported index: 0"),
    ("a key of an object that is no text", LABELS, 1, "no such overload"),
    ("an element that cannot be converted", LIST, 1, "invalid data, expected int, got string"),
]


@pytest.mark.parametrize(("value", "key", "error"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG])
def test_an_index_is_wrong(value: Any, key: Any, error: str) -> None:
    for presence in (False, True):
        with pytest.raises(CelError) as caught:
            select(value, key, presence=presence)
        assert caught.value.message == error


ITERATED: list[tuple[str, Any, list[tuple[Any, Any]], list[tuple[Any, Any]]]] = [
    ("a list", ["a"], [("a", None)], [(0, "a")]),
    ("a list without a schema", UntypedList(["a"]), [("a", None)], [(0, "a")]),
    ("a map", MapValue([("k", 1)]), [("k", None)], [("k", 1)]),
    ("a map without a schema", UntypedMap({"k": 1}), [("k", None)], [("k", 1)]),
    ("nothing", [], [], []),
]


@pytest.mark.parametrize(("items", "one", "two"), [row[1:] for row in ITERATED], ids=[row[0] for row in ITERATED])
def test_entries(items: Any, one: list[Any], two: list[Any]) -> None:
    assert (list(entries(items, two=False)), list(entries(items, two=True))) == (one, two)


@pytest.mark.parametrize(
    ("items", "message"),
    [
        (LIST, "invalid data, expected int, got string"),
        (LABELS, "invalid data, expected int, got string"),
        (LazyMap({"a": lambda: 1, "b": fail}), "no"),
    ],
    ids=["a list", "a map", "variables"],
)
def test_entries_that_fail_are_kept(items: Any, message: str) -> None:
    (_, good), (_, bad) = entries(items, two=True)
    assert good == 1
    assert isinstance(bad, FailedConversion)
    assert bad.message == message
