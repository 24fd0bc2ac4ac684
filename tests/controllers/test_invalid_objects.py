"""`noxu serve --annotate-invalid`: objects that a changed CRD refuses are annotated, and no others."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from noxu.api import codec
from noxu.api.field import required
from noxu.config import Config
from noxu.control_plane import ControlPlane, resource_of
from noxu.controllers import invalid_objects
from noxu.controllers.invalid_objects import INVALID, MANAGER, MAX_ERROR_TEXT, MAX_ERRORS, message
from noxu.crd.types import GROUP, RESOURCE
from noxu.manifests import loading
from noxu.process import server
from noxu.registry.draft import Action, WriteRequest
from noxu.registry.resource import Resource, Versions
from noxu.registry.stored_object import key_of
from noxu.registry.strategies import Revalidation, revalidate
from noxu.registry.turns import MAX_LOOP_COST
from noxu.testing.sources import documents
from noxu.values import Json, Object
from tests.timing import eventually_async, hang_guard, loop_turns

TOO_SMALL = "spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1"


def crd(*, size: Object | None = None, **fields: Json) -> Object:
    properties = {"size": {"type": "integer", **(size or {})}, **fields}
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "widgets", "kind": "Widget"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]},
    }


def widget(name: str, **spec: Json) -> Object:
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec}


LOOSE, TIGHT = crd(), crd(size={"minimum": 1})


class World:
    """A server's control plane with the controller, and what is stored in it."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane

    def resource(self, group: str, plural: str) -> Resource:
        return resource_of(self.plane.served_resources, group, plural)

    async def apply(self, *objects: Object) -> None:
        for value in objects:
            await loading.apply(self.plane, value)
        await self.settled()

    async def delete(self, resource: Resource, namespace: str, name: str) -> None:
        await self.plane.writer.write(WriteRequest(Action.DELETE, resource, namespace, name))
        await self.settled()

    async def settled(self) -> None:
        """Wait until no controller has a key to reconcile, twice in a row."""
        idle = 0
        async with hang_guard():
            while idle < 2:
                await loop_turns()
                idle = 0 if any(controller.queue.depth for controller in self.plane.controllers) else idle + 1

    async def stored(self, name: str) -> Any:
        """The object in the store, unpruned."""
        found = await self.plane.store.get(key_of(self.resource("example.com", "widgets"), "default", name))
        assert found is not None
        return codec.decode_stored(found.value)

    async def annotation(self, name: str) -> str:
        annotations = (await self.stored(name))["metadata"].get("annotations", {})
        return str(annotations.get(INVALID, ""))


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with server.Server(Config(port=0, annotate_invalid=True)) as running:
        world = World(running.plane)
        await world.apply(LOOSE)
        yield world


async def test_invalid_objects_are_annotated_and_valid_ones_are_not_written(world: World) -> None:
    await world.apply(widget("bad", size=0), widget("good", size=1))
    revision, good = world.plane.store.revision, await world.stored("good")
    assert await world.annotation("bad") == ""
    await world.apply(TIGHT)
    assert await world.annotation("bad") == TOO_SMALL
    assert await world.stored("good") == good
    assert world.plane.store.revision - revision == 2, "the CRD, and the one object that is invalid"


