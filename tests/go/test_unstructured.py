"""Upstream's messages for maps that are no Go structs. Its converter gave those for ObjectMeta."""

from __future__ import annotations

import json

from noxu.api.meta import OBJECT_META
from noxu.crd.types import CLIENT_CONFIG, COLUMN, SCHEMA
from noxu.go.structs import Type
from noxu.go.unstructured import mismatch
from noxu.values import Json
from tests.rows import rows

WRONG = [
    ('{"name":5}', "cannot convert int64 to string"),
    ('{"name":1.5}', "unrecognized type: string"),
    ('{"name":true}', "unrecognized type: string"),
    ('{"name":["a"]}', "unrecognized type: string"),
    ('{"name":{"a":1}}', "unrecognized type: string"),
    ('{"generation":"x"}', "unrecognized type: int64"),
    ('{"generation":1.5}', "cannot convert float64 to int64"),
    ('{"generation":true}', "unrecognized type: int64"),
    ('{"generation":{}}', "unrecognized type: int64"),
    ('{"uid":5}', "cannot convert int64 to types.UID"),
    ('{"uid":true}', "unrecognized type: string"),
    ('{"labels":5}', "cannot restore map from int64"),
    ('{"labels":"x"}', "cannot restore map from string"),
    ('{"labels":["a"]}', "cannot restore map from slice"),
    ('{"labels":{"a":5}}', "cannot convert int64 to string"),
    ('{"labels":{"a":true}}', "unrecognized type: string"),
    ('{"labels":{"a":{}}}', "unrecognized type: string"),
    ('{"finalizers":"x"}', "cannot restore slice from string"),
    ('{"finalizers":{}}', "cannot restore slice from map"),
    ('{"finalizers":[5]}', "cannot convert int64 to string"),
    ('{"ownerReferences":[{"uid":5}]}', "cannot convert int64 to types.UID"),
    ('{"ownerReferences":[5]}', "cannot restore struct from: int64"),
    ('{"ownerReferences":["x"]}', "cannot restore struct from: string"),
    ('{"ownerReferences":[{"controller":"yes"}]}', "unrecognized type: bool"),
    ('{"ownerReferences":[{"controller":1}]}', "unrecognized type: bool"),
    ('{"ownerReferences":5}', "cannot restore slice from int64"),
    ('{"creationTimestamp":5}', "json: cannot unmarshal number into Go value of type string"),
    ('{"creationTimestamp":"x"}', 'parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"'),
    ('{"creationTimestamp":{}}', "json: cannot unmarshal object into Go value of type string"),
    ('{"deletionTimestamp":"x"}', 'parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"'),
    ('{"deletionTimestamp":true}', "json: cannot unmarshal bool into Go value of type string"),
    ('{"deletionGracePeriodSeconds":"5"}', "unrecognized type: int64"),
    ('{"deletionGracePeriodSeconds":1.5}', "cannot convert float64 to int64"),
    ('{"managedFields":[{"operation":5}]}', "cannot convert int64 to v1.ManagedFieldsOperationType"),
    ('{"managedFields":[{"time":5}]}', "json: cannot unmarshal number into Go value of type string"),
    ('{"managedFields":{}}', "cannot restore slice from map"),
    ('{"name":5,"labels":5}', "cannot convert int64 to string"),
]


@rows(("metadata", "why"), WRONG)
def test_mistyped_metadata_is_reported(metadata: str, why: str) -> None:
    assert mismatch(OBJECT_META, json.loads(metadata)) == why


@rows(
    "metadata",
    [
        "{}",
        '{"name":null}',
        '{"generation":2.0}',
        '{"labels":{"a":null}}',
        '{"finalizers":[null]}',
        '{"managedFields":[{"fieldsV1":5}]}',
        '{"managedFields":[{"fieldsV1":"x"}]}',
        '{"managedFields":[{"fieldsV1":{"f:a":{}}}]}',
        '{"unknown":5}',
    ],
)
def test_well_typed_metadata_is_accepted(metadata: str) -> None:
    assert mismatch(OBJECT_META, json.loads(metadata)) == ""


def test_how_deep_labels_are_does_not_matter() -> None:
    deep = json.loads("[" * 900 + "]" * 900)
    assert mismatch(OBJECT_META, {"labels": {"a": deep}}) == "unrecognized type: string"


OTHER_TYPES: list[tuple[str, Type, Json, str]] = [
    ("a fraction for an int32", COLUMN, {"priority": 1.5}, "cannot convert float64 to int32"),
    ("a whole float for an int32", COLUMN, {"priority": 1.0}, ""),
    ("an integer for a float64", SCHEMA, {"maximum": 1, "minimum": 1.5}, ""),
    ("a text for a float64", SCHEMA, {"maximum": "x"}, "unrecognized type: float64"),
    ("bytes", CLIENT_CONFIG, {"caBundle": "eHg="}, ""),
    ("bytes that are no base64", CLIENT_CONFIG, {"caBundle": "%"}, "error decoding from json: illegal base64 data at input byte 0"),
    ("bytes that are a number", CLIENT_CONFIG, {"caBundle": 1}, "cannot restore slice from int64"),
    ("any JSON", SCHEMA, {"default": {"a": [1, None]}}, ""),
    ("a type that decodes itself", SCHEMA, {"items": {"type": 1}}, "json: cannot unmarshal number into Go struct field JSONSchemaProps.type of type string"),
    ("another type that decodes itself", SCHEMA, {"additionalProperties": "x"}, "boolean or JSON schema expected"),
]  # fmt: skip


@rows(("kind", "value", "why"), [row[1:] for row in OTHER_TYPES], ids=[row[0] for row in OTHER_TYPES])
def test_other_types(kind: Type, value: Json, why: str) -> None:
    assert mismatch(kind, value) == why
