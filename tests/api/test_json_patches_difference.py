"""The difference of two values is a JSON patch that turns one into the other."""

from __future__ import annotations

from typing import Any

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from noxu.api.json_patches import difference, pointer, steps
from noxu.values import equal
from tests.rows import rows

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["", "a", "b"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["a", "b/c", "d~e", ""]), inner),
)

TABLE: list[tuple[str, Any, Any, list[tuple[Any, ...]]]] = [
    ("nothing", {"a": [1, {"b": None}]}, {"a": [1, {"b": None}]}, []),
    ("a member more", {}, {"a": {"b": 1}}, [("add", "/a", {"b": 1})]),
    ("a member less", {"a": {"b": 1}}, {"a": {}}, [("remove", "/a/b")]),
    ("another value", {"a": 1}, {"a": 2}, [("replace", "/a", 2)]),
    ("1 is not 1.0", {"a": 1}, {"a": 1.0}, [("replace", "/a", 1.0)]),
    ("1 is not true", {"a": 1}, {"a": True}, [("replace", "/a", True)]),
    ("another type", {"a": {"b": 1}}, {"a": [1]}, [("replace", "/a", [1])]),
    ("an item at the end", [1], [1, 2], [("add", "/1", 2)]),
    ("an item in between", [1, 3], [1, 2, 3], [("add", "/1", 2)]),
    ("an item gone", [1, 2, 3], [1, 3], [("remove", "/1")]),
    ("items gone, the last one first", [1, 2, 3, 4], [1, 4], [("remove", "/2"), ("remove", "/1")]),
    ("inside an item", [{"a": 1}, 2], [{"a": 2}, 2], [("replace", "/0/a", 2)]),
    ("names with slashes and tildes", {}, {"a/b": {}, "c~d": {}}, [("add", "/a~1b", {}), ("add", "/c~0d", {})]),
    ("the value itself", 1, 2, [("replace", "", 2)]),
]


@rows(("old", "new", "expected"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_difference(old: Any, new: Any, expected: list[tuple[Any, ...]]) -> None:
    messages = [
        (operation["op"], operation["path"], *([operation["value"]] if "value" in operation else []))
        for operation in difference(old, new)
    ]
    assert messages == expected


@given(VALUES, VALUES)
def test_the_patch_makes_the_one_of_the_other(old: Any, new: Any) -> None:
    if isinstance(old, (dict, list)):  # the library patches nothing else
        assert equal(jsonpatch.apply_patch(old, difference(old, new)), new)


@given(VALUES)
def test_a_value_does_not_differ_from_itself(value: Any) -> None:
    assert difference(value, value) == []


def test_values_may_be_as_deep_as_clients_like() -> None:
    old: Any = 1
    new: Any = 2
    for _ in range(5_000):
        old, new = {"a": [old]}, {"a": [new]}
    # what lists hold is compared to find what came and went: deep lists in lists cost time by their depth
    assert difference({"a": old}, {"a": old}) == []
    assert difference(_nested(1), _nested(2)) == [{"op": "replace", "path": "/a" * 5_000, "value": 2}]


def _nested(value: Any) -> Any:
    for _ in range(5_000):
        value = {"a": value}
    return value


@pytest.mark.parametrize("name", ["a", "", "a/b", "~", "~1", "/"])
def test_steps_undo_pointer(name: str) -> None:
    assert steps(pointer(pointer("", name), 3)) == [name, "3"]
