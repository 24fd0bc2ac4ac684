"""The tokens of CEL (cel-go's CEL.g4), by longest match, with ANTLR's messages for text that is not a token."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

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


class Token(NamedTuple):
    """`kind` is the token's name in the grammar, or the sign or keyword itself."""

    kind: str
    text: str
    start: int


class Span(NamedTuple):
    """A part of the text: from `start` up to, not including, `end`."""

    start: int
    end: int


def tokenize(text: str) -> tuple[list[Token], list[Span]]:
    """The tokens of `text`, with an EOF at the end, and the spans that are no tokens.

    "a = 'b"   →   [IDENTIFIER "a", EOF], [(2, 4), (4, 6)]     of "= " and "'b"
    """
    tokens: list[Token] = []
    unrecognized: list[Span] = []
    match = _TOKEN.match
    position, length = 0, len(text)
    while position < length:
        found = match(text, position)
        if found is None:
            span = Span(position, min(_mismatch(text, position) + 1, length))
            unrecognized.append(span)
            position = span.end
            continue
        kind, part = found.lastgroup, found[0]
        if kind != "hidden":
            if kind == "sign" or (kind == "IDENTIFIER" and part in _KEYWORDS):
                kind = part
            tokens.append(Token(kind, part, position))  # type: ignore[arg-type]
        position += len(part)
    tokens.append(Token("EOF", "<EOF>", length))
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
