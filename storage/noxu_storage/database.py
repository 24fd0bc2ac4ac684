"""One SQLite file: opening, locking and identifying it, and its queries.

The lock is SQLite's own (`locking_mode=EXCLUSIVE`): it ends with the process, in whatever way that ends, and it makes
the shared-memory file unnecessary. One connection does everything, on the one thread that aiosqlite gives it. A read
between the statements of a transaction sees that transaction, so every query is limited to published revisions.

A transaction ends with an explicit COMMIT: `Connection.commit()` does nothing, without an error, if SQLite has rolled
back by itself, which any statement may cause that fails for lack of space or with an I/O error.
"""

# ruff: noqa: S608 — queries are composed of column names; every value is a parameter

from __future__ import annotations

import glob
import os
import sqlite3
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import aiosqlite

from noxu_storage import migrations
from noxu_storage.disk import sync
from noxu_storage.migrations import Watermarks
from noxu_storage.rows import COLUMNS, Row, decode_text
from noxu_storage.types import Corrupt, Key, OpenError, Prefix, Unavailable, reason

Durability: TypeAlias = Literal["full", "normal", "off"]

LOCK_TIMEOUT: Final = 0.5  # seconds: a server that is stopping has this time to release the file
PAGE_SIZE: Final = 8192  # bytes: two objects of 3.4 KB. Larger pages make single writes slower (measured)
CACHE_SIZE: Final = 2048  # KiB of pages in memory: the watch cache has the objects; the file is read for history
WAL_LIMIT: Final = 64 * 1024 * 1024  # bytes to which the WAL is truncated after a checkpoint

# What SQLite raises. Some of its messages quote the file; of corrupt bytes in them Python makes a UnicodeDecodeError.
SQLITE_ERRORS: Final = (sqlite3.Error, UnicodeDecodeError)

_DURABILITY: Final[dict[Durability, str]] = {
    "full": "PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON;",
    "normal": "PRAGMA synchronous = NORMAL;",  # a power failure may cost the last commits, never the file
    "off": "PRAGMA synchronous = OFF;",  # a power failure may cost the file
}

_OPEN_ERRORS: Final = {
    sqlite3.SQLITE_BUSY: "is in use by another process; stop that one, or name another data directory",
    sqlite3.SQLITE_NOTADB: "is not a store; name another data directory, or restore a backup",
    sqlite3.SQLITE_CORRUPT: "is corrupt or truncated; `noxu check` says where, or restore a backup",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened; it must be a file in a directory that this user may write to",
    sqlite3.SQLITE_READONLY: "cannot be written; the file and its directory must be writable for this user",
    sqlite3.SQLITE_FULL: "cannot be written because the disk is full; make room",
}
_UNFINISHED: Final = ".new"  # how the name of a store ends until it is complete
_EMPTY: Final = (
    "is empty, which a store never is: something has truncated or made it, and a new store would hide that objects are missing. "
    "Restore a backup, or delete the file if no server has kept objects in it"
)
_WITHOUT_FILE: Final = (
    "is missing, but its write-ahead log {wal} is there: a new store would hide that objects are missing. "
    "Restore the file, or delete the log, too"
)


async def connect(path: Path, durability: Durability) -> tuple[aiosqlite.Connection, Watermarks]:
    """Lock the file and upgrade its format; create it if it does not exist. Raises OpenError."""
    try:
        _create(path)
        connection = await aiosqlite.connect(
            path, timeout=LOCK_TIMEOUT, isolation_level="IMMEDIATE", factory=FileConnection
        )
    except (*SQLITE_ERRORS, OSError) as error:
        raise open_error(path, error) from error
    try:
        await _prepare(connection, path, durability)
        [marks] = await connection.execute_fetchall(migrations.SELECT_WATERMARKS)
        _remove_unfinished(path)
        return connection, migrations.watermarks(str(path), *marks)
    except BaseException as error:
        await disconnect(connection)
        if isinstance(error, SQLITE_ERRORS):
            raise open_error(path, error) from error
        raise


class CommitFailed(Exception):
    """A COMMIT has failed. The transaction may be in the file."""


