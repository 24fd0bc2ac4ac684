"""A request as it is received: its attributes, what is refused about its head, and its body."""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

import pytest
from aiohttp.http import HttpVersion10, HttpVersion11

from noxu.api.codec import MAX_BODY
from noxu.api.errors import ApiError
from noxu.http.request import Received, answer_to_malformed, read_body
from tests.http.wire import connected
from tests.rows import rows
from tests.timing import eventually_async


class Head(NamedTuple):
    """What is sent, and the attributes of the request."""

    sent: bytes
    method: str
    raw_path: str
    keep_alive: bool
    has_body: bool = False
    version: Any = HttpVersion11


HEADS: dict[str, Head] = {
    "a GET": Head(b"GET /a?b=c HTTP/1.1\r\nHost: h\r\n\r\n", "GET", "/a?b=c", True),
    "a body": Head(b"POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nab", "POST", "/a", True, True),
    "a body in chunks": Head(
        b"POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
        "POST",
        "/a",
        True,
        True,
    ),
    "one that closes": Head(b"GET /a HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", "GET", "/a", False),
    "an old version": Head(b"GET /a HTTP/1.0\r\n\r\n", "GET", "/a", False, version=HttpVersion10),
    "an old version that does not close": Head(
        b"GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "GET", "/a", True, version=HttpVersion10
    ),
    "an absolute URL": Head(b"GET http://o:1/a%2Fb?c HTTP/1.1\r\nHost: h\r\n\r\n", "GET", "http://o:1/a%2Fb?c", True),
    "the server as a whole": Head(b"OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n", "OPTIONS", "*", True),
    "an unknown method": Head(b"BREW /a HTTP/1.1\r\nHost: h\r\n\r\n", "BREW", "/a", True),
}


async def requests_of(sent: bytes) -> list[Received]:
    """The requests that a connection makes of bytes."""
    found: list[Received] = []

    async def handle(request: Received) -> None:
        found.append(request)

    connection, _ = connected(handle)
    connection.data_received(sent)
    await eventually_async(lambda: found)
    connection.connection_lost(None)
    return found


@rows("head", HEADS.values(), ids=HEADS)
async def test_the_attributes_of(head: Head) -> None:
    [request] = await requests_of(head.sent)
    assert (request.method, request.raw_path, request.version) == (head.method, head.raw_path, head.version)
    assert (request.keep_alive, not request.body.at_eof()) == (head.keep_alive, head.has_body)
    assert request.headers.get("host", "") == ("h" if b"Host" in head.sent else "")
    assert request.remote == "192.0.2.1"
    assert request.connection.transport is None, "the client is gone"


async def test_a_body_may_arrive_when_it_is_being_read() -> None:
    bodies: list[bytes] = []

    async def handle(request: Received) -> None:
        bodies.append(await read_body(request))

    connection, wire = connected(handle)
    connection.data_received(b"PUT /a HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n")
    await eventually_async(lambda: wire.sent)
    assert wire.sent == b"HTTP/1.1 100 Continue\r\n\r\n"
    for piece in (b"ab", b"cd"):
        connection.data_received(piece)
        await asyncio.sleep(0)
    await eventually_async(lambda: bodies == [b"abcd"])
    connection.connection_lost(None)


@pytest.mark.parametrize(
    "framing", [b"Content-Length: %d\r\n\r\n" % (MAX_BODY + 1), b"Transfer-Encoding: chunked\r\n\r\n"]
)
async def test_a_body_may_be_too_large(framing: bytes) -> None:
    errors: list[int] = []

    async def handle(request: Received) -> None:
        try:
            await read_body(request)
        except ApiError as error:
            errors.append(error.code)

    connection, _ = connected(handle)
    connection.data_received(b"POST /a HTTP/1.1\r\nHost: h\r\n" + framing)
    for _ in range(60):
        connection.data_received(b"10000\r\n" + b"x" * 0x10000 + b"\r\n")
        await asyncio.sleep(0)
    await eventually_async(lambda: errors == [413])
    assert connection.closes
    connection.connection_lost(None)


MALFORMED: dict[str, tuple[str, int]] = {
    "a version to come": ("Invalid HTTP version:\n\n  b'GET / HTTP/3.7'\n  ^", 505),
    "another minor version": ("Invalid HTTP version:\n\n  b'GET / HTTP/1.2'\n  ^", 400),
    "a version in the path": ("Invalid HTTP version:\n\n  b'GET /HTTP/3.7 HTTP/1.2'\n  ^", 400),
    "anything else": ("Invalid header token", 400),
}


@pytest.mark.parametrize(("message", "code"), MALFORMED.values(), ids=MALFORMED)
def test_the_answer_to_malformed_http(message: str, code: int) -> None:
    assert answer_to_malformed(message)[0] == code
