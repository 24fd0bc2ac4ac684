"""replicaset-controller and replicationcontroller-controller: so many pods as there are replicas (pkg/controller/replicaset).

Adopt and release pods, create those that are missing in batches of 1, 2, 4, … until one fails, or delete those that are too
many, and then count them in the status. A pod that is being deleted, or has finished, does not count: another one takes its
place. A ReplicationController is as an older version of a ReplicaSet, whose selector is a map (pkg/controller/replication).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import ClassVar, Final

from noxu.api.errors import ApiError
from noxu.go.time import format_time
from noxu.values import Object
from noxu.workloads.engine import WorkloadController
from noxu.workloads.objects import PODS, REPLICA_SETS, REPLICATION_CONTROLLERS, Objects, controller_of, name_of
from noxu.workloads.ownership import candidates, claimed, selects
from noxu.workloads.pod_control import Managing, create_pods, delete_pods
from noxu.workloads.pod_ranks import pods_to_delete
from noxu.workloads.pods import (
    FINISHED,
    available_after,
    is_active,
    is_ready,
    is_terminating,
    looked_at,
    next_available,
    phase,
    pod_from_template,
    without_condition,
)
from noxu.workloads.writes import (
    Kind,
    NamespacedName,
    Replace,
    Steps,
    stored,
    with_status,
)

BURST: Final = 500
"""The pods that are created or deleted before the next look at what there is."""
REPLICA_FAILURE: Final = "ReplicaFailure"


class ReplicaSets(WorkloadController):
    name = "replicaset-controller"
    kind = REPLICA_SETS
    looks_at = (PODS,)
    workers = 5  # --concurrent-replicaset-syncs
    kind_name: ClassVar[str] = "ReplicaSet"
    counts_terminating: ClassVar[bool] = True
    """Whether the status has `terminatingReplicas` (the gate DeploymentReplicaSetTerminatingReplicas)."""

    def selector(self, replica_set: Object) -> Object:
        """A LabelSelector."""
        selector: Object = replica_set["spec"].get("selector") or {}
        return selector

    def affected(
        self, objects: Objects, kind: Kind, old: Object | None, new: Object | None
    ) -> Iterable[NamespacedName]:
        if kind == self.kind:
            yield name_of(new or old or {})
            return
        before, after = old and looked_at(old), new and looked_at(new)
        if before == after:
            return
        pod = new or old or {}
        namespace = pod["metadata"].get("namespace", "")
        for owner in _distinct(old and controller_of(old), new and controller_of(new)):
            if owner["kind"] == self.kind_name:
                yield NamespacedName(namespace, owner["name"])
        if new and controller_of(new) is None and is_active(new):
            for replica_set in objects.within(self.kind, namespace):
                if selects(self.selector(replica_set), new):
                    yield name_of(replica_set)

    def steps(self, objects: Objects, key: NamespacedName, now: datetime) -> Steps:
        replica_set = objects.get(self.kind, key)
        if replica_set is None:
            return None
        selector = self.selector(replica_set)
        found = filter(is_active, candidates(objects, PODS, replica_set))
        pods = yield from claimed(PODS, found, replica_set, lambda pod: selects(selector, pod))

        failure = None
        if not is_terminating(replica_set):
            failure = yield from _manage(objects, self.kind, replica_set, pods, now)

        controlled = objects.controlled_by(PODS, replica_set["metadata"]["uid"])
        active = [pod for pod in controlled if is_active(pod)]
        terminating = [pod for pod in controlled if _is_ending(pod) and selects(selector, pod)]
        status = status_of(replica_set, active, terminating if self.counts_terminating else None, failure, now)
        if status != replica_set.get("status"):
            [result] = yield [Replace(self.kind, with_status(replica_set, status), "status")]
            stored(result)
        if failure is not None:
            raise failure  # it is tried again, with growing delays
        return next_available(active, replica_set["spec"].get("minReadySeconds", 0), now)


class ReplicationControllers(ReplicaSets):
    name = "replicationcontroller-controller"
    kind = REPLICATION_CONTROLLERS
    account = "replication-controller"
    kind_name = "ReplicationController"
    counts_terminating = False

    def selector(self, replica_set: Object) -> Object:
        labels = replica_set["spec"].get("selector")
        return {"matchLabels": labels} if labels else {}


# -- pods -------------------------------------------------------------------------------------------------------------


def _manage(objects: Objects, kind: Kind, replica_set: Object, pods: Sequence[Object], now: datetime) -> Managing:
    missing = _replicas(replica_set) - len(pods)
    if missing > 0:
        template = replica_set["spec"]["template"]
        new = [pod_from_template(template, replica_set) for _ in range(min(missing, BURST))]
        return (yield from create_pods(replica_set, new))
    if missing < 0:
        surplus = pods_to_delete(pods, _related_pods(objects, kind, replica_set), min(-missing, BURST), now)
        return (yield from delete_pods(replica_set, surplus))
    return None


def _related_pods(objects: Objects, kind: Kind, replica_set: Object) -> list[Object]:
    """The pods of all ReplicaSets that have the same owner, such as the old and the new ones of a Deployment."""
    owner = controller_of(replica_set)
    siblings = [] if owner is None else objects.controlled_by(kind, owner["uid"])
    return [pod for sibling in siblings for pod in objects.controlled_by(PODS, sibling["metadata"]["uid"])]


def _replicas(replica_set: Object) -> int:
    return int(replica_set["spec"].get("replicas", 1))


def _is_ending(pod: Object) -> bool:
    return is_terminating(pod) and phase(pod) not in FINISHED


def _distinct(*owners: Object | None) -> Iterable[Object]:
    return {owner["uid"]: owner for owner in owners if owner}.values()


# -- status -----------------------------------------------------------------------------------------------------------


def status_of(
    replica_set: Object,
    active: Sequence[Object],
    terminating: Sequence[Object] | None,
    failure: ApiError | None,
    now: datetime,
) -> Object:
    """The status (calculateStatus). `terminating`: None if it is not part of the status."""
    spec, old = replica_set["spec"], replica_set.get("status") or {}
    labels = (spec["template"].get("metadata") or {}).get("labels") or {}
    min_ready = spec.get("minReadySeconds", 0)
    waiting = [after for pod in active if (after := available_after(pod, min_ready, now)) is not None]
    counts = {
        "fullyLabeledReplicas": sum(labels.items() <= (pod["metadata"].get("labels") or {}).items() for pod in active),
        "readyReplicas": sum(map(is_ready, active)),
        "availableReplicas": sum(after <= 0 for after in waiting),
    }
    status = {
        **{name: value for name, value in old.items() if name not in counts},
        "replicas": len(active),
        **{name: count for name, count in counts.items() if count},
    }
    if terminating is not None:
        status["terminatingReplicas"] = len(terminating)
    if generation := replica_set["metadata"].get("generation"):
        status["observedGeneration"] = generation
    conditions = _conditions(old.get("conditions"), len(active) - _replicas(replica_set), failure, now)
    status.pop("conditions", None)
    return {**status, "conditions": conditions} if conditions else status


def _conditions(
    conditions: Sequence[Object] | None, surplus: int, failure: ApiError | None, now: datetime
) -> Sequence[Object]:
    """Those with why pods cannot be created or deleted. The first failure stays, until nothing fails."""
    if failure is None:
        return without_condition(conditions, REPLICA_FAILURE)
    if any(found.get("type") == REPLICA_FAILURE for found in conditions or ()):
        return conditions or ()
    creates = surplus < 0
    found = {
        "type": REPLICA_FAILURE,
        "status": "True",
        "lastTransitionTime": format_time(now),
        "reason": "FailedCreate" if creates else "FailedDelete",
        "message": str(failure) if creates else f"unable to delete pods: {failure}",
    }
    return [*(conditions or ()), found]
