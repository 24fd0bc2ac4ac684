"""StorageVersionMigrations: what is stored afterwards, the conditions on the way, and what remains after a failure."""

from __future__ import annotations

from typing import Any

import pytest

from noxu.api import codec
from noxu.api.errors import plain_error
from noxu.registry import rewriting
from noxu.registry.draft import Action, WriteRequest
from noxu.registry.resource import Resource
from noxu.registry.stored_object import key_of
from noxu.values import Object
from noxu_storage.types import Key
from tests.clocks import ManualClock
from tests.control_planes import assemble
from tests.controllers.conftest import World, a_world, config_map, copy_of
from tests.faults.flaky import FlakyStore
from tests.timing import eventually_async

GROUP, CRD = "moved.example.com", "widgets.moved.example.com"
ENDED = ("Running", "False", "MigrationCompleted", "Migration completed")
SUCCEEDED = ("Succeeded", "True", "StorageVersionMigrationSucceeded", "")
UNHANDLED = "migration encountered unhandled error: "


def definition(storage: str = "v2", *versions: str, **schema: Any) -> Object:
    """Widgets in two versions; `schema` are keywords of v2's."""
    names = versions or ("v1", "v2")
    open_schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": CRD},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [
                {
                    "name": name,
                    "served": True,
                    "storage": name == storage,
                    "schema": {"openAPIV3Schema": open_schema | (schema if name == "v2" else {})},
                }
                for name in names
            ],
        },
    }


def widget(name: str, version: str = "v1", **fields: Any) -> Object:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": f"{GROUP}/{version}", "kind": "Widget", "metadata": metadata, **fields}


def migration(name: str = "m", group: str = GROUP, resource: str = "widgets") -> Object:
    given = {"resource": resource} | ({"group": group} if group else {})
    return {
        "apiVersion": "storagemigration.k8s.io/v1",
        "kind": "StorageVersionMigration",
        "metadata": {"name": name},
        "spec": {"resource": given},
    }


def migrations(world: World) -> Resource:
    return world.resource("storageversionmigrations", "storagemigration.k8s.io")


async def stored_versions(world: World) -> list[str]:
    return list((await crd_of(world))["status"]["storedVersions"])


async def crd_of(world: World) -> Object:
    return await world.get(world.resource("customresourcedefinitions", "apiextensions.k8s.io"), CRD)


async def migrating(world: World) -> tuple[str, str, str]:
    """(status, reason, message) of the definition's condition; empty texts: it has none."""
    for found in (await crd_of(world))["status"]["conditions"]:
        if found["type"] == "StorageMigrating":
            return found["status"], found["reason"], found["message"]
    return "", "", ""


async def conditions(world: World, name: str = "m") -> list[tuple[str, str, str, str]]:
    status = (await world.get(migrations(world), name)).get("status") or {}
    return [(each["type"], each["status"], each["reason"], each["message"]) for each in status.get("conditions") or ()]


async def in_store(world: World) -> dict[str, str]:
    """The versions in which the widgets are stored, by name."""
    collection = await world.plane.reader.collection(world.resource("widgets", GROUP))
    return {
        key.name: entry.stored.split(b'"apiVersion":"', 1)[1].split(b'"', 1)[0].decode().partition("/")[2]
        for key, entry in collection.entries.items()
    }


@pytest.fixture
async def moved(world: World) -> World:
    """Two widgets are stored as v1, and one as v2, which is the storage version now."""
    await world.apply(definition("v1"), widget("a", size=1), widget("b", "v2", size=2))
    await world.apply(definition("v2"), widget("c"))
    assert await stored_versions(world) == ["v1", "v2"]
    return world


async def test_objects_are_stored_in_the_storage_version(moved: World) -> None:
    assert await in_store(moved) == {"a": "v1", "b": "v1", "c": "v2"}
    widgets = moved.resource("widgets", GROUP)
    before = {name: await moved.get(widgets, name, "default") for name in "abc"}
    revision = moved.store.revision
    await moved.apply(migration())
    await moved.settled()
    assert await in_store(moved) == {"a": "v2", "b": "v2", "c": "v2"}
    for name, old in before.items():
        new = await moved.get(widgets, name, "default")
        own = {"resourceVersion": new["metadata"]["resourceVersion"]}
        assert {**new, "apiVersion": old["apiVersion"]} == {**old, "metadata": {**old["metadata"], **own}}, name
        assert (own["resourceVersion"] == old["metadata"]["resourceVersion"]) is (name == "c")
    assert await conditions(moved) == [ENDED, SUCCEEDED]
    assert await stored_versions(moved) == ["v2"]
    assert await migrating(moved) == (
        "False",
        "MigrationSucceeded",
        "The migration has succeeded and the stored versions have been updated",
    )
    status = (await moved.get(migrations(moved), "m"))["status"]
    assert revision < int(status["resourceVersion"]) < moved.store.revision


