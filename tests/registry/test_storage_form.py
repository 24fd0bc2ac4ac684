"""Custom resources in the store: JSON or CBOR, both readable, whatever the feature gate is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest

from noxu.api import codec
from noxu.control_plane import ControlPlane, running
from noxu.features import Features
from noxu.manifests import loading
from noxu.registry.cache import entries_of
from noxu.registry.draft import Action, Body, Options, WriteRequest
from noxu.registry.offload import LOOP_LIMIT
from noxu.registry.resource import Resource
from noxu.registry.storage_form import CBOR, as_cbor, as_json
from noxu.registry.stored_object import StoredObject, new_entry, object_at
from noxu.values import Json, Object
from noxu_storage.memory import MemoryStore
from noxu_storage.sqlite import SqliteStore
from noxu_storage.store import Store
from noxu_storage.types import Batch, Key, KeyValue, Prefix
from tests import definitions
from tests.control_planes import assemble
from tests.registry.world import version, widget, widgets

DEFINITION: Final = definitions.widgets(version())
WIDGETS: Final = Prefix("example.com/widgets")
ON, OFF = Features(cbor=True), Features()


@asynccontextmanager
async def plane_over(store: Store, features: Features) -> AsyncIterator[ControlPlane]:
    async with running(assemble(store, features=features)) as plane:
        await loading.apply(plane, DEFINITION)
        yield plane


def resource_of(plane: ControlPlane) -> Resource:
    found = plane.served_resources.current.find("example.com", "v1", "widgets")
    assert found is not None
    return found


async def write(plane: ControlPlane, action: Action, name: str, value: Object, **options: Json) -> None:
    body = Body(codec.encode(value, sort_keys=False))
    target = "" if action is Action.CREATE else name
    request = WriteRequest(action, resource_of(plane), "default", target, body=body, options=Options(**options))
    await plane.writer.write(request)


async def stored(store: Store) -> dict[str, bytes]:
    return {item.key.name: item.value for item in (await store.list(WIDGETS)).items}


async def shown(plane: ControlPlane, name: str) -> Object:
    entry = await plane.reader.get(resource_of(plane), "default", name)
    return object_at(entry, resource_of(plane))


VALUES: Final[list[Object]] = [
    {},
    {"a": 1, "b": [1.5, -1, 2**63 - 1, -(2**63), 1e21, 1e-7, True, None, "ü", "<&>\u2028"]},
    {"zz": {"b": 1, "a": {}}, "aaa": []},
]


@pytest.mark.parametrize("value", VALUES)
def test_json_survives_cbor(value: Object) -> None:
    text = codec.encode(value, sort_keys=True)
    assert as_cbor(value).startswith(CBOR)
    assert as_json(as_cbor(codec.decode_stored(text))) == text
    assert as_json(text) is text


def test_malformed_cbor_is_not_json_either() -> None:
    assert as_json(b"\xd9\xd9\xf7\xa1") == b"\xd9\xd9\xf7\xa1"


def test_entries() -> None:
    storage = widgets().storage
    value: Object = {**widget(size=1), "metadata": {"name": "a", "uid": "1"}}
    key = Key(storage.collection, "default/", "a")
    made = new_entry(key, storage, value, as_cbor=True)
    assert (made.written.startswith(CBOR), made.is_cbor, made.stored) == (
        True,
        True,
        codec.encode(value, sort_keys=True),
    )
    read = StoredObject(key, made.written, 7)
    assert (read.stored, read.is_cbor, read.with_revision(8).is_cbor) == (made.stored, True, True)
    assert object_at(read, storage) == object_at(StoredObject(key, made.stored, 7), storage)
    plain = new_entry(key, storage, value)
    assert (plain.written, plain.is_cbor) == (plain.stored, False)


async def test_many_entries_are_decoded_in_a_thread() -> None:
    value = {**widget(), "spec": {"color": "x" * LOOP_LIMIT}}
    items = [KeyValue(Key("example.com/widgets", "default/", "a"), as_cbor(value), 3)]
    [entry] = await entries_of(items)
    assert (codec.decode_stored(entry.stored), entry.revision) == (value, 3)


async def test_the_gate_decides_the_form_of_writes_and_not_of_reads(tmp_path: Path) -> None:
    """As upstream's TestCBORStorageEnablement: written without the gate, with it, and without it again."""
    async with plane_over(await SqliteStore.open(tmp_path / "db"), OFF) as plane:
        await write(plane, Action.CREATE, "json", widget("json", size=1))
        assert not (await stored(plane.store))["json"].startswith(CBOR)
    async with plane_over(await SqliteStore.open(tmp_path / "db"), ON) as plane:
        before = await shown(plane, "json")
        await write(plane, Action.CREATE, "cbor", widget("cbor", size=2))
        forms = {name: value.startswith(CBOR) for name, value in (await stored(plane.store)).items()}
        assert forms == {"json": False, "cbor": True}
        await write(plane, Action.REPLACE, "json", before)  # changes nothing but the form
        rewritten = await shown(plane, "json")
        assert rewritten["metadata"]["resourceVersion"] != before["metadata"]["resourceVersion"]
        assert (await stored(plane.store))["json"].startswith(CBOR)
        await write(plane, Action.REPLACE, "json", rewritten)  # changes nothing
        assert await shown(plane, "json") == rewritten
    async with plane_over(await SqliteStore.open(tmp_path / "db"), OFF) as plane:
        assert [(await shown(plane, name))["spec"] for name in ("json", "cbor")] == [{"size": 1}, {"size": 2}]
        await write(
            plane,
            Action.REPLACE,
            "cbor",
            widget("cbor", size=3) | {"metadata": (await shown(plane, "cbor"))["metadata"]},
        )
        assert not (await stored(plane.store))["cbor"].startswith(CBOR)


async def test_only_custom_resources_are_stored_as_cbor() -> None:
    async with plane_over(MemoryStore(), ON) as plane:
        await write(plane, Action.CREATE, "a", widget("a"))
        forms = {item.key.collection: item.value.startswith(CBOR) for item in (await plane.store.list(Prefix())).items}
        assert forms.pop("example.com/widgets")
        assert forms
        assert not any(forms.values())


async def test_history_is_read_in_both_forms() -> None:
    async with plane_over(MemoryStore(), ON) as plane:
        await write(plane, Action.CREATE, "a", widget("a", size=1))
        events = [event async for batch in _until(plane, plane.store.revision) for event in batch.events]
        written = [event.value for event in events if event.key.name == "a"]
        assert [(value or b"").startswith(CBOR) for value in written] == [True]


async def _until(plane: ControlPlane, revision: int) -> AsyncIterator[Batch]:
    async for batch in plane.store.watch(WIDGETS, after=1):
        yield batch
        if batch.revision >= revision:
            return


async def test_a_large_write_whose_client_has_left_is_decoded_outside_the_loop() -> None:
    async with plane_over(MemoryStore(), ON) as plane:
        collection = await plane.reader.collection(resource_of(plane))
        value = {**widget("a"), "spec": {"color": "x" * LOOP_LIMIT}}
        value["metadata"] |= {"namespace": "default", "uid": "1"}
        key = Key("example.com/widgets", "default/", "a")
        revision = await plane.store.put(key, as_cbor(value), expected=0)
        await asyncio.wait_for(plane.cache.reached(revision), 60)
        assert codec.decode_stored(collection.entries[key].stored) == value
