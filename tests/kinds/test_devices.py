"""Claims of devices, and slices that offer them: defaults, validation, what is immutable."""

from __future__ import annotations

import pytest

from noxu.values import Object
from tests.kinds.typed_objects import NOW, errors, filled, kind_of, prepared

GROUP = "resource.k8s.io/v1"
CLAIM, TEMPLATE = kind_of(GROUP, "ResourceClaim"), kind_of(GROUP, "ResourceClaimTemplate")
SLICE, CLASS, TAINT_RULE = (kind_of(GROUP, name) for name in ("ResourceSlice", "DeviceClass", "DeviceTaintRule"))
GPU = {"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}
REQUEST = "spec.devices.requests[0]"
ONE = "exactly one of `exactly` or `firstAvailable` is required"
NOT_A_REQUEST = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"


def claim(*requests: Object, **devices: object) -> Object:
    return {"spec": {"devices": {"requests": list(requests), **devices}}}


CLAIMS: list[tuple[str, Object, list[str]]] = [
    ("a request", claim(GPU), []),
    ("a request of nothing", claim({"name": "a"}), [f"{REQUEST}: Required value: {ONE}"]),
    (
        "a request of two kinds",
        claim({**GPU, "firstAvailable": [{"name": "a", "deviceClassName": "b"}]}),
        [f"{REQUEST}: Invalid value: null: {ONE}, but multiple fields are set"],
    ),
    ("a request twice", claim(GPU, GPU), ['spec.devices.requests[1].name: Duplicate value: "gpu"']),
    ("no class", claim({"name": "a", "exactly": {}}), [f"{REQUEST}.exactly.deviceClassName: Required value"]),
    (
        "all and some",
        claim({"name": "a", "exactly": {"deviceClassName": "b", "allocationMode": "All", "count": 2}}),
        [f"{REQUEST}.exactly.count: Invalid value: 2: must not be specified when allocationMode is 'All'"],
    ),
    (
        "constraints of other requests",
        claim(GPU, constraints=[{"requests": ["gpu", "cpu"], "matchAttribute": "a.b/c"}]),
        [f'spec.devices.constraints[0].requests[1]: Invalid value: "cpu": {NOT_A_REQUEST}'],
    ),
    ("a selector of nothing", claim({"name": "a", "exactly": {"deviceClassName": "b", "selectors": [{}]}}), [f"{REQUEST}.exactly.selectors[0].cel: Required value"]),
]  # fmt: skip


@pytest.mark.parametrize(("new", "expected"), [row[1:] for row in CLAIMS], ids=[row[0] for row in CLAIMS])
def test_claims_are_validated(new: Object, expected: list[str]) -> None:
    assert errors(CLAIM, new) == expected
    inner = [error.replace("spec.devices", "spec.spec.devices") for error in expected]
    assert errors(TEMPLATE, {"spec": new}) == inner


def test_claims_and_templates_are_immutable() -> None:
    for kind, old, new in ((CLAIM, claim(GPU), claim()), (TEMPLATE, {"spec": claim(GPU)}, {"spec": claim()})):
        (error,) = errors(kind, new, old)
        assert error.startswith("spec: Invalid value: {")
        assert error.endswith("}: field is immutable")


def test_requests_are_for_one_device() -> None:
    exactly = filled(CLAIM, claim(GPU))["spec"]["devices"]["requests"][0]["exactly"]
    assert exactly == {"deviceClassName": "gpu.example.com", "allocationMode": "ExactCount", "count": 1}


def test_the_status_of_a_claim_is_validated() -> None:
    consumer = {"resource": "pods", "name": "p", "uid": "1"}
    assert errors(CLAIM, {"status": {"reservedFor": [consumer, {}]}}, claim(), "status") == [
        "status.reservedFor[1].resource: Required value",
        "status.reservedFor[1].name: Required value",
        "status.reservedFor[1].uid: Required value",
        "status.reservedFor: Forbidden: may not be specified when `allocated` is not set",
    ]


POOL = {"name": "p", "generation": 1, "resourceSliceCount": 1}
PLACE = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"


def slice_of(**spec: object) -> Object:
    whole = {"driver": "d.example.com", "pool": POOL, "nodeName": "n", **spec}
    return {"spec": {name: item for name, item in whole.items() if item is not None}}


SLICES: list[tuple[str, Object, Object | None, list[str]]] = [
    ("a slice", slice_of(devices=[{"name": "a"}]), None, []),
    ("nowhere", slice_of(nodeName=None), None, [f"spec: Required value: {PLACE}"]),
    (
        "somewhere and everywhere",
        slice_of(allNodes=True),
        None,
        [f'spec: Invalid value: "{{`nodeName`, `allNodes`}}": {PLACE}, but multiple fields are set'],
    ),
    ("a device twice", slice_of(devices=[{"name": "a"}] * 2), None, ['spec.devices[1].name: Duplicate value: "a"']),
    (
        "another driver and node",
        slice_of(driver="e.example.com", nodeName="m"),
        slice_of(),
        [
            'spec.driver: Invalid value: "e.example.com": field is immutable',
            'spec.nodeName: Invalid value: "m": field is immutable',
        ],
    ),
]


@pytest.mark.parametrize(("new", "old", "expected"), [row[1:] for row in SLICES], ids=[row[0] for row in SLICES])
def test_slices_are_validated(new: Object, old: Object | None, expected: list[str]) -> None:
    assert errors(SLICE, new, old) == expected


def test_taints_have_the_time_when_they_were_added() -> None:
    rule = {"spec": {"taint": {"key": "a", "effect": "NoExecute"}}}
    assert prepared(TAINT_RULE, rule)["spec"]["taint"]["timeAdded"] == NOW
    assert errors(TAINT_RULE, {"spec": {"taint": {"key": "a", "effect": "X"}}}) == [
        'spec.taint.effect: Unsupported value: "X": supported values: "NoExecute", "NoSchedule", "None"'
    ]


def test_classes_have_configurations_for_drivers() -> None:
    assert errors(CLASS, {"spec": {"config": [{}, {"opaque": {"driver": "d", "parameters": {}}}]}}) == [
        "spec.config[0].opaque: Required value"
    ]
