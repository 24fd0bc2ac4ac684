"""application/vnd.kubernetes.protobuf: built-in kinds as client-go and kubectl send them (runtime/serializer/protobuf).

A body is `k8s\\0` and a runtime.Unknown message with apiVersion, kind and the object as a message of its own. The struct
tables have the field numbers. A decoded object has the shape of the JSON that Go would write for it, so that the rest of
the server does not know the difference. A Namespace named `a`, as short as possible:

    6b 38 73 00                     magic
    0a 0f                           1: typeMeta, 15 bytes
       0a 02 76 31                     1: "v1"
       12 09 4e 61 … 65                2: "Namespace"
    12 05                           2: raw, 5 bytes
       0a 03 0a 01 61                  1: metadata { 1: name "a" }
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from noxu.api.errors import no_kind_registered
from noxu.go.protobuf import RAW, RAW_JSON, read
from noxu.go.protobuf_writer import write
from noxu.go.structs import STRING, Field, Presence, Struct
from noxu.values import Object

MAGIC: Final = b"k8s\x00"

_TYPE_META: Final = Struct("TypeMeta", package="runtime").define(
    Field("apiVersion", STRING, 1), Field("kind", STRING, 2)
)
_UNKNOWN: Final = Struct("Unknown", package="runtime").define(
    Field("typeMeta", _TYPE_META, 1, Presence.ALWAYS),
    Field("raw", RAW, 2),
    Field("contentEncoding", STRING, 3),
    Field("contentType", STRING, 4),
)
_WATCH_EVENT: Final = Struct("WatchEvent").define(Field("type", STRING, 1), Field("object", RAW_JSON, 2))


class Envelope(NamedTuple):
    """The apiVersion and kind that a body claims, and the object's message."""

    api_version: str
    kind: str
    raw: bytes


def decode(
    body: bytes, lookup: Callable[[str, str], Struct | None], *, api_version: str = "", kind: str = ""
) -> tuple[tuple[str, str], Object]:
    """((apiVersion, kind), the object in the shape of its JSON); the parameters replace what the body leaves out.

    `lookup` gives the table of an apiVersion and kind. Raises ValueError with upstream's message.
    """
    envelope = open_envelope(body)
    api_version, kind = envelope.api_version or api_version, envelope.kind or kind
    if not (api_version and kind):
        about = f'runtime.TypeMeta{{APIVersion:"{envelope.api_version}", Kind:"{envelope.kind}"}}'
        raise ValueError(f"Object '{'apiVersion' if kind else 'Kind'}' is missing in '{about}'")
    table = lookup(api_version, kind)
    if table is None:
        version = api_version if api_version.count("/") > 1 else api_version.rpartition("/")[2]
        raise ValueError(no_kind_registered(kind, version))
    value = read(table, envelope.raw)
    return (api_version, kind), {"kind": kind, "apiVersion": api_version} | value


def open_envelope(body: bytes) -> Envelope:
    """Split a body. Raises ValueError with upstream's message."""
    if not body:
        raise ValueError("empty data")
    if not body.startswith(MAGIC):
        expected = " ".join(map(str, MAGIC))
        raise ValueError(f"provided data does not appear to be a protobuf message, expected prefix [{expected}]")
    if len(body) == len(MAGIC):
        raise ValueError("empty body")
    unknown = read(_UNKNOWN, body, len(MAGIC))
    meta = unknown["typeMeta"]
    return Envelope(meta.get("apiVersion", ""), meta.get("kind", ""), unknown.get("raw", b""))


def encode(kind: Struct, value: Object) -> bytes:
    """An object in an envelope with its apiVersion and kind."""
    meta = {"apiVersion": value.get("apiVersion") or "", "kind": value.get("kind") or ""}
    return MAGIC + write(_UNKNOWN, {"typeMeta": meta, "raw": write(kind, value)})


def watch_event(kind: str, body: bytes) -> bytes:
    """A watch event: its length in four bytes, and a message without envelope. `body` is an object in an envelope."""
    event = write(_WATCH_EVENT, {"type": kind, "object": {"raw": body}})
    return len(event).to_bytes(4, "big") + event
