"""The status of a Deployment: its counters, and how its roll-out goes (pkg/controller/deployment/progress.go, sync.go).

    Available       MinimumReplicasAvailable, MinimumReplicasUnavailable
    Progressing     NewReplicaSetCreated, FoundNewReplicaSet, ReplicaSetUpdated, NewReplicaSetAvailable, DeploymentPaused,
                    DeploymentResumed, ReplicaSetCreateError, ProgressDeadlineExceeded
    ReplicaFailure  that of a ReplicaSet, of the new one first

A roll-out makes progress when the new ReplicaSet has more pods, old ones have fewer, or more are ready or available. Without
progress for `progressDeadlineSeconds`, its deadline is exceeded.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from noxu.go.time import format_time
from noxu.values import Object
from noxu.workloads.deployment.sizes import minimum_available, total, total_wanted, wanted
from noxu.workloads.pods import condition, moment, without_condition

AVAILABLE: Final = "Available"
PROGRESSING: Final = "Progressing"
REPLICA_FAILURE: Final = "ReplicaFailure"
NEW_AVAILABLE: Final = "NewReplicaSetAvailable"
TIMED_OUT: Final = "ProgressDeadlineExceeded"
PAUSED: Final = "DeploymentPaused"
NO_DEADLINE: Final = 2**31 - 1


def has_deadline(deployment: Object) -> bool:
    return deployment["spec"].get("progressDeadlineSeconds") not in (None, NO_DEADLINE)


# -- conditions -------------------------------------------------------------------------------------------------------


def new_condition(kind: str, status: str, reason: str, message: str, now: datetime) -> Object:
    time = format_time(now)
    return {
        "type": kind,
        "status": status,
        "lastUpdateTime": time,
        "lastTransitionTime": time,
        "reason": reason,
        "message": message,
    }


def with_new(status: Object, new: Object) -> Object:
    """A status with a condition; one of the same status and reason stays as it is (SetDeploymentCondition)."""
    old = condition({"status": status}, new["type"])
    if old is not None and (old.get("status"), old.get("reason")) == (new["status"], new.get("reason")):
        return status
    if old is not None and old.get("status") == new["status"] and "lastTransitionTime" in old:
        new = {**new, "lastTransitionTime": old["lastTransitionTime"]}
    return {**status, "conditions": [*without_condition(status.get("conditions"), new["type"]), new]}


def without(status: Object, kind: str) -> Object:
    left = without_condition(status.get("conditions"), kind)
    return {**status, "conditions": left} if left else {k: value for k, value in status.items() if k != "conditions"}


def with_pause(deployment: Object, now: datetime) -> Object:
    """The status that says that a roll-out was paused or resumed: the time until then does not count (checkPausedConditions)."""
    status: Object = deployment.get("status") or {}
    reason = (condition(deployment, PROGRESSING) or {}).get("reason")
    is_paused = bool(deployment["spec"].get("paused"))
    if not has_deadline(deployment) or reason == TIMED_OUT or is_paused == (reason == PAUSED):
        return status
    said = (PAUSED, "Deployment is paused") if is_paused else ("DeploymentResumed", "Deployment is resumed")
    return with_new(status, new_condition(PROGRESSING, "Unknown", *said, now))


# -- counters ---------------------------------------------------------------------------------------------------------


def counted(deployment: Object, new: Object | None, old: Sequence[Object], now: datetime) -> Object:
    """The status with counters and `Available` (calculateStatus)."""
    replica_sets, before = [*old, *([new] if new else ())], deployment.get("status") or {}
    available = total(replica_sets, "availableReplicas")
    counters = {
        "observedGeneration": deployment["metadata"].get("generation", 0),
        "replicas": total(replica_sets, "replicas"),
        "updatedReplicas": total([new] if new else (), "replicas"),
        "readyReplicas": total(replica_sets, "readyReplicas"),
        "availableReplicas": available,
        "unavailableReplicas": max(0, total_wanted(replica_sets) - available),
    }
    status: Object = {name: number for name, number in counters.items() if number}
    if all("terminatingReplicas" in (found.get("status") or {}) for found in replica_sets):
        status["terminatingReplicas"] = total(replica_sets, "terminatingReplicas")
    kept = {name: before[name] for name in ("collisionCount", "conditions") if before.get(name) is not None}
    if available >= minimum_available(deployment):
        said = ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    else:
        said = ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    return with_new({**status, **kept}, new_condition(AVAILABLE, *said, now))


def is_complete(deployment: Object, status: Object) -> bool:
    """Whether all pods are of the new template and available."""
    replicas = wanted(deployment)
    counts = (status.get("updatedReplicas", 0), status.get("replicas", 0), status.get("availableReplicas", 0))
    is_observed = status.get("observedGeneration", 0) >= deployment["metadata"].get("generation", 0)
    return counts == (replicas,) * 3 and is_observed


# -- progress ---------------------------------------------------------------------------------------------------------


def with_progress(
    deployment: Object, status: Object, new: Object | None, old: Sequence[Object], now: datetime
) -> Object:
    """A counted status with `Progressing` and `ReplicaFailure` (syncRolloutStatus)."""
    current = condition(deployment, PROGRESSING)
    if not has_deadline(deployment):
        status = without(status, PROGRESSING)
    elif not (current and current.get("reason") == NEW_AVAILABLE and _only_new(status)):
        status = _with_progress(deployment, status, new, now)
    failure = _failure([*([new] if new else ()), *old])
    return with_new(status, failure) if failure else without(status, REPLICA_FAILURE)


def _only_new(status: Object) -> bool:
    return bool(status.get("replicas", 0) == status.get("updatedReplicas", 0))


def _with_progress(deployment: Object, status: Object, new: Object | None, now: datetime) -> Object:
    subject = f'ReplicaSet "{new["metadata"]["name"]}"' if new else f'Deployment "{deployment["metadata"]["name"]}"'
    if is_complete(deployment, status):
        message = f"{subject} has successfully progressed."
        return with_new(status, new_condition(PROGRESSING, "True", NEW_AVAILABLE, message, now))
    if has_progressed(deployment.get("status") or {}, status):
        message = f"{subject} is progressing."
        found = new_condition(PROGRESSING, "True", "ReplicaSetUpdated", message, now)
        before = condition(deployment, PROGRESSING)
        if before and before.get("status") == "True" and "lastTransitionTime" in before:
            found["lastTransitionTime"] = before["lastTransitionTime"]
        return with_new(without(status, PROGRESSING), found)  # each progress is noted: the deadline begins again
    if (left := seconds_left(deployment, status, now)) is not None and left <= 0:
        message = f"{subject} has timed out progressing."
        return with_new(status, new_condition(PROGRESSING, "False", TIMED_OUT, message, now))
    return status


def has_progressed(before: Object, status: Object) -> bool:
    """Whether a status is nearer to the end of the roll-out than the one before (DeploymentProgressing)."""

    def old(counters: Object) -> int:
        return int(counters.get("replicas", 0) - counters.get("updatedReplicas", 0))

    grown = any(
        status.get(name, 0) > before.get(name, 0) for name in ("updatedReplicas", "readyReplicas", "availableReplicas")
    )
    return grown or old(status) < old(before)


def seconds_left(deployment: Object, status: Object, now: datetime) -> float | None:
    """The seconds until the deadline is exceeded; None: it cannot be any more, or is already (requeueStuckDeployment)."""
    current = condition({"status": status}, PROGRESSING)
    if not has_deadline(deployment) or current is None or is_complete(deployment, status):
        return None
    if current.get("reason") in (TIMED_OUT, NEW_AVAILABLE) or not current.get("lastUpdateTime"):
        return None
    since = (now - moment(current["lastUpdateTime"])).total_seconds()
    return float(deployment["spec"]["progressDeadlineSeconds"]) - since


def _failure(replica_sets: Sequence[Object]) -> Object | None:
    for replica_set in replica_sets:
        found = condition(replica_set, REPLICA_FAILURE)
        if found is not None:
            time = found.get("lastTransitionTime")
            return {**found, **({"lastUpdateTime": time} if time else {})}
    return None
