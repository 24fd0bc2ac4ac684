"""The form of stored custom resources: JSON or, with the feature gate CBORServingAndStorage, CBOR.

Both forms are read, whether the gate is enabled or not: CBOR begins with the tag of self-described CBOR, which no JSON
does (upstream's NewCRDRESTOptionsGetter). Only the store has CBOR: everything above it works on JSON.

Decoding CBOR takes twenty times as long as JSON, so callers that read many values do it in a thread: `weight`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from noxu.api import codec
from noxu.values import Object

_SELF_DESCRIBED: Final = b"\xd9\xd9\xf7"


def is_cbor(stored: bytes) -> bool:
    return stored.startswith(_SELF_DESCRIBED)


def as_json(stored: bytes) -> bytes:
    """The JSON of a stored object, with sorted keys if it is stored as CBOR. Malformed CBOR is returned unchanged: like
    malformed JSON, it fails when the object is read."""
    if not is_cbor(stored):
        return stored
    from noxu.go import cbor  # imported late: few stores contain CBOR

    try:
        value = cbor.read(stored)
    except cbor.CborError:
        return stored
    return codec.encode(value, sort_keys=True)


def as_cbor(value: Object) -> bytes:
    """An object in the form in which it is stored as CBOR."""
    from noxu.go import cbor_writer  # imported late, likewise

    return cbor_writer.write(value)


def weight(stored: Iterable[bytes | None]) -> int:
    """The number of bytes to decode before stored values are JSON."""
    return sum([len(value) for value in stored if value is not None and is_cbor(value)])
