"""Requests and connections without a socket: what a connection would have received, and what it has sent."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any
from unittest import mock

from aiohttp.http import HttpVersion, HttpVersion11
from aiohttp.streams import EMPTY_PAYLOAD, StreamReader
from multidict import CIMultiDict, CIMultiDictProxy

from noxu.http.clients import Clients
from noxu.http.connection import Connection, Handle
from noxu.http.limits import DEFAULT_LIMITS
from noxu.http.request import Received


class Wire(asyncio.Transport):
    """The socket of a connection, whose client reads everything. `sent` is what the server has written, `writes` how often."""

    def __init__(self) -> None:
        super().__init__({"socket": mock.Mock(family=0), "peername": ("192.0.2.1", 5)})
        self.sent = b""
        self.writes: list[int] = []
        self.closed = self.paused = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.sent += bytes(data)
        self.writes.append(len(data))

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        self.write(b"".join(list_of_data))

    def close(self) -> None:
        self.closed = True

    abort = close

    def is_closing(self) -> bool:
        return self.closed

    def get_write_buffer_size(self) -> int:
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None: ...

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False


async def unanswered(request: Received) -> None:
    """A handler that does nothing."""


def connected(handle: Handle = unanswered, clients: Clients | None = None) -> tuple[Connection, Wire]:
    """A connection that has been made; in a running loop. The caller ends it with `connection_lost`."""
    connection, wire = Connection(handle, asyncio.get_running_loop(), clients or Clients()), Wire()
    connection.connection_made(wire)
    return connection, wire


def received(
    method: str = "GET",
    target: str = "/a",
    headers: Any = (),
    *,
    body: bytes = b"",
    version: HttpVersion = HttpVersion11,
    connection: Connection | None = None,
) -> Received:
    """A request that has arrived completely. Without a connection, its client is gone."""
    sent = EMPTY_PAYLOAD
    if body:
        sent = StreamReader(mock.Mock(), 2**16, loop=mock.Mock())
        sent.feed_data(body)
        sent.feed_eof()
    gone: Any = mock.Mock(Connection, transport=None, is_lost=True, closes=False, peername=None, limits=DEFAULT_LIMITS)
    return Received(connection or gone, method, target, version, CIMultiDictProxy(CIMultiDict(headers)), sent)
