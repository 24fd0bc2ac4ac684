"""The maximum size of an object, which is the default of etcd's `--max-request-bytes`: 1.5 MiB.

etcd limits the size of the whole transaction, in which the key occurs twice for a create and three times for an update.
Upstream passes on etcd's error, or that of its client, which sends no messages above 2 MiB. Objects that are accepted here
fit into every cluster.
"""

from __future__ import annotations

from typing import Final

from noxu.api.errors import TOO_LARGE, TOO_LARGE_TO_SEND, plain_error
from noxu.registry.reader import storage_key
from noxu.registry.resource import Resource
from noxu.registry.stored_object import StoredObject

MAX_REQUEST: Final = 1_572_864  # bytes
MAX_SENT: Final = 2_097_152  # bytes
SIZE_CHECKED: Final = MAX_REQUEST // 2  # bytes of an object; keys are at most a few hundred
_CREATE: Final = (2, 41)  # (keys in the transaction, its other bytes)
_UPDATE: Final = (3, 49)


def check_size(resource: Resource, entry: StoredObject, *, update: bool) -> None:
    """Raises ApiError for an object that is too large for etcd. Objects up to SIZE_CHECKED always fit."""
    keys, more = _UPDATE if update else _CREATE
    key = storage_key(resource, entry.key).encode("utf-8", "surrogateescape")
    size = len(entry.written) + keys * len(key) + more
    if size > MAX_SENT:
        raise plain_error(TOO_LARGE_TO_SEND.format(size, MAX_SENT))
    if size > MAX_REQUEST:
        raise plain_error(TOO_LARGE)
