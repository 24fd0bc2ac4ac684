"""Go structs as tables: what their decoder accepts, drops and refuses. (tests/kinds has those of the built-in kinds.)"""

from __future__ import annotations

import json
from typing import Any

import pytest

from noxu.crd.types import NUMBER
from noxu.go.structs import (
    BOOL,
    BYTES,
    INT32,
    INT64,
    INT_OR_STRING,
    MAX_DEPTH,
    MAX_STRICT_ERRORS,
    MICRO_TIME,
    STRING,
    TIME,
    Field,
    List,
    Map,
    Presence,
    Struct,
    Union,
    arrange,
    decode,
    json_type,
    named,
    zero,
)
from noxu.values import Json, Object
from tests.rows import rows

INNER = Struct("Inner").define(Field("name", STRING), Field("count", INT32))
EITHER = Union(
    "Either",
    {"object": Field("Inner", INNER), "bool": Field("Allows", BOOL)},
    otherwise="boolean or object expected",
)
OUTER = Struct("Outer", package="example").define(
    Field("text", STRING),
    Field("flag", BOOL),
    Field("small", INT32),
    Field("large", INT64),
    Field("real", NUMBER),
    Field("data", BYTES),
    Field("time", TIME),
    Field("exact", MICRO_TIME),
    Field("port", INT_OR_STRING),
    Field("kind", named("v1.Kind")),
    Field("pointer", STRING, write=Presence.POINTER),
    Field("inner", INNER),
    Field("list", List(INNER)),
    Field("texts", List(STRING, "v1.Texts")),
    Field("map", Map(STRING)),
    Field("either", EITHER),
    Field("inlined", STRING, inline="Embedded"),
)


def test_fields_come_in_the_order_of_declaration() -> None:
    given = {"list": [{"count": 1, "name": "a"}], "map": {"b": "2", "a": "1"}, "flag": True, "text": "x"}
    value, error, unknown = decode(OUTER, given)
    assert (error, unknown) == ("", [])
    assert json.dumps(value) == json.dumps(
        {"text": "x", "flag": True, "list": [{"name": "a", "count": 1}], "map": {"a": "1", "b": "2"}}
    )


VALUES: list[tuple[str, Object, Object]] = [
    ("null leaves a field unset", {"text": None, "list": None, "map": None, "inner": None, "either": None}, {}),
    ("zeros with omitempty are dropped", {"text": "", "flag": False, "small": 0, "list": [], "map": {}}, {}),
    ("a pointer to zero is kept", {"pointer": ""}, {"pointer": ""}),
    ("an empty struct is dropped, if it is a pointer's", {"inner": {}}, {}),
    ("null in a list is the zero of its type", {"list": [None], "texts": [None]}, {"list": [{}], "texts": [""]}),
    ("null in a map, too", {"map": {"a": None}}, {"map": {"a": ""}}),
    ("base64 is written again", {"data": "YQ=\n="}, {"data": "YQ=="}),
    ("an array of numbers is bytes, too", {"data": [97, None]}, {"data": "YQA="}),
    ("times are normalized", {"time": "2024-01-01T01:00:00+01:00"}, {"time": "2024-01-01T00:00:00Z"}),
    ("int-or-string", {"port": "80%"}, {"port": "80%"}),
    ("a float may be an integer", {"real": 1}, {"real": 1}),
    ("a union holds a struct", {"either": {"name": "a"}}, {"either": {"name": "a"}}),
    ("or a boolean", {"either": True}, {"either": True}),
]


@rows(("given", "value"), [row[1:] for row in VALUES], ids=[row[0] for row in VALUES])
def test_values_are_decoded(given: Object, value: Object) -> None:
    assert decode(OUTER, given) == (value, "", [])


