"""Classes of storage and what CSI drivers write: defaults, validation, what is immutable."""

from __future__ import annotations

from noxu.values import Object
from tests.kinds.typed_objects import errors, filled, kind_of, name_errors, prepared
from tests.rows import rows

STORAGE = "storage.k8s.io/v1"
SPEC = {"attacher": "d.example.com", "nodeName": "n", "source": {"persistentVolumeName": "v"}}
NODE = {"name": "d.example.com", "nodeID": "n"}

CASES: list[tuple[str, str, Object, Object | None, list[str]]] = [
    ("a class", "StorageClass", {"provisioner": "a.b/c"}, None, []),
    ("no provisioner", "StorageClass", {}, None, ["provisioner: Required value"]),
    (
        "an unknown policy",
        "StorageClass",
        {"provisioner": "p", "reclaimPolicy": "Recycle", "volumeBindingMode": "X"},
        None,
        [
            'reclaimPolicy: Unsupported value: "Recycle": supported values: "Delete", "Retain"',
            'volumeBindingMode: Unsupported value: "X": supported values: "Immediate", "WaitForFirstConsumer"',
        ],
    ),
    (
        "everything else",
        "StorageClass",
        {"provisioner": "q", "parameters": {"a": "b"}, "reclaimPolicy": "Retain", "allowVolumeExpansion": True},
        {"provisioner": "p"},
        [
            "parameters: Forbidden: updates to parameters are forbidden.",
            'provisioner: Invalid value: "q": field is immutable',
            'reclaimPolicy: Invalid value: "Retain": field is immutable',
        ],
    ),
    (
        "topologies that repeat",
        "StorageClass",
        {
            "provisioner": "p",
            "allowedTopologies": [{"matchLabelExpressions": [{"key": "zone", "values": ["a", "a"]}]}] * 2,
        },
        None,
        [
            'allowedTopologies[0].matchLabelExpressions[0].values[1]: Duplicate value: "a"',
            'allowedTopologies[1].matchLabelExpressions[0].values[1]: Duplicate value: "a"',
            'allowedTopologies[1].matchLabelExpressions: Duplicate value: ""',
        ],
    ),
    (
        "a class of attributes without any",
        "VolumeAttributesClass",
        {"driverName": "d"},
        None,
        ["parameters: Required value: must contain at least one key/value pair"],
    ),
    (
        "other attributes",
        "VolumeAttributesClass",
        {"driverName": "e", "parameters": {"a": "c"}},
        {"driverName": "d", "parameters": {"a": "b"}},
        [
            "driverName: Forbidden: updates to driverName are forbidden.",
            "parameters: Forbidden: updates to parameters are forbidden.",
        ],
    ),
    ("an attachment", "VolumeAttachment", {"spec": SPEC}, None, []),
    (
        "an attachment of nothing",
        "VolumeAttachment",
        {"spec": {**SPEC, "source": {}}},
        None,
        ["spec.source: Required value: must specify exactly one of inlineVolumeSpec and persistentVolumeName"],
    ),
    (
        "an attachment to another node",
        "VolumeAttachment",
        {"spec": {**SPEC, "nodeName": "m"}},
        {"spec": SPEC},
        [
            'spec: Invalid value: {"attacher":"d.example.com","source":{"persistentVolumeName":"v"},"nodeName":"m"}: '
            "field is immutable"
        ],
    ),
    (
        "a driver with tokens",
        "CSIDriver",
        {"spec": {"tokenRequests": [{"audience": "a", "expirationSeconds": 599}, {"audience": "a"}]}},
        None,
        [
            "spec.tokenRequests[0].expirationSeconds: Invalid value: 599: may not specify a duration less than 10 minutes",
            'spec.tokenRequests[1].audience: Duplicate value: "a"',
        ],
    ),
    (
        "another driver",
        "CSIDriver",
        {"spec": {"attachRequired": False, "storageCapacity": True}},
        {"spec": {}},
        ["spec.attachedRequired: Invalid value: false: field is immutable"],
    ),
    (
        "a driver twice",
        "CSINode",
        {"spec": {"drivers": [NODE, NODE]}},
        None,
        ['spec.drivers[1].name: Duplicate value: "d.example.com"'],
    ),
    (
        "a driver of another node",
        "CSINode",
        {"spec": {"drivers": [{**NODE, "nodeID": "m"}]}},
        {"spec": {"drivers": [NODE]}},
        ['CSINodeDriver: Invalid value: {"name":"d.example.com","nodeID":"m","topologyKeys":null}: field is immutable'],
    ),
    (
        "another capacity",
        "CSIStorageCapacity",
        {"storageClassName": "d", "capacity": "2Gi"},
        {"storageClassName": "c", "capacity": "1Gi"},
        ['storageClassName: Invalid value: "d": field is immutable'],
    ),
    (
        "a negative capacity",
        "CSIStorageCapacity",
        {"storageClassName": "c", "capacity": "-1"},
        None,
        ['capacity: Invalid value: "-1": must be greater than or equal to 0'],
    ),
]


@rows(("kind", "new", "old", "expected"), [row[1:] for row in CASES], ids=[row[0] for row in CASES])
def test_storage_is_validated(kind: str, new: Object, old: Object | None, expected: list[str]) -> None:
    assert errors(kind_of(STORAGE, kind), new, old) == expected


def test_classes_are_defaulted() -> None:
    value = filled(kind_of(STORAGE, "StorageClass"), {"provisioner": "p"})
    assert (value["reclaimPolicy"], value["volumeBindingMode"]) == ("Delete", "Immediate")


def test_the_generation_of_a_driver_begins_with_its_first_change() -> None:
    driver = kind_of(STORAGE, "CSIDriver")
    assert "generation" not in prepared(driver, {"spec": {}})["metadata"]
    assert prepared(driver, {"spec": {"storageCapacity": True}}, {"spec": {}})["metadata"]["generation"] == 1


def test_the_name_of_a_driver_is_short_and_of_any_case() -> None:
    driver = kind_of(STORAGE, "CSIDriver")
    assert name_errors(driver, "Ebs.csi.aws.com", {}) == []
    assert name_errors(driver, "a" * 64, {}) == [
        f'metadata.name: Invalid value: "{"a" * 64}": must be no more than 63 characters'
    ]
