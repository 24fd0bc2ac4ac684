"""v1beta1 CRDs, read into v1."""

from __future__ import annotations

import json

import pytest

from noxu.crd import lint, types, v1beta1
from noxu.crd.types import default
from noxu.crd.update import prepare_for_create
from noxu.crd.validation import validate
from noxu.schema.completion import preserving
from noxu.values import Json, Object
from tests.rows import rows

SCHEMA = {"openAPIV3Schema": {"type": "object", "properties": {"a": {"type": "string"}}}}
PRESERVE = "x-kubernetes-preserve-unknown-fields"


def beta(**spec: Json) -> Object:
    return {
        "apiVersion": "apiextensions.k8s.io/v1beta1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "foos.example.com"},
        "spec": {"group": "example.com", "names": {"plural": "foos", "kind": "Foo"}, "version": "v1", **spec},
    }


def upgraded(**spec: Json) -> Object:
    found = v1beta1.decode(beta(**spec))
    assert (found.error, found.unknown) == ("", [])
    crd: Object = types.written(v1beta1.upgrade(found.value))["spec"]
    return crd


def one(name: str = "v1", **fields: Json) -> Object:
    return {"name": name, "served": True, "storage": True, **fields}


def test_defaults_are_of_v1beta1() -> None:
    found = v1beta1.decode(beta())
    crd = types.written(v1beta1.upgrade(found.value))
    assert json.dumps(crd) == json.dumps(
        {
            "kind": "CustomResourceDefinition",
            "apiVersion": "apiextensions.k8s.io/v1",
            "metadata": {"name": "foos.example.com"},
            "spec": {
                "group": "example.com",
                "names": {"plural": "foos", "singular": "foo", "kind": "Foo", "listKind": "FooList"},
                "scope": "Namespaced",
                "versions": [one()],
                "conversion": {"strategy": "None"},
                "preserveUnknownFields": True,
            },
            "status": {"conditions": None, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": ["v1"]},
        }
    )


VERSIONS: list[tuple[str, Object, list[Object]]] = [
    ("the deprecated version", {}, [one()]),
    ("a list of versions", {"versions": [one("v2")]}, [one("v2")]),
    ("no versions at all", {"version": ""}, []),
    ("one schema for all", {"validation": SCHEMA, "versions": [one("v1"), {"name": "v2", "served": True, "storage": False}]}, [one("v1", schema=SCHEMA), {"name": "v2", "served": True, "storage": False, "schema": SCHEMA}]),
    ("schemas by version", {"versions": [one("v1", schema=SCHEMA)]}, [one("v1", schema=SCHEMA)]),
    ("subresources", {"subresources": {"status": {}}}, [one(subresources={"status": {}})]),
    ("columns have another spelling", {"additionalPrinterColumns": [{"name": "A", "type": "date", "JSONPath": ".a"}]}, [one(additionalPrinterColumns=[{"name": "A", "type": "date", "jsonPath": ".a"}])]),
    ("columns of a version, too", {"versions": [one(additionalPrinterColumns=[{"name": "A", "type": "date", "JSONPath": ".a"}])]}, [one(additionalPrinterColumns=[{"name": "A", "type": "date", "jsonPath": ".a"}])]),
    ("selectable fields", {"selectableFields": [{"jsonPath": ".a"}]}, [one(selectableFields=[{"jsonPath": ".a"}])]),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "versions"), [row[1:] for row in VERSIONS], ids=[row[0] for row in VERSIONS])
def test_versions(spec: Object, versions: list[Object]) -> None:
    assert json.dumps(upgraded(**spec)["versions"]) == json.dumps(versions)


CONFIG = {"service": {"namespace": "n", "name": "s", "port": 443}}
CONVERSIONS: list[tuple[str, Object | None, Object]] = [
    ("none", None, {"strategy": "None"}),
    ("a webhook", {"strategy": "Webhook", "webhookClientConfig": CONFIG, "conversionReviewVersions": ["v1"]}, {"strategy": "Webhook", "webhook": {"clientConfig": CONFIG, "conversionReviewVersions": ["v1"]}}),
    ("a webhook's port and review version", {"strategy": "Webhook", "webhookClientConfig": {"service": {"namespace": "n", "name": "s"}}}, {"strategy": "Webhook", "webhook": {"clientConfig": CONFIG, "conversionReviewVersions": ["v1beta1"]}}),
    ("strategy None", {"strategy": "None"}, {"strategy": "None"}),
]  # fmt: skip


