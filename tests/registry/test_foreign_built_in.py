"""Objects of built-in kinds that another program has put into etcd as JSON: read as Go decodes it into structs.

Source: apimachinery's runtime/serializer/json and sigs.k8s.io/json, not strict.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest

from noxu.api.errors import ApiError
from noxu.control_plane import ControlPlane, resource_of, running
from noxu.registry.resource import Resource
from noxu.registry.stored_object import body_at, labels_of
from noxu.values import Json, Object
from noxu_storage.memory import MemoryStore
from noxu_storage.types import Key
from tests.control_planes import assemble

KEY = Key("/configmaps", "default/", "a")
MAP: Object = {
    "kind": "ConfigMap",
    "apiVersion": "v1",
    "metadata": {"name": "a", "namespace": "default", "uid": "u"},
    "data": {"k": "v"},
}


class SharedStore(MemoryStore):
    shared = True


@pytest.fixture
async def plane() -> AsyncIterator[ControlPlane]:
    async with running(assemble(SharedStore())) as plane:
        yield plane


@pytest.fixture
def maps(plane: ControlPlane) -> Resource:
    return resource_of(plane.served_resources, "", "configmaps")


def changed(**fields: Json) -> Object:
    return {name: value for name, value in {**MAP, **fields}.items() if value is not ...}


def with_metadata(**fields: Json) -> Object:
    return changed(metadata={**MAP["metadata"], **fields})


READ: list[tuple[str, Object, Object]] = [
    ("as it is", MAP, MAP),
    ("in another order", dict(reversed(MAP.items())), MAP),
    ("unknown fields are dropped", changed(more=1), MAP),
    (
        "fields have the order of declaration",
        changed(immutable=False),
        changed(data=..., immutable=False) | {"data": {"k": "v"}},
    ),
    ("unknown metadata", with_metadata(more=1), MAP),
    ("names in other case are unknown", changed(Data={"k": "w"}, KIND="Pod"), MAP),
    ("null is none", changed(data=None, binaryData=None, immutable=None), changed(data=...)),
    ("a null item is empty", changed(data={"k": None}), changed(data={"k": ""})),
    ("keys of maps are sorted", changed(data={"z": "1", "k": "v"}), changed(data={"k": "v", "z": "1"})),
    ("null in metadata", with_metadata(labels=None, finalizers=None), MAP),
]


@pytest.mark.parametrize(("stored", "served"), [row[1:] for row in READ], ids=[row[0] for row in READ])
async def test_what_is_served(plane: ControlPlane, maps: Resource, stored: Object, served: Object) -> None:
    await plane.store.put(KEY, json.dumps(stored, indent=1).encode(), expected=0)
    entry = await plane.reader.get(maps, "default", "a")
    found = json.loads(body_at(entry, maps))
    del found["metadata"]["resourceVersion"]
    assert json.dumps(found) == json.dumps(served), "the order, too"
    assert labels_of(entry) == {}


UNREADABLE: list[tuple[str, Object, str]] = [
    ("a number for a text", changed(data={"k": 1}), "json: cannot unmarshal number into Go struct field ConfigMap.data of type string"),
    ("a list for a map", changed(data=[]), "json: cannot unmarshal array into Go struct field ConfigMap.data of type map[string]string"),
    ("a text for a number", with_metadata(generation="1"), "json: cannot unmarshal string into Go struct field ObjectMeta.metadata.generation of type int64"),
    ("no version", changed(apiVersion=...), "Object 'apiVersion' is missing in '{}'"),
    ("another version", changed(apiVersion="v9"), 'no kind "ConfigMap" is registered for version "v9" in scheme "pkg/runtime/scheme.go:111"'),
]  # fmt: skip


@pytest.mark.parametrize(("stored", "message"), [row[1:] for row in UNREADABLE], ids=[row[0] for row in UNREADABLE])
async def test_what_cannot_be_decoded(plane: ControlPlane, maps: Resource, stored: Object, message: str) -> None:
    text = json.dumps(stored)
    await plane.store.put(KEY, text.encode(), expected=0)
    with pytest.raises(ApiError) as refused:
        body_at(await plane.reader.get(maps, "default", "a"), maps)
    assert (refused.value.code, refused.value.message) == (500, message.replace("{}", text))


async def test_a_store_of_one_server_has_only_what_was_decoded_when_it_was_written() -> None:
    async with running(assemble(MemoryStore())) as plane:
        maps = resource_of(plane.served_resources, "", "configmaps")
        await plane.store.put(KEY, json.dumps(changed(more=1)).encode(), expected=0)
        assert b'"more":1' in body_at(await plane.reader.get(maps, "default", "a"), maps)
