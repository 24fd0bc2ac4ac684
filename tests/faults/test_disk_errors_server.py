"""R3 for the whole server: while the disk is full it serves reads, refuses writes and is not ready; then it recovers."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from noxu.config import Config
from noxu.process.server import Server
from tests.faults.keepalive import Connection
from tests.faults.server_process import MAPS
from tests.faults.sqlite_files import Operation, SqliteFiles, Sync, Write
from tests.timing import eventually_async


@pytest.fixture
def files(tmp_path: Path) -> SqliteFiles:
    return SqliteFiles(tmp_path)


@pytest.fixture
async def server(files: SqliteFiles, tmp_path: Path) -> AsyncIterator[Server]:
    with files():
        async with Server(Config(port=0, data=tmp_path, profile="envtest")) as running:
            yield running


class Client(Connection):
    async def status_of(self, path: str) -> int:
        """Of a document that is no JSON."""
        reader, writer = await self.opened()
        writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        answer = await reader.read()
        self.close()
        return int(answer.split(b" ", 2)[1])


def config_map(name: str) -> Any:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


FAILURES = {
    "the disk is full": (sqlite3.SQLITE_FULL, Write),
    "writes fail": (sqlite3.SQLITE_IOERR | 3 << 8, Write),
    "syncs fail": (sqlite3.SQLITE_IOERR | 4 << 8, Sync),
}


@pytest.mark.parametrize("failure", FAILURES)
async def test_while_the_disk_fails_reads_are_served_and_the_server_is_not_ready(
    server: Server, files: SqliteFiles, failure: str, record_property: Callable[[str, object], None]
) -> None:
    code, kind = FAILURES[failure]

    def fails(operation: Operation) -> int:
        return code if isinstance(operation, kind) else 0

    client = Client(int(server.url.rpartition(":")[2]))
    assert (await client.ask("POST", MAPS, config_map("before")))[0] == 201
    assert await client.status_of("/readyz") == 200
    files.fails = fails
    for number in range(5):
        status, answer = await client.ask("POST", MAPS, config_map(f"refused{number}"))
        assert (status, answer["kind"]) == (500, "Status")
        assert await client.status_of("/readyz") == 500
        status, listed = await client.ask("GET", MAPS)
        assert (status, [item["metadata"]["name"] for item in listed["items"]]) == (200, ["before"])
    files.fails = lambda operation: 0
    start = time.monotonic()

    async def is_ready() -> bool:
        return await client.status_of("/readyz") == 200

    await eventually_async(is_ready)
    record_property("seconds until it is ready again", round(time.monotonic() - start, 2))
    assert (await client.ask("POST", MAPS, config_map("after")))[0] == 201
    _, listed = await client.ask("GET", MAPS)
    names = [item["metadata"]["name"] for item in listed["items"]]
    assert {"after", "before"} <= set(names) <= {"after", "before", "refused0"}  # the first one's outcome is unknown
    client.close()
