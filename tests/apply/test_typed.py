"""Values under a type: their errors, and their field sets."""

from __future__ import annotations

import json
from typing import Any

import pytest

from noxu.apply import types
from noxu.apply.fieldset import parse, text
from noxu.apply.typed import (
    BadItem,
    ensure_named,
    identified,
    item_of,
    join_errors,
    reconcile,
    to_set,
    validate,
    whole,
)
from noxu.apply.types import DEDUCED, ListType, Type, of_schema
from noxu.schema.structural import Structural
from noxu.schema.structural import parse as parse_schema
from tests.rows import rows

STRING = {"type": "string"}
INTEGER = {"type": "integer"}
PRESERVE = {"x-kubernetes-preserve-unknown-fields": True}
ITEM = {
    "type": "object",
    "properties": {"k": STRING, "p": {"type": "integer", "default": 1}, "v": STRING, "o": {"type": "object", "properties": {"x": STRING}}},
}  # fmt: skip


def listed(how: str, items: dict[str, Any], *keys: str) -> dict[str, Any]:
    schema = {"type": "array", "x-kubernetes-list-type": how, "items": items}
    return schema | ({"x-kubernetes-list-map-keys": list(keys)} if keys else {})


def mapped(values: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": values, **more}


PROPERTIES: dict[str, Any] = {
    "a": INTEGER,
    "s": STRING,
    "b": {"type": "boolean"},
    "n": {"type": "number"},
    "date": {"type": "string", "format": "date"},
    "m": mapped(STRING),
    "mm": mapped({"type": "object", "properties": {"x": INTEGER}}),
    "o": {"type": "object", "properties": {"x": INTEGER, "p": {"type": "object", "properties": {"y": INTEGER}}}},
    "atom": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"x": STRING}},
    "lat": {"type": "array", "items": {"type": "object", "properties": {"q": INTEGER}}},
    "set": listed("set", STRING),
    "numbers": listed("set", INTEGER),
    "lists": mapped(listed("set", STRING)),
    "lm": listed("map", ITEM, "k"),
    "lm2": listed("map", ITEM, "k", "p"),
    "ios": {"x-kubernetes-int-or-string": True},
    "any": PRESERVE,
    "open": {"type": "object", **PRESERVE, "properties": {"k": {"type": "object", "properties": {"x": INTEGER}}}},
}


def of(properties: dict[str, Any]) -> Type:
    return of_schema(parse_schema({"type": "object", "properties": properties}))


KIND = of(PROPERTIES)


# --- items of lists ---


def list_type(name: str) -> ListType:
    assert KIND.map is not None
    kind = KIND.map.fields[name][1].list
    assert kind is not None
    return kind


ITEMS: list[tuple[str, str, Any, str]] = [
    ("a set's by its value", "set", "x", 'v:"x"'),
    ("a number's", "numbers", 2, "v:2"),
    ("a list-map's by its key", "lm", {"k": "x", "v": "y"}, 'k:{"k":"x"}'),
    ("by a key that needs escapes", "lm", {"k": "<"}, 'k:{"k":"\\u003c"}'),
    ("by a key that is null", "lm", {"k": None}, 'k:{"k":null}'),
    ("by two keys, sorted", "lm2", {"p": 2, "k": "x"}, 'k:{"k":"x","p":2}'),
    ("by the default of a key", "lm2", {"k": "x"}, 'k:{"k":"x","p":1}'),
    ("by the keys it has", "lm2", {}, 'k:{"p":1}'),
]


@pytest.mark.parametrize(("name", "item", "expected"), [row[1:] for row in ITEMS], ids=[row[0] for row in ITEMS])
def test_items_are_named(name: str, item: Any, expected: str) -> None:
    for _ in range(2):  # the second time it may be known
        assert item_of(list_type(name), item) == expected


