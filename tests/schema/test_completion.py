"""Schemas that can be made structural in one way."""

from __future__ import annotations

import json

import pytest

from noxu.schema.completion import complete
from noxu.schema.lint import structural_errors
from noxu.schema.structural import parse
from noxu.values import Json, Object
from tests.rows import rows

STRING = {"type": "string"}
OBJECT = {"type": "object"}
PRESERVE = "x-kubernetes-preserve-unknown-fields"
EITHER = "x-kubernetes-int-or-string"
EMBEDDED = "x-kubernetes-embedded-resource"
RULES = [{"rule": "true"}]
EITHER_OR = [{"type": "integer"}, STRING]


def of(**properties: Json) -> Object:
    return {"type": "object", "properties": properties}


def ports(number: str, **protocol: Json) -> Object:
    """A list of ports, with the keys that it has in built-in kinds."""
    items = {**of(**{number: {"type": "integer"}, "protocol": {**STRING, **protocol}}), "required": [number]}
    keys = [number, "protocol"]
    return {"type": "array", "items": items, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys}


# Schemas of a field, and what they become.
FIELDS: list[tuple[str, Object, Object]] = [
    # missing types
    ("fields imply an object", {"properties": {"b": STRING}}, of(b=STRING)),
    ("required fields imply an object", {"required": ["b"]}, {"type": "object", "required": ["b"]}),
    ("values of a map imply an object", {"additionalProperties": STRING}, {"type": "object", "additionalProperties": STRING}),
    ("items imply a list", {"items": STRING}, {"type": "array", "items": STRING}),
    ("limits of items imply a list of anything", {"maxItems": 3}, {"type": "array", "maxItems": 3, "items": {PRESERVE: True}}),
    ("patterns imply a string", {"pattern": "x"}, {"type": "string", "pattern": "x"}),
    ("formats of strings imply a string", {"format": "date-time"}, {"type": "string", "format": "date-time"}),
    ("formats of numbers imply their type", {"format": "int64", "minimum": 0}, {"type": "integer", "format": "int64", "minimum": 0}),
    ("limits imply a number", {"minimum": 0}, {"type": "number", "minimum": 0}),
    ("an enum of integers implies an integer", {"enum": [1, 2], "minimum": 0}, {"type": "integer", "enum": [1, 2], "minimum": 0}),
    ("an enum with null implies the others' type", {"enum": ["a", None]}, {"type": "string", "enum": ["a", None]}),
    ("a default implies a type where nothing else does", {"default": True}, {"type": "boolean", "default": True}),
    ("a default says less than a limit", {"default": 1, "maximum": 2}, {"type": "number", "default": 1, "maximum": 2}),
    ("nothing implies anything", {}, {PRESERVE: True}),
    ("a description implies nothing", {"description": "d"}, {"description": "d", PRESERVE: True}),
    ("validations in branches imply a type", {"anyOf": [{"minLength": 1}, {"pattern": "x"}]}, {"type": "string", "anyOf": [{"minLength": 1}, {"pattern": "x"}]}),
    ("a list without items", {"type": "array"}, {"type": "array", "items": {PRESERVE: True}}),
    ("an embedded resource", {EMBEDDED: True}, {"type": "object", EMBEDDED: True, PRESERVE: True}),
    ("fields of an embedded resource", {EMBEDDED: True, "properties": {"kind": {}, "metadata": {"properties": {"labels": {}}}}}, {"type": "object", EMBEDDED: True, "properties": {"kind": STRING, "metadata": {"type": "object", "properties": {"labels": {PRESERVE: True}}}}}),
    # what junctors say about the spine
    ("a type that the spine has, too", {**OBJECT, "anyOf": [OBJECT, {"required": ["b"]}]}, {**OBJECT, "anyOf": [{}, {"required": ["b"]}]}),
    ("a type that all branches have", {"oneOf": [{**STRING, "pattern": "a"}, {**STRING, "pattern": "b"}]}, {**STRING, "oneOf": [{"pattern": "a"}, {"pattern": "b"}]}),
    ("a type in one allOf", {"allOf": [STRING, {"pattern": "a"}]}, {**STRING, "allOf": [{}, {"pattern": "a"}]}),
    ("null in all branches", {**STRING, "anyOf": [{"nullable": True, "pattern": "a"}, {"nullable": True}]}, {**STRING, "nullable": True, "anyOf": [{"pattern": "a"}, {}]}),
    ("null as a branch", {"anyOf": [STRING, {"type": "null"}]}, {**STRING, "nullable": True, "anyOf": [{}]}),
    ("null alone", {**STRING, "oneOf": [{"type": "null"}]}, {**STRING, "nullable": True}),
    ("words", {**STRING, "allOf": [{"description": "d", "title": "t"}]}, {**STRING, "description": "d", "title": "t", "allOf": [{}]}),
    ("words that differ", {**STRING, "description": "x", "anyOf": [{"description": "d"}, {"title": "t"}]}, {**STRING, "description": "x", "anyOf": [{}, {}]}),
    ("a default in allOf", {**STRING, "allOf": [{"default": "x"}]}, {**STRING, "default": "x", "allOf": [{}]}),
    ("rules in allOf", {**OBJECT, "allOf": [{"x-kubernetes-validations": RULES}]}, {**OBJECT, "x-kubernetes-validations": RULES, "allOf": [{}]}),
    ("a list type in allOf", {"type": "array", "items": STRING, "allOf": [{"x-kubernetes-list-type": "set"}]}, {"type": "array", "items": STRING, "x-kubernetes-list-type": "set", "allOf": [{}]}),
    ("integer or string", {"anyOf": EITHER_OR}, {EITHER: True, "anyOf": EITHER_OR}),
    ("string or integer", {"anyOf": EITHER_OR[::-1]}, {EITHER: True, "anyOf": EITHER_OR}),
    ("either an integer or a string", {"oneOf": EITHER_OR}, {EITHER: True, "anyOf": EITHER_OR}),
    ("integer or string the right way", {EITHER: True, "anyOf": EITHER_OR}, {EITHER: True, "anyOf": EITHER_OR}),
    # what only junctors mention
    ("a field", {**OBJECT, "anyOf": [{"properties": {"b": {"type": "string", "minLength": 1}}}, {}]}, {**of(b=STRING), "anyOf": [{"properties": {"b": {"minLength": 1}}}, {}]}),
    ("a field of which only a limit is known", {**OBJECT, "not": {"properties": {"b": {"minLength": 1}}}}, {**of(b=STRING), "not": {"properties": {"b": {"minLength": 1}}}}),
    ("a field of which nothing is known", {**OBJECT, "not": {"properties": {"b": {}}}}, {**of(b={PRESERVE: True}), "not": {"properties": {"b": {}}}}),
    ("items", {"type": "array", "allOf": [{"items": {"type": "string", "minLength": 1}}]}, {"type": "array", "items": STRING, "allOf": [{"items": {"minLength": 1}}]}),
    ("values of a map, and what holds for all of them", {**OBJECT, "allOf": [{"additionalProperties": {"type": "string", "minLength": 1}}]}, {"type": "object", "additionalProperties": {"type": "string", "allOf": [{"minLength": 1}]}, "allOf": [{}]}),
    ("any values", {**of(b=STRING), "anyOf": [{"additionalProperties": True}]}, {**of(b=STRING), "anyOf": [{}]}),
    ("metadata", {**of(b=STRING), "anyOf": [{"properties": {"metadata": OBJECT}}]}, {**of(b=STRING), "anyOf": [{"properties": {}}]}),
    # other words for the same
    ("nothing else is allowed", {**of(b=STRING), "additionalProperties": False}, of(b=STRING)),
    ("patterns for all names", {**OBJECT, "patternProperties": {"^.*$": STRING}}, {**OBJECT, "additionalProperties": STRING}),
    ("what a field depends on", {**of(b=STRING, c=STRING), "dependencies": {"b": ["c"]}}, {**of(b=STRING, c=STRING), "allOf": [{"anyOf": [{"not": {"required": ["b"]}}, {"required": ["c"]}]}]}),
    ("unique scalars", {"type": "array", "items": STRING, "uniqueItems": True}, {"type": "array", "items": STRING, "x-kubernetes-list-type": "set"}),
    ("items that are all the same", {"type": "array", "items": [STRING, STRING]}, {"type": "array", "items": STRING}),
    ("the protocol of a PodSpec's ports", ports("containerPort"), ports("containerPort", default="TCP")),
    ("the protocol of a ServiceSpec's ports", ports("port"), ports("port", default="TCP")),
    ("keywords that do nothing", {**STRING, "id": "x", "$schema": "y", PRESERVE: False}, STRING),
    ("additional items of a single schema", {"type": "array", "items": STRING, "additionalItems": False}, {"type": "array", "items": STRING}),
]  # fmt: skip


