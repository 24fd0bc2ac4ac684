"""A store of an older release, which has custom resources among the objects of a built-in kind with the same names."""

from __future__ import annotations

import pytest

from noxu.registry.rewriting import separate
from noxu.registry.storage_form import group_and_plural
from noxu.values import Object
from noxu_storage.types import EVERYTHING, Key
from tests.clocks import ManualClock
from tests.controllers.conftest import World, a_world, config_map, custom, definition
from tests.faults.flaky import FlakyStore
from tests.timing import eventually_async

GROUP = "rbac.authorization.k8s.io"
BUILT_IN, CUSTOM = f"{GROUP}/clusterroles", f"{GROUP}/clusterroles.custom"
APPROVAL = {"api-approved.kubernetes.io": "unapproved"}


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def roles(*versions: str) -> Object:
    """A definition of ClusterRoles; the last version is stored."""
    made = definition("clusterroles", "ClusterRole", GROUP)
    [version] = made["spec"]["versions"]
    made["metadata"]["annotations"] = APPROVAL
    made["spec"] |= {
        "scope": "Cluster",
        "versions": [{**version, "name": name, "storage": name == versions[-1]} for name in versions],
    }
    return made


def role(name: str, version: str, **metadata: object) -> Object:
    return {"apiVersion": f"{GROUP}/{version}", "kind": "ClusterRole", "metadata": {"name": name, **metadata}}


async def as_before(store: FlakyStore) -> FlakyStore:
    """A copy in which both have one collection."""
    copy = FlakyStore()
    for key, value, _ in (await store.list(EVERYTHING)).items:
        await copy.put(key._replace(collection=group_and_plural(key.collection)), value, expected=0)
    return copy


async def names(store: FlakyStore, collection: str) -> set[str]:
    return {item.key.name for item in (await store.list(EVERYTHING)).items if item.key.collection == collection}


@pytest.fixture
async def old(clock: ManualClock) -> FlakyStore:
    """With ordinary custom resources, built-in objects, and custom resources with the names of a built-in kind."""
    async with a_world(FlakyStore(), clock) as world:
        await world.apply(definition(), custom("w"), config_map("c"), roles("v9"), role("own", "v1"))
        await world.apply(role("a", "v9"), role("b", "v9", finalizers=["example.com/held"]))
        return await as_before(world.store)


async def test_they_are_moved_when_the_server_starts(old: FlakyStore, clock: ManualClock) -> None:
    before = {item.key: item.value for item in (await old.list(EVERYTHING)).items}
    assert await names(old, BUILT_IN) >= {"a", "b", "own"}
    async with a_world(old, clock) as world:
        await world.settled()
        assert await names(old, CUSTOM) == {"a", "b"}
        assert "own" in await names(old, BUILT_IN)
        assert not {"a", "b"} & await names(old, BUILT_IN)
        after = {item.key: item.value for item in (await old.list(EVERYTHING)).items}
        for key, value in before.items():
            moved = key.collection == BUILT_IN and key.name in ("a", "b")
            assert after[key._replace(collection=CUSTOM) if moved else key] == value
        await check_serves(world)


async def check_serves(world: World) -> None:
    """The objects are read, and the end of the definition is the end of its objects only."""
    v9 = world.plane.served_resources.current.find(GROUP, "v9", "clusterroles")
    assert v9 is not None
    assert (await world.get(v9, "a"))["apiVersion"] == f"{GROUP}/v9"
    assert await world.get(world.resource("widgets", "example.com"), "w", "default")
    definitions = world.resource("customresourcedefinitions", "apiextensions.k8s.io")
    await world.apply(role("b", "v9"))
    await world.delete(definitions, f"clusterroles.{GROUP}")
    await world.until_deleted(definitions, f"clusterroles.{GROUP}")
    assert await names(world.store, CUSTOM) == set()
    assert "own" in await names(world.store, BUILT_IN)


async def test_dependents_of_what_is_moved_stay(clock: ManualClock) -> None:
    async with a_world(FlakyStore(), clock) as world:
        await world.apply(roles("v9"), role("a", "v9"))
        v9 = world.plane.served_resources.current.find(GROUP, "v9", "clusterroles")
        assert v9 is not None
        uid = (await world.get(v9, "a"))["metadata"]["uid"]
        dependent = config_map("c")
        reference = {"apiVersion": f"{GROUP}/v9", "kind": "ClusterRole", "name": "a", "uid": uid}
        dependent["metadata"]["ownerReferences"] = [reference]
        await world.apply(dependent)
        await world.settled()
        store = await as_before(world.store)
    async with a_world(store, clock) as world:
        await world.settled()
        assert await world.find(world.resource("configmaps"), "c", "default") is not None
        await world.delete(world.plane.served_resources.current.find(GROUP, "v9", "clusterroles"), "a")  # type: ignore[arg-type]

        async def is_gone() -> bool:
            return await world.find(world.resource("configmaps"), "c", "default") is None

        await eventually_async(is_gone)


async def test_a_version_that_the_built_in_kind_has_is_not_moved(clock: ManualClock) -> None:
    async with a_world(FlakyStore(), clock) as world:
        await world.apply(role("own", "v1"), roles("v9", "v1"))
        store = await as_before(world.store)
    before = await names(store, BUILT_IN)
    async with a_world(store, clock):
        assert await names(store, BUILT_IN) == before


async def test_a_move_that_was_interrupted_is_completed(old: FlakyStore, clock: ManualClock) -> None:
    [item] = [each for each in (await old.list(EVERYTHING)).items if each.key == Key(BUILT_IN, "", "a")]
    await old.put(item.key._replace(collection=CUSTOM), item.value, expected=0)
    async with a_world(old, clock) as world:
        assert await names(old, CUSTOM) == {"a", "b"}
        assert "a" not in await names(old, BUILT_IN)
        assert await separate(world.store, world.plane.reader, world.plane.served_resources.current) == 0


async def test_a_definition_that_cannot_be_read_does_not_prevent_the_start(old: FlakyStore, clock: ManualClock) -> None:
    key = Key("apiextensions.k8s.io/customresourcedefinitions", "", f"clusterroles.{GROUP}")
    stored = await old.get(key)
    assert stored is not None
    await old.put(key, b"no definition", expected=stored.revision)
    before = await names(old, BUILT_IN)
    async with a_world(old, clock) as world:
        assert await world.get(world.resource("widgets", "example.com"), "w", "default")
        assert await names(old, BUILT_IN) == before
