"""The Store protocol: the little of etcd that the API needs, and what every back end promises.

1. **Revisions.** Every successful put or delete gets the next revision of the whole store; revisions only grow, also
   over a restart. `revision` is the newest one that reads and watches show.
2. **Compare and set.** `expected` is the revision at which the caller saw the key (0: it must not exist). Of any number
   of writers with the same `expected` exactly one wins, the others get `Conflict` with what is there.
3. **Durable when answered.** When `put` or `delete` returns, the change survives kill -9 (SQLite with durability
   `full`: also a power cut). If it raises `Unknown`, the change happened or did not, and the store says which after it
   has reopened itself. If it raises `Unavailable`, it did not. A cancelled call may still happen.
4. **Visible when answered.** After a write returned, `get`, `list` and `watch` of this store show it. They never show
   what is not durable yet.
5. **History.** `list(revision=N)` shows the state exactly as it was at N, and `watch(after=N)` delivers every later
   event exactly once, in order, with its previous value — as long as N has not been compacted; else `Compacted`.
   Compaction removes what was superseded at or before the revision it names, never a current value, and never an event
   after that revision.
6. **Watches** are filterable, ordered, unique, atomic (all events of one transaction in one batch), resumable from any
   batch's revision, and reliable: a slow reader is never skipped over; if compaction overtakes it, its watch ends with
   `Compacted`, but never while it is less than `log.TAIL_EVENTS` and `log.TAIL_BYTES` behind.
7. **Checked.** A value is verified when it is read; a damaged one raises `Corrupt` and harms nobody else. It can be
   replaced and deleted like any other.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol

from storage.types import EVERYTHING, Batch, Key, KeyValue, Page, Prefix, Revision, Status


class Store(Protocol):
    """See the module for the promises. All methods may be called concurrently from one event loop."""

    @property
    def revision(self) -> Revision:
        """The newest revision that reads and watches show. An empty store is at 1."""
        ...

    @property
    def compacted(self) -> Revision:
        """History up to and including this revision may be gone; watches start at or after it. 0: nothing is gone."""
        ...

    async def get(self, key: Key) -> KeyValue | None:
        """The current value. Raises Corrupt, Unavailable."""
        ...

    async def list(self, prefix: Prefix, *, revision: Revision = 0, limit: int = 0, after: Key | None = None) -> Page:
        """Keys in order, at `revision` (0: now), at most `limit` (0: all) of those behind `after`.

        Raises Compacted or FutureRevision, Unavailable, and Corrupt: it names every damaged key and carries the page
        without them, for callers that can do with less.
        """
        ...

    async def count(self, prefix: Prefix) -> int:
        """How many keys there are now."""
        ...

    async def put(self, key: Key, value: bytes, *, expected: Revision) -> Revision:
        """Write, if the key is at `expected` (0: does not exist). Raises Conflict, Unknown, Unavailable.

        Waits while too much is queued already.
        """
        ...

    async def delete(self, key: Key, *, expected: Revision) -> Revision:
        """Delete, if the key is at `expected`. Raises Conflict (also for a key that is not there), Unknown, Unavailable."""
        ...

    def watch(self, prefix: Prefix = EVERYTHING, *, after: Revision) -> AsyncIterator[Batch]:
        """Every change after `after`, until the store is closed. Raises Compacted (also later on).

        An `after` in the future waits for it. A batch without events tells progress. The revisions of a watch's
        batches grow. Nothing has to be closed: a watch holds nothing while nobody waits on it. An event from older
        history that is damaged raises Corrupt: list again, as after Compacted.
        """
        ...

    async def compact(self, revision: Revision) -> None:
        """Forget what was superseded at or before `revision`. Raises FutureRevision, Unavailable."""
        ...

    async def status(self) -> Status: ...

    async def close(self) -> None:
        """Finish what is being written, end all watches, let go of the file. From then on every call raises Closed."""
        ...
