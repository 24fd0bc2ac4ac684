"""A request as aiohttp's parser has received it: aiohttp's own, with what is read of every request as plain attributes.

aiohttp computes each of them when it is first read, and asks for the addresses and the TLS context of each request's
connection, most of which no request needs. An absolute URL remains part of the target, see `request.split_target`.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import Any

from aiohttp import web_protocol, web_request
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http import RawRequestMessage
from aiohttp.streams import StreamReader
from multidict import CIMultiDictProxy


class Received(web_request.BaseRequest):
    """See the module. Made by aiohttp's `web_server.Server`, whose `request_factory` it is."""

    __slots__ = ("headers", "keep_alive", "method", "protocol", "raw_path")  # they hide properties
    headers: CIMultiDictProxy[str]
    keep_alive: bool
    method: str
    protocol: web_protocol.RequestHandler
    raw_path: str

    def __init__(
        self,
        message: RawRequestMessage,
        payload: StreamReader,
        protocol: web_protocol.RequestHandler,
        payload_writer: AbstractStreamWriter,
        task: asyncio.Task[None],
    ) -> None:
        self._message = message
        self._payload = payload
        self._payload_writer = payload_writer
        self._task = task
        self._protocol = self.protocol = protocol
        self._headers = self.headers = message.headers
        self._method = self.method = message.method
        self._version = message.version
        self._rel_url = message.url
        self.raw_path = message.path
        self.keep_alive = not message.should_close
        self._cache: dict[str, Any] = {"version": message.version}  # which `framing` may replace
        self._transport_peername = protocol.peername  # also for the audit log, when the client may be gone

    @property
    def _transport_sslcontext(self) -> ssl.SSLContext | None:  # type: ignore[override]
        """For `secure` and `scheme`."""
        return self._protocol.ssl_context

    @property
    def _loop(self) -> asyncio.AbstractEventLoop:  # type: ignore[override]
        """For WebSockets."""
        return self._protocol._loop  # noqa: SLF001 - as aiohttp does
