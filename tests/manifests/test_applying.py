"""Manifests that are applied: what a server keeps, changes and says when it loads its files again."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest

from noxu.apply.merging import ANNOTATION
from noxu.config import Config
from noxu.control_plane import ControlPlane, running
from noxu.manifests import applying, loading, served_files
from noxu.manifests import documents as manifests
from noxu.manifests.applying import Applying
from noxu.manifests.documents import Document
from noxu.registry.draft import Action, Body, Options, WriteRequest
from noxu.registry.stored_object import object_at
from noxu.values import Json
from noxu_storage.memory import MemoryStore
from tests.control_planes import assemble
from tests.controllers.conftest import config_map, custom, definition

SCHEMA: Final[Json] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


@pytest.fixture
async def plane() -> AsyncIterator[ControlPlane]:
    async with running(assemble(MemoryStore())) as plane:
        yield plane


def documents(*values: Json, file: str = "objects.json") -> list[Document]:
    found = manifests.read(json.dumps({"kind": "List", "items": list(values)}).encode(), file)
    return loading.ready(map(loading.packed, found))


async def applied(plane: ControlPlane, *values: Json) -> Applying:
    writer = Applying()
    assert await loading.load(plane, documents(*values), writer=writer) == []
    return writer


async def stored(plane: ControlPlane, value: Any) -> Any:
    resource = loading.resource_of(plane, value)
    assert resource is not None
    entry = await plane.reader.get(resource, loading.namespace_of(resource, value), loading.name_of(value))
    return object_at(entry, resource)


async def patched(plane: ControlPlane, value: Any, patch: Json, manager: str = "kubectl-edit") -> None:
    """Another client's merge patch."""
    resource = loading.resource_of(plane, value)
    assert resource is not None
    request = WriteRequest(
        Action.PATCH,
        resource,
        loading.namespace_of(resource, value),
        loading.name_of(value),
        body=Body(json.dumps(patch).encode(), "application/merge-patch+json"),
        options=Options(field_manager=manager),
    )
    await plane.writer.write(request)


async def deleted(plane: ControlPlane, value: Any) -> None:
    resource = loading.resource_of(plane, value)
    assert resource is not None
    await plane.writer.write(WriteRequest(Action.DELETE, resource, "default", loading.name_of(value)))


def content(value: Any) -> Any:
    """What the object says, without its annotation and what servers set."""
    metadata = {name: value["metadata"].get(name) for name in ("labels", "annotations") if value["metadata"].get(name)}
    if "annotations" in metadata:
        metadata["annotations"] = {k: v for k, v in metadata["annotations"].items() if k != ANNOTATION}
    rest = {name: each for name, each in value.items() if name not in ("apiVersion", "kind", "metadata", "status")}
    return {**{name: each for name, each in metadata.items() if each}, **rest}


FIRST: Final[Any] = {**custom("a"), "spec": {"size": 1, "colour": "red"}}
POD: Final[Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "namespace": "default"},
    "spec": {"containers": [{"name": "a", "image": "b"}]},
}

