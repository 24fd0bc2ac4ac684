"""A row of the log table: one change, with a checksum over all of its columns.

SQLite does not detect a flipped bit in the main file: 54 of 60 passed `quick_check`, and were served. So every row
carries the crc32 of its key, its revision, the revision that it replaced, and its value. The checksum is verified
whenever a value is read. A crc32 detects every single flipped bit, and all but one in 2^32 of larger errors.
"""

from __future__ import annotations

from typing import TypeAlias
from zlib import crc32

from noxu_storage.types import Key, KeyValue, Revision

# In the order of COLUMNS. The value is None for a delete; `previous` is 0 if the key did not exist.
Row: TypeAlias = tuple[str, str, str, Revision, Revision, int, bytes | None]

COLUMNS = "collection, partition, name, revision, previous, crc, value"


def row(key: Key, revision: Revision, previous: Revision, value: bytes | None) -> Row:
    """A row to insert. Raises ValueError for a key that cannot be encoded (a lone surrogate)."""
    return *key, revision, previous, checksum(key, revision, previous, value), value


def checksum(key: Key, revision: Revision, previous: Revision, value: bytes | None) -> int:
    """The crc32 of the columns, separated by NUL, then the value.

    For example `put("g/things", "p/", "a")` of b"xy" at revision 7, after revision 3, hashes
    b"g/things\\0p/\\0a\\x007\\x003\\x002\\0xy"; a delete has no length: b"…\\x007\\x003\\0\\0".
    """
    collection, partition, name = key
    size = "" if value is None else len(value)
    crc = crc32(f"{collection}\0{partition}\0{name}\0{revision}\0{previous}\0{size}\0".encode())
    return crc if value is None else crc32(value, crc)


def intact(row: Row) -> bool:
    """Whether the checksum matches. The columns of a corrupt file may be of any type."""
    collection, partition, name, revision, previous, crc, value = row
    try:
        return checksum(Key(collection, partition, name), revision, previous, value) == crc
    except (TypeError, ValueError):
        return False


def previous_state(key: Key, previous: Revision, row: Row | None) -> KeyValue | None:
    """The state that a change of `key` replaced, from the row of revision `previous`; None if it replaced nothing.

    The value is empty if the row is missing or corrupt.
    """
    if not previous:
        return None
    value = row[6] if row is not None and row[:3] == key and intact(row) else None
    return KeyValue(key, value or b"", previous)


def decode_text(text: bytes) -> str:
    """For `text_factory`: a flipped bit in one text must not make every row of a list unreadable."""
    return text.decode("utf-8", "surrogateescape")
