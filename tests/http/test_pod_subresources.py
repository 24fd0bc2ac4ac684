"""Subresources of built-in kinds whose body is the whole object: they change a part of it."""

from __future__ import annotations

from typing import Any, Final

import pytest

from tests.http.pods import MERGE, PODS, Pods

JSON_PATCH: Final = "json-patch+json"
STRATEGIC: Final = "strategic-merge-patch+json"
DEBUGGER: Final = {"name": "d", "image": "i"}


SUBRESOURCES: Final = ("ephemeralcontainers", "resize", "status")


@pytest.mark.parametrize("subresource", SUBRESOURCES)
def test_it_shows_the_whole_pod(pods: Pods, subresource: str) -> None:
    pods.create()
    assert pods.api.ask("GET", f"{PODS}/p/{subresource}").body == pods.get().body


@pytest.mark.parametrize("subresource", SUBRESOURCES)
@pytest.mark.parametrize(("method", "code"), [("POST", 405), ("DELETE", 405)])
def test_it_can_be_read_and_changed_only(pods: Pods, subresource: str, method: str, code: int) -> None:
    pods.create()
    assert pods.api.ask(method, f"{PODS}/p/{subresource}", {}).code == code
    assert pods.get().code == 200


@pytest.mark.parametrize("subresource", SUBRESOURCES)
def test_it_creates_no_pod(pods: Pods, subresource: str) -> None:
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [DEBUGGER]}}
    path = f"{PODS}/p/{subresource}"
    for reply in (
        pods.api.ask("PUT", path, body),
        pods.api.ask("PATCH", path, {}, MERGE),
        pods.api.ask("PATCH", f"{path}?fieldManager=m", body, "apply-patch+yaml"),
    ):
        assert (reply.code, reply.message) == (404, 'pods "p" not found')


@pytest.mark.parametrize("content", [MERGE, STRATEGIC])
def test_ephemeral_containers_are_added(pods: Pods, content: str) -> None:
    before = pods.create()
    sent = {"metadata": {"labels": {"a": "b"}}, "spec": {"nodeName": "n", "ephemeralContainers": [DEBUGGER]}}
    reply = pods.api.ask("PATCH", f"{PODS}/p/ephemeralcontainers?fieldManager=m", sent, content)
    assert reply.code == 200
    assert reply.body == pods.get().body
    [added] = reply.body["spec"].pop("ephemeralContainers")
    assert (added["name"], added["imagePullPolicy"]) == ("d", "Always")
    assert reply.body["spec"] == before["spec"]
    metadata = reply.body["metadata"]
    assert (metadata["generation"], metadata.get("labels")) == (2, None)
    [entry] = [each for each in metadata["managedFields"] if each["manager"] == "m"]
    assert (entry["operation"], entry["subresource"]) == ("Update", "ephemeralcontainers")


OWNED: list[tuple[str, Any, Any]] = [
    (
        "ephemeralcontainers",
        {"ephemeralContainers": [DEBUGGER], "containers": [{"name": "c", "image": "i"}]},
        {"f:ephemeralContainers": {'k:{"name":"d"}': {".": {}, "f:image": {}, "f:name": {}}}},
    ),
    (
        "resize",
        {"containers": [{"name": "c", "image": "i", "resources": {"limits": {"cpu": "2"}}}]},
        {"f:containers": {'k:{"name":"c"}': {".": {}, "f:resources": {"f:limits": {"f:cpu": {}}}}}},
    ),
]


@pytest.mark.parametrize(("subresource", "spec", "owned"), OWNED, ids=[row[0] for row in OWNED])
def test_apply_owns_only_what_a_subresource_changes(pods: Pods, subresource: str, spec: Any, owned: Any) -> None:
    pods.create(containers=[{"name": "c", "resources": {"limits": {"cpu": "1"}}}])
    metadata = {"name": "p", "labels": {"a": "b"}}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    reply = pods.api.ask("PATCH", f"{PODS}/p/{subresource}?fieldManager=m&force=true", body, "apply-patch+yaml")
    assert reply.code == 200, reply.message
    [entry] = [each for each in reply.body["metadata"]["managedFields"] if each["manager"] == "m"]
    assert (entry["operation"], entry["subresource"]) == ("Apply", subresource)
    assert entry["fieldsV1"] == {"f:spec": owned}


def test_ephemeral_containers_are_replaced_as_a_whole_pod(pods: Pods) -> None:
    pod = pods.create()
    pod["spec"]["ephemeralContainers"] = [DEBUGGER]
    pod["spec"]["containers"][0]["image"] = "other"
    reply = pods.api.ask("PUT", f"{PODS}/p/ephemeralcontainers", pod)
    assert reply.code == 200
    assert [each["name"] for each in reply.body["spec"]["ephemeralContainers"]] == ["d"]
    assert reply.body["spec"]["containers"][0]["image"] == "i"
    stale = pods.api.ask("PUT", f"{PODS}/p/ephemeralcontainers", pod)
    assert (stale.code, stale.body["reason"]) == (409, "Conflict")


def test_a_dry_run_adds_no_ephemeral_container(pods: Pods) -> None:
    before = pods.create()
    path = f"{PODS}/p/ephemeralcontainers?dryRun=All"
    reply = pods.api.ask("PATCH", path, {"spec": {"ephemeralContainers": [DEBUGGER]}}, MERGE)
    assert (reply.code, [each["name"] for each in reply.body["spec"]["ephemeralContainers"]]) == (200, ["d"])
    assert pods.get().body == before


def requests(cpu: str) -> Any:
    return {"requests": {"cpu": cpu}}


def test_a_resize_changes_resources_only(pods: Pods) -> None:
    before = pods.create(containers=[{"name": name, "resources": requests("50m")} for name in ("a", "b")])
    containers = [{"name": "b", "image": "other", "resources": requests("100m")}]
    sent = {"metadata": {"labels": {"a": "b"}}, "spec": {"nodeName": "n", "containers": containers}}
    reply = pods.api.ask("PATCH", f"{PODS}/p/resize", sent, STRATEGIC)
    assert reply.code == 200
    before["spec"]["containers"][1]["resources"] = requests("100m")
    assert reply.body["spec"] == before["spec"]
    assert (reply.body["metadata"]["generation"], reply.body["metadata"].get("labels")) == (2, None)
