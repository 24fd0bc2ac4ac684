"""Runs the pods of Jobs until enough have succeeded, or too many have failed (pkg/controller/job/job_controller.go).

1. The Job gets the pods that it controls, and adopts those that its selector selects.
2. If it has ended, its active pods are deleted; else pods are created and deleted until as many run as it needs.
3. The status counts the pods that have ended, these lose their finalizer, and then the Job is complete or has failed.

A failed pod is replaced after a delay (see backoff.py). A Job that names another manager is left alone. A pod whose Job is
gone or has ended loses the finalizer; the key of one that has no controller is `pod/NAME`.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Final, TypeAlias

from noxu.api.errors import ApiError
from noxu.config import Config
from noxu.controllers.controller import ControllerParts
from noxu.go.time import format_time
from noxu.values import Object, equal
from noxu.workloads.engine import WorkloadController
from noxu.workloads.informer import Informer
from noxu.workloads.job.backoff import Backoff, finished_at
from noxu.workloads.job.job_pods import (
    all_failures_of_index,
    is_indexed,
    is_suspended,
    is_tracked,
    limits_each_index,
    new_pod,
    replaces_only_failed,
    to_remove,
    tracked,
    untracked,
)
from noxu.workloads.job.observed import (
    ObservedJob,
    count_pods,
    counted_without_finalizer,
    end_of,
    final_of,
    is_complete,
    is_finished,
    new_condition,
    observe,
    pending_indexes,
    seconds_to_deadline,
    success,
    wanted,
    with_end,
    with_running,
)
from noxu.workloads.objects import JOBS, PODS, Objects, controller_of, name_of
from noxu.workloads.ownership import candidates, claim, selects
from noxu.workloads.pod_control import create_pods, delete_pods
from noxu.workloads.pods import condition, is_terminating
from noxu.workloads.writes import (
    NORMAL,
    WARNING,
    Kind,
    NamespacedName,
    NewEvent,
    Replace,
    Result,
    Steps,
    Write,
    done_or_gone,
    is_gone,
    stored,
    with_status,
)

MANAGER: Final = "kubernetes.io/job-controller"
MAX_WRITES: Final = 500  # pods that are created or deleted at once
_POD_KEY: Final = "pod/"

Backoffs: TypeAlias = dict[str, Backoff]
"""What is remembered of the failures of unfinished Jobs, by their uids."""
_Writing: TypeAlias = Generator[Sequence[Write], Sequence[Result], "_Managed"]
_Managed: TypeAlias = tuple[float | None, ApiError | None]
"""The seconds after which pods may be created, and the first write that failed."""


class JobController(WorkloadController):
    """Keys are the names of Jobs, and of pods that have no controller any more."""

    name = "job-controller"
    kind = JOBS
    looks_at = (PODS,)
    workers = 5  # --concurrent-job-syncs

    def __init__(self, parts: ControllerParts, informer: Informer, config: Config) -> None:
        super().__init__(parts, informer, config)
        self._backoffs: Backoffs = {}

    def affected(
        self, objects: Objects, kind: Kind, old: Object | None, new: Object | None
    ) -> Iterable[NamespacedName]:
        return affected_jobs(objects, kind, old, new)

    def keys(self, objects: Objects) -> Iterable[NamespacedName]:
        yield from super().keys(objects)
        for pod in objects.all(PODS):
            if is_tracked(pod):
                yield _job_of(pod) or _pod_key(pod)

    def steps(self, objects: Objects, key: NamespacedName, now: datetime) -> Steps:
        return job_steps(objects, key, now, self._backoffs)


def affected_jobs(objects: Objects, kind: Kind, old: Object | None, new: Object | None) -> Iterator[NamespacedName]:
    """The Job of a pod, before and after a change. A pod without a controller may be adopted."""
    latest = new or old
    assert latest is not None
    if kind == JOBS:
        yield name_of(latest)
        return
    before, after = (None if old is None else _job_of(old)), _job_of(latest)
    if after is not None:
        yield after
    if before is not None and before != after:
        yield before
    if new is not None and controller_of(new) is None:
        if is_tracked(new):
            yield _pod_key(new)
        if old is None or controller_of(old) or old["metadata"].get("labels") != new["metadata"].get("labels"):
            for job in objects.within(JOBS, new["metadata"]["namespace"]):
                if selects(job["spec"].get("selector"), new):
                    yield name_of(job)


def _job_of(pod: Object) -> NamespacedName | None:
    owner = controller_of(pod)
    if owner is None or owner["kind"] != "Job":
        return None
    return NamespacedName(pod["metadata"]["namespace"], owner["name"])


def _pod_key(pod: Object) -> NamespacedName:
    return NamespacedName(pod["metadata"]["namespace"], f"{_POD_KEY}{pod['metadata']['name']}")


# -- steps ------------------------------------------------------------------------------------------------------------


def job_steps(objects: Objects, key: NamespacedName, now: datetime, backoffs: Backoffs) -> Steps:
    if key.name.startswith(_POD_KEY):
        pod = objects.get(PODS, NamespacedName(key.namespace, key.name.removeprefix(_POD_KEY)))
        yield from _release([pod] if pod is not None and controller_of(pod) is None else [])
        return None
    job = objects.get(JOBS, key)
    if job is None:
        yield from _release([pod for pod in objects.within(PODS, key.namespace) if _job_of(pod) == key])
        return None
    uid = job["metadata"]["uid"]
    if job["spec"].get("managedBy") not in (None, MANAGER):
        return None
    if is_finished(job):
        backoffs.pop(uid, None)
        yield from _release(objects.controlled_by(PODS, uid))
        return None
    yield from _claim(objects, job)
    return (yield from _sync(objects, job, now, backoffs))


def _release(pods: Iterable[Object]) -> Generator[Sequence[Write], Sequence[Result], None]:
    writes = [Replace(PODS, untracked(pod)) for pod in pods if is_tracked(pod)]
    if writes:
        done_or_gone((yield writes))


def _claim(objects: Objects, job: Object) -> Generator[Sequence[Write], Sequence[Result], None]:
    """What the Job controls afterwards is what the index has under its uid."""
    selector = job["spec"].get("selector")
    claimed = claim(PODS, candidates(objects, PODS, job), job, lambda pod: selects(selector, pod))
    adopted = [write if is_tracked(write.value) else Replace(PODS, tracked(write.value)) for write in claimed.adopted]
    if adopted or claimed.released:
        done_or_gone((yield [*adopted, *claimed.released]))


def _sync(objects: Objects, job: Object, now: datetime, backoffs: Backoffs) -> Steps:
    uid = job["metadata"]["uid"]
    status = {"uncountedTerminatedPods": {}, **(job.get("status") or {})}
    if "startTime" not in status and not is_suspended(job):
        status["startTime"] = format_time(now)
    seen = observe(with_status(job, status), objects.controlled_by(PODS, uid))
    backoff = backoffs.get(uid, Backoff()).after(seen.new_succeeded, seen.new_failed)
    end = end_of(seen, now)
    again: float | None = None
    error: ApiError | None = None
    if end is not None:
        error = yield from _delete(job, seen.active)
        end = None if error else end  # not yet: there are pods that run
        status = with_running(status, objects.controlled_by(PODS, uid))
    else:
        if not is_terminating(job):
            again, error = yield from _manage(seen, backoff, now)
        status = with_running(status, objects.controlled_by(PODS, uid))
        if is_complete(seen, status.get("active", 0)):
            end = success(now)
        elif not is_terminating(job):
            status = yield from _note_suspension(job, status, now)
    yield from _track(objects, job, seen, status, end, now, backoffs, backoff)
    if error is not None:
        raise error
    deadline = seconds_to_deadline(with_status(job, status), now)
    return min((seconds for seconds in (again, deadline) if seconds is not None and seconds > 0), default=None)


def _note_suspension(
    job: Object, status: Object, now: datetime
) -> Generator[Sequence[Write], Sequence[Result], Object]:
    """The status with the condition Suspended. The time of a Job that is resumed begins anew."""
    is_now, noted = is_suspended(job), condition(job, "Suspended")
    if is_now == ((noted or {}).get("status") == "True"):
        return status
    what, value = ("suspended", "True") if is_now else ("resumed", "False")
    yield [NewEvent(job, NORMAL, what.capitalize(), f"Job {what}")]
    status = with_end(status, new_condition("Suspended", f"Job{what.capitalize()}", f"Job {what}", now, value), now)
    return status if is_now else status | {"startTime": format_time(now)}


# -- counting ---------------------------------------------------------------------------------------------------------


def _track(
    objects: Objects,
    job: Object,
    seen: ObservedJob,
    status: Object,
    end: Object | None,
    now: datetime,
    backoffs: Backoffs,
    backoff: Backoff,
) -> Generator[Sequence[Write], Sequence[Result], None]:
    """Count the pods that have ended, release them, and note the end of the Job once all are counted and gone."""
    counted = count_pods(seen, status, end)
    status, final = counted.status, final_of(end, now)
    if end is not None and end is not final:
        status = with_end(status, end, now)
    if not equal(status, job.get("status")):
        [result] = yield [Replace(JOBS, with_status(job, status), "status")]
        job = stored(result) or job
        backoffs[job["metadata"]["uid"]] = backoff
    left, errors = yield from _release_counted(objects, seen, counted.released)
    status = counted_without_finalizer(job["status"], left)
    pending = status["uncountedTerminatedPods"] or status.get("terminating") or counted.has_more
    has_ended = final is not None and not pending
    if has_ended:
        assert final is not None
        status = with_end(status, final, now)
    if not equal(status, job["status"]):
        [result] = yield [Replace(JOBS, with_status(job, status), "status")]
        stored(result)
    if has_ended:
        assert final is not None
        yield list(_events_of_end(job, status, final))
    if errors:
        raise errors[0]


def _release_counted(
    objects: Objects, seen: ObservedJob, released: Sequence[Object]
) -> Generator[Sequence[Write], Sequence[Result], tuple[set[str], Sequence[ApiError]]]:
    """The uids of the pods that still have the finalizer, and the errors that are why."""
    left = {pod["metadata"]["uid"] for pod in seen.pods if is_tracked(pod)}
    fresh = [objects.get(PODS, name_of(pod)) or pod for pod in released]  # some were deleted meanwhile: newer revisions
    if not fresh:
        return left, ()
    results = yield [Replace(PODS, untracked(pod)) for pod in fresh]
    errors = [result for result in results if isinstance(result, ApiError) and not is_gone(result)]
    failed = {
        pod["metadata"]["uid"]
        for pod, result in zip(released, results, strict=True)
        if isinstance(result, ApiError) and not is_gone(result)
    }
    return left - {pod["metadata"]["uid"] for pod in released} | failed, errors


def _events_of_end(job: Object, status: Object, final: Object) -> Iterator[NewEvent]:
    if final["type"] == "Failed":
        yield NewEvent(job, WARNING, final.get("reason", ""), final.get("message", ""))
        return
    completions: int | None = job["spec"].get("completions")
    if completions is not None and status.get("succeeded", 0) > completions:
        text = "Too many succeeded pods running after completion count reached"
        yield NewEvent(job, WARNING, "TooManySucceededPods", text)
    yield NewEvent(job, NORMAL, "Completed", "Job completed")


# -- pods -------------------------------------------------------------------------------------------------------------


def _manage(seen: ObservedJob, backoff: Backoff, now: datetime) -> _Writing:
    """Create or delete pods until as many run as should."""
    job, active = seen.job, len(seen.active)
    if is_suspended(job):
        return None, (yield from _delete(job, to_remove(job, seen.active, active), is_released=True))
    number = wanted(seen)
    superfluous = to_remove(job, seen.active, max(0, active - number))[:MAX_WRITES]
    if superfluous:
        return None, (yield from _delete(job, superfluous, is_released=True))
    missing = number - active - (seen.terminating if replaces_only_failed(job) else 0)
    if missing <= 0:
        return None, None
    if not limits_each_index(job) and (delay := backoff.remaining(now)) > 0:
        return delay, None
    missing = min(missing, MAX_WRITES)
    if not is_indexed(job):
        return None, (yield from create_pods(job, [new_pod(job, None, None) for _ in range(missing)]))
    indexes, delay = _indexes_to_start(seen, missing, now)
    pods = [new_pod(job, index, seen.last_failures.get(index)) for index in indexes]
    return delay or None, (yield from create_pods(job, pods))


def _indexes_to_start(seen: ObservedJob, count: int, now: datetime) -> tuple[list[int], float]:
    """The pending indexes whose delay is over; if there are none, the seconds until there is one."""
    delays = {index: _delay_of_index(seen, index, now) for index in pending_indexes(seen, count)}
    ready = [index for index, delay in delays.items() if delay <= 0]
    later = [delay for delay in delays.values() if delay > 0]
    return ready, min(later, default=0.0)


def _delay_of_index(seen: ObservedJob, index: int, now: datetime) -> float:
    failed = seen.last_failures.get(index)
    if failed is None:
        return 0.0
    return Backoff(all_failures_of_index(failed) + 1, finished_at(failed)).remaining(now)


def _delete(
    job: Object, pods: Sequence[Object], is_released: bool = False
) -> Generator[Sequence[Write], Sequence[Result], ApiError | None]:
    """Delete pods, and return the first error. `is_released`: they do not count, so they lose the finalizer first."""
    errors: Sequence[ApiError] = ()
    if is_released and any(map(is_tracked, pods)):
        results = yield [Replace(PODS, untracked(pod)) for pod in pods]
        errors = [result for result in results if isinstance(result, ApiError) and not is_gone(result)]
        pods = [pod for pod, result in zip(pods, results, strict=True) if not isinstance(result, ApiError)]
    error = yield from delete_pods(job, pods)
    return errors[0] if errors else error
