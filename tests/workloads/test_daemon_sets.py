"""daemonset-controller: situations of upstream's daemon_controller_test.go, update_test.go and daemonset_util_test.go."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noxu.api.errors import ApiError, Qualified, forbidden
from noxu.values import Object, copy
from noxu.workloads import revisions
from noxu.workloads.daemon_sets.backoff import FailureBackoff
from noxu.workloads.daemon_sets.daemon_pods import Fit, fit, new_pod, target_node, tolerations
from noxu.workloads.daemon_sets.daemon_sets import DaemonSets, reconcile
from noxu.workloads.objects import DAEMON_SETS, NODES, PODS, REVISIONS, Objects, name_of
from noxu.workloads.writes import Create, Kind, NamespacedName, Steps, Write
from tests.rows import rows
from tests.workloads.plays import NOW, Play
from tests.workloads.pod_states import GracefulPlay, become, become_ready, fail, finish_deletions, names

LOGS = "default/logs"


def daemon_set(**spec: Any) -> Object:
    defaults: Object = {
        "selector": {"matchLabels": {"app": "logs"}},
        "revisionHistoryLimit": 10,
        "updateStrategy": rolling(1),
        "template": template(),
    }
    annotations = {"deprecated.daemonset.template.generation": "1"}
    metadata = {"name": "logs", "namespace": "default", "uid": "set", "generation": 1, "annotations": annotations}
    return {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": metadata, "spec": defaults | spec}


def template(image: str = "one", **spec: Any) -> Object:
    return {"metadata": {"labels": {"app": "logs"}}, "spec": {"containers": [{"name": "c", "image": image}], **spec}}


def rolling(unavailable: int | str = 1, surge: int | str = 0) -> Object:
    return {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": unavailable, "maxSurge": surge}}


def surging(surge: int | str = 1) -> Object:
    return rolling(0, surge)


def node(name: str, *taints: Object, **labels: str) -> Object:
    return {"kind": "Node", "metadata": {"name": name, "labels": labels}, "spec": {"taints": [*taints]}}


def taint(key: str, effect: str = "NoSchedule") -> Object:
    return {"key": key, "value": "", "effect": effect}


class Daemons(GracefulPlay):
    """A play of a DaemonSet on some nodes; it remembers failed pods."""

    def __init__(self, value: Object, *nodes: Object, refuse: Callable[[Write], ApiError | None] | None = None) -> None:
        super().__init__((DAEMON_SETS, value), *((NODES, one) for one in nodes), refuse=refuse)
        self.backoff = FailureBackoff()

    def reconcile(self) -> float | None:
        def steps(objects: Objects, key: NamespacedName, now: Any) -> Steps:
            return reconcile(objects, key, now, self.backoff)

        return self.run(steps, LOGS)

    def change(self, image: str = "", **spec: Any) -> None:
        found = copy(self.get(DAEMON_SETS, LOGS))
        if image:
            found["spec"]["template"] = template(image)
            annotations = found["metadata"]["annotations"]
            annotations["deprecated.daemonset.template.generation"] = str(found["metadata"]["generation"] + 1)
        found["spec"] |= spec
        found["metadata"]["generation"] += 1
        self.objects.put(DAEMON_SETS, found)

    def pods(self) -> Iterable[Object]:
        return sorted(self.objects.all(PODS), key=lambda pod: (target_node(pod), pod["metadata"]["name"]))

    def bind(self, ready: Callable[[Object], bool] = lambda pod: True) -> bool:
        """What the scheduler and the kubelets do: whether there was anything."""
        changed = False
        for pod in list(self.pods()):
            if not (pod.get("status") or {}).get("phase"):
                self.objects.put(PODS, {**pod, "spec": {**pod["spec"], "nodeName": target_node(pod)}})
                become(self, f"default/{pod['metadata']['name']}", "Running", ready=ready(pod))
                changed = True
        return changed

    def settle(self, ready: Callable[[Object], bool] = lambda pod: True, rounds: int = 60) -> None:
        for _ in range(rounds):
            before = len(self.writes)
            self.reconcile()
            changed = finish_deletions(self) or len(self.writes) > before
            if not (self.bind(ready) or changed):
                return
        raise AssertionError("it does not settle")

    def images(self) -> list[str]:
        return [f"{target_node(p)} {p['spec']['containers'][0]['image']}" for p in self.pods()]

    @property
    def status(self) -> Object:
        found: Object = self.get(DAEMON_SETS, LOGS).get("status") or {}
        return found

    def on(self, node: str) -> Object:
        [pod] = [pod for pod in self.pods() if target_node(pod) == node]
        return pod

    def deleted(self) -> list[str]:
        """The images and nodes of the pods that are being deleted."""
        ending = [pod for pod in self.pods() if pod["metadata"].get("deletionTimestamp")]
        return [f"{target_node(pod)} {pod['spec']['containers'][0]['image']}" for pod in ending]


def settled(value: Object, *nodes: Object) -> Daemons:
    play = Daemons(value, *nodes)
    play.settle()
    play.done()
    return play


THREE = (node("a"), node("b"), node("c"))


# -- where pods belong ------------------------------------------------------------------------------------------------


def affinity(**term: Any) -> Object:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return {"affinity": {"nodeAffinity": required}}


YES, NO, STAYS = Fit(True, True), Fit(False, False), Fit(False, True)


@rows(
    "spec, on, expected",
    [
        ({}, node("a"), YES),
        ({"nodeName": "a"}, node("a"), YES),
        ({"nodeName": "b"}, node("a"), NO),
        ({"nodeSelector": {"disk": "ssd"}}, node("a", disk="ssd"), YES),
        ({"nodeSelector": {"disk": "ssd"}}, node("a"), NO),
        (affinity(matchExpressions=[{"key": "disk", "operator": "Exists"}]), node("a", disk="ssd"), YES),
        (affinity(matchExpressions=[{"key": "disk", "operator": "Exists"}]), node("a"), NO),
        (affinity(matchFields=[{"key": "metadata.name", "operator": "In", "values": ["a"]}]), node("a"), YES),
        (affinity(matchFields=[{"key": "metadata.name", "operator": "In", "values": ["a"]}]), node("b"), NO),
        ({}, node("a", taint("mine")), STAYS),
        ({}, node("a", taint("mine", "NoExecute")), NO),
        ({}, node("a", taint("mine", "PreferNoSchedule")), YES),
        ({"tolerations": [{"key": "mine", "operator": "Exists"}]}, node("a", taint("mine")), YES),
        ({}, node("a", taint("node.kubernetes.io/unschedulable")), YES),
        ({}, node("a", taint("node.kubernetes.io/not-ready", "NoExecute")), YES),
        ({}, node("a", taint("node.kubernetes.io/not-ready", "NoSchedule")), STAYS),
        ({}, node("a", taint("node.kubernetes.io/unreachable", "NoExecute")), YES),
        ({}, node("a", taint("node.kubernetes.io/disk-pressure")), YES),
        ({}, node("a", taint("node.kubernetes.io/memory-pressure")), YES),
        ({}, node("a", taint("node.kubernetes.io/pid-pressure")), YES),
        ({}, node("a", taint("node.kubernetes.io/network-unavailable")), STAYS),
        ({"hostNetwork": True}, node("a", taint("node.kubernetes.io/network-unavailable")), YES),
    ],
    ids=str,
)
def test_a_node_fits(spec: Object, on: Object, expected: Fit) -> None:
    assert fit(daemon_set(template=template(**spec)), on) == expected


def test_tolerations_are_added_once_and_without_seconds() -> None:
    mine = {"key": "mine", "operator": "Exists"}
    short = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}
    added = tolerations({"tolerations": [mine, {**short, "tolerationSeconds": 30}]})
    assert added[:2] == [mine, short]
    assert len(added) == len(tolerations({"tolerations": [mine]})) == 7
    assert tolerations({"tolerations": added}) == added


def test_a_pod_for_a_node_has_its_affinity_and_the_labels_of_its_template() -> None:
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}]}
    spec: Object = {"affinity": {"podAffinity": {}, "nodeAffinity": preferred}, "nodeSelector": {"disk": "ssd"}}
    pod = new_pod(daemon_set(template=template(**spec)), "a", "hash")
    fields = [{"key": "metadata.name", "operator": "In", "values": ["a"]}]
    required = {"nodeSelectorTerms": [{"matchFields": fields}]}
    assert pod["spec"]["affinity"] == {
        "podAffinity": {},
        "nodeAffinity": {**preferred, "requiredDuringSchedulingIgnoredDuringExecution": required},
    }
    assert pod["metadata"]["labels"] == {
        "app": "logs",
        "controller-revision-hash": "hash",
        "pod-template-generation": "1",
    }
    assert pod["metadata"]["generateName"] == "logs-"
    assert target_node(pod) == "a"
    assert target_node({"spec": {"nodeName": "b", **pod["spec"]}}) == "b"
    assert target_node({"spec": {}}) == ""


# -- one pod on each node ---------------------------------------------------------------------------------------------


def test_each_node_gets_a_pod() -> None:
    play = Daemons(daemon_set(), *THREE)
    play.reconcile()
    [revision] = play.objects.all(REVISIONS)
    assert play.done() == [
        f"create controllerrevisions {revision['metadata']['name']}",
        "create pods logs-",
        "create pods logs-",
        "create pods logs-",
        *(f"event Normal SuccessfulCreate: Created pod: logs-{n}" for n in (1, 2, 3)),
        "update daemonsets/status logs",
    ]
    assert play.status == {
        "currentNumberScheduled": 3,
        "desiredNumberScheduled": 3,
        "numberMisscheduled": 0,
        "numberReady": 0,
        "numberUnavailable": 3,
        "observedGeneration": 1,
        "updatedNumberScheduled": 3,
    }
    play.settle()
    assert (play.status["numberReady"], play.status["numberAvailable"]) == (3, 3)
    assert "numberUnavailable" not in play.status


def test_a_new_node_gets_a_pod_and_a_pod_of_a_node_that_does_not_fit_goes() -> None:
    play = settled(daemon_set(template=template(nodeSelector={"disk": "ssd"})), node("a", disk="ssd"), node("b"))
    assert play.images() == ["a one"]
    play.objects.put(NODES, node("b", disk="ssd"))
    play.settle()
    assert play.images() == ["a one", "b one"]
    play.objects.put(NODES, node("a"))
    play.reconcile()
    assert play.deleted() == ["a one"]
    assert play.status["numberMisscheduled"] == 1
    play.settle()
    assert play.images() == ["b one"]
    assert (play.status["desiredNumberScheduled"], play.status["numberMisscheduled"]) == (1, 0)


def test_a_pod_stays_on_a_node_with_a_new_taint_but_is_not_counted() -> None:
    play = settled(daemon_set(), node("a"))
    play.objects.put(NODES, node("a", taint("mine")))
    play.reconcile()
    assert play.deleted() == []
    assert (play.status["desiredNumberScheduled"], play.status["numberMisscheduled"]) == (0, 1)


def test_the_oldest_of_several_pods_of_a_node_stays() -> None:
    play = settled(daemon_set(), node("a"))
    kept = play.on("a")["metadata"]["name"]
    second = copy(play.on("a"))
    second["metadata"] |= {"name": "second", "uid": "second", "creationTimestamp": "2026-01-02T00:00:00Z"}
    play.objects.put(PODS, second)
    play.settle()
    assert names(play) == [kept]


def test_an_orphan_is_adopted_and_a_pod_that_loses_its_labels_is_released() -> None:
    play = settled(daemon_set(), node("a"))
    changed = copy(play.on("a"))
    changed["metadata"]["labels"]["app"] = "other"
    play.objects.put(PODS, changed)
    play.settle()
    assert len(names(play)) == 2
    back = copy(play.get(PODS, f"default/{changed['metadata']['name']}"))
    assert "ownerReferences" not in back["metadata"]
    back["metadata"]["labels"]["app"] = "logs"
    play.objects.put(PODS, back)
    play.settle()
    assert names(play) == [back["metadata"]["name"]]


def test_a_pod_that_was_never_bound_goes_with_its_node() -> None:
    play = Daemons(daemon_set(), node("a"))
    play.reconcile()
    play.objects.remove(NODES, NamespacedName("", "a"))
    play.reconcile()
    assert play.deleted() == ["a one"]


def test_a_bound_pod_of_a_node_that_is_gone_is_left_to_the_garbage_collector() -> None:
    play = settled(daemon_set(), node("a"))
    play.objects.remove(NODES, NamespacedName("", "a"))
    play.reconcile()
    assert play.deleted() == []
    assert play.status["desiredNumberScheduled"] == 0


def test_failed_pods_are_deleted_with_growing_delays() -> None:
    play = settled(daemon_set(), node("a"))
    waited = []
    for _ in range(4):
        name = play.on("a")["metadata"]["name"]
        fail(play, f"default/{name}")
        left = play.reconcile()
        waited.append(left or 0)
        play.pass_time(left or 0)
        play.reconcile()
        assert play.deleted() == ["a one"]
        play.settle()
    assert waited == [0, 1, 2, 4]
    text = f"Found failed daemon pod default/{name} on node a, will try to kill it"
    assert f"event Warning FailedDaemonPod: {text}" in play.done()


def test_a_backoff_grows_to_fifteen_minutes_and_begins_again_after_twice_as_long() -> None:
    backoff, play = FailureBackoff(), Play()
    for _ in range(20):
        backoff.failed("key", play.now)
        play.pass_time(backoff.remaining("key", play.now))
    backoff.failed("key", play.now)
    assert backoff.remaining("key", play.now) == 900
    assert backoff.remaining("other", play.now) == 0
    play.pass_time(1801)
    assert backoff.remaining("key", play.now) == 0
    backoff.failed("key", play.now)
    assert backoff.remaining("key", play.now) == 1


def test_a_pod_that_succeeds_is_replaced_at_once() -> None:
    play = settled(daemon_set(), node("a"))
    name = play.on("a")["metadata"]["name"]
    become(play, f"default/{name}", "Succeeded")
    assert play.reconcile() is None
    text = f"Found succeeded daemon pod default/{name} on node a, will try to delete it"
    assert f"event Normal SucceededDaemonPod: {text}" in play.done()
    play.settle()
    assert play.images() == ["a one"]


def test_pods_are_available_after_min_ready_seconds() -> None:
    play = Daemons(daemon_set(minReadySeconds=20), node("a"))
    play.reconcile()
    play.bind()
    assert play.reconcile() == 20
    assert (play.status["numberReady"], play.status.get("numberAvailable")) == (1, None)
    play.pass_time(20)
    assert play.reconcile() is None
    assert play.status["numberAvailable"] == 1


def test_a_failure_is_told_and_tried_again() -> None:
    error = forbidden(Qualified("", "pods"), "", "exceeded quota")
    play = Daemons(
        daemon_set(), *THREE, refuse=lambda write: error if isinstance(write, Create) and write.kind == PODS else None
    )
    with pytest.raises(ApiError):
        play.reconcile()
    assert play.done()[1:] == [
        "create pods logs-",
        "event Warning FailedCreate: Error creating: pods is forbidden: exceeded quota",
        "update daemonsets/status logs",
    ]


@rows(
    "change, done",
    [
        ({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}, []),
        (
            {"spec": {"selector": {}}},
            [
                "event Warning SelectingAll: This daemon set is selecting all pods. A non-empty selector is required.",
            ],
        ),
    ],
    ids=["it is being deleted", "it selects everything"],
)
def test_a_set_that_does_nothing(change: Object, done: list[str]) -> None:
    value = daemon_set()
    for part, fields in change.items():
        value[part] |= fields
    play = Daemons(value, *THREE)
    play.reconcile()
    assert play.done() == done


# -- updates ----------------------------------------------------------------------------------------------------------


@rows(
    "strategy, first",
    [
        (rolling(1), ["a one"]),
        (rolling(2), ["a one", "b one"]),
        (rolling("50%"), ["a one", "b one"]),
        (rolling("100%"), ["a one", "b one", "c one"]),
        (rolling(0), ["a one"]),
        ({"type": "OnDelete"}, []),
    ],
)
def test_so_many_old_pods_are_deleted_at_a_time_as_may_be_unavailable(strategy: Object, first: list[str]) -> None:
    play = settled(daemon_set(updateStrategy=strategy), *THREE)
    play.change("two")
    play.reconcile()
    assert play.deleted() == first
    play.reconcile()
    assert play.deleted() == first
    play.settle()
    image = "one" if strategy["type"] == "OnDelete" else "two"
    assert play.images() == [f"a {image}", f"b {image}", f"c {image}"]
    assert play.status.get("updatedNumberScheduled", 0) == (3 if image == "two" else 0)


def test_with_on_delete_a_person_replaces_the_pods() -> None:
    play = settled(daemon_set(updateStrategy={"type": "OnDelete"}), *THREE)
    play.change("two")
    play.objects.remove(PODS, name_of(play.on("b")))
    play.settle()
    assert play.images() == ["a one", "b two", "c one"]
    assert play.status["updatedNumberScheduled"] == 1


def test_old_pods_that_are_not_available_are_replaced_besides() -> None:
    play = settled(daemon_set(updateStrategy=rolling(1)), *THREE)
    for name in ("b", "c"):
        become(play, f"default/{play.on(name)['metadata']['name']}", "Running")
    play.change("two")
    play.reconcile()
    assert play.deleted() == ["b one", "c one"]


def test_an_update_waits_for_new_pods_that_are_not_available() -> None:
    play = settled(daemon_set(), *THREE)
    play.change("broken")
    play.settle(lambda pod: False)
    assert play.images() == ["a broken", "b one", "c one"]
    play.change("two")
    play.settle()
    assert play.images() == ["a two", "b two", "c two"]


def test_a_surging_update_creates_the_new_pod_before_the_old_one_goes() -> None:
    play = settled(daemon_set(updateStrategy=surging(1)), *THREE)
    play.change("two")
    play.reconcile()
    assert play.images() == ["a one", "a two", "b one", "c one"]
    play.reconcile()
    assert play.images() == ["a one", "a two", "b one", "c one"]
    play.bind()
    play.reconcile()
    assert play.deleted() == ["a one"]
    assert "b two" in play.images()
    play.settle()
    assert play.images() == ["a two", "b two", "c two"]


@rows("surge, first", [(1, 1), (2, 2), ("34%", 2), ("100%", 3), (9, 3)])
def test_so_many_pods_surge_at_a_time(surge: int | str, first: int) -> None:
    play = settled(daemon_set(updateStrategy=surging(surge)), *THREE)
    play.change("two")
    play.reconcile()
    assert sum(image.endswith("two") for image in play.images()) == first


def test_a_surging_update_replaces_old_pods_that_are_not_available_besides() -> None:
    play = settled(daemon_set(updateStrategy=surging(1)), *THREE)
    become(play, f"default/{play.on('c')['metadata']['name']}", "Running")
    play.change("two")
    play.reconcile()
    assert sorted(image for image in play.images() if image.endswith("two")) == ["a two", "c two"]
    play.reconcile()
    assert play.deleted() == ["c one"]


def test_a_surging_set_makes_a_new_pod_while_the_old_one_ends() -> None:
    play = settled(daemon_set(updateStrategy=surging(1)), node("a"))
    ending = copy(play.on("a"))
    ending["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    play.objects.put(PODS, ending)
    play.reconcile()
    assert play.images() == ["a one", "a one"]


def test_when_the_nodes_of_a_surging_set_change_old_pods_wait_for_new_ones() -> None:
    play = settled(daemon_set(updateStrategy=surging(1)), node("a", old="x"), node("b", new="x"))
    # a NoSchedule taint lets the pod of node a stay; a new template does not run there
    play.objects.put(NODES, node("a", taint("mine"), old="x"))
    become(play, f"default/{play.on('b')['metadata']['name']}", "Running")
    play.change("two")
    play.reconcile()
    assert play.deleted() == []
    assert play.images() == ["a one", "b one", "b two"]
    play.settle()
    assert play.images() == ["b two"]


READY, IMAGE = "ready", "image"


@rows(
    "strategy, were_ready, rounds",
    [
        (rolling(2), True, [IMAGE, (0, 2), (2, 0), READY, (0, 2), (2, 0), READY, (0, 1), (1, 0), READY, (0, 0)]),
        (surging(2), True, [IMAGE, (2, 0), (0, 0), READY, (2, 2), (0, 0), READY, (1, 2), READY, (0, 1), (0, 0)]),
        (rolling(3), True, [IMAGE, (0, 3), (3, 0), (0, 0)]),
        (rolling(2), True, [IMAGE, (0, 2), (2, 0), (0, 0), IMAGE, (0, 2), (2, 0), (0, 0)]),
        (rolling(3), False, [IMAGE, (0, 5), (5, 0), (0, 0)]),
        (surging(3), False, [IMAGE, (5, 0), (0, 5), READY, (0, 0)]),
        (rolling(3), True, [(0, 0)]),
    ],
    ids=[
        "as many at a time as may be unavailable",
        "as many at a time as may surge",
        "new pods that are not ready stop it",
        "another template replaces those that are not ready",
        "old pods that are not ready are all replaced",
        "old pods that are not ready are all replaced, with surge",
        "the template is the same",
    ],
)
def test_the_rounds_of_an_update(strategy: Object, were_ready: bool, rounds: list[Any]) -> None:
    """Each round: how many pods are created and deleted, as upstream's tests have it."""
    play = Daemons(daemon_set(updateStrategy=strategy), *(node(name) for name in "abcde"))
    _round(play)
    if were_ready:
        _all_ready(play)
    for n, expected in enumerate(rounds):
        if expected == IMAGE:
            play.change(f"image-{n}")
        elif expected == READY:
            _all_ready(play)
        else:
            assert _round(play) == expected, n


