"""Pruning: which fields are unknown, by the kind of node that they are in (KEP-2332).

The rows follow the structure of upstream's pruning tests: schema and value in, value and removed paths out.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest

from noxu.schema.pruning import prune
from noxu.schema.structural import parse
from noxu.values import Json, Object
from tests.rows import rows

PRESERVE = {"x-kubernetes-preserve-unknown-fields": True}
EMBEDDED = {"type": "object", "x-kubernetes-embedded-resource": True}
INT_OR_STRING = {"x-kubernetes-int-or-string": True}
STRING = {"type": "string"}
OBJECT = {"type": "object"}


def struct(**properties: Object) -> Object:
    return {"type": "object", "properties": properties}


def map_of(values: Object | bool) -> Object:
    return {"type": "object", "additionalProperties": values}


def list_of(items: Object) -> Object:
    return {"type": "array", "items": items}


def preserving(schema: Object) -> Object:
    return {**schema, **PRESERVE}


Row = tuple[str, Object, Json, Json, list[str]]

PROPERTIES: list[Row] = [
    ("an empty object", struct(a=STRING), {}, {}, []),
    ("known fields", struct(a=STRING, b=STRING), {"a": "x", "b": "y"}, {"a": "x", "b": "y"}, []),
    ("an unknown field", struct(a=STRING), {"a": "x", "b": "y"}, {"a": "x"}, ["b"]),
    ("unknown fields of all types", struct(), {"s": "", "n": 1, "b": True, "z": None, "l": [1], "o": {"x": 1}}, {}, ["b", "l", "n", "o", "s", "z"]),
    ("an unknown field with fields of its own is one path", struct(), {"a": {"b": {"c": 1}}}, {}, ["a"]),
    ("an object without properties", OBJECT, {"a": 1}, {}, ["a"]),
    ("a nested unknown field", struct(spec=struct(a=STRING)), {"spec": {"a": "x", "b": 1}}, {"spec": {"a": "x"}}, ["spec.b"]),
    ("unknown fields at several levels", struct(spec=struct(a=struct())), {"x": 1, "spec": {"y": 1, "a": {"z": 1}}}, {"spec": {"a": {}}}, ["spec.a.z", "spec.y", "x"]),
    ("an object that becomes empty is kept", struct(a=struct()), {"a": {"b": 1}}, {"a": {}}, ["a.b"]),
    ("names are compared by case", struct(name=STRING), {"Name": "x", "name": "y"}, {"name": "y"}, ["Name"]),
    ("a name with a dot", struct(**{"a.b": STRING}), {"a.b": "x", "a": {"b": "x"}}, {"a.b": "x"}, ["a"]),
    ("an empty name", struct(**{"": STRING}), {"": "x", " ": "y"}, {"": "x"}, [" "]),
    ("a field named like a keyword", struct(properties=STRING), {"properties": "x", "items": "y"}, {"properties": "x"}, ["items"]),
    ("null in a known field", struct(a=STRING), {"a": None}, {"a": None}, []),
    ("null in an unknown field", struct(a=STRING), {"b": None}, {}, ["b"]),
    ("null where an object is expected", struct(a=struct()), {"a": None}, {"a": None}, []),
]  # fmt: skip

ADDITIONAL_PROPERTIES: list[Row] = [
    ("a map of scalars", map_of(STRING), {"a": "x", "b": "y"}, {"a": "x", "b": "y"}, []),
    ("an object in a map of scalars", map_of(STRING), {"a": "x", "b": {"c": 1}}, {"a": "x", "b": {}}, ["b.c"]),
    ("the identity of a resource in a map of false", map_of(False), {"a": {"apiVersion": "v1", "kind": "X"}}, {"a": {}}, ["a.apiVersion", "a.kind"]),
    ("a map of structs", map_of(struct(a=STRING)), {"x": {"a": "1", "b": 2}, "y": {}}, {"x": {"a": "1"}, "y": {}}, ["x.b"]),
    ("a map of maps", map_of(map_of(struct(a=STRING))), {"x": {"y": {"a": "", "b": ""}}}, {"x": {"y": {"a": ""}}}, ["x.y.b"]),
    ("a map of lists", map_of(list_of(struct())), {"x": [{"a": 1}, {}]}, {"x": [{}, {}]}, ["x[0].a"]),
    ("a map in a struct", struct(m=map_of(struct(a=STRING))), {"m": {"k": {"b": 1}}, "n": 1}, {"m": {"k": {}}}, ["m.k.b", "n"]),
    ("true keeps names and scalars", map_of(True), {"a": "x", "b": 1, "c": None}, {"a": "x", "b": 1, "c": None}, []),
    ("true declares no fields in the values", map_of(True), {"a": {"x": 1}}, {"a": {}}, ["a.x"]),
    ("true empties objects in lists", map_of(True), {"a": [{"x": 1}, 2]}, {"a": [{}, 2]}, ["a[0].x"]),
    ("false is like true", map_of(False), {"a": {"x": 1}, "b": 1}, {"a": {}, "b": 1}, ["a.x"]),
    ("properties go first", {**struct(a=struct(x=STRING)), "additionalProperties": struct(y=STRING)}, {"a": {"x": "", "y": ""}, "b": {"x": "", "y": ""}}, {"a": {"x": ""}, "b": {"y": ""}}, ["a.y", "b.x"]),
    ("null among the values", map_of(struct()), {"a": None, "b": {"c": 1}}, {"a": None, "b": {}}, ["b.c"]),
]  # fmt: skip

ITEMS: list[Row] = [
    ("a list of scalars", list_of(STRING), ["a", "b"], ["a", "b"], []),
    ("a list of structs", list_of(struct(a=STRING)), [{"a": "x"}, {"b": 1}, {"a": "", "c": 1}], [{"a": "x"}, {}, {"a": ""}], ["[1].b", "[2].c"]),
    ("a list of lists", list_of(list_of(struct(a=STRING))), [[{"a": "x", "b": 1}], [], [{"c": 1}]], [[{"a": "x"}], [], [{}]], ["[0][0].b", "[2][0].c"]),
    ("a list of lists of lists", list_of(list_of(list_of(struct()))), [[[{"a": 1}]]], [[[{}]]], ["[0][0][0].a"]),
    ("a list of maps", list_of(map_of(struct())), [{"k": {"a": 1}}], [{"k": {}}], ["[0].k.a"]),
    ("a list in a struct", struct(l=list_of(struct(a=STRING))), {"l": [{"a": ""}, {"b": 1}]}, {"l": [{"a": ""}, {}]}, ["l[1].b"]),
    ("scalars and nulls among structs", list_of(struct()), [1, None, "x", {"a": 1}], [1, None, "x", {}], ["[3].a"]),
    ("without items objects are emptied", {"type": "array"}, [{"a": 1}, [{"b": 1}], 1], [{}, [{}], 1], ["[0].a", "[1][0].b"]),
    ("ten items are sorted as text", list_of(struct()), [{"a": n} for n in range(11)], [{} for _ in range(11)], ["[0].a", "[10].a", *(f"[{n}].a" for n in range(1, 10))]),
]  # fmt: skip

PRESERVE_UNKNOWN_FIELDS: list[Row] = [
    ("unknown fields of the node", preserving(OBJECT), {"a": {"b": [{"c": 1}]}}, {"a": {"b": [{"c": 1}]}}, []),
    ("without a type", PRESERVE, {"a": {"b": 1}}, {"a": {"b": 1}}, []),
    ("pruning starts again in properties", preserving(struct(a=struct(x=STRING))), {"a": {"x": "", "y": 1}, "b": {"y": 1}}, {"a": {"x": ""}, "b": {"y": 1}}, ["a.y"]),
    ("a property without properties", preserving(struct(a=OBJECT)), {"a": {"x": 1}, "b": {"x": 1}}, {"a": {}, "b": {"x": 1}}, ["a.x"]),
    ("below a pruned node", struct(a=preserving(OBJECT)), {"a": {"x": 1}, "b": 1}, {"a": {"x": 1}}, ["b"]),
    ("pruned and preserving nodes take turns", struct(a=preserving(struct(b=struct(c=preserving(OBJECT))))), {"x": 1, "a": {"x": 1, "b": {"x": 1, "c": {"x": 1}}}}, {"a": {"x": 1, "b": {"c": {"x": 1}}}}, ["a.b.x", "x"]),
    ("a map prunes its values", preserving(map_of(struct(x=STRING))), {"a": {"x": "", "y": 1}}, {"a": {"x": ""}}, ["a.y"]),
    ("a map of true", preserving(map_of(True)), {"a": {"x": 1}}, {"a": {}}, ["a.x"]),
    ("values that preserve", map_of(preserving(OBJECT)), {"a": {"x": {"y": 1}}}, {"a": {"x": {"y": 1}}}, []),
    ("a list passes it on to its items", preserving(list_of(struct(a=STRING))), [{"a": "", "b": 1}], [{"a": "", "b": 1}], []),
    ("properties of such items are pruned", preserving(list_of(struct(a=struct()))), [{"a": {"x": 1}, "b": {"x": 1}}], [{"a": {}, "b": {"x": 1}}], ["[0].a.x"]),
    ("lists of lists pass it on", preserving(list_of(list_of(struct(a=struct())))), [[{"a": {"x": 1}, "b": 1}]], [[{"a": {}, "b": 1}]], ["[0][0].a.x"]),
    ("a list without items", preserving({"type": "array"}), [{"a": {"b": 1}}, [{"c": 1}]], [{"a": {"b": 1}}, [{"c": 1}]], []),
    ("items that preserve", list_of(preserving(OBJECT)), [{"a": 1}], [{"a": 1}], []),
    ("a struct does not pass it on to lists", preserving(struct(l=list_of(struct()))), {"l": [{"a": 1}], "m": [{"a": 1}]}, {"l": [{}], "m": [{"a": 1}]}, ["l[0].a"]),
    ("null in a property", preserving(struct(a=struct())), {"a": None, "b": None}, {"a": None, "b": None}, []),
]  # fmt: skip

META = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "labels": {"a": "b"}}}
EMBEDDED_RESOURCES: list[Row] = [
    ("apiVersion, kind and metadata are known", struct(e=EMBEDDED), {"e": {**META, "spec": {}}}, {"e": META}, ["e.spec"]),
    ("and are not pruned inside", struct(e=EMBEDDED), {"e": {"metadata": {"unknown": {"x": 1}}}}, {"e": {"metadata": {"unknown": {"x": 1}}}}, []),
    ("even if they have the wrong type", struct(e=EMBEDDED), {"e": {"kind": {"x": 1}, "apiVersion": [{"y": 1}], "metadata": 1}}, {"e": {"kind": {"x": 1}, "apiVersion": [{"y": 1}], "metadata": 1}}, []),
    ("even if the schema declares metadata", struct(e={**EMBEDDED, "properties": {"metadata": struct(name=STRING)}}), {"e": META}, {"e": META}, []),
    ("declared fields", struct(e={**EMBEDDED, "properties": {"spec": struct(a=STRING)}}), {"e": {**META, "spec": {"a": "", "b": 1}}}, {"e": {**META, "spec": {"a": ""}}}, ["e.spec.b"]),
    ("that preserves unknown fields", struct(e=preserving(EMBEDDED)), {"e": {**META, "spec": {"a": 1}}}, {"e": {**META, "spec": {"a": 1}}}, []),
    ("that preserves, with properties", struct(e=preserving({**EMBEDDED, "properties": {"spec": struct()}})), {"e": {**META, "spec": {"a": 1}, "x": {"a": 1}}}, {"e": {**META, "spec": {}, "x": {"a": 1}}}, ["e.spec.a"]),
    ("in a list", struct(l=list_of(EMBEDDED)), {"l": [META, {**META, "x": 1}]}, {"l": [META, META]}, ["l[1].x"]),
    ("in a map", struct(m=map_of(EMBEDDED)), {"m": {"k": {**META, "x": 1}}}, {"m": {"k": META}}, ["m.k.x"]),
    ("in an embedded resource", struct(e={**EMBEDDED, "properties": {"e": EMBEDDED}}), {"e": {**META, "e": {**META, "x": 1}, "x": 1}}, {"e": {**META, "e": META}}, ["e.e.x", "e.x"]),
    ("other nodes do not have them", struct(e=OBJECT), {"e": META}, {"e": {}}, ["e.apiVersion", "e.kind", "e.metadata"]),
    ("a list in its place", struct(e=EMBEDDED), {"e": [{**META, "x": 1}]}, {"e": [{}]}, ["e[0].apiVersion", "e[0].kind", "e[0].metadata", "e[0].x"]),
]  # fmt: skip

OTHER_TYPES: list[Row] = [
    ("int-or-string keeps both", struct(a=INT_OR_STRING, b=INT_OR_STRING), {"a": 1, "b": "x"}, {"a": 1, "b": "x"}, []),
    ("int-or-string declares no fields", struct(a=INT_OR_STRING), {"a": {"x": 1}}, {"a": {}}, ["a.x"]),
    ("an object where a string is declared", struct(a=STRING), {"a": {"x": 1}}, {"a": {}}, ["a.x"]),
    ("a list where a string is declared", struct(a=STRING), {"a": [{"x": 1}, "y"]}, {"a": [{}, "y"]}, ["a[0].x"]),
    ("a list where an object is declared", struct(a=struct(b=STRING)), {"a": [{"b": "", "c": 1}]}, {"a": [{}]}, ["a[0].b", "a[0].c"]),
    ("an object where a list is declared", struct(a=list_of(struct(b=STRING))), {"a": {"b": "", "c": 1}}, {"a": {}}, ["a.b", "a.c"]),
    ("a scalar where an object is declared", struct(a=struct(b=STRING)), {"a": 1}, {"a": 1}, []),
    ("a node without a type declares no fields", struct(a={}), {"a": {"x": 1}, "b": 1}, {"a": {}}, ["a.x", "b"]),
    ("a node without a type, with properties", struct(a={"properties": {"b": STRING}}), {"a": {"b": "", "c": 1}}, {"a": {"b": ""}}, ["a.c"]),
    ("nullable has no effect", struct(a={**struct(b=STRING), "nullable": True}), {"a": {"b": "", "c": 1}}, {"a": {"b": ""}}, ["a.c"]),
    ("properties in junctors have no effect", struct(a={**OBJECT, "anyOf": [{"properties": {"b": {}}}], "not": {"properties": {"c": {}}}}), {"a": {"b": 1, "c": 1}}, {"a": {}}, ["a.b", "a.c"]),
    ("required fields are not known by that", {**OBJECT, "required": ["a"]}, {"a": 1}, {}, ["a"]),
    ("defaults have no effect", struct(a={**struct(), "default": {"b": 1}}), {"a": {"b": 1}}, {"a": {}}, ["a.b"]),
    ("a scalar", STRING, "x", "x", []),
    ("null", struct(), None, None, []),
]  # fmt: skip

NODES = [*PROPERTIES, *ADDITIONAL_PROPERTIES, *ITEMS, *PRESERVE_UNKNOWN_FIELDS, *EMBEDDED_RESOURCES, *OTHER_TYPES]


@rows(("schema", "value", "pruned", "paths"), [row[1:] for row in NODES], ids=[row[0] for row in NODES])
def test_a_value_is_pruned_in_place(schema: Object, value: Json, pruned: Json, paths: list[str]) -> None:
    value = copy.deepcopy(value)
    assert prune(value, parse(schema)) == paths
    assert value == pruned


@rows(("schema", "pruned"), [(row[1], row[3]) for row in NODES], ids=[row[0] for row in NODES])
def test_a_pruned_value_has_no_unknown_fields(schema: Object, pruned: Json) -> None:
    value = copy.deepcopy(pruned)
    assert prune(value, parse(schema)) == []
    assert value == pruned


ROOTS: list[Row] = [
    ("apiVersion, kind and metadata are known", OBJECT, {**META, "spec": {}}, META, ["spec"]),
    ("metadata is not pruned", struct(metadata=struct(name=STRING)), {"metadata": {"name": "", "x": 1}}, {"metadata": {"name": "", "x": 1}}, []),
    ("declared fields", struct(spec=struct(a=STRING)), {**META, "spec": {"a": "", "b": 1}}, {**META, "spec": {"a": ""}}, ["spec.b"]),
    ("a root that preserves unknown fields", preserving(struct(spec=struct())), {**META, "spec": {"a": 1}, "x": {"a": 1}}, {**META, "spec": {}, "x": {"a": 1}}, ["spec.a"]),
    ("fields of the same names below are unknown", struct(spec=struct()), {"spec": META}, {"spec": {}}, ["spec.apiVersion", "spec.kind", "spec.metadata"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("schema", "value", "pruned", "paths"), [row[1:] for row in ROOTS], ids=[row[0] for row in ROOTS]
)
def test_a_whole_object(schema: Object, value: Json, pruned: Json, paths: list[str]) -> None:
    value = copy.deepcopy(value)
    assert prune(value, parse(schema), root=True) == paths
    assert value == pruned


WITHOUT_SCHEMA: list[tuple[str, Json, bool, Json, list[str]]] = [
    ("an object loses all fields", {"a": 1, "b": {"c": 1}}, False, {}, ["a", "b"]),
    ("a whole object keeps its identity", {**META, "spec": {}}, True, META, ["spec"]),
    ("lists are kept, with empty objects", [{"a": 1}, [[{"b": 1}]], 1], False, [{}, [[{}]], 1], ["[0].a", "[1][0][0].b"]),
    ("a scalar", 1, False, 1, []),
    ("null", None, False, None, []),
]  # fmt: skip


@pytest.mark.parametrize(("value", "root", "pruned", "paths"), [row[1:] for row in WITHOUT_SCHEMA], ids=[row[0] for row in WITHOUT_SCHEMA])  # fmt: skip
def test_without_a_schema_every_field_is_unknown(value: Json, root: bool, pruned: Json, paths: list[str]) -> None:
    value = copy.deepcopy(value)
    assert prune(value, None, root=root) == paths
    assert value == pruned


def nested(levels: int) -> Any:
    value: Json = {"x": 1}
    for n in range(levels):
        value = [value] if n % 2 else {"a": value}
    return value


def test_depth_outside_of_the_schema_is_unlimited() -> None:
    value = {"known": nested(10_000), "unknown": nested(10_000)}
    assert prune(value, parse(struct(known=STRING))) == ["known[0].a", "unknown"]
    assert value == {"known": [{}]}
    assert prune({"a": nested(10_000)}, parse(preserving(OBJECT))) == []


def test_lists_of_lists_without_a_schema_do_not_recurse() -> None:
    value: Json = {"x": 1}
    for _ in range(10_000):
        value = [value]
    paths = prune({"l": value}, parse(struct(l={"type": "array"})))
    assert paths == ["l" + "[0]" * 10_000 + ".x"]


NAMES: list[tuple[str, Json, list[str]]] = [
    ("an empty name", {"": {"y": 1}}, [".y"]),
    ("an empty unknown name", {"a": {"": 1}}, ["a."]),
    ("empty names in a map", {"m": {"": {"y": 1}}}, ["m..y"]),
    ("a name that looks like an index", {"m": {"[0]": {"y": 1}}}, ["m.[0].y"]),
    ("an empty name in what is not described", {"l": [{"": 1}]}, ["l[0]."]),
]


@pytest.mark.parametrize(("value", "paths"), [row[1:] for row in NAMES], ids=[row[0] for row in NAMES])
def test_paths_of_unusual_names(value: Json, paths: list[str]) -> None:
    inner = struct(x={"type": "string"})
    schema = parse(
        struct(
            **{"": inner, "a": inner, "m": {"type": "object", "additionalProperties": inner}, "l": {"type": "array"}}
        )
    )
    assert prune(copy.deepcopy(value), schema) == paths
