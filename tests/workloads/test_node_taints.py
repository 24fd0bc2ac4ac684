"""The taints of nodes (situations of pkg/controller/nodelifecycle/node_lifecycle_controller_test.go)."""

from __future__ import annotations

from typing import Any

from noxu.values import Object
from noxu.workloads.node_taints import Disruption, disruption, taints_of
from noxu.workloads.writes import Kind
from tests.rows import rows
from tests.workloads.cluster import node, taint
from tests.workloads.plays import NOW

OTHERS = taint("example.com/mine", "NoExecute", value="a")
NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"


def keys(taints: list[Object]) -> list[str]:
    return [f"{each['key'].rpartition('/')[2]}:{each['effect']}" for each in taints]


@rows(
    "situation, the_node, state, expected",
    [
        ("it is healthy", node(), Disruption.NONE, []),
        ("nothing was said yet", node(ready=None, taints=[taint(NOT_READY, "NoSchedule")]), Disruption.NONE, []),
        ("it is ready now", node(taints=[taint(NOT_READY, "NoSchedule"), taint(NOT_READY, "NoExecute")]), Disruption.NONE, []),
        ("it is not ready", node(ready="False"), Disruption.NONE, ["not-ready:NoExecute", "not-ready:NoSchedule"]),
        ("it is unreachable", node(ready="Unknown"), Disruption.NONE, ["unreachable:NoExecute", "unreachable:NoSchedule"]),
        (
            "it was unreachable, and is not ready",
            node(ready="False", taints=[taint(UNREACHABLE, "NoSchedule"), taint(UNREACHABLE, "NoExecute")]),
            Disruption.NONE,
            ["not-ready:NoExecute", "not-ready:NoSchedule"],
        ),
        ("it is cordoned", node(unschedulable=True), Disruption.NONE, ["unschedulable:NoSchedule"]),
        ("it was cordoned", node(taints=[taint("node.kubernetes.io/unschedulable", "NoSchedule")]), Disruption.NONE, []),
        (
            "pressures",
            node(MemoryPressure="True", DiskPressure="True", PIDPressure="False", NetworkUnavailable="True"),
            Disruption.NONE,
            ["disk-pressure:NoSchedule", "memory-pressure:NoSchedule", "network-unavailable:NoSchedule"],
        ),
        ("a pressure that is not known", node(MemoryPressure="Unknown"), Disruption.NONE, []),
        ("taints of others stay", node(taints=[OTHERS], PIDPressure="True"), Disruption.NONE, ["mine:NoExecute", "pid-pressure:NoSchedule"]),
        ("all nodes are lost", node(ready="Unknown", taints=[taint(UNREACHABLE, "NoExecute")]), Disruption.FULL, ["unreachable:NoSchedule"]),
        ("many nodes are lost", node(ready="Unknown"), Disruption.PARTIAL, ["unreachable:NoSchedule"]),
        (
            "many are lost after this one",
            node(ready="Unknown", taints=[taint(UNREACHABLE, "NoExecute")]),
            Disruption.PARTIAL,
            ["unreachable:NoExecute", "unreachable:NoSchedule"],
        ),
    ],
)  # fmt: skip
def test_taints(situation: str, the_node: tuple[Kind, Object], state: Disruption, expected: list[str]) -> None:
    assert keys(taints_of(the_node[1], state, NOW)) == expected, situation


def test_new_taints_have_a_time_and_old_ones_keep_theirs() -> None:
    _, value = node(
        unschedulable=True,
        PIDPressure="True",
        taints=[taint("node.kubernetes.io/pid-pressure", "NoSchedule", timeAdded="then")],
    )
    assert [each["timeAdded"] for each in taints_of(value, Disruption.NONE, NOW)] == ["then", "2026-01-01T00:00:00Z"]


def cluster(*ready: str, zone: str = "", **labels: str) -> list[Object]:
    zones = {"topology.kubernetes.io/zone": zone} if zone else {}
    return [node(f"{zone}{n}", ready=each, labels=zones | labels)[1] for n, each in enumerate(ready)]


EXCLUDED: Any = {"node.kubernetes.io/exclude-disruption": ""}


@rows(
    "situation, nodes, expected",
    [
        ("one of two", cluster("False", "True"), Disruption.NONE),
        ("the only one", cluster("Unknown"), Disruption.FULL),
        ("all", cluster("False", "Unknown"), Disruption.FULL),
        ("all of a zone, and another one is well", [*cluster("False", zone="a"), *cluster("True", zone="b")], Disruption.NONE),
        ("two of three", cluster("False", "False", "True"), Disruption.NONE),
        ("three of five", cluster("False", "False", "False", "True", "True"), Disruption.PARTIAL),
        ("three of six", cluster("False", "False", "False", "True", "True", "True"), Disruption.NONE),
        ("those that do not count", [*cluster("False", "True"), *cluster("False", "False", **EXCLUDED)], Disruption.NONE),
    ],
)  # fmt: skip
def test_disruption(situation: str, nodes: list[Object], expected: Disruption) -> None:
    assert disruption(nodes[0], nodes) is expected, situation
