"""What a look at a Deployment writes (situations of deployment_controller_test.go, sync_test.go and recreate_test.go)."""

from __future__ import annotations

from typing import Any

import pytest

from noxu.api.errors import ApiError
from noxu.values import Object
from noxu.workloads.deployment.deployments import Deployments
from noxu.workloads.deployment.revisions import HISTORY, REVISION, template_hash
from noxu.workloads.deployment.rollout import old_pods_run
from noxu.workloads.objects import DEPLOYMENTS, PODS, REPLICA_SETS, Objects
from noxu.workloads.pods import condition
from noxu.workloads.writes import Create, NamespacedName, Replace, Write
from tests.rows import rows
from tests.workloads.deployments import deployment, revision
from tests.workloads.plays import Play
from tests.workloads.replicas import ago, pod, replica_set, template

CONTROLLER = object.__new__(Deployments)  # its steps need nothing of a server
steps = CONTROLLER.steps

HASH = template_hash(template(), None)
NEW = f"web-{HASH}"
STATUS = "update deployments/status web"


def scaled(way: str, name: str, before: int, after: int) -> str:
    return f"event Normal ScalingReplicaSet: Scaled {way} replica set {name} from {before} to {after}"


def run(play: Play) -> list[str]:
    play.run(steps, "default/web")
    return play.done()


def progressing(play: Play) -> tuple[str, str, str]:
    found = condition(play.get(DEPLOYMENTS, "default/web"), "Progressing") or {}
    return found["status"], found["reason"], found["message"]


def newest(replicas: int, **more: Any) -> Object:
    """The ReplicaSet of the template."""
    given: dict[str, Any] = {"image": "nginx", "number": 2} | more
    return revision("new", replicas, **given)


