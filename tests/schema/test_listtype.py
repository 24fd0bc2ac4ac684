"""Sets and maps have no duplicates. The reference server gave every expected result."""

from __future__ import annotations

import time

import pytest

from noxu.schema.listtype import has_errors, validate
from noxu.schema.structural import parse
from noxu.schema.validation import MAX_FOUND
from noxu.values import Json, Object
from tests.rows import rows

SET: Object = {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}
ATOMIC: Object = {**SET, "x-kubernetes-list-type": "atomic"}


def map_of(*keys: str, **more: Object) -> Object:
    """A list of type map by those keys."""
    properties = {**{name: {"type": "string"} for name in keys}, **more}
    items = {"type": "object", "properties": properties}
    return {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys), "items": items}


def errors_at_l(schema: Object, value: Json) -> list[str]:
    root = parse({"type": "object", "properties": {"l": schema}})
    errors = validate({"l": value}, root)
    assert has_errors({"l": value}, root) == bool(errors)
    return [str(error) for error in errors]


def duplicate(field: str, value: str) -> str:
    return f"{field}: Duplicate value: {value}"


@rows(
    ("case", "value", "errors"),
    [
        ("no element twice", ["a", "b"], []),
        ("empty", [], []),
        ("the second occurrence", ["a", "b", "a"], [duplicate("l[2]", '"a"')]),
        ("and only the second", ["a", "a", "a", "b", "b"], [duplicate("l[1]", '"a"'), duplicate("l[4]", '"b"')]),
        ("types count", ["1", 1, 1.0, True], []),
        ("integers", [1, 0, 1], [duplicate("l[2]", "1")]),
        ("floats", [1.5, 1.5], [duplicate("l[1]", "1.5")]),
        ("zeros are one", [0.0, -0.0], [duplicate("l[1]", "-0")]),
        ("booleans", [True, False, True], [duplicate("l[2]", "true")]),
        ("nulls", [None, None], [duplicate("l[1]", "null")]),
        ("objects in any order of keys", [{"a": 1, "b": 2}, {"b": 2, "a": 1}], [duplicate("l[1]", '{"a":1,"b":2}')]),
        ("objects by their JSON", [{"a": 1}, {"a": 1.0}], [duplicate("l[1]", '{"a":1}')]),
        ("where minus zero is another", [{"a": 0}, {"a": -0.0}], []),
        ("lists in order", [[1, 2], [2, 1], [1, 2]], [duplicate("l[2]", "[1,2]")]),
        ("a list is no object", [[], {}, "[]"], []),
        ("not a list", "aa", []),
    ],
)
def test_sets(case: str, value: Json, errors: list[str]) -> None:
    assert errors_at_l(SET, value) == errors, case


@rows(
    ("case", "value", "errors"),
    [
        ("different keys", [{"k": "a"}, {"k": "b"}], []),
        ("the same key", [{"k": "a", "v": 1}, {"k": "a", "v": 2}], [duplicate("l[1]", '{"k":"a"}')]),
        ("only the second", [{"k": "a"}, {"k": "a"}, {"k": "a"}], [duplicate("l[1]", '{"k":"a"}')]),
        ("types count", [{"k": 1}, {"k": 1.0}, {"k": "1"}], []),
        ("no key is a key", [{}, {"v": 1}], [duplicate("l[1]", "{}")]),
        ("so is null for an item", [None, {"v": 1}], [duplicate("l[1]", "{}")]),
        ("but not null for a key", [{"k": None}, {}], []),
        ("two null keys", [{"k": None}, {"k": None}], [duplicate("l[1]", '{"k":null}')]),
        ("keys that are objects", [{"k": {"x": 1}}, {"k": {"x": 1.0}}], [duplicate("l[1]", '{"k":{"x":1}}')]),
        ("no object", [{"k": "a"}, "x", {"k": "a"}, "y"], [
            'l[1]: Invalid value: "x": must be an object for an array of list-type map',
        ]),
        ("a single item that is none", [["x"]], [
            'l[0]: Invalid value: ["x"]: must be an object for an array of list-type map',
        ]),
    ],
)  # fmt: skip
def test_maps_by_one_key(case: str, value: Json, errors: list[str]) -> None:
    assert errors_at_l(map_of("k"), value) == errors, case


