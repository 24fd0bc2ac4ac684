"""A connection, step by step: what is parsed and what waits, when the socket pauses, and what follows a failure."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Hashable

import pytest

from noxu.http.clients import Clients
from noxu.http.connection import Connection
from noxu.http.limits import Limits
from noxu.http.received import Received, read_body
from noxu.registry.turns import CLIENT
from tests.http.wire import Wire, connected
from tests.timing import eventually_async, loop_turns

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
FEW = Limits(pipelined=4, read_ahead=1000)


def get(path: str, *headers: str) -> bytes:
    return "\r\n".join([f"GET {path} HTTP/1.1", "Host: h", *headers, "", ""]).encode()


class Gate:
    """A handler that answers when it is told to. `seen` are the targets of requests, as they are handled."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.released = asyncio.Event()

    async def __call__(self, request: Received) -> None:
        self.seen.append(request.raw_path)
        await self.released.wait()
        request.connection.answer(OK)


@contextlib.asynccontextmanager
async def gated(limits: Limits = FEW) -> AsyncIterator[tuple[Gate, Connection, Wire, Clients]]:
    gate, clients = Gate(), Clients(limits)
    connection, wire = connected(gate, clients)
    yield gate, connection, wire, clients
    connection.connection_lost(None)
    assert clients.incoming.total == len(clients.connections) == 0


# -- requests that wait for one another


async def test_a_few_requests_wait_and_the_rest_of_the_bytes_is_held() -> None:
    async with gated() as (gate, connection, wire, clients):
        sent = [get(f"/{n}") for n in range(20)]
        connection.data_received(b"".join(sent))
        await loop_turns()
        assert (gate.seen, wire.paused) == (["/0"], True)
        assert clients.incoming.total >= sum(map(len, sent[FEW.pipelined + 1 :]))
        gate.released.set()
        await eventually_async(lambda: wire.sent == OK * 20)
        assert gate.seen == [f"/{n}" for n in range(20)]
        assert not wire.paused
        await loop_turns()
        assert clients.incoming.total == 0


class AsUser:
    """A handler that authenticates those who say their name. `clients` are the ones for whom it works, as requests arrive."""

    def __init__(self) -> None:
        self.clients: list[Hashable] = []

    async def __call__(self, request: Received) -> None:
        self.clients.append(CLIENT.get())
        if name := request.headers.get("X-User"):
            CLIENT.set(name)
        request.connection.answer(OK)


async def test_the_user_of_one_request_is_not_the_client_of_the_next_one() -> None:
    handler = AsUser()
    connection, wire = connected(handler, Clients())
    connection.data_received(get("/", "X-User: jane") + get("/") + get("/", "X-User: bob") + get("/"))
    await eventually_async(lambda: wire.sent == OK * 4)
    assert handler.clients == ["192.0.2.1"] * 4, "turns in the threads are those of its address until it is known"
    connection.connection_lost(None)


async def test_reading_goes_on_when_half_of_them_are_answered() -> None:
    async with gated() as (gate, connection, wire, _):
        connection.data_received(b"".join(get(f"/{n}") for n in range(FEW.pipelined)))
        assert wire.paused
        await loop_turns()
        assert wire.paused, "one of four is being handled"
        gate.released.set()
        await eventually_async(lambda: not wire.paused)


async def test_requests_that_wait_count_as_incoming_but_not_the_one_that_is_handled() -> None:
    async with gated() as (gate, connection, _, clients):
        connection.data_received(get("/0"))
        await loop_turns()
        assert clients.incoming.total == 0
        connection.data_received(get("/1"))
        assert clients.incoming.total == 0, "it is the next one"
        connection.data_received(get("/2"))
        assert clients.incoming.total == len(get("/2"))
        gate.released.set()
        await eventually_async(lambda: clients.incoming.total == 0)


# -- bodies


