"""Views of the past: what they share with the present and with each other, and how many are kept."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from noxu.control.past import MAX_VIEWS, PastViews
from noxu.control_plane import ControlPlane, resource_of, running
from noxu.crd import types as crd
from noxu.registry.draft import Action, Body, WriteRequest
from noxu.registry.resource import Versions
from noxu.registry.stored_object import object_at
from noxu.values import Object
from noxu_storage.memory import MemoryStore
from noxu_storage.types import Key
from tests import definitions
from tests.control_planes import assemble
from tests.timing import eventually_async

NAME = "widgets.example.com"


class Past:
    """A control plane with a past."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self.views = PastViews(plane)
        self.resource = resource_of(plane.served_resources, crd.GROUP, crd.RESOURCE)

    @property
    def revision(self) -> int:
        return self.plane.store.revision

    async def write(self, action: Action, value: Object | None, name: str = NAME) -> int:
        """Write a definition; the revision after it."""
        body = Body({} if value is None else value)
        await self.plane.writer.write(WriteRequest(action, self.resource, "", name, body=body))
        return self.revision

    async def define(self, **properties: str) -> int:
        """Create the definition, or change the types of its properties."""
        schema = {"type": "object", "properties": {name: {"type": kind} for name, kind in properties.items()}}
        value = definitions.widgets(definitions.version(schema))
        stored = await self.plane.reader.stored(self.resource, "", NAME)
        if stored is None:
            return await self.write(Action.CREATE, value)
        value["metadata"]["resourceVersion"] = str(stored.revision)
        return await self.write(Action.REPLACE, value)

    async def annotate(self) -> int:
        stored = await self.plane.reader.stored(self.resource, "", NAME)
        assert stored is not None
        value = object_at(stored, self.resource)
        value["metadata"]["annotations"] = {"revision": str(self.revision)}
        return await self.write(Action.REPLACE, value)

    async def served(self, revision: int) -> Versions | None:
        return (await self.views.view(revision)).served.defined.get(NAME)

    @property
    def live(self) -> Versions | None:
        return self.plane.served_resources.current.defined.get(NAME)


@pytest.fixture
async def past() -> AsyncIterator[Past]:
    async with contextlib.AsyncExitStack() as stack:
        plane = assemble(MemoryStore())
        await stack.enter_async_context(running(plane))
        yield Past(plane)


async def test_a_view_after_the_last_change_of_definitions_serves_what_is_served_now(past: Past) -> None:
    revision = await past.define(a="string")
    for _ in range(3):
        await past.plane.store.put(Key("things", "", str(past.revision)), b"{}", expected=0)
    view = await past.views.view(revision)
    assert view.served is past.plane.served_resources.current
    assert past.views.compiled == 0


async def test_a_definition_that_serves_what_it_serves_now_is_shared(past: Past) -> None:
    first = await past.define(a="string")
    await past.annotate()
    second = await past.annotate()
    await past.annotate()
    assert await past.served(first) is await past.served(second) is past.live is not None
    assert past.views.compiled == 0


async def test_views_share_what_is_no_longer_served(past: Past) -> None:
    old = [await past.define(a="string"), await past.annotate(), await past.annotate()]
    await past.define(a="integer")
    shared = [await past.served(revision) for revision in old]
    assert shared[0] is shared[1] is shared[2] is not past.live
    assert past.views.compiled == 1, "the second view is cheap"
    assert await past.served(old[0] - 1) is not shared[0], "not yet established"


async def test_between_two_changes_of_definitions_the_same_is_served(past: Past) -> None:
    await past.define(a="string")
    keys = [Key("things", "", name) for name in "abc"]
    revisions = [await past.plane.store.put(key, b"{}", expected=0) for key in keys]
    await past.define(a="integer")
    views = [await past.views.view(revision) for revision in revisions]
    assert views[0].served is views[1].served is views[2].served is not past.plane.served_resources.current
    assert [view.reader.newest for view in views] == revisions


async def test_a_definition_that_came_later_or_is_gone(past: Past) -> None:
    before = past.revision
    there = await past.define(a="string")
    await past.write(Action.DELETE, None)
    await eventually_async(lambda: past.live is None)
    assert await past.served(before) is None
    assert (await past.served(there)) is not None


async def test_a_definition_that_begins_to_be_deleted_is_no_longer_shared(past: Past) -> None:
    revision = await past.define(a="string")
    await past.annotate()
    shared = await past.served(revision)
    assert shared is past.live is not None
    past.live.deletes_instances = True
    made = await past.served(revision)
    assert made is not past.live
    assert made is not None
    assert not made.deletes_instances
    assert await past.served(revision) is made


async def test_the_newest_views_are_kept(past: Past) -> None:
    await past.define(a="string")
    revisions = [await past.annotate() for _ in range(MAX_VIEWS + 2)]
    await past.annotate()
    for revision in revisions:
        await past.views.view(revision)
    read = 0

    async def counted(*args: Any, **options: Any) -> Any:
        nonlocal read
        read += 1
        return await listed(*args, **options)

    listed, past.plane.store.list = past.plane.store.list, counted  # type: ignore[method-assign]
    await past.views.view(revisions[-1])
    assert read == 0
    await past.views.view(revisions[0])
    assert read == 1


async def test_a_function_that_converts_now_converts_the_past(past: Past) -> None:
    revision = await past.define(a="string")
    await past.define(a="integer")
    before = await past.served(revision)
    assert before is not None
    assert before.converter is None

    async def convert(_name: str, request: Object) -> Object:
        return request

    past.plane.convert_in_process(NAME, convert)
    after = await past.served(revision)
    assert after is not None
    assert after.converter is not None
