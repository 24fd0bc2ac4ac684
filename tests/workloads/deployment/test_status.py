"""The status of a Deployment: tables of progress_test.go, deployment_util_test.go and sync_test.go."""

from __future__ import annotations

from typing import Any

from noxu.values import Object
from noxu.workloads.deployment.status import (
    NO_DEADLINE,
    counted,
    has_progressed,
    is_complete,
    new_condition,
    seconds_left,
    with_new,
    with_pause,
    with_progress,
    without,
)
from noxu.workloads.pods import condition
from tests.rows import rows
from tests.workloads.deployments import deployment, revision
from tests.workloads.plays import NOW
from tests.workloads.replicas import ago

BEFORE = ago(30)


def progressing(status: str, reason: str, since: str = BEFORE) -> Object:
    return {
        "type": "Progressing",
        "status": status,
        "reason": reason,
        "lastUpdateTime": since,
        "lastTransitionTime": since,
    }


UPDATED = progressing("True", "ReplicaSetUpdated")
AVAILABLE = progressing("True", "NewReplicaSetAvailable")
TIMED_OUT = progressing("False", "ProgressDeadlineExceeded")
STUCK = progressing("True", "ReplicaSetUpdated", ago(60))


def current(deadline: int | None, replicas: int, counts: tuple[int, int, int], *conditions: Object) -> Object:
    """A Deployment. `counts`: replicas, updated and available ones of its status."""
    names = ("replicas", "updatedReplicas", "availableReplicas")
    return deployment(
        replicas,
        strategy="Recreate",
        spec={"progressDeadlineSeconds": deadline},
        status={**dict(zip(names, counts, strict=True)), "conditions": [*conditions], "observedGeneration": 1},
    )


ROLLOUTS: list[tuple[str, Object, list[Object], Object | None, tuple[str, ...] | None]] = [
    (
        "without a deadline there is no condition",
        current(None, 3, (2, 2, 2), UPDATED),
        [revision("bar", 0, has=1, available=1)],
        revision("foo", 3, has=2, available=2),
        None,
    ),
    (
        "a deadline without end is none",
        current(NO_DEADLINE, 3, (2, 2, 2), UPDATED),
        [],
        revision("foo", 3, has=2, available=2),
        None,
    ),
    (
        "a complete roll-out stays complete",
        current(60, 3, (3, 3, 3), AVAILABLE),
        [],
        revision("foo", 3, available=1),
        ("True", "NewReplicaSetAvailable", BEFORE, BEFORE),
    ),
    (
        "an old pod is gone",
        current(60, 3, (3, 2, 2), UPDATED),
        [],
        revision("foo", 3, has=2, available=2),
        ("True", "ReplicaSetUpdated", ago(0), BEFORE),
    ),
    (
        "it goes on after its deadline",
        current(60, 3, (3, 2, 2), TIMED_OUT),
        [],
        revision("foo", 3, has=2, available=2),
        ("True", "ReplicaSetUpdated", ago(0), ago(0)),
    ),
    (
        "it has no condition yet",
        current(60, 3, (3, 2, 2)),
        [],
        revision("foo", 3, has=2, available=2),
        ("True", "ReplicaSetUpdated", ago(0), ago(0)),
    ),
    (
        "it becomes complete",
        current(60, 3, (3, 3, 3), UPDATED),
        [],
        revision("foo", 3),
        ("True", "NewReplicaSetAvailable", ago(0), BEFORE),
    ),
    (
        "it becomes complete after its deadline",
        current(60, 3, (3, 3, 3), TIMED_OUT),
        [],
        revision("foo", 3),
        ("True", "NewReplicaSetAvailable", ago(0), ago(0)),
    ),
    (
        "it is complete without a new one",
        current(60, 0, (3, 3, 3), UPDATED),
        [revision("foo", 0)],
        None,
        ("True", "NewReplicaSetAvailable", ago(0), BEFORE),
    ),
    (
        "the deadline is exceeded",
        current(60, 3, (2, 2, 2), STUCK),
        [],
        revision("foo", 3, has=2, available=2),
        ("False", "ProgressDeadlineExceeded", ago(0), ago(0)),
    ),
    (
        "the deadline was exceeded before",
        current(60, 3, (2, 2, 2), TIMED_OUT),
        [],
        revision("foo", 3, has=2, available=2),
        ("False", "ProgressDeadlineExceeded", BEFORE, BEFORE),
    ),
    (
        "there is time left",
        current(60, 3, (2, 2, 2), UPDATED),
        [],
        revision("foo", 3, has=2, available=2),
        ("True", "ReplicaSetUpdated", BEFORE, BEFORE),
    ),
]


