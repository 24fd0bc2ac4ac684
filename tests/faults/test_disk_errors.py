"""R3: the Nth statement, or the Nth write to a file or sync of one, fails, for N = 1, 2, 3 … (SQLite's anomaly loop), and
the disk is full (etcd's NOSPACE).

No acknowledged write is lost, no refused write is stored, no event is shown that was not committed, reads continue, and
the store recovers by itself when the disk works again.
"""

from __future__ import annotations

import asyncio
import errno
import os
import resource
import sqlite3
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pytest

from noxu_storage import database
from noxu_storage import disk as disk_files
from noxu_storage import sqlite as module
from noxu_storage.check import check
from noxu_storage.sqlite import SqliteStore
from noxu_storage.transactions import StagedWrite
from noxu_storage.types import (
    EVERYTHING,
    Conflict,
    Event,
    Key,
    KeyValue,
    OpenError,
    OutcomeUnknown,
    Unavailable,
)
from tests.faults.sqlite_files import Operation, SqliteFiles, Sync, Write
from tests.timing import eventually_async, hang_guard

STRIDE = int(os.environ.get("NOXU_IO_STRIDE", "2"))  # between two failing operations: 1 fails each of them in turn
WRITES = ("INSERT", "UPDATE meta SET value = ?", "DELETE", "COMMIT", "PRAGMA wal_checkpoint")


def key(name: object) -> Key:
    return Key("g/things", "p/", str(name))


class Disk:
    """Fails the statement number `fails`. If `lasting`, it fails all later ones, too, until it is disarmed."""

    def __init__(self) -> None:
        self.statements = 0
        self.fails = 0
        self.lasting = False
        self.done_first = False  # the statement is executed, and then reported as failed
        self.only: tuple[str, ...] = ("",)
        self.code, self.message = sqlite3.SQLITE_FULL, "database or disk is full"
        self.armed = False

    def run(self, sql: str, statement: Callable[[], Any]) -> Any:
        if not self.armed or not sql.strip().startswith(self.only):
            return statement()
        self.statements += 1
        if self.statements == self.fails or (self.lasting and self.statements > self.fails):
            if self.done_first:
                statement()
            error = sqlite3.OperationalError(self.message)
            error.sqlite_errorcode = self.code
            raise error
        return statement()

    @property
    def reached(self) -> bool:
        return self.statements >= self.fails


class Connection(database.FileConnection):
    disk: ClassVar[Disk]

    def execute(self, sql: str, parameters: Any = ()) -> sqlite3.Cursor:
        return self.disk.run(sql, partial(super().execute, sql, parameters))

    def insert(self, sql: str, rows: Any) -> None:
        self.disk.run(sql, partial(super().insert, sql, rows))

    def executescript(self, sql: str) -> sqlite3.Cursor:
        return self.disk.run(sql, partial(super().executescript, sql))


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    Connection.disk = Disk()
    monkeypatch.setattr(database, "FileConnection", Connection)
    monkeypatch.setattr(module, "RETRY_INTERVAL", 0.005)
    return Connection.disk


@pytest.fixture
async def store(disk: Disk, tmp_path: Path) -> AsyncIterator[SqliteStore]:
    store = await SqliteStore.open(tmp_path / "noxu.db", "normal")
    await store.put(key("there"), b"there", expected=0)
    yield store
    disk.armed = False
    await store.close()


async def recovered(store: SqliteStore) -> None:
    async def works() -> bool:
        return not (await store.status()).fault

    await eventually_async(works)


async def history(store: SqliteStore) -> list[Event]:
    events: list[Event] = []
    watch = store.watch(after=max(store.compacted, 1))
    while len(events) < store.revision - max(store.compacted, 1):
        events += (await anext(watch)).events
    return events


# The anomaly loop.


async def traffic(store: SqliteStore, outcomes: dict[bytes, Any]) -> None:
    """Creates, updates, deletes and a compaction. `outcomes` records the outcome of each write by its unique value."""

    async def attempt(value: bytes, call: Any) -> int:
        try:
            outcomes[value] = await call
        except (Unavailable, OutcomeUnknown, Conflict) as error:
            outcomes[value] = error
            return 0
        return int(outcomes[value])

    async def write(writer: int) -> None:
        name = key(writer)
        created = await attempt(b"create %d" % writer, store.put(name, b"create %d" % writer, expected=0))
        updated = await attempt(b"update %d" % writer, store.put(name, b"update %d" % writer, expected=created))
        if updated and writer % 2:
            await attempt(b"delete %d" % writer, store.delete(name, expected=updated))

    await asyncio.gather(*map(write, range(4)))
    try:
        await store.compact(min(store.revision, 2))
        await store.list(EVERYTHING)
    except Unavailable:
        pass
    await attempt(b"last", store.put(key("last"), b"last", expected=0))


