"""`noxu skeleton`: the skeletons of CRDs and of bare schemas."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from noxu.apiserver.api import codec

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
    assert ran.err == f"-: the root: {RESTRICTION}\n"


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
    assert ran.err == f"crds.json: widgets.example.com v2: {path}: {RESTRICTION}\n"


def test_a_v1beta1_crd_has_one_schema_for_all_versions(run: Make, write: Make, old_crd: Make) -> None:
    write("old.json", old_crd(json.loads(SIXTH), version=None, versions=[{"name": "v1"}, {"name": "v2"}]))
    ran = run("skeleton --output json old.json")
    assert ran.status == 1
    [skeleton] = ran.json
    assert skeleton == {
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


REFUSED: list[tuple[str, str, str]] = [
    ("broken", "{", "unexpected end of JSON input"),
    ("not an object", "- a", "a schema is a JSON object"),
    ("nothing", "", "no schema found"),
    ("another kind", "apiVersion: v1\nkind: Pod", "no schema found"),
    ("a schema of wrong types", "properties: 3", "json: cannot unmarshal number into Go struct field JSONSchemaProps.properties of type map[string]v1.JSONSchemaProps"),
    ("a CRD of wrong types", "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nspec: 3", "json: cannot unmarshal number into Go struct field CustomResourceDefinition.spec of type v1.CustomResourceDefinitionSpec"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "why"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_input_without_a_schema(run: Make, text: str, why: str) -> None:
    assert run("skeleton -", stdin=text) == (1, "", f"-: {why}\n")


def test_missing_files(run: Make) -> None:
    assert run("skeleton none") == (1, "", "none: No such file or directory\n")


def test_a_schema_that_is_too_deep_is_refused(run: Make) -> None:
    deep = '{"properties":{"a":' * 3000 + "{}" + "}}" * 3000
    ran = run("skeleton -", stdin=deep)
    assert (ran.status, ran.out) == (1, "")
    assert "max depth" in ran.err