def test_an_update_with_surge_leaves_a_node_that_no_longer_fits_in_time() -> None:
    tolerated = template(tolerations=[{"key": "mine", "operator": "Exists"}])
    nodes = [node("a", taint("mine")), *(node(name) for name in "bcde")]
    play = Daemons(daemon_set(updateStrategy=surging(1), template=tolerated), *nodes)
    assert _round(play) == (5, 0)
    _all_ready(play)
    play.change("two")
    for expected in [(1, 1), (1, 1), (1, 1), (1, 1), (0, 1)]:
        assert _round(play) == expected
        assert _round(play) == (0, 0)
        _all_ready(play)


def _round(play: Daemons) -> tuple[int, int]:
    play.done()
    play.reconcile()
    finish_deletions(play)
    texts = play.done()
    return texts.count("create pods logs-"), sum(text.startswith("delete pods") for text in texts)


def _all_ready(play: Daemons) -> None:
    for pod in list(play.pods()):
        become_ready(play, f"default/{pod['metadata']['name']}")


# -- revisions --------------------------------------------------------------------------------------------------------


def test_a_template_that_comes_back_gets_the_next_number() -> None:
    play = settled(daemon_set(), node("a"))
    for image in ("two", "one"):
        play.change(image)
        play.settle()
    assert sorted(one["revision"] for one in play.objects.all(REVISIONS)) == [2, 3]
    assert play.images() == ["a one"]
    label = play.on("a")["metadata"]["labels"]["controller-revision-hash"]
    assert play.get(REVISIONS, f"default/logs-{label}")["revision"] == 3