class FileConnection(sqlite3.Connection):
    """The connection of aiosqlite's thread, whose `executemany` also commits.

    So a transaction is one visit to the thread: to wake it takes as long as to insert some rows.
    """

    def insert(self, sql: str, rows: Iterable[Any]) -> None:
        super().executemany(sql, rows)

    def executemany(self, sql: str, rows: Iterable[Any], /) -> sqlite3.Cursor:
        """Raises CommitFailed, or one of SQLITE_ERRORS before the COMMIT."""
        self.insert(sql, rows)
        try:
            self.execute("COMMIT")
        except SQLITE_ERRORS as error:
            raise CommitFailed(str(error)) from error
        return self.cursor()  # has no statement: when another thread drops one that has, it waits for the next COMMIT


async def write(connection: aiosqlite.Connection, rows: Sequence[Row]) -> None:
    """Insert rows and commit them. Raises CommitFailed, or one of SQLITE_ERRORS before the COMMIT."""
    await connection.executemany(INSERT, rows)


async def disconnect(connection: aiosqlite.Connection) -> None:
    """Close it, in whatever state it is. The last connection to close a sound file checkpoints and removes its WAL."""
    with suppress(*SQLITE_ERRORS):
        await connection.close()


def open_error(path: Path, error: Exception) -> OpenError:
    """The error that says why a file cannot be opened as a store, and what to do."""
    return OpenError(f"{path} {_OPEN_ERRORS.get(result_code(error), f'cannot be used: {reason(error, named=False)}')}")


def is_full(error: BaseException | None) -> bool:
    """Whether an error, or what has caused it, is a full disk."""
    while error is not None:
        if isinstance(error, sqlite3.Error) and result_code(error) == sqlite3.SQLITE_FULL:
            return True
        error = error.__cause__
    return False


def read_error(error: Exception) -> Corrupt | Unavailable:
    """The error for a failed read: the file is corrupt there, or it cannot be read at all."""
    if result_code(error) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return Corrupt(f"the file is corrupt: {error}")
    return Unavailable(f"the file cannot be read: {error}")


def create_directory(path: Path) -> None:
    """Create the directory of a store, with the directories above it, so that a power failure does not remove them.

    A directory is durable when the one above it has been synced (fsync(2)); SQLite syncs only that of its files. Only the
    owner may use it: values can be secrets. In a work tree Git ignores it. Raises OSError.
    """
    path = path.absolute()
    missing = [directory for directory in (path, *path.parents) if not directory.exists()]
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    for created in reversed(missing):
        sync_directory(created.parent)
    if missing:
        with suppress(FileExistsError), (path / ".gitignore").open("x") as file:
            file.write("*\n")


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable, where this is possible."""
    with suppress(OSError):  # not every file system can; this user may not be allowed to read the directory
        handle = os.open(path, os.O_RDONLY)
        try:
            sync(handle)
        finally:
            os.close(handle)


def absolute_path(path: str | PathLike[str]) -> Path:
    """The absolute path of a file: some relative names, such as `:memory:`, have a special meaning to SQLite."""
    return Path(path).absolute()


def file_size(path: Path) -> int:
    """Bytes on disk, including the WAL, which comes and goes with connections."""
    size = 0
    for file in (path, Path(f"{path}-wal")):
        with suppress(FileNotFoundError):
            size += file.stat().st_size
    return size


def result_code(error: Exception) -> int:
    """SQLite's primary result code."""
    if isinstance(error, UnicodeDecodeError):
        return sqlite3.SQLITE_CORRUPT
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF


def _create(path: Path) -> None:
    """Create a new store where there is no file. Only its owner may read it: values can be secrets.

    It gets its name when it is complete, so a process that is killed meanwhile leaves nothing that the next one cannot use, and
    a file that is empty, or lacks its header, was damaged. Then, and where only the WAL of a store is left, a new store would
    hide that objects are missing.

    An existing file is not opened here: closing it would release the locks that another store of this process may hold
    on it (POSIX). Raises OpenError or OSError.
    """
    create_directory(path.parent)
    if not path.exists() and not path.is_symlink():
        wal = Path(f"{path}-wal")
        if wal.exists() and wal.stat().st_size:
            raise OpenError(f"{path} {_WITHOUT_FILE.format(wal=wal.name)}")
        _write_new(path)
    if not path.is_file() or not os.access(path, os.R_OK | os.W_OK):
        raise OpenError(f"{path} {_OPEN_ERRORS[sqlite3.SQLITE_CANTOPEN]}")
    if path.stat().st_size == 0:
        raise OpenError(f"{path} {_EMPTY}")