@pytest.mark.parametrize(
    ("case", "value", "errors"),
    [
        ("one key differs", [{"j": "a", "k": "a"}, {"j": "a", "k": "b"}], []),
        ("both are the same", [{"j": "a", "k": "b"}, {"k": "b", "j": "a"}], [duplicate("l[1]", '{"j":"a","k":"b"}')]),
        ("by their JSON", [{"j": 1, "k": "b"}, {"j": 1.0, "k": "b"}], [duplicate("l[1]", '{"j":1,"k":"b"}')]),
        ("what is absent is absent on both sides", [{"k": "b"}, {"k": "b"}, {"j": None, "k": "b"}], [
            duplicate("l[1]", '{"k":"b"}'),
        ]),
        ("none at all", [{}, None], [duplicate("l[1]", "{}")]),
    ],
)  # fmt: skip
def test_maps_by_two_keys(case: str, value: Json, errors: list[str]) -> None:
    assert errors_at_l(map_of("j", "k"), value) == errors, case


@rows(
    ("case", "schema", "value", "errors"),
    [
        ("atomic lists may repeat", ATOMIC, ["a", "a"], []),
        ("lists without a type, too", {"type": "array", "items": {}}, ["a", "a"], []),
        ("sets in lists", {"type": "array", "items": SET}, [["a"], ["b", "b"]], [duplicate("l[1][1]", '"b"')]),
        ("sets in properties", {"properties": {"s": SET}}, {"s": ["b", "b"]}, [duplicate("l.s[1]", '"b"')]),
        ("sets in values", {"additionalProperties": SET}, {"x/y": ["b", "b"]}, [duplicate("l[x/y][1]", '"b"')]),
        ("a property without a name", {"properties": {"": SET}}, {"": ["b", "b"]}, [duplicate("l[][1]", '"b"')]),
        ("sets in maps", map_of("k", s=SET), [{"k": "a", "s": ["b", "b"]}], [duplicate("l[0].s[1]", '"b"')]),
        ("the map's own errors first", map_of("k", s=SET), [{"k": "a", "s": ["b", "b"]}, {"k": "a"}], [
            duplicate("l[1]", '{"k":"a"}'), duplicate("l[0].s[1]", '"b"'),
        ]),
        ("below an item of the wrong type", {"type": "array", "items": SET}, ["x", {"y": ["z", "z"]}], []),
    ],
)  # fmt: skip
def test_nesting(case: str, schema: Object, value: Json, errors: list[str]) -> None:
    assert errors_at_l(schema, value) == errors, case


def test_fields_stand_below_a_path() -> None:
    schema = parse({"type": "object", "properties": {"s": SET}})
    assert [error.field for error in validate({"s": ["a", "a"]}, schema, "status")] == ["status.s[1]"]
    assert [error.field for error in validate(["a", "a"], parse(SET), "status")] == ["status[1]"]


N = 100_000


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "schema", "value", "count"),
    [
        ("a set of texts", SET, [str(n) for n in range(N)], 0),
        ("a set of pairs", SET, [str(n // 2) for n in range(N)], MAX_FOUND),
        ("one element all over", SET, ["x"] * N, 1),
        ("a set of objects", SET, [{"a": n} for n in range(N)], 0),
        ("a map by one key", map_of("k"), [{"k": str(n)} for n in range(N)], 0),
        ("a map by two keys", map_of("j", "k"), [{"j": str(n), "k": n // 2} for n in range(N)], 0),
    ],
)
def test_time_is_linear(case: str, schema: Object, value: list[Json], count: int) -> None:
    root = parse({"type": "object", "properties": {"l": schema}})
    start = time.process_time()
    assert len(validate({"l": value}, root)) == count, case
    assert time.process_time() - start < 5  # at most 0.7 s


@pytest.mark.slow
def test_list_type_validation_stops_at_the_limit_of_errors() -> None:
    schema = parse({"type": "array", "items": SET})
    assert len(validate([["a", "a"]] * (MAX_FOUND + 10), schema)) == MAX_FOUND
