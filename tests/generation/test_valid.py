"""Values that a schema and its rules accept."""

from __future__ import annotations

import re
from random import Random

import pytest

from noxu.generation.valid import CannotGenerate, ValueMaker, literals, mentioned, refusals
from noxu.schema.structural import parse
from noxu.values import Json, Object
from tests.rows import rows

A_AND_B: Object = {"a": {"type": "integer"}, "b": {"type": "string"}}
TYPES = ["Local", "Remote", "Shared", "None"]


def rule(text: str, **schema: Json) -> Object:
    return {"type": "object", **schema, "x-kubernetes-validations": [{"rule": text, "message": "refused"}]}


@rows(
    "name, schema",
    [
        ("scalars", {"type": "object", "required": ["a", "b"], "properties": A_AND_B}),
        ("bounds", {"type": "integer", "minimum": 3, "maximum": 3}),
        ("negative numbers", {"type": "integer", "maximum": -7}),
        ("multiples", {"type": "integer", "minimum": 5, "multipleOf": 4}),
        ("a small interval", {"type": "number", "minimum": 0.25, "maximum": 0.5}),
        ("a set", {"type": "array", "x-kubernetes-list-type": "set", "minItems": 3, "items": {"type": "string"}}),
        ("a map of items", {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"], "minItems": 2,
         "items": {"type": "object", "required": ["a"], "properties": A_AND_B}}),
        ("a map", {"type": "object", "minProperties": 12, "additionalProperties": {"type": "boolean"}}),
        ("at least two fields", {"type": "object", "minProperties": 2, "properties": A_AND_B}),
        ("at most one field", {"type": "object", "maxProperties": 1, "properties": A_AND_B}),
        ("one of two fields", {"type": "object", "properties": A_AND_B, "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}),
        ("not both", {"type": "object", "properties": A_AND_B, "not": {"required": ["a", "b"]}}),
        ("a branch with bounds", {"type": "object", "properties": A_AND_B, "required": ["a"],
         "anyOf": [{"properties": {"a": {"minimum": 100}}}]}),
        ("an integer or a string", {"x-kubernetes-int-or-string": True, "pattern": "^[0-9]+%?$"}),
        ("an embedded resource", {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}),
        ("anything", {"x-kubernetes-preserve-unknown-fields": True}),
        ("a rule about two fields", rule("has(self.a) == has(self.b)", properties=A_AND_B, minProperties=1)),
        ("a rule with a text", rule("self.b == 'exactly this'", properties=A_AND_B, required=["b"])),
        ("a rule with a pattern", rule("self.b.matches('^v[0-9]+-x$')", properties=A_AND_B, required=["b"])),
        ("a rule with a default", rule("self.a == 7", properties={"a": {"type": "integer", "default": 7}})),
        ("a rule with an escaped name", rule("has(self.__namespace__)", properties={"namespace": {"type": "string"}})),
        ("a union", rule("(self.type == 'Local') == has(self.a)",
         properties={**A_AND_B, "type": {"type": "string", "enum": TYPES}}, required=["type"])),
        ("exactly one of", rule("[has(self.a), has(self.b)].filter(x, x).size() == 1", properties=A_AND_B)),
    ],
)  # fmt: skip
def test_a_value_is_accepted(name: str, schema: Object) -> None:
    node = parse(schema)
    for seed in range(8):
        assert refusals(ValueMaker(Random(seed).randrange).value(node, "spec"), node) == []


@rows(
    "schema, why",
    [
        ({"type": "integer", "minimum": 5, "maximum": 1}, "spec.a: no number is at least 5 and at most 1"),
        ({"type": "string", "minLength": 3, "maxLength": 2}, "spec.a: minLength 3 is more than maxLength 2"),
        ({"type": "string", "pattern": "^a$", "minLength": 2}, 'spec.a: no text is found with the pattern "^a$", 2 to any number of characters'),
        ({"type": "array", "minItems": 2, "maxItems": 1, "items": {"type": "string"}}, "spec.a: minItems 2 is more than maxItems 1"),
        ({"type": "array", "minItems": 3, "x-kubernetes-list-type": "set", "items": {"type": "boolean"}}, "spec.a: there are not 3 different items"),
        (rule("1 == 2"), "spec.a: no value is found that satisfies its schema and rules; the last one: Invalid value: refused"),
        ({"type": "string", "enum": ["a"], "allOf": [{"enum": ["b"]}]}, "spec.a: the enums have no value in common"),
    ],
)  # fmt: skip
def test_a_schema_without_values_is_said(schema: Object, why: str) -> None:
    node = parse({"type": "object", "required": ["a"], "properties": {"a": schema}})
    with pytest.raises(CannotGenerate, match=re.escape(why)):
        ValueMaker(Random(0).randrange).value(node, "spec")


def test_an_optional_field_without_values_is_left_out() -> None:
    node = parse({"type": "object", "properties": {"a": {"type": "integer", "minimum": 5, "maximum": 1}}})
    assert ValueMaker(lambda n: n - 1).value(node, "spec") == {}


def test_the_first_choices_make_the_smallest_value() -> None:
    node = parse({"type": "object", "required": ["b"], "properties": A_AND_B})
    assert ValueMaker(lambda _: 0).value(node, "") == {"b": "a"}


def test_what_rules_name_is_tried() -> None:
    node = parse(
        rule(
            "has(self.__namespace__) || self.b in ['x', \"y\"]", properties={**A_AND_B, "namespace": {"type": "string"}}
        )
    )
    assert literals(node) == ("x", "y")
    assert mentioned(node) == ["namespace", "b"]
