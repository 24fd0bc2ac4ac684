"""Defaulting, and the nulls that are dropped before it.

The rows follow the structure of upstream's defaulting tests: schema and value in, value out. In requests, nulls are
dropped first; some rows show the value in between.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest

from noxu.schema.defaulting import default, drop_nulls, has_null_default
from noxu.schema.structural import parse
from noxu.values import Json, Object
from tests.rows import rows

STRING = {"type": "string"}
OBJECT = {"type": "object"}
PRESERVE = {"x-kubernetes-preserve-unknown-fields": True}
D = {"type": "string", "default": "d"}


def struct(**properties: Object) -> Object:
    return {"type": "object", "properties": properties}


def map_of(values: Object | bool) -> Object:
    return {"type": "object", "additionalProperties": values}


def list_of(items: Object) -> Object:
    return {"type": "array", "items": items}


def defaulting_to(value: Json, schema: Object) -> Object:
    return {**schema, "default": value}


def nullable(schema: Object) -> Object:
    return {**schema, "nullable": True}


Row = tuple[str, Object, Json, Json]

PROPERTIES: list[Row] = [
    ("an absent field", struct(a=D), {}, {"a": "d"}),
    ("a present field", struct(a=D), {"a": "x"}, {"a": "x"}),
    ("an empty string is present", struct(a=D), {"a": ""}, {"a": ""}),
    ("zero is present", struct(a=D), {"a": 0}, {"a": 0}),
    ("an empty list is present", struct(a=D), {"a": []}, {"a": []}),
    ("an empty object is present", struct(a=D), {"a": {}}, {"a": {}}),
    ("a field of the wrong type is present", struct(a=D), {"a": 1}, {"a": 1}),
    ("other fields are kept", struct(a=D), {"b": 1}, {"b": 1, "a": "d"}),
    ("several fields", struct(a=D, b={"type": "integer", "default": 7}, c=STRING), {}, {"a": "d", "b": 7}),
    ("defaults of all types", struct(s=defaulting_to("", STRING), n=defaulting_to(1.5, {"type": "number"}), b=defaulting_to(False, {"type": "boolean"}), l=defaulting_to([], {"type": "array"}), o=defaulting_to({}, OBJECT)), {}, {"s": "", "n": 1.5, "b": False, "l": [], "o": {}}),
    ("int-or-string", struct(a={"x-kubernetes-int-or-string": True, "default": "80%"}), {}, {"a": "80%"}),
    ("a node without a type", struct(a={**PRESERVE, "default": {"x": [1]}}), {}, {"a": {"x": [1]}}),
    ("an empty name", struct(**{"": D}), {}, {"": "d"}),
    ("a required field", {**struct(a=D), "required": ["a"]}, {}, {"a": "d"}),
    ("the root's own default is not used", defaulting_to({"b": 1}, struct(a=STRING)), {}, {}),
]  # fmt: skip

NESTED: list[Row] = [
    ("a nested field", struct(o=struct(a=D)), {"o": {}}, {"o": {"a": "d"}}),
    ("parents are not created", struct(o=struct(a=D)), {}, {}),
    ("a parent with a default of its own is", struct(o=defaulting_to({}, struct(a=D))), {}, {"o": {"a": "d"}}),
    ("down a chain of such parents", struct(o=defaulting_to({}, struct(p=defaulting_to({}, struct(a=D))))), {}, {"o": {"p": {"a": "d"}}}),
    ("a chain ends at a parent without", struct(o=defaulting_to({}, struct(p=struct(a=D)))), {}, {"o": {}}),
    ("a default is completed by defaults inside", struct(o=defaulting_to({"b": "x"}, struct(a=D, b=defaulting_to("y", STRING)))), {}, {"o": {"b": "x", "a": "d"}}),
    ("a present object is not replaced by the default", struct(o=defaulting_to({"b": "x"}, struct(a=D))), {"o": {}}, {"o": {"a": "d"}}),
    ("a default of a list is completed", struct(l=defaulting_to([{}, {"a": "x"}], list_of(struct(a=D)))), {}, {"l": [{"a": "d"}, {"a": "x"}]}),
    ("a default of a map is completed", struct(m=defaulting_to({"k": {}}, map_of(struct(a=D)))), {}, {"m": {"k": {"a": "d"}}}),
    ("four levels", struct(a=struct(b=struct(c=struct(d=D)))), {"a": {"b": {"c": {}}}}, {"a": {"b": {"c": {"d": "d"}}}}),
]  # fmt: skip

ADDITIONAL_PROPERTIES: list[Row] = [
    ("structs in a map", map_of(struct(a=D)), {"x": {}, "y": {"a": "x"}}, {"x": {"a": "d"}, "y": {"a": "x"}}),
    ("an empty map", map_of(struct(a=D)), {}, {}),
    ("maps of maps", map_of(map_of(struct(a=D))), {"x": {"y": {}}}, {"x": {"y": {"a": "d"}}}),
    ("a default of the values replaces null", map_of(D), {"x": None, "y": "z"}, {"x": "d", "y": "z"}),
    ("and is completed", map_of(defaulting_to({}, struct(a=D))), {"x": None}, {"x": {"a": "d"}}),
    ("not if the values are nullable", map_of(nullable(D)), {"x": None}, {"x": None}),
    ("true has no defaults", map_of(True), {"x": {}}, {"x": {}}),
    ("false has no defaults", map_of(False), {"x": {}}, {"x": {}}),
    ("properties go first", {**struct(a=struct(p=D)), "additionalProperties": struct(q=D)}, {"a": {}, "b": {}}, {"a": {"p": "d"}, "b": {"q": "d"}}),
]  # fmt: skip

ITEMS: list[Row] = [
    ("structs in a list", list_of(struct(a=D)), [{}, {"a": "x"}], [{"a": "d"}, {"a": "x"}]),
    ("an empty list", list_of(struct(a=D)), [], []),
    ("lists of lists", list_of(list_of(struct(a=D))), [[{}], [], [{"a": "x"}, {}]], [[{"a": "d"}], [], [{"a": "x"}, {"a": "d"}]]),
    ("lists of maps", list_of(map_of(struct(a=D))), [{"k": {}}], [{"k": {"a": "d"}}]),
    ("a default of the items replaces null", list_of(D), [None, "x"], ["d", "x"]),
    ("and is completed", list_of(defaulting_to({}, struct(a=D))), [None], [{"a": "d"}]),
    ("not if the items are nullable", list_of(nullable(D)), [None], [None]),
    ("no items are added", list_of(D), [], []),
    ("without items", {"type": "array"}, [{}, None], [{}, None]),
    ("scalars among structs", list_of(struct(a=D)), [1, {}, "x", None], [1, {"a": "d"}, "x", None]),
]  # fmt: skip

NULLS: list[Row] = [
    ("null is replaced by the default", struct(a=D), {"a": None}, {"a": "d"}),
    ("null is kept if it is allowed", struct(a=nullable(D)), {"a": None}, {"a": None}),
    ("an absent nullable field gets its default", struct(a=nullable(D)), {}, {"a": "d"}),
    ("a nullable object", struct(o=nullable(defaulting_to({}, struct(a=D)))), {"o": None}, {"o": None}),
    ("an object that is null gets its default, completed", struct(o=defaulting_to({}, struct(a=D))), {"o": None}, {"o": {"a": "d"}}),
    ("null without a default is left to `drop_nulls`", struct(a=STRING), {"a": None}, {"a": None}),
    ("null among the nullable list's structs", nullable(list_of(struct(a=D))), [None, {}], [None, {"a": "d"}]),
    ("null under additionalProperties: true", map_of(True), {"a": None}, {"a": None}),
    ("null in an unknown field", struct(a=D), {"b": None}, {"b": None, "a": "d"}),
    ("a default of null is none", struct(a=defaulting_to(None, STRING)), {}, {}),
    ("a null in a default is filled in", struct(o=defaulting_to({"a": None, "b": None}, struct(a=nullable(STRING), b=D))), {}, {"o": {"a": None, "b": "d"}}),
]  # fmt: skip

OTHER_TYPES: list[Row] = [
    ("a list where an object is declared", struct(o=struct(a=D)), {"o": [{}]}, {"o": [{}]}),
    ("an object where a list is declared", struct(l=list_of(struct(a=D))), {"l": {}}, {"l": {}}),
    ("a scalar where an object is declared", struct(o=struct(a=D)), {"o": 1}, {"o": 1}),
    ("unknown fields have no defaults", struct(a=STRING), {"b": {}}, {"b": {}}),
    ("below a node that preserves unknown fields", struct(o={**struct(a=D), **PRESERVE}), {"o": {"x": {}}}, {"o": {"x": {}, "a": "d"}}),
    ("in an embedded resource", struct(e={**struct(spec=defaulting_to({}, struct(a=D))), "x-kubernetes-embedded-resource": True}), {"e": {"kind": "X"}}, {"e": {"kind": "X", "spec": {"a": "d"}}}),
    ("of an embedded resource's identity", struct(e={**struct(apiVersion=defaulting_to("v1", STRING), kind=defaulting_to("Pod", STRING)), "x-kubernetes-embedded-resource": True}), {"e": {}}, {"e": {"apiVersion": "v1", "kind": "Pod"}}),
    ("defaults in junctors have no effect", struct(o={**OBJECT, "allOf": [{"properties": {"a": {"default": "x"}}}]}), {"o": {}}, {"o": {}}),
    ("a scalar", D, "x", "x"),
    ("null", struct(a=D), None, None),
]  # fmt: skip

DEFAULTED = [*PROPERTIES, *NESTED, *ADDITIONAL_PROPERTIES, *ITEMS, *NULLS, *OTHER_TYPES]


@rows(("schema", "value", "defaulted"), [row[1:] for row in DEFAULTED], ids=[row[0] for row in DEFAULTED])  # fmt: skip
def test_defaults_are_filled_in(schema: Object, value: Json, defaulted: Json) -> None:
    value = copy.deepcopy(value)
    default(value, parse(schema))
    assert value == defaulted


@rows(("schema", "defaulted"), [(row[1], row[3]) for row in DEFAULTED], ids=[row[0] for row in DEFAULTED])  # fmt: skip
def test_defaulting_twice_changes_nothing(schema: Object, defaulted: Json) -> None:
    value = copy.deepcopy(defaulted)
    default(value, parse(schema))
    assert value == defaulted


def test_without_a_schema_nothing_is_filled_in() -> None:
    value: Object = {"a": None}
    default(value, None)
    drop_nulls(value, None)
    assert value == {"a": None}


def test_objects_do_not_share_their_defaults() -> None:
    schema = parse(struct(o=defaulting_to({"l": [{}]}, struct(l=list_of(struct(a=D))))))
    first: Any = {}
    second: Any = {}
    default(first, schema)
    default(second, schema)
    first["o"]["l"][0]["a"] = "changed"
    assert second == {"o": {"l": [{"a": "d"}]}}
    assert schema.properties["o"].default == {"l": [{}]}


DROPPED: list[Row] = [
    ("a null that is not allowed", struct(a=STRING), {"a": None}, {}),
    ("a null that is allowed", struct(a=nullable(STRING)), {"a": None}, {"a": None}),
    ("a null that a default replaces", struct(a=D), {"a": None}, {"a": None}),
    ("a nullable field with a default", struct(a=nullable(D)), {"a": None}, {"a": None}),
    ("other values", struct(a=STRING), {"a": ""}, {"a": ""}),
    ("an unknown field", struct(a=STRING), {"b": None}, {"b": None}),
    ("a nested null", struct(o=struct(a=STRING)), {"o": {"a": None}}, {"o": {}}),
    ("an object that becomes empty is kept", struct(o=struct(p=struct(a=STRING))), {"o": {"p": {"a": None}}}, {"o": {"p": {}}}),
    ("values of a map", map_of(STRING), {"a": None, "b": "x"}, {"b": "x"}),
    ("nullable values of a map", map_of(nullable(STRING)), {"a": None}, {"a": None}),
    ("values of a map with a default", map_of(D), {"a": None}, {"a": None}),
    ("values under true", map_of(True), {"a": None}, {"a": None}),
    ("nulls in structs of a map", map_of(struct(a=STRING)), {"x": {"a": None}}, {"x": {}}),
    ("items stay for validation to refuse", list_of(STRING), [None, "x"], [None, "x"]),
    ("nulls in structs of a list", list_of(struct(a=STRING)), [{"a": None}, None], [{}, None]),
    ("lists of lists", list_of(list_of(struct(a=STRING))), [[{"a": None}]], [[{}]]),
    ("in what is preserved nothing is dropped", {**struct(a=STRING), **PRESERVE}, {"a": None, "b": None, "c": {"a": None}}, {"b": None, "c": {"a": None}}),
    ("int-or-string", struct(a={"x-kubernetes-int-or-string": True}), {"a": None}, {}),
    ("a node without a type", struct(a=PRESERVE), {"a": None}, {}),
    ("a value of the wrong type", struct(o=struct(a=STRING)), {"o": [{"a": None}]}, {"o": [{"a": None}]}),
]  # fmt: skip


@rows(("schema", "value", "kept"), [row[1:] for row in DROPPED], ids=[row[0] for row in DROPPED])
def test_nulls_are_dropped_from_maps(schema: Object, value: Json, kept: Json) -> None:
    value = copy.deepcopy(value)
    drop_nulls(value, parse(schema))
    assert value == kept


BOTH: list[Row] = [
    ("a null makes room for the default", struct(a=D, b=STRING), {"a": None, "b": None}, {"a": "d"}),
    ("the parent's null is dropped, not replaced by the child's default", struct(o=struct(a=D)), {"o": None}, {}),
    ("a parent that is null and has a default", struct(o=defaulting_to({}, struct(a=D, b=STRING))), {"o": None}, {"o": {"a": "d"}}),
    ("nulls of a default come after dropping, and stay", struct(o=defaulting_to({"b": None}, struct(b=STRING))), {}, {"o": {"b": None}}),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "value", "result"), [row[1:] for row in BOTH], ids=[row[0] for row in BOTH])
def test_nulls_are_dropped_before_defaults_are_filled_in(schema: Object, value: Json, result: Json) -> None:
    value, parsed = copy.deepcopy(value), parse(schema)
    drop_nulls(value, parsed)
    default(value, parsed)
    assert value == result


HAS_NULL: list[tuple[str, Object, bool]] = [
    ("no defaults", struct(a=STRING), False),
    ("defaults without null", struct(a=D, o=defaulting_to({"x": [1]}, OBJECT)), False),
    ("a null in an object", struct(o=defaulting_to({"x": None}, OBJECT)), True),
    ("a null in a list of lists", struct(l=defaulting_to([[1, None]], list_of(list_of({})))), True),
    ("in items", list_of(struct(o=defaulting_to({"x": None}, OBJECT))), True),
    ("in a map", map_of(struct(o=defaulting_to({"x": None}, OBJECT))), True),
    ("a default of null is none", struct(a=defaulting_to(None, STRING)), False),
]


@pytest.mark.parametrize(("schema", "has_null"), [row[1:] for row in HAS_NULL], ids=[row[0] for row in HAS_NULL])
def test_schemas_whose_defaults_contain_null(schema: Object, has_null: bool) -> None:
    assert has_null_default(parse(schema)) is has_null
    assert not has_null_default(None)