def normal(schema: Json) -> str:
    return json.dumps(schema, sort_keys=True)


@rows(("schema", "expected"), [row[1:] for row in FIELDS], ids=[row[0] for row in FIELDS])
def test_fields(schema: Object, expected: Object) -> None:
    before = normal(schema)
    completed, notes = complete(of(a=schema))
    assert normal(completed) == normal(of(a=expected))
    assert structural_errors(parse(completed)) == []
    assert bool(notes) == (normal(schema) != normal(expected))
    assert normal(schema) == before
    assert complete(completed) == (completed, [])


ROOTS: list[tuple[str, Object, Object]] = [
    ("nothing", {}, OBJECT),
    ("null", {**OBJECT, "nullable": True}, OBJECT),
    ("a map of anything", {"additionalProperties": True}, {"type": "object", PRESERVE: True}),
    ("a struct and nothing else", {"properties": {"a": STRING}, "additionalProperties": False}, of(a=STRING)),
    ("what is implied", {"properties": {"apiVersion": {}, "kind": {"enum": ["Foo"]}, "metadata": {}}}, of(apiVersion=STRING, kind={"type": "string", "enum": ["Foo"]}, metadata=OBJECT)),
    ("shapes of metadata", {"properties": {"metadata": {"description": "d", "properties": {"labels": {"type": "object", "additionalProperties": STRING}}}}}, of(metadata=OBJECT)),
    ("restricted names", {"properties": {"metadata": {"properties": {"name": {"maxLength": 3}, "uid": STRING}}}}, of(metadata=of(name={"type": "string", "maxLength": 3}))),
    ("fields of junctors", {"anyOf": [{"required": ["a"]}, {"properties": {"b": {"minimum": 1}}}]}, {**of(b={"type": "number"}), "anyOf": [{"required": ["a"]}, {"properties": {"b": {"minimum": 1}}}]}),
    ("definitions", {"properties": {"a": {"$ref": "#/definitions/x", "description": "d"}}, "definitions": {"x": {"type": "array", "items": {"$ref": "#/definitions/y"}}, "y": STRING}}, of(a={"type": "array", "items": STRING, "description": "d"})),
]  # fmt: skip


