"""Requests to workloads: what is stored, refused and counted, through all stages of a write."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.http.conftest import Things

PODS, JOBS = "/api/v1/namespaces/default/pods", "/apis/batch/v1/namespaces/default/jobs"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
MERGE, STRATEGIC, APPLY = "merge-patch+json", "strategic-merge-patch+json", "apply-patch+yaml"
SPEC = {"containers": [{"name": "c", "image": "nginx", "resources": {"requests": {"cpu": "1"}}}]}
Create = Callable[..., dict[str, Any]]


@pytest.fixture
def create(things: Things) -> Iterator[Create]:
    """Creates objects named x, which are deleted again."""
    paths = []

    def create(path: str, api_version: str, kind: str, spec: Any, **more: Any) -> dict[str, Any]:
        sent = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}, "spec": spec, **more}
        reply = things.ask("POST", path, sent)
        assert reply.code == 201, reply.message
        paths.append(f"{path}/x")
        created: dict[str, Any] = reply.body
        return created

    yield create
    for path in paths:
        things.ask("DELETE", f"{path}?gracePeriodSeconds=0&propagationPolicy=Background")


def deployment(create: Create) -> dict[str, Any]:
    labels = {"app": "x"}
    spec = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": SPEC}}
    return create(DEPLOYMENTS, "apps/v1", "Deployment", spec)


def test_a_pod_is_stored_with_its_defaults_and_status(create: Create) -> None:
    pod = create(PODS, "v1", "Pod", SPEC, status={"phase": "Running"})
    assert (pod["status"], pod["metadata"]["generation"]) == ({"phase": "Pending", "qosClass": "Burstable"}, 1)
    assert list(pod["spec"]) == [
        "volumes", "containers", "restartPolicy", "terminationGracePeriodSeconds", "dnsPolicy", "serviceAccountName",
        "serviceAccount", "securityContext", "schedulerName", "tolerations", "priority", "enableServiceLinks",
        "preemptionPolicy",
    ]  # fmt: skip


def test_the_spec_of_a_pod_is_hardly_changed(create: Create, things: Things) -> None:
    create(PODS, "v1", "Pod", SPEC)
    refused = things.ask("PATCH", f"{PODS}/x", {"spec": {"hostname": "a"}}, MERGE)
    assert refused.code == 422
    assert refused.message.startswith(
        'Pod "x" is invalid: spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,'
    )
    patched = things.ask("PATCH", f"{PODS}/x", {"spec": {"containers": [{"name": "c", "image": "nginx:2"}]}}, STRATEGIC)
    assert (patched.code, patched.body["metadata"]["generation"]) == (200, 2)


def test_ephemeral_containers_and_resources_have_subresources(create: Create, things: Things) -> None:
    create(PODS, "v1", "Pod", SPEC)
    debugger = {"spec": {"ephemeralContainers": [{"name": "e", "image": "busybox"}], "hostname": "ignored"}}
    added = things.ask("PATCH", f"{PODS}/x/ephemeralcontainers", debugger, STRATEGIC)
    assert (added.code, added.body["spec"]["ephemeralContainers"][0]["name"]) == (200, "e")
    assert "hostname" not in added.body["spec"]
    resized = {"spec": {"containers": [{"name": "c", "image": "ignored", "resources": {"requests": {"cpu": "2"}}}]}}
    changed = things.ask("PATCH", f"{PODS}/x/resize", resized, STRATEGIC)
    assert (changed.code, changed.body["metadata"]["generation"]) == (200, 3)
    container = changed.body["spec"]["containers"][0]
    assert (container["image"], container["resources"]) == ("nginx", {"requests": {"cpu": "2"}})
    assert things.ask("GET", f"{PODS}/x/resize").body["spec"] == changed.body["spec"]


def test_warnings_of_a_pod_are_headers(things: Things) -> None:
    spec = {
        "containers": [{"name": "c", "image": "a", "env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]}]
    }
    sent = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a.b"}, "spec": spec}
    reply = things.ask("POST", f"{PODS}?dryRun=All", sent)
    assert reply.code == 201
    assert [warning.split(": ")[0] for warning in reply.warnings] == ["metadata.name", "spec.containers[0].env[1]"]
    spec["restartPolicy"] = "x"
    refused = things.ask("POST", f"{PODS}?dryRun=All", sent)
    assert (refused.code, refused.warnings) == (422, [])


def test_a_second_equal_apply_writes_nothing(create: Create, things: Things) -> None:
    deployment(create)
    body = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "x"},
        "spec": {"replicas": 3, "strategy": {"rollingUpdate": {"maxSurge": "50%"}}},
    }
    first, second = (things.ask("PATCH", f"{DEPLOYMENTS}/x?fieldManager=m&force=true", body, APPLY) for _ in range(2))
    assert (first.code, first.body["metadata"]["generation"]) == (200, 2)
    assert second.body == first.body


COUNTED: list[tuple[str, dict[str, Any], int]] = [
    ("a label", {"metadata": {"labels": {"a": "b"}}}, 1),
    ("an annotation", {"metadata": {"annotations": {"a": "b"}}}, 2),
    ("a number", {"spec": {"replicas": 2}}, 2),
    ("nothing", {"spec": {"replicas": 1}}, 1),
]


@pytest.mark.parametrize(("change", "generation"), [row[1:] for row in COUNTED], ids=[row[0] for row in COUNTED])
def test_generations_of_deployments(create: Create, things: Things, change: Any, generation: int) -> None:
    deployment(create)
    assert things.ask("PATCH", f"{DEPLOYMENTS}/x", change, MERGE).body["metadata"]["generation"] == generation


REFUSED: list[tuple[str, str, dict[str, Any], str]] = [
    ("a type of strategy", "", {"spec": {"strategy": {"type": "Recreate"}}}, "spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'"),
    ("a status of more than there is", "/status", {"status": {"readyReplicas": 1}}, "status.readyReplicas: Invalid value: 1: cannot be greater than status.replicas"),
    ("an invalid template", "", {"spec": {"template": {"spec": {"containers": None}}}}, "spec.template.spec.containers: Required value"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("subresource", "change", "error"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
def test_deployments_are_validated(create: Create, things: Things, subresource: str, change: Any, error: str) -> None:
    deployment(create)
    reply = things.ask("PATCH", f"{DEPLOYMENTS}/x{subresource}", change, MERGE)
    assert (reply.code, reply.message) == (422, f'Deployment.apps "x" is invalid: {error}')


def test_a_job_selects_its_pods_by_its_uid(create: Create, things: Things) -> None:
    job = create(JOBS, "batch/v1", "Job", {"template": {"spec": {**SPEC, "restartPolicy": "Never"}}})
    uid, prefixed = job["metadata"]["uid"], "batch.kubernetes.io/controller-uid"
    assert job["spec"]["selector"] == {"matchLabels": {prefixed: uid}}
    assert job["spec"]["template"]["metadata"]["labels"] == {
        prefixed: uid, "batch.kubernetes.io/job-name": "x", "controller-uid": uid, "job-name": "x"
    }  # fmt: skip
    complete = {"status": {"conditions": [{"type": "Complete", "status": "True"}]}}
    reply = things.ask("PATCH", f"{JOBS}/x/status", complete, MERGE)
    assert reply.message == (
        'Job.batch "x" is invalid: [status.completionTime: Required value: completionTime is required for Complete jobs, '
        "status.conditions: Invalid value: cannot set Complete=True condition without the SuccessCriteriaMet=true "
        "condition, status.startTime: Required value: startTime is required for finished job]"
    )


def test_quantities_are_refused_when_they_are_decoded(things: Things) -> None:
    spec = {"containers": [{"name": "c", "image": "a", "resources": {"limits": {"cpu": "1x"}}}]}
    reply = things.ask("POST", PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "y"}, "spec": spec})
    assert (reply.code, reply.message.split(": ")[0]) == (400, 'Pod in version "v1" cannot be handled as a Pod')
