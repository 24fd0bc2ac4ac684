"""Namespaces: those of every cluster, and the deletion of a namespace with everything in it."""

from __future__ import annotations

import pytest

from noxu.apiserver.controllers.emptiness import EmptinessWatch
from noxu.apiserver.controllers.namespace_conditions import Remaining, set_conditions
from noxu.apiserver.controllers.namespaces import INITIAL, MANAGER, RECHECK, NamespaceController
from noxu.apiserver.registry.resource import Resource
from noxu.apiserver.values import Object
from noxu.storage.types import Key, Unavailable
from tests.clocks import ManualClock
from tests.controllers.conftest import World, a_world, conditions, config_map, copy_of, definition, namespace
from tests.faults.flaky import FlakyStore
from tests.timing import eventually_async

HELD = ("example.com/wait",)


def namespaces(world: World) -> Resource:
    return world.resource("namespaces")


def config_maps(world: World) -> Resource:
    return world.resource("configmaps")


async def delete(world: World, name: str = "n") -> None:
    await world.delete(namespaces(world), name)


def messages(value: Object) -> dict[str, str]:
    """The messages of the conditions whose status is True, by type."""
    found = value["status"].get("conditions", [])
    return {condition["type"]: condition["message"] for condition in found if condition["status"] == "True"}


async def test_every_cluster_has_some(world: World) -> None:
    collection = await world.plane.reader.collection(namespaces(world))
    assert sorted(key.name for key in collection.keys) == sorted(INITIAL)


async def test_they_are_created_although_the_store_is_unavailable_at_first(
    store: FlakyStore, clock: ManualClock
) -> None:
    store.fail("create", lambda key: key.collection == "/namespaces", 6, Unavailable("planned"))
    async with a_world(store, clock) as world:
        await world.settled()
        assert store.failures == 6
        for name in INITIAL:
            assert (await world.get(namespaces(world), name))["status"] == {"phase": "Active"}


async def test_a_namespace_is_deleted_after_everything_in_it(world: World) -> None:
    await world.apply(definition(), namespace("n"), namespace("other"))
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w", "namespace": "n"}}
    await world.apply(widget, config_map("a", namespace="n"), config_map("b", namespace="n"))
    await world.apply(config_map("stays", namespace="other"))
    await delete(world)
    await world.until_deleted(namespaces(world), "n")
    assert await world.find(world.resource("widgets", "example.com"), "w", "n") is None
    assert await world.find(config_maps(world), "a", "n") is None
    assert await world.find(config_maps(world), "stays", "other")


async def test_an_empty_namespace_is_deleted(world: World) -> None:
    await world.apply(namespace("n"))
    await delete(world)
    await world.until_deleted(namespaces(world), "n")


async def test_a_namespace_remains_while_its_objects_have_finalizers(world: World) -> None:
    await world.apply(namespace("n"), config_map("a", namespace="n", finalizers=HELD), config_map("b", namespace="n"))
    await delete(world)
    await world.settled()
    assert (await world.get(namespaces(world), "n"))["status"]["phase"] == "Terminating"
    assert await world.find(config_maps(world), "b", "n") is None
    await world.apply(config_map("a", namespace="n"))
    await world.until_deleted(namespaces(world), "n")


async def test_the_status_reports_the_objects_that_remain(world: World) -> None:
    await world.apply(namespace("n"))
    await world.apply(*(config_map(name, namespace="n", finalizers=(*HELD, f"example.com/{name}")) for name in "ab"))
    await delete(world)
    await world.settled()
    found = await world.get(namespaces(world), "n")
    assert conditions(found) == {
        "NamespaceDeletionDiscoveryFailure": ("False", "ResourcesDiscovered"),
        "NamespaceDeletionGroupVersionParsingFailure": ("False", "ParsedGroupVersions"),
        "NamespaceDeletionContentFailure": ("False", "ContentDeleted"),
        "NamespaceContentRemaining": ("True", "SomeResourcesRemain"),
        "NamespaceFinalizersRemaining": ("True", "SomeFinalizersRemain"),
    }
    assert messages(found) == {
        "NamespaceContentRemaining": "Some resources are remaining: configmaps. has 2 resource instances",
        "NamespaceFinalizersRemaining": (
            "Some content in the namespace has finalizers remaining: example.com/a in 1 resource instances, "
            "example.com/b in 1 resource instances, example.com/wait in 2 resource instances"
        ),
    }
    [owner] = [entry for entry in found["metadata"]["managedFields"] if entry["manager"] == MANAGER]
    assert owner["subresource"] == "status"


