"""ReplicaSets and ReplicationControllers (situations of pkg/controller/replicaset/replica_set_test.go)."""

from __future__ import annotations

import pytest

from noxu.api.errors import ApiError
from noxu.values import Object
from noxu.workloads.objects import PODS, REPLICA_SETS, REPLICATION_CONTROLLERS, Objects
from noxu.workloads.replica_sets import ReplicaSets, ReplicationControllers, status_of
from noxu.workloads.writes import Create, Delete, NamespacedName
from tests.rows import rows
from tests.workloads.plays import NOW, Play
from tests.workloads.replicas import ago, pod, replica_set, replication_controller

WEB = replica_set()
OTHER = replica_set(name="other")


def _controller(kind: type[ReplicaSets]) -> ReplicaSets:
    return object.__new__(kind)  # its steps need nothing of a server


steps = _controller(ReplicaSets).steps


def run(play: Play) -> tuple[float | None, list[str]]:
    again = play.run(steps, "default/web")
    return again, play.done()


def in_status(play: Play) -> Object:
    status = play.get(REPLICA_SETS, "default/web")["status"]
    return {name: value for name, value in status.items() if name not in ("observedGeneration", "conditions") and value}


READY = {"fullyLabeledReplicas": 1, "readyReplicas": 1, "availableReplicas": 1, "replicas": 1}
ENDING: Object = {"deletionTimestamp": ago(0), "finalizers": ["example.com/f"]}
UNLABELLED: Object = {"metadata": {"labels": {"app": "other"}}}


@rows(
    "situation, objects, written",
    [
        ("it is not there", [], []),
        ("nothing is wanted", [replica_set(0)], ["update replicasets/status web"]),
        (
            "three pods are created in batches",
            [replica_set(3)],
            [
                *["create pods web-"] * 3,
                *[f"event Normal SuccessfulCreate: Created pod: web-{n}" for n in (1, 2, 3)],
                "update replicasets/status web",
            ],
        ),
        (
            "one is missing",
            [replica_set(2), pod("a", WEB)],
            ["create pods web-", "event Normal SuccessfulCreate: Created pod: web-1", "update replicasets/status web"],
        ),
        (
            "the one that is not ready is deleted",
            [replica_set(1), pod("a", WEB, ready=9), pod("b", WEB)],
            ["delete pods b", "event Normal SuccessfulDelete: Deleted pod: b", "update replicasets/status web"],
        ),
        (
            "a finished pod is replaced, and stays",
            [replica_set(1), pod("a", WEB, status={"phase": "Failed"}), pod("b", WEB, status={"phase": "Succeeded"})],
            ["create pods web-", "event Normal SuccessfulCreate: Created pod: web-1", "update replicasets/status web"],
        ),
        (
            "a pod that is being deleted is replaced",
            [replica_set(1), pod("a", WEB, metadata=ENDING)],
            ["create pods web-", "event Normal SuccessfulCreate: Created pod: web-1", "update replicasets/status web"],
        ),
        ("an orphan is adopted", [replica_set(1), pod("a")], ["update pods a", "update replicasets/status web"]),
        (
            "an orphan that is being deleted is not adopted",
            [replica_set(0), pod("a", metadata=ENDING)],
            ["update replicasets/status web"],
        ),
        (
            "an orphan that has finished is not adopted",
            [replica_set(0), pod("a", status={"phase": "Failed"})],
            ["update replicasets/status web"],
        ),
        (
            "one that the selector does not select any more is released",
            [replica_set(0), pod("a", WEB, **UNLABELLED)],
            ["update pods a", "update replicasets/status web"],
        ),
        (
            "the pods of another one are left alone",
            [replica_set(0), pod("a", OTHER)],
            ["update replicasets/status web"],
        ),
        (
            "it is being deleted: it adopts, creates and deletes nothing",
            [replica_set(3, metadata=ENDING), pod("a"), pod("b", WEB)],
            ["update replicasets/status web"],
        ),
    ],
)
def test_pods_are_created_and_deleted(situation: str, objects: list[Object], written: list[str]) -> None:
    play = Play(*((PODS if value["kind"] == "Pod" else REPLICA_SETS, value) for value in objects))
    assert run(play)[1] == written, situation
    assert run(play)[1] == [], "nothing is left to do"


def test_a_released_pod_has_no_controller() -> None:
    play = Play((REPLICA_SETS, replica_set(0)), (PODS, pod("a", WEB, **UNLABELLED)))
    run(play)
    assert "ownerReferences" not in play.get(PODS, "default/a")["metadata"]


