"""Embedded resources: their metadata is coerced, and apiVersion, kind and metadata are validated."""

from __future__ import annotations

import copy

import pytest

from noxu.schema.embedded import MalformedMetadata, coerce, has_embedded, is_clean, validate
from noxu.schema.structural import parse
from noxu.values import Json, Object
from tests.rows import rows

EMBEDDED: Object = {
    "type": "object",
    "x-kubernetes-embedded-resource": True,
    "x-kubernetes-preserve-unknown-fields": True,
}
POD: Object = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}


def struct(**properties: Object) -> Object:
    return {"type": "object", "properties": properties}


def list_of(items: Object) -> Object:
    return {"type": "array", "items": items}


def map_of(values: Object) -> Object:
    return {"type": "object", "additionalProperties": values}


HAS: list[tuple[str, Object, bool]] = [
    ("nothing", {}, False),
    ("the node itself", EMBEDDED, True),
    ("a property", struct(a=struct(e=EMBEDDED)), True),
    ("items", list_of(EMBEDDED), True),
    ("values of a map", map_of(EMBEDDED), True),
    ("other nodes", struct(a=list_of(map_of({"type": "string"}))), False),
]


@pytest.mark.parametrize(("schema", "found"), [row[1:] for row in HAS], ids=[row[0] for row in HAS])
def test_schemas_with_embedded_resources(schema: Object, found: bool) -> None:
    assert has_embedded(parse(schema)) is found
    assert not has_embedded(None)


COERCED: list[tuple[str, Object, Json, Json, list[str]]] = [
    ("nothing to do", struct(e=EMBEDDED), {"e": POD}, {"e": POD}, []),
    ("unknown fields of metadata", struct(e=EMBEDDED), {"e": {**POD, "metadata": {"name": "p", "x": 1}}}, {"e": POD}, ["e.metadata.x"]),
    ("null in metadata", struct(e=EMBEDDED), {"e": {"metadata": {"name": "p", "labels": None}}}, {"e": {"metadata": {"name": "p"}}}, []),
    ("metadata that is null", struct(e=EMBEDDED), {"e": {"metadata": None}}, {"e": {"metadata": {}}}, []),
    ("other fields are not touched", struct(e=EMBEDDED), {"e": {**POD, "spec": {"metadata": {"x": 1}}}}, {"e": {**POD, "spec": {"metadata": {"x": 1}}}}, []),
    ("in lists and maps", struct(l=list_of(EMBEDDED), m=map_of(EMBEDDED)), {"l": [POD, {"metadata": {"x": 1}}], "m": {"k": {"metadata": {"y": 1}}}}, {"l": [POD, {"metadata": {}}], "m": {"k": {"metadata": {}}}}, ["l[1].metadata.x", "m[k].metadata.y"]),
    ("in an embedded resource", struct(e={**EMBEDDED, "properties": {"e": EMBEDDED}}), {"e": {"metadata": {"x": 1}, "e": {"metadata": {"y": 1}}}}, {"e": {"metadata": {}, "e": {"metadata": {}}}}, ["e.e.metadata.y", "e.metadata.x"]),
    ("a value of another type", struct(e=EMBEDDED), {"e": [1]}, {"e": [1]}, []),
]  # fmt: skip


@rows(("schema", "value", "coerced", "unknown"), [row[1:] for row in COERCED], ids=[row[0] for row in COERCED])  # fmt: skip
@pytest.mark.parametrize("drop", [False, True])
def test_metadata_is_coerced_in_place(
    schema: Object, value: Json, coerced: Json, unknown: list[str], drop: bool
) -> None:
    value = copy.deepcopy(value)
    assert coerce(value, parse(schema), drop_malformed=drop) == unknown
    assert value == coerced


