"""Numbers against limits: int64 and float64 as Go compares them. Every answer was seen on the reference."""

from __future__ import annotations

from noxu.schema.scalars import fits, is_json_integer, is_multiple, to_int64
from noxu.schema.structural import parse
from noxu.schema.validation import validate
from noxu.values import MAX_INT64, MIN_INT64, Object
from tests.rows import rows

INTEGER: Object = {"type": "integer"}
NUMBER: Object = {"type": "number"}
INT32: Object = {"type": "integer", "format": "int32"}
FLOAT: Object = {"type": "number", "format": "float"}
UNTYPED: Object = {"x-kubernetes-preserve-unknown-fields": True}


def limit(value: str, phrase: str) -> str:
    return f"a: Invalid value: {value}: a in body should be {phrase}"


def beyond(subject: str, expected: str = "integer (default format)") -> str:
    return f'<nil>: Invalid value: "": {subject} value must be of type {expected} in a'


def not_positive(factor: str) -> str:
    return f"a: Invalid value: {factor}: factor MultipleOf declared for a must be positive: {factor}"


@rows(
    ("schema", "value", "errors"),
    [
        # minimum and maximum
        ({**INTEGER, "maximum": 5}, 5, []),
        ({**INTEGER, "maximum": 5}, 6, [limit("6", "less than or equal to 5")]),
        ({**INTEGER, "maximum": 5, "exclusiveMaximum": True}, 5, [limit("5", "less than 5")]),
        ({**INTEGER, "minimum": 5}, 4, [limit("4", "greater than or equal to 5")]),
        ({**INTEGER, "minimum": 5, "exclusiveMinimum": True}, 5, [limit("5", "greater than 5")]),
        ({**INTEGER, "exclusiveMaximum": True, "exclusiveMinimum": True}, 5, []),
        ({**NUMBER, "maximum": 1.5}, 1.5, []),
        ({**NUMBER, "maximum": 1.5}, 1.6, [limit("1.6", "less than or equal to 1.5")]),
        ({**NUMBER, "maximum": 1e8}, 2e8, [limit("2e+08", "less than or equal to 1e+08")]),
        # an integer is compared with a truncated limit
        ({**NUMBER, "maximum": 1.5}, 2, [limit("2", "less than or equal to 1")]),
        ({**NUMBER, "minimum": 1.5}, 1, []),
        ({**NUMBER, "minimum": -0.5}, -1, [limit("-1", "greater than or equal to 0")]),
        ({**NUMBER, "maximum": 1e8}, 200000000, [limit("200000000", "less than or equal to 100000000")]),
        ({**UNTYPED, "maximum": 1.5}, 2, [limit("2", "less than or equal to 1")]),
        # and one beyond int64 becomes the smallest
        ({**NUMBER, "maximum": 1e21}, 5, [limit("5", "less than or equal to -9223372036854775808")]),
        ({**NUMBER, "maximum": 9223372036854775807}, 5, [limit("5", "less than or equal to -9223372036854775808")]),
        ({**NUMBER, "minimum": 1e21}, 5, []),
        ({**NUMBER, "maximum": 1e21}, 5.5, []),
        # a limit that is not of the type is an error, and the comparison is one of floats
        ({**INTEGER, "maximum": 1.5}, 1, [beyond("Maximum boundary")]),
        ({**INTEGER, "maximum": 1.5}, 2, [beyond("Maximum boundary"), limit("2", "less than or equal to 1.5")]),
        ({**INTEGER, "minimum": 1e21}, 5, [beyond("Minimum boundary"), limit("5", "greater than or equal to 1e+21")]),
        ({**INTEGER, "maximum": 1.5}, 1000000000, [beyond("Maximum boundary"), limit("1e+09", "less than or equal to 1.5")]),
        ({**INTEGER, "multipleOf": 2.5}, 5, [beyond("MultipleOf")]),
        ({**INT32, "maximum": 3e9}, 5, [beyond("Maximum boundary", "integer with format int32")]),
        ({**FLOAT, "maximum": 1e300}, 5, [beyond("Maximum boundary", "number with format float")]),
        ({**INTEGER, "maximum": 1e3}, 5, []),
        # in this order
        ({**INTEGER, "maximum": 1, "minimum": 9, "multipleOf": 2}, 5, [
            limit("5", "a multiple of 2"), limit("5", "greater than or equal to 9"), limit("5", "less than or equal to 1"),
        ]),
        # multipleOf
        ({**INTEGER, "multipleOf": 3}, 9, []),
        ({**INTEGER, "multipleOf": 3}, 10, [limit("10", "a multiple of 3")]),
        ({**INTEGER, "multipleOf": 3}, -9, []),
        ({**INTEGER, "multipleOf": 3}, 10.0, [limit("10", "a multiple of 3")]),
        ({**INTEGER, "multipleOf": 0}, 9, [not_positive("0")]),
        ({**INTEGER, "multipleOf": -3}, 9, [not_positive("-3")]),
        ({**NUMBER, "multipleOf": 0.1}, 0.3, []),
        ({**NUMBER, "multipleOf": 0.1}, 0.35, [limit("0.35", "a multiple of 0.1")]),
        ({**NUMBER, "multipleOf": 0.1}, 1, [not_positive("0")]),
        ({**NUMBER, "multipleOf": 2.5}, 5, [limit("5", "a multiple of 2")]),
        ({**NUMBER, "multipleOf": 2.5}, 5.0, []),
        ({**NUMBER, "multipleOf": 2.5}, 4.5, [limit("4.5", "a multiple of 2.5")]),
        ({**NUMBER, "multipleOf": 1}, 1e300, [limit("1e+300", "a multiple of 1")]),
        # the range of a format
        ({**INT32}, 2147483647, []),
        ({**INT32}, 2147483648, [beyond("Checked", "integer with format int32")]),
        ({**INT32}, -2147483649, [beyond("Checked", "integer with format int32")]),
        ({**INT32}, 2147483648.0, [beyond("Checked", "integer with format int32")]),
        ({**INTEGER, "format": "int64"}, 2147483648, []),
        ({**FLOAT}, 3.4028235677973366e38, []),
        ({**FLOAT}, 3.402823567797337e38, [beyond("Checked", "number with format float")]),
        ({**FLOAT}, -1e300, [beyond("Checked", "number with format float")]),
        ({**NUMBER, "format": "double"}, 1e300, []),
        ({**NUMBER, "format": "int32"}, 3000000000, []),
        # limits count whatever the type
        ({"type": "boolean", "maximum": 5}, True, []),
        ({"x-kubernetes-int-or-string": True, "maximum": 5, "minLength": 9}, 6, [limit("6", "less than or equal to 5")]),
        ({"x-kubernetes-int-or-string": True, "maximum": 5.5}, 6, [limit("6", "less than or equal to 5")]),
    ],
)  # fmt: skip
def test_limits(schema: Object, value: float, errors: list[str]) -> None:
    found = validate({"a": value}, parse({"type": "object", "properties": {"a": schema}}))
    assert [str(error) for error in found] == errors