def test_batches_double_until_one_fails() -> None:
    """TestSlowStartBatch, and a quota of six pods."""
    left = iter(range(6))
    error = ApiError(403, 'pods "web-" is forbidden: exceeded quota', "Forbidden")
    play = Play(
        (REPLICA_SETS, replica_set(100)),
        refuse=lambda write: error if isinstance(write, Create) and next(left, None) is None else None,
    )
    with pytest.raises(ApiError, match="exceeded quota"):
        play.run(steps, "default/web")
    assert sum(isinstance(write, Create) for write in play.writes) == 1 + 2 + 4
    assert play.done()[7:] == [
        *[f"event Normal SuccessfulCreate: Created pod: web-{n}" for n in range(1, 7)],
        'event Warning FailedCreate: Error creating: pods "web-" is forbidden: exceeded quota',
        "update replicasets/status web",
    ]
    [condition] = play.get(REPLICA_SETS, "default/web")["status"]["conditions"]
    assert condition == {
        "type": "ReplicaFailure",
        "status": "True",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
        "reason": "FailedCreate",
        "message": 'pods "web-" is forbidden: exceeded quota',
    }


def test_the_condition_goes_when_nothing_fails() -> None:
    failing = {"conditions": [{"type": "ReplicaFailure", "status": "True"}, {"type": "Other", "status": "True"}]}
    play = Play((REPLICA_SETS, replica_set(1, status=failing)))
    run(play)
    assert play.get(REPLICA_SETS, "default/web")["status"]["conditions"] == [{"type": "Other", "status": "True"}]


def test_a_namespace_that_ends_is_no_failure() -> None:
    error = ApiError(403, "it ends", "Forbidden", {"causes": [{"reason": "NamespaceTerminating"}]})
    play = Play((REPLICA_SETS, replica_set(9)), refuse=lambda write: error if isinstance(write, Create) else None)
    assert run(play)[1] == ["create pods web-", "update replicasets/status web"]


@rows(
    "reason, events, failure",
    [
        ("NotFound", [], None),
        ("Forbidden", ["event Warning FailedDelete: Error deleting: no"], "unable to delete pods: no"),
    ],
)
def test_pods_that_cannot_be_deleted(reason: str, events: list[str], failure: str | None) -> None:
    play = Play(
        (REPLICA_SETS, replica_set(0)),
        (PODS, pod("a", WEB)),
        refuse=lambda write: ApiError(400, "no", reason) if isinstance(write, Delete) else None,
    )
    if failure:
        with pytest.raises(ApiError):
            play.run(steps, "default/web")
    else:
        play.run(steps, "default/web")
    assert play.done() == ["delete pods a", *events, "update replicasets/status web"]
    conditions = play.get(REPLICA_SETS, "default/web")["status"].get("conditions", [])
    assert [(found["reason"], found["message"]) for found in conditions] == (
        [("FailedDelete", failure)] if failure else []
    )


def test_500_pods_are_created_at_once() -> None:
    play = Play((REPLICA_SETS, replica_set(700)))
    for created in (500, 200, 0):
        run_writes = run(play)[1]
        assert sum(write.startswith("create") for write in run_writes) == created


@rows(
    "situation, pods, counts",
    [
        ("ready", [pod("a", WEB, ready=0)], READY),
        ("not ready", [pod("a", WEB)], {"fullyLabeledReplicas": 1, "replicas": 1}),
        (
            "one that ends counts as terminating",
            [pod("a", WEB, ready=0), pod("b", WEB, ready=0, metadata=ENDING)],
            {**READY, "terminatingReplicas": 1},
        ),
        (
            "one that has finished and ends counts nowhere",
            [pod("a", WEB, ready=0), pod("b", WEB, status={"phase": "Failed"}, metadata=ENDING)],
            READY,
        ),
    ],
)
def test_the_status_counts_pods(situation: str, pods: list[Object], counts: Object) -> None:
    play = Play((REPLICA_SETS, replica_set(1)), *((PODS, value) for value in pods))
    run(play)
    assert in_status(play) == counts, situation
    assert play.get(REPLICA_SETS, "default/web")["status"]["observedGeneration"] == 1


