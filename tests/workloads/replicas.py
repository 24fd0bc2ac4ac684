"""ReplicaSets, ReplicationControllers and their pods, as rows of tests need them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from noxu.go.time import format_time
from noxu.values import Object
from noxu.workloads.ownership import owner_reference
from tests.workloads.plays import NOW

LABELS = {"app": "web"}


def ago(seconds: float) -> str:
    """The time of an object."""
    return format_time(NOW - timedelta(seconds=seconds))


def template(image: str = "nginx") -> Object:
    return {"metadata": {"labels": dict(LABELS)}, "spec": {"containers": [{"name": "c", "image": image}]}}


def replica_set(replicas: int = 3, name: str = "web", **more: Any) -> Object:
    """`more`: `metadata`, `spec` and `status` that are added."""
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}", "generation": 1}
        | more.get("metadata", {}),
        "spec": {"replicas": replicas, "selector": {"matchLabels": dict(LABELS)}, "template": template()}
        | more.get("spec", {}),
        "status": more.get("status", {}),
    }


def replication_controller(replicas: int = 3, name: str = "web") -> Object:
    value = replica_set(replicas, name)
    value["spec"]["selector"] = dict(LABELS)
    return {**value, "apiVersion": "v1", "kind": "ReplicationController"}


def pod(name: str, owner: Object | None = None, ready: float | None = None, **more: Any) -> Object:
    """`ready`: the seconds since it has been ready; None: it is not. `more` is as of `replica_set`."""
    condition = {"type": "Ready", "status": "False"}
    if ready is not None:
        condition = {"type": "Ready", "status": "True", "lastTransitionTime": ago(ready)}
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}", "labels": dict(LABELS)}
    metadata |= {"ownerReferences": [owner_reference(owner)]} if owner else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata | more.get("metadata", {}),
        "spec": {"nodeName": "node-1"} | more.get("spec", {}),
        "status": {"phase": "Running", "conditions": [condition]} | more.get("status", {}),
    }
