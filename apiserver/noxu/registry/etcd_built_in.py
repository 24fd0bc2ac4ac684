"""Built-in kinds in etcd: JSON or protobuf, as kube-apiserver's --storage-media-type says. Both are read, whatever it says.

The server itself works on JSON, so objects in protobuf are converted where they enter and leave etcd. They begin with
`k8s\\0`, which no JSON does; see `noxu.api.protobuf` for their envelope.

A kind is stored in the version that is served. Exceptions (OLDER; upstream's default storage factory) are stored in the
version before, as long as servers of the previous release have to read them. It has the same fields, or more of them, which
are dropped when it is read.

    the server    {"kind":"ClusterTrustBundle","apiVersion":"certificates.k8s.io/v1",…}
    etcd          {"kind":"ClusterTrustBundle","apiVersion":"certificates.k8s.io/v1beta1",…}

Reading what was written gives the same bytes, with one exception: an empty list in protobuf is read as none. So objects are
written as they would be read (`as_read`); upstream answers with what it decodes from the bytes it has written. A value that
cannot be converted is not changed: it fails when it is read.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from noxu.api import codec, protobuf
from noxu.go.structs import Struct, decode
from noxu.kinds import scheme
from noxu.values import Json

JSON: Final = "application/json"
PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
MEDIA_TYPES: Final = (JSON, PROTOBUF)


class Older(NamedTuple):
    """A kind that upstream stores in the version before the one in which it is served.

    `dropped` are fields of that version which the one that is served does not have.
    """

    kind: str
    served: str
    stored: str
    dropped: tuple[bytes, ...] = ()

    def head(self, api_version: str) -> bytes:
        """The first bytes of an object as JSON."""
        return b'{"kind":"%b","apiVersion":"%b"' % (self.kind.encode(), api_version.encode())


OLDER: Final = {
    "certificates.k8s.io/clustertrustbundles": Older(
        "ClusterTrustBundle", "certificates.k8s.io/v1", "certificates.k8s.io/v1beta1"
    ),
    "certificates.k8s.io/podcertificaterequests": Older(
        "PodCertificateRequest",
        "certificates.k8s.io/v1",
        "certificates.k8s.io/v1beta1",
        (b'"pkixPublicKey"', b'"proofOfPossession"'),
    ),
    "storagemigration.k8s.io/storageversionmigrations": Older(
        "StorageVersionMigration", "storagemigration.k8s.io/v1", "storagemigration.k8s.io/v1beta1"
    ),
}
"""By collection."""
_EMPTY_LIST: Final = b"[]"
_SERVED: Final = {(older.stored, older.kind): older.served for older in OLDER.values()}


def is_protobuf(stored: bytes) -> bool:
    return stored.startswith(protobuf.MAGIC)


def to_json(collection: str, value: bytes) -> bytes:
    """A built-in object as it is stored as JSON, without the newline."""
    older = OLDER.get(collection)
    if older is None:
        return value
    return _with_head(value, older.head(older.served), older.head(older.stored))


def to_protobuf(collection: str, value: bytes) -> bytes:
    """A built-in object as JSON, in an envelope."""
    try:
        decoded = codec.decode_stored(value)
    except ValueError:
        return value
    struct = _struct_of(decoded)
    if struct is None:
        return value
    older = OLDER.get(collection)
    return protobuf.encode(struct, decoded if older is None else {**decoded, "apiVersion": older.stored})


def from_etcd(collection: str, stored: bytes) -> bytes:
    """A built-in object as JSON."""
    older = OLDER.get(collection)
    if is_protobuf(stored):
        try:
            (version, kind), decoded = protobuf.decode(stored, _lookup)
        except ValueError:
            return stored
        return codec.encode({**decoded, "apiVersion": _SERVED.get((version, kind), version)}, sort_keys=False)
    value = stored.removesuffix(b"\n") if stored.startswith(b"{") else stored
    if older is None or value.startswith(older.head(older.served)):
        return value
    if value.startswith(older.head(older.stored)) and not any(name in value for name in older.dropped):
        return _with_head(value, older.head(older.stored), older.head(older.served))
    return _served(value)


def as_read(collection: str, value: bytes) -> bytes:
    """A built-in object as JSON, as it is read after it was stored as protobuf."""
    return from_etcd(collection, to_protobuf(collection, value)) if _EMPTY_LIST in value else value


def _with_head(value: bytes, head: bytes, new_head: bytes) -> bytes:
    # the bytes after the head are those that are stored
    return new_head + value[len(head) :] if value.startswith(head) else value


def _served(value: bytes) -> bytes:
    """An object as Go reads it in the version in which it is served: in the order of declaration, without other fields."""
    try:
        stored: Json = codec.decode_stored(value)
    except ValueError:
        return value
    struct = _struct_of(stored)
    decoded = None if struct is None else decode(struct, stored)
    if decoded is None or decoded.error:
        return value
    version = _SERVED.get((stored["apiVersion"], stored["kind"]), stored["apiVersion"])
    return codec.encode({**decoded.value, "apiVersion": version}, sort_keys=False)


def _lookup(api_version: str, kind: str) -> Struct | None:
    return scheme.struct_of(_SERVED.get((api_version, kind), api_version), kind)


def _struct_of(value: Json) -> Struct | None:
    if not isinstance(value, dict):
        return None
    version, kind = value.get("apiVersion"), value.get("kind")
    return _lookup(version, kind) if isinstance(version, str) and isinstance(kind, str) else None
