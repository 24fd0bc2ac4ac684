"""Affinity and anti-affinity between pods: upstream's tables (interpodaffinity/filtering_test.go)."""

from __future__ import annotations

from noxu.values import Object
from noxu.workloads.objects import NAMESPACES
from noxu.workloads.scheduler.placement import Placement
from tests.rows import rows
from tests.workloads.scheduler.clusters import cluster, facts, node, pod

ZONES = [node("a", labels={"zone": "1"}), node("b", labels={"zone": "1"}), node("c", labels={"zone": "2"})]
NEAR = "node(s) didn't match pod affinity rules"
FAR = "node(s) didn't match pod anti-affinity rules"
EXISTING = "node(s) didn't satisfy existing pods anti-affinity rules"
HOST = "kubernetes.io/hostname"


def term(key: str = "zone", **more: object) -> Object:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": "db"}}, **more}


def near(*terms: Object) -> Object:
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def far(*terms: Object) -> Object:
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


DB = {"app": "db"}
WEB = {"app": "web"}
IN = {"matchExpressions": [{"key": "app", "operator": "In", "values": ["db", "cache"]}]}


@rows(
    "what, pods, wanted, expected",
    [
        ("near a pod in its zone", [pod("db", "a", labels=DB)], pod("web", affinity=near(term())), [None, None, NEAR]),
        (
            "near a pod on its host",
            [pod("db", "a", labels=DB)],
            pod("web", affinity=near(term(HOST))),
            [None, NEAR, NEAR],
        ),
        ("near no pod", [], pod("web", affinity=near(term())), [NEAR, NEAR, NEAR]),
        (
            "near pods of another kind",
            [pod("db", "a", labels=WEB)],
            pod("web", affinity=near(term())),
            [NEAR, NEAR, NEAR],
        ),
        ("the first of its own kind", [], pod("db", labels=DB, affinity=near(term())), [None, None, None]),
        (
            "not the first of its own kind",
            [pod("db", "c", labels=DB)],
            pod("db2", labels=DB, affinity=near(term())),
            [NEAR, NEAR, None],
        ),
        (
            "the first, on a node with the label",
            [],
            pod("db", labels=DB, affinity=near(term("rack"))),
            [NEAR, NEAR, NEAR],
        ),
        (
            "an expression",
            [pod("c", "c", labels={"app": "cache"})],
            pod("web", affinity=near(term(labelSelector=IN))),
            [NEAR, NEAR, None],
        ),
        (
            "all terms have to mean one pod",
            [pod("db", "a", labels=DB), pod("x", "a", labels={"tier": "x"})],
            pod("web", affinity=near(term(), term(HOST, labelSelector={"matchLabels": {"tier": "x"}}))),
            [NEAR, NEAR, NEAR],
        ),
        (
            "pods of other namespaces",
            [pod("db", "a", namespace="other", labels=DB)],
            pod("web", affinity=near(term())),
            [NEAR] * 3,
        ),
        (
            "of a namespace that is named",
            [pod("db", "a", namespace="other", labels=DB)],
            pod("web", affinity=near(term(namespaces=["other"]))),
            [None, None, NEAR],
        ),
        (
            "of a namespace that is selected",
            [pod("db", "a", namespace="other", labels=DB)],
            pod("web", affinity=near(term(namespaceSelector={"matchLabels": {"team": "x"}}))),
            [None, None, NEAR],
        ),
        (
            "of a namespace that is not",
            [pod("db", "a", namespace="other", labels=DB)],
            pod("web", affinity=near(term(namespaceSelector={"matchLabels": {"team": "y"}}))),
            [NEAR] * 3,
        ),
        (
            "of all namespaces",
            [pod("db", "a", namespace="other", labels=DB)],
            pod("web", affinity=near(term(namespaceSelector={}))),
            [None, None, NEAR],
        ),
        ("far from a pod", [pod("db", "a", labels=DB)], pod("web", affinity=far(term())), [FAR, FAR, None]),
        (
            "far from it on its host",
            [pod("db", "a", labels=DB)],
            pod("web", affinity=far(term(HOST))),
            [FAR, None, None],
        ),
        (
            "far: a node without the label",
            [pod("db", "a", labels=DB)],
            pod("web", affinity=far(term("rack"))),
            [None] * 3,
        ),
        (
            "far: one term is enough",
            [pod("db", "a", labels=DB), pod("x", "c", labels={"tier": "x"})],
            pod("web", affinity=far(term(HOST), term(labelSelector={"matchLabels": {"tier": "x"}}))),
            [FAR, None, FAR],
        ),
        (
            "the others are far from it",
            [pod("x", "c", affinity=far(term()))],
            pod("db", labels=DB),
            [None, None, EXISTING],
        ),
        ("the others are far from others", [pod("x", "c", affinity=far(term()))], pod("web", labels=WEB), [None] * 3),
        (
            "the others are in another namespace",
            [pod("x", "c", namespace="other", affinity=far(term()))],
            pod("db", labels=DB),
            [None] * 3,
        ),
        (
            "far from its own kind on each host",
            [pod(n, n, labels=DB, affinity=far(term(HOST))) for n in ("a", "b")],
            pod("db", labels=DB, affinity=far(term(HOST))),
            [FAR, FAR, None],
        ),
        (
            "matchLabelKeys: of the same revision only",
            [pod("old", "a", labels={**DB, "revision": "1"}), pod("new", "c", labels={**DB, "revision": "2"})],
            pod("db", labels={**DB, "revision": "2"}, affinity=far(term(matchLabelKeys=["revision"]))),
            [None, None, FAR],
        ),
        (
            "mismatchLabelKeys: of other revisions only",
            [pod("old", "a", labels={**DB, "revision": "1"}), pod("new", "c", labels={**DB, "revision": "2"})],
            pod("db", labels={**DB, "revision": "2"}, affinity=far(term(mismatchLabelKeys=["revision"]))),
            [FAR, FAR, None],
        ),
        (
            "no selector means nothing",
            [pod("db", "a", labels=DB)],
            pod("web", affinity=far({"topologyKey": "zone"})),
            [None] * 3,
        ),
        (
            "near and far",
            [pod("db", "a", labels=DB), pod("x", "b", labels={"tier": "x"})],
            pod("web", affinity=near(term()) | far(term(HOST, labelSelector={"matchLabels": {"tier": "x"}}))),
            [None, FAR, NEAR],
        ),
    ],
)
def test_a_pod_fits_beside_others(what: str, pods: list[Object], wanted: Object, expected: list[str | None]) -> None:
    namespace = {"metadata": {"name": "other", "labels": {"team": "x"}}}
    given = cluster(ZONES, pods, (NAMESPACES, namespace))
    placement = Placement(facts(wanted), given)
    found = [placement.misfit(it) for it in given.nodes]
    assert [None if it is None else it.reasons[0] for it in found] == expected
    assert all(it.may_change is (it.reasons[0] != NEAR) for it in found if it is not None)
