"""Counts beside the nodes of a schema, and the points that they make."""

from __future__ import annotations

import pytest

from noxu.coverage.trees import merged_collections, missing, percentage, points, tree, trees
from noxu.values import Object
from tests.definitions import version, widgets
from tests.rows import rows

NAME = "widgets.example.com"


def covered(schema: Object, **counts: Object) -> Object:
    """The tree of one version with this spec."""
    made = tree(widgets(version({"type": "object", "properties": {"spec": schema}})), {"v1": {"writes": 1, **counts}})
    return made[0]


SIZE = {"type": "integer", "default": 1}
MODE = {"type": "string", "enum": ["fast", "slow"]}
RULE = {"rule": "self.size < 4", "message": "too large"}
SPEC = {"type": "object", "properties": {"mode": MODE, "size": SIZE}, "x-kubernetes-validations": [RULE]}


def test_a_node_has_its_counts_and_its_points() -> None:
    fields = {"spec": {"set": 1}, "spec.mode": {"set": 1, "values": {'"slow"': 1}}, "spec.size": {"defaulted": 1}}
    root = covered(SPEC, fields=fields, rules={"spec": {RULE["rule"]: {"true": 1}}})
    spec = root["below"][0]
    assert (root["name"], root["writes"], root["covered"], root["points"]) == (f"{NAME}/v1", 1, 5, 8)
    assert spec["rules"] == [{**RULE, "true": 1, "false": 0}]
    assert [(each["name"], each["set"], each.get("enum"), each.get("default")) for each in spec["below"]] == [
        ("mode", 1, [{"value": "fast", "seen": 0}, {"value": "slow", "seen": 1}], None),
        ("size", 0, None, {"value": 1, "used": 1}),
    ]
    assert list(missing(root)) == [
        ("spec", "rule 'self.size < 4' never false"),
        ("spec.mode", '"fast" never seen'),
        ("spec.size", "never set"),
    ]


@rows(
    "what, schema, names",
    [
        ("a list has a node for its items", {"type": "array", "items": MODE}, [("spec[*]", "fields"), ("spec[*]", "enum values"), ("spec[*]", "enum values")]),
        ("so has a map for its values", {"type": "object", "additionalProperties": {"type": "string"}}, [("spec[*]", "fields")]),
        ("anything else has none", {"type": "object", "additionalProperties": True}, []),
        ("a default is a point", {"type": "object", "default": {}}, [("spec", "defaults")]),
    ],
)  # fmt: skip
def test_the_points_of_a_schema(what: str, schema: Object, names: list[tuple[str, str]]) -> None:
    found = [(point.path, point.kind) for point in points(covered(schema))]
    assert found == [("spec", "fields"), *names], what


def test_the_server_s_own_fields_are_no_points() -> None:
    schema = {"type": "object", "properties": {"metadata": {"type": "object"}, "kind": {"type": "string"}}}
    [root] = tree(widgets(version(schema)), {})
    assert (root["points"], root["writes"], percentage([root])) == (0, 0, 100.0)


def test_what_is_below_a_field_that_was_never_set_is_one_line() -> None:
    assert list(missing(covered(SPEC))) == [("spec", "never set (with 7 further points)")]


def test_collections_are_merged() -> None:
    schemas = {NAME: {"v1": {"type": "object", "properties": {"a": {"type": "string"}}}}}
    counts = {NAME: {"v1": {"writes": 1, "fields": {"a": {"set": 1}}, "rules": {}}}}
    other = {"schemas": {NAME: {"v2": {"type": "object"}}, "b.example.com": schemas[NAME]}, "counts": {}}
    merged = merged_collections([{"schemas": schemas, "counts": counts}, other, {"schemas": schemas, "counts": counts}])
    assert [(each["name"], each["writes"], each["covered"]) for each in trees(merged)] == [
        ("b.example.com/v1", 0, 0),
        (f"{NAME}/v1", 2, 1),
        (f"{NAME}/v2", 0, 0),
    ]
    assert percentage(trees(merged)) == pytest.approx(50)
