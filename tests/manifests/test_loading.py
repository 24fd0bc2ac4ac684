"""Loading manifests: those that wait as JSON are written, and refused, as those that are decoded."""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from noxu.control_plane import resource_of, running
from noxu.manifests import documents as manifests
from noxu.manifests import loading
from noxu.manifests.documents import Document
from noxu.registry.resource import Resource
from noxu.registry.stored_object import key_of
from noxu.values import Json
from noxu_storage import database
from noxu_storage.memory import MemoryStore
from noxu_storage.rows import Row
from noxu_storage.sqlite import SqliteStore
from noxu_storage.types import EVERYTHING
from tests.clocks import StoppedClock
from tests.control_planes import assemble
from tests.controllers.conftest import config_map, custom, definition
from tests.registry.world import CountedIdentifiers
from tests.rows import rows

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


@rows("values", MANIFESTS.values(), ids=MANIFESTS)
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


# -- at the same time -------------------------------------------------------------------------------------------------

NAMESPACE: Any = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "far"}}
ROLE: Any = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "Role",
    "metadata": {"name": "a", "namespace": "default"},
}
WITH_LIMIT = with_schema({
    "openAPIV3Schema": {"type": "object", "properties": {"size": {"type": "integer", "maximum": 3, "default": 1}}}
})  # fmt: skip
QUOTA: Any = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "few", "namespace": "default"},
    "spec": {"hard": {"count/widgets.example.com": "2"}},
}
DENIES: Any = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingAdmissionPolicy",
    "metadata": {"name": "deny"},
    "spec": {
        "matchConstraints": {
            "resourceRules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}
            ]
        },
        "validations": [{"expression": "object.metadata.name != 'b'"}],
    },
}
BOUND: Any = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingAdmissionPolicyBinding",
    "metadata": {"name": "deny"},
    "spec": {"policyName": "deny", "validationActions": ["Deny"]},
}


def widget(name: str, **fields: Json) -> Any:
    return {**custom(name), **fields}


MIXED: list[Any] = [
    *(widget(name, size=size) for name in ("a", "b", "c") for size in (1, 2, 5, "x")),
    *(config_map(name, key=value) for name in ("a", "b") for value in ("1", "2")),
    widget("far", metadata={"name": "a", "namespace": "far"}),
    {**widget("g"), "metadata": {"generateName": "g-", "namespace": "default"}},
    widget("large", text="x" * 20_000),
    {"apiVersion": "example.com/v1", "kind": "Other", "metadata": {"name": "a"}},
    NAMESPACE,
    ROLE,
    QUOTA,
    DENIES,
    BOUND,
]


@pytest.mark.parametrize("seed", range(5))
async def test_objects_that_are_written_at_the_same_time_are_stored_and_refused_as_one_after_the_other(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = loading.ready(documents([WITH_LIMIT, *random.Random(seed).sample(MIXED, len(MIXED))]))
    errors, together = await loaded(found)
    monkeypatch.setattr(loading, "_independent_key", lambda *_: None)
    errors_alone, alone = await loaded(found)
    assert errors == errors_alone
    assert without_uids(together) == without_uids(alone)


def without_uids(stored: dict[Any, bytes]) -> dict[Any, bytes]:
    """They are counted in the order in which objects are created."""
    return {key: re.sub(rb"uid-[0-9]+", b"", value) for key, value in stored.items()}


async def test_errors_are_in_the_order_of_the_files() -> None:
    refused = [widget(f"w{n}", size=9) for n in range(loading.MAX_TOGETHER + 5)]
    errors, _ = await loaded(loading.ready(documents([WITH_LIMIT, *refused])))
    assert [error.partition('"')[2].partition('"')[0] for error in errors] == [f"w{n}" for n in range(len(refused))]


async def test_small_objects_are_committed_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All are in the store when they are loaded."""
    transactions: list[int] = []
    write = database.write

    async def counted(connection: Any, rows: Sequence[Row]) -> None:
        transactions.append(len(rows))
        await write(connection, rows)

    count = 200
    async with running(assemble(await SqliteStore.open(tmp_path / "noxu.db", "off"))) as plane:
        assert await loading.load(plane, loading.ready(documents([WITH_LIMIT, config_map("first")]))) == []
        monkeypatch.setattr(database, "write", counted)
        objects = [config_map(f"c{n}") if n % 2 else widget(f"w{n}") for n in range(count)]
        assert await loading.load(plane, loading.ready(documents(objects))) == []
        assert sum(transactions) >= count
        assert len(transactions) < count / 4
        stored = {item.key.name for item in (await plane.store.list(EVERYTHING)).items}
        assert stored >= {value["metadata"]["name"] for value in objects}


async def test_namespaces_are_written_before_their_objects(tmp_path: Path) -> None:
    spaces = [{**NAMESPACE, "metadata": {"name": f"n{n}"}} for n in range(20)]
    inside = [widget("far", metadata={"name": "a", "namespace": f"n{n}"}) for n in range(20)]
    async with running(assemble(await SqliteStore.open(tmp_path / "noxu.db", "off"))) as plane:
        assert await loading.load(plane, loading.ready(documents([definition(), widget("first"), *spaces[:1]]))) == []
        assert await loading.load(plane, loading.ready(documents([*inside, *spaces]))) == []


@pytest.mark.parametrize(("first", "most"), [([], 10), ([QUOTA], 1)], ids=["nothing is configured", "there is a quota"])
async def test_objects_are_written_one_after_the_other_if_admission_is_configured(
    first: list[Json], most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    running_writes, counts = 0, []

    async def counted(*arguments: Any, **options: Any) -> Any:
        nonlocal running_writes
        running_writes += 1
        counts.append(running_writes)
        await asyncio.sleep(0)
        try:
            return await write(*arguments, **options)
        finally:
            running_writes -= 1

    async with running(assemble(MemoryStore())) as plane:
        assert await loading.load(plane, loading.ready(documents([definition(), *first]))) == []
        write = plane.writer.write
        monkeypatch.setattr(plane.writer, "write", counted)
        await loading.load(plane, loading.ready(documents([widget(f"w{n}") for n in range(10)])))
    assert max(counts) == most


async def test_what_runs_at_the_same_time_ends_with_the_loading() -> None:
    """A bug in one write stops the others."""
    running_writes: list[str] = []
    stopped: list[str] = []

    async def hanging(name: str) -> list[str]:
        running_writes.append(name)
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            stopped.append(name)
            raise
        return []

    async def broken(resource: Resource) -> None:
        async with loading._writing_together([]) as together:
            for name in ("a", "b"):
                await together.begin(key_of(resource, "default", name), hanging(name))
            await asyncio.sleep(0)
            raise ZeroDivisionError

    async with running(assemble(MemoryStore())) as plane:
        with pytest.raises(ZeroDivisionError):
            await broken(resource_of(plane.served_resources, "", "configmaps"))
    assert running_writes == stopped == ["a", "b"]