def test_so_many_old_revisions_stay_as_the_limit_says() -> None:
    play = settled(daemon_set(revisionHistoryLimit=2), node("a"))
    for n in range(5):
        play.change(str(n))
        play.settle()
    assert sorted(one["revision"] for one in play.objects.all(REVISIONS)) == [4, 5, 6]


def test_a_revision_that_a_pod_has_stays() -> None:
    play = settled(daemon_set(revisionHistoryLimit=0, updateStrategy={"type": "OnDelete"}), node("a"))
    for n in range(3):
        play.change(str(n))
        play.settle()
    assert sorted(one["revision"] for one in play.objects.all(REVISIONS)) == [1, 4]


def test_a_name_that_is_taken_is_counted() -> None:
    value = daemon_set()
    taken = revisions.new_revision(value, 1, revisions.hash_of(revisions.template_patch(value), None), "x")
    taken |= {"data": {}}
    del taken["metadata"]["ownerReferences"]
    taken["metadata"]["labels"] = {}
    play = Daemons(value, node("a"))
    play.add(REVISIONS, taken)
    play.settle()
    assert play.status["collisionCount"] == 1
    assert play.images() == ["a one"]


def test_equal_revisions_become_one_and_pods_get_its_label() -> None:
    play = settled(daemon_set(), node("a"))
    [first] = play.objects.all(REVISIONS)
    twin = copy(first)
    twin["metadata"] |= {"name": "logs-twin", "uid": "twin"}
    twin["metadata"]["labels"]["controller-revision-hash"] = "twin"
    play.objects.put(REVISIONS, {**twin, "revision": 5})
    play.settle()
    assert [one["metadata"]["name"] for one in play.objects.all(REVISIONS)] == ["logs-twin"]
    assert play.on("a")["metadata"]["labels"]["controller-revision-hash"] == "twin"


