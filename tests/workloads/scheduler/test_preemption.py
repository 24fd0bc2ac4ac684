"""Preemption: upstream's tables (defaultpreemption/default_preemption_test.go, framework/preemption/preemption_test.go)."""

from __future__ import annotations

from typing import Any

from noxu.values import Object
from noxu.workloads.objects import BUDGETS, NODES, PODS
from noxu.workloads.scheduler.diagnosis import Diagnosis
from noxu.workloads.scheduler.placement import Placement
from noxu.workloads.scheduler.preemption import PreemptionOutcome, preempt
from noxu.workloads.writes import Kind
from tests.rows import rows
from tests.workloads.plays import Play
from tests.workloads.scheduler.clusters import cluster, facts, node, pod, schedule

A, B = node("a"), node("b")


def runs(
    name: str, on: str, priority: int, cpu: str = "2", started: str = "2026-01-01T00:00:00Z", **more: Any
) -> Object:
    return pod(name, on, requests={"cpu": cpu}, priority=priority, status={"startTime": started}, **more)


def wants(cpu: str = "2", priority: int = 100, **more: Any) -> Object:
    return pod("web", requests={"cpu": cpu}, priority=priority, **more)


def budget(allowed: int, name: str = "budget", **status: object) -> tuple[Kind, Object]:
    spec = {"selector": {"matchLabels": {"app": "db"}}}
    return BUDGETS, {
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
        "status": {"disruptionsAllowed": allowed, **status},
    }


DB = {"app": "db"}


def outcome(nodes: list[Object], pods: list[Object], wanted: Object, *others: tuple[Kind, Object]) -> PreemptionOutcome:
    given = cluster(nodes, pods, *others)
    placement = Placement(facts(wanted), given)
    found = placement.find()
    assert isinstance(found, Diagnosis)
    return preempt(placement, found, given)


@rows(
    "what, pods, wanted, others, expected",
    [
        ("the only less important pod", [runs("x", "a", 10, "4"), runs("y", "b", 200, "4")], wants(), [], "a: x"),
        (
            "as few as possible",
            [runs("x", "a", 1, "2"), runs("y", "a", 2, "2"), runs("z", "b", 200, "4")],
            wants(),
            [],
            "a: x",
        ),
        (
            "small ones that do not help stay",
            [runs("x", "a", 1, "4"), runs("y", "a", 0, "0"), runs("z", "b", 200, "4")],
            wants(),
            [],
            "a: x",
        ),
        ("both", [runs("x", "a", 1), runs("y", "a", 2), runs("z", "b", 200, "4")], wants("4"), [], "a: y x"),
        ("the least important", [runs("x", "a", 10, "4"), runs("y", "b", 5, "4")], wants(), [], "b: y"),
        (
            "the smallest sum",
            [runs("x", "a", 10), runs("y", "a", 9), runs("x2", "b", 10), runs("y2", "b", 8)],
            wants("4"),
            [],
            "b: x2 y2",
        ),
        (
            "the fewest: each priority counts from the least possible",
            [runs("x", "a", 10, "2"), runs("y", "a", -9, "2"), runs("z", "b", 10, "4")],
            wants("4"),
            [],
            "b: z",
        ),
        (
            "the latest start",
            [runs("x", "a", 10, "4"), runs("y", "b", 10, "4", "2026-01-02T00:00:00Z")],
            wants(),
            [],
            "b: y",
        ),
        ("the first name", [runs("y", "b", 10, "4"), runs("x", "a", 10, "4")], wants(), [], "a: x"),
        (
            "no violation of a budget",
            [runs("x", "a", 1, "4", labels=DB), runs("y", "b", 50, "4")],
            wants(),
            [budget(0)],
            "b: y",
        ),
        (
            "a violation if there is no other way",
            [runs("x", "a", 1, "4", labels=DB), runs("y", "b", 200, "4")],
            wants(),
            [budget(0)],
            "a: x",
        ),
        (
            "those without a budget go first",
            [runs("x", "a", 1, "2", labels=DB), runs("y", "a", 50, "2"), runs("z", "b", 200, "4")],
            wants(),
            [budget(0)],
            "a: y",
        ),
        (
            "a budget that allows one",
            [runs("x", "a", 1, "2", labels=DB), runs("y", "a", 50, "2", labels=DB), runs("z", "b", 200, "4")],
            wants(),
            [budget(1)],
            "a: y",
        ),
        (
            "a pod that its budget has counted already",
            [runs("x", "a", 1, "2", labels=DB), runs("y", "a", 50, "2"), runs("z", "b", 200, "4")],
            wants(),
            [budget(0, disruptedPods={"x": "2026-01-01T00:00:00Z"})],
            "a: x",
        ),
        (
            "the longest running stays",
            [runs("old", "a", 1, "2"), runs("new", "a", 1, "2", "2026-01-02T00:00:00Z"), runs("z", "b", 200, "4")],
            wants(),
            [],
            "a: new",
        ),
    ],
)
def test_the_victims(
    what: str, pods: list[Object], wanted: Object, others: list[tuple[Kind, Object]], expected: str
) -> None:
    found = outcome([A, B], pods, wanted, *others).victims
    assert found is not None
    assert f"{found.node}: {' '.join(it.name.name for it in found.pods)}" == expected


