"""Objects of a tracked resource at all versions, and how messages name them."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from noxu.apply.comparison import compare
from noxu.apply.fieldset import FieldSet, of
from noxu.apply.tracker import Failed, MissingVersion, ObjectVersions, Tracker, group_version_kind, named
from noxu.apply.types import FREE_FORM, Type, of_schema
from noxu.schema.structural import parse
from noxu.values import Object

V1, V2 = "example.com/v1", "example.com/v2"
WIDGET: Object = {"apiVersion": V1, "kind": "Widget", "metadata": {"name": "w", "namespace": "n"}, "size": 1}


def test_an_object_at_its_own_version_is_itself() -> None:
    versions = ObjectVersions(Tracker(V1, "Widget", {V1: FREE_FORM}))
    assert versions.at(WIDGET, V1) is WIDGET


def test_objects_are_converted_once() -> None:
    calls: list[str] = []

    def convert(value: Object, version: str) -> Object:
        calls.append(version)
        return {**value, "apiVersion": version}

    versions = ObjectVersions(Tracker(V1, "Widget", {V1: FREE_FORM, V2: FREE_FORM}, convert))
    converted = versions.at(WIDGET, V2)
    assert converted == {**WIDGET, "apiVersion": V2}
    assert versions.at(WIDGET, V2) is converted
    assert calls == [V2]


def test_converted_objects_must_be_of_their_type() -> None:
    strict = of_schema(parse({"type": "object", "properties": {"size": {"type": "string"}}}))
    versions = ObjectVersions(Tracker(V1, "Widget", {V1: FREE_FORM, V2: strict}))
    with pytest.raises(Failed, match=r"^\.size: expected string, got"):
        versions.at(WIDGET, V2)


@pytest.mark.parametrize(
    ("version", "message"),
    [
        ("example.com/v3", "request to convert CR to an invalid group/version: example.com/v3"),
        ("other.com/v1", 'example.com/v1, Kind=Widget is unstructured and is not suitable for converting to "other.com/v1"'),
    ],
)  # fmt: skip
def test_versions_that_do_not_exist(version: str, message: str) -> None:
    with pytest.raises(Failed) as raised:
        ObjectVersions(Tracker(V1, "Widget", {V1: FREE_FORM})).at(WIDGET, version)
    assert str(raised.value) == message
    with pytest.raises(MissingVersion):
        ObjectVersions(Tracker(V1, "Widget", {V1: FREE_FORM}, custom=False)).at(WIDGET, version)


STRICT = of_schema(parse({"type": "object", "properties": {
    "spec": {"type": "object", "properties": {"size": {"type": "integer"}}},
    "status": {"type": "object", "properties": {"size": {"type": "integer"}, "list": {"type": "array", "items": {"type": "string"}}}},
}}))  # fmt: skip
ATOMIC = of_schema(
    parse({"type": "object", "x-kubernetes-map-type": "atomic", "x-kubernetes-preserve-unknown-fields": True})
)
STATES: list[Object] = [
    {"spec": {"size": size}, **({"status": status} if status is not None else {}), "other": other}
    for size in (1, 2)
    for status in (None, {}, {"size": 1}, {"list": ["a"]})
    for other in (1, 2)
]
RESETS: dict[str, FieldSet] = {
    "nothing is reset": {},
    "the status": of(("f:status",)),
    "the status and its size": of(("f:status",), ("f:status", "f:size")),
    "a field of the status": of(("f:status", "f:size")),
    "the spec, and part of the status": of(("f:spec",), ("f:status", "f:list")),
}


@pytest.mark.parametrize("kind", [STRICT, FREE_FORM, ATOMIC], ids=["declared", "free", "atomic"])
@pytest.mark.parametrize("reset", RESETS.values(), ids=RESETS.keys())
def test_fields_that_are_not_compared_would_not_count(kind: Type, reset: FieldSet) -> None:
    tracker = Tracker(V1, "Widget", {V1: kind}, resets={V1: reset})
    for old, new in product(STATES, STATES):
        complete = compare(old, new, kind).filtered(lambda fields: tracker.changeable(fields, V1))
        assert tracker.compared(old, new, V1) == complete


def test_a_field_that_is_reset_as_a_whole_is_not_compared() -> None:
    class Untouched(dict[str, object]):
        def items(self) -> Any:
            raise AssertionError("it is compared")

    tracker = Tracker(V1, "Widget", {V1: STRICT}, resets={V1: of(("f:status",))})
    old, new = {"spec": {"size": 1}, "status": Untouched()}, {"spec": {"size": 2}, "status": Untouched()}
    assert tracker.compared(old, new, V1).modified == of(("f:spec", "f:size"))


def test_a_create_starts_from_an_empty_object() -> None:
    tracker = Tracker(V1, "Widget", {V1: FREE_FORM}, empty={"spec": {}})
    assert tracker.blank == {"apiVersion": V1, "kind": "Widget", "spec": {}}
    assert tracker.type is FREE_FORM


NAMES: list[tuple[Object, str]] = [
    (WIDGET, "n/w; example.com/v1, Kind=Widget"),
    ({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}, "/p; /v1, Kind=Pod"),
    ({}, "/; /, Kind="),
    ({"apiVersion": 1, "kind": [], "metadata": []}, "/; /, Kind="),
    ({"apiVersion": "a/b/c", "kind": "X", "metadata": {"name": 1}}, "/; /, Kind="),
    ({"apiVersion": "/", "kind": "X"}, "/; /, Kind=X"),
]


@pytest.mark.parametrize(("value", "name"), NAMES)
def test_how_messages_name_objects(value: Object, name: str) -> None:
    assert named(value) == name
    assert group_version_kind(value) == name.partition("; ")[2]