def test_a_revision_without_the_label_gets_its_name() -> None:
    play = settled(daemon_set(), node("a"))
    [first] = play.objects.all(REVISIONS)
    old = copy(first)
    del old["metadata"]["labels"]["controller-revision-hash"]
    play.objects.put(REVISIONS, old)
    play.settle()
    assert [one["metadata"]["labels"]["controller-revision-hash"] for one in play.objects.all(REVISIONS)] == [
        first["metadata"]["name"]
    ]


# -- what concerns a set ----------------------------------------------------------------------------------------------


def _affected(play: Play, kind: Kind, old: Object | None, new: Object | None) -> list[str]:
    controller = object.__new__(DaemonSets)  # it needs nothing of a server
    return sorted(key.name for key in controller.affected(play.objects, kind, old, new))


@rows(
    "old, new, concerned",
    [
        (None, node("a", disk="ssd"), ["logs"]),
        (None, node("a"), []),
        (node("a", disk="ssd"), None, ["logs"]),
        (node("a"), node("a", disk="ssd"), ["logs"]),
        (node("a", disk="ssd"), node("a", disk="ssd", zone="z"), []),
        (node("a", disk="ssd"), node("a", taint("mine"), disk="ssd"), ["logs"]),
        (node("a", disk="ssd"), {**node("a", disk="ssd"), "status": {"heartbeat": 2}}, []),
    ],
    ids=[
        "a new node that fits",
        "a new node that does not fit",
        "a node that fitted is gone",
        "a label lets it fit",
        "another label",
        "a taint",
        "a heartbeat",
    ],
)
def test_changes_of_a_node_that_concern_a_set(old: Object | None, new: Object | None, concerned: list[str]) -> None:
    play = Daemons(daemon_set(template=template(nodeSelector={"disk": "ssd"})))
    assert _affected(play, NODES, old, new) == concerned


