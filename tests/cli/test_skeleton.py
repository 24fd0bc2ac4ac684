"""`noxu skeleton`: the skeletons of CRDs and of bare schemas."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from noxu.api import codec
from tests.cli.conftest import unplaced

Make = Callable[..., Any]

RESTRICTION = "Forbidden: properties and additionalProperties or patternProperties in one skeleton"

# The six examples of the KEP: a schema and its skeleton. The sixth violates Restriction 1.
EXAMPLES: list[tuple[str, str, str]] = [
    ("1", '{"properties": {"a": {}, "b": {"type": "string"}, "c": {"not": {}}}}', '{"properties": {"a": {}, "b": {"type": "string"}, "c": {}}}'),
    ("2", '{"anyOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}]}', '{"properties": {"a": {}, "b": {}}}'),
    ("3", '{"properties": {"a": {}, "b": {"type": "string", "properties": {"x": {}}}}, "anyOf": [{"properties": {"c": {}}}, {"properties": {"d": {"not": {}}}}]}', '{"properties": {"a": {}, "b": {"type": "string", "properties": {"x": {}}}, "c": {}, "d": {}}}'),
    ("4", '{"properties": {"a": {"type": "string", "pattern": "x", "format": "ip"}, "b": {"properties": {"x": {}, "y": {}}}}}', '{"properties": {"a": {"type": "string"}, "b": {"properties": {"x": {}, "y": {}}}}}'),
    ("5", '{"anyOf": [{"properties": {"a": {"type": "string"}}}, {"properties": {"a": {"type": "integer"}, "b": {"type": "string"}}}], "properties": {"c": {}}}', '{"properties": {"a": {}, "b": {"type": "string"}, "c": {}}}'),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "skeleton"), [row[1:] for row in EXAMPLES], ids=[row[0] for row in EXAMPLES])
def test_the_examples_of_the_kep(run: Make, schema: str, skeleton: str) -> None:
    ran = run("skeleton -", stdin=schema)
    assert (ran.status, ran.err) == (0, "")
    assert codec.decode_yaml(ran.out.encode()).value == json.loads(skeleton)


SIXTH = '{"anyOf": [{"properties": {"a": {"type": "string"}}}, {"additionalProperties": {"type": "integer"}}]}'


def test_the_sixth_example_violates_restriction_1(run: Make) -> None:
    ran = run("skeleton -", stdin=SIXTH)
    assert ran.status == 1
    assert ran.out == "additionalProperties:\n  type: integer\nproperties:\n  a:\n    type: string\n"
    assert ran.err == f"stdin:1:1: the root: {RESTRICTION}\n"


def test_the_skeletons_of_every_version_of_every_crd(run: Make, write: Make, crd: Make) -> None:
    two = crd(size={"type": "integer", "minimum": 1})
    [version] = two["spec"]["versions"]
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"a": json.loads(SIXTH)}}}
    two["spec"]["versions"] = [
        version,
        {**version, "name": "v2", "schema": schema},
        {**version, "name": "v3", "schema": None},
    ]
    write("crds.json", {"kind": "List", "items": [{"kind": "Pod"}, two]})
    ran = run("skeleton crds.json")
    assert ran.status == 1
    assert ran.out == (
        "# widgets.example.com v1\nproperties:\n  spec:\n    properties:\n      size:\n        type: integer\n"
        "    type: object\ntype: object\n"
        "---\n# widgets.example.com v2\nproperties:\n  a:\n    additionalProperties:\n      type: integer\n"
        "    properties:\n      a:\n        type: string\ntype: object\n"
    )
    path = "spec.versions[1].schema.openAPIV3Schema.properties[a]"
    assert unplaced(ran.err) == f"CustomResourceDefinition widgets.example.com: {path}: {RESTRICTION}\n"


def test_a_v1beta1_crd_has_one_schema_for_all_versions(run: Make, write: Make, old_crd: Make) -> None:
    write("old.json", old_crd(json.loads(SIXTH), version=None, versions=[{"name": "v1"}, {"name": "v2"}]))
    ran = run("skeleton --output json old.json")
    assert ran.status == 1
    [skeleton] = ran.json
    [finding] = skeleton.pop("findings")
    assert (finding["level"], finding["rule"], finding["line"]) == ("error", "restriction-1", 1)
    assert skeleton == {
        "file": "old.json",
        "document": 1,
        "crd": "widgets.example.com",
        "version": "",
        "skeleton": {"properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "integer"}},
        "violations": ["spec.validation.openAPIV3Schema"],
    }


def test_json_output_is_a_list(run: Make, write: Make, crd: Make) -> None:
    write(
        "a.yaml",
        f"{json.dumps(crd(size={'type': 'integer'}))}\n---\ntype: array\nitems: {{type: string, minLength: 1}}\n",
    )
    ran = run("skeleton --output json a.yaml")
    assert (ran.status, ran.err) == (0, "")
    assert [(schema["crd"], schema["version"], schema["violations"]) for schema in ran.json] == [
        ("widgets.example.com", "v1", []),
        ("", "", []),
    ]
    assert ran.json[1]["skeleton"] == {"type": "array", "items": {"type": "string"}}


REFUSED: list[tuple[str, str, int, str]] = [
    ("broken", "{", 2, "stdin:1:2: not valid JSON: unexpected end of JSON input"),
    ("not an object", "- a", 2, "stdin:1:1: not a Kubernetes object: it has no kind"),
    ("nothing", "", 2, "stdin: contains no object; --allow-empty allows that"),
    ("another kind", "apiVersion: v1\nkind: Pod", 2, "-: no schema found; --allow-empty allows that"),
    ("a schema of wrong types", "type: object\nproperties: 3", 1, "stdin:2:1: properties: must be an object, not a number"),
    ("a CRD of wrong types", "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nspec: 3", 1, "stdin:3:1: CustomResourceDefinition: spec: must not be a number"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "status", "why"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_input_without_a_schema(run: Make, text: str, status: int, why: str) -> None:
    assert run("skeleton -", stdin=text) == (status, "", f"{why}\n")


def test_empty_input_can_be_allowed(run: Make) -> None:
    assert run("skeleton --allow-empty -", stdin="") == (0, "", "")


def test_missing_files(run: Make) -> None:
    assert run("skeleton none") == (2, "", "none: no such file or directory\n")


def test_unknown_fields_are_warnings_and_with_strict_errors(run: Make) -> None:
    schema = "type: object\nmutable: true\n"
    assert run("skeleton -", stdin=schema) == (0, "type: object\n", "stdin:2:1: warning: mutable: unknown field\n")
    assert run("skeleton --strict -", stdin=schema) == (1, "type: object\n", "stdin:2:1: mutable: unknown field\n")


def test_fields_that_former_schemas_kept_are_warnings(run: Make, write: Make, crd: Make) -> None:
    inner = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}
    write("old/crd.json", crd(size={"type": "integer"}, one=inner, many={"type": "array", "items": inner}, any=inner))
    fewer = {"type": "object", "properties": {"a": {"type": "string"}}}
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    write("new/crd.json", crd(one=fewer, many={"type": "array", "items": fewer}, any=anything))
    ran = run("skeleton --old old new")
    path = "spec.versions[0].schema.openAPIV3Schema.properties[spec].properties"
    assert ran.status == 0
    assert unplaced(ran.err).splitlines() == [
        f"warning: CustomResourceDefinition widgets.example.com: {path}{field}: the former schema keeps this field; now it "
        "is pruned"
        for field in ("[many].items.properties[b]", "[one].properties[b]", "[size]")
    ]


def test_a_schema_that_is_too_deep_is_refused(run: Make) -> None:
    deep = '{"properties":{"a":' * 3000 + "{}" + "}}" * 3000
    ran = run("skeleton -", stdin=deep)
    assert (ran.status, ran.out) == (1, "")
    assert "max depth" in ran.err
