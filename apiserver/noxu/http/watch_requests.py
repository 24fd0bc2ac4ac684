"""Requests for watches: from the options of one to its stream of events, in chunks or over a WebSocket."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import zlib
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Final

from aiohttp import web_request, web_response
from multidict import CIMultiDict

from noxu.api import errors
from noxu.config import MIN_REQUEST_TIMEOUT
from noxu.http import auditing, handlers, negotiation, responses, watch, websocket
from noxu.http.answer import Answer
from noxu.http.connection import allow_unsent, reset
from noxu.http.exchange import Exchange
from noxu.http.negotiation import Accepted
from noxu.http.options import ListOptions
from noxu.http.request import first, is_watch
from noxu.http.sending import headers_of
from noxu.http.unsent import write_pieces
from noxu.http.watch_metrics import WatchMetrics
from noxu.http.watch_quota import WatchQuota
from noxu_storage.types import Revision

if TYPE_CHECKING:
    from aiohttp.web_ws import WebSocketResponse


_SELECTORS: Final = ("labelSelector", "fieldSelector")
_GZIP: Final = zlib.MAX_WBITS | 16  # the form of zlib's output


class Watches:
    """The watches of one server."""

    def __init__(self, min_timeout: float = MIN_REQUEST_TIMEOUT) -> None:
        """`min_timeout` in seconds: upstream's --min-request-timeout."""
        self._min_timeout = min_timeout
        self._streams: dict[watch.Stream, Exchange] = {}
        self.quota = WatchQuota()
        self.metrics = WatchMetrics()

    @property
    def open(self) -> list[Exchange]:
        """The requests of all watches."""
        return list(self._streams.values())

    def end(self) -> None:
        """End all watches immediately."""
        for stream in list(self._streams):
            stream.stop()

    async def handle(self, exchange: Exchange) -> Answer | web_response.StreamResponse:
        """Stream events until the watch ends. Raises ApiError, ConnectionError."""
        request = exchange.request
        accepted = handlers.accept(exchange)
        self.quota.check(request.raw_path, [first(exchange.query, name) for name in _SELECTORS])
        options = await handlers.list_options(exchange, watch=is_watch(exchange.query))
        after = watch.start_revision(options)
        accepted = negotiation.as_stream(accepted, cbor=exchange.backend.features.cbor)
        upgrade = websocket.is_upgrade(request)
        compress = not upgrade and _is_compressed(exchange, options)
        representation = _representation(exchange, accepted, upgrade=upgrade)
        for name in _SELECTORS:  # long texts, perhaps, which are parsed
            exchange.query.pop(name, None)
        exchange.headers += [("Warning", text) for text in negotiation.warning_headers(exchange.outcome.warnings)]
        headers = headers_of(exchange, accepted.content_type)
        headers["Cache-Control"] = "no-cache, private"
        if compress:
            headers["Content-Encoding"] = "gzip"
            headers.add("Vary", "Accept-Encoding")
        refusal = websocket.refusal(request) if upgrade else None
        if refusal is not None:
            return refusal
        with self.quota.taken(request.raw_path, options.selection):
            pipe = _GzipPipe(request) if compress else _ChunkedPipe(request)
            found = websocket.WebSocketPipe(request) if upgrade else pipe
            return await self._stream(exchange, headers, options, representation, after, found)

    async def _stream(
        self,
        exchange: Exchange,
        headers: CIMultiDict[str],
        options: ListOptions,
        representation: watch.Representation,
        after: Revision,
        pipe: watch.Pipe,
    ) -> web_response.StreamResponse:
        """Answer with the events after a revision. Raises ApiError, ConnectionError."""
        request = exchange.request
        response: web_response.StreamResponse
        upgrade = isinstance(pipe, websocket.WebSocketPipe)
        if upgrade:
            response = socket = await websocket.accept(request, headers)
        else:
            response = web_response.StreamResponse(headers=headers)
            response.enable_chunked_encoding()
            await response.prepare(request)
        exchange.code = response.status
        if exchange.record is not None:
            auditing.observe_start(exchange, exchange.record)
        if request.method == "HEAD":
            return response
        allow_unsent(request, watch.HIGH_WATER)
        stream = watch.Stream(exchange.backend.reader, options.selection, representation, pipe, self.metrics)
        stream.after = after
        self._streams[stream] = exchange
        try:
            if upgrade:
                async with _until_closed(socket, stream):
                    await stream.run(options, watch.lifetime(options.timeout, self._min_timeout))
            else:
                await stream.run(options, watch.lifetime(options.timeout, self._min_timeout))
        except (ConnectionError, asyncio.CancelledError):
            response.force_close()
            if request.transport is not None:
                reset(request.transport)
            raise
        finally:
            self._streams.pop(stream, None)
            allow_unsent(request, 0)
        return response