def test_changes_of_a_pod_that_concern_a_set() -> None:
    play = settled(daemon_set(), node("a"))
    ready = play.on("a")
    [revision] = play.objects.all(REVISIONS)
    orphan = {**ready, "metadata": {**ready["metadata"], "ownerReferences": []}}
    assert _affected(play, PODS, ready, {**ready, "status": {**ready["status"], "podIP": "10.0.0.1"}}) == []
    assert _affected(play, PODS, ready, become(play, f"default/{ready['metadata']['name']}", "Running")) == ["logs"]
    assert _affected(play, PODS, ready, None) == ["logs"]
    assert _affected(play, PODS, None, orphan) == ["logs"]
    assert _affected(play, REVISIONS, revision, None) == ["logs"]


# -- laws -------------------------------------------------------------------------------------------------------------

ACTIONS = st.one_of(
    st.tuples(st.just("image"), st.sampled_from(["one", "two", "three"])),
    st.tuples(st.sampled_from(["fail", "unready", "ready", "remove"]), st.sampled_from("abc")),
    st.tuples(st.sampled_from(["taint", "untaint"]), st.sampled_from("abc")),
    st.tuples(st.sampled_from(["run", "bind", "finish"]), st.just("")),
)


def act(play: Daemons, action: str, value: str) -> None:
    if action == "image":
        play.change(value)
    elif action == "run":
        play.pass_time(play.reconcile() or 0)
    elif action == "bind":
        play.bind()
    elif action == "finish":
        finish_deletions(play)
    elif action in ("taint", "untaint"):
        play.objects.put(NODES, node(value, *([taint("mine", "NoExecute")] if action == "taint" else [])))
    for pod in [pod for pod in play.pods() if target_node(pod) == value and (pod.get("status") or {}).get("phase")]:
        name = f"default/{pod['metadata']['name']}"
        if action == "fail":
            fail(play, name)
        elif action == "remove":
            play.objects.remove(PODS, name_of(pod))
        elif action in ("ready", "unready"):
            become(play, name, "Running", ready=action == "ready")


