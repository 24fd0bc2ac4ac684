"""Nodes and the pods that are bound to them, for tables."""

from __future__ import annotations

from typing import Any

from noxu.go.time import format_time
from noxu.values import Object
from noxu.workloads.objects import NODES, PODS
from noxu.workloads.writes import Kind
from tests.workloads.plays import NOW

TIME = format_time(NOW)
ADDRESSES = [{"type": "InternalIP", "address": "172.18.0.1"}]


def node(
    name: str = "node-1",
    ready: str | None = "True",
    *,
    taints: list[Object] | None = None,
    labels: Object | None = None,
    annotations: Object | None = None,
    simulated: bool = True,
    unschedulable: bool = False,
    **conditions: str,
) -> tuple[Kind, Object]:
    """`ready` None: it has no conditions. `conditions`: further ones with their status."""
    spec: Object = {"taints": taints} if taints else {}
    if unschedulable:
        spec["unschedulable"] = True
    listed = {**({} if ready is None else {"Ready": ready}), **conditions}
    times = {"lastHeartbeatTime": TIME, "lastTransitionTime": TIME}
    status: Object = {"conditions": [{"type": kind, "status": value, **times} for kind, value in listed.items()]}
    if simulated:
        status["addresses"] = ADDRESSES
    metadata = {"name": name, "uid": f"uid-{name}", "labels": labels or {}, "annotations": annotations or {}}
    return NODES, {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec, "status": status}


def pod(
    name: str = "web",
    node_name: str = "node-1",
    *,
    ready: bool = True,
    ending: bool = False,
    phase: str = "Running",
    tolerations: list[Object] | None = None,
    **given: Any,
) -> tuple[Kind, Object]:
    """`given`: further fields of the metadata."""
    metadata: Object = {"name": name, "namespace": "default", "uid": f"uid-{name}", **given}
    if ending:
        metadata["deletionTimestamp"] = TIME
    spec: Object = {"containers": [], **({"nodeName": node_name} if node_name else {})}
    if tolerations is not None:
        spec["tolerations"] = tolerations
    condition = {"type": "Ready", "status": str(ready), "lastTransitionTime": TIME}
    status: Object = {"phase": phase, "conditions": [condition]}
    return PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


def taint(key: str, effect: str, **given: str) -> Object:
    return {"key": key, "effect": effect, **given}
