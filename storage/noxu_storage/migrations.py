"""The file format: how a file is identified, and how an older format is upgraded.

`application_id` identifies a SQLite file as a store, `user_version` is its format. Each migration is a script that leads
from one format to the next. All missing migrations run in one transaction when the store is opened, so a file is never
between two formats. A newer format is refused.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from noxu_storage.types import FIRST, OpenError, Revision

APPLICATION_ID: Final = 0x6E6F7875  # "noxu"

# Format 1. The value is the last column, so that reading the others does not walk its overflow pages. The key index
# answers which keys exist at a revision without reading values; that is why it includes `deleted`.
_CREATE = """
CREATE TABLE log (
    revision INTEGER PRIMARY KEY,
    collection TEXT NOT NULL,
    partition TEXT NOT NULL,
    name TEXT NOT NULL,
    previous INTEGER NOT NULL,  -- the revision that this one replaced, 0 if there was nothing
    crc INTEGER NOT NULL,       -- see rows.py
    value BLOB,                 -- NULL: deleted
    deleted INTEGER GENERATED ALWAYS AS (value IS NULL) VIRTUAL
);
CREATE UNIQUE INDEX log_by_key ON log (collection, partition, name, revision, deleted);
CREATE TABLE meta (
    name TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO meta (name, value) VALUES
    ('compacted', 0),  -- history up to here is no longer promised
    ('swept', 0);      -- and up to here it has been removed
"""

# Format 2: see notes.py.
_ADD_NOTES = """
CREATE TABLE notes (
    revision INTEGER PRIMARY KEY,
    seconds REAL NOT NULL,  -- when it was written
    note BLOB NOT NULL
);
"""

MIGRATIONS: tuple[str, ...] = (_CREATE, _ADD_NOTES)  # MIGRATIONS[n] leads from format n to n + 1

# The identity of a file: application_id, user_version and the number of objects in its schema.
SELECT_IDENTITY: Final = """
SELECT application_id, user_version, (SELECT count(*) FROM sqlite_master)
FROM pragma_application_id, pragma_user_version
"""


def format_of(path: str, application_id: int, version: int, schema_objects: int) -> int:
    """The format of a file with this identity, 0 if it is empty. Raises OpenError for a file that is not a store."""
    if application_id == version == schema_objects == 0:
        return 0
    if application_id != APPLICATION_ID or version < 1:
        raise OpenError(f"{path} is a SQLite file of another program; name another data directory")
    if version > len(MIGRATIONS):
        raise OpenError(
            f"{path} has format {version} and this version knows formats up to {len(MIGRATIONS)}; "
            f"upgrade noxu, or name another data directory"
        )
    return version


class Watermarks(NamedTuple):
    """How far a file has got: its newest revision, the revision up to which it is compacted, and up to which the
    compacted rows have been removed (`swept`)."""

    revision: Revision
    compacted: Revision
    swept: Revision


SELECT_WATERMARKS: Final = """
SELECT
    (SELECT max(revision) FROM log),
    (SELECT value FROM meta WHERE name = 'compacted'),
    (SELECT value FROM meta WHERE name = 'swept')
"""


def watermarks(path: str, revision: Any, compacted: Any, swept: Any) -> Watermarks:
    """The result of SELECT_WATERMARKS. Raises OpenError if the numbers contradict each other."""
    revision = FIRST if revision is None else revision
    if not (isinstance(compacted, int) and isinstance(swept, int) and 0 <= swept <= compacted <= revision):
        raise OpenError(f"{path} is corrupt: {revision=}, {compacted=}, {swept=}; restore a backup")
    return Watermarks(revision, compacted, swept)


def upgrade_script(version: int) -> str:
    """The script that leads from a format to the newest one, in one transaction. Empty for the newest format."""
    missing = MIGRATIONS[version:]
    if not missing:
        return ""
    return "\n".join(
        (
            "BEGIN IMMEDIATE;",
            *missing,
            f"PRAGMA application_id = {APPLICATION_ID};",
            f"PRAGMA user_version = {len(MIGRATIONS)};",
            "COMMIT;",
        )
    )
