"""taint-eviction-controller (situations of pkg/controller/tainteviction/taint_eviction_test.go)."""

from __future__ import annotations

from noxu.values import Object
from noxu.workloads.objects import NODES, PODS, Objects
from noxu.workloads.taint_eviction import Evictions, stays_for
from noxu.workloads.writes import Kind
from tests.rows import rows
from tests.workloads.cluster import node, pod, taint
from tests.workloads.plays import Play

BAD, WORSE = taint("bad", "NoExecute"), taint("worse", "NoExecute")


def toleration(key: str, seconds: int | None = None) -> Object:
    value = {"key": key, "operator": "Exists", "effect": "NoExecute"}
    return value if seconds is None else {**value, "tolerationSeconds": seconds}


@rows(
    "situation, taints, tolerations, seconds",
    [
        ("nothing to tolerate", [], [], None),
        ("nothing is tolerated", [BAD], [], 0),
        ("it is tolerated for ever", [BAD], [toleration("bad")], None),
        ("it is tolerated for a minute", [BAD], [toleration("bad", 60)], 60),
        ("one of two is tolerated", [BAD, WORSE], [toleration("bad", 60)], 0),
        ("the shortest counts", [BAD, WORSE], [toleration("bad", 60), toleration("worse", 30)], 30),
        ("one for ever, one for a minute", [BAD, WORSE], [toleration("bad"), toleration("worse", 60)], 60),
        ("no seconds", [BAD], [toleration("bad", 0)], 0),
        ("fewer than no seconds", [BAD], [toleration("bad", -5)], 0),
        ("the first toleration counts", [BAD], [toleration("bad"), toleration("bad", 5)], None),
        ("every taint is tolerated", [BAD, WORSE], [{"operator": "Exists"}], None),
    ],
)
def test_how_long_a_pod_stays(
    situation: str, taints: list[Object], tolerations: list[Object], seconds: float | None
) -> None:
    assert stays_for(taints, tolerations) == seconds, situation


EVICTED = [
    "event Normal TaintManagerEviction: Marking for deletion Pod default/web",
    "update pods/status web",
    "delete pods web",
]
CANCELLED = "event Normal TaintManagerEviction: Cancelling deletion of Pod default/web"


@rows(
    "situation, objects, again, written",
    [
        ("the node has no taints", [node(), pod()], None, []),
        ("a taint that does not evict", [node(taints=[taint("bad", "NoSchedule")]), pod()], None, []),
        ("a taint that evicts", [node(taints=[BAD]), pod()], None, EVICTED),
        ("it is tolerated", [node(taints=[BAD]), pod(tolerations=[toleration("bad")])], None, []),
        ("it is tolerated for a time", [node(taints=[BAD]), pod(tolerations=[toleration("bad", 60)])], 60, []),
        ("the pod is being deleted already", [node(taints=[BAD]), pod(ending=True)], None, []),
        ("the node does not exist", [pod()], None, []),
        ("the pod does not exist", [node(taints=[BAD])], None, []),
    ],
)
def test_evictions(situation: str, objects: list[tuple[Kind, Object]], again: float | None, written: list[str]) -> None:
    play = Play(*objects)
    assert play.run(Evictions().steps, "default/web") == again, situation
    assert play.done() == written, situation


def test_the_reason_is_in_the_status() -> None:
    kept = pod(finalizers=["example.com/f"])
    play = Play(node(taints=[BAD]), kept)
    play.run(Evictions().steps, "default/web")
    [_, update, _] = play.writes
    target = update.value["status"]["conditions"][-1]  # type: ignore[union-attr]
    assert (target["type"], target["status"], target["reason"]) == (
        "DisruptionTarget",
        "True",
        "DeletionByTaintManager",
    )


def after_a_minute(*changes: tuple[Kind, Object]) -> tuple[float | None, list[str]]:
    """What happens a minute after a pod was to be evicted in two, when these have changed."""
    evictions, play = Evictions(), Play(node(taints=[BAD]), pod(tolerations=[toleration("bad", 120)]))
    assert play.run(evictions.steps, "default/web") == 120
    play.pass_time(60)
    for kind, value in changes:
        play.add(kind, value)
    return play.run(evictions.steps, "default/web"), play.done()


@rows(
    "situation, changes, again, written",
    [
        ("nothing changes", [], 60, []),
        ("the taint is removed", [node()], None, [CANCELLED]),
        ("another taint, which is not tolerated", [node(taints=[BAD, WORSE])], None, [CANCELLED, *EVICTED]),
        ("it is tolerated for ever", [pod(tolerations=[toleration("bad")])], None, [CANCELLED]),
        ("it is tolerated for longer: what was decided stays", [pod(tolerations=[toleration("bad", 900)])], 60, []),
    ],
)
def test_changes_while_it_waits(
    situation: str, changes: list[tuple[Kind, Object]], again: float | None, written: list[str]
) -> None:
    assert after_a_minute(*changes) == (again, written), situation


def test_it_is_evicted_when_the_time_is_over() -> None:
    evictions, play = Evictions(), Play(node(taints=[BAD]), pod(tolerations=[toleration("bad", 120)]))
    play.run(evictions.steps, "default/web")
    play.pass_time(120)
    assert play.run(evictions.steps, "default/web") is None
    assert play.done() == EVICTED


PLAIN, TOLERANT = pod()[1], pod(tolerations=[toleration("bad")])[1]
CLEAN, TAINTED = node()[1], node(taints=[BAD])[1]


@rows(
    "situation, there, kind, old, new, keys",
    [
        ("a pod on a node without taints", [node()], PODS, None, PLAIN, []),
        ("a pod on a tainted node", [node(taints=[BAD])], PODS, None, PLAIN, ["web"]),
        ("its tolerations change", [node(taints=[BAD])], PODS, PLAIN, TOLERANT, ["web"]),
        ("it changes otherwise", [node(taints=[BAD])], PODS, PLAIN, PLAIN, []),
        ("it is gone", [node(taints=[BAD])], PODS, PLAIN, None, []),
        ("the node is tainted", [pod(), pod("b", "node-2")], NODES, CLEAN, TAINTED, ["web"]),
        ("the node changes otherwise", [pod()], NODES, TAINTED, TAINTED, []),
    ],
)
def test_what_concerns_pods(
    situation: str,
    there: list[tuple[Kind, Object]],
    kind: Kind,
    old: Object | None,
    new: Object | None,
    keys: list[str],
) -> None:
    assert [key.name for key in Evictions().concerned(Objects(there), kind, old, new)] == keys, situation
