"""Verify a file: `noxu check FILE`. It reads and reports, and changes nothing.

SQLite's own `integrity_check` verifies pages, and the index against the table. Then every row of the log is read: its
checksum, the row that it replaced, whether a revision after the compacted one is missing, and whether compaction was
complete. The file must not be in use. A copy, made together with its `-wal` file, can be checked.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from noxu_storage import database, migrations
from noxu_storage.database import LOCK_TIMEOUT
from noxu_storage.migrations import Watermarks
from noxu_storage.rows import COLUMNS, Row, decode_text, intact
from noxu_storage.types import FIRST, Key, KeyValue, OpenError, Progress, Revision, no_progress

SPAN: Final = 500  # revisions read at a time
MAX_MESSAGES: Final = 100  # of integrity_check, which then stops
STEPS: Final = 1_000_000  # of SQLite's virtual machine between two reports of progress

_SELECT_SPAN: Final = f"SELECT {COLUMNS} FROM log WHERE revision > ? ORDER BY revision LIMIT ?"  # noqa: S608 — constants


Verify: TypeAlias = Callable[[KeyValue], str]
"""What is wrong with a state; empty if nothing is."""


def accept(_: KeyValue) -> str:
    """Nothing is wrong, whatever the value is."""
    return ""


class Problem(NamedTuple):
    """What is wrong with a row; with the store, if `revision` is None. The key is given if it is known."""

    message: str
    revision: Revision | None = None
    key: Key | None = None
    store: str = "file"

    def __str__(self) -> str:
        row = self.store if self.revision is None else f"revision {self.revision}"
        key = "" if self.key is None else f" ({' '.join(map(str, self.key))})"
        return f"{row}{key}: {self.message}".encode("utf-8", "backslashreplace").decode()


class Report(NamedTuple):
    """`keys` is the number of keys that exist now, `rows` of all rows including history. A sound file has no `problems`."""

    path: str
    version: int
    revision: Revision
    compacted: Revision
    keys: int
    rows: int
    problems: Sequence[Problem]


def check(path: str | PathLike[str], progress: Progress = no_progress, verify: Verify = accept) -> Report:
    """Verify a file, and current states with `verify`. `progress` counts rows.

    Raises OpenError if the file is in use, or is not a store.
    """
    file = Path(path).absolute()
    if not file.is_file():
        raise OpenError(f"{file} is not a file")
    try:
        with open_read_only(file) as connection:
            return _report(str(file), connection, progress, verify)
    except database.SQLITE_ERRORS as error:
        code = database.result_code(error)
        if code == sqlite3.SQLITE_CORRUPT:
            return Report(str(file), 0, 0, 0, 0, 0, [Problem(f"cannot be read: {error}")])
        if code == sqlite3.SQLITE_BUSY:
            raise OpenError(f"{file} is in use; stop the server, or check a copy") from error
        if code == sqlite3.SQLITE_CANTOPEN:
            raise OpenError(
                f"{file} cannot be read here; copy it and its -wal file to a directory of your own"
            ) from error
        raise database.open_error(file, error) from error


@contextmanager
def open_read_only(file: Path) -> Iterator[sqlite3.Connection]:
    """A read transaction, which keeps others from using the file. Side files that SQLite creates for it are removed."""
    wal, shm = Path(f"{file}-wal"), Path(f"{file}-shm")
    created = [path for path in (wal, shm) if not path.exists()]
    # In a directory that is not writable, a file without a WAL is not in use, and can be read as immutable.
    immutable = not os.access(file.parent, os.W_OK) and not (wal.exists() and wal.stat().st_size)
    options = "mode=ro&immutable=1" if immutable else "mode=ro"
    with closing(
        sqlite3.connect(f"{file.as_uri()}?{options}", uri=True, timeout=LOCK_TIMEOUT, isolation_level=None)
    ) as connection:
        connection.text_factory = decode_text
        connection.execute("BEGIN")
        connection.execute("SELECT 1 FROM sqlite_master").close()
        try:
            yield connection
        finally:
            for path in created:
                path.unlink(missing_ok=True)


def _report(path: str, connection: sqlite3.Connection, progress: Progress, verify: Verify) -> Report:
    version = migrations.format_of(path, *connection.execute(migrations.SELECT_IDENTITY).fetchone())
    if not version:
        raise OpenError(f"{path} is empty")
    problems = _integrity_check(connection, progress)
    watermarks = migrations.watermarks(path, *connection.execute(migrations.SELECT_WATERMARKS).fetchone())
    verifier = _Verifier(watermarks, verify)
    total = _count_rows(connection)
    for revision, row in _rows(connection, watermarks.revision):
        progress(verifier.rows, total)
        verifier.add(revision, row)
    return Report(
        path,
        version,
        watermarks.revision,
        watermarks.compacted,
        verifier.keys,
        verifier.rows,
        problems + verifier.problems + verifier.invalid(),
    )


def _count_rows(connection: sqlite3.Connection) -> int:
    """0 if they cannot be counted."""
    with suppress(*database.SQLITE_ERRORS):
        return int(connection.execute("SELECT count(*) FROM log").fetchone()[0])
    return 0


def _integrity_check(connection: sqlite3.Connection, progress: Progress) -> list[Problem]:
    """The problems that SQLite itself finds."""

    def go_on() -> int:
        progress(0, 0)
        return 0

    connection.set_progress_handler(go_on, STEPS)
    try:
        messages = connection.execute(f"PRAGMA integrity_check({MAX_MESSAGES})").fetchall()
    except database.SQLITE_ERRORS as error:  # a problem that it cannot report in a message
        return [Problem(str(error))]
    finally:
        connection.set_progress_handler(None, 0)
    return [Problem(str(message)) for (message,) in messages if message != "ok"]


def _rows(connection: sqlite3.Connection, newest: Revision) -> Iterator[tuple[Revision, Row | None]]:
    """Every row in the order of the revisions; None for one that cannot be read."""
    seen = 0
    while seen < newest:
        try:
            rows = connection.execute(_SELECT_SPAN, (seen, SPAN)).fetchall()
        except database.SQLITE_ERRORS:  # one of the rows is unreadable: read them one at a time
            for revision in range(seen + 1, min(seen + SPAN, newest) + 1):
                try:
                    row = connection.execute(database.select_rows(1), (revision,)).fetchone()
                except database.SQLITE_ERRORS:
                    yield revision, None
                else:
                    if row is not None:
                        yield revision, row
            seen += SPAN
        else:
            for row in rows:
                yield row[3], row
            seen = rows[-1][3] if rows else newest


class _Verifier:
    """Verifies rows in the order of their revisions, each against the rows before it."""

    def __init__(self, watermarks: Watermarks, verify: Verify) -> None:
        self.rows = 0
        self._verify = verify
        self._invalid: dict[Key, str] = {}  # what is wrong with the last row of a key
        self.problems: list[Problem] = []
        self._watermarks = watermarks
        self._newest: dict[Key, tuple[Revision, bool]] = {}  # the last row of a key; whether it is a delete
        self._next = max(watermarks.compacted, FIRST) + 1  # from this revision on, every revision has a row
        self._last_corrupt = 0

    @property
    def keys(self) -> int:
        return sum(not deleted for _, deleted in self._newest.values())

    def invalid(self) -> list[Problem]:
        """What is wrong with current states."""
        return [Problem(why, self._newest[key][0], key) for key, why in self._invalid.items()]

    def add(self, revision: Revision, row: Row | None) -> None:
        """`row` is None if it cannot be read."""
        self.rows += 1
        if revision > self._next:
            self.problems.append(Problem(f"missing, up to revision {revision - 1}", self._next))
            self._last_corrupt = revision - 1
        self._next = max(self._next, revision + 1)
        if row is not None and intact(row):
            key, value = Key(row[0], row[1], row[2]), row[6]
            self._add_intact(key, revision, row[4], deleted=value is None)
            self._invalid.pop(key, None)
            if value is not None and (why := self._verify(KeyValue(key, value, revision))):
                self._invalid[key] = why
            return
        self._last_corrupt = revision
        if row is None:
            self.problems.append(Problem("cannot be read", revision))
        else:
            self.problems.append(Problem("does not match its checksum", revision, Key(row[0], row[1], row[2])))

    def _add_intact(self, key: Key, revision: Revision, previous: Revision, *, deleted: bool) -> None:
        """Verify that an intact row replaces the row before it of the same key.

        For example, the key has rows at 3 and 7, and `previous` of the row at 7 must be 3. If the row at 3 was a delete,
        it must be 0. If compaction has left no row before 7, it may be any revision. If a row between 3 and 7 is corrupt or
        missing, that row may have had this key, so nothing is reported.
        """
        last, was_deleted = self._newest.get(key, (0, True))
        self._newest[key] = (revision, deleted)
        replaced = 0 if was_deleted else last
        compacted = not replaced and revision <= self._watermarks.compacted
        if previous != replaced and not compacted and self._last_corrupt <= last:
            self.problems.append(
                Problem(f"replaces revision {previous} and follows revision {replaced}", revision, key)
            )
        if replaced and revision <= self._watermarks.swept:
            self.problems.append(Problem(f"compacted after revision {revision} and not removed", replaced, key))
        if deleted and revision < self._watermarks.swept:  # at `swept` itself a delete may be kept, as the newest row
            self.problems.append(Problem("a delete, compacted and not removed", revision, key))
