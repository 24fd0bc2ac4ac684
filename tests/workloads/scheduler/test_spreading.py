"""Topology spread: upstream's tables (podtopologyspread/filtering_test.go)."""

from __future__ import annotations

from typing import Any

from noxu.values import Object
from noxu.workloads.scheduler.placement import Placement
from tests.rows import rows
from tests.workloads.scheduler.clusters import cluster, facts, node, pod

HOST = "kubernetes.io/hostname"
FOO = {"foo": ""}
SKEW = "node(s) didn't match pod topology spread constraints"
LABEL = "node(s) didn't match pod topology spread constraints (missing required label)"
A, B = {"zone": "zone1"}, {"zone": "zone2"}
FOUR = [node("node-a", labels=A), node("node-b", labels=A), node("node-x", labels=B), node("node-y", labels=B)]


def spread(key: str = "zone", skew: int = 1, **more: object) -> Object:
    selector = {"matchExpressions": [{"key": "foo", "operator": "Exists"}]}
    return {
        "topologyKey": key,
        "maxSkew": skew,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": selector,
        **more,
    }


def wanted(*constraints: Object, labels: Object = FOO, **spec: Any) -> Object:
    return pod("p", labels=labels, topologySpreadConstraints=list(constraints), **spec)


def counts(a: int, b: int, x: int, y: int, **more: Any) -> list[Object]:
    """So many pods on each node."""
    on = zip(("node-a", "node-b", "node-x", "node-y"), (a, b, x, y), strict=True)
    return [pod(f"{name}-{n}", name, **{"labels": FOO, **more}) for name, number in on for n in range(number)]


@rows(
    "what, nodes, pods, incoming, expected",
    [
        ("no pods", FOUR, [], wanted(spread()), [None] * 4),
        ("no pods, and no match with itself", FOUR, [], wanted(spread(), labels={}), [None] * 4),
        ("a missing label", [node("node-a", labels=A), node("node-b")], [], wanted(spread()), [None, LABEL]),
        ("pods in the other zone", FOUR, counts(1, 1, 0, 0), wanted(spread()), [SKEW, SKEW, None, None]),
        ("even zones", FOUR, counts(2, 1, 0, 3), wanted(spread()), [None] * 4),
        ("hosts: 2/1/0/3", FOUR, counts(2, 1, 0, 3), wanted(spread(HOST)), [SKEW, SKEW, None, SKEW]),
        ("hosts: 2/1/2/1", FOUR, counts(2, 1, 2, 1), wanted(spread(HOST)), [SKEW, None, SKEW, None]),
        ("hosts: 2/1/0/3, a skew of 2", FOUR, counts(2, 1, 0, 3), wanted(spread(HOST, 2)), [SKEW, None, None, SKEW]),
        (
            "it does not match itself",
            FOUR,
            counts(2, 1, 0, 3),
            wanted(spread(HOST), labels={"bar": ""}),
            [SKEW, None, None, SKEW],
        ),
        (
            "hosts and zones: 2/1/0/3",
            FOUR,
            counts(2, 1, 0, 3),
            wanted(spread(), spread(HOST)),
            [SKEW, SKEW, None, SKEW],
        ),
        ("pods of other namespaces", FOUR, counts(1, 1, 0, 0, namespace="other"), wanted(spread()), [None] * 4),
        (
            "pods that are being deleted",
            FOUR,
            counts(1, 1, 0, 0, metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}),
            wanted(spread()),
            [None] * 4,
        ),
        ("pods that are not selected", FOUR, counts(1, 1, 0, 0, labels={"bar": ""}), wanted(spread()), [None] * 4),
        ("three domains are wanted", FOUR, counts(1, 0, 1, 0), wanted(spread(minDomains=3)), [SKEW] * 4),
        ("two domains are wanted", FOUR, counts(1, 0, 1, 0), wanted(spread(minDomains=2)), [None] * 4),
        (
            "ScheduleAnyway only prefers",
            FOUR,
            counts(1, 1, 0, 0),
            wanted(spread(whenUnsatisfiable="ScheduleAnyway")),
            [None] * 4,
        ),
        (
            "nodes that the selector excludes do not count",
            FOUR,
            counts(0, 1, 0, 2),
            wanted(spread(HOST), nodeSelector={"zone": "zone2"}),
            ["node(s) didn't match Pod's node affinity/selector"] * 2 + [None, SKEW],
        ),
        (
            "they count if the policy ignores them",
            FOUR,
            counts(0, 1, 1, 2),
            wanted(spread(HOST, nodeAffinityPolicy="Ignore"), nodeSelector={"zone": "zone2"}),
            ["node(s) didn't match Pod's node affinity/selector"] * 2 + [SKEW, SKEW],
        ),
        (
            "tainted nodes count",
            [*FOUR[:3], node("node-y", labels=B, spec={"taints": [{"key": "x", "effect": "NoSchedule"}]})],
            counts(1, 1, 1, 0),
            wanted(spread(HOST)),
            [SKEW, SKEW, SKEW, "node(s) had untolerated taint(s)"],
        ),
        (
            "they do not if the policy honors taints",
            [*FOUR[:3], node("node-y", labels=B, spec={"taints": [{"key": "x", "effect": "NoSchedule"}]})],
            counts(1, 1, 1, 0),
            wanted(spread(HOST, nodeTaintsPolicy="Honor")),
            [None, None, None, "node(s) had untolerated taint(s)"],
        ),
        (
            "matchLabelKeys: a new revision is spread anew",
            FOUR,
            [pod("old", "node-a", labels={**FOO, "hash": "1"}), pod("new", "node-x", labels={**FOO, "hash": "2"})],
            wanted(spread(matchLabelKeys=["hash"]), labels={**FOO, "hash": "2"}),
            [None, None, SKEW, SKEW],
        ),
    ],
)
def test_pods_are_spread(
    what: str, nodes: list[Object], pods: list[Object], incoming: Object, expected: list[str | None]
) -> None:
    given = cluster(nodes, pods)
    placement = Placement(facts(incoming), given)
    found = [placement.misfit(it) for it in given.nodes]
    assert [None if it is None else it.reasons[0] for it in found] == expected
