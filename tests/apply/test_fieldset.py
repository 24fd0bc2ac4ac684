"""fieldsV1: its elements, its canonical form, its order, and the algebra of sets."""

from __future__ import annotations

import json
from typing import Any

import pytest

from noxu.apply import fieldset
from noxu.apply.fieldset import (
    MalformedFields,
    contains,
    describe,
    difference,
    intersection,
    matching,
    of,
    ordered,
    parse,
    paths,
    recursive_difference,
    union,
)
from tests.rows import rows

Fields = dict[str, Any]


def text(fields: Fields) -> str:
    return json.dumps(ordered(fields), separators=(",", ":"), ensure_ascii=False)


# --- elements ---

VALUES = [
    ("a plain string", "tcp", 'v:"tcp"'),
    ("an empty string", "", 'v:""'),
    ("a quote and a backslash", 'a"b\\', 'v:"a\\"b\\\\"'),
    ("HTML characters", "<a>&", 'v:"\\u003ca\\u003e\\u0026"'),
    ("JavaScript's line separators", "\u2028\u2029", 'v:"\\u2028\\u2029"'),
    ("control characters", "\n\t\r\b\f\x01", 'v:"\\n\\t\\r\\u0008\\u000c\\u0001"'),
    ("a backslash before a b", "\\b", 'v:"\\\\b"'),
    ("delete, which is no control character", "\x7f", 'v:"\x7f"'),
    ("letters outside ASCII", "é😀", 'v:"é😀"'),
    ("an integer", 8080, "v:8080"),
    ("a large integer", 9223372036854775807, "v:9223372036854775807"),
    ("a whole float", 1.0, "v:1"),
    ("a fraction", 1.5, "v:1.5"),
    ("a small fraction", 0.000001, "v:0.000001"),
    ("a smaller fraction has an exponent of two digits", 1.5e-7, "v:1.5e-07"),
    ("a large float", 1e20, "v:100000000000000000000"),
    ("a larger float", 1e21, "v:1e+21"),
    ("a boolean", True, "v:true"),
    ("null", None, "v:null"),
    ("a list", [1, "a"], 'v:[1,"a"]'),
    ("an object", {"b": 1, "a": None}, 'v:{"a":null,"b":1}'),
]


@rows(("scalar", "expected"), [row[1:] for row in VALUES], ids=[row[0] for row in VALUES])
def test_a_set_item_is_named_by_its_value(scalar: Any, expected: str) -> None:
    assert fieldset.value(scalar) == expected


def test_a_list_map_item_is_named_by_its_keys() -> None:
    assert fieldset.item([("name", "x")]) == 'k:{"name":"x"}'
    assert fieldset.item([("port", 80), ("protocol", "T<P")]) == 'k:{"port":80,"protocol":"T\\u003cP"}'
    assert fieldset.item([('od"d', None)]) == 'k:{"od\\"d":null}'


def test_a_field_element_has_its_name_unescaped() -> None:
    assert fieldset.field('a.b/c"<') == 'f:a.b/c"<'


DESCRIBED = [
    ("fields", ("f:spec", "f:a.b/c"), ".spec.a.b/c"),
    ("the item of a list-map", ("f:ports", 'k:{"name":"x","port":80}', "f:port"), '.ports[name="x",port=80].port'),
    ("the item of a set", ("f:set", 'v:"a\\"b"'), '.set[="a\\"b"]'),
    ("values that are no strings", ("v:true", "v:null", "v:1.5"), "[=true][=null][=1.5]"),
    ("an index", ("i:3",), "[3]"),
    ("stored numbers are floats, which Go prints with exponents", ('k:{"p":1000000}',), "[p=1e+06]"),
    ("no keys at all", ("k:{}",), "[]"),
    ("a list", ('v:[1,"a",[],[null]]',), '[=[1,"a",[],[null]]]'),
    ("a map, which has no brackets", ('k:{"k":{"b":[true],"a":{}}}',), "[k=a=b=[true]]"),
    ("an empty map", ('k:{"k":{}}',), "[k=]"),
]


@rows(("path", "expected"), [row[1:] for row in DESCRIBED], ids=[row[0] for row in DESCRIBED])
def test_paths_are_described_as_in_messages(path: tuple[str, ...], expected: str) -> None:
    assert describe(path) == expected


def test_numbers_of_objects_are_described_in_full() -> None:
    assert describe(('k:{"p":1000000}', "v:2000000"), stored=False) == "[p=1000000][=2000000]"