@rows("situation, given, old, new, expected", ROLLOUTS)
def test_a_roll_out_progresses(
    situation: str, given: Object, old: list[Object], new: Object | None, expected: tuple[str, ...] | None
) -> None:
    status = with_progress(given, counted(given, new, old, NOW), new, old, NOW)
    found = condition({"status": status}, "Progressing")
    names = ("status", "reason", "lastUpdateTime", "lastTransitionTime")
    assert (found and tuple(found[name] for name in names)) == expected, situation


MESSAGES: list[tuple[Object, Object | None, str]] = [
    (current(60, 3, (3, 3, 3), UPDATED), revision("foo", 3), 'ReplicaSet "foo" has successfully progressed.'),
    (current(60, 0, (3, 3, 3), UPDATED), None, 'Deployment "web" has successfully progressed.'),
    (
        current(60, 3, (3, 2, 2)),
        revision("foo", 3, has=2, available=2),
        'ReplicaSet "foo" is progressing.',
    ),
    (
        current(60, 3, (2, 2, 2), STUCK),
        revision("foo", 3, has=2, available=2),
        'ReplicaSet "foo" has timed out progressing.',
    ),
]


@rows("given, new, message", MESSAGES)
def test_the_condition_says_what_happens(given: Object, new: Object | None, message: str) -> None:
    status = with_progress(given, counted(given, new, [], NOW), new, [], NOW)
    assert (condition({"status": status}, "Progressing") or {})["message"] == message


@rows(
    "situation, given, expected",
    [
        ("no deadline", current(None, 4, (3, 3, 2)), None),
        ("no condition", current(60, 4, (3, 3, 2)), None),
        ("complete", current(60, 3, (3, 3, 3), UPDATED), None),
        ("was complete: only a change of pods matters", current(60, 3, (3, 3, 1), AVAILABLE), None),
        ("exceeded already", current(60, 3, (3, 3, 0), TIMED_OUT), None),
        ("half of it is left", current(60, 3, (3, 3, 1), UPDATED), 30.0),
        ("it is now", current(60, 3, (3, 3, 1), STUCK), 0.0),
        ("it was", current(10, 3, (3, 3, 1), STUCK), -50.0),
    ],
)
def test_the_seconds_until_the_deadline(situation: str, given: Object, expected: float | None) -> None:
    assert seconds_left(given, given["status"], NOW) == expected, situation


@rows(
    "situation, replicas, counts, expected",
    [
        ("one is not available", 5, (5, 5, 4), False),
        ("all are new and available", 5, (5, 5, 5), True),
        ("one is not new", 5, (5, 4, 5), False),
        ("an old one still runs", 1, (2, 1, 1), False),
        ("none is available", 1, (1, 1, 0), False),
        ("none is wanted", 0, (0, 0, 0), True),
    ],
)
def test_a_roll_out_is_complete(situation: str, replicas: int, counts: tuple[int, int, int], expected: bool) -> None:
    given = current(60, replicas, counts)
    assert is_complete(given, given["status"]) is expected, situation
    unseen = deployment(replicas, metadata={"generation": 2}, status=given["status"])
    assert not is_complete(unseen, given["status"])


@rows(
    "situation, before, after, expected",
    [
        ("more are new", (10, 4, 4, 4), (10, 6, 4, 4), True),
        ("nothing", (10, 4, 4, 4), (10, 4, 4, 4), False),
        ("fewer are old", (10, 4, 4, 4), (8, 4, 4, 4), True),
        ("fewer are ready", (10, 4, 7, 7), (10, 4, 3, 3), False),
        ("fewer are new, and more are old", (10, 4, 4, 4), (10, 2, 4, 4), False),
        ("fewer are old, and fewer are new", (10, 4, 4, 4), (5, 2, 2, 2), True),
        ("more are ready", (10, 10, 9, 8), (10, 10, 10, 8), True),
        ("more are available", (10, 10, 10, 8), (10, 10, 10, 9), True),
    ],
)
def test_progress_is_more_new_or_fewer_old_pods(
    situation: str, before: tuple[int, ...], after: tuple[int, ...], expected: bool
) -> None:
    names = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
    then, now = (dict(zip(names, counts, strict=True)) for counts in (before, after))
    assert has_progressed(then, now) is expected, situation


def test_the_counters_are_those_of_all_replica_sets() -> None:
    new = revision("new", 2, available=1, readyReplicas=2)
    old = [revision("old", 3, available=2, readyReplicas=3, terminatingReplicas=1)]
    given = deployment(4, 1, 1, metadata={"generation": 7}, status={"collisionCount": 2, "replicas": 99})
    status = counted(given, new, old, NOW)
    assert status.pop("conditions") == [
        new_condition("Available", "True", "MinimumReplicasAvailable", "Deployment has minimum availability.", NOW)
    ]
    assert status == {
        "observedGeneration": 7,
        "replicas": 5,
        "updatedReplicas": 2,
        "readyReplicas": 5,
        "availableReplicas": 3,
        "unavailableReplicas": 2,
        "terminatingReplicas": 1,
        "collisionCount": 2,
    }


