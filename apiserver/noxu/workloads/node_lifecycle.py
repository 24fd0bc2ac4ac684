"""node-lifecycle-controller: nodes of which nothing is heard become Unknown, and conditions become taints (pkg/controller/nodelifecycle).

    no heartbeat for GRACE        the conditions are Unknown, and the pods of the node are not ready
    never a status for NEW_GRACE  the same
    conditions, cordons           taints: see node_taints.py
    labels                        the older names of the system and the architecture are kept like the newer ones

The nodes of this server are heard of always, unless they are lost. What a kubelet elsewhere simulates or runs is heard of
by its Lease, or by its status.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final, NamedTuple, Self

from noxu.config import Config
from noxu.controllers.controller import ControllerParts
from noxu.go.time import format_time
from noxu.values import Object
from noxu.workloads.engine import WorkloadController
from noxu.workloads.informer import Informer
from noxu.workloads.kubelet.addresses import host_addresses
from noxu.workloads.kubelet.heartbeats import NAMESPACE, lost_since
from noxu.workloads.node_taints import Disruption, disruption, ready_status, taints_of
from noxu.workloads.nodes import is_lost
from noxu.workloads.objects import LEASES, NODES, PODS, Objects
from noxu.workloads.pods import condition, is_ready, moment, with_condition
from noxu.workloads.writes import (
    NORMAL,
    WARNING,
    Kind,
    NamespacedName,
    NewEvent,
    Replace,
    Steps,
    done,
    stored,
    with_status,
)

GRACE: Final = 50.0  # seconds of object time; upstream's --node-monitor-grace-period
NEW_GRACE: Final = 60.0  # --node-startup-grace-period
REPORTED: Final = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")
"""The conditions that kubelets report."""
_OLDER: Final = (
    ("kubernetes.io/os", "beta.kubernetes.io/os"),
    ("kubernetes.io/arch", "beta.kubernetes.io/arch"),
)


class NodeLifecycleController(WorkloadController):
    """Keys are the names of nodes."""

    name = "node-lifecycle-controller"
    kind = NODES
    looks_at = (LEASES, PODS)
    account = "node-controller"

    def __init__(self, parts: ControllerParts, informer: Informer, config: Config) -> None:
        super().__init__(parts, informer, config)
        self._known: dict[str, Object] = {}

    def _take_over(self, idle: Self) -> None:
        self._known = dict(idle._known)

    def affected(
        self, objects: Objects, kind: Kind, old: Object | None, new: Object | None
    ) -> Iterable[NamespacedName]:
        return concerned(objects, kind, old, new)

    def steps(self, objects: Objects, key: NamespacedName, now: datetime) -> Steps:
        node, known = objects.get(NODES, key), self._known.get(key.name)
        if node is None:
            if known is not None:
                del self._known[key.name]
                yield [_event(known, "RemovingNode", f"Removing Node {key.name} from Controller")]
            return None
        self._known[key.name] = node
        if known is None:
            yield [_event(node, "RegisteredNode", f"Registered Node {key.name} in Controller")]
        return (yield from lifecycle(objects, key, now))


def _event(node: Object, reason: str, message: str) -> NewEvent:
    """RecordNodeEvent."""
    return NewEvent(node, NORMAL, reason, f"Node {node['metadata']['name']} event: {message}")


def concerned(objects: Objects, kind: Kind, old: Object | None, new: Object | None) -> Iterable[NamespacedName]:
    """The nodes that a change concerns. What others do depends on whether a node is ready: see `disruption`."""
    if kind == PODS:
        return
    value = new or old or {}
    name = NamespacedName("", value["metadata"]["name"])
    if kind == LEASES:
        node = objects.get(NODES, name)
        is_watched = value["metadata"]["namespace"] == NAMESPACE and node is not None
        if is_watched and node is not None and (is_lost(node) or not host_addresses(node)):
            yield name
        return
    yield name
    before = ready_status(old) if old is not None else ""
    if before and (new is None or before != ready_status(new)):
        for node in objects.all(NODES):
            if ready_status(node) not in ("True", ""):
                yield NamespacedName("", node["metadata"]["name"])


def lifecycle(objects: Objects, key: NamespacedName, now: datetime) -> Steps:
    node = objects.get(NODES, key)
    if node is None:
        return None
    heard = last_heard(objects, node)
    left = None if heard is None else heard.grace - (now - heard.at).total_seconds()
    if left is not None and left <= 0:
        left, was_ready = None, ready_status(node) == "True"
        conditions = _unknown(node, now)
        if conditions != ((node.get("status") or {}).get("conditions") or []):
            new = with_status(node, {**(node.get("status") or {}), "conditions": conditions})
            [result] = yield [Replace(NODES, new, "status")]
            node = stored(result) or new
        if was_ready:
            yield [NewEvent(node, NORMAL, "NodeNotReady", f"Node {key.name} status is now: NodeNotReady")]
            yield from _mark_pods(objects, key.name, now)
    is_bad = ready_status(node) in ("False", "Unknown")
    state = disruption(node, objects.all(NODES)) if is_bad else Disruption.NONE  # all nodes are looked at
    wanted = _labelled(_tainted(node, taints_of(node, state, now)))
    if wanted != node:
        done((yield [Replace(NODES, wanted)]))
    return left


# -- heartbeats -------------------------------------------------------------------------------------------------------


class _Heard(NamedTuple):
    """The last heartbeat of a node, and the seconds for which it may be silent after that."""

    at: datetime
    grace: float


def last_heard(objects: Objects, node: Object) -> _Heard | None:
    """None: it is heard of now."""
    lease = objects.get(LEASES, NamespacedName(NAMESPACE, node["metadata"]["name"]))
    if is_lost(node):
        since = None if lease is None else lost_since(lease)
        return None if since is None else _Heard(moment(since), GRACE)  # else its Lease has yet to say so
    if host_addresses(node):
        return None
    ready = condition(node, "Ready")
    created, grace = node["metadata"]["creationTimestamp"], NEW_GRACE if ready is None else GRACE
    times = [((lease or {}).get("spec") or {}).get("renewTime"), (ready or {}).get("lastHeartbeatTime"), created]
    return _Heard(max(moment(time) for time in times if time), grace)


def _unknown(node: Object, now: datetime) -> list[Object]:
    """The conditions of a node of which nothing is heard."""
    time, result, seen = format_time(now), [], set()
    for found in (node.get("status") or {}).get("conditions") or ():
        seen.add(found["type"])
        if found["type"] in REPORTED and found["status"] != "Unknown":
            text = "Kubelet stopped posting node status."
            reason = {"reason": "NodeStatusUnknown", "message": text}
            result.append({**found, "status": "Unknown", **reason, "lastTransitionTime": time})
        else:
            result.append(found)
    never = {"reason": "NodeStatusNeverUpdated", "message": "Kubelet never posted node status."}
    times = {"lastHeartbeatTime": node["metadata"]["creationTimestamp"], "lastTransitionTime": time}
    return [*result, *({"type": kind, "status": "Unknown", **never, **times} for kind in REPORTED if kind not in seen)]


def _mark_pods(objects: Objects, node: str, now: datetime) -> Steps:
    """The pods of a node are not ready any more (MarkPodsNotReady)."""
    pods = [pod for pod in objects.on_node(node) if is_ready(pod)]
    if pods:
        results = yield [Replace(PODS, _unready(pod, now), "status") for pod in pods]
        marked = [value for value in map(stored, results) if value is not None]
        yield [NewEvent(pod, WARNING, "NodeNotReady", "Node is not ready") for pod in marked]
    return None


def _unready(pod: Object, now: datetime) -> Object:
    ready = {**(condition(pod, "Ready") or {}), "status": "False"}
    ready.pop("lastTransitionTime", None)
    return with_status(pod, {**pod["status"], "conditions": with_condition(pod["status"]["conditions"], ready, now)})


# -- taints and labels ------------------------------------------------------------------------------------------------


def _tainted(node: Object, taints: list[Object]) -> Object:
    spec = {key: value for key, value in (node.get("spec") or {}).items() if key != "taints"}
    if taints == ((node.get("spec") or {}).get("taints") or []):
        return node
    return {**node, "spec": {**spec, "taints": taints} if taints else spec}


def _labelled(node: Object) -> Object:
    labels = node["metadata"].get("labels") or {}
    added = {older: labels[newer] for newer, older in _OLDER if newer in labels and labels.get(older) != labels[newer]}
    return {**node, "metadata": {**node["metadata"], "labels": {**labels, **added}}} if added else node