@pytest.mark.parametrize(("given", "conversion"), [row[1:] for row in CONVERSIONS], ids=[row[0] for row in CONVERSIONS])
def test_conversions(given: Object | None, conversion: Object) -> None:
    assert json.dumps(upgraded(conversion=given)["conversion"]) == json.dumps(conversion)


def test_preserving_unknown_fields() -> None:
    assert upgraded()["preserveUnknownFields"] is True
    assert upgraded(preserveUnknownFields=True)["preserveUnknownFields"] is True
    assert "preserveUnknownFields" not in upgraded(preserveUnknownFields=False)


def test_fields_unknown_to_v1beta1() -> None:
    found = v1beta1.decode(beta(additionalPrinterColumns=[{"name": "a", "type": "b", "jsonPath": ".a"}], foo=1))
    assert found.unknown == ["spec.additionalPrinterColumns[0].jsonPath", "spec.foo"]
    assert v1beta1.decode(beta(scope=1)).error == (
        "json: cannot unmarshal number into Go struct field CustomResourceDefinitionSpec.spec.scope of type "
        "v1beta1.ResourceScope"
    )
    assert v1beta1.is_v1beta1(beta())
    assert not v1beta1.is_v1beta1({"apiVersion": "apiextensions.k8s.io/v1"})
    assert not v1beta1.is_v1beta1([])


def v1(**spec: Json) -> Object:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "foos.example.com"},
        "spec": {"group": "example.com", "scope": "Cluster", "names": {"plural": "foos", "kind": "Foo"}, **spec},
    }


def downgraded(**spec: Json) -> Object:
    decoded = types.decode(v1(**spec))
    assert (decoded.error, decoded.unknown) == ("", [])
    crd: Object = v1beta1.written(v1beta1.downgrade(default(decoded.value)))
    assert crd["apiVersion"] == "apiextensions.k8s.io/v1beta1"
    return crd["spec"]


OTHER = {"openAPIV3Schema": {"type": "object"}}
COLUMN = {"name": "A", "type": "date", "jsonPath": ".a"}
OLD_COLUMN = {"name": "A", "type": "date", "JSONPath": ".a"}
TWO = {"name": "v2", "served": True, "storage": False}

DOWNGRADED: list[tuple[str, list[Object], Object]] = [
    ("one version", [one(schema=SCHEMA)], {"version": "v1", "validation": SCHEMA, "versions": [one()]}),
    ("one schema for all", [one(schema=SCHEMA), {**TWO, "schema": SCHEMA}], {"version": "v1", "validation": SCHEMA, "versions": [one(), TWO]}),
    ("several schemas", [one(schema=SCHEMA), {**TWO, "schema": OTHER}], {"version": "v1", "versions": [one(schema=SCHEMA), {**TWO, "schema": OTHER}]}),
    ("the first version need not be the stored one", [TWO, one()], {"version": "v2", "versions": [TWO, one()]}),
    ("subresources of one version", [one(subresources={"status": {}}), TWO], {"version": "v1", "versions": [one(subresources={"status": {}}), TWO]}),
    ("empty subresources", [one(subresources={})], {"version": "v1", "subresources": {}, "versions": [one()]}),
    ("columns for all", [one(additionalPrinterColumns=[COLUMN]), {**TWO, "additionalPrinterColumns": [COLUMN]}], {"version": "v1", "versions": [one(), TWO], "additionalPrinterColumns": [OLD_COLUMN]}),
    ("columns of one version", [one(additionalPrinterColumns=[COLUMN]), TWO], {"version": "v1", "versions": [one(additionalPrinterColumns=[OLD_COLUMN]), TWO]}),
    ("an empty list is as none", [one(additionalPrinterColumns=[]), TWO], {"version": "v1", "versions": [one(), TWO]}),
    ("selectable fields", [one(selectableFields=[{"jsonPath": ".a"}])], {"version": "v1", "versions": [one()], "selectableFields": [{"jsonPath": ".a"}]}),
    ("a deprecated version", [one(deprecated=True, deprecationWarning="")], {"version": "v1", "versions": [one(deprecated=True, deprecationWarning="")]}),
]  # fmt: skip


@rows(("versions", "spec"), [row[1:] for row in DOWNGRADED], ids=[row[0] for row in DOWNGRADED])
def test_versions_in_v1beta1(versions: list[Object], spec: Object) -> None:
    names = {"plural": "foos", "singular": "foo", "kind": "Foo", "listKind": "FooList"}
    all_fields = {"group": "example.com", "names": names, "scope": "Cluster", **spec}
    all_fields |= {"conversion": {"strategy": "None"}, "preserveUnknownFields": False}
    found = downgraded(versions=versions)
    assert json.dumps(found) == json.dumps(
        {name: all_fields[name] for name in v1beta1.SPEC.fields if name in all_fields}
    )


