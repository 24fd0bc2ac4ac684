"""What clients cost together: how it is counted, and who is disconnected when that is too much."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket
import sys
import weakref
from itertools import pairwise
from typing import Any

import pytest

from noxu.config import Config
from noxu.http import clients
from noxu.http.clients import Incoming, OpenConnections, Part, Unsent, max_connections, raise_file_limit
from noxu.http.limits import DEFAULT_LIMITS, Limits
from noxu.process.server import ACCEPTED_AT_ONCE, Server
from tests.timing import eventually_async, hang_guard

# -- the bytes of answers that are not read


class Reading:
    """A client with `size` unsent bytes. Disconnected, it ends its answer, as a handler does whose client is gone."""

    def __init__(self, unsent: Unsent, size: int = 1000) -> None:
        self.size, self.aborted = size, False
        self._unsent = unsent
        self._answers = contextlib.ExitStack()

    def unsent_bytes(self) -> int:
        return self.size

    def abort(self) -> None:
        self.aborted = True

    def sends(self, *parts: Part) -> None:
        self._answers.enter_context(self._unsent.held(self, parts))

    def is_done(self) -> None:
        self._answers.close()


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


X, Y = b"x" * 2000, b"y" * 1000


def stalled(unsent: Unsent, clock: Clock, count: int, *, seconds: float) -> list[Reading]:
    """Clients that have stalled one after another, the last of them `seconds` ago."""
    peers = [Reading(unsent) for _ in range(count)]
    for peer in peers:
        unsent.stalls(peer)
        clock.now += 0.001
    clock.now += seconds
    return peers


COUNTED: list[tuple[str, list[tuple[Part, ...]], int]] = [
    ("one answer", [(X,)], 2000),
    ("two answers", [(X,), (Y,)], 3000),
    ("two answers with the same bytes", [(X,), (X,)], 2000),
    ("slices of the same bytes", [(memoryview(X)[:10], b"12345", memoryview(X)[10:]), (X,)], 2005),
    ("the same bytes twice in an answer", [(X, X)], 2000),
    ("nothing", [()], 0),
]


@pytest.mark.parametrize(("answers", "total"), [row[1:] for row in COUNTED], ids=[row[0] for row in COUNTED])
def test_bytes_count_once_until_the_last_answer_is_sent(answers: list[tuple[Part, ...]], total: int) -> None:
    unsent = Unsent()
    peers = [Reading(unsent) for _ in answers]
    for peer, parts in zip(peers, answers, strict=True):
        peer.sends(*parts)
    assert unsent.total == total
    *others, last = peers
    for peer in others:
        peer.is_done()
    assert unsent.total == sum(len(whole) for whole in {id(w): w for w in map(clients._whole, answers[-1])}.values())
    last.is_done()
    assert unsent.total == 0


async def test_beyond_the_limit_the_client_that_has_read_nothing_for_longest_is_disconnected() -> None:
    clock = Clock()
    unsent = Unsent(Limits(unsent=2500), now=clock)
    first, second = stalled(unsent, clock, 2, seconds=DEFAULT_LIMITS.min_stalled)
    first.sends(Y)
    second.sends(bytes(Y[:-1]))
    Reading(unsent).sends(X[:-1])
    assert (first.aborted, second.aborted) == (True, True)  # one is not enough
    Reading(unsent).sends(b"a" * 400)
    assert unsent.total == 1999 + 400


async def test_as_few_are_disconnected_as_possible() -> None:
    clock = Clock()
    unsent = Unsent(Limits(unsent=2500), now=clock)
    first, second = stalled(unsent, clock, 2, seconds=DEFAULT_LIMITS.min_stalled)
    first.sends(Y)
    second.sends(X[:500])
    Reading(unsent).sends(X)
    assert (first.aborted, second.aborted) == (True, False)
    assert unsent.total == 2500


async def test_a_client_that_holds_nothing_is_not_disconnected() -> None:
    clock = Clock()
    unsent = Unsent(Limits(unsent=1), now=clock)
    idle, holder = stalled(unsent, clock, 2, seconds=DEFAULT_LIMITS.min_stalled)
    holder.sends(X)
    assert (idle.aborted, holder.aborted) == (False, True)


async def test_bytes_that_another_client_shares_stay_counted() -> None:
    clock = Clock()
    unsent = Unsent(Limits(unsent=2500), now=clock)
    [peer] = stalled(unsent, clock, 1, seconds=DEFAULT_LIMITS.min_stalled)
    peer.sends(X)
    Reading(unsent).sends(X)
    Reading(unsent).sends(Y)
    assert (peer.aborted, unsent.total) == (True, 3000)


async def test_the_limit_is_checked_again_once_however_many_answers_exceed_it() -> None:
    unsent = Unsent(Limits(unsent=1))
    checks = set()
    for _ in range(3):
        Reading(unsent).sends(X)
        assert unsent._check is not None
        checks.add(unsent._check)
    assert sum(not check.cancelled() for check in checks) == 1


READING: list[tuple[str, str]] = [
    ("has read everything", "all"),
    ("has read something", "some"),
    ("stalls since a moment ago", "late"),
]


@pytest.mark.parametrize("how", [row[1] for row in READING], ids=[row[0] for row in READING])
async def test_a_client_is_not_disconnected_that(how: str) -> None:
    clock = Clock()
    unsent = Unsent(Limits(unsent=1), now=clock)
    [peer] = stalled(unsent, clock, 1, seconds=DEFAULT_LIMITS.min_stalled * (0.9 if how == "late" else 1.1))
    if how == "all":
        unsent.reads(peer)
    elif how == "some":
        peer.size -= 1
    peer.sends(X)
    assert not peer.aborted
    assert not unsent.disconnect_stalled()


async def test_the_limit_is_checked_again_when_clients_have_stalled_for_long_enough() -> None:
    unsent = Unsent(Limits(unsent=1, min_stalled=0.01))
    peer = Reading(unsent)
    unsent.stalls(peer)
    peer.sends(X)
    await eventually_async(lambda: peer.aborted)
    assert unsent.total == 0
    peer.is_done()
    assert unsent.total == 0


def test_one_client_is_disconnected_in_favour_of_a_refused_request() -> None:
    clock = Clock()
    unsent = Unsent(now=clock)
    first, second = stalled(unsent, clock, 2, seconds=DEFAULT_LIMITS.min_stalled)
    assert unsent.disconnect_stalled()
    assert (first.aborted, second.aborted) == (True, False)
    assert unsent.disconnect_stalled()
    assert not unsent.disconnect_stalled()


def test_one_object_of_bytes_is_not_another(monkeypatch: pytest.MonkeyPatch) -> None:
    value: Any = bytearray(b"x")
    with pytest.raises(AssertionError):
        clients._whole(memoryview(value))


# -- the bytes of incomplete requests


class Peer:
    def __init__(self, *, is_idle: bool = True) -> None:
        self.is_idle = is_idle
        self.was_used = False
        self.aborted = False

    def abort(self) -> None:
        self.aborted = True


def test_the_request_that_began_first_makes_room() -> None:
    incoming, first, second, third = Incoming(Limits(incoming=100)), Peer(), Peer(), Peer()
    incoming.add(first, 40)
    incoming.add(second, 40)
    incoming.add(first, 20)
    assert (incoming.total, first.aborted) == (100, False)
    incoming.add(third, 1)
    assert (incoming.total, first.aborted, second.aborted, third.aborted) == (41, True, False, False)


def test_complete_requests_do_not_count() -> None:
    incoming, first, second = Incoming(Limits(incoming=100)), Peer(), Peer()
    incoming.add(first, 60)
    incoming.end(first)
    incoming.end(first)
    incoming.add(second, 60)
    assert (incoming.total, first.aborted, second.aborted) == (60, False, False)


def test_a_request_that_exceeds_the_limit_alone_ends() -> None:
    incoming, only = Incoming(Limits(incoming=100)), Peer()
    incoming.add(only, 101)
    assert (incoming.total, only.aborted) == (0, True)


# -- the number of connections


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
    first.was_used = True
    assert opened(connections, third) == [False]
    assert (first.aborted, second.aborted) == (False, True)


def test_if_all_are_used_the_first_one_makes_room() -> None:
    connections, first, second = OpenConnections(2), Peer(), Peer()
    opened(connections, first, second)
    first.was_used = second.was_used = True
    assert opened(connections, Peer()) == [False]
    assert (first.aborted, second.aborted) == (True, False)


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
    ("files", "limit"),
    [(64, 32), (1024, 960), (1_000_000, DEFAULT_LIMITS.connections), (-1, DEFAULT_LIMITS.connections)],
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
    assert max_connections() == DEFAULT_LIMITS.connections


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
        server.clients.connections.limit = 3
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
        incoming = server.clients.incoming
        incoming.limits = Limits(incoming=100_000)
        first = await connected(server, half)
        await eventually_async(lambda: incoming.total > 59_000)
        second = await connected(server, half)
        assert await is_disconnected(first[0])
        assert 59_000 < incoming.total < 100_000
        for _, writer in (first, second):
            writer.close()
        await eventually_async(lambda: incoming.total == 0)
