"""The tokens of CEL (cel-go's CEL.g4), by longest match, with ANTLR's messages for text that is not a token.

Literals have values: numbers in range, strings without quotes and escapes (cel-go's unescape).
"""

from __future__ import annotations

import math
import re
from typing import Final, NamedTuple

from noxu.cel.values.numbers import MAX_UINT64, Uint
from noxu.values import MAX_INT64, MIN_INT64

_SIMPLE: Final = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\\": "\\", "'": "'", '"': '"',
    "`": "`", "?": "?",
}  # fmt: skip
_ESCAPED: Final = re.compile(r"\\(?:[xX](..)|u(.{4})|U(.{8})|([0-3][0-7]{2})|(.))", re.DOTALL)


class LiteralError(ValueError):
    """A literal that has no value. The message is cel-go's."""


def _magnitude(text: str) -> int:
    """The value of decimal or hexadecimal digits; some number out of range for more than 20 decimal digits."""
    if text.startswith("0x"):
        return int(text, 16)
    digits = text.lstrip("0")  # Python refuses to convert more than 4300 digits
    return int(digits or "0") if len(digits) <= 20 else MAX_UINT64 + 1


def integer(sign: str, text: str) -> int:
    value = _magnitude(text)
    value = -value if sign else value
    if not MIN_INT64 <= value <= MAX_INT64:
        raise LiteralError("invalid int literal")
    return value


def unsigned(text: str) -> Uint:
    value = _magnitude(text[:-1])
    if value > MAX_UINT64:
        raise LiteralError("invalid uint literal")
    return Uint(value)


def double(sign: str, text: str) -> float:
    value = float(sign + text)
    if math.isinf(value):
        raise LiteralError("invalid double literal")
    return value


def string(text: str) -> str:
    raw, inner = _strip(text)
    if raw or "\\" not in inner:
        return inner
    return _ESCAPED.sub(_character, inner)


def bytestring(text: str) -> bytes:
    r"""`b'é\x41'` → C3 A9 41: characters are written as UTF-8, escaped bytes unchanged; \u and \U are errors."""
    raw, inner = _strip(text[1:])
    if raw or "\\" not in inner:
        return inner.encode()
    out = bytearray()
    position = 0
    for match in _ESCAPED.finditer(inner):
        out += inner[position : match.start()].encode()
        position = match.end()
        two, four, eight, octal, simple = match.groups()
        if four or eight:
            raise LiteralError("unable to unescape string")
        if two or octal:
            out.append(int(two, 16) if two else int(octal, 8))
        else:
            out += _SIMPLE[simple].encode()
    return bytes(out + inner[position:].encode())


def _strip(text: str) -> tuple[bool, str]:
    """Whether it is a raw literal, and the text between the quotes, with line ends as \\n."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    raw = text[0] in "rR"
    text = text[1:] if raw else text
    quotes = 3 if len(text) >= 6 and text.startswith(("'''", '"""')) else 1
    return raw, text[quotes:-quotes]


def _character(match: re.Match[str]) -> str:
    two, four, eight, octal, simple = match.groups()
    if simple:
        return _SIMPLE[simple]
    code = int(octal, 8) if octal else int(two or four or eight, 16)
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise LiteralError("invalid unicode code point")
    return chr(code)


