"""Correlation of a new value with the old one, which ratcheting and rules with oldSelf use."""

from __future__ import annotations

import pytest

from noxu.schema.correlation import Correlated
from noxu.schema.structural import parse
from noxu.values import Json, Object

SMALL: Object = {"type": "integer", "maximum": 1}
KEYED: Object = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["k"],
    "items": {"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "integer"}}},
}


def obj(**properties: Object) -> Object:
    return {"type": "object", "properties": properties}


def test_properties_are_correlated_by_name() -> None:
    node = Correlated({"p": 1, "q": 2, "u": 3}, {"p": 1, "q": 3, "u": 3}, parse(obj(p=SMALL, q=SMALL)))
    p, q = node.key("p"), node.key("q")
    assert p is not None
    assert q is not None
    assert (p.new, p.old, p.equal(), q.old, q.equal()) == (1, 1, True, 3, False)
    assert node.key("u") is None  # the schema does not declare it
    assert node.key("z") is None
    assert node.key("p") is p


def test_values_of_a_map_are_correlated_by_name() -> None:
    node = Correlated({"p": 1, "q": 1}, {"p": 1}, parse({"type": "object", "additionalProperties": SMALL}))
    p = node.key("p")
    assert p is not None
    assert p.equal()
    assert node.key("q") is None


def test_items_of_a_map_list_are_correlated_by_their_keys() -> None:
    node = Correlated([{"k": "2"}, {"k": "1", "v": 1}, {"k": "3"}], [{"k": "1"}, {"k": "2"}], parse(KEYED))
    second, first = node.index(0), node.index(1)
    assert second is not None
    assert first is not None
    assert (second.old, second.equal(), first.old, first.equal()) == ({"k": "2"}, True, {"k": "1"}, False)
    assert node.index(2) is None
    assert node.index(3) is None
    assert node.index(0) is second


@pytest.mark.parametrize("list_type", ["atomic", "set", None])
def test_items_of_other_lists_are_not_correlated(list_type: str | None) -> None:
    schema = {"type": "array", "items": {"type": "string"}}
    node = Correlated(["a"], ["a"], parse({**schema, "x-kubernetes-list-type": list_type} if list_type else schema))
    assert node.index(0) is None
    assert node.equal()


@pytest.mark.parametrize(("new", "old"), [({}, []), ([], {}), ("x", ["x"]), ({}, None), (None, {}), (1, True)])
def test_different_kinds_are_never_equal(new: Json, old: Json) -> None:
    node = Correlated(new, old, parse(KEYED))
    assert not node.equal()
    assert node.key("k") is None
    assert node.index(0) is None
