"""What changed between two values of a type."""

from __future__ import annotations

import json
from typing import Any

from noxu.apply.comparison import NO_CHANGE, Comparison, compare, same
from noxu.apply.fieldset import recursive_difference
from noxu.apply.types import Type, of_schema
from noxu.schema.structural import Structural, parse
from tests.rows import rows

STRING = {"type": "string"}
INTEGER = {"type": "integer"}
PRESERVE = {"x-kubernetes-preserve-unknown-fields": True}
ITEM = {"type": "object", "properties": {"k": STRING, "v": STRING, "set": {"type": "array", "x-kubernetes-list-type": "set", "items": STRING}}}  # fmt: skip
KIND = of_schema(
    parse({
        "type": "object",
        "properties": {
            "a": INTEGER,
            "s": STRING,
            "m": {"type": "object", "additionalProperties": STRING},
            "o": {"type": "object", "properties": {"x": INTEGER, "y": {"type": "object", "properties": {"z": INTEGER}}}},
            "atom": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": INTEGER},
            "lat": {"type": "array", "items": INTEGER},
            "set": {"type": "array", "x-kubernetes-list-type": "set", "items": STRING},
            "lm": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": ITEM},
            "any": PRESERVE,
            "open": {"type": "object", **PRESERVE, "properties": {"x": INTEGER}},
        },
    })
)  # fmt: skip

Fields = dict[str, Any]
NOTHING: Fields = {}

