"""node-lifecycle-controller (situations of pkg/controller/nodelifecycle/node_lifecycle_controller_test.go)."""

from __future__ import annotations

from noxu.values import Object
from noxu.workloads.node_lifecycle import NodeLifecycleController, concerned, lifecycle
from noxu.workloads.objects import LEASES, NODES, PODS, Objects
from noxu.workloads.writes import Kind, NamespacedName
from tests.rows import rows
from tests.workloads.cluster import TIME, node, pod
from tests.workloads.plays import Play

MARK = {"noxu.dev/simulate": "node-lost"}
MICRO = "2026-01-01T00:00:00.000000Z"


def lease(*, lost: bool = False, name: str = "node-1", namespace: str = "kube-node-lease") -> tuple[Kind, Object]:
    metadata = {"name": name, "namespace": namespace, **({"annotations": MARK} if lost else {})}
    return LEASES, {"metadata": metadata, "spec": {"renewTime": MICRO}}


def ready(play: Play) -> Object:
    [found, *_] = [each for each in play.get(NODES, "node-1")["status"]["conditions"] if each["type"] == "Ready"]
    return {key: found[key] for key in ("status", "reason", "message") if key in found}


UNKNOWN = {"status": "Unknown", "reason": "NodeStatusUnknown", "message": "Kubelet stopped posting node status."}
NEVER = {"status": "Unknown", "reason": "NodeStatusNeverUpdated", "message": "Kubelet never posted node status."}
OTHER_NODE = node("node-2")
LOST = node(annotations=MARK)


@rows(
    "situation, objects, grace, condition",
    [
        ("a simulated node is heard of always", [node()], None, None),
        ("a lost node of which the last sign is not written yet", [LOST, lease()], None, None),
        ("a lost node", [LOST, lease(lost=True)], 50.0, UNKNOWN),
        ("a node elsewhere", [node(simulated=False)], 50.0, UNKNOWN),
        ("a node elsewhere with a lease", [node(simulated=False), lease()], 50.0, UNKNOWN),
        ("a node elsewhere without a status", [node(ready=None, simulated=False)], 60.0, NEVER),
    ],
)
def test_silence(
    situation: str, objects: list[tuple[Kind, Object]], grace: float | None, condition: Object | None
) -> None:
    play = Play(*objects, OTHER_NODE)
    assert play.run(lifecycle, "node-1") == grace, situation
    play.pass_time(49)
    assert play.run(lifecycle, "node-1") == (None if grace is None else grace - 49)
    play.pass_time(11)
    assert play.run(lifecycle, "node-1") is None
    assert condition is None or ready(play) == condition, situation
    assert (ready(play)["status"] == "True") == (condition is None)


def test_a_lease_elsewhere_that_is_renewed() -> None:
    play = Play(node(simulated=False), lease())
    play.pass_time(40)
    kind, value = lease()
    play.add(kind, {**value, "spec": {"renewTime": "2026-01-01T00:00:40.000000Z"}})
    assert play.run(lifecycle, "node-1") == 50


def test_a_lost_node() -> None:
    pods = [pod("a"), pod("b", ready=False), pod("c", "node-2")]
    play = Play(node(annotations=MARK, MemoryPressure="False"), OTHER_NODE, lease(lost=True), *pods)
    play.pass_time(50)
    assert play.run(lifecycle, "node-1") is None
    assert play.done() == [
        "update nodes/status node-1",
        "event Normal NodeNotReady: Node node-1 status is now: NodeNotReady",
        "update pods/status a",
        "event Warning NodeNotReady: Node is not ready",
        "update nodes node-1",
    ]
    conditions = play.get(NODES, "node-1")["status"]["conditions"]
    assert [(each["type"], each["status"], each["reason"]) for each in conditions] == [
        ("Ready", "Unknown", "NodeStatusUnknown"),
        ("MemoryPressure", "Unknown", "NodeStatusUnknown"),
        ("DiskPressure", "Unknown", "NodeStatusNeverUpdated"),
        ("PIDPressure", "Unknown", "NodeStatusNeverUpdated"),
    ]
    assert conditions[0]["lastTransitionTime"] == "2026-01-01T00:00:50Z"
    assert conditions[0]["lastHeartbeatTime"] == TIME
    [marked] = play.get(PODS, "default/a")["status"]["conditions"]
    assert (marked["status"], marked["lastTransitionTime"]) == ("False", "2026-01-01T00:00:50Z")
    keys = [each["key"] for each in play.get(NODES, "node-1")["spec"]["taints"]]
    assert keys == ["node.kubernetes.io/unreachable"] * 2
    assert play.run(lifecycle, "node-1") is None
    assert play.done() == []


def test_the_only_node_is_not_tainted_for_eviction() -> None:
    play = Play(LOST, lease(lost=True))
    play.pass_time(50)
    play.run(lifecycle, "node-1")
    assert [each["effect"] for each in play.get(NODES, "node-1")["spec"]["taints"]] == ["NoSchedule"]


def test_cordons_and_labels() -> None:
    play = Play(node(unschedulable=True, labels={"kubernetes.io/os": "linux", "beta.kubernetes.io/os": "other"}))
    play.run(lifecycle, "node-1")
    assert play.done() == ["update nodes node-1"]
    found = play.get(NODES, "node-1")
    assert found["metadata"]["labels"]["beta.kubernetes.io/os"] == "linux"
    assert [each["key"] for each in found["spec"]["taints"]] == ["node.kubernetes.io/unschedulable"]


def test_nodes_come_and_go() -> None:
    controller = object.__new__(NodeLifecycleController)
    controller._known = {}
    play = Play(node())
    play.run(controller.steps, "node-1")
    play.run(controller.steps, "node-1")
    play.objects.remove(NODES, NamespacedName("", "node-1"))
    play.run(controller.steps, "node-1")
    play.run(controller.steps, "node-1")
    assert play.done() == [
        "event Normal RegisteredNode: Node node-1 event: Registered Node node-1 in Controller",
        "event Normal RemovingNode: Node node-1 event: Removing Node node-1 from Controller",
    ]


UNREADY = [node("node-2", ready="Unknown"), node("node-3"), node("node-4", ready=None)]
NODE, NOT_READY, NEW = node()[1], node(ready="Unknown")[1], node(ready=None)[1]


@rows(
    "situation, there, kind, old, new, keys",
    [
        ("a node is created", UNREADY, NODES, None, NEW, ["node-1"]),
        ("its first conditions", UNREADY, NODES, NEW, NODE, ["node-1"]),
        ("it becomes unready: so others may be evicted no more", UNREADY, NODES, NODE, NOT_READY, ["node-1", "node-2"]),
        ("it becomes ready", UNREADY, NODES, NOT_READY, NODE, ["node-1", "node-2"]),
        ("it is deleted", UNREADY, NODES, NODE, None, ["node-1", "node-2"]),
        ("the lease of a simulated node", [node()], LEASES, None, lease()[1], []),
        ("that of a lost one", [LOST], LEASES, None, lease(lost=True)[1], ["node-1"]),
        ("that of a node elsewhere", [node(simulated=False)], LEASES, None, lease()[1], ["node-1"]),
        ("another lease", [LOST], LEASES, None, lease(namespace="default")[1], []),
        ("a pod", [node()], PODS, None, pod()[1], []),
    ],
)
def test_what_concerns_nodes(
    situation: str,
    there: list[tuple[Kind, Object]],
    kind: Kind,
    old: Object | None,
    new: Object | None,
    keys: list[str],
) -> None:
    assert [key.name for key in concerned(Objects(there), kind, old, new)] == keys, situation
