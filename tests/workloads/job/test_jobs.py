"""The controller of Jobs: which pods it creates, deletes and counts, and how Jobs end (upstream's job_controller_test.go)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from itertools import count
from typing import Any, NamedTuple

import pytest

from noxu.api.errors import ApiError
from noxu.go.time import format_time
from noxu.values import Object
from noxu.workloads.job.backoff import Backoff
from noxu.workloads.job.job_pods import COMPLETION_INDEX, FAILURES, TRACKING, new_pod
from noxu.workloads.job.jobs import affected_jobs
from noxu.workloads.objects import JOBS, PODS, controller_of
from noxu.workloads.writes import Create, Delete, Kind, NamespacedName, Replace, Write
from tests.rows import rows
from tests.workloads.job.situations import JOB_UID, JobPlay, job, pod
from tests.workloads.plays import NOW

INDEXED: dict[str, Any] = {"completionMode": "Indexed"}
QUEUE: dict[str, Any] = {"completions": None}
LIMIT = ("BackoffLimitExceeded", "Job has reached the specified backoff limit")
REACHED = ("CompletionsReached", "Reached expected number of succeeded pods")
COMPLETE = (("SuccessCriteriaMet", *REACHED), ("Complete", *REACHED))


def pods(**numbers: int) -> list[Object]:
    """pods(Running=2, terminating=1)."""
    made = []
    for what, number in numbers.items():
        if what == "terminating":
            made += [pod("Running", terminating=True) for _ in range(number)]
        elif what == "ready":
            made += [pod("Running", ready=True) for _ in range(number)]
        else:
            made += [pod(what) for _ in range(number)]
    return made


def indexed(**phases: str) -> list[Object]:
    """indexed(Succeeded="0 1", Running="2")."""
    return [pod(phase, index=index) for phase, indexes in phases.items() for index in indexes.split()]


class After(NamedTuple):
    """What one reconciliation leads to; `writes` are pods that were created, deleted and released of the finalizer."""

    created: int = 0
    deleted: int = 0
    released: int = 0
    active: int = 0
    ready: int = 0
    succeeded: int = 0
    failed: int = 0
    terminating: int = 0
    completed: str = ""
    conditions: Sequence[tuple[str, str, str]] = ()


def after(play: JobPlay) -> After:
    play.sync()
    pod_writes = [w for w in play.writes if isinstance(w, Create | Delete | Replace) and w.kind == PODS]
    status = play.status
    return After(
        created=sum(isinstance(write, Create) for write in pod_writes),
        deleted=sum(isinstance(write, Delete) for write in pod_writes),
        released=sum(isinstance(write, Replace) for write in pod_writes),
        active=status.get("active", 0),
        ready=status["ready"],
        succeeded=status.get("succeeded", 0),
        failed=status.get("failed", 0),
        terminating=status["terminating"],
        completed=status.get("completedIndexes", ""),
        conditions=tuple(play.conditions),
    )


SITUATIONS: list[tuple[str, Object, list[Object], After]] = [
    ("a Job starts", job(parallelism=2, completions=5), [], After(created=2, active=2)),
    ("a work queue starts", job(parallelism=2, **QUEUE), [], After(created=2, active=2)),
    ("pods are pending", job(parallelism=2, completions=5), pods(Pending=2), After(active=2)),
    ("as many run as should", job(parallelism=3, completions=5), pods(Running=1, ready=2), After(active=3, ready=2)),
    ("a work queue runs", job(parallelism=2, **QUEUE), pods(Running=2), After(active=2)),
    (
        "one has succeeded, another follows",
        job(parallelism=2, completions=5),
        pods(Running=1, Succeeded=1),
        After(created=1, released=1, active=2, succeeded=1),
    ),
    (
        "only failed pods are replaced: one that ends is not",
        job(parallelism=1, podReplacementPolicy="Failed", **QUEUE),
        pods(Running=1, Failed=1, terminating=1),
        After(released=1, active=1, failed=1, terminating=1),
    ),
    (
        "pods that end count as failed",
        job(parallelism=1, podReplacementPolicy="TerminatingOrFailed", **QUEUE),
        pods(Running=1, Failed=1, terminating=1),
        After(released=2, active=1, failed=2, terminating=1),
    ),
    (
        "more end than may run",
        job(podReplacementPolicy="Failed"),
        pods(Running=2, terminating=4),
        After(deleted=1, released=1, active=1, terminating=4),
    ),
    (
        "more end than may run, with a failure policy",
        job(podFailurePolicy={"rules": []}),
        pods(Running=2, terminating=4),
        After(deleted=1, released=1, active=1, terminating=4),
    ),
    ("a work queue has one too few", job(parallelism=2, **QUEUE), pods(Running=1), After(created=1, active=2)),
    (
        "one too many",
        job(parallelism=2, completions=5),
        pods(Running=3),
        After(deleted=1, released=1, active=2),
    ),
    (
        "ready ones too many",
        job(parallelism=2, completions=5),
        pods(ready=3),
        After(deleted=1, released=1, active=2, ready=2),
    ),
    (
        "one has failed and one succeeded",
        job(parallelism=2, completions=5),
        pods(Running=1, Succeeded=1, Failed=1),
        After(created=1, released=2, active=2, succeeded=1, failed=1),
    ),
    (
        "one has failed long ago",
        job(parallelism=2, completions=5),
        pods(Running=1, Failed=1),
        After(created=1, released=1, active=2, failed=1),
    ),
    (
        "a failed one was counted",
        job(status={"active": 1, "failed": 1}),
        [pod(), pod("Failed", counted=True)],
        After(active=1, failed=1),
    ),
    (
        "enough have succeeded",
        job(parallelism=2, completions=5),
        pods(Succeeded=5),
        After(released=5, succeeded=5, conditions=COMPLETE),
    ),
    (
        "a work queue waits for those that run, once one has succeeded",
        job(parallelism=2, **QUEUE),
        pods(Running=1, Succeeded=1),
        After(released=1, active=1, succeeded=1),
    ),
    (
        "a work queue ends",
        job(parallelism=2, **QUEUE),
        pods(Succeeded=2),
        After(released=2, succeeded=2, conditions=COMPLETE),
    ),
    (
        "a work queue ends despite a failure",
        job(parallelism=2, **QUEUE),
        pods(Succeeded=1, Failed=1),
        After(released=2, succeeded=1, failed=1, conditions=COMPLETE),
    ),
    (
        "many too many",
        job(parallelism=2, completions=5),
        pods(Running=10),
        After(deleted=8, released=8, active=2),
    ),
    (
        "more than there are completions left",
        job(parallelism=3, completions=4),
        pods(Running=3, Succeeded=2),
        After(deleted=1, released=3, active=2, succeeded=2),
    ),
    (
        "some have succeeded while enough run",
        job(parallelism=2, completions=5),
        pods(Running=2, Succeeded=2),
        After(released=2, active=2, succeeded=2),
    ),
    (
        "a Job that is being deleted releases its pods",
        job(parallelism=2, completions=5, deleted=True),
        pods(Pending=1, Running=1, Succeeded=1),
        After(released=3, active=2, succeeded=1),
    ),
    (
        "too many failures",
        job(parallelism=2, completions=5, backoffLimit=0),
        pods(Failed=1),
        After(released=1, failed=1, conditions=(("FailureTarget", *LIMIT), ("Failed", *LIMIT),)),
    ),
    (
        "too many failures while others run",
        job(parallelism=2, completions=3, backoffLimit=0),
        pods(ready=2, Failed=1),
        After(deleted=2, released=3, failed=3, terminating=2, conditions=(("FailureTarget", *LIMIT),)),
    ),
    ("an indexed Job starts", job(parallelism=2, completions=5, **INDEXED), [], After(created=2, active=2)),
    (
        "only failed pods of an indexed Job are replaced",
        job(parallelism=2, completions=5, podReplacementPolicy="Failed", **INDEXED),
        pods(terminating=1),
        After(created=1, active=1, terminating=1),
    ),
    (
        "pods of an indexed Job that end are replaced",
        job(parallelism=2, completions=5, podReplacementPolicy="TerminatingOrFailed", **INDEXED),
        pods(terminating=1),
        After(created=2, released=1, active=2, terminating=1),
    ),
    (
        "all indexes have succeeded",
        job(parallelism=2, completions=3, **INDEXED),
        indexed(Succeeded="0 1 2", Failed="1"),
        After(released=4, succeeded=3, failed=1, completed="0-2", conditions=COMPLETE),
    ),
    (
        "an indexed Job fails",
        job(parallelism=2, completions=3, backoffLimit=0, **INDEXED),
        indexed(Succeeded="0", Failed="1", Running="2"),
        After(
            deleted=1,
            released=3,
            succeeded=1,
            failed=2,
            terminating=1,
            completed="0",
            conditions=(("FailureTarget", *LIMIT),),
        ),
    ),
    (
        "an index has succeeded twice",
        job(parallelism=2, completions=3, **INDEXED),
        indexed(Succeeded="0 1 1"),
        After(created=1, released=3, active=1, succeeded=2, completed="0,1"),
    ),
    (
        "many indexes run or have succeeded",
        job(parallelism=8, completions=20, **INDEXED),
        indexed(Running="0", Succeeded="2 4 5 7 8 9", Pending="3"),
        After(created=6, released=6, active=8, succeeded=6, completed="2,4,5,7-9"),
    ),
    (
        "indexes have failed",
        job(parallelism=3, completions=4, **INDEXED),
        indexed(Failed="0 2", Pending="1"),
        After(created=2, released=2, active=3, failed=2),
    ),
    (
        "pods without a valid index are deleted and do not count",
        job(parallelism=2, completions=5, **INDEXED),
        pods(Running=1, Succeeded=1, Failed=1)
        + indexed(Running="invalid 1 2", Succeeded="invalid 0", Failed="invalid", Pending="invalid"),
        After(deleted=3, released=8, active=2, succeeded=1, completed="0"),
    ),
    (
        "indexes run twice",
        job(parallelism=5, completions=5, **INDEXED),
        pods(Succeeded=1, Failed=1) + indexed(Running="invalid 1 2", Succeeded="0", Pending="2"),
        After(deleted=2, released=5, active=2, succeeded=1, completed="0"),
    ),
    (
        "indexes are out of range",
        job(parallelism=2, completions=5, **INDEXED),
        indexed(Succeeded="0 6", Running="5", Pending="7", Failed="8"),
        After(deleted=2, released=5, succeeded=1, completed="0"),
    ),
    (
        "a Job is suspended",
        job(parallelism=2, completions=4, suspend=True),
        pods(ready=2),
        After(deleted=2, released=2, conditions=(("Suspended", "JobSuspended", "Job suspended"),)),
    ),
    (
        "a Job is resumed",
        job(
            parallelism=2,
            completions=4,
            suspend=False,
            status={"conditions": [{"type": "Suspended", "status": "True"}]},
        ),
        [],
        After(created=2, active=2, conditions=(("!Suspended", "JobResumed", "Job resumed"),)),
    ),
    (
        "a Job that is being deleted is not suspended",
        job(parallelism=2, completions=4, suspend=True, deleted=True),
        pods(Running=2),
        After(released=2, active=2),
    ),
    (
        "a condition FailureTarget that is false changes nothing",
        job(status={"active": 1, "conditions": [{"type": "FailureTarget", "status": "False", "reason": "ByHand"}]}),
        pods(ready=1),
        After(active=1, ready=1, conditions=(("!FailureTarget", "ByHand", ""),)),
    ),
    (
        "a condition SuccessCriteriaMet that is false changes nothing",
        job(status={"conditions": [{"type": "SuccessCriteriaMet", "status": "False", "reason": "ByHand"}]}),
        pods(ready=1),
        After(active=1, ready=1, conditions=(("!SuccessCriteriaMet", "ByHand", ""),)),
    ),
]  # fmt: skip


@rows("situation, of, present, expected", SITUATIONS, ids=[row[0] for row in SITUATIONS])
def test_one_reconciliation(situation: str, of: Object, present: list[Object], expected: After) -> None:
    assert after(JobPlay(of, *present)) == expected, situation


# -- new pods ---------------------------------------------------------------------------------------------------------


def test_a_new_pod_is_tracked_and_owned() -> None:
    play = JobPlay(job(ttlSecondsAfterFinished=3))
    play.sync()
    [made] = play.pods
    assert made["metadata"]["finalizers"] == [TRACKING]
    assert made["metadata"]["ownerReferences"][0]["controller"] is True
    assert made["metadata"]["labels"] == play.get(JOBS, "default/x")["metadata"]["labels"]
    assert play.done() == [
        "create pods x-",
        "event Normal SuccessfulCreate: Created pod: x-1",
        "update jobs/status x",
    ]


def test_a_pod_of_an_indexed_job_knows_its_index() -> None:
    template = {
        "metadata": {},
        "spec": {"initContainers": [{"name": "i"}], "containers": [{"name": "c", "env": [{"name": "A"}]}]},
    }
    play = JobPlay(job(completions=3, template=template, backoffLimitPerIndex=1, **INDEXED))
    play.sync()
    [made] = play.pods
    source = {"fieldRef": {"fieldPath": f"metadata.labels['{COMPLETION_INDEX}']"}}
    variable = {"name": "JOB_COMPLETION_INDEX", "valueFrom": source}
    assert made["metadata"]["name"].startswith("x-0-")
    assert made["metadata"]["labels"][COMPLETION_INDEX] == made["metadata"]["annotations"][COMPLETION_INDEX] == "0"
    assert made["metadata"]["annotations"][FAILURES] == "0"
    assert made["spec"]["hostname"] == "x-0"
    assert [container["env"] for container in made["spec"]["initContainers"]] == [[variable]]
    assert [container["env"] for container in made["spec"]["containers"]] == [[{"name": "A"}, variable]]


def test_the_name_of_an_indexed_job_is_cut_and_the_index_is_not() -> None:
    long = job(completions=300, **INDEXED)
    long["metadata"]["name"] = "x" * 63
    assert new_pod(long, 123, None)["metadata"]["generateName"] == "x" * 53 + "-123-"


def test_pods_are_created_one_then_two_then_four_until_one_is_refused() -> None:
    refused = ApiError(403, 'pods "x" is forbidden: exceeded quota', "Forbidden")
    created = count()

    def refuse(write: Write) -> ApiError | None:
        return refused if isinstance(write, Create) and next(created) >= 5 else None

    play = JobPlay(job(parallelism=20, completions=20), refuse=refuse)
    with pytest.raises(ApiError):
        play.sync()
    assert len(play.pods) == 5
    assert Counter(play.done()) == {
        "create pods x-": 7,
        **{f"event Normal SuccessfulCreate: Created pod: x-{n}": 1 for n in range(1, 6)},
        'event Warning FailedCreate: Error creating: pods "x" is forbidden: exceeded quota': 2,
        "update jobs/status x": 1,
    }
    assert play.status["active"] == 5


def test_nothing_is_said_about_pods_that_a_namespace_refuses_because_it_ends() -> None:
    details = {"causes": [{"reason": "NamespaceTerminating"}]}
    play = JobPlay(
        job(), refuse=lambda write: ApiError(403, "no", "Forbidden", details) if isinstance(write, Create) else None
    )
    play.sync()
    assert play.done() == ["create pods x-", "update jobs/status x"]


# -- failures ---------------------------------------------------------------------------------------------------------


def test_failed_pods_are_replaced_after_10_20_and_40_seconds() -> None:
    play = JobPlay(job(backoffLimit=3))
    play.sync()
    delays = []
    for _ in range(3):
        play.pass_time(1)
        play.end_pods("Failed")
        delay = play.sync()
        delays.append(delay)
        assert delay is not None
        assert "create" not in " ".join(play.done()[3:])
        play.pass_time(delay)
        play.sync()
    assert delays == [10, 20, 40]
    assert (play.status["failed"], play.status["active"]) == (3, 1)
    play.end_pods("Failed")
    play.sync()
    assert play.conditions == [("FailureTarget", *LIMIT), ("Failed", *LIMIT)]
    assert play.done()[-1] == "event Warning BackoffLimitExceeded: Job has reached the specified backoff limit"
    assert play.sync() is None
    assert play.done() == []
    assert play.backoffs == {}


def test_a_success_ends_the_delay() -> None:
    play = JobPlay(job(parallelism=1, completions=3), pod("Succeeded", created=NOW), backoff=Backoff(4, NOW))
    assert play.sync() is None
    assert play.status["active"] == 1


def test_without_pods_a_job_waits_for_the_delay() -> None:
    play = JobPlay(job(), backoff=Backoff(1, NOW))
    play.pass_time(4)
    assert play.sync() == 6
    assert play.pods == []


def test_restarts_in_place_count_towards_the_limit() -> None:
    template = {"metadata": {}, "spec": {"restartPolicy": "OnFailure", "containers": [{"name": "c"}]}}
    for limit, restarts, fails in (
        (1, 0, False),
        (1, 1, True),
        (3, 2, False),
        (3, 3, True),
        (0, 0, False),
        (0, 1, True),
    ):
        running = pod(containerStatuses=[{"name": "c", "restartCount": restarts}])
        play = JobPlay(job(template=template, backoffLimit=limit), running)
        play.sync(2)
        assert ("Failed", *LIMIT) in play.conditions or not fails, (limit, restarts)
        assert bool(play.conditions) is fails, (limit, restarts)


DEADLINE = ("DeadlineExceeded", "Job was active longer than specified deadline")


def test_a_job_fails_at_its_deadline() -> None:
    play = JobPlay(job(activeDeadlineSeconds=10))
    assert play.sync() == 10
    play.pass_time(10)
    play.sync(2)
    assert play.conditions == [("FailureTarget", *DEADLINE), ("Failed", *DEADLINE)]
    assert play.pods == []
    assert "event Warning DeadlineExceeded: Job was active longer than specified deadline" in play.done()


def test_the_time_of_a_suspended_job_stands_still() -> None:
    play = JobPlay(job(activeDeadlineSeconds=10))
    play.sync()
    play.pass_time(9)
    play.change(suspend=True)
    assert play.sync() is None
    assert play.pods == []
    play.pass_time(100)
    assert play.sync() is None
    play.change(suspend=False)
    assert play.sync() == 10
    assert play.status["startTime"] == format_time(NOW + timedelta(seconds=109))
    assert [text for text in play.done() if "event" in text] == [
        "event Normal SuccessfulCreate: Created pod: x-1",
        "event Normal SuccessfulDelete: Deleted pod: x-1",
        "event Normal Suspended: Job suspended",
        "event Normal SuccessfulCreate: Created pod: x-2",
        "event Normal Resumed: Job resumed",
    ]


def test_a_job_that_begins_suspended_has_no_start() -> None:
    play = JobPlay(job(suspend=True))
    play.sync()
    assert "startTime" not in play.status
    assert play.conditions == [("Suspended", "JobSuspended", "Job suspended")]
    play.done()
    play.sync()
    assert play.done() == []


def test_a_failure_policy_ignores_disruptions_and_fails_on_a_code() -> None:
    rules = [
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
        {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [1]}},
    ]
    play = JobPlay(job(podFailurePolicy={"rules": rules}, backoffLimit=0))
    play.sync()
    play.end_pods("Failed", conditions=[{"type": "DisruptionTarget", "status": "True"}])
    assert play.sync() == 10
    assert "failed" not in play.status
    play.pass_time(10)
    play.sync()
    play.end_pods("Failed")
    play.sync()
    message = "Container c for pod default/x-2 failed with exit code 1 matching FailJob rule at index 1"
    assert play.conditions == [("FailureTarget", "PodFailurePolicy", message), ("Failed", "PodFailurePolicy", message)]
    assert play.status["failed"] == 1


# -- indexes ----------------------------------------------------------------------------------------------------------


def fail(play: JobPlay, index: int, code: int = 1) -> None:
    """The running pod of an index fails now."""
    terminated = {"exitCode": code, "finishedAt": format_time(play.now)}
    for found in play.pods:
        if found["status"]["phase"] == "Pending" and found["metadata"]["annotations"][COMPLETION_INDEX] == str(index):
            status = {"phase": "Failed", "containerStatuses": [{"name": "c", "state": {"terminated": terminated}}]}
            play.add(PODS, {**found, "status": status})


def test_each_index_has_a_limit_and_a_delay_of_its_own() -> None:
    play = JobPlay(job(completions=2, parallelism=2, backoffLimitPerIndex=1, backoffLimit=2**31 - 1, **INDEXED))
    play.sync()
    fail(play, 0)
    assert play.sync() == 10
    assert play.status["failedIndexes"] == ""
    kept = [found for found in play.pods if TRACKING in found["metadata"].get("finalizers", ())]
    assert len(kept) == 2  # the failed one waits until its successor has its count
    play.pass_time(10)
    play.sync(2)
    assert play.indexes_of("Pending") == ["0", "1"]
    counts = {found["metadata"]["name"]: found["metadata"]["annotations"][FAILURES] for found in play.pods}
    assert sorted(counts.values()) == ["0", "0", "1"]
    assert play.status["failed"] == 1
    fail(play, 0)
    play.sync()
    assert play.status["failedIndexes"] == "0"
    assert play.conditions == []
    play.end_pods("Succeeded")
    play.sync()
    failed = ("FailedIndexes", "Job has failed indexes")
    assert play.conditions == [("FailureTarget", *failed), ("Failed", *failed)]
    assert (play.status["completedIndexes"], play.status["succeeded"], play.status["failed"]) == ("1", 1, 2)


def test_a_job_fails_with_too_many_failed_indexes() -> None:
    of = job(completions=4, parallelism=4, backoffLimitPerIndex=0, maxFailedIndexes=1, **INDEXED)
    play = JobPlay(of, *indexed(Failed="0 2", Running="1 3"))
    play.sync(2)
    many = ("MaxFailedIndexesExceeded", "Job has exceeded the specified maximal number of failed indexes")
    assert play.conditions == [("FailureTarget", *many), ("Failed", *many)]
    assert play.status["failedIndexes"] == "0,2"


def test_a_policy_fails_an_index_at_once() -> None:
    rules = [{"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [3]}}]
    of = job(completions=2, parallelism=2, backoffLimitPerIndex=5, podFailurePolicy={"rules": rules}, **INDEXED)
    play = JobPlay(of)
    play.sync()
    fail(play, 1, code=3)
    play.sync()
    assert play.status["failedIndexes"] == "1"
    assert play.indexes_of("Pending") == ["0"]


def test_a_success_policy_ends_a_job_before_all_indexes_have_succeeded() -> None:
    of = job(
        completions=5,
        parallelism=5,
        successPolicy={"rules": [{"succeededIndexes": "0-2", "succeededCount": 1}]},
        **INDEXED,
    )
    play = JobPlay(of, *indexed(Succeeded="1", Running="0 2 3 4"))
    play.sync(2)
    met = ("SuccessPolicy", "Matched rules at index 0")
    assert play.conditions == [("SuccessCriteriaMet", *met), ("Complete", *met)]
    assert (play.status["succeeded"], play.status.get("failed")) == (1, None)
    assert play.indexes_of("Running") == []


def test_an_indexed_job_grows_and_shrinks() -> None:
    play = JobPlay(job(completions=2, parallelism=2, **INDEXED))
    play.sync()
    play.change(completions=4, parallelism=4)
    play.sync()
    assert play.indexes_of("Pending") == ["0", "1", "2", "3"]
    play.change(completions=1, parallelism=1)
    play.sync()
    assert play.indexes_of("Pending") == ["0"]
    play.end_pods("Succeeded")
    play.sync()
    assert tuple(play.conditions) == COMPLETE


# -- whose pods they are ----------------------------------------------------------------------------------------------


def test_a_job_of_another_manager_is_left_alone() -> None:
    play = JobPlay(job(managedBy="example.com/queue"), pod("Succeeded"))
    play.sync()
    assert play.done() == []


def test_a_pod_that_nothing_controls_is_adopted_with_the_finalizer() -> None:
    orphan = pod(counted=True)
    del orphan["metadata"]["ownerReferences"]
    play = JobPlay(job(), orphan)
    play.sync()
    [found] = play.pods
    assert (found["metadata"]["finalizers"], controller_of(found)["uid"]) == ([TRACKING], JOB_UID)  # type: ignore[index]
    assert play.status["active"] == 1


def test_pods_lose_the_finalizer_with_their_job() -> None:
    orphan = pod()
    del orphan["metadata"]["ownerReferences"]
    play = JobPlay(job(), orphan, pod(), pod("Succeeded", counted=True))
    play.objects.remove(JOBS, NamespacedName("default", "x"))
    play.sync()
    play.run(play.steps, "default/pod/x-1")
    assert play.done() == ["update pods x-2", "update pods x-1"]
    assert not any(found["metadata"].get("finalizers") for found in play.pods)


def test_pods_lose_the_finalizer_when_their_job_has_ended() -> None:
    play = JobPlay(job(status={"conditions": [{"type": "Complete", "status": "True"}]}), pod())
    play.sync()
    assert play.done() == ["update pods x-1"]


def test_whom_a_change_concerns() -> None:
    play = JobPlay(job(), pod())
    [owned] = play.pods
    alone = {**owned, "metadata": {**owned["metadata"], "ownerReferences": []}}
    moved = {**alone, "metadata": {**alone["metadata"], "labels": {}, "finalizers": []}}

    def concerned(kind: Kind, old: Object | None, new: Object | None) -> list[str]:
        return [f"{namespace}/{name}" for namespace, name in affected_jobs(play.objects, kind, old, new)]

    assert concerned(JOBS, None, job()) == ["default/x"]
    assert concerned(PODS, None, owned) == concerned(PODS, owned, None) == ["default/x"]
    assert concerned(PODS, owned, alone) == ["default/x", "default/pod/x-1", "default/x"]
    assert concerned(PODS, alone, alone) == ["default/pod/x-1"]
    assert concerned(PODS, moved, moved) == []
    assert concerned(PODS, moved, {**alone, "metadata": {**alone["metadata"], "finalizers": []}}) == ["default/x"]


def test_a_job_that_settles_writes_its_status_once_a_burst() -> None:
    play = JobPlay(job(parallelism=30, completions=30))
    play.sync()
    play.done()
    play.end_pods("Succeeded")
    play.sync()
    written = Counter(text for text in play.done() if text.startswith("update jobs"))
    assert written == {"update jobs/status x": 2}  # the uids, and then the counts and the end


def test_more_than_500_pods_are_counted_in_turns() -> None:
    play = JobPlay(job(parallelism=600, completions=600), *pods(Succeeded=600))
    play.sync()
    assert (play.status["succeeded"], tuple(play.conditions)) == (500, COMPLETE[:1])
    play.sync()
    assert (play.status["succeeded"], tuple(play.conditions)) == (600, COMPLETE)
