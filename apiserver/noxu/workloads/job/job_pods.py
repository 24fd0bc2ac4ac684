"""The pods of a Job: how they are made, which have failed, and which are removed first (indexed_job_utils.go, utils.go)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final

from noxu.values import Object, copy
from noxu.workloads.job.backoff import finished_at
from noxu.workloads.job.indexes import Intervals, contains
from noxu.workloads.job.policies import verdict
from noxu.workloads.pods import condition, is_ready, is_terminating, phase, pod_from_template

TRACKING: Final = "batch.kubernetes.io/job-tracking"
"""The finalizer of a pod that is not yet counted in the status of its Job."""
COMPLETION_INDEX: Final = "batch.kubernetes.io/job-completion-index"
FAILURES: Final = "batch.kubernetes.io/job-index-failure-count"
IGNORED_FAILURES: Final = "batch.kubernetes.io/job-index-ignored-failure-count"
INDEX_VARIABLE: Final = "JOB_COMPLETION_INDEX"
_MAX_PREFIX: Final = 58
_MAX_COUNT: Final = 2**31 - 1


# -- of the spec ------------------------------------------------------------------------------------------------------


def is_indexed(job: Object) -> bool:
    return bool(job["spec"].get("completionMode") == "Indexed")


def limits_each_index(job: Object) -> bool:
    return job["spec"].get("backoffLimitPerIndex") is not None


def is_suspended(job: Object) -> bool:
    return bool(job["spec"].get("suspend"))


def replaces_only_failed(job: Object) -> bool:
    """Whether a pod that is being deleted is replaced only once it has ended."""
    spec = job["spec"]
    return spec.get("podReplacementPolicy") == "Failed" or spec.get("podFailurePolicy") is not None


# -- of pods ----------------------------------------------------------------------------------------------------------


def is_tracked(pod: Object) -> bool:
    return TRACKING in (pod["metadata"].get("finalizers") or ())


def untracked(pod: Object) -> Object:
    """The pod without the finalizer of the Job."""
    metadata = dict(pod["metadata"])
    finalizers = [name for name in metadata.get("finalizers") or () if name != TRACKING]
    if finalizers:
        metadata["finalizers"] = finalizers
    else:
        metadata.pop("finalizers", None)
    return {**pod, "metadata": metadata}


def tracked(pod: Object) -> Object:
    metadata = pod["metadata"]
    return {**pod, "metadata": {**metadata, "finalizers": [*(metadata.get("finalizers") or ()), TRACKING]}}


def is_failed(pod: Object, job: Object) -> bool:
    """Pods that are being deleted count as failed: some of them never get to that phase."""
    if phase(pod) == "Failed":
        return True
    return not replaces_only_failed(job) and is_terminating(pod) and phase(pod) != "Succeeded"


def completion_index(pod: Object) -> int | None:
    """None if the pod has none that is valid."""
    return _number_in(pod, COMPLETION_INDEX)


def valid_index(pod: Object, job: Object) -> int | None:
    """The completion index, None if the Job does not have that many."""
    index = completion_index(pod)
    return index if index is not None and index < job["spec"]["completions"] else None


def failures_of_index(pod: Object) -> int:
    """The counted failures of its index before this pod."""
    return _count(pod, FAILURES)


def all_failures_of_index(pod: Object) -> int:
    return _count(pod, FAILURES) + _count(pod, IGNORED_FAILURES)


def _count(pod: Object, annotation: str) -> int:
    count = _number_in(pod, annotation) or 0
    return count if count <= _MAX_COUNT else 0


def _number_in(pod: Object, annotation: str) -> int | None:
    text = (pod["metadata"].get("annotations") or {}).get(annotation, "")
    return int(text) if text.isascii() and text.isdigit() else None


def has_failed_index(pod: Object, job: Object) -> bool:
    """Whether a pod is the last one of its index, which has failed with it."""
    if not is_failed(pod, job):
        return False
    found = verdict(job["spec"].get("podFailurePolicy"), pod)
    if found.action == "FailIndex":
        return True
    return found.counts and failures_of_index(pod) >= job["spec"]["backoffLimitPerIndex"]


# -- new pods ---------------------------------------------------------------------------------------------------------


def new_pod(job: Object, index: int | None, replaced: Object | None) -> Object:
    """A pod; `replaced`: the failed pod of the same index."""
    pod = tracked(pod_from_template(job["spec"]["template"], job))
    if index is None:
        return pod
    metadata, spec, name = pod["metadata"], pod["spec"], job["metadata"]["name"]
    annotations = {**(metadata.get("annotations") or {}), COMPLETION_INDEX: str(index)}
    if limits_each_index(job):
        annotations |= _failure_counts(job, replaced)
    metadata["annotations"] = annotations
    metadata["labels"] = {**(metadata.get("labels") or {}), COMPLETION_INDEX: str(index)}
    metadata["generateName"] = f"{name[: _MAX_PREFIX - len(str(index)) - 2]}-{index}-"
    spec["hostname"] = f"{name}-{index}"
    for kind in ("initContainers", "containers"):
        if spec.get(kind):
            spec[kind] = [_with_index_variable(container) for container in spec[kind]]
    return pod


def _with_index_variable(container: Object) -> Object:
    env = container.get("env") or []
    if any(variable["name"] == INDEX_VARIABLE for variable in env):
        return container
    source = {"fieldRef": {"fieldPath": f"metadata.labels['{COMPLETION_INDEX}']"}}
    return {**copy(container), "env": [*env, {"name": INDEX_VARIABLE, "valueFrom": source}]}


def _failure_counts(job: Object, replaced: Object | None) -> dict[str, str]:
    if replaced is None:
        return {FAILURES: "0"}
    failures, ignored = _count(replaced, FAILURES), _count(replaced, IGNORED_FAILURES)
    if verdict(job["spec"].get("podFailurePolicy"), replaced).counts:
        failures += 1
    else:
        ignored += 1
    return {FAILURES: str(failures)} | ({IGNORED_FAILURES: str(ignored)} if ignored else {})


# -- failed pods that stay until they are replaced ------------------------------------------------------------------------


def last_failures(
    pods: Iterable[Object], job: Object, active: Iterable[Object], succeeded: Intervals, failed: Intervals
) -> Mapping[int, Object]:
    """The last failed pod of each index that needs a new pod, which takes over its count of failures.

    `pods` are those that are not counted yet.
    """
    running = {completion_index(pod) for pod in active}
    result: dict[int, Object] = {}
    for pod in pods:
        index = valid_index(pod, job)
        if index is None or index in running or not is_failed(pod, job):
            continue
        if contains(succeeded, index) or contains(failed, index):
            continue
        if index not in result or _order_of_failure(pod) >= _order_of_failure(result[index]):
            result[index] = pod
    return result


def _order_of_failure(pod: Object) -> tuple[int, float]:
    return all_failures_of_index(pod), finished_at(pod).timestamp()


# -- pods to remove ---------------------------------------------------------------------------------------------------


def to_remove(job: Object, active: Sequence[Object], at_least: int) -> list[Object]:
    """At least so many active pods, and all that an indexed Job has too many: without a valid index, or a second one of it."""
    removed, left = _superfluous(job, active) if is_indexed(job) else ([], list(active))
    if len(removed) < at_least:
        removed += sorted(left, key=removal_order)[: at_least - len(removed)]
    return removed


def _superfluous(job: Object, active: Iterable[Object]) -> tuple[list[Object], list[Object]]:
    removed, left = [], []
    for index, same in _by_index(active):
        if index < 0 or index >= job["spec"]["completions"]:
            removed += same
        else:
            *others, kept = sorted(same, key=removal_order)
            removed += others
            left.append(kept)
    return removed, left


def _by_index(pods: Iterable[Object]) -> Iterator[tuple[int, list[Object]]]:
    """-1: without an index."""
    for index, same in groupby(sorted(pods, key=sort_index), key=sort_index):
        yield index, list(same)


def sort_index(pod: Object) -> int:
    index = completion_index(pod)
    return -1 if index is None else index


_PHASES: Final = {"Pending": 0, "Unknown": 1, "Running": 2}


def removal_order(pod: Object) -> tuple[bool, int, bool, str, int, str]:
    """What is less is removed first (controller.ActivePods).

    Not scheduled, pending, not ready, ready for a shorter time, with more restarts, younger.
    """
    status = pod.get("status") or {}
    ready = (condition(pod, "Ready") or {}).get("lastTransitionTime", "") if is_ready(pod) else ""
    restarts = max((found.get("restartCount", 0) for found in status.get("containerStatuses") or ()), default=0)
    return (
        bool(pod["spec"].get("nodeName")),
        _PHASES.get(phase(pod), 0),
        is_ready(pod),
        _reversed(ready),
        -restarts,
        _reversed(pod["metadata"].get("creationTimestamp", "")),
    )


def _reversed(time: str) -> str:
    """A key that sorts later times first."""
    return "".join(chr(0x10FFFF - ord(char)) for char in time)
