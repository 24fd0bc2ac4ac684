"""Objects that are converted to another version and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from noxu.api.errors import ApiError
from noxu.generation.kinds import versions_of
from noxu.registry.conversion.converters import Conversions
from noxu.registry.resource import Versions
from noxu.testing.functions import converter
from noxu.upgrades.round_trips import converted, generated, round_trip
from noxu.values import Object, copy
from tests.generation.test_kinds import crd
from tests.rows import rows
from tests.upgrades.test_changes import INTEGER, STRING, of

ADDRESS, HOST = of(address=STRING), of(host=STRING, port=STRING)


def versions(v1: Any, v2: Any, function: Callable[..., Any] | None = None) -> Versions:
    document = crd(v1)
    value = copy(document.value)
    value["spec"]["versions"][1]["schema"]["openAPIV3Schema"]["properties"]["spec"] = v2
    found = versions_of(document._replace(value=value))
    if function is not None:
        found.converter = Conversions(in_process={document.name: converter(function)}).of(document.name)
    return found


def widget(**spec: Any) -> Object:
    metadata = {"name": "a", "namespace": "default", "uid": "1"}
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata, "spec": spec}


def split(value: Object, version: str) -> None:
    spec = value["spec"]
    if version.endswith("/v2"):
        spec["host"], _, spec["port"] = spec.pop("address", "").partition(":")
    else:
        spec["address"] = f"{spec.pop('host', '')}:{spec.pop('port', '')}"


def fail(value: Object, version: str) -> None:
    raise ValueError("no conversion")


def rename(value: Object, version: str) -> None:
    value["metadata"]["name"] = "b"


@rows(
    "name, v1, v2, function, spec, why",
    [
        ("the same schemas", of(a=INTEGER), of(a=INTEGER), None, {"a": 1}, ""),
        ("a field that v2 lacks", of(a=INTEGER), of(), None, {"a": 1}, "spec.a is lost"),
        ("a field that v2 lacks, with a default", of(a={**INTEGER, "default": 1}), of(), None, {"a": 1}, ""),
        ("another value than the default", of(a={**INTEGER, "default": 1}), of(), None, {"a": 2}, "spec.a changes"),
        ("no field that v2 lacks", of(a=INTEGER, b=STRING), of(a=INTEGER), None, {"a": 1}, ""),
        ("a function that loses nothing", ADDRESS, HOST, split, {"address": "a:80"}, ""),
        ("a function that adds something", ADDRESS, HOST, split, {}, "spec.address is new"),
        ("a function that changes something", ADDRESS, HOST, split, {"address": "a"}, "spec.address changes"),
        ("a function that fails", ADDRESS, HOST, fail, {}, "no conversion"),
        ("a function that changes the name", ADDRESS, HOST, rename, {}, "must have the same name: a != b"),
    ],
)
async def test_what_comes_back(name: str, v1: Any, v2: Any, function: Any, spec: Any, why: str) -> None:
    home, other = versions(v1, v2, function).all
    value = widget(**spec)
    trip = await round_trip(value, home, other)
    assert value == widget(**spec)
    assert trip.holds is (not why)
    assert why in trip.why
    assert bool(trip.why) is bool(why)


async def test_an_object_at_another_version() -> None:
    home, other = versions(ADDRESS, HOST, split).all
    there = await converted(widget(address="a:80"), other)
    assert there == {**widget(host="a", port="80"), "apiVersion": "example.com/v2"}
    assert await converted(there, home) == widget(address="a:80")
    with pytest.raises(ApiError, match="no conversion"):
        await converted(widget(), [*versions(ADDRESS, HOST, fail).all][1])


def test_generated_objects_are_the_same_for_a_seed() -> None:
    home, _ = versions(ADDRESS, HOST).all
    some, again = list(generated(home, 5)), list(generated(home, 5))
    assert some == again
    assert len({value["metadata"]["uid"] for value in some}) == 5
    assert list(generated(home, 5, "other")) != some
