"""Which of two pods is deleted first (TestSortingActivePodsWithRanks of controller_utils_test.go), and how many."""

from __future__ import annotations

from noxu.values import Object
from noxu.workloads.pod_ranks import DELETION_COST, deletion_cost, pods_to_delete
from tests.rows import rows
from tests.workloads.plays import NOW
from tests.workloads.replicas import ago, pod


def costs(cost: str) -> Object:
    return {"metadata": {"annotations": {DELETION_COST: cost}}}


def created(seconds: float) -> Object:
    return {"metadata": {"creationTimestamp": ago(seconds)}}


def restarts(*counts: int) -> Object:
    containers = [{"name": f"c{n}", "restartCount": count} for n, count in enumerate(counts)]
    return {"status": {"containerStatuses": containers}}


@rows(
    "first, second",
    [
        ("unassigned", "on a node"),
        ("pending", "running"),
        ("unknown", "running"),
        ("pending", "unknown"),
        ("not ready", "ready for an hour"),
        ("not ready", "cheap"),
        ("cheap", "ready for an hour"),
        ("ready for an hour", "expensive"),
        ("cheap", "expensive"),
        ("beside another one", "ready for an hour"),
        ("beside another one", "ready for a second"),
        ("cheap", "beside another one"),
        ("ready for a second", "ready for an hour"),
        ("ready at an unknown time", "ready for a second"),
        ("restarted thrice", "restarted twice"),
        ("restarted twice", "ready for an hour"),
        ("ready for a second", "restarted thrice"),
        ("created a minute ago", "created an hour ago"),
        ("created at an unknown time", "created a minute ago"),
        ("created 3605 s ago", "created an hour ago"),
        ("ready for 3605 s", "ready for an hour"),
    ],
)
def test_the_first_of_two_pods_is_deleted_first(first: str, second: str) -> None:
    two = [pod_that(first), pod_that(second)]
    beside = pod("third", ready=3600, spec={"nodeName": "node-9"})
    for pods in (two, two[::-1]):
        chosen = pods_to_delete(pods, [*pods, beside], 1, NOW)
        assert [found["metadata"]["name"] for found in chosen] == [first]


def pod_that(is_so: str) -> Object:
    made: Object = {
        "unassigned": {"ready": None, "spec": {"nodeName": ""}},
        "on a node": {"ready": None},
        "pending": {"ready": None, "status": {"phase": "Pending"}},
        "unknown": {"ready": None, "status": {"phase": "Unknown"}},
        "running": {"ready": None},
        "not ready": {"ready": None},
        "cheap": {"ready": 3600, **costs("-10")},
        "expensive": {"ready": 1, **costs("10")},
        "beside another one": {"ready": 3600, "spec": {"nodeName": "node-9"}},
        "ready for a second": {"ready": 1},
        "ready for an hour": {"ready": 3600, **created(7200)},
        "ready for 3605 s": {"ready": 3605, **created(1)},
        "ready at an unknown time": {"status": {"conditions": [{"type": "Ready", "status": "True"}]}},
        "restarted twice": {"ready": 3600, **restarts(2, 1)},
        "restarted thrice": {"ready": 3600, **restarts(0, 3)},
        "created a minute ago": {"ready": 3600, **created(60)},
        "created an hour ago": {"ready": 3600, **created(3600)},
        "created 3605 s ago": {"ready": 3600, **created(3605)},
        "created at an unknown time": {"ready": 3600},
    }[is_so]
    made = pod(is_so, **made)
    # about the same age: the uid decides
    made["metadata"]["uid"] = "a" if "3605" in is_so else "b"
    return made


@rows(
    "text, cost",
    [("0", 0), ("100", 100), ("-100", -100), ("+100", 0), ("010", 0), ("a", 0), ("1.5", 0), ("2147483648", 0)],
)
def test_a_deletion_cost_that_is_no_number_is_0(text: str, cost: int) -> None:
    assert deletion_cost(pod("web-1", **costs(text))) == cost


def test_no_more_pods_are_deleted_than_there_are() -> None:
    pods = [pod("a"), pod("b")]
    assert pods_to_delete(pods, pods, 3, NOW) == pods
