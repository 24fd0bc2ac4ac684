"""One SQLite file: opened and locked, recognised, and asked.

The lock is SQLite's own (`locking_mode=EXCLUSIVE`): it goes with the process, however that ends, and it spares the
shared-memory file. One connection does everything, on the one thread that aiosqlite gives it. A read that comes between
the statements of a transaction sees that transaction, so every read names the revision up to which it wants to see.

A transaction ends with an explicit COMMIT: `Connection.commit()` does nothing, successfully, when SQLite has rolled
back by itself, which any statement of the connection may cause that fails for want of space or by an I/O error.
"""

# ruff: noqa: S608 — queries are put together from the names of columns; what is asked for is always a parameter

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import aiosqlite

from storage import migrations
from storage.migrations import Marks
from storage.rows import COLUMNS, decode
from storage.types import Corrupt, Key, Prefix, Unavailable, Unusable

Durability: TypeAlias = Literal["full", "normal"]

LOCK_PATIENCE: Final = 0.5  # seconds: a server that is just going down gets the time to let go of the file
PAGE_SIZE: Final = 8192  # bytes: two objects of 3.4 KB. Measured: larger pages make single writes dearer
CACHE_SIZE: Final = 8192  # KiB of pages in memory
WAL_LIMIT: Final = 64 * 1024 * 1024  # bytes to which the WAL is cut back after a checkpoint

# What SQLite raises. It quotes the file in some messages; of damaged bytes Python makes a UnicodeDecodeError.
FAILURES: Final = (sqlite3.Error, UnicodeDecodeError)

_DURABILITY: Final[dict[Durability, str]] = {
    "full": "PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON;",
    "normal": "PRAGMA synchronous = NORMAL;",  # a power cut may cost the last commits, never the file
}

_REFUSALS: Final = {
    sqlite3.SQLITE_BUSY: "is in use by another process; stop that one, or name another data directory",
    sqlite3.SQLITE_NOTADB: "is not a store; name another data directory, or restore a backup",
    sqlite3.SQLITE_CORRUPT: "is damaged or cut short; `noxu check` says where, or restore a backup",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened; it has to be a file in a directory that this user may write to",
    sqlite3.SQLITE_READONLY: "cannot be written; its file and directory have to be writable for this user",
    sqlite3.SQLITE_FULL: "cannot be written because the disk is full; make room",
}


async def connect(path: Path, durability: Durability) -> tuple[aiosqlite.Connection, Marks]:
    """Lock the file and bring it up to date; make it, if there is none. Raises Unusable."""
    try:
        _create(path)
        connection = await aiosqlite.connect(path, timeout=LOCK_PATIENCE, isolation_level="IMMEDIATE")
    except (*FAILURES, OSError) as error:
        raise refusal(path, error) from error
    try:
        await _prepare(connection, path, durability)
        [found] = await connection.execute_fetchall(migrations.MARKS)
        return connection, migrations.marks(str(path), *found)
    except BaseException as error:
        await disconnect(connection)
        if isinstance(error, FAILURES):
            raise refusal(path, error) from error
        raise


async def disconnect(connection: aiosqlite.Connection) -> None:
    """Close it, whatever state it is in. The last to close a healthy file folds its WAL in and removes it."""
    with suppress(*FAILURES):
        await connection.close()


def refusal(path: Path, error: Exception) -> Unusable:
    """Why a file cannot be opened as a store, and what to do."""
    return Unusable(f"{path} {_REFUSALS.get(result_code(error), f'cannot be used: {error}')}")


def unreadable(error: Exception) -> Corrupt | Unavailable:
    """Why a read failed: the file is damaged there, or cannot be reached."""
    if result_code(error) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return Corrupt(f"the file is damaged: {error}")
    return Unavailable(f"the file cannot be read: {error}")


def located(path: str | PathLike[str]) -> Path:
    """The absolute path: SQLite takes some names, such as `:memory:`, to mean something else."""
    return Path(path).absolute()


def size(path: Path) -> int:
    """Bytes on disk, the WAL's included."""
    return sum(file.stat().st_size for file in (path, Path(f"{path}-wal")) if file.exists())


def result_code(error: Exception) -> int:
    """SQLite's primary result code."""
    if isinstance(error, UnicodeDecodeError):
        return sqlite3.SQLITE_CORRUPT
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF


