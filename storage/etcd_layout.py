"""How keys and values of a store become those of etcd, and back.

    Key("example.com/widgets", "default/", "a")     PREFIX example.com/widgets/default/a
    Key("example.com/zones", "", "a")               PREFIX example.com/zones/a

In etcd a key is one text, so a key whose columns contain more or fewer slashes than these would be taken for another. Such
a key is stored apart, each column escaped: PREFIX \\0 COLUMN/COLUMN/COLUMN. The order of etcd's keys is that of the store's
keys, except for those.

A layout may also change values: `to_etcd` and `from_etcd` are inverse to each other, as far as what is stored in etcd has
the usual form.
"""

from __future__ import annotations

from sys import intern
from typing import Final, Protocol
from urllib.parse import quote, unquote

from noxu.storage.types import Key, Prefix

_APART: Final = b"\0"


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


def end_of(prefix: bytes) -> bytes:
    """The first key after all keys that begin with a prefix: `a/b/` ends at `a/b0`."""
    prefix = prefix.rstrip(b"\xff")
    return prefix[:-1] + bytes([prefix[-1] + 1]) if prefix else b"\0"


def is_regular(key: Key) -> bool:
    """Whether a key can be recognized when its columns are joined."""
    collection, partition, name = key
    return (
        collection.count("/") == 1
        and collection[0] not in "/\0"
        and collection[-1] != "/"
        and "/" not in name
        and name != ""
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
        if rest.startswith(_APART):
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


def apart(key: Key) -> bytes:
    """A key whose columns are escaped: `\\0a%2Fb//c`."""
    return _APART + "/".join(quote(column, safe="", errors="strict") for column in key).encode()


def from_apart(key: bytes) -> Key | None:
    """The inverse of `apart`."""
    columns = key.removeprefix(_APART).decode("ascii", "replace").split("/")
    return Key(*map(unquote, columns)) if len(columns) == 3 else None