async def test_the_conditions_on_the_way(moved: World) -> None:
    seen: list[Any] = []
    start = moved.store.revision
    await moved.apply(migration())
    await moved.settled()
    definitions = moved.resource("customresourcedefinitions", "apiextensions.k8s.io")
    async for batch in moved.store.watch(after=start):
        for event in batch.events:
            if event.value is not None and event.key in (
                key_of(migrations(moved), "", "m"),
                key_of(definitions, "", CRD),
            ):
                status = codec.decode_stored(event.value).get("status") or {}
                of_crd = [each for each in status.get("conditions") or () if each["type"] == "StorageMigrating"]
                found = of_crd if event.key.name == CRD else status.get("conditions") or ()
                seen.append(
                    [(each["type"], each["status"]) for each in found]
                    + ["resourceVersion" in status] * (event.key.name == "m")
                )
        if batch.revision >= moved.store.revision:
            break
    assert seen == [
        [False],
        [("StorageMigrating", "True")],
        [("Running", "True"), False],
        [("Running", "True"), True],
        [("StorageMigrating", "False")],
        [("Running", "False"), ("Succeeded", "True"), True],
    ]


async def test_a_second_migration_changes_nothing_but_its_own_status(moved: World) -> None:
    await moved.apply(migration())
    await moved.settled()
    collection = await moved.plane.reader.collection(moved.resource("widgets", GROUP))
    before = {key: entry.revision for key, entry in collection.entries.items()}
    await moved.apply(migration("again"))
    await moved.settled()
    assert {key: entry.revision for key, entry in collection.entries.items()} == before
    assert await conditions(moved, "again") == [ENDED, SUCCEEDED]
    assert await stored_versions(moved) == ["v2"]


async def test_a_built_in_kind_has_nothing_to_migrate(world: World) -> None:
    await world.apply(config_map("c"))
    await world.settled()
    before = (await world.get(world.resource("configmaps"), "c", "default"))["metadata"]["resourceVersion"]
    await world.apply(migration(group="", resource="configmaps"))
    await world.settled()
    assert await conditions(world) == [ENDED, SUCCEEDED]
    assert (await world.get(world.resource("configmaps"), "c", "default"))["metadata"]["resourceVersion"] == before


async def test_an_object_that_must_not_be_written_fails_the_migration_and_stored_versions_remain(world: World) -> None:
    """Upstream removes the older version from storedVersions, although objects are stored in it."""
    await world.apply(definition("v1"), widget("a"))
    rule = {"rule": "!oldSelf.hasValue()", "message": "never changes", "optionalOldSelf": True}
    await world.apply(definition("v2", **{"x-kubernetes-validations": [rule]}))
    await world.apply(migration())
    await world.settled()
    message = UNHANDLED + 'Widget.moved.example.com "a" is invalid: <nil>: Invalid value: never changes'
    assert await conditions(world) == [ENDED, ("Failed", "True", "StorageVersionMigrationFailed", message)]
    assert await stored_versions(world) == ["v1", "v2"]
    assert await migrating(world) == ("False", "MigrationFailed", "The migration has failed")


@pytest.mark.parametrize(("group", "resource"), [("authentication.k8s.io", "tokenreviews"), ("", "componentstatuses")])
async def test_what_cannot_be_written_is_not_migratable(world: World, group: str, resource: str) -> None:
    await world.apply(migration(group=group, resource=resource))
    await world.settled()
    assert await conditions(world) == [
        ENDED,
        ("Failed", "True", "StorageVersionMigrationFailed", "resource is not migratable"),
    ]


async def test_a_resource_that_does_not_appear_within_a_minute_fails_the_migration(
    world: World, clock: ManualClock
) -> None:
    await world.apply(migration(resource="nothing"))
    await world.settled()
    assert await conditions(world) == [("Running", "True", "MigrationRunning", "The migration is running")]
    clock.advance(61)
    await eventually_async(lambda: _has_ended(world))
    assert (await conditions(world))[1][2:] == (
        "StorageVersionMigrationFailed",
        "resource does not exist in discovery",
    )


