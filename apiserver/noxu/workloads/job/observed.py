"""What the controller sees of a Job and its pods, and what follows from it: whether the Job has ended, and which pods it needs.

The rules are those of syncJob, trackJobStatusAndRemoveFinalizers and manageJob (job_controller.go). Pods are counted once: a
pod that has ended has the finalizer of the Job until its uid is in `uncountedTerminatedPods`, and its uid is there until the
pod has lost the finalizer. Then the counter goes up. Completion indexes need no uids.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from noxu.go.time import format_time
from noxu.values import Object
from noxu.workloads.job import indexes
from noxu.workloads.job.indexes import Intervals
from noxu.workloads.job.job_pods import (
    completion_index,
    has_failed_index,
    is_failed,
    is_indexed,
    is_suspended,
    is_tracked,
    last_failures,
    limits_each_index,
    replaces_only_failed,
    sort_index,
    valid_index,
)
from noxu.workloads.job.policies import criterion_met, verdict
from noxu.workloads.pods import FINISHED, condition, is_active, is_ready, is_terminating, is_true, moment, phase

MAX_UNCOUNTED: Final = 500
"""The pods that a status counts at once."""


class ObservedJob(NamedTuple):
    """`succeeded` and `failed` include the pods that the status does not count yet (`new_succeeded`, `new_failed`).

    `completed` and `counted` are the succeeded indexes, with and without those of new pods; `failed_indexes` is None without
    a limit for each index, and `last_failures` are the failed pods that pass their count on.
    """

    job: Object
    pods: Sequence[Object]
    active: Sequence[Object]
    terminating: int
    new_succeeded: Sequence[Object]
    new_failed: Sequence[Object]
    succeeded: int
    failed: int
    counted: Intervals = ()
    completed: Intervals = ()
    failed_indexes: Intervals | None = None
    last_failures: Mapping[int, Object] = {}


def observe(job: Object, pods: Sequence[Object]) -> ObservedJob:
    status, policy = job.get("status") or {}, job["spec"].get("podFailurePolicy")
    uncounted = status.get("uncountedTerminatedPods") or {}
    active = [pod for pod in pods if is_active(pod)]
    succeeded_uids, failed_uids = uncounted.get("succeeded") or (), uncounted.get("failed") or ()
    new = [pod for pod in pods if is_tracked(pod) and (not is_indexed(job) or valid_index(pod, job) is not None)]
    new_succeeded = [pod for pod in _without(new, succeeded_uids) if phase(pod) == "Succeeded"]
    new_failed = [pod for pod in _without(new, failed_uids) if is_failed(pod, job)]
    counted_failures = sum(verdict(policy, pod).counts for pod in new_failed)
    seen = ObservedJob(
        job=job,
        pods=pods,
        active=active,
        terminating=count_terminating(pods),
        new_succeeded=new_succeeded,
        new_failed=new_failed,
        succeeded=status.get("succeeded", 0) + len(new_succeeded) + len(succeeded_uids),
        failed=status.get("failed", 0) + counted_failures + len(failed_uids),
    )
    return _with_indexes(seen, new) if is_indexed(job) else seen


def _with_indexes(seen: ObservedJob, new: Sequence[Object]) -> ObservedJob:
    job, status = seen.job, seen.job.get("status") or {}
    completions = job["spec"]["completions"]
    counted = indexes.parse(status.get("completedIndexes") or "", completions)
    completed = indexes.merged(counted, indexes.of(sort_index(pod) for pod in new if phase(pod) == "Succeeded"))
    seen = seen._replace(counted=counted, completed=completed, succeeded=indexes.total(completed))
    if not limits_each_index(job):
        return seen
    before = indexes.parse(status.get("failedIndexes") or "", completions)
    failed = indexes.merged(before, indexes.of(sort_index(pod) for pod in new if has_failed_index(pod, job)))
    last = last_failures(new, job, seen.active, completed, failed)
    return seen._replace(failed_indexes=failed, last_failures=last)


def _without(pods: Sequence[Object], uids: Sequence[str]) -> Sequence[Object]:
    return [pod for pod in pods if pod["metadata"]["uid"] not in uids] if uids else pods


def count_terminating(pods: Sequence[Object]) -> int:
    return sum(is_terminating(pod) and phase(pod) not in FINISHED for pod in pods)


# -- whether it has ended ---------------------------------------------------------------------------------------------


def new_condition(kind: str, reason: str, message: str, now: datetime, status: str = "True") -> Object:
    time = format_time(now)
    result = {"type": kind, "status": status, "lastProbeTime": time, "lastTransitionTime": time}
    return result | ({"reason": reason} if reason else {}) | ({"message": message} if message else {})


def is_finished(job: Object) -> bool:
    return is_true(job, "Complete") or is_true(job, "Failed")


def end_of(seen: ObservedJob, now: datetime) -> Object | None:
    """The condition with which a Job ends; None: it goes on, or is complete (see `is_complete`)."""
    job, spec = seen.job, seen.job["spec"]
    if is_true(job, "SuccessCriteriaMet"):
        return condition(job, "SuccessCriteriaMet")
    target = condition(job, "FailureTarget")
    if target is not None and target["status"] == "True":
        return new_condition("Failed", target.get("reason", ""), target.get("message", ""), now)
    reason, message = next(filter(None, (find(seen, now) for find in _FAILURES)), ("", ""))
    if reason:
        return new_condition("FailureTarget", reason, message, now)
    if is_indexed(job) and (message := criterion_met(spec.get("successPolicy"), spec["completions"], seen.completed)):
        return new_condition("SuccessCriteriaMet", "SuccessPolicy", message, now)
    return None


def success(now: datetime) -> Object:
    return new_condition("SuccessCriteriaMet", "CompletionsReached", "Reached expected number of succeeded pods", now)


def final_of(end: Object | None, now: datetime) -> Object | None:
    """The last condition of a Job that ends: the one that announces it comes first."""
    if end is None or end["type"] == "Failed":
        return end
    kind = {"FailureTarget": "Failed", "SuccessCriteriaMet": "Complete"}[end["type"]]
    return new_condition(kind, end.get("reason", ""), end.get("message", ""), now)


def _by_policy(seen: ObservedJob, now: datetime) -> tuple[str, str] | None:  # noqa: ARG001
    policy = seen.job["spec"].get("podFailurePolicy")
    if policy is None:
        return None
    messages = (verdict(policy, pod).message for pod in seen.pods if is_failed(pod, seen.job))
    message = next(filter(None, messages), "")
    return ("PodFailurePolicy", message) if message else None


def _by_limit(seen: ObservedJob, now: datetime) -> tuple[str, str] | None:  # noqa: ARG001
    limit = seen.job["spec"]["backoffLimit"]
    if seen.failed > limit or _restarts_exceed(seen, limit):
        return "BackoffLimitExceeded", "Job has reached the specified backoff limit"
    return None


def _restarts_exceed(seen: ObservedJob, limit: int) -> bool:
    """Of pods whose containers are restarted in place."""
    if seen.job["spec"]["template"]["spec"].get("restartPolicy") != "OnFailure":
        return False
    restarts = 0
    for pod in seen.pods:
        if phase(pod) in ("Running", "Pending"):
            status = pod.get("status") or {}
            containers = (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ()))
            restarts += sum(container.get("restartCount", 0) for container in containers)
    return restarts >= max(limit, 1)


def _by_deadline(seen: ObservedJob, now: datetime) -> tuple[str, str] | None:
    left = seconds_to_deadline(seen.job, now)
    if left is not None and left <= 0:
        return "DeadlineExceeded", "Job was active longer than specified deadline"
    return None


def _by_indexes(seen: ObservedJob, now: datetime) -> tuple[str, str] | None:  # noqa: ARG001
    spec, failed = seen.job["spec"], indexes.total(seen.failed_indexes or ())
    most: int | None = spec.get("maxFailedIndexes")
    if seen.failed_indexes is not None and most is not None and failed > most:
        return "MaxFailedIndexesExceeded", "Job has exceeded the specified maximal number of failed indexes"
    if failed and failed + indexes.total(seen.completed) >= spec["completions"]:
        return "FailedIndexes", "Job has failed indexes"
    return None


_FAILURES: Final[Sequence[Callable[[ObservedJob, datetime], tuple[str, str] | None]]] = (
    _by_policy,
    _by_limit,
    _by_deadline,
    _by_indexes,
)
"""Each gives a reason and a message. The first one counts."""


def seconds_to_deadline(job: Object, now: datetime) -> float | None:
    """None if it has none, or does not run. The time of a Job that is about to be resumed begins anew."""
    seconds, start = job["spec"].get("activeDeadlineSeconds"), (job.get("status") or {}).get("startTime")
    if seconds is None or start is None or is_suspended(job) or is_true(job, "Suspended"):
        return None
    return float(seconds - (now - moment(start)).total_seconds())


def is_complete(seen: ObservedJob, active: int) -> bool:
    """Whether no pod runs and enough have succeeded: one, if the number of completions is not given."""
    completions: int | None = seen.job["spec"].get("completions")
    return not active and (seen.succeeded > 0 if completions is None else seen.succeeded >= completions)


# -- which pods it needs ------------------------------------------------------------------------------------------------


def wanted(seen: ObservedJob) -> int:
    """The number of pods that should run."""
    parallelism: int = seen.job["spec"]["parallelism"]
    completions: int | None = seen.job["spec"].get("completions")
    if completions is None:
        return len(seen.active) if seen.succeeded else parallelism
    return max(0, min(parallelism, completions - seen.succeeded))


def pending_indexes(seen: ObservedJob, count: int) -> list[int]:
    """The lowest indexes that have neither ended nor a pod."""
    pods = list(seen.active)
    if replaces_only_failed(seen.job):
        pods += [pod for pod in seen.pods if is_terminating(pod) and phase(pod) not in FINISHED]
    running = indexes.of(index for pod in pods if (index := completion_index(pod)) is not None)
    covered = indexes.merged(seen.completed, running, seen.failed_indexes or ())
    return indexes.first_missing(covered, count, seen.job["spec"]["completions"])


# -- counting ---------------------------------------------------------------------------------------------------------


class Counted(NamedTuple):
    """`released`: the pods that may lose the finalizer, once `status` is stored. `has_more`: there are more pods than it counts."""

    status: Object
    released: Sequence[Object]
    has_more: bool


def count_pods(seen: ObservedJob, status: Object, end: Object | None) -> Counted:
    """Count the pods that have ended; at the end of a Job all of them have."""
    job = seen.job
    is_success = end is not None and end["type"] == "SuccessCriteriaMet"
    status = counted_without_finalizer(status, {pod["metadata"]["uid"] for pod in seen.pods if is_tracked(pod)})
    uncounted = status["uncountedTerminatedPods"]
    succeeded, failed = list(uncounted.get("succeeded") or ()), list(uncounted.get("failed") or ())
    known_succeeded, known_failed = frozenset(succeeded), frozenset(failed)
    new_indexes: list[int] = []
    released = []
    has_more = False
    for pod in sorted(seen.pods, key=sort_index) if is_indexed(job) else seen.pods:
        if not is_tracked(pod) or not _may_release(seen, pod, end):
            continue
        released.append(pod)
        uid = pod["metadata"]["uid"]
        index = valid_index(pod, job) if is_indexed(job) else None
        if phase(pod) == "Succeeded" and uid not in known_failed:
            if index is not None and not indexes.contains(seen.counted, index):
                new_indexes.append(index)
            elif not is_indexed(job) and uid not in known_succeeded:
                succeeded.append(uid)
        elif (is_failed(pod, job) or (end is not None and not is_success)) and uid not in known_failed:
            counts = verdict(job["spec"].get("podFailurePolicy"), pod).counts
            if counts and (not is_indexed(job) or index is not None):
                failed.append(uid)
        if len(new_indexes) + len(succeeded) + len(failed) >= MAX_UNCOUNTED:
            has_more = True
            break
    status["uncountedTerminatedPods"] = _uncounted(succeeded, failed)
    if is_indexed(job):
        _count_indexes(seen, status)
    return Counted(status, released, has_more)


def _count_indexes(seen: ObservedJob, status: Object) -> None:
    _set_count(status, "succeeded", indexes.total(seen.completed))
    if seen.completed:
        status["completedIndexes"] = indexes.text_of(seen.completed)
    else:
        status.pop("completedIndexes", None)
    if seen.failed_indexes is not None:
        status["failedIndexes"] = indexes.text_of(seen.failed_indexes)
    else:
        status.pop("failedIndexes", None)


def _may_release(seen: ObservedJob, pod: Object, end: Object | None) -> bool:
    """A failed pod whose index needs a new one keeps the finalizer, until that has taken over its count."""
    if is_terminating(seen.job) or end is not None or phase(pod) == "Succeeded":
        return True
    if not is_failed(pod, seen.job):
        return False
    kept = seen.last_failures.get(sort_index(pod))
    return kept is None or kept["metadata"]["uid"] != pod["metadata"]["uid"]


def counted_without_finalizer(status: Object, tracked_uids: set[str]) -> Object:
    """The status after the uids of pods that have no finalizer any more were counted."""
    uncounted = status.get("uncountedTerminatedPods") or {}
    status, left = dict(status), {}
    for kind in ("succeeded", "failed"):
        uids = uncounted.get(kind) or ()
        left[kind] = [uid for uid in uids if uid in tracked_uids]
        _set_count(status, kind, status.get(kind, 0) + len(uids) - len(left[kind]))
    status["uncountedTerminatedPods"] = _uncounted(left["succeeded"], left["failed"])
    return status


def _uncounted(succeeded: Sequence[str], failed: Sequence[str]) -> Object:
    return {kind: list(uids) for kind, uids in (("succeeded", succeeded), ("failed", failed)) if uids}


def _set_count(status: Object, name: str, count: int) -> None:
    if count:
        status[name] = count
    else:
        status.pop(name, None)


def with_running(status: Object, pods: Sequence[Object]) -> Object:
    """The status with the numbers of pods that run, are ready and end."""
    status = dict(status)
    active = [pod for pod in pods if is_active(pod)]
    _set_count(status, "active", len(active))
    return status | {"ready": sum(map(is_ready, active)), "terminating": count_terminating(pods)}


def with_end(status: Object, end: Object, now: datetime) -> Object:
    """The status with a condition that is added, or replaced if it says something else."""
    conditions = list(status.get("conditions") or ())
    same = ("status", "reason", "message")
    for n, found in enumerate(conditions):
        if found["type"] == end["type"]:
            if any(found.get(name) != end.get(name) for name in same):
                conditions[n] = end
            break
    else:
        conditions.append(end)
    result = {**status, "conditions": conditions}
    return result | ({"completionTime": format_time(now)} if end["type"] == "Complete" else {})
