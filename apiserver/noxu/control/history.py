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

from noxu.registry.authors import MAX_WRITES, UNKNOWN, Author, ClientId, Journal, Read, WatchScope, Write
from noxu_storage.store import Store
from noxu_storage.types import FIRST, Key, Revision

MAX_READS_OF_CLIENT: Final = 64
MAX_READERS: Final = 1_000  # clients whose reads and last writes are remembered
PORTION: Final = 2_000  # notes that are taken before other tasks run: about 5 ms

Shown = tuple[Key | WatchScope, Revision]
"""What a read has shown: an object at the revision that wrote it, or a list at its revision."""


class RecordedWrite(NamedTuple):
    """A revision, when it was written (seconds since 1970, object time), by whom, and what its client had read before it.

    `reads` are those since the previous write of the client, the oldest first; what its watches had shown is in `author`.
    `previous` is the newest revision of the client's request before, 0 if that is not known.
    """

    revision: Revision
    seconds: float
    author: Author
    reads: tuple[Shown, ...] = ()
    previous: Revision = 0

    @property
    def time(self) -> datetime:
        return datetime.fromtimestamp(self.seconds, UTC)


class WriteHistory:
    """See the module."""

    def __init__(
        self, store: Store, journal: Journal, before: WriteHistory | None = None, earlier: Author | None = None
    ) -> None:
        """`before`: the history of the server that this one is a restart of, with the same store. `earlier`: the author of
        everything that is in the store already; None: that is not known."""
        self.journal = journal
        self.began = RecordedWrite(store.revision, journal.clock.timestamp(), earlier or UNKNOWN)
        """The newest revision when this history began, which was written then or before."""
        self._earlier = earlier
        self._store = store
        self.known: dict[Revision, RecordedWrite] = {} if before is None else before.known
        """By their revisions, those that have been taken."""
        self._revisions: list[Revision] | None = None  # of `_writes`, in order; None: to be made
        self._reads: dict[ClientId, dict[Key | WatchScope, Revision]] = {}  # that no write has been connected with
        self._last: dict[ClientId, RecordedWrite] = {}  # the newest of each client
        self._taking: asyncio.Task[None] | None = None
        journal.many_reads = self._take_soon

    @property
    def floor(self) -> Revision:
        """The oldest revision whose state can be read."""
        return max(self._store.compacted, FIRST)

    async def of(self, revision: Revision) -> RecordedWrite | None:
        """Who wrote a revision; None if that is not known, or it does not exist."""
        await self.take()
        if self._earlier is not None and revision <= self.began.revision:
            return self.known.get(revision) or self.began._replace(revision=revision)
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
        first = self.began.revision if self.began.seconds <= seconds else 0
        # no bisection: a clock that is set back breaks the order of times
        for revision in reversed(self._in_order()):
            if self.known[revision].seconds <= seconds:
                return max(revision, first)
        return first

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
            known[revision] = self._recorded(revision, seconds, author)
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

    def _recorded(self, revision: Revision, seconds: float, author: Author) -> RecordedWrite:
        """A write with what is known of its client. It uses up the reads of the client."""
        if author.controller:
            return RecordedWrite(revision, seconds, author)
        client = author.client
        last = self._last.pop(client, None)
        if last is not None and last.author is author:  # the same request, which has several revisions
            write = last._replace(revision=revision, seconds=seconds)
        else:
            reads = tuple(self._reads.pop(client, {}).items())
            write = RecordedWrite(revision, seconds, author, reads, 0 if last is None else last.revision)
        self._last[client] = write  # the newest is the last
        if len(self._last) > MAX_READERS:
            del self._last[next(iter(self._last))]
        return write

    def _in_order(self) -> Sequence[Revision]:
        if self._revisions is None:
            self._revisions = sorted(self.known)
        return self._revisions


def _arrived(note: Write) -> float:
    return note[2].arrived
