"""Updates of built-in kinds are judged as a server judges what `kubectl apply` and `replace` send."""

from __future__ import annotations

import json
from typing import Any

import pytest

from noxu.commands.updates import verb
from noxu.kinds.scheme import by_group_kind
from tests.cli.conftest import Run, Write
from tests.cli.updates import CONTAINER, JOB, POD, ROWS, SERVICE, obj

Make = Any


def listed(*values: Any) -> Any:
    return {"apiVersion": "v1", "kind": "List", "items": list(values)}


def errors(found: Any) -> list[str]:
    return [f"{each['field']}: {each['message']}" for each in found["findings"] if each["level"] == "error"]


@pytest.mark.parametrize("line", ["--old old.json new.json", "old.json new.json"])
def test_every_row_has_the_verdict_of_a_server(run: Run, write: Write, line: str) -> None:
    pairs = [row.documents(f"row-{n}") for n, row in enumerate(ROWS)]
    write("old.json", listed(*(old for old, _ in pairs)))
    write("new.json", listed(*(new for _, new in pairs)))
    objects = run(f"validate --strict --output json {line}").json["objects"][-len(ROWS) :]
    found = [(row.name, each["update"], errors(each)) for row, each in zip(ROWS, objects, strict=True)]
    assert [(name, update) for name, update, _ in found if update != "apply"] == []
    wrong = [
        (row.name, messages)
        for row, (_, _, messages) in zip(ROWS, found, strict=True)
        if (row.refused not in messages[0] if messages and row.refused else bool(messages) != bool(row.refused))
    ]
    assert wrong == []
    assert [(name, messages) for name, _, messages in found if len(messages) > 1] == [], "one cause each"


def test_every_kind_that_can_be_updated_has_a_row() -> None:
    tested = {(row.value["apiVersion"], row.value["kind"]) for row in ROWS}
    kinds = {key for key, kind in by_group_kind().items() if kind.stored}
    assert kinds - tested == NOT_TESTED


NOT_TESTED = {
    ("admissionregistration.k8s.io/v1", "MutatingAdmissionPolicy"),  # as validating ones
    ("admissionregistration.k8s.io/v1", "MutatingAdmissionPolicyBinding"),
    ("autoscaling/v1", "HorizontalPodAutoscaler"),  # v2 in another version
    ("certificates.k8s.io/v1", "CertificateSigningRequest"),  # needs keys
    ("certificates.k8s.io/v1", "ClusterTrustBundle"),
    ("certificates.k8s.io/v1", "PodCertificateRequest"),
    ("events.k8s.io/v1", "Event"),  # v1 in another version
    ("networking.k8s.io/v1", "IPAddress"),  # made by the server
    ("rbac.authorization.k8s.io/v1", "ClusterRole"),  # as a Role
    ("resource.k8s.io/v1", "DeviceTaintRule"),
    ("storagemigration.k8s.io/v1", "StorageVersionMigration"),
    ("v1", "ComponentStatus"),  # made by the server
}


def test_the_output_says_what_kind_of_update_an_object_is(run: Run, write: Write) -> None:
    write("old.json", obj("v1", "ConfigMap") | {"metadata": {"name": "a"}})
    write("new.json", listed(obj("v1", "ConfigMap") | {"metadata": {"name": "a"}, "immutable": True}, obj("v1", "ConfigMap") | {"metadata": {"name": "b"}}))  # fmt: skip
    ran = run("validate --old old.json new.json")
    assert ran.out.splitlines() == [
        "new.json: ConfigMap default/a: valid, as an update by kubectl apply",
        "new.json: ConfigMap default/b: valid",
        "2 objects: 2 valid, 0 refused, 0 skipped",
    ]
    assert run("explain-write --old old.json new.json").out.splitlines()[0] == "new.json: ConfigMap a: accepted, as an update by kubectl apply"  # fmt: skip
    assert [each["update"] for each in run("explain-write --old old.json new.json --output json").json] == [
        "apply",
        None,
    ]


UID = {"uid": "0-1-2", "resourceVersion": "7", "generation": 1, "creationTimestamp": "2024-01-01T00:00:00Z"}
LAST = "kubectl.kubernetes.io/last-applied-configuration"
SPEC = {"containers": [{**CONTAINER, "env": []}]}

