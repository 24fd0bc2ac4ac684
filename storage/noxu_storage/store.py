"""The Store protocol: the part of etcd that the API needs, and what every back end promises.

1. **Revisions.** Every successful put or delete gets the next revision of the whole store. Revisions only grow, also
   across restarts. `revision` is the newest one that reads and watches show. Where others write to the back end, too,
   revisions have gaps, and a transaction of theirs may change several keys at one revision.
2. **Compare and set.** `expected` is the revision at which the caller saw the key (0: it must not exist). Of several
   writers with the same `expected` exactly one succeeds; the others get `Conflict` with the current state. So does one that
   has waited for a transaction, which may be at its expected state: what else it follows from may have changed.
3. **Durable when answered.** When `put` or `delete` returns, the change survives kill -9 (SQLite with durability
   `full`: also a power failure). If it raises `OutcomeUnknown`, the change may have happened; the store shows which
   after it has reopened its file. If it raises `Unavailable`, the change did not happen. A cancelled call may still
   happen.
4. **Visible when answered.** After a write has returned, `get`, `list` and `watch` of this store show it. They never
   show what is not durable yet.
5. **History.** `get` and `list` with `revision=N` show the exact state at N, and `watch(after=N)` delivers every later event exactly
   once, in order, with its previous value, unless N has been compacted: then all raise `Compacted`. Compaction removes
   what was superseded at or before the revision that it names. It never removes a current value, or an event after that
   revision. It stops at the oldest pin (pins.py).
6. **Watches** are filterable, ordered, unique, atomic (all events of one transaction are in one batch), resumable from
   the revision of any batch, and reliable: a slow reader misses nothing. If compaction overtakes it, its watch ends
   with `Compacted`, but never while it is less than `log.TAIL_EVENTS` and `log.TAIL_BYTES` behind.
7. **Transactions.** The writes of `transact` happen together or not at all, and no other write is between the reads that they
   follow from and them. Only a store that others share (`shared`) makes them one by one: see `transact`.
8. **Checked.** A value is verified when it is read. A corrupt one raises `Corrupt`, and does not affect others. It can
   be replaced and deleted like any other.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from noxu_storage.transactions import Decide
from noxu_storage.types import EVERYTHING, Batch, Key, KeyValue, Page, Prefix, Revision, Status


class Store(Protocol):
    """See the module for the promises. All methods may be called concurrently from one event loop."""

    shared: bool
    """Whether other servers may use the same back end at the same time."""
    groups_writes: bool
    """Whether writes that wait at the same time are sent together, so that they are answered sooner than one after the other."""

    @property
    def revision(self) -> Revision:
        """The newest revision that reads and watches show. An empty store is at revision 1."""
        ...

    @property
    def compacted(self) -> Revision:
        """History up to and including this revision may be gone; a watch starts at or after it. 0: nothing is gone."""
        ...

    async def get(self, key: Key, *, revision: Revision = 0) -> KeyValue | None:
        """The state at `revision` (0: now). Raises Compacted or FutureRevision, Corrupt, Unavailable."""
        ...

    async def list(self, prefix: Prefix, *, revision: Revision = 0, limit: int = 0, after: Key | None = None) -> Page:
        """States in the order of their keys, at `revision` (0: now), of at most `limit` keys (0: all) after `after`.

        Raises Compacted or FutureRevision, Unavailable, and Corrupt, which names every corrupt key and carries the page
        without them.
        """
        ...

    async def count(self, prefix: Prefix) -> int:
        """The number of keys that exist now."""
        ...

    def scan(self, texts: Sequence[bytes]) -> AsyncIterator[Sequence[KeyValue]]:
        """The states whose value contains one of the texts, some at a time, in any order.

        Each is current when it is read, at or after the revision of the first call of `__anext__`; a key that is written
        meanwhile may have been read before or after, or not at all. Corrupt values are left out. Raises Unavailable.
        """
        ...

    async def catch_up(self) -> None:
        """Return when reads and watches show every write that was answered before this call, by whatever server.

        At once, unless several servers share the back end. Raises Unavailable.
        """
        ...

    async def put(self, key: Key, value: bytes, *, expected: Revision, replaced: bytes | None = None) -> Revision:
        """Write if the key is at `expected` (0: does not exist). Raises Conflict, OutcomeUnknown, Unavailable, TooLarge.

        `replaced` is the value at `expected`, if the caller has it: the event has it, too, and it need not be read again.
        Waits while too many writes are queued.
        """
        ...

    async def delete(self, key: Key, *, expected: Revision, replaced: bytes | None = None) -> Revision:
        """Delete if the key is at `expected`. For `replaced` see `put`.

        Raises Conflict (also if the key does not exist), OutcomeUnknown, Unavailable.
        """
        ...

    async def transact(self, decide: Decide) -> Revision:
        """Commit the writes that `decide` returns, all of them or none. Returns the revision of the last (0: there are none).

        Each has its own revision, in their order, and all events are in one batch. They are checked as if they were made one
        after the other: a key that one of them deletes may be created by a later one. From the call of `decide` until they are
        made, no other write of this store is under way. Others wait, and get Conflict if there were writes. Raises Conflict, OutcomeUnknown, Unavailable, TooLarge.

        A store that others share commits them one by one, those of different keys in any order. Before the first one it checks
        all of them against what it knows. If it raises after that, some of them are made.
        """
        ...

    def watch(self, prefix: Prefix = EVERYTHING, *, after: Revision) -> AsyncIterator[Batch]:
        """Every change after `after`, until the store is closed. Raises Compacted, also while it is iterated.

        If `after` is in the future, the watch waits for it. A batch without events reports progress; the revisions of
        batches grow. A watch need not be closed: it holds nothing while it is not awaited. A corrupt event of older
        history raises Corrupt: list again, as after Compacted.
        """
        ...

    async def compact(self, revision: Revision) -> None:
        """Remove what was superseded at or before `revision`, or the oldest pin, if that is less. Raises FutureRevision, Unavailable."""
        ...

    async def compact_in_turn(self, revision: Revision) -> None:
        """Like `compact`, unless another server with the same back end has done it since the last call."""
        ...

    async def status(self) -> Status: ...

    async def close(self) -> None:
        """Finish pending writes, end all watches, release the file. Every later call raises Closed."""
        ...