SITUATIONS: list[tuple[str, list[Object], list[str]]] = [
    ("it is not there", [], []),
    ("it is new", [deployment(3)], [f"create replicasets {NEW}", scaled("up", NEW, 0, 3), STATUS]),
    ("it is new, without replicas", [deployment(0)], [f"create replicasets {NEW}", STATUS]),
    ("it is new and paused", [deployment(3, spec={"paused": True})], [STATUS]),
    (
        "the template is new, and there is room",
        [deployment(3, 1), revision("old", 3)],
        [f"create replicasets {NEW}", scaled("up", NEW, 0, 1), STATUS],
    ),
    (
        "the template is new, and there is no room",
        [deployment(3, 0, 1), revision("old", 3)],
        [f"create replicasets {NEW}", STATUS],
    ),
    (
        "an old one shrinks",
        [deployment(3, 0, 1), newest(0), revision("old", 3)],
        ["update replicasets old", scaled("down", "old", 3, 2), STATUS],
    ),
    (
        "the new one grows before an old one shrinks",
        [deployment(3, 1, 1), newest(1), revision("old", 2)],
        ["update replicasets new", scaled("up", "new", 1, 2), STATUS],
    ),
    (
        "it was scaled",
        [deployment(5), newest(3, desired=3)],
        ["update replicasets new", scaled("up", "new", 3, 5), STATUS],
    ),
    (
        "it was scaled while it rolls",
        [deployment(10), newest(2, desired=5, maximum=5), revision("old", 3, desired=5, maximum=5)],
        [
            "update replicasets old",
            "update replicasets new",
            scaled("up", "old", 3, 6),
            scaled("up", "new", 2, 4),
            STATUS,
        ],
    ),
    (
        "it was scaled while it is paused",
        [deployment(5, spec={"paused": True}), revision("old", 3, desired=3)],
        ["update replicasets old", scaled("up", "old", 3, 5), STATUS],
    ),
    (
        "all is there: the old one shrinks at once while it is paused",
        [deployment(3, spec={"paused": True}), newest(3, desired=3), revision("old", 2, desired=3)],
        ["update replicasets old", scaled("down", "old", 2, 0), STATUS],
    ),
    (
        "it is being deleted: only its status changes",
        [deployment(5, metadata={"deletionTimestamp": ago(0), "finalizers": ["a/b"]}), newest(3, desired=3)],
        [STATUS],
    ),
    (
        "Recreate: first the old pods go",
        [deployment(3, strategy="Recreate"), revision("old", 3)],
        ["update replicasets old", scaled("down", "old", 3, 0), STATUS],
    ),
    ("Recreate: it waits for them", [deployment(3, strategy="Recreate"), revision("old", 0, has=1)], [STATUS]),
    (
        "Recreate: it waits for those that are being deleted",
        [
            deployment(3, strategy="Recreate"),
            revision("old", 0),
            pod("a", revision("old", 0), metadata={"deletionTimestamp": ago(0)}),
        ],
        [STATUS],
    ),
    (
        "Recreate: they are gone",
        [deployment(3, strategy="Recreate"), revision("old", 0)],
        [f"create replicasets {NEW}", scaled("up", NEW, 0, 3), STATUS],
    ),
    (
        "Recreate: the new one was there already",
        [deployment(3, strategy="Recreate"), revision("old", 0), newest(0)],
        ["update replicasets new", scaled("up", "new", 0, 3), STATUS],
    ),
    (
        "it gets another minReadySeconds",
        [deployment(3, spec={"minReadySeconds": 9}), newest(3, desired=3)],
        ["update replicasets new", STATUS],
    ),
    (
        "it gets another annotation",
        [deployment(3, metadata={"annotations": {"a": "b"}}), newest(3, desired=3)],
        ["update replicasets new", STATUS],
    ),
    (
        "a selector that selects everything",
        [deployment(3, spec={"selector": {}})],
        [
            "event Warning SelectingAll: This deployment is selecting all pods. A non-empty selector is required.",
            STATUS,
        ],
    ),
    (
        "an orphan is adopted",
        [deployment(3), replica_set(3, name="orphan", metadata={"labels": {"app": "web"}})],
        ["update replicasets orphan", "update replicasets orphan", STATUS],
    ),
    (
        "an orphan with other labels is left alone",
        [deployment(0), replica_set(3, name="orphan", metadata={"labels": {"app": "other"}})],
        [f"create replicasets {NEW}", STATUS],
    ),
    (
        "one whose labels are changed is released",
        [
            deployment(0),
            replica_set(3, name="a", metadata={k: v for k, v in revision("a", 3)["metadata"].items() if k != "labels"}),
        ],
        ["update replicasets a", f"create replicasets {NEW}", STATUS],
    ),
]

KINDS = {"Deployment": DEPLOYMENTS, "ReplicaSet": REPLICA_SETS, "Pod": PODS}


def play_of(*objects: Object, **more: Any) -> Play:
    return Play(*((KINDS[value["kind"]], value) for value in objects), **more)


@rows("situation, objects, written", SITUATIONS)
def test_a_look_at_a_deployment(situation: str, objects: list[Object], written: list[str]) -> None:
    assert run(play_of(*objects)) == written, situation


# -- a new ReplicaSet -------------------------------------------------------------------------------------------------


def test_a_new_replica_set_is_noted() -> None:
    play = play_of(deployment(3))
    run(play)
    assert play.get(DEPLOYMENTS, "default/web")["metadata"]["annotations"] == {REVISION: "1"}
    assert progressing(play) == ("True", "NewReplicaSetCreated", f'Created new replica set "{NEW}"')
    assert play.get(REPLICA_SETS, f"default/{NEW}")["metadata"]["annotations"] == {
        REVISION: "1",
        "deployment.kubernetes.io/desired-replicas": "3",
        "deployment.kubernetes.io/max-replicas": "3",
    }
    assert run(play) == [], "nothing is left to do"


def test_one_that_is_found_is_noted() -> None:
    status = {"replicas": 3, "updatedReplicas": 3}
    play = play_of(deployment(3, status=status), newest(3, desired=3, available=0))
    run(play)
    assert progressing(play) == ("True", "FoundNewReplicaSet", 'Found new replica set "new"')
    assert play.get(DEPLOYMENTS, "default/web")["metadata"]["annotations"] == {REVISION: "2"}


