"""/scale of built-in kinds, whose errors are those of any typed body, unlike that of custom resources."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest

from conformance.client import Client
from tests.http.conftest import Reply, Things

APPS: Final = "/apis/apps/v1/namespaces/default"
DEPLOYMENT: Final = f"{APPS}/deployments/d"
SCALE: Final = f"{DEPLOYMENT}/scale"
MERGE: Final = "merge-patch+json"
TEMPLATE: Final = {"metadata": {"labels": {"a": "1", "b": "2"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
SELECTOR: Final = {
    "matchLabels": {"a": "1"},
    "matchExpressions": [{"key": "b", "operator": "In", "values": ["3", "2"]}],
}
CONTROLLERS: Final = "/api/v1/namespaces/default/replicationcontrollers"
KINDS: Final = {
    "deployments": (f"{APPS}/deployments", {"selector": SELECTOR}, "a=1,b in (2,3)"),
    "replicasets": (f"{APPS}/replicasets", {"selector": SELECTOR}, "a=1,b in (2,3)"),
    "statefulsets": (f"{APPS}/statefulsets", {"selector": SELECTOR, "serviceName": "s"}, "a=1,b in (2,3)"),
    "replicationcontrollers": (CONTROLLERS, {"selector": {"b": "2", "a": "1"}}, "a=1,b=2"),
}


@pytest.fixture
def api(served: Client) -> Iterator[Things]:
    api = Things(served)
    for path, spec, _ in KINDS.values():
        body = {"metadata": {"name": "d"}, "spec": {"replicas": 2, "template": TEMPLATE, **spec}}
        reply = api.ask("POST", f"{path}?fieldManager=creator", body)
        assert reply.code == 201, reply
    yield api
    for path, *_ in KINDS.values():
        assert api.ask("DELETE", path, {"propagationPolicy": "Background"}).code == 200


def scale(replicas: Any = 3, name: str = "d", **metadata: Any) -> Any:
    return {
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": {"name": name, **metadata},
        "spec": {"replicas": replicas},
    }


@pytest.mark.parametrize("kind", KINDS)
def test_a_scale_shows_and_sets_the_replicas(api: Things, kind: str) -> None:
    path, _, selector = KINDS[kind]
    value = api.ask("GET", f"{path}/d").body["metadata"]
    shown = api.ask("GET", f"{path}/d/scale").body
    names = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    assert shown == {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: value[name] for name in names},
        "spec": {"replicas": 2},
        "status": {"replicas": 0, "selector": selector},
    }
    reply = api.ask("PUT", f"{path}/d/scale?fieldManager=scaler", scale())
    assert (reply.code, reply.body["spec"]) == (200, {"replicas": 3})
    after = api.ask("GET", f"{path}/d").body
    assert (after["spec"]["replicas"], after["metadata"]["generation"]) == (3, 2)
    [owned] = [entry for entry in after["metadata"]["managedFields"] if entry["manager"] == "scaler"]
    version = "v1" if kind == "replicationcontrollers" else "apps/v1"
    assert owned == {
        "manager": "scaler",
        "operation": "Update",
        "apiVersion": version,
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": {"f:replicas": {}}},
        "subresource": "scale",
    }


@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_a_scale_can_be_read_and_changed_only(api: Things, method: str) -> None:
    assert api.ask(method, SCALE, scale()).code == 405


ABSENT: Final = 'deployments.apps "x" not found'


def test_an_object_that_does_not_exist_has_no_scale(api: Things) -> None:
    path = f"{APPS}/deployments/x/scale"
    for reply in (
        api.ask("GET", path),
        api.ask("PUT", path, scale(name="x")),
        api.ask("PATCH", path, {}, MERGE),
        api.ask("PATCH", f"{path}?fieldManager=m", scale(name="x"), "apply-patch+yaml"),
    ):
        assert (reply.code, reply.message) == (404, ABSENT)


NEGATIVE: Final = (
    'Scale.autoscaling "d" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0'
)
WAYS: list[tuple[str, Any, str]] = [
    ("PUT", scale(-1), "json"),
    ("PATCH", {"spec": {"replicas": -1}}, MERGE),
    ("PATCH", {"spec": {"replicas": -1}}, "strategic-merge-patch+json"),
    ("PATCH", [{"op": "replace", "path": "/spec/replicas", "value": -1}], "json-patch+json"),
    ("PATCH", scale(-1), "apply-patch+yaml"),
]


@pytest.mark.parametrize(("method", "body", "content"), WAYS, ids=[row[2] for row in WAYS])
def test_replicas_are_not_negative(api: Things, method: str, body: Any, content: str) -> None:
    query = "?fieldManager=m&force=true" if content == "apply-patch+yaml" else ""
    reply = api.ask(method, f"{SCALE}{query}", body, content)
    assert (reply.code, reply.message) == (422, NEGATIVE)
    assert reply.body["details"]["kind"] == "Scale"


def test_the_metadata_of_a_scale_is_validated(api: Things) -> None:
    reply = api.ask("PUT", SCALE, scale(labels={"a b": "c"}))
    assert (reply.code, reply.message.partition(": ")[0]) == (422, 'Scale.autoscaling "d" is invalid')
    assert "metadata.labels" in reply.message


def test_resource_version_and_uid_are_preconditions_if_they_are_sent(api: Things) -> None:
    metadata = api.ask("GET", DEPLOYMENT).body["metadata"]
    other = api.ask("PUT", SCALE, scale(resourceVersion="1"))
    assert (other.code, other.message.partition(": ")[0]) == (
        409,
        'Operation cannot be fulfilled on deployments.apps "d"',
    )
    other = api.ask("PUT", SCALE, scale(uid="x"))
    why = f"Precondition failed: UID in precondition: x, UID in object meta: {metadata['uid']}"
    assert (other.code, other.message) == (
        409,
        'Operation cannot be fulfilled on deployments.apps "d": StorageError: invalid object, Code: 4, Key: '
        f"/registry/deployments/default/d, ResourceVersion: 0, AdditionalErrorMsg: {why}",
    )
    same = {name: metadata[name] for name in ("uid", "resourceVersion")}
    assert api.ask("PUT", SCALE, scale(**same)).code == 200


UNREADABLE: list[tuple[str, Any, str]] = [
    ("a text", scale("x"), 'Scale in version "v1" cannot be handled as a Scale: json: cannot unmarshal string into Go '
     "struct field ScaleSpec.spec.replicas of type int32"),
    ("another kind", {"apiVersion": "v1", "kind": "Pod"},
     'Pod in version "v1" cannot be handled as a Scale: converting (v1.Pod) to (autoscaling.Scale): unknown conversion'),
    ("an unknown version", {**scale(), "apiVersion": "autoscaling/v0"}, 'Scale in version "v0" cannot be handled as a '
     'Scale: no kind "Scale" is registered for version "autoscaling/v0" in scheme "pkg/runtime/scheme.go:111"'),
    ("nothing", b"", "the object provided is unrecognized (must be of type Scale): couldn't get version/kind; json parse "
     "error: unexpected end of JSON input (<empty>)"),
    ("another name", scale(name="x"), "the name of the object (x) does not match the name on the URL (d)"),
    ("no name", {"spec": {"replicas": 1}},
     "the name of the object (d based on URL) was undeterminable: name must be provided"),
    ("another namespace", scale(namespace="x"),
     "the namespace of the provided object does not match the namespace sent on the request"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "message"), [row[1:] for row in UNREADABLE], ids=[row[0] for row in UNREADABLE])
def test_a_body_that_is_no_scale_of_the_object(api: Things, body: Any, message: str) -> None:
    reply: Reply = api.ask("PUT", SCALE, body)
    assert (reply.code, reply.message) == (400, message)


def test_unknown_fields_of_a_scale(api: Things) -> None:
    body = {**scale(), "spec": {"replicas": 1, "x": 1}}
    strict = api.ask("PUT", f"{SCALE}?fieldValidation=Strict", body)
    why = 'Scale in version "v1" cannot be handled as a Scale: strict decoding error: unknown field "spec.x"'
    assert (strict.code, strict.message) == (400, why)
    assert api.ask("PUT", f"{SCALE}?fieldValidation=Ignore", body).warnings == []
    assert api.ask("PUT", SCALE, body).warnings == ['unknown field "spec.x"']


def test_a_dry_run_scales_nothing(api: Things) -> None:
    before = api.ask("GET", DEPLOYMENT).body
    assert api.ask("PUT", f"{SCALE}?dryRun=All", scale(9)).body["spec"] == {"replicas": 9}
    assert api.ask("GET", DEPLOYMENT).body == before


def test_a_conflict_of_appliers(api: Things) -> None:
    applied = "apply-patch+yaml"
    assert api.ask("PATCH", f"{SCALE}?fieldManager=m&force=true", scale(5), applied).body["spec"] == {"replicas": 5}
    reply = api.ask("PATCH", f"{SCALE}?fieldManager=n", scale(6), applied)
    assert (reply.code, reply.body["reason"]) == (409, "Conflict")