KINDS: dict[str, dict[str, Any]] = {
    "a statement fails": {},
    "a statement fails by an I/O error": {"code": sqlite3.SQLITE_IOERR | 3 << 8, "message": "disk I/O error"},
    "a statement is executed but reported as failed": {"done_first": True},
    "writes fail until repaired": {"only": WRITES, "lasting": True},
    "writes are executed but reported as failed until repaired": {"only": WRITES, "done_first": True, "lasting": True},
    "everything fails until repaired": {"lasting": True},
}


@pytest.mark.parametrize("kind", KINDS)
async def test_no_acknowledged_write_is_lost_whichever_statement_fails(disk: Disk, tmp_path: Path, kind: str) -> None:
    for name, value in KINDS[kind].items():
        setattr(disk, name, value)
    for number in range(1, 200):
        file = tmp_path / str(number) / "noxu.db"
        disk.armed, disk.statements, disk.fails = False, 0, number
        store = await SqliteStore.open(file, "normal")
        seen: list[Event] = []
        following = asyncio.create_task(_follow(store, seen))
        disk.armed = True
        outcomes: dict[bytes, Any] = {}
        async with hang_guard():
            await traffic(store, outcomes)
        disk.armed = False
        await recovered(store)
        await store.put(key("after"), b"after", expected=0)
        await store.close()
        await following
        await _verify(file, outcomes, seen)
        if not disk.reached:
            assert not any(isinstance(outcome, Exception) for outcome in outcomes.values())
            break
    else:
        raise AssertionError
    assert number > 10


@pytest.mark.parametrize("kind", KINDS)
async def test_a_transaction_is_all_or_nothing_whichever_statement_fails(disk: Disk, tmp_path: Path, kind: str) -> None:
    for name, value in KINDS[kind].items():
        setattr(disk, name, value)
    changed = {key("deleted"): None, key("changed"): b"now", key("created"): b"new"}

    async def state(store: SqliteStore) -> dict[Key, bytes]:
        return {item.key: item.value for item in (await store.list(EVERYTHING)).items}

    for number in range(1, 200):
        file = tmp_path / str(number) / "noxu.db"
        disk.armed, disk.statements, disk.fails = False, 0, number
        store = await SqliteStore.open(file, "normal")
        for name in ("deleted", "changed"):
            await store.put(key(name), b"then", expected=0)
        before = await state(store)
        after = {each: value for each, value in {**before, **changed}.items() if value is not None}

        async def decide(store: SqliteStore = store) -> list[StagedWrite]:
            states = [await store.get(each) for each in changed]
            return [
                StagedWrite(each, value, now.revision if now else 0)
                for (each, value), now in zip(changed.items(), states, strict=True)
            ]

        disk.armed = True
        async with hang_guard():
            [outcome] = await asyncio.gather(store.transact(decide), return_exceptions=True)
        disk.armed = False
        await recovered(store)
        now = await state(store)
        assert now in (before, after)
        if isinstance(outcome, int):
            assert (now, outcome) == (after, 6)
        else:
            assert isinstance(outcome, OutcomeUnknown) or (isinstance(outcome, Unavailable) and now == before), outcome
        await store.put(key("last"), b"last", expected=0)  # others go on
        events = await history(store)
        assert [event.revision for event in events] == list(range(2, store.revision + 1))
        await store.close()
        assert check(file).problems == []
        reopened = await SqliteStore.open(file, "normal")
        assert await state(reopened) == {**now, key("last"): b"last"}
        await reopened.close()
        if not disk.reached:
            assert now == after
            break
    else:
        raise AssertionError


# The same for what SQLite does to its files: writes, truncations, syncs and deletions.

