"""Ratcheting (KEP-4008): which errors an old value excuses. The reference server gave every expected result."""

from __future__ import annotations

import time

import pytest

from noxu.schema.structural import parse
from noxu.schema.validation import validate, validate_update
from noxu.values import Json, Object
from tests.rows import rows

SHORT: Object = {"type": "string", "maxLength": 1}
SMALL: Object = {"type": "integer", "maximum": 1}
OPEN: Object = {"x-kubernetes-preserve-unknown-fields": True}
KEYED: Object = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["k"],
    "items": {"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}, "v": SHORT, "w": SHORT}},
}
TWO_KEYS: Object = {
    **KEYED,
    "x-kubernetes-list-map-keys": ["j", "k"],
    "items": {"type": "object", "properties": {"j": {"type": "number"}, "k": {"type": "string"}, "v": SHORT}},
}


def obj(required: tuple[str, ...] = (), **properties: Object) -> Object:
    return {"type": "object", "required": list(required), "properties": properties}


def fields(schema: Object, old: Json, new: Json) -> list[str]:
    """Where the errors are that remain when `a` of an object changes so."""
    root = parse(obj(a=schema))
    remaining = validate_update({"a": new, "x": 1}, {"a": old, "x": 1}, root)
    every = validate({"a": new, "x": 1}, root)
    assert set(map(str, remaining)) <= set(map(str, every))
    return [error.field for error in remaining]


@rows(
    ("case", "schema", "old", "new", "remaining"),
    [
        ("an unchanged scalar", SHORT, "bad", "bad", []),
        ("a changed one", SHORT, "bad", "worse", ["a"]),
        ("a valid change", SHORT, "bad", "x", []),
        ("null stays null", SHORT, None, None, []),
        ("null is no value", SHORT, "bad", None, ["a"]),
        ("1 is not 1.0", {"type": "string"}, 1, 1.0, ["a"]),
        ("1 is not true", {"type": "string"}, 1, True, ["a"]),
        ("0 and -0 are both 0.0", {"type": "string"}, 0.0, -0.0, []),
        # objects
        ("a sibling changed", obj(p=SHORT, q=SHORT), {"p": "bad", "q": "x"}, {"p": "bad", "q": "y"}, []),
        ("only what changed", obj(p=SHORT, q=SHORT), {"p": "bad", "q": "bad"}, {"p": "bad", "q": "worse"}, ["a.q"]),
        ("what is new", obj(p=SHORT, q=SHORT), {"p": "bad"}, {"p": "bad", "q": "bad"}, ["a.q"]),
        ("required belongs to the container", obj(("r",), p=SHORT), {"p": "x"}, {"p": "y"}, ["a.r"]),
        ("which did not change", obj(("r",), p=SHORT), {"p": "x"}, {"p": "x"}, []),
        ("a key gone missing", obj(("p",), p=SHORT, q=SHORT), {"p": "x", "q": "y"}, {"q": "y"}, ["a.p"]),
        ("maxProperties belongs to the container", {**obj(p=SHORT, q=SHORT), "maxProperties": 1},
         {"p": "x", "q": "x"}, {"p": "x", "q": "y"}, ["a"]),
        ("forbidden names, too", {"type": "object", "additionalProperties": False}, {"p": 1}, {"p": 1}, ["a"]),
        ("values by name", {"type": "object", "additionalProperties": SHORT}, {"p": "bad", "q": "bad"},
         {"p": "bad", "q": "worse"}, ["a.q"]),
        ("a changed type", obj(p=SHORT), "x", {"p": "bad"}, ["a.p"]),
        ("an unknown sibling field keeps the errors of siblings", {**obj(p=SHORT), **OPEN}, {"p": "bad", "u": 1}, {"p": "bad", "u": 2}, []),
        ("but no object with one is unchanged", {**obj(("r",), p=SHORT), **OPEN}, {"u": 1}, {"u": 1}, ["a.r"]),
        ("a granular or atomic map makes no difference", {**obj(p=SHORT, q=SHORT), "x-kubernetes-map-type": "atomic"},
         {"p": "bad", "q": "x"}, {"p": "bad", "q": "y"}, []),
        # junctors
        ("a junctor goes when its node did not change", {"type": "string", "not": {}}, "x", "x", []),
        ("branches do not ratchet", {**obj(p={"type": "string"}, q=SHORT), "allOf": [{"properties": {"p": SHORT}}]},
         {"p": "bad", "q": "x"}, {"p": "bad", "q": "y"}, ["a.p", ""]),
        # lists
        ("an unchanged list", {"type": "array", "items": SHORT}, ["bad", "x"], ["bad", "x"], []),
        ("lists are whole", {"type": "array", "items": SHORT}, ["bad", "x"], ["bad", "y"], ["a[0]"]),
        ("in order", {"type": "array", "items": SHORT}, ["bad", "x"], ["x", "bad"], ["a[1]"]),
        ("also with unknown fields inside", {"type": "array", "items": {"type": "string"}}, [{"u": 1}], [{"u": 1}], []),
        ("an empty list", {"type": "array", "items": SHORT, "minItems": 1}, [], [], []),
        ("sets are whole, too", {"type": "array", "items": SHORT, "x-kubernetes-list-type": "set"}, ["bad"], ["bad", "x"], ["a[0]"]),
        ("items by key", KEYED, [{"k": "1", "v": "bad"}, {"k": "2", "v": "bad"}],
         [{"k": "2", "v": "bad"}, {"k": "1", "v": "worse"}], ["a[1].v"]),
        ("fields of items", KEYED, [{"k": "1", "v": "bad", "w": "x"}], [{"k": "1", "v": "bad", "w": "y"}], []),
        ("a new key", KEYED, [{"k": "1", "v": "bad"}], [{"k": "1", "v": "bad"}, {"k": "2", "v": "bad"}], ["a[1].v"]),
        ("another order is the same map", {**KEYED, "maxItems": 1}, [{"k": "1"}, {"k": "2"}], [{"k": "2"}, {"k": "1"}], []),
        ("not if an item changed", {**KEYED, "maxItems": 1}, [{"k": "1"}, {"k": "2"}], [{"k": "2"}, {"k": "1", "v": "x"}], ["a"]),
        ("nor if one is more", {**KEYED, "maxItems": 1}, [{"k": "1"}], [{"k": "1"}, {"k": "2"}], ["a"]),
        ("duplicates count the first", {**KEYED, "maxItems": 1}, [{"k": "1", "v": "x"}, {"k": "1", "v": "y"}],
         [{"k": "1", "v": "x"}, {"k": "1", "v": "x"}], []),
        ("an item without its key has no partner", KEYED, [{"v": "bad"}], [{"v": "bad"}], ["a[0].v", "a[0].k"]),
        ("nor one whose key is no scalar", KEYED, [{"k": {}, "v": "bad"}], [{"k": {}, "v": "bad"}], ["a[0].k", "a[0].v"]),
        ("nor one that is no object", KEYED, ["x"], ["x"], ["a[0]"]),
        ("keys have types", KEYED, [{"k": 1, "v": "bad"}], [{"k": 1.0, "v": "bad"}], ["a[0].k", "a[0].v"]),
        ("an empty map list", {**KEYED, "minItems": 1}, [], [], []),
        ("two keys", TWO_KEYS, [{"j": 1, "k": "x", "v": "bad"}], [{"j": 1, "k": "x", "v": "bad"}, {"j": 1, "k": "y"}], []),
        ("two keys with another type", TWO_KEYS, [{"j": 1, "k": "x", "v": "bad"}], [{"j": 1.0, "k": "x", "v": "bad"}], ["a[0].v"]),
        ("floats have six decimals among several keys", TWO_KEYS, [{"j": 1.00000001, "k": "x", "v": "bad"}],
         [{"j": 1.00000002, "k": "x", "v": "bad"}], []),
    ],
)  # fmt: skip
def test_errors_that_remain_after_ratcheting(
    case: str, schema: Object, old: Json, new: Json, remaining: list[str]
) -> None:
    assert sorted(fields(schema, old, new)) == sorted(remaining), case