@rows(
    ("number", "integer"),
    [
        (0.0, True), (-0.0, True), (1.0, True), (1.5, False), (-2.0, True), (0.5, False), (1e15, True),
        (2.0**53 - 1, True), (2.0**53, False), (-(2.0**53), False), (1e21, False), (float("inf"), False), (float("nan"), False),
        (1.0000000001, True), (0.9999999999, True), (-1.0000000001, True), (1.000001, False), (1e-10, False),
        (0.49999999999999994, False), (5e8 + 0.25, True), (5e8 + 0.5, True),
    ],
)  # fmt: skip
def test_which_floats_count_as_integers(number: float, integer: bool) -> None:
    assert is_json_integer(number) is integer


@rows(
    ("number", "truncated"),
    [
        (1.9, 1), (-1.9, -1), (-1e-7, 0), (1e18, 10**18), (9.3e18, MIN_INT64), (-9.3e18, MIN_INT64), (1e300, MIN_INT64),
        (-(2.0**63), MIN_INT64), (2.0**63, MIN_INT64),
    ],
)  # fmt: skip
def test_truncation_to_int64(number: float, truncated: int) -> None:
    assert to_int64(number) == truncated


@rows(
    ("number", "type_", "format_", "fitting"),
    [
        (5, "", "", True), (1e300, "", "", True), (1e300, "number", "", True), (1e300, "number", "double", True),
        (1e300, "number", "float", False), (MAX_INT64, "number", "float", True),
        (MAX_INT64, "integer", "", True), (MAX_INT64, "integer", "int32", False), (1.0, "integer", "int32", True),
        (1.5, "integer", "", False), (1e18, "integer", "int64", True), (9.2e18, "integer", "", True),
        (9.3e18, "integer", "", False), (-(2.0**63), "integer", "", False), (-9.223372036854775e18, "integer", "", True),
    ],
)  # fmt: skip
def test_fits(number: float, type_: str, format_: str, fitting: bool) -> None:
    assert fits(number, type_, format_) is fitting


def test_integers_are_multiples_exactly_and_floats_nearly() -> None:
    assert is_multiple(9007199254740994, 2)
    assert not is_multiple(9007199254740993, 2)
    assert is_multiple(0.7, 0.1)
    assert not is_multiple(0.0, 5e-324)  # 1 / factor is infinite, and that times zero is no number