def test_one_to_which_it_comes_back_gets_the_next_revision() -> None:
    back = revision("back", 0, image="nginx", number=1)
    play = play_of(deployment(3, 1), back, revision("current", 3, number=4))
    run(play)
    annotations = play.get(REPLICA_SETS, "default/back")["metadata"]["annotations"]
    assert (annotations[REVISION], annotations[HISTORY]) == ("5", "1")
    assert play.get(DEPLOYMENTS, "default/web")["metadata"]["annotations"][REVISION] == "5"


@rows(
    "situation, other",
    [
        ("an orphan", replica_set(1, name=NEW, metadata={"labels": {"app": "other"}})),
        ("one of the Deployment with another template", revision(NEW, 0)),
    ],
)
def test_a_name_that_is_taken_makes_another_hash(situation: str, other: Object) -> None:
    taken = ApiError(409, "exists", "AlreadyExists")

    def refuse(write: Write) -> ApiError | None:
        return taken if isinstance(write, Create) and write.value["metadata"]["name"] == NEW else None

    play = play_of(deployment(3), other, refuse=refuse)
    assert run(play) == [f"create replicasets {NEW}", STATUS], situation
    assert play.get(DEPLOYMENTS, "default/web")["status"]["collisionCount"] == 1
    assert run(play)[0] == f"create replicasets web-{template_hash(template(), 1)}"


def test_one_that_cannot_be_created() -> None:
    forbidden = ApiError(403, "no more", "Forbidden")
    play = play_of(deployment(3), refuse=lambda write: forbidden if isinstance(write, Create) else None)
    with pytest.raises(ApiError, match="no more"):
        play.run(steps, "default/web")
    message = f'Failed to create new replica set "{NEW}": no more'
    assert play.done()[1:] == [f"event Warning ReplicaSetCreateError: {message}", STATUS]
    assert progressing(play) == ("False", "ReplicaSetCreateError", message)


def test_in_a_namespace_that_ends_none_is_created_and_nothing_fails() -> None:
    ends = ApiError(403, "it ends", "Forbidden", {"causes": [{"reason": "NamespaceTerminating"}]})
    play = play_of(deployment(3), refuse=lambda write: ends if isinstance(write, Create) else None)
    assert run(play) == [f"create replicasets {NEW}", STATUS]


def test_an_event_is_written_even_if_the_next_write_fails() -> None:
    conflict = ApiError(409, "changed", "Conflict")

    def refuse(write: Write) -> ApiError | None:
        is_new = isinstance(write, Replace) and write.value["metadata"]["name"] == "new"
        return conflict if is_new else None

    play = play_of(deployment(10), newest(2, desired=5, maximum=5), revision("old", 3, desired=5, maximum=5), refuse=refuse)  # fmt: skip
    with pytest.raises(ApiError):
        play.run(steps, "default/web")
    assert play.done() == ["update replicasets old", "update replicasets new", scaled("up", "old", 3, 6)]


# -- the end of a roll-out --------------------------------------------------------------------------------------------


def test_old_revisions_go_when_the_roll_out_is_complete() -> None:
    olds = [revision(f"old-{n}", 0, number=n) for n in range(1, 4)]
    given = deployment(3, spec={"revisionHistoryLimit": 1})
    play = play_of(given, newest(3, desired=3, number=4), *olds)
    assert run(play) == [STATUS]
    assert run(play) == ["delete replicasets old-1", "delete replicasets old-2"]
    assert run(play) == []


def test_a_roll_out_that_hangs_exceeds_its_deadline() -> None:
    play = play_of(deployment(3), newest(3, desired=3, available=1))
    assert play.run(steps, "default/web") == 600
    play.pass_time(599)
    assert play.run(steps, "default/web") == 1
    play.pass_time(1)
    assert play.run(steps, "default/web") is None
    assert progressing(play) == ("False", "ProgressDeadlineExceeded", 'ReplicaSet "new" has timed out progressing.')