# --- reading ---

CANONICAL: list[tuple[str, Fields]] = [
    ("nothing", {}),
    ("a leaf", {"f:a": {}}),
    ("a member with members below", {"f:a": {".": {}, "f:b": {}}}),
    ("a member below", {"f:a": {"f:b": {}}}),
    ("items", {"f:l": {'k:{"n":"x"}': {".": {}, "f:n": {}}, 'v:"a"': {}, "i:0": {}}}),
]


@pytest.mark.parametrize("fields", [row[1] for row in CANONICAL], ids=[row[0] for row in CANONICAL])
def test_canonical_fields_are_taken_unchanged(fields: Fields) -> None:
    assert parse(fields) is fields


NORMALISED: list[tuple[str, Any, Fields]] = [
    ("null is the empty set", None, {}),
    ("a null child is a leaf", {"f:a": None}, {"f:a": {}}),
    ("a lone dot is a leaf", {"f:a": {".": {}}}, {"f:a": {}}),
    ("any value of the dot", {"f:a": {".": 1, "f:b": {}}}, {"f:a": {".": {}, "f:b": {}}}),
    ("a dot at the root means nothing", {".": {}, "f:a": {}}, {"f:a": {}}),
    ("unknown kinds are forgotten", {"x:a": {"f:b": 1}, "f:a": {}}, {"f:a": {}}),
    ("whose children are forgotten is a leaf", {"f:a": {"x:b": {"f:c": {}}}}, {"f:a": {}}),
    ("whose children are forgotten but itself", {"f:a": {".": {}, "x:b": {}}}, {"f:a": {}}),
    ("keys are sorted", {'k:{"b":1,"a":2}': {}}, {'k:{"a":2,"b":1}': {}}),
    ("spaces go", {'k:{ "a" : 1 }': {}, "v: 1 ": {}}, {'k:{"a":1}': {}, "v:1": {}}),
    ("null keys are no keys", {"k:null": {}}, {"k:{}": {}}),
    ("numbers are written one way", {"v:1e2": {}, "v:-0.5e0": {}}, {"v:100": {}, "v:-0.5": {}}),
    ("equal numbers are one element", {"v:1": {"f:a": {}}, "v:1.0": {}}, {"v:1": {".": {}, "f:a": {}}}),
    ("characters are escaped one way", {'v:"\\u0061<"': {}}, {'v:"a\\u003c"': {}}),
    ("indices are numbers", {"i:+01": {}, "i:-1": {}}, {"i:1": {}, "i:-1": {}}),
    ("a field may have an empty name", {"f:": {}}, {"f:": {}}),
    ("deep inside", {"f:a": {"f:b": {"v:1.0": {"f:c": None}}}}, {"f:a": {"f:b": {"v:1": {"f:c": {}}}}}),
    ("long elements", {'v:"' + "<" * 300 + '"': {}}, {'v:"' + "\\u003c" * 300 + '"': {}}),
]


@rows(("given", "expected"), [row[1:] for row in NORMALISED], ids=[row[0] for row in NORMALISED])
def test_other_fields_are_made_canonical(given: Any, expected: Fields) -> None:
    before = json.dumps(given)
    assert parse(given) == expected
    assert json.dumps(given) == before
    assert parse(expected) is expected


MALFORMED: list[tuple[str, Any]] = [
    ("a list", []),
    ("a string", "f:a"),
    ("a number for a node", {"f:a": 1}),
    ("a list for a node", {"f:a": []}),
    ("an empty string for a node", {"f:a": ""}),
    ("false for a node", {"f:a": False}),
    ("a key without a kind", {"bad": {}}),
    ("a key of one character", {"f": {}}),
    ("an empty key", {"": {}}),
    ("a first character that is not ASCII", {"é:a": {}}),
    ("no value", {"v:": {}}),
    ("no JSON", {"v:tru": {}}),
    ("leading zeros", {"v:01": {}}),
    ("two values", {"v:1 2": {}}),
    ("no keys", {"k:": {}}),
    ("keys that are no object", {"k:[1]": {}}),
    ("keys that are no JSON", {'k:{"a":1}x': {}}),
    ("no index", {"i:": {}}),
    ("an index that is no number", {"i:x": {}}),
    ("an index of another script", {"i:١": {}}),
    ("an index beyond 64 bits", {"i:9223372036854775808": {}}),
    ("an index of many digits", {"i:" + "9" * 5000: {}}),
    ("deep inside", {"f:a": {"f:b": {"nope": {}}}}),
    ("a sibling of a dropped element", {"x:a": {}, "f:b": {"f:c": 1}}),
]


