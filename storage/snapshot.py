"""What a file holds now, read without changing it, and without a store: nobody may be using the file meanwhile.

Reading takes SQLite's shared lock, so a server that starts in between waits for its turn, and gives up. What does not
match its checksum is left out, and told.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from os import PathLike
from typing import Any, Final

from storage import database, migrations
from storage.check import opened
from storage.rows import intact
from storage.types import Key, KeyValue, Prefix, Revision, Unusable

PAGE_ROWS: Final = 256


class Snapshot:
    """The state at `revision`. `damaged` are the keys that were left out so far."""

    def __init__(self, connection: sqlite3.Connection, revision: Revision) -> None:
        self.revision = revision
        self.damaged: dict[Key, Revision] = {}
        self._connection = connection

    def values(self, prefix: Prefix) -> Iterator[KeyValue]:
        """The values of a prefix, in the order of their keys. Raises Corrupt if the file cannot be read there."""
        after: Key | None = None
        while True:
            condition, parameters = database.covered(prefix, after)
            rows = self._fetch(database.states(condition), [*parameters, self.revision, PAGE_ROWS])
            for row in rows:
                after = Key(row[0], row[1], row[2])
                if intact(row):
                    yield KeyValue(after, row[6], row[3])
                else:
                    self.damaged[after] = row[3]
            if len(rows) < PAGE_ROWS:
                return

    def _fetch(self, sql: str, parameters: list[Any]) -> list[Any]:
        try:
            return self._connection.execute(sql, parameters).fetchall()
        except database.FAILURES as error:
            raise database.unreadable(error) from error


@contextmanager
def snapshot(path: str | PathLike[str]) -> Iterator[Snapshot]:
    """Open a file. Raises Unusable if it is in use, or nothing that could be a store."""
    file = database.located(path)
    if not file.is_file():
        raise Unusable(f"{file} is not a file")
    with ExitStack() as open_file:
        try:
            connection = open_file.enter_context(opened(file))
            version = migrations.recognise(str(file), *connection.execute(migrations.IDENTIFY).fetchone())
            if version < len(migrations.MIGRATIONS):
                raise Unusable(f"{file} has format {version}; start a server on it once, to bring it up to date")
            marks = migrations.marks(str(file), *connection.execute(migrations.MARKS).fetchone())
        except database.FAILURES as error:
            if database.result_code(error) == sqlite3.SQLITE_BUSY:
                raise Unusable(f"{file} is in use: a server is running on it") from error
            raise database.refusal(file, error) from error
        yield Snapshot(connection, marks.revision)
