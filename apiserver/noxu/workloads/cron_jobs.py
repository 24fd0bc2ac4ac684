"""Starts Jobs at the times of a schedule, and deletes old ones (pkg/controller/cronjob/cronjob_controllerv2.go, utils.go).

Of the times that were missed only the last one counts. A Job is named after its time, so that no time has two. A schedule that
has changed begins with its next time. Upstream waits 100 ms more than it takes to the next time, because clocks differ; there
is only one here.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple, TypeAlias

from noxu.api.errors import ApiError
from noxu.config import Config
from noxu.controllers.controller import ControllerParts
from noxu.go.text import quote
from noxu.go.time import format_time
from noxu.kinds.schedules import location_error, parse_schedule
from noxu.values import Object, copy, equal
from noxu.workloads.due_times import DueTimes, due_times
from noxu.workloads.engine import WorkloadController
from noxu.workloads.informer import Informer
from noxu.workloads.objects import CRON_JOBS, JOBS, Objects, controller_of, name_of
from noxu.workloads.ownership import owner_reference
from noxu.workloads.pods import is_terminating, is_true, moment
from noxu.workloads.writes import (
    NORMAL,
    WARNING,
    Create,
    Delete,
    Kind,
    NamespacedName,
    NewEvent,
    Replace,
    Result,
    Steps,
    Write,
    is_namespace_ending,
    stored,
    with_status,
)

SCHEDULED: Final = "batch.kubernetes.io/cronjob-scheduled-timestamp"
MANY_MISSED: Final = 100

_Ends: TypeAlias = tuple[float | None, Object, ApiError | None]
"""The seconds until the next time, the new status, and the error with which the steps fail once it is stored."""


class CronJobController(WorkloadController):
    name = "cronjob-controller"
    kind = CRON_JOBS
    looks_at = (JOBS,)
    workers = 5  # --concurrent-cron-job-syncs

    def __init__(self, parts: ControllerParts, informer: Informer, config: Config) -> None:
        super().__init__(parts, informer, config)
        self._rescheduled: set[NamespacedName] = set()

    def changed(self, kind: Kind, old: Object | None, new: Object | None) -> None:
        if kind == CRON_JOBS and old and new and _schedule_of(old) != _schedule_of(new):
            self._rescheduled.add(name_of(new))
        super().changed(kind, old, new)

    def affected(
        self, objects: Objects, kind: Kind, old: Object | None, new: Object | None
    ) -> Iterable[NamespacedName]:
        return affected_cron_jobs(kind, old, new)

    def steps(self, objects: Objects, key: NamespacedName, now: datetime) -> Steps:
        is_rescheduled = key in self._rescheduled
        self._rescheduled.discard(key)
        return cron_job_steps(objects, key, now, is_rescheduled=is_rescheduled)


def affected_cron_jobs(kind: Kind, old: Object | None, new: Object | None) -> Iterator[NamespacedName]:
    """The CronJob of a Job, before and after a change."""
    found = [value for value in (old, new) if value is not None]
    if kind == CRON_JOBS:
        yield name_of(found[-1])
        return
    owners = [owner for value in found if (owner := controller_of(value)) is not None and owner["kind"] == "CronJob"]
    for name in dict.fromkeys(owner["name"] for owner in owners):
        yield NamespacedName(found[-1]["metadata"]["namespace"], name)


def _schedule_of(cron_job: Object) -> tuple[str, str | None]:
    return cron_job["spec"]["schedule"], cron_job["spec"].get("timeZone")


# -- steps ------------------------------------------------------------------------------------------------------------


def cron_job_steps(objects: Objects, key: NamespacedName, now: datetime, *, is_rescheduled: bool = False) -> Steps:
    cron_job = objects.get(CRON_JOBS, key)
    if cron_job is None:
        return None
    times = _times(cron_job)
    jobs = objects.controlled_by(JOBS, cron_job["metadata"]["uid"])
    removed = yield from _delete(cron_job, to_remove(cron_job, jobs))
    status, events = noted(objects, cron_job, jobs, removed)
    if events:
        yield events
    again: float | None = None
    error: ApiError | None = None
    if isinstance(times, NewEvent):
        yield [times]
    elif times is not None and is_rescheduled:
        again = seconds_to_next(cron_job, now, times)
    elif times is not None:
        again, status, error = yield from _start(objects, cron_job, status, times, now)
    if not equal(status, cron_job.get("status") or {}):
        [result] = yield [Replace(CRON_JOBS, with_status(cron_job, status), "status")]
        stored(result)
    if error is not None:
        raise error
    return again


def _times(cron_job: Object) -> DueTimes | NewEvent | None:
    """None if it is suspended or ends; an Event that says what is wrong with the schedule."""
    spec = cron_job["spec"]
    schedule, zone = spec["schedule"], spec.get("timeZone")
    if is_terminating(cron_job):
        return None
    if zone is not None and (why := location_error(zone)):
        return NewEvent(cron_job, WARNING, "UnknownTimeZone", f"invalid timeZone: {quote(zone)}: {why}")
    if spec.get("suspend"):
        return None
    try:
        return due_times(parse_schedule(schedule), zone or "")
    except ValueError as error:
        return NewEvent(cron_job, WARNING, "UnparseableSchedule", f"unparseable schedule: {quote(schedule)} : {error}")


def _start(
    objects: Objects, cron_job: Object, status: Object, times: DueTimes, now: datetime
) -> Generator[Sequence[Write], Sequence[Result], _Ends]:
    """Start the Job of the last time that was missed, unless it is too late or another one must end first."""
    spec = cron_job["spec"]
    if times.schedule.zone:
        yield [NewEvent(cron_job, WARNING, "UnsupportedSchedule", _UNSUPPORTED.format(quote(spec["schedule"])))]
    try:
        missed = last_missed(cron_job, now, times, until_deadline=True)
    except ValueError as error:
        text = f"invalid schedule: {spec['schedule']} : {error}"
        yield [NewEvent(cron_job, WARNING, "InvalidSchedule", text)]
        return None, status, None
    if missed.time is None:
        return seconds_to_next(cron_job, now, times), status, None
    if missed.number > MANY_MISSED:
        yield [NewEvent(cron_job, WARNING, "TooManyMissedTimes", _TOO_MANY)]
    why_not = _why_not(cron_job, status, missed.time, now)
    if why_not is not None:
        if why_not:
            yield [why_not[0]]
        return seconds_to_next(cron_job, now, times), status, None
    active: Sequence[Object] = status.get("active") or ()
    if spec.get("concurrencyPolicy") == "Replace" and active:
        status, failure = yield from _replace(objects, cron_job, status)
        if failure is not None:
            return None, status, failure
    job, failure = yield from _create(objects, cron_job, new_job(cron_job, missed.time, times))
    if job is None:
        return None, status, failure
    scheduled = {
        **status,
        "active": [*(status.get("active") or ()), reference(job)],
        "lastScheduleTime": format_time(missed.time),
    }
    return seconds_to_next(with_status(cron_job, scheduled), now, times), scheduled, None


_UNSUPPORTED: Final = (
    "CRON_TZ or TZ used in schedule {} is not officially supported, see "
    "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
)
_TOO_MANY: Final = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
_ACTIVE: Final = "Not starting job because prior execution is running and concurrency policy is Forbid"


def _why_not(cron_job: Object, status: Object, time: datetime, now: datetime) -> Sequence[NewEvent] | None:
    """None: the Job of a time may be started. Else why not: an Event, or none if it has been started already."""
    spec, active = cron_job["spec"], status.get("active") or ()
    deadline = spec.get("startingDeadlineSeconds")
    if deadline is not None and time + timedelta(seconds=deadline) < now:
        text = f"Missed scheduled time to start a job: {time:%a, %d %b %Y %H:%M:%S} +0000"
        return [NewEvent(cron_job, WARNING, "MissSchedule", text)]
    name = job_name(cron_job, time)
    if any(found["name"] == name for found in active) or status.get("lastScheduleTime") == format_time(time):
        return []
    if spec.get("concurrencyPolicy") == "Forbid" and active:
        return [NewEvent(cron_job, NORMAL, "JobAlreadyActive", _ACTIVE)]
    return None


def _create(
    objects: Objects, cron_job: Object, job: Object
) -> Generator[Sequence[Write], Sequence[Result], tuple[Object | None, ApiError | None]]:
    """The Job that is active from now on, None if there is none."""
    [result] = yield [Create(JOBS, job)]
    if not isinstance(result, ApiError):
        yield [NewEvent(cron_job, NORMAL, "SuccessfulCreate", f"Created job {job['metadata']['name']}")]
        return result, None
    if result.reason == "AlreadyExists":  # an earlier attempt made it, and could not note it in the status
        found = objects.get(JOBS, name_of(job))
        owner = None if found is None else controller_of(found)
        return (found if owner is not None and owner["uid"] == cron_job["metadata"]["uid"] else None), None
    if not is_namespace_ending(result):
        yield [NewEvent(cron_job, WARNING, "FailedCreate", f"Error creating job: {result.message}")]
    return None, result


def _replace(
    objects: Objects, cron_job: Object, status: Object
) -> Generator[Sequence[Write], Sequence[Result], tuple[Object, ApiError | None]]:
    """Delete the active Jobs, and say which one is left, if any."""
    active = status["active"]
    jobs = [
        found for entry in active if (found := objects.get(JOBS, NamespacedName(entry["namespace"], entry["name"])))
    ]
    removed = yield from _delete(cron_job, jobs)
    left = [entry for entry in active if entry["uid"] not in removed]
    status = _with_active(status, left)
    if not left:
        return status, None
    where = f"{left[0]['namespace']}/{left[0]['name']}"
    return status, ApiError(500, f"could not replace job {where}", "InternalError")


def _delete(cron_job: Object, jobs: Sequence[Object]) -> Generator[Sequence[Write], Sequence[Result], set[str]]:
    """The uids of those that were deleted."""
    if not jobs:
        return set()
    results = yield [Delete(JOBS, job, propagation="Background") for job in jobs]
    removed, events = set(), []
    for job, result in zip(jobs, results, strict=True):
        if isinstance(result, ApiError):
            events.append(NewEvent(cron_job, WARNING, "FailedDelete", f"Deleted job: {result.message}"))
        else:
            removed.add(job["metadata"]["uid"])
            events.append(NewEvent(cron_job, NORMAL, "SuccessfulDelete", f"Deleted job {job['metadata']['name']}"))
    yield events
    return removed


# -- Jobs -------------------------------------------------------------------------------------------------------------


def job_name(cron_job: Object, time: datetime) -> str:
    """With the minutes since 1970."""
    return f"{cron_job['metadata']['name']}-{int(time.timestamp()) // 60}"


def new_job(cron_job: Object, time: datetime, times: DueTimes) -> Object:
    template, above = cron_job["spec"]["jobTemplate"], cron_job["metadata"]
    given = template.get("metadata") or {}
    zone = due_times(times.schedule._replace(zone=""), cron_job["spec"].get("timeZone") or "").zone
    local = time.astimezone(zone).isoformat(timespec="seconds")
    metadata: Object = {"name": job_name(cron_job, time), "namespace": above["namespace"]}
    if given.get("labels"):
        metadata["labels"] = copy(given["labels"])
    metadata["annotations"] = {**(given.get("annotations") or {}), SCHEDULED: local.replace("+00:00", "Z")}
    metadata["ownerReferences"] = [owner_reference(cron_job)]
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": copy(template["spec"])}


def reference(job: Object) -> Object:
    metadata = job["metadata"]
    return {
        "kind": "Job",
        "namespace": metadata["namespace"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "apiVersion": "batch/v1",
        "resourceVersion": metadata["resourceVersion"],
    }


def end_of_job(job: Object) -> str:
    """Complete, Failed, or "" if it has not ended."""
    return next((kind for kind in ("Complete", "Failed") if is_true(job, kind)), "")


def to_remove(cron_job: Object, jobs: Iterable[Object]) -> list[Object]:
    """The oldest Jobs that have ended, beyond the number that is kept."""
    spec, removed = cron_job["spec"], []
    limits = (("Complete", spec.get("successfulJobsHistoryLimit")), ("Failed", spec.get("failedJobsHistoryLimit")))
    for end, limit in limits:
        ended = sorted((job for job in jobs if end_of_job(job) == end and not is_terminating(job)), key=_by_start)
        removed += [] if limit is None else ended[: max(0, len(ended) - limit)]
    return removed


def _by_start(job: Object) -> tuple[bool, str, str]:
    start = (job.get("status") or {}).get("startTime") or ""
    return not start, start, job["metadata"]["name"]


# -- status -----------------------------------------------------------------------------------------------------------


def noted(
    objects: Objects, cron_job: Object, jobs: Iterable[Object], removed: set[str]
) -> tuple[Object, Sequence[NewEvent]]:
    """The status with the Jobs that are still active, and what has become of the others."""
    status = cron_job.get("status") or {}
    active = [entry for entry in status.get("active") or () if entry["uid"] not in removed]
    known = {entry["uid"] for entry in active}
    last, events, ended = status.get("lastSuccessfulTime"), [], set()
    for job in jobs:
        name, uid, end = job["metadata"]["name"], job["metadata"]["uid"], end_of_job(job)
        if not end and uid not in known:
            text = f"Saw a job that the controller did not create or forgot: {name}"
            events.append(NewEvent(cron_job, WARNING, "UnexpectedJob", text))
        elif end and uid in known:
            ended.add(uid)
            events.append(NewEvent(cron_job, NORMAL, "SawCompletedJob", f"Saw completed job: {name}, condition: {end}"))
        if end == "Complete":
            last = max(filter(None, (last, (job.get("status") or {}).get("completionTime"))), default=None)
    left = []
    for entry in active:
        if entry["uid"] in ended:
            continue
        found = objects.get(JOBS, NamespacedName(entry["namespace"], entry["name"]))
        if found is None:
            events.append(NewEvent(cron_job, NORMAL, "MissingJob", f"Active job went missing: {entry['name']}"))
        else:
            left.append(entry)
    status = _with_active(status, left)
    return (status if last is None else {**status, "lastSuccessfulTime": last}), events


def _with_active(status: Object, active: Sequence[Object]) -> Object:
    rest = {name: value for name, value in status.items() if name != "active"}
    return {"active": list(active), **rest} if active else rest


# -- times ------------------------------------------------------------------------------------------------------------


class Missed(NamedTuple):
    """The last time that has passed since `since`; None: there was none. `number`: about how many have passed."""

    since: datetime
    time: datetime | None
    number: int = 0


def last_missed(cron_job: Object, now: datetime, times: DueTimes, *, until_deadline: bool) -> Missed:
    """Since the last time that was met, or the creation; `until_deadline`: and not so long ago that it is too late.

    Raises ValueError for a schedule that is never due.
    """
    since = moment((cron_job.get("status") or {}).get("lastScheduleTime") or cron_job["metadata"]["creationTimestamp"])
    deadline: int | None = cron_job["spec"].get("startingDeadlineSeconds")
    if until_deadline and deadline is not None:
        since = max(since, now - timedelta(seconds=deadline))
    first = times.after(since)
    if first is not None and now < first:
        return Missed(since, None)
    second = None if first is None else times.after(first)
    if first is not None and second is not None and now < second:
        return Missed(since, first)
    interval = round((second - first).total_seconds()) if first is not None and second is not None else 0
    if first is None or interval < 1:
        raise ValueError("time difference between two schedules is less than 1 second")
    number = int((now - first).total_seconds()) // interval + 1
    last: datetime | None = None
    found = times.after(first + timedelta(seconds=(number - 2) * interval))
    while found is not None and found <= now:
        last, found = found, times.after(found)
    return Missed(since, last, number)


def seconds_to_next(cron_job: Object, now: datetime, times: DueTimes) -> float | None:
    """The seconds until the next time; None: never."""
    try:
        missed = last_missed(cron_job, now, times, until_deadline=False)
    except ValueError:
        start = now
    else:
        start = missed.time or (now if missed.number else missed.since)
    following = times.after(start)
    return None if following is None else max(0.0, (following.astimezone(UTC) - now).total_seconds())
