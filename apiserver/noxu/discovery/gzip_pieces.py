"""The gzip of a document in pieces, most of which were in the document before a change: only what is near the new ones is
compressed again.

Pieces are compressed in groups. A group ends with a piece whose first bytes say so, whatever stands before it, so that
a new piece changes one group:

    before   a b c| d e| f g|         b' is new:   a b' c| d e| f g|

Each group ends at a byte (Z_SYNC_FLUSH) and refers to nothing before it, so that groups are put together to one stream
(RFC 1952):

    header | the blocks of group 1 | the blocks of group 2 | … | an empty last block | CRC-32 and size of the whole
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeAlias

LEVEL: Final = 1  # upstream's
ENDS: Final = 16  # one of so many pieces ends a group
WINDOW: Final = 32 * 1024  # bytes that deflate refers to: a longer piece ends a group
_BEGINNING: Final = 128  # bytes; a shorter piece, such as a comma, never ends a group
_HEADER: Final = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x04\xff"  # deflate, no time, the fastest level, any system
_LAST_BLOCK: Final = b"\x03\x00"

_Group: TypeAlias = tuple[bytes, ...]


class GzipPieces:
    """Compresses the versions of a document, one after the other, in any thread."""

    def __init__(self) -> None:
        self._blocks: dict[_Group, bytes] = {}  # of the last version

    def of(self, pieces: Sequence[bytes]) -> bytes:
        """The gzip of the pieces together."""
        kept, groups = self._blocks, list(_groups(pieces))
        self._blocks = used = {group: kept.get(group) or _blocks(group) for group in groups}
        size = checksum = 0
        for piece in pieces:
            size += len(piece)
            checksum = zlib.crc32(piece, checksum)
        end = struct.pack("<II", checksum, size & 0xFFFFFFFF)
        return b"".join((_HEADER, *(used[group] for group in groups), _LAST_BLOCK, end))


def _groups(pieces: Iterable[bytes]) -> Iterator[_Group]:
    group: list[bytes] = []
    for piece in pieces:
        group.append(piece)
        if len(piece) > WINDOW or (len(piece) >= _BEGINNING and zlib.crc32(piece[:_BEGINNING]) % ENDS == 0):
            yield tuple(group)
            group = []
    if group:
        yield tuple(group)


def _blocks(group: _Group) -> bytes:
    compressor = zlib.compressobj(LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    return b"".join([*map(compressor.compress, group), compressor.flush(zlib.Z_SYNC_FLUSH)])
