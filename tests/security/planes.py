"""A control plane with a service account, its tokens, and objects to which they are bound."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

from noxu.clock import Clock
from noxu.control_plane import ControlPlane, running
from noxu.manifests import loading
from noxu.registry.stored_object import key_of
from noxu.security.claims import Reference
from noxu.security.settings import DEFAULT, Settings
from noxu.values import Object, copy
from noxu_storage.memory import MemoryStore
from noxu_storage.store import Store
from tests.control_planes import assemble

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "namespace": "default"},
    "spec": {"serviceAccountName": "robot", "nodeName": "n", "containers": [{"name": "c", "image": "i"}]},
}
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "default"}}
ACCOUNT = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot", "namespace": "default"}}


@contextlib.asynccontextmanager
async def plane_with_account(
    clock: Clock, settings: Settings = DEFAULT, store: Store | None = None
) -> AsyncIterator[ControlPlane]:
    async with running(assemble(store or MemoryStore(), clock=clock, authentication=settings)) as plane:
        await create(plane, ACCOUNT)
        yield plane


async def create(plane: ControlPlane, value: Object) -> Object:
    return await loading.apply(plane, copy(value))


async def delete(plane: ControlPlane, value: Object) -> None:
    """Remove an object from the store, whatever protects it."""
    resource = loading.resource_of(plane, value)
    assert resource is not None
    key = key_of(resource, value["metadata"].get("namespace", ""), value["metadata"]["name"])
    found = await plane.store.get(key)
    assert found is not None
    await plane.cache.reached(await plane.store.delete(key, expected=found.revision))


def reference(value: Object) -> Reference:
    return Reference(value["metadata"]["name"], value["metadata"]["uid"])
