"""application/cbor: objects in the bodies of requests (upstream's runtime/serializer/cbor), and in the store.

Unlike JSON, a repeated key is refused whatever fieldValidation says, and only the kinds of built-in groups are strict about
unknown fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from noxu.api import codec
from noxu.api.errors import bad_request
from noxu.api.meta import GroupVersionKind, parse_api_version
from noxu.go import cbor
from noxu.go.cbor_writer import diagnose
from noxu.go.structs import Presence, Struct
from noxu.values import Json, Object


def read_object(body: bytes, expected: GroupVersionKind, *, typed: bool) -> Object:
    """Decode the object in a request body; `expected` is the kind of the URL's resource.

    Raises ApiError: 413 for a body that is too large, 400 for one that is not an object or has no kind. With `typed` (a
    built-in kind), kind and apiVersion may be missing; the value gets them. Whether they are right is not checked here.
    """
    codec.check_size(body)
    return _read_typed(body, expected) if typed else _read_untyped(body, expected)


def read_kind(body: bytes, expected: GroupVersionKind, struct: Struct) -> tuple[GroupVersionKind, Json]:
    """(The kind of an object in a request body, its fields that `struct` has); what it does not say is taken from `expected`.

    The value may be null. Raises ValueError with upstream's message.
    """
    sent = _sent(body, expected)
    return sent, cbor.read_struct(body, _fields(struct))


@cache
def _fields(struct: Struct) -> Mapping[str, cbor.KnownField]:
    return {
        name: cbor.KnownField(
            field.write in (Presence.POINTER, Presence.NULL),
            _fields(field.type) if isinstance(field.type, Struct) else None,
        )
        for name, field in struct.fields.items()
    }


def _read_untyped(body: bytes, expected: GroupVersionKind) -> Object:
    try:
        value: Object = cbor.read_map(body) or {}
    except cbor.CborError as error:
        try:
            sent = _sent(body, expected)
        except ValueError as no_kind:
            raise codec.unrecognized(expected.kind, str(no_kind), body) from None
        raise codec.cannot_be_handled(sent, expected.kind, str(error)) from None
    kind, api_version = value.get("kind"), value.get("apiVersion")
    try:
        group, version = parse_api_version(api_version if isinstance(api_version, str) else "")
    except ValueError:
        kind = ""  # as in Go, where both are lost then
    if not kind or not isinstance(kind, str):
        raise codec.unrecognized(expected.kind, f"Object 'Kind' is missing in '{diagnose(body)}'", body)
    if not version:
        why = f"Object 'apiVersion' is missing in '{diagnose(body)}'"
        raise codec.cannot_be_handled(GroupVersionKind(group, "", kind), expected.kind, why)
    return value


def _read_typed(body: bytes, expected: GroupVersionKind) -> Object:
    try:
        sent = _sent(body, expected)
    except ValueError as error:
        raise codec.unrecognized(expected.kind, str(error), body) from None
    if not sent.version:
        raise codec.cannot_be_handled(sent, expected.kind, f"Object 'apiVersion' is missing in '{diagnose(body)}'")
    try:
        value = cbor.read_map(body) or {}
    except cbor.CborError as error:
        raise codec.cannot_be_handled(sent, expected.kind, str(error)) from None
    return value | {"apiVersion": sent.api_version, "kind": sent.kind}


def _sent(body: bytes, expected: GroupVersionKind) -> GroupVersionKind:
    try:
        api_version, kind = cbor.type_meta(body)
    except cbor.CborError as error:
        raise ValueError(f"unable to determine group/version/kind: {error}") from None
    try:
        group, version = parse_api_version(api_version)
    except ValueError:
        group, version = "", ""
    return codec.with_defaults(GroupVersionKind(group, version, kind), expected)


def read_apply(body: bytes) -> Object:
    """The body of a server-side apply; null is an empty object. Raises ApiError."""
    codec.check_size(body)
    try:
        return cbor.read_map(body) or {}
    except cbor.CborError as error:
        raise bad_request(f"error decoding patch: {error}") from None


def element_index(value: Json, path: str) -> int:
    """The position in its map of the key that a path leads to: how upstream names an unknown field.

    In {"spec": {"a": [], "b": [{"x": 1}]}} it is 0 for the path `spec.b[0].x`, and 1 for `spec.b`.
    """
    places: list[tuple[Json, str]] = [(value, path)]
    while places:
        place, rest = places.pop()
        if isinstance(place, dict):
            for index, (name, item) in enumerate(place.items()):
                if name == rest:
                    return index
                if rest.startswith(name) and rest[len(name)] in ".[":  # keys may contain points
                    places.append((item, rest[len(name) :].removeprefix(".")))
        elif isinstance(place, list) and rest.startswith("["):
            number, _, rest = rest[1:].partition("]")
            places.append((place[int(number)], rest.removeprefix(".")))
    return 0
