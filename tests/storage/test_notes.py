"""Notes beside revisions in a file: kept, found, and removed with their revisions."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from noxu_storage import migrations, notes
from noxu_storage.check import check
from noxu_storage.memory import MemoryStore
from noxu_storage.notes import Notes, RevisionNote, notes_of
from noxu_storage.sqlite import SqliteStore
from noxu_storage.types import Closed, Key

A = Key("c", "p/", "a")


def note(revision: int, text: str = "") -> RevisionNote:
    return RevisionNote(revision, revision * 10.0, text.encode() or b"%d" % revision)


@pytest.fixture
async def store(file: Path) -> AsyncIterator[SqliteStore]:
    opened = await SqliteStore.open(file)
    yield opened
    await opened.close()


def kept(store: SqliteStore) -> Notes:
    found = notes_of(store)
    assert found is not None
    return found


async def filled(store: SqliteStore) -> Notes:
    """The revisions 2 to 6 of one key, with notes."""
    for expected in (0, 2, 3, 4, 5):
        await store.put(A, b"v", expected=expected)
    await kept(store).add([note(revision) for revision in range(2, 7)])
    return kept(store)


async def test_notes_are_found_by_their_revisions(store: SqliteStore) -> None:
    found = await filled(store)
    assert await found.between(0, 99, 99) == [note(revision) for revision in range(2, 7)]
    assert await found.between(3, 5, 99) == [note(4), note(5)]
    assert await found.between(2, 6, 2) == [note(3), note(4)]


async def test_a_note_replaces_another(store: SqliteStore) -> None:
    found = await filled(store)
    await found.add([note(3, "new")])
    assert await found.between(2, 3, 9) == [note(3, "new")]


@pytest.mark.parametrize(("seconds", "revision"), [(19.9, 0), (20.0, 2), (35.0, 3), (1000.0, 6)])
async def test_the_newest_revision_at_a_time(store: SqliteStore, seconds: float, revision: int) -> None:
    assert await (await filled(store)).revision_at(seconds) == revision


async def test_they_survive_the_store(store: SqliteStore, file: Path) -> None:
    await filled(store)
    await store.close()
    assert check(file).problems == []
    reopened = await SqliteStore.open(file)
    assert len(await kept(reopened).between(0, 99, 99)) == 5
    await reopened.close()
    with pytest.raises(Closed):
        await kept(reopened).add([note(7)])


async def test_compaction_removes_them_with_their_revisions(store: SqliteStore) -> None:
    found = await filled(store)
    await store.compact(4)
    assert [each.revision for each in await found.between(0, 99, 99)] == [4, 5, 6]
    await store.delete(A, expected=6)
    await store.put(Key("c", "p/", "b"), b"v", expected=0)
    await found.add([note(7), note(8)])
    await store.compact(8)
    assert [each.revision for each in await found.between(0, 99, 99)] == [8]


async def test_many_are_added_while_others_write_and_compact(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notes, "ADDED_AT_ONCE", 10)
    found = kept(store)

    async def write() -> None:
        revision = 0
        for _ in range(50):
            revision = await store.put(A, b"v", expected=revision)

    await asyncio.gather(write(), found.add([note(revision) for revision in range(2, 102)]), store.compact(1))
    assert len(await found.between(0, 999, 999)) == 100


async def test_a_file_of_the_format_before_gets_the_table(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection:
        first = migrations.MIGRATIONS[0]
        connection.executescript(
            f"{first} PRAGMA application_id = {migrations.APPLICATION_ID}; PRAGMA user_version = 1;"
        )
    opened = await SqliteStore.open(file)
    await filled(opened)
    assert len(await kept(opened).between(0, 99, 99)) == 5
    await opened.close()


def test_a_store_in_memory_keeps_none() -> None:
    assert notes_of(MemoryStore()) is None
