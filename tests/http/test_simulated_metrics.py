"""metrics.k8s.io of simulated pods and nodes: what can be read of it, and where it is listed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest

from conformance.client import Client
from noxu.testing.handle import Noxu
from tests.http.conftest import Things
from tests.rows import rows

API: Final = "/apis/metrics.k8s.io/v1beta1"
PODS: Final = """
apiVersion: v1
kind: Pod
metadata: {name: web-0, labels: {app: web}, annotations: {noxu.dev/cpu: 250m, noxu.dev/memory: 64Mi}}
spec: {nodeName: node-1, containers: [{name: c, image: nginx}]}
---
apiVersion: v1
kind: Pod
metadata: {name: db-0, namespace: kube-system, labels: {app: db}}
spec: {nodeName: node-1, containers: [{name: c, image: db, resources: {requests: {cpu: 2}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: waits, labels: {app: web}}
spec: {schedulerName: other, containers: [{name: c, image: nginx}]}
"""


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Things]:
    with Noxu(tmp_path_factory.mktemp("server"), [PODS], nodes=1) as server, Client(server.url) as client:
        server.wait("pods", "web-0", "Ready")
        server.wait("pods", "db-0", "Ready", namespace="kube-system")
        yield Things(client)


@rows(
    "path, expected",
    [
        ("pods", ["web-0", "db-0"]),
        ("namespaces/default/pods", ["web-0"]),
        ("namespaces/x/pods", []),
        ("pods?labelSelector=app%3Ddb", ["db-0"]),
        ("pods?labelSelector=app%21%3Ddb", ["web-0"]),
        ("pods?fieldSelector=metadata.name%3Ddb-0", ["db-0"]),
        ("pods?fieldSelector=metadata.namespace%3Ddefault", ["web-0"]),
        ("nodes", ["node-1"]),
        ("nodes?labelSelector=kubernetes.io/hostname%3Dx", []),
    ],
)
def test_lists(api: Things, path: str, expected: list[str]) -> None:
    reply = api.ask("GET", f"{API}/{path}")
    assert (reply.code, sorted(names(reply.body))) == (200, sorted(expected))
    assert reply.body["kind"] == ("NodeMetricsList" if path.startswith("nodes") else "PodMetricsList")


def names(listed: Any) -> list[str]:
    return [item["metadata"]["name"] for item in listed["items"]]


def test_an_object(api: Things) -> None:
    pod = api.ask("GET", f"{API}/namespaces/default/pods/web-0").body
    time = pod["timestamp"]
    assert pod == {
        "kind": "PodMetrics",
        "apiVersion": "metrics.k8s.io/v1beta1",
        "metadata": {"name": "web-0", "namespace": "default", "labels": {"app": "web"}, "creationTimestamp": time},
        "timestamp": time,
        "window": "15s",
        "containers": [{"name": "c", "usage": {"cpu": "250m", "memory": "65536Ki"}}],
    }
    node = api.ask("GET", f"{API}/nodes/node-1").body
    assert (node["kind"], node["usage"]["cpu"]) == ("NodeMetrics", f"{250 + 200 + 50}m")


@rows(
    "method, path, code, message",
    [
        ("GET", "namespaces/default/pods/x", 404, 'podmetrics.metrics.k8s.io "default/x" not found'),
        ("GET", "namespaces/default/pods/waits", 404, 'podmetrics.metrics.k8s.io "default/waits" not found'),
        ("GET", "nodes/x", 404, 'nodemetrics.metrics.k8s.io "x" not found'),
        ("GET", "pods?watch=1", 405, 'watch is not supported on resources of kind "pods.metrics.k8s.io"'),
        ("DELETE", "namespaces/default/pods/web-0", 405, 'delete is not supported on resources of kind "pods.metrics.k8s.io"'),
        ("POST", "nodes", 405, 'create is not supported on resources of kind "nodes.metrics.k8s.io"'),
        ("GET", "namespaces/default/pods/web-0/status", 404, 'pods.metrics.k8s.io "web-0" not found'),
        ("GET", "namespaces/default/nodes", 404, None),
        ("GET", "services", 404, None),
        ("GET", "pods?fieldSelector=spec.nodeName%3Dx", 400, None),
    ],
)  # fmt: skip
def test_what_is_refused(api: Things, method: str, path: str, code: int, message: str | None) -> None:
    reply = api.ask(method, f"{API}/{path}", {} if method == "POST" else None)
    assert reply.code == code
    assert message is None or reply.message == message


def test_discovery_lists_what_can_be_read(api: Things) -> None:
    resources = api.ask("GET", API).body["resources"]
    assert [(each["name"], each["kind"], each["verbs"]) for each in resources] == [
        ("nodes", "NodeMetrics", ["get", "list"]),
        ("pods", "PodMetrics", ["get", "list"]),
    ]
    assert API.split("/")[2] in [group["name"] for group in api.ask("GET", "/apis").body["groups"]]
    service = api.ask("GET", "/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.metrics.k8s.io").body
    assert service["spec"].get("service") is None
