"""Definitions that another server stored as v1beta1: they are read as v1, served, and not structural."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest

from noxu.control_plane import ControlPlane, running
from noxu.crd.types import GROUP, RESOURCE
from noxu.registry.draft import Action, Body, WriteRequest
from noxu.registry.resource import Resource
from noxu.registry.stored_object import body_at
from noxu.values import Object
from noxu_storage.memory import MemoryStore
from noxu_storage.types import Key
from tests.control_planes import assemble
from tests.timing import eventually_async

NAME = "foos.example.com"
STORED = {
    "apiVersion": "apiextensions.k8s.io/v1beta1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": NAME, "uid": "u", "generation": 1, "creationTimestamp": "2020-01-02T03:04:05Z"},
    "spec": {
        "group": "example.com",
        "version": "v1",
        "names": {"plural": "foos", "kind": "Foo"},
        "validation": {"openAPIV3Schema": {"properties": {"a": {"type": "string"}}}},
        "additionalPrinterColumns": [{"name": "A", "type": "string", "JSONPath": ".a"}],
    },
}
SPEC = {
    "group": "example.com",
    "names": {"plural": "foos", "singular": "foo", "kind": "Foo", "listKind": "FooList"},
    "scope": "Namespaced",
    "versions": [
        {
            "name": "v1",
            "served": True,
            "storage": True,
            "schema": {"openAPIV3Schema": {"properties": {"a": {"type": "string"}}}},
            "additionalPrinterColumns": [{"name": "A", "type": "string", "jsonPath": ".a"}],
        }
    ],
    "conversion": {"strategy": "None"},
    "preserveUnknownFields": True,
}


@pytest.fixture
async def plane() -> AsyncIterator[ControlPlane]:
    store = MemoryStore()
    await store.put(Key(f"{GROUP}/{RESOURCE}", "", NAME), json.dumps(STORED).encode(), expected=0)
    async with running(assemble(store)) as found:
        yield found


def definitions(plane: ControlPlane) -> Resource:
    resource = plane.served_resources.current.find(GROUP, "v1", RESOURCE)
    assert resource is not None
    return resource


async def read(plane: ControlPlane) -> Object:
    resource = definitions(plane)
    value: Object = json.loads(body_at(await plane.reader.get(resource, "", NAME), resource))
    return value


async def test_it_is_read_as_v1(plane: ControlPlane) -> None:
    value = await read(plane)
    assert (value["apiVersion"], value["spec"]) == ("apiextensions.k8s.io/v1", SPEC)


async def test_it_is_established_and_not_structural(plane: ControlPlane) -> None:
    async def has_all() -> bool:
        return len((await read(plane))["status"]["conditions"] or []) == 3

    await eventually_async(has_all)
    found = {one["type"]: (one["status"], one["reason"]) for one in (await read(plane))["status"]["conditions"]}
    assert found == {
        "NamesAccepted": ("True", "NoConflicts"),
        "Established": ("True", "InitialNamesAccepted"),
        "NonStructuralSchema": ("True", "Violations"),
    }
    assert plane.served_resources.current.find("example.com", "v1", "foos") is not None


async def test_an_update_stores_it_as_v1(plane: ControlPlane) -> None:
    resource = definitions(plane)
    patch = Body(b'{"metadata":{"labels":{"a":"b"}}}', "application/merge-patch+json")
    await plane.writer.write(WriteRequest(Action.PATCH, resource, "", NAME, body=patch))
    kept = await plane.store.get(Key(resource.collection, "", NAME))
    assert kept is not None
    assert json.loads(kept.value)["spec"] == SPEC


async def test_its_objects_keep_unknown_fields(plane: ControlPlane) -> None:
    await eventually_async(lambda: plane.served_resources.current.find("example.com", "v1", "foos") is not None)
    resource = plane.served_resources.current.find("example.com", "v1", "foos")
    assert resource is not None
    sent = {
        "apiVersion": "example.com/v1",
        "kind": "Foo",
        "metadata": {"name": "x"},
        "a": "b",
        "spec": {"c": [{"d": 1}]},
    }
    written = await plane.writer.write(WriteRequest(Action.CREATE, resource, "default", body=Body(sent)))
    value = json.loads(written.body(resource))
    assert (value["a"], value["spec"]) == ("b", {"c": [{"d": 1}]})
