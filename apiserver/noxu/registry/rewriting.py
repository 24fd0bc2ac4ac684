"""Rewrite stored objects without a change, which stores them in the storage version of their resource.

Each object gets a patch that names its uid and resourceVersion and changes nothing, as upstream's storage version migrator
sends it. It is converted, validated and admitted like every write. An object that was written or deleted since it was read is
left alone: that write has stored it in the storage version. What is stored as it would be written is not stored again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Final, NamedTuple

from noxu.api import codec
from noxu.api.errors import ApiError
from noxu.registry.draft import Action, Body, WriteRequest
from noxu.registry.entry import Entry
from noxu.registry.offload import offload
from noxu.registry.patch_types import MERGE_PATCH
from noxu.registry.resource import Resource
from noxu.registry.writer import Writer
from noxu.values import Json, Object

BATCH_SIZE: Final = 32  # objects that are written concurrently, and share a transaction
_OVERTAKEN: Final = ("Conflict", "NotFound")


class Rewritten(NamedTuple):
    """The result for one object. `stored`: it was stored again; `error`: why it could not be."""

    entry: Entry
    stored: bool = False
    error: ApiError | None = None


async def rewrite(
    writer: Writer, request_of: Callable[[], WriteRequest | None], entries: Sequence[Entry]
) -> AsyncIterator[list[Rewritten]]:
    """Rewrite objects of one collection, some at a time, in this order. Raises StoreError.

    `request_of` is asked before each batch for the resource, the user and the options of the writes, since a definition may
    change meanwhile; None: no more objects are rewritten.
    """
    for start in range(0, len(entries), BATCH_SIZE):
        request = request_of()
        if request is None:
            return
        batch = entries[start : start + BATCH_SIZE]
        yield await asyncio.gather(*[_rewrite(writer, request, entry) for entry in batch])


async def _rewrite(writer: Writer, request: WriteRequest, entry: Entry) -> Rewritten:
    uid = await offload(len(entry.stored), _uid, entry)
    same = {"metadata": {"uid": uid, "resourceVersion": str(entry.revision)}}
    body = Body(codec.encode(same, sort_keys=False), MERGE_PATCH)
    patch = request._replace(
        action=Action.PATCH, namespace=entry.namespace, name=entry.key.name, body=body, weight=len(entry.stored)
    )
    try:
        written = await writer.write(patch)
    except ApiError as error:
        return Rewritten(entry, error=None if error.reason in _OVERTAKEN else error)
    return Rewritten(entry, stored=written.entry is not None and written.entry.revision != entry.revision)


def outdated(entries: Iterable[Entry], storage: Resource) -> list[Entry]:
    """The objects of a collection that are stored in another version than `storage`."""
    head = storage.stored_head
    return [
        entry for entry in entries if not entry.stored.startswith(head) and _version_of(entry) != storage.api_version
    ]


def _uid(entry: Entry) -> object:
    metadata = _decoded(entry).get("metadata")
    return metadata.get("uid") if isinstance(metadata, dict) else None


def _version_of(entry: Entry) -> object:
    return _decoded(entry).get("apiVersion")


def _decoded(entry: Entry) -> Object:
    try:
        value: Json = codec.decode_stored(entry.stored)
    except ValueError:
        return {}  # its rewrite fails with the reason
    return value if isinstance(value, dict) else {}
