"""States in a new file keep their revisions, those in an existing one get new ones; and neither is ever half there."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from noxu_storage import state_file
from noxu_storage.check import check
from noxu_storage.snapshot import snapshot
from noxu_storage.sqlite import SqliteStore
from noxu_storage.state_file import existing_file, new_file
from noxu_storage.types import EVERYTHING, Compacted, Key, KeyValue, OpenError, Revision, Unavailable
from tests.storage.conftest import Collect


def state(name: str, revision: Revision, value: bytes | None = None) -> KeyValue:
    return KeyValue(Key("g/things", "p/", name), value or name.encode(), revision)


A, B, C = state("a", 7), state("b", 3), state("c", 5)


def states_of(file: Path) -> Sequence[KeyValue]:
    with snapshot(file) as found:
        return list(found.values(EVERYTHING))


def test_a_new_file_has_the_states_at_their_revisions(file: Path) -> None:
    with new_file(file, 9) as writer:
        writer.write([A])
        writer.write([B, C])
    assert states_of(file) == [A, B, C]
    report = check(file)
    assert (report.revision, report.compacted, report.keys, report.rows, report.problems) == (9, 9, 3, 4, [])
    assert (writer.unchanged, writer.moved) == (0, 0)
    assert file.stat().st_mode & 0o777 == 0o600


async def test_a_store_goes_on_where_the_copied_one_was(file: Path, collect: Collect) -> None:
    with new_file(file, 9) as writer:
        writer.write([A, B])
    store = await SqliteStore.open(file)
    assert (store.revision, store.compacted) == (9, 9)
    assert await store.put(A.key, b"new", expected=7) == 10
    [event] = await collect(store, after=9, upto=10)
    assert (event.key, event.previous) == (A.key, A)
    with pytest.raises(Compacted):
        await anext(store.watch(after=8))
    await store.compact(10)
    await store.close()
    assert check(file).problems == []


@pytest.mark.parametrize(
    ("states", "revision", "expected"),
    [
        ([], 1, 1),
        ([], 9, 9),
        ([A], 7, 7),
        ([A, state("b", 7), state("c", 7), state("d", 3)], 9, 11),
    ],
    ids=["nothing", "nothing left", "the newest is a state", "one transaction with several keys"],
)
def test_the_revision_of_a_new_file(
    states: Sequence[KeyValue], revision: Revision, expected: Revision, file: Path
) -> None:
    with new_file(file, revision) as writer:
        writer.write(states)
    report = check(file)
    assert (report.revision, report.keys, report.problems) == (expected, len(states), [])
    found = states_of(file)
    assert [(each.key, each.value) for each in found] == [(each.key, each.value) for each in states]
    assert writer.moved == sum(ours.revision != theirs.revision for ours, theirs in zip(found, states, strict=True))
    assert len({each.revision for each in found}) == len(states)


@pytest.mark.parametrize("name", ["noxu.db", "noxu.db-wal"])
def test_a_file_is_not_replaced(name: str, file: Path) -> None:
    (file.parent / name).write_bytes(b"old")
    with pytest.raises(OpenError, match=f"{name} exists; name another"), new_file(file, 1):
        pass
    assert {path.name: path.read_bytes() for path in file.parent.iterdir()} == {name: b"old"}


def test_a_file_that_appears_meanwhile_is_not_replaced(file: Path) -> None:
    def write() -> None:
        with new_file(file, 1):
            file.write_bytes(b"other")

    with pytest.raises(OpenError, match="exists; name another"):
        write()
    assert {path.name: path.read_bytes() for path in file.parent.iterdir()} == {"noxu.db": b"other"}


def test_a_file_system_without_links(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def link(*_: Any) -> None:
        raise OSError(errno.EPERM, "no links")

    monkeypatch.setattr(os, "link", link)
    with new_file(file, 9) as writer:
        writer.write([A])
    assert states_of(file) == [A]
    assert [path.name for path in file.parent.iterdir()] == ["noxu.db"]


def test_an_interrupted_file_is_not_there(file: Path) -> None:
    def write() -> None:
        with new_file(file, 9) as writer:
            writer.write([A])
            assert not file.exists()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write()
    assert list(file.parent.iterdir()) == []


def test_a_full_disk(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_file, "_INSERT_UNLESS_TAKEN", "SELECT full")

    def write() -> None:
        with new_file(file, 9) as writer:
            writer.write([A])

    with pytest.raises(Unavailable, match=r"noxu\.db cannot be written: "):
        write()
    assert list(file.parent.iterdir()) == []


def test_a_directory_that_cannot_be_written(file: Path) -> None:
    file.write_bytes(b"")
    with pytest.raises(OpenError, match="cannot be written"), new_file(file / "x" / "noxu.db", 1):
        pass


# -- an existing file


@pytest.fixture
async def filled(file: Path) -> Path:
    store = await SqliteStore.open(file)
    await store.put(A.key, b"old", expected=0)  # 2
    await store.put(B.key, B.value, expected=0)  # 3
    await store.put(C.key, b"gone", expected=0)  # 4
    await store.delete(C.key, expected=4)  # 5
    await store.put(Key("g/others", "", "d"), b"d", expected=0)  # 6
    await store.close()
    return file


def test_an_existing_file_keeps_what_is_not_copied(filled: Path) -> None:
    with existing_file(filled) as writer:
        writer.write([A, B])
        writer.write([C])
    assert writer.unchanged == 1
    assert [(each.key.name, each.value, each.revision) for each in states_of(filled)] == [
        ("d", b"d", 6),
        ("a", b"a", 7),
        ("b", b"b", 3),
        ("c", b"c", 8),
    ]
    assert check(filled).problems == []


async def test_a_store_shows_what_was_merged_as_writes(filled: Path, collect: Collect) -> None:
    with existing_file(filled) as writer:
        writer.write([A, C])
    store = await SqliteStore.open(filled)
    events = await collect(store, after=6, upto=8)
    assert [(event.key, event.value, event.previous) for event in events] == [
        (A.key, b"a", KeyValue(A.key, b"old", 2)),
        (C.key, b"c", None),
    ]
    await store.close()


def test_an_interrupted_merge_changes_nothing(filled: Path) -> None:
    before = states_of(filled)

    def write() -> None:
        with existing_file(filled) as writer:
            writer.write([A, C])
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write()
    assert states_of(filled) == before
    assert check(filled).problems == []


def test_a_corrupt_state_is_replaced(filled: Path) -> None:
    with sqlite3.connect(filled) as connection:
        connection.execute("UPDATE log SET value = 'a' WHERE revision = 2")
    connection.close()
    with existing_file(filled) as writer:
        writer.write([A])
    assert A.value in [each.value for each in states_of(filled)]


async def test_a_file_that_a_server_uses(filled: Path) -> None:
    store = await SqliteStore.open(filled)
    with pytest.raises(OpenError, match="in use by another process"), existing_file(filled):
        pass
    await store.close()


def test_what_is_no_store(file: Path) -> None:
    with pytest.raises(OpenError, match="is not a file"), existing_file(file):
        pass
    file.write_bytes(b"x" * 5000)
    with pytest.raises(OpenError, match="is not a store"), existing_file(file):
        pass


def test_the_past_of_a_file_can_be_read(filled: Path) -> None:
    with snapshot(filled, 4) as found:
        assert [each.key.name for each in found.values(EVERYTHING)] == ["a", "b", "c"]
    with pytest.raises(OpenError, match="does not have revision 9"), snapshot(filled, 9):
        pass
