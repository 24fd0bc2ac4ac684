"""`noxu check` reports every problem of a file, and changes nothing."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from noxu_storage import check as module
from noxu_storage.check import Problem, check
from noxu_storage.database import PAGE_SIZE
from noxu_storage.rows import row
from noxu_storage.sqlite import SqliteStore
from noxu_storage.types import Key, OpenError


def key(name: str) -> Key:
    return Key("g/things", "p/", name)


A, B, C = map(key, "abc")


async def _fill(file: Path, compact: int = 0) -> None:
    store = await SqliteStore.open(file)
    await store.put(A, b"a1", expected=0)  # 2
    await store.put(B, b"b1", expected=0)  # 3
    await store.put(A, b"a2", expected=2)  # 4
    await store.delete(B, expected=3)  # 5
    await store.put(B, b"b2", expected=0)  # 6
    await store.put(C, b"c1" * 9000, expected=0)  # 7
    await store.put(A, b"a3", expected=4)  # 8
    if compact:
        await store.compact(compact)
    await store.close()


@pytest.fixture
def filled(file: Path) -> Path:
    asyncio.run(_fill(file))
    return file


def change(file: Path, script: str) -> None:
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.executescript(script)


def problems_of(file: Path) -> list[str]:
    return [str(problem) for problem in check(file).problems]


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


@pytest.mark.parametrize(("compacted", "rows"), [(0, 7), (1, 7), (3, 7), (4, 6), (5, 4), (6, 4), (7, 4), (8, 3)])
def test_a_sound_file_has_no_problems(file: Path, compacted: int, rows: int) -> None:
    asyncio.run(_fill(file, compacted))
    before = contents(file.parent)
    report = check(str(file))
    assert report == (str(file), 2, 8, compacted, 3, rows, [])
    assert contents(file.parent) == before


def test_a_new_file_has_no_problems(file: Path) -> None:
    async def make() -> None:
        await (await SqliteStore.open(file)).close()

    asyncio.run(make())
    assert check(file) == (str(file), 2, 1, 0, 0, 0, [])


PROBLEMS: dict[str, tuple[int, str, list[str]]] = {
    "a value": (
        0, "UPDATE log SET value = x'00' WHERE revision = 4", ["revision 4 (g/things p/ a): does not match its checksum"],
    ),
    "a checksum": (
        0, "UPDATE log SET crc = crc + 1 WHERE revision = 3", ["revision 3 (g/things p/ b): does not match its checksum"],
    ),
    "a name": (
        0, "UPDATE log SET name = 'x' WHERE revision = 4", ["revision 4 (g/things p/ x): does not match its checksum"],
    ),
    "a value that became a delete": (
        0, "UPDATE log SET value = NULL WHERE revision = 8", ["revision 8 (g/things p/ a): does not match its checksum"],
    ),
    "several rows": (
        0, "UPDATE log SET value = x'00' WHERE revision IN (2, 6, 8)",
        [f"revision {revision} (g/things p/ {name}): does not match its checksum" for revision, name in ((2, "a"), (6, "b"), (8, "a"))],
    ),
    "a revision missing": (0, "DELETE FROM log WHERE revision = 7", ["revision 7: missing, up to revision 7"]),
    "revisions missing": (0, "DELETE FROM log WHERE revision IN (2, 3, 4)", ["revision 2: missing, up to revision 4"]),
    "a state missing that a later one replaced": (
        5, "DELETE FROM log WHERE revision = 4", ["revision 8 (g/things p/ a): replaces revision 4 and follows revision 0"],
    ),
    "watermarks before those of a compaction": (
        5, "UPDATE meta SET value = 0", ["revision 2: missing, up to revision 3", "revision 5: missing, up to revision 5"],
    ),
    "a delete that compaction should have removed": (
        0, "UPDATE meta SET value = 6", [
            "revision 2 (g/things p/ a): compacted after revision 4 and not removed",
            "revision 3 (g/things p/ b): compacted after revision 5 and not removed",
            "revision 5 (g/things p/ b): a delete, compacted and not removed",
        ],
    ),
    "compaction that has not been carried out": (0, "UPDATE meta SET value = 6 WHERE name = 'compacted'", []),
    "an index entry missing": (
        0, "PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = sql || ' WHERE revision <> 6' WHERE name = 'log_by_key';"
        "PRAGMA writable_schema = RESET; REINDEX; PRAGMA writable_schema = ON;"
        "UPDATE sqlite_master SET sql = replace(sql, ' WHERE revision <> 6', '') WHERE name = 'log_by_key'",
        ["file: row 5 missing from index log_by_key", "file: wrong # of entries in index log_by_key"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", PROBLEMS)
def test_every_problem_is_reported(file: Path, kind: str) -> None:
    compacted, script, expected = PROBLEMS[kind]
    asyncio.run(_fill(file, compacted))
    change(file, script)
    before = contents(file.parent)
    assert sorted(problems_of(file)) == sorted(expected)  # versions of SQLite differ in the order of its own
    assert contents(file.parent) == before


def write_previous(file: Path, revision: int, previous: int) -> None:
    """Write a row with a wrong `previous` and a checksum that matches: not bit rot, but a bug of the store."""
    with closing(sqlite3.connect(file)) as connection, connection:
        found = connection.execute("SELECT collection, partition, name, value FROM log WHERE revision = ?", [revision])
        *columns, value = found.fetchone()
        crc = row(Key(*columns), revision, previous, value)[5]
        connection.execute("UPDATE log SET previous = ?, crc = ? WHERE revision = ?", (previous, crc, revision))


@pytest.mark.parametrize(
    ("compacted", "revision", "previous", "expected"),
    [
        (0, 8, 2, ["revision 8 (g/things p/ a): replaces revision 2 and follows revision 4"]),
        (0, 8, 0, ["revision 8 (g/things p/ a): replaces revision 0 and follows revision 4"]),
        (0, 6, 3, ["revision 6 (g/things p/ b): replaces revision 3 and follows revision 0"]),
        (0, 2, 1, ["revision 2 (g/things p/ a): replaces revision 1 and follows revision 0"]),
        (4, 4, 3, []),  # the replaced row has been compacted
        (4, 8, 3, ["revision 8 (g/things p/ a): replaces revision 3 and follows revision 4"]),
    ],
)
def test_a_row_must_replace_the_row_before_it_of_the_same_key(
    file: Path, compacted: int, revision: int, previous: int, expected: list[str]
) -> None:
    asyncio.run(_fill(file, compacted))
    write_previous(file, revision, previous)
    assert problems_of(file) == expected


def test_a_corrupt_row_causes_no_problem_with_the_next_one(filled: Path) -> None:
    change(filled, "UPDATE log SET name = 'x' WHERE revision IN (4, 5)")
    assert [problem.revision for problem in check(filled).problems] == [4, 5]


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("UPDATE meta SET value = 99 WHERE name = 'compacted'", "is corrupt: revision=8, compacted=99, swept=0"),
        ("DELETE FROM meta", "is corrupt"),
        ("PRAGMA user_version = 3", "upgrade noxu"),
        ("PRAGMA application_id = 2", "of another program"),
        ("DROP TABLE log", "no such table: log"),
    ],
)
def test_a_contradictory_store_is_refused(filled: Path, script: str, message: str) -> None:
    change(filled, script)
    with pytest.raises(OpenError, match=message):
        check(filled)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: None, "is not a file"),
        (Path.mkdir, "is not a file"),
        (Path.touch, "is empty"),
        (lambda path: path.write_bytes(b"not a database, and long enough to be one" * 99), "is not a store"),
    ],
)
def test_a_file_that_is_not_a_store_is_refused(file: Path, make: Callable[[Path], Any], message: str) -> None:
    make(file)
    with pytest.raises(OpenError, match=message):
        check(file)


@pytest.mark.parametrize("left", [1, 2, 3, 5])
def test_a_truncated_file_is_a_problem(filled: Path, left: int) -> None:
    assert filled.stat().st_size > 5 * PAGE_SIZE
    os.truncate(filled, left * PAGE_SIZE)
    assert problems_of(filled) == ["file: cannot be read: database disk image is malformed"]


def test_unreadable_rows_are_reported_and_the_others_are_read(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SPAN", 3)
    data = filled.read_bytes()
    pages = range(0, len(data), PAGE_SIZE)
    [first, *_] = [
        page for page in pages if data[page + 4 : page + 100] == b"c1" * 48
    ]  # overflow pages of a large value
    with filled.open("r+b") as opened:
        opened.seek(first)
        opened.write(b"\xff" * 4)  # where the next one is
    report = check(filled)
    assert Problem("cannot be read", 7) in report.problems
    assert (report.rows, report.keys) == (7, 2)


def test_the_number_of_messages_of_sqlite_is_limited(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_MESSAGES", 1)
    change(filled, PROBLEMS["an index entry missing"][1])
    assert len(problems_of(filled)) == 1


async def test_a_file_in_use_is_refused_and_not_changed(file: Path) -> None:
    store = await SqliteStore.open(file)
    with pytest.raises(OpenError, match="is in use; stop the server, or check a copy"):
        check(file)
    await store.put(A, b"v", expected=0)
    assert {path.name for path in file.parent.iterdir()} == {"noxu.db", "noxu.db-reserve", "noxu.db-wal"}
    await store.close()


@pytest.mark.parametrize("wal", [True, False], ids=["with its WAL", "without its WAL"])
async def test_a_copy_made_while_the_server_runs_can_be_checked(file: Path, tmp_path: Path, wal: bool) -> None:
    store = await SqliteStore.open(file)
    for name in "abc":
        await store.put(key(name), b"v", expected=0)
    copy = tmp_path / "copy" / "noxu.db"
    copy_file(file, copy, wal=wal)
    await store.put(key("d"), b"v", expected=0)
    before = contents(copy.parent)
    if wal:
        assert check(copy)[2:] == (4, 0, 3, 3, [])
    else:  # everything but the tables is still in the WAL
        assert check(copy)[2:] == (1, 0, 0, 0, [])
    assert contents(copy.parent) == before
    await store.close()


def copy_file(file: Path, copy: Path, *, wal: bool) -> None:
    copy.parent.mkdir()
    shutil.copy(file, copy)
    if wal:
        shutil.copy(f"{file}-wal", f"{copy}-wal")


def test_a_server_cannot_start_while_its_file_is_checked(filled: Path) -> None:
    refused: list[str] = []

    def start_a_server(*_: int) -> None:
        with pytest.raises(OpenError, match="in use") as error:
            asyncio.run(SqliteStore.open(filled))
        refused.append(str(error.value))

    assert check(filled, start_a_server).problems == []
    assert refused


def test_a_file_in_a_read_only_directory_is_opened_as_immutable(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    opened: list[str] = []
    connect = sqlite3.connect

    def record(name: str, **options: Any) -> sqlite3.Connection:
        opened.append(name)
        return connect(name, **options)

    monkeypatch.setattr(sqlite3, "connect", record)
    assert check(filled).problems == []
    assert opened[0].endswith("?mode=ro&immutable=1")
