"""The objects that an API server creates about itself: when they are created, what they contain, and that they come back."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from noxu.apiserver.control_plane import ControlPlane, assemble
from noxu.apiserver.controllers import bootstrap
from noxu.apiserver.controllers.bootstrap import Facts, lease_name
from noxu.apiserver.registry.draft import Draft, User
from noxu.apiserver.values import Object
from noxu.storage.types import Unavailable
from tests.clocks import ManualClock
from tests.controllers.conftest import World, a_world, copy_of, namespace
from tests.faults.flaky import FlakyStore
from tests.timing import eventually_async

FACTS = Facts(port=6443, hostname="node-1", identity="f00d")
LEASE = "apiserver-lgabes5ywnaqeagh5dny4zlzs4"
TRACKING = "kube-apiserver-legacy-service-account-token-tracking"
ROWS = [
    ("services", "", "default", "kubernetes", bootstrap.SERVICE_EVERY),
    ("configmaps", "", "kube-system", TRACKING, bootstrap.TRACKING_EVERY),
    ("leases", "coordination.k8s.io", "kube-system", LEASE, bootstrap.LEASE_EVERY),
]
rows = pytest.mark.parametrize(
    ("plural", "group", "where", "name", "every"), ROWS, ids=[f"{row[0]}/{row[3]}"[:30] for row in ROWS]
)


def a_server(store: FlakyStore, clock: ManualClock) -> ControlPlane:
    return assemble(store, clock=clock, facts=FACTS)


@pytest.fixture
async def world(store: FlakyStore, clock: ManualClock) -> AsyncIterator[World]:
    async with a_world(store, clock, a_server) as world:
        yield world


async def names(world: World, plural: str) -> list[str]:
    collection = await world.plane.reader.collection(world.resource(plural))
    return [key.name for key in collection.keys]


def managed(value: Object) -> list[str]:
    return [entry["manager"] for entry in value["metadata"]["managedFields"]]


async def test_the_system_namespaces(world: World) -> None:
    assert await names(world, "namespaces") == ["default", "kube-node-lease", "kube-public", "kube-system"]
    found = await world.get(world.resource("namespaces"), "kube-system")
    assert (found["spec"], found["status"]) == ({"finalizers": ["kubernetes"]}, {"phase": "Active"})
    assert found["metadata"]["labels"] == {"kubernetes.io/metadata.name": "kube-system"}
    assert managed(found) == ["kube-apiserver"]


async def test_without_a_server_there_are_only_the_namespaces(store: FlakyStore, clock: ManualClock) -> None:
    async with a_world(store, clock, lambda store, clock: assemble(store, clock=clock)) as world:
        assert len(await names(world, "namespaces")) == 4
        assert await names(world, "services") == []


async def test_they_are_created_although_the_store_is_unavailable_at_first(
    store: FlakyStore, clock: ManualClock
) -> None:
    store.fail("create", lambda key: key.collection in ("/namespaces", "/services"), 6, Unavailable("planned"))
    async with a_world(store, clock, a_server) as world:
        await world.settled()
        assert store.failures == 6
        assert len(await names(world, "namespaces")) == 4
        assert await names(world, "services") == ["kubernetes"]


async def test_the_service_kubernetes(world: World) -> None:
    found = await world.get(world.resource("services"), "kubernetes", "default")
    assert found["metadata"]["labels"] == {"component": "apiserver", "provider": "kubernetes"}
    assert found["spec"] == {
        "clusterIP": "10.0.0.1",
        "clusterIPs": ["10.0.0.1"],
        "internalTrafficPolicy": "Cluster",
        "ipFamilies": ["IPv4"],
        "ipFamilyPolicy": "SingleStack",
        "ports": [{"name": "https", "protocol": "TCP", "port": 443, "targetPort": 6443}],
        "sessionAffinity": "None",
        "type": "ClusterIP",
    }


async def test_the_tracking_of_legacy_tokens(world: World) -> None:
    found = await world.get(world.resource("configmaps"), TRACKING, "kube-system")
    assert found["data"] == {"since": "2026-01-02"}


@pytest.mark.parametrize(
    ("since", "after"),
    [("2025-12-31", "2025-12-31"), ("20251231", "2026-01-02"), ("2025-1-2", "2026-01-02"), ("yesterday", "2026-01-02")],
)
async def test_a_date_that_is_none_is_replaced(world: World, since: str, after: str) -> None:
    metadata = {"name": TRACKING, "namespace": "kube-system"}
    await world.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"since": since}})
    world.clock.advance(bootstrap.TRACKING_EVERY)
    await world.settled()
    assert (await world.get(world.resource("configmaps"), TRACKING, "kube-system"))["data"] == {"since": after}


def test_the_name_of_the_lease_is_a_hash_of_the_host() -> None:
    assert lease_name("node-1") == LEASE
    assert lease_name("node-2") != LEASE


async def test_the_identity_lease(world: World) -> None:
    leases = world.resource("leases", "coordination.k8s.io")
    found = await world.get(leases, LEASE, "kube-system")
    assert found["metadata"]["labels"] == {
        "apiserver.kubernetes.io/identity": "kube-apiserver",
        "kubernetes.io/hostname": "node-1",
    }
    assert found["spec"] == {
        "holderIdentity": f"{LEASE}_f00d",
        "leaseDurationSeconds": 3600,
        "renewTime": "2026-01-02T03:04:05.678901Z",
    }
    world.clock.advance(600)
    await world.settled()
    renewed = await world.get(leases, LEASE, "kube-system")
    assert renewed["spec"] == {**found["spec"], "renewTime": "2026-01-02T03:14:05.678901Z"}


@rows
async def test_a_deleted_object_comes_back(
    world: World, plural: str, group: str, where: str, name: str, every: float
) -> None:
    resource = world.resource(plural, group)
    await world.delete(resource, name, where)
    world.clock.advance(every - 1)
    await world.settled()
    assert await world.find(resource, name, where) is None
    world.clock.advance(1)
    await world.settled()
    assert await world.find(resource, name, where)


async def test_a_restart_renews_the_lease_and_writes_nothing_else(store: FlakyStore, clock: ManualClock) -> None:
    async with a_world(store, clock, a_server) as world:
        store = await copy_of(world.store)
    before = store.revision
    again = FACTS._replace(identity="beef")
    async with a_world(store, clock, lambda store, clock: assemble(store, clock=clock, facts=again)) as world:
        await eventually_async(lambda: store.revision > before)
        await world.settled()
        assert store.revision == before + 1
        lease = await world.get(world.resource("leases", "coordination.k8s.io"), LEASE, "kube-system")
        assert lease["spec"]["holderIdentity"] == f"{LEASE}_beef"


async def test_no_collection_is_loaded_for_them(world: World) -> None:
    assert "/configmaps" not in world.plane.reader.cache.collections
    assert "coordination.k8s.io/leases" not in world.plane.reader.cache.collections


async def test_objects_of_others_are_not_changed(store: FlakyStore, clock: ManualClock) -> None:
    async with a_world(store, clock) as world:
        mine = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "kubernetes", "namespace": "default"},
            "spec": {"type": "ExternalName", "externalName": "example.com"},
        }
        await world.apply(namespace("n"), mine)
        store = await copy_of(world.store)
    async with a_world(store, clock, a_server) as world:
        await eventually_async(lambda: world.find(world.resource("configmaps"), TRACKING, "kube-system"))
        await world.settled()
        found = await world.get(world.resource("services"), "kubernetes", "default")
        assert found["spec"]["type"] == "ExternalName"


async def test_admission_sees_the_user_of_the_api_server(store: FlakyStore, clock: ManualClock) -> None:
    seen: set[User] = set()

    def record(draft: Draft) -> None:
        seen.add(draft.request.user)

    def recording(store: FlakyStore, clock: ManualClock) -> ControlPlane:
        plane = a_server(store, clock)
        plane.admission.mutate = record  # type: ignore[method-assign]
        return plane

    async with a_world(store, clock, recording):
        assert seen == {User("system:apiserver", groups=("system:masters", "system:authenticated"))}
