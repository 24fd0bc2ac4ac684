"""Merging a configuration into a live value, and taking fields out of one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from noxu.apply.merging import merge, remove
from noxu.apply.types import of_schema
from noxu.schema.structural import Structural, parse
from tests.rows import rows

STRING = {"type": "string"}
INTEGER = {"type": "integer"}
PRESERVE = {"x-kubernetes-preserve-unknown-fields": True}
ITEM = {
    "type": "object",
    "properties": {"k": STRING, "v": STRING, "o": {"type": "object", "properties": {"x": INTEGER}}},
}
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
        },
    })
)  # fmt: skip

MERGED: list[tuple[str, Any, Any, Any]] = [
    ("a leaf", {"a": 1, "s": "x"}, {"a": 2}, {"a": 2, "s": "x"}),
    ("a new leaf", {"a": 1}, {"s": "x"}, {"a": 1, "s": "x"}),
    ("a leaf to null", {"a": 1}, {"a": None}, {"a": None}),
    ("a struct", {"o": {"x": 1, "y": {"z": 1}}}, {"o": {"y": {"z": 2}}}, {"o": {"x": 1, "y": {"z": 2}}}),
    ("a new struct", {}, {"o": {"y": {}}}, {"o": {"y": {}}}),
    ("an empty struct does not empty one", {"o": {"x": 1}}, {"o": {}}, {"o": {"x": 1}}),
    ("null does not empty a struct", {"o": {"x": 1}}, {"o": None}, {"o": {"x": 1}}),
    ("null replaces an empty one", {"o": {}}, {"o": None}, {"o": None}),
    ("an empty struct replaces null", {"o": None}, {"o": {}}, {"o": {}}),
    ("a struct replaces null", {"o": None}, {"o": {"x": 1}}, {"o": {"x": 1}}),
    ("keys of a map", {"m": {"a": "1", "b": "1"}}, {"m": {"b": "2", "c": "2"}}, {"m": {"a": "1", "b": "2", "c": "2"}}),
    ("an atomic map", {"atom": {"a": 1}}, {"atom": {"b": 2}}, {"atom": {"b": 2}}),
    ("an atomic map to an empty one", {"atom": {"a": 1}}, {"atom": {}}, {"atom": {}}),
    ("an atomic list", {"lat": [1, 2]}, {"lat": [3]}, {"lat": [3]}),
    ("an empty set does not empty one", {"set": ["a"]}, {"set": []}, {"set": ["a"]}),
    ("null does not empty a set", {"set": ["a"]}, {"set": None}, {"set": ["a"]}),
    ("null replaces an empty set", {"set": []}, {"set": None}, {"set": None}),
    ("an empty set replaces null", {"set": None}, {"set": []}, {"set": []}),
    ("items of a list-map", {"lm": [{"k": "a", "v": "1", "o": {"x": 1}}]}, {"lm": [{"k": "a", "o": {"x": 2}}]},
     {"lm": [{"k": "a", "v": "1", "o": {"x": 2}}]}),
    ("a duplicate item is replaced by one", {"lm": [{"k": "a", "v": "1"}, {"k": "b"}, {"k": "a", "v": "2"}]},
     {"lm": [{"k": "a", "o": {"x": 1}}]}, {"lm": [{"k": "a", "o": {"x": 1}}, {"k": "b"}]}),
    ("duplicate items, untouched", {"set": ["a", "a", "b"]}, {"set": ["c"]}, {"set": ["a", "a", "b", "c"]}),
    ("what is deduced", {"any": {"a": {"b": 1, "c": 1}, "l": [1]}}, {"any": {"a": {"b": 2}, "l": [2]}},
     {"any": {"a": {"b": 2, "c": 1}, "l": [2]}}),
    ("what is deduced and empty", {"any": {"a": {"b": 1}}}, {"any": {"a": {}}}, {"any": {"a": {"b": 1}}}),
    ("a scalar to a map", {"any": 1}, {"any": {"a": 1}}, {"any": {"a": 1}}),
    ("a map to a scalar", {"any": {"a": 1}}, {"any": 1}, {"any": 1}),
    ("a map to a list", {"any": {"a": {"b": 1}}}, {"any": {"a": [1]}}, {"any": {"a": [1]}}),
    ("a list to null", {"any": [1]}, {"any": None}, {"any": None}),
    ("a deduced map to null", {"any": {"a": {"b": 1}}}, {"any": {"a": None}}, {"any": {"a": {"b": 1}}}),
    ("a deduced scalar to null", {"any": {"a": 1}}, {"any": {"a": None}}, {"any": {"a": None}}),
]  # fmt: skip


@rows(("live", "config", "expected"), [row[1:] for row in MERGED], ids=[row[0] for row in MERGED])
def test_merging(live: Any, config: Any, expected: Any) -> None:
    before = json.dumps([live, config])
    assert merge(live, config, KIND) == expected
    assert json.dumps([live, config]) == before


def test_the_order_of_keys_is_the_live_ones() -> None:
    assert json.dumps(merge({"s": "x", "a": 1}, {"m": {}, "a": 2}, KIND)) == '{"s": "x", "a": 2, "m": {}}'


ORDERS: list[tuple[str, str, str, str]] = [
    ("the same order", "abc", "abc", "abc"),
    ("a part of it", "abcd", "bd", "abcd"),
    ("one at the end", "abc", "d", "abcd"),
    ("the configuration's order", "abc", "cba", "cba"),
    ("the last one first", "abc", "c", "abc"),
    ("others come before what they stood before", "axbyc", "cba", "xycba"),
    ("new ones among old ones", "abc", "adc", "abdc"),
    ("new ones before old ones", "ab", "ca", "cab"),
    ("new ones between", "abc", "bdc", "abdc"),
    ("two swapped around others", "1a2b3", "ba", "12b3a"),
    ("everything new", "ab", "cd", "abcd"),
    ("nothing there", "", "ba", "ba"),
    ("one twice in the live list", "aab", "ba", "ba"),
    ("one twice, untouched", "aab", "b", "aab"),
    ("one twice, between", "abca", "ca", "bca"),
]


@rows(("live", "config", "expected"), [row[1:] for row in ORDERS], ids=[row[0] for row in ORDERS])
def test_the_order_of_merged_lists(live: str, config: str, expected: str) -> None:
    assert merge({"set": list(live)}, {"set": list(config)}, KIND) == {"set": list(expected)}
    maps = merge({"lm": [{"k": k} for k in live]}, {"lm": [{"k": k} for k in config]}, KIND)
    assert [item["k"] for item in maps["lm"]] == list(expected)


def test_unchanged_parts_are_shared_with_the_live_value() -> None:
    live = {"o": {"x": 1}, "lm": [{"k": "a", "o": {"x": 1}}, {"k": "b"}], "any": {"a": {"b": 1}, "c": {}}, "lat": [1]}
    same = json.loads(json.dumps(live))
    assert merge(live, same, KIND) is live
    assert merge(live, {"lat": [1], "lm": [{"k": "b"}]}, KIND) is live
    merged = merge(live, {"a": 1, "any": {"a": {"b": 2}}, "lm": [{"k": "c"}]}, KIND)
    assert merged["o"] is live["o"]
    assert merged["lm"][0] is live["lm"][0]  # type: ignore[index]
    assert merged["any"]["c"] is live["any"]["c"]  # type: ignore[call-overload, index]


def test_a_number_of_another_type_is_another_value() -> None:
    assert type(merge({"a": 1}, {"a": 1.0}, KIND)["a"]) is float


LIVE: Any = {
    "a": 1,
    "m": {"x": "1", "y": "2"},
    "o": {"x": 1, "y": {"z": 1}},
    "atom": {"x": 1},
    "lat": [1],
    "set": ["a", "b"],
    "lm": [{"k": "a", "v": "1", "o": {"x": 1}}, {"k": "b"}],
    "any": {"a": {"b": 1}, "l": [1], "n": None},
}

REMOVED: list[tuple[str, Any, dict[str, Any]]] = [
    ("a leaf", {"f:a": {}}, {"a": ...}),
    ("what is not there", {"f:zz": {}, "f:m": {"f:zz": {}}}, {}),
    ("a struct and all in it", {"f:o": {".": {}, "f:x": {}}}, {"o": ...}),
    ("a field of a struct", {"f:o": {"f:x": {}}}, {"o": {"y": {"z": 1}}}),
    ("the last field of a struct leaves null", {"f:o": {"f:y": {"f:z": {}}}}, {"o": {"x": 1, "y": None}}),
    ("all keys of a map leave null", {"f:m": {"f:x": {}, "f:y": {}}}, {"m": None}),
    ("parts of an atomic map leave null", {"f:atom": {"f:x": {}}}, {"atom": None}),
    ("parts of an atomic list leave null", {"f:lat": {"i:0": {}}}, {"lat": None}),
    ("parts of a scalar leave it", {"f:a": {"f:x": {}}}, {}),
    ("an item of a set", {"f:set": {'v:"a"': {}}}, {"set": ["b"]}),
    ("all items of a set leave null", {"f:set": {'v:"a"': {}, 'v:"b"': {}}}, {"set": None}),
    ("an item of a list-map", {"f:lm": {'k:{"k":"a"}': {".": {}, "f:k": {}}}}, {"lm": [{"k": "b"}]}),
    ("a field of an item", {"f:lm": {'k:{"k":"a"}': {"f:v": {}, "f:o": {"f:x": {}}}}}, {"lm": [{"k": "a", "o": None}, {"k": "b"}]}),
    ("all fields of an item leave null", {"f:lm": {'k:{"k":"b"}': {"f:k": {}}}}, {"lm": [LIVE["lm"][0], None]}),
    ("what is deduced", {"f:any": {"f:a": {"f:b": {}}}}, {"any": {"a": None, "l": [1], "n": None}}),
    ("deduced lists and nulls", {"f:any": {"f:l": {"i:0": {}}, "f:n": {"f:x": {}}}}, {"any": {"a": {"b": 1}, "l": None, "n": None}}),
    ("members that are deduced", {"f:any": {"f:a": {".": {}, "f:b": {}}, "f:n": {}}}, {"any": {"l": [1]}}),
    ("everything that is deduced", {"f:any": {"f:a": {}, "f:l": {}, "f:n": {}}}, {"any": None}),
]  # fmt: skip


@rows(("fields", "changes"), [row[1:] for row in REMOVED], ids=[row[0] for row in REMOVED])
def test_removing(fields: Any, changes: dict[str, Any]) -> None:
    before = json.dumps([LIVE, fields])
    assert remove(LIVE, fields, KIND) == {k: v for k, v in (LIVE | changes).items() if v is not ...}
    assert json.dumps([LIVE, fields]) == before


def test_removing_from_an_empty_container_leaves_null() -> None:
    fields = {"f:m": {"f:a": {}}, "f:set": {'v:"a"': {}}, "f:lm": {'k:{"k":"a"}': {}}, "f:any": {"f:a": {"f:b": {}}}}
    assert remove({"m": {}, "set": [], "lm": None, "any": {"a": {}}}, fields, KIND) == {
        "m": None,
        "set": None,
        "lm": None,
        "any": {"a": None},
    }
    assert remove({"a": 1}, {"f:a": {}}, KIND) is None


def deep(depth: int, end: Any) -> Any:
    for _ in range(depth):
        end = {"a": end, "b": 1}
    return end


@pytest.mark.slow
def test_depth_does_not_matter_where_types_end() -> None:
    depth = 10_000
    live, config = {"any": deep(depth, 1)}, {"any": deep(depth, 2)}
    merged = merge(live, config, KIND)
    fields: Any = {}
    for _ in range(depth):
        fields = {"f:a": fields}
    pruned = remove(merged, {"f:any": fields}, KIND)
    one, other, levels = merged["any"], pruned["any"], 0
    while isinstance(one["a"], dict):
        one, other, levels = one["a"], other["a"], levels + 1
    assert levels == depth - 1
    assert one == {"a": 2, "b": 1}
    assert other == {"b": 1}
    assert merge(live, {"any": deep(depth, 1)}, KIND) is live


def test_schemas_of_four_hundred_levels_are_no_problem() -> None:
    schema = Structural(type="integer")
    fields: Any = {}
    for _ in range(400):
        schema = Structural(type="object", properties={"a": schema, "b": Structural(type="integer")})
        fields = {"f:a": fields}
    kind = of_schema(schema)
    assert merge(deep(400, 1), deep(400, 2), kind).keys() == {"a", "b"}
    assert remove(deep(400, 1), fields, kind).keys() == {"a", "b"}