def test_nothing_at_the_root_of_a_resource_ratchets() -> None:
    schema = parse(obj(("spec",), metadata={"type": "object"}, status=obj(p=SHORT)))
    value = {"apiVersion": "g/v1", "kind": "Foo", "metadata": {"name": "x"}, "status": {"p": "bad"}}
    assert [str(error) for error in validate_update(value, value, schema)] == ["spec: Required value"]


def test_api_version_and_kind_of_the_root_do_not_ratchet() -> None:
    schema = parse(obj(kind=SHORT, apiVersion=SHORT, p=obj(kind=SHORT)))
    value = {"kind": "Foo", "apiVersion": "g/v1", "u": 1, "p": {"kind": "Foo"}}
    assert [error.field for error in validate_update(value, value, schema)] == ["kind", "apiVersion"]


def test_they_do_when_the_whole_root_did_not_change() -> None:
    schema = parse(obj(kind=SHORT))
    assert validate_update({"kind": "Foo"}, {"kind": "Foo"}, schema) == []


def test_metadata_name_ratchets() -> None:
    schema = parse(obj(metadata=obj(name=SHORT)))
    value = {"metadata": {"name": "bad", "labels": {}}}
    assert validate_update(value, value, schema) == []


def test_the_status_is_compared_with_the_old_status() -> None:
    schema = parse(obj(p=SHORT, q=SHORT))
    errors = validate_update({"p": "bad", "q": "bad"}, {"p": "bad"}, schema, path="status")
    assert [str(error) for error in errors] == ["status.q: Too long: may not be more than 1 byte"]
    assert len(validate_update({"p": "bad"}, None, schema, path="status")) == 1


def test_ratcheting_can_be_switched_off() -> None:
    schema = parse(obj(p=SHORT))
    assert validate_update({"p": "bad"}, {"p": "bad"}, schema) == []
    assert len(validate_update({"p": "bad"}, {"p": "bad"}, schema, ratcheting=False)) == 1


@pytest.mark.slow
def test_deep_values_are_compared_without_recursion() -> None:
    def deep() -> Json:
        value: Json = "bad"
        for _ in range(50_000):
            value = [value]
        return value

    schema = parse(obj(a={"type": "array", "maxItems": 0}))
    assert validate_update({"a": deep()}, {"a": deep()}, schema) == []


@pytest.mark.slow
def test_time_is_linear() -> None:
    old = [{"k": str(n), "v": "bad", "w": "x"} for n in range(50_000)]
    new = [{**item, "w": "y"} for item in reversed(old)]
    start = time.process_time()
    assert fields(KEYED, old, new) == []
    assert time.process_time() - start < 5  # 1 s
