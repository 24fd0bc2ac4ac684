"""PersistentVolumes and claims: what is new, validation, what is immutable."""

from __future__ import annotations

import pytest

from noxu.values import Object
from tests.kinds.typed_objects import NOW, errors, filled, kind_of, prepared
from tests.rows import rows

VOLUME, CLAIM = kind_of("v1", "PersistentVolume"), kind_of("v1", "PersistentVolumeClaim")


def volume(**spec: object) -> Object:
    whole = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/data"}, **spec}
    return {"spec": {name: item for name, item in whole.items() if item is not None}}


def claim(size: str = "1Gi", phase: str = "", capacity: str = "", **spec: object) -> Object:
    whole = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **spec}
    status = {"phase": phase, **({"capacity": {"storage": capacity}} if capacity else {})}
    return {
        "spec": {name: item for name, item in whole.items() if item is not None},
        **({"status": status} if phase else {}),
    }


def local(path: str = "/d") -> Object:
    return volume(hostPath=None, local={"path": path})


VOLUMES: list[tuple[str, Object, list[str]]] = [
    ("a path of the host", volume(), []),
    (
        "nothing",
        {"spec": {}},
        [
            "spec.accessModes: Required value",
            "spec.capacity: Required value",
            'spec.capacity: Unsupported value: null: supported values: "storage"',
            "spec: Required value: must specify a volume type",
        ],
    ),
    ("no size", volume(capacity={"storage": "0"}), ['spec.capacity[storage]: Invalid value: "0": must be greater than zero']),
    ("two sources", volume(nfs={"server": "s", "path": "/"}), ["spec.nfs: Forbidden: may not specify more than 1 volume type"]),
    ("a path upwards", volume(hostPath={"path": "/a/../b"}), ["spec.hostPath.path: Invalid value: \"/a/../b\": must not contain '..'"]),
    (
        "a relative path",
        volume(hostPath=None, nfs={"server": "s", "path": "x"}),
        ['spec.nfs.path: Invalid value: "x": must be an absolute path'],
    ),
    ("a local path without node", local(), ["spec.nodeAffinity: Required value: Local volume requires node affinity"]),
    (
        "CSI",
        volume(hostPath=None, csi={"driver": "d.example.com"}),
        ["spec.csi.volumeHandle: Required value"],
    ),
    (
        "unknown modes",
        volume(accessModes=["X"], volumeMode="Y", persistentVolumeReclaimPolicy="Z"),
        [
            'spec.accessModes: Unsupported value: "X": supported values: "ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", '
            '"ReadWriteOncePod"',
            'spec.persistentVolumeReclaimPolicy: Unsupported value: "Z": supported values: "Delete", "Recycle", "Retain"',
            'spec.volumeMode: Unsupported value: "Y": supported values: "Block", "Filesystem"',
        ],
    ),
    (
        "the root that is recycled",
        volume(hostPath={"path": "/"}, persistentVolumeReclaimPolicy="Recycle"),
        ["spec.persistentVolumeReclaimPolicy: Forbidden: may not be 'recycle' for a hostPath mount of '/'"],
    ),
]  # fmt: skip


@rows(("new", "expected"), [row[1:] for row in VOLUMES], ids=[row[0] for row in VOLUMES])
def test_volumes_are_validated(new: Object, expected: list[str]) -> None:
    assert errors(VOLUME, new) == expected


SOURCE = "spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable after creation"
CSI = {"driver": "d.example.com", "volumeHandle": "h"}
SECRET = {"controllerExpandSecretRef": {"name": "s", "namespace": "n"}}
VOLUME_UPDATES: list[tuple[str, Object, Object, list[str]]] = [
    ("more capacity", volume(), volume(capacity={"storage": "2Gi"}), []),
    ("another path", volume(), volume(hostPath={"path": "/b"}), [SOURCE]),
    ("another mode", volume(), volume(volumeMode="Block"), ['volumeMode: Invalid value: "Block": field is immutable']),
    ("a secret for the expansion", volume(hostPath=None, csi=CSI), volume(hostPath=None, csi=CSI | SECRET), []),
    ("without the secret", volume(hostPath=None, csi=CSI | SECRET), volume(hostPath=None, csi=CSI), [SOURCE]),
]


@pytest.mark.parametrize(
    ("old", "new", "expected"), [row[1:] for row in VOLUME_UPDATES], ids=[row[0] for row in VOLUME_UPDATES]
)
def test_the_source_of_a_volume_is_immutable(old: Object, new: Object, expected: list[str]) -> None:
    assert errors(VOLUME, new, old) == expected


def test_a_new_volume_is_pending_since_now() -> None:
    value = prepared(VOLUME, volume() | {"status": {"phase": "Bound"}})
    assert value["status"] == {"phase": "Pending", "lastPhaseTransitionTime": NOW}
    assert value["spec"]["persistentVolumeReclaimPolicy"] == "Retain"
    assert value["spec"]["volumeMode"] == "Filesystem"