@rows(("schema", "expected"), [row[1:] for row in ROOTS], ids=[row[0] for row in ROOTS])
def test_roots(schema: Object, expected: Object) -> None:
    completed, _ = complete(schema)
    assert normal(completed) == normal(expected)
    assert structural_errors(parse(completed)) == []
    assert complete(completed) == (completed, [])


AMBIGUOUS: list[tuple[str, Object]] = [
    ("types that differ", {"anyOf": [STRING, {"type": "object"}]}),
    ("keywords of different types", {"minLength": 1, "minimum": 1}),
    ("an enum of different types", {"enum": [1, "a"]}),
    ("null in one of two branches", {**STRING, "anyOf": [{"nullable": True}, {"pattern": "x"}]}),
    ("a default in one of two branches", {**STRING, "anyOf": [{"default": "x"}, {"pattern": "x"}]}),
    ("rules in anyOf", {**OBJECT, "anyOf": [{"x-kubernetes-validations": RULES}]}),
    ("a struct in one branch, a map in another", {**OBJECT, "anyOf": [{"properties": {"b": STRING}}, {"additionalProperties": {"minimum": 1}}]}),
    ("metadata with labels that must be", {**OBJECT, "allOf": [{"properties": {"metadata": {"required": ["labels"]}}}]}),
]  # fmt: skip


@pytest.mark.parametrize("schema", [row[1] for row in AMBIGUOUS], ids=[row[0] for row in AMBIGUOUS])
def test_ambiguous_schemas_are_not_completed(schema: Object) -> None:
    completed, _ = complete(of(a=schema))
    assert structural_errors(parse(completed))


def test_notes_have_paths() -> None:
    _, notes = complete({"properties": {"a": {"items": {}}}}, "s")
    assert list(map(str, notes)) == [
        "s: type: object added",
        "s.properties[a]: type: array added",
        f"s.properties[a].items: {PRESERVE}: true added, anything is allowed here",
    ]


def test_nothing_is_lost_where_nothing_was_pruned() -> None:
    completed, notes = complete(
        of(a=of(b=STRING), c=OBJECT, d={"type": "object", "additionalProperties": STRING}), preserve=True
    )
    assert completed == {
        **of(
            a=of(b=STRING),
            c={"type": "object", PRESERVE: True},
            d={"type": "object", "additionalProperties": STRING},
        ),
        PRESERVE: True,
    }
    assert [note.path for note in notes] == ["properties[c]", ""]


def test_the_metadata_of_a_resource_is_preserved_anyway() -> None:
    """As controller-gen writes it. Servers refuse a schema that says more of it than names."""
    completed, notes = complete(of(metadata=OBJECT, spec=of(metadata=OBJECT)), preserve=True)
    assert completed == {**of(metadata=OBJECT, spec=of(metadata={**OBJECT, PRESERVE: True})), PRESERVE: True}
    assert [note.path for note in notes] == ["properties[spec].properties[metadata]", ""]


def test_references_that_never_end_stay() -> None:
    looping = {"x": {"properties": {"y": {"$ref": "#/definitions/x"}}}}
    completed, _ = complete({**of(a={"$ref": "#/definitions/x"}, b={"$ref": "#/elsewhere"}), "definitions": looping})
    assert completed["properties"]["a"]["properties"]["y"]["$ref"] == "#/definitions/x"
    assert completed["properties"]["b"]["$ref"] == "#/elsewhere"


@pytest.mark.slow
def test_references_that_multiply_stop() -> None:
    definitions = {
        f"x{n}": {"properties": {name: {"$ref": f"#/definitions/x{n + 1}"} for name in "ab"}} for n in range(30)
    }
    completed, notes = complete({**of(a={"$ref": "#/definitions/x0"}), "definitions": definitions})
    assert "$ref" in json.dumps(completed)
    assert len(notes) < 60_000
