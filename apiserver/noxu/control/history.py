"""The history of a server: who wrote each revision, when and why, and which revision was the newest at a time.

It is made of the notes that requests leave (`registry.authors`), when somebody asks, and keeps the newest MAX_WRITES writes.
A read belongs to the next write of the same client: it is what the client had seen. So of these notes

    read   kubectl   widgets/a at 7
    write  kubectl   revision 9
    read   kubectl   widgets/b at 9

revision 9 has the first read, and the second waits for the next write of kubectl. A client that only reads keeps its newest
MAX_READS_OF_CLIENT reads, and the newest MAX_READERS clients are kept.

A revision may have no author: those before the start of the server, in a store that keeps no notes; those of other servers
with the same etcd; those beyond the limits. It still has its time, if a neighbour has one.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

from noxu.registry.authors import MAX_WRITES, Author, ClientId, Journal, Read, WatchScope, Write
from noxu_storage.store import Store
from noxu_storage.types import FIRST, Key, Revision

MAX_READS_OF_CLIENT: Final = 64
MAX_READERS: Final = 1_000
PORTION: Final = 2_000  # notes that are taken before other tasks run: about 5 ms

Shown = tuple[Key | WatchScope, Revision]
"""What a read has shown: an object at the revision that wrote it, or a list at its revision."""


class RecordedWrite(NamedTuple):
    """A revision, when it was written (seconds since 1970, object time), by whom, and what its client had read before it.

    `reads` are those since the previous write of the client, the oldest first; what its watches had shown is in `author`.
    """

    revision: Revision
    seconds: float
    author: Author
    reads: tuple[Shown, ...] = ()

    @property
    def time(self) -> datetime:
        return datetime.fromtimestamp(self.seconds, UTC)


class WriteHistory:
    """See the module. `before`: the history of the server that this one is a restart of, with the same store."""

    def __init__(self, store: Store, journal: Journal, before: WriteHistory | None = None) -> None:
        self.journal = journal
        self._store = store
        self.known: dict[Revision, RecordedWrite] = {} if before is None else before.known
        """By their revisions, those that have been taken."""
        self._revisions: list[Revision] | None = None  # of `_writes`, in order; None: to be made
        self._reads: dict[ClientId, dict[Key | WatchScope, Revision]] = {}  # that no write has been connected with
        self._taking: asyncio.Task[None] | None = None
        journal.many_reads = self._take_soon

    @property
    def floor(self) -> Revision:
        """The oldest revision whose state can be read."""
        return max(self._store.compacted, FIRST)

    async def of(self, revision: Revision) -> RecordedWrite | None:
        """Who wrote a revision; None if that is not known, or it does not exist."""
        await self.take()
        return self.known.get(revision)

    async def between(self, after: Revision, upto: Revision) -> list[RecordedWrite]:
        """The writes after a revision and up to another one whose authors are known, in order."""
        await self.take()
        writes, revisions = self.known, self._in_order()
        return [
            writes[revision] for revision in revisions[bisect_right(revisions, after) : bisect_right(revisions, upto)]
        ]

    async def revision_at(self, seconds: float) -> Revision:
        """The newest revision at a time (seconds since 1970); 0 if the history does not go back so far.

        Its state cannot be read any more if it is older than `floor`. Where a clock was set back, a later revision counts.
        """
        await self.take()
        # no bisection: a clock that is set back breaks the order of times
        for revision in reversed(self._in_order()):
            if self.known[revision].seconds <= seconds:
                return revision
        return 0

    async def take(self) -> None:
        """Take all notes until now, a portion at a time."""
        while self.journal.writes:
            self._take_portion()
            await asyncio.sleep(0)

    def _take_portion(self) -> None:
        """Take the oldest notes of writes, in the order in which their requests arrived, and the reads before them."""
        writes, reads, known = self.journal.writes, self.journal.reads, self.known
        portion = [writes.popleft() for _ in range(min(len(writes), PORTION))]
        for revision, seconds, author in sorted(portion, key=_arrived):
            while reads and reads[0][0] < author.arrived:
                self._add_read(reads.popleft())
            known[revision] = RecordedWrite(revision, seconds, author, self._reads_before(author))
        while len(known) > MAX_WRITES:
            del known[next(iter(known))]
        self._revisions = None

    def _take_soon(self) -> None:
        """Connect reads with their writes before there are too many of them."""
        if self._taking is None or self._taking.done():
            self._taking = asyncio.get_running_loop().create_task(self._take_reads())

    async def _take_reads(self) -> None:
        await self.take()
        while len(self.journal.reads) > PORTION:
            for _ in range(PORTION):
                self._add_read(self.journal.reads.popleft())
            await asyncio.sleep(0)

    def _add_read(self, read: Read) -> None:
        _, user, agent, what, revision = read
        shown = self._reads.pop((user, agent), None)
        if shown is None:
            shown = {}
        shown.pop(what, None)
        shown[what] = revision  # the newest is the last
        if len(shown) > MAX_READS_OF_CLIENT:
            del shown[next(iter(shown))]
        self._reads[user, agent] = shown
        if len(self._reads) > MAX_READERS:
            del self._reads[next(iter(self._reads))]

    def _reads_before(self, author: Author) -> tuple[Shown, ...]:
        """The reads of the author's client, which are used up by its first revision."""
        if author.controller:
            return ()
        return tuple(self._reads.pop(author.client, {}).items())

    def _in_order(self) -> Sequence[Revision]:
        if self._revisions is None:
            self._revisions = sorted(self.known)
        return self._revisions


def _arrived(note: Write) -> float:
    return note[2].arrived
