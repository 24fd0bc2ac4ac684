"""Storage that is in use is not deleted: claims, volumes and classes of attributes."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from noxu.registry.draft import Action, Body, WriteRequest
from noxu.values import Object
from tests.clocks import ManualClock
from tests.controllers.conftest import World, a_world, default_plane
from tests.faults.flaky import FlakyStore

PVC, PV, VAC = "kubernetes.io/pvc-protection", "kubernetes.io/pv-protection", "kubernetes.io/vac-protection"


def claim(**spec: object) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "c", "namespace": "default", "finalizers": [PVC]},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec},
    }


def pod(name: str, volume: Object) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [{"name": "c", "image": "i:1"}], "volumes": [{"name": "v", **volume}]},
    }


@pytest.fixture
async def world(store: FlakyStore, clock: ManualClock) -> AsyncIterator[World]:
    async with a_world(store, clock, default_plane) as world:
        yield world


async def is_there(world: World) -> bool:
    await world.settled()
    return await world.find(world.resource("persistentvolumeclaims"), "c", "default") is not None


async def test_a_claim_that_no_pod_uses_is_deleted(world: World) -> None:
    await world.apply(claim(), pod("other", {"persistentVolumeClaim": {"claimName": "d"}}))
    await world.delete(world.resource("persistentvolumeclaims"), "c", "default")
    assert not await is_there(world)


USES = [
    ("by name", pod("p", {"persistentVolumeClaim": {"claimName": "c"}})),
]


@pytest.mark.parametrize("user", [row[1] for row in USES], ids=[row[0] for row in USES])
async def test_a_claim_stays_until_its_pod_is_gone(world: World, user: Object) -> None:
    await world.apply(claim(), user)
    await world.delete(world.resource("persistentvolumeclaims"), "c", "default")
    assert await is_there(world)
    await world.delete(world.resource("pods"), "p", "default")
    assert not await is_there(world)


async def test_other_finalizers_remain(world: World) -> None:
    held = claim()
    held["metadata"]["finalizers"].append("example.com/wait")
    await world.apply(held)
    await world.delete(world.resource("persistentvolumeclaims"), "c", "default")
    assert await is_there(world)
    found = await world.get(world.resource("persistentvolumeclaims"), "c", "default")
    assert found["metadata"]["finalizers"] == ["example.com/wait"]


async def test_a_volume_that_is_not_bound_is_deleted(world: World) -> None:
    unbound = volume()
    unbound["metadata"]["finalizers"] = [PV]
    await world.apply(unbound)
    volumes = world.resource("persistentvolumes")
    await world.delete(volumes, "v")
    await world.settled()
    assert await world.find(volumes, "v") is None


def volume(**spec: object) -> Object:
    shared = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "v"},
        "spec": {**shared, **spec},
    }


def modified(target: str) -> Object:
    """A claim whose class is about to change."""
    return claim() | {
        "status": {"modifyVolumeStatus": {"targetVolumeAttributesClassName": target, "status": "Pending"}}
    }


CSI = {"hostPath": None, "csi": {"driver": "d", "volumeHandle": "h"}}
NAMED: list[tuple[str, Object, str, str, str]] = [
    ("a claim", claim(volumeAttributesClassName="fast"), "persistentvolumeclaims", "c", "default"),
    ("a claim that is modified", modified("fast"), "persistentvolumeclaims", "c", "default"),
    ("a volume", volume(volumeAttributesClassName="fast", **CSI), "persistentvolumes", "v", ""),
]


@pytest.mark.parametrize(
    ("user", "plural", "name", "namespace"), [row[1:] for row in NAMED], ids=[row[0] for row in NAMED]
)
async def test_a_class_stays_while_it_is_named_by(
    world: World, user: Object, plural: str, name: str, namespace: str
) -> None:
    group = "storage.k8s.io"
    kind = {"apiVersion": f"{group}/v1", "kind": "VolumeAttributesClass", "driverName": "d", "parameters": {"a": "b"}}
    await world.apply({**kind, "metadata": {"name": "fast", "finalizers": [VAC]}}, user)
    if "status" in user:
        stored = await world.get(world.resource(plural), name, namespace)
        body = Body({**stored, "status": user["status"]})
        request = WriteRequest(Action.REPLACE, world.resource(plural), namespace, name, "status", body)
        await world.plane.writer.write(request)
    classes = world.resource("volumeattributesclasses", group)
    await world.delete(classes, "fast")
    await world.settled()
    assert await world.find(classes, "fast") is not None
    await world.delete(world.resource(plural), name, namespace)
    await world.settled()
    assert await world.find(classes, "fast") is None
