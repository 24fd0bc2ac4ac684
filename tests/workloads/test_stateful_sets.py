"""statefulset-controller: situations of upstream's stateful_set_control_test.go and stateful_set_utils_test.go."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noxu.api.errors import ApiError, Qualified, already_exists, forbidden
from noxu.values import Object, copy
from noxu.workloads.objects import CLAIMS, PODS, REVISIONS, STATEFUL_SETS, name_of
from noxu.workloads.stateful_sets.claims import wanted_owners
from noxu.workloads.stateful_sets.identity import ordinal_of, revision_of
from noxu.workloads.stateful_sets.stateful_sets import StatefulSets, reconcile
from noxu.workloads.writes import Create, Kind, Write
from tests.rows import rows
from tests.workloads.plays import Play
from tests.workloads.pod_states import GracefulPlay, become, become_ready, fail, finish_deletions, names

WEB = "default/web"


def stateful_set(replicas: int = 3, **spec: Any) -> Object:
    defaults: Object = {
        "replicas": replicas,
        "selector": {"matchLabels": {"app": "web"}},
        "serviceName": "governing",
        "podManagementPolicy": "OrderedReady",
        "revisionHistoryLimit": 10,
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0, "maxUnavailable": 1}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "image": "one"}]},
        },
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "web", "namespace": "default", "uid": "set", "generation": 1},
        "spec": defaults | spec,
    }


def rolling(partition: int = 0, unavailable: int | str = 1) -> Object:
    parameters = {"partition": partition, "maxUnavailable": unavailable}
    return {"type": "RollingUpdate", "rollingUpdate": parameters}


DATA: Object = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
PARALLEL = {"podManagementPolicy": "Parallel"}


def change(play: Play, **spec: Any) -> None:
    """What a person writes; `image` is that of the template."""
    found = copy(play.get(STATEFUL_SETS, WEB))
    if "image" in spec:
        found["spec"]["template"]["spec"]["containers"][0]["image"] = spec.pop("image")
    found["spec"] |= spec
    found["metadata"]["generation"] += 1
    play.objects.put(STATEFUL_SETS, found)


def pod(play: Play, ordinal: int) -> Object:
    return play.get(PODS, f"default/web-{ordinal}")


def images(play: Play) -> list[str]:
    """Those of the pods, in the order of their ordinals."""
    found = sorted(play.objects.all(PODS), key=ordinal_of)
    return [one["spec"]["containers"][0]["image"] for one in found]


def status(play: Play) -> Object:
    found: Object = play.get(STATEFUL_SETS, WEB).get("status") or {}
    return found


def settle(play: Play, ready: Callable[[Object], bool] = lambda pod: True, rounds: int = 60) -> None:
    """Let the controller and a kubelet work until nothing changes. `ready`: the pods that become ready."""
    for _ in range(rounds):
        before = len(play.writes)
        play.run(reconcile, WEB)
        changed = finish_deletions(play) or len(play.writes) > before
        for one in play.objects.all(PODS):
            waits = (one.get("status") or {}).get("phase") in (None, "Pending")
            if waits:
                become(play, f"default/{one['metadata']['name']}", "Running", ready=ready(one))
                changed = True
        if not changed:
            return
    raise AssertionError("it does not settle")


def settled(*objects: tuple[Any, Object]) -> GracefulPlay:
    play = GracefulPlay(*objects)
    settle(play)
    play.done()
    return play


def pods_written(play: Play) -> list[str]:
    return [text for text in play.done() if " pods " in text and not text.startswith("event")]


# -- creating and scaling ---------------------------------------------------------------------------------------------


def test_pods_are_created_in_order_each_after_the_one_before_is_ready() -> None:
    play = Play((STATEFUL_SETS, stateful_set()))
    play.run(reconcile, WEB)
    revision = status(play)["updateRevision"]
    assert play.done() == [
        f"create controllerrevisions {revision}",
        "create pods web-0",
        "event Normal SuccessfulCreate: create Pod web-0 in StatefulSet web successful",
        "update statefulsets/status web",
    ]
    assert status(play) == {
        "replicas": 1,
        "availableReplicas": 0,
        "currentReplicas": 1,
        "updatedReplicas": 1,
        "currentRevision": revision,
        "updateRevision": revision,
        "collisionCount": 0,
        "observedGeneration": 1,
    }
    play.run(reconcile, WEB)
    become(play, "default/web-0", "Running")
    play.run(reconcile, WEB)
    assert play.done() == []
    become_ready(play, "default/web-0")
    play.run(reconcile, WEB)
    assert pods_written(play) == ["create pods web-1"]
    assert (status(play)["readyReplicas"], status(play)["availableReplicas"]) == (1, 1)


def test_a_parallel_set_creates_all_pods_at_once() -> None:
    play = Play((STATEFUL_SETS, stateful_set(5, **PARALLEL)))
    play.run(reconcile, WEB)
    assert pods_written(play) == [f"create pods web-{n}" for n in range(5)]


def test_a_pod_has_an_identity() -> None:
    play = Play((STATEFUL_SETS, stateful_set(1, ordinals={"start": 7})))
    play.run(reconcile, WEB)
    made = pod(play, 7)
    assert made["metadata"]["labels"] == {
        "app": "web",
        "apps.kubernetes.io/pod-index": "7",
        "controller-revision-hash": status(play)["updateRevision"],
        "statefulset.kubernetes.io/pod-name": "web-7",
    }
    assert (made["spec"]["hostname"], made["spec"]["subdomain"]) == ("web-7", "governing")
    [owner] = made["metadata"]["ownerReferences"]
    assert (owner["name"], owner["uid"], owner["controller"]) == ("web", "set", True)


def test_a_set_scales_down_from_the_last_ordinal_one_pod_at_a_time() -> None:
    play = settled((STATEFUL_SETS, stateful_set(3)))
    change(play, replicas=1)
    play.run(reconcile, WEB)
    assert play.done()[:2] == [
        "delete pods web-2",
        "event Normal SuccessfulDelete: delete Pod web-2 in StatefulSet web successful",
    ]
    play.run(reconcile, WEB)
    assert pods_written(play) == []
    finish_deletions(play)
    play.run(reconcile, WEB)
    assert pods_written(play) == ["delete pods web-1"]
    settle(play)
    assert names(play) == ["web-0"]


def test_a_parallel_set_scales_down_at_once() -> None:
    play = settled((STATEFUL_SETS, stateful_set(4, **PARALLEL)))
    change(play, replicas=1)
    play.run(reconcile, WEB)
    assert pods_written(play) == ["delete pods web-3", "delete pods web-2", "delete pods web-1"]


@rows(
    "unready, deleted",
    [
        ([], ["delete pods web-3"]),
        ([3], ["delete pods web-3"]),
        ([2], ["delete pods web-3"]),
        ([2, 3], []),
        ([0], []),
    ],
    ids=[
        "all are ready: the last one goes",
        "the last one is the only one that is not ready: it goes",
        "another one that goes is not ready: the last one is, and goes",
        "two that go are not ready: the lower one is waited for",
        "one that stays is not ready: it is waited for",
    ],
)
def test_scaling_down_waits_for_unhealthy_pods(unready: list[int], deleted: list[str]) -> None:
    play = settled((STATEFUL_SETS, stateful_set(4)))
    for ordinal in unready:
        become(play, f"default/web-{ordinal}", "Running")
    change(play, replicas=2)
    play.run(reconcile, WEB)
    assert pods_written(play) == deleted


def test_ordinals_may_move() -> None:
    play = settled((STATEFUL_SETS, stateful_set(2)))
    change(play, ordinals={"start": 2})
    settle(play)
    assert names(play) == ["web-2", "web-3"]
    assert status(play)["readyReplicas"] == 2


@rows("phase", ["Failed", "Succeeded"])
@pytest.mark.parametrize("policy", ["OrderedReady", "Parallel"])
def test_a_finished_pod_is_replaced(policy: str, phase: str) -> None:
    play = settled((STATEFUL_SETS, stateful_set(3, podManagementPolicy=policy)))
    become(play, "default/web-1", phase)
    play.run(reconcile, WEB)
    assert pods_written(play) == ["delete pods web-1"]
    play.run(reconcile, WEB)
    assert pods_written(play) == []
    settle(play)
    assert names(play) == ["web-0", "web-1", "web-2"]
    assert status(play)["readyReplicas"] == 3


def test_a_pod_is_available_after_min_ready_seconds() -> None:
    play = Play((STATEFUL_SETS, stateful_set(2, minReadySeconds=30)))
    play.run(reconcile, WEB)
    become_ready(play, "default/web-0")
    play.done()
    assert play.run(reconcile, WEB) == 30
    assert pods_written(play) == []
    assert (status(play)["readyReplicas"], status(play)["availableReplicas"]) == (1, 0)
    play.pass_time(30)
    assert play.run(reconcile, WEB) is None
    assert pods_written(play) == ["create pods web-1"]


def test_a_set_that_is_being_deleted_only_counts_its_pods() -> None:
    play = settled((STATEFUL_SETS, stateful_set(2)))
    ending = copy(play.get(STATEFUL_SETS, WEB))
    ending["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["foregroundDeletion"]}
    play.objects.put(STATEFUL_SETS, ending)
    play.objects.remove(PODS, name_of(pod(play, 1)))
    play.run(reconcile, WEB)
    assert play.done() == ["update statefulsets/status web"]
    assert status(play)["replicas"] == 1


def test_nothing_is_written_for_a_set_that_is_gone() -> None:
    play = Play()
    play.run(reconcile, WEB)
    assert play.done() == []


# -- ownership and invariants -----------------------------------------------------------------------------------------


def orphan(name: str, **labels: str) -> Object:
    metadata = {"name": name, "namespace": "default", "uid": name, "labels": labels}
    made = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}
    return {**made, "spec": {}, "status": {"phase": "Running"}}


@rows(
    "found, first",
    [
        (orphan("web-0", app="web"), "update pods web-0"),
        (orphan("web-0", app="other"), "create pods web-0"),
        (orphan("web-x", app="web"), "create pods web-0"),
        (orphan("other-0", app="web"), "create pods web-0"),
    ],
    ids=["a member is adopted", "other labels", "no ordinal", "the name of another set"],
)
def test_an_orphan_is_adopted_if_its_labels_and_its_name_fit(found: Object, first: str) -> None:
    play = Play((STATEFUL_SETS, stateful_set(1)), (PODS, found))
    play.run(reconcile, WEB)
    assert pods_written(play)[0] == first


def test_a_pod_that_loses_its_labels_is_released() -> None:
    play = settled((STATEFUL_SETS, stateful_set(1)))
    changed = copy(pod(play, 0))
    changed["metadata"]["labels"] = {"app": "other"}
    play.objects.put(PODS, changed)
    play.run(reconcile, WEB)
    assert pods_written(play)[0] == "update pods web-0"
    assert "ownerReferences" not in changed["metadata"] or play.writes == []


@rows("label", ["statefulset.kubernetes.io/pod-name"])
def test_a_pod_gets_its_identity_back(label: str) -> None:
    play = settled((STATEFUL_SETS, stateful_set(1)))
    changed = copy(pod(play, 0))
    del changed["metadata"]["labels"][label]
    play.objects.put(PODS, changed)
    play.run(reconcile, WEB)
    assert play.done() == [
        "update pods web-0",
        "event Normal SuccessfulUpdate: update Pod web-0 in StatefulSet web successful",
    ]
    assert pod(play, 0)["metadata"]["labels"][label] == "web-0"


# -- failures ---------------------------------------------------------------------------------------------------------


def refusing(kind: str, error: ApiError) -> Callable[[Write], ApiError | None]:
    return lambda write: error if isinstance(write, Create) and write.kind[1] == kind else None


def test_a_pod_that_cannot_be_created_is_told_and_tried_again() -> None:
    error = forbidden(Qualified("", "pods"), "web-0", "exceeded quota")
    play = Play((STATEFUL_SETS, stateful_set(3)), refuse=refusing("pods", error))
    with pytest.raises(ApiError):
        play.run(reconcile, WEB)
    text = 'create Pod web-0 in StatefulSet web failed error: pods "web-0" is forbidden: exceeded quota'
    assert play.done()[1:] == [
        "create pods web-0",
        f"event Warning FailedCreate: {text}",
        "update statefulsets/status web",
    ]
    assert status(play)["replicas"] == 0


def test_a_parallel_set_stops_after_the_first_batch_that_fails() -> None:
    error = forbidden(Qualified("", "pods"), "", "exceeded quota")
    play = Play((STATEFUL_SETS, stateful_set(9, **PARALLEL)), refuse=refusing("pods", error))
    with pytest.raises(ApiError):
        play.run(reconcile, WEB)
    assert pods_written(play) == ["create pods web-0"]


def test_a_pod_of_that_name_that_belongs_to_another_one_makes_no_event() -> None:
    error = already_exists(Qualified("", "pods"), "web-0")
    play = Play((STATEFUL_SETS, stateful_set(3)), refuse=refusing("pods", error))
    with pytest.raises(ApiError):
        play.run(reconcile, WEB)
    assert not [text for text in play.done() if text.startswith("event")]


# -- updates ----------------------------------------------------------------------------------------------------------


def test_an_update_goes_from_the_last_ordinal_to_the_first() -> None:
    play = settled((STATEFUL_SETS, stateful_set(3)))
    old = status(play)["currentRevision"]
    change(play, image="two")
    play.run(reconcile, WEB)
    assert pods_written(play) == ["delete pods web-2"]
    assert status(play)["currentRevision"] == old != status(play)["updateRevision"]
    assert (status(play)["currentReplicas"], status(play).get("updatedReplicas")) == (2, None)
    play.run(reconcile, WEB)
    assert pods_written(play) == []
    finish_deletions(play)
    play.run(reconcile, WEB)
    assert pods_written(play) == ["create pods web-2"]
    assert images(play) == ["one", "one", "two"]
    settle(play)
    assert pods_written(play) == ["delete pods web-1", "create pods web-1", "delete pods web-0", "create pods web-0"]
    assert images(play) == ["two"] * 3
    assert status(play)["currentRevision"] == status(play)["updateRevision"] != old
    assert status(play)["currentReplicas"] == status(play)["updatedReplicas"] == 3


@rows(
    "partition, after",
    [
        (0, ["two", "two", "two", "two"]),
        (2, ["one", "one", "two", "two"]),
        (3, ["one", "one", "one", "two"]),
        (4, ["one", "one", "one", "one"]),
        (9, ["one", "one", "one", "one"]),
    ],
)
@pytest.mark.parametrize("policy", ["OrderedReady", "Parallel"])
def test_an_update_stops_at_the_partition(policy: str, partition: int, after: list[str]) -> None:
    play = settled((STATEFUL_SETS, stateful_set(4, podManagementPolicy=policy)))
    change(play, image="two", updateStrategy=rolling(partition))
    settle(play)
    assert images(play) == after
    is_complete = partition == 0
    assert (status(play)["currentRevision"] == status(play)["updateRevision"]) == is_complete


def test_a_pod_below_the_partition_comes_back_with_the_current_revision() -> None:
    play = settled((STATEFUL_SETS, stateful_set(3)))
    change(play, image="two", updateStrategy=rolling(2))
    settle(play)
    for ordinal in (0, 2):
        play.objects.remove(PODS, name_of(pod(play, ordinal)))
    settle(play)
    assert images(play) == ["one", "one", "two"]


def test_without_parameters_of_rolling_updates_the_first_pods_keep_the_current_revision() -> None:
    play = settled((STATEFUL_SETS, stateful_set(3, updateStrategy={"type": "RollingUpdate"})))
    change(play, image="two")
    play.run(reconcile, WEB)
    play.objects.remove(PODS, name_of(pod(play, 0)))
    finish_deletions(play)
    play.run(reconcile, WEB)
    assert images(play) == ["one", "one"]
    settle(play)
    assert images(play) == ["two"] * 3


def test_with_on_delete_a_person_replaces_the_pods() -> None:
    play = settled((STATEFUL_SETS, stateful_set(3, updateStrategy={"type": "OnDelete"})))
    change(play, image="two")
    settle(play)
    assert images(play) == ["one"] * 3
    play.objects.remove(PODS, name_of(pod(play, 1)))
    settle(play)
    assert images(play) == ["one", "two", "one"]
    assert status(play)["updatedReplicas"] == 1


@rows(
    "policy, unavailable, first",
    [
        ("OrderedReady", 1, [4]),
        ("OrderedReady", 2, [4, 3]),
        ("Parallel", 3, [4, 3, 2]),
        ("Parallel", "50%", [4, 3]),
        ("Parallel", "10%", [4]),
    ],
)
def test_so_many_pods_are_updated_at_a_time_as_may_be_unavailable(
    policy: str, unavailable: int | str, first: list[int]
) -> None:
    play = settled((STATEFUL_SETS, stateful_set(5, podManagementPolicy=policy)))
    change(play, image="two", updateStrategy=rolling(unavailable=unavailable))
    play.run(reconcile, WEB)
    assert pods_written(play) == [f"delete pods web-{ordinal}" for ordinal in first]
    settle(play)
    assert images(play) == ["two"] * 5


@rows(
    "policy, broken, deleted",
    [
        ("OrderedReady", [2], []),
        ("Parallel", [0], [0]),
        ("Parallel", [0, 1, 2], [2, 1, 0]),
    ],
    ids=[
        "ordered: an old pod that is not ready stops the update",
        "parallel: it is replaced first",
        "parallel: all of them are replaced at once",
    ],
)
def test_old_pods_that_are_not_ready(policy: str, broken: list[int], deleted: list[int]) -> None:
    play = settled((STATEFUL_SETS, stateful_set(4, podManagementPolicy=policy)))
    for ordinal in broken:
        become(play, f"default/web-{ordinal}", "Running")
    change(play, image="two")
    play.run(reconcile, WEB)
    assert pods_written(play) == [f"delete pods web-{ordinal}" for ordinal in deleted]


def test_a_pod_of_a_broken_template_has_to_be_deleted_by_hand() -> None:
    def works(pod: Object) -> bool:
        return bool(pod["spec"]["containers"][0]["image"] != "broken")

    play = settled((STATEFUL_SETS, stateful_set(3)))
    change(play, image="broken")
    settle(play, works)
    assert images(play) == ["one", "one", "broken"]
    change(play, image="two")
    settle(play, works)
    assert images(play) == ["one", "one", "broken"]
    play.objects.remove(PODS, name_of(pod(play, 2)))
    settle(play, works)
    assert images(play) == ["two"] * 3


def test_a_template_that_comes_back_gets_the_next_number() -> None:
    play = settled((STATEFUL_SETS, stateful_set(1)))
    first = status(play)["currentRevision"]
    for image in ("two", "one"):
        change(play, image=image)
        settle(play)
    assert status(play)["currentRevision"] == first
    assert sorted(one["revision"] for one in play.objects.all(REVISIONS)) == [2, 3]
    assert play.get(REVISIONS, f"default/{first}")["revision"] == 3


def test_so_many_old_revisions_stay_as_the_limit_says() -> None:
    play = settled((STATEFUL_SETS, stateful_set(1, revisionHistoryLimit=2)))
    for n in range(6):
        change(play, image=str(n))
        settle(play)
    assert sorted(one["revision"] for one in play.objects.all(REVISIONS)) == [5, 6, 7]


# -- claims -----------------------------------------------------------------------------------------------------------


def with_claims(replicas: int = 2, deleted: str = "Retain", scaled: str = "Retain", **spec: Any) -> Object:
    policy = {"whenDeleted": deleted, "whenScaled": scaled}
    templates = {"volumeClaimTemplates": [DATA], "persistentVolumeClaimRetentionPolicy": policy}
    return stateful_set(replicas, **templates, **spec)


def owner_of(play: Play, claim: str) -> list[str]:
    owners = play.get(CLAIMS, f"default/{claim}")["metadata"].get("ownerReferences") or []
    return [f"{owner['kind']} {owner['name']}" for owner in owners]


def test_claims_are_created_before_their_pod() -> None:
    play = Play((STATEFUL_SETS, with_claims()))
    play.run(reconcile, WEB)
    assert play.done()[1:5] == [
        "create persistentvolumeclaims data-web-0",
        "event Normal SuccessfulCreate: create Claim data-web-0 Pod web-0 in StatefulSet web success",
        "create pods web-0",
        "event Normal SuccessfulCreate: create Pod web-0 in StatefulSet web successful",
    ]
    assert play.get(CLAIMS, "default/data-web-0")["metadata"]["labels"] == {"app": "web"}
    assert pod(play, 0)["spec"]["volumes"] == [{"name": "data", "persistentVolumeClaim": {"claimName": "data-web-0"}}]


def test_a_pod_that_is_pending_gets_a_claim_that_was_deleted() -> None:
    play = Play((STATEFUL_SETS, with_claims(1)))
    play.run(reconcile, WEB)
    play.objects.remove(CLAIMS, name_of(play.get(CLAIMS, "default/data-web-0")))
    play.done()
    play.run(reconcile, WEB)
    assert play.done()[0] == "create persistentvolumeclaims data-web-0"


def test_a_claim_that_is_being_deleted_is_waited_for() -> None:
    ending = {"name": "data-web-0", "namespace": "default", "deletionTimestamp": "2026-01-01T00:00:00Z"}
    play = Play((STATEFUL_SETS, with_claims()), (CLAIMS, {"kind": "PersistentVolumeClaim", "metadata": ending}))
    play.run(reconcile, WEB)
    text = "create Pod web-0 in StatefulSet web failed error: pvc data-web-0 is being deleted"
    assert f"event Warning FailedCreate: {text}" in play.done()
    assert names(play) == []


def test_a_claim_that_cannot_be_created_is_told_and_tried_again() -> None:
    error = forbidden(Qualified("", "persistentvolumeclaims"), "data-web-0", "no")
    play = Play((STATEFUL_SETS, with_claims()), refuse=refusing("persistentvolumeclaims", error))
    with pytest.raises(ApiError):
        play.run(reconcile, WEB)
    reason = 'persistentvolumeclaims "data-web-0" is forbidden: no'
    claim_event = f"create Claim data-web-0 for Pod web-0 in StatefulSet web failed error: {reason}"
    pod_event = f"create Pod web-0 in StatefulSet web failed error: failed to create PVC data-web-0: {reason}"
    told = [text for text in play.done() if text.startswith("event")]
    assert told == [f"event Warning FailedCreate: {claim_event}", f"event Warning FailedCreate: {pod_event}"]


@rows(
    "deleted, scaled, of_replica, of_condemned",
    [
        ("Retain", "Retain", [], []),
        ("Delete", "Retain", ["StatefulSet web"], ["StatefulSet web"]),
        ("Retain", "Delete", [], ["Pod web-1"]),
        ("Delete", "Delete", ["StatefulSet web"], ["Pod web-1"]),
    ],
)
def test_claims_have_the_owners_of_the_retention_policy(
    deleted: str, scaled: str, of_replica: list[str], of_condemned: list[str]
) -> None:
    play = settled((STATEFUL_SETS, with_claims(2, deleted, scaled)))
    assert [owner_of(play, "data-web-0"), owner_of(play, "data-web-1")] == [of_replica, of_replica]
    change(play, replicas=1)
    play.run(reconcile, WEB)
    assert [owner_of(play, "data-web-0"), owner_of(play, "data-web-1")] == [of_replica, of_condemned]
    change(play, persistentVolumeClaimRetentionPolicy={"whenDeleted": "Retain", "whenScaled": "Retain"})
    play.run(reconcile, WEB)
    assert [owner_of(play, "data-web-0"), owner_of(play, "data-web-1")] == [[], []]


def test_a_claim_of_an_earlier_pod_goes_before_the_pod_comes_again() -> None:
    play = settled((STATEFUL_SETS, with_claims(2, scaled="Delete")))
    change(play, replicas=1)
    settle(play)
    change(play, replicas=2)
    play.run(reconcile, WEB)
    assert names(play) == ["web-0"]
    play.objects.remove(CLAIMS, name_of(play.get(CLAIMS, "default/data-web-1")))  # as the garbage collector does
    settle(play)
    assert names(play) == ["web-0", "web-1"]
    assert owner_of(play, "data-web-1") == []


OTHER = {"apiVersion": "v1", "kind": "Other", "name": "x", "uid": "x"}
SET = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": "set"}
POD = {"apiVersion": "v1", "kind": "Pod", "name": "web-0", "uid": "pod"}
CONTROLS = {"controller": True}
BLOCKS = {"controller": True, "blockOwnerDeletion": True}


@rows(
    "owners, deleted, scaled, ordinal, after",
    [
        ([SET | CONTROLS, POD | CONTROLS], "Retain", "Retain", 0, []),
        ([SET, OTHER], "Retain", "Retain", 0, [OTHER]),
        ([OTHER | CONTROLS, SET | CONTROLS], "Retain", "Retain", 0, [OTHER | CONTROLS]),
        ([], "Delete", "Retain", 0, [SET | BLOCKS]),
        ([SET | CONTROLS], "Delete", "Retain", 0, [SET | CONTROLS]),
        ([SET | CONTROLS, OTHER], "Delete", "Retain", 0, [SET | CONTROLS, OTHER]),
        ([SET], "Delete", "Retain", 0, [SET | BLOCKS]),
        ([POD | CONTROLS], "Delete", "Retain", 0, [SET | BLOCKS]),
        ([OTHER], "Delete", "Retain", 9, [OTHER, SET | BLOCKS]),
        ([SET | CONTROLS], "Retain", "Delete", 0, []),
        ([SET | CONTROLS], "Delete", "Delete", 0, [SET | CONTROLS]),
        ([SET | CONTROLS], "Delete", "Delete", 9, [POD | {"name": "web-9"} | BLOCKS]),
        ([], "Retain", "Delete", 9, [POD | {"name": "web-9"} | BLOCKS]),
        ([OTHER | CONTROLS], "Delete", "Delete", 0, [OTHER | CONTROLS]),
        ([OTHER | CONTROLS, SET | CONTROLS], "Delete", "Delete", 0, [OTHER | CONTROLS]),
        ([SET | CONTROLS | {"uid": "earlier"}], "Delete", "Retain", 0, [SET | CONTROLS | {"uid": "earlier"}]),
        ([POD | CONTROLS | {"uid": "earlier"}], "Delete", "Retain", 0, [POD | CONTROLS | {"uid": "earlier"}]),
        ([SET | {"apiVersion": "other/v1"}], "Retain", "Retain", 0, [SET | {"apiVersion": "other/v1"}]),
    ],
)
def test_a_claim_has_these_owners(
    owners: list[Object], deleted: str, scaled: str, ordinal: int, after: list[Object]
) -> None:
    """TestIsClaimOwnerUpToDate, TestClaimOwnerUpToDateEdgeCases, TestUpdateClaimOwnerRefForSetAndPod, TestUpdateClaimControllerRef."""
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"web-{ordinal}", "uid": "pod"}}
    claim = {"metadata": {"name": f"data-web-{ordinal}", "ownerReferences": owners}}
    assert wanted_owners(claim, with_claims(2, deleted, scaled), pod) == after


# -- what concerns a set ----------------------------------------------------------------------------------------------


def _affected(play: Play, kind: Kind, old: Object | None, new: Object | None) -> list[str]:
    controller = object.__new__(StatefulSets)  # it needs nothing of a server
    return sorted(key.name for key in controller.affected(play.objects, kind, old, new))


def claim(name: str) -> Object:
    return {"kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": "default"}}


@rows(
    "name, concerned",
    [
        ("data-web-0", ["web"]),
        ("my-data-web-12", ["web"]),
        ("data-other-0", []),
        ("web-0", []),
        ("data", []),
    ],
)
def test_a_claim_that_goes_concerns_the_set_that_its_name_contains(name: str, concerned: list[str]) -> None:
    play = Play((STATEFUL_SETS, stateful_set()))
    assert _affected(play, CLAIMS, claim(name), None) == concerned
    assert _affected(play, CLAIMS, None, claim(name)) == []


def test_changes_of_a_pod_that_concern_its_set() -> None:
    play = settled((STATEFUL_SETS, stateful_set(1)))
    ready = pod(play, 0)
    assert _affected(play, PODS, ready, {**ready, "spec": {**ready["spec"], "nodeName": "node-1"}}) == []
    assert _affected(play, PODS, ready, become(play, "default/web-0", "Running")) == ["web"]
    assert _affected(play, PODS, ready, None) == ["web"]
    assert _affected(play, PODS, None, orphan("web-0", app="web")) == ["web"]
    assert _affected(play, PODS, None, orphan("other-0", app="web")) == []


# -- laws -------------------------------------------------------------------------------------------------------------

ACTIONS = st.one_of(
    st.tuples(st.just("replicas"), st.integers(0, 4)),
    st.tuples(st.just("image"), st.sampled_from(["one", "two", "three"])),
    st.tuples(st.just("fail"), st.integers(0, 3)),
    st.tuples(st.just("unready"), st.integers(0, 3)),
    st.tuples(st.just("remove"), st.integers(0, 3)),
    st.tuples(st.just("run"), st.just(0)),
    st.tuples(st.just("ready"), st.integers(0, 3)),
    st.tuples(st.just("finish"), st.just(0)),
)


def act(play: Play, action: str, value: Any) -> None:
    if action in ("replicas", "image"):
        return change(play, **{action: value})
    if action == "run":
        play.run(reconcile, WEB)
    elif action == "finish":
        finish_deletions(play)
    elif any(ordinal_of(one) == value for one in play.objects.all(PODS)):
        name = f"default/web-{value}"
        if action == "fail":
            fail(play, name)
        elif action == "remove":
            play.objects.remove(PODS, name_of(play.get(PODS, name)))
        else:
            become(play, name, "Running", ready=action == "ready")
    return None


@settings(max_examples=60, deadline=None)
@given(st.lists(ACTIONS, max_size=25), st.booleans())
def test_whatever_happens_a_set_converges_and_an_ordered_one_keeps_its_order(
    actions: list[tuple[str, Any]], is_ordered: bool
) -> None:
    play = GracefulPlay((STATEFUL_SETS, stateful_set(2, **({} if is_ordered else PARALLEL))))

    def in_order(write: Write) -> None:
        if isinstance(write, Create) and write.kind == PODS:
            there = {ordinal_of(one): one for one in play.objects.all(PODS)}
            ordinal = ordinal_of(write.value)
            assert ordinal not in there, "two pods of an identity"
            if is_ordered:
                for before in range(ordinal):
                    conditions = (there[before].get("status") or {}).get("conditions") or [{}]
                    assert conditions[0].get("status") == "True"
                    assert "deletionTimestamp" not in there[before]["metadata"]

    play._refuse = in_order
    for action, value in actions:
        act(play, action, value)
    for one in play.objects.all(PODS):  # what was broken is mended by hand
        if (one.get("status") or {}).get("phase") == "Running":
            become_ready(play, f"default/{one['metadata']['name']}")
    settle(play)
    wanted = play.get(STATEFUL_SETS, WEB)["spec"]["replicas"]
    assert names(play) == [f"web-{n}" for n in range(wanted)]
    assert {revision_of(one) for one in play.objects.all(PODS)} <= {status(play)["updateRevision"]}
    assert status(play).get("readyReplicas", 0) == status(play)["replicas"] == wanted
