"""A client's connection, with limits on its idle time, on the size and duration of the head of a request, and on the
time for which the client does not read its answer. All connections together have limits, too: on their number, on the
bytes of incomplete requests and on those of unread answers.

Any token may be a method, as in Go; the parser only knows some. `methods` replaces the others before it reads them.

Requests are answered one after the other in the connection's task. aiohttp makes a task for each request, so that they do
not share context variables; ours set theirs for each request.

aiohttp limits each line of a head, but neither their sum nor the time that they take. Upstream's server, which is Go's,
allows 32 seconds and a megabyte for a head, and 90 seconds for an idle connection; so do we. A head that arrives in one
piece costs nothing: a timer is set only for an incomplete one.

A client that reads nothing for SEND_DEADLINE seconds is disconnected, also if the connection is being closed. Any
progress renews the deadline. Writers wait as soon as bytes are unsent (`allow_unsent`), so that `pause_writing` is called
for every byte that the kernel does not take; an answer that it takes at once costs no timer.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import Awaitable, Callable, Hashable
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from aiohttp import web_protocol, web_request, web_response, web_server
from aiohttp.http import RawRequestMessage, StreamWriter
from aiohttp.streams import StreamReader

from noxu.api.errors import ApiError
from noxu.api.names import is_loopback
from noxu.containment import Contained
from noxu.http import framing, methods
from noxu.http.incoming import Incoming
from noxu.http.open_connections import OpenConnections
from noxu.http.unsent import Unsent
from noxu.registry.turns import CLIENT

if TYPE_CHECKING:
    from aiohttp.http import WebSocketReader

HEAD_DEADLINE: Final = 32.0  # seconds; upstream's ReadHeaderTimeout
SEND_DEADLINE: Final = 30.0  # seconds for which a client may read nothing
KERNEL_UNSENT: Final = 32 * 1024  # bytes that the kernel buffers for a client that reads nothing, if it can limit them
IDLE_DEADLINE: Final = 90.0  # seconds; upstream's IdleTimeout
MAX_HEAD: Final = 1024 * 1024  # bytes; Go's http.DefaultMaxHeaderBytes. A selector alone may have 45 KB
SLACK: Final = 4096  # Go's buffer, which it allows in addition
MAX_HEADERS: Final = 10_000
MAX_KEPT_TARGET: Final = 4096  # bytes of a target from which on an idle connection counts as an incomplete request
MAX_TRAILER: Final = 16 * 1024  # bytes of a body's framing without content: of trailers, and of extensions of a chunk
MAX_FRAMES: Final = 8 * 1024  # bytes that arrive at once on a WebSocket, whose messages may have 4 KiB
SERVER: Final = "noxu"  # the Server header, which would name the libraries and their versions
LINGERING: Final = 1.0  # seconds for which the rest of a refused body is read, so that the client receives the answer

_TOO_LARGE: Final = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Type: text/plain; charset=utf-8\r\n"
    b"Connection: close\r\n\r\n431 Request Header Fields Too Large"
)

_RESET: Final = struct.pack("ii", 1, 0)  # SO_LINGER: do not linger
_TCP_NOTSENT_LOWAT: Final[int | None] = getattr(socket, "TCP_NOTSENT_LOWAT", None)  # not on every platform


class Written(web_response.StreamResponse):
    """The response of an answer that `write_whole` has written: aiohttp has nothing left to do."""

    @property
    def keep_alive(self) -> bool:
        return True

    async def prepare(self, request: web_request.BaseRequest) -> None: ...

    async def write_eof(self, data: bytes = b"") -> None: ...


WRITTEN: Final = Written()


class Connection(web_protocol.RequestHandler):
    """aiohttp's connection with limits on heads, and on clients that do not read."""

    def __init__(
        self,
        server: web_server.Server,
        loop: asyncio.AbstractEventLoop,
        unsent: Unsent,
        incoming: Incoming,
        connections: OpenConnections,
    ) -> None:
        super().__init__(
            server,
            loop=loop,
            access_log=None,  # type: ignore[arg-type]
            auto_decompress=False,  # like upstream: a small body could become a huge one
            keepalive_timeout=IDLE_DEADLINE,
            lingering_time=LINGERING,
            max_line_size=2 * MAX_HEAD,
            max_field_size=2 * MAX_HEAD,
            max_headers=MAX_HEADERS,
        )
        self._head_bytes = 0  # of a head that is not complete yet
        self._head_timer: asyncio.TimerHandle | None = None
        self._content, self._framing = (
            0,
            0,
        )  # bytes of content of the last body, and of other bytes since the last of it
        self._boundaries = methods.Boundaries()
        self._held = b""  # what the parser does not get yet
        self._open: asyncio.Transport | None = None  # unlike aiohttp's `transport`, until the connection is lost
        self._unsent = unsent
        self._incoming = incoming
        self._connections = connections
        self._unsent_before = 0  # bytes, when the send timer was set
        self._unused_writer: StreamWriter | None = None  # of a request whose answer `write_whole` has written
        self._send_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._open = self.transport
        if self._open is not None:
            _limit_unsent(self._open)
        self._start_head_timer()
        self._connections.opened(self)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._open = self._unused_writer = None
        self._connections.lost(self)
        self._unsent.reads(self)
        self._end_send_timer()
        self._end_head()
        self._incoming.end(self)
        super().connection_lost(exc)

    async def shutdown(self, timeout: float | None = 15.0) -> None:  # noqa: ASYNC109 - aiohttp's signature
        """Close the connection when its request is answered, or after `timeout` seconds.

        At once if it is idle, or if the body of its request has not arrived: the client may never send it. aiohttp also
        waits for the next request of an idle connection, and it waits twice: for the handler, then its task.
        """
        if self.is_idle or (self._current_request is not None and not self._current_request.content.is_eof()):
            self.force_close()
        await super().shutdown(None if timeout is None else timeout / 2)

    # -- requests

    async def start(self) -> None:
        """Answer the requests of this connection until it closes. It is cancelled when the client is gone."""
        CLIENT.set(self._client())  # until a user is authenticated
        is_done = False
        try:
            with contextlib.suppress(ConnectionError), Contained("a connection", passing=ConnectionError) as contained:
                await self._answer_requests()
            is_done = contained.error is None
        finally:
            if is_done:
                self._end()
            else:
                self.force_close()

    def _client(self) -> Hashable:
        """Who shares turns in the threads with whom: an address, or on this machine the connection."""
        peer = self.transport.get_extra_info("peername") if self.transport is not None else None
        address = peer[0] if isinstance(peer, tuple) else ""
        return object() if not address or is_loopback(f"[{address}]" if ":" in address else address) else address

    async def _answer_requests(self) -> None:
        """Return when the connection may be closed. Raises ConnectionError if the client is gone."""
        while not self._force_close:
            if not self._messages:
                self._waiter = self._loop.create_future()  # `close` and `force_close` cancel it
                try:
                    await self._waiter
                finally:
                    self._waiter = None
            message, body = self._messages.popleft()
            self._make_room()
            response = await self._answer(message, body)
            if not body.is_eof():
                await self._linger(body)
            self._keepalive = bool(response.keep_alive)
            if self._close or not self._keepalive:
                return
            target = len(message.path) if isinstance(message, RawRequestMessage) else 0
            del message, body, response  # which may be large, while the connection is idle
            self._expect_next()
            if target > MAX_KEPT_TARGET and not self._messages:
                self._incoming.add(self, target)  # the parser keeps it until the next request

    def _make_room(self) -> None:
        """A request that has waited is handled now: the client may send further ones."""
        if self._parser is not None:
            self._parser.message_consumed()
        if self._buffer_paused and len(self._messages) <= self._msg_queue_resume_size:
            self._resume_reading_if_drained()

    async def _answer(
        self, message: RawRequestMessage | web_protocol._ErrInfo, body: StreamReader
    ) -> web_response.StreamResponse:
        """Handle a request. Raises ConnectionError if the client is gone."""
        handle = self._request_handler
        if isinstance(message, web_protocol._ErrInfo):  # noqa: SLF001 - malformed HTTP
            handle, message = self._make_error_handler(message), web_protocol.ERROR
        make, task = self._request_factory, self._task_handler or asyncio.current_task()
        assert make is not None
        assert handle is not None
        assert task is not None
        writer, self._unused_writer = self._unused_writer or StreamWriter(self, self._loop), None
        request = make(message, body, self, writer, task)
        try:
            response, is_gone = await self._handle_request(request, None, handle)
        finally:
            request._task = None  # type: ignore[assignment]  # noqa: SLF001 - a cycle
        if is_gone:
            raise ConnectionResetError
        if response is WRITTEN and self._open is not None:  # else it would refer to this connection for ever
            writer.output_size, self._unused_writer = 0, writer
        return response

    async def _linger(self, body: StreamReader) -> None:
        """Read the rest of a refused body for a while, so that the client receives the answer; then close."""
        with contextlib.suppress(TimeoutError, ApiError):  # ApiError: the rest is malformed
            async with asyncio.timeout(LINGERING):
                while not self._force_close and not body.is_eof():
                    await body.readany()
        if not body.is_eof() and not self._force_close:
            self.close()

    async def finish_response(
        self, request: web_request.BaseRequest, resp: web_response.StreamResponse, start_time: float | None
    ) -> tuple[web_response.StreamResponse, bool]:
        """Send a response: (it, whether the client is gone). After an upgrade that was refused, read on as HTTP."""
        if resp is WRITTEN and not self._upgraded:
            return resp, False
        behind = b""
        if (
            self._upgraded and not self._messages and self._payload_parser is None
        ):  # aiohttp would give it to the parser in one piece
            behind, self._message_tail = self._message_tail, b""
        finished = await super().finish_response(request, resp, start_time)
        if behind and not self._upgraded:
            self.data_received(behind)
        return finished

    def _expect_next(self) -> None:
        """Begin the time for which the connection may be idle."""
        self._next_keepalive_close_time = until = self._loop.time() + IDLE_DEADLINE
        if self._keepalive_handle is None:
            self._keepalive_handle = self._loop.call_at(until, self._process_keepalive)

    def _end(self) -> None:
        self._task_handler = None
        if self.transport is not None:
            self.transport.close()

    def resume_reading(self, resume_parser: bool = True) -> None:
        """Read on after `pause_reading`. aiohttp calls it for every body that is read, and would parse again each time."""
        if self._reading_paused:
            super().resume_reading(resume_parser)

    # -- sending

    def pause_writing(self) -> None:
        """Bytes are unsent."""
        super().pause_writing()
        self._unsent.stalls(self)
        self._start_send_timer()

    def resume_writing(self) -> None:
        self._unsent.reads(self)
        self._end_send_timer()
        super().resume_writing()

    @property
    def is_lost(self) -> bool:
        """Whether nothing can be sent any more."""
        return self.transport is None or self.transport.is_closing()

    def write_whole(self, data: bytes) -> Awaitable[None] | None:
        """Write a complete answer to a connection that is not lost. None if the kernel has taken it, else what to await.

        The awaitable raises ConnectionError.
        """
        assert self.transport is not None
        assert self._current_request is not None
        self._current_request.writer.output_size += len(data)  # aiohttp sends no second answer after it
        self.transport.write(data)
        return self._drain_helper() if self._paused else None

    def unsent_bytes(self) -> int:
        return 0 if self._open is None else self._open.get_write_buffer_size()

    def abort(self) -> None:
        """Disconnect the client without sending the rest."""
        if self._open is not None:
            reset(self._open)

    def _start_send_timer(self) -> None:
        self._unsent_before = self.unsent_bytes()
        self._send_timer = self._loop.call_later(SEND_DEADLINE, self._send_deadline_passed)

    def _end_send_timer(self) -> None:
        if self._send_timer is not None:
            self._send_timer.cancel()
            self._send_timer = None

    def _send_deadline_passed(self) -> None:
        self._send_timer = None
        if self.unsent_bytes() < self._unsent_before:
            self._start_send_timer()
        else:
            self.abort()

    # -- heads

    def data_received(self, data: bytes) -> None:
        if self._head_bytes and self._head_bytes + _head_in(data) > MAX_HEAD + SLACK:
            self._refuse_head()
            return
        if self._payload_parser is not None and len(data) > MAX_FRAMES:
            self.force_close()  # the parser would read thousands of frames at once
            return
        if (
            data.startswith(methods.KNOWN_BEGINNINGS)
            and data.find(methods.END_OF_HEAD) == len(data) - len(methods.END_OF_HEAD)
            and self._boundaries.is_at_start
            and not self._held
        ):
            self._boundaries.whole_head()  # as most reads
            self._receive(data)
            return
        if not data or self._upgraded or self._payload_parser is not None:
            self._receive(data)
            data = b""
        self._boundaries.begin_read()
        if self._held:
            data, self._held = self._held + data, b""
            self._head_bytes = 0 if self._boundaries.is_at_start else self._head_bytes
        at = 0
        while at < len(data) and not (self.is_closing or self._upgraded):
            piece, at = self._boundaries.take(data, at)
            if not piece:
                break
            self._receive(piece)
        if at < len(data) and not self.is_closing:
            (self._receive if self._upgraded else self._hold)(data[at:])

    def _receive(self, data: bytes) -> None:
        """Give the parser a piece that has the end of at most one head, or bytes of one body."""
        complete = self._request_count
        super().data_received(data)
        if self._request_count != complete:
            head, body = self._messages[-1]
            if isinstance(head, web_protocol._ErrInfo) and not self._boundaries.body.is_eof():  # noqa: SLF001
                self._refuse_body()
                return
            self._messages[-1] = (self._boundaries.message(head, body), body)
            self._end_head()
            self._connections.used(self)
            self._content = self._framing = 0
        elif self._boundaries.is_of_head and self._payload_parser is None:
            self._head_bytes += len(data)
            if not (self._buffer_paused or self._reading_paused):
                self._boundaries.go_on()
            if self.is_idle and self._head_timer is None:
                self._start_head_timer()
        else:
            self._check_framing(len(data))
        if self._head_bytes or not self._boundaries.body.is_eof():
            self._incoming.add(self, len(data))
        else:
            self._incoming.end(self)

    def _check_framing(self, size: int) -> None:
        """Disconnect a client that sends a body's framing without end, which the parser keeps. `size` bytes have arrived."""
        content = self._boundaries.body.total_bytes
        if content > self._content or self._boundaries.body.is_eof():
            self._content, self._framing = content, 0
            return
        self._framing += size
        if self._framing > MAX_TRAILER:
            self.force_close()

    def set_parser(self, parser: WebSocketReader, data_received_cb: Callable[[], None] | None = None) -> None:
        """Begin to read frames of a WebSocket: a few may have come with the request."""
        if len(self._message_tail) > MAX_FRAMES:
            self._message_tail = b""
            self.force_close()
        super().set_parser(parser, data_received_cb)

    def _refuse_body(self) -> None:
        """The last message is about malformed chunks: it takes the place of its request, whose handler may read them already."""
        refused = self._boundaries.body
        if len(self._messages) > 1 and self._messages[-2][1] is refused:
            del self._messages[-2]
        else:
            self._messages.pop()
            refused.set_exception(framing.malformed_body())
            self.close()
        self._boundaries = methods.Boundaries()
        self._incoming.end(self)

    def _hold(self, data: bytes) -> None:
        """Keep bytes until more of them have arrived, or until the parser has read what is before them."""
        self._held = data
        if self._boundaries.is_at_start:  # a method that is cut off
            self._head_bytes = len(data)
            if self.is_idle and self._head_timer is None:
                self._start_head_timer()

    def _refuse_head(self) -> None:
        if self.is_idle and self.transport is not None:
            self.transport.write(_TOO_LARGE)
        self.force_close()

    def handle_error(
        self,
        request: web_request.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web_response.StreamResponse:
        """Refuse malformed HTTP as Go does.

        Neither that nor a client that is gone is logged: clients could fill the log.
        """
        if isinstance(exc, ConnectionError):
            raise exc
        if status != HTTPStatus.BAD_REQUEST:
            return super().handle_error(request, status, exc, message)
        framing.answer_in_http_1_1(request)
        status, text = framing.answer_to_malformed(message or "")
        response = web_response.Response(status=status, text=text, headers={"Server": SERVER})
        response.force_close()
        return response

    @property
    def is_closing(self) -> bool:
        """Whether the connection closes after the current answer."""
        return self._close or self._force_close

    @property
    def is_idle(self) -> bool:
        """Whether no request is being handled or waits to be handled."""
        return self._waiter is not None and not self._waiter.done()

    def _start_head_timer(self) -> None:
        self._head_timer = self._loop.call_later(HEAD_DEADLINE, self._head_deadline_passed)

    def _end_head(self) -> None:
        self._head_bytes = 0
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _head_deadline_passed(self) -> None:
        self._head_timer = None
        if self.is_idle:
            self.force_close()


def reset(transport: asyncio.Transport) -> None:
    """Close a connection without sending the rest, also what the kernel has: a client that does not read learns of it."""
    with contextlib.suppress(OSError):  # closed already
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    transport.abort()


def allow_unsent(request: web_request.BaseRequest, size: int) -> None:
    """Make the connection's writers wait when more than `size` bytes are unsent here. At first that is 0."""
    if request.transport is not None:
        request.transport.set_write_buffer_limits(high=size)


def _limit_unsent(transport: asyncio.Transport) -> None:
    """Make writers wait while bytes are unsent. Without the second limit the kernel buffers megabytes."""
    transport.set_write_buffer_limits(high=0)
    peer = transport.get_extra_info("socket")
    if _TCP_NOTSENT_LOWAT is not None and peer.family in (socket.AF_INET, socket.AF_INET6):
        peer.setsockopt(socket.IPPROTO_TCP, _TCP_NOTSENT_LOWAT, KERNEL_UNSENT)


def _head_in(data: bytes) -> int:
    """The number of bytes of the data that belong to the current head."""
    end = data.find(b"\r\n\r\n")
    return len(data) if end < 0 else end