def _representation(exchange: Exchange, accepted: Accepted, *, upgrade: bool) -> watch.Representation:
    """The representation of the objects. Raises ApiError."""
    resource = exchange.resource
    is_binary = accepted.media_type in (negotiation.PROTOBUF, negotiation.CBOR)
    if accepted.convert is None and not is_binary:
        return watch.Representation(resource)
    include = handlers.include_of(exchange, accepted)
    make = responses.converter(resource, accepted, include, exchange.now)
    is_table = accepted.convert is not None and accepted.convert.kind == "Table"
    if not is_binary:
        make_later = responses.later_events(resource, accepted, include, exchange.now)
        if make_later is None:
            found = watch.Converted(resource, make)
        else:
            key = None if is_table else ("metadata", resource, accepted.convert)
            found = watch.Summarized(resource, make, make_later, responses.is_joined(include), key)
        if is_table and resource.is_custom:
            found.weigh = responses.columns_of(resource).weigh
        return found
    if upgrade:
        raise errors.not_acceptable((negotiation.JSON,))  # its messages are lines of text
    encode = functools.partial(responses.encode, accepted=accepted)
    if accepted.media_type == negotiation.PROTOBUF:
        return watch.InProtobuf(resource, make, encode)
    shared = (resource, accepted.convert)
    return watch.InCbor(resource, make, encode, shared)


def _is_compressed(exchange: Exchange, options: ListOptions) -> bool:
    """Whether the client of a watch that begins with all objects accepts gzip (upstream's gate WatchListCompression)."""
    is_list = bool(options.initial_events) and options.bookmarks
    accept_encoding = exchange.request.headers.get("Accept-Encoding", "")
    return is_list and exchange.backend.features.watch_list_compression and negotiation.accepts_gzip(accept_encoding)


@contextlib.asynccontextmanager
async def _until_closed(socket: WebSocketResponse, stream: watch.Stream) -> AsyncIterator[None]:
    """Stop the stream when the client closes its WebSocket; close the WebSocket when the stream ends."""
    closed = asyncio.ensure_future(websocket.ignore_messages(socket))
    closed.add_done_callback(lambda _: stream.stop())
    try:
        yield
    finally:
        closed.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await closed
    await socket.close()


class _ChunkedPipe:
    """The client's end of a watch in chunks. It frames the chunks itself, so several events cost one write and no task.

    The event {"type":"ADDED"} and its line end, 17 bytes, are written as b'11\\r\\n', the event, and b'\\r\\n'.
    """

    def __init__(self, request: web_request.BaseRequest) -> None:
        self._request = request
        self._protocol = request.protocol

    def framed(self, events: Sequence[bytes]) -> Sequence[bytes]:
        return (b"%x\r\n" % sum(map(len, events)), *events, b"\r\n")

    def write(self, pieces: Sequence[bytes]) -> int:
        return write_pieces(self._protocol.transport, pieces)

    async def drain(self) -> None:
        await self._request.writer.drain()


class _GzipPipe(_ChunkedPipe):
    """The client's end of a compressed watch: what is sent at once is a member of its own (RFC 1952, 2.2), as upstream's.

    So no state is kept for a connection, and streams with the same view share what was compressed.
    """

    def framed(self, events: Sequence[bytes]) -> Sequence[bytes]:
        return super().framed((zlib.compress(b"".join(events), level=1, wbits=_GZIP),))