EQUAL: list[tuple[str, list[Any], list[int]]] = [
    # case, the items of a set, the first item that is equal to each
    ("texts", ["a", "b", "a"], [0, 1, 0]),
    ("integers beyond 2^53", [2**53, 2**53 + 1], [0, 1]),
    ("the float that is nearest to them", [2**53, 2**53 + 1, 2.0**53], [0, 1, 0]),
    ("before them", [2.0**53, 2**53, 2**53 + 1], [0, 0, 0]),
    ("zeros", [0, -0.0, 0.0], [0, 0, 0]),
    ("minus zero first", [-0.0, 0], [0, 0]),
    ("beyond int64", [2.0**63, 2**63 - 1, 2.0**64], [0, 0, 2]),
    ("texts of numbers", [1.5, "1.5", True, 1], [0, 1, 2, 3]),
]  # fmt: skip


@rows(("items", "firsts"), [row[1:] for row in EQUAL], ids=[row[0] for row in EQUAL])
@pytest.mark.parametrize("key", ["", "k"])
def test_the_first_of_equal_items_names_all(items: list[Any], firsts: list[int], key: str) -> None:
    values = [{key: item} for item in items] if key else items
    kind = ListType(DEDUCED, associative=True, keys=(key,) if key else ())
    element_of = identified(kind, values)
    assert [element_of(value) for value in values] == [item_of(kind, values[first]) for first in firsts]


def test_names_of_items_are_kept_up_to_a_limit() -> None:
    kind = ListType(DEDUCED, associative=True, keys=("k",))
    keys = [*(f"n{number}" for number in range(3 * types.MAX_KEPT)), "x" * (types.MAX_KEPT_KEY + 1), 1, "1", True, 1.0]
    for _ in range(2):
        for key in keys:
            assert item_of(kind, {"k": key}) == f'k:{{"k":{text(key)}}}'
    assert 0 < len(kind.elements) <= types.MAX_KEPT
    assert max(map(len, kind.elements)) <= types.MAX_KEPT_KEY


BAD_ITEMS: list[tuple[str, Any, str]] = [
    ("set", {"a": 1}, "associative list without keys has an element that's a map type"),
    ("set", ["a"], "not supported: associative list with lists as elements"),
    ("set", None, "associative list without keys has an element that's an explicit null"),
    ("lm", None, "associative list with keys may not have a null element"),
    ("lm", "x", "associative list with keys may not have non-map elements"),
    (
        "lm",
        {"v": "x"},
        'associative list with keys has an element that omits all key fields ["k"]'
        " (and doesn't have default values for any key fields)",
    ),
]


@pytest.mark.parametrize(("name", "item", "expected"), BAD_ITEMS)
def test_items_without_a_place_are_refused(name: str, item: Any, expected: str) -> None:
    with pytest.raises(BadItem) as refused:
        item_of(list_type(name), item)
    assert str(refused.value) == expected


def test_several_missing_keys_are_all_reported() -> None:
    kind = ListType(DEDUCED, associative=True, keys=("x", "y"))
    with pytest.raises(BadItem, match=r'omits all key fields \["x" "y"\]'):
        item_of(kind, {})


# --- validation ---

VALID: list[tuple[str, Any]] = [
    ("nothing", {}),
    ("null anywhere", dict.fromkeys(PROPERTIES)),
    ("null inside", {"mm": {"a": None}, "lat": [None, {"q": None}], "o": {"p": None}}),
    ("numbers are integers and fractions alike", {"a": 1.5, "n": 1}),
    ("a date is any scalar", {"date": 5}),
    ("an int-or-string may even be a map", {"ios": {"a": 1}}),
    ("anything", {"any": [{"a": [1, None]}], "open": {"z": {"y": []}}}),
    ("empty containers", {"m": {}, "lat": [], "set": [], "lm": [], "atom": {}}),
    ("items that lack a key with a default", {"lm2": [{"k": "a"}]}),
]


@pytest.mark.parametrize("value", [row[1] for row in VALID], ids=[row[0] for row in VALID])
def test_a_value_is_of_its_type(value: Any) -> None:
    assert validate(value, KIND) == []


