"""The file format: how a file is recognised, and how an older one is brought up to date.

`application_id` says that a SQLite file is a store, `user_version` which format it has. Each migration is a script that
leads from one format to the next; all that are missing run in one transaction when the store is opened, so that a file
is never between two formats. A newer format is refused: nobody can read what has not been invented yet.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from storage.types import FIRST, Revision, Unusable

APPLICATION_ID: Final = 0x6E6F7875  # "noxu"

# Format 1. The value stands last, so that reading the other columns never walks overflow pages. The key index answers
# which keys there are at a revision without touching the values, and carries `deleted` for that.
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

MIGRATIONS: tuple[str, ...] = (_CREATE,)  # MIGRATIONS[n] leads from format n to n + 1

# Asks a file what it is: application_id, user_version and the number of things in its schema.
IDENTIFY: Final = """
SELECT application_id, user_version, (SELECT count(*) FROM sqlite_master)
FROM pragma_application_id, pragma_user_version
"""


def recognise(path: str, application_id: int, version: int, things: int) -> int:
    """The format of the file, 0 if it is empty. Raises Unusable for what is not ours to touch."""
    if application_id == version == things == 0:
        return 0
    if application_id != APPLICATION_ID or version < 1:
        raise Unusable(f"{path} is a SQLite file of another program; name another data directory")
    if version > len(MIGRATIONS):
        raise Unusable(
            f"{path} has format {version} and this version knows formats up to {len(MIGRATIONS)}; "
            f"upgrade noxu, or name another data directory"
        )
    return version


class Marks(NamedTuple):
    """Where the log of a file ends, up to where it is compacted, and up to where that has been carried out."""

    revision: Revision
    compacted: Revision
    swept: Revision


# Asks a store for its marks.
MARKS: Final = """
SELECT
    (SELECT max(revision) FROM log),
    (SELECT value FROM meta WHERE name = 'compacted'),
    (SELECT value FROM meta WHERE name = 'swept')
"""


def marks(path: str, revision: Any, compacted: Any, swept: Any) -> Marks:
    """What MARKS found. Raises Unusable if it makes no sense."""
    revision = FIRST if revision is None else revision
    if not (isinstance(compacted, int) and isinstance(swept, int) and 0 <= swept <= compacted <= revision):
        raise Unusable(f"{path} is damaged: {revision=}, {compacted=}, {swept=}; restore a backup")
    return Marks(revision, compacted, swept)


def upgrade(version: int) -> str:
    """The script that leads from a format to the newest one, in one transaction. Empty if it is the newest."""
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
