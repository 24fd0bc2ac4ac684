"""Objects as tables and as metadata. The expectations are the reference server's answers."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from noxu.api.errors import ApiError
from noxu.tables.table import (
    CREATED,
    NAME,
    Columns,
    Conversion,
    convert,
    convert_list,
    custom_columns,
    include_object,
    list_meta,
    partial,
    partial_list,
    row,
    scale_columns,
    table,
)
from tests.optional import SHARED, needs_data
from tests.rows import rows

RECORDINGS = SHARED / "recordings"
NOW = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)
TABLE = Conversion("Table", "v1")
METADATA = Conversion("PartialObjectMetadata", "v1")
METADATA_LIST = Conversion("PartialObjectMetadataList", "v1")


def column(kind: str, path: str, **more: Any) -> dict[str, Any]:
    return {"name": "C", "type": kind, "jsonPath": path, **more}


def thing(**spec: Any) -> dict[str, Any]:
    metadata = {
        "name": "w1",
        "namespace": "default",
        "resourceVersion": "7",
        "creationTimestamp": "2026-11-21T11:00:00Z",
    }
    return {"apiVersion": "x.io/v1", "kind": "Thing", "metadata": metadata, "spec": spec}


def cell(kind: str, value: Any, path: str = ".spec.v") -> Any:
    _, only = custom_columns([column(kind, path)]).cells_at(thing(v=value), NOW)
    return only


# -- columns ----------------------------------------------------------------------------------------------------------


def test_without_columns_there_are_name_and_age() -> None:
    for none in (None, []):
        columns = custom_columns(none)
        assert columns.definitions == [
            {"name": "Name", "type": "string", "format": "name", "description": NAME, "priority": 0},
            {"name": "Age", "type": "date", "format": "", "description": CREATED, "priority": 0},
        ]
        assert columns.cells_at(thing(), NOW) == ["w1", "60m"]


def test_with_columns_there_are_these_and_the_name() -> None:
    columns = custom_columns([
        {"name": "S", "type": "string", "jsonPath": ".spec.s"},
        {"name": "A", "type": "integer", "format": "int32", "description": "an a", "priority": 1, "jsonPath": ".spec.a"},
    ])  # fmt: skip
    assert columns.definitions[1:] == [
        {
            "name": "S",
            "type": "string",
            "format": "",
            "description": "Custom resource definition column (in JSONPath format): .spec.s",
            "priority": 0,
        },
        {"name": "A", "type": "integer", "format": "int32", "description": "an a", "priority": 1},
    ]
    assert columns.cells_at(thing(s="x", a=5), NOW) == ["w1", "x", 5]


def test_a_column_that_is_no_path_takes_those_after_it_along() -> None:
    columns = custom_columns([column("string", ".spec.a"), column("string", ".spec["), column("string", ".spec.b")])
    assert len(columns.definitions) == 2
    assert columns.cells_at(thing(a="x", b="y"), NOW) == ["w1", "x"]


def test_if_the_first_column_is_no_path_the_name_is_left() -> None:
    assert custom_columns([column("string", ".spec[")]).cells_at(thing(), NOW) == ["w1"]


def test_the_columns_of_scale() -> None:
    columns = scale_columns()
    assert [(column["name"], column["type"]) for column in columns.definitions] == [
        ("Name", "string"),
        ("Desired", "integer"),
        ("Available", "integer"),
        ("Age", "date"),
    ]
    scale = {
        "metadata": {"name": "w1", "creationTimestamp": "2026-11-21T11:59:00Z"},
        "spec": {},
        "status": {"replicas": 2},
    }
    assert columns.cells_at(scale, NOW) == ["w1", None, 2, "60s"]


# -- cells ------------------------------------------------------------------------------------------------------------


@rows(
    ("kind", "value", "expected"),
    [
        ("string", "txt", "txt"),
        ("string", "", ""),
        ("string", 5, "5"),
        ("string", -9223372036854775808, "-9223372036854775808"),
        ("string", 2.5, "2.5"),
        ("string", 3.0, "3"),
        ("string", 1234567.0, "1.234567e+06"),
        ("string", 0.00001, "1e-05"),
        ("string", 1e21, "1e+21"),
        ("string", True, "true"),
        ("string", False, "false"),
        ("string", None, "<no value>"),
        ("string", [], "[]"),
        ("string", {}, "{}"),
        ("string", ["p", 1, 2.0, None, True], '["p",1,2,null,true]'),
        ("string", {"b": 1, "a": {"z": "<&>"}}, '{"a":{"z":"\\u003c\\u0026\\u003e"},"b":1}'),
        ("integer", 5, 5),
        ("integer", 9223372036854775807, 9223372036854775807),
        ("integer", 2.9, 2),
        ("integer", -2.9, -2),
        ("integer", 1e21, -9223372036854775808),
        ("integer", -1e300, -9223372036854775808),
        ("integer", 9223372036854775808.0, -9223372036854775808),
        ("integer", True, None),
        ("integer", "5", None),
        ("integer", None, None),
        ("integer", [5], None),
        ("number", 5, 5),
        ("number", 2.5, 2.5),
        ("number", 3.0, 3),
        ("number", 0, 0),
        ("number", 0.0, 0),
        ("number", -0.0, -0.0),
        ("number", 1e19, 10000000000000000000),
        ("number", 1e20, 1e20),
        ("number", -0.5, -0.5),
        ("number", 1e21, 1e21),
        ("number", 9007199254740993, 9007199254740992),
        ("number", 9223372036854775807, 9223372036854776000),
        ("number", True, None),
        ("number", "2.5", None),
        ("number", None, None),
        ("boolean", True, True),
        ("boolean", False, False),
        ("boolean", 1, None),
        ("boolean", "true", None),
        ("boolean", None, None),
        ("date", "2026-11-21T11:59:30Z", "30s"),
        ("date", "2020-01-02T03:04:05Z", "6y325d"),
        ("date", "2999-01-01T00:00:00Z", "<invalid>"),
        ("date", "str", "<invalid>"),
        ("date", "", "<unknown>"),
        ("date", 5, None),
        ("date", None, None),
        ("date", ["2020-01-02T03:04:05Z"], None),
    ],
)
def test_a_cell_goes_by_its_columns_type(kind: str, value: Any, expected: Any) -> None:
    found = cell(kind, value)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize("kind", ["string", "integer", "number", "boolean", "date"])
@rows("path", [".spec.missing", ".missing.v", ".spec.v[0]", ".spec.v[*]", '.spec.v[?(@.x=="y")]', ".spec word"])
def test_missing_and_failing_columns_are_null(kind: str, path: str) -> None:
    assert cell(kind, "text", path) is None


@rows(
    ("kind", "path", "expected"),
    [
        ("string", ".spec.v[*]", "1"),
        ("integer", ".spec.v[1:]", 2),
        ("string", ".spec.v[-1:]", "3"),
        ("string", ".metadata.name", "w1"),
        ("integer", ".spec.v 5", None),
        ("number", ".spec.v 5", None),
        ("number", ".spec.v 1.5", 1.5),
        ("string", ".spec.v 5", "5"),
        ("boolean", ".spec.v true", True),
        ("string", ".metadata.name.*", "119"),
        ("integer", ".metadata.name.*", None),
    ],
)
def test_only_the_first_result_counts_and_constants_are_no_integers(kind: str, path: str, expected: Any) -> None:
    assert cell(kind, [1, 2, 3], path) == expected


def test_deep_values_are_printed() -> None:
    value: Any = "x"
    for _ in range(9_000):
        value = [value]
    assert cell("string", value) == "[" * 9_000 + '"x"' + "]" * 9_000


# -- metadata ---------------------------------------------------------------------------------------------------------

FULL = {
    "annotations": {"a": "b"},
    "creationTimestamp": "2026-11-21T11:00:00Z",
    "deletionGracePeriodSeconds": 0,
    "deletionTimestamp": "2026-11-21T11:30:00Z",
    "finalizers": ["x.io/y"],
    "generateName": "w",
    "generation": 2,
    "labels": {"l": ""},
    "managedFields": [
        {
            "apiVersion": "x.io/v1",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:spec": {}},
            "manager": "m",
            "operation": "Update",
            "subresource": "status",
            "time": "2026-11-21T11:00:00Z",
        }
    ],
    "name": "w1",
    "namespace": "default",
    "ownerReferences": [
        {"apiVersion": "v1", "blockOwnerDeletion": False, "controller": True, "kind": "K", "name": "o", "uid": "u"}
    ],
    "resourceVersion": "7",
    "uid": "u1",
}


def test_metadata_comes_in_the_order_of_declaration() -> None:
    found = partial({"metadata": FULL, "spec": {}}, "v1")
    assert list(found) == ["kind", "apiVersion", "metadata"]
    assert (found["kind"], found["apiVersion"]) == ("PartialObjectMetadata", "meta.k8s.io/v1")
    assert found["metadata"] == FULL
    assert list(found["metadata"]) == [
        "name",
        "generateName",
        "namespace",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "labels",
        "annotations",
        "ownerReferences",
        "finalizers",
        "managedFields",
    ]
    owner, managed = found["metadata"]["ownerReferences"][0], found["metadata"]["managedFields"][0]
    assert list(owner) == ["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"]
    assert list(managed) == ["manager", "operation", "apiVersion", "time", "fieldsType", "fieldsV1", "subresource"]


def test_empty_metadata_is_left_out() -> None:
    empty = {
        "name": "w1",
        "labels": {},
        "annotations": None,
        "finalizers": [],
        "creationTimestamp": None,
        "generation": 0,
    }
    assert partial({"metadata": empty}, "v1beta1") == {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1beta1",
        "metadata": {"name": "w1"},
    }


def test_a_list_of_metadata() -> None:
    metadata = {"continue": "token", "remainingItemCount": 3, "resourceVersion": "9", "selfLink": "x"}
    found = partial_list([{"metadata": {"name": "a"}}], metadata, "v1")
    assert list(found) == ["kind", "apiVersion", "metadata", "items"]
    assert found["kind"] == "PartialObjectMetadataList"
    assert json.dumps(found["metadata"]) == '{"resourceVersion": "9", "continue": "token", "remainingItemCount": 3}'
    assert [item["metadata"]["name"] for item in found["items"]] == ["a"]


def test_an_empty_list_of_metadata_has_null_items() -> None:
    assert partial_list([], {"continue": "", "resourceVersion": "9"}, "v1")["items"] is None
    assert list_meta({"continue": "", "resourceVersion": "9"}) == {"resourceVersion": "9"}


# -- tables -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "include"), [("", "Metadata"), ("None", "None"), ("Metadata", "Metadata"), ("Object", "Object")]
)
def test_include_object_policies(text: str, include: str) -> None:
    assert include_object(text) == include


@pytest.mark.parametrize("text", ["Bad", "none", "object"])
def test_unknown_include_object_policies_are_refused(text: str) -> None:
    with pytest.raises(ApiError) as raised:
        include_object(text)
    assert (raised.value.code, raised.value.reason) == (400, "BadRequest")
    assert raised.value.message == (
        f'Unable to convert to Table as requested: includeObject: Invalid value: "{text}": '
        "must be 'Metadata', 'Object', 'None', or empty"
    )


def test_objects_included_in_rows() -> None:
    columns, value = custom_columns(None), thing(a=1)
    assert row(columns, value, "v1", "None", NOW) == {"cells": ["w1", "60m"], "object": None}
    assert row(columns, value, "v1", "Object", NOW)["object"] is value
    assert row(columns, value, "v1beta1", "Metadata", NOW)["object"] == partial(value, "v1beta1")


def test_a_table_of_a_list() -> None:
    metadata = {"continue": "token", "remainingItemCount": 2, "resourceVersion": "9"}
    found = convert_list([thing(), thing()], metadata, TABLE, custom_columns(None), NOW, "None")
    assert list(found) == ["kind", "apiVersion", "metadata", "columnDefinitions", "rows"]
    assert (found["kind"], found["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    assert found["metadata"] == metadata
    assert found["rows"] == [{"cells": ["w1", "60m"], "object": None}] * 2


def test_the_rows_of_an_empty_table() -> None:
    empty = {"continue": "", "resourceVersion": "9"}
    assert convert_list([], empty, TABLE, custom_columns(None), NOW)["rows"] == []
    without = Columns([], lambda value: [], no_rows=None)
    assert convert_list([], empty, TABLE, without, NOW)["rows"] is None


def test_a_table_of_one_object_has_its_resource_version() -> None:
    found = convert(thing(), Conversion("Table", "v1beta1"), custom_columns(None), NOW)
    assert found["apiVersion"] == "meta.k8s.io/v1beta1"
    assert found["metadata"] == {"resourceVersion": "7"}
    assert found["rows"][0]["object"]["apiVersion"] == "meta.k8s.io/v1beta1"


def test_in_a_watch_the_columns_come_once() -> None:
    columns = custom_columns(None)
    assert convert(thing(), TABLE, columns, NOW)["columnDefinitions"] == columns.definitions
    assert convert(thing(), TABLE, columns, NOW, headers=False)["columnDefinitions"] is None
    assert table(columns, [], {}, "v1", headers=False)["columnDefinitions"] is None


def test_a_bookmark_in_a_watch() -> None:
    bookmark = {
        "kind": "Thing",
        "apiVersion": "x.io/v1",
        "metadata": {"resourceVersion": "372", "creationTimestamp": None},
    }
    columns = custom_columns([column("string", ".spec.s"), column("date", ".metadata.creationTimestamp")])
    assert convert(bookmark, TABLE, columns, NOW, headers=False) == {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {"resourceVersion": "372"},
        "columnDefinitions": None,
        "rows": [
            {
                "cells": ["", None, None],
                "object": {
                    "kind": "PartialObjectMetadata",
                    "apiVersion": "meta.k8s.io/v1",
                    "metadata": {"resourceVersion": "372"},
                },
            }
        ],
    }
    assert convert(bookmark, TABLE, columns, NOW, include="None")["rows"][0]["object"] is None


def test_the_end_of_the_initial_events_is_reported_even_without_objects() -> None:
    metadata = {"resourceVersion": "372", "annotations": {"k8s.io/initial-events-end": "true"}}
    bookmark = {"kind": "Thing", "apiVersion": "x.io/v1", "metadata": metadata}
    shown = convert(bookmark, TABLE, custom_columns(None), NOW, include="None")["rows"][0]["object"]
    assert shown == {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}
    assert convert(bookmark, TABLE, custom_columns(None), NOW, include="Object")["rows"][0]["object"] is bookmark


@pytest.mark.parametrize("to", [TABLE, METADATA, METADATA_LIST])
def test_a_status_is_never_converted(to: Conversion) -> None:
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    assert convert(status, to, custom_columns(None), NOW) is status


def test_a_custom_resource_may_be_called_status() -> None:
    value = {**thing(), "kind": "Status"}
    assert convert(value, METADATA, custom_columns(None), NOW)["kind"] == "PartialObjectMetadata"


def test_an_object_is_no_list() -> None:
    with pytest.raises(ApiError) as raised:
        convert(thing(), METADATA_LIST, custom_columns(None), NOW)
    assert raised.value.status == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "content is not a list",
        "code": 500,
    }
    with pytest.raises(ApiError) as raised:
        convert(thing(), METADATA_LIST, scale_columns(), NOW)
    assert (raised.value.code, raised.value.reason) == (406, "NotAcceptable")
    assert (
        raised.value.message
        == "you requested PartialObjectMetadataList, but the requested object is not a list (*v1.Scale)"
    )


def test_a_list_is_no_object() -> None:
    with pytest.raises(ApiError) as raised:
        convert_list([thing()], {}, METADATA, custom_columns(None), NOW)
    assert (raised.value.code, raised.value.reason) == (406, "NotAcceptable")
    assert (
        raised.value.message
        == "you requested PartialObjectMetadata, but the requested object is a list (*unstructured.UnstructuredList)"
    )


def test_a_list_as_metadata() -> None:
    found = convert_list(iter([thing()]), {"resourceVersion": "9"}, METADATA_LIST, custom_columns(None), NOW)
    assert found == partial_list([thing()], {"resourceVersion": "9"}, "v1")


# -- tables of the reference server -----------------------------------------------------------------------------------


@needs_data("recordings")
def test_recorded_tables() -> None:
    lines = (RECORDINGS / "negotiation.jsonl").read_text().splitlines()
    steps = next(case["steps"] for case in map(json.loads, lines) if case["id"].endswith("table-columns"))
    printer_columns = steps[0]["body"]["spec"]["versions"][0]["additionalPrinterColumns"]
    columns = custom_columns(printer_columns)
    tables = [(step["path"], step["expect"]["body"]) for step in steps if "as=Table" in step.get("accept", "")]
    objects = {
        shown["object"]["metadata"]["name"]: shown["object"]
        for path, body in tables
        if path.endswith("includeObject=Object")
        for shown in body["rows"]
    }
    aged = {n for n, column in enumerate(printer_columns, 1) if column["jsonPath"] == ".metadata.creationTimestamp"}
    compared = 0
    for path, body in tables:
        if "rows" not in body:
            continue
        for expected, mine in zip(body["columnDefinitions"], columns.definitions, strict=True):
            assert {**mine, "description": ""} == {**expected, "description": ""}
        include = include_object(path.partition("includeObject=")[2])
        for expected in body["rows"]:
            mine = row(columns, objects[expected["cells"][0]], "v1", include, NOW)
            assert mine["object"] == expected["object"]
            for n, (cell, other) in enumerate(zip(mine["cells"], expected["cells"], strict=True)):
                assert (
                    n in aged or (cell, type(cell)) == (other, type(other)) or columns.definitions[n]["type"] == "date"
                )
                compared += 1
    assert compared > 400
