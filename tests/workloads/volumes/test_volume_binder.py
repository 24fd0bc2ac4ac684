"""Claims and volumes that are bound, lost and reclaimed (upstream's binder_test.go, delete_test.go, recycle_test.go)."""

from __future__ import annotations

from typing import Any

from noxu.values import Object
from noxu.workloads.objects import CLAIMS, STORAGE_CLASSES, VOLUMES
from noxu.workloads.volume_matching import BIND_COMPLETED, BOUND_BY_CONTROLLER, PROVISIONED_BY, PROVISIONER
from noxu.workloads.volumes.volume_binder import affected_bindings, binding_steps
from noxu.workloads.writes import Kind
from tests.rows import rows
from tests.workloads.plays import Play
from tests.workloads.volumes.storage import UID, claim, reserved, storage_class, volume

BOUND = {BIND_COMPLETED: "yes"}
BY_CONTROLLER = {BIND_COMPLETED: "yes", BOUND_BY_CONTROLLER: "yes"}
BIND = [
    "update persistentvolumes v",
    "update persistentvolumes/status v",
    "update persistentvolumeclaims c",
    "update persistentvolumeclaims/status c",
]
WAITS = "event Normal WaitForFirstConsumer: waiting for first consumer to be created before binding"
NO_VOLUME = "event Normal FailedBinding: no persistent volumes available for this claim and no storage class is set"
EXTERNAL = (
    "event Normal ExternalProvisioning: Waiting for a volume to be created either by the external provisioner "
    "'example.com/disks' or manually by the system administrator. If volume creation is delayed, please verify that the "
    "provisioner is running and correctly registered."
)
CLASS = {"storageClassName": "fast"}
LATE = {"volumeBindingMode": "WaitForFirstConsumer"}
LOST = "event Warning ClaimLost: Bound claim has lost its PersistentVolume. Data on the volume is lost!"
CLAIM_STATUS = "update persistentvolumeclaims/status c"


def play_of(*objects: Object) -> Play:
    kinds: dict[str, Kind] = {
        "PersistentVolume": VOLUMES,
        "PersistentVolumeClaim": CLAIMS,
        "StorageClass": STORAGE_CLASSES,
    }
    return Play(*((kinds[value["kind"]], value) for value in objects))


def bound_volume(**more: Any) -> Object:
    return volume(**{"claimRef": reserved(uid=UID), "phase": "Bound", **more})


def bound_claim(**more: Any) -> Object:
    status = {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}}
    return claim(**{"volumeName": "v", "annotations": BOUND, "status": status, **more})


@rows(
    "situation, objects, expected",
    [
        ("no volume fits", [claim("5Gi"), volume()], [NO_VOLUME]),
        ("a volume fits", [claim(), volume()], BIND),
        ("a volume is reserved", [claim(), volume(claimRef=reserved())], BIND),
        ("a volume was bound, and the claim was not", [claim(), volume(claimRef=reserved(uid=UID))], BIND[1:]),
        ("a volume is bound, and the claim was not", [claim(), bound_volume()], BIND[2:]),
        ("it names a volume that is not there", [claim(volumeName="v")], []),
        ("it names a volume that is free", [claim(volumeName="v"), volume()], BIND),
        ("it names a volume that is reserved for it", [claim(volumeName="v"), volume(claimRef=reserved())], BIND),
        (
            "it names a volume that is too small",
            [claim("5Gi", volumeName="v"), volume()],
            ["event Warning VolumeMismatch: requested PV is too small"],
        ),
        (
            "it names a volume that is another's",
            [claim(volumeName="v"), volume(claimRef=reserved("d", "d"))],
            ['event Warning FailedBinding: volume "v" already bound to a different claim.'],
        ),
        ("it waits for a consumer", [claim(**CLASS), storage_class(**LATE)], [WAITS]),
        ("it waits, although a volume fits", [claim(**CLASS), storage_class(**LATE), volume(**CLASS)], [WAITS]),
        ("it waits, and the scheduler has reserved a volume", [claim(**CLASS), storage_class(**LATE), volume(claimRef=reserved(), **CLASS)], BIND),
        ("its class has a provisioner", [claim(**CLASS), storage_class()], ["update persistentvolumeclaims c", EXTERNAL]),
        (
            "it has waited, and has a consumer",
            [claim(annotations={"volume.kubernetes.io/selected-node": "n"}, **CLASS), storage_class(**LATE)],
            ["update persistentvolumeclaims c", EXTERNAL],
        ),
        ("the provisioner knows", [claim(annotations={PROVISIONER: "example.com/disks"}, **CLASS), storage_class()], []),
        ("its class is not there", [claim(**CLASS)], ['event Warning ProvisioningFailed: storageclass.storage.k8s.io "fast" not found']),
        ("a class without a provisioner", [claim(**CLASS), storage_class(provisioner="kubernetes.io/no-provisioner")],
         ["event Warning ProvisioningFailed: no volume plugin matched name: kubernetes.io/no-provisioner"]),
        (
            "there is a default class",
            [claim(storageClassName=None), storage_class(annotations={"storageclass.kubernetes.io/is-default-class": "true"})],
            ["update persistentvolumeclaims c"],
        ),
        (
            "it wants no class",
            [claim(), storage_class(annotations={"storageclass.kubernetes.io/is-default-class": "true"})],
            [NO_VOLUME],
        ),
        ("it is bound", [bound_claim(), bound_volume()], []),
        ("it is bound, and the volume has lost it", [bound_claim(), volume()], BIND[:2]),
        ("its volume has gone", [bound_claim()], [CLAIM_STATUS, LOST]),
        ("it is lost", [bound_claim(status={"phase": "Lost"})], []),
        ("it has lost its volume's name", [bound_claim(volumeName=None), volume()],
         [CLAIM_STATUS, "event Warning ClaimLost: Bound claim has lost reference to PersistentVolume. Data on the volume is lost!"]),
        ("its volume is another's", [bound_claim(), bound_volume(claimRef=reserved("d", "d"))],
         [CLAIM_STATUS, "event Warning ClaimMisbound: Two claims are bound to the same volume, this one is bound incorrectly"]),
    ],
)  # fmt: skip
def test_a_claim(situation: str, objects: list[Object], expected: list[str]) -> None:
    play = play_of(*objects)
    assert play.run(binding_steps, "default/c") is None
    assert play.done() == expected, situation