def test_a_pause_stops_the_deadline() -> None:
    play = play_of(deployment(3, spec={"paused": True}), newest(3, desired=3, available=1))
    assert play.run(steps, "default/web") is None
    assert progressing(play) == ("Unknown", "DeploymentPaused", "Deployment is paused")
    play.pass_time(10_000)
    paused = play.get(DEPLOYMENTS, "default/web")
    play.objects.put(DEPLOYMENTS, {**paused, "spec": {**paused["spec"], "paused": False}})
    assert play.run(steps, "default/web") == 600
    assert progressing(play) == ("Unknown", "DeploymentResumed", "Deployment is resumed")


@rows(
    "situation, has, phases, expected",
    [
        ("there are none", 0, [], False),
        ("the status says so", 1, [], True),
        ("finished ones", 0, ["Failed", "Succeeded"], False),
        ("an unknown one", 0, ["Unknown"], True),
        ("a pending one", 0, ["Pending"], True),
        ("a running one", 0, ["Running"], True),
        ("finished ones, and a pending one", 0, ["Failed", "Succeeded", "Pending"], True),
    ],
)
def test_old_pods_run(situation: str, has: int, phases: list[str], expected: bool) -> None:
    old = revision("old", 0, has=has)
    objects = Objects([(PODS, pod(f"p-{n}", old, status={"phase": phase})) for n, phase in enumerate(phases)])
    assert old_pods_run(objects, [old]) is expected, situation


# -- changes ----------------------------------------------------------------------------------------------------------

ORPHAN = replica_set(1, name="orphan", metadata={"labels": {"app": "web"}})
WEB = NamespacedName("default", "web")
RECREATE = deployment(strategy="Recreate")


@rows(
    "change, kind, old, new, expected",
    [
        ("it is created", DEPLOYMENTS, None, deployment(), [WEB]),
        ("it is deleted", DEPLOYMENTS, deployment(), None, [WEB]),
        ("its ReplicaSet changes", REPLICA_SETS, revision("a", 1), revision("a", 2), [WEB]),
        ("its ReplicaSet is deleted", REPLICA_SETS, revision("a", 1), None, [WEB]),
        ("its ReplicaSet becomes an orphan", REPLICA_SETS, revision("a", 1), ORPHAN, [WEB, WEB]),
        ("an orphan is created", REPLICA_SETS, None, ORPHAN, [WEB]),
        ("an orphan with other labels", REPLICA_SETS, None, replica_set(), []),
        ("the ReplicaSet of another kind", REPLICA_SETS, None, replica_set(metadata={"ownerReferences": [{"controller": True, "kind": "Other", "name": "web", "uid": "u"}]}), []),
        ("a pod is deleted", PODS, pod("p", revision("a", 1)), None, [WEB]),
        ("a pod of no ReplicaSet is deleted", PODS, pod("p"), None, []),
        ("a pod of a ReplicaSet that is gone is deleted", PODS, pod("p", revision("gone", 1)), None, []),
        ("a pod changes", PODS, pod("p", revision("a", 1)), pod("p", revision("a", 1), ready=0), []),
    ],
)  # fmt: skip
def test_what_a_change_concerns(
    change: str, kind: tuple[str, str], old: Object | None, new: Object | None, expected: list[NamespacedName]
) -> None:
    objects = Objects([(DEPLOYMENTS, RECREATE), (REPLICA_SETS, revision("a", 1))])
    assert [*CONTROLLER.affected(objects, kind, old, new)] == expected, change


def test_only_recreate_waits_for_pods() -> None:
    objects = Objects([(DEPLOYMENTS, deployment()), (REPLICA_SETS, revision("a", 1))])
    assert not [*CONTROLLER.affected(objects, PODS, pod("p", revision("a", 1)), None)]