INVALID: list[tuple[str, Any, list[str]]] = [
    ("a string for a number", {"a": "x"}, [".a: expected numeric (int or float), got string"]),
    ("a map for a number", {"a": {}}, [".a: expected numeric (int or float), got map[string]interface {}"]),
    ("a boolean for a number", {"a": True}, [".a: expected numeric (int or float), got bool"]),
    ("a list for a number", {"n": [1]}, [".n: expected numeric (int or float), got []interface {}"]),
    ("a number for a string", {"s": 5}, [".s: expected string, got &value.valueUnstructured{Value:5}"]),
    (
        "a map for a string",
        {"s": {"a": [None]}},
        ['.s: expected string, got &value.valueUnstructured{Value:map[string]interface {}{"a":[]interface {}{interface {}(nil)}}}'],
    ),
    ("a string for a boolean", {"b": "true"}, [".b: expected boolean, got &{true}"]),
    ("a list for any scalar", {"date": ["x"]}, [".date: expected any scalar, got &{[x]}"]),
    ("a scalar for a map", {"m": "x"}, [".m: expected map, got &{x}"]),
    ("a list for a map", {"o": [1, "a"]}, [".o: expected map, got &{[1 a]}"]),
    ("a map for a list", {"set": {"a": 1}}, [".set: expected list, got &{map[a:1]}"]),
    ("a scalar for a list", {"lat": 1.5}, [".lat: expected list, got &{1.5}"]),
    ("an undeclared field", {"zz": 1}, [".zz: field not declared in schema"]),
    ("an undeclared field below", {"o": {"p": {"z": 1}}}, [".o.p.z: field not declared in schema"]),
    ("a key's value", {"m": {"k.with/odd": 1}}, [".m.k.with/odd: expected string, got &value.valueUnstructured{Value:1}"]),
    ("the item of an atomic list", {"lat": [{}, {"q": "x"}]}, [".lat[1].q: expected numeric (int or float), got string"]),
    ("inside an atomic map", {"atom": {"x": 1}}, [".atom.x: expected string, got &value.valueUnstructured{Value:1}"]),
    ("the item of a list-map", {"lm": [{"k": "a", "v": 1}]}, ['.lm[k="a"].v: expected string, got &value.valueUnstructured{Value:1}']),
    ("an item without a place", {"set": ["a", {}]}, [".set: element 1: associative list without keys has an element that's a map type"]),
    ("an item twice", {"set": ["a", "b", "a"]}, ['.set: duplicate entries for key [="a"]']),
    ("a number twice", {"numbers": [1000000, 1000000]}, [".numbers: duplicate entries for key [=1000000]"]),
    ("an integer and its float", {"numbers": [2**63 - 1, 2.0**63]}, [".numbers: duplicate entries for key [=9.223372036854776e+18]"]),
    ("a float and its integer", {"numbers": [2.0**63, 2**63 - 1]}, [".numbers: duplicate entries for key [=9223372036854775807]"]),
    ("keys twice", {"lm2": [{"k": "a"}, {"k": "a", "p": 1}]}, ['.lm2: duplicate entries for key [k="a",p=1]']),
    ("three times is two too many", {"set": ["a", "a", "a"]}, ['.set: duplicate entries for key [="a"]'] * 2),
    ("a declared field where others are open", {"open": {"k": {"x": "y"}}}, [".open.k.x: expected numeric (int or float), got string"]),
    (
        "several, by name and index",
        {"s": 1, "lat": [{"q": "x"}, {"q": "y"}], "a": "z"},
        [
            ".a: expected numeric (int or float), got string",
            ".lat[0].q: expected numeric (int or float), got string",
            ".lat[1].q: expected numeric (int or float), got string",
            ".s: expected string, got &value.valueUnstructured{Value:1}",
        ],
    ),
    (
        "what is wrong in an item comes after its being there twice, and ends with one without a place",
        {"lm": [{"k": "a", "v": 1}, {"k": "a", "v": 2}, {}, {"k": "b", "v": 3}]},
        [
            '.lm[k="a"].v: expected string, got &value.valueUnstructured{Value:1}',
            '.lm: duplicate entries for key [k="a"]',
            '.lm[k="a"].v: expected string, got &value.valueUnstructured{Value:2}',
            '.lm: element 2: associative list with keys has an element that omits all key fields ["k"]'
            " (and doesn't have default values for any key fields)",
        ],
    ),
    (
        "an undeclared field ends the map it is in",
        {"o": {"a": 1, "x": "y"}, "z": 1, "zz": 2},
        [".o.a: field not declared in schema", ".z: field not declared in schema"],
    ),
]  # fmt: skip


