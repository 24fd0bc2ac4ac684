"""Metadata that an update may not change, or that cannot be decoded."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.http.conftest import GROUP, Things

APPLY, MERGE = "apply-patch+yaml", "merge-patch+json"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


def causes(answer: Any) -> list[tuple[str, str]]:
    return [(cause["field"], cause["message"]) for cause in answer.body["details"]["causes"]]


def applied(things: Things, query: str = "", **metadata: Any) -> Any:
    body = {"apiVersion": f"{GROUP}/v1", "kind": "Thing", "metadata": {"name": "a", **metadata}}
    return things.ask("PATCH", f"/a?fieldManager=m{query}", body, APPLY)


# -- what an apply leaves ---------------------------------------------------------------------------------------------

UNDECODABLE: list[tuple[str, dict[str, Any], str]] = [
    ("an empty time", {"deletionTimestamp": ""}, 'parsing time "" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "2006"'),
    ("a text that is no time", {"deletionTimestamp": "x"}, 'parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"'),
    ("a fraction for an integer", {"deletionGracePeriodSeconds": 5.5}, "cannot convert float64 to int64"),
]  # fmt: skip


@pytest.mark.parametrize("query", ["", "&dryRun=All"])
@pytest.mark.parametrize(("metadata", "why"), [row[1:] for row in UNDECODABLE], ids=[row[0] for row in UNDECODABLE])
def test_an_applied_field_that_cannot_be_decoded_is_one_error_about_the_metadata(
    things: Things, metadata: Any, why: str, query: str
) -> None:
    stored = things.create("a")["metadata"]
    answer = applied(things, query, **metadata)
    [(field, message)] = causes(answer)
    assert (answer.code, field) == (422, "metadata")
    assert message.startswith("Invalid value: {")
    assert message.endswith(f": {why}")
    shown = json.loads(message.removeprefix("Invalid value: ").removesuffix(f": {why}"))
    assert shown | {"managedFields": 0} == stored | metadata | {"managedFields": 0}
    assert things.ask("GET", "/a").body["metadata"] == stored


def test_errors_in_the_rest_of_the_object_follow(things: Things) -> None:
    things.create("a")
    body = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Thing",
        "metadata": {"name": "a", "deletionTimestamp": "x", "labels": {"a b": "c"}},
        "spec": {"replicas": -1},
    }
    fields = [field for field, _ in causes(things.ask("PATCH", "/a?fieldManager=m", body, APPLY))]
    assert fields == ["metadata.labels", "metadata.labels", "metadata", "spec.replicas", ".spec.replicas"]


def test_a_time_that_can_be_decoded_is_immutable(things: Things) -> None:
    things.create("a")
    found = causes(applied(things, deletionTimestamp="2026-01-01T00:00:00Z"))
    expected = ("metadata.deletionTimestamp", 'Invalid value: "2026-01-01T00:00:00Z": field is immutable')
    assert found == [expected, expected]


# -- an object that is being deleted ----------------------------------------------------------------------------------

CHANGES: list[tuple[str, str, dict[str, Any], int]] = [
    ("another grace period", "", {"deletionGracePeriodSeconds": 5}, 422),
    ("the same", "", {"deletionGracePeriodSeconds": 0}, 200),
    ("none: it is kept", "", {"deletionGracePeriodSeconds": None}, 200),
    ("another time: it is kept", "", {"deletionTimestamp": "2026-01-01T00:00:00Z"}, 200),
    ("no time: it is kept", "", {"deletionTimestamp": None}, 200),
    ("another grace period, through /status", "/status", {"deletionGracePeriodSeconds": 5}, 200),
]


@pytest.mark.parametrize("method", ["PATCH", "PUT"])
@pytest.mark.parametrize(("path", "metadata", "code"), [row[1:] for row in CHANGES], ids=[row[0] for row in CHANGES])
def test_an_update_of_an_object_that_is_being_deleted(
    things: Things, method: str, path: str, metadata: Any, code: int
) -> None:
    things.create("a", metadata={"finalizers": ["a.b/c"]})
    deleted = things.ask("DELETE", "/a").body
    body = {"metadata": metadata} if method == "PATCH" else deleted | {"metadata": deleted["metadata"] | metadata}
    answer = things.ask(method, f"/a{path}", body, MERGE if method == "PATCH" else "json")
    assert answer.code == code
    if code == 422:
        cause = ("metadata.deletionGracePeriodSeconds", "Invalid value: 5: field is immutable")
        assert causes(answer) == [cause, cause]
    kept = things.ask("GET", "/a").body["metadata"]
    for name in ("deletionTimestamp", "deletionGracePeriodSeconds"):
        assert kept[name] == deleted["metadata"][name]


def test_the_grace_period_of_a_built_in_kind_is_immutable(things: Things) -> None:
    things.ask("POST", CONFIG_MAPS, {"metadata": {"name": "a", "finalizers": ["a.b/c"]}})
    things.ask("DELETE", f"{CONFIG_MAPS}/a")
    answer = things.ask("PATCH", f"{CONFIG_MAPS}/a", {"metadata": {"deletionGracePeriodSeconds": 5}}, MERGE)
    assert causes(answer) == [("metadata.deletionGracePeriodSeconds", "Invalid value: 5: field is immutable")]
    assert things.ask("PATCH", f"{CONFIG_MAPS}/a", {"metadata": {"finalizers": None}}, MERGE).code == 200
