"""Custom resources that another program has put into the store: what is served, and what an update makes of them.

The answers are those of apiextensions-apiserver to the same values in its etcd.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from noxu.api.errors import ApiError
from noxu.control_plane import ControlPlane, running
from noxu.registry.draft import Action, Body, WriteRequest
from noxu.registry.stored_object import body_at
from noxu.values import Json, Object
from noxu_storage.memory import MemoryStore
from noxu_storage.types import Key
from tests.control_planes import assemble
from tests.definitions import version, widgets
from tests.timing import eventually_async

KEY = Key("example.com/widgets", "default/", "a")
SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {"type": "object", "default": {}, "properties": {"size": {"type": "integer", "default": 1}}}
    },
}
V1 = version(SCHEMA)
OTHER_SCHEMA = {
    "type": "object",
    "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}},
}
V2 = {"name": "v2", "served": True, "storage": False, "schema": {"openAPIV3Schema": OTHER_SCHEMA}}
CRD: Object = widgets(V1, V2)
METADATA: Object = {
    "name": "a",
    "namespace": "default",
    "uid": "u",
    "generation": 1,
    "creationTimestamp": "2020-01-02T03:04:05Z",
}
WIDGET: Object = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": METADATA, "spec": {"size": 1}}

Serve = Callable[[bytes], Awaitable[Object]]


@pytest.fixture
async def plane() -> AsyncIterator[ControlPlane]:
    async with running(assemble(MemoryStore())) as plane:
        definitions = plane.served_resources.current.find("apiextensions.k8s.io", "v1", "customresourcedefinitions")
        assert definitions is not None
        await plane.writer.write(WriteRequest(Action.CREATE, definitions, body=Body(CRD)))
        await eventually_async(lambda: plane.served_resources.current.find("example.com", "v1", "widgets") is not None)
        yield plane


@pytest.fixture
def serve(plane: ControlPlane) -> Serve:
    """Store a value and read it at v1. Raises ApiError."""

    async def put(value: bytes) -> Object:
        await plane.store.put(KEY, value, expected=0)
        resource = plane.served_resources.current.find("example.com", "v1", "widgets")
        assert resource is not None
        served: Object = json.loads(body_at(await plane.reader.get(resource, "default", "a"), resource))
        return served

    return put


def metadata(**changes: Json) -> Object:
    return {**WIDGET, "metadata": {**METADATA, **changes}}


SERVED: list[tuple[str, Object, Object]] = [
    ("as it is", WIDGET, WIDGET),
    ("unknown fields are pruned", {**WIDGET, "spec": {"size": 2, "more": 1}, "more": 2}, {**WIDGET, "spec": {"size": 2}}),
    ("defaults are filled in", {**WIDGET, "spec": {}}, WIDGET),
    ("a selfLink is served", metadata(selfLink="/x"), metadata(selfLink="/x")),
    ("unknown metadata is dropped", metadata(more=1), WIDGET),
    ("a missing generation is 1", metadata(generation=None), WIDGET),
    ("another name", metadata(name="b", namespace="other"), metadata(name="b", namespace="other")),
    ("another kind", {**WIDGET, "kind": "Zoo"}, {**WIDGET, "kind": "Zoo"}),
    ("metadata that is null", {**WIDGET, "metadata": None}, {**WIDGET, "metadata": {"generation": 1}}),
    ("no metadata", {"apiVersion": "example.com/v1", "kind": "Widget"}, {**WIDGET, "metadata": {"generation": 1}}),
    ("another version has its own defaults", {**WIDGET, "apiVersion": "example.com/v2", "spec": {}}, {**WIDGET, "spec": {}}),
]  # fmt: skip


@pytest.mark.parametrize(("stored", "served"), [row[1:] for row in SERVED], ids=[row[0] for row in SERVED])
async def test_what_is_served(serve: Serve, stored: Object, served: Object) -> None:
    stored = (
        {**stored, "metadata": stored["metadata"] and {**stored["metadata"], "resourceVersion": "7"}}
        if "metadata" in stored
        else stored
    )
    found = await serve(json.dumps(stored, indent=1).encode())
    assert found["metadata"].pop("resourceVersion") != "7"
    assert found == served


UNREADABLE: list[tuple[str, bytes, str]] = [
    ("not JSON", b"not json", "invalid character 'o' in literal null (expecting 'u')"),
    ("nothing", b"", "unexpected end of JSON input"),
    ("two objects", b"{}\n{}", "invalid character '{' after top-level value"),
    ("a list", b"[1]", "json: cannot unmarshal array into Go value of type map[string]interface {}"),
    ("a text", b'"a"', "json: cannot unmarshal string into Go value of type map[string]interface {}"),
    ("null", b"null", "Object 'Kind' is missing in 'null'"),
    ("no kind", b'{"apiVersion":"example.com/v1"}', "Object 'Kind' is missing in '{\"apiVersion\":\"example.com/v1\"}'"),
    ("a kind that is a number", b'{"kind":5}', "Object 'Kind' is missing in '{\"kind\":5}'"),
    ("metadata that is a text", b'{"kind":"Widget","metadata":"x"}', "invalid metadata: expected object, got string"),
    ("metadata that is a list", b'{"kind":"Widget","metadata":[]}', "invalid metadata: expected object, got []interface {}"),
    ("another group", b'{"kind":"Widget","apiVersion":"x.y/v1"}', "request to convert CR from an invalid group/version: x.y/v1"),
]  # fmt: skip


@pytest.mark.parametrize(("stored", "message"), [row[1:] for row in UNREADABLE], ids=[row[0] for row in UNREADABLE])
async def test_what_cannot_be_read(serve: Serve, stored: bytes, message: str) -> None:
    with pytest.raises(ApiError) as caught:
        await serve(stored)
    assert (caught.value.code, caught.value.message) == (500, message)


async def test_an_empty_patch_stores_the_storage_version(plane: ControlPlane, serve: Serve) -> None:
    await serve(json.dumps({**WIDGET, "apiVersion": "example.com/v2", "spec": {}}).encode())
    resource = plane.served_resources.current.find("example.com", "v1", "widgets")
    assert resource is not None
    patch = Body(b"{}", "application/merge-patch+json")
    await plane.writer.write(WriteRequest(Action.PATCH, resource, "default", "a", body=patch))
    found = await plane.store.get(KEY)
    assert found is not None
    value = json.loads(found.value)
    assert (value["apiVersion"], value["spec"], value["metadata"]["generation"]) == ("example.com/v1", {"size": 1}, 2)


DEFINITIONS = "apiextensions.k8s.io/customresourcedefinitions"
BAD: list[tuple[str, bytes, str]] = [
    ("not JSON", b"not json", "invalid character 'o' in literal null (expecting 'u')"),
    ("a wrong type", b'{"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1","metadata":{"name":"bad.example.com"},"spec":{"group":1}}', "json: cannot unmarshal number into Go struct field CustomResourceDefinitionSpec.spec.group of type string"),
    ("another kind", b'{"kind":"Foo","apiVersion":"apiextensions.k8s.io/v1","metadata":{"name":"bad.example.com"}}', 'no kind "Foo" is registered for version "apiextensions.k8s.io/v1" in scheme "pkg/runtime/scheme.go:111"'),
]  # fmt: skip


@pytest.mark.parametrize(("stored", "message"), [row[1:] for row in BAD], ids=[row[0] for row in BAD])
async def test_a_definition_that_cannot_be_read_does_not_disturb_others(stored: bytes, message: str) -> None:
    store = MemoryStore()
    await store.put(Key(DEFINITIONS, "", "bad.example.com"), stored, expected=0)
    async with running(assemble(store)) as plane:
        definitions = plane.served_resources.current.find("apiextensions.k8s.io", "v1", "customresourcedefinitions")
        assert definitions is not None
        await plane.writer.write(WriteRequest(Action.CREATE, definitions, body=Body(CRD)))
        assert plane.served_resources.current.find("example.com", "v1", "widgets") is not None
        with pytest.raises(ApiError) as caught:
            body_at(await plane.reader.get(definitions, "", "bad.example.com"), definitions)
        assert (caught.value.code, caught.value.message) == (500, message)
