"""Rows and metadata from summaries are those of `table`, byte for byte."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from noxu.api import codec
from noxu.tables import table
from noxu.tables.printers import built_in_columns
from noxu.tables.table import Ages, Columns, custom_columns, metadata, row_of_summary, summarize
from noxu.values import Object
from tests.rows import rows

NOW = datetime(2030, 1, 1, 1, tzinfo=UTC)
CREATED = "2030-01-01T00:00:00Z"


def column(kind: str, path: str) -> Object:
    return {"name": "C", "type": kind, "jsonPath": path}


def thing(**more: Any) -> Object:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Thing",
        "metadata": {
            "name": "t",
            "uid": "1",
            "resourceVersion": "7",
            "creationTimestamp": CREATED,
            **more.pop("metadata", {}),
        },
        **more,
    }


TIMES = {"a": "2029-12-31T23:58:00Z", "b": "yesterday", "c": "", "d": 5}
AGES = custom_columns([column("date", f".spec.{name}") for name in TIMES] + [column("string", ".spec.text")])
OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "2", "controller": True}
POD = {"spec": {"containers": [{"name": "c"}]}, "status": {"phase": "Succeeded"}}
RESTARTED = {
    "phase": "Running",
    "containerStatuses": [
        {"name": "c", "restartCount": 2, "lastState": {"terminated": {"finishedAt": "2029-12-31T23:55:00Z"}}}
    ],
}
CASES: dict[str, tuple[Columns, Object]] = {
    "an age": (custom_columns(None), thing()),
    "no columns but the name": (custom_columns([column("string", ".spec[")]), thing()),
    "times of all sorts": (AGES, thing(spec={**TIMES, "text": '<&> \u2028 ü " \\'})),
    "cells that are null": (AGES, thing()),
    "an age that is unknown": (custom_columns(None), thing(metadata={"creationTimestamp": None})),
    "an age in the future": (custom_columns(None), thing(metadata={"creationTimestamp": "2031-01-01T00:00:00Z"})),
    "the name last": (
        custom_columns([column("date", ".metadata.creationTimestamp"), column("integer", ".n")]),
        thing(n=3),
    ),
    "all of the metadata": (
        custom_columns(None),
        thing(metadata={"labels": {"z": "<1>", "a": "2"}, "ownerReferences": [OWNER], "annotations": {"k": "v"}}),
    ),
    "a pod with conditions": (built_in_columns("v1", "Pod"), thing(**POD)),
    "a pod that was restarted": (built_in_columns("v1", "Pod"), thing(**{**POD, "status": RESTARTED})),
    "an event": (built_in_columns("v1", "Event"), thing(lastTimestamp="2029-12-31T23:50:00Z", involvedObject={})),
    "the annotation of a bookmark": (
        custom_columns(None),
        thing(metadata={"annotations": {table.INITIAL_EVENTS_END: "true"}}),
    ),
}


@pytest.mark.parametrize("version", table.VERSIONS)
@pytest.mark.parametrize("include", table.INCLUDE)
@rows(("columns", "value"), CASES.values(), ids=CASES)
def test_a_row_of(columns: Columns, value: Object, include: str, version: str) -> None:
    expected = codec.encode(table.row(columns, value, version, include, NOW), sort_keys=False)
    summary = summarize(value, columns)
    body = codec.encode(value, sort_keys=False)
    assert row_of_summary(summary, version, Ages(NOW), include, body) == expected


@pytest.mark.parametrize("version", table.VERSIONS)
@rows(("columns", "value"), CASES.values(), ids=CASES)
def test_the_metadata_of(columns: Columns, value: Object, version: str) -> None:
    expected = codec.encode(table.partial(value, version), sort_keys=False)
    assert metadata(summarize(value, columns), version) == expected


def test_ages_are_those_of_the_request() -> None:
    summary = summarize(thing(), custom_columns(None))
    later = NOW.replace(hour=3)
    shown = [row_of_summary(summary, "v1", Ages(now), "None") for now in (NOW, later)]
    assert [b'"60m"' in shown[0], b'"3h"' in shown[1]] == [True, True]