async def _has_ended(world: World, name: str = "m") -> bool:
    return len(await conditions(world, name)) == 2


async def test_a_resource_may_appear_after_its_migration(world: World) -> None:
    await world.apply(migration())
    await world.settled()
    await world.apply(definition("v1"), widget("a"))
    await eventually_async(lambda: _has_ended(world))
    assert await conditions(world) == [ENDED, SUCCEEDED]


async def test_one_migration_of_a_resource_runs_at_a_time_the_oldest_first(world: World, clock: ManualClock) -> None:
    await world.apply(migration("b"))
    await world.settled()
    clock.advance(1)
    await world.apply(migration("a"), migration("other", group="", resource="configmaps"))
    await world.settled()
    assert [each[:2] for each in await conditions(world, "b")] == [("Running", "True")]
    assert await conditions(world, "a") == []
    assert await conditions(world, "other") == [ENDED, SUCCEEDED]
    await world.apply(definition("v1"), widget("w"))
    await eventually_async(lambda: _has_ended(world, "a"))
    for name in "ab":
        assert await conditions(world, name) == [ENDED, SUCCEEDED]


async def test_a_definition_that_changes_meanwhile_keeps_its_stored_versions(moved: World) -> None:
    """The generation of the condition is that of the beginning."""
    writer = moved.plane.writer
    original, changed = writer.write, []

    async def write(request: WriteRequest, *rest: Any) -> Any:
        if request.action is Action.PATCH and request.resource.group == GROUP and not changed:
            changed.append(request)
            await moved.apply(definition("v2", "v1", "v2", "v3"))
        return await original(request, *rest)

    writer.write = write  # type: ignore[method-assign, assignment]
    await moved.apply(migration())
    await moved.settled()
    assert changed
    assert await conditions(moved) == [ENDED, SUCCEEDED]
    assert await stored_versions(moved) == ["v1", "v2"]
    assert (await migrating(moved))[2] == (
        "The migration has succeeded but the stored versions have not been updated due to a generation mismatch"
    )
    await moved.apply(migration("again"))
    await moved.settled()
    assert await stored_versions(moved) == ["v2"]


@pytest.mark.parametrize("error", [plain_error("oops"), plain_error("later", 429)], ids=["500", "429"])
async def test_errors_that_pass_are_retried(moved: World, error: Exception) -> None:
    writer = moved.plane.writer
    original, failures = writer.write, [error] * 3

    async def write(request: WriteRequest, *rest: Any) -> Any:
        if request.action is Action.PATCH and request.name == "b" and failures:
            raise failures.pop()
        return await original(request, *rest)

    writer.write = write  # type: ignore[method-assign, assignment]
    await moved.apply(migration())
    await eventually_async(lambda: _has_ended(moved))
    assert failures == []
    assert await conditions(moved) == [ENDED, SUCCEEDED]
    assert set((await in_store(moved)).values()) == {"v2"}


async def test_what_is_written_or_deleted_meanwhile_is_left_alone(moved: World) -> None:
    writer = moved.plane.writer
    original, seen = writer.write, []

    async def write(request: WriteRequest, *rest: Any) -> Any:
        if request.action is Action.PATCH and request.resource.group == GROUP and not seen:
            seen.append(request)
            await moved.delete(moved.resource("widgets", GROUP), "a", "default")
            await moved.apply(widget("b", "v2", size=5))
        return await original(request, *rest)

    writer.write = write  # type: ignore[method-assign, assignment]
    await moved.apply(migration())
    await moved.settled()
    assert await conditions(moved) == [ENDED, SUCCEEDED]
    assert await in_store(moved) == {"b": "v2", "c": "v2"}


async def test_a_write_that_ends_late_in_an_older_version_is_migrated_too(moved: World) -> None:
    """Before storedVersions say otherwise."""
    writer, store = moved.plane.writer, moved.store
    original, late = writer.write, []

    async def write(request: WriteRequest, *rest: Any) -> Any:
        if request.action is Action.PATCH and request.name == "b" and not late:
            old = await store.get(key_of(moved.resource("widgets", GROUP), "default", "a"))
            assert old is not None
            late.append(old)
            value = old.value.replace(b'"apiVersion":"moved.example.com/v2"', b'"apiVersion":"moved.example.com/v1"')
            value = value.replace(b'"name":"a"', b'"name":"late"')
            key = key_of(moved.resource("widgets", GROUP), "default", "late")
            await moved.plane.cache.reached(await store.put(key, value, expected=0))
        return await original(request, *rest)

    writer.write = write  # type: ignore[method-assign, assignment]
    await moved.apply(migration())
    await moved.settled()
    assert late
    assert await in_store(moved) == dict.fromkeys(["a", "b", "c", "late"], "v2")
    assert await stored_versions(moved) == ["v2"]


