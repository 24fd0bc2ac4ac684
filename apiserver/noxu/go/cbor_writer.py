"""CBOR as upstream's encoder writes it (see `go.cbor`), and the diagnostic notation in which upstream's errors quote a body.

Strings are byte strings, floats have the shortest form that keeps their value, lengths are definite, and keys are in the
bytewise order of their encoding, shorter ones first (RFC 8949, 4.2.1). The writer is our own: an
object may have 10,000 levels, and libraries recurse.

Upstream writes stored objects in this order; keys in answers are in any order. The object {"kind": "a", "n": [1.5]}:

    d9 d9 f7                tag 55799, before every document
    a2                      a map of two
       41 6e                   'n', before the longer key
       81                      an array of one
          f9 3e 00                1.5 in 16 bits
       44 6b 69 6e 64          'kind'
       41 61                   'a'

In diagnostic notation (RFC 8949, 8) it is `55799({'n': [1.5], 'kind': 'a'})`, as fxamacker/cbor writes it: byte strings that
are UTF-8 as text in single quotes, others as h'ff'; everything outside ASCII as \\u; `_` marks an indefinite length.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from struct import pack, unpack
from typing import Final

from noxu.go.cbor import ARRAY, BYTES, MAP, NEGATIVE, PRIMITIVE, SELF_DESCRIBED, TAG, TEXT, UNSIGNED, Heads
from noxu.go.text import float_json
from noxu.values import MAX_INT64, MIN_INT64, Json, Object

_MAX_CACHED: Final = 64  # bytes of a key that is cached


def write(value: Json) -> bytes:
    """The value as a document, with the tag of self-described CBOR."""
    return SELF_DESCRIBED + item(value)


def item(value: Json) -> bytes:
    """The value without a tag."""
    out: list[bytes] = []
    stack: list[Iterator[tuple[bytes, Json]]] = [iter([(b"", value)])]
    while stack:
        for key, part in stack[-1]:
            if key:
                out.append(key)
            kind = type(part)
            if kind is str:
                out.append(_string(part) if len(part) > _MAX_CACHED else _short(part))
            elif kind is dict:
                out.append(_head(MAP, len(part)))
                pairs = [(_short(k) if len(k) <= _MAX_CACHED else _string(k), v) for k, v in part.items()]
                pairs.sort(key=_first)
                stack.append(iter(pairs))
                break
            elif kind is list:
                out.append(_head(ARRAY, len(part)))
                stack.append(iter([(b"", element) for element in part]))
                break
            else:
                out.append(_scalar(part))
        else:
            stack.pop()
    return b"".join(out)


def watch_event(kind: str, body: bytes) -> bytes:
    """An event of a watch (RFC 8742: a sequence has nothing between its items) with a document as its object."""
    return b"%b\xa2\x44type%b\x46object%b" % (SELF_DESCRIBED, _short(kind), body)


def around_elements(value: Object, name: str, count: int) -> tuple[bytes, bytes]:
    """What comes before and after the elements of the array `name` of an object, in which it has `count` elements."""
    pairs = sorted([(_short(key), item(part)) for key, part in value.items() if key != name])
    own = _short(name)
    before = b"".join([key + part for key, part in pairs if key < own])
    after = b"".join([key + part for key, part in pairs if key > own])
    return b"".join([SELF_DESCRIBED, _head(MAP, len(pairs) + 1), before, own, _head(ARRAY, count)]), after


def _first(pair: tuple[bytes, Json]) -> bytes:
    return pair[0]


def _head(major: int, argument: int) -> bytes:
    first = major << 5
    if argument < 24:
        return bytes((first | argument,))
    if argument < 0x100:
        return bytes((first | 24, argument))
    if argument < 0x10000:
        return pack(">BH", first | 25, argument)
    if argument < 0x1_0000_0000:
        return pack(">BI", first | 26, argument)
    return pack(">BQ", first | 27, argument)


def _string(text: str) -> bytes:
    raw = text.encode("utf-8", "surrogatepass")
    return _head(BYTES, len(raw)) + raw


_short = lru_cache(maxsize=4096)(_string)


def _scalar(value: Json) -> bytes:
    """null, a boolean or a number. A number beyond int64 is a float, in the shortest form that keeps its value."""
    if value is None or isinstance(value, bool):
        return _SIMPLE_VALUES[value]
    if isinstance(value, int) and MIN_INT64 <= value <= MAX_INT64:
        return _head(NEGATIVE, -1 - value) if value < 0 else _head(UNSIGNED, value)
    value = float(value)
    for form, head in ((">e", b"\xf9"), (">f", b"\xfa")):
        try:
            packed = pack(form, value)
        except OverflowError:
            continue
        if unpack(form, packed)[0] == value:
            return head + packed
    return b"\xfb" + pack(">d", value)


_SIMPLE_VALUES: Final = {None: b"\xf6", False: b"\xf4", True: b"\xf5"}
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
    shown = [_notated_string(chunk, major) for chunk in chunks]
    if not indefinite:
        return shown[0]
    if not shown:
        return "''_" if major == BYTES else '""_'
    return f"(_ {', '.join(shown)})"


def _notated_string(raw: bytes, major: int) -> str:
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