MALFORMED: list[tuple[str, Object, str, Object]] = [
    ("an apiVersion that is no string", {**POD, "apiVersion": 1}, "e.apiVersion: Invalid value: 1: must be a string", {"kind": "Pod", "metadata": {"name": "p"}}),
    ("a kind that is no string", {**POD, "kind": None}, "e.kind: Invalid value: null: must be a string", {"apiVersion": "v1", "metadata": {"name": "p"}}),
    ("a field of metadata", {**POD, "metadata": {"name": 1, "uid": "u"}}, 'e.metadata: Invalid value: {"name":1,"uid":"u"}: json: cannot unmarshal number into Go struct field ObjectMeta.name of type string', {**POD, "metadata": {"uid": "u"}}),
    ("metadata that is no object", {**POD, "metadata": []}, "e.metadata: Invalid value: []: json: cannot unmarshal array into Go value of type v1.ObjectMeta", {**POD, "metadata": []}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("resource", "message", "kept"), [row[1:] for row in MALFORMED], ids=[row[0] for row in MALFORMED]
)
def test_malformed_fields_are_errors_in_requests_and_dropped_from_storage(
    resource: Object, message: str, kept: Object
) -> None:
    schema = parse(struct(e=EMBEDDED))
    with pytest.raises(MalformedMetadata) as raised:
        coerce({"e": copy.deepcopy(resource)}, schema, drop_malformed=False)
    assert str(raised.value) == str(raised.value.error) == message
    stored = {"e": copy.deepcopy(resource)}
    coerce(stored, schema, drop_malformed=True)
    assert stored == {"e": kept}


NOT_A_KIND = "may have mixed case, but should otherwise match: a DNS-1035 label must consist of"
INVALID: list[tuple[str, Object, list[str]]] = [
    ("a resource", POD, []),
    ("without a name", {**POD, "metadata": {}}, []),
    ("without metadata", {"apiVersion": "v1", "kind": "Pod"}, []),
    ("with a group", {**POD, "apiVersion": "example.com/v1"}, []),
    ("nothing", {}, ["e.apiVersion: Required value", "e.kind: Required value"]),
    ("empty identity", {"apiVersion": "", "kind": ""}, ['e.apiVersion: Invalid value: "": must not be empty', 'e.kind: Invalid value: "": must not be empty']),
    ("an apiVersion with two slashes", {**POD, "apiVersion": "a/b/c"}, ['e.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c']),
    ("a kind that is no label", {**POD, "kind": "My Pod"}, [f'e.kind: Invalid value: "My Pod": {NOT_A_KIND}']),
    ("identity of a wrong type", {"apiVersion": 1, "kind": []}, ["e.apiVersion: Invalid value: 1: must be a string", "e.kind: Invalid value: []: must be a string"]),
    ("a bad label", {**POD, "metadata": {"labels": {"a": "-"}}}, ['e.metadata.labels: Invalid value: "-": a valid label must be an empty string or consist of']),
    ("a bad name", {**POD, "metadata": {"name": "a/b"}}, ["e.metadata.name: Invalid value: \"a/b\": may not contain '/'"]),
    ("a malformed field", {**POD, "metadata": {"name": 1}}, ['e.metadata: Invalid value: {"name":1}: json: cannot unmarshal number']),
]  # fmt: skip


@rows(("resource", "errors"), [row[1:] for row in INVALID], ids=[row[0] for row in INVALID])
def test_errors(resource: Object, errors: list[str]) -> None:
    found = [str(error) for error in validate({"e": resource}, parse(struct(e=EMBEDDED)))]
    assert len(found) == len(errors)
    assert all(error.startswith(expected) for error, expected in zip(found, errors, strict=True))
    assert is_clean(resource) is (not errors)


def test_errors_have_the_paths_of_their_resources() -> None:
    schema = parse(struct(l=list_of(EMBEDDED), m=map_of(EMBEDDED), e={**EMBEDDED, "properties": {"e": EMBEDDED}}))
    value = {"l": [POD, {"kind": "Pod"}], "m": {"k": {"kind": "Pod"}}, "e": {**POD, "e": {"kind": "Pod"}}}
    fields = [error.field for error in validate(value, schema)]
    assert fields == ["l[1].apiVersion", "m[k].apiVersion", "e.e.apiVersion"]
    assert validate(value, None) == []


@pytest.mark.parametrize("metadata", [{"name": "p", "unknown": 1}, {"labels": None}, {"generation": "x"}])
def test_a_resource_that_coercion_changes_is_not_clean(metadata: Object) -> None:
    assert not is_clean({**POD, "metadata": metadata})
