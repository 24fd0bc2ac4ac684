"""The queries, which SQLite has to answer from the index, and the errors."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from noxu_storage import database, migrations
from noxu_storage.database import (
    count_keys,
    key_range,
    open_error,
    read_error,
    result_code,
    select_changes,
    select_keys,
    select_rows,
    select_states,
)
from noxu_storage.rows import decode_text, row
from noxu_storage.types import EVERYTHING, Corrupt, Key, Prefix, Revision, Unavailable
from tests.rows import rows


@pytest.fixture(scope="module")
def connection() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(migrations.upgrade_script(0))
        connection.text_factory = decode_text
        at: dict[Key, Revision] = {}
        for revision in range(2, 2002):
            key = Key(f"g/c{revision % 2}", f"p{revision % 3}/", f"n{revision % 501:03}")
            value = None if revision % 7 == 0 and key in at else b"%d" % revision
            connection.execute(database.INSERT, row(key, revision, at.get(key, 0), value))
            at[key] = revision if value is not None else 0
        yield connection


def plan(connection: sqlite3.Connection, sql: str, parameters: list[Any]) -> list[str]:
    return [
        step
        for *_, step in connection.execute(f"EXPLAIN QUERY PLAN {sql}", parameters)
        if " log" in step or "new" in step
    ]


AFTER = Key("g/c1", "p1/", "n100")


@pytest.mark.parametrize(
    ("prefix", "after", "used"),
    [
        (EVERYTHING, None, "SCAN log USING INDEX log_by_key"),
        (EVERYTHING, AFTER, "SEARCH log USING INDEX log_by_key ((collection,partition,name)>(?,?,?))"),
        (Prefix("g/c1"), None, "SEARCH log USING INDEX log_by_key (collection=?)"),
        (Prefix("g/c1"), AFTER, "SEARCH log USING INDEX log_by_key (collection=? AND (partition,name)>(?,?))"),
        (Prefix("g/c1", "p1/"), None, "SEARCH log USING INDEX log_by_key (collection=? AND partition=?)"),
        (Prefix("g/c1", "p1/"), AFTER, "SEARCH log USING INDEX log_by_key (collection=? AND partition=? AND name>?)"),
    ],
)
@pytest.mark.parametrize("query", [select_keys, select_states, count_keys])
def test_a_list_reads_a_range_of_the_index(
    connection: sqlite3.Connection, prefix: Prefix, after: Key | None, used: str, query: Any
) -> None:
    condition, parameters = key_range(prefix, after)
    steps = plan(connection, query(condition), [*parameters, 1000, *([] if query is count_keys else [10])])
    assert steps[0].replace("COVERING ", "") == used
    if query is select_states:
        assert steps[1].startswith("SEARCH log USING INTEGER PRIMARY KEY (rowid=?)")


@pytest.mark.parametrize(
    ("sql", "parameters", "used"),
    [
        (database.SELECT_STATE, [*AFTER, 9], "SEARCH log USING INDEX log_by_key (collection=? AND partition=? AND name=? AND revision<?)"),
        (select_rows(2), [2, 3], "SEARCH log USING INTEGER PRIMARY KEY (rowid=?)"),
        (select_changes(EVERYTHING)[0], [2, 9], "SEARCH new USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"),
        (select_changes(Prefix("g/c1"))[0], ["g/c1", 2, 9], "SEARCH new USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"),
        (database.SWEEP, {"first": 2, "last": 9}, "SEARCH log USING INTEGER PRIMARY KEY (rowid=?)"),
    ],
)  # fmt: skip
def test_other_queries_read_rows_by_revision(
    connection: sqlite3.Connection, sql: str, parameters: Any, used: str
) -> None:
    assert plan(connection, sql, parameters)[0] == used


def test_no_query_sorts(connection: sqlite3.Connection) -> None:
    for prefix in (EVERYTHING, Prefix("g/c1"), Prefix("g/c1", "p1/")):
        condition, parameters = key_range(prefix)
        history, given = select_changes(prefix)
        for sql, values in (
            (select_keys(condition), [*parameters, 9, 9]), (count_keys(condition), [*parameters, 9]), (history, [*given, 2, 9]),
        ):  # fmt: skip
            steps = [step for *_, step in connection.execute(f"EXPLAIN QUERY PLAN {sql}", values)]
            assert not [step for step in steps if "B-TREE" in step]


PREFIXES = [EVERYTHING, Prefix("g/c1"), Prefix("g/c0", "p2/"), Prefix(None, "p0/"), Prefix("g")]
POSITIONS = [None, Key("g/c0", "p2/", "n250"), Key("g/c1", "", ""), Key("a", "", ""), Key("z", "", "")]


@rows("prefix, after, revision", product(PREFIXES, POSITIONS, [1, 2, 700, 2001]))
def test_queries_select_the_keys_of_the_prefix(
    connection: sqlite3.Connection, prefix: Prefix, after: Key | None, revision: Revision
) -> None:
    state: dict[Key, Revision] = {}
    for collection, partition, name, at, deleted in connection.execute(
        "SELECT collection, partition, name, revision, deleted FROM log WHERE revision <= ? ORDER BY revision",
        [revision],
    ):
        state[Key(collection, partition, name)] = 0 if deleted else at
    expected = [(*k, at) for k, at in sorted(state.items()) if at and prefix.covers(k) and (after is None or k > after)]
    condition, parameters = key_range(prefix, after)
    assert [each[:4] for each in connection.execute(select_keys(condition), [*parameters, revision, 9999])] == expected
    assert [each[:4] for each in connection.execute(select_states(condition), [*parameters, revision, 5])] == expected[
        :5
    ]
    assert connection.execute(count_keys(condition), [*parameters, revision]).fetchone() == (len(expected),)


def test_a_list_continues_after_a_name_that_is_not_unicode(connection: sqlite3.Connection) -> None:
    condition, parameters = key_range(Prefix("g/c1", "p1/"), Key("g/c1", "p1/", "n1\udcff"))
    [first] = connection.execute(select_keys(condition), [*parameters, 2001, 1])
    assert first[2] > "n1\udcff"


def an_error(code: int) -> sqlite3.Error:
    error = sqlite3.OperationalError("some text")
    error.sqlite_errorcode = code
    return error


DECODING = UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")


@rows(
    ("error", "message"),
    [
        (an_error(sqlite3.SQLITE_BUSY), "f.db is in use by another process; stop that one, or name another data directory"),
        (an_error(sqlite3.SQLITE_NOTADB), "f.db is not a store; name another data directory, or restore a backup"),
        (an_error(sqlite3.SQLITE_CORRUPT | 1 << 8), "f.db is corrupt or truncated; `noxu check` says where, or restore a backup"),
        (an_error(sqlite3.SQLITE_CANTOPEN | 2 << 8), "f.db cannot be opened; it must be a file in a directory that this user may write to"),
        (an_error(sqlite3.SQLITE_READONLY | 3 << 8), "f.db cannot be written; the file and its directory must be writable for this user"),
        (an_error(sqlite3.SQLITE_FULL), "f.db cannot be written because the disk is full; make room"),
        (an_error(sqlite3.SQLITE_IOERR | 4 << 8), "f.db cannot be used: some text"),
        (sqlite3.ProgrammingError("no code at all"), "f.db cannot be used: no code at all"),
        (DECODING, "f.db is corrupt or truncated; `noxu check` says where, or restore a backup"),
        (PermissionError(13, "Permission denied"), "f.db cannot be used: Permission denied"),
    ],
)  # fmt: skip
def test_an_open_error_says_what_to_do(error: Exception, message: str) -> None:
    assert str(open_error(Path("f.db"), error)) == message


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (an_error(sqlite3.SQLITE_CORRUPT | 1 << 8), Corrupt),
        (an_error(sqlite3.SQLITE_NOTADB), Corrupt),
        (DECODING, Corrupt),
        (an_error(sqlite3.SQLITE_IOERR | 1 << 8), Unavailable),
        (an_error(sqlite3.SQLITE_NOMEM), Unavailable),
        (sqlite3.ProgrammingError("no code at all"), Unavailable),
    ],
)
def test_a_failed_read_is_corrupt_or_unavailable(error: Exception, kind: type[Exception]) -> None:
    assert type(read_error(error)) is kind


def test_the_result_code_is_the_primary_code() -> None:
    assert result_code(an_error(sqlite3.SQLITE_IOERR | 4 << 8)) == sqlite3.SQLITE_IOERR