WEBHOOK = {"strategy": "Webhook", "webhook": {"clientConfig": CONFIG, "conversionReviewVersions": ["v1", "v1beta1"]}}


@pytest.mark.parametrize(
    ("given", "conversion"),
    [
        (None, {"strategy": "None"}),
        ({"strategy": "None"}, {"strategy": "None"}),
        (
            WEBHOOK,
            {"strategy": "Webhook", "webhookClientConfig": CONFIG, "conversionReviewVersions": ["v1", "v1beta1"]},
        ),
        (
            {"strategy": "None", "webhook": {"conversionReviewVersions": ["v1"]}},
            {"strategy": "None", "conversionReviewVersions": ["v1"]},
        ),
    ],
    ids=["none", "strategy None", "a webhook", "review versions alone"],
)
def test_conversions_in_v1beta1(given: Object | None, conversion: Object) -> None:
    found = downgraded(versions=[one()], conversion=given)
    assert json.dumps(found["conversion"]) == json.dumps(conversion)
    assert found["preserveUnknownFields"] is False
    assert downgraded(versions=[one()], preserveUnknownFields=True)["preserveUnknownFields"] is True


CONVERTED: list[tuple[str, Object, Object, list[str]]] = [
    (
        "without a schema everything is kept",
        {},
        {"type": "object", PRESERVE: True},
        [
            f"spec.preserveUnknownFields: true became {PRESERVE}: true in the schemas",
            "spec.versions[0].schema.openAPIV3Schema: a schema that allows everything added",
            f"spec.versions[0].schema.openAPIV3Schema: {PRESERVE}: true keeps unknown fields",
        ],
    ),
    (
        "a schema that is structural stays",
        {"validation": SCHEMA, "preserveUnknownFields": False},
        SCHEMA["openAPIV3Schema"],
        [],
    ),
    (
        "unknown fields are kept at the root",
        {"validation": SCHEMA},
        {**SCHEMA["openAPIV3Schema"], PRESERVE: True},
        [
            f"spec.preserveUnknownFields: true became {PRESERVE}: true in the schemas",
            f"spec.versions[0].schema.openAPIV3Schema: {PRESERVE}: true keeps unknown fields",
        ],
    ),
    (
        "a schema without types gets them",
        {"preserveUnknownFields": False, "validation": {"openAPIV3Schema": {"properties": {"a": {"pattern": "^x"}}}}},
        {"type": "object", "properties": {"a": {"type": "string", "pattern": "^x"}}},
        [
            "spec.versions[0].schema.openAPIV3Schema: type: object added",
            "spec.versions[0].schema.openAPIV3Schema.properties[a]: type: string added",
        ],
    ),
]


@pytest.mark.parametrize(("spec", "schema", "notes"), [row[1:] for row in CONVERTED], ids=[row[0] for row in CONVERTED])
def test_conversion(spec: Object, schema: Object, notes: list[str]) -> None:
    crd, found = lint.convert(v1beta1.decode(beta(**spec)).value)
    [version] = crd["spec"]["versions"]
    assert version["schema"]["openAPIV3Schema"] == schema
    assert list(map(str, found)) == notes
    decoded = types.decode(types.written(crd))
    assert (decoded.error, decoded.unknown) == ("", [])
    assert validate(prepare_for_create(decoded.value)) == []


NOTHING_PRUNED: list[tuple[str, Object | None, Object]] = [
    ("no schema", None, {"type": "object", PRESERVE: True}),
    ("a schema that is not structural", {"patternProperties": {"x": {}}}, {"type": "object", PRESERVE: True}),
    (
        "nested objects",
        {"properties": {"a": {"type": "array", "items": {"properties": {"b": {"type": "string"}}}}}},
        {
            "type": "object",
            PRESERVE: True,
            "properties": {
                "a": {
                    "type": "array",
                    "items": {"type": "object", PRESERVE: True, "properties": {"b": {"type": "string"}}},
                }
            },
        },
    ),
    (
        "a map",
        {"properties": {"a": {"additionalProperties": {"type": "string"}}}},
        {
            "type": "object",
            PRESERVE: True,
            "properties": {"a": {"type": "object", "additionalProperties": {"type": "string"}}},
        },
    ),
]


@pytest.mark.parametrize(
    ("schema", "served"), [row[1:] for row in NOTHING_PRUNED], ids=[row[0] for row in NOTHING_PRUNED]
)
def test_schemas_that_prune_nothing(schema: Object | None, served: Object) -> None:
    assert preserving(schema) == served
