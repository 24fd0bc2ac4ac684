"""Subsets of objects, as kuttl's own table has them (internal/utils/subset_test.go), and the nearest of several objects."""

from __future__ import annotations

from typing import Final

from noxu.kuttl.matching import Differing, mismatches, nearest
from tests.rows import rows

ROWS: Final = [
    ("the same", {"a": "b"}, {"a": "b"}, []),
    ("more fields than are named", {"a": "b"}, {"a": "b", "c": "d"}, []),
    ("another value", {"a": "b"}, {"a": "c"}, [("a", 'it is "c", not "b"')]),
    ("a field that is missing", {"a": {"b": 1}}, {"a": {}}, [("a.b", "it is missing")]),
    ("nested fields", {"a": {"b": {"c": 1}}}, {"a": {"b": {"c": 1, "d": 2}, "e": 3}}, []),
    ("a list, item by item", {"a": [{"b": 1}]}, {"a": [{"b": 1, "c": 2}]}, []),
    ("a list with an item more", {"a": [1]}, {"a": [1, 2]}, [("a", "it has 2 items, not 1")]),
    ("an empty list", {"a": []}, {"a": [1]}, [("a", "it has 1 item, not 0")]),
    ("a list in another order", {"a": [1, 2]}, {"a": [2, 1]}, [("a[0]", "it is 2, not 1"), ("a[1]", "it is 1, not 2")]),
    ("an object for a list", {"a": [1]}, {"a": {"b": 1}}, [("a", "it is an object, not a list")]),
    ("a number for a text", {"a": "1"}, {"a": 1}, [("a", 'it is 1, not "1"')]),
    ("a number for a truth", {"a": True}, {"a": 1}, [("a", "it is 1, not true")]),
    ("null, where null is", {"a": None}, {"a": None}, []),
    ("null, where nothing is", {"a": None}, {}, [("a", "it is missing")]),
    ("an empty object matches any", {"a": {}}, {"a": {"b": 1}}, []),
    ("a key with a dot", {"a": {"b.c/d": 1}}, {"a": {"b.c/d": 2}}, [("a.b.c/d", "it is 2, not 1")]),
]


@rows("what, expected, got, differing", ROWS, ids=[row[0] for row in ROWS])
def test_a_subset(what: str, expected: dict, got: dict, differing: list) -> None:
    assert list(mismatches(expected, got)) == [Differing(*each) for each in differing]


def test_the_nearest_object_differs_in_the_fewest_fields() -> None:
    objects = [{"a": 2, "b": 2}, {"a": 1, "b": 2}, {"a": 1, "b": 3}]
    assert nearest({"a": 1, "b": 1}, objects) == (objects[1], [Differing("b", "it is 2, not 1")])
    assert nearest({"a": 1}, []) is None
