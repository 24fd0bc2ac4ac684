"""Graceful deletion of Pods (rest.BeforeDelete, registry.Store.Delete, podStrategy.CheckGracefulDelete)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import pytest

from conformance.client import Client
from noxu.testing.handle import Noxu
from tests.clocks import START, StoppedClock
from tests.http.conftest import Reply, Things

PODS: Final = "/api/v1/namespaces/default/pods"
FINALIZER: Final = "example.com/hold"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Noxu]:
    with Noxu(Path(tmp_path_factory.mktemp("grace")), clock=StoppedClock()) as running:
        yield running


@pytest.fixture
def api(server: Noxu) -> Iterator[Things]:
    """There are no Pods when a test begins."""
    with Client(server.url) as client:
        api = Things(client)
        for item in api.ask("GET", PODS).body["items"]:
            path = f"{PODS}/{item['metadata']['name']}"
            api.ask("PATCH", path, {"metadata": {"finalizers": None}}, "merge-patch+json")
            api.ask("DELETE", path, {"gracePeriodSeconds": 0})
        yield api


def create(api: Things, name: str = "p", *, finalizers: Any = None, phase: str = "", **spec: Any) -> Any:
    body = {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}
    if finalizers:
        body["metadata"]["finalizers"] = finalizers
    reply = api.ask("POST", PODS, body)
    assert reply.code == 201, reply
    if phase:
        reply = api.ask("PATCH", f"{PODS}/{name}/status", {"status": {"phase": phase}}, "merge-patch+json")
        assert reply.code == 200, reply
    return reply.body


def pod(api: Things, name: str = "p") -> Reply:
    return api.ask("GET", f"{PODS}/{name}")


def marks(value: Any) -> tuple[Any, Any, Any]:
    """The deletionTimestamp in seconds from now, the grace period, and the generation."""
    metadata = value["metadata"]
    when = datetime.fromisoformat(metadata["deletionTimestamp"]) - START.replace(microsecond=0)
    return int(when.total_seconds()), metadata.get("deletionGracePeriodSeconds"), metadata.get("generation")


ON_NODE: Final = {"nodeName": "n"}
STAYS = [
    ("on a node: 30 seconds by default", ON_NODE, None, (30, 30, 2)),
    ("its own grace period", {**ON_NODE, "terminationGracePeriodSeconds": 60}, None, (60, 60, 2)),
    ("that of the options", ON_NODE, {"gracePeriodSeconds": 5}, (5, 5, 2)),
    ("a longer one of the options", ON_NODE, {"gracePeriodSeconds": 3600}, (3600, 3600, 2)),
    ("a negative one is a second", ON_NODE, {"gracePeriodSeconds": -7}, (1, 1, 2)),
]


@pytest.mark.parametrize(("spec", "options", "expected"), [row[1:] for row in STAYS], ids=[row[0] for row in STAYS])
def test_a_pod_stays_for_its_grace_period(api: Things, spec: Any, options: Any, expected: Any) -> None:
    create(api, **spec)
    reply = api.ask("DELETE", f"{PODS}/p", options)
    assert (reply.code, reply.body["kind"], marks(reply.body)) == (200, "Pod", expected)
    assert pod(api).body == reply.body


def test_a_grace_period_in_the_query(api: Things) -> None:
    create(api, nodeName="n")
    assert marks(api.ask("DELETE", f"{PODS}/p?gracePeriodSeconds=7").body) == (7, 7, 2)


GOES = [
    ("on no node", {}, "", None),
    ("on no node, with a grace period", {}, "", {"gracePeriodSeconds": 5}),
    ("it succeeded", ON_NODE, "Succeeded", None),
    ("it failed", ON_NODE, "Failed", {"gracePeriodSeconds": 5}),
    ("a grace period of 0", ON_NODE, "", {"gracePeriodSeconds": 0}),
    ("its own grace period is 0", {**ON_NODE, "terminationGracePeriodSeconds": 0}, "", None),
]


@pytest.mark.parametrize(("spec", "phase", "options"), [row[1:] for row in GOES], ids=[row[0] for row in GOES])
def test_a_pod_goes_at_once(api: Things, spec: Any, phase: str, options: Any) -> None:
    before = create(api, phase=phase, **spec)
    reply = api.ask("DELETE", f"{PODS}/p", options)
    assert (reply.code, reply.body["kind"], marks(reply.body)) == (200, "Pod", (0, 0, 2))
    revisions = [int(value["metadata"]["resourceVersion"]) for value in (before, reply.body)]
    assert revisions[1] == revisions[0] + 2  # it was marked, then removed
    assert pod(api).code == 404


def test_a_watch_sees_that_a_pod_is_marked_before_it_is_removed(api: Things) -> None:
    before = create(api)
    api.ask("DELETE", f"{PODS}/p")
    query = f"?watch=1&timeoutSeconds=1&resourceVersion={before['metadata']['resourceVersion']}"
    lines = api.exchange("GET", PODS + query, Accept="application/json").splitlines()
    events = [json.loads(line) for line in lines]
    assert [(event["type"], *marks(event["object"])) for event in events] == [
        ("MODIFIED", 0, 0, 2),
        ("DELETED", 0, 0, 2),
    ]


AGAIN = [
    ("without options", None, (30, 30, 2), False),
    ("the same", {"gracePeriodSeconds": 30}, (30, 30, 2), False),
    ("longer", {"gracePeriodSeconds": 31}, (30, 30, 2), False),
    ("shorter", {"gracePeriodSeconds": 10}, (10, 10, 2), True),
    ("negative: a second", {"gracePeriodSeconds": -1}, (1, 1, 2), True),
]


@pytest.mark.parametrize(("options", "expected", "changes"), [row[1:] for row in AGAIN], ids=[row[0] for row in AGAIN])
def test_a_second_deletion_can_only_shorten_the_grace_period(
    api: Things, options: Any, expected: Any, *, changes: bool
) -> None:
    create(api, nodeName="n")
    first = api.ask("DELETE", f"{PODS}/p").body
    again = api.ask("DELETE", f"{PODS}/p", options)
    assert (again.code, marks(again.body)) == (200, expected)
    assert (again.body["metadata"]["resourceVersion"] != first["metadata"]["resourceVersion"]) is changes


def test_a_pending_deletion_ends_with_a_grace_period_of_0(api: Things) -> None:
    create(api, nodeName="n")
    api.ask("DELETE", f"{PODS}/p")
    reply = api.ask("DELETE", f"{PODS}/p", {"gracePeriodSeconds": 0})
    assert (reply.code, marks(reply.body), pod(api).code) == (200, (0, 0, 2), 404)


def test_a_pending_deletion_does_not_change_finalizers(api: Things) -> None:
    create(api, nodeName="n")
    api.ask("DELETE", f"{PODS}/p")
    reply = api.ask("DELETE", f"{PODS}/p", {"propagationPolicy": "Orphan"})
    assert (reply.code, reply.body["metadata"].get("finalizers")) == (200, None)


def test_preconditions_hold_for_a_pending_deletion(api: Things) -> None:
    create(api, nodeName="n")
    api.ask("DELETE", f"{PODS}/p")
    reply = api.ask("DELETE", f"{PODS}/p", {"preconditions": {"uid": "abc"}})
    assert (reply.code, reply.body["reason"]) == (409, "Conflict")
    assert reply.message.startswith('Operation cannot be fulfilled on Pod "p": the UID in the precondition (abc)')


REMOVED = [("without a grace period", {}, 404), ("with a grace period of 30 seconds", ON_NODE, 200)]


@pytest.mark.parametrize(("spec", "code"), [row[1:] for row in REMOVED], ids=[row[0] for row in REMOVED])
def test_a_deleted_pod_whose_last_finalizer_is_removed_goes_if_its_grace_period_is_0(
    api: Things, spec: Any, code: int
) -> None:
    create(api, finalizers=[FINALIZER], **spec)
    api.ask("DELETE", f"{PODS}/p")
    assert pod(api).code == 200
    reply = api.ask("PATCH", f"{PODS}/p", {"metadata": {"finalizers": None}}, "merge-patch+json")
    assert (reply.code, pod(api).code) == (200, code)


def test_a_pod_with_a_finalizer_stays_when_its_grace_period_becomes_0(api: Things) -> None:
    create(api, finalizers=[FINALIZER], nodeName="n")
    api.ask("DELETE", f"{PODS}/p")
    reply = api.ask("DELETE", f"{PODS}/p", {"gracePeriodSeconds": 0})
    assert (reply.code, marks(reply.body), pod(api).code) == (200, (0, 0, 2), 200)
    again = api.ask("DELETE", f"{PODS}/p", {"gracePeriodSeconds": 0})
    assert (again.code, again.body["metadata"]["resourceVersion"]) == (200, reply.body["metadata"]["resourceVersion"])
    api.ask("PATCH", f"{PODS}/p", {"metadata": {"finalizers": None}}, "merge-patch+json")
    assert pod(api).code == 404


def test_orphaning_keeps_a_pod_without_a_grace_period(api: Things) -> None:
    create(api)
    reply = api.ask("DELETE", f"{PODS}/p", {"propagationPolicy": "Orphan"})
    assert (marks(reply.body), reply.body["metadata"]["finalizers"]) == ((0, 0, 2), ["orphan"])


@pytest.mark.parametrize("spec", [{}, ON_NODE], ids=["on no node", "on a node"])
def test_a_dry_run_shows_the_mark_and_changes_nothing(api: Things, spec: Any) -> None:
    before = create(api, **spec)
    reply = api.ask("DELETE", f"{PODS}/p", {"dryRun": ["All"]})
    assert (reply.code, reply.body["kind"], marks(reply.body)[2]) == (200, "Pod", 2)
    assert reply.body["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]
    assert pod(api).body == before


def test_the_pods_of_a_collection_are_deleted_gracefully(api: Things) -> None:
    create(api, "a")
    create(api, "b", nodeName="n")
    assert api.ask("DELETE", PODS).code == 200
    assert [(item["metadata"]["name"], *marks(item)) for item in api.ask("GET", PODS).body["items"]] == [
        ("b", 30, 30, 2)
    ]
    assert api.ask("DELETE", PODS, {"gracePeriodSeconds": 0}).code == 200
    assert api.ask("GET", PODS).body["items"] == []


def test_kinds_without_grace_periods_ignore_them(api: Things) -> None:
    path = "/api/v1/namespaces/default/configmaps"
    api.ask("POST", path, {"metadata": {"name": "a", "finalizers": [FINALIZER]}})
    reply = api.ask("DELETE", f"{path}/a", {"gracePeriodSeconds": 40})
    assert marks(reply.body)[:2] == (0, 0)
    api.ask("PATCH", f"{path}/a", {"metadata": {"finalizers": None}}, "merge-patch+json")
    assert api.ask("GET", f"{path}/a").code == 404


EXTREME = [(2**63 - 1, "9999-12-31T23:59:59Z"), (10**12, "9999-12-31T23:59:59Z"), (-(2**63), "2026-01-02T03:04:06Z")]


@pytest.mark.parametrize(("seconds", "when"), EXTREME)
def test_a_grace_period_ends_at_a_time_that_exists(api: Things, seconds: int, when: str) -> None:
    create(api, nodeName="n")
    assert api.ask("DELETE", f"{PODS}/p", {"gracePeriodSeconds": seconds}).body["metadata"]["deletionTimestamp"] == when
