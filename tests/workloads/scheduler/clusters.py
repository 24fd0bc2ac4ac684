"""Nodes and pods for tests of the scheduler, and a play in which it runs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from noxu.values import Object
from noxu.workloads.objects import NODES, PODS, Objects
from noxu.workloads.scheduler.cluster import Cluster, PodFacts
from noxu.workloads.scheduler.scheduling import Scheduling
from noxu.workloads.writes import Kind, NamespacedName, Steps

CREATED = "2026-01-01T00:00:00Z"


def node(name: str, *, labels: Object | None = None, spec: Object | None = None, **allocatable: str) -> Object:
    """A node with 4 CPUs, 8Gi and 110 pods, unless it has others. `ephemeral_storage` is ephemeral-storage."""
    given = {key.replace("_", "-"): value for key, value in allocatable.items()}
    return {
        "metadata": {"name": name, "uid": f"uid-{name}", "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "spec": spec or {},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110", **given}},
    }


def pod(
    name: str,
    on: str = "",
    *,
    namespace: str = "default",
    labels: Object | None = None,
    requests: Object | None = None,
    created: str = CREATED,
    status: Object | None = None,
    metadata: Object | None = None,
    **spec: object,
) -> Object:
    """A pod with one container. `on`: the node that it is bound to."""
    container = {"name": "main", "image": "web", "resources": {"requests": requests or {}}}
    bound = {"nodeName": on} if on else {}
    return {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-{name}",
            "creationTimestamp": created,
            "labels": labels or {},
            **(metadata or {}),
        },
        "spec": {"containers": [container], **bound, **spec},
        "status": {"phase": "Running" if on else "Pending", **(status or {})},
    }


def indexed(nodes: Sequence[Object], pods: Sequence[Object], *others: tuple[Kind, Object]) -> Objects:
    return Objects([*((NODES, it) for it in nodes), *((PODS, it) for it in pods), *others])


def cluster(nodes: Sequence[Object], pods: Sequence[Object] = (), *others: tuple[Kind, Object]) -> Cluster:
    return Cluster(indexed(nodes, pods, *others))


def facts(value: Object) -> PodFacts:
    return PodFacts(value)


def schedule(objects: Objects, key: NamespacedName, now: datetime) -> Steps:
    """The steps of a scheduler that has just started, for `Play.run`."""
    return Scheduling(objects).steps(now)