GO = "json: cannot unmarshal"
ERRORS: list[tuple[str, Json, str]] = [
    ("no object", [], f"{GO} array into Go value of type example.Outer"),
    ("a number for a string", {"text": 1}, f"{GO} number into Go struct field Outer.text of type string"),
    ("a string for a boolean", {"flag": "x"}, f"{GO} string into Go struct field Outer.flag of type bool"),
    ("a number out of range", {"small": 2**31}, f"{GO} number 2147483648 into Go struct field Outer.small of type int32"),
    ("a fraction", {"large": 1.5}, f"{GO} number 1.5 into Go struct field Outer.large of type int64"),
    ("a float that is whole", {"large": 1.0}, f"{GO} number 1 into Go struct field Outer.large of type int64"),
    ("a boolean for a number", {"small": True}, f"{GO} bool into Go struct field Outer.small of type int32"),
    ("the name of a string's type", {"kind": {}}, f"{GO} object into Go struct field Outer.kind of type v1.Kind"),
    ("an object for a list", {"list": {}}, f"{GO} object into Go struct field Outer.list of type []v1.Inner"),
    ("the name of a list's type", {"texts": "x"}, f"{GO} string into Go struct field Outer.texts of type v1.Texts"),
    ("a list for a map", {"map": []}, f"{GO} array into Go struct field Outer.map of type map[string]string"),
    ("in an item", {"list": [{}, {"name": 1}]}, f"{GO} number into Go struct field Inner.list.name of type string"),
    ("in a map", {"map": {"a": 1}}, f"{GO} number into Go struct field Outer.map of type string"),
    ("in an embedded struct", {"inlined": 1}, f"{GO} number into Go struct field Outer.Embedded.inlined of type string"),
    ("no base64", {"data": "%"}, "illegal base64 data at input byte 0"),
    ("a number that is no byte", {"data": [256]}, f"{GO} number 256 into Go struct field Outer.data of type uint8"),
    ("a time that is none", {"time": "x"}, 'parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"'),
    ("a time that is a number", {"time": 1}, f"{GO} number into Go struct field Outer.time of type string"),
    ("a port out of range", {"port": 2**31}, f"{GO} number 2147483648 into Go struct field Outer.port of type int32"),
    ("a type that a union does not hold", {"either": "x"}, "boolean or object expected"),
    ("in a union, the struct around it is named", {"either": {"name": 1}}, f"{GO} number into Go struct field Outer.either.name of type string"),
    ("the first error counts", {"small": "x", "text": 1}, f"{GO} string into Go struct field Outer.small of type int32"),
    ("but a time's ends the decoding", {"text": 1, "time": 1}, f"{GO} number into Go struct field Outer.time of type string"),
]  # fmt: skip


@rows(("given", "message"), [row[1:] for row in ERRORS], ids=[row[0] for row in ERRORS])
def test_errors_are_those_of_go(given: Json, message: str) -> None:
    assert decode(OUTER, given).error == message


def test_decoding_goes_on_after_an_error() -> None:
    value, error, unknown = decode(OUTER, {"small": "x", "text": "kept", "other": 1})
    assert (value, unknown) == ({"text": "kept"}, ["other"])
    assert error.endswith("of type int32")


def test_unknown_fields_are_dropped_and_reported_in_document_order() -> None:
    given = {"z": 1, "inner": {"b": 1, "name": "x"}, "list": [{}, {"a": 1}], "map": {"any": "1"}, "A": 1}
    value, error, unknown = decode(OUTER, given)
    assert (value, error) == ({"inner": {"name": "x"}, "list": [{}, {}], "map": {"any": "1"}}, "")
    assert unknown == ["z", "inner.b", "list[1].a", "A"]


def test_names_are_case_sensitive() -> None:
    assert decode(OUTER, {"Text": "x"}) == ({}, "", ["Text"])


def test_unknown_fields_are_limited() -> None:
    assert len(decode(OUTER, {f"f{n}": 1 for n in range(200)}).unknown) == MAX_STRICT_ERRORS


WRITES = Struct("Writes").define(
    Field("omit", STRING),
    Field("pointer", STRING, write=Presence.POINTER),
    Field("always", STRING, write=Presence.ALWAYS),
    Field("inner", INNER, write=Presence.ALWAYS),
    Field("list", List(STRING), write=Presence.ALWAYS),
    Field("null", STRING, write=Presence.NULL),
)


def test_when_fields_are_written() -> None:
    unset = {"always": "", "inner": {}, "list": None, "null": None}
    assert decode(WRITES, {}).value == zero(WRITES) == arrange(WRITES, {}) == unset
    zeros: dict[str, Any] = {"omit": "", "pointer": "", "always": "", "inner": {}, "list": [], "null": ""}
    assert decode(WRITES, zeros).value == {name: value for name, value in zeros.items() if name != "omit"}


NODE = Struct("Node")
NODE.define(Field("next", NODE, write=Presence.POINTER))


def nested(levels: int) -> Object:
    value: Object = {}
    for _ in range(levels - 1):
        value = {"next": value}
    return value


def test_recursive_structs_have_a_limit() -> None:
    assert decode(NODE, nested(MAX_DEPTH)) == (nested(MAX_DEPTH), "", [])
    assert decode(NODE, nested(MAX_DEPTH + 1)).error == "exceeded max depth"


@pytest.mark.parametrize(
    ("value", "name"), [({}, "object"), ([], "array"), ("", "string"), (True, "bool"), (1, "number"), (1.5, "number")]
)
def test_json_types(value: Json, name: str) -> None:
    assert json_type(value) == name
