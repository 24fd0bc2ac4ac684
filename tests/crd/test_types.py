"""Decoding a CustomResourceDefinition: Go's texts for wrong types, unknown fields, and the form it is written in."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from noxu.api import codec
from noxu.crd.types import CRD, SCHEMA, decode, write, written
from noxu.go.structs import MAX_DEPTH, _Reader
from noxu.go.structs import decode as decode_struct
from noxu.go.text import RawNumber
from noxu.values import Json, Object
from tests.optional import SHARED, skip_without_data
from tests.rows import rows

GO = "json: cannot unmarshal "
AT = "Go struct field JSONSchemaProps.spec.versions.schema.openAPIV3Schema.properties"

WRONG_SCHEMAS: list[tuple[str, Object, str]] = [
    ("a type that is a number", {"type": 1}, f"{GO}number into {AT}.type of type string"),
    ("names of properties are not reported", {"properties": {"a": {"nullable": "x"}}}, f"{GO}string into {AT}.properties.nullable of type bool"),
    ("properties that are a number", {"properties": 3}, f"{GO}number into {AT}.properties of type map[string]v1.JSONSchemaProps"),
    ("a property that is a number", {"properties": {"a": 3}}, f"{GO}number into {AT}.properties of type v1.JSONSchemaProps"),
    ("junctors that are an object", {"anyOf": {}}, f"{GO}object into {AT}.anyOf of type []v1.JSONSchemaProps"),
    ("a limit in quotes", {"maximum": "1"}, f"{GO}string into {AT}.maximum of type float64"),
    ("a limit that no float64 holds", {"maximum": 10**400}, f"{GO}number {10**400} into {AT}.maximum of type float64"),
    ("a length with a fraction", {"maxLength": 1.5}, f"{GO}number 1.5 into {AT}.maxLength of type int64"),
    ("required as a string", {"required": "x"}, f"{GO}string into {AT}.required of type []string"),
    ("a required name that is a number", {"required": [1]}, f"{GO}number into {AT}.required of type string"),
    ("an enum that is no list", {"enum": 1}, f"{GO}number into {AT}.enum of type []v1.JSON"),
    ("a URL type", {"$schema": 3}, f"{GO}number into {AT}.$schema of type v1.JSONSchemaURL"),
    ("definitions", {"definitions": 3}, f"{GO}number into {AT}.definitions of type v1.JSONSchemaDefinitions"),
    ("dependencies", {"dependencies": 3}, f"{GO}number into {AT}.dependencies of type v1.JSONSchemaDependencies"),
    ("rules that are an object", {"x-kubernetes-validations": {}}, f"{GO}object into {AT}.x-kubernetes-validations of type v1.ValidationRules"),
    ("a rule names its own struct", {"x-kubernetes-validations": [{"rule": 1}]}, f"{GO}number into {AT.replace('JSONSchemaProps', 'ValidationRule')}.x-kubernetes-validations.rule of type string"),
    ("inside of items the outer struct is named", {"items": {"x-kubernetes-validations": [{"rule": 1}]}}, f"{GO}number into {AT}.items.x-kubernetes-validations.rule of type string"),
    ("a list of items", {"items": [3]}, f"{GO}number into {AT}.items of type v1.JSONSchemaProps"),
    ("additionalProperties in quotes", {"additionalProperties": "true"}, "boolean or JSON schema expected"),
    ("inside of additionalProperties", {"additionalProperties": {"not": {"type": 2}}}, f"{GO}number into {AT}.additionalProperties.not.type of type string"),
    ("an error inside of them wins over an earlier one", {"type": 2, "additionalProperties": {"type": 3, "title": 4}}, f"{GO}number into {AT}.additionalProperties.type of type string"),
    ("of several errors the first one is reported", {"type": 2, "title": 3}, f"{GO}number into {AT}.type of type string"),
    ("names that others depend on", {"dependencies": {"a": ["x", 1]}}, f"{GO}number into {AT}.dependencies of type string"),
]  # fmt: skip

WRONG_SPECS: list[tuple[str, Object, str]] = [
    ("a group that is a number", {"group": 3}, f"{GO}number into Go struct field CustomResourceDefinitionSpec.spec.group of type string"),
    ("a scope", {"scope": []}, f"{GO}array into Go struct field CustomResourceDefinitionSpec.spec.scope of type v1.ResourceScope"),
    ("versions", {"versions": 3}, f"{GO}number into Go struct field CustomResourceDefinitionSpec.spec.versions of type []v1.CustomResourceDefinitionVersion"),
    ("a version", {"versions": [3]}, f"{GO}number into Go struct field CustomResourceDefinitionSpec.spec.versions of type v1.CustomResourceDefinitionVersion"),
    ("a conversion strategy", {"conversion": {"strategy": 1}}, f"{GO}number into Go struct field CustomResourceConversion.spec.conversion.strategy of type v1.ConversionStrategyType"),
    ("a CA bundle that is not base64", {"conversion": {"strategy": "Webhook", "webhook": {"clientConfig": {"caBundle": "%%"}}}}, "illegal base64 data at input byte 0"),
    ("a port out of range", {"conversion": {"strategy": "Webhook", "webhook": {"clientConfig": {"service": {"port": 70000000000}}}}}, f"{GO}number 70000000000 into Go struct field ServiceReference.spec.conversion.webhook.clientConfig.service.port of type int32"),
]  # fmt: skip

WRONG_OBJECTS: list[tuple[str, Json, str]] = [
    ("a spec that is a list", {"spec": []}, f"{GO}array into Go struct field CustomResourceDefinition.spec of type v1.CustomResourceDefinitionSpec"),
    ("a status that is a number", {"status": 3}, f"{GO}number into Go struct field CustomResourceDefinition.status of type v1.CustomResourceDefinitionStatus"),
    ("metadata that is a number", {"metadata": 3}, f"{GO}number into Go struct field CustomResourceDefinition.metadata of type v1.ObjectMeta"),
    ("a name that is a number", {"metadata": {"name": 3}}, f"{GO}number into Go struct field ObjectMeta.metadata.name of type string"),
    ("no time", {"status": {"conditions": [{"lastTransitionTime": "x"}]}}, 'parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"'),
    ("no object", 3, f"{GO}number into Go value of type v1.CustomResourceDefinition"),
]  # fmt: skip


@rows(("schema", "error"), [row[1:] for row in WRONG_SCHEMAS], ids=[row[0] for row in WRONG_SCHEMAS])
def test_wrong_types_in_schemas(build: Callable[..., Object], schema: Object, error: str) -> None:
    assert decode(build({"type": "object", "properties": {"spec": schema}})).error == error


@pytest.mark.parametrize(("spec", "error"), [row[1:] for row in WRONG_SPECS], ids=[row[0] for row in WRONG_SPECS])
def test_wrong_types_in_the_spec(build: Callable[..., Object], spec: Object, error: str) -> None:
    assert decode(build(**spec)).error == error


@pytest.mark.parametrize(("obj", "error"), [row[1:] for row in WRONG_OBJECTS], ids=[row[0] for row in WRONG_OBJECTS])
def test_wrong_types_around(obj: Json, error: str) -> None:
    assert decode(obj).error == error


UNKNOWN: list[tuple[str, Object, list[str]]] = [
    ("in a property", {"properties": {"spec": {"bar": 1}}}, ["properties.spec.bar"]),
    ("in a rule", {"x-kubernetes-validations": [{"rule": "self", "zz": 1}]}, ["x-kubernetes-validations[0].zz"]),
    ("in patternProperties", {"patternProperties": {"a": {"bar": 1}}}, ["patternProperties.a.bar"]),
    ("names are case-sensitive", {"Type": "object"}, ["Type"]),
    ("in document order", {"zz": 1, "externalDocs": {"x": 1}, "aa": 1}, ["zz", "externalDocs.x", "aa"]),
    ("not inside of items", {"items": {"bar": 1}}, []),
    ("not inside of additionalProperties", {"additionalProperties": {"bar": 1}}, []),
    ("not inside of dependencies", {"dependencies": {"a": {"bar": 1}}}, []),
    ("not inside of values", {"default": {"bar": 1}, "example": {"bar": 1}, "enum": [{"bar": 1}]}, []),
]


@pytest.mark.parametrize(("schema", "unknown"), [row[1:] for row in UNKNOWN], ids=[row[0] for row in UNKNOWN])
def test_unknown_fields(build: Callable[..., Object], schema: Object, unknown: list[str]) -> None:
    found = decode(build(schema))
    assert found.error == ""
    assert found.unknown == [f"spec.versions[0].schema.openAPIV3Schema.{path}" for path in unknown]


def schema_of(crd: Object) -> Object:
    schema: Object = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


DECODED: list[tuple[str, Object, Object]] = [
    ("zero scalars vanish", {"type": "", "nullable": False, "description": "", "x-kubernetes-int-or-string": False}, {}),
    ("pointers to zero stay", {"minimum": 0, "maxLength": 0, "x-kubernetes-list-type": "", "x-kubernetes-preserve-unknown-fields": False, "$ref": ""}, {"$ref": "", "minimum": 0, "maxLength": 0, "x-kubernetes-preserve-unknown-fields": False, "x-kubernetes-list-type": ""}),
    ("null is nothing", {"type": None, "default": None, "items": None, "not": None, "properties": None, "enum": None}, {}),
    ("a property that is null allows everything", {"properties": {"a": None}}, {"properties": {"a": {}}}),
    ("whole floats become integers", {"maximum": 5.0, "minimum": 1.5, "multipleOf": 1e21}, {"maximum": 5, "minimum": 1.5, "multipleOf": 1e21}),
    ("limits beyond int64 are floats, as when they are read from storage", {"maximum": 9223372036854775807}, {"maximum": 9.223372036854776e18}),
    ("numbers in values stay what they are", {"default": 1.0, "enum": [1, 1.0]}, {"default": 1.0, "enum": [1, 1.0]}),
    ("empty lists and maps are kept", {"required": [], "properties": {}, "enum": []}, {"enum": [], "required": [], "properties": {}}),
    ("items that are nothing", {"items": 3}, {"items": []}),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "value"), [row[1:] for row in DECODED], ids=[row[0] for row in DECODED])
def test_decoded_values(build: Callable[..., Object], schema: Object, value: Object) -> None:
    assert json.dumps(schema_of(decode(build(schema)).value)) == json.dumps(value)


def test_minus_zero_in_a_default_is_written_as_0_but_is_a_float_until_then(build: Callable[..., Object]) -> None:
    default = decode(build(schema={"default": {"a": [-0.0, 0.5, RawNumber("-0")]}})).value["spec"]["versions"][0][
        "schema"
    ]
    items = default["openAPIV3Schema"]["default"]["a"]
    assert [type(item) for item in items] == [float, float, int]
    assert codec.encode(items, sort_keys=False) == b"[0,0.5,0]"


def test_fields_come_in_the_order_of_declaration_and_keys_of_maps_sorted(build: Callable[..., Object]) -> None:
    schema = {
        "properties": {"b": {}, "a": {"title": "t", "type": "string"}},
        "default": {"b": {"d": 1, "c": 2}},
        "type": "object",
    }
    assert json.dumps(schema_of(decode(build(schema)).value)) == json.dumps(
        {
            "type": "object",
            "default": {"b": {"c": 2, "d": 1}},
            "properties": {"a": {"type": "string", "title": "t"}, "b": {}},
        }
    )


def test_nothing_is_decoded_as_zero_everywhere() -> None:
    names = {"plural": "", "kind": ""}
    assert json.dumps(decode({}).value) == json.dumps(
        {
            "metadata": {},
            "spec": {"group": "", "names": names, "scope": "", "versions": None},
            "status": {"conditions": None, "acceptedNames": names, "storedVersions": None},
        }
    )


WRITTEN: list[tuple[str, Object, Object]] = [
    ("empty lists and maps", {"required": [], "properties": {}, "enum": [], "anyOf": []}, {}),
    ("items that are nothing", {"items": []}, {}),
    ("what depends on nothing", {"dependencies": {"a": 3, "b": [], "c": ["x"]}}, {"dependencies": {"a": None, "b": None, "c": ["x"]}}),
    ("booleans instead of schemas", {"additionalProperties": True, "additionalItems": False}, {"additionalProperties": True, "additionalItems": False}),
    ("empty schemas stay", {"items": {}, "additionalProperties": {}, "not": {}, "allOf": [{}]}, {"items": {}, "allOf": [{}], "not": {}, "additionalProperties": {}}),
    ("lists of items", {"items": [{"required": []}]}, {"items": [{}]}),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "value"), [row[1:] for row in WRITTEN], ids=[row[0] for row in WRITTEN])
def test_written_values(build: Callable[..., Object], schema: Object, value: Object) -> None:
    assert json.dumps(schema_of(written(decode(build(schema)).value))) == json.dumps(value)


def test_fields_are_written_in_the_order_of_declaration_at_any_depth() -> None:
    """Decoded values have this order; what is merged may not. Each field is written once: 2**200 are too many."""
    schema: Object = {"type": "string", "description": "x"}
    expected: Object = {"description": "x", "type": "string"}
    for _ in range(200):
        schema = {"unknown": 1, "properties": {"a": schema}, "required": [], "not": {"title": "t"}, "type": "object"}
        expected = {"type": "object", "not": {"title": "t"}, "properties": {"a": expected}}
    assert json.dumps(write(SCHEMA, schema)) == json.dumps(expected)


def test_written_fields_without_omitempty() -> None:
    crd = {
        "spec": {
            "versions": [{"subresources": {}, "schema": {}, "additionalPrinterColumns": []}],
            "conversion": {"webhook": {}},
        }
    }
    spec = written(decode(crd).value)["spec"]
    assert spec["versions"] == [{"name": "", "served": False, "storage": False, "schema": {}, "subresources": {}}]
    assert spec["conversion"] == {"strategy": "", "webhook": {"conversionReviewVersions": None}}


def nested(depth: int) -> Object:
    schema: Object = {"type": "string"}
    for _ in range(depth):
        schema = {"properties": {"a": schema}}
    return schema


@pytest.mark.slow
def test_schemas_may_be_deep_but_not_bottomless() -> None:
    assert decode_struct(SCHEMA, nested(MAX_DEPTH - 1)).error == ""
    assert decode_struct(SCHEMA, nested(MAX_DEPTH)).error == "exceeded max depth"
    assert decode_struct(SCHEMA, nested(4000)).error == "exceeded max depth"


def test_values_may_be_as_deep_as_json() -> None:
    value: Json = 1
    for _ in range(9000):
        value = {"b": [value]}
    decoded = decode_struct(SCHEMA, {"default": {"z": 1, "a": value}}).value
    assert list(decoded["default"]) == ["a", "z"]


def test_the_fast_decoder_agrees_with_the_one_that_explains_errors() -> None:
    """On real CRDs; only those that the shared folder has."""
    files = sorted((SHARED / "crds" / "crd").glob("*.yaml.gz"), key=lambda path: path.stat().st_size)[:25]
    if not files:
        skip_without_data("crds")
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    for file in files:
        crd = json.loads(json.dumps(yaml.load(gzip.decompress(file.read_bytes()), loader), default=str))
        reader = _Reader()
        explained = reader.read(CRD, crd, "", (), "")
        assert (reader.error, reader.unknown) == ("", [])
        assert json.dumps(decode(crd).value) == json.dumps(explained)
