"""A store in one SQLite file: group commit, checksums, and recovery from every error.

**Group commit.** Writes that arrive while one transaction is being committed form the next transaction. Callers are
answered after COMMIT has returned; watches get the events just before. So concurrent writers wait for the disk together.

**An error at COMMIT leaves the outcome unknown.** After a COMMIT that failed for lack of space or with an I/O error,
the transaction may be there when the file is reopened (measured: in 72 of 400 runs). So its writers get
`OutcomeUnknown`, and the file is reopened as after a crash. Its content is made durable by a checkpoint (after a failed
fsync, a second one proves nothing), then published; pending writes are checked again. An error before COMMIT is handled
in the same way, but the outcome is known: `Unavailable`. While the disk accepts no writes, reads continue, and every
RETRY_INTERVAL seconds the file is reopened.

Reopening, with the log at revision 8 and a transaction of the revisions 9 and 10 whose COMMIT has failed:

    the file ends at 8     it was not committed. Nothing is published; the next write gets revision 9
    the file ends at 10    it was committed. The events 9 and 10 are read from the file and published; the next write
                           gets revision 11. Its writers have got OutcomeUnknown either way, and can read which it is
    the file ends at 5     acknowledged writes are missing: the store refuses to read and write

**A full disk.** Room is kept for deletions (disk.py). When a write fails for lack of space, that room is given up, the store
accepts only deletions and compaction, and one that has failed is repeated, until there is room for everything again.

**A deleted file.** SQLite does not notice that its file was deleted. The store does, after each COMMIT: the writers get
Unavailable, later writes are refused, and reads continue until the store is closed.

See group_commit.py for pending writes, log.py for watches, database.py for the file.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from functools import partial
from os import PathLike
from pathlib import Path
from traceback import clear_frames
from typing import Any, Final, Self, TypeAlias

import aiosqlite

from noxu_storage import database, notes, pins
from noxu_storage.database import Durability
from noxu_storage.disk import SIZE, LinkedFiles, Reserve
from noxu_storage.group_commit import PendingWrites, Transaction, Write
from noxu_storage.log import Log
from noxu_storage.migrations import Watermarks
from noxu_storage.notes import RevisionNote
from noxu_storage.rows import Row, intact, previous_state
from noxu_storage.transactions import Decide, StagedWrite, Turn, refused
from noxu_storage.types import (
    EVERYTHING,
    Batch,
    Closed,
    Compacted,
    Conflict,
    Corrupt,
    Event,
    FutureRevision,
    Key,
    KeyValue,
    OpenError,
    OutcomeUnknown,
    Page,
    Prefix,
    Revision,
    Status,
    StoreError,
    Unavailable,
)

PAGE_ROWS: Final = 256  # values read at a time: verifying them takes the event loop about 1 ms
PAGE_KEYS: Final = 4_000  # keys read at a time: about 5 ms
HISTORY_SPAN: Final = 500  # revisions that a watch reads from the file at a time
SCAN_SPAN: Final = 500  # revisions that a scan reads at a time: SQLite takes about 1 ms for values of 1 KB
SWEEP_SPAN: Final = 250  # revisions that compaction handles in one transaction: a few ms
KEYS_IN_MESSAGE: Final = 10  # corrupt keys that a message names
ONLY_DELETES: Final = "the disk is full, and only deletions are accepted; make room"
RETRY_INTERVAL: Final = 0.5  # seconds between attempts to reopen a file that accepts no writes

Job: TypeAlias = Callable[[], Awaitable[None]]


class SqliteStore:
    """See store.py for its promises. Created by `open`."""

    shared = False
    groups_writes = True

    def __init__(
        self, path: Path, durability: Durability, connection: aiosqlite.Connection, watermarks: Watermarks
    ) -> None:
        self._path = path
        self._durability = durability
        # None while the file is being reopened, and after that has failed.
        self._connection: aiosqlite.Connection | None = connection
        self._connected = asyncio.Event()  # cleared only while the file is being reopened
        self._connected.set()
        self._fault = ""
        self._reserve = Reserve(path)
        self._only_deletes = ""  # why nothing else is accepted; "": everything is
        if not self._reserve.take():
            self._only_deletes = ONLY_DELETES
        self._files = LinkedFiles(path)
        self._log = Log(watermarks.revision, watermarks.compacted, history=self._history)
        self._swept = watermarks.swept
        self._keys: dict[str, dict[Key, Revision]] = {}  # published keys of collections that have been written to
        self._loading = asyncio.Lock()
        self._pending = PendingWrites(watermarks.revision)
        self._compacting = asyncio.Lock()
        self._turn = Turn()
        self._counted: int | None = None  # keys, when they were counted
        self._created = 0  # keys created since the store was opened, without those deleted
        self._job: tuple[Job, asyncio.Future[None]] | None = None
        self._one_job = asyncio.Lock()
        self.notes = FileNotes(self._fetch, self._add_notes)
        self._wake = asyncio.Event()
        self._writer = asyncio.create_task(self._run_writer(), name=f"write {path}")
        self._closing: asyncio.Task[None] | None = None

    @classmethod
    async def open(cls, path: str | PathLike[str], durability: Durability = "full") -> Self:
        """Open the file, or create it and its directory. Raises OpenError, with a message that says what to do.

        With durability `normal` a power failure may lose the last commits, but not the file; with `off` it may lose the
        file. A crash of the process loses nothing either way.
        """
        file = database.absolute_path(path)
        try:
            opened = await database.connect(file, durability)
        except OpenError as error:
            if not database.is_full(error) or not Reserve(file).give():
                raise
            opened = await database.connect(file, durability)
        return cls(file, durability, *opened)

    @property
    def revision(self) -> Revision:
        return self._log.revision

    @property
    def compacted(self) -> Revision:
        return self._log.compacted

    async def get(self, key: Key, *, revision: Revision = 0) -> KeyValue | None:
        self._require_open()
        if not revision:
            return await self._current(key)
        state = await self._state(key, self._log.read_revision(revision))
        self._log.read_revision(revision)  # compaction may have begun to remove what was being read
        return state

    async def _current(self, key: Key) -> KeyValue | None:
        if (keys := self._keys.get(key.collection)) is not None:
            newest = keys.get(key, 0)
            event = self._log.find(newest)
            if event is not None and event.value is not None:
                return KeyValue(key, event.value, newest)
            if not newest:
                return None
        return await self._state(key, self._log.revision)

    async def _state(self, key: Key, at: Revision) -> KeyValue | None:
        """The state at a published revision, from the file."""
        if not key.is_encodable:
            return None
        parameters = [*key, at]
        try:
            rows = await self._fetch(database.SELECT_STATE, parameters)
        except Corrupt:
            rows = await self._one_by_one(database.KEY_CONDITION, parameters, 1)
        if not rows:
            return None
        [row] = rows
        revision, value = row[3], row[6]
        if not intact(row):
            raise Corrupt(_corrupt_message({key: revision}), {key: revision})
        return KeyValue(key, value, revision) if value is not None else None

    async def list(self, prefix: Prefix, *, revision: Revision = 0, limit: int = 0, after: Key | None = None) -> Page:
        self._require_open()
        while True:
            try:
                page, corrupt = await self._page(prefix, self._log.read_revision(revision), limit, after)
            except Compacted:
                if revision:
                    raise
                continue  # the revision that was newest at the start has been compacted meanwhile
            if corrupt:
                raise Corrupt(_corrupt_message(corrupt), corrupt, page)
            return page

    async def count(self, prefix: Prefix) -> int:
        """All keys are counted once: then it is known how many writes have created and deleted."""
        self._require_open()
        if prefix != EVERYTHING:
            return await self._count(prefix, self._log.revision)
        if self._counted is None:
            created = self._created  # of the revision that is counted: others may be published meanwhile
            self._counted = await self._count(EVERYTHING, self._log.revision) - created
        return self._counted + self._created

    async def scan(self, texts: Sequence[bytes]) -> AsyncIterator[Sequence[KeyValue]]:
        """Reads the rows in the order of their revisions, a span at a time; SQLite searches the values in its thread."""
        self._require_open()
        last, done = self._log.revision, 0
        while True:
            try:
                [(first,)] = await self._fetch(database.FIRST_REVISION, (done, last))
            except Corrupt:
                first = done + 1  # part of the file is unreadable: find out row by row
            if first is None or first > last:
                return
            done = min(first + SCAN_SPAN - 1, last)
            rows = await self._containing(first, done, texts)
            yield [KeyValue(Key(*row[:3]), row[6], row[3]) for row in rows if row[6] is not None]

    async def _containing(self, first: Revision, last: Revision, texts: Sequence[bytes]) -> Sequence[Row]:
        """The intact current rows of a span of revisions whose value contains one of the texts."""
        sql = database.select_containing(len(texts))
        try:
            rows = await self._fetch(sql, [first, last, *texts, self._log.revision])
        except Corrupt:
            rows = []
            for revision in range(first, last + 1):
                with suppress(Corrupt):
                    rows += await self._fetch(sql, [revision, revision, *texts, self._log.revision])
        return [row for row in rows if intact(row)]

    async def catch_up(self) -> None:
        self._require_open()

    # Without `async`: a coroutine around another one is resumed for each write, too.

    def put(
        self, key: Key, value: bytes, *, expected: Revision, replaced: bytes | None = None
    ) -> Coroutine[Any, Any, Revision]:
        return self._write(key, value, expected, replaced)

    def delete(self, key: Key, *, expected: Revision, replaced: bytes | None = None) -> Coroutine[Any, Any, Revision]:
        return self._write(key, None, expected, replaced)

    async def transact(self, decide: Decide) -> Revision:
        while True:
            self._require_open()
            async with self._turn.taken():
                while not self._pending.is_idle:
                    await self._pending.wait_for_room()
                writes = await decide()
                if not writes:
                    return 0
                last = await self._stage(writes)
                self._turn.made += 1  # or perhaps not: its outcome may be unknown
                if (revision := await last.result) is not None:  # they succeed or fail together
                    return revision

    async def _stage(self, writes: Sequence[StagedWrite]) -> Write:
        """Add writes to the next transaction, while nothing else is pending; the last of them. Raises Conflict, Unavailable, Closed."""
        for collection in dict.fromkeys(write.key.collection for write in writes):
            if collection not in self._keys:
                await self._load(collection)
        self._require_open()
        if self._fault or (self._only_deletes and any(write.value is not None for write in writes)):
            raise Unavailable(self._fault or self._only_deletes)
        if (key := refused(writes, lambda key: self._keys[key.collection].get(key, 0))) is not None:
            raise Conflict(key, await self.get(key))
        self._wake.set()
        # without a pause: they are in one transaction
        added = [self._pending.add(key, expected, value, replaced) for key, value, expected, replaced in writes]
        for write in added[:-1]:
            write.result.cancel()  # the last one is awaited for all
        return added[-1]

    def watch(self, prefix: Prefix = EVERYTHING, *, after: Revision) -> AsyncIterator[Batch]:
        self._require_open()
        return self._log.watch(prefix, after)

    async def compact(self, revision: Revision) -> None:
        """Set the watermark, then remove the rows, a span at a time. The next compaction completes an interrupted one."""
        self._require_open()
        if revision > self._log.revision:
            raise FutureRevision(self._log.revision)
        async with self._compacting:
            revision = await pins.compactable(self, revision)
            if revision > self._log.compacted:
                await self._between_commits(partial(self._mark_compacted, revision))
            while self._swept < self._log.compacted:
                await self._between_commits(partial(self._sweep, min(self._swept + SWEEP_SPAN, self._log.compacted)))

    async def compact_in_turn(self, revision: Revision) -> None:
        await self.compact(revision)

    async def status(self) -> Status:
        keys, fault = 0, ""
        try:
            keys = await self.count(EVERYTHING)
        except (Corrupt, Unavailable) as error:
            fault = str(error)
        if self._closing is None:
            self._is_deleted()
        size = database.file_size(self._path)
        fault = self._fault or self._only_deletes or fault
        return Status("sqlite", self._log.revision, self._log.compacted, keys, size, fault)

    async def close(self) -> None:
        if self._closing is None:
            self._closing = asyncio.create_task(self._close())
        await asyncio.shield(self._closing)

    def _require_open(self) -> None:
        if self._closing is not None or self._writer.done():
            raise Closed("the store is closed")

    # Reading. Every query is limited to a published revision: later rows may belong to an open transaction.

    async def _fetch(self, sql: str, parameters: Sequence[Any]) -> Sequence[Any]:
        await self._connected.wait()
        if self._connection is None:
            self._require_open()
            raise Unavailable(self._fault)
        try:
            return list(await self._connection.execute_fetchall(sql, parameters))
        except database.SQLITE_ERRORS as error:
            raise database.read_error(error) from error

    async def _one_by_one(self, condition: str, parameters: Sequence[Any], limit: int) -> Sequence[Row]:
        """Like `select_states`, for a part of the file that one query cannot read. An unreadable row is not intact."""
        page: list[Row] = []
        for *key, revision, _ in await self._fetch(database.select_keys(condition), [*parameters, limit]):
            rows: Sequence[Row] = ()
            with suppress(Corrupt):
                rows = await self._fetch(database.select_rows(1), [revision])
            page += [(*key, *row[3:]) for row in rows or [(*key, revision, 0, -1, None)]]
        return page

    async def _page(
        self, prefix: Prefix, revision: Revision, limit: int, after: Key | None
    ) -> tuple[Page, dict[Key, Revision]]:
        """The intact states of a page, and its corrupt keys. The keys of a whole collection are kept for its writers."""
        kept = prefix.collection if prefix.partition is None and after is None else None
        if kept in self._keys or revision != self._log.revision:
            kept = None
        items: list[KeyValue] = []
        corrupt: dict[Key, Revision] = {}
        revisions: dict[Key, Revision] = {}
        shared: dict[str, str] = {}  # nearly all keys have the same collection and partition
        while (size := min(PAGE_ROWS, limit - len(items) - len(corrupt)) if limit else PAGE_ROWS) > 0:
            condition, parameters = database.key_range(prefix, after)
            parameters.append(revision)
            try:
                rows = await self._fetch(database.select_states(condition), [*parameters, size])
            except Corrupt:
                rows = await self._one_by_one(condition, parameters, size)
            self._log.read_revision(revision)
            for row in rows:
                after = Key(shared.setdefault(row[0], row[0]), shared.setdefault(row[1], row[1]), row[2])
                if kept is not None:
                    revisions[after] = row[3]
                if intact(row):
                    items.append(KeyValue(after, row[6], row[3]))
                elif all(isinstance(part, str) for part in after):
                    corrupt[after] = row[3]
                else:
                    raise Corrupt(f"the index is corrupt at revision {row[3]}; what follows it is unknown")
            if len(rows) < size:
                if kept is not None and revision == self._log.revision and not self._loading.locked():
                    # Nothing was published meanwhile, and nothing writes to a collection before its keys are known.
                    self._keys.setdefault(kept, revisions)
                return Page(items, revision, 0), corrupt
        remaining = await self._count(prefix, revision, after)
        self._log.read_revision(revision)
        return Page(items, revision, remaining), corrupt

    async def _count(self, prefix: Prefix, revision: Revision, after: Key | None = None) -> int:
        condition, parameters = database.key_range(prefix, after)
        [(number,)] = await self._fetch(database.count_keys(condition), [*parameters, revision])
        return int(number)

    async def _history(self, prefix: Prefix, after: Revision, upto: Revision) -> Batch:
        """Events from the file, for watches that are behind the tail of the log: those of at most HISTORY_SPAN revisions."""
        upto = min(upto, after + HISTORY_SPAN)
        return Batch(await self._changes(prefix, after, upto), upto)

    async def _changes(self, prefix: Prefix, after: Revision, upto: Revision) -> Sequence[Event]:
        sql, parameters = database.select_changes(prefix)
        events: list[Event] = []
        for row in await self._fetch(sql, [*parameters, after, upto]):
            new, old = row[:7], row[7:]
            key, revision, previous = Key(*new[:3]), new[3], new[4]
            if not intact(new):
                raise Corrupt(f"the event at revision {revision} is corrupt", {key: revision})
            events.append(Event(key, revision, new[6], previous_state(key, previous, old)))
        return events

    async def _load(self, collection: str) -> None:
        """Read the keys of a collection into memory. Nothing writes to it meanwhile: writers wait for this."""
        async with self._loading:
            if collection in self._keys:
                return
            keys: dict[Key, Revision] = {}
            partitions: dict[str, str] = {}
            after: Key | None = None
            while True:
                condition, parameters = database.key_range(Prefix(collection), after)
                rows = await self._fetch(database.select_keys(condition), [*parameters, self._log.revision, PAGE_KEYS])
                for _, partition, name, revision, _ in rows:
                    after = Key(collection, partitions.setdefault(partition, partition), name)
                    keys[after] = revision
                if len(rows) < PAGE_KEYS:
                    break
            self._keys[collection] = keys

    # Writing.

    async def _write(self, key: Key, value: bytes | None, expected: Revision, replaced: bytes | None) -> Revision:
        failed: StoreError | None = None  # a deletion is repeated once; then this is its outcome, if it cannot be done
        while True:
            self._require_open()
            if self._fault:
                raise failed or Unavailable(self._fault)
            if self._only_deletes and value is not None:
                raise Unavailable(self._only_deletes)
            if self._turn.is_taken:
                if await self._turn.ended():
                    raise Conflict(key, await self.get(key))
                continue
            if self._pending.full:
                await self._pending.wait_for_room()
                continue
            if (keys := self._keys.get(key.collection)) is None:
                await self._load(key.collection)
                continue
            pending = self._pending.newest(key)
            stored = keys.get(key, 0) if pending is None else pending.resulting_revision
            if stored == expected and (stored or value is not None):
                if not self._pending:
                    self._wake.set()
                write = self._pending.add(key, stored, value, replaced)
                try:
                    revision = await write.result
                except (Unavailable, OutcomeUnknown) as error:
                    if value is not None or failed is not None:
                        raise failed or error from None
                    failed = error  # the file was reopened: it is repeated, with the room that is kept for it
                    continue
                if revision is not None:
                    return revision
            elif failed is not None:
                raise failed  # it may have happened
            elif pending is not None and keys.get(key, 0) <= expected:
                # A write that may still fail is no reason for a Conflict. A committed one is, whatever others add meanwhile.
                await pending.transaction.finished()
            else:
                current = await self.get(key)
                now = keys.get(key, 0)
                if now != expected or not (now or value is not None):  # else it has changed to what is expected
                    raise Conflict(key, current)

    async def _run_writer(self) -> None:
        """The only task that writes to the file, and reopens it after an error."""
        try:
            while self._closing is None or self._pending:
                with suppress(TimeoutError):
                    async with asyncio.timeout(RETRY_INTERVAL if self._fault or self._only_deletes else None):
                        await self._wake.wait()
                self._wake.clear()
                self._look_for_room()
                if self._fault and self._closing is None and not self._is_deleted():
                    await self._reopen()
                if self._pending:
                    await self._commit(self._pending.begin_commit())
                if self._job is not None:
                    await self._run_job(*self._job)
                await asyncio.sleep(0)  # callers that were just answered may add more writes to the next transaction
        except asyncio.CancelledError as cancelled:  # the event loop ends, and the store has not been closed
            clear_frames(cancelled.__traceback__)  # they may refer to a cursor, which would keep the file locked
            await self._disconnect()
            self._files.close()
            raise
        finally:
            self._pending.reset(self._log.revision)
            if self._job is not None and not self._job[1].done():
                self._job[1].set_exception(Closed("the store is closed"))

    async def _commit(self, transaction: Transaction) -> None:
        """Commit the collected writes as one transaction, and answer their callers."""
        assert self._connection is not None
        try:
            rows = await self._replaced_rows(transaction)
            await database.write(self._connection, [write.row for write in transaction.writes])
        except (*database.SQLITE_ERRORS, database.CommitFailed, Unavailable) as error:
            error_type = OutcomeUnknown if isinstance(error, database.CommitFailed) else Unavailable
            await self._reopen(full=database.is_full(error))
            transaction.fail(partial(error_type, f"the write failed: {error}"))
        except BaseException:
            transaction.fail(partial(OutcomeUnknown, "the store went down during the write"))
            raise
        else:
            if self._is_deleted():
                transaction.fail(partial(Unavailable, self._fault))
                self._pending.reset(self._log.revision)
                return
            self._pending.committed(transaction)
            self._publish(self._events(transaction, rows))
            transaction.succeed()
            if self._only_deletes:  # the log does not grow
                with suppress(*database.SQLITE_ERRORS):
                    await self._connection.execute_fetchall("PRAGMA wal_checkpoint(TRUNCATE)")

    def _is_deleted(self) -> bool:
        """Whether the file was deleted. It stays open then, so that it can be read until the store is closed."""
        deleted = self._files.deleted()
        self._fault = deleted or self._fault
        return bool(deleted)

    async def _replaced_rows(self, transaction: Transaction) -> dict[Revision, Row]:
        """The rows that a transaction replaces, except for those that the log or their writers have in memory."""
        find = self._log.find
        published = self._log.revision
        missing = [
            write.previous
            for write in transaction.writes
            if write.replaced is None and 0 < write.previous <= published and find(write.previous) is None
        ]
        rows: list[Row] = []
        for start in range(0, len(missing), PAGE_ROWS):
            revisions = missing[start : start + PAGE_ROWS]
            try:
                rows += await self._fetch(database.select_rows(len(revisions)), revisions)
            except Corrupt:
                for revision in revisions:
                    with suppress(Corrupt):
                        rows += await self._fetch(database.select_rows(1), [revision])
        return {row[3]: row for row in rows}

    def _events(self, transaction: Transaction, rows: dict[Revision, Row]) -> Sequence[Event]:
        """The events of a transaction. `rows` are the replaced rows that are not in memory.

        The transaction starts after the published revision, so the event of its own revision r is
        events[r - published - 1]. With published = 8: revision 9 is events[0], revision 10 is events[1].
        """
        events: list[Event] = []
        published = self._log.revision
        for write in transaction.writes:
            key, previous = write.key, write.previous
            state: KeyValue | None = None
            if previous:
                event = events[previous - published - 1] if previous > published else self._log.find(previous)
                if event is not None and event.value is not None:
                    state = KeyValue(key, event.value, previous)
                elif write.replaced is not None:
                    state = KeyValue(key, write.replaced, previous)
                else:
                    state = previous_state(key, previous, rows.get(previous))
            events.append(Event(key, write.revision, write.value, state))
        return events

    def _publish(self, events: Sequence[Event]) -> None:
        for key, revision, value, previous in events:
            self._created += (value is not None) - (previous is not None)
            if (keys := self._keys.get(key.collection)) is not None:
                if value is not None:
                    keys[key] = revision
                else:
                    keys.pop(key, None)
        self._log.publish(events)

    def _look_for_room(self) -> None:
        """Accept all writes again, if there is room for them and for the reserve."""
        if self._only_deletes and not self._fault and self._reserve.take(spare=SIZE):
            self._only_deletes = ""

    def _give_reserve(self) -> None:
        self._reserve.give()
        self._only_deletes = ONLY_DELETES

    async def _reopen(self, *, full: bool = False) -> None:
        """Reopen the file, make its contents durable, and publish them. Sets `_fault` if it accepts no writes."""
        self._connected.clear()
        await self._disconnect()
        if full:
            self._give_reserve()
        try:
            connection, watermarks = await database.connect(self._path, self._durability)
            if watermarks.revision < self._log.revision:
                await database.disconnect(connection)
                raise OpenError(
                    f"{self._path} lacks revisions that it had; restore it, or restart to go on without them"
                )
            self._connection = connection
            self._files.refresh()
            self._connected.set()  # reads continue
            await connection.execute_fetchall("PRAGMA wal_checkpoint(TRUNCATE)")
            await self._change((database.SET_WATERMARK, (watermarks.swept, "swept")))  # the old value: a test write
            events = await self._changes(EVERYTHING, self._log.revision, watermarks.revision)
        except (*database.SQLITE_ERRORS, StoreError) as error:
            fault = str(error if isinstance(error, StoreError) else database.open_error(self._path, error))
            self._fault = fault.replace(str(self._path), "the file")  # clients see it, but not where the data are
            if database.is_full(error):
                self._give_reserve()
            self._pending.reset(self._log.revision)
        else:
            self._fault = ""
            self._swept = watermarks.swept
            self._log.compacted = max(self._log.compacted, watermarks.compacted)
            self._pending.reset(watermarks.revision)
            self._publish(events)
            self._look_for_room()
        finally:
            self._connected.set()

    async def _disconnect(self) -> None:
        if (connection := self._connection) is not None:
            self._connection = None
            self._files.release_wal()
            await database.disconnect(connection)

    # Compaction, between the commits.

    async def _between_commits(self, job: Job) -> None:
        """Have the writer run a job between two commits. Raises Closed, Unavailable."""
        self._require_open()
        if self._fault:
            raise Unavailable(self._fault)
        async with self._one_job:
            result: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._job = job, result
            self._wake.set()
            await result

    async def _run_job(self, job: Job, result: asyncio.Future[None]) -> None:
        self._job = None
        failure = Unavailable(self._fault) if self._fault else None
        try:
            if failure is None:
                await job()
        except (*database.SQLITE_ERRORS, database.CommitFailed) as error:
            failure = Unavailable(f"the file cannot be written: {error}")
            await self._reopen(full=database.is_full(error))
        if result.done():
            return
        if failure is None:
            result.set_result(None)
        else:
            result.set_exception(failure)

    async def _mark_compacted(self, revision: Revision) -> None:
        await self._change((database.SET_WATERMARK, (revision, "compacted")))
        self._log.compacted = revision

    async def _sweep(self, last: Revision) -> None:
        span = {"first": self._swept, "last": last}  # the previous span may have kept its last row
        await self._change(
            (database.SWEEP_NOTES, span), (database.SWEEP, span), (database.SET_WATERMARK, (last, "swept"))
        )
        self._swept = last

    async def _add_notes(self, added: Sequence[RevisionNote]) -> None:
        if self._only_deletes:
            raise Unavailable(self._only_deletes)
        await self._between_commits(partial(self._insert_notes, added))

    async def _insert_notes(self, added: Sequence[RevisionNote]) -> None:
        assert self._connection is not None
        await self._connection.executemany(notes.INSERT, added)  # which commits them

    async def _change(self, *statements: tuple[str, Any]) -> None:
        assert self._connection is not None
        for sql, parameters in statements:
            await self._connection.execute(sql, parameters)
        await self._connection.execute("COMMIT")

    async def _close(self) -> None:
        self._wake.set()
        await asyncio.wait([self._writer])  # it commits the pending writes
        await self._disconnect()
        self._reserve.give()
        self._files.close()
        self._log.close()


class FileNotes:
    """The notes of a file, see notes.py."""

    def __init__(
        self,
        fetch: Callable[[str, Sequence[Any]], Awaitable[Sequence[Any]]],
        add: Callable[[Sequence[RevisionNote]], Awaitable[None]],
    ) -> None:
        self._fetch = fetch
        self._add = add

    async def add(self, added: Sequence[RevisionNote]) -> None:
        for start in range(0, len(added), notes.ADDED_AT_ONCE):
            await self._add(added[start : start + notes.ADDED_AT_ONCE])

    async def between(self, after: Revision, upto: Revision, limit: int) -> Sequence[RevisionNote]:
        return [RevisionNote(*row) for row in await self._fetch(notes.SELECT_BETWEEN, (after, upto, limit))]

    async def revision_at(self, seconds: float) -> Revision:
        rows = await self._fetch(notes.SELECT_AT, (seconds,))
        return int(rows[0][0]) if rows else 0


def _corrupt_message(keys: dict[Key, Revision]) -> str:
    names = [f"{' '.join(key)} at revision {revision}" for key, revision in keys.items()]
    more = f" and {len(names) - KEYS_IN_MESSAGE} more" if len(names) > KEYS_IN_MESSAGE else ""
    return f"corrupt: {', '.join(names[:KEYS_IN_MESSAGE])}{more}"
