"""The scheduler: pods that wait are tried in order of their priority, and bound to nodes; the others say why they wait.

    a new pod, a change that matters to one that waits
        → the pods to be tried, BATCH at a time: each finds its node, and counts there at once
        → bound in one step, Events `Scheduled`; or `FailedScheduling` and the condition PodScheduled

It has one key, the queue of all pods. Only pods that ask for `default-scheduler` are its own. Source: pkg/scheduler/schedule_one.go.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from datetime import datetime
from typing import Final, NamedTuple, Self, TypeAlias

from noxu.api.errors import ApiError
from noxu.config import Config
from noxu.controllers.controller import ControllerParts
from noxu.registry.access import User
from noxu.values import Object
from noxu.workloads.engine import WorkloadController
from noxu.workloads.informer import Informer
from noxu.workloads.objects import BUDGETS, CLAIMS, NAMESPACES, NODES, PODS, STORAGE_CLASSES, VOLUMES, Objects, name_of
from noxu.workloads.pods import FINISHED, condition, is_terminating, phase, with_condition
from noxu.workloads.scheduler.cluster import Cluster, NodeFacts, PodFacts, counts
from noxu.workloads.scheduler.placement import Placement
from noxu.workloads.scheduler.preemption import BY_SCHEDULER, PreemptionOutcome, preempt
from noxu.workloads.scheduler.volumes import claims_of
from noxu.workloads.scheduler.waiting import Happening, WaitingPods
from noxu.workloads.writes import (
    NORMAL,
    WARNING,
    Bind,
    Delete,
    Kind,
    NamespacedName,
    NewEvent,
    Replace,
    Result,
    Steps,
    Write,
    done_or_gone,
    with_status,
)

DEFAULT_SCHEDULER: Final = "default-scheduler"
BATCH: Final = 8  # pods that are bound at the same time: more would hold the event loop for long
QUEUE: Final = NamespacedName("", "queue")
Work: TypeAlias = Generator[Sequence[Write], Sequence[Result], Sequence[Result]]
"""A part of the steps: the writes that were refused."""
GATED: Final = "Scheduling is blocked due to non-empty scheduling gates"


class Scheduler(WorkloadController):
    """What it knows of the cluster follows the informer; it is made anew whenever changes may be missing."""

    name = "scheduler"
    kind = PODS
    looks_at = (NODES, NAMESPACES, CLAIMS, VOLUMES, STORAGE_CLASSES, BUDGETS)
    account = component = DEFAULT_SCHEDULER
    field_manager = "kube-scheduler"

    def __init__(self, parts: ControllerParts, informer: Informer, config: Config) -> None:
        super().__init__(parts, informer, config)
        self.user = User("system:kube-scheduler", groups=("system:authenticated",))
        self._scheduling: Scheduling | None = None

    def keys(self, objects: Objects) -> Iterable[NamespacedName]:
        return [QUEUE]

    def changed(self, kind: Kind, old: Object | None, new: Object | None) -> None:
        if self._scheduling is None or self._scheduling.changed(kind, old, new):
            self.queue.add(QUEUE)

    def reset(self) -> None:
        self._scheduling = None
        super().reset()

    def _take_over(self, idle: Self) -> None:
        self._scheduling = None

    def steps(self, objects: Objects, key: NamespacedName, now: datetime) -> Steps:
        if self._scheduling is None:
            self._scheduling = Scheduling(objects)
        try:
            return (yield from self._scheduling.steps(now))
        except BaseException:
            self._scheduling = None  # what was refused or interrupted is still to be done: it is read anew
            raise


class Placed(NamedTuple):
    """A pod, and the node that it is going to be bound to. `bindings`: what its claims need first; None: they are bound."""

    pod: PodFacts
    node: str
    bindings: Sequence[Replace] | None = None


class Unplaced(NamedTuple):
    """A pod that no node takes: its new status, if that differs, and who has to go from a node for it."""

    name: NamespacedName
    update: Replace | None
    event: NewEvent | None
    victims: Sequence[Object] = ()
    node: str = ""


class Scheduling:
    """The cluster and the pods that wait, without a server."""

    def __init__(self, objects: Objects) -> None:
        self.objects = objects
        self.cluster = Cluster(objects)
        self.waiting = WaitingPods()
        self.reserved: dict[NamespacedName, Placed] = {}
        """The pods that have a node, and wait until their volumes are bound."""
        for pod in objects.all(PODS):
            if is_waiting(pod):
                self.waiting.put(pod)
                self.cluster.nominate(pod)

    # -- following

    def changed(self, kind: Kind, old: Object | None, new: Object | None) -> bool:
        """Follow a change: whether there are pods to be tried."""
        if kind == PODS:
            return self._pod_changed(old, new)
        if kind == NODES:
            return self._node_changed(old, new)
        if kind == NAMESPACES:
            is_relabelled = old is None or new is None or old["metadata"].get("labels") != new["metadata"].get("labels")
            return is_relabelled and self.waiting.happened(Happening.POD_CAME)
        if kind in (CLAIMS, VOLUMES, STORAGE_CLASSES):
            return self.waiting.happened(Happening.VOLUMES) or bool(self.reserved)
        return False

    def _pod_changed(self, old: Object | None, new: Object | None) -> bool:
        pod = new or old or {}
        name = name_of(pod)
        if new is not None and is_waiting(new):
            if name in self.reserved:
                return False
            self.cluster.nominate(new)
            if old is not None and name in self.waiting and not _differs(old, new):
                self.waiting.update(new)
                return False
            self.waiting.put(new)
            return True
        if name in self.waiting:
            self.waiting.drop(name)
        self.reserved.pop(name, None)
        did_count = old is not None and counts(old)
        if new is None or not counts(new):
            self.cluster.remove_pod(name)
            return did_count and self.waiting.happened(Happening.POD_GONE)
        if did_count and old is not None and not _differs(old, new):
            self.cluster.update_pod(new)
            return False
        self.cluster.put_pod(new)
        return self.waiting.happened(_PODS if did_count else Happening.POD_CAME)

    def _node_changed(self, old: Object | None, new: Object | None) -> bool:
        if new is None:
            self.cluster.remove_node((old or {})["metadata"]["name"])
            return self.waiting.happened(Happening.NODE)
        if old is not None and _of_node(old) == _of_node(new):
            return False
        self.cluster.put_node(new)
        return self.waiting.happened(Happening.NODE)

    # -- scheduling

    def steps(self, now: datetime) -> Steps:
        errors: list[Result] = []
        errors += yield from self._bind(self._with_volumes())
        while ready := self.waiting.ready()[:BATCH]:
            placed: list[Placed] = []
            unplaced: list[Unplaced] = []
            for pod in ready:
                result = self._try(pod, now)
                if isinstance(result, Placed):
                    placed.append(result)
                else:
                    unplaced.append(result)
                    if result.victims:
                        break  # they go first: what the others find depends on it
            errors += yield from self._bind_volumes([it for it in placed if it.bindings is not None])
            errors += yield from self._bind([it for it in placed if it.bindings is None])
            errors += yield from self._explain(unplaced, now)
        done_or_gone(errors)
        return None

    def _try(self, pod: Object, now: datetime) -> Placed | Unplaced:
        """Find the node for a pod: it counts there from now on."""
        name = name_of(pod)
        if pod["spec"].get("schedulingGates"):
            self.waiting.drop(name)
            return Unplaced(name, status_of(pod, "SchedulingGated", GATED, now), None)
        placement = Placement(PodFacts(pod), self.cluster)
        found = placement.find()
        if isinstance(found, NodeFacts):
            bindings = None if placement.volumes is None else placement.volumes.bindings(found)
            self.cluster.assume(placement.pod, found.name)
            self.waiting.drop(name)
            return Placed(placement.pod, found.name, bindings)
        self.waiting.failed(name, found.plugins)
        outcome = preempt(placement, found, self.cluster) if found.total else PreemptionOutcome(None)
        node = (pod.get("status") or {}).get("nominatedNodeName") or "" if outcome.keeps_nomination else ""
        victims: Sequence[Object] = ()
        if outcome.victims is not None:
            node, victims = outcome.victims.node, [it.pod for it in outcome.victims.pods]
        message = found.sentence(outcome.text)
        update = status_of(pod, "Unschedulable", message, now, node)
        event = None if update is None else NewEvent(pod, WARNING, "FailedScheduling", message)
        return Unplaced(name, update, event, victims, node)

    # -- binding

    def _with_volumes(self) -> list[Placed]:
        """The pods that have waited for their volumes: those that are bound now. Others whose volumes fail are tried anew."""
        ready = []
        for name, it in list(self.reserved.items()):
            claims = claims_of(it.pod, it.node, self.objects)
            if claims.are_bound:
                ready.append(self.reserved.pop(name))
            elif claims.have_failed:
                del self.reserved[name]
                self.cluster.forget(name)
                if (pod := self.objects.get(PODS, name)) is not None:
                    self.waiting.put(pod)
        return ready

    def _bind_volumes(self, placed: Sequence[Placed]) -> Work:
        """Choose the volumes of pods, which are bound to their nodes when they have them."""
        errors: list[Result] = []
        for it in placed:
            self.reserved[it.pod.name] = it
            if it.bindings:
                errors += _refused((yield it.bindings))
        return errors

    def _bind(self, placed: Sequence[Placed]) -> Work:
        """Bind pods to their nodes, and say so."""
        if not placed:
            return ()
        results = yield [Bind(it.pod.pod, it.node) for it in placed]
        bound = [it for it, result in zip(placed, results, strict=True) if result is None]
        yield [NewEvent(it.pod.pod, NORMAL, "Scheduled", _assigned(it)) for it in bound]
        return _refused(results)

    # -- what is not bound

    def _explain(self, unplaced: Sequence[Unplaced], now: datetime) -> Work:
        """Write why pods wait, and let their victims go."""
        writes = [it.update for it in unplaced if it.update is not None]
        events = [it.event for it in unplaced if it.event is not None]
        errors = _refused((yield [*writes, *events])) if writes else []
        for it in unplaced:
            if it.victims and not errors:
                yield from self._evict(it, now)
        return errors

    def _evict(self, it: Unplaced, now: datetime) -> Generator[Sequence[Write], Sequence[Result], None]:
        """Delete the victims of a pod. One that is not deleted now is found again when the pod is tried again."""
        preemptor = self.objects.get(PODS, it.name)
        for victim in it.victims:
            pod = self.objects.get(PODS, name_of(victim))
            if pod is None or is_terminating(pod) or preemptor is None:
                continue
            scheduler = preemptor["spec"].get("schedulerName") or DEFAULT_SCHEDULER
            [result] = yield [Replace(PODS, with_status(pod, _disrupted(pod, scheduler, now)), "status")]
            pod = pod if result is None or isinstance(result, ApiError) else result
            [result] = yield [Delete(PODS, pod)]
            if result is None:
                message = f"Preempted by pod {preemptor['metadata']['uid']} on node {it.node}"
                yield [NewEvent(pod, NORMAL, "Preempted", message)]


def _refused(results: Sequence[Result]) -> list[Result]:
    return [result for result in results if isinstance(result, ApiError)]


def _assigned(it: Placed) -> str:
    return f"Successfully assigned {it.pod.namespace}/{it.pod.name.name} to {it.node}"


_PODS: Final = Happening.POD_GONE | Happening.POD_CAME


def is_waiting(pod: Object) -> bool:
    """Whether the scheduler has to find a node for a pod."""
    spec = pod["spec"]
    if spec.get("nodeName") or is_terminating(pod) or phase(pod) in FINISHED:
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


def status_of(pod: Object, reason: str, message: str, now: datetime, node: str = "") -> Replace | None:
    """The status of a pod that is not scheduled; None, if it says so already. `node`: where others make room for it."""
    old, status = condition(pod, "PodScheduled") or {}, dict(pod.get("status") or {})
    new = {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
    is_said = all(old.get(name) == value for name, value in new.items())
    nominated = status.pop("nominatedNodeName", None) or ""
    if is_said and nominated == node:
        return None
    if generation := pod["metadata"].get("generation"):
        new["observedGeneration"] = generation
    if node:
        status["nominatedNodeName"] = node
    status["conditions"] = with_condition(status.get("conditions"), new, now)
    return Replace(PODS, with_status(pod, status), "status")


def _disrupted(pod: Object, scheduler: str, now: datetime) -> Object:
    """The status of a victim."""
    status = pod.get("status") or {}
    new = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": BY_SCHEDULER,
        "message": f"{scheduler}: preempting to accommodate a higher priority pod",
    }
    if generation := pod["metadata"].get("generation"):
        new["observedGeneration"] = generation
    return {**status, "conditions": with_condition(status.get("conditions"), new, now)}