def _create(path: Path) -> None:
    """An empty file is a new store. Only its owner may read it: values can be secrets.

    A file that exists is not opened here: closing it again would release the locks that another store of this process
    may have on it (POSIX).
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    if not path.is_file() or not os.access(path, os.R_OK | os.W_OK):
        raise Unusable(f"{path} {_REFUSALS[sqlite3.SQLITE_CANTOPEN]}")


async def _prepare(connection: aiosqlite.Connection, path: Path, durability: Durability) -> None:
    connection.text_factory = decode
    await connection.executescript("PRAGMA locking_mode = EXCLUSIVE; PRAGMA trusted_schema = OFF;")
    [identity] = await connection.execute_fetchall(migrations.IDENTIFY)  # takes the lock, if it is a store
    version = migrations.recognise(str(path), *identity)
    await connection.executescript(
        f"PRAGMA page_size = {PAGE_SIZE}; PRAGMA cache_size = -{CACHE_SIZE}; PRAGMA journal_size_limit = {WAL_LIMIT}; "
        f"PRAGMA secure_delete = FAST; {_DURABILITY[durability]}"
    )
    [(mode,)] = await connection.execute_fetchall("PRAGMA journal_mode = WAL")
    if mode != "wal":
        raise Unusable(f"{path} is on a file system without write-ahead logging ({mode=}); name another data directory")
    await connection.executescript(migrations.upgrade(version))
    await connection.executescript("UPDATE meta SET value = value WHERE name = ''")  # fails if it cannot be written


# What the store asks of its file. A condition comes from `covered`, and its last parameter is a revision to read up to.

INSERT: Final = f"INSERT INTO log ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)"

ONE: Final = "collection = ? AND partition = ? AND name = ? AND revision <= ?"  # the condition for a single key

CURRENT: Final = f"SELECT {COLUMNS} FROM log WHERE {ONE} ORDER BY revision DESC LIMIT 1"

SET_MARK: Final = "UPDATE meta SET value = ? WHERE name = ?"

# Removes what the revisions of a span superseded, and the deletes among them; but not the newest row, by which the file
# knows its revision. A row is believed about which one it replaced only if that one is older and of the same key: a
# damaged row must not remove a living one.
SWEEP: Final = """
DELETE FROM log WHERE revision IN (
    SELECT old.revision FROM log new JOIN log old ON old.revision = new.previous
    WHERE new.revision BETWEEN :first AND :last AND old.revision < new.revision
        AND (old.collection, old.partition, old.name) = (new.collection, new.partition, new.name)
    UNION ALL
    SELECT revision FROM log
    WHERE revision BETWEEN :first AND :last AND deleted AND revision < (SELECT max(revision) FROM log)
)
"""


def covered(prefix: Prefix, after: Key | None = None) -> tuple[str, list[Any]]:
    """The condition for keys of a prefix behind a key, as the key index can answer it, and its first parameters."""
    columns = ("collection", "partition", "name")
    given = [(column, value) for column, value in zip(columns, prefix, strict=False) if value is not None]
    terms = [f"{column} = ?" for column, _ in given]
    parameters: list[Any] = [value for _, value in given]
    if after is not None:
        fixed = 0 if prefix.collection is None else len(given)  # so many columns, from the first on, are given
        if after[:fixed] > prefix[:fixed]:
            terms.append("0")
        elif after[:fixed] == prefix[:fixed]:
            mark, texts = _bound(after[fixed:])
            terms.append(f"({', '.join(columns[fixed:])}) > ({', '.join([mark] * len(texts))})")
            parameters += texts
    return " AND ".join((*terms, "revision <= ?")), parameters


def _bound(texts: Sequence[str]) -> tuple[str, Sequence[str | bytes]]:
    """How texts are given to SQLite; those of damaged keys are no Unicode, and the index is no use with a CAST."""
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:
        return "CAST(? AS TEXT)", [text.encode("utf-8", "surrogateescape") for text in texts]
    return "?", texts


def keys(condition: str) -> str:
    """The first so many keys that exist, with the revisions of their states."""
    return f"""
    SELECT collection, partition, name, max(revision) AS revision, deleted FROM log WHERE {condition}
    GROUP BY collection, partition, name HAVING NOT deleted ORDER BY collection, partition, name LIMIT ?
    """


def states(condition: str) -> str:
    """Rows of the first so many keys that exist. A key is as the index has it: the row it leads to may be damaged."""
    return f"""
    SELECT key.collection, key.partition, key.name, key.revision, log.previous, log.crc, log.value
    FROM ({keys(condition)}) AS key LEFT JOIN log ON log.revision = key.revision
    ORDER BY key.collection, key.partition, key.name
    """


def count(condition: str) -> str:
    return f"""
    SELECT count(*) FROM (
        SELECT max(revision), deleted FROM log WHERE {condition}
        GROUP BY collection, partition, name HAVING NOT deleted
    )
    """


def rows(number: int) -> str:
    """So many rows by their revisions."""
    return f"SELECT {COLUMNS} FROM log WHERE revision IN ({', '.join('?' * number)})"


def changes(prefix: Prefix) -> tuple[str, list[str]]:
    """Pairs of rows, what was written and what it replaced, of a prefix, between two revisions; first parameters."""
    given = [
        (column, value) for column, value in zip(("collection", "partition"), prefix, strict=True) if value is not None
    ]
    names = COLUMNS.split(", ")
    return (
        f"""
    SELECT {", ".join(f"new.{name}" for name in names)}, {", ".join(f"old.{name}" for name in names)}
    FROM log new LEFT JOIN log old ON old.revision = new.previous
    WHERE {"".join(f"+new.{column} = ? AND " for column, _ in given)}new.revision > ? AND new.revision <= ?
    ORDER BY new.revision
    """,  # `+`: along the revisions, whatever the key index promises
        [value for _, value in given],
    )
