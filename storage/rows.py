"""A row of the log table: one change, with a checksum over everything it says.

SQLite does not notice a flipped bit in the main file (54 of 60 went through `quick_check` unseen and were served), so
every row carries the crc32 of its key, its revision, the revision it replaced and its value. It is verified whenever
a value is read; a crc32 finds every single flipped bit, and all but one in four thousand million of anything worse.
"""

from __future__ import annotations

from typing import TypeAlias
from zlib import crc32

from storage.types import Key, KeyValue, Revision

# As COLUMNS says. The value is None for a delete; a replaced revision of 0 means that there was nothing.
Row: TypeAlias = tuple[str, str, str, Revision, Revision, int, bytes | None]

COLUMNS = "collection, partition, name, revision, previous, crc, value"


def row(key: Key, revision: Revision, previous: Revision, value: bytes | None) -> Row:
    """A row to write. Raises ValueError for a key that is no Unicode text (a lone surrogate)."""
    return *key, revision, previous, checksum(key, revision, previous, value), value


def checksum(key: Key, revision: Revision, previous: Revision, value: bytes | None) -> int:
    collection, partition, name = key
    size = "" if value is None else len(value)
    crc = crc32(f"{collection}\0{partition}\0{name}\0{revision}\0{previous}\0{size}\0".encode())
    return crc if value is None else crc32(value, crc)


def intact(row: Row) -> bool:
    """Whether the checksum matches. The columns of a damaged file may be of any type."""
    collection, partition, name, revision, previous, crc, value = row
    try:
        return checksum(Key(collection, partition, name), revision, previous, value) == crc
    except (TypeError, ValueError):
        return False


def replaced(key: Key, previous: Revision, row: Row | None) -> KeyValue | None:
    """What a change of `key` replaced, from the row of that revision. Its value is empty if the row is damaged."""
    if not previous:
        return None
    value = row[6] if row is not None and row[:3] == key and intact(row) else None
    return KeyValue(key, value or b"", previous)


def decode(text: bytes) -> str:
    """For `text_factory`: a flipped bit in a text must not make every other row of a list unreadable."""
    return text.decode("utf-8", "surrogateescape")
