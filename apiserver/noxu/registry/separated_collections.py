"""Custom resources that an older release stored among the objects of a built-in kind, because both had its names.

When a server starts, those of each definition with the names of a built-in kind are moved into their own collection (see
`collection_names`), before anything reads the collection of the built-in kind. They are recognized by their apiVersion,
which the built-in kind does not have. A move that is interrupted is completed by the next start.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from noxu.api import codec
from noxu.api.errors import ApiError
from noxu.crd import types
from noxu.registry import collection_names
from noxu.registry.catalog import Catalog
from noxu.registry.entry import object_at
from noxu.registry.reader import Reader
from noxu.registry.storage_form import as_json
from noxu.values import Object
from noxu_storage.store import Store
from noxu_storage.types import Conflict, Corrupt, Key, KeyValue, Prefix


async def separate(store: Store, reader: Reader, catalog: Catalog) -> int:
    """Move such custom resources; how many there were. `catalog` has the built-in kinds. Raises StoreError."""
    definitions = catalog.find(types.GROUP, types.VERSION, types.RESOURCE)
    assert definitions is not None
    entries = (await reader.collection(definitions)).entries
    moved = 0
    for name in collection_names.beside_custom():
        group, _, plural = name.partition("/")
        entry = entries.get(Key(definitions.collection, "", f"{plural}.{group}"))
        if entry is None:
            continue
        try:
            versions = _own_versions(object_at(entry, definitions), catalog)
        except ApiError:  # what cannot be read is not served
            continue
        for item in await _among(store, name, versions):
            await _move(store, item, collection_names.of_custom(group, plural))
            moved += 1
    return moved


def _own_versions(crd: Object, catalog: Catalog) -> list[str]:
    """The apiVersions that the definition has, and the built-in kind has not."""
    spec = crd["spec"]
    group, plural = spec["group"], spec["names"]["plural"]
    names = [version["name"] for version in spec["versions"]]
    return [f"{group}/{name}" for name in names if catalog.find(group, name, plural) is None]


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
        await store.put(copy, item.value, expected=0)
    with suppress(Conflict):  # another server has moved it
        await store.delete(item.key, expected=item.revision, replaced=item.value)