@rows(
    "what, nodes, pods, wanted, expected",
    [
        (
            "all are as important",
            [A, B],
            [runs("x", "a", 100, "4"), runs("y", "b", 100, "4")],
            wants(),
            "0/2 nodes are available: 2 No preemption victims found for incoming pod.",
        ),
        (
            "the node is too small, or tainted",
            [A, node("b", spec={"taints": [{"key": "x", "effect": "NoSchedule"}]})],
            [runs("x", "a", 1, "4")],
            wants("5"),
            "0/2 nodes are available: 2 Preemption is not helpful for scheduling.",
        ),
        (
            "the important ones are enough to fill it",
            [A],
            [runs("x", "a", 1, "1"), runs("y", "a", 200, "3")],
            wants(),
            "0/1 nodes are available: 1 Insufficient cpu.",
        ),
        (
            "it never preempts",
            [A],
            [runs("x", "a", 1, "4")],
            wants(preemptionPolicy="Never"),
            "not eligible due to preemptionPolicy=Never.",
        ),
        (
            "a victim is on its way",
            [A],
            [
                runs(
                    "x",
                    "a",
                    1,
                    "4",
                    metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"},
                )
                | {
                    "status": {
                        "conditions": [
                            {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
                        ]
                    }
                }
            ],
            wants(status={"nominatedNodeName": "a"}),
            "not eligible due to a terminating pod on the nominated node.",
        ),
    ],
)
def test_why_there_are_no_victims(
    what: str, nodes: list[Object], pods: list[Object], wanted: Object, expected: str
) -> None:
    found = outcome(nodes, pods, wanted)
    assert found.victims is None
    assert found.text == f"preemption: {expected}"


def test_anti_affinity_of_a_victim_goes_with_it() -> None:
    terms = [{"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}]
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    pods = [runs("x", "a", 1, "0", affinity=affinity), runs("y", "a", 2, "0")]
    found = outcome([A], pods, wants(labels={"app": "web"})).victims
    assert found is not None
    assert [it.name.name for it in found.pods] == ["x"]


def test_victims_go_and_the_pod_follows() -> None:
    play = Play((NODES, A), (PODS, runs("x", "a", 1, "4")), (PODS, wants(schedulerName="default-scheduler")))
    play.run(schedule, "queue")
    assert play.done() == [
        "update pods/status web",
        "event Warning FailedScheduling: 0/1 nodes are available: 1 Insufficient cpu.",
        "update pods/status x",
        "delete pods x",
        "event Normal Preempted: Preempted by pod uid-web on node a",
    ]
    assert play.get(PODS, "default/web")["status"]["nominatedNodeName"] == "a"
    play.run(schedule, "queue")
    assert play.done() == ["bind web a", "event Normal Scheduled: Successfully assigned default/web to a"]


def test_a_victim_says_why_it_goes() -> None:
    play = Play((NODES, A), (PODS, runs("x", "a", 1, "4")), (PODS, wants()), refuse=lambda write: None)
    play.run(schedule, "queue")
    update = next(
        it.value for it in play.writes if getattr(it, "kind", None) == PODS and it.value["metadata"]["name"] == "x"
    )  # type: ignore[union-attr]
    [found] = update["status"]["conditions"]
    assert {key: found[key] for key in ("type", "status", "reason", "message")} == {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "PreemptionByScheduler",
        "message": "default-scheduler: preempting to accommodate a higher priority pod",
    }


def test_room_that_was_made_for_a_pod_is_not_taken_by_a_less_important_one() -> None:
    waits = wants("4", status={"nominatedNodeName": "a"}) | {
        "spec": {**wants("4")["spec"], "schedulingGates": [{"name": "x/y"}]}
    }
    play = Play((NODES, A), (PODS, waits), (PODS, pod("small", requests={"cpu": "1"}, priority=1)))
    play.run(schedule, "queue")
    assert "event Warning FailedScheduling: 0/1 nodes are available: 1 Insufficient cpu. " in play.done()[-1] + " "
    assert not play.get(PODS, "default/small")["spec"].get("nodeName")


def test_a_nomination_ends_when_nothing_helps() -> None:
    play = Play((NODES, A), (PODS, runs("x", "a", 200, "4")), (PODS, wants(status={"nominatedNodeName": "a"})))
    play.run(schedule, "queue")
    assert "nominatedNodeName" not in play.get(PODS, "default/web")["status"]
