"""Calls of gRPC to one server over HTTP/2.

A channel connects when it is used. An attempt that fails is followed by another one after FIRST_DELAY to LAST_DELAY seconds;
until then calls fail at once. When the server goes away, its calls end as they would, and further ones get a new connection.

See grpc_status.py for how calls fail, grpc_calls.py for calls, grpc_connection.py for connections.
"""

from __future__ import annotations

import asyncio
import ssl
from math import ceil, inf
from random import uniform
from typing import Final, TypeAlias

from noxu_storage.grpc_calls import Stream, Unary
from noxu_storage.grpc_connection import Connection
from noxu_storage.grpc_status import Lost, Unprocessed
from noxu_storage.http2_headers import request_block
from noxu_storage.types import reason

CONNECT_WITHIN: Final = 5.0  # seconds until the first settings of the server
FIRST_DELAY, LAST_DELAY = 0.05, 1.0  # seconds before another attempt to connect
MAX_BLOCKS: Final = 64  # blocks of requests that are remembered

Metadata: TypeAlias = tuple[tuple[str, str], ...]


class Channel:
    """The connection to one server, made again when it is lost. Created on a running event loop."""

    def __init__(self, host: str, port: int, tls: ssl.SSLContext | None = None) -> None:
        self._host, self._port, self._tls = host, port, tls
        self._authority = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        self._loop = asyncio.get_running_loop()
        self._current: Connection | None = None
        self._connections: set[Connection] = set()
        self._connecting: asyncio.Task[None] | None = None
        self._retry_at, self._delay, self._failure = 0.0, FIRST_DELAY, ""
        self._blocks: dict[tuple[str, float, Metadata], bytes] = {}
        self._closed = False

    async def unary(self, path: str, message: bytes, within: float, metadata: Metadata = ()) -> bytes:
        """The answer to a message. `metadata` is secret. Raises Refused, Lost."""
        block = self._block(path, within, metadata)
        deadline = self._loop.time() + within
        try:
            return await self._unary(block, message, deadline)
        except Unprocessed:
            return await self._unary(block, message, deadline)

    async def _unary(self, block: bytes, message: bytes, deadline: float) -> bytes:
        connection = self._current
        if connection is None or connection.waiting or not connection.http2.has_room():
            connection = await self._room(deadline)
        call = Unary(deadline, self._loop.create_future())
        connection.start(call, block, message)
        try:
            return await call.future
        except asyncio.CancelledError:
            call.cancel()
            raise

    async def stream(self, path: str, within: float, metadata: Metadata = ()) -> Stream:
        """Open a stream. `within` is for the connection: a stream has no deadline. Raises Lost."""
        connection = await self._room(self._loop.time() + within)
        stream = Stream()
        connection.start(stream, self._block(path, inf, metadata), None)
        return stream

    def _block(self, path: str, within: float, metadata: Metadata) -> bytes:
        known = self._blocks.get((path, within, metadata))
        if known is None:
            fields = [("content-type", "application/grpc"), ("te", "trailers"), ("user-agent", "noxu")]
            if within < inf:
                fields.append(("grpc-timeout", _timeout(within)))
            scheme = "http" if self._tls is None else "https"
            known = request_block(scheme, self._authority, path, fields, metadata)
            if len(self._blocks) >= MAX_BLOCKS:
                self._blocks.clear()
            self._blocks[path, within, metadata] = known
        return known

    async def _room(self, deadline: float) -> Connection:
        """A connection on which a call can start. Raises Lost."""
        while True:
            if self._closed:
                raise Lost("the connection was closed", sent=False)
            connection = self._current
            if connection is not None and connection.http2.has_room():
                return connection
            if connection is not None and not connection.http2.going_away:
                await connection.wait_for_room(deadline)
                continue
            if self._connecting is None:
                if self._loop.time() < self._retry_at:
                    raise Lost(self._failure, sent=False)
                self._connecting = self._loop.create_task(self._connect())
            done, _ = await asyncio.wait([self._connecting], timeout=max(deadline - self._loop.time(), 0))
            if not done:
                raise Lost("Deadline Exceeded", sent=False)
            if self._current is None and not self._closed:
                raise Lost(self._failure or "the connection was closed", sent=False)

    async def _connect(self) -> None:
        """Make a connection the current one, or remember why there is none."""
        connection = Connection(self._ended)
        options = {} if self._tls is None else {"ssl": self._tls, "server_hostname": self._host}
        try:
            async with asyncio.timeout(CONNECT_WITHIN):
                await self._loop.create_connection(lambda: connection, self._host, self._port, **options)  # type: ignore[call-overload]
                self._connections.add(connection)
                await connection.ready
        except (OSError, TimeoutError, Lost) as error:
            text = (
                "no answer"
                if isinstance(error, TimeoutError) and not str(error)
                else reason(error) or "the server has closed the connection"
            )
            self._failure = f"cannot connect to {self._authority}: {text}"
            self._retry_at = self._loop.time() + self._delay * uniform(0.5, 1)  # noqa: S311 - not a secret
            self._delay = min(2 * self._delay, LAST_DELAY)
            connection.lose(text)
        except BaseException:
            connection.lose("the connection was closed")
            raise
        else:
            self._current, self._delay, self._failure = connection, FIRST_DELAY, ""
        finally:
            self._connecting = None

    def _ended(self, connection: Connection) -> None:
        """A connection takes no calls any more."""
        if self._current is connection:
            self._current = None
        if connection.closed.done():
            self._connections.discard(connection)

    def retire(self) -> None:
        """Take no further calls. Those that are open end as they would."""
        self._closed = True
        if self._connecting is not None:
            self._connecting.cancel()
        for connection in list(self._connections):
            connection.retire()

    def is_gone(self) -> bool:
        """Whether nothing is left of a channel that was retired."""
        return not self._connections and self._connecting is None

    async def close(self) -> None:
        """End all calls."""
        self._closed = True
        if self._connecting is not None:
            self._connecting.cancel()
            await asyncio.wait([self._connecting])
        for connection in list(self._connections):
            connection.close()
        await asyncio.gather(*(connection.gone() for connection in list(self._connections)))


def _timeout(seconds: float) -> str:
    """As the field grpc-timeout: at most eight digits and a unit."""
    return f"{max(ceil(seconds * 1000), 1)}m" if seconds < 10_000 else f"{min(ceil(seconds), 99_999_999)}S"
