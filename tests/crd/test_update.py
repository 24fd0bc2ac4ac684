"""What a write may change, and the warnings that come with it."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from noxu.crd import types
from noxu.crd.types import default
from noxu.crd.update import prepare_for_create, prepare_for_status_update, prepare_for_update, warnings
from noxu.values import Json, Object

Build = Callable[..., Object]
Stored = Callable[[Object], Object]


def decoded(crd: Object) -> Object:
    return default(types.decode(crd).value)


def two_versions(build: Build, storage: str) -> Object:
    schema = {"openAPIV3Schema": {"type": "object"}}
    versions = [{"name": name, "served": True, "storage": name == storage, "schema": schema} for name in ("v1", "v2")]
    return build(versions=versions)


def test_create_wipes_the_status_and_starts_counting(build: Build) -> None:
    crd = {**build(), "status": {"storedVersions": ["v9"], "conditions": [{"type": "Established", "status": "True"}]}}
    crd["metadata"]["generation"] = 7
    created = prepare_for_create(decoded(crd))
    assert json.dumps(created["status"]) == (
        '{"conditions": null, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": ["v1"]}'
    )
    assert created["metadata"] == {"name": "foos.example.com", "generation": 1}
    assert list(types.written(created)) == ["kind", "apiVersion", "metadata", "spec", "status"]


def test_create_without_a_storage_version(build: Build) -> None:
    assert prepare_for_create(decoded(build(version={"storage": False})))["status"]["storedVersions"] is None


def test_update_ignores_the_status(build: Build, stored: Stored) -> None:
    old = stored(build())
    new = decoded({**build(), "status": {"storedVersions": ["v9"]}})
    assert prepare_for_update(new, old)["status"] == old["status"]


CHANGES: list[tuple[str, Object, int]] = [
    ("nothing", {}, 1),
    ("a name", {"names": {"plural": "foos", "kind": "Foo", "shortNames": ["f"]}}, 2),
    ("an empty list that was not there", {"names": {"plural": "foos", "kind": "Foo", "shortNames": []}}, 1),
    ("the scope", {"scope": "Namespaced"}, 2),
    ("a version's schema", {"version": {"schema": {"openAPIV3Schema": {"type": "object", "title": "t"}}}}, 2),
    ("a default that was there anyway", {"conversion": {"strategy": "None"}}, 1),
]


@pytest.mark.parametrize(("change", "generation"), [row[1:] for row in CHANGES], ids=[row[0] for row in CHANGES])
def test_the_generation_counts_changes_of_the_spec(
    build: Build, stored: Stored, change: Object, generation: int
) -> None:
    new = decoded(build(**change))
    new["metadata"]["generation"] = 40  # the client's is ignored
    assert prepare_for_update(new, stored(build()))["metadata"]["generation"] == generation


def test_labels_do_not_count(build: Build, stored: Stored) -> None:
    new = decoded(build())
    new["metadata"]["labels"] = {"a": "b"}
    assert prepare_for_update(new, stored(build()))["metadata"]["generation"] == 1


def test_a_new_storage_version_is_remembered(build: Build, stored: Stored) -> None:
    old = stored(two_versions(build, "v1"))
    updated = prepare_for_update(decoded(two_versions(build, "v2")), old)
    assert updated["status"]["storedVersions"] == ["v1", "v2"]
    assert old["status"]["storedVersions"] == ["v1"]
    again = prepare_for_update(decoded(two_versions(build, "v1")), updated)
    assert again["status"]["storedVersions"] == ["v1", "v2"]


def test_status_updates_ignore_the_spec_but_not_the_metadata(build: Build, stored: Stored) -> None:
    old = stored(build())
    new = decoded({**build(scope="Namespaced"), "status": {"storedVersions": ["v9"]}})
    new["metadata"].update(generation=9, labels={"a": "b"})
    updated = prepare_for_status_update(new, old)
    assert updated["spec"] == old["spec"]
    assert updated["status"]["storedVersions"] == ["v9"]
    assert updated["metadata"]["labels"] == {"a": "b"}
    assert updated["metadata"]["generation"] == 1


def test_a_status_without_stored_versions_gets_the_one_that_is_stored(build: Build, stored: Stored) -> None:
    old = stored(build())
    new = decoded({**build(versions=[]), "status": {"storedVersions": []}})
    assert prepare_for_status_update(new, old)["status"]["storedVersions"] == ["v1"]


def of(**properties: Json) -> Object:
    return {"type": "object", "properties": properties}


SET = {"type": "array", "x-kubernetes-list-type": "set"}
MAPS = {**SET, "items": {"type": "object", "x-kubernetes-map-type": "atomic"}}
LISTS = {**SET, "items": {"type": "array"}}
SET_WARNING = (
    'x-kubernetes-list-type: set for items of type "{}" is not supported by server-side apply or CEL validation rules'
)

WARNINGS: list[tuple[str, Object, list[str]]] = [
    ("a known format", of(a={"type": "string", "format": "date-time"}), []),
    ("an unknown format", of(a={"type": "string", "format": "zzz"}), ['unrecognized format "zzz"']),
    ("a format of another type", of(a={"type": "integer", "format": "date"}), ['unrecognized format "date"']),
    ("a format of objects", of(a={"type": "object", "format": "int32"}), ['unrecognized format "int32"']),
    ("a format without a type", of(a={"format": "int32", "x-kubernetes-int-or-string": True}), ['unrecognized format "int32"']),
    ("formats in junctors", of(a={"type": "string", "anyOf": [{"format": "x\n"}]}), ['unrecognized format "x\\n"']),
    ("a set of scalars", of(a={**SET, "items": {"type": "string"}}), []),
    ("sets of maps and lists, each reported once", of(a=MAPS, b=LISTS, c=MAPS), [SET_WARNING.format("array"), SET_WARNING.format("object")]),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "messages"), [row[1:] for row in WARNINGS], ids=[row[0] for row in WARNINGS])
def test_warnings(build: Build, schema: Object, messages: list[str]) -> None:
    crd = decoded(build(schema))
    assert warnings(crd) == messages
    assert warnings(crd, crd) == []
    assert warnings(crd, decoded(build())) == messages
