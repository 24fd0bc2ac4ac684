"""Deployments and their ReplicaSets, as rows of tests need them, and a cluster on a `Play` that carries out a roll-out."""

from __future__ import annotations

from typing import Any

from noxu.values import Object, copy
from noxu.workloads.deployment.revisions import HASH, REVISION
from noxu.workloads.deployment.sizes import DESIRED, MAXIMUM
from noxu.workloads.ownership import owner_reference
from tests.workloads.replicas import LABELS, ago, template

Number = int | str


def deployment(
    replicas: int = 3, surge: Number = 0, unavailable: Number = 0, strategy: str = "RollingUpdate", **more: Any
) -> Object:
    """`more`: `image`, `metadata`, `spec` and `status` that are added."""
    rolling = {"rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default", "uid": "uid-web", "generation": 1}
        | more.get("metadata", {}),
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": dict(LABELS)},
            "strategy": {"type": strategy, **(rolling if strategy == "RollingUpdate" else {})},
            "template": template(more.get("image", "nginx")),
            "revisionHistoryLimit": 10,
            "progressDeadlineSeconds": 600,
        }
        | more.get("spec", {}),
        "status": more.get("status", {}),
    }


def revision(
    name: str,
    replicas: int,
    *,
    has: int | None = None,
    available: int | None = None,
    number: int = 1,
    age: float = 0,
    desired: int | None = None,
    maximum: int | None = None,
    image: str = "old",
    **status: Any,
) -> Object:
    """A ReplicaSet of the Deployment `web`. `has`, `available`: its pods, None for all; `age` in seconds."""
    annotations = {REVISION: str(number)}
    annotations |= {DESIRED: str(desired)} if desired is not None else {}
    annotations |= {MAXIMUM: str(maximum)} if maximum is not None else {}
    made = copy(template(image))
    made["metadata"]["labels"][HASH] = name
    counters = {
        "replicas": replicas if has is None else has,
        "availableReplicas": replicas if available is None else available,
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{name}",
            "creationTimestamp": ago(age),
            "annotations": annotations,
            "labels": dict(made["metadata"]["labels"]),
            "ownerReferences": [owner_reference(deployment())],
        },
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": dict(made["metadata"]["labels"])},
            "template": made,
        },
        "status": {**{name: number for name, number in counters.items() if number}, "terminatingReplicas": 0} | status,
    }
