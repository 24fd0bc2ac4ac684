"""Objects that controllers of this process write: they are shared with other readers, so a write never changes them."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from noxu.control_plane import ControlPlane, running
from noxu.registry.draft import Action, Body, Options, WriteRequest
from noxu.registry.resource import Resource
from noxu.registry.stored_object import object_at
from noxu.values import Object, copy
from noxu_storage.memory import MemoryStore
from tests.control_planes import assemble

LABELS = {"app": "web"}
DEPLOYMENT: Object = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "default", "labels": LABELS, "annotations": {"b": "1", "a": "2"}},
    "spec": {
        "selector": {"matchLabels": LABELS},
        "template": {
            "metadata": {"labels": LABELS},
            "spec": {"containers": [{"name": "main", "image": "web", "resources": {"limits": {"cpu": "0.5"}}}]},
        },
    },
}
OPTIONS = Options(field_manager="kube-controller-manager")


@pytest.fixture
async def plane() -> AsyncIterator[ControlPlane]:
    async with running(assemble(MemoryStore())) as found:
        yield found


def deployments(plane: ControlPlane) -> Resource:
    resource = plane.served_resources.current.find("apps", "v1", "deployments")
    assert resource is not None
    return resource


async def written(plane: ControlPlane, action: Action, value: Object, subresource: str = "") -> Object:
    """The stored object. The one that was written is as before."""
    resource, before = deployments(plane), copy(value)
    name = "" if action is Action.CREATE else "web"
    request = WriteRequest(action, resource, "default", name, subresource, Body(value), OPTIONS)
    result = await plane.writer.write(request)
    assert value == before
    assert result.entry is not None
    return object_at(result.entry, resource)


async def test_a_write_leaves_the_object_of_a_controller_alone(plane: ControlPlane) -> None:
    created = await written(plane, Action.CREATE, DEPLOYMENT)
    assert created["spec"]["replicas"] == 1  # the default
    assert created["spec"]["template"]["spec"]["containers"][0]["resources"] == {"limits": {"cpu": "500m"}}
    scaled = await written(plane, Action.REPLACE, {**created, "spec": {**created["spec"], "replicas": 3}})
    assert scaled["metadata"]["generation"] == 2


async def test_a_status_changes_nothing_else(plane: ControlPlane) -> None:
    created = await written(plane, Action.CREATE, DEPLOYMENT)
    condition = {"type": "Available", "status": "True", "reason": "r", "message": "m"}
    status = {"observedGeneration": 1, "replicas": 1, "conditions": [condition]}
    stored = await written(plane, Action.REPLACE, {**created, "status": status}, "status")
    assert stored["spec"] == created["spec"]
    assert stored["status"]["replicas"] == 1
    by_status = [it for it in stored["metadata"]["managedFields"] if it.get("subresource") == "status"]
    assert [it["fieldsV1"].keys() for it in by_status] == [{"f:status"}]
    others = [it for it in stored["metadata"]["managedFields"] if not it.get("subresource")]
    assert [it["fieldsV1"] for it in others] == [it["fieldsV1"] for it in created["metadata"]["managedFields"]]