@settings(max_examples=50, deadline=None)
@given(st.lists(ACTIONS, max_size=20), st.sampled_from([rolling(1), rolling(2), surging(1), surging(2)]))
def test_whatever_happens_a_set_converges(actions: list[tuple[str, str]], strategy: Object) -> None:
    play = Daemons(daemon_set(updateStrategy=strategy), *THREE)
    surges = bool(strategy["rollingUpdate"]["maxSurge"])
    most = 2 if surges else 1

    def at_most(write: Write) -> None:
        if isinstance(write, Create) and write.kind == PODS:
            living = [pod for pod in play.pods() if not pod["metadata"].get("deletionTimestamp")]
            if surges:  # a set that surges does not wait until failed pods are deleted
                living = [pod for pod in living if (pod.get("status") or {}).get("phase") != "Failed"]
            assert sum(target_node(pod) == target_node(write.value) for pod in living) < most

    play._refuse = at_most
    for action, value in actions:
        act(play, action, value)
    for name in "abc":
        play.objects.put(NODES, node(name))
    for _ in range(4):
        for pod in list(play.pods()):
            if (pod.get("status") or {}).get("phase") == "Running":
                become_ready(play, f"default/{pod['metadata']['name']}")
        play.pass_time(2000)
        play.settle()
    image = play.get(DAEMON_SETS, LOGS)["spec"]["template"]["spec"]["containers"][0]["image"]
    assert play.images() == [f"a {image}", f"b {image}", f"c {image}"]
    assert play.status["numberAvailable"] == play.status["updatedNumberScheduled"] == 3
    assert play.now >= NOW
