"""The rules that all built-in kinds share: preparing objects, generations, field labels, the names of a kind."""

from __future__ import annotations

from dataclasses import replace

import pytest

from noxu.go.structs import INT32, STRING, Field, Presence, Struct
from noxu.kinds.kind import Context, Kind, Label, Subresource, prepare, selected, written
from noxu.kinds.meta import list_of
from noxu.values import Object

SPEC = Struct("Spec").define(Field("size", INT32))
THING = Struct("Thing").define(
    Field("kind", STRING),
    Field("metadata", Struct("Meta").define(Field("name", STRING), Field("generation", INT32)), write=Presence.ALWAYS),
    Field("spec", SPEC, write=Presence.ALWAYS),
    Field("status", Struct("Status").define(Field("phase", STRING)), write=Presence.ALWAYS),
)
KIND = Kind(
    group="example.com",
    kind="Thing",
    struct=THING,
    plural="things",
    singular="thing",
    namespaced=True,
    subresources=(Subresource(name="status", verbs=("get", "update"), kept=("spec", "metadata.labels")),),
    generation=("spec",),
    first_generation=1,
    fresh=("status", "metadata.old"),
    kept=("status",),
    selectable={"phase": Label(("status.phase", "spec.phase")), "size": Label(("spec.size",), "0")},
)


def thing(size: int = 1, phase: str = "", **metadata: object) -> Object:
    return {"metadata": {"name": "a", **metadata}, "spec": {"size": size}, "status": {"phase": phase}}


def test_fields_that_clients_may_not_set_are_removed_from_a_new_object() -> None:
    new = thing(phase="sent", generation=7, old=1)
    prepare(KIND, new, None)
    assert new == {"metadata": {"name": "a", "generation": 1}, "spec": {"size": 1}}


def test_an_update_keeps_the_status() -> None:
    new, old = thing(size=2, phase="sent"), thing(phase="stored", generation=3)
    prepare(KIND, new, old)
    assert (new["status"], new["spec"]) == ({"phase": "stored"}, {"size": 2})


@pytest.mark.parametrize(("size", "generation"), [(1, 3), (2, 4)])
def test_generations_count_changes_of_the_spec(size: int, generation: int) -> None:
    new, old = thing(size=size, generation=99), thing(generation=3)
    prepare(KIND, new, old)
    assert new["metadata"]["generation"] == generation


def test_an_update_of_the_status_keeps_the_rest() -> None:
    new = thing(size=2, phase="new", labels={"a": "b"})
    prepare(KIND, new, thing(generation=3, labels={"c": "d"}), Context("status"))
    assert new == thing(phase="new", generation=3, labels={"c": "d"})


def test_a_kept_field_that_is_absent_is_removed() -> None:
    new = thing(labels={"a": "b"})
    prepare(KIND, new, thing(generation=1), Context("status"))
    assert "labels" not in new["metadata"]


PART = Subresource(name="part", verbs=("update",), only=("spec.size", "spec.items[*].a", "spec.items[*].b.c"))
PARTED = replace(KIND, subresources=(PART,))


def parts(*items: Object, size: int = 1, **metadata: object) -> Object:
    return {"metadata": {"name": "a", **metadata}, "spec": {"size": size, "other": 1, "items": [*items]}}


X, Y = {"name": "x", "a": 1, "z": 1}, {"name": "y", "b": {"c": 1, "d": 1}}
CHANGES: list[tuple[str, list[Object], list[Object]]] = [
    ("a field of an item", [{**X, "a": 2}, Y], [{**X, "a": 2}, Y]),
    ("another field of it", [{**X, "z": 2}, Y], [X, Y]),
    ("a field that is removed", [{"name": "x", "z": 1}, Y], [{"name": "x", "z": 1}, Y]),
    ("a nested field", [X, {"name": "y", "b": {"c": 2, "d": 2}}], [X, {"name": "y", "b": {"c": 2, "d": 1}}]),
    ("items in another order, for validation", [Y, {**X, "z": 2}], [Y, {**X, "z": 2}]),
]


@pytest.mark.parametrize(("sent", "expected"), [row[1:] for row in CHANGES], ids=[row[0] for row in CHANGES])
def test_an_update_of_a_part_changes_nothing_else(sent: list[Object], expected: list[Object]) -> None:
    new = parts(*sent, size=2, labels={"a": "b"}, resourceVersion="7") | {"status": {"phase": "sent"}}
    new["spec"]["other"] = 2
    prepare(PARTED, new, parts(X, Y, generation=3), Context("part"))
    assert new == parts(*expected, size=2, generation=4, resourceVersion="7")


def test_validation_gets_an_update_of_a_part_that_adds_an_item() -> None:
    new = parts(X, Y, {"name": "z"}, size=2)
    prepare(PARTED, new, parts(X, Y, generation=3), Context("part"))
    assert new == parts(X, Y, {"name": "z"}, size=2, generation=4)


@pytest.mark.parametrize(
    ("value", "labels"),
    [
        ({}, {"phase": "", "size": "0"}),
        ({"status": {"phase": "A"}, "spec": {"phase": "B", "size": 3}}, {"phase": "A", "size": "3"}),
        ({"status": {"phase": ""}, "spec": {"phase": "B"}}, {"phase": "B", "size": "0"}),
        ({"status": None, "spec": [1]}, {"phase": "", "size": "0"}),
    ],
)
def test_field_labels(value: Object, labels: dict[str, str]) -> None:
    assert selected(KIND, value) == labels


def test_objects_are_written_in_the_order_of_declaration() -> None:
    assert list(written(KIND, {"spec": {}, "kind": "Thing"})) == ["kind", "metadata", "spec", "status"]


def test_names_of_a_kind() -> None:
    assert (KIND.kind, KIND.list_kind, KIND.singular, KIND.api_version) == (
        "Thing",
        "ThingList",
        "thing",
        "example.com/v1",
    )
    assert (str(KIND.what), KIND.stored, KIND.has_status) == ("things.example.com", True, True)


def test_a_list_has_metadata_and_items() -> None:
    table = list_of(THING)
    assert (table.name, list(table.fields)) == ("ThingList", ["kind", "apiVersion", "metadata", "items"])
    assert list_of(THING) is table
