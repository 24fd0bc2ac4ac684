"""The fast path gives the result of the general one, or declines."""

from __future__ import annotations

from typing import Any

import pytest

from noxu.apply import typed
from noxu.apply.fieldset import difference
from noxu.apply.managed_fields import NEVER_OWNED
from noxu.apply.typed import Unsure, accept, owned_fields, validate, whole
from noxu.apply.types import Type, of_schema
from noxu.schema.structural import parse
from tests.rows import rows

STRING = {"type": "string"}
INTEGER = {"type": "integer"}
PRESERVE = {"x-kubernetes-preserve-unknown-fields": True}
ITEM = {"type": "object", "properties": {"k": STRING, "v": {"type": "integer", "default": 1}, "o": {"type": "object", "properties": {"x": INTEGER}}}}  # fmt: skip
PROPERTIES: dict[str, Any] = {
    "a": INTEGER,
    "s": STRING,
    "m": {"type": "object", "additionalProperties": STRING},
    "mm": {"type": "object", "additionalProperties": {"type": "object", "properties": {"x": INTEGER}}},
    "atom": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"o": {"type": "object", "properties": {"x": INTEGER}}}},
    "lat": {"type": "array", "items": {"type": "object", "properties": {"q": INTEGER, "r": {"type": "array", "items": STRING}}}},
    "set": {"type": "array", "x-kubernetes-list-type": "set", "items": STRING},
    "lm": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": ITEM},
    "lm2": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k", "v"], "items": ITEM},
    "objects": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "object", "x-kubernetes-map-type": "atomic"}},
    "ios": {"x-kubernetes-int-or-string": True},
    "any": PRESERVE,
    "lists": {"type": "array", "items": PRESERVE},
    "open": {"type": "object", **PRESERVE, "properties": {"k": STRING}},
}  # fmt: skip


def kind() -> Type:
    return of_schema(parse({"type": "object", "properties": PROPERTIES}))


KIND = kind()

ACCEPTED: list[tuple[str, Any]] = [
    ("scalars", {"a": 1, "s": "x"}),
    ("nulls", dict.fromkeys(PROPERTIES)),
    ("empty containers", {"m": {}, "mm": {}, "atom": {}, "lat": [], "set": [], "lm": [], "any": {}, "lists": [[], {}]}),
    ("maps", {"m": {"a": "b"}, "mm": {"a": {"x": 1}, "b": {}, "c": None}}),
    ("atomic containers", {"atom": {"o": {"x": 1}}, "lat": [{"q": 1, "r": ["x"]}, None, {}]}),
    ("sets", {"set": ["a", "b"]}),
    ("list-maps", {"lm": [{"k": "a", "o": {"x": 1}}, {"k": "b"}], "lm2": [{"k": "a"}, {"k": "a", "v": 2}, {}]}),
    ("anything", {"any": {"a": [1, {"b": None}], "c": {"d": {}}}, "lists": [1, "x", {"a": 1}, [2]], "ios": "5%"}),
    ("anything that is a list", {"any": [{"a": 1}]}),
    ("undeclared fields where they may be", {"open": {"k": "x", "u": {"v": [1]}}}),
    (
        "metadata",
        {"metadata": {"name": "x", "labels": {"a": "b"}, "finalizers": ["a"], "ownerReferences": [{"uid": "u"}]}},
    ),
]


@rows("value", [row[1] for row in ACCEPTED], ids=[row[0] for row in ACCEPTED])
def test_accepted_values_are_valid_and_have_the_same_field_set(value: Any) -> None:
    for _ in range(2):  # the second time the shape is known
        assert accept(value, KIND) == whole(value, KIND)
    assert validate(value, KIND) == []


