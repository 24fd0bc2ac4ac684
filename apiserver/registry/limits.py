"""How large an object may be: as large as etcd takes it (its `--max-request-bytes`, 1.5 MiB by default).

What etcd measures is the whole transaction, so the object's key counts two times when it is created and three times when
it is updated. Upstream passes etcd's refusal on, without a reason; objects that fit here fit into every cluster.
"""

from __future__ import annotations

from typing import Final

from apiserver.api.errors import plain_error
from apiserver.registry.damage import storage_key
from apiserver.registry.entry import Entry
from apiserver.registry.resource import Resource

MAX_REQUEST: Final = 1_572_864  # bytes
_CREATE: Final = (2, 41)  # keys, and what else a transaction takes
_UPDATE: Final = (3, 49)


def check_size(resource: Resource, entry: Entry, *, update: bool) -> None:
    """Raises ApiError for an object that etcd would not store."""
    if len(entry.stored) <= MAX_REQUEST // 2:
        return
    keys, more = _UPDATE if update else _CREATE
    key = storage_key(resource, entry.key).encode("utf-8", "surrogateescape")
    if len(entry.stored) + keys * len(key) + more > MAX_REQUEST:
        raise plain_error("etcdserver: request is too large")
