"""How objects are stored: the names of their collections, their form, and what is wrong with a stored value.

Custom resources are stored as JSON or, with the feature gate CBORServingAndStorage, CBOR.
Both forms are read, whether the gate is enabled or not: CBOR begins with the tag of self-described CBOR, which no JSON
does (upstream's NewCRDRESTOptionsGetter). Only the store has CBOR: everything above it works on JSON.

Decoding CBOR takes twenty times as long as JSON, so callers that read many values do it in a thread: `weight`.

The name of a collection is GROUP/PLURAL, whatever the version. A definition may have the group and the plural of a built-in
kind, at another version. Upstream keeps both apart by their prefix in etcd, but for two groups; here they always are:

    example.com/widgets                                   custom resources
    rbac.authorization.k8s.io/clusterroles                the built-in kind
    rbac.authorization.k8s.io/clusterroles.custom         custom resources with its names

No plural contains a dot, so nothing else has such a name.

`noxu check` says what is wrong with a stored object, as far as its value and its key show it. The value is an object in JSON
or CBOR with an apiVersion, a kind and a uid; the key has its name and namespace (apiserver's registry/generic/registry
writes nothing else). Servers serve other values as far as they can: what is no object makes lists of its resource fail, and
what has no uid cannot be patched. `noxu validate --stored` checks objects against their schemas.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Final

from noxu.api import codec
from noxu.crd import types
from noxu.go import cbor, cbor_writer
from noxu.kinds import scheme
from noxu.values import Object
from noxu_storage import pins
from noxu_storage.types import Key, KeyValue

CBOR: Final = b"\xd9\xd9\xf7"
"""The first bytes of an object that is stored as CBOR, and of no JSON: the tag of self-described CBOR."""


def as_json(stored: bytes) -> bytes:
    """The JSON of a stored object, with sorted keys if it is stored as CBOR. Malformed CBOR is returned unchanged: like
    malformed JSON, it fails when the object is read."""
    if not stored.startswith(CBOR):
        return stored
    try:
        value = cbor.read(stored)
    except cbor.CborError:
        return stored
    return codec.encode(value, sort_keys=True)  # new bytes: the store's stay as they are


def as_cbor(value: Object) -> bytes:
    """An object in the form in which it is stored as CBOR."""
    return cbor_writer.write(value)


def weight(stored: Iterable[bytes | None]) -> int:
    """The number of bytes to decode before stored values are JSON."""
    return sum([len(value) for value in stored if value is not None and value.startswith(CBOR)])


# -- the names of collections -----------------------------------------------------------------------------------------


_CUSTOM: Final = ".custom"
_STORED_ELSEWHERE: Final = frozenset({"events.k8s.io/events"})  # with those of the core group


def built_in_collection(group: str, plural: str) -> str:
    return f"{group}/{plural}"


def custom_collection(group: str, plural: str) -> str:
    name = f"{group}/{plural}"
    return f"{name}{_CUSTOM}" if name in beside_custom() else name


def group_and_plural(name: str) -> str:
    """GROUP/PLURAL of any collection."""
    return name.removesuffix(_CUSTOM)


@cache
def beside_custom() -> frozenset[str]:
    """The collections of built-in kinds whose names a definition may have: groups of definitions contain a dot."""
    stored = {(kind.group, kind.plural) for kind in scheme.served() if kind.stored}
    named = {*stored, (types.GROUP, types.RESOURCE)}
    return frozenset(built_in_collection(*names) for names in named if "." in names[0]) - _STORED_ELSEWHERE


BUILT_IN_PATHS: Final = {
    "/replicationcontrollers": "controllers",
    "/endpoints": "services/endpoints",
    "/nodes": "minions",
    "/services": "services/specs",
    "networking.k8s.io/ingresses": "ingress",
}
"""Upstream's SpecialDefaultResourcePrefixes, by collection. The other built-in resources have their name."""


# -- what is wrong with a stored object -------------------------------------------------------------------------------


CLAIMS: Final = "ranges/"
"""What the collections of claims begin with (claims.py). They are no objects, and end with the write that they belong to."""
SERVER_LEASES: Final = "/masterleases"
"""The collection of the leases of servers (server_leases.py), which end with the servers."""
PROTOBUF: Final = b"k8s\0"  # the first bytes of what was not decoded when it was read from etcd


def is_temporary(key: Key) -> bool:
    """Whether it is no object of the API: a claim or a lease of a running server, or a pin of the history of its store."""
    return key.collection.startswith(CLAIMS) or key.collection in (SERVER_LEASES, pins.COLLECTION)


def problem(state: KeyValue) -> str:
    """What is wrong; empty if nothing is."""
    key, stored, _ = state
    if is_temporary(key):
        return ""
    if stored.startswith(PROTOBUF):
        return "is in protobuf, which cannot be decoded as this kind"
    try:
        value = codec.decode_stored(as_json(stored))
    except ValueError as error:
        return f"cannot be decoded: {error}"
    if not isinstance(value, dict):
        return "is not an object"
    metadata = value.get("metadata")
    if not isinstance(metadata, dict):
        return "has no metadata"
    for field in ("apiVersion", "kind"):
        if not isinstance(value.get(field), str) or not value[field]:
            return f"has no {field}"
    if not metadata.get("uid"):
        return "has no uid"
    if metadata.get("name") != key.name:
        return f"has the name {metadata.get('name')!r}, which differs from its key"
    if (metadata.get("namespace") or "") != key.partition.removesuffix("/"):
        return f"is in the namespace {metadata.get('namespace') or ''!r}, which differs from its key"
    return ""