async def test_the_socket_pauses_while_a_body_is_not_read() -> None:
    read = asyncio.Event()
    bodies: list[bytes] = []

    async def handle(request: Received) -> None:
        await read.wait()
        bodies.append(await read_body(request))
        request.connection.answer(OK)

    connection, wire = connected(handle, Clients(FEW))
    connection.data_received(b"POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 4000\r\n\r\n")
    connection.data_received(b"x" * 2500)
    assert wire.paused
    read.set()
    await eventually_async(lambda: not wire.paused)
    connection.data_received(b"x" * 1500 + get("/next"))
    await eventually_async(lambda: wire.sent == OK * 2)
    assert bodies == [b"x" * 4000, b""]
    connection.connection_lost(None)


# -- upgrades that are declined


async def test_what_follows_a_request_for_an_upgrade_is_kept_and_is_http_again() -> None:
    async with gated() as (gate, connection, wire, clients):
        connection.data_received(get("/0", "Connection: Upgrade", "Upgrade: websocket"))
        connection.data_received(get("/1", f"A: {'a' * 950}"))
        await loop_turns()
        assert (gate.seen, wire.paused) == (["/0"], False)
        connection.data_received(get("/2"))
        assert wire.paused, "there is more than what is read ahead"
        assert clients.incoming.total > FEW.read_ahead
        gate.released.set()
        await eventually_async(lambda: wire.sent == OK * 3)
        assert (gate.seen, wire.paused) == (["/0", "/1", "/2"], False)


# -- time


async def test_a_head_that_begins_while_another_request_is_handled_has_its_deadline_afterwards() -> None:
    async with gated(Limits(head_deadline=0.02)) as (gate, connection, wire, _):
        connection.data_received(get("/0"))
        connection.data_received(b"GET /1 HTTP/1.1\r\nHo")
        await asyncio.sleep(0.04)
        assert not wire.closed
        gate.released.set()
        await eventually_async(lambda: wire.closed)
        assert (gate.seen, wire.sent) == (["/0"], OK)


async def test_a_connection_that_is_used_is_not_idle() -> None:
    async with gated(Limits(idle_deadline=0.2)) as (gate, connection, wire, _):
        gate.released.set()
        for n in range(6):
            connection.data_received(get(f"/{n}"))
            await asyncio.sleep(0.05)
            assert not wire.closed
        await eventually_async(lambda: wire.closed)


# -- failures


async def test_a_bug_before_the_answer_is_answered_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def handle(request: Received) -> None:
        raise KeyError("x")

    connection, wire = connected(handle)
    connection.data_received(get("/0") + get("/1"))
    await eventually_async(lambda: wire.closed)
    assert wire.sent.startswith(b"HTTP/1.1 500 Internal Server Error\r\nServer: noxu\r\n")
    assert wire.sent.count(b"HTTP/1.1") == 1
    assert [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR] == [
        "a connection failed"
    ]
    connection.connection_lost(None)


async def test_a_bug_in_the_middle_of_an_answer_ends_it() -> None:
    async def handle(request: Received) -> None:
        request.connection.answer(OK[:-1])
        raise KeyError("x")

    connection, wire = connected(handle)
    connection.data_received(get("/0"))
    await eventually_async(lambda: wire.closed)
    assert wire.sent == OK[:-1]
    connection.connection_lost(None)


async def test_malformed_http_is_answered_when_its_turn_comes_and_nothing_after_it() -> None:
    async with gated() as (gate, connection, wire, _):
        connection.data_received(get("/0") + b"\0\0\0\0\r\n\r\n" + get("/2"))
        connection.data_received(get("/3"))
        await loop_turns()
        assert wire.sent == b""
        gate.released.set()
        await eventually_async(lambda: wire.closed)
        assert wire.sent.startswith(OK + b"HTTP/1.1 400 Bad Request\r\n")
        assert gate.seen == ["/0"]


async def test_a_client_that_is_gone_ends_the_handler() -> None:
    async with gated() as (gate, connection, _, _):
        connection.data_received(get("/0"))
        await loop_turns()
        task = connection.task
        assert task is not None
        connection.connection_lost(None)
        await asyncio.wait([task])
        assert task.cancelled()
        with pytest.raises(ConnectionResetError):
            connection.answer(OK)
        assert gate.seen == ["/0"]
