"""Types made from schemas, and the sizes that cost estimates use."""

from __future__ import annotations

import gc
from typing import Any

import pytest

from noxu.cel.types.schema_types import MAX_REQUEST_BYTES, DeclType, decl_type
from noxu.schema.structural import parse
from tests.rows import rows

STRING = {"type": "string"}


def declared(schema: dict[str, Any], *, is_root: bool = False) -> DeclType | None:
    return decl_type(parse(schema), is_root=is_root)


ROWS: list[tuple[str, dict[str, Any], str, int, int]] = [  # type, largest size, smallest size in JSON
    ("a boolean", {"type": "boolean"}, "bool", 0, 4),
    ("an integer", {"type": "integer"}, "int", 0, 1),
    ("a number", {"type": "number"}, "double", 0, 1),
    ("an int-or-string", {"x-kubernetes-int-or-string": True}, "dyn", MAX_REQUEST_BYTES - 2, 1),
    ("an int-or-string with a limit", {"x-kubernetes-int-or-string": True, "maxLength": 5}, "dyn", 20, 1),
    ("a string", STRING, "string", MAX_REQUEST_BYTES - 2, 2),
    ("a string with a limit, in bytes", {**STRING, "maxLength": 5}, "string", 20, 2),
    ("a string of some values", {**STRING, "enum": ["a", "üü"]}, "string", 4, 2),
    ("bytes", {**STRING, "format": "byte", "maxLength": 8}, "bytes", 8, 2),
    ("a date", {**STRING, "format": "date"}, "timestamp", 12, 12),
    ("a date and a time", {**STRING, "format": "date-time"}, "timestamp", 32, 21),
    ("a duration", {**STRING, "format": "duration"}, "duration", 32, 3),
    ("another format", {**STRING, "format": "email", "maxLength": 1}, "string", 4, 2),
    ("a list with a limit", {"type": "array", "items": STRING, "maxItems": 3}, "list(string)", 3, 2),
    ("a list", {"type": "array", "items": STRING}, "list(string)", (MAX_REQUEST_BYTES - 2) // 3, 2),
    ("a map", {"type": "object", "additionalProperties": STRING}, "map(string, string)", (MAX_REQUEST_BYTES - 2) // 8, 2),
    ("a map with a limit", {"type": "object", "additionalProperties": STRING, "maxProperties": 3}, "map(string, string)", 3, 2),
    ("an object", {"type": "object", "properties": {"a": STRING}}, "name", 0, 2),
    ("an object with a required field", {"type": "object", "properties": {"abc": STRING}, "required": ["abc"]}, "name", 0, 2 + 3 + 2 + 4),
    ("one with a default need not be there", {"type": "object", "properties": {"abc": {**STRING, "default": ""}}, "required": ["abc"]}, "name", 0, 2),
]  # fmt: skip


@rows(("schema", "name", "largest", "smallest"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_a_schema_has_a_type(schema: dict[str, Any], name: str, largest: int, smallest: int) -> None:
    found = declared(schema)
    assert found is not None
    assert (str(found.named("name")), found.max_elements, found.min_size) == (name, largest, smallest)


UNTYPED: list[tuple[str, dict[str, Any]]] = [
    ("no type", {"x-kubernetes-preserve-unknown-fields": True}),
    ("a list without items", {"type": "array"}),
    ("a list of values without a type", {"type": "array", "items": {"x-kubernetes-preserve-unknown-fields": True}}),
    ("a map of values without a type", {"type": "object", "additionalProperties": {"nullable": True}}),
]


@pytest.mark.parametrize("schema", [row[1] for row in UNTYPED], ids=[row[0] for row in UNTYPED])
def test_a_schema_has_no_type(schema: dict[str, Any]) -> None:
    assert declared(schema) is None


def test_fields_are_escaped_and_named_by_their_place() -> None:
    found = declared(
        {
            "type": "object",
            "properties": {
                "a-b": {"type": "object", "properties": {"c": STRING}},
                "for": {"type": "array", "items": {"type": "object", "properties": {}}},
                "labels": {"type": "object", "additionalProperties": {"type": "object", "properties": {"d": STRING}}},
                "no name": STRING,
                "unknown": {"x-kubernetes-preserve-unknown-fields": True},
            },
        }
    )
    assert found is not None
    assert found.fields is not None
    places = {name: str(field.named(f"root.{name}")) for name, field in found.fields.items()}
    assert places == {
        "a__dash__b": "root.a__dash__b",
        "__for__": "list(root.__for__.@idx)",
        "labels": "map(string, root.labels.@elem)",
    }
    by_keyword = found.find("for")
    assert by_keyword is not None
    assert by_keyword[0] == "__for__"
    assert found.find("nope") is None


def test_a_root_has_the_metadata_that_rules_may_use() -> None:
    labels = {"type": "object", "additionalProperties": STRING}
    schema = {"type": "object", "properties": {"metadata": {"type": "object", "properties": {"labels": labels}}}}
    root = declared(schema, is_root=True)
    assert root is not None
    assert root.fields is not None
    assert set(root.fields) == {"apiVersion", "kind", "metadata"}
    metadata = root.fields["metadata"].fields
    assert metadata is not None
    assert {name: field.max_elements for name, field in metadata.items()} == {"name": 253 * 4, "generateName": 252 * 4}


def test_equal_schemas_share_a_type_as_long_as_it_is_used() -> None:
    schema = {"type": "array", "items": {**STRING, "maxLength": 77}}
    first = declared(schema)
    assert declared({**schema, "description": "another"}) is first
    assert first is not None
    assert first.named("a") is first.named("a")
    del first
    gc.collect()
    assert declared(schema) is not None
