"""A request says of itself what aiohttp's would say."""

from __future__ import annotations

import asyncio
from typing import Any, cast
from unittest.mock import Mock

import pytest
from aiohttp import web_request
from aiohttp.http import HttpRequestParser, HttpVersion11
from aiohttp.web_protocol import RequestHandler

from noxu.http import framing
from noxu.http.received import Received

HEADS: list[tuple[str, bytes]] = [
    ("a GET", b"GET /a?b=c HTTP/1.1\r\nHost: h\r\nAccept: x\r\naccept: y\r\n\r\n"),
    ("one with a body", b"POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nContent-Type: text/plain\r\n\r\nab"),
    ("a body in chunks", b"POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    ("one that closes", b"GET /a HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"),
    ("an old version", b"GET /a HTTP/1.0\r\n\r\n"),
    ("an old version that does not close", b"GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"),
    ("an absolute URL", b"GET http://other:1/a%2Fb?c HTTP/1.1\r\nHost: h\r\n\r\n"),
    ("the server as a whole", b"OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n"),
]
ATTRIBUTES = (
    "method", "version", "raw_path", "headers", "keep_alive", "content_length", "content_type", "can_read_body", "body_exists",
    "content", "protocol", "transport", "writer", "task", "remote", "secure", "scheme", "_loop",
)  # fmt: skip


def both(head: bytes) -> tuple[Received, web_request.BaseRequest]:
    loop = asyncio.get_running_loop()
    protocol: Any = Mock(RequestHandler, peername=("192.0.2.1", 5), ssl_context=None, sockname=("h", 1), _loop=loop)
    parser = HttpRequestParser(protocol, loop, 2**16)
    [(message, payload)], _, _ = parser.feed_data(head)
    given: Any = (message, payload, protocol, Mock(), Mock())
    return Received(*given), web_request.BaseRequest(*given, cast(Any, loop))


@pytest.mark.parametrize("head", [row[1] for row in HEADS], ids=[row[0] for row in HEADS])
async def test_it_says_what_the_one_of_aiohttp_says(head: bytes) -> None:
    ours, theirs = both(head)
    assert {name: getattr(ours, name) for name in ATTRIBUTES} == {name: getattr(theirs, name) for name in ATTRIBUTES}


async def test_its_answer_may_have_another_version() -> None:
    request, _ = both(b"GET /a HTTP/1.0\r\n\r\n")
    framing.answer_in_http_1_1(request)
    assert request.version == HttpVersion11
