"""Translate keys and values of a store into those of etcd, and back.

    Key("example.com/widgets", "default/", "a")     PREFIX example.com/widgets/default/a
    Key("example.com/zones", "", "a")               PREFIX example.com/zones/a

In etcd a key is one text, so a key whose columns contain more or fewer slashes than these would be taken for another. Such
a key is stored apart, each column escaped: PREFIX \\1 COLUMN/COLUMN/COLUMN. So is one with a zero byte, which PostgreSQL behind
kine refuses. The order of etcd's keys is that of the store's keys, except for those.

A layout may also change values: reading what was written gives the same bytes. Values that others write to etcd may
have another form. Changing large values takes long: `values_of` and `stored` do it in a thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from sys import intern
from typing import Any, Final, Protocol
from urllib.parse import quote, unquote

from noxu_storage.types import Key, Prefix

APART: Final = b"\1"  # after the prefix: what follows is no path of a key
LOOP_LIMIT: Final = 16 * 1024  # bytes that are changed in the event loop


class Layout(Protocol):
    """Where the keys of a store are in etcd. `prefix` is that of all keys."""

    prefix: bytes

    def key(self, key: Key) -> bytes:
        """The key in etcd. Raises ValueError for a text that cannot be encoded."""
        ...

    def key_of(self, key: bytes) -> Key | None:
        """The inverse of `key`; None for a key that is not one of the store."""
        ...

    def range(self, prefix: Prefix) -> tuple[bytes, bytes] | None:
        """The first key in etcd of a prefix, and the first one after it; None if other keys may be between them, or the
        order is not that of the store's keys."""
        ...

    def to_etcd(self, key: Key, value: bytes) -> bytes: ...

    def from_etcd(self, key: Key, value: bytes) -> bytes: ...

    def weight(self, key: Key, value: bytes) -> int:
        """The number of bytes that have to be decoded and encoded to change a value, in either direction."""
        ...


async def stored(layout: Layout, key: Key, value: bytes) -> bytes:
    """The value for etcd."""
    if layout.weight(key, value) <= LOOP_LIMIT:
        return layout.to_etcd(key, value)
    return await asyncio.to_thread(layout.to_etcd, key, value)


async def values_of(layout: Layout, items: Iterable[Any]) -> list[tuple[Key, bytes] | None]:
    """The keys and values of a store for etcd's messages KeyValue; None for a key that is not one of the store."""
    pairs = [(layout.key_of(item.key), item.value) for item in items]

    def change() -> list[tuple[Key, bytes] | None]:
        return [None if key is None else (key, layout.from_etcd(key, value)) for key, value in pairs]

    if sum([layout.weight(key, value) for key, value in pairs if key is not None]) <= LOOP_LIMIT:
        return change()
    return await asyncio.to_thread(change)


def end_of(prefix: bytes) -> bytes:
    """The first key after all keys that begin with a prefix: `a/b/` ends at `a/b0`."""
    prefix = prefix.rstrip(b"\xff")
    return prefix[:-1] + bytes([prefix[-1] + 1]) if prefix else b"\0"


def is_regular(key: Key) -> bool:
    """Whether a key can be recognized when its columns are joined."""
    collection, partition, name = key
    return (
        collection.count("/") == 1
        and collection[0] not in "/\1"
        and collection[-1] != "/"
        and "/" not in name
        and name != ""
        and "\0" not in f"{collection}{partition}{name}"
        and (not partition or (partition.find("/") == len(partition) - 1 and partition != "/"))
    )


class PlainLayout:
    """The keys as they are; values unchanged."""

    def __init__(self, prefix: str) -> None:
        """`prefix` ends with a slash."""
        self.prefix = prefix.encode()

    def key(self, key: Key) -> bytes:
        if is_regular(key):
            return self.prefix + f"{key.collection}/{key.partition}{key.name}".encode()
        return self.prefix + apart(key)

    def key_of(self, key: bytes) -> Key | None:
        rest = key.removeprefix(self.prefix)
        if rest.startswith(APART):
            return from_apart(rest)
        try:
            parts = rest.decode().split("/")
        except UnicodeDecodeError:
            return None
        if len(parts) not in (3, 4) or not all(parts):
            return None
        partition = f"{parts[2]}/" if len(parts) == 4 else ""
        return Key(intern(f"{parts[0]}/{parts[1]}"), intern(partition), parts[-1])

    def range(self, prefix: Prefix) -> tuple[bytes, bytes] | None:
        collection, partition = prefix
        if collection is None or not partition or not is_regular(Key(collection, partition, "x")):
            return None
        first = self.prefix + f"{collection}/{partition}".encode()
        return first, end_of(first)

    def to_etcd(self, key: Key, value: bytes) -> bytes:
        return value

    def from_etcd(self, key: Key, value: bytes) -> bytes:
        return value

    def weight(self, key: Key, value: bytes) -> int:
        return 0


def apart(key: Key) -> bytes:
    """A key whose columns are escaped: `\\1a%2Fb//c`."""
    return APART + "/".join(quote(column, safe="", errors="strict") for column in key).encode()


def from_apart(key: bytes) -> Key | None:
    """The inverse of `apart`."""
    columns = key.removeprefix(APART).decode("ascii", "replace").split("/")
    return Key(*map(unquote, columns)) if len(columns) == 3 else None
