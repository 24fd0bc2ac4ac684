"""taint-eviction-controller: pods that do not tolerate a NoExecute taint of their node are deleted (pkg/controller/tainteviction).

A pod that tolerates all of them for a time stays that long: the shortest `tolerationSeconds` counts, from when the controller
has seen the taint. Pods tolerate that their node is not ready or unreachable for five minutes, by the admission plug-in
DefaultTolerationSeconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final

from noxu.config import Config
from noxu.controllers.controller import ControllerParts
from noxu.values import Object
from noxu.workloads.engine import WorkloadController
from noxu.workloads.informer import Informer
from noxu.workloads.node_matching import tolerates
from noxu.workloads.objects import NODES, PODS, Objects, name_of
from noxu.workloads.pods import is_terminating, with_condition
from noxu.workloads.writes import (
    NORMAL,
    Delete,
    Kind,
    NamespacedName,
    NewEvent,
    Replace,
    Steps,
    done,
    stored,
    with_status,
)

TARGET: Final = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "DeletionByTaintManager",
    "message": "Taint manager: deleting due to NoExecute taint",
}


class TaintEvictionController(WorkloadController):
    """Keys are the names of pods that are bound to a node."""

    name = "taint-eviction-controller"
    kind = PODS
    looks_at = (NODES,)
    workers = 8

    def __init__(self, parts: ControllerParts, informer: Informer, config: Config) -> None:
        super().__init__(parts, informer, config)
        self._evictions = Evictions()

    def keys(self, objects: Objects) -> Iterable[NamespacedName]:
        tainted = [node["metadata"]["name"] for node in objects.all(NODES) if evicting(node)]
        return [name_of(pod) for node in tainted for pod in objects.on_node(node)]

    def affected(
        self, objects: Objects, kind: Kind, old: Object | None, new: Object | None
    ) -> Iterable[NamespacedName]:
        return self._evictions.concerned(objects, kind, old, new)

    def steps(self, objects: Objects, key: NamespacedName, now: datetime) -> Steps:
        return self._evictions.steps(objects, key, now)


def evicting(node: Object | None) -> list[Object]:
    """The taints of a node because of which pods are deleted."""
    return [taint for taint in ((node or {}).get("spec") or {}).get("taints") or () if taint["effect"] == "NoExecute"]


class Evictions:
    """Those that are due: by pod, its uid and the time."""

    def __init__(self) -> None:
        self._due: dict[NamespacedName, tuple[str, datetime]] = {}

    def concerned(
        self, objects: Objects, kind: Kind, old: Object | None, new: Object | None
    ) -> Iterable[NamespacedName]:
        if kind == NODES:
            if new is not None and evicting(old) != evicting(new):
                yield from map(name_of, objects.on_node(new["metadata"]["name"]))
        elif new is None:
            self._due.pop(name_of(old or {}), None)
        elif (old is None or _looks(old) != _looks(new)) and new["spec"].get("nodeName"):
            node = objects.get(NODES, NamespacedName("", new["spec"]["nodeName"]))
            if evicting(node) or name_of(new) in self._due:
                yield name_of(new)

    def steps(self, objects: Objects, key: NamespacedName, now: datetime) -> Steps:
        pod = objects.get(PODS, key)
        if pod is None or is_terminating(pod):
            return None
        taints = evicting(objects.get(NODES, NamespacedName("", pod["spec"].get("nodeName") or "")))
        stays = stays_for(taints, pod["spec"].get("tolerations") or ())
        due = self._due_of(pod)
        if due is not None and due > now and not stays:
            del self._due[key]
            text = f"Cancelling deletion of Pod {key.namespace}/{key.name}"
            yield [NewEvent(pod, NORMAL, "TaintManagerEviction", text)]
        if stays is None:
            return None
        if stays:
            due = now + timedelta(seconds=stays) if due is None else due
            self._due[key] = pod["metadata"]["uid"], due
            if due > now:
                return (due - now).total_seconds()
        yield from _evict(pod, now)
        self._due.pop(key, None)
        return None

    def _due_of(self, pod: Object) -> datetime | None:
        """When a pod is deleted; None: that was not decided."""
        uid, due = self._due.get(name_of(pod)) or ("", None)
        return due if uid == pod["metadata"]["uid"] else None


def _looks(pod: Object) -> object:
    return pod["spec"].get("nodeName"), pod["spec"].get("tolerations")


def stays_for(taints: Sequence[Object], tolerations: Sequence[Object]) -> float | None:
    """The seconds for which a pod tolerates all taints; None: for ever."""
    shortest: float | None = None
    for taint in taints:
        used = next((each for each in tolerations if tolerates(each, taint)), None)
        if used is None:
            return 0.0
        if (seconds := used.get("tolerationSeconds")) is not None:
            shortest = max(float(seconds), 0.0) if shortest is None else min(shortest, max(float(seconds), 0.0))
    return shortest


def _evict(pod: Object, now: datetime) -> Steps:
    namespace, name = name_of(pod)
    yield [NewEvent(pod, NORMAL, "TaintManagerEviction", f"Marking for deletion Pod {namespace}/{name}")]
    status = pod.get("status") or {}
    new = with_status(pod, {**status, "conditions": with_condition(status.get("conditions"), TARGET, now)})
    [result] = yield [Replace(PODS, new, "status")]
    done((yield [Delete(PODS, stored(result) or new)]))
    return None
