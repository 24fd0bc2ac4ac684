"""Notes beside revisions: bytes that a caller keeps for a while about what it has written, in the file of the store.

They are no part of the state: no watch shows them, no checksum covers them, and after a crash the newest may be missing.
Compaction removes a note with its revision. A store that keeps none has no `notes`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

from noxu_storage.store import Store
from noxu_storage.types import Revision

ADDED_AT_ONCE: Final = 500  # notes in a transaction, which holds up writers for a few ms


class RevisionNote(NamedTuple):
    """`seconds`: when the revision was written, since 1970."""

    revision: Revision
    seconds: float
    note: bytes


class Notes(Protocol):
    """All methods raise Closed and Unavailable; those that read, Corrupt."""

    async def add(self, notes: Sequence[RevisionNote]) -> None:
        """Keep notes; one for a revision that has one already replaces it."""
        ...

    async def between(self, after: Revision, upto: Revision, limit: int) -> Sequence[RevisionNote]:
        """The first notes after a revision and up to another one, in order."""
        ...

    async def revision_at(self, seconds: float) -> Revision:
        """The newest revision with a note that is not younger than a time; 0 if there is none."""
        ...


def notes_of(store: Store) -> Notes | None:
    """Where a store keeps notes; None if it does not."""
    return getattr(store, "notes", None)


# -- in SQLite ---------------------------------------------------------------------------------------------------------

INSERT: Final = "INSERT OR REPLACE INTO notes (revision, seconds, note) VALUES (?, ?, ?)"
SELECT_BETWEEN: Final = (
    "SELECT revision, seconds, note FROM notes WHERE revision > ? AND revision <= ? ORDER BY revision LIMIT ?"
)
# from the newest: recent times are asked for
SELECT_AT: Final = "SELECT revision FROM notes WHERE seconds <= ? ORDER BY revision DESC LIMIT 1"
