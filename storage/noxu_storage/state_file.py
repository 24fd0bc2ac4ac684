"""Write the states of a store into a file: a new one that has nothing else, or one that exists.

**A new file** has the state at one revision, and no history: each state keeps its revision, and the file is compacted to the
revision of the whole. For example, the states at 3 and 7 of a store at revision 9:

    revision 3    a state
    revision 7    a state
    revision 9    the deletion of a key that did not exist: the file knows its revision from its newest row

The next write gets revision 10, and a watch may start at 9. If two states have the same revision, as a transaction of
another program in etcd may write them, the second one gets a new revision after all others. The file has its name only when
it is complete and on the disk, and replaces no other.

**A file that exists** gets the states in one transaction, as if a server had written them: with new revisions.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final, Protocol

from noxu_storage import database, migrations
from noxu_storage.disk import sync
from noxu_storage.rows import decode_text, intact, row
from noxu_storage.types import Key, KeyValue, OpenError, Revision, Unavailable

LAST: Final = Key("noxu/copies", "", "revision")
"""The key of the row that only has the newest revision."""
_INSERT_UNLESS_TAKEN: Final = database.INSERT.replace("INSERT INTO", "INSERT OR IGNORE INTO")


class Writer(Protocol):
    """Takes states. `unchanged` is the number of those that were there, `moved` of those whose revision is another."""

    unchanged: int

    @property
    def moved(self) -> int: ...

    def write(self, states: Sequence[KeyValue]) -> None: ...


class _New:
    def __init__(self, file: Path, connection: sqlite3.Connection) -> None:
        self.unchanged = 0
        self._file = file
        self._connection = connection
        self._newest: Revision = 0
        self._waiting: list[KeyValue] = []  # states whose revision another one has

    @property
    def moved(self) -> int:
        return len(self._waiting)

    def write(self, states: Sequence[KeyValue]) -> None:
        with _unavailable(self._file):
            for state in states:
                cursor = self._connection.execute(_INSERT_UNLESS_TAKEN, row(state.key, state.revision, 0, state.value))
                if cursor.rowcount:
                    self._newest = max(self._newest, state.revision)
                else:
                    self._waiting.append(state)

    def finish(self, revision: Revision) -> None:
        """Complete the state at a revision."""
        last = max(revision, self._newest)
        for state in self._waiting:
            last += 1
            self._connection.execute(database.INSERT, row(state.key, last, 0, state.value))
        if not self._waiting and last > self._newest:
            self._connection.execute(database.INSERT, row(LAST, last, 0, None))
        for name in ("compacted", "swept"):
            self._connection.execute(database.SET_WATERMARK, (last, name))
        self._connection.execute("COMMIT")


class _Existing:
    """`moved` counts nothing: all states get new revisions."""

    moved = 0

    def __init__(self, file: Path, connection: sqlite3.Connection, newest: Revision) -> None:
        self.unchanged = 0
        self._file = file
        self._connection = connection
        self._newest = newest

    def write(self, states: Sequence[KeyValue]) -> None:
        with _unavailable(self._file):
            for state in states:
                self._write(state)

    def _write(self, state: KeyValue) -> None:
        stored = self._connection.execute(database.SELECT_STATE, (*state.key, self._newest)).fetchone()
        if stored is not None and stored[6] == state.value and intact(stored):
            self.unchanged += 1
            return
        previous = stored[3] if stored is not None and stored[6] is not None else 0
        self._newest += 1
        self._connection.execute(database.INSERT, row(state.key, self._newest, previous, state.value))


@contextmanager
def new_file(path: str | os.PathLike[str], revision: Revision) -> Iterator[Writer]:
    """A file for the state at `revision`, complete when the context is closed. Raises OpenError, Unavailable."""
    file = database.absolute_path(path)
    for existing in (file, Path(f"{file}-wal")):
        if existing.exists():
            raise OpenError(f"{existing} exists; name another file or directory")
    try:
        database.create_directory(file.parent)
        handle, name = tempfile.mkstemp(prefix=f".{file.name}.", suffix=".incomplete", dir=file.parent)
    except OSError as error:
        raise OpenError(f"{file} cannot be written: {error.strerror or error}") from None
    os.close(handle)
    temporary = Path(name)
    try:
        with closing(sqlite3.connect(temporary, isolation_level=None)) as connection:
            with _unavailable(file):
                connection.executescript(
                    f"PRAGMA page_size = {database.PAGE_SIZE}; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;"
                )
                connection.executescript(migrations.upgrade_script(0))
                connection.execute("BEGIN")
            writer = _New(file, connection)
            yield writer
            with _unavailable(file):
                writer.finish(revision)
        with _unavailable(file):
            with temporary.open("rb") as whole:
                sync(whole.fileno())
            _name(temporary, file)
        database.sync_directory(file.parent)
    finally:
        temporary.unlink(missing_ok=True)


def _name(temporary: Path, file: Path) -> None:
    """Give a file its name, unless another one has it. Raises OpenError, OSError."""
    try:
        os.link(temporary, file)
    except FileExistsError:
        raise OpenError(f"{file} exists; name another file or directory") from None
    except OSError:  # a file system without links
        temporary.rename(file)


@contextmanager
def existing_file(path: str | os.PathLike[str]) -> Iterator[Writer]:
    """A file that no server uses. What is written is there when the context is closed. Raises OpenError, Unavailable."""
    file = database.absolute_path(path)
    if not file.is_file():
        raise OpenError(f"{file} is not a file")
    with closing(sqlite3.connect(file, timeout=database.LOCK_TIMEOUT, isolation_level=None)) as connection:
        try:
            connection.text_factory = decode_text
            connection.execute("PRAGMA locking_mode = EXCLUSIVE").close()
            connection.execute("BEGIN IMMEDIATE")
            version = migrations.format_of(str(file), *connection.execute(migrations.SELECT_IDENTITY).fetchone())
            if version < len(migrations.MIGRATIONS):
                raise OpenError(f"{file} has format {version}; start a server on it once, to upgrade it")
            watermarks = migrations.watermarks(str(file), *connection.execute(migrations.SELECT_WATERMARKS).fetchone())
        except database.SQLITE_ERRORS as error:
            raise database.open_error(file, error) from error
        yield _Existing(file, connection, watermarks.revision)
        with _unavailable(file):
            connection.execute("COMMIT")


@contextmanager
def _unavailable(file: Path) -> Iterator[None]:
    try:
        yield
    except (*database.SQLITE_ERRORS, OSError) as error:
        raise Unavailable(f"{file} cannot be written: {error}") from error
