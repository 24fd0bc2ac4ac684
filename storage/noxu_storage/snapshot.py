"""Read the current values of a file that no server uses, without changing it.

Reading holds SQLite's shared lock, so a server that is started meanwhile does not get the file. Values that do not match
their checksums are skipped and recorded.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from os import PathLike
from typing import Any, Final

from noxu_storage import database, migrations
from noxu_storage.check import open_read_only
from noxu_storage.rows import intact
from noxu_storage.types import Key, KeyValue, OpenError, Prefix, Revision

PAGE_ROWS: Final = 256


class Snapshot:
    """The state at `revision`. `corrupt` are the keys that have been skipped so far, and their revisions."""

    def __init__(self, connection: sqlite3.Connection, revision: Revision) -> None:
        self.revision = revision
        self.corrupt: dict[Key, Revision] = {}
        self._connection = connection

    def values(self, prefix: Prefix) -> Iterator[KeyValue]:
        """The values of a prefix, in the order of their keys. Raises Corrupt, Unavailable."""
        after: Key | None = None
        while True:
            condition, parameters = database.key_range(prefix, after)
            rows = self._fetch(database.select_states(condition), [*parameters, self.revision, PAGE_ROWS])
            for row in rows:
                after = Key(row[0], row[1], row[2])
                if intact(row):
                    yield KeyValue(after, row[6], row[3])
                else:
                    self.corrupt[after] = row[3]
            if len(rows) < PAGE_ROWS:
                return

    def count(self, prefix: Prefix) -> int:
        """The number of keys of a prefix. Raises Corrupt, Unavailable."""
        condition, parameters = database.key_range(prefix)
        [(number,)] = self._fetch(database.count_keys(condition), [*parameters, self.revision])
        return int(number)

    def _fetch(self, sql: str, parameters: list[Any]) -> list[Any]:
        try:
            return self._connection.execute(sql, parameters).fetchall()
        except database.SQLITE_ERRORS as error:
            raise database.read_error(error) from error


@contextmanager
def snapshot(path: str | PathLike[str], revision: Revision = 0) -> Iterator[Snapshot]:
    """Open a file at a revision (0: the newest). Raises OpenError if it is in use, is not a store, or has no such revision."""
    file = database.absolute_path(path)
    if not file.is_file():
        raise OpenError(f"{file} is not a file")
    with ExitStack() as open_file:
        try:
            connection = open_file.enter_context(open_read_only(file))
            version = migrations.format_of(str(file), *connection.execute(migrations.SELECT_IDENTITY).fetchone())
            if version < len(migrations.MIGRATIONS):
                raise OpenError(f"{file} has format {version}; start a server on it once, to upgrade it")
            watermarks = migrations.watermarks(str(file), *connection.execute(migrations.SELECT_WATERMARKS).fetchone())
        except database.SQLITE_ERRORS as error:
            if database.result_code(error) == sqlite3.SQLITE_BUSY:
                raise OpenError(f"{file} is in use: a server is running on it") from error
            raise database.open_error(file, error) from error
        if revision and not watermarks.compacted <= revision <= watermarks.revision:
            raise OpenError(f"{file} does not have revision {revision}")
        yield Snapshot(connection, revision or watermarks.revision)