CHANGES: list[tuple[str, Any, Any, dict[str, Fields]]] = [
    ("nothing", {"a": 1, "m": {"x": "y"}}, {"a": 1, "m": {"x": "y"}}, {}),
    ("the order of keys", {"a": 1, "s": "x"}, {"s": "x", "a": 1}, {}),
    ("the order of items", {"set": ["a", "b"]}, {"set": ["b", "a"]}, {}),
    ("the order of an atomic list", {"lat": [1, 2]}, {"lat": [2, 1]}, {"modified": {"f:lat": {}}}),
    ("a scalar", {"a": 1}, {"a": 2}, {"modified": {"f:a": {}}}),
    ("a number's type", {"a": 1}, {"a": 1.0}, {}),
    ("a scalar to null", {"a": 1}, {"a": None}, {"modified": {"f:a": {}}}),
    ("a new scalar", {}, {"a": 1}, {"added": {"f:a": {}}}),
    ("a new null", {}, {"a": None}, {"added": {"f:a": {}}}),
    ("a scalar gone", {"a": 1}, {}, {"removed": {"f:a": {}}}),
    ("a new struct", {}, {"o": {"y": {"z": 1}}}, {"added": {"f:o": {".": {}, "f:y": {".": {}, "f:z": {}}}}}),
    ("a struct gone", {"o": {"y": {"z": 1}}}, {}, {"removed": {"f:o": {".": {}, "f:y": {".": {}, "f:z": {}}}}}),
    ("a new empty struct", {}, {"o": {}}, {"added": {"f:o": {}}}),
    ("a field of a struct", {"o": {"x": 1}}, {"o": {"x": 1, "y": {"z": 1}}}, {"added": {"f:o": {"f:y": {".": {}, "f:z": {}}}}}),
    ("a struct emptied", {"o": {"x": 1}}, {"o": {}}, {"removed": {"f:o": {"f:x": {}}}}),
    ("a struct filled", {"o": {}}, {"o": {"x": 1}}, {"added": {"f:o": {"f:x": {}}}}),
    ("an empty struct to null", {"o": {}}, {"o": None}, {"modified": {"f:o": {}}}),
    ("null to an empty struct", {"o": None}, {"o": {}}, {"modified": {"f:o": {}}}),
    ("null to a struct", {"o": None}, {"o": {"x": 1}}, {"added": {"f:o": {"f:x": {}}}}),
    ("a struct to null", {"o": {"x": 1}}, {"o": None}, {"removed": {"f:o": {"f:x": {}}}}),
    ("keys of a map", {"m": {"x": "1", "y": "1", "z": "1"}}, {"m": {"x": "1", "y": "2", "w": "1"}},
     {"modified": {"f:m": {"f:y": {}}}, "added": {"f:m": {"f:w": {}}}, "removed": {"f:m": {"f:z": {}}}}),
    ("an atomic map", {"atom": {"x": 1}}, {"atom": {"x": 1, "y": 2}}, {"modified": {"f:atom": {}}}),
    ("an atomic map's order", {"atom": {"x": 1, "y": 2}}, {"atom": {"y": 2, "x": 1}}, {}),
    ("an atomic map to null", {"atom": {"x": 1}}, {"atom": None}, {"modified": {"f:atom": {}}}),
    ("an atomic list to null", {"lat": []}, {"lat": None}, {"modified": {"f:lat": {}}}),
    ("a new set", {}, {"set": ["a"]}, {"added": {"f:set": {".": {}, 'v:"a"': {}}}}),
    ("a new empty set", {}, {"set": []}, {"added": {"f:set": {}}}),
    ("an empty set gone", {"set": []}, {}, {"removed": {"f:set": {}}}),
    ("a set emptied", {"set": ["a"]}, {"set": []}, {"removed": {"f:set": {'v:"a"': {}}}}),
    ("an empty set to null", {"set": []}, {"set": None}, {"modified": {"f:set": {}}}),
    ("items of a set", {"set": ["a", "b"]}, {"set": ["b", "c"]},
     {"removed": {"f:set": {'v:"a"': {}}}, "added": {"f:set": {'v:"c"': {}}}}),
    ("a field of an item", {"lm": [{"k": "a", "v": "1"}]}, {"lm": [{"k": "a", "v": "2"}]},
     {"modified": {"f:lm": {'k:{"k":"a"}': {"f:v": {}}}}}),
    ("a new item", {"lm": [{"k": "a"}]}, {"lm": [{"k": "b"}, {"k": "a"}]},
     {"added": {"f:lm": {'k:{"k":"b"}': {".": {}, "f:k": {}}}}}),
    ("an item of an item", {"lm": [{"k": "a", "set": ["x"]}]}, {"lm": [{"k": "a", "set": ["y"]}]},
     {"removed": {"f:lm": {'k:{"k":"a"}': {"f:set": {'v:"x"': {}}}}}, "added": {"f:lm": {'k:{"k":"a"}': {"f:set": {'v:"y"': {}}}}}}),
    ("a duplicate item in both", {"set": ["a", "a"]}, {"set": ["a", "a", "a"]}, {"modified": {"f:set": {'v:"a"': {}}}}),
    ("a duplicate item, unchanged", {"lm": [{"k": "a"}, {"k": "a", "v": "1"}]}, {"lm": [{"k": "a"}, {"k": "a", "v": "1"}]}, {}),
    ("a duplicate item in another order", {"lm": [{"k": "a"}, {"k": "a", "v": "1"}]},
     {"lm": [{"k": "a", "v": "1"}, {"k": "a"}]}, {"modified": {"f:lm": {'k:{"k":"a"}': {}}}}),
    ("an item twice now", {"lm": [{"k": "a", "v": "1"}]}, {"lm": [{"k": "a"}, {"k": "a"}]},
     {"removed": {"f:lm": {'k:{"k":"a"}': {".": {}, "f:k": {}, "f:v": {}}}}, "added": {"f:lm": {'k:{"k":"a"}': {}}}}),
    ("an item twice no more", {"lm": [{"k": "a"}, {"k": "a"}]}, {"lm": [{"k": "a", "v": "1"}]},
     {"removed": {"f:lm": {'k:{"k":"a"}': {}}}, "added": {"f:lm": {'k:{"k":"a"}': {".": {}, "f:k": {}, "f:v": {}}}}}),
    ("an item twice, and gone", {"set": ["a", "a", "b"]}, {"set": ["b"]}, {"removed": {"f:set": {'v:"a"': {}}}}),
    ("a new item twice", {"set": ["b"]}, {"set": ["a", "b", "a"]}, {"added": {"f:set": {'v:"a"': {}}}}),
    ("what is deduced", {"any": {"a": {"b": 1}, "c": [1]}}, {"any": {"a": {"b": 2, "d": {"e": 1}}, "c": [2]}},
     {"modified": {"f:any": {"f:a": {"f:b": {}}, "f:c": {}}}, "added": {"f:any": {"f:a": {"f:d": {".": {}, "f:e": {}}}}}}),
    ("what is deduced, emptied", {"any": {"a": {"b": 1}}}, {"any": {"a": {}}}, {"removed": {"f:any": {"f:a": {"f:b": {}}}}}),
    ("what is deduced, gone", {"any": {"a": {"b": 1}, "c": 1}}, {"any": {"c": 1}},
     {"removed": {"f:any": {"f:a": {".": {}, "f:b": {}}}}}),
    ("empty maps that are deduced", {"any": {"a": {}}}, {"any": {"a": {}}}, {}),
    ("a scalar to a map", {"any": {"a": 1}}, {"any": {"a": {"b": 1}}},
     {"modified": {"f:any": {"f:a": {}}}, "added": {"f:any": {"f:a": {"f:b": {}}}}}),
    ("a map to a scalar", {"any": {"a": {"b": 1}}}, {"any": {"a": 1}},
     {"modified": {"f:any": {"f:a": {}}}, "removed": {"f:any": {"f:a": {"f:b": {}}}}}),
    ("a map to a list", {"any": {"b": 1}}, {"any": [1]}, {"modified": {"f:any": {}}, "removed": {"f:any": {"f:b": {}}}}),
    ("a list to a map", {"any": [1]}, {"any": {"b": 1}}, {"modified": {"f:any": {}}, "added": {"f:any": {"f:b": {}}}}),
    ("a list to a scalar", {"any": [1]}, {"any": 1}, {"modified": {"f:any": {}}}),
    ("null to a scalar", {"any": None}, {"any": 1}, {"modified": {"f:any": {}}}),
    ("null to a map", {"any": None}, {"any": {"a": 1}}, {"added": {"f:any": {"f:a": {}}}}),
    ("null to a deduced map", {"any": {"n": None}}, {"any": {"n": {"a": 1}}}, {"added": {"f:any": {"f:n": {"f:a": {}}}}}),
    ("true to 1", {"any": True}, {"any": 1}, {"modified": {"f:any": {}}}),
    ("a declared field among open ones", {"open": {"x": 1, "y": 1}}, {"open": {"x": 2, "z": 1}},
     {"modified": {"f:open": {"f:x": {}}}, "removed": {"f:open": {"f:y": {}}}, "added": {"f:open": {"f:z": {}}}}),
]  # fmt: skip


