"""Tokens by longest match, and what ANTLR says of text that is no token."""

from __future__ import annotations

from noxu.cel.syntax.lexer import Span, recognition_error, tokenize
from tests.rows import rows

TOKENS = [
    ("an identifier", "_a1", ["IDENTIFIER _a1"]),
    ("a keyword", "in", ["in in"]),
    ("an identifier that begins like a keyword", "inner", ["IDENTIFIER inner"]),
    ("a reserved word is an identifier", "package", ["IDENTIFIER package"]),
    ("an escaped identifier", "a.`b-c/d.e f`", ["IDENTIFIER a", ". .", "ESC_IDENTIFIER `b-c/d.e f`"]),
    ("integers", "1 0x1F 007", ["NUM_INT 1", "NUM_INT 0x1F", "NUM_INT 007"]),
    ("unsigned integers", "1u 0x1FU", ["NUM_UINT 1u", "NUM_UINT 0x1FU"]),
    ("floats", "1.5 .5 1e3 1.5E-3", ["NUM_FLOAT 1.5", "NUM_FLOAT .5", "NUM_FLOAT 1e3", "NUM_FLOAT 1.5E-3"]),
    ("an integer and a selection", "1.a", ["NUM_INT 1", ". .", "IDENTIFIER a"]),
    ("an exponent without digits", "1e", ["NUM_INT 1", "IDENTIFIER e"]),
    ("strings of both quotes", "'a\"' \"b'\"", ["STRING 'a\"'", 'STRING "b\'"']),
    ("triple quotes", "'''a'b\n''c'''", ["STRING '''a'b\n''c'''"]),
    ("a raw string", r"r'\n'", [r"STRING r'\n'"]),
    ("bytes, raw bytes", r"b'a' bR'\x'", ["BYTES b'a'", r"BYTES bR'\x'"]),
    ("escapes", r"'\n\x41\101\u00e9\U0001F600\?\`'", [r"STRING '\n\x41\101\u00e9\U0001F600\?\`'"]),
    ("operators", "<= < >= > == !=", ["<= <=", "< <", ">= >=", "> >", "== ==", "!= !="]),
    ("two characters before one", "a&&b||c", ["IDENTIFIER a", "&& &&", "IDENTIFIER b", "|| ||", "IDENTIFIER c"]),
    ("comments and white space", "a // b\n\t// c\r\n\f+b", ["IDENTIFIER a", "+ +", "IDENTIFIER b"]),
    ("nothing", "", []),
]


@rows(("text", "expected"), [row[1:] for row in TOKENS], ids=[row[0] for row in TOKENS])
def test_tokens(text: str, expected: list[str]) -> None:
    tokens, unrecognized = tokenize(text)
    assert [f"{token.kind} {token.text}" for token in tokens] == [*expected, "EOF <EOF>"]
    assert unrecognized == []
    assert all(text.startswith(token.text, token.start) for token in tokens[:-1])


UNRECOGNIZED = [
    ("a character that begins no token", "a # b", ["#"], ["a", "b"]),
    ("each for itself", "$@", ["$", "@"], []),
    ("an assignment takes the next character", "a = b", ["= "], ["a", "b"]),
    ("a single ampersand", "a & b", ["& "], ["a", "b"]),
    ("at the end", "a |", ["|"], ["a"]),
    ("a string without an end", "'ab", ["'ab"], []),
    ("a string that ends with the line", "'ab\nc", ["'ab\n"], ["c"]),
    ("a wrong escape", r"'a\qb' + c", [r"'a\q", "' + c"], ["b"]),
    ("an escape that is too short", r"'\u00g'", [r"'\u00g", "'"], []),
    ("an octal escape that is too large", r"'\400'", [r"'\4", "'"], ["00"]),
    ("an escaped identifier without an end", "a.`b", ["`b"], ["a", "."]),
    ("an escaped identifier with another character", "`b$c`", ["`b$", "`"], ["c"]),
    ("no escaped identifier is empty", "``", ["``"], []),
    ("letters of other alphabets", "é", ["é"], []),
]


@rows(("text", "parts", "tokens"), [row[1:] for row in UNRECOGNIZED], ids=[row[0] for row in UNRECOGNIZED])
def test_text_that_is_no_token(text: str, parts: list[str], tokens: list[str]) -> None:
    found, unrecognized = tokenize(text)
    assert [text[span.start : span.end] for span in unrecognized] == parts
    assert [token.text for token in found[:-1]] == tokens


def test_the_message_is_antlrs() -> None:
    assert recognition_error("a # b", Span(2, 3)) == "token recognition error at: '#'"
