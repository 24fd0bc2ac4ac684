"""Reads protocol buffers' text format, as far as test cases are written in it: messages become dicts of lists."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TypeAlias

Scalar: TypeAlias = str | bytes
Message: TypeAlias = dict[str, list["Message | Scalar"]]
"""Texts are bytes, numbers and names str. Field names in brackets keep these."""

_TOKEN = re.compile(
    r"""(?:\s|\#[^\n]*)*(?:(?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')|(?P<extension>\[[^\]]*/[^\]]*\])"""
    r"""|(?P<word>[-+.\w]+)|(?P<sign>[{}<>\[\]:;,])|(?P<end>$))"""
)
_ESCAPE = re.compile(rb"\\(x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-7]{1,3}|.)", re.DOTALL)
_NAMED = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"a": b"\a", b"b": b"\b", b"f": b"\f", b"v": b"\v"}


def read(text: str) -> Message:
    reader = _Reader(text)
    return reader.message("")


class _Reader:
    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._next = next(self._tokens)

    def take(self) -> tuple[str, str]:
        token = self._next
        self._next = next(self._tokens, ("end", ""))
        return token

    def skip(self, signs: str) -> bool:
        if self._next[0] == "sign" and self._next[1] in signs:
            self.take()
            return True
        return False

    def message(self, end: str) -> Message:
        fields: Message = {}
        while self._next[1] != end:
            _, name = self.take()
            values = fields.setdefault(name, [])
            self.skip(":")
            if self.skip("["):
                while not self.skip("]"):
                    values.append(self.value())
                    self.skip(",")
            else:
                values.append(self.value())
            self.skip(",;")
        self.take()
        return fields

    def value(self) -> Message | Scalar:
        kind, token = self.take()
        if kind == "text":
            text = unquote(token)
            while self._next[0] == "text":
                text += unquote(self.take()[1])
            return text
        if kind == "sign":
            assert token in "{<", token
            return self.message({"{": "}", "<": ">"}[token])
        return token


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    position = 0
    while True:
        found = _TOKEN.match(text, position)
        assert found, text[position : position + 80]
        assert found.lastgroup
        yield found.lastgroup, found[found.lastgroup]
        if found.lastgroup == "end":
            return
        position = found.end()


def unquote(token: str) -> bytes:
    return _ESCAPE.sub(_unescape, token[1:-1].encode())


def _unescape(found: re.Match[bytes]) -> bytes:
    escaped: bytes = found[1]
    match escaped[:1]:
        case b"x":
            return bytes([int(escaped[1:], 16)])
        case b"u" | b"U":
            return chr(int(escaped[1:], 16)).encode()
        case digit if digit.isdigit():
            return bytes([int(escaped, 8)])
    return _NAMED.get(escaped, escaped)