DOUBTFUL: list[tuple[str, Any]] = [
    ("a scalar of another type", {"a": "x"}),
    ("a boolean for a number", {"a": True}),
    ("a map for a scalar", {"s": {"a": 1}}),
    ("an empty map for a scalar", {"s": {}}),
    ("an empty list for a scalar", {"s": []}),
    ("an empty list for a map", {"m": []}),
    ("an empty map for a list", {"set": {}}),
    ("a list for a map", {"m": [1]}),
    ("a map for a list", {"lat": {"a": 1}}),
    ("a scalar for a map", {"m": 1}),
    ("an undeclared field", {"zz": 1}),
    ("an undeclared field below", {"mm": {"a": {"zz": 1}}}),
    ("a wrong value in a map", {"m": {"a": 1}}),
    ("a wrong value in an atomic map", {"atom": {"o": {"x": "y"}}}),
    ("a wrong item of an atomic list", {"lat": [{}, 1]}),
    ("an empty list as the item of an atomic list", {"lat": [[]]}),
    ("a wrong value in an item of an atomic list", {"lat": [{"r": [1]}]}),
    ("a wrong item of a set", {"set": ["a", 1]}),
    ("null in a set", {"set": ["a", None]}),
    ("an item of a set twice", {"set": ["a", "b", "a"]}),
    ("a map in a set", {"objects": [{"a": 1}]}),
    ("an item of a list-map twice", {"lm": [{"k": "a"}, {"k": "a"}]}),
    ("an item by defaults twice", {"lm2": [{"k": "a"}, {"k": "a", "v": 1}]}),
    ("an item without keys", {"lm": [{"v": 1}]}),
    ("null in a list-map", {"lm": [None]}),
    ("a scalar in a list-map", {"lm": ["a"]}),
    ("a wrong value in an item", {"lm": [{"k": "a", "v": "x"}]}),
    ("a wrong declared field among open ones", {"open": {"k": 1}}),
]


@rows("value", [row[1] for row in ACCEPTED], ids=[row[0] for row in ACCEPTED])
def test_what_is_never_owned_is_left_out(value: Any) -> None:
    value = {"apiVersion": "example.com/v1", "kind": "Widget", **value}
    fields = accept(value, KIND, of_type=True)
    assert owned_fields(KIND, NEVER_OWNED)(value) == difference(fields, NEVER_OWNED)
    assert owned_fields(KIND, NEVER_OWNED, ["m"])(value) == difference({**fields, "f:m": {}}, NEVER_OWNED | {"f:m": {}})


def test_what_is_below_an_undeclared_field_is_never_owned_either() -> None:
    never = {"f:atom": {".": {}, "f:o": {".": {}, "f:x": {}}}, ".": {}, "f:a": {}}
    value = {"a": 1, "s": "x", "atom": {"o": {"x": 1}}}
    assert owned_fields(KIND, never)(value) == difference(accept(value, KIND, of_type=True), never)


@rows("value", [row[1] for row in DOUBTFUL], ids=[row[0] for row in DOUBTFUL])
def test_at_any_doubt_it_gives_up(value: Any) -> None:
    assert validate(value, KIND) != []
    for _ in range(2):
        with pytest.raises(Unsure):
            accept(value, KIND)


def test_a_shape_is_not_remembered_by_its_names_alone() -> None:
    fresh = kind()
    assert accept({"m": {"a": "x"}}, fresh) == {".": {}, "f:m": {".": {}, "f:a": {}}}
    with pytest.raises(Unsure):
        accept({"m": {"a": 1}}, fresh)
    assert accept({"m": {"a": None}}, fresh) == {".": {}, "f:m": {".": {}, "f:a": {}}}
    assert accept({"m": {"b": "x", "a": "x"}}, fresh) == {".": {}, "f:m": {".": {}, "f:a": {}, "f:b": {}}}


def test_maps_of_leaves_share_their_node() -> None:
    one, other = accept({"m": {"a": "x"}}, KIND), accept({"m": {"a": "y"}}, KIND)
    assert one["f:m"] is other["f:m"]


def test_the_memory_of_shapes_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(typed, "MAX_SHAPES", 3)
    fresh = kind()
    for n in range(10):
        assert accept({"m": {f"k{n}": "x"}}, fresh) == {".": {}, "f:m": {".": {}, f"f:k{n}": {}}}
    assert accept({"m": {"k0": "x"}}, fresh) == {".": {}, "f:m": {".": {}, "f:k0": {}}}