def test_the_time_of_the_phase_follows_the_phase() -> None:
    old = volume() | {"status": {"phase": "Pending", "lastPhaseTransitionTime": "2020-01-01T00:00:00Z"}}
    same = prepared(VOLUME, old, old, "status")
    assert same["status"] == old["status"]
    bound = volume() | {"status": {**old["status"], "phase": "Bound"}}
    assert prepared(VOLUME, bound, old, "status")["status"] == {"phase": "Bound", "lastPhaseTransitionTime": NOW}


CLAIMS: list[tuple[str, Object, list[str]]] = [
    ("the least", claim(), []),
    (
        "nothing",
        {"spec": {}},
        [
            "spec.accessModes: Required value: at least 1 access mode is required",
            "spec.resources[storage]: Required value",
        ],
    ),
    ("no size", claim("0"), ['spec.resources[storage]: Invalid value: "0": must be greater than zero']),
    (
        "one pod and many nodes",
        claim(accessModes=["ReadWriteOncePod", "ReadWriteMany"]),
        ["spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes"],
    ),
    (
        "a source of another group",
        claim(dataSource={"kind": "VolumeSnapshot", "name": "s"}),
        [
            'spec.dataSource: Invalid value: "VolumeSnapshot": '
            "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
        ],
    ),
    (
        "two sources",
        claim(
            dataSource={"kind": "PersistentVolumeClaim", "name": "a"},
            dataSourceRef={"kind": "PersistentVolumeClaim", "name": "b"},
        ),
        ["spec: Invalid value: spec.dataSource: must match dataSourceRef"],
    ),
]


@pytest.mark.parametrize(("new", "expected"), [row[1:] for row in CLAIMS], ids=[row[0] for row in CLAIMS])
def test_claims_are_validated(new: Object, expected: list[str]) -> None:
    assert errors(CLAIM, new) == expected


IMMUTABLE = (
    "spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for bound "
    "claims"
)
SMALLER = "spec.resources.requests.storage: Forbidden: field can not be less than status.capacity"
CLAIM_UPDATES: list[tuple[str, Object, Object, list[str]]] = [
    ("the same", claim(), claim(), []),
    ("the same size, written differently", claim("1Gi"), claim("1024Mi"), []),
    ("a volume", claim(), claim(volumeName="v"), []),
    ("another volume", claim(volumeName="v"), claim(volumeName="w"), [IMMUTABLE]),
    ("a class", claim(), claim(storageClassName="c"), []),
    ("another class", claim(storageClassName="c"), claim(storageClassName="d"), [IMMUTABLE]),
    ("growth before it is bound", claim(), claim("2Gi"), [IMMUTABLE]),
    ("growth", claim(phase="Bound", capacity="1Gi"), claim("2Gi", phase="Bound", capacity="1Gi"), []),
    ("less than it has", claim("2Gi", phase="Bound", capacity="1Gi"), claim("1Gi", phase="Bound", capacity="1Gi"), [SMALLER]),
    (
        "less, but more than it has",
        claim("3Gi", phase="Bound", capacity="1Gi"),
        claim("2Gi", phase="Bound", capacity="1Gi"),
        [],
    ),
    ("a class of attributes", claim(), claim(volumeAttributesClassName="a"), []),
    (
        "no class of attributes any more",
        claim(volumeAttributesClassName="a"),
        claim(),
        ["spec.volumeAttributesClassName: Forbidden: update from non-nil value to nil is forbidden"],
    ),
    (
        "another mode",
        claim(),
        claim(volumeMode="Block"),
        [IMMUTABLE, 'volumeMode: Invalid value: "Block": field is immutable'],
    ),
]  # fmt: skip


@rows(("old", "new", "expected"), [row[1:] for row in CLAIM_UPDATES], ids=[row[0] for row in CLAIM_UPDATES])
def test_claims_are_immutable_but_for_their_size(old: Object, new: Object, expected: list[str]) -> None:
    assert errors(CLAIM, new, old) == expected


def test_a_new_claim_is_pending() -> None:
    assert prepared(CLAIM, claim(phase="Bound"))["status"] == {"phase": "Pending"}
    assert filled(CLAIM, claim())["spec"]["volumeMode"] == "Filesystem"


def test_the_status_of_a_claim_is_validated() -> None:
    status = {"capacity": {"storage": "-1"}, "allocatedResourceStatuses": {"storage": "X"}}
    assert errors(CLAIM, {"status": status}, claim(), "status") == [
        "status.capacity[storage]: Invalid value: -1: must be a valid resource quantity",
        'status.allocatedResourceStatus: Unsupported value: "storage": supported values: "ControllerResizeFailed", '
        '"ControllerResizeInProgress", "NodeResizeFailed", "NodeResizeInProgress", "NodeResizePending"',
    ]
