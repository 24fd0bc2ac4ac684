"""Simulated storage: volumes that are made, deleted and resized, and the class `standard`."""

from __future__ import annotations

from typing import Any

import pytest

from noxu.api.errors import ApiError
from noxu.values import Object
from noxu.workloads.objects import CLAIMS, STORAGE_CLASSES, VOLUMES
from noxu.workloads.volume_matching import PROVISIONED_BY, PROVISIONER, SELECTED_NODE
from noxu.workloads.volumes.provisioner import SIMULATED, standard_class, standard_class_steps, storage_steps
from noxu.workloads.volumes.volume_binder import binding_steps
from noxu.workloads.writes import Create, NamespacedName, Write
from tests.rows import rows
from tests.workloads.plays import Play
from tests.workloads.volumes.storage import UID, claim, reserved, storage_class, volume

ASKED = {PROVISIONER: SIMULATED}
NAME = f"pvc-{UID}"
MADE = [
    'event Normal Provisioning: External provisioner is provisioning volume for claim "default/c"',
    f"create persistentvolumes {NAME}",
    f"event Normal ProvisioningSucceeded: Successfully provisioned volume {NAME}",
]
LATE = {"volumeBindingMode": "WaitForFirstConsumer"}


def play_of(of: Object, *volumes: Object, **storage: Any) -> Play:
    found = storage_class(**{"provisioner": SIMULATED, **storage})
    return Play((STORAGE_CLASSES, found), (CLAIMS, of), *((VOLUMES, value) for value in volumes))


def fast(**more: Any) -> Object:
    return claim(**{"storageClassName": "fast", "annotations": ASKED, **more})


@rows(
    "situation, of, storage, expected",
    [
        ("it is asked", fast(), {}, MADE),
        ("it is not asked yet", fast(annotations={}), {}, []),
        ("another provisioner is asked", fast(annotations={PROVISIONER: "other"}), {"provisioner": "other"}, []),
        ("the claim has no consumer yet", fast(), LATE, []),
        ("the claim has a consumer", fast(annotations={**ASKED, SELECTED_NODE: "node-1"}), LATE, MADE),
        ("the claim names a volume", fast(volumeName="v"), {}, []),
        ("the claim is being deleted", fast(deleted=True), {}, []),
        ("the claim has another class", fast(storageClassName="slow"), {}, []),
    ],
)
def test_a_volume_is_made(situation: str, of: Object, storage: Any, expected: list[str]) -> None:
    play = play_of(of, **storage)
    play.run(storage_steps, "default/c")
    assert play.done() == expected, situation
    play.run(storage_steps, "default/c")
    assert play.done() == [], situation


def test_what_is_made() -> None:
    play = play_of(fast(volumeMode="Block"), mountOptions=["ro"], reclaimPolicy="Retain")
    revision = play.get(CLAIMS, "default/c")["metadata"]["resourceVersion"]
    play.run(storage_steps, "default/c")
    made = play.get(VOLUMES, NAME)
    assert made["metadata"]["annotations"] == {PROVISIONED_BY: SIMULATED}
    assert made["spec"] == {
        "capacity": {"storage": "1Gi"},
        "csi": {"driver": "simulated.noxu.dev", "volumeHandle": NAME},
        "accessModes": ["ReadWriteOnce"],
        "claimRef": {**reserved(uid=UID), "apiVersion": "v1", "resourceVersion": revision},
        "persistentVolumeReclaimPolicy": "Retain",
        "storageClassName": "fast",
        "mountOptions": ["ro"],
        "volumeMode": "Block",
    }


def test_a_volume_that_cannot_be_made() -> None:
    def refuse(write: Write) -> ApiError | None:
        return ApiError(403, "no") if isinstance(write, Create) else None

    play = Play((STORAGE_CLASSES, storage_class(provisioner=SIMULATED)), (CLAIMS, fast()), refuse=refuse)
    with pytest.raises(ApiError):
        play.run(storage_steps, "default/c")
    assert play.done()[-1] == (
        'event Warning ProvisioningFailed: failed to provision volume with StorageClass "fast": no'
    )


OURS: dict[str, Any] = {"annotations": {PROVISIONED_BY: SIMULATED}, "persistentVolumeReclaimPolicy": "Delete"}


@rows(
    "situation, found, is_deleted",
    [
        ("it is released", volume(phase="Released", **OURS), True),
        ("it is bound", volume(phase="Bound", **OURS), False),
        ("it is to be kept", volume(phase="Released", **{**OURS, "persistentVolumeReclaimPolicy": "Retain"}), False),
        ("another provisioner has made it", volume(phase="Released", **{**OURS, "annotations": {}}), False),
        ("it is being deleted", volume(phase="Released", deleted=True, **OURS), False),
    ],
)
def test_a_volume_is_deleted(situation: str, found: Object, is_deleted: bool) -> None:
    play = Play((VOLUMES, found))
    play.run(storage_steps, "v")
    assert play.done() == (["delete persistentvolumes v"] if is_deleted else []), situation


def bound(request: str, **more: Any) -> Object:
    status = {"phase": "Bound", "capacity": {"storage": "1Gi"}}
    return fast(**{"storage": request, "volumeName": "v", "status": status, **more})


RESIZED = [
    "event Normal Resizing: External resizer is resizing volume v",
    "update persistentvolumes v",
    "update persistentvolumeclaims/status c",
    "event Normal VolumeResizeSuccessful: Resize volume succeeded",
]


@rows(
    "situation, of, found, expands, expected",
    [
        ("it asks for more", bound("5Gi"), volume(**OURS), True, RESIZED),
        ("it has what it asks for", bound("1024Mi"), volume(**OURS), True, []),
        ("the volume is larger already", bound("5Gi"), volume("v", "9Gi", **OURS), True, [RESIZED[0], *RESIZED[2:]]),
        ("the class does not allow it", bound("5Gi"), volume(**OURS), False, []),
        ("another provisioner has made it", bound("5Gi"), volume(), True, []),
        ("it is not bound yet", bound("5Gi", status={"phase": "Pending"}), volume(**OURS), True, []),
    ],
)
def test_a_claim_grows(situation: str, of: Object, found: Object, expands: bool, expected: list[str]) -> None:
    play = play_of(of, found, allowVolumeExpansion=expands)
    play.run(storage_steps, "default/c")
    assert play.done() == expected, situation
    if expected:
        assert play.get(CLAIMS, "default/c")["status"]["capacity"] == {"storage": "5Gi"}


def test_from_a_claim_to_its_end() -> None:
    play = play_of(fast(annotations={}))
    for key in ("default/c", "default/c", NAME):
        play.run(binding_steps, key)
        play.run(storage_steps, key)
    of, made = play.get(CLAIMS, "default/c"), play.get(VOLUMES, NAME)
    assert (of["status"]["phase"], made["status"]["phase"]) == ("Bound", "Bound")
    assert PROVISIONED_BY in made["metadata"]["annotations"]
    play.objects.remove(CLAIMS, NamespacedName("default", "c"))
    play.run(binding_steps, NAME)
    play.run(storage_steps, NAME)
    assert play.objects.within(VOLUMES, "") == []


def test_the_class_is_made_where_there_is_none() -> None:
    play = Play()
    play.run(standard_class_steps, "standard")
    play.run(standard_class_steps, "standard")
    assert play.done() == ["create storageclasses standard"]
    play = Play((STORAGE_CLASSES, storage_class()))
    play.run(standard_class_steps, "standard")
    assert play.done() == []
    assert standard_class()["volumeBindingMode"] == "WaitForFirstConsumer"
