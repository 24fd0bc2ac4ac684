"""Pins: revisions whose history compaction keeps until they are released.

A pin is a key of the collection `noxu/pins`, and pins the revision at which it was last written. So a pin is made, moved and
released by a write like any other: atomically, durably, and for all stores that share the back end. Its name and value are
those of whoever has made it. For example, with the store at revision 7:

    put noxu/pins "base"       revision 8: the state at 8 can be listed, and all later events watched, until "base" is deleted
    compact(20)                compacts to 8
    put noxu/pins "base"       revision 21: the pin has moved
    compact(20)                compacts to 20

What else uses the back end, such as another program that compacts an etcd, does not know pins.
"""

from __future__ import annotations

from typing import Final, Protocol

from noxu_storage.types import Corrupt, Page, Prefix, Revision

COLLECTION: Final = "noxu/pins"


class _Listed(Protocol):
    async def list(self, prefix: Prefix) -> Page: ...


async def compactable(store: _Listed, revision: Revision) -> Revision:
    """How far a store may be compacted when `revision` is asked for. Raises Corrupt, Unavailable."""
    try:
        pinned = [item.revision for item in (await store.list(Prefix(COLLECTION))).items]
    except Corrupt as error:
        if error.page is None:
            raise
        pinned = [*(item.revision for item in error.page.items), *error.keys.values()]  # a corrupt pin is one, too
    return min(revision, *pinned) if pinned else revision
