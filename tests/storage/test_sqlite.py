"""The store in a file: group commit, visibility, paging, compaction, the lock, and the file itself."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import aiosqlite
import pytest
import uvloop

from noxu_storage import database, group_commit, log, migrations, sqlite
from noxu_storage.rows import row
from noxu_storage.sqlite import SqliteStore
from noxu_storage.types import (
    EVERYTHING,
    Compacted,
    Conflict,
    Corrupt,
    Event,
    Key,
    KeyValue,
    OpenError,
    OutcomeUnknown,
    Prefix,
)
from tests.optional import skip_without_platform
from tests.timing import HANGS_AFTER

Collect = Callable[..., Awaitable[list[Event]]]


def key(number: int | str, collection: str = "g/things") -> Key:
    return Key(collection, "p/", f"n{number:05}" if isinstance(number, int) else number)


class Gate:
    """Holds every transaction back when it is in the file, until it is opened. Records the number of rows of each."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.open = asyncio.Event()
        self.held = asyncio.Event()
        self.sizes: list[int] = []
        write = database.write

        async def write_when_open(connection: Any, rows: Any) -> None:
            self.sizes.append(len(rows))
            await write(connection, rows)
            self.held.set()
            await self.open.wait()

        monkeypatch.setattr(database, "write", write_when_open)


Query = Callable[..., Awaitable[Any]]
"""Its SQL and parameters → the rows."""


def ask_through(monkeypatch: pytest.MonkeyPatch, query: Callable[[Query, str, Any], Awaitable[Any]]) -> None:
    """Each query from now on is this one, which gets that of the connection to the file."""
    ask = aiosqlite.Connection.execute_fetchall

    def intercepted(connection: aiosqlite.Connection, sql: str, parameters: Any = None) -> Awaitable[Any]:
        return query(partial(ask, connection), sql, parameters)

    monkeypatch.setattr(aiosqlite.Connection, "execute_fetchall", intercepted)


@pytest.fixture
async def gate(sqlite: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Gate]:
    gate = Gate(monkeypatch)
    yield gate
    gate.open.set()


# Group commit.


async def test_writes_that_arrive_during_a_commit_form_the_next_transaction(sqlite: SqliteStore, gate: Gate) -> None:
    first = asyncio.create_task(sqlite.put(key(0), b"v", expected=0))
    await gate.held.wait()
    queued = [asyncio.create_task(sqlite.put(key(number), b"v", expected=0)) for number in range(1, 51)]
    await asyncio.sleep(0)
    gate.open.set()
    assert await asyncio.gather(first, *queued) == list(range(2, 53))
    assert gate.sizes == [1, 50]


async def test_writers_that_are_answered_together_share_the_next_transaction(sqlite: SqliteStore, gate: Gate) -> None:
    gate.open.set()
    await sqlite.put(key("warm"), b"v", expected=0)

    async def write(writer: int) -> None:
        for number in range(5):
            await sqlite.put(key(f"{writer}-{number}"), b"v", expected=0)

    await asyncio.gather(*map(write, range(20)))
    assert gate.sizes == [1, 20, 20, 20, 20, 20]


async def test_nothing_is_visible_before_it_is_committed(sqlite: SqliteStore, gate: Gate) -> None:
    gate.open.set()
    await sqlite.put(key(1), b"old", expected=0)
    gate.open.clear()
    gate.held.clear()
    watch = sqlite.watch(after=2)
    waiting = asyncio.ensure_future(anext(watch))
    writing = [
        asyncio.create_task(sqlite.put(key(1), b"new", expected=2)),
        asyncio.create_task(sqlite.put(key(2), b"new", expected=0)),
    ]
    await gate.held.wait()  # the rows are in the open transaction of the connection that reads
    assert await sqlite.get(key(1)) == KeyValue(key(1), b"old", 2)
    assert await sqlite.get(key(2)) is None
    assert await sqlite.list(EVERYTHING) == ([KeyValue(key(1), b"old", 2)], 2, 0)
    assert await sqlite.count(EVERYTHING) == 1
    assert (sqlite.revision, waiting.done()) == (2, False)
    gate.open.set()
    assert await asyncio.gather(*writing) == [3, 4]
    assert len((await waiting).events) == 2


