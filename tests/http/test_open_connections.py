"""The limit on connections, and which of them is closed."""

from __future__ import annotations

import asyncio
import gc
import socket
import sys
import weakref
from itertools import pairwise
from typing import Any

import pytest

from noxu.config import Config
from noxu.http.open_connections import MAX_CONNECTIONS, OpenConnections, max_connections, raise_file_limit
from noxu.process.server import ACCEPTED_AT_ONCE, Server
from tests.timing import eventually_async, hang_guard


class Peer:
    def __init__(self, *, is_idle: bool = True) -> None:
        self.is_idle = is_idle
        self.aborted = False

    def abort(self) -> None:
        self.aborted = True


def opened(connections: OpenConnections, *peers: Peer) -> list[bool]:
    """Which of the peers have been disconnected once all of them have connected."""
    for peer in peers:
        connections.opened(peer)
    return [peer.aborted for peer in peers]


def test_the_connection_that_is_idle_for_longest_makes_room() -> None:
    assert opened(OpenConnections(2), Peer(), Peer(), Peer(), Peer()) == [True, True, False, False]


def test_a_request_renews_a_connection() -> None:
    connections, first, second, third = OpenConnections(2), Peer(), Peer(), Peer()
    opened(connections, first, second)
    connections.used(first)
    assert opened(connections, third) == [False]
    assert (first.aborted, second.aborted) == (False, True)


def test_busy_connections_stay() -> None:
    busy = Peer(is_idle=False)
    assert opened(OpenConnections(2), busy, Peer(), Peer()) == [False, True, False]


def test_if_all_are_busy_the_new_one_is_refused() -> None:
    connections = OpenConnections(2)
    assert opened(connections, *(Peer(is_idle=False) for _ in range(3))) == [False, False, True]
    assert len(connections) == 2


def test_a_connection_that_is_lost_makes_room() -> None:
    connections, first = OpenConnections(1), Peer()
    opened(connections, first)
    connections.lost(first)
    connections.lost(first)
    assert opened(connections, Peer()) == [False]
    assert not first.aborted


@pytest.mark.parametrize(
    ("files", "limit"), [(64, 32), (1024, 960), (1_000_000, MAX_CONNECTIONS), (-1, MAX_CONNECTIONS)]
)
def test_the_limit_leaves_files_for_others(monkeypatch: pytest.MonkeyPatch, files: int, limit: int) -> None:
    class Limits:
        RLIMIT_NOFILE, RLIM_INFINITY = 7, -1

        @staticmethod
        def getrlimit(number: int) -> tuple[int, int]:
            assert number == 7
            return files, files

    monkeypatch.setitem(sys.modules, "resource", Limits)
    assert max_connections() == limit


def test_a_platform_without_limits_on_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "resource", None)
    assert max_connections() == MAX_CONNECTIONS


# soft and hard limit, what the kernel answers, the limit afterwards
RAISED = [
    ("a soft limit", (1024, 4096), None, (4096, 4096)),
    ("none", (4096, 4096), None, (4096, 4096)),
    ("an unlimited hard one", (256, -1), None, (-1, -1)),
    ("one that the kernel refuses", (256, -1), ValueError("current limit exceeds maximum limit"), (256, -1)),
    ("one that is not permitted", (256, 1024), OSError("Operation not permitted"), (256, 1024)),
]


@pytest.mark.parametrize(("limits", "error", "after"), [row[1:] for row in RAISED], ids=[row[0] for row in RAISED])
def test_a_server_may_open_as_many_files_as_its_hard_limit_allows(
    monkeypatch: pytest.MonkeyPatch, limits: tuple[int, int], error: Exception | None, after: tuple[int, int]
) -> None:
    class Limits:
        RLIMIT_NOFILE, RLIM_INFINITY = 7, -1
        found = limits

        @classmethod
        def getrlimit(cls, number: int) -> tuple[int, int]:
            assert number == 7
            return cls.found

        @classmethod
        def setrlimit(cls, number: int, wanted: tuple[int, int]) -> None:
            assert number == 7
            if error is not None:
                raise error
            cls.found = wanted

    monkeypatch.setitem(sys.modules, "resource", Limits)
    raise_file_limit()
    assert Limits.found == after


def test_a_platform_without_limits_on_files_has_none_to_raise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "resource", None)
    raise_file_limit()


# -- a server

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
HEALTH = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"


async def connected(server: Server, sent: bytes) -> Streams:
    reader, writer = await asyncio.open_connection("127.0.0.1", int(server.url.rpartition(":")[2]))
    writer.write(sent)
    return reader, writer


async def is_disconnected(reader: asyncio.StreamReader) -> bool:
    try:
        return await reader.read(1) == b""
    except ConnectionError:
        return True


async def test_a_server_closes_the_connection_that_is_idle_for_longest() -> None:
    async with hang_guard(), Server(Config(port=0)) as server:
        server.clients.connections._limit = 3
        watch = await connected(server, b"GET /api/v1/namespaces?watch=1 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await watch[0].readuntil(b"\r\n\r\n")
        others = []
        for _ in range(4):
            others.append(await connected(server, HEALTH))
            assert (await others[-1][0].readuntil(b"ok")).startswith(b"HTTP/1.1 200")
        assert [await is_disconnected(reader) for reader, _ in others[:2]] == [True, True]
        assert len(server.clients.connections) == 3
        for reader, writer in others[2:]:
            writer.write(HEALTH)
            assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200")
        for _, writer in (watch, *others):
            writer.close()
        await eventually_async(lambda: len(server.clients.connections) == 0)


async def test_a_connection_that_is_lost_needs_no_collection_of_garbage() -> None:
    """Nothing that it keeps from one request to the next refers to it."""
    async with hang_guard(), Server(Config(port=0)) as server:
        reader, writer = await connected(server, HEALTH)
        for _ in range(2):
            assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200")
            writer.write(HEALTH)
        assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200")
        [connection] = [weakref.ref(each) for each in server.clients.connections._peers]
        gc.disable()
        try:
            writer.close()
            await eventually_async(lambda: connection() is None)
        finally:
            gc.enable()


async def test_connections_are_accepted_a_few_at_a_time() -> None:
    """So that many at once do not block the event loop."""
    count, seen = 3 * ACCEPTED_AT_ONCE, [0]
    async with hang_guard(), Server(Config(port=0)) as server:
        peers = [socket.create_connection(("127.0.0.1", int(server.url.rpartition(":")[2]))) for _ in range(count)]
        while seen[-1] < count:
            await asyncio.sleep(0)
            seen.append(len(server.clients.connections))
        for peer in peers:
            peer.close()
    assert max(after - before for before, after in pairwise(seen)) <= ACCEPTED_AT_ONCE


HALVES = {
    "heads": b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 60_000,
    "bodies": b"POST /api/v1/namespaces HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999\r\n\r\n" + b"x" * 60_000,
}


@pytest.mark.parametrize("half", HALVES.values(), ids=HALVES)
async def test_incomplete_requests_take_limited_memory(half: bytes) -> None:
    async with hang_guard(), Server(Config(port=0)) as server:
        incoming: Any = server.clients.incoming
        incoming._limit = 100_000
        first = await connected(server, half)
        await eventually_async(lambda: incoming.total > 59_000)
        second = await connected(server, half)
        assert await is_disconnected(first[0])
        assert 59_000 < incoming.total < 100_000
        for _, writer in (first, second):
            writer.close()
        await eventually_async(lambda: incoming.total == 0)
