"""The values of literals: numbers in range, strings without quotes and escapes (cel-go's unescape)."""

from __future__ import annotations

import math
import re
from typing import Final

from noxu.cel.values.numbers import MAX_UINT64, Uint
from noxu.values import MAX_INT64, MIN_INT64

_SIMPLE: Final = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\\": "\\", "'": "'", '"': '"',
    "`": "`", "?": "?",
}  # fmt: skip
_ESCAPE: Final = re.compile(r"\\(?:[xX](..)|u(.{4})|U(.{8})|([0-3][0-7]{2})|(.))", re.DOTALL)


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
    return _ESCAPE.sub(_character, inner)


def bytestring(text: str) -> bytes:
    r"""`b'é\x41'` → C3 A9 41: characters are written as UTF-8, escaped bytes unchanged; \u and \U are errors."""
    raw, inner = _strip(text[1:])
    if raw or "\\" not in inner:
        return inner.encode()
    out = bytearray()
    position = 0
    for found in _ESCAPE.finditer(inner):
        out += inner[position : found.start()].encode()
        position = found.end()
        two, four, eight, octal, simple = found.groups()
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


def _character(found: re.Match[str]) -> str:
    two, four, eight, octal, simple = found.groups()
    if simple:
        return _SIMPLE[simple]
    code = int(octal, 8) if octal else int(two or four or eight, 16)
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise LiteralError("invalid unicode code point")
    return chr(code)
