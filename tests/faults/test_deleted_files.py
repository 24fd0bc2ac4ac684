"""A file of a running store is deleted: SQLite goes on without an error, and everything it stores is gone afterwards."""

from __future__ import annotations

import asyncio
import contextlib
import os
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from noxu.config import Config
from noxu.process.server import Server
from noxu_storage.sqlite import SqliteStore
from noxu_storage.types import EVERYTHING, Key, Unavailable
from tests.timing import hang_guard


def key(name: str) -> Key:
    return Key("g/things", "p/", name)


def delete_database(path: Path) -> None:
    path.unlink()


def delete_all(path: Path) -> None:
    for file in path.parent.iterdir():
        file.unlink()
    path.parent.rmdir()


def delete_log(path: Path) -> None:
    Path(f"{path}-wal").unlink()


def replace_database(path: Path) -> None:
    (path.parent / "other").write_bytes(b"")
    os.replace(path.parent / "other", path)  # noqa: PTH105 - as `mv`


DAMAGE = {
    "the database": delete_database,
    "its directory": delete_all,
    "the write-ahead log": delete_log,
    "the database, and another file has its name": replace_database,
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
async def test_no_write_is_acknowledged_after_a_file_was_deleted(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    path = tmp_path / "data" / "noxu.db"
    store = await SqliteStore.open(path)
    async with hang_guard():
        await store.put(key("before"), b"1", expected=0)
        damage(path)
        for name in ("first", "second"):
            with pytest.raises(Unavailable, match=r"was deleted while it was in use: .* restart the server"):
                await store.put(key(name), b"1", expected=0)
        found = await store.get(key("before"))
        assert found is not None
        assert found.value == b"1"
        assert [item.key.name for item in (await store.list(EVERYTHING)).items] == ["before"]
        await store.close()


async def test_health_reports_a_deleted_file_without_a_write(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / "noxu.db")
    assert (await store.status()).fault == ""
    delete_database(tmp_path / "noxu.db")
    assert "noxu.db was deleted while it was in use" in (await store.status()).fault
    await store.close()


async def test_a_file_that_was_moved_is_still_in_use(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    store = await SqliteStore.open(tmp_path / "data" / "noxu.db")
    (tmp_path / "data").rename(tmp_path / "moved")
    await store.put(key("a"), b"1", expected=0)
    await store.close()
    reopened = await SqliteStore.open(tmp_path / "moved" / "noxu.db")
    assert await reopened.get(key("a")) is not None
    await reopened.close()


async def test_the_lock_on_the_file_is_kept(tmp_path: Path) -> None:
    """Closing a handle would release it."""
    store = await SqliteStore.open(tmp_path / "noxu.db")
    store._files.refresh()
    with pytest.raises(Exception, match="is in use"):
        await SqliteStore.open(tmp_path / "noxu.db")
    await store.put(key("a"), b"1", expected=0)
    with pytest.raises(Exception, match="is in use"):
        await SqliteStore.open(tmp_path / "noxu.db")
    await store.close()


def open_files() -> set[str]:
    found = set()
    for link in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # the handle of this very loop
            found.add(str(link.readlink()))
    return found


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="platform: /proc/self/fd")
async def test_handles_are_closed_with_the_store(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / "noxu.db")
    assert str(tmp_path / "noxu.db") in open_files()
    await store.close()
    assert not any(path.startswith(str(tmp_path)) for path in open_files())


async def test_the_server_refuses_writes_and_is_not_ready(tmp_path: Path) -> None:
    def answer(path: str, body: bytes | None = None) -> tuple[int, str]:
        request = urllib.request.Request(server.url + path, body, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    async with Server(Config(port=0, data=tmp_path / "data")) as server:
        delete_database(tmp_path / "data" / "noxu.db")
        namespace = b'{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"a"}}'
        code, text = await asyncio.to_thread(answer, "/api/v1/namespaces", namespace)
        assert code == 500
        assert "was deleted while it was in use" in text
        assert (await asyncio.to_thread(answer, "/api/v1/namespaces/default"))[0] == 200
        assert (await asyncio.to_thread(answer, "/readyz"))[0] == 500
