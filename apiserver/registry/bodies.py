"""Decode the object in the body of a request: JSON, YAML, or, for built-in kinds, protobuf."""

from __future__ import annotations

from noxu.apiserver.api import codec, errors, protobuf
from noxu.apiserver.api.meta import GroupVersionKind
from noxu.apiserver.kinds import scheme
from noxu.apiserver.values import Object

PROTOBUF = "application/vnd.kubernetes.protobuf"


def decode_body(
    content: bytes, media_type: str, expected: GroupVersionKind, *, strict: bool, typed: bool
) -> codec.Decoded:
    """The object and the decoder's complaints. Raises ApiError.

    `strict`: report repeated fields. `typed`: the apiVersion and kind of a built-in kind may be absent, and are filled in.
    """
    if media_type == PROTOBUF:
        return codec.Decoded(_from_protobuf(content, expected))
    return codec.read_object(content, media_type, expected, strict=strict, typed=typed)


def _from_protobuf(content: bytes, expected: GroupVersionKind) -> Object:
    try:
        return protobuf.decode(content, scheme.struct_of, api_version=expected.api_version, kind=expected.kind)[1]
    except ValueError as error:
        raise errors.bad_request(str(error)) from None
