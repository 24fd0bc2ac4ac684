"""pod-garbage-collector-controller (situations of pkg/controller/podgc/gc_controller_test.go)."""

from __future__ import annotations

import pytest

from noxu.api.errors import ApiError
from noxu.values import Object
from noxu.workloads import pod_garbage
from noxu.workloads.objects import NODES, PODS, Objects
from noxu.workloads.pod_garbage import Garbage, concerned
from noxu.workloads.writes import Delete, Kind, NamespacedName
from tests.rows import rows
from tests.workloads.cluster import node, pod, taint
from tests.workloads.plays import Play

OUT = [taint("node.kubernetes.io/out-of-service", "NoExecute")]
FAILED = ["update pods/status web", "delete pods web"]


@rows(
    "situation, objects, again, written",
    [
        ("a pod on its node", [node(), pod()], None, []),
        ("a pod that is not bound", [pod(node_name="")], None, []),
        ("a pod that is not bound, and is being deleted", [pod(node_name="", ending=True)], None, FAILED),
        ("one that has ended", [pod(node_name="", ending=True, phase="Failed")], None, ["delete pods web"]),
        ("one that its finalizers keep", [pod(node_name="", ending=True, phase="Failed", deletionGracePeriodSeconds=0)], None, []),
        ("a pod of a node that is gone waits", [pod()], 40, []),
        ("a pod that is being deleted on its node", [node(), pod(ending=True)], None, []),
        ("and the node is out of service", [node(ready="Unknown", taints=OUT), pod(ending=True)], None, FAILED),
        ("a pod there that is not being deleted", [node(ready="Unknown", taints=OUT), pod()], None, []),
        ("the node is ready after all", [node(taints=OUT), pod(ending=True)], None, []),
    ],
)  # fmt: skip
def test_a_pod(situation: str, objects: list[tuple[Kind, Object]], again: float | None, written: list[str]) -> None:
    play = Play(*objects)
    assert play.run(Garbage().steps, "default/web") == again, situation
    assert play.done() == written, situation
    assert all(write.grace == 0 for write in play.writes if isinstance(write, Delete))


def test_a_node_that_is_gone_for_a_while() -> None:
    garbage, play = Garbage(), Play(pod())
    play.run(garbage.steps, "default/web")
    play.pass_time(39)
    assert play.run(garbage.steps, "default/web") == 1
    play.pass_time(1)
    assert play.run(garbage.steps, "default/web") is None
    [update, _] = play.writes
    status = update.value["status"]  # type: ignore[union-attr]
    assert (status["phase"], status["conditions"][-1]["reason"]) == ("Failed", "DeletionByPodGC")
    assert play.done() == FAILED


def test_a_node_that_comes_back() -> None:
    garbage, play = Garbage(), Play(pod())
    play.run(garbage.steps, "default/web")
    play.pass_time(39)
    play.add(*node())
    assert play.run(garbage.steps, "default/web") is None
    play.objects.remove(NODES, NamespacedName("", "node-1"))
    assert play.run(garbage.steps, "default/web") == 40, "it is missing since now"


def test_a_pod_that_is_gone_meanwhile() -> None:
    play = Play(pod(node_name="", ending=True), refuse=lambda write: ApiError(404, "gone", "NotFound"))
    assert play.run(Garbage().steps, "default/web") is None


def test_pods_that_have_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_garbage, "MAX_ENDED", 2)
    times = {
        "new": "2026-01-01T00:00:09Z",
        "old": "2026-01-01T00:00:01Z",
        "b": "2026-01-01T00:00:05Z",
        "a": "2026-01-01T00:00:05Z",
    }
    pods = [pod(name, phase="Succeeded", creationTimestamp=time) for name, time in times.items()]
    evicted = pod("evicted", phase="Failed", creationTimestamp="2026-01-01T00:01:00Z")
    evicted[1]["status"]["reason"] = "Evicted"
    play = Play(*pods, evicted, pod("runs"))
    play.run(Garbage().steps, "ended pods")
    assert play.done() == ["delete pods evicted", "delete pods old", "delete pods a"]


@rows(
    "situation, there, kind, old, new, keys",
    [
        ("a pod on its node", [node()], PODS, None, pod()[1], []),
        ("a pod on a node that is not there", [], PODS, None, pod()[1], ["web"]),
        ("a pod is being deleted", [node()], PODS, pod()[1], pod(ending=True)[1], ["web"]),
        ("a pod is gone", [node()], PODS, pod()[1], None, []),
        ("a node is gone", [pod(), pod("b", "node-2")], NODES, node()[1], None, ["web"]),
        ("a node is out of service", [pod()], NODES, None, node(ready="False", taints=OUT)[1], ["web"]),
        ("a node changes", [pod()], NODES, node()[1], node()[1], []),
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
    assert [key.name for key in concerned(Objects(there), kind, old, new)] == keys, situation