CHANGES: list[tuple[str, Any, Json, Any, Any, str]] = [
    ("nothing", FIRST, {}, FIRST, {"spec": {"size": 1, "colour": "red"}}, "1 unchanged"),
    ("a label", FIRST, {"metadata": {"labels": {"team": "x"}}}, FIRST, {"labels": {"team": "x"}, "spec": {"size": 1, "colour": "red"}}, "1 unchanged; changes of others: left alone in 1 object"),
    ("a field that the file does not set", FIRST, {"spec": {"more": 2}}, FIRST, {"spec": {"size": 1, "colour": "red", "more": 2}}, "1 unchanged; changes of others: left alone in 1 object"),
    ("a field that the file sets", FIRST, {"spec": {"size": 2}}, FIRST, {"spec": {"size": 1, "colour": "red"}}, "1 configured; changes of others: overwritten in 1 object"),
    ("a field that the file sets, removed", FIRST, {"spec": {"size": None}}, FIRST, {"spec": {"size": 1, "colour": "red"}}, "1 configured"),
    ("a label, and a field that has left the file", FIRST, {"metadata": {"labels": {"team": "x"}}}, {**FIRST, "spec": {"size": 1}}, {"labels": {"team": "x"}, "spec": {"size": 1}}, "1 configured; changes of others: left alone in 1 object"),
    ("data of a ConfigMap", config_map("c", a="1"), {"data": {"b": "2"}}, config_map("c", a="3"), {"data": {"a": "3", "b": "2"}}, "1 configured; changes of others: left alone in 1 object"),
    ("a pod, whose spec is immutable", POD, {"metadata": {"labels": {"a": "b"}}}, POD, None, "1 unchanged; changes of others: left alone in 1 object"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("first", "change", "second", "expected", "said"), [row[1:] for row in CHANGES], ids=[row[0] for row in CHANGES]
)
async def test_what_others_have_changed_in_between(
    plane: ControlPlane, first: Any, change: Json, second: Any, expected: Any, said: str
) -> None:
    crd = definition()
    crd["spec"]["versions"][0]["schema"] = {"openAPIV3Schema": SCHEMA}
    assert (await applied(plane, crd, first)).summary == "2 objects applied: 2 created"
    await patched(plane, first, change)
    names = " (--verbose names them)" if "others" in said else ""
    assert (await applied(plane, second)).summary == f"1 object applied: {said}{names}"
    assert expected is None or content(await stored(plane, second)) == expected
    again = await applied(plane, second, crd)
    assert again.summary.startswith("2 objects applied: 2 unchanged")


async def test_the_annotation_is_the_one_of_kubectl(plane: ControlPlane) -> None:
    """Sorted keys, Go's escapes, the namespace, empty annotations, and a line break; an exported object has another's."""
    value = config_map("a", text="<&>")
    del value["metadata"]["namespace"]
    value["metadata"] |= {"uid": "u", "resourceVersion": "7", "annotations": {ANNOTATION: "old"}}
    await applied(plane, value)
    text = (await stored(plane, value))["metadata"]["annotations"][ANNOTATION]
    assert text == (
        '{"apiVersion":"v1","data":{"text":"\\u003c\\u0026\\u003e"},"kind":"ConfigMap",'
        '"metadata":{"annotations":{},"name":"a","namespace":"default"}}\n'
    )


async def test_objects_that_are_too_large_for_the_annotation_are_applied_by_their_owners(plane: ControlPlane) -> None:
    large = config_map("a", x="x" * 300_000, gone="1")
    await applied(plane, large)
    await patched(plane, large, {"data": {"mine": "1"}})
    del large["data"]["gone"]
    assert "left alone in 1 object" in (await applied(plane, large)).summary
    found = await stored(plane, large)
    assert sorted(found["data"]) == ["mine", "x"]
    assert ANNOTATION not in (found["metadata"].get("annotations") or {})


async def test_an_annotation_that_is_outdated_goes(plane: ControlPlane) -> None:
    await applied(plane, config_map("a", x="1"))
    await applied(plane, config_map("a", x="x" * 300_000))
    assert ANNOTATION not in ((await stored(plane, config_map("a")))["metadata"].get("annotations") or {})


async def test_what_earlier_versions_have_loaded_loses_what_the_file_no_longer_has(plane: ControlPlane) -> None:
    assert await loading.load(plane, documents(config_map("a", x="1", gone="1"))) == []
    await patched(plane, config_map("a"), {"data": {"mine": "1"}})
    await applied(plane, config_map("a", x="1"))
    assert content(await stored(plane, config_map("a")))["data"] == {"x": "1", "mine": "1"}


@pytest.mark.parametrize("text", ["", "{", "[]", '{"metadata": 1}', "null"])
async def test_a_damaged_annotation_removes_nothing(plane: ControlPlane, text: str) -> None:
    await applied(plane, config_map("a", x="1"))
    await patched(plane, config_map("a"), {"metadata": {"annotations": {ANNOTATION: text}}})
    await applied(plane, config_map("a", y="1"))
    assert content(await stored(plane, config_map("a")))["data"] == {"x": "1", "y": "1"}


async def test_details_name_fields_and_managers(plane: ControlPlane, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "noxu")
    await applied(plane, config_map("a", x="1", y="1"))
    await patched(plane, config_map("a"), {"data": {"x": "2", "z": "3"}}, "kubectl-patch")
    caplog.clear()
    await applied(plane, config_map("a", x="1"))
    [line] = [record.getMessage() for record in caplog.records if "ConfigMap" in record.getMessage()]
    assert line == (
        "objects.json:1:28: ConfigMap default/a configured: data.x, data.y; "
        "left alone: data.z (kubectl-patch); overwritten: data.x (kubectl-patch)"
    )


async def test_another_writer_in_between_is_no_error(plane: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> None:
    await applied(plane, config_map("a", x="1"))
    merge, merged = applying.applied_to, 0

    def counted(*arguments: Any) -> Any:
        nonlocal merged
        merged += 1
        return merge(*arguments)

    write = plane.writer.write

    async def interrupted(request: WriteRequest, *rest: Any) -> Any:
        if request.action is Action.REPLACE and merged == 1:
            monkeypatch.setattr(plane.writer, "write", write)
            await patched(plane, config_map("a"), {"data": {"mine": "1"}})
        return await write(request, *rest)

    monkeypatch.setattr(applying, "applied_to", counted)
    monkeypatch.setattr(plane.writer, "write", interrupted)
    await applied(plane, config_map("a", x="2"))
    assert merged == 2
    assert content(await stored(plane, config_map("a")))["data"] == {"x": "2", "mine": "1"}


def versions(*names: str) -> Any:
    found = definition()
    [version] = found["spec"]["versions"]
    found["spec"]["versions"] = [
        {**version, "name": name, "storage": n == len(names) - 1} for n, name in enumerate(names)
    ]
    return found


def pod(image: str, **spec: Json) -> Any:
    return {**POD, "spec": {"containers": [{"name": "a", "image": image}], **spec}}


REFUSED: list[tuple[str, Any, Any, str]] = [
    ("a version that objects may be stored in", versions("v2", "v1"), versions("v2"), "(objects may be stored in it: `noxu migrate` rewrites them, before the version is removed)"),
    ("a field that cannot change", {**config_map("a", x="1"), "immutable": True}, {**config_map("a", x="2"), "immutable": True}, "(the object that exists has another value: if the new one is meant, delete the object)"),
    ("a definition's field that cannot change", versions("v1"), {**versions("v1"), "spec": {**versions("v1")["spec"], "scope": "Cluster"}}, "(the definition that exists has another value; deleting it deletes all its objects, too)"),
    ("a pod's field that cannot change", pod("b"), pod("b", hostname="h"), "(the object that exists has another value: if the new one is meant, delete the object)"),
]  # fmt: skip


@pytest.mark.parametrize(("first", "second", "advice"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
async def test_an_update_that_cannot_be_says_what_to_do(
    plane: ControlPlane, first: Any, second: Any, advice: str
) -> None:
    await applied(plane, first)
    errors = await loading.load(plane, documents(second), writer=Applying())
    assert errors
    assert all(error.startswith("objects.json:1:") for error in errors)
    assert advice in errors[0]


async def test_an_object_that_is_being_deleted_is_named(plane: ControlPlane, caplog: pytest.LogCaptureFixture) -> None:
    value = config_map("a", x="1")
    value["metadata"]["finalizers"] = ["example.com/hold"]
    await applied(plane, value)
    await deleted(plane, value)
    value["data"]["x"] = "2"
    await applied(plane, value)
    assert "objects.json:1:28: ConfigMap default/a is being deleted; it is changed nevertheless" in caplog.messages
    caplog.clear()
    await applied(plane, value)
    assert caplog.messages == [
        "objects.json:1:28: ConfigMap default/a is being deleted; the next start creates it again"
    ]


# -- objects that have left the files ---------------------------------------------------------------------------------


async def served(plane: ControlPlane, directory: Path, *found: Document, keep_going: bool = False) -> None:
    config = Config(data=directory, keep_going=keep_going)
    assert (await served_files.load(plane, config, found, None)).errors == []


async def test_objects_that_have_left_the_files_are_named_once_and_stay(
    plane: ControlPlane, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    one, both = documents(config_map("a"), file="a.json"), documents(config_map("b"), config_map("c"), file="b.json")
    await served(plane, tmp_path, *one, *both)
    await deleted(plane, config_map("c"))
    await served(plane, tmp_path, *one)
    await served(plane, tmp_path, *one)
    await served(plane, tmp_path)
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == [
        "one object is no longer in the files and is not deleted: ConfigMap default/b (b.json); `kubectl delete` does that",
        "one object is no longer in the files and is not deleted: ConfigMap default/a (a.json); `kubectl delete` does that",
    ]
    assert (await stored(plane, config_map("b")))["metadata"]["name"] == "b"


@pytest.mark.parametrize("damaged", [b"", b"[]", b'{"objects": [[1, 2]]}', b'{"objects": 1}'])
async def test_a_damaged_list_names_nothing(
    plane: ControlPlane, tmp_path: Path, caplog: pytest.LogCaptureFixture, damaged: bytes
) -> None:
    (tmp_path / served_files.FILE).write_bytes(damaged)
    await served(plane, tmp_path, *documents(config_map("a")))
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


async def test_files_that_may_be_unreadable_have_lost_nothing(
    plane: ControlPlane, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await served(plane, tmp_path, *documents(config_map("a")))
    await served(plane, tmp_path, keep_going=True)
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []
    await served(plane, tmp_path)
    assert "ConfigMap default/a" in caplog.text