def _write_new(path: Path) -> None:
    """Make an empty store under another name, and then give it its own. Another process may do the same at the same time."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=_UNFINISHED, dir=path.parent)  # mode 0600
    temporary = Path(name)
    try:
        connection = sqlite3.connect(temporary, isolation_level=None)
        try:
            connection.executescript(
                f"PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY; PRAGMA page_size = {PAGE_SIZE}; "
                + migrations.upgrade_script(0)
            )
        finally:
            connection.close()
        sync(handle)
        with suppress(FileExistsError, FileNotFoundError):  # another process was faster, and has removed this one
            _name(temporary, path)
    finally:
        os.close(handle)
        temporary.unlink(missing_ok=True)
    sync_directory(path.parent)


def _name(temporary: Path, path: Path) -> None:
    """Give a file a name that no other has. Raises OSError."""
    try:
        os.link(temporary, path)
    except (FileExistsError, FileNotFoundError):
        raise
    except OSError:  # a file system without links
        if not path.exists():
            temporary.rename(path)


def _remove_unfinished(path: Path) -> None:
    """Remove what killed processes have left of a creation. The caller has locked the store."""
    for unfinished in path.parent.glob(f".{glob.escape(path.name)}.*{_UNFINISHED}"):
        with suppress(OSError):
            unfinished.unlink()


async def _prepare(connection: aiosqlite.Connection, path: Path, durability: Durability) -> None:
    connection.text_factory = decode_text
    await connection.executescript("PRAGMA locking_mode = EXCLUSIVE; PRAGMA trusted_schema = OFF;")
    [identity] = await connection.execute_fetchall(migrations.SELECT_IDENTITY)  # takes the lock, if it is a store
    version = migrations.format_of(str(path), *identity)
    await connection.executescript(
        f"PRAGMA page_size = {PAGE_SIZE}; PRAGMA cache_size = -{CACHE_SIZE}; PRAGMA journal_size_limit = {WAL_LIMIT}; "
        f"PRAGMA secure_delete = FAST; {_DURABILITY[durability]}"
    )
    [(mode,)] = await connection.execute_fetchall("PRAGMA journal_mode = WAL")
    if mode != "wal":
        raise OpenError(
            f"{path} is on a file system without write-ahead logging ({mode=}); name another data directory"
        )
    await connection.executescript(migrations.upgrade_script(version))
    await connection.executescript(
        "UPDATE meta SET value = value WHERE name = ''"
    )  # fails if the file cannot be written


# Queries. Every condition comes from `key_range`; its last parameter is the revision up to which the query reads.

INSERT: Final = f"INSERT INTO log ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)"

KEY_CONDITION: Final = "collection = ? AND partition = ? AND name = ? AND revision <= ?"  # of a single key

SELECT_STATE: Final = f"SELECT {COLUMNS} FROM log WHERE {KEY_CONDITION} ORDER BY revision DESC LIMIT 1"

SET_WATERMARK: Final = "UPDATE meta SET value = ? WHERE name = ?"

# Removes what the revisions of a span superseded, and the deletes among them, but never the newest row, from which the
# file knows its revision. `previous` of a row is trusted only if that row is older and has the same key: a corrupt row
# must not remove the current state of another key.
_SWEPT: Final = """
    SELECT old.revision FROM log new JOIN log old ON old.revision = new.previous
    WHERE new.revision BETWEEN :first AND :last AND old.revision < new.revision
        AND (old.collection, old.partition, old.name) = (new.collection, new.partition, new.name)
    UNION ALL
    SELECT revision FROM log
    WHERE revision BETWEEN :first AND :last AND deleted AND revision < (SELECT max(revision) FROM log)
