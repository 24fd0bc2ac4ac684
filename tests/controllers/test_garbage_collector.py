"""The garbage collector: dependents of deleted owners, deletion in the foreground, with orphans, and cycles."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from noxu.apiserver.api import codec
from noxu.apiserver.api.errors import ApiError, forbidden
from noxu.apiserver.control_plane import ControlPlane, assemble
from noxu.apiserver.controllers.garbage_collector import MANAGER, USER, GarbageCollector
from noxu.apiserver.registry.draft import Action, Body, DeleteOptions, Draft, WriteRequest
from noxu.apiserver.registry.resource import Resource
from noxu.apiserver.values import Json, Object
from noxu.storage.types import Unavailable
from tests.clocks import ManualClock
from tests.controllers.conftest import World, a_world, copy_of, definition, namespace
from tests.faults.flaky import FlakyStore
from tests.timing import eventually_async

WIDGET = "example.com/v1/Widget"
PLANET = "example.com/v1/Planet"  # cluster-scoped
MAP = "v1/ConfigMap"
PLURALS = {"Widget": ("widgets", "example.com"), "Planet": ("planets", "example.com"), "ConfigMap": ("configmaps", "")}
INVENTED = "00000000-0000-4000-8000-000000000000"
HELD = ("example.com/wait",)


def cluster_definition() -> Object:
    value = definition("planets", "Planet")
    value["spec"]["scope"] = "Cluster"
    return value


@pytest.fixture
async def world(store: FlakyStore, clock: ManualClock) -> AsyncIterator[World]:
    async with a_world(store, clock) as found:
        await found.apply(definition(), cluster_definition(), namespace("other"))
        yield found


class Cluster:
    """Objects by short names: `a` is a Widget in default, others have a type: `c: ConfigMap`, `p: Planet`."""

    def __init__(self, world: World) -> None:
        self.world = world

    def resource(self, kind: str) -> Resource:
        return self.world.resource(*PLURALS[kind])

    async def create(
        self,
        name: str,
        *owners: Object,
        kind: str = "Widget",
        within: str = "default",
        finalizers: tuple[str, ...] = (),
    ) -> Object:
        resource = self.resource(kind)
        metadata: Object = {"name": name}
        if owners:
            metadata["ownerReferences"] = list(owners)
        if finalizers:
            metadata["finalizers"] = list(finalizers)
        value: Object = {"apiVersion": resource.api_version, "kind": kind, "metadata": metadata}
        scope = within if resource.namespaced else ""
        written = await self.world.plane.writer.write(WriteRequest(Action.CREATE, resource, scope, body=Body(value)))
        created: Object = codec.decode_stored(written.body(resource))
        return created

    async def delete(self, name: str, policy: str = "", *, kind: str = "Widget", within: str = "default") -> None:
        resource = self.resource(kind)
        request = WriteRequest(
            Action.DELETE,
            resource,
            within if resource.namespaced else "",
            name,
            delete_options=DeleteOptions(propagation=policy),
        )
        await self.world.plane.writer.write(request)

    async def patch(self, name: str, *, kind: str = "Widget", within: str = "default", **metadata: Json) -> None:
        resource = self.resource(kind)
        body = Body(codec.encode({"metadata": metadata}, sort_keys=False), "application/merge-patch+json")
        scope = within if resource.namespaced else ""
        await self.world.plane.writer.write(WriteRequest(Action.PATCH, resource, scope, name, body=body))

    async def find(self, name: str, *, kind: str = "Widget", within: str = "default") -> Object | None:
        resource = self.resource(kind)
        return await self.world.find(resource, name, within if resource.namespaced else "")

    async def left(self) -> dict[str, list[str]]:
        """The names of all objects, with those of their owners."""
        await self.world.settled()
        found: dict[str, list[str]] = {}
        for kind in PLURALS:
            resource = self.world.plane.catalog.current.kinds.get((self.api_version(kind), kind))
            if resource is None:
                continue
            collection = await self.world.plane.reader.collection(resource)
            for key in collection.keys:
                value = await self.world.get(resource, key.name, key.partition[:-1])
                references = value["metadata"].get("ownerReferences", [])
                found[key.name] = [reference["name"] for reference in references]
        return found

    @staticmethod
    def api_version(kind: str) -> str:
        return "v1" if kind == "ConfigMap" else "example.com/v1"


@pytest.fixture
def cluster(world: World) -> Cluster:
    return Cluster(world)


def owned_by(owner: Object, *, blocks: bool | None = None, **changes: Json) -> Object:
    """A reference to an owner."""
    found: Object = {name: owner[name] for name in ("apiVersion", "kind")}
    found |= {name: owner["metadata"][name] for name in ("name", "uid")} | changes
    return found if blocks is None else found | {"blockOwnerDeletion": blocks}


def unknown(name: str = "never", *, api_version: str = "example.com/v1", kind: str = "Widget", uid: str = INVENTED) -> Object:
    return {"apiVersion": api_version, "kind": kind, "name": name, "uid": uid}


# -- the exam: what is done first, and the objects that are left with the names of their owners

Scenario = Callable[[Cluster], Awaitable[None]]
SCENARIOS: list[tuple[str, Scenario, dict[str, list[str]]]] = []


def leaves(left: dict[str, list[str]]) -> Callable[[Scenario], Scenario]:
    def add(scenario: Scenario) -> Scenario:
        SCENARIOS.append((scenario.__name__, scenario, left))
        return scenario

    return add


@leaves({})
async def an_owner_that_never_existed(cluster: Cluster) -> None:
    await cluster.create("child", unknown())


@leaves({"a": []})
async def an_owner_with_the_right_name_and_another_uid(cluster: Cluster) -> None:
    await cluster.create("child", owned_by(await cluster.create("a"), uid=INVENTED))


@leaves({"a": []})
async def an_owner_with_the_right_uid_and_another_name(cluster: Cluster) -> None:
    await cluster.create("child", owned_by(await cluster.create("a"), name="b"))


@leaves({"a": []})
async def an_owner_with_the_right_uid_and_another_kind(cluster: Cluster) -> None:
    await cluster.create("child", owned_by(await cluster.create("a"), kind="ConfigMap", apiVersion="v1"))


@leaves({"a": [], "child": ["a"]})
async def an_owner_that_exists(cluster: Cluster) -> None:
    await cluster.create("child", owned_by(await cluster.create("a"), blocks=True))


@leaves({"b": [], "child": ["b"]})
async def one_of_two_owners_is_deleted(cluster: Cluster) -> None:
    a, b = await cluster.create("a"), await cluster.create("b")
    await cluster.create("child", owned_by(a), owned_by(b))
    await cluster.delete("a")


@leaves({})
async def both_of_two_owners_are_deleted(cluster: Cluster) -> None:
    a, b = await cluster.create("a"), await cluster.create("b")
    await cluster.create("child", owned_by(a), owned_by(b))
    await cluster.delete("a")
    await cluster.delete("b")


@leaves({"b": [], "child": ["b"]})
async def one_of_two_owners_is_deleted_in_the_foreground(cluster: Cluster) -> None:
    a, b = await cluster.create("a"), await cluster.create("b")
    await cluster.create("child", owned_by(a, blocks=True), owned_by(b))
    await cluster.delete("a", "Foreground")


@leaves({"child": []})
async def an_owner_is_deleted_with_orphans(cluster: Cluster) -> None:
    await cluster.create("child", owned_by(await cluster.create("a")))
    await cluster.delete("a", "Orphan")


@leaves({"child": ["b"], "b": []})
async def one_of_two_owners_is_deleted_with_orphans(cluster: Cluster) -> None:
    a, b = await cluster.create("a"), await cluster.create("b")
    await cluster.create("child", owned_by(a), owned_by(b))
    await cluster.delete("a", "Orphan")


@leaves({"map": []})
async def a_built_in_child_is_orphaned(cluster: Cluster) -> None:
    await cluster.create("map", owned_by(await cluster.create("a")), kind="ConfigMap")
    await cluster.delete("a", "Orphan")


@leaves({"b": [], "map": ["b"]})
async def one_of_the_two_owners_of_a_built_in_child_is_deleted(cluster: Cluster) -> None:
    a, b = await cluster.create("a"), await cluster.create("b")
    await cluster.create("map", owned_by(a), owned_by(b), kind="ConfigMap")
    await cluster.delete("a")


@leaves({"other-widget": []})
async def a_namespaced_owner_in_another_namespace(cluster: Cluster) -> None:
    owner = await cluster.create("other-widget", within="other")
    await cluster.create("child", owned_by(owner))


@leaves({"a": [], "planet": ["a"]})
async def a_cluster_scoped_child_of_a_namespaced_owner(cluster: Cluster) -> None:
    await cluster.create("planet", owned_by(await cluster.create("a")), kind="Planet")


@leaves({"planet": ["a"]})
async def a_cluster_scoped_child_of_a_namespaced_owner_that_is_deleted(cluster: Cluster) -> None:
    await cluster.create("planet", owned_by(await cluster.create("a")), kind="Planet")
    await cluster.delete("a")


@leaves({"planet": ["never"]})
async def a_cluster_scoped_child_of_a_namespaced_owner_that_never_existed(cluster: Cluster) -> None:
    await cluster.create("planet", unknown(), kind="Planet")


@leaves({"planet": [], "child": ["planet"], "moon": ["planet"]})
async def a_cluster_scoped_owner_exists(cluster: Cluster) -> None:
    planet = await cluster.create("planet", kind="Planet")
    await cluster.create("child", owned_by(planet), within="other")
    await cluster.create("moon", owned_by(planet), kind="Planet")


@leaves({})
async def a_cluster_scoped_owner_is_deleted(cluster: Cluster) -> None:
    planet = await cluster.create("planet", kind="Planet")
    await cluster.create("child", owned_by(planet), within="other")
    await cluster.create("moon", owned_by(planet), kind="Planet")
    await cluster.delete("planet", kind="Planet")


@leaves({"map": ["never"]})
async def an_owner_of_an_unknown_kind(cluster: Cluster) -> None:
    await cluster.create("map", unknown(kind="Gadget"), kind="ConfigMap")


@leaves({"map": ["never"]})
async def an_owner_of_an_unknown_version(cluster: Cluster) -> None:
    await cluster.create("map", unknown(api_version="example.com/v9"), kind="ConfigMap")


@leaves({"map": ["a", "never"]})
async def one_owner_is_deleted_and_the_kind_of_the_other_is_unknown(cluster: Cluster) -> None:
    await cluster.create("map", owned_by(await cluster.create("a")), unknown(kind="Gadget"), kind="ConfigMap")
    await cluster.delete("a")


def _levels(policy: str) -> Scenario:
    async def scenario(cluster: Cluster) -> None:
        a = await cluster.create("a")
        b = await cluster.create("b", owned_by(a, blocks=True))
        c = await cluster.create("map", owned_by(b, blocks=True), kind="ConfigMap")
        await cluster.create("d", owned_by(c))
        await cluster.delete("a", policy)

    scenario.__name__ = f"four_levels_{policy.lower()}"
    return scenario


leaves({})(_levels("Background"))
leaves({})(_levels("Foreground"))
leaves({"b": [], "map": ["b"], "d": ["map"]})(_levels("Orphan"))


async def _a_cycle(cluster: Cluster, kind: str = "Widget", *, blocks: bool = True) -> None:
    a = await cluster.create("a", kind=kind)
    b = await cluster.create("b", owned_by(a, blocks=blocks), kind=kind)
    await cluster.patch("a", ownerReferences=[owned_by(b, blocks=blocks)], kind=kind)


@leaves({"a": ["b"], "b": ["a"]})
async def a_cycle(cluster: Cluster) -> None:
    await _a_cycle(cluster)


@leaves({})
async def a_cycle_is_deleted_in_the_background(cluster: Cluster) -> None:
    await _a_cycle(cluster)
    await cluster.delete("a")


@leaves({})
async def a_cycle_is_deleted_in_the_foreground(cluster: Cluster) -> None:
    await _a_cycle(cluster)
    await cluster.delete("a", "Foreground")


@leaves({})
async def a_cycle_of_built_in_objects_is_deleted_in_the_foreground(cluster: Cluster) -> None:
    await _a_cycle(cluster, "ConfigMap")
    await cluster.delete("a", "Foreground", kind="ConfigMap")


@leaves({})
async def a_cycle_that_does_not_block_is_deleted_in_the_foreground(cluster: Cluster) -> None:
    await _a_cycle(cluster, blocks=False)
    await cluster.delete("a", "Foreground")


@leaves({"b": []})
async def a_cycle_is_deleted_with_orphans(cluster: Cluster) -> None:
    await _a_cycle(cluster)
    await cluster.delete("a", "Orphan")


@leaves({"grandchild": []})
async def a_child_has_the_finalizer_that_orphans(cluster: Cluster) -> None:
    child = await cluster.create("child", owned_by(await cluster.create("a")), finalizers=("orphan",))
    await cluster.create("grandchild", owned_by(child))
    await cluster.delete("a")


@leaves({})
async def a_child_has_the_finalizer_of_the_foreground(cluster: Cluster) -> None:
    child = await cluster.create("child", owned_by(await cluster.create("a")), finalizers=("foregroundDeletion",))
    await cluster.create("grandchild", owned_by(child, blocks=True))
    await cluster.delete("a")


@leaves({})
async def objects_without_dependents_are_deleted_in_every_way(cluster: Cluster) -> None:
    for name, policy in (("a", "Foreground"), ("b", "Orphan"), ("c", "Background"), ("d", "")):
        await cluster.create(name)
        await cluster.delete(name, policy)


@leaves({"child": ["b"], "b": []})
async def a_child_is_adopted_by_another_owner_before(cluster: Cluster) -> None:
    a, b = await cluster.create("a"), await cluster.create("b")
    await cluster.create("child", owned_by(a))
    await cluster.patch("child", ownerReferences=[owned_by(b)])
    await cluster.delete("a")


@leaves({})
async def a_child_gets_an_owner_that_does_not_exist(cluster: Cluster) -> None:
    await cluster.create("child", owned_by(await cluster.create("a"), name="a"))
    await cluster.patch("child", ownerReferences=[unknown()])
    await cluster.delete("a")


@pytest.mark.parametrize(("scenario", "left"), [row[1:] for row in SCENARIOS], ids=[row[0] for row in SCENARIOS])
async def test_what_is_left(cluster: Cluster, scenario: Scenario, left: dict[str, list[str]]) -> None:
    await scenario(cluster)
    assert await cluster.left() == left


@pytest.mark.parametrize(("scenario", "left"), [row[1:] for row in SCENARIOS], ids=[row[0] for row in SCENARIOS])
async def test_what_is_left_if_the_collector_runs_only_after_a_restart(
    store: FlakyStore, clock: ManualClock, scenario: Scenario, left: dict[str, list[str]]
) -> None:
    def without_collector(store: FlakyStore, clock: ManualClock) -> ControlPlane:
        return assemble(store, clock=clock, garbage_collection=False)

    async with a_world(store, clock, without_collector) as world:
        await world.apply(definition(), cluster_definition(), namespace("other"))
        await scenario(Cluster(world))
        copy = await copy_of(store)
    async with a_world(copy, clock) as world:
        assert await Cluster(world).left() == left