@rows("given", [row[1] for row in MALFORMED], ids=[row[0] for row in MALFORMED])
def test_malformed_fields_are_refused(given: Any) -> None:
    with pytest.raises(MalformedFields):
        parse(given)


# --- writing ---


def test_elements_are_written_in_upstreams_order() -> None:
    mixed: Fields = dict.fromkeys(  # noqa: RUF024 - the values are not changed
        ['v:"a"', "i:10", "f:b", "v:true", 'k:{"n":"b"}', "v:10", "i:9", "f:a", "v:null", "v:9", 'k:{"n":10}', 'k:{"n":9}',
         "v:{}", "v:[1]", "v:1.5", 'k:{"m":"z"}', "v:false", 'k:{"n":9,"o":1}'],
        {},
    )  # fmt: skip
    assert list(ordered(mixed)) == [
        "f:a", "f:b",
        'k:{"m":"z"}', 'k:{"n":9}', 'k:{"n":9,"o":1}', 'k:{"n":10}', 'k:{"n":"b"}',
        "v:1.5", "v:9", "v:10", 'v:"a"', "v:false", "v:true", "v:[1]", "v:{}", "v:null",
        "i:9", "i:10",
    ]  # fmt: skip


def test_the_node_itself_is_written_first() -> None:
    assert text({"f:b": {"f:y": {}, ".": {}, "f:x": {}}, "f:a": {}}) == '{"f:a":{},"f:b":{".":{},"f:x":{},"f:y":{}}}'


# --- building and asking ---


def test_a_set_is_built_of_paths() -> None:
    assert of() == {}
    assert of(("f:a",), ("f:a", "f:b")) == {"f:a": {".": {}, "f:b": {}}}
    assert of(("f:a", "f:b"), ("f:a",)) == {"f:a": {".": {}, "f:b": {}}}
    assert of(("f:a", "f:b"), ("f:a", "f:c"), ("f:a", "f:b")) == {"f:a": {"f:b": {}, "f:c": {}}}


def test_a_set_knows_its_members() -> None:
    fields = {"f:a": {"f:b": {".": {}, "f:c": {}}}, "f:d": {}}
    assert contains(fields, ("f:d",))
    assert contains(fields, ("f:a", "f:b"))
    assert contains(fields, ("f:a", "f:b", "f:c"))
    assert not contains(fields, ("f:a",))
    assert not contains(fields, ("f:d", "f:e"))
    assert not contains(fields, ("f:x",))
    assert not contains(fields, ())


def test_members_are_reported_level_by_level() -> None:
    fields = {"f:b": {".": {}, "f:z": {}}, "f:a": {"f:y": {"f:q": {}}, 'v:"s"': {}}, "f:c": {}}
    messages = [describe(path) for path in paths(fields)]
    assert messages == [".b", ".c", '.a[="s"]', ".a.y.q", ".b.z"]


# --- algebra ---

A: Fields = {"f:x": {}}
SELF_AND_BELOW: Fields = {"f:x": {".": {}, "f:y": {}}}
BELOW: Fields = {"f:x": {"f:y": {}}}
OTHER: Fields = {"f:x": {"f:z": {}}}