"""
SWEEP_NOTES: Final = f"DELETE FROM notes WHERE revision IN ({_SWEPT})"  # before the rows themselves
SWEEP: Final = f"DELETE FROM log WHERE revision IN ({_SWEPT})"


def key_range(prefix: Prefix, after: Key | None = None) -> tuple[str, list[Any]]:
    """The condition for the keys of a prefix after a key, in terms of the key index, and its first parameters.

    >>> key_range(Prefix("g/things"), Key("g/things", "a/", "x"))
    ('collection = ? AND (partition, name) > (?, ?) AND revision <= ?', ['g/things', 'a/', 'x'])
    >>> key_range(Prefix("g/things", "b/"), Key("g/things", "a/", "x"))  # the whole prefix is after the key
    ('collection = ? AND partition = ? AND revision <= ?', ['g/things', 'b/'])
    """
    columns = ("collection", "partition", "name")
    pairs = [(column, value) for column, value in zip(columns, prefix, strict=False) if value is not None]
    terms = [f"{column} = ?" for column, _ in pairs]
    parameters: list[Any] = [value for _, value in pairs]
    if after is not None:
        fixed = 0 if prefix.collection is None else len(pairs)  # the number of leading columns that the prefix fixes
        if after[:fixed] > prefix[:fixed]:
            terms.append("0")
        elif after[:fixed] == prefix[:fixed]:
            placeholder, texts = _bound(after[fixed:])
            terms.append(f"({', '.join(columns[fixed:])}) > ({', '.join([placeholder] * len(texts))})")
            parameters += texts
    return " AND ".join((*terms, "revision <= ?")), parameters


def _bound(texts: Sequence[str]) -> tuple[str, Sequence[str | bytes]]:
    """A placeholder for texts, and the texts as parameters. Texts of corrupt keys are not Unicode, and need a CAST.

    With a CAST SQLite does not use the index, so it is the exception.
    """
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:
        return "CAST(? AS TEXT)", [text.encode("utf-8", "surrogateescape") for text in texts]
    return "?", texts


def select_keys(condition: str) -> str:
    """The first keys that exist, with the revisions of their states; the last parameter is their number."""
    return f"""
    SELECT collection, partition, name, max(revision) AS revision, deleted FROM log WHERE {condition}
    GROUP BY collection, partition, name HAVING NOT deleted ORDER BY collection, partition, name LIMIT ?
    """


def select_states(condition: str) -> str:
    """The rows of the first keys that exist. The key comes from the index: the row that it leads to may be corrupt."""
    return f"""
    SELECT key.collection, key.partition, key.name, key.revision, log.previous, log.crc, log.value
    FROM ({select_keys(condition)}) AS key LEFT JOIN log ON log.revision = key.revision
    ORDER BY key.collection, key.partition, key.name
    """


def count_keys(condition: str) -> str:
    return f"""
    SELECT count(*) FROM (
        SELECT max(revision), deleted FROM log WHERE {condition}
        GROUP BY collection, partition, name HAVING NOT deleted
    )
    """


def select_rows(number: int) -> str:
    """The query for the rows of `number` revisions."""
    return f"SELECT {COLUMNS} FROM log WHERE revision IN ({', '.join('?' * number)})"


FIRST_REVISION: Final = "SELECT min(revision) FROM log WHERE revision > ? AND revision <= ?"


def select_containing(number: int) -> str:
    """The rows of a span of revisions whose value contains one of `number` texts, unless a later row supersedes them.

    Parameters: the first and the last revision of the span, the texts, the revision up to which the query reads.
    """
    contains = " OR ".join(["instr(log.value, ?)"] * number)
    return f"""
    SELECT {COLUMNS} FROM log WHERE revision BETWEEN ? AND ? AND ({contains}) AND NOT EXISTS (
        SELECT 1 FROM log AS newer WHERE newer.revision > log.revision AND newer.revision <= ?
            AND (newer.collection, newer.partition, newer.name) = (log.collection, log.partition, log.name)
    )
    """


def select_changes(prefix: Prefix) -> tuple[str, list[str]]:
    """The rows of a prefix between two revisions, each with the row that it replaced; and the first parameters."""
    fixed = [
        (column, value) for column, value in zip(("collection", "partition"), prefix, strict=True) if value is not None
    ]
    names = COLUMNS.split(", ")
    return (
        f"""
    SELECT {", ".join(f"new.{name}" for name in names)}, {", ".join(f"old.{name}" for name in names)}
    FROM log new LEFT JOIN log old ON old.revision = new.previous
    WHERE {"".join(f"+new.{column} = ? AND " for column, _ in fixed)}new.revision > ? AND new.revision <= ?
    ORDER BY new.revision
    """,  # `+` keeps SQLite from using the key index: the rows are read in the order of their revisions
        [value for _, value in fixed],
    )
