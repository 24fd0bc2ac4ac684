"""The diagnostic notation of CBOR (RFC 8949, 8), in which upstream's errors quote a body: `55799({'kind': 'Widget'})`.

As fxamacker/cbor writes it: byte strings that are UTF-8 as text in single quotes, others as h'ff'; everything outside
ASCII as \\u; `_` marks an indefinite length.
"""

from __future__ import annotations

from typing import Final

from noxu.go.cbor import ARRAY, BYTES, MAP, PRIMITIVE, TAG, TEXT, UNSIGNED, Heads
from noxu.go.text import float_json

_CONSTANTS: Final = {20: "false", 21: "true", 22: "null", 23: "undefined"}
_ESCAPES: Final = {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\\": "\\\\"}
_OPEN: Final = {ARRAY: "[", MAP: "{", TAG: "("}
_CLOSE: Final = {ARRAY: "]", MAP: "}", TAG: ")"}


def diagnose(data: bytes) -> str:
    """A well-formed item in diagnostic notation; in hexadecimal if a text string is not UTF-8, as upstream."""
    try:
        return _notation(data)
    except UnicodeDecodeError:
        return data.hex()


def _notation(data: bytes) -> str:
    """Raises UnicodeDecodeError."""
    out: list[str] = []
    heads = Heads(data)
    stack: list[list[int]] = []  # of open containers: major type, items left (-1: until a break), items written
    while True:
        while stack and (stack[-1][1] == 0 or (stack[-1][1] < 0 and heads.skip_break())):
            out.append(_CLOSE[stack.pop()[0]])
        if stack:
            _separate(out, stack[-1])
        elif out:
            return "".join(out)
        major, info, argument = heads.head()
        if major in (ARRAY, MAP):
            out.append(_OPEN[major] + ("_ " if info == 31 else ""))
            stack.append([major, -1 if info == 31 else argument * (2 if major == MAP else 1), 0])
        elif major == TAG:
            out.append(f"{argument}(")
            stack.append([TAG, 1, 0])
        elif major in (BYTES, TEXT):
            out.append(_strings(heads.string(major, info, argument), major, indefinite=info == 31))
        elif major == PRIMITIVE:
            out.append(_primitive(heads, info, argument))
        else:
            out.append(str(argument if major == UNSIGNED else -1 - argument))


def _separate(out: list[str], container: list[int]) -> None:
    """Write what comes before the next item of a container, and count the item."""
    major, left, written = container
    if written:
        out.append(": " if major == MAP and written % 2 else ", ")
    container[1:] = left - (left > 0), written + 1


def _strings(chunks: list[bytes], major: int, *, indefinite: bool) -> str:
    shown = [_string(chunk, major) for chunk in chunks]
    if not indefinite:
        return shown[0]
    if not shown:
        return "''_" if major == BYTES else '""_'
    return f"(_ {', '.join(shown)})"


def _string(raw: bytes, major: int) -> str:
    if major == TEXT:
        return _quoted(raw.decode(), '"')
    try:
        return _quoted(raw.decode(), "'") if raw else "h''"
    except UnicodeDecodeError:
        return f"h'{raw.hex()}'"


def _quoted(text: str, quote: str) -> str:
    if text.isascii() and text.isprintable() and "\\" not in text and quote not in text:
        return f"{quote}{text}{quote}"
    return quote + "".join([_ESCAPES.get(char) or _char(char, quote) for char in text]) + quote


def _char(char: str, quote: str) -> str:
    if char == quote:
        return f"\\{char}"
    if " " <= char <= "~":
        return char
    units = char.encode("utf-16-be")
    return "".join([f"\\u{units[n : n + 2].hex()}" for n in range(0, len(units), 2)])


def _primitive(heads: Heads, info: int, argument: int) -> str:
    if info < 25:
        return _CONSTANTS.get(argument) or f"simple({argument})"
    text = float_json(heads.float(info))
    mantissa, e, exponent = text.partition("e")
    return text if "." in mantissa else f"{mantissa}.0{e}{exponent}"
