"""What is particular to the store in a file: group commit, what is visible when, the lock, the file itself."""

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
from pathlib import Path
from typing import Any

import pytest
import uvloop

from storage import database, log, migrations, sqlite, staging
from storage.rows import row
from storage.sqlite import SqliteStore
from storage.types import EVERYTHING, Conflict, Event, Key, KeyValue, Prefix, Unknown, Unusable

Collect = Callable[..., Awaitable[list[Event]]]


def key(number: int | str, collection: str = "g/things") -> Key:
    return Key(collection, "p/", f"n{number:05}" if isinstance(number, int) else number)


class Gate:
    """Holds every COMMIT back until it is opened; counts them, and the rows that they bring."""

    def __init__(self, store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
        self.open = asyncio.Event()
        self.held = asyncio.Event()
        self.sizes: list[int] = []
        connection = store._connection
        assert connection is not None
        execute, executemany = connection.execute, connection.executemany

        async def slow(sql: str, parameters: Any = None) -> Any:
            if sql == "COMMIT":
                self.held.set()
                await self.open.wait()
            return await execute(sql, parameters)

        async def counted(sql: str, rows: Any) -> Any:
            self.sizes.append(len(rows))
            return await executemany(sql, rows)

        monkeypatch.setattr(connection, "execute", slow)
        monkeypatch.setattr(connection, "executemany", counted)


@pytest.fixture
async def gate(sqlite: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Gate]:
    gate = Gate(sqlite, monkeypatch)
    yield gate
    gate.open.set()


# Group commit.


async def test_everything_queued_while_a_commit_is_made_is_the_next_commit(sqlite: SqliteStore, gate: Gate) -> None:
    first = asyncio.create_task(sqlite.put(key(0), b"v", expected=0))
    await gate.held.wait()
    queued = [asyncio.create_task(sqlite.put(key(number), b"v", expected=0)) for number in range(1, 51)]
    await asyncio.sleep(0)
    gate.open.set()
    assert await asyncio.gather(first, *queued) == list(range(2, 53))
    assert gate.sizes == [1, 50]


async def test_writers_that_were_answered_together_write_together_again(sqlite: SqliteStore, gate: Gate) -> None:
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
    await gate.held.wait()  # the rows are in the open transaction of the very connection that reads
    assert await sqlite.get(key(1)) == KeyValue(key(1), b"old", 2)
    assert await sqlite.get(key(2)) is None
    assert await sqlite.list(EVERYTHING) == ([KeyValue(key(1), b"old", 2)], 2, 0)
    assert await sqlite.count(EVERYTHING) == 1
    assert (sqlite.revision, waiting.done()) == (2, False)
    gate.open.set()
    assert await asyncio.gather(*writing) == [3, 4]
    assert len((await waiting).events) == 2


async def test_a_conflict_with_a_write_that_is_not_committed_waits_for_its_outcome(
    sqlite: SqliteStore, gate: Gate
) -> None:
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


async def test_a_write_may_build_on_one_that_is_staged(sqlite: SqliteStore, gate: Gate, collect: Collect) -> None:
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


async def test_a_transaction_that_sqlite_has_rolled_back_by_itself_is_not_taken_for_committed(
    sqlite: SqliteStore, gate: Gate
) -> None:
    """Any statement of the connection may cause that, when it fails for want of space or by an I/O error."""
    writing = asyncio.create_task(sqlite.put(key(1), b"1", expected=0))
    await gate.held.wait()
    assert sqlite._connection is not None
    await sqlite._connection.rollback()
    gate.open.set()
    with pytest.raises(Unknown, match="no transaction is active"):
        await writing
    assert await sqlite.get(key(1)) is None
    assert await sqlite.put(key(1), b"2", expected=0) == 2


async def test_writers_wait_when_too_much_is_staged(
    sqlite: SqliteStore, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(staging, "MAX_STAGED", 3)
    writing = [asyncio.create_task(sqlite.put(key(number), b"v", expected=0)) for number in range(20)]
    await gate.held.wait()
    for _ in range(10):
        await asyncio.sleep(0)
    assert gate.sizes[0] + len(sqlite._staging._collected.writes) == 3
    gate.open.set()
    assert sorted(await asyncio.gather(*writing)) == list(range(2, 22))
    assert max(gate.sizes) <= 3


async def test_an_update_of_what_memory_no_longer_has_carries_what_it_replaced(
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
    monkeypatch.setattr(sqlite, "_connection", None)
    assert await sqlite.get(key(1)) == KeyValue(key(1), b"1", 2)
    assert await sqlite.get(key(2)) is None
    assert await sqlite.get(key(3)) is None
    with pytest.raises(Conflict) as refused:
        await sqlite.put(key(1), b"3", expected=0)
    assert refused.value.current == KeyValue(key(1), b"1", 2)
    monkeypatch.undo()


# Long reads, a slice at a time.


@pytest.fixture
async def sliced(file: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[SqliteStore]:
    monkeypatch.setattr(sqlite, "PAGE_ROWS", 4)
    monkeypatch.setattr(sqlite, "PAGE_KEYS", 4)
    monkeypatch.setattr(sqlite, "SWEEP_SPAN", 5)
    store = await SqliteStore.open(file)
    await asyncio.gather(*(store.put(key(number), b"%d" % number, expected=0) for number in range(22)))
    yield store
    await store.close()


@pytest.mark.parametrize("limit", [0, 1, 3, 4, 5, 8, 21, 22, 23])
async def test_a_list_in_slices_is_one_list(sliced: SqliteStore, limit: int) -> None:
    page = await sliced.list(Prefix("g/things"), limit=limit)
    wanted = limit or 22
    assert [item.key for item in page.items] == [key(number) for number in range(min(wanted, 22))]
    assert page.remaining == max(22 - wanted, 0)


async def test_a_list_in_slices_shows_one_revision_while_others_write(sliced: SqliteStore) -> None:
    listing = asyncio.create_task(sliced.list(EVERYTHING))
    at = {item.key: item.revision for item in (await sliced.list(EVERYTHING)).items}
    await asyncio.gather(*(sliced.delete(key(number), expected=at[key(number)]) for number in range(22)))
    page = await listing
    assert (len(page.items), page.revision) == (22, 23)


@pytest.mark.parametrize("revision", [0, 23])
async def test_a_list_that_compaction_overtakes_begins_again_or_is_too_late(
    sliced: SqliteStore, revision: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetch = sliced._fetch
    slices = 0

    async def overtaken(sql: str, parameters: Any) -> Any:
        nonlocal slices
        slices += 1
        if slices == 3:
            monkeypatch.undo()
            current = await sliced.get(key(21))
            assert current is not None
            await sliced.compact(await sliced.put(key(21), b"new", expected=current.revision))
        return await fetch(sql, parameters)

    monkeypatch.setattr(sliced, "_fetch", overtaken)
    if revision:
        with pytest.raises(sqlite.Compacted):
            await sliced.list(EVERYTHING, revision=revision)
    else:
        page = await sliced.list(EVERYTHING)
        assert (page.revision, len(page.items), page.items[-1].value) == (24, 22, b"new")


async def test_keys_are_taken_in_slices_before_the_first_write(sliced: SqliteStore, file: Path) -> None:
    await sliced.close()
    store = await SqliteStore.open(file)
    for number in range(22):
        with pytest.raises(Conflict):
            await store.put(key(number), b"v", expected=0)
    assert len(store._keys["g/things"]) == 22
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
        ([9], [4, 7, 9]),  # the newest row tells the revision: it stays, although it is a delete
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


async def test_a_delete_that_was_the_newest_row_goes_with_the_next_compaction(file: Path) -> None:
    store = await SqliteStore.open(file)
    await store.delete(key("a"), expected=await store.put(key("a"), b"1", expected=0))
    await store.compact(3)
    await store.put(key("b"), b"1", expected=0)
    await store.compact(4)
    await store.close()
    assert revisions(file) == [4]


async def test_compaction_interrupted_is_finished_by_the_next(sliced: SqliteStore, file: Path) -> None:
    at = {item.key: item.revision for item in (await sliced.list(EVERYTHING)).items}
    await asyncio.gather(*(sliced.put(each, b"new", expected=at[each]) for each in at))
    compacting = asyncio.create_task(sliced.compact(45))
    while sliced._swept < 20:  # noqa: ASYNC110 — nothing tells how far it has come
        await asyncio.sleep(0)
    compacting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await compacting
    await sliced.close()
    store = await SqliteStore.open(file)
    assert store.compacted == 45
    await store.compact(45)
    await store.close()
    assert revisions(file) == list(range(24, 46))


async def test_a_writer_waits_for_no_more_than_one_span_of_compaction(sliced: SqliteStore) -> None:
    compacting = asyncio.create_task(sliced.compact(23))
    await asyncio.sleep(0)
    done = []
    for number in range(4):
        await sliced.put(key(f"between{number}"), b"v", expected=0)
        done.append(compacting.done())
    await compacting
    assert done[0] is False


# The file.


async def test_the_file_and_its_directory_are_made_for_their_owner_alone(tmp_path: Path) -> None:
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


@pytest.mark.parametrize(("durability", "level"), [("full", 2), ("normal", 1)])
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
    began = time.monotonic()
    with pytest.raises(Unusable, match="in use by another process; stop that one, or name another data directory"):
        await SqliteStore.open(file)
    assert time.monotonic() - began < 1
    await sqlite.put(key(1), b"v", expected=0)


OPEN = """
import asyncio, sys
from storage.sqlite import SqliteStore
from storage.types import Unusable
try:
    asyncio.run(SqliteStore.open(sys.argv[1]))
except Unusable as error:
    print("Unusable", error)
"""


async def test_a_second_process_on_the_file_is_refused(sqlite: SqliteStore, file: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", OPEN, str(file), stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]
    )
    output, _ = await process.communicate()
    assert output.decode().startswith(f"Unusable {file} is in use")
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
    with pytest.raises(Unusable, match="in use"):
        await SqliteStore.open(file)
    process.kill()
    await process.communicate()
    store = await SqliteStore.open(file)
    await store.close()


def a_database(path: Path, script: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)


FOREIGN: dict[str, tuple[Callable[[Path], Any], str]] = {
    "text": (lambda path: path.write_text("hello, this is no database\n" * 99), "is not a store"),
    "a few bytes": (lambda path: path.write_bytes(b"SQLite"), "is not a store"),
    "zeros": (lambda path: path.write_bytes(bytes(8192)), "is not a store"),
    "a directory": (lambda path: path.mkdir(), "has to be a file in a directory that this user may write to"),
    "another program's tables": (lambda path: a_database(path, "CREATE TABLE t (x)"), "of another program"),
    "another program's mark": (lambda path: a_database(path, "PRAGMA application_id = 7"), "of another program"),
    "a newer format": (
        lambda path: a_database(path, migrations.upgrade(0) + "PRAGMA user_version = 99"), "format 99 .* upgrade noxu",
    ),
    "a store without its log": (
        lambda path: a_database(path, migrations.upgrade(0) + "DROP TABLE log"), "no such table: log",
    ),
    "a store without its marks": (
        lambda path: a_database(path, migrations.upgrade(0) + "DELETE FROM meta"), "is damaged: .*; restore a backup",
    ),
}  # fmt: skip


def contents(file: Path) -> bytes | None:
    return file.read_bytes() if file.is_file() else None


@pytest.mark.parametrize("kind", FOREIGN)
async def test_what_is_no_store_is_refused_and_left_alone(file: Path, kind: str) -> None:
    make, message = FOREIGN[kind]
    make(file)
    before = contents(file)
    with pytest.raises(Unusable, match=message) as refused:
        await SqliteStore.open(file)
    assert str(refused.value).startswith(str(file))
    if "store" not in kind:
        assert contents(file) == before
    assert [path.name for path in file.parent.iterdir()] == ["noxu.db"]


async def test_a_directory_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Unusable, match="cannot be used"):
        await SqliteStore.open(tmp_path / "file" / "data" / "noxu.db")


def cut_short(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


async def test_a_store_that_was_cut_short_is_refused(sqlite: SqliteStore, file: Path) -> None:
    await asyncio.gather(*(sqlite.put(key(number), bytes(3000), expected=0) for number in range(50)))
    await sqlite.close()
    cut_short(file)
    with pytest.raises(Unusable, match="is damaged or cut short; `noxu check` says where, or restore a backup"):
        await SqliteStore.open(file)


@pytest.mark.parametrize(
    "leave",
    [
        pytest.param(lambda file: None, id="nothing"),
        pytest.param(Path.touch, id="an empty file"),
        pytest.param(lambda file: a_database(file, "PRAGMA journal_mode = WAL"), id="a file that is only a header"),
    ],
)
async def test_a_server_killed_while_it_made_its_file_can_be_started_again(
    file: Path, leave: Callable[[Path], object]
) -> None:
    leave(file)
    store = await SqliteStore.open(file)
    assert await store.put(key(1), b"v", expected=0) == 2
    await store.close()


async def test_a_name_that_means_something_to_sqlite_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in (":memory:", "file:x?mode=ro", "a b%20c"):
        store = await SqliteStore.open(name)
        await store.put(key(1), b"v", expected=0)
        await store.close()
        assert (tmp_path / name).stat().st_size > 0


async def test_a_large_file_is_ready_within_a_second(file: Path) -> None:
    value = os.urandom(3072)
    a_database(file, f"PRAGMA page_size = {database.PAGE_SIZE}; PRAGMA journal_mode = WAL; {migrations.upgrade(0)}")
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.executemany(database.INSERT, (row(key(number), number, 0, value) for number in range(2, 10_002)))
    began = time.monotonic()
    store = await SqliteStore.open(file)
    assert await store.put(key(1), value, expected=0) == 10_002
    assert await store.get(key(5_000)) == KeyValue(key(5_000), value, 5_000)
    assert time.monotonic() - began < 1
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
def test_it_leaves_no_thread_and_no_lock_behind(file: Path, run: Callable[..., int], close: bool) -> None:
    before = threading.active_count()
    for _ in range(3):
        assert run(scenario(file.with_suffix(f".{time.monotonic_ns()}"), close=close)) == 30
    run(scenario(file, close=close))
    store = asyncio.run(_reopened(file))
    assert store >= 31
    time.sleep(0.05)
    assert threading.active_count() == before


async def _reopened(file: Path) -> int:
    store = await SqliteStore.open(file)
    await store.close()
    return store.revision


def test_a_hundred_times_open_and_closed_leaves_no_descriptor(file: Path) -> None:
    descriptors = Path("/proc/self/fd")
    if not descriptors.exists():
        pytest.skip("no /proc here")
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