@rows(("value", "expected"), [row[1:] for row in INVALID], ids=[row[0] for row in INVALID])
def test_a_value_is_not_of_its_type(value: Any, expected: list[str]) -> None:
    assert validate(value, KIND) == expected


def test_live_objects_may_have_items_twice() -> None:
    value = {"set": ["a", "a"], "lm": [{"k": "a"}, {"k": "a"}]}
    assert validate(value, KIND, duplicates=True) == []
    assert validate({"set": ["a", "a", {}]}, KIND, duplicates=True) != []


def test_the_root_has_no_path() -> None:
    assert validate([], KIND) == ["expected map, got &{[]}"]


def test_errors_are_joined_in_lines() -> None:
    assert join_errors(["one"]) == "one"
    assert join_errors([".a: one", ".b: two"]) == "errors:\n  .a: one\n  .b: two"


# --- the fields of a value ---

FIELDS: list[tuple[str, Any, Any, Any]] = [
    # value, what applying it claims, what bringing it adds below the root
    ("scalars", {"a": 1, "s": "", "b": False}, {"f:a": {}, "f:s": {}, "f:b": {}}, {"f:a": {}, "f:s": {}, "f:b": {}}),
    ("nulls", {"a": None, "m": None, "set": None}, {"f:a": {}, "f:m": {}, "f:set": {}}, {"f:a": {}, "f:m": {}, "f:set": {}}),
    ("structs on the way", {"o": {"p": {"y": 1}}}, {"f:o": {"f:p": {"f:y": {}}}},
     {"f:o": {".": {}, "f:p": {".": {}, "f:y": {}}}}),
    ("map keys", {"m": {"x/y": "z"}}, {"f:m": {"f:x/y": {}}}, {"f:m": {".": {}, "f:x/y": {}}}),
    ("map keys on the way", {"mm": {"k": {"x": 1}}}, {"f:mm": {"f:k": {".": {}, "f:x": {}}}},
     {"f:mm": {".": {}, "f:k": {".": {}, "f:x": {}}}}),
    ("atomic maps and lists", {"atom": {"x": "1"}, "lat": [{"q": 1}]}, {"f:atom": {}, "f:lat": {}}, {"f:atom": {}, "f:lat": {}}),
    ("empty maps", {"m": {}, "o": {}, "atom": {}}, {"f:m": {}, "f:o": {}, "f:atom": {}}, {"f:m": {}, "f:o": {}, "f:atom": {}}),
    ("an empty atomic list", {"lat": []}, {"f:lat": {}}, {"f:lat": {}}),
    ("an empty set has no owner", {"set": [], "lm": []}, {}, {"f:set": {}, "f:lm": {}}),
    ("a struct with nothing but that", {"lists": {"a": []}}, {"f:lists": {"f:a": {}}}, {"f:lists": {".": {}, "f:a": {}}}),
    ("items of sets", {"set": ["x", "y"]}, {"f:set": {'v:"x"': {}, 'v:"y"': {}}}, {"f:set": {".": {}, 'v:"x"': {}, 'v:"y"': {}}}),
    ("items of list-maps", {"lm": [{"k": "a", "o": {"x": "1"}}]},
     {"f:lm": {'k:{"k":"a"}': {".": {}, "f:k": {}, "f:o": {"f:x": {}}}}},
     {"f:lm": {".": {}, 'k:{"k":"a"}': {".": {}, "f:k": {}, "f:o": {".": {}, "f:x": {}}}}}),
    ("an item of defaults only", {"lm2": [{}]}, {"f:lm2": {'k:{"p":1}': {}}}, {"f:lm2": {".": {}, 'k:{"p":1}': {}}}),
    ("duplicate items", {"set": ["x", "x", "y"], "lm": [{"k": "a"}, {"k": "a", "v": "2"}]},
     {"f:set": {'v:"x"': {}, 'v:"y"': {}}, "f:lm": {'k:{"k":"a"}': {}}},
     {"f:set": {".": {}, 'v:"x"': {}, 'v:"y"': {}}, "f:lm": {".": {}, 'k:{"k":"a"}': {}}}),
    ("lists in maps", {"lists": {"a": ["x"]}}, {"f:lists": {"f:a": {".": {}, 'v:"x"': {}}}},
     {"f:lists": {".": {}, "f:a": {".": {}, 'v:"x"': {}}}}),
    ("what is deduced", {"any": {"a": {"b": [1]}, "c": {}, "d": None}},
     {"f:any": {"f:a": {".": {}, "f:b": {}}, "f:c": {}, "f:d": {}}},
     {"f:any": {".": {}, "f:a": {".": {}, "f:b": {}}, "f:c": {}, "f:d": {}}}),
    ("a scalar where anything goes", {"any": 1, "ios": "5%"}, {"f:any": {}, "f:ios": {}}, {"f:any": {}, "f:ios": {}}),
    ("a list where anything goes", {"any": [{"a": 1}]}, {"f:any": {}}, {"f:any": {}}),
    ("declared and undeclared fields", {"open": {"k": {"x": 1}, "u": {"v": 1}}},
     {"f:open": {"f:k": {"f:x": {}}, "f:u": {".": {}, "f:v": {}}}},
     {"f:open": {".": {}, "f:k": {".": {}, "f:x": {}}, "f:u": {".": {}, "f:v": {}}}}),
]  # fmt: skip


