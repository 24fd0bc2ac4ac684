"""pod-garbage-collector-controller: pods that nothing else would delete (pkg/controller/podgc).

    bound to a node that does not exist           after QUARANTINE, marked as failed
    being deleted, and never bound                at once
    being deleted on a node that is out of service and not ready
                                                  at once
    ended, and more than MAX_ENDED of them        the oldest ones, evicted ones first

Upstream looks for them every 20 s.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from noxu.config import Config
from noxu.controllers.controller import ControllerParts
from noxu.values import Object
from noxu.workloads.engine import WorkloadController
from noxu.workloads.informer import Informer
from noxu.workloads.objects import NODES, PODS, Objects, name_of
from noxu.workloads.pods import FINISHED, is_terminating, is_true, phase, with_condition
from noxu.workloads.writes import (
    Delete,
    Kind,
    NamespacedName,
    Replace,
    Steps,
    done_or_gone,
    is_gone,
    stored,
    with_status,
)

QUARANTINE: Final = 40.0  # seconds of object time
MAX_ENDED: Final = 12_500  # upstream's --terminated-pod-gc-threshold
OUT_OF_SERVICE: Final = "node.kubernetes.io/out-of-service"
ENDED: Final = NamespacedName("", "ended pods")
"""The key of all pods that have ended."""
_ORPHANED: Final = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "DeletionByPodGC",
    "message": "PodGC: node no longer exists",
}


class PodGarbageCollector(WorkloadController):
    """Keys are the names of pods, and ENDED."""

    name = "pod-garbage-collector-controller"
    kind = PODS
    looks_at = (NODES,)
    account = "pod-garbage-collector"

    def __init__(self, parts: ControllerParts, informer: Informer, config: Config) -> None:
        super().__init__(parts, informer, config)
        self._garbage = Garbage()

    def keys(self, objects: Objects) -> Iterable[NamespacedName]:
        return [ENDED, *(name_of(pod) for pod in objects.all(PODS) if _may_be_garbage(objects, pod))]

    def affected(
        self, objects: Objects, kind: Kind, old: Object | None, new: Object | None
    ) -> Iterable[NamespacedName]:
        return concerned(objects, kind, old, new)

    def steps(self, objects: Objects, key: NamespacedName, now: datetime) -> Steps:
        return self._garbage.steps(objects, key, now)


def concerned(objects: Objects, kind: Kind, old: Object | None, new: Object | None) -> Iterable[NamespacedName]:
    """The pods that a change concerns."""
    if kind == NODES:
        name = (new or old or {})["metadata"]["name"]
        if new is None or _is_out_of_service(new):
            yield from map(name_of, objects.on_node(name))
    elif new is not None:
        if _may_be_garbage(objects, new):
            yield name_of(new)
        if phase(new) in FINISHED and objects.count(PODS) > MAX_ENDED:
            yield ENDED


def _may_be_garbage(objects: Objects, pod: Object) -> bool:
    node = pod["spec"].get("nodeName")
    return is_terminating(pod) or bool(node and objects.get(NODES, NamespacedName("", node)) is None)


def _is_out_of_service(node: Object) -> bool:
    taints = (node.get("spec") or {}).get("taints") or ()
    return not is_true(node, "Ready") and any(taint["key"] == OUT_OF_SERVICE for taint in taints)


class Garbage:
    """Since when nodes are missing that have pods."""

    def __init__(self) -> None:
        self._missing: dict[str, datetime] = {}

    def steps(self, objects: Objects, key: NamespacedName, now: datetime) -> Steps:
        if key == ENDED:
            yield from _delete_ended(objects, now)
            return None
        pod = objects.get(PODS, key)
        if pod is None:
            return None
        node_name = pod["spec"].get("nodeName")
        node = objects.get(NODES, NamespacedName("", node_name or ""))
        if node is not None:
            self._missing.pop(node["metadata"]["name"], None)
            if is_terminating(pod) and _is_out_of_service(node):
                yield from _delete(pod, None, now)
        elif node_name:
            left = QUARANTINE - (now - self._missing.setdefault(node_name, now)).total_seconds()
            if left > 0:
                return left
            yield from _delete(pod, _ORPHANED, now)
        elif is_terminating(pod):
            yield from _delete(pod, None, now)
        return None


def _delete_ended(objects: Objects, now: datetime) -> Steps:
    ended = [pod for pod in objects.all(PODS) if phase(pod) in FINISHED]
    if len(ended) > MAX_ENDED:
        for pod in sorted(ended, key=_age)[: len(ended) - MAX_ENDED]:
            yield from _delete(pod, None, now)
    return None


def _age(pod: Object) -> tuple[bool, str, str]:
    """Evicted pods come first, then the oldest ones."""
    status, metadata = pod.get("status") or {}, pod["metadata"]
    is_evicted = status.get("phase") == "Failed" and status.get("reason") == "Evicted"
    return not is_evicted, metadata.get("creationTimestamp") or "", metadata["name"]


def _delete(pod: Object, why: Object | None, now: datetime) -> Steps:
    """Mark a pod as failed, and delete it without a grace period."""
    if phase(pod) not in FINISHED:
        status = {**(pod.get("status") or {}), "phase": "Failed"}
        if why is not None:
            status["conditions"] = with_condition(status.get("conditions"), why, now)
        [result] = yield [Replace(PODS, with_status(pod, status), "status")]
        if is_gone(result):
            return None
        pod = stored(result) or pod
    elif pod["metadata"].get("deletionGracePeriodSeconds") == 0:
        return None  # its finalizers keep it
    done_or_gone((yield [Delete(PODS, pod, grace=0)]))
    return None
