"""The objects that an API server creates about itself: when they are created, what they contain, and that they come back."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any

import pytest

from noxu.control_plane import ControlPlane
from noxu.controllers import bootstrap
from noxu.controllers.bootstrap import Facts, lease_name
from noxu.registry.access import User
from noxu.registry.draft import Action, Draft
from noxu.registry.served_resources import PRIORITIES
from noxu.registry.storage_form import SERVER_LEASES
from noxu.values import Json, Object
from noxu_storage.types import EVERYTHING, Key, Prefix, Unavailable
from tests.clocks import ManualClock
from tests.control_planes import assemble
from tests.controllers.conftest import World, a_world, conditions, copy_of, namespace
from tests.faults.flaky import FlakyStore
from tests.timing import eventually_async

FACTS = Facts(port=6443, hostname="node-1", identity="f00d", address="192.0.2.7")
LEASE = "apiserver-lgabes5ywnaqeagh5dny4zlzs4"
TRACKING = "kube-apiserver-legacy-service-account-token-tracking"
ROWS = [
    ("services", "", "default", "kubernetes", bootstrap.SERVICE_EVERY),
    ("endpoints", "", "default", "kubernetes", bootstrap.SERVICE_EVERY),
    ("endpointslices", "discovery.k8s.io", "default", "kubernetes", bootstrap.SERVICE_EVERY),
    ("servicecidrs", "networking.k8s.io", "", "kubernetes", bootstrap.SERVICE_EVERY),
    ("ipaddresses", "networking.k8s.io", "", "10.0.0.1", bootstrap.SERVICE_EVERY),
    ("flowschemas", "flowcontrol.apiserver.k8s.io", "", "exempt", bootstrap.FLOW_CONTROL_EVERY),
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


async def names(world: World, plural: str, group: str = "") -> list[str]:
    collection = await world.plane.reader.collection(world.resource(plural, group))
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


@pytest.mark.parametrize(
    ("address", "subsets", "endpoints"),
    [
        (
            "192.0.2.7",
            [{"addresses": [{"ip": "192.0.2.7"}], "ports": [{"name": "https", "port": 6443, "protocol": "TCP"}]}],
            [{"addresses": ["192.0.2.7"], "conditions": {"ready": True}}],
        ),
        ("", None, []),
    ],
    ids=["of a host with an address", "of a host on loopback only"],
)
async def test_the_endpoints_of_the_service(
    store: FlakyStore, clock: ManualClock, address: str, subsets: Json, endpoints: Json
) -> None:
    facts = FACTS._replace(address=address)
    async with a_world(store, clock, lambda store, clock: assemble(store, clock=clock, facts=facts)) as world:
        found = await world.get(world.resource("endpoints"), "kubernetes", "default")
        assert found["metadata"]["labels"] == {"endpointslice.kubernetes.io/skip-mirror": "true"}
        assert found.get("subsets") == subsets
        found = await world.get(world.resource("endpointslices", "discovery.k8s.io"), "kubernetes", "default")
        assert found["metadata"]["labels"] == {"kubernetes.io/service-name": "kubernetes"}
        assert found["addressType"] == "IPv4"
        assert found["endpoints"] == endpoints
        assert found["ports"] == [{"name": "https", "port": 6443, "protocol": "TCP"}]


async def test_a_server_at_another_address_takes_over_the_endpoints(store: FlakyStore, clock: ManualClock) -> None:
    async with a_world(store, clock, a_server) as world:
        store = await copy_of(world.store)
    moved = FACTS._replace(address="192.0.2.8", port=7000)
    async with a_world(store, clock, lambda store, clock: assemble(store, clock=clock, facts=moved)) as world:
        endpoints, slices = world.resource("endpoints"), world.resource("endpointslices", "discovery.k8s.io")

        async def moved_both() -> bool:
            one, other = [await world.get(each, "kubernetes", "default") for each in (endpoints, slices)]
            return (
                one["subsets"][0]["addresses"] == [{"ip": "192.0.2.8"}]
                and one["subsets"][0]["ports"][0]["port"] == 7000
                and other["endpoints"][0]["addresses"] == ["192.0.2.8"]
                and other["ports"][0]["port"] == 7000
            )

        await eventually_async(moved_both)


def identity(name: str, *, label: str = "kube-apiserver", **spec: Json) -> Object:
    labels = {"apiserver.kubernetes.io/identity": label} if label else {}
    metadata = {"name": name, "namespace": "kube-system", "labels": labels}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}


async def test_leases_of_servers_that_have_stopped_are_deleted_when_they_expire(
    world: World, clock: ManualClock
) -> None:
    renewed: dict[str, Any] = {"renewTime": "2026-01-02T03:04:05.000000Z", "leaseDurationSeconds": 3600}
    await world.apply(
        identity("apiserver-old", **renewed),
        identity("apiserver-day", **(renewed | {"leaseDurationSeconds": 86_400})),
        identity("apiserver-never", leaseDurationSeconds=3600),
        identity("another", label="another-server", **renewed),
        identity("leader", label="", **renewed),
    )
    kept = {"another", "apiserver-day", "leader", LEASE}
    clock.advance(bootstrap.LEASE_SECONDS - 2)
    await world.settled()
    assert set(await names(world, "leases", "coordination.k8s.io")) == kept | {"apiserver-old", "apiserver-never"}
    clock.advance(bootstrap.EXPIRED_EVERY)
    await world.settled()
    assert set(await names(world, "leases", "coordination.k8s.io")) == kept


class SharedStore(FlakyStore):
    """A store of several servers: it stays open when one of them stops."""

    shared = True

    async def close(self) -> None: ...


async def ready(world: World) -> tuple[list[str], list[int], list[str], list[int]]:
    """The addresses and ports of the endpoints of the Service, and those of the slice."""
    one = (await world.get(world.resource("endpoints"), "kubernetes", "default"))["subsets"][0]
    other = await world.get(world.resource("endpointslices", "discovery.k8s.io"), "kubernetes", "default")
    return (
        [address["ip"] for address in one["addresses"]],
        [port["port"] for port in one["ports"]],
        [address for endpoint in other["endpoints"] for address in endpoint["addresses"]],
        [port["port"] for port in other["ports"]],
    )


async def test_servers_that_share_a_store_are_all_endpoints_until_they_stop(clock: ManualClock) -> None:
    store, second = SharedStore(), ManualClock()
    last = FACTS._replace(address="192.0.2.10", identity="beef", port=7000)
    both, alone = ["192.0.2.10", "192.0.2.7"], ["192.0.2.7"]

    async def after(seconds: float, world: World) -> tuple[list[str], list[int], list[str], list[int]]:
        clock.advance(seconds)
        await world.settled()
        return await ready(world)

    async with a_world(store, clock, a_server) as world:
        assert await ready(world) == (alone, [6443], alone, [6443])
        async with a_world(store, second, lambda store, clock: assemble(store, clock=clock, facts=last)) as other:
            await other.settled()
            assert await ready(other) == (both, [6443], both, [6443])
            revisions = {item.key: item.revision for item in (await store.list(EVERYTHING)).items}
            assert await after(bootstrap.SERVICE_EVERY, world) == (both, [6443], both, [6443])
            second.advance(bootstrap.SERVICE_EVERY)
            await other.settled()
            changed = {
                item.key for item in (await store.list(EVERYTHING)).items if item.revision != revisions[item.key]
            }
            assert {key.name for key in changed} == set(both)  # only the leases
        assert await ready(world) == (alone, [6443], alone, [6443])


async def test_a_server_whose_lease_has_expired_is_no_endpoint(clock: ManualClock) -> None:
    store = SharedStore()
    peer = Key(SERVER_LEASES, "", "192.0.2.8")
    lease = b'{"kind":"Endpoints","apiVersion":"v1","metadata":{},"subsets":[{"addresses":[{"ip":"192.0.2.8"}]}]}'
    revision = await store.put(peer, lease, expected=0)
    async with a_world(store, clock, a_server) as world:
        assert (await ready(world))[0] == ["192.0.2.7", "192.0.2.8"]
        await store.delete(peer, expected=revision)
        clock.advance(bootstrap.SERVICE_EVERY)
        await world.settled()
        assert (await ready(world))[::2] == (["192.0.2.7"], ["192.0.2.7"])
    assert await store.count(Prefix(SERVER_LEASES)) == 0
    moved = FACTS._replace(address="192.0.2.8", port=7000)
    async with a_world(store, clock, lambda store, clock: assemble(store, clock=clock, facts=moved)) as world:
        await world.settled()
        assert await ready(world) == (["192.0.2.8"], [7000], ["192.0.2.8"], [7000])


async def test_the_system_priority_classes(world: World) -> None:
    classes = world.resource("priorityclasses", "scheduling.k8s.io")
    assert await names(world, "priorityclasses", "scheduling.k8s.io") == [
        "system-cluster-critical",
        "system-node-critical",
    ]
    found = await world.get(classes, "system-cluster-critical")
    assert (found["value"], found["preemptionPolicy"]) == (2_000_000_000, "PreemptLowerPriority")
    assert (await world.get(classes, "system-node-critical"))["value"] == 2_000_001_000


async def test_the_range_of_services(world: World) -> None:
    found = await world.get(world.resource("servicecidrs", "networking.k8s.io"), "kubernetes")
    assert found["spec"] == {"cidrs": ["10.0.0.0/24"]}
    assert conditions(found) == {"Ready": ("True", "")}
    found = await world.get(world.resource("ipaddresses", "networking.k8s.io"), "10.0.0.1")
    assert found["spec"]["parentRef"] == {"resource": "services", "namespace": "default", "name": "kubernetes"}


async def test_flow_control(world: World) -> None:
    group = "flowcontrol.apiserver.k8s.io"
    levels = await names(world, "prioritylevelconfigurations", group)
    assert levels == [
        "catch-all", "exempt", "global-default", "leader-election", "node-high", "system", "workload-high", "workload-low",
    ]  # fmt: skip
    schemas = [
        await world.get(world.resource("flowschemas", group), name) for name in await names(world, "flowschemas", group)
    ]
    assert len(schemas) == 13
    assert {schema["spec"]["priorityLevelConfiguration"]["name"] for schema in schemas} == set(levels)


async def test_the_api_services_of_built_in_group_versions(world: World) -> None:
    services = world.resource("apiservices", "apiregistration.k8s.io")
    assert len(await names(world, "apiservices", "apiregistration.k8s.io")) == len(PRIORITIES)
    found = await world.get(services, "v2.autoscaling")
    assert found["metadata"]["labels"] == {"kube-aggregator.kubernetes.io/automanaged": "onstart"}
    assert found["spec"] == {
        "group": "autoscaling",
        "version": "v2",
        "groupPriorityMinimum": 17500,
        "versionPriority": 30,
    }
    assert conditions(found) == {"Available": ("True", "Local")}
    core = await world.get(services, "v1.")
    assert (core["spec"]["version"], core["spec"]["groupPriorityMinimum"]) == ("v1", 18000)


@pytest.mark.parametrize("modes", [("AlwaysAllow",), ("RBAC",)])
@pytest.mark.parametrize("address", ["192.0.2.7", ""])
async def test_first_objects_are_those_of_create_requests(
    clock: ManualClock, modes: tuple[str, ...], address: str
) -> None:
    facts = FACTS._replace(address=address, services="10.1.0.0/16")

    def at_once(store: FlakyStore, clock: ManualClock) -> ControlPlane:
        return assemble(
            store, clock=clock, facts=facts, authorization_modes=modes, controllers=("*",), root_ca="a certificate"
        )

    def by_requests(store: FlakyStore, clock: ManualClock) -> ControlPlane:
        plane = at_once(store, clock)
        for controller in plane.all_controllers:
            controller.first_objects = lambda: ()  # type: ignore[method-assign]
        return plane

    found = []
    for build in (at_once, by_requests):
        async with a_world(FlakyStore(), clock, build) as world:
            await world.settled()
            items = (await world.store.list(EVERYTHING)).items
            found.append({item.key: re.sub(rb'"uid":"[^"]*"', b"", item.value) for item in items})
    assert found[0].keys() == found[1].keys()
    for key, value in found[0].items():
        assert value == found[1][key]


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
    seen: list[User] = []

    def record(draft: Draft) -> None:
        if draft.request.action is Action.CREATE:
            seen.append(draft.request.user)

    def recording(store: FlakyStore, clock: ManualClock) -> ControlPlane:
        plane = a_server(store, clock)
        plane.admission.mutate = record  # type: ignore[method-assign]
        return plane

    async with a_world(store, clock, recording) as world:
        assert seen == []  # in a new store objects are not created by requests
        await world.delete(world.resource("leases", "coordination.k8s.io"), LEASE, "kube-system")
        clock.advance(bootstrap.LEASE_EVERY)
        await world.settled()
        assert seen == [User("system:apiserver", groups=("system:masters", "system:authenticated"))]


@pytest.mark.parametrize("number", [1, 20, 60])
async def test_first_objects_that_could_not_be_stored_are_created_by_reconciling(
    store: FlakyStore, clock: ManualClock, number: int
) -> None:
    async with a_world(FlakyStore(), clock, a_server) as world:
        expected = {item.key for item in (await world.store.list(EVERYTHING)).items}
    store.fail("create", lambda key: True, number, Unavailable("planned"))
    async with a_world(store, clock, a_server) as world:
        await world.settled()
        assert store.failures == number
        assert {item.key for item in (await store.list(EVERYTHING)).items} == expected
