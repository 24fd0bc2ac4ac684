"""Services, their pods, nodes and slices for tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from noxu.go.time import format_time
from noxu.values import Object
from noxu.workloads.objects import ENDPOINT_SLICES, NODES, PODS, SERVICES, Objects
from noxu.workloads.writes import Kind
from tests.workloads.plays import NOW

LABELS = {"app": "web"}
TIME = format_time(NOW)
HTTP: Object = {"name": "http", "port": 80, "targetPort": 8080, "protocol": "TCP"}


def service(*, labels: Object | None = None, name: str = "web", **spec: Any) -> tuple[Kind, Object]:
    metadata = {"name": name, "namespace": "default", "uid": f"service-{name}", "labels": labels or {}}
    usual: Object = {
        "selector": LABELS,
        "ports": [HTTP],
        "clusterIP": "10.0.0.7",
        "ipFamilies": ["IPv4"],
        "type": "ClusterIP",
    }
    return SERVICES, {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {**usual, **spec}}


def pod(
    number: int = 1,
    *,
    ready: bool = True,
    ending: bool = False,
    phase: str = "Running",
    addresses: Sequence[str] | None = None,
    since: str = TIME,
    labels: Object | None = None,
    **spec: Any,
) -> tuple[Kind, Object]:
    """A pod `web-NUMBER` at 10.1.X.Y, on node-1."""
    listed = [f"10.1.{number // 250}.{number % 250}"] if addresses is None else list(addresses)
    metadata: Object = {
        "name": f"web-{number}",
        "namespace": "default",
        "uid": f"pod-{number}",
        "labels": labels or LABELS,
    }
    if ending:
        metadata["deletionTimestamp"] = TIME
    container = {"name": "main", "image": "nginx", "ports": [{"name": "web", "containerPort": 8443, "protocol": "TCP"}]}
    status: Object = {
        "phase": phase,
        "conditions": [{"type": "Ready", "status": str(ready), "lastTransitionTime": since}],
        "podIPs": [{"ip": address} for address in listed],
    }
    spec = {"nodeName": "node-1", "containers": [container], **spec}
    return PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


def pods(first: int, last: int, **given: Any) -> list[tuple[Kind, Object]]:
    return [pod(number, **given) for number in range(first, last + 1)]


def node(name: str = "node-1", **labels: str) -> tuple[Kind, Object]:
    return NODES, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "spec": {}}


def slices(objects: Objects, family: str = "IPv4") -> list[Object]:
    return [value for value in objects.within(ENDPOINT_SLICES, "default") if value["addressType"] == family]


def sizes(objects: Objects, family: str = "IPv4") -> list[int]:
    """The numbers of endpoints of slices."""
    return [len(value["endpoints"]) for value in slices(objects, family)]