EXPORTED: list[tuple[str, Any, Any, str, list[str]]] = [
    ("an exported object that was edited", {"metadata": UID, "data": {"a": "b"}, "immutable": True}, {"metadata": UID, "immutable": True}, "replace", ["data: Forbidden: field is immutable when `immutable` is set"]),
    ("a file for an exported object of which nothing is known to go", {"metadata": UID, "data": {"a": "b"}, "immutable": True}, {"immutable": True}, "apply", []),
    ("a file for an exported object that was applied from a larger one", {"metadata": {**UID, "annotations": {LAST: '{"data":{"a":"b"}}'}}, "data": {"a": "b"}, "immutable": True}, {"immutable": True}, "apply", ["data: Forbidden: field is immutable when `immutable` is set"]),
    ("a broken annotation", {"metadata": {**UID, "annotations": {LAST: "{"}}, "data": {"a": "b"}, "immutable": True}, {"immutable": True}, "apply", []),
    ("an exported object for a file", {"data": {"a": "b"}, "immutable": True}, {"metadata": UID, "immutable": True}, "apply", ["data: Forbidden: field is immutable when `immutable` is set"]),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "update", "refused"), [row[1:] for row in EXPORTED], ids=[row[0] for row in EXPORTED])  # fmt: skip
def test_exported_objects(run: Run, write: Write, old: Any, new: Any, update: str, refused: list[str]) -> None:
    for name, value in (("old.json", old), ("new.json", new)):
        metadata = {**value.get("metadata", {}), "name": "a"}
        write(name, {"apiVersion": "v1", "kind": "ConfigMap", **value, "metadata": metadata})
    [found] = run("validate --old old.json new.json --output json").json["objects"]
    assert (found["update"], errors(found)) == (update, refused)


def test_what_the_server_has_added_stays_in_updates_of_files(run: Run, write: Write) -> None:
    values = [{**value, "metadata": {"name": "a"}} for value in (POD, JOB, SERVICE)]
    write("old.json", listed(*values))
    assert run("validate --old old.json old.json").status == 0
    assert run("validate old.json old.json").status == 0


def test_former_objects_that_are_refused_now_are_updated_all_the_same(run: Run, write: Write) -> None:
    old = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "type": "kubernetes.io/tls", "data": {}}
    write("old.json", old)
    write("new.json", {**old, "type": "Opaque"})
    [found] = run("validate --old old.json new.json --output json").json["objects"]
    assert errors(found) == ['type: Invalid value: "Opaque": field is immutable']


def test_a_former_object_has_the_defaults_of_its_former_definition(
    run: Run, write: Make, crd: Make, widget: Make
) -> None:
    rules = [{"rule": "self == oldSelf", "message": "it stays"}]
    for name, default in (("old", "red"), ("new", "green")):
        colour = {"type": "string", "default": default}
        write(f"{name}/crd.json", crd(colour=colour | ({"x-kubernetes-validations": rules} if name == "new" else {})))
    write("old/a.json", widget("a", size=1))
    write("new/a.json", widget("a", size=2))
    write("other.json", widget("a", colour="green"))
    assert run("validate --old old new").status == 0, "the default is stored"
    ran = run("validate --old old new/crd.json other.json --output json")
    assert [errors(found) for found in ran.json["objects"]] == [[], ['spec.colour: Invalid value: "green": it stays']]


def test_the_status_of_a_former_object_counts(run: Run, write: Write) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "volumeName": "v", "storageClassName": "s"}
    old = obj("v1", "PersistentVolumeClaim", spec={**spec, "resources": {"requests": {"storage": "2Gi"}}})
    bound = {"phase": "Bound", "capacity": {"storage": "2Gi"}, "accessModes": ["ReadWriteOnce"]}
    write("old.json", {**old, "metadata": {"name": "a"}, "status": bound})
    write(
        "new.json", {**old, "metadata": {"name": "a"}, "spec": {**spec, "resources": {"requests": {"storage": "1Gi"}}}}
    )
    [found] = run("validate --old old.json new.json --output json").json["objects"]
    assert errors(found) == ["spec.resources.requests.storage: Forbidden: field can not be less than status.capacity"]


@pytest.mark.parametrize(
    ("last", "sent", "expected"),
    [({}, {}, "apply"), ({"metadata": UID}, {}, "apply"), ({}, {"metadata": UID}, "apply"), ({"metadata": UID}, {"metadata": UID}, "replace"), ({"metadata": 3}, {"metadata": {"uid": ""}}, "apply")],
)  # fmt: skip
def test_the_verb_of_an_update(last: Any, sent: Any, expected: str) -> None:
    assert verb(json.loads(json.dumps(last)), sent) == expected