async def test_a_conflict_with_a_pending_write_waits_for_its_outcome(sqlite: SqliteStore, gate: Gate) -> None:
    winner = asyncio.create_task(sqlite.put(key(1), b"1", expected=0))
    await gate.held.wait()
    loser = asyncio.create_task(sqlite.put(key(1), b"2", expected=0))
    for _ in range(5):
        await asyncio.sleep(0)
    assert not loser.done()
    gate.open.set()
    assert await winner == 2
    with pytest.raises(Conflict) as refused:
        await loser
    assert refused.value.current == KeyValue(key(1), b"1", 2)


async def test_a_write_may_expect_the_revision_of_a_pending_one(
    sqlite: SqliteStore, gate: Gate, collect: Collect
) -> None:
    first = asyncio.create_task(sqlite.put(key(1), b"1", expected=0))
    await gate.held.wait()
    chain = [
        asyncio.create_task(sqlite.put(key(1), b"2", expected=2)),
        asyncio.create_task(sqlite.delete(key(1), expected=3)),
        asyncio.create_task(sqlite.put(key(1), b"3", expected=0)),
    ]
    await asyncio.sleep(0)
    gate.open.set()
    assert await asyncio.gather(first, *chain) == [2, 3, 4, 5]
    assert [event.previous and event.previous.value for event in await collect(sqlite, after=1, upto=5)] == [
        None, b"1", b"2", None,
    ]  # fmt: skip


class RollsBack(database.FileConnection):
    """Rolls back what is inserted, once."""

    has_rolled_back = False

    def insert(self, sql: str, rows: Any) -> None:
        super().insert(sql, rows)
        if not RollsBack.has_rolled_back:
            RollsBack.has_rolled_back = True
            self.rollback()


