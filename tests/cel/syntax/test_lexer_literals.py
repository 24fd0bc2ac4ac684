"""Values of literals."""

from __future__ import annotations

import pytest

from noxu.cel.syntax import lexer
from noxu.cel.syntax.lexer import LiteralError
from noxu.cel.values.numbers import Uint
from tests.rows import rows

INTEGERS = [
    ("decimal", "", "12", 12),
    ("with leading zeros", "", "007", 7),
    ("hexadecimal", "", "0x1f", 31),
    ("negative", "-", "0x1F", -31),
    ("the largest", "", "9223372036854775807", 2**63 - 1),
    ("the smallest", "-", "9223372036854775808", -(2**63)),
    ("many zeros before it", "", "0" * 5000 + "1", 1),
]


@pytest.mark.parametrize(("sign", "text", "value"), [row[1:] for row in INTEGERS], ids=[row[0] for row in INTEGERS])
def test_an_integer(sign: str, text: str, value: int) -> None:
    assert lexer.integer(sign, text) == value


@pytest.mark.parametrize("text", ["9223372036854775808", "0x8000000000000000", "9" * 5000])
def test_an_integer_is_out_of_range(text: str) -> None:
    with pytest.raises(LiteralError, match="invalid int literal"):
        lexer.integer("", text)


def test_an_unsigned_integer() -> None:
    value = lexer.unsigned("18446744073709551615u")
    assert (type(value), value) == (Uint, 2**64 - 1)
    with pytest.raises(LiteralError, match="invalid uint literal"):
        lexer.unsigned("18446744073709551616u")


def test_a_double() -> None:
    assert [lexer.double(sign, text) for sign, text in (("", "1.5"), ("-", ".5"), ("", "1e3"))] == [1.5, -0.5, 1000]
    with pytest.raises(LiteralError, match="invalid double literal"):
        lexer.double("", "1e400")


STRINGS = [
    ("in single quotes", "'a'", "a"),
    ("in double quotes", '"a\'b"', "a'b"),
    ("empty", "''", ""),
    ("in triple quotes", "'''a''b'''", "a''b"),
    ("two quotes are not three", "''", ""),
    ("line ends", "'''a\r\nb\rc'''", "a\nb\nc"),
    ("simple escapes", r"'\a\b\f\n\r\t\v\\\?\'\"\`'", "\a\b\f\n\r\t\v\\?'\"`"),
    ("escapes of characters", r"'\x41\X41\101\u00e9\U0001F600'", "AAAé😀"),
    ("raw", r"r'\n\''"[:-1], r"\n" + "\\"),
    ("raw in triple quotes", r'R"""a\"b"""', r"a\"b"),
]


@rows(("text", "value"), [row[1:] for row in STRINGS], ids=[row[0] for row in STRINGS])
def test_a_string(text: str, value: str) -> None:
    assert lexer.string(text) == value


@pytest.mark.parametrize("text", [r"'\ud800'", r"'\udfff'", r"'\U00110000'"])
def test_a_string_with_a_code_point_that_is_no_character(text: str) -> None:
    with pytest.raises(LiteralError, match="invalid unicode code point"):
        lexer.string(text)


BYTES = [
    ("characters are written in UTF-8", "b'é'", b"\xc3\xa9"),
    ("escapes are bytes", r"b'\xff\377A'", b"\xff\xffA"),
    ("both", r"b'é\xe9'", b"\xc3\xa9\xe9"),
    ("simple escapes", r"b'\n\''"[:-1] + "'", b"\n'"),
    ("raw", r"br'\xff'", rb"\xff"),
    ("in triple quotes", 'B"""a"b"""', b'a"b'),
]


@pytest.mark.parametrize(("text", "value"), [row[1:] for row in BYTES], ids=[row[0] for row in BYTES])
def test_bytes(text: str, value: bytes) -> None:
    assert lexer.bytestring(text) == value


@pytest.mark.parametrize("text", [r"b'\u00e9'", r"b'\U000000e9'"])
def test_bytes_have_no_escapes_of_characters(text: str) -> None:
    with pytest.raises(LiteralError, match="unable to unescape string"):
        lexer.bytestring(text)
