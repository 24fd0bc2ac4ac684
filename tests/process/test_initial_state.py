"""A server that begins with a file: its objects, their resourceVersions, and files with which none can begin."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from noxu.config import Config, StartError
from noxu.process.server import Server
from noxu.process.stores import FILE
from noxu_storage import pins
from noxu_storage.migrations import MIGRATIONS
from noxu_storage.sqlite import SqliteStore
from noxu_storage.state_file import new_file
from noxu_storage.types import Key, KeyValue

MAPS = "/api/v1/namespaces/default/configmaps"


async def ask(server: Server, method: str, path: str, value: Any = None) -> tuple[int, Any]:
    async with aiohttp.ClientSession(server.url) as session, session.request(method, path, json=value) as answer:
        return answer.status, await answer.json() if answer.content_type == "application/json" else await answer.text()


@pytest.fixture
async def saved(tmp_path: Path) -> Path:
    """The file of a data directory that has a ConfigMap, whose resourceVersion is not the newest."""
    async with Server(Config(port=0, data=tmp_path / "before")) as server:
        await ask(server, "POST", MAPS, {"metadata": {"name": "a"}, "data": {"size": "1"}})
        await ask(server, "POST", MAPS, {"metadata": {"name": "b"}})
        await server.plane.store.put(Key(pins.COLLECTION, "", "base"), b"{}", expected=0)
    return tmp_path / "before" / FILE


@pytest.fixture(params=["memory", "directory"])
def config(request: pytest.FixtureRequest, saved: Path, tmp_path: Path) -> Config:
    data = None if request.param == "memory" else tmp_path / "after"
    return Config(port=0, data=data, initial=saved)


def content_of(path: Path) -> bytes:
    return path.read_bytes()


async def test_it_has_the_objects_and_their_resource_versions(config: Config, saved: Path, tmp_path: Path) -> None:
    async with Server(Config(port=0, data=saved.parent)) as server:
        _, before = await ask(server, "GET", f"{MAPS}/a")
    content = content_of(saved)
    async with Server(config) as server:
        assert (await ask(server, "GET", f"{MAPS}/a"))[1] == before
        _, new = await ask(server, "POST", MAPS, {"metadata": {"name": "c"}})
        assert int(new["metadata"]["resourceVersion"]) > int(before["metadata"]["resourceVersion"])
        assert (await ask(server, "GET", "/readyz"))[0] == 200
        assert await ask(server, "GET", "/_noxu/snapshots") == (200, {"items": []})
        code, status = await ask(server, "GET", f"{MAPS}?watch=1&resourceVersion=5")
        assert code == 200
        assert "too old resource version" in str(status)
    assert content_of(saved) == content
    if config.data is not None:
        async with Server(Config(port=0, data=config.data)) as server:
            assert (await ask(server, "GET", f"{MAPS}/c"))[0] == 200


@pytest.fixture
def read_only(saved: Path) -> None:
    saved.chmod(0o400)


@pytest.mark.usefixtures("read_only")
async def test_a_file_that_may_only_be_read_is_enough(config: Config) -> None:
    async with Server(config) as server:
        assert (await ask(server, "GET", f"{MAPS}/a"))[0] == 200


async def test_a_data_directory_that_exists_is_not_touched(saved: Path, tmp_path: Path) -> None:
    there = tmp_path / "there"
    store = await SqliteStore.open(there / FILE)
    await store.close()
    content = (there / FILE).read_bytes()
    with pytest.raises(StartError, match=r"noxu\.db exists already; start without --from, or name another --data"):
        await Server(Config(port=0, data=there, initial=saved)).__aenter__()
    assert (there / FILE).read_bytes() == content


def missing(_: Path) -> None: ...


def foreign(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE t (a)")
    connection.close()


def text(path: Path) -> None:
    path.write_text("kind: List\n" * 1000)


def newer(path: Path) -> None:
    written(path)
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    connection.close()


def truncated(path: Path) -> None:
    written(path)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def damaged(path: Path) -> None:
    written(path)
    content = path.read_bytes()
    path.write_bytes(content.replace(b'"number":77', b'"number":78'))


def written(path: Path) -> None:
    with new_file(path, 2000) as writer:
        states = [
            KeyValue(Key("/things", "default/", str(number)), b'{"number":%d}' % number + b" " * 500, number + 2)
            for number in range(200)
        ]
        writer.write(states)


FILES: list[tuple[Callable[[Path], None], str]] = [
    (missing, "is not a file"),
    (foreign, "is a SQLite file of another program"),
    (text, "is not a store"),
    (newer, "this version knows formats up to"),
    (truncated, "corrupt"),
    (damaged, "the checksums of 1 values do not match; noxu check names them"),
]


def names(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()} if directory.exists() else set()


@pytest.mark.parametrize("in_memory", [True, False])
@pytest.mark.parametrize(("make", "message"), FILES, ids=[make.__name__ for make, _ in FILES])
async def test_a_file_with_which_no_server_can_begin(
    make: Callable[[Path], None], message: str, in_memory: bool, tmp_path: Path
) -> None:
    make(tmp_path / "file.db")
    data = None if in_memory else tmp_path / "data"
    with pytest.raises(StartError, match="--from ") as refused:
        await Server(Config(port=0, data=data, initial=tmp_path / "file.db")).__aenter__()
    assert message in str(refused.value)
    assert data is None or names(data) <= {".gitignore"}


async def test_a_file_that_a_server_uses(saved: Path) -> None:
    async with Server(Config(port=0, data=saved.parent)):
        with pytest.raises(StartError, match="is in use: a server is running on it"):
            await Server(Config(port=0, initial=saved)).__aenter__()


async def test_a_restart_goes_on_with_what_is_there(config: Config) -> None:
    async with Server(config) as server:
        await ask(server, "DELETE", f"{MAPS}/a")
    async with Server(config, after=server) as server:
        assert (await ask(server, "GET", f"{MAPS}/a"))[0] == 404
    await asyncio.sleep(0)
