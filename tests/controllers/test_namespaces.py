"""The deletion of a namespace with everything in it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

import pytest

from noxu.api import codec
from noxu.api.errors import ApiError, plain_error
from noxu.controllers import namespaces as module
from noxu.controllers.controller import CONTROLLER_MANAGER as MANAGER
from noxu.controllers.namespaces import FINALIZERS_TAKE, EmptinessWatch, NamespaceController, Remaining, set_conditions
from noxu.registry.access import User
from noxu.registry.cache import Collection, Watcher
from noxu.registry.draft import Draft
from noxu.registry.resource import Resource
from noxu.registry.stored_object import StoredObject
from noxu.values import Object
from noxu_storage.types import Key, Unavailable
from tests.clocks import ManualClock
from tests.controllers.conftest import World, a_world, conditions, config_map, copy_of, definition, namespace
from tests.faults.flaky import FlakyStore
from tests.timing import eventually_async, hang_guard, longest_block

HELD = ("example.com/wait",)
RECHECK = FINALIZERS_TAKE // 2 + 1


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
    [found] = [controller for controller in world.plane.all_controllers if isinstance(controller, NamespaceController)]
    return found


def watches(collection: Collection) -> list[Watcher]:
    return [watcher for watcher in collection.watchers if isinstance(watcher, EmptinessWatch)]


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
    assert (controller._watches, watches(collection)) == ({}, [])


async def test_a_deleted_namespace_leaves_no_watches(world: World) -> None:
    await world.apply(namespace("n"), config_map("a", namespace="n", finalizers=HELD))
    await delete(world)
    await world.settled()
    controller = controller_of(world)
    collection = await world.plane.reader.collection(config_maps(world))
    assert (list(controller._watches), len(watches(collection))) == (["n"], 1)
    await world.apply(config_map("a", namespace="n"))
    await world.until_deleted(namespaces(world), "n")
    await world.settled()
    assert (controller._watches, watches(collection)) == ({}, [])


# -- pods

GRACE = 30


def pod(*, finalizers: tuple[str, ...] = (), grace: int = 0) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "n", "finalizers": list(finalizers)},
        "spec": {"containers": [{"name": "c", "image": "i"}], "terminationGracePeriodSeconds": grace},
    }


async def set_finalizers(world: World, *finalizers: str) -> None:
    found = await world.get(world.resource("pods"), "p", "n")
    await world.apply({**found, "metadata": {**found["metadata"], "finalizers": list(finalizers)}})


async def test_pods_are_deleted_before_everything_else(world: World) -> None:
    await world.apply(namespace("n"), config_map("a", namespace="n"), pod(finalizers=HELD))
    await delete(world)
    await world.settled()
    assert await world.find(config_maps(world), "a", "n")
    assert messages(await world.get(namespaces(world), "n")) == {
        "NamespaceContentRemaining": "Some resources are remaining: pods. has 1 resource instances",
        "NamespaceFinalizersRemaining": "Some content in the namespace has finalizers remaining: example.com/wait in 1 resource instances",
    }
    await set_finalizers(world)
    await world.until_deleted(namespaces(world), "n")
    assert await world.find(config_maps(world), "a", "n") is None


@pytest.mark.parametrize(
    ("grace", "seconds"), [(GRACE, GRACE // 2 + 1), (0, RECHECK)], ids=["a grace period", "finalizers"]
)
async def test_remaining_pods_are_counted_again_after_half_of_their_grace_period(
    world: World, grace: int, seconds: int
) -> None:
    await world.apply(namespace("n"), pod(finalizers=(*HELD, "example.com/more"), grace=grace))
    await delete(world)
    await world.settled()
    await set_finalizers(world, *HELD)
    world.clock.advance(seconds - 1)
    await world.settled()
    assert "example.com/more" in str(messages(await world.get(namespaces(world), "n")))
    world.clock.advance(1)
    await world.settled()
    assert "example.com/more" not in str(messages(await world.get(namespaces(world), "n")))


PODS: list[tuple[str, list[Object], int]] = [
    ("none", [], 0),
    ("the longest of several", [{"spec": {"terminationGracePeriodSeconds": n}} for n in (5, 30, 1)], 30),
    ("pods that have ended do not count", [
        {"spec": {"terminationGracePeriodSeconds": 30}, "status": {"phase": "Succeeded"}},
        {"spec": {"terminationGracePeriodSeconds": 20}, "status": {"phase": "Failed"}},
        {"spec": {"terminationGracePeriodSeconds": 10}, "status": {"phase": "Running"}},
    ], 10),
    ("no grace period", [{"spec": {}}, {"status": {}}], 0),
]  # fmt: skip


@pytest.mark.parametrize(("pods", "seconds"), [row[1:] for row in PODS], ids=[row[0] for row in PODS])
def test_the_longest_grace_period(pods: list[Object], seconds: int) -> None:
    key = Key("/pods", "n/", "p")
    assert (
        module._longest_grace([StoredObject(key, codec.encode(value, sort_keys=False), 1) for value in pods]) == seconds
    )


# -- admission

USER = User(
    "system:serviceaccount:kube-system:namespace-controller",
    groups=("system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"),
)


async def test_admission_sees_the_deletions_of_the_controllers_user(world: World) -> None:
    seen = set()

    def record(draft: Draft) -> None:
        if draft.request.user == USER:
            seen.add((draft.operation, draft.resource.plural, draft.request.subresource))
            if draft.operation == "DELETE":
                assert draft.request.options_sent == {"propagationPolicy": "Background"}

    world.plane.admission.validate = record  # type: ignore[method-assign]
    await world.apply(namespace("n"), config_map("a", namespace="n", finalizers=HELD))
    await delete(world)
    await world.settled()
    await world.apply(config_map("a", namespace="n"))
    await world.until_deleted(namespaces(world), "n")
    assert seen == {
        ("DELETE", "configmaps", ""),
        ("DELETE", "serviceaccounts", ""),
        ("UPDATE", "namespaces", "status"),
        ("UPDATE", "namespaces", "finalize"),
    }


async def test_a_refused_deletion_is_reported_with_its_text(world: World) -> None:
    why = 'admission webhook "a.example.com" denied the request: not now'
    refusing = True

    def refuse(draft: Draft) -> None:
        if refusing and draft.operation == "DELETE" and draft.resource.plural == "configmaps":
            raise plain_error(why, 403)

    world.plane.admission.validate = refuse  # type: ignore[method-assign]
    await world.apply(namespace("n"), config_map("a", namespace="n"))
    await delete(world)
    await eventually_async(lambda: has_conditions(world))
    found = await world.get(namespaces(world), "n")
    assert conditions(found) == {
        "NamespaceDeletionDiscoveryFailure": ("False", "ResourcesDiscovered"),
        "NamespaceDeletionGroupVersionParsingFailure": ("False", "ParsedGroupVersions"),
        "NamespaceDeletionContentFailure": ("True", "ContentDeletionFailed"),
        "NamespaceContentRemaining": ("False", "ContentRemoved"),
        "NamespaceFinalizersRemaining": ("False", "ContentHasNoFinalizers"),
    }, "what could not be deleted is not counted, as upstream"
    assert messages(found) == {
        "NamespaceDeletionContentFailure": f"Failed to delete all resource types, 1 remaining: {why}"
    }
    refusing = False
    await world.until_deleted(namespaces(world), "n")


async def has_conditions(world: World) -> bool:
    return "conditions" in (await world.get(namespaces(world), "n"))["status"]


async def test_conditions_that_cannot_be_written_do_not_stop_the_deletion(world: World) -> None:
    def refuse(draft: Draft) -> None:
        if draft.request.subresource == "status":
            raise plain_error("planned", 403)

    world.plane.admission.validate = refuse  # type: ignore[method-assign]
    await world.apply(namespace("n"), config_map("a", namespace="n", finalizers=HELD))
    await delete(world)
    await world.settled()
    assert not await has_conditions(world)
    await world.apply(config_map("a", namespace="n"))
    await world.until_deleted(namespaces(world), "n")


# -- finalizers


async def test_a_namespace_with_other_finalizers_remains_without_content(world: World) -> None:
    await world.apply({**namespace("n"), "spec": {"finalizers": ["example.com/z", "kubernetes", "example.com/a"]}})
    await delete(world)
    await world.settled()
    found = await world.get(namespaces(world), "n")
    assert found["spec"] == {"finalizers": ["example.com/a", "example.com/z"]}
    assert messages(found) == {}
    assert len(found["status"]["conditions"]) == 5
    revision = world.store.revision
    world.clock.advance(RECHECK)
    await world.settled()
    assert world.store.revision == revision, "the controller has finished"


async def test_a_fast_deletion_shows_no_conditions(world: World) -> None:
    await world.apply(namespace("n"), config_map("a", namespace="n"))
    shown = []

    def record(draft: Draft) -> None:
        shown.append(draft.request.subresource)

    world.plane.admission.validate = record  # type: ignore[method-assign]
    await delete(world)
    await world.until_deleted(namespaces(world), "n")
    assert "status" not in shown


async def test_objects_that_remain_without_a_reason_are_a_failure(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nothing(*_: object) -> None: ...

    monkeypatch.setattr(module, "delete_all", nothing)
    await world.apply(namespace("n"), config_map("a", namespace="n"))
    await delete(world)
    await eventually_async(lambda: has_conditions(world))
    found = messages(await world.get(namespaces(world), "n"))
    assert found["NamespaceDeletionContentFailure"].endswith(
        "remaining: unexpected items still remain in namespace: n for gvr: /v1, Resource=configmaps, "
        "unexpected items still remain in namespace: n for gvr: /v1, Resource=serviceaccounts"
    )
    monkeypatch.undo()
    await world.until_deleted(namespaces(world), "n")


# -- races and size


async def test_what_is_admitted_before_the_deletion_does_not_outlive_the_namespace(world: World) -> None:
    """A create waits in admission while the namespace is deleted: it is checked again before it is stored."""
    admitted, go_on = asyncio.Event(), asyncio.Event()

    async def wait() -> None:
        admitted.set()
        await go_on.wait()

    def hold(draft: Draft) -> Awaitable[None] | None:
        return wait() if draft.operation == "CREATE" and draft.resource.plural == "configmaps" else None

    await world.apply(namespace("n"))
    await world.settled()
    world.plane.admission.validate = hold  # type: ignore[method-assign]
    creating = asyncio.create_task(world.apply(config_map("late", namespace="n")))
    async with hang_guard():
        await admitted.wait()
        await delete(world)
        await world.until_deleted(namespaces(world), "n")
        go_on.set()
        with pytest.raises(ApiError, match='namespaces "n" not found'):
            await creating
    assert await world.find(config_maps(world), "late", "n") is None


@pytest.mark.slow
async def test_ten_thousand_objects_do_not_block_the_event_loop(world: World) -> None:
    await world.apply(namespace("n"))
    world.plane.reader.cache.reset(world.store.revision)
    held = b'"finalizers":["example.com/wait"],'
    for n in range(10_000):
        body = b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"m%05d","namespace":"n",%b"uid":"u%d"}}'
        await world.store.put(Key("/configmaps", "n/", f"m{n:05}"), body % (n, held if n % 2 else b"", n), expected=0)
    await eventually_async(lambda: all(found._synchronised.is_set() for found in world.plane.all_controllers))

    async def empty() -> None:
        await delete(world)
        await eventually_async(lambda: has_conditions(world))

    _, blocked = await longest_block(empty)
    found = messages(await world.get(namespaces(world), "n"))["NamespaceContentRemaining"]
    assert "configmaps. has 5000 resource instances" in found
    assert blocked < 0.05


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
        "NamespaceDeletionContentFailure": "Failed to delete all resource types, 2 remaining: one, two",
        "NamespaceContentRemaining": "Some resources are remaining: a. has 2 resource instances, b.x has 1 resource instances",
    }
