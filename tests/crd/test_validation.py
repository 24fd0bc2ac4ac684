"""Errors of a CRD outside of its schemas: their order, paths and messages."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from noxu.values import Json, Object
from tests.rows import rows

Build = Callable[..., Object]
Messages = Callable[..., list[str]]

LABEL = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)
SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
MIXED = "may have mixed case, but should otherwise match: "
SCHEMA = {"openAPIV3Schema": {"type": "object"}}


def version(name: str = "v1", storage: bool = True, **fields: Json) -> Object:
    return {"name": name, "served": True, "storage": storage, "schema": SCHEMA, **fields}


def echoed(name: str = "v1", storage: str = "true") -> str:
    return (
        f'{{"Name":"{name}","Served":true,"Storage":{storage},"Deprecated":false,"DeprecationWarning":null,"Schema":null,'
        '"Subresources":null,"AdditionalPrinterColumns":null,"SelectableFields":null}'
    )


def names(**fields: Json) -> Object:
    return {"names": {"plural": "foos", "kind": "Foo", **fields}}


SPECS: list[tuple[str, Object, list[str]]] = [
    ("nothing wrong", {}, []),
    ("no group", {"group": ""}, ["spec.group: Required value"]),
    ("a group without a dot", {"group": "example"}, ['spec.group: Invalid value: "example": should be a domain with at least one dot']),
    ("a group that is no domain", {"group": "Example.com"}, [f'spec.group: Invalid value: "Example.com": {SUBDOMAIN}']),
    ("no scope", {"scope": ""}, ["spec.scope: Required value"]),
    ("another scope", {"scope": "Galaxy"}, ['spec.scope: Unsupported value: "Galaxy": supported values: "Cluster", "Namespaced"']),
    ("preserving unknown fields", {"preserveUnknownFields": True}, ["spec.preserveUnknownFields: Invalid value: true: cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"]),
    ("versions with the same name", {"versions": [version(), version(storage=False)]}, [f"spec.versions: Invalid value: [{echoed()},{echoed(storage='false')}]: must contain unique version names"]),
    ("two storage versions", {"versions": [version(), version("v2")]}, [f"spec.versions: Invalid value: [{echoed()},{echoed('v2')}]: must have exactly one version marked as storage version", 'status.storedVersions: Invalid value: ["v1"]: must have the storage version v2']),
    ("no storage version", {"versions": [version(storage=False)]}, [f"spec.versions: Invalid value: [{echoed(storage='false')}]: must have exactly one version marked as storage version", "status.storedVersions: Invalid value: null: must have at least one stored version"]),
    ("no versions", {"versions": []}, ["spec.versions: Invalid value: []: must have exactly one version marked as storage version", "status.storedVersions: Invalid value: null: must have at least one stored version"]),
    ("a version with a bad name", {"versions": [version("V1.0")]}, [f'spec.versions[0].name: Invalid value: "V1.0": {LABEL}', f'spec.version: Invalid value: "V1.0": {LABEL}']),
    ("a second version with a bad name", {"versions": [version(), version("2", storage=False)]}, [f'spec.versions[1].name: Invalid value: "2": {LABEL}']),
    ("no plural", {"names": {"kind": "Foo"}}, ["spec.names.plural: Required value"]),
    ("no kind", {"names": {"plural": "foos"}}, ["spec.names.singular: Required value", "spec.names.kind: Required value", "spec.names.listKind: Required value"]),
    ("a bad plural", names(plural="Foos"), [f'spec.names.plural: Invalid value: "Foos": {LABEL}']),
    ("a long singular", names(singular="f" * 64), [f'spec.names.singular: Invalid value: "{"f" * 64}": must be no more than 63 characters']),
    ("a bad kind and what follows from it", names(kind="Foo_"), [f'spec.names.singular: Invalid value: "foo_": {LABEL}', f'spec.names.kind: Invalid value: "Foo_": {MIXED}{LABEL}', f'spec.names.listKind: Invalid value: "Foo_List": {MIXED}{LABEL}']),
    ("a list kind that is the kind", names(listKind="Foo"), ['spec.names.listKind: Invalid value: "Foo": kind and listKind may not be the same']),
    ("bad short names and categories", names(shortNames=["f", "F"], categories=["", "c"]), [f'spec.names.shortNames[1]: Invalid value: "F": {LABEL}', f'spec.names.categories[0]: Invalid value: "": {LABEL}']),
]  # fmt: skip


@rows(("spec", "errors"), [row[1:] for row in SPECS], ids=[row[0] for row in SPECS])
def test_specs(build: Build, messages: Messages, spec: Object, errors: list[str]) -> None:
    assert [error for error in messages(build(**spec)) if not error.startswith("metadata.name")] == errors


def test_everything_that_an_empty_spec_lacks_in_order(messages: Messages) -> None:
    crd = {"metadata": {"name": "x"}, "spec": {}}
    assert messages(crd) == [
        'metadata.name: Invalid value: "x": must be spec.names.plural+"."+spec.group',
        "spec.group: Required value",
        "spec.scope: Required value",
        "spec.versions: Invalid value: null: must have exactly one version marked as storage version",
        "spec.names.plural: Required value",
        "spec.names.singular: Required value",
        "spec.names.kind: Required value",
        "spec.names.listKind: Required value",
        "status.storedVersions: Invalid value: null: must have at least one stored version",
    ]


NAMELESS: list[tuple[str, Object, list[str]]] = [
    ("no name", {}, ["metadata.name: Required value: name or generateName is required"]),
    ("another name", {"name": "bars.example.com"}, ['metadata.name: Invalid value: "bars.example.com": must be spec.names.plural+"."+spec.group']),
    ("a namespace", {"name": "foos.example.com", "namespace": "ns"}, ["metadata.namespace: Forbidden: not allowed on this type"]),
]  # fmt: skip


@pytest.mark.parametrize(("metadata", "errors"), [row[1:] for row in NAMELESS], ids=[row[0] for row in NAMELESS])
def test_metadata(build: Build, messages: Messages, metadata: Object, errors: list[str]) -> None:
    assert messages({**build(), "metadata": metadata}) == errors


VERSIONS: list[tuple[str, Object, list[str]]] = [
    ("no schema", {"schema": None}, ["spec.versions[0].schema.openAPIV3Schema: Required value"]),
    ("an empty schema holder", {"schema": {}}, ["spec.versions[0].schema.openAPIV3Schema: Required value"]),
    ("a deprecation warning", {"deprecated": True, "deprecationWarning": "old"}, []),
    ("a deprecation warning on what is not deprecated", {"deprecationWarning": "old"}, ['spec.versions[0].deprecationWarning: Invalid value: "old": can only be set for deprecated versions']),
    ("an empty deprecation warning", {"deprecated": True, "deprecationWarning": ""}, ['spec.versions[0].deprecationWarning: Invalid value: "": must not be an empty string']),
    ("control characters are found by byte", {"deprecated": True, "deprecationWarning": "é\n"}, ['spec.versions[0].deprecationWarning: Invalid value: "é\\n": must only contain printable UTF-8 characters; non-printable character found at index 2']),
    ("the limit is in bytes", {"deprecated": True, "deprecationWarning": "é" * 129}, [f'spec.versions[0].deprecationWarning: Invalid value: "{"é" * 129}": must be <= 256 characters long']),
    ("columns that are empty", {"additionalPrinterColumns": [{}]}, ["spec.additionalPrinterColumns[0].name: Required value", "spec.additionalPrinterColumns[0].type: Required value: must be one of boolean,date,integer,number,string", "spec.additionalPrinterColumns[0].JSONPath: Required value"]),
    ("columns that are wrong", {"additionalPrinterColumns": [{"name": "a", "type": "foo", "format": "zzz", "jsonPath": "spec"}]}, ['spec.additionalPrinterColumns[0].type: Invalid value: "foo": must be one of boolean,date,integer,number,string', 'spec.additionalPrinterColumns[0].format: Invalid value: "zzz": must be one of byte,date,date-time,double,float,int32,int64,password', 'spec.additionalPrinterColumns[0].JSONPath: Invalid value: "spec": must be a simple json path starting with .']),
    ("JSON paths of columns are not parsed", {"additionalPrinterColumns": [{"name": "a", "type": "date", "jsonPath": ".spec["}]}, []),
    ("a scale without paths", {"subresources": {"scale": {}}}, ["spec.subresources.scale.specReplicasPath: Required value", "spec.subresources.scale.statusReplicasPath: Required value"]),
    ("scale paths in the wrong place", {"subresources": {"scale": {"specReplicasPath": ".foo", "statusReplicasPath": ".spec.x", "labelSelectorPath": ".a<"}}}, ['spec.subresources.scale.specReplicasPath: Invalid value: ".foo": should be a json path under .spec', 'spec.subresources.scale.statusReplicasPath: Invalid value: ".spec.x": should be a json path under .status', 'spec.subresources.scale.labelSelectorPath: Invalid value: ".a\\u003c": should be a json path under either .spec or .status']),
    ("scale paths without a dot", {"subresources": {"scale": {"specReplicasPath": "spec.x", "statusReplicasPath": ".status.r", "labelSelectorPath": "a<"}}}, ['spec.subresources.scale.specReplicasPath: Invalid value: "spec.x": must be a simple json path starting with .', 'spec.subresources.scale.labelSelectorPath: Invalid value: "a<": must be a simple json path starting with .']),
    ("an empty selector path is none", {"subresources": {"scale": {"specReplicasPath": ".spec.r", "statusReplicasPath": ".status.r", "labelSelectorPath": ""}}}, []),
]  # fmt: skip


@rows(("fields", "errors"), [row[1:] for row in VERSIONS], ids=[row[0] for row in VERSIONS])
def test_versions(build: Build, messages: Messages, fields: Object, errors: list[str]) -> None:
    assert messages(build(version=fields)) == errors


FIELDS = {
    "type": "object",
    "properties": {
        "metadata": {"type": "object", "properties": {"name": {"type": "string"}}},
        "spec": {
            "type": "object",
            "properties": {
                "a": {"type": "string", "enum": ["x"], "format": "date"},
                "o": {"type": "object"},
                "n": {"type": "number"},
                "m": {"type": "object", "additionalProperties": {"type": "integer"}},
                "t": {"type": "object", "additionalProperties": True},
                **{f"f{n}": {"type": "boolean"} for n in range(9)},
            },
        },
    },
}
SCALARS_ONLY = (
    "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed."
)
NOWHERE = "is an invalid path: does not refer to a valid field"
SELECTED: list[tuple[str, list[str], list[str]]] = [
    ("scalars, and values of maps", [".spec.a", ".spec.m.any", ".spec.f0"], []),
    ("an empty path", [""], ["spec.selectableFields[0].jsonPath: Required value"]),
    ("twice the same", [".spec.a", ".spec.a"], ['spec.selectableFields[1].jsonPath: Duplicate value: ".spec.a"']),
    ("an unknown field", [".spec.x"], [f'spec.selectableFields[0].jsonPath: Invalid value: ".spec.x": {NOWHERE}']),
    ("below a scalar", [".spec.a.b"], [f'spec.selectableFields[0].jsonPath: Invalid value: ".spec.a.b": {NOWHERE}']),
    ("without a dot", ["spec.a"], ['spec.selectableFields[0].jsonPath: Invalid value: "spec.a": is an invalid path: expected [ or . but got: spec']),
    ("with a dot at the end", [".spec."], ['spec.selectableFields[0].jsonPath: Invalid value: ".spec.": is an invalid path: unexpected end of JSON path']),
    ("in brackets", [".spec['a']"], ["spec.selectableFields[0].jsonPath: Invalid value: \".spec['a']\": is an invalid path: array notation is not allowed"]),
    ("an object", [".spec.o"], [f'spec.selectableFields[0].jsonPath: Invalid value: ".spec.o": {SCALARS_ONLY}']),
    ("a float", [".spec.n"], [f'spec.selectableFields[0].jsonPath: Invalid value: ".spec.n": {SCALARS_ONLY}']),
    ("what is not described", [".spec.t.x"], [f'spec.selectableFields[0].jsonPath: Invalid value: ".spec.t.x": {SCALARS_ONLY}']),
    ("metadata", [".metadata.name"], ['spec.selectableFields[0].jsonPath: Invalid value: ".metadata.name": must not point to fields in metadata']),
    ("nine fields", [f".spec.f{n}" for n in range(9)], ["spec.selectableFields: Too many: 9: must have at most 8 items"]),
    ("nine of which two are the same", [f".spec.f{n % 8}" for n in range(9)], ['spec.selectableFields[8].jsonPath: Duplicate value: ".spec.f0"']),
]  # fmt: skip


@rows(("paths", "errors"), [row[1:] for row in SELECTED], ids=[row[0] for row in SELECTED])
def test_selectable_fields(build: Build, messages: Messages, paths: list[str], errors: list[str]) -> None:
    fields = [{"jsonPath": path} for path in paths]
    assert messages(build(FIELDS, version={"selectableFields": fields})) == errors


def test_selectable_fields_of_a_schema_that_is_not_structural(build: Build, messages: Messages) -> None:
    schema = {"type": "object", "additionalItems": {}}
    paths = ["", "spec.a", ".spec.a", ".", ".['a']"]
    found = messages(build(schema, version={"selectableFields": [{"jsonPath": path} for path in paths]}))
    assert found[2:] == [
        "spec.selectableFields[0].jsonPath: Required value",
        'spec.selectableFields[1].jsonPath: Invalid value: "spec.a": is an invalid path: expected [ or . but got: spec',
        'spec.selectableFields[3].jsonPath: Invalid value: ".": is an invalid path: unexpected end of JSON path',
    ]


def test_selectable_fields_without_a_schema_of_their_own(build: Build, messages: Messages) -> None:
    fields = [{"jsonPath": ".spec.a"}]
    assert messages(build(version={"schema": None, "selectableFields": fields})) == [
        "spec.versions[0].schema.openAPIV3Schema: Required value",
        'spec.selectableFields: Invalid value: "": may only be set when validations.schema is included',
    ]
    holder = {"openAPIV3Schema": FIELDS}
    differing = [version(schema=holder, selectableFields=fields), version("v2", False, selectableFields=fields)]
    assert messages(build(versions=differing)) == [
        'spec.selectableFields: Invalid value: "": may only be set when validations.schema is included'
    ]
    differing[1] = version("v2", False, schema=None, selectableFields=[{"jsonPath": ".spec.n"}])
    assert messages(build(versions=differing)) == [
        "spec.versions[1].schema.openAPIV3Schema: Required value",
        'spec.versions[1].selectableFields: Invalid value: "": may only be set when `version.schema.openAPIV3Schema` is not included',
    ]


def test_selectable_fields_of_a_schema_without_structure(build: Build, messages: Messages) -> None:
    fields = [{"jsonPath": ".spec.a"}, {"jsonPath": ""}]
    crd = build({"type": "object", "$schema": "x"}, version={"selectableFields": fields})
    why = "OpenAPIV3Schema 'schema' is not supported"
    assert messages(crd) == [
        f'spec.validation.openAPIV3Schema: Invalid value: "": {why}',
        f'spec.schema.openAPIV3Schema: Invalid value: "": {why}',
        "spec.selectableFields[1].jsonPath: Required value",
    ]


def test_errors_that_differ_between_versions_are_reported_by_version(build: Build, messages: Messages) -> None:
    bad = [{"name": "", "type": "date", "jsonPath": ".a"}]
    versions = [
        version(subresources={"scale": {}}),
        version("v2", False, additionalPrinterColumns=bad, selectableFields=[{"jsonPath": ""}]),
    ]
    assert messages(build(versions=versions)) == [
        "spec.versions[0].subresources.scale.specReplicasPath: Required value",
        "spec.versions[0].subresources.scale.statusReplicasPath: Required value",
        "spec.versions[1].additionalPrinterColumns[0].name: Required value",
        'spec.versions[1].selectableFields: Invalid value: "": may only be set when `version.schema.openAPIV3Schema` is not included',
    ]  # the schema they share has been hoisted, so upstream does not find it


APPROVALS: list[tuple[str, str, str | None, list[str]]] = [
    ("a group of one's own", "example.com", None, []),
    ("the community's experiments", "a.x-k8s.io", None, []),
    ("a link", "a.k8s.io", "https://example.com/1", []),
    ("a confession", "kubernetes.io", "unapproved, for tests", []),
    ("nothing", "k8s.io", None, ['metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups must have approval annotation "api-approved.kubernetes.io", see https://github.com/kubernetes/enhancements/pull/1111']),
    ("anything else", "a.kubernetes.io", "yes", ['metadata.annotations[api-approved.kubernetes.io]: Invalid value: "yes": protected groups must have approval annotation "api-approved.kubernetes.io" with either a URL or a reason starting with "unapproved", see https://github.com/kubernetes/enhancements/pull/1111']),
]  # fmt: skip


@pytest.mark.parametrize(("group", "text", "errors"), [row[1:] for row in APPROVALS], ids=[row[0] for row in APPROVALS])
def test_approvals(build: Build, messages: Messages, group: str, text: str | None, errors: list[str]) -> None:
    crd = build(group=group)
    if text is not None:
        crd["metadata"]["annotations"] = {"api-approved.kubernetes.io": text}
    assert messages(crd) == errors
