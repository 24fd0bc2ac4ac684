"""Tokens of the CEL grammar (cel-go's CEL.g4), by longest match, with ANTLR's words for what is no token."""

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
    """`kind` is the grammar's name of the token, or the sign or keyword itself."""

    kind: str
    text: str
    start: int


class Span(NamedTuple):
    """A piece of the text, from `start` to before `end`."""

    start: int
    end: int


def tokenize(text: str) -> tuple[list[Token], list[Span]]:
    """The tokens of `text`, an EOF at the end, and what could not be read."""
    tokens: list[Token] = []
    gaps: list[Span] = []
    match = _TOKEN.match
    position, length = 0, len(text)
    while position < length:
        found = match(text, position)
        if found is None:
            gaps.append(Span(position, min(_failed_at(text, position) + 1, length)))
            position = gaps[-1].end
            continue
        kind, part = found.lastgroup, found[0]
        if kind != "hidden":
            if kind == "sign" or (kind == "IDENTIFIER" and part in _KEYWORDS):
                kind = part
            tokens.append(Token(kind, part, position))  # type: ignore[arg-type]
        position += len(part)
    tokens.append(Token("EOF", "<EOF>", length))
    return tokens, gaps


def unreadable(text: str, gap: Span) -> str:
    return f"token recognition error at: '{text[gap.start : gap.end]}'"


def _failed_at(text: str, start: int) -> int:
    """Where the longest beginning of a token breaks off. The character there is skipped too."""
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
