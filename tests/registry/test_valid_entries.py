"""Which stored objects are known to satisfy their schema, so that field ownership does not check their types again."""

from __future__ import annotations

from typing import Any, Final

import pytest

from noxu.registry.draft import Action, Body, WriteRequest
from noxu.registry.stored_object import StoredObject, is_valid, render
from noxu.registry.trace import Trace
from noxu.values import Object
from tests.drafts import warm
from tests.registry.world import MERGE_PATCH, World, version, widget, widgets, world_of

SCHEMA: Final[Object] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {"size": {"type": "integer", "maximum": 9}, "color": {"type": "string"}},
        },
        "status": {"type": "object", "properties": {"replicas": {"type": "integer"}}},
    },
}


async def patched(world: World, patch: bytes, subresource: str = "", **options: Any) -> StoredObject:
    request = WriteRequest(
        Action.PATCH, world.widgets, "default", "a", subresource, body=Body(patch, MERGE_PATCH), **options
    )
    written = await world.writer.write(request)
    assert written.entry is not None
    return written.entry


async def created(world: World, trace: Trace | None = None) -> StoredObject:
    request = WriteRequest(Action.CREATE, world.widgets, "default", body=Body(widget(size=1)))
    written = await world.writer.write(request, trace=trace)
    assert written.entry is not None
    return written.entry


PATCHES: Final[dict[str, tuple[bytes, str]]] = {
    "a patch": (b'{"spec":{"size":2}}', ""),
    "a patch of the status": (b'{"status":{"replicas":2}}', "status"),
}


@pytest.mark.parametrize(("patch", "subresource"), PATCHES.values(), ids=PATCHES)
async def test_what_the_fast_path_accepts_stays_valid(patch: bytes, subresource: str) -> None:
    async with world_of(defined=widgets(version(schema=SCHEMA))) as world:
        warm(world.widgets)
        assert is_valid(await created(world), world.widgets)
        assert is_valid(await patched(world, patch, subresource), world.widgets)


PATCHES_OF_A_WRONG_OBJECT: Final[dict[str, tuple[bytes, str, bool]]] = {
    "a patch that corrects it": (b'{"spec":{"size":2}}', "", True),
    "a patch that leaves the error": (b'{"spec":{"color":"red"}}', "", False),
    "a patch of the status": (b'{"status":{"replicas":2}}', "status", False),
    "a patch of the status, and of the rest in vain": (b'{"spec":{"size":2},"status":{"replicas":2}}', "status", False),
}


@pytest.mark.parametrize(
    ("patch", "subresource", "expected"), PATCHES_OF_A_WRONG_OBJECT.values(), ids=PATCHES_OF_A_WRONG_OBJECT
)
async def test_what_is_stored_with_an_error_is_not_valid_until_that_is_corrected(
    patch: bytes, subresource: str, expected: bool
) -> None:
    async with world_of(defined=widgets(version(schema=SCHEMA))) as world:
        warm(world.widgets)
        entry = await created(world)
        wrong = StoredObject(entry.key, entry.stored.replace(b'"size":1', b'"size":10'), 0)
        assert await world.persistence.replace(entry, wrong)
        render(wrong, world.widgets.versions)
        assert not is_valid(wrong, world.widgets)
        assert is_valid(await patched(world, patch, subresource), world.widgets) is expected


async def test_what_is_read_from_the_store_is_valid_if_the_fast_path_accepts_it() -> None:
    async with world_of(defined=widgets(version(schema=SCHEMA))) as world:
        warm(world.widgets)
        entry = await created(world)
        again = StoredObject(entry.key, entry.stored, entry.revision)
        assert not is_valid(again, world.widgets)
        render(again, world.widgets.versions)
        assert is_valid(again, world.widgets)


async def test_objects_are_valid_at_the_version_at_which_they_are_stored() -> None:
    async with world_of(defined=widgets(version(schema=SCHEMA), version("v2", SCHEMA))) as world:
        warm(world.widgets)
        entry = await created(world)
        v1, v2 = world.widgets.versions.all
        assert [is_valid(entry, v1), is_valid(entry, v2), is_valid(None, v1)] == [True, False, False]


async def test_of_traced_writes_it_is_not_known() -> None:
    async with world_of(defined=widgets(version(schema=SCHEMA))) as world:
        warm(world.widgets)
        assert not is_valid(await created(world, trace=[]), world.widgets)
