"""Schemas as structural schemas: which keyword becomes what, and which schemas have no structural form."""

from __future__ import annotations

from typing import Any

import pytest

from noxu.schema.structural import (
    MISSING,
    NO_VALIDATION,
    NoStructuralForm,
    Structural,
    ValidationRule,
    has_rules,
    parse,
)
from noxu.values import Object
from tests.rows import rows

SPINE: list[tuple[str, Object, str, Any]] = [
    ("type", {"type": "string"}, "type", "string"),
    ("nullable", {"nullable": True}, "nullable", True),
    ("title", {"title": "t"}, "title", "t"),
    ("description", {"description": "d"}, "description", "d"),
    ("default", {"default": {"a": 1}}, "default", {"a": 1}),
    ("a default that is zero", {"default": 0}, "default", 0),
    ("external docs", {"externalDocs": {"url": "u"}}, "external_docs", {"url": "u"}),
    ("example", {"example": [1]}, "example", [1]),
    ("additional properties that are true", {"additionalProperties": True}, "additional_properties", True),
    ("or false", {"additionalProperties": False}, "additional_properties", False),
    ("unknown fields", {"x-kubernetes-preserve-unknown-fields": True}, "preserve_unknown_fields", True),
    ("embedded resource", {"x-kubernetes-embedded-resource": True}, "embedded_resource", True),
    ("int or string", {"x-kubernetes-int-or-string": True}, "int_or_string", True),
    ("list type", {"x-kubernetes-list-type": "map"}, "list_type", "map"),
    ("list map keys", {"x-kubernetes-list-map-keys": ["a", "b"]}, "list_map_keys", ("a", "b")),
    ("map type", {"x-kubernetes-map-type": "atomic"}, "map_type", "atomic"),
    ("rules", {"x-kubernetes-validations": [{"rule": "r", "message": "m", "reason": "x", "optionalOldSelf": False}]},
     "rules", (ValidationRule("r", "m", "", "x", "", False),)),
]  # fmt: skip

VALIDATIONS: list[tuple[str, Object, str, Any]] = [
    ("format", {"format": "date"}, "format", "date"),
    ("an integer limit is a float", {"maximum": 5}, "maximum", 5.0),
    ("a limit of zero", {"minimum": 0}, "minimum", 0.0),
    ("exclusive", {"exclusiveMaximum": True}, "exclusive_maximum", True),
    ("lengths", {"maxLength": 3}, "max_length", 3),
    ("pattern", {"pattern": "a"}, "pattern", "a"),
    ("items", {"minItems": 0}, "min_items", 0),
    ("unique items", {"uniqueItems": True}, "unique_items", True),
    ("multiple of", {"multipleOf": 2}, "multiple_of", 2.0),
    ("enum", {"enum": ["a", None]}, "enum", ("a", None)),
    ("properties", {"maxProperties": 1}, "max_properties", 1),
    ("required", {"required": ["a"]}, "required", ("a",)),
]


@rows(("schema", "name", "value"), [row[1:] for row in SPINE], ids=[row[0] for row in SPINE])
def test_keywords_of_the_spine(schema: Object, name: str, value: Any) -> None:
    structural = parse(schema)
    assert getattr(structural, name) == value
    assert structural.validation is NO_VALIDATION


@rows(("schema", "name", "value"), [row[1:] for row in VALIDATIONS], ids=[row[0] for row in VALIDATIONS])  # fmt: skip
def test_value_validations(schema: Object, name: str, value: Any) -> None:
    assert getattr(parse(schema).validation, name) == value


def test_nodes_contain_nodes() -> None:
    schema = {
        "properties": {"a": {"type": "string"}},
        "items": {"items": {"type": "integer"}},
        "additionalProperties": {"type": "boolean"},
    }
    parsed = parse(schema)
    assert parsed.properties["a"].type == "string"
    assert parsed.items is not None
    assert parsed.items.items is not None
    assert parsed.items.items.type == "integer"
    assert parsed.values is not None
    assert parsed.values.type == "boolean"


@pytest.mark.parametrize("additional", [True, False, None])
def test_without_a_schema_a_map_has_no_values(additional: bool | None) -> None:
    assert parse({"additionalProperties": additional}).values is None


@pytest.mark.parametrize(
    "schema",
    [{}, {"default": None}, {"items": None}, {"items": []}, {"enum": []}, {"allOf": []}, {"required": None}, {"unknown": 1}],
)  # fmt: skip
def test_null_and_empty_keywords_are_not_set(schema: Object) -> None:
    parsed = parse(schema)
    assert parsed.default is MISSING
    assert parsed.items is None
    assert parsed.validation is NO_VALIDATION


