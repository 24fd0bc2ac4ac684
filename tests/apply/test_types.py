"""Which type a structural schema, or a struct table, gives to the values below it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from noxu.apply.types import (
    ANY_SCALAR,
    BOOLEAN,
    DEDUCED,
    FREE_FORM,
    NUMERIC,
    OBJECT_META,
    UNTYPED,
    Type,
    is_implied_by,
    of_schema,
    of_struct,
)
from noxu.apply.types import STRING as STRING_TYPE
from noxu.crd.types import NUMBER
from noxu.go.structs import (
    BOOL,
    BYTES,
    INT32,
    INT_OR_STRING,
    JSON,
    MICRO_TIME,
    QUANTITY,
    STRING,
    TIME,
    Field,
    List,
    Map,
    Presence,
    Scalar,
    Struct,
    Union,
)
from noxu.schema.structural import parse
from noxu.values import Object
from tests.rows import rows

PRESERVE = {"x-kubernetes-preserve-unknown-fields": True}


def field_type(schema: dict[str, Any], **root: Any) -> Type:
    """The type of a property of that schema."""
    whole = of_schema(parse({"type": "object", "properties": {"it": schema}, **root}))
    assert whole.map is not None
    return whole.map.fields["it"][1]


def described(kind: Type | None, depth: int = 3) -> str:
    """A type in one line."""
    if kind is None:
        return "nothing"
    for known, name in ((DEDUCED, "deduced"), (UNTYPED, "untyped"), (OBJECT_META, "metadata"), (STRING_TYPE, "string")):
        if kind is known:
            return name
    texts: list[str] = [kind.scalar] if kind.scalar else []
    if kind.list is not None:
        how = "map" if kind.list.keys else "set" if kind.list.associative else "atomic"
        keys = "".join(f" by {key}={kind.list.defaults.get(key, '')}" for key in kind.list.keys)
        texts.append(f"{how} list of {described(kind.list.items, depth - 1) if depth else '…'}{keys}")
    if kind.map is not None:
        fields = ",".join(
            f"{name}:{described(member[1], depth - 1) if depth else '…'}" for name, member in kind.map.fields.items()
        )
        rest = described(kind.map.values, depth - 1) if depth else "…"
        texts.append(f"{'atomic ' if kind.map.atomic else ''}map{{{fields}}} of {rest}")
    return " | ".join(texts)


SCHEMAS: list[tuple[str, dict[str, Any], str]] = [
    ("a string", {"type": "string"}, "string"),
    ("bytes are a string", {"type": "string", "format": "byte"}, "string"),
    ("a string with another format is any scalar", {"type": "string", "format": "date-time"}, "untyped"),
    ("an integer", {"type": "integer", "format": "int32"}, "numeric"),
    ("a number", {"type": "number"}, "numeric"),
    ("a boolean", {"type": "boolean"}, "boolean"),
    ("an object without properties", {"type": "object"}, "map{} of deduced"),
    ("an object with properties", {"type": "object", "properties": {"a": {"type": "string"}}}, "map{a:string} of nothing"),
    ("a map", {"type": "object", "additionalProperties": {"type": "string"}}, "map{} of string"),
    ("a map of anything", {"type": "object", "additionalProperties": True}, "map{} of deduced"),
    ("an object that may have no others", {"type": "object", "additionalProperties": False}, "map{} of nothing"),
    ("an atomic object", {"type": "object", "x-kubernetes-map-type": "atomic"}, "atomic map{} of deduced"),
    ("a granular object", {"type": "object", "x-kubernetes-map-type": "granular"}, "map{} of deduced"),
    ("a list is atomic", {"type": "array", "items": {"type": "string"}}, "atomic list of string"),
    (
        "a list that says so",
        {"type": "array", "items": {"type": "integer"}, "x-kubernetes-list-type": "atomic"},
        "atomic list of numeric",
    ),
    ("a set", {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}, "set list of string"),
    (
        "a list-map, with the defaults of its keys",
        {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["port", "protocol"],
            "items": {
                "type": "object",
                "properties": {"port": {"type": "integer"}, "protocol": {"type": "string", "default": "TCP"}},
            },
        },
        "map list of map{port:numeric,protocol:string} of nothing by port= by protocol=TCP",
    ),
    (
        "unknown fields are deduced, known ones are not",
        {"type": "object", **PRESERVE, "properties": {"a": {"type": "string"}}},
        "map{a:string} of deduced",
    ),
    (
        "preserving goes down to the leaves",
        {"type": "object", **PRESERVE, "properties": {"a": {"type": "object", "properties": {"b": {"type": "string"}}}}},
        "map{a:map{b:string} of deduced} of deduced",
    ),
    (
        "preserving goes into items",
        {"type": "array", **PRESERVE, "items": {"type": "object", "properties": {"b": {"type": "string"}}}},
        "atomic list of map{b:string} of deduced",
    ),
    ("anything at all", PRESERVE, "untyped | atomic list of untyped | map{} of deduced"),
    (
        "an int-or-string",
        {"x-kubernetes-int-or-string": True},
        "untyped | atomic list of untyped | map{} of deduced",
    ),
    (
        "an embedded resource",
        {"type": "object", **PRESERVE, "x-kubernetes-embedded-resource": True},
        "map{apiVersion:string,kind:string,metadata:metadata} of deduced",
    ),
]  # fmt: skip


@rows(("schema", "expected"), [row[1:] for row in SCHEMAS], ids=[row[0] for row in SCHEMAS])
def test_types_of_schemas(schema: dict[str, Any], expected: str) -> None:
    assert described(field_type(schema)) == expected


def test_a_resource_has_the_metadata_that_all_have() -> None:
    schema = {"type": "object", "properties": {"metadata": {"type": "object"}, "kind": {"type": "integer"}}}
    root = of_schema(parse(schema)).map
    assert root is not None
    assert root.fields["metadata"][1] is OBJECT_META
    assert root.fields["kind"][1] is STRING_TYPE
    assert root.fields["apiVersion"][1] is STRING_TYPE
    assert root.values is None


def test_without_a_schema_everything_is_deduced() -> None:
    assert of_schema(None) is FREE_FORM


def test_siblings_of_a_preserving_field_are_none() -> None:
    schema = {"type": "object", "properties": {"b": {"type": "string"}}}
    assert described(field_type(schema, properties={"it": schema, "other": PRESERVE})) == "map{b:string} of nothing"


METADATA = {
    "labels": "map{} of string",
    "annotations": "map{} of string",
    "finalizers": "set list of string",
    "generation": "numeric",
    "deletionTimestamp": "untyped",
    "name": "string",
}


@pytest.mark.parametrize(("name", "expected"), METADATA.items())
def test_types_of_metadata(name: str, expected: str) -> None:
    assert OBJECT_META.map is not None
    assert described(OBJECT_META.map.fields[name][1]) == expected


def test_owner_references_are_atomic_items_by_uid() -> None:
    assert OBJECT_META.map is not None
    owners = OBJECT_META.map.fields["ownerReferences"][1].list
    assert owners is not None
    assert owners.keys == ("uid",)
    assert owners.items.map is not None
    assert owners.items.map.atomic


# --- struct tables ---

ALWAYS = Presence.ALWAYS
PORT = Struct("Port").define(
    Field("port", INT32, 1, ALWAYS), Field("protocol", Scalar("v1.Protocol", lambda value: value, ""), 2)
)
OWNED = Struct("Owned").define(Field("uid", STRING, 1, ALWAYS), Field("name", STRING, 2))
LINK = Struct("Link")
LINK.define(Field("name", STRING), Field("next", LINK))
EVERYTHING = Struct("Everything").define(
    Field("metadata", Struct("ObjectMeta").define(Field("name", STRING))),
    Field("text", STRING),
    Field("bytes", BYTES),
    Field("flag", BOOL),
    Field("count", INT32),
    Field("share", NUMBER),
    Field("since", TIME),
    Field("at", MICRO_TIME),
    Field("either", INT_OR_STRING),
    Field("amount", QUANTITY),
    Field("any", JSON),
    Field("union", Union("OrBool", {"object": Field("Schema", OWNED), "bool": Field("Allows", BOOL)})),
    Field("labels", Map(STRING)),
    Field("selector", Map(STRING), list_type="atomic"),
    Field("reference", OWNED, list_type="atomic"),
    Field("one", Struct("One", atomic=True).define(Field("uid", STRING))),
    Field("plain", OWNED),
    Field("nothing", Struct("Nothing")),
    Field("names", List(STRING)),
    Field("atomics", List(STRING), list_type="atomic", patch="merge"),
    Field("set", List(STRING), list_type="set"),
    Field("merged", List(STRING), patch="merge"),
    Field("items", List(OWNED), list_type="map", list_keys=("uid",)),
    Field("patched", List(OWNED), patch="merge,retainKeys", merge_key="uid"),
    Field("ports", List(PORT), list_type="map", list_keys=("port", "protocol")),
    Field("replaced", List(OWNED), patch="replace"),
    Field("link", LINK),
)
STRUCTS = {
    "metadata": "metadata",
    "text": "string",
    "bytes": "string",
    "flag": "boolean",
    "count": "numeric",
    "share": "numeric",
    "since": "untyped",
    "at": "untyped",
    "either": "untyped",
    "amount": "untyped",
    "any": "deduced",
    "union": "deduced",
    "labels": "map{} of string",
    "selector": "atomic map{} of string",
    "reference": "atomic map{uid:string,name:string} of nothing",
    "one": "atomic map{uid:string} of nothing",
    "plain": "map{uid:string,name:string} of nothing",
    "nothing": "map{} of deduced",
    "names": "atomic list of string",
    "atomics": "atomic list of string",
    "set": "set list of string",
    "merged": "set list of string",
    "items": "map list of map{uid:string,name:string} of nothing by uid=",
    "patched": "map list of map{uid:string,name:string} of nothing by uid=",
    "ports": "map list of map{port:numeric,protocol:string} of nothing by port=0 by protocol=TCP",
    "replaced": "atomic list of map{uid:string,name:string} of nothing",
    "link": "map{name:string,next:map{name:string,next:map{name:string,next:map{name:…,next:…} of …} of nothing} of "
    "nothing} of nothing",
}


@rows(("name", "expected"), STRUCTS.items())
def test_types_of_struct_fields(name: str, expected: str) -> None:
    kind = of_struct(EVERYTHING).map
    assert kind is not None
    assert described(kind.fields[name][1]) == expected


def test_a_recursive_struct_is_one_type() -> None:
    kind = of_struct(LINK)
    assert kind.map is not None
    assert kind.map.fields["next"][1] is kind


def test_zeros_are_the_defaults_of_keys_that_are_always_written() -> None:
    kind = of_struct(EVERYTHING).map
    assert kind is not None
    items = kind.fields["items"][1].list
    assert items is not None
    assert items.defaults == {"uid": ""}


SHAPES: list[tuple[str, Type, Any, str]] = [
    ("a string as a scalar", ANY_SCALAR, "x", "scalar"),
    ("null as what there is", ANY_SCALAR, None, "scalar"),
    ("a list where only scalars fit", BOOLEAN, [], "scalar"),
    ("a map where only numbers fit", NUMERIC, {}, "scalar"),
    ("null where everything fits", DEDUCED, None, "map"),
    ("a list where everything fits", DEDUCED, [], "list"),
    ("a number where everything fits", DEDUCED, 1.5, "scalar"),
    ("a scalar where only maps fit", FREE_FORM, True, "map"),
]


@pytest.mark.parametrize(("kind", "value", "expected"), [row[1:] for row in SHAPES], ids=[row[0] for row in SHAPES])
def test_a_value_is_treated_as_one_of_three_shapes(kind: Type, value: Any, expected: str) -> None:
    assert kind.shapes[type(value)] == expected


def _list(list_type: str, items: Object, **keywords: Any) -> Object:
    return {"type": "array", "x-kubernetes-list-type": list_type, "items": items, **keywords}


def _list_map(item: Object) -> Object:
    return _list("map", {"type": "object", **item}, **{"x-kubernetes-list-map-keys": ["k", "l"]})


TEXT: Object = {"type": "string"}
IMPLIED: list[tuple[str, Object, bool]] = [
    ("scalars, maps and lists", {"properties": {"a": TEXT, "b": _list("atomic", {"type": "object", "nullable": True})}}, True),
    ("a set of texts", _list("set", TEXT), True),
    ("a set of texts and nulls", _list("set", {**TEXT, "nullable": True}), False),
    ("a set of maps", _list("set", {"type": "object", "x-kubernetes-map-type": "atomic"}), False),
    ("a set of anything", _list("set", {"x-kubernetes-preserve-unknown-fields": True}), False),
    ("a list-map with a required key", _list_map({"properties": {"k": TEXT, "l": TEXT}, "required": ["l"]}), True),
    ("a list-map with a default for a key", _list_map({"properties": {"k": {**TEXT, "default": "a"}}}), True),
    ("a list-map whose items may lack all keys", _list_map({"properties": {"k": TEXT, "a": TEXT}, "required": ["a"]}), False),
    ("a list-map with nulls", _list_map({"properties": {"k": TEXT}, "required": ["k"], "nullable": True}), False),
    ("an embedded resource", {"type": "object", "x-kubernetes-embedded-resource": True}, False),
]  # fmt: skip
PLACES: dict[str, Callable[[Object], Object]] = {
    "in a field": lambda inner: {"type": "object", "properties": {"a": TEXT, "b": inner}},
    "in a map": lambda inner: {"type": "object", "additionalProperties": inner},
    "in a list": lambda inner: {"type": "array", "items": inner},
    "at the root": lambda inner: inner,
}


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
@rows(("schema", "expected"), [row[1:] for row in IMPLIED], ids=[row[0] for row in IMPLIED])
def test_whether_a_schema_implies_its_type(place: Callable[[Object], Object], schema: Object, expected: bool) -> None:
    assert is_implied_by(parse(place(schema))) is expected
