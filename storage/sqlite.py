"""A store in one SQLite file: group commit, checksums, and a way back after every error.

**Group commit.** Everything staged while one transaction is being made durable is the next transaction; answers leave
after COMMIT has returned, watches get the events just before. With many writers the disk is waited for once for all.

**An error at COMMIT means unknown**: a transaction whose COMMIT failed, for want of space or by an I/O error, may be
there after reopening (measured: in 72 of 400 runs). So its writers get `Unknown`, the file is opened anew as after a
crash, what it turns out to contain is made durable by a checkpoint (after a failed fsync a second one proves nothing),
then published, and what was staged meanwhile is judged again. An error before COMMIT is treated alike, but the outcome
is certain: `Unavailable`. While the disk takes no writes, reads go on, and every PROBE seconds it is tried again.

See staging.py for writes on their way, log.py for watches, database.py for the file.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from os import PathLike
from pathlib import Path
from traceback import clear_frames
from typing import Any, Final, Self

import aiosqlite

from storage import database
from storage.database import Durability
from storage.log import Log
from storage.migrations import Marks
from storage.rows import Row, intact, replaced
from storage.staging import Commit, Staging
from storage.types import (
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
    Page,
    Prefix,
    Revision,
    Status,
    StoreError,
    Unavailable,
    Unknown,
    Unusable,
)

PAGE_ROWS: Final = 256  # values read at a time: checking them takes the event loop about 1 ms
PAGE_KEYS: Final = 4_000  # keys read at a time: about 5 ms
SWEEP_SPAN: Final = 250  # revisions that compaction goes through in one transaction: a few ms
TOLD: Final = 10  # damaged keys that a message names
PROBE: Final = 0.5  # seconds between attempts to write again


class SqliteStore:
    """See store.py for what it promises. Made by `open`."""

    def __init__(self, path: Path, durability: Durability, connection: aiosqlite.Connection, marks: Marks) -> None:
        self._path = path
        self._durability = durability
        # None while it is being replaced, and if that failed.
        self._connection: aiosqlite.Connection | None = connection
        self._connected = asyncio.Event()  # not set only while it is being replaced
        self._connected.set()
        self._fault = ""
        self._log = Log(marks.revision, marks.compacted, history=self._history)
        self._swept = marks.swept
        self._keys: dict[str, dict[Key, Revision]] = {}  # published keys of collections that have been written to
        self._loading = asyncio.Lock()
        self._staging = Staging(marks.revision)
        self._compacting = asyncio.Lock()
        self._chore: tuple[Callable[[], Awaitable[None]], asyncio.Future[None]] | None = None
        self._wake = asyncio.Event()
        self._writer = asyncio.create_task(self._write_on(), name=f"write {path}")
        self._closing: asyncio.Task[None] | None = None

    @classmethod
    async def open(cls, path: str | PathLike[str], durability: Durability = "full") -> Self:
        """Open the file, or make it and its directory. Raises Unusable, with a message that says what to do.

        With durability `normal` a power cut may cost the last commits, but not the file; a crash of the process costs
        nothing either way.
        """
        file = database.located(path)
        return cls(file, durability, *await database.connect(file, durability))

    @property
    def revision(self) -> Revision:
        return self._log.revision

    @property
    def compacted(self) -> Revision:
        return self._log.compacted

    async def get(self, key: Key) -> KeyValue | None:
        self._require_open()
        if (keys := self._keys.get(key.collection)) is not None:
            newest = keys.get(key, 0)
            event = self._log.find(newest)
            if event is not None and event.value is not None:
                return KeyValue(key, event.value, newest)
            if not newest:
                return None
        parameters = [*key, self._log.revision]
        try:
            rows = await self._fetch(database.CURRENT, parameters)
        except Corrupt:
            rows = await self._one_by_one(database.ONE, parameters, 1)
        if not rows:
            return None
        [row] = rows
        revision, value = row[3], row[6]
        if not intact(row):
            raise Corrupt(_damaged({key: revision}), {key: revision})
        return KeyValue(key, value, revision) if value is not None else None

    async def list(self, prefix: Prefix, *, revision: Revision = 0, limit: int = 0, after: Key | None = None) -> Page:
        self._require_open()
        while True:
            try:
                page, damaged = await self._page(prefix, self._log.at(revision), limit, after)
            except Compacted:
                if revision:
                    raise
                continue  # what was newest when it began has been compacted meanwhile: once more
            if damaged:
                raise Corrupt(_damaged(damaged), damaged, page)
            return page

    async def count(self, prefix: Prefix) -> int:
        self._require_open()
        return await self._count(prefix, self._log.revision)

    async def put(self, key: Key, value: bytes, *, expected: Revision) -> Revision:
        return await self._write(key, value, expected)

    async def delete(self, key: Key, *, expected: Revision) -> Revision:
        return await self._write(key, None, expected)

    def watch(self, prefix: Prefix = EVERYTHING, *, after: Revision) -> AsyncIterator[Batch]:
        self._require_open()
        return self._log.watch(prefix, after)

    async def compact(self, revision: Revision) -> None:
        """The mark first, then, a span at a time, the rows. What a crash leaves undone, the next compaction does."""
        self._require_open()
        if revision > self._log.revision:
            raise FutureRevision(self._log.revision)
        async with self._compacting:
            if revision > self._log.compacted:
                await self._in_turn(partial(self._mark_compacted, revision))
            while self._swept < self._log.compacted:
                await self._in_turn(partial(self._sweep, min(self._swept + SWEEP_SPAN, self._log.compacted)))

    async def status(self) -> Status:
        keys, fault = 0, ""
        try:
            keys = await self.count(EVERYTHING)
        except (Corrupt, Unavailable) as error:
            fault = str(error)
        size = database.size(self._path)
        return Status("sqlite", self._log.revision, self._log.compacted, keys, size, self._fault or fault)

    async def close(self) -> None:
        if self._closing is None:
            self._closing = asyncio.create_task(self._close())
        await asyncio.shield(self._closing)

    def _require_open(self) -> None:
        if self._closing is not None or self._writer.done():
            raise Closed("the store is closed")

    # Reading. Every query names a published revision: behind that there may be a transaction that is not finished.

    async def _fetch(self, sql: str, parameters: Sequence[Any]) -> Sequence[Any]:
        await self._connected.wait()
        if self._connection is None:
            self._require_open()
            raise Unavailable(self._fault)
        try:
            return list(await self._connection.execute_fetchall(sql, parameters))
        except database.FAILURES as error:
            raise database.unreadable(error) from error

    async def _one_by_one(self, condition: str, parameters: Sequence[Any], limit: int) -> Sequence[Row]:
        """Like `states`, for a part of the file that cannot be read as a whole. What cannot be read is not intact."""
        found: list[Row] = []
        for *key, revision, _ in await self._fetch(database.keys(condition), [*parameters, limit]):
            rows: Sequence[Row] = ()
            with suppress(Corrupt):
                rows = await self._fetch(database.rows(1), [revision])
            found += [(*key, *row[3:]) for row in rows or [(*key, revision, 0, -1, None)]]
        return found

    async def _page(
        self, prefix: Prefix, revision: Revision, limit: int, after: Key | None
    ) -> tuple[Page, dict[Key, Revision]]:
        """A page of intact states, and what is damaged in it."""
        items: list[KeyValue] = []
        damaged: dict[Key, Revision] = {}
        while (size := min(PAGE_ROWS, limit - len(items) - len(damaged)) if limit else PAGE_ROWS) > 0:
            condition, parameters = database.covered(prefix, after)
            parameters.append(revision)
            try:
                rows = await self._fetch(database.states(condition), [*parameters, size])
            except Corrupt:
                rows = await self._one_by_one(condition, parameters, size)
            self._log.at(revision)
            for row in rows:
                after = Key(row[0], row[1], row[2])
                if intact(row):
                    items.append(KeyValue(after, row[6], row[3]))
                elif all(isinstance(part, str) for part in after):
                    damaged[after] = row[3]
                else:
                    raise Corrupt(f"the index is damaged at revision {row[3]}; nobody knows what comes behind it")
            if len(rows) < size:
                return Page(items, revision, 0), damaged
        remaining = await self._count(prefix, revision, after)
        self._log.at(revision)
        return Page(items, revision, remaining), damaged

    async def _count(self, prefix: Prefix, revision: Revision, after: Key | None = None) -> int:
        condition, parameters = database.covered(prefix, after)
        [(number,)] = await self._fetch(database.count(condition), [*parameters, revision])
        return int(number)

    async def _history(self, prefix: Prefix, after: Revision, upto: Revision) -> Sequence[Event]:
        """Events from the file, for watches that the tail of the log does not serve."""
        sql, parameters = database.changes(prefix)
        events: list[Event] = []
        for row in await self._fetch(sql, [*parameters, after, upto]):
            new, old = row[:7], row[7:]
            key, revision, previous = Key(*new[:3]), new[3], new[4]
            if not intact(new):
                raise Corrupt(f"the event at revision {revision} is damaged", {key: revision})
            events.append(Event(key, revision, new[6], replaced(key, previous, old)))
        return events

    async def _load(self, collection: str) -> None:
        """Take in the keys of a collection. Nothing writes to it meanwhile: writers wait for this."""
        async with self._loading:
            if collection in self._keys:
                return
            keys: dict[Key, Revision] = {}
            partitions: dict[str, str] = {}
            after: Key | None = None
            while True:
                condition, parameters = database.covered(Prefix(collection), after)
                rows = await self._fetch(database.keys(condition), [*parameters, self._log.revision, PAGE_KEYS])
                for _, partition, name, revision, _ in rows:
                    after = Key(collection, partitions.setdefault(partition, partition), name)
                    keys[after] = revision
                if len(rows) < PAGE_KEYS:
                    break
            self._keys[collection] = keys

    # Writing.

    async def _write(self, key: Key, value: bytes | None, expected: Revision) -> Revision:
        while True:
            self._require_open()
            if self._fault:
                raise Unavailable(self._fault)
            if self._staging.full:
                await self._staging.room()
                continue
            if (keys := self._keys.get(key.collection)) is None:
                await self._load(key.collection)
                continue
            staged = self._staging.newest(key)
            found = keys.get(key, 0) if staged is None else staged.leaves
            if found == expected and (found or value is not None):
                write = self._staging.add(key, found, value)
                self._wake.set()
                revision = await write.answer
                if revision is not None:
                    return revision
            elif staged is not None:
                await staged.commit.settled()  # no refusal on account of what may never be
            else:
                current = await self.get(key)
                if keys.get(key, 0) == found:  # else it has changed again meanwhile, perhaps to what is expected
                    raise Conflict(key, current)

    async def _write_on(self) -> None:
        """The one task that writes, and that opens the file anew when that went wrong."""
        try:
            while self._closing is None or self._staging:
                with suppress(TimeoutError):
                    async with asyncio.timeout(PROBE if self._fault else None):
                        await self._wake.wait()
                self._wake.clear()
                if self._fault and self._closing is None:
                    await self._recover()
                if self._staging:
                    await self._commit(self._staging.take())
                if self._chore is not None:
                    await self._do(*self._chore)
                await asyncio.sleep(0)  # who has just been answered may have more to write: let it be in this commit
        except asyncio.CancelledError as going_down:  # the event loop ends, and nobody has closed the store
            clear_frames(going_down.__traceback__)  # they may refer to a cursor, and that would keep the file locked
            await self._disconnect()
            raise
        finally:
            self._staging.reset(self._log.revision)
            if self._chore is not None and not self._chore[1].done():
                self._chore[1].set_exception(Closed("the store is closed"))

    async def _commit(self, commit: Commit) -> None:
        """Make one transaction of everything that was staged."""
        assert self._connection is not None
        refusal: type[StoreError] = Unavailable
        try:
            rows = await self._replaced(commit)
            await self._connection.executemany(database.INSERT, [write.row for write in commit.writes])
            refusal = Unknown
            await self._connection.execute("COMMIT")
        except (*database.FAILURES, Unavailable) as error:
            await self._recover()
            commit.fail(partial(refusal, f"the write failed: {error}"))
        except BaseException:
            commit.fail(partial(refusal, "the store went down during the write"))
            raise
        else:
            self._staging.done(commit)
            self._publish(self._events(commit, rows))
            commit.succeed()

    async def _replaced(self, commit: Commit) -> dict[Revision, Row]:
        """The rows that a commit replaces, as far as the log does not have them in memory."""
        find = self._log.find
        published = self._log.revision
        wanted = [w.previous for w in commit.writes if 0 < w.previous <= published and find(w.previous) is None]
        found: list[Row] = []
        for start in range(0, len(wanted), PAGE_ROWS):
            revisions = wanted[start : start + PAGE_ROWS]
            try:
                found += await self._fetch(database.rows(len(revisions)), revisions)
            except Corrupt:
                for revision in revisions:
                    with suppress(Corrupt):
                        found += await self._fetch(database.rows(1), [revision])
        return {row[3]: row for row in found}

    def _events(self, commit: Commit, rows: dict[Revision, Row]) -> Sequence[Event]:
        events: list[Event] = []
        published = self._log.revision
        for write in commit.writes:
            key, previous = write.key, write.previous
            event = events[previous - published - 1] if previous > published else self._log.find(previous)
            if event is not None and event.value is not None:
                state: KeyValue | None = KeyValue(key, event.value, previous)
            else:
                state = replaced(key, previous, rows.get(previous))
            events.append(Event(key, write.revision, write.value, state))
        return events

    def _publish(self, events: Sequence[Event]) -> None:
        for key, revision, value, _ in events:
            if (keys := self._keys.get(key.collection)) is not None:
                if value is not None:
                    keys[key] = revision
                else:
                    keys.pop(key, None)
        self._log.publish(events)

    async def _recover(self) -> None:
        """Open the file anew, make durable what it has, and show that. Sets `_fault` if it takes no writes yet."""
        self._connected.clear()
        await self._disconnect()
        try:
            connection, marks = await database.connect(self._path, self._durability)
            if marks.revision < self._log.revision:
                await database.disconnect(connection)
                raise Unusable(
                    f"{self._path} lacks revisions that it had; restore it, or restart to go on without them"
                )
            self._connection = connection
            self._connected.set()  # reads go on
            await connection.execute_fetchall("PRAGMA wal_checkpoint(TRUNCATE)")
            await self._change((database.SET_MARK, (marks.swept, "swept")))  # nothing new: can it be written?
            events = await self._history(EVERYTHING, self._log.revision, marks.revision)
        except (*database.FAILURES, StoreError) as error:
            refusal = error if isinstance(error, StoreError) else database.refusal(self._path, error)
            self._fault = str(refusal)
            self._staging.reset(self._log.revision)
        else:
            self._fault = ""
            self._swept = marks.swept
            self._log.compacted = max(self._log.compacted, marks.compacted)
            self._staging.reset(marks.revision)
            self._publish(events)
        finally:
            self._connected.set()

    async def _disconnect(self) -> None:
        if (connection := self._connection) is not None:
            self._connection = None
            await database.disconnect(connection)

    # Compaction, in turn with the commits.

    async def _in_turn(self, chore: Callable[[], Awaitable[None]]) -> None:
        """Let the writer do something between two commits."""
        self._require_open()
        if self._fault:
            raise Unavailable(self._fault)
        answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._chore = chore, answer
        self._wake.set()
        await answer

    async def _do(self, chore: Callable[[], Awaitable[None]], answer: asyncio.Future[None]) -> None:
        self._chore = None
        refusal = Unavailable(self._fault) if self._fault else None
        try:
            if refusal is None:
                await chore()
        except database.FAILURES as error:
            refusal = Unavailable(f"the file cannot be written: {error}")
            await self._recover()
        if answer.done():
            return
        if refusal is None:
            answer.set_result(None)
        else:
            answer.set_exception(refusal)

    async def _mark_compacted(self, revision: Revision) -> None:
        await self._change((database.SET_MARK, (revision, "compacted")))
        self._log.compacted = revision

    async def _sweep(self, last: Revision) -> None:
        span = {"first": self._swept, "last": last}  # the last row of the span before may have had to stay
        await self._change((database.SWEEP, span), (database.SET_MARK, (last, "swept")))
        self._swept = last

    async def _change(self, *statements: tuple[str, Any]) -> None:
        assert self._connection is not None
        for sql, parameters in statements:
            await self._connection.execute(sql, parameters)
        await self._connection.execute("COMMIT")

    async def _close(self) -> None:
        self._wake.set()
        await asyncio.wait([self._writer])  # it finishes what is staged
        await self._disconnect()
        self._log.close()


def _damaged(damaged: dict[Key, Revision]) -> str:
    names = [f"{' '.join(key)} at revision {revision}" for key, revision in damaged.items()]
    return f"damaged: {', '.join(names[:TOLD])}{f' and {len(names) - TOLD} more' if len(names) > TOLD else ''}"
