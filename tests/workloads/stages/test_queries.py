"""Queries of stages in the language of jq."""

from __future__ import annotations

import re

import pytest

from noxu.values import Json, Object
from noxu.workloads.stages.queries import Query, QueryError
from tests.rows import rows

POD: Object = {
    "metadata": {"name": "web", "annotations": {"a/b": "10s"}, "ownerReferences": [{"kind": "Job"}, {"kind": "X"}]},
    "spec": {"containers": [{"name": "c", "ports": [1, 2]}], "priority": 5, "hostNetwork": False},
    "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Initialized", "status": "False"}]},
}


@rows(
    "text, expected",
    [
        (".", [POD]),
        (".metadata.name", ["web"]),
        (".metadata.deletionTimestamp", []),
        (".absent.too", []),
        ('.metadata.annotations["a/b"]', ["10s"]),
        ('.metadata["name"]', ["web"]),
        ('."metadata".name', ["web"]),
        (".metadata.ownerReferences.[].kind", ["Job", "X"]),
        (".metadata.ownerReferences[].kind", ["Job", "X"]),
        (".metadata.ownerReferences[0].kind", ["Job"]),
        (".metadata.ownerReferences[-1].kind", ["X"]),
        (".metadata.ownerReferences[7].kind", []),
        ('.status.conditions.[] | select( .type == "Ready" ) | .status', ["True"]),
        ('.status.conditions[] | select(.type == "Ready" and .status != "True") | .status', []),
        ('[].x? // "none"', ["none"]),
        (".metadata.absent // .metadata.name", ["web"]),
        (".spec.priority > 4", [True]),
        (".spec.priority >= 5 and (.spec.hostNetwork | not)", [True]),
        (".spec.containers | length", [1]),
        (".spec.containers | map(.name)", [["c"]]),
        ('.status.conditions | any(.type == "Ready")', [True]),
        ('.status.conditions | all(.status == "True")', [False]),
        ('.metadata.name | startswith("w")', [True]),
        ('.metadata.name | test("^w.b$")', [True]),
        ('.metadata | has("uid")', [False]),
        (".metadata.labels[]?", []),
        (".spec.priority | tostring", ["5"]),
        ("empty", []),
        ("-1", [-1]),
    ],
)
def test_a_query_yields(text: str, expected: list[Json]) -> None:
    if text.startswith("["):
        text = f".metadata{text}"
    assert Query(text).values(POD) == expected


@rows(
    "text, message",
    [
        (".a | group_by(.b)", "'group_by' is not known: there are select"),
        (".a | lenght", "did you mean length?"),
        (".a[", "ends early"),
        (".a | ", "ends early"),
        (".a {b}", "is not understood from '{b}' on"),
        ("select(.a", "ends early"),
        (".a .b c", "is not understood from 'c' on"),
        ("has(1)", "has has a text in quotes"),
    ],
)
def test_what_is_not_understood_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        Query(text)


@rows(
    "text",
    [".metadata.name.x", ".metadata.name[]", ".spec[0]", ".metadata.labels[]", '.spec.priority < "a"', ".spec | first"],
)
def test_a_query_fails_for_a_value_of_another_type(text: str) -> None:
    with pytest.raises(QueryError):
        Query(text).values(POD)
