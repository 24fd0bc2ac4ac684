"""Rewrite stored objects without a change, which stores them in the storage version of their resource.

Each object gets a patch that names its uid and resourceVersion and changes nothing, as upstream's storage version migrator
sends it. It is converted, validated and admitted like every write. An object that was written or deleted since it was read is
left alone: that write has stored it in the storage version. What is stored as it would be written is not stored again.

An older release stored custom resources with the names of a built-in kind among its objects. A server that starts moves them
into a collection of their own (see `storage_form`), before anything reads that of the built-in kind. It recognizes them by
their apiVersion, which the built-in kind does not have. The next start completes an interrupted move.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from noxu.api import codec
from noxu.api.errors import ApiError
from noxu.crd import types
from noxu.registry import storage_form
from noxu.registry.draft import Action, Body, Writer, WriteRequest
from noxu.registry.offload import offload
from noxu.registry.reader import Reader
from noxu.registry.resource import MERGE_PATCH, Resource
from noxu.registry.served_resources import ServedResources
from noxu.registry.storage_form import as_json
from noxu.registry.stored_object import StoredObject, object_at
from noxu.values import Json, Object
from noxu_storage.store import Store
from noxu_storage.types import Conflict, Corrupt, Key, KeyValue, Prefix

BATCH_SIZE: Final = 32  # objects that are written concurrently, and share a transaction
_OVERTAKEN: Final = ("Conflict", "NotFound")


class Rewritten(NamedTuple):
    """The result for one object. `stored`: it was stored again; `error`: why it could not be."""

    entry: StoredObject
    stored: bool = False
    error: ApiError | None = None


async def rewrite(
    writer: Writer, request_of: Callable[[], WriteRequest | None], entries: Sequence[StoredObject]
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


async def _rewrite(writer: Writer, request: WriteRequest, entry: StoredObject) -> Rewritten:
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


def outdated(entries: Iterable[StoredObject], storage: Resource) -> list[StoredObject]:
    """The objects of a collection that are stored in another version than `storage`."""
    head = storage.stored_head
    return [
        entry for entry in entries if not entry.stored.startswith(head) and _version_of(entry) != storage.api_version
    ]


def _uid(entry: StoredObject) -> object:
    metadata = _decoded(entry).get("metadata")
    return metadata.get("uid") if isinstance(metadata, dict) else None


def _version_of(entry: StoredObject) -> object:
    return _decoded(entry).get("apiVersion")


def _decoded(entry: StoredObject) -> Object:
    try:
        value: Json = codec.decode_stored(entry.stored)
    except ValueError:
        return {}  # its rewrite fails with the reason
    return value if isinstance(value, dict) else {}


# -- separated collections --------------------------------------------------------------------------------------------


async def separate(store: Store, reader: Reader, served_resources: ServedResources) -> int:
    """Move such custom resources; how many there were. `served_resources` has the built-in kinds. Raises StoreError."""
    definitions = served_resources.find(types.GROUP, types.VERSION, types.RESOURCE)
    assert definitions is not None
    entries = (await reader.collection(definitions)).entries
    moved = 0
    for name in storage_form.beside_custom():
        group, _, plural = name.partition("/")
        entry = entries.get(Key(definitions.collection, "", f"{plural}.{group}"))
        if entry is None:
            continue
        try:
            versions = _own_versions(object_at(entry, definitions), served_resources)
        except ApiError:  # what cannot be read is not served
            continue
        for item in await _among(store, name, versions):
            await _move(store, item, storage_form.custom_collection(group, plural))
            moved += 1
    return moved


def _own_versions(crd: Object, served_resources: ServedResources) -> list[str]:
    """The apiVersions that the definition has, and the built-in kind has not."""
    spec = crd["spec"]
    group, plural = spec["group"], spec["names"]["plural"]
    names = [version["name"] for version in spec["versions"]]
    return [f"{group}/{name}" for name in names if served_resources.find(group, name, plural) is None]


async def _among(store: Store, collection: str, versions: Sequence[str]) -> list[KeyValue]:
    """The objects of a collection that have one of these apiVersions."""
    try:
        items = (await store.list(Prefix(collection))).items
    except Corrupt as corrupt:
        items = () if corrupt.page is None else corrupt.page.items
    return [item for item in items if _api_version(item.value) in versions]


def _api_version(stored: bytes) -> object:
    try:
        value = codec.decode_stored(as_json(stored))
    except ValueError:
        return None
    return value.get("apiVersion") if isinstance(value, dict) else None


async def _move(store: Store, item: KeyValue, collection: str) -> None:
    """The copy comes first: an object may be in both places, and never in none."""
    copy = item.key._replace(collection=collection)
    with suppress(Conflict):  # it was copied by a start that was interrupted, or by another server
        await store.put(copy, item.value, expected=0)  # the same bytes under another key
    with suppress(Conflict):  # another server has moved it
        await store.delete(item.key, expected=item.revision, replaced=item.value)
