"""A backup: one file with the state at one revision, in spite of writes meanwhile, or an error and no file."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from noxu.control import backup
from noxu.control.differences import Changes
from noxu.testing.handle import Noxu
from noxu_storage import state_file
from noxu_storage.memory import MemoryStore
from noxu_storage.snapshot import snapshot
from noxu_storage.sqlite import SqliteStore
from noxu_storage.store import Store
from noxu_storage.types import EVERYTHING, Compacted, Key, KeyValue, Unavailable
from tests.control.test_snapshots import call, config_map
from tests.hostile.raw_http import Reply, Target
from tests.timing import eventually, eventually_async


def download(noxu: Noxu, query: str = "") -> Reply:
    return Target(noxu.url).send("GET", f"/_noxu/backup{query}", b"", {})


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    store: Store = MemoryStore() if request.param == "memory" else await SqliteStore.open(tmp_path / "noxu.db", "off")
    for number in range(1200):
        await store.put(Key("/things", "default/", f"{number:04}"), b"%d" % number, expected=0)
    yield store
    await store.close()


async def change(store: Store) -> None:
    """Change, delete and create things, here and there."""
    for number in range(0, 1200, 7):
        key = Key("/things", "default/", f"{number:04}")
        state = await store.get(key)
        assert state is not None
        revision = await store.put(key, b"changed", expected=state.revision)
        if number % 3 == 0:
            revision = await store.delete(key, expected=revision)
        if number % 2 == 0:
            await store.put(key, b"again", expected=0 if number % 3 == 0 else revision)
        await store.put(Key("/things", "new/", f"{number}"), b"new", expected=0)
        await asyncio.sleep(0)


async def test_it_has_the_state_at_its_revision_whatever_is_written_meanwhile(store: Store) -> None:
    revision = store.revision

    async def read() -> list[KeyValue]:
        read: list[KeyValue] = []
        async for states in backup.states_at(store, revision):
            read += states
            await asyncio.sleep(0.001)
        return read

    states, _, again = await asyncio.gather(read(), change(store), read())
    expected = (await store.list(EVERYTHING, revision=revision)).items
    assert sorted(states) == sorted(again) == expected
    assert len(expected) == 1200
    assert sorted(await read()) == expected


def write(path: Path, content: bytes) -> None:
    path.write_bytes(content)


async def test_it_is_a_file_that_can_be_read(store: Store, tmp_path: Path) -> None:
    revision, path = store.revision, tmp_path / "backup.db"
    (opened, number), _ = await asyncio.gather(backup.made(store, revision, tmp_path), change(store))
    assert number == 1200
    write(path, b"".join([piece async for piece in backup.pieces(opened)]))
    assert opened.closed
    with snapshot(path) as file:
        assert file.revision == revision
        assert [*file.values(EVERYTHING)] == (await store.list(EVERYTHING, revision=revision)).items


def names(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}


async def test_a_backup_that_is_cancelled_leaves_nothing(store: Store, tmp_path: Path) -> None:
    before = names(tmp_path)
    saving = asyncio.create_task(backup.made(store, store.revision, tmp_path))
    await eventually_async(lambda: names(tmp_path) != before)
    saving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await saving
    await eventually_async(lambda: names(tmp_path) == before)
    await eventually_async(lambda: not any(thread.name.startswith("noxu-backup") for thread in threading.enumerate()))


def test_it_is_downloaded_and_leaves_nothing_on_the_server(tmp_path: Path) -> None:
    with Noxu(data=tmp_path / "data") as noxu:
        noxu.create(config_map(size="1"))
        there = set((tmp_path / "data").iterdir())
        reply = download(noxu)
        assert (reply.status, reply.headers["content-type"]) == (200, "application/vnd.sqlite3")
        eventually(lambda: set((tmp_path / "data").iterdir()) == there)
        (tmp_path / "backup.db").write_bytes(reply.body)
        with snapshot(tmp_path / "backup.db") as file:
            assert b'"size":"1"' in next(
                state.value for state in file.values(EVERYTHING) if state.key == Key("/configmaps", "default/", "a")
            )
            assert file.count(EVERYTHING) == call(noxu, "POST", "")[1]["keys"]


def test_what_a_killed_server_has_left_is_removed_at_the_next_start(tmp_path: Path) -> None:
    with Noxu(data=tmp_path) as noxu:
        noxu.create(config_map())
    (tmp_path / ".backup-x7k2p").mkdir()
    (tmp_path / ".backup-x7k2p" / "half.db").write_text("half")
    with Noxu(data=tmp_path):
        assert not [*tmp_path.glob(".backup-*")]


def test_it_may_be_that_of_a_snapshot(noxu: Noxu, tmp_path: Path) -> None:
    noxu.create(config_map(size="then"))
    taken = call(noxu, "POST", "", {"name": "base"})[1]
    noxu.apply(config_map(size="now"))
    (tmp_path / "backup.db").write_bytes(download(noxu, "?snapshot=base").body)
    with snapshot(tmp_path / "backup.db") as file:
        assert file.revision == taken["revision"]
        states = {state.key: state.value for state in file.values(EVERYTHING)}
    assert b'"size":"then"' in states[Key("/configmaps", "default/", "a")]
    assert len(states) == taken["keys"]


def test_an_unknown_snapshot_cannot_be_saved(noxu: Noxu) -> None:
    reply = download(noxu, "?snapshot=base")
    assert (reply.status, reply.message) == (404, "there is no snapshot 'base': there is none")


@pytest.fixture
def nothing_left(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    yield
    eventually(lambda: not [*tmp_path.glob(".backup-*")])


@pytest.mark.usefixtures("nothing_left")
def test_a_full_disk_is_an_error_and_no_half_a_file(noxu: Noxu, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise Unavailable("/secret/.backup-x/backup.db cannot be written: database or disk is full")

    monkeypatch.setattr(state_file._New, "write", full)
    reply = download(noxu)
    assert reply.status == 500
    assert reply.message == (
        "the backup cannot be made on the disk of the server: the file cannot be written: database or disk is full"
    )
    monkeypatch.undo()
    assert download(noxu).status == 200


@pytest.mark.usefixtures("nothing_left")
def test_values_that_cannot_be_read_are_not_left_out_silently(noxu: Noxu, monkeypatch: pytest.MonkeyPatch) -> None:
    scan = MemoryStore.scan

    async def scan_without_some(self: MemoryStore, texts: Sequence[bytes]) -> AsyncIterator[Sequence[KeyValue]]:
        async for states in scan(self, texts):
            yield [state for state in states if state.key.collection != "/namespaces"]

    monkeypatch.setattr(MemoryStore, "scan", scan_without_some)
    reply = download(noxu)
    assert reply.status == 500
    assert "4 of 64 values cannot be read, and would be missing in the backup: stop the server" in reply.message


@pytest.mark.usefixtures("nothing_left")
def test_history_that_is_compacted_meanwhile_is_an_error(noxu: Noxu, monkeypatch: pytest.MonkeyPatch) -> None:
    async def compacted(*_: Any) -> None:
        raise Compacted(7)

    monkeypatch.setattr(Changes, "follow", compacted)
    reply = download(noxu)
    assert (reply.status, reply.message) == (
        410,
        "the history that the backup needs was compacted meanwhile: save it again",
    )


def test_a_file_is_one_of_sqlite(noxu: Noxu, tmp_path: Path) -> None:
    (tmp_path / "backup.db").write_bytes(download(noxu).body)
    with sqlite3.connect(tmp_path / "backup.db") as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()
