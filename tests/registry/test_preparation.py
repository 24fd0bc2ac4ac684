"""What is compiled from schemas is made at the first request: it is what would be made when a definition is established."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from copy import deepcopy
from typing import Any

import pytest

from conformance import corpus
from noxu.api import codec
from noxu.crd import types
from noxu.crd.types import GROUP, RESOURCE
from noxu.registry import offload
from noxu.registry import resource as resource_module
from noxu.registry.conversion.converters import entries_at
from noxu.registry.custom import stored_schemas, versions_of
from noxu.registry.resource import Resource, Versions, prepared
from noxu.registry.stored_object import key_of
from noxu.schema.pruning import prune_defaults
from noxu.schema.structural import parse
from noxu.values import Json, Object
from tests.clocks import ManualClock
from tests.controllers.conftest import World, a_world, custom, definition
from tests.faults.flaky import FlakyStore
from tests.optional import needs_data
from tests.registry.world import SCHEMA, version, widgets
from tests.rows import rows

LARGE: Object = {
    "type": "object",
    "properties": {f"field{n}": {"type": "string", "description": "x" * 100} for n in range(500)},
}
NESTED: Object = {"type": "object", "description": '"openAPIV3Schema":{"type":"object"}', "default": {"schema": SCHEMA}}
DESCRIBING: Object = {
    "type": "object",
    "properties": {"openAPIV3Schema": {"type": "object", "properties": {"openAPIV3Schema": {"type": "object"}}}},
}
SCHEMAS: dict[str, list[Json]] = {
    "one version": [SCHEMA],
    "equal versions": [SCHEMA, SCHEMA],
    "versions of which one begins as the other": [{"type": "object"}, {"type": "object", "description": "x"}],
    "a schema that describes definitions": [DESCRIBING, DESCRIBING["properties"]["openAPIV3Schema"]],
    "texts that look like a schema": [NESTED, {"type": "object"}],
    "escaped characters": [{"type": "object", "description": '<a>&\u2028é"'}, {"type": "object", "description": "é"}],
    "a limit of minus zero": [{"type": "object", "properties": {"a": {"type": "number", "maximum": -0.0}}}],
    "no schema": [None, SCHEMA],
    "a large schema": [LARGE, SCHEMA],
}


def with_schemas(schemas: list[Json]) -> Object:
    """A definition with a version for each schema."""
    found = definition()
    [first] = found["spec"]["versions"]
    found["spec"]["versions"] = [
        {**first, "name": f"v{n}", "storage": n == 1, "schema": {"openAPIV3Schema": schema}}
        for n, schema in enumerate(schemas, 1)
    ]
    return found


def check_law(lazy: Versions, crd: Object) -> None:
    """Everything that depends on schemas is equal to what is made from the definition itself."""
    eager = versions_of(deepcopy(crd), 0)
    for found, expected in zip(lazy.all, eager.all, strict=True):
        declared = expected.raw_schema
        assert found.declared_schema == declared
        assert repr(found.schema) == repr(None if declared is None else prune_defaults(parse(declared)))
        for name in ("serves_as_stored", "has_embedded", "has_rules", "columns", "selectable_fields", "subresources"):
            assert getattr(found, name) == getattr(expected, name), name


def is_prepared(resource: Resource) -> bool:
    return "schema" in vars(resource)


@pytest.mark.parametrize("schemas", SCHEMAS.values(), ids=SCHEMAS)
@pytest.mark.parametrize("is_stored", [True, False], ids=["in the definition", "in bytes of their own"])
def test_what_is_made_later_is_what_would_be_made_at_once(schemas: list[Json], *, is_stored: bool) -> None:
    crd = with_schemas(schemas)
    crd["status"] = {"acceptedNames": crd["spec"]["names"]}
    lazy = versions_of(deepcopy(crd), 0)
    stored = codec.encode(crd, sort_keys=False) if is_stored else b""
    lazy.keep_encoded(stored)
    assert [resource.raw_schema for resource in lazy.all] == [None] * len(schemas)
    encoded = [resource._encoded_schema for resource in lazy.all]
    assert [is_part_of(part, stored) for part in encoded] == [is_stored and schema is not None for schema in schemas]
    check_law(lazy, crd)


@rows("schemas", SCHEMAS.values(), ids=SCHEMAS)
def test_schemas_are_found_between_the_other_parts_of_a_stored_spec(schemas: list[Json]) -> None:
    spec = types.decode(with_schemas(schemas)).value["spec"]
    stored = encoded_spec(spec)
    assert stored_schemas(memoryview(stored), spec) == {
        version["name"]: codec.encode(types.write(types.VALIDATION, version["schema"]), sort_keys=False)[19:-1]
        for version in spec["versions"]
        if version["schema"].get("openAPIV3Schema") is not None
    }
    for other in (stored[1:], stored[:-1], b"{}", stored.replace(b'"v1"', b'"v3"')):
        assert stored_schemas(memoryview(other), spec) is None


def encoded_spec(spec: Object) -> bytes:
    return codec.encode(types.write(types.SPEC, spec), sort_keys=False)


@pytest.mark.parametrize("at", [0, 1])
def test_schemas_are_not_found_if_one_reads_as_the_end_of_a_version_and_the_beginning_of_the_next(at: int) -> None:
    """As a default whose fields are in the order of declaration, which decoding does not leave."""
    both = [{"a": {"b": {}}}, {"name": "v2", "served": True, "storage": False, "schema": {"openAPIV3Schema": 1}}]
    schemas: list[Json] = [SCHEMA, SCHEMA]
    schemas[at] = {"type": "object", "default": both}
    spec = with_schemas(schemas)["spec"]
    assert stored_schemas(memoryview(encoded_spec(spec)), spec) is None


def test_schemas_that_are_served_in_another_form_are_not_looked_for() -> None:
    spec = {**types.decode(with_schemas([SCHEMA])).value["spec"], "preserveUnknownFields": True}
    assert stored_schemas(memoryview(encoded_spec(spec)), spec) is None


def is_part_of(part: bytes | memoryview, whole: bytes) -> bool:
    """Whether bytes share the memory of others."""
    return isinstance(part, memoryview) and part.obj is whole


@needs_data("crds")
async def test_definitions_of_other_projects(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their schemas need not be encoded and looked for."""
    looked_for: list[bool] = []
    monkeypatch.setattr(resource_module, "_part_of", lambda *_: looked_for.append(True))
    async with a_world(FlakyStore(), ManualClock()) as world:
        for found in list(corpus.definitions())[::40]:
            await world.apply(found.value)
            versions = world.plane.served_resources.current.defined[found.value["metadata"]["name"]]
            stored = await stored_bytes(world, found.value["metadata"]["name"])
            assert all(is_part_of(resource._encoded_schema, stored) for resource in versions.all)
            assert not any(map(is_prepared, versions.all))
            check_law(versions, await world.get(world.resource(RESOURCE, GROUP), found.value["metadata"]["name"]))
    assert not looked_for


