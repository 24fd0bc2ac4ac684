"""Decimal integers as strconv reads them."""

from __future__ import annotations

import pytest

from noxu.go.text import parse_int, parse_uint
from tests.rows import rows

LONG = "9" * 5000
NUMBERS: list[tuple[str, int | str, int | str]] = [
    # text, ParseInt, ParseUint: a number, or why there is none
    ("0", 0, 0),
    ("007", 7, 7),
    ("0" * 5000 + "7", 7, 7),
    ("9223372036854775807", 2**63 - 1, 2**63 - 1),
    ("9223372036854775808", "value out of range", 2**63),
    ("18446744073709551615", "value out of range", 2**64 - 1),
    ("18446744073709551616", "value out of range", "value out of range"),
    (LONG, "value out of range", "value out of range"),
    ("-9223372036854775808", -(2**63), "invalid syntax"),
    ("-9223372036854775809", "value out of range", "invalid syntax"),
    ("+5", 5, "invalid syntax"),
    ("", "invalid syntax", "invalid syntax"),
    ("-", "invalid syntax", "invalid syntax"),
    ("+-5", "invalid syntax", "invalid syntax"),
    (" 5", "invalid syntax", "invalid syntax"),
    ("1_0", "invalid syntax", "invalid syntax"),
    ("٣", "invalid syntax", "invalid syntax"),
]


@rows(("text", "signed", "unsigned"), NUMBERS, ids=[row[0][:25] for row in NUMBERS])
def test_an_integer(text: str, signed: int | str, unsigned: int | str) -> None:
    for name, parse, expected in (("ParseInt", parse_int, signed), ("ParseUint", parse_uint, unsigned)):
        if isinstance(expected, int):
            assert parse(text) == expected
            continue
        with pytest.raises(ValueError, match=expected) as error:
            parse(text)
        assert str(error.value) == f'strconv.{name}: parsing "{text}": {expected}'