def test_what_is_bound() -> None:
    play = play_of(claim("1Gi"), volume("v", "3Gi", "ReadWriteOnce", "ReadOnlyMany"))
    revision = play.get(CLAIMS, "default/c")["metadata"]["resourceVersion"]
    play.run(binding_steps, "default/c")
    found, of = play.get(VOLUMES, "v"), play.get(CLAIMS, "default/c")
    assert found["spec"]["claimRef"] == {**reserved(uid=UID), "apiVersion": "v1", "resourceVersion": revision}
    assert found["metadata"]["annotations"] == {BOUND_BY_CONTROLLER: "yes"}
    assert found["status"] == {"phase": "Bound"}
    assert of["spec"]["volumeName"] == "v"
    assert of["metadata"]["annotations"] == BY_CONTROLLER
    assert of["status"] == {
        "phase": "Bound",
        "accessModes": ["ReadWriteOnce", "ReadOnlyMany"],
        "capacity": {"storage": "3Gi"},
    }
    play.done()
    for key in ("default/c", "v"):
        play.run(binding_steps, key)
    assert play.done() == []


def test_what_a_person_has_bound_is_not_marked() -> None:
    play = play_of(claim(volumeName="v"), volume(claimRef=reserved()))
    play.run(binding_steps, "default/c")
    assert play.get(VOLUMES, "v")["metadata"]["annotations"] == {}
    assert play.get(CLAIMS, "default/c")["metadata"]["annotations"] == BOUND


def test_a_claim_that_is_lost_has_no_capacity() -> None:
    play = play_of(bound_claim())
    play.run(binding_steps, "default/c")
    assert play.get(CLAIMS, "default/c")["status"] == {"phase": "Lost"}


def test_the_capacity_of_a_bound_claim_is_left_alone() -> None:
    play = play_of(bound_claim(), bound_volume(capacity={"storage": "9Gi"}))
    play.run(binding_steps, "default/c")
    assert play.done() == []


def test_a_claim_gets_the_default_class() -> None:
    is_default = {"storageclass.kubernetes.io/is-default-class": "true"}
    play = play_of(claim(storageClassName=None), storage_class(annotations=is_default))
    play.run(binding_steps, "default/c")
    assert play.get(CLAIMS, "default/c")["spec"]["storageClassName"] == "fast"


PHASE = "update persistentvolumes/status v"
TMP = {"nfs": None, "hostPath": {"path": "/tmp/x"}}
HERE = {"nfs": None, "hostPath": {"path": "/here"}}
MADE = {"annotations": {PROVISIONED_BY: "example.com/disks"}}


