"""Messages of protocol buffers and the values that they evaluate to; each row was confirmed with the reference."""

from __future__ import annotations

import pytest

from noxu.cel.checking.environment import KUBERNETES
from noxu.cel.program import Program
from noxu.cel.syntax.ast import CompileError
from noxu.cel.types import types
from tests.rows import rows

ENVIRONMENT = KUBERNETES.extend({"number": types.INT, "text": types.STRING})
GIVEN = {"number": 3, "text": "abc"}

TRUE = [
    "google.protobuf.Int32Value{value: 1} == 1",
    "google.protobuf.Int32Value{} == 0",
    "google.protobuf.Int32Value{value: number} + 1 == 4",
    ".google.protobuf.UInt64Value{value: 7u} == 7u",
    "google.protobuf.Int32Value{value: 1} != null",  # a wrapper may be compared with null
    "google.protobuf.FloatValue{value: 1.333} != 1.333",  # 32 bits
    "google.protobuf.FloatValue{value: 1e300} == double('Infinity')",
    "google.protobuf.StringValue{value: text}.startsWith('a')",
    "google.protobuf.BoolValue{value: true} && google.protobuf.BytesValue{value: b'x'} == b'x'",
    "google.protobuf.Int32Value{?value: optional.none()} == 0",
    "google.protobuf.Timestamp{seconds: 5, nanos: 7} > timestamp(5)",
    "google.protobuf.Timestamp{nanos: -5} < timestamp(0)",
    "google.protobuf.Duration{seconds: 5, nanos: 2000000000} == duration('7s')",
    "google.protobuf.Duration == type(duration('1s'))",
    "google.protobuf.Struct{fields: {'a': number}}.a == 3.0",
    "google.protobuf.Struct{fields: {'a': 9007199254740993}}.a == '9007199254740993'",
    "google.protobuf.Struct{fields: {'a': b'x'}}.a == 'eA=='",
    "google.protobuf.Struct{fields: {'a': duration('1h')}}.a == '3600s'",
    "google.protobuf.Struct{} == {}",
    "google.protobuf.ListValue{values: [1, 2]} == [1.0, 2.0]",
    "google.protobuf.Value{} == null",
    "google.protobuf.Value{number_value: 12.5} == 12.5",
    "google.protobuf.Value{struct_value: {'a': 1.0}} == {'a': 1.0}",
    "google.protobuf.Value{string_value: 'a', bool_value: true} == true",  # one of them, the last
]


@rows("expression", TRUE)
def test_a_message_evaluates_to_a_value(expression: str) -> None:
    assert Program(expression, ENVIRONMENT).evaluate(GIVEN)[:2] == (True, None)


FIELD = "field type conversion error for google.protobuf."
FAILED = [
    ("Int32Value{value: 2147483648}", f"{FIELD}Int32Value.value value type: integer overflow"),
    ("UInt32Value{value: 4294967296u}", f"{FIELD}UInt32Value.value value type: unsigned integer overflow"),
    (
        "Int32Value{value: dyn('a')}",
        f"{FIELD}Int32Value.value value type: unsupported native conversion from string to 'int32'",
    ),
    (
        "Int64Value{value: dyn(1u)}",
        f"{FIELD}Int64Value.value value type: unsupported type conversion from 'uint' to int64",
    ),
    (
        "BoolValue{value: dyn(null)}",
        f"{FIELD}BoolValue.value value type: type conversion error from 'null_type' to 'bool'",
    ),
    (
        "StringValue{value: dyn(1.5)}",
        f"{FIELD}StringValue.value value type: type conversion error from Double to 'string'",
    ),
    ("Struct{fields: dyn(1)}", "unsupported field type for google.protobuf.Struct.fields: int"),
    (
        "Struct{fields: {'a': {1: 1}}}",
        f"{FIELD}Struct.fields value type: unsupported type conversion from 'int' to string",
    ),
    ("Struct{fields: {'a': optional.none()}}", f"{FIELD}Struct.fields value type: optional.none() dereference"),
    ("Int32Value{value: number / 0}", "division by zero"),
]


@rows(("message", "error"), FAILED, ids=[row[0] for row in FAILED])
def test_a_message_cannot_be_made(message: str, error: str) -> None:
    outcome = Program(f"google.protobuf.{message}", ENVIRONMENT).evaluate(GIVEN)
    assert outcome.error == error


WRONG = [
    ("google.protobuf.Int64Value{valu: 1}", ["1:32: undefined field 'valu'"]),
    (
        "google.protobuf.Int64Value{value: 'a'}",
        ["1:33: expected type of field 'value' is 'int' but provided type is 'string'"],
    ),
    ("google.protobuf.Int32Value{value: 1}.value", ["1:37: type 'wrapper(int)' does not support field selection"]),
    (
        "google.protobuf.Int32Value{value: 1}.matches('a')",
        ["1:45: found no matching overload for 'matches' applied to 'wrapper(int).(string)'"],
    ),
    ("Int32Value{value: 1}", ["1:11: undeclared reference to 'Int32Value' (in container '')"]),
    ("int{value: 1}", ["1:4: 'int' is not a message type", "1:10: undefined field 'value'"]),
]


@pytest.mark.parametrize(("expression", "problems"), WRONG, ids=[row[0] for row in WRONG])
def test_a_message_does_not_compile(expression: str, problems: list[str]) -> None:
    with pytest.raises(CompileError) as caught:
        Program(expression, ENVIRONMENT)
    errors = [
        line.removeprefix("ERROR: <input>:") for line in str(caught.value).splitlines() if line.startswith("ERROR")
    ]
    assert errors == problems


def test_a_wrapper_is_not_confused_with_its_scalar() -> None:
    """The checker caches overloads by types, and a wrapper equals the type that it wraps."""
    assert Program("google.protobuf.Int32Value{} == null", ENVIRONMENT).evaluate(GIVEN).value is False
    with pytest.raises(CompileError):
        Program("number == null", ENVIRONMENT)


def test_a_list_that_is_written_as_a_message_fails_when_it_is_evaluated() -> None:
    assert Program("list{values: [1]}", ENVIRONMENT).evaluate(GIVEN).error == "unknown type 'list'"
