"""string.format, as the first version of cel-go's prints."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cel.evaluate import Error, compile_errors, evaluate
from tests.rows import rows

PRINTED: list[tuple[str, str, str]] = [
    ("'%s'", "'a'", "a"),
    ("'%s %s'", "1, 2u", "1 2"),
    ("'%%%s'", "'a'", "%a"),
    ("'%s'", "1.0", "1"),
    ("'%s'", "true", "true"),
    ("'%s'", "null", "null"),
    ("'%s'", "duration('90m')", "5400s"),
    ("'%s'", "timestamp(0)", "1970-01-01T00:00:00Z"),
    ("'%s'", "b'abc'", "abc"),
    ("'%s'", "int", "int"),
    ("'%s'", "[1, 2]", "[1, 2]"),
    ("'%s'", "['a', 'b\"']", '["a", "b\\""]'),
    ("'%s'", "[1.5]", "[1.500000]"),
    ("'%s'", "[double('NaN')]", '["NaN"]'),
    ("'%s'", "[b'a']", '[b"a"]'),
    ("'%s'", "[duration('1s')]", '[duration("1s")]'),
    ("'%s'", "{'b': 1, 'a': [true]}", '{"a":[true], "b":1}'),
    ("'%d'", "-5", "-5"),
    ("'%d'", "5u", "5"),
    ("'%f'", "1.5", "1.500000"),
    ("'%.2f'", "1234567.891", "1,234,567.89"),
    ("'%.0f'", "2.5", "2"),
    ("'%f'", "-0.0", "0.000000"),
    ("'%f'", "double('NaN')", "NaN"),
    ("'%f'", "double('-Infinity')", "-∞"),
    ("'%f'", "'Infinity'", "∞"),
    ("'%.300f'", "0.5", "0.5" + "0" * 43),
    ("'%e'", "1234.5", "1.234500×10⁰³"),
    ("'%.3e'", "0.0015", "1.500000×10⁻⁰³"),
    ("'%.20e'", "1.0", "       1.000000×10⁰⁰"),
    ("'%b %b'", "5, -5", "101 -101"),
    ("'%b'", "true", "1"),
    ("'%x %X'", "255, 255u", "ff FF"),
    ("'%x'", "'hé'", "68c3a9"),
    ("'%X'", "b'\\xff'", "FF"),
    ("'%o'", "8", "10"),
]


@rows(("text", "args", "expected"), PRINTED, ids=[f"{row[0]} of {row[1]}" for row in PRINTED])
def test_a_format(text: str, args: str, expected: str) -> None:
    assert evaluate(f"{text}.format([{args}])") == expected


S_CLAUSE = "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps"
CLAUSE = "could not parse formatting clause: "
WRONG_LITERALS = [
    ("'%d'", "'a'", "1:14: error during formatting: decimal clause can only be used on integers, was given string"),
    ("'%f'", "1", "1:14: error during formatting: fixed-point clause can only be used on doubles, was given int"),
    ("'%e'", "true", "1:14: error during formatting: scientific clause can only be used on doubles, was given bool"),
    (
        "'%b'",
        "'a'",
        "1:14: error during formatting: only integers and bools can be formatted as binary, was given string",
    ),
    (
        "'%x'",
        "1.5",
        "1:14: error during formatting: only integers, byte buffers, and strings can be formatted as hex, was given double",
    ),
    ("'%o'", "1.5", "1:14: error during formatting: octal clause can only be used on integers, was given double"),
    ("'%s'", "optional.of(1)", f"1:25: error during formatting: {S_CLAUSE}, was given optional_type"),
    ("'%s'", "[optional.of(1)]", f"1:26: error during formatting: {S_CLAUSE}, was given optional_type"),
    ("'%s'", "", "1:12: index 0 out of range"),
    ("'%s %s'", "1", "1:15: index 1 out of range"),
    ("'a'", "1", "1:11: too many arguments supplied to string.format (expected 0, got 1)"),
    ("'%'", "1", "1:11: unexpected end of string"),
    ("'%y'", "1", f'1:12: {CLAUSE}unrecognized formatting clause "y"'),
    ("'%.'", "1", f"1:12: {CLAUSE}error while parsing precision: could not find end of precision specifier"),
    (
        "'%.f'",
        "1.0",
        f"1:13: {CLAUSE}error while parsing precision: error while converting precision to integer: "
        'strconv.Atoi: parsing "": invalid syntax',
    ),
]


@rows(("text", "args", "error"), WRONG_LITERALS, ids=[f"{row[0]} of {row[1]}" for row in WRONG_LITERALS])
def test_a_literal_format_is_checked_when_it_is_compiled(text: str, args: str, error: str) -> None:
    assert compile_errors(f"{text}.format([{args}])") == [error]


RUNTIME = [
    ("a missing argument", "%d %d", "[1]", "index 1 out of range"),
    (
        "an argument of another type",
        "%d",
        "['a']",
        "error during formatting: decimal clause can only be used on integers, was given string",
    ),
    ("an unknown verb", "%é", "[1]", f'{CLAUSE}unrecognized formatting clause "Ã"'),
    (
        "a precision out of range",
        "%.99999999999999999999f",
        "[1.0]",
        f"{CLAUSE}error while parsing precision: error while converting precision to integer: "
        'strconv.Atoi: parsing "99999999999999999999": value out of range',
    ),
    ("a key that cannot be printed", "%s", "[dyn({1.5: 1})]", "error during formatting: no formatting function for map key of type double"),
    ("an element that cannot be printed", "%s", "[dyn([optional.of(1)])]", "error during formatting: no formatting function for optional_type"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "args", "error"), [row[1:] for row in RUNTIME], ids=[row[0] for row in RUNTIME])
def test_other_formats_are_checked_when_they_are_evaluated(text: str, args: str, error: str) -> None:
    assert evaluate(f"s.format({args})", s=text) == Error(error)


def test_a_precision_may_have_leading_zeros() -> None:
    assert evaluate("s.format([1.0])", s=f"%.{'0' * 5000}2f") == "1.00"


def test_arguments_that_are_left_are_ignored_when_evaluated() -> None:
    assert evaluate("s.format([1, 2])", s="%d") == "1"


def test_wide_results_are_limited() -> None:
    found: Any = evaluate("s.format([1.0])", s="%.999999999e")
    assert len(found) == 1_000_000
