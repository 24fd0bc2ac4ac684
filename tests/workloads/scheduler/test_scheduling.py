"""The scheduler: what it binds, what it says, when it tries again, and what always holds."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from noxu.api.errors import ApiError
from noxu.values import Object
from noxu.workloads.objects import NODES, PODS
from noxu.workloads.pods import condition
from noxu.workloads.scheduler.resources import amounts, requests_of
from noxu.workloads.scheduler.scheduling import BATCH, Scheduling
from noxu.workloads.writes import Bind, NamespacedName, NewEvent, Write
from tests.rows import rows
from tests.workloads.plays import Play
from tests.workloads.scheduler.clusters import indexed, node, pod, schedule

A, B, C = node("a"), node("b"), node("c")
TAINTED = node("t", spec={"taints": [{"key": "gpu", "effect": "NoSchedule"}]})


def play_of(nodes: list[Object], pods: list[Object]) -> Play:
    play = Play(*((NODES, it) for it in nodes), *((PODS, it) for it in pods))
    play.run(schedule, "queue")
    return play


def where(play: Play) -> dict[str, str]:
    return {it["metadata"]["name"]: it["spec"].get("nodeName", "") for it in play.objects.all(PODS)}


@rows(
    "what, nodes, pods, expected",
    [
        ("a pod", [A], [pod("web")], {"web": "a"}),
        ("equal nodes: the first by name", [B, A], [pod("web")], {"web": "a"}),
        ("the emptiest node", [A, B], [pod("db", "a", requests={"cpu": "1"}), pod("web")], {"db": "a", "web": "b"}),
        (
            "pods that request nothing are spread, too",
            [A, B, C],
            [pod(n) for n in "xyz"],
            {"x": "a", "y": "b", "z": "c"},
        ),
        ("another scheduler's", [A], [pod("web", schedulerName="mine")], {"web": ""}),
        (
            "one that is being deleted",
            [A],
            [pod("web", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})],
            {"web": ""},
        ),
        ("one that has ended", [A], [pod("web", status={"phase": "Failed"})], {"web": ""}),
        (
            "the most important first",
            [A],
            [
                pod("low", requests={"cpu": "3"}, priority=1, preemptionPolicy="Never"),
                pod("high", requests={"cpu": "3"}, priority=2),
            ],
            {"low": "", "high": "a"},
        ),
        (
            "of equal ones the oldest",
            [A],
            [pod("new", requests={"cpu": "3"}, created="2026-01-02T00:00:00Z"), pod("old", requests={"cpu": "3"})],
            {"new": "", "old": "a"},
        ),
        (
            "a preferred label",
            [A, node("b", labels={"disk": "ssd"})],
            [
                pod(
                    "web",
                    affinity={
                        "nodeAffinity": {
                            "preferredDuringSchedulingIgnoredDuringExecution": [
                                {
                                    "weight": 1,
                                    "preference": {"matchExpressions": [{"key": "disk", "operator": "Exists"}]},
                                }
                            ]
                        }
                    },
                )
            ],
            {"web": "b"},
        ),
        (
            "a soft taint",
            [node("a", spec={"taints": [{"key": "x", "effect": "PreferNoSchedule"}]}), B],
            [pod("web")],
            {"web": "b"},
        ),
        (
            "near others, if possible",
            [A, B],
            [
                pod("db", "b", labels={"app": "db"}),
                pod(
                    "web",
                    affinity={
                        "podAffinity": {
                            "preferredDuringSchedulingIgnoredDuringExecution": [
                                {
                                    "weight": 1,
                                    "podAffinityTerm": {
                                        "topologyKey": "kubernetes.io/hostname",
                                        "labelSelector": {"matchLabels": {"app": "db"}},
                                    },
                                }
                            ]
                        }
                    },
                ),
            ],
            {"db": "b", "web": "b"},
        ),
        (
            "spread, if possible",
            [A, node("b", cpu="1")],
            [
                pod("one", "a", labels={"app": "web"}),
                pod(
                    "two",
                    labels={"app": "web"},
                    topologySpreadConstraints=[
                        {
                            "topologyKey": "kubernetes.io/hostname",
                            "maxSkew": 1,
                            "whenUnsatisfiable": "ScheduleAnyway",
                            "labelSelector": {"matchLabels": {"app": "web"}},
                        }
                    ],
                ),
            ],
            {"one": "a", "two": "b"},
        ),
    ],
)
def test_where_pods_go(what: str, nodes: list[Object], pods: list[Object], expected: dict[str, str]) -> None:
    assert where(play_of(nodes, pods)) == expected


NAMED = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["t"]}]}]
        }
    }
}


@rows(
    "what, nodes, wanted, expected",
    [
        ("no nodes", [], pod("web"), "no nodes available to schedule pods"),
        (
            "too much",
            [A, B],
            pod("web", requests={"cpu": "9"}),
            "0/2 nodes are available: 2 Insufficient cpu. "
            "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.",
        ),
        (
            "different reasons are counted, and sorted as texts",
            [A, B, TAINTED],
            pod("web", requests={"cpu": "9", "memory": "9Gi"}),
            "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu, 2 Insufficient memory. "
            "preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.",
        ),
        (
            "before any node is looked at",
            [A, B],
            pod("web", volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]),
            '0/2 nodes are available: persistentvolumeclaim "data" not found. '
            "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.",
        ),
        (
            "the node that it names",
            [A, B, TAINTED],
            pod("web", affinity=NAMED),
            "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 node(s) didn't satisfy plugin(s) [NodeAffinity]. "
            "preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.",
        ),
    ],
)
def test_why_a_pod_waits(what: str, nodes: list[Object], wanted: Object, expected: str) -> None:
    play = play_of(nodes, [wanted])
    assert play.done() == ["update pods/status web", f"event Warning FailedScheduling: {expected}"]
    found = condition(play.get(PODS, "default/web"), "PodScheduled") or {}
    assert (found["status"], found["reason"], found["message"]) == ("False", "Unschedulable", expected)
    play.run(schedule, "queue")
    assert play.done() == []  # it says so already


def test_a_gated_pod_says_so_and_records_nothing() -> None:
    play = play_of([A], [pod("web", schedulingGates=[{"name": "example.com/quota"}])])
    assert play.done() == ["update pods/status web"]
    found = condition(play.get(PODS, "default/web"), "PodScheduled") or {}
    assert (found["reason"], found["message"]) == (
        "SchedulingGated",
        "Scheduling is blocked due to non-empty scheduling gates",
    )


# -- when it tries again


class Follower:
    """A scheduler that follows the changes of a play, as in a server."""

    def __init__(
        self, nodes: list[Object], pods: list[Object], refuse: Callable[[Write], ApiError | None] | None = None
    ) -> None:
        self.play = Play(*((NODES, it) for it in nodes), *((PODS, it) for it in pods), refuse=refuse)
        self.scheduling = Scheduling(self.play.objects)
        objects, put, remove = self.play.objects, self.play.objects.put, self.play.objects.remove
        self.asked = False

        def follow(kind: tuple[str, str], value: Object) -> Object | None:
            old = put(kind, value)
            self.asked = self.scheduling.changed(kind, old, value) or self.asked
            return old

        def unfollow(kind: tuple[str, str], name: NamespacedName) -> Object | None:
            old = remove(kind, name)
            self.asked = self.scheduling.changed(kind, old, None) or self.asked
            return old

        objects.put, objects.remove = follow, unfollow  # type: ignore[method-assign]

    def run(self) -> list[str]:
        self.asked = False
        self.play.run(lambda objects, key, now: self.scheduling.steps(now), "queue")
        return self.play.done()


FULL = [pod("db", "a", requests={"cpu": "4"}), pod("web", requests={"cpu": "2"})]
BOUND = "event Normal Scheduled: Successfully assigned default/web to"


@rows(
    "what, change, expected",
    [
        ("a node comes", lambda play: play.add(NODES, B), "b"),
        ("a node grows", lambda play: play.add(NODES, node("a", cpu="8")), "a"),
        ("a pod goes", lambda play: play.objects.remove(PODS, NamespacedName("default", "db")), "a"),
        ("a pod ends", lambda play: play.add(PODS, pod("db", "a", status={"phase": "Succeeded"})), "a"),
        ("a pod requests less", lambda play: play.add(PODS, pod("db", "a", requests={"cpu": "1"})), "a"),
        (
            "a pod becomes ready",
            lambda play: play.add(PODS, {**FULL[0], "status": {"phase": "Running", "podIP": "x"}}),
            None,
        ),
        (
            "a node's heartbeat",
            lambda play: play.add(NODES, {**A, "status": {**A["status"], "conditions": [{}]}}),
            None,
        ),
        ("another pod is bound", lambda play: play.add(PODS, pod("x", "a")), None),
    ],
)
def test_a_pod_is_tried_again(what: str, change: Callable[[Play], object], expected: str | None) -> None:
    follower = Follower([A], FULL)
    assert follower.run()[0] == "update pods/status web"
    change(follower.play)
    assert follower.asked is (expected is not None)
    assert follower.run() == ([f"bind web {expected}", f"{BOUND} {expected}"] if expected else [])


def test_many_pods_are_bound_in_batches() -> None:
    follower = Follower([A, B], [pod(f"web-{n:02}") for n in range(2 * BATCH + 1)])
    done = follower.run()
    binds = [n for n, it in enumerate(done) if it.startswith("bind")]
    assert len(binds) == 2 * BATCH + 1
    assert binds[BATCH] > BATCH  # Events are between them
    assert set(where(follower.play).values()) == {"a", "b"}


def test_a_pod_that_is_not_bound_is_tried_again() -> None:
    refused = [pod("web")["metadata"]["name"]]
    again = Follower(
        [A],
        [pod("web"), pod("other")],
        refuse=lambda write: (
            ApiError(409, "it has changed", "Conflict")
            if isinstance(write, Bind) and write.pod["metadata"]["name"] in refused
            else None
        ),
    )
    with pytest.raises(ApiError, match="it has changed"):
        again.run()
    assert where(again.play) == {"web": "", "other": "a"}
    assert "event Normal Scheduled: Successfully assigned default/other to a" in again.play.done()
    refused.clear()
    again.scheduling = Scheduling(again.play.objects)  # as the controller does
    assert again.run() == ["bind web a", f"{BOUND} a"]


def test_gates_that_are_removed_let_a_pod_go() -> None:
    follower = Follower([A], [pod("web", schedulingGates=[{"name": "x/y"}])])
    follower.run()
    follower.play.add(PODS, pod("web"))
    assert follower.asked
    assert follower.run() == ["bind web a", f"{BOUND} a"]


# -- laws


def some_pods(random_: random.Random, number: int) -> list[Object]:
    def one(n: int) -> Object:
        requests = {"cpu": f"{random_.choice([0, 100, 700, 1900])}m", "memory": random_.choice(["0", "100Mi", "3Gi"])}
        spec: Object = {"priority": random_.choice([0, 0, 10])}
        if random_.random() < 0.2:
            terms = [{"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "x"}}}]
            spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
        if random_.random() < 0.2:
            spec["nodeSelector"] = {"zone": random_.choice(["1", "2"])}
        return pod(f"p{n}", labels={"app": random_.choice(["x", "y"])}, requests=requests, **spec)

    return [one(n) for n in range(number)]


def some_nodes(number: int) -> list[Object]:
    return [node(f"n{n}", labels={"zone": str(n % 2 + 1)}, cpu=str(2 + n % 3), pods="6") for n in range(number)]


def test_no_node_has_more_than_it_can_take() -> None:
    for seed in range(8):
        play = play_of(some_nodes(4), some_pods(random.Random(seed), 40))
        assert any(isinstance(it, NewEvent) and it.reason == "Scheduled" for it in play.writes)
        for it in some_nodes(4):
            name, allocatable = it["metadata"]["name"], amounts(it["status"]["allocatable"])
            pods = [requests_of(found["spec"]) for found in play.objects.on_node(name)]
            assert len(pods) <= allocatable["pods"]
            for resource in ("cpu", "memory"):
                assert sum(requests.get(resource, 0) for requests in pods) <= allocatable[resource]


def test_the_order_of_objects_does_not_matter() -> None:
    for seed in range(5):
        random_ = random.Random(seed)
        nodes, pods = some_nodes(5), some_pods(random_, 30)
        found = where(play_of(nodes, pods))
        random_.shuffle(nodes)
        random_.shuffle(pods)
        assert where(play_of(nodes, pods)) == found


def test_what_is_followed_is_what_is_read_anew() -> None:
    for seed in range(5):
        random_ = random.Random(seed)
        follower = Follower(some_nodes(4), some_pods(random_, 30))
        follower.run()
        for name in [it["metadata"]["name"] for it in follower.play.objects.all(PODS)][::3]:
            follower.play.objects.remove(PODS, NamespacedName("default", name))
        follower.run()
        anew = Scheduling(follower.play.objects).cluster
        for mine, other in zip(follower.scheduling.cluster.nodes, anew.nodes, strict=True):
            assert mine.pods.keys() == other.pods.keys()
            assert {key: value for key, value in mine.used.items() if value} == {
                key: value for key, value in other.used.items() if value
            }


def test_pods_of_nodes_that_do_not_exist_wait_for_them() -> None:
    objects = indexed([], [pod("db", "a", requests={"cpu": "4"})])
    scheduling = Scheduling(objects)
    assert not scheduling.cluster.nodes
    objects.put(NODES, A)
    scheduling.changed(NODES, None, A)
    assert [it.used for it in scheduling.cluster.nodes] == [{"cpu": 4000}]
