"""Skeletons: the examples of the provisional pruning KEP, and schemas without value validations."""

from __future__ import annotations

import pytest

from noxu.schema.pruning import prune
from noxu.schema.skeleton import drop, merge, restriction_1_violations, skeleton, strip
from noxu.schema.structural import MISSING, NO_VALIDATION, parse
from noxu.values import Json, Object
from tests.rows import rows

EXAMPLE_1 = {"properties": {"a": {}, "b": {"type": "string"}, "c": {"not": {}}}}
EXAMPLE_2 = {"anyOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}]}
EXAMPLE_3 = {
    "properties": {"a": {}, "b": {"type": "string", "properties": {"x": {}}}},
    "anyOf": [{"properties": {"c": {}}}, {"properties": {"d": {"not": {}}}}],
}
EXAMPLE_4 = {
    "properties": {
        "a": {"type": "string", "pattern": "<some-long-regex-for-ips>", "format": "ip"},
        "b": {"properties": {"x": {}, "y": {}}},
    }
}
EXAMPLE_5 = {
    "anyOf": [
        {"properties": {"a": {"type": "string"}}},
        {"properties": {"a": {"type": "integer"}, "b": {"type": "string"}}},
    ],
    "properties": {"c": {}},
}
EXAMPLE_6 = {
    "anyOf": [{"properties": {"a": {"type": "string"}}}, {"additionalProperties": {"type": "integer"}}],
}


def test_example_1_prunes_fields_that_are_in_no_properties() -> None:
    value = {"a": 1, "c": 3, "d": 4}
    assert prune(value, parse(skeleton(EXAMPLE_1))) == ["d"]
    assert value == {"a": 1, "c": 3}


def test_example_2_knows_the_fields_of_all_branches() -> None:
    value = {"a": 1, "b": 2, "c": 3}
    assert prune(value, parse(skeleton(EXAMPLE_2))) == ["c"]
    assert value == {"a": 1, "b": 2}


def test_example_3_specifies_fields_in_branches_too() -> None:
    value = {"a": 1, "b": {"x": 1, "y": 1}, "c": 1, "d": 1, "e": 1}
    assert prune(value, parse(skeleton(EXAMPLE_3))) == ["b.y", "e"]


def test_example_4_keeps_structure_and_drops_value_validations() -> None:
    assert skeleton(EXAMPLE_4) == {"properties": {"a": {"type": "string"}, "b": {"properties": {"x": {}, "y": {}}}}}


def test_example_5_keeps_types_that_all_agree_on() -> None:
    assert skeleton(EXAMPLE_5) == {"properties": {"c": {}, "a": {}, "b": {"type": "string"}}}


def test_example_6_is_a_struct_and_a_map_at_once() -> None:
    found = skeleton(EXAMPLE_6)
    assert found.keys() == {"properties", "additionalProperties"}
    assert found == {"properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "integer"}}
    assert restriction_1_violations(EXAMPLE_6) == [""]


@pytest.mark.parametrize("schema", [EXAMPLE_1, EXAMPLE_2, EXAMPLE_3, EXAMPLE_4, EXAMPLE_5])
def test_the_other_examples_are_not(schema: Object) -> None:
    assert restriction_1_violations(schema) == []


SKELETONS: list[tuple[str, Object, Object]] = [
    ("nothing", {}, {}),
    ("only value validations", {"minimum": 1, "enum": [1], "required": ["a"], "nullable": True}, {}),
    ("a type that a branch does not repeat is dropped", {"type": "object", "anyOf": [{}]}, {}),
    ("a type that it repeats stays", {"type": "object", "anyOf": [{"type": "object"}]}, {"type": "object"}),
    ("not is a branch", {"not": {"properties": {"a": {"type": "string"}}}}, {"properties": {"a": {"type": "string"}}}),
    ("branches of branches", {"allOf": [{"oneOf": [{"properties": {"a": {}}}]}]}, {"properties": {"a": {}}}),
    ("branches below fields", {"properties": {"a": {"anyOf": [{"properties": {"b": {}}}]}}}, {"properties": {"a": {"properties": {"b": {}}}}}),
    ("fields of the same name are merged", {"properties": {"a": {"properties": {"b": {}}}}, "allOf": [{"properties": {"a": {"properties": {"c": {}}}}}]}, {"properties": {"a": {"properties": {"b": {}, "c": {}}}}}),
    ("items are merged", {"items": {"properties": {"a": {}}}, "allOf": [{"items": {"properties": {"b": {}}}}]}, {"items": {"properties": {"a": {}, "b": {}}}}),
    ("lists of items, one by one", {"items": [{"type": "string"}], "allOf": [{"items": [{"type": "string"}, {"type": "integer"}]}]}, {"items": [{"type": "string"}, {"type": "integer"}]}),
    ("items for all and for each", {"items": {"properties": {"a": {}}}, "allOf": [{"items": [{"properties": {"b": {}}}]}]}, {"items": [{"properties": {"a": {}, "b": {}}}]}),
    ("patterns", {"patternProperties": {"^x": {"minimum": 1}}, "allOf": [{"patternProperties": {"^x": {"properties": {"a": {}}}, "y": {}}}]}, {"patternProperties": {"^x": {"properties": {"a": {}}}, "y": {}}}),
    ("additional items", {"additionalItems": {"pattern": "x", "type": "string"}}, {"additionalItems": {"type": "string"}}),
    ("true is like an empty schema", {"additionalProperties": True, "allOf": [{"additionalProperties": {"properties": {"a": {}}}}]}, {"additionalProperties": {"properties": {"a": {}}}}),
    ("false gives way", {"additionalProperties": False, "allOf": [{"additionalProperties": {"type": "string"}}]}, {"additionalProperties": {"type": "string"}}),
    ("false alone stays", {"additionalProperties": False, "allOf": [{"additionalProperties": False}]}, {"additionalProperties": False}),
]  # fmt: skip


@rows(("schema", "expected"), [row[1:] for row in SKELETONS], ids=[row[0] for row in SKELETONS])
def test_skeletons(schema: Object, expected: Object) -> None:
    assert skeleton(schema) == expected
    assert skeleton(expected) == expected


def test_dropping_and_merging() -> None:
    assert drop({"type": "object", "anyOf": [{"properties": {"a": {}}}], "minProperties": 1}) == {"type": "object"}
    assert merge({"type": "object"}, {"type": "object"}) == {"type": "object"}
    assert merge({"type": "object"}) == {"type": "object"}
    assert merge({"type": "object"}, {"type": "array"}, {}) == {}


POLYMORPHIC: list[tuple[str, Object, list[str]]] = [
    ("below a field", {"properties": {"a": EXAMPLE_6}}, ["properties[a]"]),
    ("with patterns", {"properties": {"a": {}}, "patternProperties": {"x": {}}}, [""]),
    ("no other fields is no map", {"properties": {"a": {}}, "additionalProperties": False}, []),
    ("in items, values and patterns", {"items": EXAMPLE_6, "additionalProperties": EXAMPLE_6, "patternProperties": {"x": EXAMPLE_6}}, ["patternProperties[x]", "additionalProperties", "items"]),
    ("in one of several items", {"items": [{}, EXAMPLE_6]}, ["items[1]"]),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "paths"), [row[1:] for row in POLYMORPHIC], ids=[row[0] for row in POLYMORPHIC])
def test_restriction_1(schema: Object, paths: list[str]) -> None:
    assert restriction_1_violations(schema) == paths


def test_stripping_leaves_the_spine() -> None:
    extensions: dict[str, Json] = {
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["k"],
    }
    schema = {
        "type": "object",
        "required": ["a"],
        "x-kubernetes-validations": [{"rule": "true"}],
        "properties": {
            "a": {"type": "string", "default": "x", "nullable": True, "minLength": 1, "title": "t"},
            "l": {"type": "array", "maxItems": 3, "items": {"type": "object", "minProperties": 1}, **extensions},
            "m": {"type": "object", "additionalProperties": {"type": "string", "anyOf": [{"pattern": "x"}]}},
            "t": {"type": "object", "additionalProperties": True},
        },
    }
    stripped = strip(parse(schema))
    a, items, values = stripped.properties["a"], stripped.properties["l"].items, stripped.properties["m"].values
    assert items is not None
    assert values is not None
    for node in (stripped, *stripped.properties.values(), items, values):
        assert node.validation is NO_VALIDATION
        assert node.rules == ()
    assert (a.type, a.default, a.nullable, a.title) == ("string", "x", True, "t")
    assert stripped.properties["l"].list_map_keys == ("k",)
    assert stripped.properties["t"].additional_properties is True
    assert stripped.default is MISSING