async def test_a_migration_that_is_deleted_ends_and_its_definition_says_so(world: World, monkeypatch: Any) -> None:
    monkeypatch.setattr(rewriting, "BATCH_SIZE", 1)
    await world.apply(definition("v1"), widget("a"), widget("b"), definition("v2"))
    writer = world.plane.writer
    original, seen = writer.write, []

    async def write(request: WriteRequest, *rest: Any) -> Any:
        if request.action is Action.PATCH and request.resource.group == GROUP:
            seen.append(request.name)
            if len(seen) == 1:
                await world.delete(migrations(world), "m")
        return await original(request, *rest)

    writer.write = write  # type: ignore[method-assign, assignment]
    await world.apply(migration())
    await eventually_async(lambda: _says_failed(world))
    assert (len(seen), await stored_versions(world)) == (1, ["v1", "v2"])


async def _says_failed(world: World) -> bool:
    return await migrating(world) == ("False", "MigrationFailed", "The migration has failed")


async def test_a_migration_goes_on_after_a_restart(store: FlakyStore, clock: ManualClock) -> None:
    async with a_world(store, clock, lambda store, clock: assemble(store, clock=clock)) as world:  # without controllers
        await world.apply(definition("v1"), widget("a"), definition("v2"), migration())
        await world.settled()
        assert await conditions(world) == []
        copy = await copy_of(store)
    async with a_world(copy, clock) as world:
        await eventually_async(lambda: _has_ended(world))
        assert await in_store(world) == {"a": "v2"}


async def test_many_objects(world: World) -> None:
    await world.apply(definition("v1"), *(widget(f"w{n}") for n in range(200)), definition("v2"), migration())
    await world.settled()
    assert await conditions(world) == [ENDED, SUCCEEDED]
    assert set((await in_store(world)).values()) == {"v2"}


async def test_custom_resources_with_the_names_of_a_built_in_kind_are_migrated(world: World) -> None:
    def roles(storage: str) -> Object:
        made = definition(storage, "v8", "v9")
        made["metadata"] = {
            "name": "clusterroles.rbac.authorization.k8s.io",
            "annotations": {"api-approved.kubernetes.io": "unapproved"},
        }
        made["spec"] |= {
            "group": "rbac.authorization.k8s.io",
            "scope": "Cluster",
            "names": {"plural": "clusterroles", "kind": "ClusterRole"},
        }
        return made

    role = {"apiVersion": "rbac.authorization.k8s.io/v8", "kind": "ClusterRole", "metadata": {"name": "a"}}
    await world.apply(roles("v8"), role, {**role, "apiVersion": "rbac.authorization.k8s.io/v1"}, roles("v9"))
    await world.apply(migration(group="rbac.authorization.k8s.io", resource="clusterroles"))
    await world.settled()
    assert await conditions(world) == [ENDED, SUCCEEDED]
    group = "rbac.authorization.k8s.io/clusterroles"
    for collection, version in ((group, "v1"), (f"{group}.custom", "v9")):
        found = await world.store.get(Key(collection, "", "a"))
        assert found is not None
        assert f'"apiVersion":"rbac.authorization.k8s.io/{version}"'.encode() in found.value
    crd = await world.get(
        world.resource("customresourcedefinitions", "apiextensions.k8s.io"), "clusterroles.rbac.authorization.k8s.io"
    )
    assert crd["status"]["storedVersions"] == ["v9"]


async def test_a_migration_that_cannot_be_read_does_not_disturb_others(world: World) -> None:
    key = key_of(migrations(world), "", "unreadable")
    await world.plane.cache.reached(await world.store.put(key, b"no object", expected=0))
    await world.apply(migration(group="", resource="configmaps"))
    await world.settled()
    assert await conditions(world) == [ENDED, SUCCEEDED]
    assert [each.health() for each in world.plane.all_controllers if each.health()] == []
