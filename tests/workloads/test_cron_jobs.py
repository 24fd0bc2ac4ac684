"""The controller of CronJobs: which Jobs it starts, and what it says (upstream's cronjob_controllerv2_test.go, utils_test.go)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from noxu.api.errors import ApiError
from noxu.go.time import format_time
from noxu.kinds.schedules import parse_schedule
from noxu.values import Object
from noxu.workloads.cron_jobs import Missed, affected_cron_jobs, cron_job_steps, last_missed, seconds_to_next
from noxu.workloads.due_times import due_times
from noxu.workloads.objects import CRON_JOBS, JOBS
from noxu.workloads.ownership import owner_reference
from noxu.workloads.writes import Create, Delete, Write
from tests.rows import rows
from tests.workloads.plays import Play

TOP = datetime(2016, 5, 19, 10, tzinfo=UTC)
"""Jobs are hourly."""
KEY = "default/x"


def cron_job(**spec: Any) -> Object:
    """A CronJob `x`, created at 9:00. `status`, `created` and `deleted` are not of the spec."""
    status, created = spec.pop("status", {}), spec.pop("created", TOP - timedelta(hours=1))
    metadata: Object = {"name": "x", "namespace": "default", "uid": "cron", "creationTimestamp": format_time(created)}
    if spec.pop("deleted", False):
        metadata |= {"deletionTimestamp": format_time(TOP), "finalizers": ["foregroundDeletion"]}
    template = {"metadata": {"labels": {"a": "b"}, "annotations": {"x": "y"}}, "spec": {"template": {}}}
    spec = {"schedule": "0 * * * ?", "concurrencyPolicy": "Allow", "jobTemplate": template, **spec}
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": metadata, "spec": spec, "status": status}


def job(name: str, end: str = "", ended: datetime | None = None, started: datetime | None = None) -> Object:
    """A Job of `x`, whose uid is its name."""
    status: Object = {} if started is None else {"startTime": format_time(started)}
    if end:
        status["conditions"] = [{"type": end, "status": "True"}]
    if ended is not None:
        status["completionTime"] = format_time(ended)
    metadata = {"name": name, "namespace": "default", "uid": name, "ownerReferences": [owner_reference(cron_job())]}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {}, "status": status}


def entry(name: str) -> Object:
    return {"kind": "Job", "namespace": "default", "name": name, "uid": name, "apiVersion": "batch/v1"}


def play_at(now: datetime, of: Object, *jobs: Object, **more: Any) -> Play:
    play = Play((CRON_JOBS, of), *((JOBS, found) for found in jobs), **more)
    play.now = now
    return play


def active(play: Play) -> list[str]:
    return [found["name"] for found in play.get(CRON_JOBS, KEY)["status"].get("active") or ()]


BEFORE, AFTER = TOP + timedelta(minutes=30), TOP + timedelta(hours=1, seconds=30)
RAN = {"lastScheduleTime": format_time(TOP)}
RUNS = {**RAN, "active": [entry("old")]}
STARTED = [
    "create jobs x-24394260",
    "event Normal SuccessfulCreate: Created job x-24394260",
    "update cronjobs/status x",
]
SAW = ["event Normal SawCompletedJob: Saw completed job: old, condition: Complete"]
ACTIVE = "event Normal JobAlreadyActive: Not starting job because prior execution is running and concurrency policy is Forbid"
NEW = {"created": TOP}


@rows(
    "situation, now, of, jobs, expected",
    [
        ("it has never run, and it is not time", BEFORE, cron_job(**NEW), [], []),
        ("it has never run, and it is time", AFTER, cron_job(**NEW), [], STARTED),
        ("Forbid: it has never run, and it is time", AFTER, cron_job(concurrencyPolicy="Forbid", **NEW), [], STARTED),
        ("Replace: it has never run, and it is time", AFTER, cron_job(concurrencyPolicy="Replace", **NEW), [], STARTED),
        ("it is suspended", AFTER, cron_job(suspend=True, **NEW), [], []),
        ("it is too late", AFTER, cron_job(startingDeadlineSeconds=10, **NEW), [], []),
        ("it is not yet too late", AFTER, cron_job(startingDeadlineSeconds=100, **NEW), [], STARTED),
        ("it has run, and it is not time", BEFORE, cron_job(status=RAN), [job("old", "Complete")], []),
        ("it has run, and it is time", AFTER, cron_job(status=RAN), [job("old", "Complete")], STARTED),
        ("it is seen that it has run", BEFORE, cron_job(status=RUNS), [job("old", "Complete")], [*SAW, STARTED[2]]),
        ("it is seen that it has run, and it is time", AFTER, cron_job(status=RUNS), [job("old", "Complete")], [*SAW, *STARTED]),
        ("it runs, and it is not time", BEFORE, cron_job(status=RUNS), [job("old")], []),
        ("Allow: it runs, and it is time", AFTER, cron_job(status=RUNS), [job("old")], STARTED),
        ("Forbid: it runs, and it is time", AFTER, cron_job(status=RUNS, concurrencyPolicy="Forbid"), [job("old")], [ACTIVE]),
        (
            "Replace: it runs, and it is time",
            AFTER,
            cron_job(status=RUNS, concurrencyPolicy="Replace"),
            [job("old")],
            ["delete jobs old", "event Normal SuccessfulDelete: Deleted job old", *STARTED],
        ),
        ("it runs and is suspended", AFTER, cron_job(status=RUNS, suspend=True), [job("old")], []),
        ("it is being deleted", AFTER, cron_job(status=RUNS, deleted=True), [job("old")], []),
        (
            "its Job has gone",
            BEFORE,
            cron_job(status=RUNS),
            [],
            ["event Normal MissingJob: Active job went missing: old", "update cronjobs/status x"],
        ),
        (
            "there is a Job that it does not know",
            BEFORE,
            cron_job(status=RAN),
            [job("new")],
            ["event Warning UnexpectedJob: Saw a job that the controller did not create or forgot: new"],
        ),
        ("the time was met", AFTER, cron_job(status={"lastScheduleTime": "2016-05-19T11:00:00Z"}), [], []),
        (
            "the zone is unknown",
            AFTER,
            cron_job(timeZone="bad zone"),
            [],
            ['event Warning UnknownTimeZone: invalid timeZone: "bad zone": unknown time zone bad zone'],
        ),
        (
            "the schedule cannot be read",
            AFTER,
            cron_job(schedule="obvious error schedule"),
            [],
            ['event Warning UnparseableSchedule: unparseable schedule: "obvious error schedule" : expected exactly 5 fields, found 3: [obvious error schedule]'],
        ),
        (
            "the schedule is never due",
            AFTER,
            cron_job(schedule="59 23 31 2 *"),
            [],
            ["event Warning InvalidSchedule: invalid schedule: 59 23 31 2 * : time difference between two schedules is less than 1 second"],
        ),
        (
            "the schedule names a zone",
            AFTER,
            cron_job(schedule="TZ=UTC 0 * * * *", **NEW),
            [],
            [
                'event Warning UnsupportedSchedule: CRON_TZ or TZ used in schedule "TZ=UTC 0 * * * *" is not officially supported, see '
                "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details",
                *STARTED,
            ],
        ),
        (
            "more than 100 times were missed",
            AFTER,
            cron_job(created=TOP - timedelta(hours=101)),
            [],
            ["event Warning TooManyMissedTimes: too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew", *STARTED],
        ),
        (
            "many times were missed, and a deadline says how far to look back",
            AFTER,
            cron_job(created=TOP - timedelta(hours=101), startingDeadlineSeconds=3600),
            [],
            STARTED,
        ),
    ],
)  # fmt: skip
def test_what_is_done(situation: str, now: datetime, of: Object, jobs: list[Object], expected: list[str]) -> None:
    play = play_at(now, of, *jobs)
    play.run(cron_job_steps, KEY)
    assert play.done() == expected, situation
    play.run(cron_job_steps, KEY)
    assert not any(text.startswith(("create", "update", "delete")) for text in play.done()), situation


def test_a_time_that_was_missed_by_more_than_the_deadline_is_given_up() -> None:
    play = play_at(AFTER, cron_job(startingDeadlineSeconds=30, **NEW))
    play.pass_time(0.5)
    assert play.run(cron_job_steps, KEY) == 3600 - 30.5
    assert play.done() == []


def test_a_new_job() -> None:
    play = play_at(AFTER, cron_job(timeZone="America/New_York", **NEW))
    assert play.run(cron_job_steps, KEY) == 3600 - 30
    made = play.get(JOBS, "default/x-24394260")
    assert made["metadata"]["labels"] == {"a": "b"}
    assert made["metadata"]["annotations"] == {
        "x": "y",
        "batch.kubernetes.io/cronjob-scheduled-timestamp": "2016-05-19T07:00:00-04:00",
    }
    assert made["metadata"]["ownerReferences"] == [owner_reference(cron_job())]
    assert made["spec"] == {"template": {}}
    status = play.get(CRON_JOBS, KEY)["status"]
    assert status["lastScheduleTime"] == "2016-05-19T11:00:00Z"
    assert status["active"] == [
        {
            "kind": "Job",
            "namespace": "default",
            "name": "x-24394260",
            "uid": made["metadata"]["uid"],
            "apiVersion": "batch/v1",
            "resourceVersion": made["metadata"]["resourceVersion"],
        }
    ]


def test_in_utc_the_annotation_ends_with_z() -> None:
    play = play_at(AFTER, cron_job(**NEW))
    play.run(cron_job_steps, KEY)
    annotations = play.get(JOBS, "default/x-24394260")["metadata"]["annotations"]
    assert annotations["batch.kubernetes.io/cronjob-scheduled-timestamp"] == "2016-05-19T11:00:00Z"


def test_a_schedule_that_has_changed_begins_with_its_next_time() -> None:
    play = play_at(AFTER, cron_job(schedule="*/7 * * * *"))
    assert play.run(partial(cron_job_steps, is_rescheduled=True), KEY) == 390
    assert play.done() == []


def test_a_schedule_that_has_changed_does_not_hide_that_a_job_has_ended() -> None:
    play = play_at(AFTER, cron_job(schedule="*/7 * * * *", status=RUNS), job("old", "Complete"))
    play.run(partial(cron_job_steps, is_rescheduled=True), KEY)
    assert play.done() == [*SAW, "update cronjobs/status x"]


def refusing(kind: type, error: ApiError) -> Any:
    def refuse(write: Write) -> ApiError | None:
        return error if isinstance(write, kind) else None

    return refuse


def test_a_job_that_cannot_be_created() -> None:
    play = play_at(AFTER, cron_job(status=RUNS), job("old", "Failed"), refuse=refusing(Create, ApiError(403, "no")))
    with pytest.raises(ApiError, match="no"):
        play.run(cron_job_steps, KEY)
    assert play.done() == [
        "event Normal SawCompletedJob: Saw completed job: old, condition: Failed",
        "create jobs x-24394260",
        "event Warning FailedCreate: Error creating job: no",
        "update cronjobs/status x",
    ]


def test_a_job_that_exists_already_is_noted_if_it_is_its_own() -> None:
    exists = refusing(Create, ApiError(409, "it exists", "AlreadyExists"))
    play = play_at(AFTER, cron_job(status=RAN), job("x-24394260"), refuse=exists)
    play.run(cron_job_steps, KEY)
    assert active(play) == ["x-24394260"]
    other = job("x-24394260")
    del other["metadata"]["ownerReferences"]
    play = play_at(AFTER, cron_job(status=RAN), other, refuse=exists)
    play.run(cron_job_steps, KEY)
    assert active(play) == []


def test_a_job_that_cannot_be_replaced() -> None:
    of = cron_job(status=RUNS, concurrencyPolicy="Replace")
    play = play_at(AFTER, of, job("old"), refuse=refusing(Delete, ApiError(403, "no")))
    with pytest.raises(ApiError, match="could not replace job default/old"):
        play.run(cron_job_steps, KEY)
    assert play.done() == ["delete jobs old", "event Warning FailedDelete: Deleted job: no"]


def test_the_last_success_is_noted() -> None:
    status = {**RUNS, "lastSuccessfulTime": format_time(TOP)}
    ended = [job("old", "Complete", TOP + timedelta(minutes=5)), job("older", "Complete", TOP - timedelta(hours=1))]
    play = play_at(BEFORE, cron_job(status=status), *ended, job("failed", "Failed"))
    play.run(cron_job_steps, KEY)
    assert play.get(CRON_JOBS, KEY)["status"]["lastSuccessfulTime"] == format_time(TOP + timedelta(minutes=5))


@rows(
    "successful, failed, kept",
    [(1, 1, "f2 r s3"), (3, 2, "f1 f2 r s1 s2 s3"), (0, 0, "r"), (None, 1, "f2 r s1 s2 s3"), (2, None, "f1 f2 r s2 s3")],
)  # fmt: skip
def test_old_jobs_are_deleted(successful: int | None, failed: int | None, kept: str) -> None:
    def at(minute: int) -> datetime:
        return TOP + timedelta(minutes=minute)

    jobs = [job(f"s{n}", "Complete", at(n), at(n)) for n in (2, 1, 3)]
    jobs += [job(f"f{n}", "Failed", None, at(n)) for n in (1, 2)]
    jobs.append(job("r"))
    of = cron_job(
        successfulJobsHistoryLimit=successful, failedJobsHistoryLimit=failed, status={**RAN, "active": [entry("r")]}
    )
    play = play_at(BEFORE, of, *jobs)
    play.run(cron_job_steps, KEY)
    assert " ".join(sorted(found["metadata"]["name"] for found in play.objects.within(JOBS, "default"))) == kept


@rows(
    "schedule, last, now, deadline, expected, number",
    [
        ("0 * * * *", None, "10:00:00", None, "10:00:00", 0),
        ("0 * * * *", None, "09:30:00", None, None, 0),
        ("0 * * * *", None, "10:30:00", None, "10:00:00", 0),
        ("0 * * * *", "10:00:00", "10:30:00", None, None, 0),
        ("0 * * * *", "10:00:00", "13:30:00", None, "13:00:00", 3),
        ("0 * * * *", "10:00:00", "13:30:00", 3600, "13:00:00", 0),
        ("0 * * * *", "10:00:00", "13:30:00", 60, None, 0),
        ("* * * * *", "10:00:00", "12:00:30", None, "12:00:00", 120),
        ("30 6-16/4 * * 1-5", "06:30:00", "17:00:00", None, "14:30:00", 2),
        ("@every 1h", "09:10:20", "12:00:00", None, "11:10:20", 2),
    ],
)
def test_the_last_time_that_was_missed(
    schedule: str, last: str | None, now: str, deadline: int | None, expected: str | None, number: int
) -> None:
    def at(time: str) -> datetime:
        return datetime.fromisoformat(f"2016-05-19T{time}+00:00")

    of = cron_job(startingDeadlineSeconds=deadline, status={"lastScheduleTime": f"2016-05-19T{last}Z"} if last else {})
    found = last_missed(of, at(now), due_times(parse_schedule(schedule)), until_deadline=True)
    assert (found.time, found.number) == (None if expected is None else at(expected), number)
    assert isinstance(found, Missed)


def test_the_next_time_is_after_now_even_if_none_was_met() -> None:
    of, hourly = cron_job(created=TOP - timedelta(hours=200)), due_times(parse_schedule("0 * * * *"))
    assert seconds_to_next(of, TOP + timedelta(minutes=20), hourly) == 40 * 60
    assert seconds_to_next(of, TOP, due_times(parse_schedule("59 23 31 2 *"))) is None


def test_whom_a_change_concerns() -> None:
    alone = job("old")
    del alone["metadata"]["ownerReferences"]

    def concerned(*change: Object | None) -> list[str]:
        return [f"{namespace}/{name}" for namespace, name in affected_cron_jobs(JOBS, *change)]

    assert concerned(None, job("old")) == concerned(job("old"), job("old")) == concerned(job("old"), alone) == [KEY]
    assert concerned(alone, None) == []
    assert list(affected_cron_jobs(CRON_JOBS, None, cron_job())) == [("default", "x")]


# -- a year -----------------------------------------------------------------------------------------------------------


def end_jobs(play: Play, end: str) -> None:
    for found in play.objects.within(JOBS, "default"):
        if not found["status"]:
            status = {"conditions": [{"type": end, "status": "True"}], "startTime": format_time(play.now)}
            play.add(JOBS, {**found, "status": status | {"completionTime": format_time(play.now)}})


class YearPlay(Play):
    """New Jobs have a status."""

    def add(self, kind: Any, value: Object) -> Object:
        return super().add(kind, {"status": {}, **value})


@pytest.mark.parametrize(
    ("schedule", "zone", "times"),
    [("0 3 * * *", None, 365), ("0 0 1 * *", None, 12), ("30 2 * * *", "Europe/Berlin", 365), ("0 12 * * 1", None, 52)],
)
def test_a_year_from_one_time_to_the_next(schedule: str, zone: str | None, times: int) -> None:
    start = datetime(2025, 1, 1, tzinfo=UTC)
    of = cron_job(
        schedule=schedule, timeZone=zone, created=start, successfulJobsHistoryLimit=3, failedJobsHistoryLimit=1
    )
    play = YearPlay((CRON_JOBS, of))
    play.now = start
    started: set[str] = set()
    while True:
        again = play.run(cron_job_steps, KEY)
        started |= {found["metadata"]["name"] for found in play.objects.within(JOBS, "default")}
        assert again is not None
        if play.now + timedelta(seconds=again) > start + timedelta(days=365):
            break
        end_jobs(play, "Complete")
        play.run(cron_job_steps, KEY)
        play.pass_time(again)
    assert len(started) == times
    assert len(play.objects.within(JOBS, "default")) <= 4
    assert {text.split(":")[0] for text in play.done() if text.startswith("event")} == {
        "event Normal SuccessfulCreate",
        "event Normal SawCompletedJob",
        "event Normal SuccessfulDelete",
    }


def test_a_jump_over_a_year_starts_the_last_one_only() -> None:
    play = play_at(TOP, cron_job(schedule="*/5 * * * *", created=TOP))
    play.pass_time(365 * 86400 + 10)
    assert play.run(cron_job_steps, KEY) == 290
    assert [text for text in play.done() if text.startswith("create")] == ["create jobs x-24919800"]
