"""Header fields in HTTP/2: HPACK (RFC 7541) without its dynamic table.

The client announces a table of size zero, and never adds to the peer's. So a block of fields does not depend on earlier ones:
requests have constant bytes, and what a response's block means is found by its bytes. A server has a handful of blocks. What
is seen for the first time is decoded by the package hpack.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

import hpack

KEPT: Final = 64  # blocks whose fields are remembered
KEPT_SIZE: Final = 1_024  # bytes of such a block
_POST: Final = b"\x83"  # fields of the static table
_SCHEMES: Final = {"http": b"\x86", "https": b"\x87"}
_AUTHORITY, _PATH = b"\x01", b"\x04"  # the names of the static table, for a value that is not indexed
_NEW, _NEW_SECRET = b"\x00", b"\x10"  # a name that follows; a secret is not indexed by proxies either


class DecodingError(Exception):
    """A block cannot be decoded, or is too large."""


def request_block(
    scheme: str, authority: str, path: str, fields: Iterable[tuple[str, str]], secret: Iterable[tuple[str, str]] = ()
) -> bytes:
    """The block of a POST request.

    request_block("http", "h:1", "/S/M", [("te", "trailers")]) consists of

        83 86                                    :method POST, :scheme http
        01 03 h:1  04 04 /S/M                    :authority, :path
        00 02 te 08 trailers
    """
    block = _POST + _SCHEMES[scheme] + _AUTHORITY + _text(authority) + _PATH + _text(path)
    for kind, group in ((_NEW, fields), (_NEW_SECRET, secret)):
        for name, value in group:
            block += kind + _text(name) + _text(value)
    return block


def _text(text: str) -> bytes:
    """Its length, seven bits in the first byte and in each further one, and its bytes without Huffman's code."""
    encoded = text.encode()
    size = len(encoded)
    if size < 0x7F:
        return bytes((size,)) + encoded
    length, size = bytearray(b"\x7f"), size - 0x7F
    while size > 0x7F:
        length.append(size & 0x7F | 0x80)
        size >>= 7
    length.append(size)
    return bytes(length) + encoded


class BlockDecoder:
    """Decodes the blocks of one connection."""

    def __init__(self, limit: int) -> None:
        """`limit` is in bytes of names and values, and 32 for each field."""
        self._decoder = hpack.Decoder(max_header_list_size=limit)
        self._decoder.max_allowed_table_size = 0
        self._decoder.header_table_size = 0
        self._known: dict[bytes, Mapping[bytes, bytes]] = {}

    def decode(self, block: bytes) -> Mapping[bytes, bytes]:
        """The fields; of several with one name, the last one. Raises DecodingError."""
        found = self._known.get(block)
        if found is not None:
            return found
        try:
            found = MappingProxyType(dict(self._decoder.decode(block, raw=True)))
        except hpack.HPACKError as error:
            raise DecodingError(f"header fields cannot be decoded: {error}") from None
        if len(block) <= KEPT_SIZE:
            if len(self._known) >= KEPT:
                self._known.clear()
            self._known[block] = found
        return found
