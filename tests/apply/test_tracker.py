"""Objects of a tracked resource at all versions, and how messages name them."""

from __future__ import annotations

import pytest

from noxu.apiserver.apply.tracker import Conversions, Failed, MissingVersion, Tracker, group_version_kind, named
from noxu.apiserver.apply.types import FREE_FORM, of_schema
from noxu.apiserver.schema.structural import parse
from noxu.apiserver.values import Object

V1, V2 = "example.com/v1", "example.com/v2"
WIDGET: Object = {"apiVersion": V1, "kind": "Widget", "metadata": {"name": "w", "namespace": "n"}, "size": 1}


def test_an_object_at_its_own_version_is_itself() -> None:
    versions = Conversions(Tracker(V1, "Widget", {V1: FREE_FORM}))
    assert versions.at(WIDGET, V1) is WIDGET


def test_objects_are_converted_once() -> None:
    calls: list[str] = []

    def convert(value: Object, version: str) -> Object:
        calls.append(version)
        return {**value, "apiVersion": version}

    versions = Conversions(Tracker(V1, "Widget", {V1: FREE_FORM, V2: FREE_FORM}, convert))
    converted = versions.at(WIDGET, V2)
    assert converted == {**WIDGET, "apiVersion": V2}
    assert versions.at(WIDGET, V2) is converted
    assert calls == [V2]


def test_converted_objects_must_be_of_their_type() -> None:
    strict = of_schema(parse({"type": "object", "properties": {"size": {"type": "string"}}}))
    versions = Conversions(Tracker(V1, "Widget", {V1: FREE_FORM, V2: strict}))
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
        Conversions(Tracker(V1, "Widget", {V1: FREE_FORM})).at(WIDGET, version)
    assert str(raised.value) == message
    with pytest.raises(MissingVersion):
        Conversions(Tracker(V1, "Widget", {V1: FREE_FORM}, custom=False)).at(WIDGET, version)


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
