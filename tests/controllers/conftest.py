"""A control plane without HTTP: its store fails on request, and its clock stands until a test advances it."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable

import pytest

from noxu.control_plane import ControlPlane, resource_of, running
from noxu.manifests import loading
from noxu.registry.draft import Action, WriteRequest
from noxu.registry.resource import Resource
from noxu.registry.stored_object import key_of, object_at
from noxu.values import Json, Object
from noxu_storage.types import EVERYTHING
from tests.clocks import ManualClock
from tests.control_planes import assemble
from tests.faults.flaky import FlakyStore
from tests.timing import eventually_async, hang_guard, loop_turns


class World:
    """A running control plane, its store and its clock."""

    def __init__(self, plane: ControlPlane, store: FlakyStore, clock: ManualClock) -> None:
        self.plane, self.store, self.clock = plane, store, clock

    def resource(self, plural: str, group: str = "") -> Resource:
        return resource_of(self.plane.served_resources, group, plural)

    async def apply(self, *objects: Object) -> None:
        for value in objects:
            await loading.apply(self.plane, value)

    async def delete(self, resource: Resource, name: str, namespace: str = "") -> None:
        await self.plane.writer.write(WriteRequest(Action.DELETE, resource, namespace, name))

    async def find(self, resource: Resource, name: str, namespace: str = "") -> Object | None:
        """The object that a client would get; None: it does not exist."""
        entry = (await self.plane.reader.collection(resource)).entries.get(key_of(resource, namespace, name))
        return None if entry is None else object_at(entry, resource)

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Object:
        found = await self.find(resource, name, namespace)
        assert found is not None
        return found

    async def until_deleted(self, resource: Resource, name: str, namespace: str = "") -> None:
        await eventually_async(lambda: self._is_deleted(resource, name, namespace))

    async def _is_deleted(self, resource: Resource, name: str, namespace: str) -> bool:
        return await self.find(resource, name, namespace) is None

    async def settled(self) -> None:
        """Wait until no controller has a key to reconcile, or has to synchronise, twice in a row."""
        idle = 0
        async with hang_guard():
            while idle < 2:
                await loop_turns()
                controllers = self.plane.all_controllers
                busy = any(controller.queue.depth or not controller.is_synchronised for controller in controllers)
                idle = 0 if busy else idle + 1


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def store() -> FlakyStore:
    return FlakyStore()


Build = Callable[[FlakyStore, ManualClock], ControlPlane]


def default_plane(store: FlakyStore, clock: ManualClock) -> ControlPlane:
    return assemble(store, clock=clock, controllers=("*",))


@contextlib.asynccontextmanager
async def a_world(store: FlakyStore, clock: ManualClock, build: Build = default_plane) -> AsyncIterator[World]:
    async with running(build(store, clock)) as plane:
        yield World(plane, store, clock)


async def copy_of(store: FlakyStore) -> FlakyStore:
    """A store with the current objects of another one: that of a server that is started again."""
    copy = FlakyStore()
    for item in (await store.list(EVERYTHING)).items:
        await copy.put(item.key, item.value, expected=0)
    return copy


@pytest.fixture
async def world(store: FlakyStore, clock: ManualClock) -> AsyncIterator[World]:
    async with a_world(store, clock) as running_world:
        yield running_world


def config_map(name: str, *, namespace: str = "default", finalizers: tuple[str, ...] = (), **data: str) -> Object:
    metadata: Object = {"name": name, "namespace": namespace}
    if finalizers:
        metadata["finalizers"] = list(finalizers)
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def namespace(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def definition(plural: str = "widgets", kind: str = "Widget", group: str = "example.com", **names: Json) -> Object:
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind, **names},
            "versions": [version],
        },
    }


def custom(name: str, *, kind: str = "Widget", group: str = "example.com", finalizers: tuple[str, ...] = ()) -> Object:
    metadata: Object = {"name": name, "namespace": "default"}
    if finalizers:
        metadata["finalizers"] = list(finalizers)
    return {"apiVersion": f"{group}/v1", "kind": kind, "metadata": metadata}


def conditions(value: Object) -> dict[str, tuple[str, str]]:
    """The conditions of an object: (status, reason) by type."""
    found = value.get("status", {}).get("conditions", [])
    return {condition["type"]: (condition["status"], condition["reason"]) for condition in found}
