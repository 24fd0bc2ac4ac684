"""disruption-controller (situations of pkg/controller/disruption/disruption_test.go)."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from noxu.go.time import format_time
from noxu.values import Object
from noxu.workloads.disruption import DisruptionController, Scale, other_owners
from noxu.workloads.objects import (
    BUDGETS,
    DEPLOYMENTS,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    STATEFUL_SETS,
    Objects,
)
from noxu.workloads.writes import Kind, NamespacedName, Steps
from tests.rows import rows
from tests.workloads.plays import NOW, Play

controller = object.__new__(DisruptionController)  # its steps need nothing else of a server
controller.others = {
    "Set-web": Scale("Set-web", 8),
    "Set-gone": "",
    "job": "jobs.batch does not implement the scale subresource",
}
LABELS = {"app": "web"}
SELECTOR: Object = {"matchLabels": LABELS}


def budget(status: Object | None = None, *, selector: Object | None = SELECTOR, **spec: Any) -> tuple[Kind, Object]:
    value: Object = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "spec": {"selector": selector, **spec}}
    metadata = {"name": "web", "namespace": "default", "uid": "budget-1", "generation": 1}
    return BUDGETS, {**value, "metadata": metadata, **({"status": status} if status else {})}


def owner(
    kind: Kind, kind_name: str, replicas: int, name: str = "web", above: Object | None = None
) -> tuple[Kind, Object]:
    api = "v1" if kind[0] == "" else f"{kind[0]}/v1"
    metadata: Object = {"name": name, "namespace": "default", "uid": f"{kind_name}-{name}"}
    if above is not None:
        metadata["ownerReferences"] = [reference(above)]
    return kind, {"apiVersion": api, "kind": kind_name, "metadata": metadata, "spec": {"replicas": replicas}}


def reference(value: Object) -> Object:
    return {
        "apiVersion": value["apiVersion"],
        "kind": value["kind"],
        "name": value["metadata"]["name"],
        "uid": value["metadata"]["uid"],
        "controller": True,
    }


def pod(
    number: int, owned: Object | None = None, *, ready: bool = True, ending: bool = False, labels: Object = LABELS
) -> tuple[Kind, Object]:
    metadata: Object = {"name": f"web-{number}", "namespace": "default", "uid": f"pod-{number}", "labels": labels}
    if owned is not None:
        metadata["ownerReferences"] = [reference(owned)]
    if ending:
        metadata["deletionTimestamp"] = format_time(NOW)
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": str(ready)}]}
    return PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": []}, "status": status}


def pods(number: int, owned: Object | None = None, *, ready: int | None = None) -> list[tuple[Kind, Object]]:
    return [pod(each, owned, ready=ready is None or each <= ready) for each in range(1, number + 1)]


REPLICA_SET = owner(REPLICA_SETS, "ReplicaSet", 10)
DEPLOYMENT = owner(DEPLOYMENTS, "Deployment", 6)
OF_DEPLOYMENT = owner(REPLICA_SETS, "ReplicaSet", 4, "web-abc", DEPLOYMENT[1])
OTHER_OF_DEPLOYMENT = owner(REPLICA_SETS, "ReplicaSet", 2, "web-def", DEPLOYMENT[1])
STATEFUL_SET = owner(STATEFUL_SETS, "StatefulSet", 4)
CUSTOM = owner(("example.com", "sets"), "Set", 8)
GONE = owner(("example.com", "sets"), "Set", 8, "gone")
CONTROLLER = owner(REPLICATION_CONTROLLERS, "ReplicationController", 5)


@rows(
    "situation, objects, expected, desired, healthy, allowed",
    [
        ("no pods", [budget(minAvailable=3)], 0, 3, 0, 0),
        ("no pods, and none are needed", [budget(minAvailable=0)], 0, 0, 0, 0),
        ("enough pods", [budget(minAvailable=1), *pods(3)], 3, 1, 3, 2),
        ("exactly as many as are needed", [budget(minAvailable=3), *pods(3)], 3, 3, 3, 0),
        ("some are not ready", [budget(minAvailable=1), *pods(3, ready=2)], 3, 1, 2, 1),
        ("one is being deleted", [budget(minAvailable=1), *pods(2), pod(3, ending=True)], 3, 1, 2, 1),
        ("others have other labels", [budget(minAvailable=1), *pods(2), pod(3, labels={"a": "b"})], 2, 1, 2, 1),
        ("all pods are selected", [budget(selector={}, minAvailable=1), pod(1), pod(2, labels={})], 2, 1, 2, 1),
        ("no pods are selected", [budget(selector=None, minAvailable=1), pod(1)], 0, 1, 0, 0),
        ("a share of a replica set", [budget(minAvailable="28%"), REPLICA_SET, *pods(10, REPLICA_SET[1])], 10, 3, 10, 7),
        ("which has not all pods", [budget(minAvailable="28%"), REPLICA_SET, *pods(3, REPLICA_SET[1])], 10, 3, 3, 0),
        ("a number that may be missing", [budget(maxUnavailable=1), REPLICA_SET, *pods(10, REPLICA_SET[1])], 10, 9, 10, 1),
        ("all may be missing", [budget(maxUnavailable="100%"), REPLICA_SET, *pods(2, REPLICA_SET[1])], 10, 0, 2, 2),
        ("more than all", [budget(maxUnavailable=20), REPLICA_SET, *pods(2, REPLICA_SET[1])], 10, 0, 2, 2),
        ("a share that may be missing", [budget(maxUnavailable="30%"), STATEFUL_SET, *pods(4, STATEFUL_SET[1])], 4, 2, 4, 2),
        ("a replication controller", [budget(minAvailable="50%"), CONTROLLER, *pods(5, CONTROLLER[1])], 5, 3, 5, 2),
        (
            "two replica sets of a deployment count once",
            [budget(maxUnavailable=1), DEPLOYMENT, OF_DEPLOYMENT, OTHER_OF_DEPLOYMENT, *pods(4, OF_DEPLOYMENT[1]), pod(5, OTHER_OF_DEPLOYMENT[1])],
            6, 5, 5, 0,
        ),
        ("a custom resource", [budget(maxUnavailable=1), *pods(8, CUSTOM[1])], 8, 7, 8, 1),
        ("the deployment is gone", [budget(maxUnavailable=1), OF_DEPLOYMENT, pod(1, OF_DEPLOYMENT[1])], 4, 3, 1, 0),
        (
            "two controllers",
            [budget(minAvailable="50%"), REPLICA_SET, STATEFUL_SET, pod(1, REPLICA_SET[1]), pod(2, STATEFUL_SET[1])],
            14, 7, 2, 0,
        ),
    ],
)  # fmt: skip
def test_numbers(
    situation: str, objects: list[tuple[Kind, Object]], expected: int, desired: int, healthy: int, allowed: int
) -> None:
    play = Play(*objects)
    play.run(controller.steps, "default/web")
    status = play.get(BUDGETS, "default/web")["status"]
    numbers = [status[name] for name in ("expectedPods", "desiredHealthy", "currentHealthy", "disruptionsAllowed")]
    assert numbers == [expected, desired, healthy, allowed], situation
    [found] = status["conditions"]
    reason = "SufficientPods" if allowed else "InsufficientPods"
    assert (found["type"], found["status"], found["reason"]) == ("DisruptionAllowed", str(allowed > 0), reason)
    assert (status["observedGeneration"], found["observedGeneration"]) == (1, 1)
    play.done()
    play.run(controller.steps, "default/web")
    assert [sentence for sentence in play.done() if not sentence.startswith("event")] == [], "nothing has changed"


JOB: Object = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j", "uid": "job"}}
NO_OWNER = 'found no controllers for pod "web-1"'


@rows(
    "situation, objects, message",
    [
        ("the controller is gone", [budget(maxUnavailable=1), pod(1, REPLICA_SET[1])], NO_OWNER),
        ("the custom resource is gone", [budget(maxUnavailable=1), pod(1, GONE[1])], NO_OWNER),
        ("a job has no scale", [budget(maxUnavailable=1), pod(1, JOB)], "jobs.batch does not implement the scale subresource"),
    ],
)  # fmt: skip
def test_a_scale_that_is_not_known(situation: str, objects: list[tuple[Kind, Object]], message: str) -> None:
    play = Play(*objects)
    play.run(controller.steps, "default/web")
    text = f"Failed to calculate the number of expected pods: {message}"
    written = [f"event Warning CalculateExpectedPodCountFailed: {text}", "update poddisruptionbudgets/status web"]
    assert play.done() == written, situation
    status = play.get(BUDGETS, "default/web")["status"]
    [found] = status["conditions"]
    assert (status["disruptionsAllowed"], found["reason"], found["message"]) == (0, "SyncFailed", message)


@rows(
    "situation, objects, uids",
    [
        ("a custom resource", [budget(maxUnavailable=1), *pods(3, CUSTOM[1])], ["Set-web"]),
        ("its scale is not needed", [budget(minAvailable=1), *pods(3, CUSTOM[1])], []),
        ("a replica set is followed anyway", [budget(maxUnavailable=1), *pods(3, REPLICA_SET[1])], []),
        ("the budget is gone", [*pods(3, CUSTOM[1])], []),
    ],
)
def test_owners_to_look_at(situation: str, objects: list[tuple[Kind, Object]], uids: list[str]) -> None:
    found = other_owners(Play(*objects).objects, NamespacedName("default", "web"))
    assert [owner["uid"] for owner in found] == uids, situation


def test_pods_without_a_controller() -> None:
    play = Play(budget(maxUnavailable=1), pod(1))
    play.run(controller.steps, "default/web")
    [event, _] = play.done()
    shown = "&LabelSelector{MatchLabels:map[string]string{app: web,},MatchExpressions:[]LabelSelectorRequirement{},}"
    begins = (
        f"event Warning UnmanagedPods: Pods selected by this PodDisruptionBudget (selector: {shown}) were found to be"
    )
    assert event.startswith(begins)
    assert play.get(BUDGETS, "default/web")["status"]["expectedPods"] == 0


def test_no_pods_are_reported() -> None:
    play = Play(budget(minAvailable=1))
    play.run(controller.steps, "default/web")
    assert play.done() == ["event Normal NoPods: No matching pods found", "update poddisruptionbudgets/status web"]


# -- evictions


def evicted(*names: str) -> Object:
    return {"disruptedPods": {name: format_time(NOW) for name in names}}


def test_an_evicted_pod_does_not_count_for_two_minutes() -> None:
    play = Play(budget(evicted("web-1", "web-2", "gone"), minAvailable=1), *pods(2), pod(3, ending=True))
    assert play.run(controller.steps, "default/web") == 121
    status = play.get(BUDGETS, "default/web")["status"]
    assert (status["currentHealthy"], sorted(status["disruptedPods"])) == (0, ["web-1", "web-2"])
    play.pass_time(121)
    play.done()
    assert play.run(controller.steps, "default/web") is None
    text = "event Warning NotDeleted: Pod was expected by PDB default/default to be deleted but it wasn't"
    assert play.done() == [text, text, "update poddisruptionbudgets/status web"]
    status = play.get(BUDGETS, "default/web")["status"]
    assert (status["currentHealthy"], "disruptedPods" in status) == (2, False)


def with_target(**given: Any) -> tuple[Kind, Object]:
    kind, value = pod(1)
    target = {"type": "DisruptionTarget", "status": "True", "lastTransitionTime": format_time(NOW), **given}
    value["status"]["conditions"].append(target)
    return kind, value


def test_a_pod_that_was_not_deleted_is_no_target_any_more() -> None:
    def steps(objects: Objects, _: NamespacedName, now: datetime) -> Steps:
        return controller.steps(objects, NamespacedName("pods/default", "web-1"), now)

    play = Play(with_target(reason="EvictionByEvictionAPI"))
    assert play.run(steps, "the pod") == 120
    play.pass_time(120)
    assert play.run(steps, "the pod") is None
    assert play.done() == ["update pods/status web-1"]
    target = play.get(PODS, "default/web-1")["status"]["conditions"][-1]
    assert (target["status"], "reason" in target) == ("False", False)


def test_a_pod_with_two_budgets() -> None:
    kind, value = budget(minAvailable=1)
    other = {**value, "metadata": {**value["metadata"], "name": "more", "uid": "budget-2"}}
    play = Play((kind, value), (kind, other), pod(1))
    keys = list(controller.affected(play.objects, PODS, None, play.get(PODS, "default/web-1")))
    assert [(key.namespace, key.name) for key in keys] == [
        ("default", "web"),
        ("default", "more"),
        ("pods/default", "web-1"),
    ]
    play.run(lambda objects, _, now: controller.steps(objects, keys[-1], now), "the pod")
    text = 'Pod "default"/"web-1" matches multiple PodDisruptionBudgets.  Chose "web" arbitrarily.'
    assert play.done() == [f"event Warning MultiplePodDisruptionBudgets: {text}"]


PLAIN, UNREADY = pod(1)[1], pod(1, ready=False)[1]


@rows(
    "situation, old, new, keys",
    [
        ("a pod is created", None, PLAIN, ["web"]),
        ("a pod becomes ready", UNREADY, PLAIN, ["web"]),
        ("a pod changes otherwise", PLAIN, {**PLAIN, "spec": {"nodeName": "a"}}, []),
        ("a pod loses its labels", PLAIN, pod(1, labels={})[1], ["web"]),
        ("a pod of others", None, pod(1, labels={})[1], []),
        ("a target", PLAIN, with_target()[1], ["web-1"]),
        ("a target of the kubelet", PLAIN, with_target(reason="TerminationByKubelet")[1], []),
    ],
)
def test_what_concerns_a_budget(situation: str, old: Object | None, new: Object | None, keys: list[str]) -> None:
    objects = Objects([budget(minAvailable=1)])
    assert [key.name for key in controller.affected(objects, PODS, old, new)] == keys, situation
