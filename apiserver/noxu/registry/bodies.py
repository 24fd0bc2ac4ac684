"""Decode the object in the body of a request: JSON, YAML, CBOR or, for built-in kinds, protobuf."""

from __future__ import annotations

from noxu.api import cbor, codec, errors, protobuf
from noxu.api.meta import GroupVersionKind
from noxu.go.structs import Struct
from noxu.kinds import scheme
from noxu.values import Json, Object

PROTOBUF = "application/vnd.kubernetes.protobuf"
CBOR = "application/cbor"


def decode_body(
    content: bytes, media_type: str, expected: GroupVersionKind, *, strict: bool, typed: bool
) -> codec.Decoded:
    """The object and the decoder's complaints. Raises ApiError.

    `strict`: report repeated fields. `typed`: the apiVersion and kind of a built-in kind may be absent, and are filled in.
    """
    if media_type == PROTOBUF:
        return codec.Decoded(_from_protobuf(content, expected))
    if media_type == CBOR:
        return codec.Decoded(cbor.read_object(content, expected, typed=typed))
    return codec.read_object(content, media_type, expected, strict=strict, typed=typed)


def read_kind(
    content: bytes, media_type: str, expected: GroupVersionKind, struct: Struct
) -> tuple[GroupVersionKind, Json]:
    """(The kind of an object in JSON, YAML or CBOR, the value, to be decoded as `struct`); see `codec.read_kind`.

    Raises ValueError.
    """
    if media_type == CBOR:
        return cbor.read_kind(content, expected, struct)
    return codec.read_kind(content, media_type, expected)


def unknown_element(value: Object, path: str) -> str:
    """Upstream's complaint about an unknown field in a CBOR body, which was decoded to `value`."""
    return f"cbor: found unknown field at map element index {cbor.element_index(value, path)}"


def _from_protobuf(content: bytes, expected: GroupVersionKind) -> Object:
    try:
        return protobuf.decode(content, scheme.struct_of, api_version=expected.api_version, kind=expected.kind)[1]
    except ValueError as error:
        raise errors.bad_request(str(error)) from None
