"""The history of a server: who wrote each revision, when and why, and which revision was the newest at a time.

It is made of the notes that requests leave (`registry.authors`), when somebody asks, and keeps the newest MAX_WRITES writes.
A read belongs to the next write of the same client: it is what the client had seen. So of these notes

    read   kubectl   widgets/a at 7
    write  kubectl   revision 9
    read   kubectl   widgets/b at 9

revision 9 has the first read, and the second waits for the next write of kubectl. A client that only reads keeps its newest
MAX_READS_OF_CLIENT reads, and the newest MAX_READERS clients are kept.

In a file, the writes are kept with the revisions, for as long as these are (`save`): SAVE_EVERY seconds behind, so the newest
may be lost when the process is killed. A revision may have no author: one of another server with the same etcd, one from
before the start of the server in a store that keeps no notes, one that is older than what is kept.
"""

from __future__ import annotations

import asyncio
import logging
from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from itertools import islice
from typing import Final

from noxu.control.recorded_writes import RecordedWrite, from_note, to_note
from noxu.registry.authors import MAX_WRITES, UNKNOWN, Author, ClientId, Journal, Read, WatchScope
from noxu_storage.notes import RevisionNote, notes_of
from noxu_storage.store import Store
from noxu_storage.types import FIRST, Closed, Corrupt, Key, Revision, Unavailable

MAX_READS_OF_CLIENT: Final = 64
MAX_READERS: Final = 1_000  # clients whose reads and last writes are remembered
PORTION: Final = 500  # notes that are taken before other tasks run: about 2 ms
SAVE_EVERY: Final = 2.0  # seconds
SAVED_AT_ONCE: Final = 500  # writes that are encoded or decoded before other tasks run: about 3 ms

log = logging.getLogger("noxu")


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
        self._notes = notes_of(store)
        self._unsaved: deque[RecordedWrite] = deque(maxlen=MAX_WRITES)
        journal.many_reads = self._take_soon

    @property
    def floor(self) -> Revision:
        """The oldest revision whose state can be read."""
        return max(self._store.compacted, FIRST)

    async def of(self, revision: Revision) -> RecordedWrite | None:
        """Who wrote a revision; None if that is not known, or it does not exist."""
        await self.take()
        found = self.known.get(revision)
        if found is None and self._notes is not None:
            found = next(iter(await self._kept(revision - 1, revision)), None)
        if found is None and self._earlier is not None and revision <= self.began.revision:
            return self.began._replace(revision=revision)
        return found

    async def between(self, after: Revision, upto: Revision) -> list[RecordedWrite]:
        """The writes after a revision and up to another one whose authors are known, in order."""
        await self.take()
        kept = [] if self._notes is None else await self._kept(after, upto)
        writes, revisions = self.known, self._in_order()
        newer = revisions[bisect_right(revisions, after) : bisect_right(revisions, upto)]
        return [*(write for write in kept if write.revision not in writes), *(writes[revision] for revision in newer)]

    async def all(self) -> list[RecordedWrite]:
        """All writes whose authors are known, in order. Raises StoreError."""
        if self._notes is not None:
            return await self.between(self._store.compacted, self._store.revision)
        await self.take()
        return [self.known[revision] for revision in self._in_order()]

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
        if not first and self._notes is not None:
            return await self._notes.revision_at(seconds)
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
        arrived = [author.arrived for _, _, author in portion]
        for n in sorted(range(len(portion)), key=arrived.__getitem__):
            revision, seconds, author = portion[n]
            while (
                reads and reads[0][0] <= arrived[n]
            ):  # the loop's time has milliseconds: one after the other may be equal
                self._add_read(reads.popleft())
            write = known[revision] = self._recorded(revision, seconds, author)
            if self._notes is not None:
                self._unsaved.append(write)
        oldest = [*islice(known, max(len(known) - MAX_WRITES, 0))]  # at once: each search for the oldest takes long
        for revision in oldest:
            del known[revision]
        self._revisions = None

    # -- the file

    @property
    def has_file(self) -> bool:
        """Whether writes are kept in the file of the store."""
        return self._notes is not None

    async def save_periodically(self) -> None:
        """Keep the writes in the file every SAVE_EVERY seconds."""
        while True:
            await asyncio.sleep(SAVE_EVERY)
            await self.save()

    async def save(self) -> None:
        """Keep the writes until now. What cannot be kept is attempted again by the next call."""
        if self._notes is None:
            return
        await self.take()
        while self._unsaved:
            writes = [self._unsaved.popleft() for _ in range(min(len(self._unsaved), SAVED_AT_ONCE))]
            try:
                await self._notes.add(list(map(to_note, writes)))
            except (Unavailable, Closed) as error:
                self._unsaved.extendleft(reversed(writes))
                log.debug("who wrote the newest revisions is not kept in the file yet: %s", error)
                return

    async def _kept(self, after: Revision, upto: Revision) -> list[RecordedWrite]:
        """The writes in the file after a revision and up to another one, in order. Raises Unavailable, Closed."""
        assert self._notes is not None
        found: list[RecordedWrite] = []
        while True:
            try:
                notes: Sequence[RevisionNote] = await self._notes.between(after, upto, SAVED_AT_ONCE)
            except Corrupt:
                return found
            found += [write for write in map(from_note, notes) if write is not None]
            if len(notes) < SAVED_AT_ONCE:
                return found
            after = notes[-1].revision

    # -- notes

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
        client = (author.user, author.agent)  # without a call
        last = self._last.pop(client, None)
        if last is not None and last.author is author:  # the same request, which has several revisions
            write = last._replace(revision=revision, seconds=seconds)
        else:
            reads = tuple(self._reads.pop(client).items()) if client in self._reads else ()
            write = RecordedWrite(revision, seconds, author, reads, 0 if last is None else last.revision)
        self._last[client] = write  # the newest is the last
        if len(self._last) > MAX_READERS:
            del self._last[next(iter(self._last))]
        return write

    def _in_order(self) -> Sequence[Revision]:
        if self._revisions is None:
            self._revisions = sorted(self.known)
        return self._revisions
