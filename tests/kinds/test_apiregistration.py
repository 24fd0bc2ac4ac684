"""APIServices and StorageVersionMigrations."""

from __future__ import annotations

import pytest

from noxu.values import Object
from tests.kinds.typed_objects import NOW, errors, kind_of, name_errors, prepared

SERVICE = kind_of("apiregistration.k8s.io/v1", "APIService")
MIGRATION = kind_of("storagemigration.k8s.io/v1", "StorageVersionMigration")


def service(**spec: object) -> Object:
    return {
        "spec": {"group": "a.example.com", "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1, **spec}
    }


SERVICES: list[tuple[str, Object, list[str]]] = [
    ("a local one", service(), []),
    ("a remote one", service(service={"namespace": "ns", "name": "s"}), []),
    (
        "no group",
        service(group="", version="v2"),
        ["spec.group: Required value: only v1 may have an empty group and it better be legacy kube"],
    ),
    (
        "priorities out of range",
        service(groupPriorityMinimum=0, versionPriority=1001),
        [
            "spec.groupPriorityMinimum: Invalid value: 0: must be positive and less than 20000",
            "spec.versionPriority: Invalid value: 1001: must be positive and less than 1000",
        ],
    ),
    (
        "a bundle for nothing",
        service(caBundle="YQ==", insecureSkipTLSVerify=True),
        [
            'spec.caBundle: Invalid value: "1 bytes": local APIServices may not have a caBundle',
            "spec.insecureSkipTLSVerify: Invalid value: true: local APIServices may not have insecureSkipTLSVerify",
        ],
    ),
    (
        "a service without name",
        service(service={}),
        ["spec.service.namespace: Required value", "spec.service.name: Required value"],
    ),
]


@pytest.mark.parametrize(("new", "expected"), [row[1:] for row in SERVICES], ids=[row[0] for row in SERVICES])
def test_services_are_validated(new: Object, expected: list[str]) -> None:
    assert errors(SERVICE, new) == expected


def test_the_name_of_a_service_is_its_version_and_group() -> None:
    assert name_errors(SERVICE, "v1.a.example.com", service()) == []
    expected = 'must be `spec.version+"."+spec.group`: "v1.a.example.com"'
    assert name_errors(SERVICE, "x", service()) == [f'metadata.name: Invalid value: "x": {expected}']


def test_only_local_services_are_available() -> None:
    local = prepared(SERVICE, service())
    (available,) = local["status"]["conditions"]
    assert (available["status"], available["reason"], available["lastTransitionTime"]) == ("True", "Local", NOW)
    remote = prepared(SERVICE, service(service={"namespace": "ns", "name": "s"}), local)
    (available,) = remote["status"]["conditions"]
    assert (available["status"], available["reason"]) == ("False", "NotSupported")
    again = prepared(SERVICE, remote, {**remote, "status": {"conditions": [{**available, "lastTransitionTime": None}]}})
    assert again["status"]["conditions"][0]["lastTransitionTime"] is None, "it does not change again"


WIDGETS = {"spec": {"resource": {"group": "g", "resource": "widgets"}}}
DONE = {"type": "Succeeded", "status": "True", "reason": "a", "lastTransitionTime": NOW}


def test_migrations_are_of_one_resource() -> None:
    assert errors(MIGRATION, {"spec": {}}) == ["spec.resource.resource: Required value: resource is required"]
    other = {"spec": {"resource": {"group": "h", "resource": "widgets"}}}
    assert errors(MIGRATION, other, WIDGETS) == ['group: Invalid value: "h": field is immutable']


def test_migrations_end_once() -> None:
    old = {**WIDGETS, "status": {"conditions": [DONE], "resourceVersion": "5"}}
    new = {**WIDGETS, "status": {"resourceVersion": "6"}}
    assert errors(MIGRATION, new, old, "status") == [
        'status.resourceVersion: Invalid value: "6": cannot be updated',
        "status.conditions: Invalid value: null: Success condition cannot be set to false once it is true",
    ]
