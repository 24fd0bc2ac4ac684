"""`noxu lint`: violations of CRDs, and CRDs that can be fixed."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from noxu.crd import types
from noxu.crd.lint import as_written, fix, lint_crd, more_errors, remarks
from noxu.crd.types import default
from noxu.values import Json, Object
from tests.optional import SHARED, skip_without_data
from tests.rows import rows

Build = Callable[..., Object]
ROOT = "spec.validation.openAPIV3Schema"


def of(**properties: Json) -> Object:
    return {"type": "object", "properties": properties}


def lint(crd: Json) -> list[str]:
    return [str(violation) for violation in lint_crd(crd)]


def test_a_good_crd_has_no_violations_and_is_unchanged(build: Build) -> None:
    crd = build(of(a={"type": "string"}))
    assert lint(crd) == []
    fixed = fix(crd)
    assert (fixed.notes, fixed.violations) == ([], [])
    assert fixed.crd == types.written(default(types.decode(crd).value))


def test_violations_are_those_of_the_server(build: Build) -> None:
    crd = build(of(a={}), scope="Galaxy")
    assert lint(crd) == [
        'spec.scope: Unsupported value: "Galaxy": supported values: "Cluster", "Namespaced"',
        f"{ROOT}.properties[a].type: Required value: must not be empty for specified object fields",
    ]


def test_unknown_fields_are_violations_and_nothing_is_fixed(build: Build) -> None:
    crd = build(of(a={"type": "string", "mutable": True}), foo=1)
    violations = [
        "spec.foo: Forbidden: unknown field",
        "spec.versions[0].schema.openAPIV3Schema.properties[a].mutable: Forbidden: unknown field",
    ]
    assert lint(crd) == violations
    fixed = fix(crd)
    assert (fixed.crd, [str(violation) for violation in fixed.violations]) == (None, violations)


def test_unknown_fields_are_dropped_as_servers_do_if_that_is_wanted(build: Build) -> None:
    fixed = fix(build(of(a={"type": "string", "mutable": True}), foo=1), drop_unknown=True)
    assert [str(note) for note in fixed.notes] == [
        "spec.foo: unknown field dropped",
        "spec.versions[0].schema.openAPIV3Schema.properties[a].mutable: unknown field dropped",
    ]
    assert lint(fixed.crd) == []


def test_a_misspelt_schema_is_not_replaced_by_one_that_allows_everything(build: Build) -> None:
    crd = build(of())
    crd["spec"]["versions"][0]["schema"] = {"openApiV3Schema": of(a={"type": "string"})}
    error = 'spec.versions[0].schema.openApiV3Schema: Forbidden: unknown field: did you mean "openAPIV3Schema"?'
    assert error in lint(crd)
    assert fix(crd).crd is None


def test_with_a_former_crd_the_errors_are_those_of_an_update(build: Build) -> None:
    before, now = (
        build(of(), preserveUnknownFields=True),
        build(of(a={}), preserveUnknownFields=True, scope="Namespaced"),
    )
    assert [error.split(":")[0] for error in lint(now)] == [
        f"{ROOT}.properties[a].type",
        "spec.preserveUnknownFields",
    ]
    old: Object = {**before, "spec": {**before["spec"], "versions": [{**before["spec"]["versions"][0], "schema": {"openAPIV3Schema": of(b={})}}]}}  # fmt: skip
    assert [str(error) for error in lint_crd(now, old=old)] == [
        'spec.scope: Invalid value: "Namespaced": field is immutable'
    ]
    assert lint_crd(now, old={"kind": "Pod"}) == lint_crd(now), "what is no CRD counts as none"


NOT_CRDS: list[tuple[str, Json, list[str]]] = [
    ("a list", [], ["<nil>: Invalid value: json: cannot unmarshal array into Go value of type v1.CustomResourceDefinition"]),
    ("something else", {"apiVersion": "v1", "kind": "Pod"}, ['apiVersion: Unsupported value: "v1": supported values: "apiextensions.k8s.io/v1", "apiextensions.k8s.io/v1beta1"', 'kind: Unsupported value: "Pod": supported values: "CustomResourceDefinition"']),
    ("nothing", {}, ['apiVersion: Unsupported value: "": supported values: "apiextensions.k8s.io/v1", "apiextensions.k8s.io/v1beta1"', 'kind: Unsupported value: "": supported values: "CustomResourceDefinition"']),
    ("of wrong types", {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "spec": 3}, ["<nil>: Invalid value: json: cannot unmarshal number into Go struct field CustomResourceDefinition.spec of type v1.CustomResourceDefinitionSpec"]),
]  # fmt: skip


@pytest.mark.parametrize(("value", "violations"), [row[1:] for row in NOT_CRDS], ids=[row[0] for row in NOT_CRDS])
def test_values_that_are_not_crds(value: Json, violations: list[str]) -> None:
    assert lint(value) == violations
    fixed = fix(value)
    assert fixed.crd is None
    assert [str(violation) for violation in fixed.violations] == violations


# A schema of the root, and the fixed one.
ARTICLE = {
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "command": {"type": "string", "minLength": 1},
                "shell": {"type": "string", "minLength": 1},
                "machines": {"type": "array", "items": {"type": "string", "pattern": "^[a-z0-9]+(-[a-z0-9]+)*$"}},
            },
            "oneOf": [
                {"properties": {"command": {"type": "string"}}, "required": ["command"]},
                {"properties": {"shell": {"type": "string"}}, "required": ["shell"]},
            ],
            "not": {"properties": {"privileged": {}}},
        }
    },
    "required": ["spec"],
}


def test_the_example_of_the_article(build: Build) -> None:
    """All three rules are broken: no type at the root, types in oneOf, `privileged` only in `not`.

    Upstream's completeness check, unlike the article, looks at the root's own validations only.
    """
    assert lint(build(ARTICLE)) == [
        f"{ROOT}.properties[spec].oneOf[0].properties[command].type: Forbidden: must be empty to be structural",
        f"{ROOT}.properties[spec].oneOf[1].properties[shell].type: Forbidden: must be empty to be structural",
        f"{ROOT}.type: Required value: must not be empty at the root",
    ]
    fixed = fix(build(ARTICLE))
    assert fixed.crd is not None
    schema = fixed.crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert schema["type"] == "object"
    spec = schema["properties"]["spec"]
    assert spec["oneOf"] == [
        {"required": ["command"], "properties": {"command": {}}},
        {"required": ["shell"], "properties": {"shell": {}}},
    ]
    assert spec["properties"]["privileged"] == {"x-kubernetes-preserve-unknown-fields": True}
    assert lint(fixed.crd) == []
    assert fix(fixed.crd).notes == []


UNFIXABLE: list[tuple[str, Object, Object]] = [
    ("two types at once", of(a={"oneOf": [{"type": "string"}, {"type": "object"}]}), {}),
    ("a struct that is a map", of(a={**of(b={"type": "string"}), "additionalProperties": {"type": "string"}}), {}),
    ("a recursive definition", {**of(a={"$ref": "#/definitions/a"}), "definitions": {"a": of(a={"$ref": "#/definitions/a"})}}, {}),
    ("a pattern with lookahead", of(a={"type": "string", "pattern": "(?=a)"}), {}),
    ("a wrong default", of(a={"type": "string", "default": 1}), {}),
    ("a wrong name", of(), {"names": {"plural": "Foos", "kind": "Foo"}}),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "spec"), [row[1:] for row in UNFIXABLE], ids=[row[0] for row in UNFIXABLE])
def test_ambiguous_schemas_are_reported_and_not_fixed(build: Build, schema: Object, spec: Object) -> None:
    fixed = fix(build(schema, **spec))
    assert fixed.crd is None
    assert fixed.violations


def test_a_v1beta1_crd() -> None:
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1beta1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "foos.example.com"},
        "spec": {
            "group": "example.com",
            "version": "v1",
            "names": {"plural": "foos", "kind": "Foo"},
            "validation": {"openAPIV3Schema": {"properties": {"spec": {"properties": {"a": {"type": "string"}}}}}},
        },
    }
    assert lint(crd) == [
        f"{ROOT}.properties[spec].type: Required value: must not be empty for specified object fields",
        f"{ROOT}.type: Required value: must not be empty at the root",
        "spec.preserveUnknownFields: Invalid value: true: cannot set to true, "
        "set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead",
    ]
    fixed = fix(crd)
    assert fixed.crd is not None
    assert fixed.notes[0].text == "apiextensions.k8s.io/v1beta1 became apiextensions.k8s.io/v1"
    assert fixed.crd["spec"]["versions"] == [
        {
            "name": "v1",
            "served": True,
            "storage": True,
            "schema": {
                "openAPIV3Schema": {
                    "type": "object",
                    "properties": {"spec": {"type": "object", "properties": {"a": {"type": "string"}}}},
                    "x-kubernetes-preserve-unknown-fields": True,
                }
            },
        }
    ]


def test_real_crds_are_clean_and_unchanged() -> None:
    """Small CRDs of the shared folder, with the results of the reference server."""
    files = sorted((SHARED / "crds" / "crd").glob("*.yaml.gz"), key=lambda path: path.stat().st_size)[:25]
    if not files:
        skip_without_data("crds")
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    for file in files:
        crd = json.loads(json.dumps(yaml.load(gzip.decompress(file.read_bytes()), loader), default=str))
        name = file.name.removesuffix(".yaml.gz")
        golden = json.loads(gzip.decompress((SHARED / "crds" / "golden" / f"{name}.json.gz").read_bytes()))
        violations = lint_crd(crd)
        assert bool(violations) == (golden["asIs"]["code"] != 201), name
        if not violations:
            assert fix(crd).notes == []
        else:
            message = golden["asIs"]["status"]["message"]
            assert all(str(violation) in message for violation in violations)


V1: Object = {"apiVersion": "apiextensions.k8s.io/v1", "spec": {}}
V1BETA1: Object = {
    "apiVersion": "apiextensions.k8s.io/v1beta1",
    "spec": {"validation": {}, "subresources": {}, "additionalPrinterColumns": []},
}
PATHS: list[tuple[Object, str, str]] = [
    (V1, "spec.validation.openAPIV3Schema.type", "spec.versions[0].schema.openAPIV3Schema.type"),
    (V1, "spec.validation", "spec.versions[0].schema"),
    (V1, "spec.versions[1].schema.openAPIV3Schema", "spec.versions[1].schema.openAPIV3Schema"),
    (V1, "spec.subresources.scale.specReplicasPath", "spec.versions[0].subresources.scale.specReplicasPath"),
    (V1, "spec.additionalPrinterColumns[2].JSONPath", "spec.versions[0].additionalPrinterColumns[2].jsonPath"),
    (V1, "spec.names.plural", "spec.names.plural"),
    (V1, "spec.validations", "spec.validations"),
    (V1BETA1, "spec.versions[0].schema.openAPIV3Schema.type", "spec.validation.openAPIV3Schema.type"),
    (V1BETA1, "spec.validation.openAPIV3Schema.type", "spec.validation.openAPIV3Schema.type"),
    (V1BETA1, "spec.versions[3].additionalPrinterColumns[0].JSONPath", "spec.additionalPrinterColumns[0].JSONPath"),
    (V1BETA1, "spec.versions[0].selectableFields[0]", "spec.versions[0].selectableFields[0]"),
    ({"spec": 3}, "spec.validation", "spec.validation"),
]


@rows(("crd", "path", "written"), PATHS)
def test_the_path_of_a_field_as_the_document_has_it(crd: Object, path: str, written: str) -> None:
    assert as_written(crd, path) == written


def test_schemas_of_all_versions_are_looked_at(build: Build) -> None:
    crd = build(of(a={"type": "string", "nullable": True, "default": "x"}))
    [version] = crd["spec"]["versions"]
    nested = {"openAPIV3Schema": of(a={"type": "object", "not": {"properties": {"b": {}}}})}
    unreadable = {"openAPIV3Schema": of(a={"items": [{}]})}
    crd["spec"]["versions"] += [
        {**version, "name": "v2", "schema": nested},
        {**version, "name": "v3", "schema": unreadable},
    ]
    assert [remark.path for remark in remarks(crd)] == ["spec.versions[0].schema.openAPIV3Schema.properties[a]"]
    path = "spec.versions[1].schema.openAPIV3Schema.properties[a]"
    assert [error.field for error in more_errors(crd)] == [f"{path}.properties[b]"]
    assert (remarks({"kind": "Pod"}), more_errors({"kind": "Pod"})) == ([], [])
