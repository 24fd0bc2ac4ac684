"""`noxu check FILE`: is everything there, and as it was written? It reads and reports, and never repairs.

SQLite's own `integrity_check` looks at pages, and at the index against the table. Then every row of the log is read:
its checksum, the row that it says it replaced, whether a revision is missing behind the compacted one, and whether
anything is left that compaction has removed. The file must not be in use; a copy, made together with its `-wal` file,
will do.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from os import PathLike
from pathlib import Path
from typing import Final, NamedTuple

from storage import database, migrations
from storage.database import LOCK_PATIENCE
from storage.migrations import Marks
from storage.rows import COLUMNS, Row, decode, intact
from storage.types import FIRST, Key, Revision, Unusable

SPAN: Final = 500  # revisions read at a time
MAX_MESSAGES: Final = 100  # of integrity_check, which stops there

_SOME: Final = f"SELECT {COLUMNS} FROM log WHERE revision > ? ORDER BY revision LIMIT ?"  # noqa: S608 — constants


class Damage(NamedTuple):
    """What is wrong: with a row, as far as it is known with which, or with the file."""

    what: str
    revision: Revision | None = None
    key: Key | None = None

    def __str__(self) -> str:
        row = "file" if self.revision is None else f"revision {self.revision}"
        key = "" if self.key is None else f" ({' '.join(map(str, self.key))})"
        return f"{row}{key}: {self.what}".encode("utf-8", "backslashreplace").decode()


class Report(NamedTuple):
    """`keys` are those that exist now, `rows` all that were read, history included. No `damage`: all is well."""

    path: str
    version: int
    revision: Revision
    compacted: Revision
    keys: int
    rows: int
    damage: Sequence[Damage]


def check(path: str | PathLike[str]) -> Report:
    """Go through a file. Raises Unusable if it is in use, or nothing that could be a store."""
    file = Path(path).absolute()
    if not file.is_file():
        raise Unusable(f"{file} is not a file")
    try:
        with opened(file) as connection:
            return _report(str(file), connection)
    except database.FAILURES as error:
        code = database.result_code(error)
        if code == sqlite3.SQLITE_CORRUPT:
            return Report(str(file), 0, 0, 0, 0, 0, [Damage(f"cannot be read from the beginning on: {error}")])
        if code == sqlite3.SQLITE_BUSY:
            raise Unusable(f"{file} is in use; stop the server, or check a copy") from error
        if code == sqlite3.SQLITE_CANTOPEN:
            raise Unusable(
                f"{file} cannot be read here; copy it and its -wal file to a directory of your own"
            ) from error
        raise database.refusal(file, error) from error


@contextmanager
def opened(file: Path) -> Iterator[sqlite3.Connection]:
    """A read transaction: nobody else can use the file meanwhile. Side files that SQLite makes for it go again."""
    wal, shm = Path(f"{file}-wal"), Path(f"{file}-shm")
    made = [path for path in (wal, shm) if not path.exists()]
    # Where nothing can be written beside it, a file without a WAL can be read as it is: nobody can be using it.
    frozen = not os.access(file.parent, os.W_OK) and not (wal.exists() and wal.stat().st_size)
    options = "mode=ro&immutable=1" if frozen else "mode=ro"
    with closing(
        sqlite3.connect(f"{file.as_uri()}?{options}", uri=True, timeout=LOCK_PATIENCE, isolation_level=None)
    ) as connection:
        connection.text_factory = decode
        connection.execute("BEGIN")
        connection.execute("SELECT 1 FROM sqlite_master").close()
        try:
            yield connection
        finally:
            for path in made:
                path.unlink(missing_ok=True)


def _report(path: str, connection: sqlite3.Connection) -> Report:
    version = migrations.recognise(path, *connection.execute(migrations.IDENTIFY).fetchone())
    if not version:
        raise Unusable(f"{path} is empty")
    damage = _integrity(connection)
    marks = migrations.marks(path, *connection.execute(migrations.MARKS).fetchone())
    audit = _Audit(marks)
    for revision, row in _rows(connection, marks.revision):
        audit.see(revision, row)
    return Report(path, version, marks.revision, marks.compacted, audit.keys, audit.rows, damage + audit.damage)


def _integrity(connection: sqlite3.Connection) -> list[Damage]:
    """What SQLite itself finds wrong."""
    try:
        messages = connection.execute(f"PRAGMA integrity_check({MAX_MESSAGES})").fetchall()
    except database.FAILURES as error:  # it stumbles over what it is looking for
        return [Damage(str(error))]
    return [Damage(str(message)) for (message,) in messages if message != "ok"]


def _rows(connection: sqlite3.Connection, newest: Revision) -> Iterator[tuple[Revision, Row | None]]:
    """Every row in the order of the revisions; None for one that cannot be read."""
    seen = 0
    while seen < newest:
        try:
            rows = connection.execute(_SOME, (seen, SPAN)).fetchall()
        except database.FAILURES:  # one of them: go on one at a time
            for revision in range(seen + 1, min(seen + SPAN, newest) + 1):
                try:
                    row = connection.execute(database.rows(1), (revision,)).fetchone()
                except database.FAILURES:
                    yield revision, None
                else:
                    if row is not None:
                        yield revision, row
            seen += SPAN
        else:
            for row in rows:
                yield row[3], row
            seen = rows[-1][3] if rows else newest


class _Audit:
    """What the rows, one after the other, say of each other."""

    def __init__(self, marks: Marks) -> None:
        self.rows = 0
        self.damage: list[Damage] = []
        self._marks = marks
        self._newest: dict[Key, tuple[Revision, bool]] = {}  # the last row of a key; whether it is a delete
        self._due = max(marks.compacted, FIRST) + 1  # from here on every revision has a row
        self._last_damaged = 0

    @property
    def keys(self) -> int:
        return sum(not deleted for _, deleted in self._newest.values())

    def see(self, revision: Revision, row: Row | None) -> None:
        self.rows += 1
        if revision > self._due:
            self.damage.append(Damage(f"missing, up to revision {revision - 1}", self._due))
            self._last_damaged = revision - 1
        self._due = max(self._due, revision + 1)
        if row is not None and intact(row):
            self._follow(Key(row[0], row[1], row[2]), revision, row[4], deleted=row[6] is None)
            return
        self._last_damaged = revision
        if row is None:
            self.damage.append(Damage("cannot be read", revision))
        else:
            self.damage.append(Damage("does not match its checksum", revision, Key(row[0], row[1], row[2])))

    def _follow(self, key: Key, revision: Revision, previous: Revision, *, deleted: bool) -> None:
        """An intact row: does it follow the one before it of the same key?"""
        before, gone = self._newest.get(key, (0, True))
        self._newest[key] = (revision, deleted)
        replaced = 0 if gone else before
        compacted = not replaced and revision <= self._marks.compacted
        if previous != replaced and not compacted and self._last_damaged <= before:
            self.damage.append(Damage(f"replaces revision {previous} and follows revision {replaced}", revision, key))
        if replaced and revision <= self._marks.swept:
            self.damage.append(Damage(f"compacted after revision {revision} and still there", replaced, key))
        if deleted and revision < self._marks.swept:  # one may have had to stay, as the newest row
            self.damage.append(Damage("a delete, compacted and still there", revision, key))
