"""The deletion of definitions: custom resources first, finalizers are respected, failures are reported and retried."""

from __future__ import annotations

from noxu.controllers.definition_finalizer import DefinitionFinalizer
from noxu.crd.types import GROUP, RESOURCE
from noxu.registry.resource import Resource
from noxu_storage.types import Key, Unavailable
from tests.clocks import ManualClock
from tests.controllers.conftest import World, a_world, conditions, copy_of, custom, definition
from tests.faults.flaky import FlakyStore
from tests.timing import eventually_async

NAME = "widgets.example.com"
HELD = ("example.com/wait",)


def definitions(world: World) -> Resource:
    return world.resource(RESOURCE, GROUP)


def widgets(world: World) -> Resource:
    return world.resource("widgets", "example.com")


async def terminating(world: World) -> tuple[str, str]:
    """(Status, reason) of the condition Terminating."""
    return conditions(await world.get(definitions(world), NAME))["Terminating"]


def finalizer(world: World) -> DefinitionFinalizer:
    [found] = [controller for controller in world.plane.controllers if isinstance(controller, DefinitionFinalizer)]
    return found


async def release(world: World, name: str) -> None:
    """Remove the finalizers of a widget."""
    await world.apply(custom(name))


async def test_custom_resources_are_deleted_before_the_definition(world: World) -> None:
    await world.apply(definition(), *(custom(f"w{n}") for n in range(5)))
    await world.delete(definitions(world), NAME)
    await world.until_deleted(definitions(world), NAME)
    deletions = [
        event.key.name
        async for event in history(world)
        if event.value is None and event.key.collection in ("example.com/widgets", f"{GROUP}/{RESOURCE}")
    ]
    assert sorted(deletions[:-1]) == [f"w{n}" for n in range(5)]
    assert deletions[-1] == NAME


async def history(world: World):  # type: ignore[no-untyped-def]
    """All events until now."""
    newest = world.store.revision
    async for batch in world.store.watch(after=1):
        for event in batch.events:
            yield event
        if batch.revision >= newest:
            return


async def test_a_definition_without_custom_resources_is_deleted(world: World) -> None:
    await world.apply(definition())
    await world.delete(definitions(world), NAME)
    await world.until_deleted(definitions(world), NAME)


async def test_the_definition_remains_while_custom_resources_have_finalizers(world: World) -> None:
    await world.apply(definition(), custom("a", finalizers=HELD), custom("b", finalizers=HELD), custom("c"))
    resource = widgets(world)
    await world.delete(definitions(world), NAME)
    await world.settled()
    assert await terminating(world) == ("True", "InstanceDeletionInProgress")
    assert await world.find(resource, "c", "default") is None
    for name in ("a", "b"):
        assert (await world.get(resource, name, "default"))["metadata"]["deletionTimestamp"]
    await release(world, "a")
    await world.settled()
    assert await world.find(definitions(world), NAME)
    await release(world, "b")
    await world.until_deleted(definitions(world), NAME)
    assert finalizer(world)._watches == {}
    assert (await world.plane.reader.collection(resource)).watchers == {}


async def test_the_definition_remains_while_it_has_finalizers_of_others(world: World) -> None:
    held = definition()
    held["metadata"]["finalizers"] = list(HELD)
    await world.apply(held, custom("a"))
    await world.delete(definitions(world), NAME)
    await eventually_async(lambda: is_completed(world))
    await world.settled()
    assert (await world.get(definitions(world), NAME))["metadata"]["finalizers"] == list(HELD)
    await world.apply(definition())
    await world.until_deleted(definitions(world), NAME)


async def is_completed(world: World) -> bool:
    return await terminating(world) == ("False", "InstanceDeletionCompleted")


async def test_a_definition_that_was_never_established_is_deleted(world: World) -> None:
    await world.apply(definition("gadgets", kind="Widget"), definition())
    await world.delete(definitions(world), NAME)
    await world.until_deleted(definitions(world), NAME)


async def test_the_deletion_continues_after_failures_of_the_store(world: World) -> None:
    await world.apply(definition(), *(custom(f"w{n}") for n in range(3)))
    world.store.fail("delete", lambda key: key.collection == "example.com/widgets", 4, Unavailable("planned"))
    await world.delete(definitions(world), NAME)
    await world.until_deleted(definitions(world), NAME)
    assert world.store.failures == 4


async def test_the_deletion_continues_after_a_reset_of_the_cache(world: World) -> None:
    await world.apply(definition(), custom("a", finalizers=HELD))
    await world.delete(definitions(world), NAME)
    await world.settled()
    world.store.watch_fails = RuntimeError("planned")
    await release(world, "a")
    await world.until_deleted(definitions(world), NAME)
    assert world.store.failures == 1


async def test_a_definition_that_was_deleted_before_a_reset_leaves_no_watch(world: World) -> None:
    await world.apply(definition(), custom("a", finalizers=HELD))
    await world.delete(definitions(world), NAME)
    await world.settled()
    key = Key(f"{GROUP}/{RESOURCE}", "", NAME)
    stored = await world.store.get(key)
    assert stored is not None
    assert list(finalizer(world)._watches) == [NAME]
    world.store.watch_fails = RuntimeError("planned")
    await world.store.delete(key, expected=stored.revision)
    await eventually_async(lambda: finalizer(world)._watches == {})


async def test_the_deletion_continues_after_a_restart(store: FlakyStore, clock: ManualClock) -> None:
    async with a_world(store, clock) as world:
        await world.apply(definition(), custom("a", finalizers=HELD))
        await world.delete(definitions(world), NAME)
        await world.settled()
        store = await copy_of(world.store)
        key = Key("example.com/widgets", "default/", "a")
    stored = await store.get(key)
    assert stored is not None
    await store.delete(key, expected=stored.revision)
    async with a_world(store, clock) as world:
        await world.until_deleted(definitions(world), NAME)
