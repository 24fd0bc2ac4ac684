"""What identifies equal parts of a schema: digests of their JSON, of those that are not large.

To encode each part on its own would encode a byte as often as parts are nested around it. So of the parts of a large one,
all but the one that seems heaviest are encoded, and that one is known to be large by the bytes that the others leave:

    spec, 90 KB     replicas 1 KB, selector 2 KB    encoded
                    template                        87 KB remain: large, and not encoded; its parts are next
"""

from __future__ import annotations

import hashlib
from typing import Final

import orjson

from noxu.values import Object

MAX_BYTES: Final = 16 * 1024
"""The size of a schema that has a digest. Larger ones are seldom repeated, and their parts are found."""


class Digests:
    """Finds the digests of the parts of one schema: on the spine of structural schemas, which junctors are not part of."""

    def __init__(self) -> None:
        self._known: dict[int, bytes | None] = {}  # by identity, of the parts directly below large ones

    def of(self, schema: Object) -> bytes | None:
        """The digest of a part, None if it has none."""
        if id(schema) in self._known:
            return self._known[id(schema)]
        encoded = _encoded(schema)
        if encoded is None or len(encoded) <= MAX_BYTES:
            return encoded and _digest(encoded)
        self._divide(schema, len(encoded))
        return None

    def _divide(self, schema: Object, size: int) -> None:
        """Find the digests of the parts of a large one of which `size` bytes are not encoded yet."""
        large = [(schema, size)]
        while large:
            part, size = large.pop()
            below = _below(part)
            heaviest = max(below, key=_fields_below, default=None)
            for inner in below:
                if inner is not heaviest:
                    size -= self._add(inner, large)
            if heaviest is None:
                continue
            if size > 2 * MAX_BYTES:  # some of which are the part's own keywords
                self._known[id(heaviest)] = None
                large.append((heaviest, size))
            else:
                self._add(heaviest, large)

    def _add(self, schema: Object, large: list[tuple[Object, int]]) -> int:
        """Add the digest of a part, or add it to the large ones; its size, 0 if that is not known."""
        encoded = _encoded(schema)
        if encoded is None:
            return 0
        size, digest = len(encoded), None
        if size <= MAX_BYTES:
            digest = _digest(encoded)
        else:
            large.append((schema, size))
        self._known[id(schema)] = digest
        return size


def _encoded(schema: Object) -> bytes | None:
    """None for a schema that is too deep, or has a number that orjson does not write."""
    try:
        return orjson.dumps(schema)
    except (TypeError, ValueError):  # TypeError: JSONEncodeError
        return None


def _digest(encoded: bytes) -> bytes:
    return hashlib.blake2b(encoded, digest_size=16).digest()


def _below(schema: Object) -> list[Object]:
    """The schemas directly below one."""
    found = [*(schema.get("properties") or {}).values(), schema.get("items"), schema.get("additionalProperties")]
    return [inner for inner in found if isinstance(inner, dict)]


def _fields_below(schema: Object) -> int:
    """How many fields the objects at a schema have, or those in its lists and maps: mostly, the heaviest one has most."""
    while not schema.get("properties"):
        inner = [schema.get("items"), schema.get("additionalProperties")]
        below = next((each for each in inner if isinstance(each, dict)), None)
        if below is None:
            return 0
        schema = below
    return len(schema["properties"])