async def test_the_status_is_updated_while_objects_remain(world: World) -> None:
    await world.apply(namespace("n"), *(config_map(name, namespace="n", finalizers=HELD) for name in "ab"))
    await delete(world)
    await world.settled()
    await world.apply(config_map("a", namespace="n"))
    await world.settled()
    assert "has 2 resource" in messages(await world.get(namespaces(world), "n"))["NamespaceContentRemaining"]
    world.clock.advance(RECHECK)
    await world.settled()
    assert "has 1 resource" in messages(await world.get(namespaces(world), "n"))["NamespaceContentRemaining"]


async def test_a_status_that_does_not_change_is_not_written(world: World) -> None:
    await world.apply(namespace("n"), config_map("a", namespace="n", finalizers=HELD))
    await delete(world)
    await world.settled()
    revision = world.store.revision
    for _ in range(3):
        world.clock.advance(RECHECK)
        await world.settled()
    assert world.store.revision == revision


async def test_failed_deletions_are_retried_and_do_not_prevent_others(world: World) -> None:
    await world.apply(namespace("n"), config_map("a", namespace="n"))
    await world.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "n"}})
    world.store.fail("delete", lambda key: key.name == "a", 1000, Unavailable("the disk is full"))
    await delete(world)
    await eventually_async(lambda: world.store.failures > 2)
    found = await world.get(namespaces(world), "n")
    assert messages(found)["NamespaceDeletionContentFailure"] == (
        "Failed to delete all resource types, 1 remaining: the disk is full"
    )
    assert await world.find(world.resource("secrets"), "s", "n") is None
    world.store.planned.clear()
    await world.until_deleted(namespaces(world), "n")


async def test_the_deletion_continues_after_a_reset_of_the_cache(world: World) -> None:
    await world.apply(namespace("n"), config_map("a", namespace="n", finalizers=HELD))
    await delete(world)
    await world.settled()
    world.store.watch_fails = RuntimeError("planned")
    await world.apply(config_map("a", namespace="n"))
    await world.until_deleted(namespaces(world), "n")


async def test_an_initial_namespace_is_created_again_when_it_is_gone(world: World) -> None:
    """Upstream looks for it every minute."""
    before = await world.get(namespaces(world), "kube-node-lease")
    held = config_map("a", namespace="kube-node-lease", finalizers=HELD)
    await world.apply(held)
    await delete(world, "kube-node-lease")
    await world.settled()
    terminating = await world.get(namespaces(world), "kube-node-lease")
    assert (terminating["metadata"]["uid"], terminating["status"]["phase"]) == (
        before["metadata"]["uid"],
        "Terminating",
    )
    held["metadata"]["finalizers"] = []
    await world.apply(held)

    async def created_again() -> bool:
        found = await world.find(namespaces(world), "kube-node-lease")
        return found is not None and found["metadata"]["uid"] != before["metadata"]["uid"]

    await eventually_async(created_again)
    assert (await world.get(namespaces(world), "kube-node-lease"))["status"] == {"phase": "Active"}


async def test_the_deletion_continues_after_a_restart(store: FlakyStore, clock: ManualClock) -> None:
    async with a_world(store, clock) as world:
        await world.apply(namespace("n"), config_map("a", namespace="n", finalizers=HELD))
        await delete(world)
        await world.settled()
        store = await copy_of(world.store)
    await remove(store, Key("/configmaps", "n/", "a"))
    async with a_world(store, clock) as world:
        await world.until_deleted(namespaces(world), "n")