_ESCAPE: Final = r"\\(?:[abfnrtv\"'\\?`]|[0-3][0-7][0-7]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})"
_STRING: Final = (
    r"[rR](?:\"\"\"(?s:.*?)\"\"\"|'''(?s:.*?)'''|\"[^\"\n\r]*\"|'[^'\n\r]*')"
    rf"|\"\"\"(?:{_ESCAPE}|[^\\])*?\"\"\"|'''(?:{_ESCAPE}|[^\\])*?'''"
    rf"|\"(?:{_ESCAPE}|[^\\\"\n\r])*\"|'(?:{_ESCAPE}|[^\\'\n\r])*'"
)
_EXPONENT: Final = r"[eE][+-]?[0-9]+"
_TOKEN: Final = re.compile(
    r"(?P<hidden>(?:[ \t\r\n\f]+|//[^\n]*)+)"
    rf"|(?P<STRING>{_STRING})"
    rf"|(?P<BYTES>[bB](?:{_STRING}))"
    r"|(?P<IDENTIFIER>[A-Za-z_][A-Za-z0-9_]*)"
    rf"|(?P<NUM_FLOAT>[0-9]+\.[0-9]+(?:{_EXPONENT})?|[0-9]+{_EXPONENT}|\.[0-9]+(?:{_EXPONENT})?)"
    r"|(?P<NUM_UINT>(?:0x[0-9a-fA-F]+|[0-9]+)[uU])"
    r"|(?P<NUM_INT>0x[0-9a-fA-F]+|[0-9]+)"
    r"|(?P<sign>==|!=|<=|>=|&&|\|\||[<>\[\]{}().,\-!?:+*/%])"
    r"|(?P<ESC_IDENTIFIER>`[A-Za-z0-9_.\-/ ]+`)"
)
_KEYWORDS: Final = frozenset({"in", "true", "false", "null"})
_PARTIAL_STRING: Final = {
    quote: re.compile(rf"{quote}(?:{_ESCAPE}|[^\\{quote}\n\r])*")
    for quote in "'\""
}  # fmt: skip
_PARTIAL_ESCAPE: Final = re.compile(r"\\(?:[0-3][0-7]?|[xX][0-9a-fA-F]?|u[0-9a-fA-F]{0,3}|U[0-9a-fA-F]{0,7})?")
_PARTIAL_NAME: Final = re.compile(r"`[A-Za-z0-9_.\-/ ]*")


class SourceToken(NamedTuple):
    """`kind` is the token's name in the grammar, or the sign or keyword itself."""

    kind: str
    text: str
    start: int


class Span(NamedTuple):
    """A part of the text: from `start` up to, not including, `end`."""

    start: int
    end: int


def tokenize(text: str) -> tuple[list[SourceToken], list[Span]]:
    """The tokens of `text`, with an EOF at the end, and the spans that are no tokens.

    "a = 'b"   →   [IDENTIFIER "a", EOF], [(2, 4), (4, 6)]     of "= " and "'b"
    """
    tokens: list[SourceToken] = []
    unrecognized: list[Span] = []
    match_at = _TOKEN.match
    position, length = 0, len(text)
    while position < length:
        match = match_at(text, position)
        if match is None:
            span = Span(position, min(_mismatch(text, position) + 1, length))
            unrecognized.append(span)
            position = span.end
            continue
        kind, part = match.lastgroup, match[0]
        if kind != "hidden":
            if kind == "sign" or (kind == "IDENTIFIER" and part in _KEYWORDS):
                kind = part
            tokens.append(SourceToken(kind, part, position))  # type: ignore[arg-type]
        position += len(part)
    tokens.append(SourceToken("EOF", "<EOF>", length))
    return tokens, unrecognized


def recognition_error(text: str, span: Span) -> str:
    return f"token recognition error at: '{text[span.start : span.end]}'"


def _mismatch(text: str, start: int) -> int:
    r"""The position of the first character that continues no token begun at `start`.

    ANTLR skips everything up to this character, and the character itself:

        "= 1"      →   1: "=" may become "==", the space does not continue it
        "'ab\qc'"  →   4: after "'ab\" a "q" is no escape; the tokens continue with "c"
        "#"        →   0: no token begins like this
    """
    char = text[start]
    if char in "=&|":
        return start + 1
    if char == "`":
        return _PARTIAL_NAME.match(text, start).end()  # type: ignore[union-attr]
    if char in _PARTIAL_STRING:
        end = _PARTIAL_STRING[char].match(text, start).end()  # type: ignore[union-attr]
        escape = _PARTIAL_ESCAPE.match(text, end)
        return escape.end() if escape else end
    return start
