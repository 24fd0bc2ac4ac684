"""Schemas as trees: what a node says, what its rules cost, and how objects use it."""

from __future__ import annotations

from typing import Any, Final

import pytest

from noxu.control import schema_tree
from noxu.control.schema_tree import add_coverage, add_outcomes, count, tree
from noxu.coverage.trees import version_trees
from noxu.values import Object
from tests.rows import rows

WHERE: Final = "spec.versions[0].schema.openAPIV3Schema"

NODES: Final[list[tuple[str, Object, Object]]] = [
    ("a type", {"type": "string"}, {"type": "string"}),
    ("nothing", {}, {"type": "anything"}),
    (
        "limits, as they are written",
        {"type": "integer", "minimum": 0, "maximum": 9, "exclusiveMaximum": True},
        {"type": "integer", "limits": ["minimum 0", "maximum 9 (exclusiveMaximum)"]},
    ),
    ("a default of zero", {"type": "integer", "default": 0}, {"type": "integer", "default": 0}),
    ("an enum", {"type": "string", "enum": ["a", "b"]}, {"type": "string", "enum": ["a", "b"]}),
    ("what may be null", {"type": "string", "nullable": True}, {"type": "string", "nullable": True}),
    ("either", {"x-kubernetes-int-or-string": True}, {"type": "integer or string"}),
    (
        "unknown fields that are kept",
        {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        {"type": "object", "limits": ["keeps unknown fields"]},
    ),
    (
        "a list with keys",
        {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port"], "items": {"type": "object"}},
        {"type": "list of object", "limits": ["list type map by port"],
         "fields": [{"name": "[*]", "path": "[*]", "type": "object"}]},
    ),
    (
        "a map",
        {"type": "object", "additionalProperties": {"type": "string"}},
        {"type": "map of string", "fields": [{"name": "[*]", "path": "[*]", "type": "string"}]},
    ),
    (
        "fields in the order of their names",
        {"type": "object", "required": ["b"], "properties": {"b": {"type": "string"}, "a": {"type": "integer"}}},
        {"type": "object", "fields": [{"name": "a", "path": "a", "type": "integer"},
                                      {"name": "b", "path": "b", "type": "string", "required": True}]},
    ),
    ("a junctor", {"type": "object", "oneOf": [{}]}, {"type": "object", "limits": ["oneOf restricts it further"]}),
    ("what is no schema", {"type": "object", "properties": {"a": 3}}, {"type": "object"}),
]  # fmt: skip


@rows("schema, expected", [row[1:] for row in NODES], [row[0] for row in NODES])
def test_a_node(schema: Object, expected: Object) -> None:
    assert tree(schema, WHERE, {}) == {"name": "", "path": "", **expected}


def test_a_rule_has_its_cost() -> None:
    schema = {"type": "object", "properties": {"spec": {"type": "object", "x-kubernetes-validations": [{"rule": "r"}]}}}
    costs = {f"{WHERE}.properties[spec].x-kubernetes-validations[0].rule": 20_000_000}
    [spec] = tree(schema, WHERE, costs)["fields"]
    assert spec["rules"] == [{"rule": "r", "message": "", "cost": 20_000_000, "share": 0.2, "expensive": True}]


def test_a_large_tree_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema_tree, "MAX_NODES", 3)
    inner = {"type": "object", "properties": {name: {"type": "string"} for name in "abc"}}
    shown = tree({"type": "object", "properties": {"spec": inner}}, WHERE, {})
    assert shown["fields"] == [{"name": "spec", "path": "spec", "type": "object", "cut": 3}]


def used(node: Object) -> dict[str, Any]:
    below = {path: value for field in node.get("fields") or () for path, value in used(field).items()}
    return {node["path"]: node.get("used"), **below}


def test_how_objects_use_it() -> None:
    shown = tree(
        {
            "type": "object",
            "properties": {
                "size": {"type": "integer", "default": 1},
                "colour": {"type": "string", "enum": ["red", "blue"]},
                "parts": {"type": "array", "items": {"type": "string"}},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                "never": {"type": "string"},
            },
        },
        WHERE,
        {},
    )
    count(shown, [{"size": 1, "colour": "red", "parts": ["a", "b"]}, {"size": 2, "labels": {"a": "b"}, "parts": "odd"}])
    assert used(shown) == {
        "": {"set": 2},
        "size": {"set": 2, "default": 1},
        "colour": {"set": 1, "values": {'"red"': 1}},
        "parts": {"set": 2},
        "parts[*]": {"set": 2},
        "labels": {"set": 1},
        "labels[*]": {"set": 1},
        "never": None,
    }


RULED = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "x-kubernetes-validations": [{"rule": "r"}, {"rule": "s"}],
            "properties": {"size": {"type": "integer", "default": 1}, "mode": {"type": "string", "enum": ["fast"]}},
        }
    },
}


def test_for_how_many_objects_a_rule_is_true() -> None:
    shown = tree(RULED, WHERE, {})
    add_outcomes(shown, {"spec": {"r": {"true": 2, "false": 1}}})
    assert [rule.get("stored") for rule in shown["fields"][0]["rules"]] == [{"true": 2, "false": 1}, None]


def test_what_writes_have_shown() -> None:
    counts = {
        "v1": {
            "writes": 4,
            "fields": {"spec": {"set": 3}, "spec.size": {"defaulted": 2}, "spec.mode": {"values": {'"fast"': 1}}},
            "rules": {"spec": {"r": {"true": 2, "false": 1}}},
        }
    }
    shown = tree(RULED, WHERE, {})
    add_coverage(shown, version_trees("widgets", {"v1": RULED}, counts)[0])
    [spec] = shown["fields"]
    mode, size = spec["fields"]
    assert spec["written"] == {"set": 3}
    assert [rule["written"] for rule in spec["rules"]] == [{"true": 2, "false": 1}, {"true": 0, "false": 0}]
    assert size["written"] == {"set": 0, "defaulted": 2}
    assert mode["written"] == {"set": 0, "values": {'"fast"': 1}}