async def remove(store: FlakyStore, key: Key) -> None:
    stored = await store.get(key)
    assert stored is not None
    await store.delete(key, expected=stored.revision)


def controller_of(world: World) -> NamespaceController:
    [found] = [controller for controller in world.plane.controllers if isinstance(controller, NamespaceController)]
    return found


@pytest.mark.parametrize("missed", [False, True], ids=["an event", "a reset"])
async def test_a_namespace_that_disappears_leaves_no_watches(world: World, missed: bool) -> None:
    """Its finalizer can be removed through /finalize while objects remain."""
    await world.apply(namespace("n"), config_map("a", namespace="n", finalizers=HELD))
    await delete(world)
    await world.settled()
    assert list(controller_of(world)._watches) == ["n"]
    if missed:
        world.store.watch_fails = RuntimeError("planned")
    await remove(world.store, Key("/namespaces", "", "n"))
    await eventually_async(lambda: controller_of(world)._watches == {})


async def test_a_reconciliation_of_a_deleted_namespace_stops_its_watches(world: World) -> None:
    controller = controller_of(world)
    collection = await world.plane.reader.collection(config_maps(world))
    controller._watches["n"] = [EmptinessWatch(collection, "n/", lambda: None)]
    await controller.reconcile("n")
    assert (controller._watches, collection.watchers) == ({}, {})


async def test_a_deleted_namespace_leaves_no_watches(world: World) -> None:
    await world.apply(namespace("n"), config_map("a", namespace="n", finalizers=HELD))
    await delete(world)
    await world.settled()
    controller = controller_of(world)
    collection = await world.plane.reader.collection(config_maps(world))
    assert (list(controller._watches), len(collection.watchers)) == (["n"], 1)
    await world.apply(config_map("a", namespace="n"))
    await world.until_deleted(namespaces(world), "n")
    await world.settled()
    assert (controller._watches, collection.watchers) == ({}, {})


# -- conditions

NOTHING = Remaining({}, {})
CHANGES: list[tuple[str, Remaining, Remaining, bool]] = [
    ("nothing remains, as before", NOTHING, NOTHING, False),
    ("an object remains, as before", Remaining({"a.b": 1}, {}), Remaining({"a.b": 1}, {}), False),
    ("another number of objects", Remaining({"a.b": 2}, {}), Remaining({"a.b": 1}, {}), True),
    ("the last object is deleted", Remaining({"a.b": 1}, {}), NOTHING, True),
    ("a finalizer is removed", Remaining({"a.b": 1}, {"f": 1}), Remaining({"a.b": 1}, {}), True),
    ("another error", Remaining({"a.b": 1}, {}, ["x"]), Remaining({"a.b": 1}, {}, ["y"]), True),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after", "changed"), [row[1:] for row in CHANGES], ids=[row[0] for row in CHANGES])
def test_conditions_change_if(before: Remaining, after: Remaining, changed: bool) -> None:
    status: Object = {}
    assert set_conditions(status, before, "t1")
    old = {condition["type"]: dict(condition) for condition in status["conditions"]}
    assert set_conditions(status, after, "t2") is changed
    for condition in status["conditions"]:
        transition = condition["status"] != old[condition["type"]]["status"]
        assert condition["lastTransitionTime"] == ("t2" if transition else "t1")
    fresh: Object = {}
    set_conditions(fresh, after, "t1")
    assert [{**c, "lastTransitionTime": ""} for c in status["conditions"]] == [
        {**c, "lastTransitionTime": ""} for c in fresh["conditions"]
    ]


def test_several_errors_and_resources_are_listed_in_order() -> None:
    status: Object = {}
    set_conditions(status, Remaining({"b.x": 1, "a.": 2}, {}, ["two", "one"]), "t")
    assert messages({"status": status}) == {
        "NamespaceDeletionContentFailure": "Failed to delete all resource types, 2 remaining: [two, one]",
        "NamespaceContentRemaining": "Some resources are remaining: a. has 2 resource instances, b.x has 1 resource instances",
    }