@rows(("old", "new", "expected"), [row[1:] for row in CHANGES], ids=[row[0] for row in CHANGES])
def test_changes(old: Any, new: Any, expected: dict[str, Fields]) -> None:
    before = json.dumps([old, new])
    expected_changes = Comparison(expected.get("removed", {}), expected.get("modified", {}), expected.get("added", {}))
    assert compare(old, new, KIND) == expected_changes
    assert json.dumps([old, new]) == before


@rows(("old", "new"), [row[1:3] for row in CHANGES], ids=[row[0] for row in CHANGES])
def test_backwards_additions_are_removals(old: Any, new: Any) -> None:
    there, back = compare(old, new, KIND), compare(new, old, KIND)
    assert (there.added, there.removed, there.modified) == (back.removed, back.added, back.modified)


def test_the_same_object_has_not_changed() -> None:
    value = {"m": {"a": "b"}}
    assert compare(value, value, KIND) is NO_CHANGE
    assert compare({}, {}, KIND) is NO_CHANGE


def test_written_fields_are_the_added_and_the_modified_ones() -> None:
    assert Comparison({"f:r": {}}, {"f:m": {}}, {"f:a": {}}).written == {"f:m": {}, "f:a": {}}


def test_a_comparison_may_be_blind() -> None:
    status = {"f:status": {"f:x": {}}}
    change = Comparison(status, {**status, "f:m": {}}, {"f:a": {}})
    blind = change.filtered(lambda fields: recursive_difference(fields, {"f:status": {}}))
    assert blind == Comparison({}, {"f:m": {}}, {"f:a": {}})


SAME: list[tuple[str, Any, Any, bool]] = [
    ("numbers of two types", 1, 1.0, True),
    ("other numbers", 1, 1.5, False),
    ("a number and a boolean", 1, True, False),
    ("a boolean and a number", 0.0, False, False),
    ("null and an empty map", None, {}, False),
    ("maps in another order", {"a": [1, {"b": 2}], "c": None}, {"c": None, "a": [1.0, {"b": 2}]}, True),
    ("a map with another key", {"a": 1}, {"b": 1}, False),
    ("a map with more", {"a": 1}, {"a": 1, "b": None}, False),
    ("lists in another order", [1, 2], [2, 1], False),
    ("lists of two lengths", [1], [1, 1], False),
    ("a string and a number", "1", 1, False),
]


@rows(("left", "right", "expected"), [row[1:] for row in SAME], ids=[row[0] for row in SAME])
def test_sameness(left: Any, right: Any, expected: bool) -> None:
    assert same(left, right) is expected
    assert same(right, left) is expected
    assert same([left], [right]) is expected


def deep(depth: int, end: Any) -> Any:
    for _ in range(depth):
        end = {"a": end}
    return end


def test_depth_does_not_matter_where_types_end() -> None:
    depth = 10_000
    change = compare({"any": deep(depth, 1)}, {"any": deep(depth, 2)}, KIND)
    assert change.added == change.removed == {}
    node, levels = change.modified["f:any"], 0
    while node:
        node = node["f:a"]
        levels += 1
    assert levels == depth
    assert compare({"any": deep(depth, 1)}, {"any": deep(depth, 1)}, KIND) is NO_CHANGE
    assert same(deep(depth, [1]), deep(depth, [1]))


def test_schemas_of_four_hundred_levels_are_no_problem() -> None:
    schema = Structural(type="integer")
    for _ in range(400):
        schema = Structural(type="object", properties={"a": schema})
    kind: Type = of_schema(schema)
    assert compare(deep(400, 1), deep(400, 2), kind).modified.keys() == {"f:a"}


def test_key_order_and_number_types_make_no_difference() -> None:
    kind = of_schema(parse({"type": "object", "x-kubernetes-preserve-unknown-fields": True}))
    old = {"spec": {"a": {"x": 1, "y": [1]}}}
    assert compare(old, {"spec": {"a": {"y": [1.0], "x": 1.0}}}, kind) == NO_CHANGE
    assert compare(old, {"spec": {"a": {"x": True, "y": [1]}}}, kind) != NO_CHANGE
