"""Pins: revisions whose history compaction keeps until they are released.

A pin is a key of the collection `noxu/pins`, and pins the revision at which it was last written. So a pin is made, moved and
released by a write like any other: atomically, durably, and for all stores that share the back end. Its maker
chooses its name and its value. For example, with the store at revision 7:

    put noxu/pins "base"       revision 8: the state at 8 can be listed, and all later events watched, until "base" is deleted
    compact(20)                compacts to 8
    put noxu/pins "base"       revision 21: the pin has moved
    compact(20)                compacts to 20

What else uses the back end, such as another program that compacts an etcd, does not know pins.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from noxu_storage.types import Corrupt, Key, KeyValue, Page, Prefix, Revision

COLLECTION: Final = "noxu/pins"


class _Listed(Protocol):
    async def list(self, prefix: Prefix) -> Page: ...


def key_of(name: str) -> Key:
    """The key of a pin."""
    return Key(COLLECTION, "", name)


async def pinned(store: _Listed) -> Sequence[KeyValue]:
    """All pins, the oldest first; the revision of each is the one that it pins. Raises Corrupt, Unavailable."""
    return sorted((await store.list(Prefix(COLLECTION))).items, key=lambda pin: pin.revision)


async def compactable(store: _Listed, revision: Revision) -> Revision:
    """How far a store may be compacted when `revision` is asked for. Raises Corrupt, Unavailable."""
    try:
        revisions = [pin.revision for pin in await pinned(store)]
    except Corrupt as error:
        if error.page is None:
            raise
        revisions = [*(pin.revision for pin in error.page.items), *error.keys.values()]  # a corrupt pin is one, too
    return min(revision, *revisions) if revisions else revision
