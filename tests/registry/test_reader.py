"""Reads of single objects."""

from __future__ import annotations

import asyncio

import pytest

from noxu.api.errors import ApiError
from noxu.registry import reader
from noxu.registry.resource import Converted
from noxu.values import Object
from tests.registry.world import GROUP, World, error_of, version, widget, widgets, world_of
from tests.timing import loop_turns


async def test_an_object_is_found_in_its_namespace(world: World) -> None:
    await world.create()
    entry = await world.reader.find(world.widgets, "default", "a")
    assert (entry.namespace, entry.key.name, entry.revision) == ("default", "a", world.store.revision)
    for namespace, name in (("default", "b"), ("other", "a"), ("", "a")):
        assert (
            await error_of(world.reader.find(world.widgets, namespace, name)) == f'widgets.{GROUP} "{name}" not found'
        )


async def test_a_corrupt_object_is_no_missing_object(world: World) -> None:
    collection = await world.reader.collection(world.widgets)
    collection.corrupt[world.key()] = 9
    with pytest.raises(ApiError, match="object not decodable revision=9") as caught:
        await world.reader.find(world.widgets, "default", "a")
    assert caught.value.code == 500


async def test_a_collection_is_loaded_on_first_use(world: World) -> None:
    assert world.reader.loaded(world.widgets) is None
    assert world.reader.size(world.widgets, "default", "a") == 0
    collection = await world.reader.collection(world.widgets)
    assert world.reader.loaded(world.widgets) is collection


async def test_the_size_of_an_object_is_that_of_its_stored_bytes(world: World) -> None:
    await world.create()
    entry = await world.entry()
    assert world.reader.size(world.widgets, "default", "a") == len(entry.stored) > 0
    assert world.reader.size(world.widgets, "default", "b") == 0
    assert world.reader.size(world.widgets, "default", "") == 0


async def test_a_future_revision_is_awaited(world: World) -> None:
    waiting = asyncio.create_task(world.reader.reached(world.store.revision + 1))
    await loop_turns()
    assert not waiting.done()
    await world.create()
    await waiting


async def test_a_future_revision_is_awaited_for_a_limited_time(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "BLOCK_TIMEOUT", 0.01)
    await world.reader.reached(world.store.revision)
    with pytest.raises(ApiError) as caught:
        await world.reader.reached(99)
    assert caught.value.message == "Timeout: Too large resource version: 99, current: 1"
    assert caught.value.details == {
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        "retryAfterSeconds": 1,
    }


async def test_get_converts_and_find_does_not() -> None:
    async with world_of(defined=widgets(version(), version("v2"))) as world:
        await world.create(widget(size=2))
        sent: list[Object] = []

        class Recording:
            timeout = 30

            async def convert(self, values: list[Object], api_version: str, weight: int) -> Converted:
                sent.extend(values)
                return Converted(
                    [{**value, "apiVersion": api_version, "spec": {"size": 3}} for value in values], weight
                )

        world.widgets.versions.converter = Recording()
        v2 = world.resource("widgets", GROUP, "v2")
        assert (await world.reader.find(v2, "default", "a")).stored == (await world.entry()).stored
        assert sent == []
        assert (await world.stored(resource=v2))["spec"] == {"size": 3}
        assert [value["spec"] for value in sent] == [{"size": 2}]
