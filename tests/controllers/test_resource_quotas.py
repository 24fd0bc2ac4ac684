"""The quota controller: the status of ResourceQuotas."""

from __future__ import annotations

from typing import Any

from noxu.admission.builtin.resource_quotas import with_status
from noxu.controllers.resource_quotas import PERIOD
from tests.controllers.conftest import World
from tests.timing import eventually_async


def quota(hard: dict[str, str], **spec: Any) -> Any:
    metadata = {"name": "q", "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": hard, **spec}}


def pod(name: str, cpu: str = "1", **fields: Any) -> Any:
    containers = [{"name": "c", "image": "x", "resources": {"requests": {"cpu": cpu}}}]
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers}, **fields}


async def used(world: World) -> Any:
    await world.settled()
    return ((await world.get(world.resource("resourcequotas"), "q", "default")).get("status") or {}).get("used")


async def until_used(world: World, expected: Any) -> None:
    async def is_used() -> bool:
        return bool(await used(world) == expected)

    await eventually_async(is_used)


async def test_what_exists_is_counted_when_a_quota_is_created(world: World) -> None:
    await world.apply(pod("a"), pod("b", "500m"))
    await world.apply(quota({"pods": "9", "requests.cpu": "9", "secrets": "9", "count/widgets.example.com": "1"}))
    assert await used(world) == {"secrets": "0", "pods": "2", "requests.cpu": "1500m"}
    found = await world.get(world.resource("resourcequotas"), "q", "default")
    assert found["status"]["hard"] == found["spec"]["hard"]


async def test_only_objects_in_the_scopes_are_counted(world: World) -> None:
    await world.apply(pod("a"), pod("b", "0"), quota({"pods": "9"}, scopes=["BestEffort"]))
    assert await used(world) == {"pods": "1"}


async def test_the_limits_follow_the_spec(world: World) -> None:
    await world.apply(pod("a"), quota({"pods": "9"}))
    assert await used(world) == {"pods": "1"}
    await world.apply(quota({"requests.cpu": "5"}))
    assert await used(world) == {"requests.cpu": "1"}


async def test_deletions_and_pods_that_end_are_followed(world: World) -> None:
    await world.apply(quota({"pods": "9"}))
    await world.settled()
    await world.apply(pod("a"), pod("b"))
    assert await used(world) == {"pods": "2"}
    await world.delete(world.resource("pods"), "a", "default")
    await until_used(world, {"pods": "1"})


async def test_everything_is_counted_again_after_some_time(world: World) -> None:
    await world.apply(quota({"pods": "9"}))
    assert await used(world) == {"pods": "0"}
    reader, persistence = world.plane.reader, world.plane.persistence
    resource = world.resource("resourcequotas")
    entry = await reader.find(resource, "default", "q")
    wrong = with_status(entry, resource, {"used": {"pods": "5"}}, "test", "2026-01-02T03:04:05Z")
    assert await persistence.replace(entry, wrong)
    assert await used(world) == {"pods": "5"}
    world.clock.advance(PERIOD)
    await until_used(world, {"pods": "0"})


async def test_missed_changes_are_counted_after_a_reset(world: World) -> None:
    await world.apply(pod("a"), quota({"pods": "9"}))
    assert await used(world) == {"pods": "1"}
    world.plane.cache.reset(world.plane.store.revision)
    await world.delete(world.resource("pods"), "a", "default")
    await until_used(world, {"pods": "0"})