def test_an_empty_required_is_set() -> None:
    validation = parse({"required": []}).validation
    assert validation is not NO_VALIDATION
    assert validation.required == ()


def test_junctors_contain_value_validations() -> None:
    branch: Object = {
        "minLength": 1,
        "items": {"pattern": "a"},
        "properties": {"p": {"maximum": 1}},
        "additionalProperties": {"format": "date"},
        "x-kubernetes-validations": [{"rule": "r"}],
    }
    validation = parse({"allOf": [branch], "anyOf": [{}], "oneOf": [{}, {}], "not": branch}).validation
    assert (len(validation.all_of), len(validation.any_of), len(validation.one_of)) == (1, 1, 2)
    assert validation.not_ is not None
    for nested in (validation.all_of[0], validation.not_):
        assert nested.validation.min_length == 1
        assert nested.items is not None
        assert nested.items.validation.pattern == "a"
        assert nested.properties["p"].validation.maximum == 1.0
        assert nested.additional_properties is not None
        assert nested.additional_properties.validation.format == "date"
        assert nested.rules == (ValidationRule("r"),)
        assert nested.forbidden == {}


def test_keywords_forbidden_in_a_junctor_are_kept_for_lint() -> None:
    branch = {"type": "string", "nullable": True, "default": 0, "title": "", "x-kubernetes-list-type": "", "minimum": 1}
    [nested] = parse({"allOf": [branch]}).validation.all_of
    assert nested.forbidden == {"type": "string", "nullable": True, "default": 0, "x-kubernetes-list-type": ""}


def test_additional_properties_that_are_true_are_an_empty_branch() -> None:
    [any_value, none] = parse(
        {"allOf": [{"additionalProperties": True}, {"additionalProperties": False}]}
    ).validation.all_of
    assert any_value.additional_properties is not None
    assert none.additional_properties is None


NO_FORM: list[tuple[str, Object, str]] = [
    ("id", {"id": "x"}, "OpenAPIV3Schema 'id' is not supported"),
    ("$schema", {"$schema": "x"}, "OpenAPIV3Schema 'schema' is not supported"),
    ("$ref", {"$ref": "x"}, "OpenAPIV3Schema '$ref' is not supported"),
    ("pattern properties", {"patternProperties": {"a": {}}}, "OpenAPIV3Schema 'patternProperties' is not supported"),
    ("dependencies", {"dependencies": {"a": ["b"]}}, "OpenAPIV3Schema 'dependencies' is not supported"),
    ("additional items that are false", {"additionalItems": False}, "OpenAPIV3Schema 'additionalItems' is not supported"),
    ("definitions", {"definitions": {"a": {}}}, "OpenAPIV3Schema 'definitions' is not supported"),
    ("a list of item schemas", {"items": [{}]}, "OpenAPIV3Schema 'items' must be a schema, but is an array"),
    ("pruning spelled out", {"x-kubernetes-preserve-unknown-fields": False},
     "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined"),
    ("below", {"properties": {"a": {"items": {"$ref": "x"}}}}, "OpenAPIV3Schema '$ref' is not supported"),
    ("in a junctor", {"not": {"anyOf": [{"$ref": "x"}]}}, "OpenAPIV3Schema '$ref' is not supported"),
    ("the first of several", {"definitions": {"a": {}}, "id": "x"}, "OpenAPIV3Schema 'id' is not supported"),
]  # fmt: skip


@rows(("schema", "message"), [row[1:] for row in NO_FORM], ids=[row[0] for row in NO_FORM])
def test_schemas_without_a_structural_form(schema: Object, message: str) -> None:
    with pytest.raises(NoStructuralForm) as raised:
        parse(schema)
    assert str(raised.value) == message


def test_unsupported_keywords_may_be_empty() -> None:
    assert parse({"id": "", "patternProperties": {}, "definitions": {}, "dependencies": None}).type == ""


RULES = {"x-kubernetes-validations": [{"rule": "true"}]}


@pytest.mark.parametrize(
    ("schema", "found"),
    [
        ({}, False),
        (RULES, True),
        ({"properties": {"a": {"items": RULES}}}, True),
        ({"additionalProperties": RULES}, True),
        ({"additionalProperties": True}, False),
        ({"allOf": [RULES]}, False),
    ],
)
def test_schemas_with_rules(schema: Object, found: bool) -> None:
    assert has_rules(parse(schema)) is found


def test_schemas_are_compared_by_identity() -> None:
    assert Structural() != Structural()
    assert repr(MISSING) == "MISSING"
    assert not MISSING
