"""APIServices follow the group versions of definitions; those of other servers are known to the served resources."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from noxu.control_plane import ControlPlane
from noxu.controllers.bootstrap import Facts
from noxu.registry.resource import Resource
from noxu.values import Object
from noxu_storage.types import EVERYTHING
from tests.clocks import ManualClock
from tests.control_planes import assemble
from tests.controllers.conftest import World, a_world, conditions, copy_of, definition
from tests.faults.flaky import FlakyStore
from tests.timing import eventually_async

NAME = "v1.example.com"
LABEL = "kube-aggregator.kubernetes.io/automanaged"
SPEC = {"group": "example.com", "version": "v1", "groupPriorityMinimum": 1000, "versionPriority": 100}


def a_server(store: FlakyStore, clock: ManualClock) -> ControlPlane:
    return assemble(store, clock=clock, facts=Facts(port=6443, hostname="node-1", identity="f00d"))


@pytest.fixture
async def world(store: FlakyStore, clock: ManualClock) -> AsyncIterator[World]:
    async with a_world(store, clock, a_server) as world:
        yield world


def services(world: World) -> Resource:
    return world.resource("apiservices", "apiregistration.k8s.io")


async def find(world: World, name: str = NAME) -> Object | None:
    await world.settled()
    return await world.find(services(world), name)


def api_service(name: str = NAME, *, labels: dict[str, str] | None = None, **spec: object) -> Object:
    version, _, group = name.partition(".")
    return {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {"group": group, "version": version, "groupPriorityMinimum": 100, "versionPriority": 15, **spec},
    }


def remote(name: str) -> Object:
    return api_service(name, service={"namespace": "kube-system", "name": "metrics-server"})


def crds(world: World) -> Resource:
    return world.resource("customresourcedefinitions", "apiextensions.k8s.io")


async def test_a_definition_brings_an_api_service(world: World) -> None:
    assert await find(world) is None
    await world.apply(definition())
    found = await find(world)
    assert found is not None
    assert found["metadata"]["labels"] == {LABEL: "true"}
    assert found["spec"] == SPEC
    assert conditions(found) == {"Available": ("True", "Local")}
    assert [entry["manager"] for entry in found["metadata"]["managedFields"]] == ["kube-apiserver"]


async def test_it_goes_with_the_last_definition_of_the_group_version(world: World) -> None:
    await world.apply(definition(), definition("gadgets", "Gadget"))
    await world.delete(crds(world), "widgets.example.com")
    await world.until_deleted(crds(world), "widgets.example.com")
    assert await find(world)
    await world.delete(crds(world), "gadgets.example.com")
    await world.until_deleted(crds(world), "gadgets.example.com")
    assert await find(world) is None


async def test_versions_that_are_not_served_have_none(world: World) -> None:
    crd = definition()
    first = crd["spec"]["versions"][0]
    crd["spec"]["versions"] = [first, {**first, "name": "v2", "storage": False, "served": False}]
    await world.apply(crd)
    assert await find(world)
    assert await find(world, "v2.example.com") is None


async def test_it_comes_back_and_its_spec_is_reverted(world: World) -> None:
    await world.apply(definition())
    await find(world)
    await world.delete(services(world), NAME)
    assert await find(world)
    await world.apply(api_service(labels={LABEL: "true"}))
    found = await find(world)
    assert found is not None
    assert found["spec"] == SPEC


async def test_one_without_the_label_belongs_to_a_client(world: World) -> None:
    mine = api_service()
    await world.apply(mine, definition())
    found = await find(world)
    assert found is not None
    assert found["spec"] == mine["spec"]
    await world.delete(crds(world), "widgets.example.com")
    await world.until_deleted(crds(world), "widgets.example.com")
    assert await find(world)


async def test_a_definition_of_a_built_in_group_version_has_that_of_the_server(world: World) -> None:
    crd = definition("extras", "Extra", "events.k8s.io")
    crd["metadata"]["annotations"] = {"api-approved.kubernetes.io": "https://example.com/1"}
    await world.apply(crd)
    found = await find(world, "v1.events.k8s.io")
    assert found is not None
    assert found["metadata"]["labels"] == {LABEL: "onstart"}
    assert found["spec"]["groupPriorityMinimum"] == 17750


async def test_an_api_service_with_a_service_is_not_available(world: World) -> None:
    name = "v1beta1.metrics.k8s.io"
    await world.apply(remote(name))
    found = await find(world, name)
    assert found is not None
    assert conditions(found) == {"Available": ("False", "NotSupported")}
    assert world.plane.served_resources.current.elsewhere == {("metrics.k8s.io", "v1beta1")}
    await world.delete(services(world), name)
    assert world.plane.served_resources.current.elsewhere == set()


async def test_a_restart_deletes_those_of_definitions_that_are_gone(store: FlakyStore, clock: ManualClock) -> None:
    async with a_world(store, clock, a_server) as world:
        await world.apply(definition(), remote("v1beta1.metrics.k8s.io"))
        await world.apply(api_service("v1.gone.example.com", labels={LABEL: "onstart"}))
        await find(world)
        store = await copy_of(world.store)
        for item in (await store.list(EVERYTHING)).items:
            if item.key.collection == "apiextensions.k8s.io/customresourcedefinitions":
                await store.delete(item.key, expected=item.revision)
    async with a_world(store, clock, a_server) as world:
        await eventually_async(lambda: _is_gone(world))
        assert world.plane.served_resources.current.elsewhere == {("metrics.k8s.io", "v1beta1")}
        assert await find(world, "v1.gone.example.com")


async def _is_gone(world: World) -> bool:
    return await find(world) is None
