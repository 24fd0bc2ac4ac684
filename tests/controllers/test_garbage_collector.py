"""The garbage collector: dependents of deleted owners, deletion in the foreground, with orphans, and cycles."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, Final

import pytest

from noxu.api import codec
from noxu.api.errors import forbidden
from noxu.control_plane import ControlPlane
from noxu.controllers.garbage_collector import MANAGER, USER, GarbageCollector
from noxu.controllers.owner_graph import OwnerGraph
from noxu.features import Features
from noxu.registry.draft import Action, Body, DeleteOptions, Draft, WriteRequest
from noxu.registry.reader import Reader
from noxu.registry.resource import Resource
from noxu.values import Json, Object
from noxu_storage.memory import MemoryStore
from noxu_storage.types import Corrupt, Key, KeyValue, Unavailable
from tests.clocks import ManualClock
from tests.control_planes import assemble
from tests.controllers.conftest import World, a_world, copy_of, definition, namespace
from tests.faults.flaky import FlakyStore
from tests.timing import eventually_async, hang_guard, longest_block, loop_turns

WIDGET = "example.com/v1/Widget"
PLURALS = {"Widget": ("widgets", "example.com"), "Planet": ("planets", "example.com"), "ConfigMap": ("configmaps", "")}
INVENTED = "00000000-0000-4000-8000-000000000000"
HELD = ("example.com/wait",)


def cluster_definition() -> Object:
    value = definition("planets", "Planet")
    value["spec"]["scope"] = "Cluster"
    return value


COLLECTOR: Final = ["garbage-collector-controller"]


@pytest.fixture
async def world(store: FlakyStore, clock: ManualClock) -> AsyncIterator[World]:
    async with a_world(store, clock, with_collector) as found:
        await found.apply(definition(), cluster_definition(), namespace("other"))
        yield found


def with_collector(store: FlakyStore, clock: ManualClock) -> ControlPlane:
    return assemble(store, clock=clock, controllers=COLLECTOR)


def without_collector(store: FlakyStore, clock: ManualClock) -> ControlPlane:
    return assemble(store, clock=clock)


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
            resource = self.world.plane.served_resources.current.kinds.get((self.api_version(kind), kind))
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


def unknown(
    name: str = "never", *, api_version: str = "example.com/v1", kind: str = "Widget", uid: str = INVENTED
) -> Object:
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


@pytest.mark.slow(every=5)
@pytest.mark.parametrize(("scenario", "left"), [row[1:] for row in SCENARIOS], ids=[row[0] for row in SCENARIOS])
async def test_what_is_left_if_the_collector_runs_only_after_a_restart(
    store: FlakyStore, clock: ManualClock, scenario: Scenario, left: dict[str, list[str]]
) -> None:
    async with a_world(store, clock, without_collector) as world:
        await world.apply(definition(), cluster_definition(), namespace("other"))
        await scenario(Cluster(world))
        copy = await copy_of(store)
    async with a_world(copy, clock, with_collector) as world:
        assert await Cluster(world).left() == left


def in_cbor(store: FlakyStore, clock: ManualClock) -> ControlPlane:
    return assemble(store, clock=clock, features=Features(cbor=True), controllers=COLLECTOR)


@pytest.mark.slow(every=4)
@pytest.mark.parametrize(("scenario", "left"), [row[1:] for row in SCENARIOS], ids=[row[0] for row in SCENARIOS])
async def test_what_is_left_if_custom_resources_are_stored_as_cbor(
    store: FlakyStore, clock: ManualClock, scenario: Scenario, left: dict[str, list[str]]
) -> None:
    async with a_world(store, clock, in_cbor) as world:
        await world.apply(definition(), cluster_definition(), namespace("other"))
        await scenario(Cluster(world))
        assert await Cluster(world).left() == left
        copy = await copy_of(store)
    async with a_world(copy, clock, in_cbor) as world:
        assert await Cluster(world).left() == left


# -- deletion in the foreground


async def deleted_after(world: World, revision: int) -> list[str]:
    """The names of the objects that were deleted after a revision, in order."""
    found: list[str] = []
    async for batch in world.store.watch(after=revision):
        found += [event.key.name for event in batch.events if event.value is None]
        if batch.revision >= world.store.revision:
            break
    return found


async def test_in_the_foreground_dependents_are_deleted_before_their_owners(cluster: Cluster) -> None:
    a = await cluster.create("a")
    b = await cluster.create("b", owned_by(a, blocks=True))
    await cluster.create("c", owned_by(b, blocks=True))
    revision = cluster.world.store.revision
    await cluster.delete("a", "Foreground")
    assert await cluster.left() == {}
    assert await deleted_after(cluster.world, revision) == ["c", "b", "a"]


async def test_an_owner_in_the_foreground_waits_for_a_dependent_with_a_finalizer(cluster: Cluster) -> None:
    await cluster.create("child", owned_by(await cluster.create("a"), blocks=True), finalizers=HELD)
    await cluster.delete("a", "Foreground")
    assert await cluster.left() == {"a": [], "child": ["a"]}
    owner = await cluster.find("a")
    assert owner is not None
    assert owner["metadata"]["finalizers"] == ["foregroundDeletion"]
    assert (await cluster.find("child") or {})["metadata"]["deletionTimestamp"]
    await cluster.patch("child", finalizers=None)
    assert await cluster.left() == {}


UNBLOCKED: dict[str, tuple[bool | None, Callable[[Object], list[Object] | None]]] = {
    "it never blocked": (None, lambda a: [owned_by(a)]),
    "it is said not to block": (False, lambda a: [owned_by(a, blocks=False)]),
    "it no longer blocks": (True, lambda a: [owned_by(a, blocks=False)]),
    "it no longer says whether it blocks": (True, lambda a: [owned_by(a)]),
    "its reference is removed": (True, lambda _: None),
}


@pytest.mark.parametrize(("blocks", "references"), UNBLOCKED.values(), ids=UNBLOCKED)
async def test_an_owner_in_the_foreground_does_not_wait_for_a_dependent_because(
    cluster: Cluster, blocks: bool | None, references: Callable[[Object], list[Object] | None]
) -> None:
    a = await cluster.create("a")
    await cluster.create("child", owned_by(a, blocks=blocks), finalizers=HELD)
    await cluster.delete("a", "Foreground")
    await cluster.world.settled()
    assert (await cluster.find("a") is not None) is (blocks is True)
    await cluster.patch("child", ownerReferences=references(a))
    await cluster.world.settled()
    assert await cluster.find("a") is None
    assert await cluster.find("child") is not None


async def test_an_owner_that_waits_for_another_finalizer_is_solid(cluster: Cluster) -> None:
    await cluster.create("child", owned_by(await cluster.create("a", finalizers=HELD), blocks=True))
    await cluster.delete("a")
    assert await cluster.left() == {"a": [], "child": ["a"]}


async def test_a_dependent_that_is_created_while_its_owner_waits_is_deleted(cluster: Cluster) -> None:
    a = await cluster.create("a")
    await cluster.create("child", owned_by(a, blocks=True), finalizers=HELD)
    await cluster.delete("a", "Foreground")
    await cluster.create("late", owned_by(a))
    assert await cluster.left() == {"a": [], "child": ["a"]}


async def test_an_owner_that_begins_to_wait_while_it_is_looked_up_counts_as_waiting(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    get, reading, gate = cluster.world.store.get, asyncio.Event(), asyncio.Event()

    async def slow(key: Key) -> KeyValue | None:
        found = await get(key)
        if key.name == "a":
            reading.set()
            await gate.wait()
        return found

    monkeypatch.setattr(cluster.world.store, "get", slow)
    await cluster.create("child", owned_by(await cluster.create("a"), blocks=True))
    async with hang_guard():
        await reading.wait()
    await cluster.delete("a", "Foreground")
    gate.set()
    assert await cluster.left() == {}


async def test_an_object_that_is_being_deleted_is_left_alone(cluster: Cluster) -> None:
    a, b = await cluster.create("a"), await cluster.create("b")
    await cluster.create("child", owned_by(a), owned_by(b), finalizers=HELD)
    await cluster.delete("child")
    await cluster.delete("a")
    assert await cluster.left() == {"b": [], "child": ["a", "b"]}


async def test_an_owner_that_waits_can_orphan_instead(cluster: Cluster) -> None:
    await cluster.create("child", owned_by(await cluster.create("a"), blocks=True), finalizers=HELD)
    await cluster.delete("a", "Foreground")
    await cluster.world.settled()
    await cluster.delete("a", "Orphan")
    assert await cluster.left() == {"child": []}


async def own_itself(cluster: Cluster) -> None:
    await cluster.patch("a", ownerReferences=[owned_by(await cluster.create("a"), blocks=True)])


@pytest.mark.parametrize(("policy", "left"), [("Background", {}), ("Orphan", {}), ("Foreground", {"a": ["a"]})])
async def test_an_object_that_owns_itself(cluster: Cluster, policy: str, left: dict[str, list[str]]) -> None:
    await own_itself(cluster)
    assert await cluster.left() == {"a": ["a"]}
    await cluster.delete("a", policy)  # in the foreground it waits for itself, as upstream
    assert await cluster.left() == left


# -- Events about owners in other namespaces


async def events(world: World) -> list[Object]:
    resource = world.resource("events")
    collection = await world.plane.reader.collection(resource)
    return [await world.get(resource, key.name, key.partition[:-1]) for key in collection.keys]


async def test_an_event_reports_an_owner_in_another_namespace(cluster: Cluster) -> None:
    owner = await cluster.create("w", within="other")
    child = await cluster.create("child", owned_by(owner))
    assert await cluster.left() == {"w": []}
    [event] = await events(cluster.world)
    uid = owner["metadata"]["uid"]
    message = f'ownerRef [{WIDGET}, namespace: default, name: w, uid: {uid}] does not exist in namespace "default"'
    assert event["metadata"]["namespace"] == "default"
    assert (event["type"], event["reason"], event["message"]) == ("Warning", "OwnerRefInvalidNamespace", message)
    assert event["source"] == {"component": "garbage-collector-controller"}
    assert event["involvedObject"] == {
        "kind": "Widget",
        "namespace": "default",
        "name": "child",
        "uid": child["metadata"]["uid"],
        "apiVersion": "example.com/v1",
    }


async def test_an_event_in_default_reports_the_namespaced_owner_of_a_cluster_scoped_object(cluster: Cluster) -> None:
    owner = await cluster.create("w", within="other")
    await cluster.create("planet", owned_by(owner), kind="Planet")
    await cluster.world.settled()
    [event] = await events(cluster.world)
    uid = owner["metadata"]["uid"]
    assert event["metadata"]["namespace"] == "default"
    assert event["message"] == f'ownerRef [{WIDGET}, namespace: , name: w, uid: {uid}] does not exist in namespace ""'


async def test_there_is_no_event_about_an_owner_that_does_not_exist_anywhere(cluster: Cluster) -> None:
    await cluster.create("w", within="other")
    await cluster.create("child", unknown("w"))
    await cluster.create("planet", unknown("w"), kind="Planet")
    assert await cluster.left() == {"w": [], "planet": ["w"]}
    assert await events(cluster.world) == []


# -- how it writes


class Spy:
    """An admission chain that records the requests of the garbage collector, and refuses some."""

    def __init__(self, world: World) -> None:
        self.seen: list[tuple[str, str, Draft]] = []
        self.refused = 0
        self.meanwhile: list[Callable[[], Awaitable[None]]] = []
        self._chain = world.plane.writer.environment.admission
        world.plane.writer.use(replace(world.plane.writer.environment, admission=self))

    def is_idle(self, reader: Reader) -> bool:
        return False

    def mutate(self, draft: Draft) -> Awaitable[None] | None:
        return self._chain.mutate(draft)

    async def validate(self, draft: Draft) -> None:
        if draft.request.user == USER:
            self.seen.append((draft.operation, draft.request.name, draft))
            if self.meanwhile:
                await self.meanwhile.pop()()
            if self.refused:
                self.refused -= 1
                raise forbidden(draft.resource.group_resource, draft.request.name, "planned")

    def check_again(self, draft: Draft) -> None: ...


async def test_deletions_pass_admission_and_name_what_was_judged(cluster: Cluster) -> None:
    spy = Spy(cluster.world)
    child = await cluster.create("child", unknown())
    assert await cluster.left() == {}
    [(operation, name, draft)] = spy.seen
    metadata = child["metadata"]
    preconditions = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
    assert (operation, name) == ("DELETE", "child")
    assert draft.request.options_sent == {"preconditions": preconditions, "propagationPolicy": "Background"}
    assert draft.request.user.name == "system:serviceaccount:kube-system:generic-garbage-collector"


PATCHES: dict[str, tuple[str, str]] = {
    "custom": ("Widget", '{"metadata":{"resourceVersion":"%(version)s","ownerReferences":null}}'),
    "built-in": (
        "ConfigMap",
        '{"metadata":{"ownerReferences":[{"$patch":"delete","uid":"%(owner)s"}],"uid":"%(uid)s"}}',
    ),
}


@pytest.mark.parametrize(("kind", "patch"), PATCHES.values(), ids=PATCHES)
async def test_references_are_removed_by_a_patch_of_a_kind_that_is(cluster: Cluster, kind: str, patch: str) -> None:
    spy = Spy(cluster.world)
    owner = await cluster.create("a")
    child = await cluster.create("child", owned_by(owner), kind=kind)
    await cluster.delete("a", "Orphan")
    assert await cluster.left() == {"child": []}
    [first, second] = spy.seen
    assert [(operation, name) for operation, name, _ in spy.seen] == [("UPDATE", "child"), ("UPDATE", "a")]
    metadata = child["metadata"]
    values = {"version": metadata["resourceVersion"], "uid": metadata["uid"], "owner": owner["metadata"]["uid"]}
    assert first[2].request.body.content == (patch % values).encode()
    assert second[2].request.body.content.endswith(b'"finalizers":null}}')
    managers = [(await cluster.find("child", kind=kind) or {})["metadata"].get("managedFields", [])]
    assert all(entry["manager"] != "" for entry in managers[0])
    assert second[2].request.options.field_manager == MANAGER


async def test_what_is_refused_is_tried_again(cluster: Cluster) -> None:
    spy = Spy(cluster.world)
    spy.refused = 3
    await cluster.create("child", unknown())
    assert await cluster.left() == {}
    assert [operation for operation, _, _ in spy.seen] == ["DELETE"] * 4


@pytest.mark.parametrize("policy", ["Background", "Foreground", "Orphan"])
async def test_what_the_store_does_not_accept_is_tried_again(cluster: Cluster, policy: str) -> None:
    a = await cluster.create("a")
    for name in "bcd":
        await cluster.create(name, owned_by(a, blocks=True))
    await cluster.delete("a", policy)  # the collector has not had a turn yet
    cluster.world.store.fail("delete", lambda key: key.collection.startswith("example"), 3, Unavailable("planned"))
    cluster.world.store.fail("put", lambda key: key.collection.startswith("example"), 3, Unavailable("planned"))
    left: dict[str, list[str]] = {"b": [], "c": [], "d": []} if policy == "Orphan" else {}
    assert await cluster.left() == left
    assert cluster.world.store.failures >= 3


async def test_an_object_that_changes_meanwhile_is_deleted_if_its_owners_remain(cluster: Cluster) -> None:
    spy = Spy(cluster.world)
    spy.meanwhile.append(lambda: cluster.patch("child", labels={"a": "b"}))
    await cluster.create("child", unknown())
    assert await cluster.left() == {}
    uids = [draft.request.options_sent["preconditions"].keys() for _, _, draft in spy.seen]
    assert uids == [{"uid", "resourceVersion"}, {"uid"}]


async def test_an_object_that_is_adopted_meanwhile_stays(cluster: Cluster) -> None:
    owner = await cluster.create("a")
    spy = Spy(cluster.world)
    spy.meanwhile.append(lambda: cluster.patch("child", ownerReferences=[owned_by(owner)]))
    await cluster.create("child", unknown())
    assert await cluster.left() == {"a": [], "child": ["a"]}


async def test_an_object_that_is_created_again_meanwhile_stays(cluster: Cluster) -> None:
    async def recreate() -> None:
        await cluster.delete("child")
        await cluster.create("child")

    spy = Spy(cluster.world)
    spy.meanwhile.append(recreate)
    await cluster.create("child", unknown())
    assert await cluster.left() == {"child": []}


# -- kinds that come and go


async def test_objects_are_judged_when_the_kind_of_their_owner_is_served(cluster: Cluster) -> None:
    await cluster.create("map", unknown(kind="Gadget"), kind="ConfigMap")
    await cluster.world.apply(definition("others", "Other"))
    assert "map" in await cluster.left()
    await cluster.world.apply(definition("gadgets", "Gadget"))
    assert await cluster.left() == {}


async def test_an_object_that_is_deleted_while_its_owner_is_unknown_is_forgotten(cluster: Cluster) -> None:
    await cluster.create("map", unknown(kind="Gadget"), kind="ConfigMap")
    await cluster.world.settled()
    await cluster.delete("map", kind="ConfigMap")
    collector = collector_of(cluster.world)
    assert not any(collector._parked.values())


async def test_dependents_of_the_objects_of_a_deleted_definition_are_deleted(cluster: Cluster) -> None:
    owner = await cluster.create("a")
    await cluster.create("map", owned_by(owner), kind="ConfigMap")
    definitions = cluster.world.resource("customresourcedefinitions", "apiextensions.k8s.io")
    await cluster.world.delete(definitions, "widgets.example.com")
    await cluster.world.until_deleted(definitions, "widgets.example.com")
    assert await cluster.left() == {}


async def test_a_definition_can_have_an_owner(cluster: Cluster) -> None:
    planet = await cluster.create("planet", kind="Planet")
    value = definition("gadgets", "Gadget")
    value["metadata"]["ownerReferences"] = [owned_by(planet)]
    await cluster.world.apply(value)
    definitions = cluster.world.resource("customresourcedefinitions", "apiextensions.k8s.io")
    assert await cluster.world.find(definitions, "gadgets.example.com")
    await cluster.delete("planet", kind="Planet")
    await cluster.world.until_deleted(definitions, "gadgets.example.com")


async def test_events_are_neither_owners_nor_dependents(cluster: Cluster) -> None:
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "e", "namespace": "default", "ownerReferences": [unknown()]},
        "involvedObject": {"namespace": "default"},
    }
    await cluster.world.apply(event)
    await cluster.world.settled()
    assert [found["metadata"]["name"] for found in await events(cluster.world)] == ["e"]


# -- the graph


def collector_of(world: World) -> GarbageCollector:
    [found] = (one for one in world.plane.background_controllers if isinstance(one, GarbageCollector))
    return found


async def test_objects_without_owners_are_not_in_the_graph(cluster: Cluster) -> None:
    for name in ("a", "b"):
        await cluster.create(name, finalizers=HELD)
    await cluster.patch("a", annotations={"ownerReferences": '"ownerReferences":', "b": '"orphan"'})
    await cluster.delete("a")
    await cluster.world.settled()
    graph = collector_of(cluster.world).graph
    assert (graph.nodes, graph.owners) == ({}, {})


async def test_nothing_remains_in_the_graph(cluster: Cluster) -> None:
    a, b = await cluster.create("a"), await cluster.create("b")
    await cluster.create("c", owned_by(a, blocks=True), owned_by(b, blocks=True))
    await cluster.create("d", owned_by(b))
    await cluster.patch("d", ownerReferences=None)
    await cluster.delete("a", "Foreground")
    await cluster.delete("b", "Orphan")
    assert await cluster.left() == {"c": [], "d": []}
    graph = collector_of(cluster.world).graph
    assert (graph.nodes, graph.owners, graph._waiting) == ({}, {}, {})


async def test_collections_are_not_loaded_to_follow_them(store: FlakyStore, clock: ManualClock) -> None:
    async with a_world(store, clock, with_collector) as world:
        await world.apply(definition())
        cluster = Cluster(world)
        await cluster.create("child", owned_by(await cluster.create("a")))
        await cluster.create("map", kind="ConfigMap")
        copy = await copy_of(store)
    async with a_world(copy, clock, with_collector) as world:
        await world.settled()
        assert len(collector_of(world).graph.nodes) == 1
        assert not {"example.com/widgets", "/configmaps"} & world.plane.cache.collections.keys()


async def test_a_missed_deletion_of_an_owner_is_noticed_after_a_reset(cluster: Cluster) -> None:
    world = cluster.world
    await cluster.create("child", owned_by(await cluster.create("a")))
    await world.settled()
    key = next(iter(collector_of(world).graph.nodes))._replace(name="a")
    found = await world.store.get(key)
    assert found is not None
    world.store.watch_fails = RuntimeError("planned")
    await world.store.delete(key, expected=found.revision)
    await eventually_async(lambda: world.store.failures == 1)
    await eventually_async(lambda: not collector_of(world).graph.nodes)
    assert await cluster.left() == {}


async def test_a_change_that_cannot_be_followed_leads_to_a_scan(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    collector = collector_of(cluster.world)
    put, failures = OwnerGraph.put, [RuntimeError("planned")]

    def fail_once(self: OwnerGraph, key: Key, value: bytes, revision: int) -> Any:
        if failures:
            raise failures.pop()
        return put(self, key, value, revision)

    monkeypatch.setattr(OwnerGraph, "put", fail_once)
    await cluster.create("child", unknown())
    await eventually_async(lambda: not failures and collector.is_synchronised)
    assert await cluster.left() == {}


async def test_changes_during_the_scan_count(store: FlakyStore, clock: ManualClock) -> None:
    async with a_world(store, clock, without_collector) as world:
        await world.apply(definition())
        cluster = Cluster(world)
        a, b = await cluster.create("a"), await cluster.create("b")
        for name in ("adopted", "freed", "removed"):
            await cluster.create(name, owned_by(a))
        copy = await copy_of(store)

    async def slow_scan(texts: Sequence[bytes]) -> AsyncIterator[Sequence[KeyValue]]:
        found = [item async for items in MemoryStore.scan(copy, texts) for item in items]
        scanning.set()
        await changed.wait()
        yield found

    scanning, changed = asyncio.Event(), asyncio.Event()
    copy.scan = slow_scan  # type: ignore[method-assign]
    async with a_world(copy, clock, with_collector) as world:
        cluster = Cluster(world)
        async with hang_guard():
            await scanning.wait()
        await cluster.patch("adopted", ownerReferences=[owned_by(b)])
        await cluster.patch("freed", ownerReferences=None)
        await cluster.delete("removed")
        await cluster.delete("a")
        await cluster.create("late", owned_by(a))
        await loop_turns()
        assert await cluster.find("late")  # nothing is deleted before the scan is complete
        changed.set()
        assert await cluster.left() == {"adopted": ["b"], "b": [], "freed": []}
        assert [key.name for key in collector_of(world).graph.nodes] == ["adopted"]


class GatedScans:
    """Scans of a store, each of which waits for `gate` after it has read."""

    def __init__(self, store: FlakyStore) -> None:
        self.begun, self.gate = 0, asyncio.Event()
        self._store = store
        store.scan = self  # type: ignore[assignment]

    async def __call__(self, texts: Sequence[bytes]) -> AsyncIterator[Sequence[KeyValue]]:
        found = [item async for items in MemoryStore.scan(self._store, texts) for item in items]
        self.begun += 1
        await self.gate.wait()
        yield found


async def test_a_reset_during_the_scan_leads_to_another_one(store: FlakyStore, clock: ManualClock) -> None:
    async with a_world(store, clock, without_collector) as world:
        await world.apply(definition())
        cluster = Cluster(world)
        a = await cluster.create("a")
        await cluster.create("b", owned_by(a))
        copy = await copy_of(store)
    scans = GatedScans(copy)
    async with a_world(copy, clock, with_collector) as world:
        cluster = Cluster(world)
        await eventually_async(lambda: scans.begun)
        copy.watch_fails = RuntimeError("planned")
        await cluster.create("missed", unknown())
        scans.gate.set()
        assert await cluster.left() == {"a": [], "b": ["a"]}
        assert scans.begun == 2


@pytest.mark.parametrize("gated", [False, True])
async def test_dependents_that_are_missed_while_others_are_orphaned_are_orphaned(cluster: Cluster, gated: bool) -> None:
    world = cluster.world
    a = await cluster.create("a")
    await cluster.create("b", owned_by(a))
    await world.settled()
    scans = GatedScans(world.store)

    async def reset() -> None:
        world.store.watch_fails = RuntimeError("planned")
        await cluster.create("missed", owned_by(a))
        await eventually_async(lambda: scans.begun)
        if not gated:
            scans.gate.set()
            await eventually_async(lambda: collector_of(world).is_synchronised)

    spy = Spy(world)
    spy.meanwhile.append(reset)
    await cluster.delete("a", "Orphan")

    async def b_is_orphaned() -> bool:
        return "ownerReferences" not in (await cluster.find("b") or {})["metadata"]

    await eventually_async(b_is_orphaned)
    await loop_turns(1000)
    scans.gate.set()
    assert await cluster.left() == {"b": [], "missed": []}


async def test_a_scan_that_fails_is_tried_again(store: FlakyStore, clock: ManualClock) -> None:
    failures = [Unavailable("planned")] * 3

    async def failing_scan(texts: Sequence[bytes]) -> AsyncIterator[Sequence[KeyValue]]:
        if failures:
            raise failures.pop()
        async for items in MemoryStore.scan(store, texts):
            yield items

    store.scan = failing_scan  # type: ignore[method-assign]
    async with a_world(store, clock, with_collector) as world:
        await world.apply(definition())
        collector = collector_of(world)
        await eventually_async(lambda: collector.is_synchronised)
        assert collector.health() == ""
        await Cluster(world).create("child", unknown())
        assert await Cluster(world).left() == {}


async def test_a_scan_under_way_is_not_reported_as_a_failure(store: FlakyStore, clock: ManualClock) -> None:
    async def endless_scan(texts: Sequence[bytes]) -> AsyncIterator[Sequence[KeyValue]]:
        await asyncio.Event().wait()
        yield ()

    store.scan = endless_scan  # type: ignore[method-assign]
    async with a_world(store, clock, with_collector) as world:
        await loop_turns()
        assert collector_of(world).health() == ""


async def test_a_failed_scan_is_reported(store: FlakyStore, clock: ManualClock) -> None:
    async def failing_scan(texts: Sequence[bytes]) -> AsyncIterator[Sequence[KeyValue]]:
        raise Unavailable("planned")
        yield ()

    store.scan = failing_scan  # type: ignore[method-assign]
    async with a_world(store, clock, with_collector) as world:
        await eventually_async(lambda: "cannot list the store: planned" in collector_of(world).health())


async def test_a_corrupt_owner_is_not_taken_for_absent(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    owner = await cluster.create("a")
    get = cluster.world.store.get

    async def corrupt(key: Key) -> KeyValue | None:
        if key.name == "a":
            raise Corrupt("planned", {key: 1})
        return await get(key)

    monkeypatch.setattr(cluster.world.store, "get", corrupt)
    await cluster.create("child", owned_by(owner))
    await eventually_async(lambda: any(collector_of(cluster.world)._failures))
    assert await cluster.find("child")
    monkeypatch.undo()
    assert await cluster.left() == {"a": [], "child": ["a"]}


# -- without it


async def test_without_the_collector_nothing_follows_from_a_deletion(store: FlakyStore, clock: ManualClock) -> None:
    async with a_world(store, clock, without_collector) as world:
        await world.apply(definition())
        cluster = Cluster(world)
        await cluster.create("child", owned_by(await cluster.create("a")))
        await cluster.delete("a")
        for name, policy, finalizer in (("f", "Foreground", "foregroundDeletion"), ("o", "Orphan", "orphan")):
            await cluster.create(name)
            await cluster.delete(name, policy)
            assert (await cluster.find(name) or {})["metadata"]["finalizers"] == [finalizer]
        assert await cluster.left() == {"child": ["a"], "f": [], "o": []}


JOB: Object = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "job", "namespace": "default"},
    "spec": {
        "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}},
        "selector": {"matchLabels": {"a": "b"}},
        "manualSelector": True,
    },
}
JOB["spec"]["template"]["metadata"] = {"labels": {"a": "b"}}


@pytest.mark.parametrize("collects", [True, False])
async def test_a_job_is_deleted_with_orphans_by_default(store: FlakyStore, clock: ManualClock, collects: bool) -> None:
    def build(store: FlakyStore, clock: ManualClock) -> ControlPlane:
        return assemble(store, clock=clock, controllers=COLLECTOR if collects else [])

    async with a_world(store, clock, build) as world:
        jobs = world.resource("jobs", "batch")
        await world.apply(JOB)
        job = await world.get(jobs, "job", "default")
        cluster = Cluster(world)
        await cluster.create("map", owned_by(job), kind="ConfigMap")
        await world.delete(jobs, "job", "default")
        left = await cluster.left()
        job = await world.find(jobs, "job", "default") or {}
        if collects:
            assert (job, left["map"]) == ({}, [])
        else:
            assert (job["metadata"]["finalizers"], left["map"]) == (["orphan"], ["job"])


# -- many dependents

CHILDREN = 2000
CPU_PER_CHILD = 0.0025  # seconds; it takes about a tenth of this


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["Background", "Foreground", "Orphan"])
async def test_many_dependents(cluster: Cluster, policy: str) -> None:
    owner = await cluster.create("owner")
    for number in range(CHILDREN):
        await cluster.create(f"c{number}", owned_by(owner, blocks=True))
    await cluster.world.settled()

    async def run() -> None:
        await cluster.delete("owner", policy)
        await cluster.world.settled()

    begin = time.process_time()
    _, block = await longest_block(run)
    assert time.process_time() - begin < CHILDREN * CPU_PER_CHILD
    assert block < 0.15  # the aim is 0.05
    assert len(await cluster.left()) == (CHILDREN if policy == "Orphan" else 0)