@rows(
    "situation, objects, expected, phase",
    [
        ("it is new", [volume(phase="Pending")], [PHASE], "Available"),
        ("it is free", [volume()], [], "Available"),
        ("it is new and reserved", [volume(phase="Pending", claimRef=reserved())], [PHASE], "Available"),
        ("its claim is bound to it", [bound_volume(phase="Pending"), bound_claim()], [PHASE], "Bound"),
        ("its claim is not bound yet", [bound_volume(), claim()], [], "Bound"),
        ("its claim has gone", [bound_volume()], [PHASE], "Released"),
        ("its claim has another uid", [bound_volume(), bound_claim(uid="other")], [PHASE], "Released"),
        ("it was released", [bound_volume(phase="Released")], [], "Released"),
        ("Delete: a directory in /tmp", [bound_volume(persistentVolumeReclaimPolicy="Delete", **TMP)], [PHASE, "delete persistentvolumes v"], ""),
        (
            "Delete: another directory",
            [bound_volume(persistentVolumeReclaimPolicy="Delete", **HERE)],
            [PHASE, PHASE, "event Warning VolumeFailedDelete: host_path deleter only supports /tmp/.+ but received provided /here"],
            "Failed",
        ),
        (
            "Delete: what no plug-in can delete",
            [bound_volume(persistentVolumeReclaimPolicy="Delete")],
            [PHASE, PHASE, 'event Warning VolumeFailedDelete: error getting deleter volume plugin for volume "v": no deletable volume plugin matched'],
            "Failed",
        ),
        ("Delete: what a provisioner has made", [bound_volume(persistentVolumeReclaimPolicy="Delete", **MADE)], [PHASE], "Released"),
        ("Recycle: of NFS", [bound_volume(persistentVolumeReclaimPolicy="Recycle", annotations={BOUND_BY_CONTROLLER: "yes"})],
         [PHASE, "event Normal VolumeRecycled: Volume recycled", "update persistentvolumes v", PHASE], "Available"),
        ("Recycle: of something else", [bound_volume(persistentVolumeReclaimPolicy="Recycle", nfs=None, local={})],
         [PHASE, PHASE, "event Warning VolumeFailedRecycle: No recycler plugin found for the volume!"], "Failed"),
        ("it has failed", [bound_volume(persistentVolumeReclaimPolicy="Delete", phase="Failed")], [], "Failed"),
        ("its claim is bound elsewhere", [bound_volume(annotations={BOUND_BY_CONTROLLER: "yes"}), bound_claim(volumeName="w")],
         ["update persistentvolumes v", PHASE], "Available"),
        ("it was made for a claim that is bound elsewhere", [bound_volume(persistentVolumeReclaimPolicy="Delete", **MADE), bound_claim(volumeName="w")],
         [PHASE], "Released"),
    ],
)  # fmt: skip
def test_a_volume(situation: str, objects: list[Object], expected: list[str], phase: str) -> None:
    play = play_of(*objects)
    play.run(binding_steps, "v")
    assert play.done() == expected, situation
    assert (play.get(VOLUMES, "v")["status"]["phase"] if phase else "") == phase, situation


def test_a_volume_that_is_unbound() -> None:
    for marks, reference in (({BOUND_BY_CONTROLLER: "yes"}, None), ({}, reserved())):
        play = play_of(bound_volume(annotations=marks), bound_claim(volumeName="w"))
        play.run(binding_steps, "v")
        found = play.get(VOLUMES, "v")
        assert found["spec"].get("claimRef") == reference
        assert found["metadata"]["annotations"] == {}


def test_a_volume_of_another_mode_is_not_bound() -> None:
    play = play_of(volume(volumeMode="Block", claimRef=reserved(uid=UID)), claim())
    play.run(binding_steps, "v")
    assert play.done() == [
        'event Warning VolumeMismatch: Cannot bind PersistentVolume to requested PersistentVolumeClaim "c" due to incompatible volumeMode.',
        'event Warning VolumeMismatch: Cannot bind PersistentVolume "v" to requested PersistentVolumeClaim due to incompatible volumeMode.',
    ]


def test_whom_a_change_concerns() -> None:
    play = play_of(claim(), bound_claim(name="b", uid="b"))

    def concerned(kind: Kind, old: Object | None, new: Object | None) -> list[str]:
        return [f"{namespace}/{name}" for namespace, name in affected_bindings(play.objects, kind, old, new)]

    assert concerned(CLAIMS, None, claim()) == ["default/c"]
    assert concerned(CLAIMS, bound_claim(), None) == ["default/c", "/v"]
    assert concerned(VOLUMES, bound_volume(), None) == ["/v", "default/c"]
    assert concerned(VOLUMES, None, volume()) == ["/v", "default/c"]
    assert concerned(VOLUMES, volume(), None) == ["/v"]
    assert concerned(STORAGE_CLASSES, None, storage_class()) == ["default/c"]
