"""Loading manifests: those that wait as JSON are written, and refused, as those that are decoded."""

from __future__ import annotations

import json
from typing import Any

import pytest

from noxu.apiserver import loading, manifests
from noxu.apiserver.control_plane import assemble, running
from noxu.apiserver.manifests import Document
from noxu.apiserver.values import Json
from noxu.storage.memory import MemoryStore
from noxu.storage.types import EVERYTHING
from tests.clocks import StoppedClock
from tests.controllers.conftest import config_map, custom, definition
from tests.registry.world import CountedIdentifiers

LARGE: dict[str, Json] = {"type": "object", "properties": {f"f{n}": {"type": "string"} for n in range(2_000)}}


def with_schema(schema: Json) -> Any:
    found = definition()
    found["spec"]["versions"][0]["schema"] = schema
    return found


def with_metadata(**metadata: Json) -> Any:
    found = config_map("a")
    return {**found, "metadata": {**found["metadata"], **metadata}}


V1BETA1 = {
    **definition(),
    "apiVersion": "apiextensions.k8s.io/v1beta1",
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "version": "v1",
        "names": {"plural": "widgets", "kind": "Widget"},
        "validation": {"openAPIV3Schema": {"type": "object"}},
    },
}

MANIFESTS: dict[str, list[Json]] = {
    "a definition and its object": [custom("a"), definition()],
    "a large definition": [with_schema({"openAPIV3Schema": LARGE}), custom("a")],
    "an object whose definition is refused": [custom("a"), with_schema({"openAPIV3Schema": {"type": "unknown"}})],
    "a definition without versions": [{**definition(), "spec": {"group": "example.com"}}, custom("a")],
    "a definition whose spec is a text": [{**definition(), "spec": "text"}],
    "a definition whose names are a list": [{**definition(), "spec": {**definition()["spec"], "names": [1]}}],
    "a v1beta1 definition": [V1BETA1, custom("a")],
    "the same object twice": [config_map("a", key="1"), config_map("a", key="2")],
    "an exported object": [with_metadata(resourceVersion="17", uid="u", managedFields=[])],
    "an exported object with version 0": [with_metadata(resourceVersion="0")],
    "a resourceVersion that is no text": [with_metadata(resourceVersion=17)],
    "a generated name": [with_metadata(name="", generateName="a-")],
    "metadata that is no object": [{**config_map("a"), "metadata": "text"}],
    "no metadata": [{"apiVersion": "v1", "kind": "ConfigMap"}],
    "an unknown kind": [{"apiVersion": "example.com/v1", "kind": "Other", "metadata": {"name": "a"}}],
    "a kind in a version that is not served": [{**config_map("a"), "apiVersion": "v2"}],
    "an apiVersion that is no text": [{**config_map("a"), "apiVersion": 1}],
    "repeated and unknown fields": [{**config_map("a"), "other": 1}],
    "characters and numbers": [{**config_map("a", text='<&>\u2028\u00e9"'), "binaryData": {"x": "AA=="}}, with_metadata(n=2**70)],
}  # fmt: skip


def documents(values: list[Json]) -> list[Document]:
    return list(manifests.read(json.dumps({"kind": "List", "items": values}).encode(), "objects.json"))


async def loaded(found: list[Document]) -> tuple[list[str], dict[Any, bytes]]:
    """The errors, and everything that is stored."""
    store, identifiers = MemoryStore(), CountedIdentifiers([f"{n:05}" for n in range(100)]).identifiers
    async with running(assemble(store, clock=StoppedClock(), identifiers=identifiers)) as plane:
        errors = await loading.load(plane, found)
        return errors, {item.key: item.value for item in (await store.list(EVERYTHING)).items}


@pytest.mark.parametrize("values", MANIFESTS.values(), ids=MANIFESTS)
async def test_packed_documents_are_loaded_as_others(values: list[Json]) -> None:
    plain = loading.ready(documents(values))
    packed = loading.ready(map(loading.packed, documents(values)))
    assert await loaded(packed) == await loaded(plain)


async def test_an_exported_object_replaces_the_one_of_its_name() -> None:
    """As in the second start of a server with the same files: its uid and resourceVersion are those of another object."""
    exported = with_metadata(uid="3932ee50-4c2b-4e77-9bfb-45eeb4ec220f", resourceVersion="7")
    async with running(assemble(MemoryStore())) as plane:
        assert [await loading.load(plane, loading.ready(documents([exported]))) for _ in range(2)] == [[], []]


def test_a_packed_document_has_what_identifies_it_and_its_json() -> None:
    [document] = documents([with_schema({"openAPIV3Schema": LARGE})])
    packed = loading.packed(document)
    assert json.loads(packed.packed) == document.value
    assert packed.value == {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "names": {"plural": "widgets", "kind": "Widget"}},
    }
    assert packed[3:8] == document[3:8]
