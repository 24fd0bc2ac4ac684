"""The delays before failed pods are replaced (upstream's backoff_utils_test.go)."""

from __future__ import annotations

from datetime import datetime, timedelta

from noxu.go.time import format_time
from noxu.values import Object
from noxu.workloads.job.backoff import Backoff, finished_at
from tests.rows import rows
from tests.workloads.job.situations import pod
from tests.workloads.plays import NOW


def at(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def ended(*seconds: int) -> list[Object]:
    """Pods that ended so many seconds after NOW."""
    return [pod("Failed", created=at(second)) for second in seconds]


@rows(
    "before, succeeded, failed, expected",
    [
        (Backoff(), [], [], Backoff()),
        (Backoff(), [], [3], Backoff(1, at(3))),
        (Backoff(1, at(1)), [], [], Backoff(1, at(1))),
        (Backoff(1, at(1)), [], [9, 5], Backoff(3, at(9))),
        (Backoff(4, at(1)), [5], [], Backoff()),
        (Backoff(4, at(1)), [5], [3, 4], Backoff()),
        (Backoff(4, at(1)), [5], [3, 8, 6], Backoff(2, at(8))),
        (Backoff(4, at(1)), [5], [5], Backoff()),
    ],
)
def test_failures_count_since_the_last_success(
    before: Backoff, succeeded: list[int], failed: list[int], expected: Backoff
) -> None:
    assert before.after(ended(*succeeded), ended(*failed)) == expected


@rows(
    "failures, since, expected",
    [(0, 0, 0), (1, 0, 10), (1, 4, 6), (1, 10, 0), (1, 70, 0), (2, 0, 20), (3, 5, 35), (6, 0, 320), (7, 0, 600),
     (400, 0, 600)],
)  # fmt: skip
def test_the_delay_is_doubled_with_each_failure(failures: int, since: float, expected: float) -> None:
    assert Backoff(failures, at(0)).remaining(at(since)) == expected


def container(name: str, second: int | None) -> Object:
    state = {"running": {}} if second is None else {"terminated": {"finishedAt": format_time(at(second))}}
    return {"name": name, "state": state}


UNREADY = {"type": "Ready", "status": "False", "lastTransitionTime": format_time(at(50))}
DELETED = {"deletionTimestamp": format_time(at(40)), "deletionGracePeriodSeconds": 30}


@rows(
    "situation, status, metadata, expected",
    [
        ("the last container that ended", {"containerStatuses": [container("a", 5), container("b", 7)]}, {}, 7),
        ("a sidecar ends later", {"containerStatuses": [container("a", 5)], "initContainerStatuses": [container("sidecar", 9), container("init", 60)]}, {}, 9),
        ("one still runs, and the pod is not ready", {"containerStatuses": [container("a", 5), container("b", None)], "conditions": [UNREADY]}, {}, 50),
        ("it is not ready", {"conditions": [UNREADY]}, DELETED, 50),
        ("it was deleted", {}, DELETED, 10),
        ("nothing is known", {}, {}, 1),
    ],
)  # fmt: skip
def test_when_a_pod_has_ended(situation: str, status: Object, metadata: Object, expected: int) -> None:
    made = pod("Failed", created=at(1))
    made["spec"]["initContainers"] = [{"name": "sidecar", "restartPolicy": "Always"}, {"name": "init"}]
    made["metadata"] |= metadata
    made["status"] = status
    assert finished_at(made) == at(expected), situation