def test_a_pod_counts_as_fully_labelled_if_it_has_the_labels_of_the_template() -> None:
    spec = replica_set()["spec"]
    labelled = {**spec["template"], "metadata": {"labels": {"app": "web", "tier": "front"}}}
    counted = status_of(replica_set(1, spec={"template": labelled}), [pod("a", WEB)], [], None, NOW)
    assert "fullyLabeledReplicas" not in counted


def test_a_pod_is_available_after_min_ready_seconds() -> None:
    play = Play((REPLICA_SETS, replica_set(2, spec={"minReadySeconds": 60})))
    play.add(PODS, pod("a", WEB, ready=20))
    play.add(PODS, pod("b", WEB, ready=0))
    assert run(play)[0] == 40
    assert "availableReplicas" not in in_status(play)
    play.pass_time(40)
    assert run(play)[0] == 20
    assert in_status(play)["availableReplicas"] == 1
    play.pass_time(20)
    assert run(play)[0] is None
    assert in_status(play)["availableReplicas"] == 2


def test_the_pod_of_the_template_belongs_to_the_replica_set() -> None:
    play = Play((REPLICA_SETS, replica_set(1)))
    run(play)
    created = play.get(PODS, "default/web-1")
    assert created["metadata"]["labels"] == {"app": "web"}
    assert created["metadata"]["ownerReferences"] == [
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "name": "web",
            "uid": "uid-web",
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]


def test_a_replication_controller_selects_by_a_map_and_counts_no_terminating_pods() -> None:
    play = Play((REPLICATION_CONTROLLERS, replication_controller(2)), (PODS, pod("a")))
    controller = _controller(ReplicationControllers)
    play.run(controller.steps, "default/web")
    assert play.done() == [
        "update pods a",
        "create pods web-",
        "event Normal SuccessfulCreate: Created pod: web-1",
        "update replicationcontrollers/status web",
    ]
    status = play.get(REPLICATION_CONTROLLERS, "default/web")["status"]
    assert status == {"replicas": 2, "fullyLabeledReplicas": 2, "observedGeneration": 1}


def test_pods_on_the_node_of_a_sibling_s_pods_are_deleted_first() -> None:
    """TestRelatedPodsLookup: during a roll-out, the pods of the old ReplicaSet count too."""
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "uid": "uid-d"}}
    of_deployment = pod("unused", deployment)["metadata"]["ownerReferences"]
    play = Play(
        (REPLICA_SETS, replica_set(1, metadata={"ownerReferences": of_deployment})),
        (REPLICA_SETS, replica_set(1, name="older", metadata={"ownerReferences": of_deployment})),
        (PODS, pod("a", WEB, ready=9, spec={"nodeName": "node-1"})),
        (PODS, pod("b", WEB, ready=9, spec={"nodeName": "node-2"})),
        (PODS, pod("c", replica_set(name="older"), ready=9, spec={"nodeName": "node-2"})),
    )
    assert run(play)[1][0] == "delete pods b"


@rows(
    "change, old, new, keys",
    [
        ("its pod is created", None, pod("a", WEB), ["web"]),
        ("its pod is deleted", pod("a", WEB), None, ["web"]),
        ("its pod becomes ready", pod("a", WEB), pod("a", WEB, ready=0), ["web"]),
        ("its pod is only bound", pod("a", WEB, spec={"nodeName": ""}), pod("a", WEB), []),
        ("its pod moves to another one", pod("a", WEB), pod("a", OTHER), ["web", "other"]),
        ("an orphan is created", None, pod("a"), ["web", "other"]),
        ("an orphan that none selects is created", None, pod("a", **UNLABELLED), []),
        ("an orphan gets labels", pod("a", **UNLABELLED), pod("a"), ["web", "other"]),
        ("an orphan is deleted", pod("a"), None, []),
        ("a pod of another kind", None, pod("a", {**WEB, "kind": "Job"}), []),
    ],
)
def test_what_a_change_of_a_pod_concerns(change: str, old: Object | None, new: Object | None, keys: list[str]) -> None:
    objects = Objects([(REPLICA_SETS, WEB), (REPLICA_SETS, OTHER)])
    found = [*_controller(ReplicaSets).affected(objects, PODS, old, new)]
    assert found == [NamespacedName("default", key) for key in keys], change


def test_its_own_change_concerns_a_replica_set() -> None:
    controller = _controller(ReplicaSets)
    for old, new in ((None, WEB), (WEB, WEB), (WEB, None)):
        assert [*controller.affected(Objects(), REPLICA_SETS, old, new)] == [NamespacedName("default", "web")]
