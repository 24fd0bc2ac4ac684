"""What a file is, and how it gets to the newest format."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from storage import migrations
from storage.migrations import APPLICATION_ID, IDENTIFY, MARKS, Marks, marks, recognise, upgrade
from storage.sqlite import SqliteStore
from storage.types import Key, Unusable


@pytest.mark.parametrize(
    ("application_id", "version", "things", "outcome"),
    [
        pytest.param(0, 0, 0, 0, id="an empty file is a new store"),
        pytest.param(APPLICATION_ID, 1, 4, 1, id="ours"),
        pytest.param(0, 0, 1, "of another program", id="somebody's tables"),
        pytest.param(0, 3, 0, "of another program", id="somebody's version"),
        pytest.param(0x0F055112, 0, 20, "of another program", id="a Fossil repository"),
        pytest.param(APPLICATION_ID, 0, 0, "of another program", id="ours without a version"),
        pytest.param(APPLICATION_ID, 2, 4, "format 2 .* up to 1; upgrade noxu", id="of a newer version"),
        pytest.param(APPLICATION_ID, -1, 4, "of another program", id="a version that cannot be"),
    ],
)
def test_a_file_is_recognised_or_refused(application_id: int, version: int, things: int, outcome: int | str) -> None:
    if isinstance(outcome, int):
        assert recognise("f.db", application_id, version, things) == outcome
    else:
        with pytest.raises(Unusable, match=f"^f.db .*{outcome}"):
            recognise("f.db", application_id, version, things)


@pytest.mark.parametrize(
    ("found", "outcome"),
    [
        ((None, 0, 0), Marks(1, 0, 0)),
        ((9, 0, 0), Marks(9, 0, 0)),
        ((9, 9, 8), Marks(9, 9, 8)),
        ((None, 1, 0), Marks(1, 1, 0)),
        ((9, 10, 0), None),
        ((9, 5, 6), None),
        ((9, -1, -1), None),
        ((9, None, 0), None),
        ((9, 0, "x"), None),
    ],
)
def test_marks_have_to_make_sense(found: tuple[object, object, object], outcome: Marks | None) -> None:
    if outcome is not None:
        assert marks("f.db", *found) == outcome
    else:
        with pytest.raises(Unusable, match="damaged"):
            marks("f.db", *found)


def test_an_empty_file_becomes_the_newest_format() -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(upgrade(0))
        assert connection.execute(IDENTIFY).fetchone()[:2] == (APPLICATION_ID, len(migrations.MIGRATIONS))
        assert connection.execute(MARKS).fetchone() == (None, 0, 0)


def test_the_newest_format_needs_nothing() -> None:
    assert upgrade(len(migrations.MIGRATIONS)) == ""


async def test_an_older_file_is_brought_up_to_date_when_it_is_opened(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await SqliteStore.open(file)
    await store.put(Key("c", "p", "n"), b"v", expected=0)
    await store.close()
    step = "ALTER TABLE meta ADD COLUMN remark TEXT;"
    monkeypatch.setattr(migrations, "MIGRATIONS", (*migrations.MIGRATIONS, step))
    for _ in range(2):  # once, and then no more
        store = await SqliteStore.open(file)
        assert store.revision == 2
        await store.close()
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (2,)
        assert connection.execute("SELECT remark FROM meta").fetchall() == [(None,), (None,)]


async def test_a_migration_that_fails_leaves_the_file_as_it_was(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = await SqliteStore.open(file)
    await store.close()
    with monkeypatch.context() as patched:
        patched.setattr(
            migrations, "MIGRATIONS", (*migrations.MIGRATIONS, "CREATE TABLE more (x); INSERT INTO nowhere VALUES (1);")
        )
        with pytest.raises(Unusable, match="nowhere"):
            await SqliteStore.open(file)
    store = await SqliteStore.open(file)
    await store.close()
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("SELECT name FROM sqlite_master WHERE name = 'more'").fetchall() == []
