"""Metadata that coercion would not change is recognized without decoding it."""

from __future__ import annotations

import pytest

from noxu.api.meta import OBJECT_META, coerce, is_coerced
from noxu.go.structs import decode
from noxu.values import Json, Object
from tests.rows import rows

OWNER = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}
ENTRY = {"manager": "m", "operation": "Update", "apiVersion": "v1", "time": "2024-01-01T00:00:00Z", "fieldsV1": {}}

COERCED: list[tuple[str, Object]] = [
    ("nothing", {}),
    (
        "texts",
        {"name": "a", "namespace": "b", "uid": "u", "resourceVersion": "1", "generateName": "a-", "selfLink": "/"},
    ),
    ("numbers", {"generation": 1, "deletionGracePeriodSeconds": 0}),
    ("times", {"creationTimestamp": "2024-01-01T00:00:00Z", "deletionTimestamp": "2024-01-02T00:00:00Z"}),
    ("maps", {"labels": {"a": "b", "c": ""}, "annotations": {"a": "b"}}),
    ("owners", {"ownerReferences": [{**OWNER, "controller": False, "blockOwnerDeletion": True}]}),
    ("finalizers", {"finalizers": ["a", ""]}),
    ("managed fields", {"managedFields": [ENTRY]}),
]

NOT_COERCED: list[tuple[str, Json]] = [
    ("null", None),
    ("no object", []),
    ("an unknown field", {"x": 1}),
    ("an empty text", {"name": ""}),
    ("a null", {"labels": None}),
    ("a number for a text", {"name": 1}),
    ("a generation of zero", {"generation": 0}),
    ("a float", {"generation": 1.0}),
    ("a boolean for a number", {"generation": True}),
    ("a number beyond int64", {"generation": 2**63}),
    ("a time in another form", {"creationTimestamp": "2024-01-01T00:00:00.5Z"}),
    ("an empty map", {"labels": {}}),
    ("a label that is no text", {"labels": {"a": 1}}),
    ("an empty list", {"finalizers": []}),
    ("a null in a list", {"finalizers": [None]}),
    ("an owner without uid", {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p"}]}),
    ("an owner with an unknown field", {"ownerReferences": [{**OWNER, "x": 1}]}),
    ("an entry with an empty text", {"managedFields": [{**ENTRY, "subresource": ""}]}),
    ("an entry whose fields are no object", {"managedFields": [{**ENTRY, "fieldsV1": []}]}),
]


@pytest.mark.parametrize("metadata", [row[1] for row in COERCED], ids=[row[0] for row in COERCED])
def test_metadata_in_its_final_form(metadata: Object) -> None:
    assert is_coerced(metadata)
    assert coerce(metadata).metadata is metadata
    assert decode(OBJECT_META, metadata) == (metadata, "", [])


@rows("metadata", [row[1] for row in NOT_COERCED], ids=[row[0] for row in NOT_COERCED])
def test_metadata_that_may_change(metadata: Json) -> None:
    assert not is_coerced(metadata)