@pytest.mark.slow
async def test_validation_that_takes_long_leaves_the_event_loop(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small object against thousands of alternatives."""
    threads: list[str] = []

    def recorded(value: Object, versions: Versions) -> Revalidation:
        threads.append(threading.current_thread().name)
        return revalidate(value, versions)

    monkeypatch.setattr(invalid_objects, "revalidate", recorded)
    await world.apply(widget("a", size=0))
    threads.clear()
    await world.apply(crd(size={"anyOf": [{"minimum": n} for n in range(1, MAX_LOOP_COST + 2)]}))
    assert await world.annotation("a")
    assert threads[0] == threading.current_thread().name
    assert threads[1] != threads[0]


async def test_it_never_loops(world: World) -> None:
    await world.apply(*(widget(f"w{n}", size=0) for n in range(20)))
    await world.apply(TIGHT)
    revision = world.plane.store.revision
    for _ in range(5):
        await world.settled()
    assert world.plane.store.revision == revision


async def test_the_annotation_is_removed_when_the_object_is_corrected(world: World) -> None:
    await world.apply(widget("a", size=0))
    await world.apply(TIGHT)
    await world.apply(widget("a", size=1))
    assert await world.annotation("a") == ""


async def test_the_annotation_is_removed_when_the_crd_is_changed_back(world: World) -> None:
    await world.apply(widget("a", size=0), widget("b", size=0))
    await world.apply(TIGHT)
    await world.apply(LOOSE)
    assert [await world.annotation("a"), await world.annotation("b")] == ["", ""]
    assert "annotations" not in (await world.stored("a"))["metadata"]


@pytest.mark.slow
async def test_the_annotation_has_the_errors_of_the_newest_schema(world: World) -> None:
    await world.apply(widget("a", size=0))
    await world.apply(TIGHT)
    await world.apply(crd(size={"minimum": 7}))
    assert await world.annotation("a") == TOO_SMALL.replace("to 1", "to 7")


async def test_an_annotation_that_a_client_sets_is_corrected(world: World) -> None:
    false_annotation = {"metadata": {"name": "a", "annotations": {INVALID: "false", "other": "stays"}}}
    await world.apply({**widget("a", size=1), **false_annotation})
    assert (await world.stored("a"))["metadata"]["annotations"] == {"other": "stays"}
    await world.apply(widget("b", size=0))
    await world.apply(TIGHT)
    await world.apply({**widget("b", size=0), "metadata": {"name": "b", "annotations": {INVALID: "false, too"}}})
    assert await world.annotation("b") == TOO_SMALL


async def test_nothing_but_the_annotation_is_written(world: World) -> None:
    await world.apply(crd(colour={"type": "string"}), widget("a", size=0, colour="red"))
    before = await world.stored("a")
    await world.apply(TIGHT)
    after = await world.stored("a")
    assert after["spec"] == {"size": 0, "colour": "red"}, "what pruning hides is kept"
    assert after["metadata"].pop("annotations") == {INVALID: TOO_SMALL}
    *others, mine = after["metadata"].pop("managedFields")
    assert mine["manager"] == MANAGER
    assert mine["fieldsV1"] == {"f:metadata": {"f:annotations": {".": {}, f"f:{INVALID}": {}}}}
    assert others == before["metadata"].pop("managedFields")
    assert after == before, "the generation, too"


async def test_objects_that_are_being_deleted_are_not_annotated(world: World) -> None:
    held = {"metadata": {"name": "a", "finalizers": ["example.com/wait"]}}
    await world.apply({**widget("a", size=0), **held})
    await world.delete(world.resource("example.com", "widgets"), "default", "a")
    before = await world.stored("a")
    await world.apply(TIGHT)
    assert await world.stored("a") == before


async def test_a_definition_that_is_created_again(world: World) -> None:
    await world.apply(widget("a", size=0))
    definitions = world.resource(GROUP, RESOURCE)
    await world.delete(definitions, "", "widgets.example.com")
    key = key_of(definitions, "", "widgets.example.com")
    collection = await world.plane.reader.collection(definitions)
    await eventually_async(lambda: key not in collection.entries)
    await world.apply(LOOSE, widget("a", size=0))
    await world.apply(TIGHT)
    assert await world.annotation("a") == TOO_SMALL


async def test_objects_that_were_stored_before_the_start_are_annotated(tmp_path: Path) -> None:
    async with server.Server(Config(port=0, data=tmp_path), documents(LOOSE, widget("a", size=0))):
        pass
    async with server.Server(Config(port=0, data=tmp_path), documents(TIGHT)):
        pass
    async with server.Server(Config(port=0, data=tmp_path, annotate_invalid=True)) as running:
        world = World(running.plane)
        assert await eventually_async(lambda: world.annotation("a")) == TOO_SMALL


def test_the_number_and_length_of_errors_in_an_annotation_are_limited() -> None:
    assert message([]) == ""
    assert message([required("spec")]) == "spec: Required value"
    many = message([required(f"spec.f{n}", "x" * 2 * MAX_ERROR_TEXT) for n in range(MAX_ERRORS + 5)])
    assert many.count("Required value") == MAX_ERRORS
    assert len(many) < (MAX_ERRORS + 1) * (MAX_ERROR_TEXT + 10)
