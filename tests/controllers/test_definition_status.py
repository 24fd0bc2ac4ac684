"""Status updates of definitions: the law that the bytes are those of the full encoding, though the spec is copied."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance import corpus
from noxu.api import codec
from noxu.apply import manager
from noxu.controllers import definitions
from noxu.controllers.definitions import advance, at_revision, to_change, with_status
from noxu.crd import types, update
from noxu.crd.conditions import AcceptedNames
from noxu.crd.types import default
from noxu.go.text import compact_json
from noxu.registry import ownership
from noxu.registry import stored_object as entries
from noxu.registry.builtin import DefinitionCodec, definitions_resource
from noxu.registry.resource import Resource
from noxu.registry.stored_object import (
    StoredObject,
    body_at,
    key_of,
    new_entry,
    new_entry_with_spec,
    object_at,
    served_bytes,
    taken_object,
)
from noxu.values import Json, Object
from tests.clocks import StoppedClock
from tests.optional import needs_data
from tests.properties.structurals import values

NOW: Final = "2026-01-01T00:00:00Z"
RESOURCE: Final[Resource] = definitions_resource().storage
METADATA: Final = {"name": "foos.example.com", "uid": "1f2e", "creationTimestamp": NOW, "generation": 1}


def definition(schema: Json, **metadata: Any) -> Object:
    """A definition as JSON, which may be invalid."""
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "foos", "kind": "Foo", "shortNames": []}
    spec = {"group": "example.com", "scope": "Cluster", "names": names, "versions": [version]}
    return {
        "kind": types.KIND, "apiVersion": types.API_VERSION, "metadata": {**METADATA, **metadata}, "spec": spec,
    }  # fmt: skip


def stored(crd: Object) -> StoredObject:
    """The entry of a new definition, as it is read again from a store."""
    decoded = types.decode(crd)
    assert not decoded.error
    value = update.prepare_for_create(default(decoded.value))
    check_owners(value)
    written = new_entry(key_of(RESOURCE, "", value["metadata"]["name"]), RESOURCE, value)
    assert identical(taken_object(written, RESOURCE), object_at(written, RESOURCE)), "also if it is not decoded"
    assert written.decoded is None
    return StoredObject(written.key, written.stored, 7)


class Whole:
    """Updates the status by the full encoding."""

    def __enter__(self) -> None:
        self._patch = pytest.MonkeyPatch()
        self._patch.setattr(definitions, "new_entry_with_spec", self._encode)

    def __exit__(self, *_: object) -> None:
        self._patch.undo()

    @staticmethod
    def _encode(entry: StoredObject, live: Object, storage: Resource, value: Object) -> StoredObject:
        return new_entry(entry.key, storage, value)


def seen(entry: StoredObject) -> tuple[Any, ...]:
    return entry.key, entry.stored, served_bytes(entry), entry.rendering.offset, entry.labels, body_at(entry, RESOURCE)


def check_owners(value: Object) -> None:
    """Who creates a definition owns its versions as a whole: what Go leaves out of them makes no difference."""
    quick = ownership.tracker(RESOURCE, "")
    assert quick.created is not None
    thorough = replace(quick, created=None)
    one, other = [manager.update(None, value, tracker, manager="m", now=NOW) for tracker in (quick, thorough)]
    assert identical(one, other)


def identical(one: Json, other: Json) -> bool:
    """Whether both are the same JSON, in which 1 and 1.0 differ; keys may be in any order."""
    return compact_json(one, sort_keys=True) == compact_json(other, sort_keys=True)


def check_law(entry: StoredObject) -> None:
    """All status updates until the definition is established, spliced and encoded as a whole, are equal.

    The definition that comes with the entry is the one that is decoded from it.
    """
    steps = 0
    while True:
        taken = taken_object(StoredObject(entry.key, entry.stored, entry.revision), RESOURCE)
        live = object_at(entry, RESOURCE)
        assert identical(taken, live), "also if it is read for the first time"
        crd = to_change(live)
        if not advance(crd, AcceptedNames(), NOW):
            break
        with Whole():
            expected, _ = with_status(entry, live, crd, RESOURCE, StoppedClock())
        found, shown = with_status(entry, live, crd, RESOURCE, StoppedClock())
        assert seen(found) == seen(expected)
        assert live == object_at(entry, RESOURCE)
        assert identical(at_revision(shown, found), object_at(found, RESOURCE))
        entry, steps = StoredObject(found.key, found.stored, entry.revision + 1), steps + 1
    assert steps >= 2


TRAP = ',"spec":{"a":1},"status":{"conditions":null}}'
SPECS: dict[str, Json] = {
    "nothing": {"type": "object"},
    "empty lists and maps, which are left out": {"type": "object", "required": [], "properties": {}, "enum": [], "items": []},
    "what looks like the end of the spec": {"type": "object", "description": TRAP, "default": {"status": None, "spec": {}}},
    "HTML and other characters": {"description": '<a>&\u2028\u00e9\U0001f600\\"', "default": {"\u2029": ["<"]}},
    "numbers": {"default": [-0.0, 0.0, 1.0, 1e21, 1e-7, 2**63 - 1, 123456789.125], "minimum": -0.0, "maximum": 1e21},
    "a huge number": {"maximum": 2**70, "multipleOf": 1e300},
    "great depth": {"default": json.loads("[" * 600 + "]" * 600)},
    "a uid": {"default": {"uid": "other"}, "properties": {"uid": {"type": "string"}}},
}  # fmt: skip


@pytest.mark.parametrize("schema", SPECS.values(), ids=SPECS)
def test_the_bytes_of_a_status_update_are_those_of_the_full_encoding(schema: Json) -> None:
    check_law(stored(definition(schema)))


METADATA_OF: dict[str, Object] = {
    "what looks like the spec": {"annotations": {"a": TRAP, "spec": "x"}, "labels": {"spec": "uid"}},
    "fields of a manager": {
        "managedFields": [{
            "manager": "m", "operation": "Update", "apiVersion": types.API_VERSION, "time": NOW, "fieldsType": "FieldsV1",
            "fieldsV1": {"f:spec": {"f:group": {}}, "f:status": {"f:conditions": {}}},
        }],
    },
    "no uid": {"uid": ""},
    "a uid with an escape": {"uid": 'a"b'},
    "owners": {"ownerReferences": [{"apiVersion": "v1", "kind": "A", "name": "a", "uid": "x"}]},
}  # fmt: skip


@pytest.mark.parametrize("metadata", METADATA_OF.values(), ids=METADATA_OF)
def test_metadata_of_any_form(metadata: Object) -> None:
    check_law(stored(definition(SPECS["a uid"], **metadata)))


@pytest.mark.slow
@settings(max_examples=30)
@given(values, values, st.text(max_size=8))
def test_any_defaults_and_texts(value: Json, example: Json, text: str) -> None:
    schema = {"description": text, "default": value, "example": example, "enum": [value, text]}
    check_law(stored(definition(schema, annotations={"a": text})))


@needs_data("crds")
def test_definitions_of_other_projects() -> None:
    for found in list(corpus.definitions())[::40]:
        metadata = {**found.value["metadata"], "uid": "1f2e", "creationTimestamp": NOW}
        check_law(stored({**found.value, "metadata": metadata}))


def _encoded_specs(monkeypatch: pytest.MonkeyPatch) -> list[Json]:
    specs: list[Json] = []
    write = DefinitionCodec.written
    monkeypatch.setattr(
        DefinitionCodec, "written", lambda self, value: specs.append(value.get("spec")) or write(self, value)
    )
    return specs


def test_the_spec_is_not_encoded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = stored(definition(SPECS["nothing"]))
    live = object_at(entry, RESOURCE)
    crd = to_change(live)
    assert advance(crd, AcceptedNames(), NOW)
    specs = _encoded_specs(monkeypatch)
    with_status(entry, live, crd, RESOURCE, StoppedClock())
    assert specs
    assert not any(specs)


def _respelled(crd: Object) -> bytes:
    return json.dumps(crd).encode()


def _reordered(crd: Object) -> bytes:
    return codec.encode(
        {name: crd[name] for name in ("apiVersion", "kind", "status", "spec", "metadata")}, sort_keys=False
    )


@pytest.mark.parametrize("form", [_respelled, _reordered])
def test_bytes_of_another_form_are_encoded_as_a_whole(form: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    written = stored(definition(SPECS["nothing"]))
    entry = StoredObject(written.key, form(codec.decode_stored(written.stored)), 7)
    live = object_at(entry, RESOURCE)
    crd = object_at(entry, RESOURCE)
    assert advance(crd, AcceptedNames(), NOW)
    specs = _encoded_specs(monkeypatch)
    found = new_entry_with_spec(entry, live, RESOURCE, crd)
    assert any(specs)
    assert seen(found) == seen(entries.new_entry(entry.key, RESOURCE, crd))