ALGEBRA: list[tuple[str, Fields, Fields, dict[str, Fields]]] = [
    ("the same", BELOW, dict(BELOW), {"union": BELOW, "both": BELOW, "left": {}, "deep": {}}),
    ("nothing on the left", {}, A, {"union": A, "both": {}, "left": {}, "deep": {}}),
    ("nothing on the right", A, {}, {"union": A, "both": {}, "left": A, "deep": A}),
    ("strangers", A, {"f:y": {}}, {"union": {"f:x": {}, "f:y": {}}, "both": {}, "left": A, "deep": A}),
    ("a leaf and what is below", A, BELOW, {"union": SELF_AND_BELOW, "both": {}, "left": A, "deep": A}),
    ("what is below and the leaf", BELOW, A, {"union": SELF_AND_BELOW, "both": {}, "left": BELOW, "deep": {}}),
    ("both and the leaf", SELF_AND_BELOW, A, {"union": SELF_AND_BELOW, "both": A, "left": BELOW, "deep": {}}),
    ("the leaf and both", A, SELF_AND_BELOW, {"union": SELF_AND_BELOW, "both": A, "left": {}, "deep": {}}),
    ("both and what is below", SELF_AND_BELOW, BELOW, {"union": SELF_AND_BELOW, "both": BELOW, "left": A, "deep": A}),
    ("siblings", BELOW, OTHER, {"union": {"f:x": {"f:y": {}, "f:z": {}}}, "both": {}, "left": BELOW, "deep": BELOW}),
    (
        "three levels",
        {"f:x": {"f:y": {"f:1": {}, "f:2": {}}, "f:z": {}}},
        {"f:x": {"f:y": {"f:2": {}}, "f:w": {}}},
        {
            "union": {"f:x": {"f:y": {"f:1": {}, "f:2": {}}, "f:z": {}, "f:w": {}}},
            "both": {"f:x": {"f:y": {"f:2": {}}}},
            "left": {"f:x": {"f:y": {"f:1": {}}, "f:z": {}}},
            "deep": {"f:x": {"f:y": {"f:1": {}}, "f:z": {}}},
        },
    ),
    (
        "a member half way down includes its children only on request",
        {"f:x": {".": {}, "f:y": {".": {}, "f:1": {}}}},
        {"f:x": {"f:y": {}}},
        {
            "union": {"f:x": {".": {}, "f:y": {".": {}, "f:1": {}}}},
            "both": {"f:x": {"f:y": {}}},
            "left": {"f:x": {".": {}, "f:y": {"f:1": {}}}},
            "deep": {"f:x": {}},
        },
    ),
]


@rows(("left", "right", "expected"), [row[1:] for row in ALGEBRA], ids=[row[0] for row in ALGEBRA])
def test_the_algebra_of_sets(left: Fields, right: Fields, expected: dict[str, Fields]) -> None:
    before = json.dumps([left, right])
    assert union(left, right) == expected["union"]
    assert union(right, left) == expected["union"]
    assert intersection(left, right) == expected["both"]
    assert intersection(right, left) == expected["both"]
    assert difference(left, right) == expected["left"]
    assert recursive_difference(left, right) == expected["deep"]
    assert json.dumps([left, right]) == before


@pytest.mark.slow
def test_sets_may_be_as_deep_as_clients_like() -> None:
    depth = 10_000
    fields: Fields = {}
    for _ in range(depth):
        fields = {"f:a": fields}
    longest = ("f:a",) * depth
    assert parse(fields) is fields
    assert contains(ordered(fields), longest)
    assert contains(union(fields, {"f:b": {}}), longest)
    assert contains(intersection(fields, union(fields, {"f:b": {}})), longest)
    assert difference(fields, ordered(fields)) == {}
    assert contains(difference(fields, {"f:b": {}}), longest)
    assert contains(recursive_difference(fields, {"f:a": {"f:b": {}}}), longest)
    assert [len(path) for path in paths(fields)] == [depth]
    noncanonical: Any = {".": {}}
    for _ in range(depth):
        noncanonical = {"f:a": noncanonical}
    assert contains(parse(noncanonical), longest)


MATCHES: list[tuple[str, Fields, Fields, Fields]] = [
    ("what is below a path", {"f:a": {"f:x": {}, "f:y": {}}}, {"f:a": {}}, {"f:a": {"f:x": {}, "f:y": {}}}),
    ("nothing beside it", {"f:a": {}, "f:b": {"f:x": {}}}, {"f:b": {}}, {"f:b": {"f:x": {}}}),
    ("fields along a path", {"f:a": {".": {}, "f:x": {}, "f:y": {}}}, {"f:a": {"f:x": {}}}, {"f:a": {".": {}, "f:x": {}}}),
    ("no field without members", {"f:a": {"f:y": {}}}, {"f:a": {"f:x": {}}}, {}),
    ("a member that has only others below it", {"f:a": {".": {}, "f:y": {}}}, {"f:a": {"f:x": {}}}, {"f:a": {}}),
    ("a leaf along a path", {"f:a": {}}, {"f:a": {"f:x": {}}}, {"f:a": {}}),
    ("any item", {"f:a": {'k:{"name":"x"}': {"f:r": {}, "f:s": {}}}}, {"f:a": {"*": {"f:r": {}}}}, {"f:a": {'k:{"name":"x"}': {"f:r": {}}}}),
    ("nothing of nothing", {}, {"f:a": {}}, {}),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "pattern", "kept"), [row[1:] for row in MATCHES], ids=[row[0] for row in MATCHES])
def test_a_pattern_keeps(fields: Fields, pattern: Fields, kept: Fields) -> None:
    assert matching(fields, pattern) == kept
