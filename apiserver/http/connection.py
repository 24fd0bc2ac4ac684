"""A client's connection, with limits on its idle time and on the size and duration of the head of a request.

Any token may be a method, as in Go; the parser only knows some. `methods` replaces the others before it reads them.

aiohttp limits each line of a head, but neither their sum nor the time that they take. Upstream's server, which is Go's,
allows 32 seconds and a megabyte for a head, and 90 seconds for an idle connection; so do we. A head that arrives in one
piece costs nothing: a timer is set only for an incomplete one.
"""

from __future__ import annotations

import asyncio
import socket
from http import HTTPStatus
from typing import Final

from aiohttp import web_protocol, web_request, web_response, web_server
from aiohttp.streams import EMPTY_PAYLOAD, StreamReader

from noxu.apiserver.http import methods

HEAD_DEADLINE: Final = 32.0  # seconds; upstream's ReadHeaderTimeout
IDLE_DEADLINE: Final = 90.0  # seconds; upstream's IdleTimeout
MAX_HEAD: Final = 1024 * 1024  # bytes; Go's http.DefaultMaxHeaderBytes. A selector alone may have 45 KB
SLACK: Final = 4096  # Go's buffer, which it allows in addition
MAX_HEADERS: Final = 10_000
SERVER: Final = "noxu"  # the Server header, which would name the libraries and their versions
LINGERING: Final = 1.0  # seconds for which the rest of a refused body is read, so that the client receives the answer

_TOO_LARGE: Final = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Type: text/plain; charset=utf-8\r\n"
    b"Connection: close\r\n\r\n431 Request Header Fields Too Large"
)

_TCP_NOTSENT_LOWAT: Final[int | None] = getattr(socket, "TCP_NOTSENT_LOWAT", None)  # not on every platform


class Connection(web_protocol.RequestHandler):
    """aiohttp's connection with limits on heads."""

    def __init__(self, server: web_server.Server, loop: asyncio.AbstractEventLoop) -> None:
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
        self._body: StreamReader = EMPTY_PAYLOAD  # of the last request whose head is complete
        self._method = ""  # of the current head, if the parser does not know it

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._start_head_timer()

    def connection_lost(self, exc: BaseException | None) -> None:
        self._end_head()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._head_bytes and self._head_bytes + _head_in(data) > MAX_HEAD + SLACK:
            self._refuse_head()
            return
        complete, queued = self._request_count, len(self._messages)
        if not self._head_bytes and self._is_between_messages:
            self._method, data = methods.replace(data)
        super().data_received(data)
        if self._request_count != complete:
            if self._method:
                methods.restore(self._messages, queued, self._method)
                self._method = ""
            self._end_head()
            self._body = self._messages[-1][1] if self._messages else EMPTY_PAYLOAD
        elif self._is_between_messages:
            self._head_bytes += len(data)
            if self._is_waiting and self._head_timer is None:
                self._start_head_timer()

    def _refuse_head(self) -> None:
        if self._is_waiting and self.transport is not None:
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
        response = web_response.Response(status=status, text="400 Bad Request", headers={"Server": SERVER})
        response.force_close()
        return response

    @property
    def is_closing(self) -> bool:
        """Whether the connection closes after the current answer."""
        return self._close or self._force_close

    @property
    def _is_between_messages(self) -> bool:
        """Whether the next bytes are those of a head: neither of a body nor of a WebSocket's messages."""
        return self._body.is_eof() and self._payload_parser is None

    @property
    def _is_waiting(self) -> bool:
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
        if self._is_waiting:
            self.force_close()


def limit_unsent(request: web_request.BaseRequest, size: int) -> None:
    """Make the connection's writers wait when about `size` bytes are buffered here, and as many in the kernel.

    Without it the kernel buffers megabytes for a client that reads nothing.
    """
    transport = request.transport
    if transport is None:
        return
    transport.set_write_buffer_limits(high=size)
    if _TCP_NOTSENT_LOWAT is not None:
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, _TCP_NOTSENT_LOWAT, size)


def _head_in(data: bytes) -> int:
    """The number of bytes of the data that belong to the current head."""
    end = data.find(b"\r\n\r\n")
    return len(data) if end < 0 else end
