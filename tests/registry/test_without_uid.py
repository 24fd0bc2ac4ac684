"""Objects that were stored without a uid can be updated."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest

from noxu.control_plane import ControlPlane, running
from noxu.registry.draft import Action, Body, WriteRequest
from noxu.registry.resource import Resource
from noxu_storage.memory import MemoryStore
from noxu_storage.types import Key
from tests.control_planes import assemble

STORED = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a", "namespace": "default"}}
KEY = Key("/configmaps", "default/", "a")


@pytest.fixture
async def plane() -> AsyncIterator[ControlPlane]:
    store = MemoryStore()
    await store.put(KEY, json.dumps(STORED).encode(), expected=0)
    async with running(assemble(store)) as found:
        yield found


def config_maps(plane: ControlPlane) -> Resource:
    resource = plane.served_resources.current.find("", "v1", "configmaps")
    assert resource is not None
    return resource


@pytest.mark.parametrize(
    ("action", "content", "media_type"),
    [
        (Action.REPLACE, {**STORED, "data": {"k": "v"}}, "application/json"),
        (Action.REPLACE, {**STORED, "metadata": {"name": "a", "uid": ""}, "data": {"k": "v"}}, "application/json"),
        (Action.PATCH, {"data": {"k": "v"}}, "application/merge-patch+json"),
    ],
    ids=["replaced", "replaced with an empty uid", "patched"],
)
async def test_it_is_updated(plane: ControlPlane, action: Action, content: dict[str, object], media_type: str) -> None:
    resource = config_maps(plane)
    assert resource.collection == KEY.collection
    body = Body(json.dumps(content).encode(), media_type)
    await plane.writer.write(WriteRequest(action, resource, "default", "a", body=body))
    stored = await plane.store.get(KEY)
    assert stored is not None
    value = json.loads(stored.value)
    assert (value["data"], "uid" in value["metadata"]) == ({"k": "v"}, False)
