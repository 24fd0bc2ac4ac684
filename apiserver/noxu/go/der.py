"""DER as Go reads it (encoding/asn1, x/crypto's cryptobyte): the elements of certificates and of requests for them.

A length is written in the shortest form, a tag in one byte. Everything else (BER) is malformed, so that two readers cannot
take the same bytes for different elements.

    02 01 05 04 00   is   (02, 05), (04, "")
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

BOOLEAN, INTEGER, BIT_STRING, OCTET_STRING, IDENTIFIER, SEQUENCE, SET = 0x01, 0x02, 0x03, 0x04, 0x06, 0x30, 0x31
_LONG_TAG: Final = 0x1F
_LONG: Final = 0x80
_MAX_LENGTH_BYTES: Final = 4


class Malformed(ValueError):
    """The bytes are not the expected elements. The message has no prefix of a package."""


def first(der: bytes, part: str) -> tuple[int, bytes, bytes]:
    """(the tag of the first element, its content, the bytes after it). Raises Malformed, which names the part."""
    start, end = _bounds(der, 0, part)
    return der[0], der[start:end], der[end:]


def element(der: bytes, tag: int, part: str) -> tuple[bytes, bytes]:
    """(the content of the first element, the bytes after it): 02 01 05 ff gives (05, ff).

    Raises Malformed, which names the part, also if the element has another tag.
    """
    found, content, rest = first(der, part)
    if found != tag:
        raise Malformed(f"malformed {part}")
    return content, rest


def elements(der: bytes, part: str) -> Iterator[tuple[int, bytes]]:
    """All elements as (tag, content). Raises Malformed, which names the part."""
    position = 0
    while position < len(der):
        start, end = _bounds(der, position, part)
        yield der[position], der[start:end]
        position = end


def all_of(der: bytes, tag: int, part: str) -> Iterator[bytes]:
    """The contents of all elements, which have this tag. Raises Malformed, which names the part."""
    for found, content in elements(der, part):
        if found != tag:
            raise Malformed(f"malformed {part}")
        yield content


def _bounds(der: bytes, position: int, part: str) -> tuple[int, int]:
    """Where the content of the element at a position begins and ends. Raises Malformed, which names the part."""
    head = der[position : position + 2 + _MAX_LENGTH_BYTES]
    if len(head) < 2 or head[0] & _LONG_TAG == _LONG_TAG:
        raise Malformed(f"malformed {part}")
    length, start = head[1], position + 2
    if length & _LONG:
        size = length & ~_LONG
        digits = head[2 : 2 + size]
        length, start = int.from_bytes(digits, "big"), start + size
        if not size or len(digits) < size or length < _LONG or not digits[0]:  # none, too many, or more than needed
            raise Malformed(f"malformed {part}")
    if start + length > len(der):
        raise Malformed(f"malformed {part}")
    return start, start + length


def identifier(content: bytes, part: str) -> bytes:
    """The content of an object identifier in the shortest form: equal ones have equal bytes. Raises Malformed."""
    is_whole = bool(content) and not content[-1] & _LONG
    starts = [0, *(at + 1 for at, byte in enumerate(content[:-1]) if not byte & _LONG)]
    if not is_whole or any(content[at] == _LONG for at in starts):
        raise Malformed(f"malformed {part}")
    return content


def encode(tag: int, *contents: bytes) -> bytes:
    """An element whose content is these bytes: encode(0x02, 05) gives 02 01 05."""
    content = b"".join(contents)
    if len(content) < _LONG:
        return bytes([tag, len(content)]) + content
    length = len(content).to_bytes((len(content).bit_length() + 7) // 8, "big")
    return bytes([tag, _LONG | len(length)]) + length + content
