"""Conversions between types, as expressions make them; and values as Go prints them in error messages."""

from __future__ import annotations

from typing import Any

import pytest

from noxu.cel.values.conversions import go_type, go_value, parse_float
from noxu.cel.values.numbers import Uint
from noxu.cel.values.times import Duration, Timestamp
from noxu.cel.values.values import (
    NONE,
    Concatenation,
    JsonList,
    JsonObject,
    MapValue,
    Optional,
    UntypedList,
    UntypedMap,
)
from noxu.schema.structural import parse
from tests.cel.evaluate import Error, evaluate
from tests.rows import rows


def refused(given: str, to: str) -> Error:
    return Error(f"type conversion error from '{given}' to '{to}'")


CONVERSIONS: list[tuple[str, Any]] = [
    ("int('12')", 12),
    ("int('-012')", -12),
    ("int('+1')", 1),
    ("int('1.5')", refused("string", "int")),
    ("int(' 1')", refused("string", "int")),
    ("int('9223372036854775808')", refused("string", "int")),
    ("int(1.9)", 1),
    ("int(-1.9)", -1),
    ("int(1e19)", Error("integer overflow")),
    ("int(18446744073709551615u)", Error("integer overflow")),
    ("int(timestamp('1970-01-01T00:01:00Z'))", 60),
    ("int(duration('1us'))", 1000),
    ("uint('12')", Uint(12)),
    ("uint('-1')", refused("string", "uint")),
    ("uint('18446744073709551616')", refused("string", "uint")),
    ("uint(-1)", Error("unsigned integer overflow")),
    ("double('1_0.5')", 10.5),
    ("double('0x1p4')", 16.0),
    ("double('Inf')", float("inf")),
    ("double('1e400')", refused("string", "double")),
    ("double('')", refused("string", "double")),
    ("bool('T')", True),
    ("bool('False')", False),
    ("bool('yes')", refused("string", "bool")),
    ("bytes('é')", b"\xc3\xa9"),
    ("string(b'\\xff')", Error("invalid UTF-8 in bytes, cannot convert to string")),
    ("string(1.0)", "1"),
    ("string(1e21)", "1e+21"),
    ("string(true)", "true"),
    ("string(duration('90m'))", "5400s"),
    ("string(timestamp('2024-01-01T02:00:00+02:00'))", "2024-01-01T02:00:00+02:00"),
    ("string(dyn(null))", Error("no such overload: string(null_type)")),
    ("string(dyn([1]))", Error("no such overload: string(list)")),
    ("timestamp(60)", Timestamp(60)),
    ("timestamp(dyn(253402300800))", Error("timestamp overflow")),
    ("duration(dyn(1))", Error("no such overload: duration(int)")),
    ("type(dyn(1u)) == uint", True),
    ("dyn(1) == 1.0", True),
]


@rows(("text", "expected"), CONVERSIONS, ids=[row[0] for row in CONVERSIONS])
def test_a_conversion(text: str, expected: Any) -> None:
    found = evaluate(text)
    assert (type(found), found) == (type(expected), expected)


@rows("text", ["", ".", "1__0", "_1", "1e", "0x1", "0x1p", "1e400", "infin", "１"])
def test_text_is_no_float_of_go(text: str) -> None:
    assert parse_float(text) is None


LIST = parse({"type": "array", "items": {"type": "integer"}})
SET = parse({"type": "array", "items": {"type": "integer"}, "x-kubernetes-list-type": "set"})
OBJECT = parse({"type": "object", "properties": {"a": {"type": "integer"}}})
PRINTED: list[tuple[str, Any, str, str]] = [
    ("an int", 1, "1", "types.Int"),
    ("a uint", Uint(1), "1", "types.Uint"),
    ("a double", 1e21, "1e+21", "types.Double"),
    ("a string", "a", "a", "types.String"),
    ("a boolean", True, "true", "types.Bool"),
    ("null", None, "NULL_VALUE", "types.Null"),
    ("bytes", b"ab", "[97 98]", "types.Bytes"),
    ("a duration", Duration(90 * 60 * 10**9), "1h30m0s", "types.Duration"),
    ("a timestamp", Timestamp(0), "1970-01-01T00:00:00Z", "types.Timestamp"),
    ("a list", [1, ["a"]], "[1, [a]]", "*types.baseList"),
    ("a sum of lists", Concatenation([1]), "[1]", "*types.concatList"),
    ("a map", MapValue([("a", 1)]), "{a: 1}", "*types.baseMap"),
    ("an optional", Optional(1), "optional(1)", "*types.Optional"),
    ("an empty optional", NONE, "optional.none()", "*types.Optional"),
    ("a list without a schema", UntypedList([1]), "[1]", "*types.baseList"),
    ("a map without a schema", UntypedMap({"a": None}), "{a: NULL_VALUE}", "*types.baseMap"),
]


@rows(("value", "text", "name"), [row[1:] for row in PRINTED], ids=[row[0] for row in PRINTED])
def test_a_value_is_printed_as_go_does(value: Any, text: str, name: str) -> None:
    assert (go_value(value), go_type(value)) == (text, name)


def test_values_with_a_schema_have_go_types_of_their_own() -> None:
    assert [go_type(value) for value in (JsonList([], LIST), JsonList([], SET), JsonObject({}, OBJECT))] == [
        "*common.unstructuredList",
        "*common.unstructuredSetList",
        "*common.unstructuredMap",
    ]


LIBRARY = [
    ("a quantity, in its canonical form", "quantity('1024Mi')", "1Gi"),
    ("a version", "semver('1.2.3-rc.1+b')", "1.2.3-rc.1+b"),
    ("a URL", "url('https://example.com/a?b')", "https://example.com/a?b"),
    ("an address", "ip('2001:DB8::1')", "2001:db8::1"),
    ("a network", "cidr('10.1.0.0/8')", "10.1.0.0/8"),
    ("a format by its type", "format.uuid()", "kubernetes.NamedFormat"),
]


@pytest.mark.parametrize(("text", "shown"), [row[1:] for row in LIBRARY], ids=[row[0] for row in LIBRARY])
def test_a_value_of_a_library_in_an_error(text: str, shown: str) -> None:
    error = f"cannot initialize optional list element from non-optional value {shown}"
    assert evaluate(f"[?dyn({text})]") == Error(error)