@rows(("value", "claimed", "brought"), [row[1:] for row in FIELDS], ids=[row[0] for row in FIELDS])
def test_the_fields_of_a_value(value: Any, claimed: Any, brought: Any) -> None:
    before = json.dumps(value)
    assert to_set(value, KIND) == claimed
    assert whole(value, KIND) == {".": {}, **brought}
    assert parse(to_set(value, KIND)) == claimed
    assert json.dumps(value) == before


# --- sets under a type ---

NAMED: list[tuple[str, Any, Any]] = [
    ("a struct on the way", {"f:o": {"f:p": {"f:y": {}}}}, {"f:o": {".": {}, "f:p": {".": {}, "f:y": {}}}}),
    ("a map on the way, but no key", {"f:mm": {"f:k": {"f:x": {}}}}, {"f:mm": {".": {}, "f:k": {"f:x": {}}}}),
    ("a field of an item, but no item", {"f:lm": {'k:{"k":"a"}': {"f:o": {"f:x": {}}}}},
     {"f:lm": {".": {}, 'k:{"k":"a"}': {"f:o": {".": {}, "f:x": {}}}}}),
    ("nothing below what is not known", {"f:zz": {"f:o": {"f:x": {}}}, 'v:"x"': {"f:o": {"f:x": {}}}},
     {"f:zz": {"f:o": {"f:x": {}}}, 'v:"x"': {"f:o": {"f:x": {}}}}),
    ("declared fields among open ones", {"f:open": {"f:k": {"f:x": {}}, "f:u": {"f:v": {}}}},
     {"f:open": {".": {}, "f:k": {".": {}, "f:x": {}}, "f:u": {"f:v": {}}}}),
    ("leaves stay leaves", {"f:a": {}, "f:o": {}}, {"f:a": {}, "f:o": {}}),
    ("existing elements stay", {"f:o": {".": {}, "f:x": {}}}, {"f:o": {".": {}, "f:x": {}}}),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "expected"), [row[1:] for row in NAMED], ids=[row[0] for row in NAMED])
def test_named_fields_become_members(fields: Any, expected: Any) -> None:
    before = json.dumps(fields)
    assert ensure_named(fields, KIND) == expected
    assert json.dumps(fields) == before