async def test_a_transaction_that_sqlite_has_rolled_back_by_itself_does_not_count_as_committed(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any statement may cause that, if it fails for lack of space or with an I/O error."""
    monkeypatch.setattr(database, "FileConnection", RollsBack)
    monkeypatch.setattr(RollsBack, "has_rolled_back", False)
    store = await SqliteStore.open(file)
    with pytest.raises(OutcomeUnknown, match="no transaction is active"):
        await store.put(key(1), b"1", expected=0)
    assert await store.get(key(1)) is None
    assert await store.put(key(1), b"2", expected=0) == 2
    await store.close()


async def test_writers_wait_while_too_much_is_pending(
    sqlite: SqliteStore, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_commit, "MAX_PENDING_WRITES", 3)
    writing = [asyncio.create_task(sqlite.put(key(number), b"v", expected=0)) for number in range(20)]
    await gate.held.wait()
    for _ in range(10):
        await asyncio.sleep(0)
    assert gate.sizes[0] + len(sqlite._pending._collecting.writes) == 3
    gate.open.set()
    assert sorted(await asyncio.gather(*writing)) == list(range(2, 22))
    assert max(gate.sizes) <= 3


async def test_an_update_reads_the_previous_value_from_the_file_if_it_is_not_in_memory(
    file: Path, collect: Collect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "PAGE_ROWS", 7)
    store = await SqliteStore.open(file)
    await asyncio.gather(*(store.put(key(number), b"%d" % number, expected=0) for number in range(20)))
    await store.close()
    store = await SqliteStore.open(file)
    at = {item.key: item.revision for item in (await store.list(EVERYTHING)).items}
    await asyncio.gather(*(store.put(key(number), b"new", expected=at[key(number)]) for number in range(20)))
    events = await collect(store, after=21, upto=41)
    assert [event.previous for event in events] == [
        KeyValue(event.key, b"%d" % int(event.key.name[1:]), at[event.key]) for event in events
    ]
    await store.close()


async def test_what_is_in_memory_is_not_read_from_the_file(
    sqlite: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await sqlite.put(key(1), b"1", expected=0)
    await sqlite.put(key(2), b"2", expected=0)
    await sqlite.delete(key(2), expected=3)
    ask_through(monkeypatch, lambda _, sql, __: pytest.fail(f"the file is asked: {sql}"))
    assert await sqlite.get(key(1)) == KeyValue(key(1), b"1", 2)
    assert await sqlite.get(key(2)) is None
    assert await sqlite.get(key(3)) is None
    with pytest.raises(Conflict) as refused:
        await sqlite.put(key(1), b"3", expected=0)
    assert refused.value.current == KeyValue(key(1), b"1", 2)
    monkeypatch.undo()


# Long reads, a page at a time.


@pytest.fixture
async def paged(file: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[SqliteStore]:
    monkeypatch.setattr(sqlite, "PAGE_ROWS", 4)
    monkeypatch.setattr(sqlite, "PAGE_KEYS", 4)
    monkeypatch.setattr(sqlite, "SWEEP_SPAN", 5)
    store = await SqliteStore.open(file)
    await asyncio.gather(*(store.put(key(number), b"%d" % number, expected=0) for number in range(22)))
    yield store
    await store.close()


@pytest.mark.parametrize("limit", [0, 1, 3, 4, 5, 8, 21, 22, 23])
async def test_a_list_that_is_read_in_pages_is_complete(paged: SqliteStore, limit: int) -> None:
    page = await paged.list(Prefix("g/things"), limit=limit)
    expected = limit or 22
    assert [item.key for item in page.items] == [key(number) for number in range(min(expected, 22))]
    assert page.remaining == max(22 - expected, 0)


async def test_a_list_that_is_read_in_pages_shows_one_revision_while_others_write(paged: SqliteStore) -> None:
    listing = asyncio.create_task(paged.list(EVERYTHING))
    at = {item.key: item.revision for item in (await paged.list(EVERYTHING)).items}
    await asyncio.gather(*(paged.delete(key(number), expected=at[key(number)]) for number in range(22)))
    page = await listing
    assert (len(page.items), page.revision) == (22, 23)


@pytest.mark.parametrize("revision", [0, 23])
async def test_a_list_that_compaction_overtakes_starts_again_or_raises_compacted(
    paged: SqliteStore, revision: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    queries = 0

    async def overtaken(ask: Query, sql: str, parameters: Any) -> Any:
        nonlocal queries
        queries += 1
        if queries == 3:
            monkeypatch.undo()
            current = await paged.get(key(21))
            assert current is not None
            await paged.compact(await paged.put(key(21), b"new", expected=current.revision))
        return await ask(sql, parameters)

    ask_through(monkeypatch, overtaken)
    if revision:
        with pytest.raises(Compacted):
            await paged.list(EVERYTHING, revision=revision)
    else:
        page = await paged.list(EVERYTHING)
        assert (page.revision, len(page.items), page.items[-1].value) == (24, 22, b"new")


async def test_keys_are_loaded_in_pages_before_the_first_write(paged: SqliteStore, file: Path) -> None:
    await paged.close()
    store = await SqliteStore.open(file)
    for number in range(22):
        with pytest.raises(Conflict):
            await store.put(key(number), b"v", expected=0)
    assert len(store._keys["g/things"]) == 22
    await store.close()


LISTS: list[tuple[str, dict[str, Any], bool]] = [
    ("of the whole collection", {"prefix": Prefix("g/things")}, True),
    ("of the whole collection in a page with room for more", {"prefix": Prefix("g/things"), "limit": 23}, True),
    ("of the first page", {"prefix": Prefix("g/things"), "limit": 22}, False),
    ("of a later page", {"prefix": Prefix("g/things"), "after": key(0)}, False),
    ("of a partition", {"prefix": Prefix("g/things", "p/")}, False),
    ("of everything", {"prefix": EVERYTHING}, False),
    ("of an older state", {"prefix": Prefix("g/things"), "revision": 22}, False),
]


@pytest.mark.parametrize(("arguments", "kept"), [row[1:] for row in LISTS], ids=[row[0] for row in LISTS])
async def test_a_list_leaves_the_keys_of_a_whole_collection_for_its_writers(
    paged: SqliteStore, file: Path, arguments: dict[str, Any], kept: bool
) -> None:
    await paged.close()
    store = await SqliteStore.open(file)
    page = await store.list(**arguments)
    assert ("g/things" in store._keys) is kept
    with pytest.raises(Conflict):
        await store.put(key(3), b"v", expected=0)
    assert await store.put(key(3), b"v", expected=5) == 24
    assert await store.delete(key(4), expected=6) == 25
    assert await store.put(key(22), b"v", expected=0) == 26
    assert len(store._keys["g/things"]) == 22
    assert (
        len({id(item.key.collection) for item in page.items})
        == len({id(item.key.partition) for item in page.items})
        == 1
    )
    await store.close()


@pytest.mark.parametrize("at", [1, 3, 6], ids=["at the start", "between two pages", "at the end"])
@pytest.mark.parametrize("collection", ["g/things", "g/others"])
async def test_a_write_during_a_list_is_not_lost(
    paged: SqliteStore, file: Path, monkeypatch: pytest.MonkeyPatch, at: int, collection: str
) -> None:
    await paged.close()
    store = await SqliteStore.open(file)
    queries, writes = 0, []

    async def overtaken(ask: Query, sql: str, parameters: Any) -> Any:
        nonlocal queries
        queries += 1
        if queries == at:
            writes.append(asyncio.create_task(store.put(key("new", collection), b"v", expected=0)))
            await asyncio.sleep(0)
        return await ask(sql, parameters)

    ask_through(monkeypatch, overtaken)
    page = await store.list(Prefix("g/things"))
    assert (len(page.items), page.revision) == (22, 23)
    replaced, created = await asyncio.gather(store.put(key(0), b"w", expected=2), writes[0])
    assert {replaced, created} == {24, 25}
    for name, revision in ((key(0), replaced), (key("new", collection), created)):
        with pytest.raises(Conflict):
            await store.put(name, b"x", expected=0)
        await store.put(name, b"x", expected=revision)
    await store.close()


async def test_what_is_found_in_the_file_during_a_list_is_not_lost(
    paged: SqliteStore, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a COMMIT that failed although it was done."""
    await paged.close()
    store = await SqliteStore.open(file)
    queries = 0

    async def reopened(ask: Query, sql: str, parameters: Any) -> Any:
        nonlocal queries
        queries += 1
        if queries == 3 and store._connection is not None:
            await database.write(store._connection, [row(key(0), 24, 2, b"w")])
            await store._reopen()
            return await store._connection.execute_fetchall(sql, parameters)
        return await ask(sql, parameters)

    ask_through(monkeypatch, reopened)
    page = await store.list(Prefix("g/things"))
    assert (page.revision, page.items[0], store.revision) == (23, KeyValue(key(0), b"0", 2), 24)
    assert await store.put(key(0), b"x", expected=24) == 25
    await store.close()


# Compaction of the file.


def revisions(file: Path) -> list[int]:
    with closing(sqlite3.connect(file)) as connection:
        return [revision for (revision,) in connection.execute("SELECT revision FROM log ORDER BY revision")]


@pytest.mark.parametrize(
    ("compacted", "left"),
    [
        ([1], [2, 3, 4, 5, 6, 7, 8, 9]),
        ([3], [2, 3, 4, 5, 6, 7, 8, 9]),
        ([4], [3, 4, 5, 6, 7, 8, 9]),
        ([5], [4, 6, 7, 8, 9]),
        ([6], [4, 6, 7, 8, 9]),
        ([7], [4, 7, 8, 9]),
        ([2, 4, 7], [4, 7, 8, 9]),
        ([9], [4, 7, 9]),  # the newest row holds the revision of the file, so it is kept although it is a delete
    ],
)
async def test_compaction_removes_rows(file: Path, compacted: list[int], left: list[int]) -> None:
    store = await SqliteStore.open(file)
    a = await store.put(key("a"), b"1", expected=0)  # 2
    b = await store.put(key("b"), b"1", expected=0)  # 3
    await store.put(key("a"), b"2", expected=a)  # 4
    await store.delete(key("b"), expected=b)  # 5
    c = await store.put(key("c"), b"1", expected=0)  # 6
    await store.put(key("c"), b"2", expected=c)  # 7
    d = await store.put(key("d"), b"1", expected=0)  # 8
    await store.delete(key("d"), expected=d)  # 9
    for revision in compacted:
        await store.compact(revision)
    await store.close()
    assert revisions(file) == left


async def test_a_delete_that_was_the_newest_row_is_removed_by_the_next_compaction(file: Path) -> None:
    store = await SqliteStore.open(file)
    await store.delete(key("a"), expected=await store.put(key("a"), b"1", expected=0))
    await store.compact(3)
    await store.put(key("b"), b"1", expected=0)
    await store.compact(4)
    await store.close()
    assert revisions(file) == [4]


async def test_compaction_interrupted_is_finished_by_the_next(paged: SqliteStore, file: Path) -> None:
    at = {item.key: item.revision for item in (await paged.list(EVERYTHING)).items}
    await asyncio.gather(*(paged.put(each, b"new", expected=at[each]) for each in at))
    compacting = asyncio.create_task(paged.compact(45))
    while paged._swept < 20:  # noqa: ASYNC110 — the progress is not signalled
        await asyncio.sleep(0)
    compacting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await compacting
    await paged.close()
    store = await SqliteStore.open(file)
    assert store.compacted == 45
    await store.compact(45)
    await store.close()
    assert revisions(file) == list(range(24, 46))


async def test_a_writer_waits_for_at_most_one_span_of_compaction(paged: SqliteStore) -> None:
    compacting = asyncio.create_task(paged.compact(23))
    await asyncio.sleep(0)
    done = []
    for number in range(4):
        await paged.put(key(f"between{number}"), b"v", expected=0)
        done.append(compacting.done())
    await compacting
    assert done[0] is False


# The file.


async def test_the_file_and_its_directory_are_accessible_to_their_owner_only(tmp_path: Path) -> None:
    file = tmp_path / "new" / "data" / "noxu.db"
    store = await SqliteStore.open(str(file))
    await store.put(key(1), b"v", expected=0)
    modes = [oct(path.stat().st_mode & 0o777) for path in (file, file.parent, Path(f"{file}-wal"))]
    assert modes == ["0o600", "0o700", "0o600"]
    await store.close()


async def test_closing_leaves_one_file(file: Path) -> None:
    store = await SqliteStore.open(file)
    await store.put(key(1), b"v", expected=0)
    assert (file.parent / "noxu.db-wal").stat().st_size > 0
    await store.close()
    assert [path.name for path in file.parent.iterdir()] == ["noxu.db"]


async def test_everything_is_there_after_reopening(file: Path, collect: Collect) -> None:
    store = await SqliteStore.open(file)
    revision = await store.put(key(1), b"1", expected=0)
    revision = await store.put(key(1), b"2", expected=revision)
    await store.delete(key(1), expected=revision)
    await store.put(key(2), b"3", expected=0)
    events = await collect(store, after=1, upto=5)
    await store.close()
    store = await SqliteStore.open(file)
    assert store.revision == 5
    assert await collect(store, after=1, upto=5) == events
    assert await store.get(key(2)) == KeyValue(key(2), b"3", 5)
    assert await store.put(key(1), b"4", expected=0) == 6
    await store.close()


@pytest.mark.parametrize("is_known", [False, True], ids=["does not", "has it"])
@pytest.mark.parametrize("new", [b"2", None], ids=["replaced", "deleted"])
async def test_a_value_is_read_to_be_replaced_only_if_its_writer(
    file: Path, collect: Collect, monkeypatch: pytest.MonkeyPatch, new: bytes | None, is_known: bool
) -> None:
    store = await SqliteStore.open(file)
    await store.put(key(1), b"1", expected=0)
    await store.close()
    store = await SqliteStore.open(file)  # whose log has nothing in memory
    read: list[str] = []

    def recording(ask: Query, sql: str, parameters: Any) -> Awaitable[Any]:
        read.append(sql)
        return ask(sql, parameters)

    ask_through(monkeypatch, recording)
    replaced = b"1" if is_known else None
    if new is None:
        await store.delete(key(1), expected=2, replaced=replaced)
    else:
        await store.put(key(1), new, expected=2, replaced=replaced)
    assert (database.select_rows(1) in read) is not is_known
    assert await collect(store, after=2, upto=3) == [Event(key(1), 3, new, KeyValue(key(1), b"1", 2))]
    await store.close()


@pytest.mark.parametrize(("durability", "level"), [("full", 2), ("normal", 1), ("off", 0)])
async def test_durability_is_sqlites_synchronous(file: Path, durability: Any, level: int) -> None:
    store = await SqliteStore.open(file, durability)
    assert store._connection is not None
    settings = [
        await store._connection.execute_fetchall(f"PRAGMA {name}")
        for name in ("synchronous", "journal_mode", "locking_mode")
    ]
    assert settings == [[(level,)], [("wal",)], [("exclusive",)]]
    await store.close()


async def test_a_second_store_on_the_file_is_refused_within_a_second(sqlite: SqliteStore, file: Path) -> None:
    assert database.LOCK_TIMEOUT < 1
    with pytest.raises(OpenError, match="in use by another process; stop that one, or name another data directory"):
        await SqliteStore.open(file)
    await sqlite.put(key(1), b"v", expected=0)


OPEN = """
import asyncio, sys
from noxu_storage.sqlite import SqliteStore
from noxu_storage.types import OpenError
try:
    asyncio.run(SqliteStore.open(sys.argv[1]))
except OpenError as error:
    print("OpenError", error)
"""


async def test_a_second_process_on_the_file_is_refused(sqlite: SqliteStore, file: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", OPEN, str(file), stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]
    )
    output, _ = await process.communicate()
    assert output.decode().startswith(f"OpenError {file} is in use")
    await sqlite.put(key(1), b"v", expected=0)


async def test_the_file_is_free_when_its_server_has_been_killed(file: Path) -> None:
    code = OPEN.replace("asyncio.run(", "asyncio.new_event_loop().run_until_complete(").replace(
        "except", "    print('open', flush=True); sys.stdin.read()\nexcept"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, str(file), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    )  # fmt: skip
    assert process.stdout is not None
    assert await process.stdout.readline() == b"open\n"
    with pytest.raises(OpenError, match="in use"):
        await SqliteStore.open(file)
    process.kill()
    await process.communicate()
    store = await SqliteStore.open(file)
    await store.close()


def a_database(path: Path, script: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)


FOREIGN: dict[str, tuple[Callable[[Path], Any], str]] = {
    "text": (lambda path: path.write_text("hello, this is not a database\n" * 99), "is not a store"),
    "a few bytes": (lambda path: path.write_bytes(b"SQLite"), "is not a store"),
    "zeros": (lambda path: path.write_bytes(bytes(8192)), "is not a store"),
    "a directory": (lambda path: path.mkdir(), "must be a file in a directory that this user may write to"),
    "another program's tables": (lambda path: a_database(path, "CREATE TABLE t (x)"), "of another program"),
    "another program's id": (lambda path: a_database(path, "PRAGMA application_id = 7"), "of another program"),
    "a newer format": (
        lambda path: a_database(path, migrations.upgrade_script(0) + "PRAGMA user_version = 99"), "format 99 .* upgrade noxu",
    ),
    "a store without its log": (
        lambda path: a_database(path, migrations.upgrade_script(0) + "DROP TABLE log"), "no such table: log",
    ),
    "a store without its watermarks": (
        lambda path: a_database(path, migrations.upgrade_script(0) + "DELETE FROM meta"), "is corrupt: .*; restore a backup",
    ),
}  # fmt: skip


def contents(file: Path) -> bytes | None:
    return file.read_bytes() if file.is_file() else None


@pytest.mark.parametrize("kind", FOREIGN)
async def test_a_file_that_is_not_a_store_is_refused_and_not_changed(file: Path, kind: str) -> None:
    make, message = FOREIGN[kind]
    make(file)
    before = contents(file)
    with pytest.raises(OpenError, match=message) as refused:
        await SqliteStore.open(file)
    assert str(refused.value).startswith(str(file))
    if "store" not in kind:
        assert contents(file) == before
    assert [path.name for path in file.parent.iterdir()] == ["noxu.db"]


async def test_a_directory_that_cannot_be_created_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OpenError, match="cannot be used"):
        await SqliteStore.open(tmp_path / "file" / "data" / "noxu.db")


