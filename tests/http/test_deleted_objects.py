"""The body of a final DELETE: the deleted object for some built-in kinds, a Status for all others (ReturnDeletedObject)."""

from __future__ import annotations

from typing import Any, Final

import pytest

from conformance.client import Client
from noxu.admission.builtin.volumes import FINALIZERS
from noxu.kinds import scheme
from tests.http.conftest import Things

NAMESPACED: Final = "/api/v1/namespaces/default"
CORE: Final = "/api/v1"
STORAGE: Final = "/apis/storage.k8s.io/v1"
DEVICES: Final = "/apis/resource.k8s.io/v1"
POD: Final = {"containers": [{"name": "c", "image": "i"}]}
TEMPLATE: Final = {"metadata": {"labels": {"a": "b"}}, "spec": POD}
OBJECTS: list[tuple[str, Any]] = [
    (f"{NAMESPACED}/pods", {"spec": POD}),
    (f"{NAMESPACED}/services", {"spec": {"ports": [{"port": 80}]}}),
    (f"{NAMESPACED}/serviceaccounts", {}),
    (f"{NAMESPACED}/podtemplates", {"template": TEMPLATE}),
    (f"{NAMESPACED}/resourcequotas", {"spec": {"hard": {"pods": "1"}}}),
    (f"{STORAGE}/storageclasses", {"provisioner": "example.com/p"}),
    (f"{STORAGE}/csidrivers", {"spec": {}}),
    (f"{STORAGE}/csinodes", {"spec": {"drivers": []}}),
    (f"{STORAGE}/volumeattachments",
     {"spec": {"attacher": "a", "nodeName": "n", "source": {"persistentVolumeName": "v"}}}),
    (f"{STORAGE}/volumeattributesclasses", {"driverName": "example.com", "parameters": {"a": "b"}}),
    (f"{DEVICES}/deviceclasses", {"spec": {}}),
    (f"{DEVICES}/namespaces/default/resourceclaims", {"spec": {}}),
    (f"{DEVICES}/namespaces/default/resourceclaimtemplates", {"spec": {"spec": {}}}),
]  # fmt: skip
STATUSES: list[tuple[str, Any]] = [
    (f"{NAMESPACED}/configmaps", {}),
    (f"{NAMESPACED}/secrets", {}),
    (f"{NAMESPACED}/endpoints", {}),
    (f"{NAMESPACED}/limitranges", {"spec": {"limits": []}}),
    (f"{CORE}/nodes", {}),
    ("/apis/coordination.k8s.io/v1/namespaces/default/leases", {"spec": {}}),
    ("/apis/apps/v1/namespaces/default/deployments",
     {"spec": {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}}),
    ("/apis/policy/v1/namespaces/default/poddisruptionbudgets", {"spec": {"selector": {}}}),
    ("/apis/rbac.authorization.k8s.io/v1/clusterroles", {"rules": []}),
    ("/apis/scheduling.k8s.io/v1/priorityclasses", {"value": 1}),
]  # fmt: skip


def name_of(path: str) -> str:
    return path.rpartition("/")[2]


def create(api: Things, path: str, body: Any) -> Any:
    reply = api.ask("POST", path, {"metadata": {"name": "example.com"}, **body})
    assert reply.code == 201, reply
    return reply.body


def uids_at(api: Things, path: str, revision: int) -> set[str]:
    """Of the objects that there were: the controllers of the server may have written something since."""
    listed = api.ask("GET", f"{path}?resourceVersion={revision}&resourceVersionMatch=Exact")
    assert listed.code == 200, listed
    return {item["metadata"]["uid"] for item in listed.body["items"]}


@pytest.mark.parametrize(("path", "body"), OBJECTS, ids=[name_of(path) for path, _ in OBJECTS])
def test_the_answer_is_the_deleted_object(served: Client, path: str, body: Any) -> None:
    api = Things(served)
    if name_of(path) in ("services", "resourcequotas", "podtemplates", "pods", "serviceaccounts"):
        body = {**body, "metadata": {"name": "x"}}
    created = create(api, path, body)
    reply = api.ask("DELETE", f"{path}/{created['metadata']['name']}")
    uid = created["metadata"]["uid"]
    assert (reply.code, reply.body["kind"], reply.body["metadata"]["uid"]) == (200, created["kind"], uid)
    if name_of(path) in FINALIZERS:  # it is deleted when its finalizer is removed
        assert reply.body["metadata"]["finalizers"] == [FINALIZERS[name_of(path)]]
        return
    deletion = int(reply.body["metadata"]["resourceVersion"])
    assert [uid in uids_at(api, path, revision) for revision in (deletion - 1, deletion)] == [True, False]


@pytest.mark.parametrize(("path", "body"), STATUSES, ids=[name_of(path) for path, _ in STATUSES])
def test_the_answer_is_a_status(served: Client, path: str, body: Any) -> None:
    api = Things(served)
    created = create(api, path, body)
    reply = api.ask("DELETE", f"{path}/example.com")
    assert (reply.code, reply.body["kind"], reply.body["status"]) == (200, "Status", "Success")
    assert reply.body["details"]["uid"] == created["metadata"]["uid"]


def test_a_dry_run_returns_the_object_as_it_is(served: Client) -> None:
    api = Things(served)
    created = create(api, f"{NAMESPACED}/serviceaccounts", {"metadata": {"name": "x"}})
    assert api.ask("DELETE", f"{NAMESPACED}/serviceaccounts/x?dryRun=All").body == created
    api.ask("DELETE", f"{NAMESPACED}/serviceaccounts/x")


def test_the_kinds_whose_objects_are_returned() -> None:
    """Those of the tables, and those that a controller has to finish or that need more to be created."""
    found = {kind.plural for kind in scheme.served() if kind.returns_deleted}
    others = {"namespaces", "persistentvolumes", "persistentvolumeclaims", "resourceslices", "devicetaintrules"}
    assert found == {name_of(path) for path, _ in OBJECTS} | others
