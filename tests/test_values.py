"""Copies share nothing but scalars, whatever their size and depth."""

from __future__ import annotations

from threading import Barrier, Thread
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noxu import values
from noxu.values import ABSENT, NotAMap, cached_property, copy, equal, has_equal_json, nested_field, sorted_copy
from tests.rows import rows

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


def containers(value: Any) -> list[Any]:
    found, todo = [], [value]
    while todo:
        item = todo.pop()
        if isinstance(item, (dict, list)):
            found.append(item)
            todo += item.values() if isinstance(item, dict) else item
    return found


@given(value=JSON)
def test_a_sorted_copy_is_equal_and_all_its_objects_are_sorted(value: Any) -> None:
    made = sorted_copy(value)
    assert equal(made, value)
    for container in containers(made):
        assert not isinstance(container, dict) or list(container) == sorted(container)


@pytest.mark.parametrize("limit", [values.MAX_COPIED_AT_ONCE, 0], ids=["small", "in pieces"])
@given(value=JSON)
def test_a_copy_is_equal_and_shares_no_container(limit: int, value: Any) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(values, "MAX_COPIED_AT_ONCE", limit)
        copied = copy(value)
    assert equal(copied, value)
    assert [list(item) for item in containers(copied) if isinstance(item, dict)] == [
        list(item) for item in containers(value) if isinstance(item, dict)
    ]  # the order of keys, too
    assert not set(map(id, containers(copied))) & set(map(id, containers(value)))


EQUAL = {
    "the order of keys does not matter": ({"a": 1, "b": [{"c": 2, "d": 3}]}, {"b": [{"d": 3, "c": 2}], "a": 1}, True),
    "the order of items does": ([1, 2], [2, 1], False),
    "an integer is no float": ({"a": [1]}, {"a": [1.0]}, False),
    "an integer is no boolean": ([1], [True], False),
    "a float is no boolean": ([{"a": 0.0}], [{"a": False}], False),
    "zero is equal to minus zero": ([0.0], [-0.0], True),
    "an absent field is not null": ({}, {"a": None}, False),
    "half of a pair, which JSON cannot have": (["\ud800"], ["\ud800"], True),
}


@pytest.mark.parametrize(("left", "right", "expected"), EQUAL.values(), ids=EQUAL)
def test_equality(left: Any, right: Any, expected: bool) -> None:
    assert [equal(left, right), equal(right, left)] == [expected, expected]


@given(left=JSON, right=JSON)
def test_values_with_equal_json_are_equal(left: Any, right: Any) -> None:
    assert equal(left, right) or not has_equal_json(left, right)
    assert equal(left, sorted_copy(left))


@pytest.mark.parametrize(("limit", "certain"), [(7, True), (6, False)], ids=["sorted", "longer"])
def test_long_values_in_another_order_are_compared_without_sorting(
    monkeypatch: pytest.MonkeyPatch, limit: int, certain: bool
) -> None:
    monkeypatch.setattr(values, "MAX_SORTED", limit + 6)
    left, right = {"a": 1, "b": 2}, {"b": 2, "a": 1}  # 13 bytes of JSON
    assert has_equal_json(left, right) is certain
    assert has_equal_json(left, dict(left))
    assert equal(left, right)


@pytest.mark.parametrize("levels", [300, 10_000])
def test_deep_values_are_compared(levels: int) -> None:
    assert equal(nested(levels), nested(levels))
    assert not equal(nested(levels), nested(levels + 1))


def nested(levels: int) -> Any:
    value: Any = {}
    for n in range(levels):
        value = {"a": value} if n % 2 else [value]
    return value


@rows(
    "value",
    [
        nested(9_999),
        [{"a": [n]} for n in range(50_000)],
        {f"k{n}": {} for n in range(50_000)},
        [],
        {},
        [[], {}, [[]], [{}]],
        2**70,
        [2**70],
        "text",
        None,
    ],
    ids=["deep", "a large list", "a large object", "[]", "{}", "empty containers", "a large number", "a list with a large number", "text", "null"],
)  # fmt: skip
def test_any_value_can_be_copied(value: Any) -> None:
    copied = copy(value)
    assert equal(copied, value)
    assert not set(map(id, containers(copied))) & set(map(id, containers(value)))


FIELDS: list[tuple[str, Any, str, Any]] = [
    ("a field", {"a": 1}, "a", 1),
    ("a nested field", {"a": {"b": {"c": "x"}}}, "a.b.c", "x"),
    ("a map", {"a": {"b": {}}}, "a.b", {}),
    ("null", {"a": {"b": None}}, "a.b", None),
    ("false", {"a": False}, "a", False),
    ("a missing field", {"a": {}}, "a.b", ABSENT),
    ("a missing parent", {}, "a.b", ABSENT),
    ("a parent that is null", {"a": None}, "a.b.c", ABSENT),
    ("not an object", None, "a", ABSENT),
]


@rows(("value", "path", "found"), [row[1:] for row in FIELDS], ids=[row[0] for row in FIELDS])
@pytest.mark.parametrize("strict", [False, True])
def test_nested_fields(value: Any, path: str, found: Any, strict: bool) -> None:
    assert nested_field(value, path, ABSENT, strict=strict) == found


@pytest.mark.parametrize(
    ("path", "end", "parent"), [("a.b", "a.b", [1]), ("a.b.c", "a.b", [1]), ("m.s.x", "m.s.x", "text")]
)
def test_a_path_through_a_value_without_fields_is_not_found(path: str, end: str, parent: Any) -> None:
    value = {"a": [1], "m": {"s": "text"}}
    assert nested_field(value, path) is None
    assert nested_field(value, path, "default") == "default"
    with pytest.raises(NotAMap, match=f"{end}: the parent is not a map") as caught:
        nested_field(value, path, strict=True)
    assert (caught.value.path, caught.value.value) == (end, parent)


class Square:
    def __init__(self, side: int) -> None:
        self.side = side
        self.computed = 0

    @cached_property
    def area(self) -> int:
        """Side by side."""
        self.computed += 1
        return self.side**2


def test_a_cached_property_is_computed_once_for_each_instance() -> None:
    first, second = Square(3), Square(4)
    assert (first.area, first.area, second.area) == (9, 9, 16)
    assert (first.computed, second.computed) == (1, 1)
    assert Square.area.__doc__ == "Side by side."


def test_a_cached_property_of_one_object_does_not_wait_for_that_of_another() -> None:
    both = Barrier(2, timeout=30)

    class Meeting:
        @cached_property
        def met(self) -> int:
            return both.wait()

    objects = [Meeting(), Meeting()]
    threads = [Thread(target=lambda meeting=meeting: meeting.met) for meeting in objects]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(vars(meeting)["met"] for meeting in objects) == [0, 1]
