"""Protobuf's wire format: tags, varints and lengths, and how to skip unknown fields.

A message is a sequence of fields, each a tag and a value. A tag is a varint of `field number << 3 | wire type`; a
varint has seven bits per byte, the lowest first, and the high bit set on all bytes but the last:

    08 96 01         field 1, VARINT: 0x16 | 0x01 << 7 = 150
    12 03 61 62 63   field 2, BYTES: 3 bytes, `abc`

Readers take `(data, pos, end)` and return what they read and the position after it. Positions are absolute in `data`;
`end` is where the message ends. Errors are those of Go's generated code.
"""

from __future__ import annotations

from functools import cache
from typing import Final

VARINT, FIXED64, BYTES, START_GROUP, END_GROUP, FIXED32 = range(6)
EOF: Final = "unexpected EOF"
_OVERFLOW: Final = "proto: integer overflow"
_NEGATIVE: Final = "proto: negative length found during unmarshaling"
_64_BITS: Final = (1 << 64) - 1


class BadTag(ValueError):
    """A tag that no field can have; the caller prefixes the name of the message."""


def varint(data: bytes, pos: int, end: int) -> tuple[int, int]:
    """(an unsigned 64-bit number, the position after it). Raises ValueError."""
    if pos < end and data[pos] < 0x80:
        return data[pos], pos + 1
    value = shift = 0
    while True:
        if shift >= 64:
            raise ValueError(_OVERFLOW)
        if pos >= end:
            raise ValueError(EOF)
        byte = data[pos]
        pos += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & _64_BITS, pos
        shift += 7


def tag(data: bytes, pos: int, end: int) -> tuple[int, int, int]:
    """(field number, wire type, the position after the tag). Raises BadTag or ValueError."""
    value, pos = varint(data, pos, end)
    number, wire_type = value >> 3 & 0xFFFF_FFFF, value & 7
    if wire_type == END_GROUP:
        raise BadTag("wiretype end group for non-group")
    if not 0 < number < 1 << 31:
        raise BadTag(f"illegal tag {number - (number >> 31 << 32)} (wire type {value})")
    return number, wire_type, pos


def length(data: bytes, pos: int, end: int) -> tuple[int, int]:
    """(the end of a length-delimited value, its beginning): `03 61 62 63` at 0 gives (4, 1). Raises ValueError."""
    size, pos = varint(data, pos, end)
    if size >= 1 << 63:
        raise ValueError(_NEGATIVE)
    if pos + size > end:
        raise ValueError(EOF)
    return pos + size, pos


def skip(wire_type: int, data: bytes, pos: int, end: int) -> int:
    """The position after a value. A group ends with its own end tag; groups in it are skipped with it."""
    depth = 0
    while True:
        if wire_type == VARINT:
            _, pos = varint(data, pos, end)
        elif wire_type == BYTES:
            pos, _ = length(data, pos, end)
        elif wire_type in (FIXED64, FIXED32):
            pos += 8 if wire_type == FIXED64 else 4
        elif wire_type == START_GROUP:
            depth += 1
        elif wire_type == END_GROUP:
            depth -= 1
        else:
            raise ValueError(f"proto: illegal wireType {wire_type}")
        if pos > end:
            raise ValueError(EOF)
        if not depth:
            return pos
        value, pos = varint(data, pos, end)
        wire_type = value & 7


def varint_bytes(value: int) -> bytes:
    """A varint: 150 is `96 01`."""
    if value < 0x80:
        return bytes((value,))
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


@cache
def tag_bytes(number: int, wire_type: int) -> bytes:
    """A tag: field 2 of type BYTES is `12`."""
    return varint_bytes(number << 3 | wire_type)
