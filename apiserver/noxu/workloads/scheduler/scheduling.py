"""The scheduler: pods that wait are tried in order of their priority, and bound to nodes; the others say why they wait.

    a new pod, a change that matters to one that waits
        → the pods to be tried, BATCH at a time: each finds its node, and counts there at once
        → bound in one step, Events `Scheduled`; or `FailedScheduling` and the condition PodScheduled

It has one key, the queue of all pods. Only pods that ask for `default-scheduler` are its own. Source: pkg/scheduler/schedule_one.go.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from datetime import datetime
from typing import Final, NamedTuple, Self

from noxu.api.errors import ApiError
from noxu.config import Config
from noxu.controllers.controller import ControllerParts
from noxu.registry.access import User
from noxu.values import Object
from noxu.workloads.engine import WorkloadController
from noxu.workloads.informer import Informer
from noxu.workloads.objects import NODES, PODS, Objects, name_of
from noxu.workloads.pods import condition, is_terminating, phase, with_condition
from noxu.workloads.scheduler.cluster import Cluster, NodeFacts, PodFacts, counts
from noxu.workloads.scheduler.placement import place
from noxu.workloads.scheduler.waiting import Happening, WaitingPods
from noxu.workloads.writes import (
    NORMAL,
    WARNING,
    Bind,
    Event,
    Kind,
    Name,
    Result,
    Steps,
    Update,
    Write,
    done,
    with_status,
)

DEFAULT_SCHEDULER: Final = "default-scheduler"
BATCH: Final = 16  # pods that are bound at the same time: more would hold the event loop for long
QUEUE: Final = Name("", "queue")
GATED: Final = "Scheduling is blocked due to non-empty scheduling gates"


class Scheduler(WorkloadController):
    """What it knows of the cluster follows the informer; it is made anew whenever changes may be missing."""

    name = "scheduler"
    kind = PODS
    looks_at = (NODES,)
    account = component = DEFAULT_SCHEDULER
    field_manager = "kube-scheduler"

    def __init__(self, parts: ControllerParts, informer: Informer, config: Config) -> None:
        super().__init__(parts, informer, config)
        self.user = User("system:kube-scheduler", groups=("system:authenticated",))
        self._scheduling: Scheduling | None = None

    def keys(self, objects: Objects) -> Iterable[Name]:
        return [QUEUE]

    def changed(self, kind: Kind, old: Object | None, new: Object | None) -> None:
        if self._scheduling is None or self._scheduling.changed(kind, old, new):
            self.queue.add(QUEUE)

    def reset(self) -> None:
        self._scheduling = None
        super().reset()

    def _take_over(self, idle: Self) -> None:
        self._scheduling = None

    def steps(self, objects: Objects, key: Name, now: datetime) -> Steps:
        if self._scheduling is None:
            self._scheduling = Scheduling(objects)
        return self._scheduling.steps(now)


class Placed(NamedTuple):
    """A pod, and the node that it is going to be bound to."""

    pod: PodFacts
    node: str


class Scheduling:
    """The cluster and the pods that wait, without a server."""

    def __init__(self, objects: Objects) -> None:
        self.objects = objects
        self.cluster = Cluster(objects)
        self.waiting = WaitingPods()
        for pod in objects.all(PODS):
            if is_waiting(pod):
                self.waiting.put(pod)

    # -- following

    def changed(self, kind: Kind, old: Object | None, new: Object | None) -> bool:
        """Follow a change: whether there are pods to be tried."""
        if kind == PODS:
            return self._pod_changed(old, new)
        if kind == NODES:
            return self._node_changed(old, new)
        return False

    def _pod_changed(self, old: Object | None, new: Object | None) -> bool:
        pod = new or old or {}
        name = name_of(pod)
        if new is not None and is_waiting(new):
            if old is not None and name in self.waiting and not _differs(old, new):
                self.waiting.update(new)
                return False
            self.waiting.put(new)
            return True
        if name in self.waiting:
            self.waiting.drop(name)
        did_count = old is not None and counts(old)
        if new is None or not counts(new):
            self.cluster.remove_pod(name)
            return did_count and self.waiting.happened(Happening.POD_GONE)
        if did_count and old is not None and not _differs(old, new):
            return False
        self.cluster.put_pod(new)
        return self.waiting.happened(Happening.POD_CAME | (Happening.POD_GONE if did_count else Happening.POD_CAME))

    def _node_changed(self, old: Object | None, new: Object | None) -> bool:
        if new is None:
            self.cluster.remove_node((old or {})["metadata"]["name"])
            return False
        if old is not None and _of_node(old) == _of_node(new):
            return False
        self.cluster.put_node(new)
        return self.waiting.happened(Happening.NODE)

    # -- scheduling

    def steps(self, now: datetime) -> Steps:
        while ready := self.waiting.ready()[:BATCH]:
            placed: list[Placed] = []
            unplaced: list[Update] = []
            events: list[Event] = []
            for pod in ready:
                if pod["spec"].get("schedulingGates"):
                    self.waiting.drop(name_of(pod))
                    unplaced += status_of(pod, "SchedulingGated", GATED, now)
                    continue
                facts = PodFacts(pod)
                found = place(facts, self.cluster)
                if isinstance(found, NodeFacts):
                    self.cluster.assume(facts, found.name)
                    placed.append(Placed(facts, found.name))
                    continue
                self.waiting.failed(facts.name, found.plugins)
                message = found.sentence()
                if update := status_of(pod, "Unschedulable", message, now):
                    unplaced += update
                    events.append(Event(pod, WARNING, "FailedScheduling", message))
            bound = yield from self._bind(placed)
            results = yield [
                *unplaced,
                *events,
                *(Event(it.pod.pod, NORMAL, "Scheduled", _assigned(it)) for it in bound),
            ]
            self._try_again(unplaced, results)
        return None

    def _bind(self, placed: Sequence[Placed]) -> Generator[Sequence[Write], Sequence[Result], Sequence[Placed]]:
        """Bind pods to their nodes: those that are. Raises ApiError: one that is not is still to be tried."""
        if not placed:
            return ()
        try:
            results = yield [Bind(it.pod.pod, it.node) for it in placed]
        finally:
            for it in placed:
                pod = self.objects.get(PODS, it.pod.name)
                if pod is None or not pod["spec"].get("nodeName"):
                    self.cluster.forget(it.pod.name)
        for it, result in zip(placed, results, strict=True):
            if not isinstance(result, ApiError) or result.reason == "NotFound":
                self.waiting.drop(it.pod.name)
        done([result for result in results if not (isinstance(result, ApiError) and result.reason == "NotFound")])
        return [it for it, result in zip(placed, results, strict=True) if result is None]

    def _try_again(self, updates: Sequence[Update], results: Sequence[Result]) -> None:
        """Pods whose status was not written are still to be tried. Raises ApiError."""
        failures = [it for it in zip(updates, results, strict=False) if isinstance(it[1], ApiError)]
        for update, _ in failures:
            if (pod := self.objects.get(PODS, name_of(update.value))) is not None and is_waiting(pod):
                self.waiting.put(pod)
        done([result for _, result in failures if isinstance(result, ApiError) and result.reason != "NotFound"])


def _assigned(it: Placed) -> str:
    return f"Successfully assigned {it.pod.namespace}/{it.pod.name.name} to {it.node}"


def is_waiting(pod: Object) -> bool:
    """Whether the scheduler has to find a node for a pod."""
    spec = pod["spec"]
    if spec.get("nodeName") or is_terminating(pod) or phase(pod) in ("Succeeded", "Failed"):
        return False
    return (spec.get("schedulerName") or DEFAULT_SCHEDULER) == DEFAULT_SCHEDULER


def _differs(old: Object, new: Object) -> bool:
    """Whether a pod changed in anything but its status."""
    before, after = old["metadata"], new["metadata"]
    if before["uid"] != after["uid"] or before.get("labels") != after.get("labels"):
        return True
    return bool(old["spec"] != new["spec"])


def _of_node(node: Object) -> tuple[object, ...]:
    """What of a node matters to the scheduler: heartbeats do not."""
    status = node.get("status") or {}
    return node["metadata"].get("labels"), node.get("spec"), status.get("allocatable")


# -- what is written


def status_of(pod: Object, reason: str, message: str, now: datetime) -> list[Update]:
    """The condition that a pod is not scheduled; nothing, if it says so already."""
    old, status = condition(pod, "PodScheduled") or {}, pod.get("status") or {}
    new = {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
    if all(old.get(name) == value for name, value in new.items()):
        return []
    if generation := pod["metadata"].get("generation"):
        new["observedGeneration"] = generation
    conditions = with_condition(status.get("conditions"), new, now)
    return [Update(PODS, with_status(pod, {**status, "conditions": conditions}), "status")]