FILE_ERRORS: dict[str, tuple[int, type[Operation] | tuple[()], bool]] = {
    "the disk is full for one write": (sqlite3.SQLITE_FULL, Write, False),
    "the disk is full until space is freed": (sqlite3.SQLITE_FULL, Write, True),
    "an operation fails by an I/O error": (sqlite3.SQLITE_IOERR | 3 << 8, (), False),
    "all operations fail by I/O errors until repaired": (sqlite3.SQLITE_IOERR | 3 << 8, (), True),
    "a sync fails": (sqlite3.SQLITE_IOERR | 4 << 8, Sync, False),
    "all syncs fail until repaired": (sqlite3.SQLITE_IOERR | 4 << 8, Sync, True),
}


@pytest.mark.parametrize("kind", FILE_ERRORS)
async def test_no_acknowledged_write_is_lost_whichever_operation_on_a_file_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, record_property: Callable[[str, object], None]
) -> None:
    monkeypatch.setattr(module, "RETRY_INTERVAL", 0.005)
    code, only, lasting = FILE_ERRORS[kind]
    failures = refused = 0
    for number in range(1, 2_000, STRIDE):
        root = tmp_path / str(number)
        root.mkdir()
        counted = 0
        armed = False

        def fails(operation: Operation) -> int:
            nonlocal counted
            if not armed or (only and not isinstance(operation, only)):  # noqa: B023 - called in this iteration
                return 0
            counted += 1
            return code if counted == number or (lasting and counted > number) else 0  # noqa: B023

        files = SqliteFiles(root)
        files.fails = fails
        with files():
            store = await SqliteStore.open(root / "noxu.db")
            seen: list[Event] = []
            following = asyncio.create_task(_follow(store, seen))
            armed = True
            outcomes: dict[bytes, Any] = {}
            async with hang_guard():
                await traffic(store, outcomes)
            armed = False
            await recovered(store)
            await store.put(key("after"), b"after", expected=0)
            await store.close()
            await following
            await _verify(root / "noxu.db", outcomes, seen)
        refused += sum(isinstance(outcome, (Unavailable, OutcomeUnknown)) for outcome in outcomes.values())
        if counted < number:
            assert not any(isinstance(outcome, Exception) for outcome in outcomes.values())
            break
        failures += 1
    else:
        raise AssertionError
    record_property("failures", failures)
    record_property("writes refused", refused)
    assert failures > 3
    assert refused


async def _follow(store: SqliteStore, seen: list[Event]) -> None:
    async for batch in store.watch(after=1):
        seen += batch.events


async def _verify(file: Path, outcomes: dict[bytes, Any], seen: list[Event]) -> None:
    assert check(file).problems == []
    store = await SqliteStore.open(file, "normal")
    events = await history(store)
    compacted = max(store.compacted, 1)
    assert [event for event in seen if event.revision > compacted] == events  # the complete history
    assert [event.revision for event in seen] == list(range(2, store.revision + 1))
    happened = {
        event.value or b"delete" + (event.previous.value if event.previous else b"")[6:]: event for event in seen
    }
    for value, outcome in outcomes.items():
        if isinstance(outcome, int):
            assert happened[value].revision == outcome
        elif not isinstance(outcome, OutcomeUnknown):
            assert value not in happened, (value, outcome)
    await store.close()


# Single errors.


async def test_after_a_failed_commit_the_outcome_is_unknown_and_then_shown_as_not_happened(
    store: SqliteStore, disk: Disk
) -> None:
    disk.only, disk.fails, disk.armed = ("COMMIT",), 1, True
    with pytest.raises(OutcomeUnknown, match="disk is full"):
        await store.put(key("a"), b"1", expected=0)
    assert await store.get(key("a")) is None
    assert store.revision == 2
    assert await store.put(key("a"), b"2", expected=0) == 3


async def test_after_a_commit_that_failed_although_it_happened_the_outcome_is_unknown_and_then_shown(
    store: SqliteStore, disk: Disk
) -> None:
    watch = store.watch(after=2)
    disk.only, disk.fails, disk.done_first, disk.armed = ("COMMIT",), 1, True, True
    with pytest.raises(OutcomeUnknown):
        await store.put(key("there"), b"1", expected=2)
    assert await store.get(key("there")) == KeyValue(key("there"), b"1", 3)
    assert store.revision == 3
    batch = await anext(watch)
    assert list(batch.events) == [Event(key("there"), 3, b"1", KeyValue(key("there"), b"there", 2))]
    assert await store.put(key("there"), b"2", expected=3) == 4