async def stored_bytes(world: World, name: str) -> bytes:
    definitions = world.resource(RESOURCE, GROUP)
    return (await world.plane.reader.collection(definitions)).entries[key_of(definitions, "", name)].stored


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with a_world(FlakyStore(), ManualClock()) as running_world:
        yield running_world


async def test_a_schema_is_kept_once_also_after_its_definition_has_changed(world: World) -> None:
    await world.apply(definition())
    versions = world.plane.served_resources.current.defined["widgets.example.com"]
    before = await stored_bytes(world, "widgets.example.com")
    assert is_part_of(versions.storage._encoded_schema, before)
    await world.apply({**definition(), "metadata": {**definition()["metadata"], "labels": {"a": "b"}}})
    after = await stored_bytes(world, "widgets.example.com")
    assert after != before
    assert world.plane.served_resources.current.defined["widgets.example.com"] is versions
    assert is_part_of(versions.storage._encoded_schema, after)


async def test_the_first_write_prepares_all_versions(world: World) -> None:
    await world.apply(with_schemas([SCHEMA, {"type": "object"}]))
    versions = world.plane.served_resources.current.defined["widgets.example.com"]
    assert [is_prepared(resource) for resource in versions.all] == [False, False]
    await world.apply(custom("a"))
    assert [is_prepared(resource) for resource in versions.all] == [True, True]
    assert versions.is_prepared


async def test_objects_that_are_read_without_a_request_prepare_their_resource(world: World) -> None:
    await world.apply(definition(), custom("a"))
    await world.apply(with_schemas([LARGE]))
    resource = world.plane.served_resources.current.defined["widgets.example.com"].storage
    [entry] = (await world.plane.reader.collection(resource)).entries.values()
    assert not is_prepared(resource)
    assert (await entries_at([entry], resource))[0].key.name == "a"
    assert resource.versions.is_prepared


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each time that a resource is prepared, whether that is in the main thread."""
    found: list[bool] = []
    prepare = Versions.prepare

    def observed(versions: Versions) -> None:
        found.append(threading.current_thread() is threading.main_thread())
        prepare(versions)

    monkeypatch.setattr(Versions, "prepare", observed)
    return found


async def test_a_small_schema_is_prepared_in_the_loop(threads: list[bool]) -> None:
    versions = widgets()
    versions.keep_encoded()
    await prepared(versions)
    await prepared(versions)
    assert (threads, versions.is_prepared) == ([True], True)


async def test_requests_wait_for_one_thread_that_prepares_a_large_schema(threads: list[bool]) -> None:
    versions = widgets(version(schema=LARGE))
    versions.keep_encoded()
    assert versions.storage.size > offload.LOOP_LIMIT
    await asyncio.gather(*(prepared(versions) for _ in range(3)))
    assert (threads, versions.is_prepared, versions.preparing) == ([False], True, None)


async def test_a_client_that_leaves_does_not_end_the_work_for_others(threads: list[bool]) -> None:
    versions = widgets(version(schema=LARGE))
    versions.keep_encoded()
    first, second = (asyncio.ensure_future(prepared(versions)) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    await second
    assert (first.cancelled(), threads, versions.is_prepared) == (True, [False], True)


async def test_after_a_failure_the_next_request_prepares(monkeypatch: pytest.MonkeyPatch) -> None:
    versions, failures = widgets(version(schema=LARGE)), iter([RuntimeError("planned")])
    versions.keep_encoded()
    prepare = Versions.prepare

    def failing(self: Versions, *args: Any) -> None:
        for failure in failures:
            raise failure
        prepare(self, *args)

    monkeypatch.setattr(Versions, "prepare", failing)
    with pytest.raises(RuntimeError, match="planned"):
        await prepared(versions)
    assert versions.preparing is None
    await prepared(versions)
    assert versions.is_prepared