def truncate(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


async def test_a_truncated_store_is_refused(sqlite: SqliteStore, file: Path) -> None:
    await asyncio.gather(*(sqlite.put(key(number), bytes(3000), expected=0) for number in range(50)))
    await sqlite.close()
    truncate(file)
    with pytest.raises(OpenError, match="is corrupt or truncated; `noxu check` says where, or restore a backup"):
        await SqliteStore.open(file)


@pytest.mark.parametrize(
    "create_remains",
    [
        pytest.param(lambda file: None, id="nothing"),
        pytest.param(lambda file: (file.parent / ".noxu.db.abc.new").touch(), id="an unfinished file of another name"),
        pytest.param(lambda file: a_database(file, "PRAGMA journal_mode = WAL"), id="a file that is only a header"),
    ],
)
async def test_a_server_that_was_killed_while_it_created_its_file_can_be_restarted(
    file: Path, create_remains: Callable[[Path], object]
) -> None:
    create_remains(file)
    store = await SqliteStore.open(file)
    assert await store.put(key(1), b"v", expected=0) == 2
    await store.close()


DAMAGED: dict[str, tuple[Callable[[Path], object], str]] = {
    "an empty file": (Path.touch, "is empty, which a store never is: .* Restore a backup, or delete the file"),
    "a log without its file": (lambda file: Path(f"{file}-wal").write_bytes(b"x"), "is missing, but its write-ahead log .*-wal is there"),
}  # fmt: skip


@pytest.mark.parametrize(("damage", "message"), DAMAGED.values(), ids=DAMAGED)
async def test_what_is_left_of_a_store_is_no_new_store(
    file: Path, damage: Callable[[Path], object], message: str
) -> None:
    damage(file)
    before = {path: path.read_bytes() for path in file.parent.iterdir()}
    with pytest.raises(OpenError, match=message):
        await SqliteStore.open(file)
    assert {path: path.read_bytes() for path in file.parent.iterdir()} == before


def test_a_store_that_is_killed_at_any_step_of_its_creation_can_be_opened(tmp_path: Path) -> None:
    """The process ends at the n-th call of the system that creates, changes, links or removes a file."""
    program = """
import os, sqlite3, sys, pathlib
from noxu_storage import database
left = int(sys.argv[1])
def step(event, arguments):
    global left
    if event in ("open", "os.link", "os.remove", "tempfile.mkstemp", "sqlite3.connect", "os.mkdir") and sys.argv[2] in str(arguments):
        left -= 1
        if left < 0:
            os._exit(9)
sys.addaudithook(step)
database._create(pathlib.Path(sys.argv[2]) / "noxu.db")
print("done")
"""
    for number in range(20):
        data = tmp_path / str(number)
        data.mkdir()
        ended = subprocess.run(
            [sys.executable, "-c", program, str(number), str(data)], capture_output=True, check=False
        )
        store = asyncio.run(_opened(data / "noxu.db"))
        assert store == 2, number
        assert sorted(path.name for path in data.iterdir()) == ["noxu.db"], number
        if ended.stdout:
            break
        assert ended.returncode == 9, ended.stderr
    assert number > 3


async def _opened(file: Path) -> int:
    store = await SqliteStore.open(file)
    try:
        return await store.put(key(1), b"v", expected=0)
    finally:
        await store.close()


async def test_a_name_with_a_meaning_to_sqlite_is_an_ordinary_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in (":memory:", "file:x?mode=ro", "a b%20c"):
        store = await SqliteStore.open(name)
        await store.put(key(1), b"v", expected=0)
        await store.close()
        assert (tmp_path / name).stat().st_size > 0


async def test_a_large_file_is_opened_without_reading_all_of_it(file: Path) -> None:
    value = os.urandom(3072)
    a_database(
        file, f"PRAGMA page_size = {database.PAGE_SIZE}; PRAGMA journal_mode = WAL; {migrations.upgrade_script(0)}"
    )
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.executemany(database.INSERT, (row(key(number), number, 0, value) for number in range(2, 10_002)))
    began = time.process_time()
    store = await SqliteStore.open(file)
    assert await store.put(key(1), value, expected=0) == 10_002
    assert await store.get(key(5_000)) == KeyValue(key(5_000), value, 5_000)
    assert time.process_time() - began < 1  # 0.03 s
    await store.close()


# The life of the process.


async def scenario(file: Path, *, close: bool) -> int:
    store = await SqliteStore.open(file, "normal")
    following = asyncio.create_task(_follow(store))
    await asyncio.gather(*(store.put(key(number), b"v", expected=0) for number in range(30)))
    await store.compact(20)
    if close:
        await store.close()
        return await following
    pending = [asyncio.create_task(store.put(key(f"late{number}"), b"v", expected=0)) for number in range(5)]
    await asyncio.sleep(0)
    assert len(pending) == 5
    return 30


async def _follow(store: SqliteStore) -> int:
    return sum([len(batch.events) async for batch in store.watch(after=1)])


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
@pytest.mark.parametrize("close", [True, False], ids=["closed", "left open when the loop ends"])
def test_the_process_ends_without_a_thread_or_a_lock(file: Path, run: Callable[..., int], close: bool) -> None:
    before = set(threading.enumerate())
    for _ in range(3):
        assert run(scenario(file.with_suffix(f".{time.monotonic_ns()}"), close=close)) == 30
    run(scenario(file, close=close))
    store = asyncio.run(_reopened(file))
    assert store >= 31
    for thread in set(threading.enumerate()) - before:
        thread.join(HANGS_AFTER)
    assert set(threading.enumerate()) <= before


async def _reopened(file: Path) -> int:
    store = await SqliteStore.open(file)
    await store.close()
    return store.revision


def test_opening_and_closing_a_hundred_times_leaks_no_descriptor(file: Path) -> None:
    descriptors = Path("/proc/self/fd")
    if not descriptors.exists():
        skip_without_platform("/proc")
    asyncio.run(_reopened(file))
    before = len(list(descriptors.iterdir()))
    for _ in range(100):
        asyncio.run(_reopened(file))
    assert len(list(descriptors.iterdir())) <= before + 2


async def test_the_tail_of_the_log_is_bounded(
    sqlite: SqliteStore, collect: Collect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log, "TAIL_EVENTS", 8)
    for number in range(100):
        await sqlite.put(key(number), b"v", expected=0)
    assert sqlite._log.find(101) is not None
    assert sqlite._log.find(80) is None
    assert len(await collect(sqlite, after=1, upto=101)) == 100


async def test_a_scan_leaves_out_corrupt_values(file: Path) -> None:
    store = await SqliteStore.open(file)
    for name in "abc":
        await store.put(Key("g/things", "p/", name), b"text", expected=0)
    await store.close()
    a_database(file, "UPDATE log SET value = CAST('other text' AS BLOB) WHERE name = 'b'")
    store = await SqliteStore.open(file)
    found = [item.key.name async for items in store.scan([b"text"]) for item in items]
    await store.close()
    assert found == ["a", "c"]


async def test_a_scan_reads_the_rest_of_a_file_of_which_a_part_is_unreadable(
    sqlite: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "abc":
        await sqlite.put(Key("g/things", "p/", name), b"text", expected=0)

    async def fail_at_revision_3(ask: Query, sql: str, parameters: Any) -> Any:
        if "instr" in sql and parameters[0] <= 3 <= parameters[1]:
            raise Corrupt("planned")
        return await ask(sql, parameters)

    ask_through(monkeypatch, fail_at_revision_3)
    assert [item.key.name async for items in sqlite.scan([b"text"]) for item in items] == ["a", "c"]
