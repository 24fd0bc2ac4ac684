"""What of the pods of a StatefulSet is there: by their ordinals, which of them are healthy, and the counts of the status."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from noxu.values import Object
from noxu.workloads.objects import PODS, Objects
from noxu.workloads.pods import FINISHED, is_available, is_ready, is_terminating, number_of, phase
from noxu.workloads.stateful_sets.identity import is_member, ordinal_of, ordinals, revision_of


class StatefulRollout(NamedTuple):
    """What the pods of a set should become.

    `current` and `update` are revisions: that of the pods before a change of the template, and that after it. `collisions`: how
    often the name of a revision was taken.
    """

    stateful_set: Object
    current: Object
    update: Object
    collisions: int
    now: datetime

    @property
    def is_monotonic(self) -> bool:
        """Whether pods wait for those before them (OrderedReady)."""
        return bool(self.stateful_set["spec"].get("podManagementPolicy") != "Parallel")

    @property
    def min_ready_seconds(self) -> int:
        return int(self.stateful_set["spec"].get("minReadySeconds", 0))

    @property
    def partition(self) -> int | None:
        """That of its rolling updates; None: it has no parameters of rolling updates."""
        rolling = (self.stateful_set["spec"].get("updateStrategy") or {}).get("rollingUpdate")
        return None if rolling is None else int(rolling.get("partition", 0))

    @property
    def is_rolling(self) -> bool:
        return strategy_of(self.stateful_set) == "RollingUpdate"

    def revision_for(self, ordinal: int) -> Object:
        """The revision of a pod that is created (newVersionedStatefulSetPod)."""
        start, partition = ordinals(self.stateful_set).start, self.partition
        kept = partition or 0
        if partition is None and self.is_rolling:
            kept = int((self.stateful_set.get("status") or {}).get("currentReplicas", 0))
        return self.current if ordinal < start + kept else self.update

    def is_unavailable(self, pod: Object | None) -> bool:
        return pod is None or is_terminating(pod) or not is_available(pod, self.min_ready_seconds, self.now)

    def may_follow(self, pod: Object) -> bool:
        """Whether the next pod in the order may be created or deleted."""
        return is_running_and_ready(pod) and is_available(pod, self.min_ready_seconds, self.now)


def strategy_of(stateful_set: Object) -> str:
    return str((stateful_set["spec"].get("updateStrategy") or {}).get("type") or "RollingUpdate")


def is_running_and_ready(pod: Object) -> bool:
    return phase(pod) == "Running" and is_ready(pod)


def is_finished(pod: Object) -> bool:
    return phase(pod) in FINISHED


def pods_of(objects: Objects, stateful_set: Object) -> dict[int, Object]:
    """The pods that a set controls now, by their ordinals."""
    controlled = objects.controlled_by(PODS, stateful_set["metadata"]["uid"])
    return {ordinal_of(pod): pod for pod in controlled if is_member(stateful_set, pod) and ordinal_of(pod) >= 0}


def condemned(stateful_set: Object, pods: dict[int, Object]) -> list[Object]:
    """The pods that are no replicas, those with the highest ordinals first."""
    wanted = ordinals(stateful_set)
    return [pods[ordinal] for ordinal in sorted(pods, reverse=True) if ordinal not in wanted]


def status_of(rollout: StatefulRollout, pods: Iterable[Object]) -> Object:
    """The status of a set that has these pods. A finished roll-out makes the update revision the current one."""
    stateful_set, current, update, collisions, now = rollout
    replicas = [*pods]
    ready = [pod for pod in replicas if is_running_and_ready(pod)]
    available = [pod for pod in ready if is_available(pod, rollout.min_ready_seconds, now)]
    staying = [revision_of(pod) for pod in replicas if not is_terminating(pod)]
    current_name, update_name = current["metadata"]["name"], update["metadata"]["name"]
    updated = staying.count(update_name)
    if rollout.is_rolling and {updated, len(ready), len(replicas)} == {len(ordinals(stateful_set))}:
        current_name = update_name
    counts = {
        "readyReplicas": len(ready),
        "currentReplicas": staying.count(current_name),
        "updatedReplicas": updated,
        "observedGeneration": stateful_set["metadata"].get("generation", 0),
    }
    conditions = (stateful_set.get("status") or {}).get("conditions")
    return {
        "replicas": len(replicas),
        "availableReplicas": len(available),
        "currentRevision": current_name,
        "updateRevision": update_name,
        "collisionCount": collisions,
        **{name: count for name, count in counts.items() if count},
        **({"conditions": conditions} if conditions else {}),
    }


# -- updates ----------------------------------------------------------------------------------------------------------


def to_update(rollout: StatefulRollout, replicas: Sequence[Object | None]) -> list[Object]:
    """The pods that a rolling update deletes now, of all replicas in their order (updateStatefulSetAfterInvariantEstablished).

    Those with the highest ordinals first, and no more than maxUnavailable are unavailable then. A parallel set may also delete
    those old ones that are unavailable anyway.
    """
    allowed = _max_unavailable(rollout.stateful_set, len(replicas)) - sum(map(rollout.is_unavailable, replicas))
    update = rollout.update["metadata"]["name"]
    old = [
        pod
        for pod in reversed(replicas[rollout.partition or 0 :])
        if pod is not None and revision_of(pod) != update and not is_terminating(pod)
    ]
    if rollout.is_monotonic:
        return old[: max(allowed, 0)]
    broken = [pod for pod in old if rollout.is_unavailable(pod)]
    return [*broken, *[pod for pod in old if not rollout.is_unavailable(pod)][: max(allowed, 0)]]


def _max_unavailable(stateful_set: Object, replicas: int) -> int:
    """At least 1. A percentage is rounded down."""
    rolling = (stateful_set["spec"].get("updateStrategy") or {}).get("rollingUpdate") or {}
    value = rolling.get("maxUnavailable", 1)
    return max(number_of(value, replicas, rounds_up=False), 1)
