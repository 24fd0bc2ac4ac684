"""Identifying a file, and upgrading it to the newest format."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from noxu_storage import migrations
from noxu_storage.migrations import (
    APPLICATION_ID,
    SELECT_IDENTITY,
    SELECT_WATERMARKS,
    Watermarks,
    format_of,
    upgrade_script,
    watermarks,
)
from noxu_storage.sqlite import SqliteStore
from noxu_storage.types import Key, OpenError
from tests.rows import rows


@pytest.mark.parametrize(
    ("application_id", "version", "schema_objects", "outcome"),
    [
        pytest.param(0, 0, 0, 0, id="an empty file is a new store"),
        pytest.param(APPLICATION_ID, 1, 4, 1, id="a store"),
        pytest.param(0, 0, 1, "of another program", id="another program's tables"),
        pytest.param(0, 3, 0, "of another program", id="another program's version"),
        pytest.param(0x0F055112, 0, 20, "of another program", id="a Fossil repository"),
        pytest.param(APPLICATION_ID, 0, 0, "of another program", id="a store without a version"),
        pytest.param(APPLICATION_ID, 2, 5, 2, id="a store with notes"),
        pytest.param(APPLICATION_ID, 3, 5, "format 3 .* up to 2; upgrade noxu", id="a newer version"),
        pytest.param(APPLICATION_ID, -1, 4, "of another program", id="a negative version"),
    ],
)
def test_a_file_is_identified_or_refused(
    application_id: int, version: int, schema_objects: int, outcome: int | str
) -> None:
    if isinstance(outcome, int):
        assert format_of("f.db", application_id, version, schema_objects) == outcome
    else:
        with pytest.raises(OpenError, match=f"^f.db .*{outcome}"):
            format_of("f.db", application_id, version, schema_objects)


@rows(
    ("found", "outcome"),
    [
        ((None, 0, 0), Watermarks(1, 0, 0)),
        ((9, 0, 0), Watermarks(9, 0, 0)),
        ((9, 9, 8), Watermarks(9, 9, 8)),
        ((None, 1, 0), Watermarks(1, 1, 0)),
        ((9, 10, 0), None),
        ((9, 5, 6), None),
        ((9, -1, -1), None),
        ((9, None, 0), None),
        ((9, 0, "x"), None),
    ],
)
def test_watermarks_must_not_contradict_each_other(
    found: tuple[object, object, object], outcome: Watermarks | None
) -> None:
    if outcome is not None:
        assert watermarks("f.db", *found) == outcome
    else:
        with pytest.raises(OpenError, match="corrupt"):
            watermarks("f.db", *found)


def test_an_empty_file_is_upgraded_to_the_newest_format() -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(upgrade_script(0))
        assert connection.execute(SELECT_IDENTITY).fetchone()[:2] == (APPLICATION_ID, len(migrations.MIGRATIONS))
        assert connection.execute(SELECT_WATERMARKS).fetchone() == (None, 0, 0)


def test_the_newest_format_is_not_upgraded() -> None:
    assert upgrade_script(len(migrations.MIGRATIONS)) == ""


async def test_an_older_file_is_upgraded_when_it_is_opened(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = await SqliteStore.open(file)
    await store.put(Key("c", "p", "n"), b"v", expected=0)
    await store.close()
    step = "ALTER TABLE meta ADD COLUMN remark TEXT;"
    monkeypatch.setattr(migrations, "MIGRATIONS", (*migrations.MIGRATIONS, step))
    for _ in range(2):  # the second time nothing is to be upgraded
        store = await SqliteStore.open(file)
        assert store.revision == 2
        await store.close()
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (len(migrations.MIGRATIONS),)
        assert connection.execute("SELECT remark FROM meta").fetchall() == [(None,), (None,)]


async def test_a_failed_migration_does_not_change_the_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = await SqliteStore.open(file)
    await store.close()
    with monkeypatch.context() as patched:
        patched.setattr(
            migrations, "MIGRATIONS", (*migrations.MIGRATIONS, "CREATE TABLE more (x); INSERT INTO nowhere VALUES (1);")
        )
        with pytest.raises(OpenError, match="nowhere"):
            await SqliteStore.open(file)
    store = await SqliteStore.open(file)
    await store.close()
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("SELECT name FROM sqlite_master WHERE name = 'more'").fetchall() == []