RECONCILED: list[tuple[str, Any, Any]] = [
    ("what is granular still", {"f:m": {"f:a": {}}, "f:o": {"f:x": {}}}, None),
    ("an atomic map", {"f:atom": {"f:x": {}}}, {"f:atom": {}}),
    ("an atomic map that was a member", {"f:atom": {".": {}, "f:x": {}}}, {"f:atom": {}}),
    ("an atomic map that is owned as one", {"f:atom": {}}, None),
    ("an atomic list", {"f:lat": {'k:{"q":1}': {".": {}, "f:q": {}}}, "f:a": {}}, {"f:lat": {}, "f:a": {}}),
    ("what has become granular", {"f:set": {}, "f:lm": {}}, None),
    ("deep in items", {"f:lm": {'k:{"k":"a"}': {".": {}, "f:o": {"f:x": {"f:y": {}}}}}}, None),
    ("unknown fields", {"f:zz": {"f:y": {"f:x": {}}}}, None),
    ("parts of what is deduced", {"f:any": {"f:a": {"i:0": {}}}, "f:ios": {"f:a": {"f:b": {}}}}, None),
    ("declared fields among open ones", {"f:open": {"f:k": {"f:x": {}}, "f:u": {"i:0": {}}}}, None),
    ("two at once", {"f:atom": {"f:x": {}}, "f:lat": {"i:0": {}}, "f:o": {"f:p": {"f:y": {}}}},
     {"f:atom": {}, "f:lat": {}, "f:o": {"f:p": {"f:y": {}}}}),
]  # fmt: skip


@rows(("fields", "expected"), [row[1:] for row in RECONCILED], ids=[row[0] for row in RECONCILED])
def test_sets_follow_a_type_that_has_become_atomic(fields: Any, expected: Any) -> None:
    before = json.dumps(fields)
    if expected is None:
        assert reconcile(fields, KIND) is fields
    else:
        assert reconcile(fields, KIND) == expected
    assert json.dumps(fields) == before


def test_an_atomic_list_in_a_map_of_lists() -> None:
    kind = of({"m": mapped({"type": "array", "items": STRING})})
    assert reconcile({"f:m": {"f:a": {".": {}, 'v:"x"': {}}, "f:b": {}}}, kind) == {"f:m": {"f:a": {}, "f:b": {}}}


def test_an_atomic_map_of_untyped_scalars_is_taken_for_deduced() -> None:
    """As upstream: a map of int-or-strings looks like one that nothing is known about."""
    kind = of({"m": mapped({"x-kubernetes-int-or-string": True}, **{"x-kubernetes-map-type": "atomic"})})
    fields = {"f:m": {"f:a": {}}}
    assert reconcile(fields, kind) is fields


# --- depth ---


def test_depth_does_not_matter_where_types_end() -> None:
    depth = 10_000
    value: Any = 1
    fields: Any = {}
    for _ in range(depth):
        value = {"a": value}
        fields = {"f:a": fields}
    assert validate({"any": value}, KIND) == []
    claimed = to_set({"any": value}, KIND)
    brought = whole({"any": value}, KIND)
    for node in (claimed["f:any"], brought["f:any"]):
        levels = 0
        while node:
            node = node["f:a"]
            levels += 1
        assert levels == depth
    assert validate({"s": value}, KIND)[0].startswith(".s: expected string, got &value.valueUnstructured{Value:map[")
    assert ensure_named({"f:any": fields}, KIND)["f:any"].keys() == {".", "f:a"}
    assert reconcile({"f:open": {"f:k": fields}}, KIND)["f:open"].keys() == {"f:k"}


def test_schemas_of_four_hundred_levels_are_no_problem() -> None:
    schema = Structural(type="integer")
    value: Any = 1
    for _ in range(400):
        schema = Structural(type="object", properties={"a": schema})
        value = {"a": value}
    kind = of_schema(schema)
    assert validate(value, kind) == []
    assert ensure_named(to_set(value, kind), kind) == {"f:a": whole(value, kind)["f:a"]}


def test_a_set_in_line_with_one_type_may_not_be_with_another() -> None:
    granular, atomic = (
        of_schema(parse_schema({"type": "object", "properties": {"m": mapped(STRING, **more)}}))
        for more in ({}, {"x-kubernetes-map-type": "atomic"})
    )
    fields = {"f:m": {"f:a": {}}}
    for _ in range(2):
        assert reconcile(fields, granular) is fields
        assert reconcile(fields, atomic) == {"f:m": {}}