def test_more_available_than_wanted_is_not_negative() -> None:
    status = counted(deployment(1), revision("new", 1, has=3, available=3), [], NOW)
    assert "unavailableReplicas" not in status


def test_terminating_ones_are_unknown_if_a_replica_set_does_not_say() -> None:
    silent = revision("old", 1)
    del silent["status"]["terminatingReplicas"]
    assert "terminatingReplicas" not in counted(deployment(), revision("new", 1), [silent], NOW)


@rows(
    "given, available, reason",
    [
        (deployment(3, 0, 1), 2, "MinimumReplicasAvailable"),
        (deployment(3, 0, 1), 1, "MinimumReplicasUnavailable"),
        (deployment(3, 1, 0), 2, "MinimumReplicasUnavailable"),
        (deployment(0), 0, "MinimumReplicasAvailable"),
        (deployment(2, strategy="Recreate"), 1, "MinimumReplicasUnavailable"),
    ],
)
def test_it_is_available_with_as_many_pods_as_must_be(given: Object, available: int, reason: str) -> None:
    status = counted(given, revision("new", 3, available=available), [], NOW)
    assert (condition({"status": status}, "Available") or {})["reason"] == reason


def failing(name: str) -> Object:
    made = revision(name, 1)
    failure = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": name}
    made["status"]["conditions"] = [{**failure, "lastTransitionTime": BEFORE}]
    return made


@rows(
    "new, old, message",
    [
        (failing("new"), [failing("old")], "new"),
        (revision("new", 1), [failing("old")], "old"),
        (None, [failing("old")], "old"),
        (revision("new", 1), [], None),
    ],
)
def test_a_failure_of_a_replica_set_is_told(new: Object | None, old: list[Object], message: str | None) -> None:
    given = deployment(status={"conditions": [{"type": "ReplicaFailure", "status": "False", "reason": "Other"}]})
    status = with_progress(given, counted(given, new, old, NOW), new, old, NOW)
    found = condition({"status": status}, "ReplicaFailure")
    assert (found and found["message"]) == message
    if found:
        assert found["lastUpdateTime"] == found["lastTransitionTime"] == BEFORE


PAUSED = progressing("Unknown", "DeploymentPaused")


@rows(
    "situation, paused, conditions, reason",
    [
        ("paused", True, [UPDATED], "DeploymentPaused"),
        ("paused before its first condition", True, [], "DeploymentPaused"),
        ("still paused", True, [PAUSED], "DeploymentPaused"),
        ("resumed", False, [PAUSED], "DeploymentResumed"),
        ("not paused", False, [UPDATED], "ReplicaSetUpdated"),
        ("paused after its deadline", True, [TIMED_OUT], "ProgressDeadlineExceeded"),
    ],
)
def test_a_pause_is_noted(situation: str, paused: bool, conditions: list[Object], reason: str) -> None:
    given = deployment(spec={"paused": paused}, status={"conditions": conditions})
    found = condition({"status": with_pause(given, NOW)}, "Progressing") or {}
    assert found["reason"] == reason, situation


def test_without_a_deadline_a_pause_is_not_noted() -> None:
    given = deployment(spec={"paused": True, "progressDeadlineSeconds": None})
    assert with_pause(given, NOW) == {}


CONDITION: dict[str, Any] = {"type": "Available", "status": "True", "reason": "A", "lastTransitionTime": BEFORE}


@rows(
    "situation, new, after",
    [
        ("the same", {**CONDITION, "lastTransitionTime": ago(0)}, [CONDITION, UPDATED]),
        (
            "another reason",
            {**CONDITION, "reason": "B", "lastTransitionTime": ago(0)},
            [UPDATED, {**CONDITION, "reason": "B"}],
        ),
        (
            "another status",
            {**CONDITION, "status": "False", "lastTransitionTime": ago(0)},
            [UPDATED, {**CONDITION, "status": "False", "lastTransitionTime": ago(0)}],
        ),
        ("a new one", PAUSED | {"type": "Other"}, [CONDITION, UPDATED, PAUSED | {"type": "Other"}]),
    ],
)
def test_conditions_are_replaced(situation: str, new: Object, after: list[Object]) -> None:
    assert with_new({"conditions": [CONDITION, UPDATED]}, new)["conditions"] == after, situation


def test_the_last_condition_leaves_no_list() -> None:
    assert without({"replicas": 1, "conditions": [CONDITION]}, "Available") == {"replicas": 1}
