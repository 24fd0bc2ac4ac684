"""What is wrong with a stored object, as far as its value and its key show it: for `noxu check`.

A stored value is an object in JSON or CBOR with an apiVersion, a kind and a uid, and its key has its name and namespace
(apiserver's registry/generic/registry writes nothing else). Servers serve other values as far as they can: what is not an
object makes lists of its resource fail, and what has no uid cannot be patched. Whether an object is valid is a question of
its schema: `noxu validate --stored`.
"""

from __future__ import annotations

from typing import Final

from noxu.api import codec
from noxu.registry.storage_form import as_json
from noxu_storage.types import Key, KeyValue

CLAIMS: Final = "ranges/"
"""What the collections of claims begin with (claims.py). They are no objects, and end with the write that they belong to."""
SERVER_LEASES: Final = "/masterleases"
"""The collection of the leases of servers (server_leases.py), which end with the servers."""
PROTOBUF: Final = b"k8s\0"  # the first bytes of what was not decoded when it was read from etcd


def is_temporary(key: Key) -> bool:
    """Whether it is a claim or a lease, which belongs to a running server, and is no object of the API."""
    return key.collection.startswith(CLAIMS) or key.collection == SERVER_LEASES


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