async def test_a_write_that_fails_before_the_commit_has_not_happened(store: SqliteStore, disk: Disk) -> None:
    disk.only, disk.fails, disk.armed = ("INSERT",), 1, True
    with pytest.raises(Unavailable, match="disk is full"):
        await store.put(key("a"), b"1", expected=0)
    assert await store.put(key("a"), b"2", expected=0) == 3


async def test_every_writer_of_a_failed_commit_gets_an_error_and_later_writers_continue(
    store: SqliteStore, disk: Disk
) -> None:
    disk.only, disk.fails, disk.armed = ("COMMIT",), 1, True
    first = [asyncio.create_task(store.put(key(f"first{number}"), b"1", expected=0)) for number in range(5)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    behind = [asyncio.create_task(store.put(key(f"behind{number}"), b"2", expected=0)) for number in range(5)]
    outcomes = await asyncio.gather(*first, *behind, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [OutcomeUnknown] * 5 + [int] * 5
    assert [event.value for event in await history(store)] == [b"there"] + [b"2"] * 5


async def test_a_write_that_conflicts_with_a_failing_one_succeeds(store: SqliteStore, disk: Disk) -> None:
    disk.only, disk.fails, disk.armed = ("COMMIT",), 1, True
    winner = asyncio.create_task(store.put(key("a"), b"1", expected=0))
    await asyncio.sleep(0)
    loser = asyncio.create_task(store.put(key("a"), b"2", expected=0))
    with pytest.raises(OutcomeUnknown):
        await winner
    assert await loser == 3
    assert await store.get(key("a")) == KeyValue(key("a"), b"2", 3)


async def test_while_the_disk_accepts_no_writes_reads_continue_and_writes_are_refused(
    store: SqliteStore, disk: Disk, tmp_path: Path
) -> None:
    disk.only, disk.lasting, disk.armed = WRITES, True, True
    with pytest.raises((Unavailable, OutcomeUnknown)):
        await store.put(key("a"), b"1", expected=0)
    for _ in range(20):
        assert await store.get(key("there")) == KeyValue(key("there"), b"there", 2)
        assert len((await store.list(EVERYTHING)).items) == 1
        with pytest.raises(Unavailable, match="cannot be written because the disk is full; make room"):
            await store.put(key("a"), b"1", expected=0)
        with pytest.raises(Unavailable):
            await store.compact(2)
        assert "disk is full" in (await store.status()).fault
        assert str(tmp_path) not in (await store.status()).fault  # clients see it
        await asyncio.sleep(0.002)
    disk.armed = False
    await recovered(store)
    assert await store.put(key("a"), b"2", expected=0) == 3


async def test_while_the_disk_cannot_be_read_reads_are_refused(store: SqliteStore, disk: Disk, tmp_path: Path) -> None:
    await store.close()
    store = await SqliteStore.open(tmp_path / "noxu.db")
    disk.lasting, disk.armed, disk.code, disk.message = True, True, sqlite3.SQLITE_IOERR, "disk I/O error"
    with pytest.raises(Unavailable, match="disk I/O error"):
        await store.get(key("there"))
    with pytest.raises(Unavailable, match="disk I/O error"):
        await store.put(key("a"), b"1", expected=0)
    for call in (store.get(key("there")), store.list(EVERYTHING), store.count(EVERYTHING)):
        with pytest.raises(Unavailable):
            await call
    status = await store.status()
    assert (status.keys, "disk I/O error" in status.fault) == (0, True)
    disk.armed = False
    await recovered(store)
    assert await store.get(key("there")) == KeyValue(key("there"), b"there", 2)
    await store.close()


async def test_a_failed_compaction_can_be_repeated(store: SqliteStore, disk: Disk) -> None:
    await store.put(key("there"), b"2", expected=2)
    for number in range(1, 8):
        disk.statements, disk.fails, disk.armed, disk.done_first = 0, number, True, number % 2 == 0
        try:
            await store.compact(3)
        except Unavailable:
            disk.armed = False
            await recovered(store)
            assert (await store.list(EVERYTHING, revision=3)).items[0].value == b"2"
        else:
            break
    assert number > 3
    assert store.compacted == 3
    disk.armed = False
    await store.put(key("a"), b"1", expected=0)


async def test_a_file_that_lost_acknowledged_revisions_is_not_used(
    store: SqliteStore, disk: Disk, tmp_path: Path
) -> None:
    """While the file is being reopened, it is replaced by an older copy without acknowledged writes."""
    other = await SqliteStore.open(tmp_path / "other.db")
    await other.close()
    disk.only, disk.fails, disk.armed = ("COMMIT",), 1, True
    with pytest.MonkeyPatch.context() as patched:
        disconnect = database.disconnect

        async def replace_file(connection: Any) -> None:
            await disconnect(connection)
            (tmp_path / "noxu.db").write_bytes((tmp_path / "other.db").read_bytes())

        patched.setattr(database, "disconnect", replace_file)
        with pytest.raises(OutcomeUnknown):
            await store.put(key("a"), b"1", expected=0)
    with pytest.raises(Unavailable, match="lacks revisions that it had"):
        await store.list(EVERYTHING)
    assert await store.get(key("there")) == KeyValue(key("there"), b"there", 2)  # it is still in memory
    with pytest.raises(Unavailable, match="lacks revisions that it had"):
        await store.put(key("a"), b"1", expected=0)


async def test_a_server_that_opens_the_file_during_recovery_keeps_it(
    store: SqliteStore, disk: Disk, tmp_path: Path
) -> None:
    disk.only, disk.fails, disk.armed = ("COMMIT",), 1, True
    with pytest.MonkeyPatch.context() as patched:
        disconnect = database.disconnect
        other: list[SqliteStore] = []

        async def open_in_between(connection: Any) -> None:
            await disconnect(connection)
            patched.undo()
            other.append(await SqliteStore.open(tmp_path / "noxu.db"))

        patched.setattr(database, "disconnect", open_in_between)
        with pytest.raises(OutcomeUnknown):
            await store.put(key("a"), b"1", expected=0)
    with pytest.raises(Unavailable, match="in use by another process"):
        await store.put(key("a"), b"1", expected=0)
    assert await other[0].put(key("b"), b"1", expected=0) == 3
    await other[0].close()
    await eventually_async(lambda: store.revision == 3)
    assert await store.get(key("b")) == KeyValue(key("b"), b"1", 3)


async def test_a_store_that_cannot_write_can_be_closed(store: SqliteStore, disk: Disk, tmp_path: Path) -> None:
    disk.lasting, disk.armed = True, True
    with pytest.raises(Unavailable):
        await store.put(key("a"), b"1", expected=0)
    await store.close()
    disk.armed = False
    store = await SqliteStore.open(tmp_path / "noxu.db")
    assert store.revision == 2
    await store.close()


async def test_opening_a_file_on_a_failing_disk_is_refused(disk: Disk, tmp_path: Path) -> None:
    for number in range(1, 20):
        disk.statements, disk.fails, disk.armed = 0, number, True
        opening = SqliteStore.open(tmp_path / "noxu.db")
        [outcome] = await asyncio.gather(opening, return_exceptions=True)
        if isinstance(outcome, SqliteStore):
            await outcome.close()
            break
        assert isinstance(outcome, OpenError)
        assert "because the disk is full; make room" in str(outcome)
    assert number > 4


# A disk that is really full.


@contextmanager
def full_at(size: int) -> Iterator[None]:
    """Limit the size of the files of this process, in bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


class SmallDisk:
    """A disk of limited size: files below a directory may not take more, whoever writes to them."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root, self.capacity = root, sys.maxsize
        self.files = SqliteFiles(root)
        self.files.fails = self.fails
        self._allocate = disk_files.allocate
        monkeypatch.setattr(disk_files, "allocate", self.allocate)

    @property
    def used(self) -> int:
        return sum(path.stat().st_size for path in self.root.iterdir())

    @property
    def free(self) -> int:
        return self.capacity - self.used

    def fails(self, operation: Operation) -> int:
        if not isinstance(operation, Write):
            return 0
        file = Path(operation.path)
        grows = operation.offset + len(operation.data) - (file.stat().st_size if file.exists() else 0)
        return sqlite3.SQLITE_FULL if grows > max(self.free, 0) else 0

    def allocate(self, handle: int, size: int) -> None:
        if size - os.fstat(handle).st_size > self.free:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._allocate(handle, size)


async def fill(store: SqliteStore) -> dict[int, int]:
    """Write until nothing but deletions is accepted. The revisions of the keys."""
    revisions: dict[int, int] = {}
    for number in range(10_000):
        try:
            revisions[number] = await store.put(key(number), os.urandom(3000 if number % 2 else 1), expected=0)
        except (Unavailable, OutcomeUnknown):
            if store._only_deletes:
                return revisions
    raise AssertionError("the disk is not full")


ENDS: dict[str, bool] = {"the server goes on": False, "the server is killed, and started again": True}


@pytest.mark.parametrize("is_killed", ENDS.values(), ids=ENDS)
def test_what_has_filled_a_disk_can_be_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_killed: bool
) -> None:
    monkeypatch.setattr(module, "RETRY_INTERVAL", 0.005)
    disk = SmallDisk(tmp_path, monkeypatch)

    async def run() -> None:
        store = await SqliteStore.open(tmp_path / "noxu.db")
        disk.capacity = disk.used + 3_000_000
        revisions = await fill(store)
        if is_killed:
            await store._disconnect()
            store._writer.cancel()
            store = await SqliteStore.open(tmp_path / "noxu.db")
        for number, revision in list(revisions.items())[:100]:
            await store.delete(key(number), expected=revision)
            if number % 7 == 0 and not is_killed:  # a start has moved the log into the file, and may have made room
                with pytest.raises(Unavailable, match="the disk is full, and only deletions are accepted; make room"):
                    await store.put(key("new"), b"1", expected=0)
                assert "the disk is full" in (await store.status()).fault
        await store.compact(store.revision)  # which frees pages of the file
        disk.capacity = sys.maxsize
        await recovered(store)
        assert await store.put(key("new"), b"2", expected=0) > max(revisions.values())
        assert disk.used > disk_files.SIZE  # there is a reserve again
        await store.close()

    with disk.files():
        asyncio.run(run())
    assert [path.name for path in tmp_path.iterdir()] == ["noxu.db"]
    assert check(tmp_path / "noxu.db").problems == []


def test_a_deletion_is_answered_on_a_disk_that_others_fill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one that fails is repeated with the room that is kept for it."""
    monkeypatch.setattr(module, "RETRY_INTERVAL", 0.005)
    disk = SmallDisk(tmp_path, monkeypatch)

    async def run() -> None:
        store = await SqliteStore.open(tmp_path / "noxu.db")
        revision = await store.put(key("a"), b"1", expected=0)
        disk.capacity = disk.used
        assert await store.delete(key("a"), expected=revision) == revision + 1
        with pytest.raises(Unavailable, match="only deletions are accepted"):
            await store.put(key("b"), b"1", expected=0)
        await store.close()

    with disk.files():
        asyncio.run(run())


@pytest.mark.parametrize("size", [40_000, 100_000, 400_000, 1_000_000])
async def test_a_full_disk_refuses_writes_until_space_is_freed(
    tmp_path: Path, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RETRY_INTERVAL", 0.005)
    file = tmp_path / "noxu.db"
    store = await SqliteStore.open(file)
    seen: list[Event] = []
    following = asyncio.create_task(_follow(store, seen))
    await store.put(key("there"), b"there", expected=0)
    written = {2: b"there"}
    unknown = set()

    async def write(writer: int) -> None:
        for number in range(40):
            value = b"%d-%d" % (writer, number) + bytes(5_000)
            try:
                written[await store.put(key(f"{writer}-{number}"), value, expected=0)] = value
            except Unavailable:
                await asyncio.sleep(0.001)
            except OutcomeUnknown:
                unknown.add(value)

    with full_at(size):
        await asyncio.gather(*map(write, range(8)))
        assert len(written) < 321
        assert (await store.get(key("there"))) == KeyValue(key("there"), b"there", 2)
        assert len((await store.list(EVERYTHING)).items) == store.revision - 1
    await recovered(store)
    await store.put(key("after"), b"after", expected=0)
    events = await history(store)
    await store.close()
    await following
    assert seen == events
    assert check(file).problems == []
    shown = {event.revision: event.value for event in events}
    assert written.items() <= shown.items()
    assert set(shown.values()) - set(written.values()) - {b"after"} <= unknown


def test_room_is_found_where_the_system_has_no_call_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "posix_fallocate", raising=False)
    kept = disk_files.Reserve(tmp_path / "noxu.db")
    assert kept.take(spare=disk_files.SIZE)
    assert (tmp_path / "noxu.db-reserve").stat().st_size == disk_files.SIZE
    assert kept.give()
    assert not kept.give()
