"""What a connection sends, and how long it waits for a client that does not read.

A client that reads nothing for `send_deadline` seconds is disconnected, also if the connection is being closed. Any
progress renews the deadline. Writers wait as soon as bytes are unsent (`allow_unsent`), so that `pause_writing` is called
for every byte that the kernel does not take; an answer that it takes at once costs no timer.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import sys
from collections.abc import Awaitable, Sequence
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from time import time
from typing import Final

from aiohttp.base_protocol import BaseProtocol
from aiohttp.http import StreamWriter

from noxu.http.clients import Clients, Part
from noxu.http.limits import Limits

SERVER: Final = "noxu"  # the Server header, which would name the libraries and their versions
_RESET: Final = struct.pack("ii", 1, 0)  # SO_LINGER: do not linger
_TCP_NOTSENT_LOWAT: Final[int | None] = getattr(socket, "TCP_NOTSENT_LOWAT", None)  # not on every platform


class Outgoing(BaseProtocol):
    """The sending half of a connection. `transport` is None when the client is gone."""

    __slots__ = ("_clients", "_send_timer", "_unsent_before", "has_answered", "loop")

    def __init__(self, loop: asyncio.AbstractEventLoop, clients: Clients) -> None:
        super().__init__(loop)
        self.loop = loop
        self.has_answered = False  # the current request: something has been sent
        self._clients = clients
        self._unsent_before = 0  # bytes, when the send timer was set
        self._send_timer: asyncio.TimerHandle | None = None

    @property
    def limits(self) -> Limits:
        return self._clients.limits

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        assert self.transport is not None
        _tune(self.transport, self.limits.kernel_unsent)

    def connection_lost(self, exc: BaseException | None) -> None:
        super().connection_lost(exc)
        self._clients.unsent.reads(self)
        self._end_send_timer()

    def abort(self) -> None:
        """Disconnect the client without sending the rest."""
        if self.transport is not None:
            reset(self.transport)

    @property
    def is_lost(self) -> bool:
        """Whether nothing can be sent any more."""
        return self.transport is None or self.transport.is_closing()

    # -- writing

    def write(self, data: Part) -> Awaitable[None] | None:
        """Write more of an answer, like `Connection.answer`."""
        self.write_pieces((data,))
        return self.drain() if self.writing_paused else None

    def write_pieces(self, pieces: Sequence[Part]) -> int:
        """Write without copying, where that is safe; return the number of bytes that are unsent. Raises ConnectionError."""
        transport = self.transport
        if transport is None or transport.is_closing():
            raise ConnectionResetError("the client is gone")
        if len(pieces) == 1:
            transport.write(pieces[0])
        elif _WRITELINES_PAUSES:
            transport.writelines(pieces)
        else:
            transport.write(b"".join(pieces))
        return transport.get_write_buffer_size()

    def drain(self) -> Awaitable[None]:
        """What to await until the client has read most of what is unsent. Raises ConnectionError."""
        return StreamWriter(self, self.loop).drain()

    # -- a client that does not read

    def allow_unsent(self, size: int) -> None:
        """Make writers wait when more than `size` bytes are unsent here. At first that is 0."""
        if self.transport is not None:
            self.transport.set_write_buffer_limits(high=size)

    def unsent_bytes(self) -> int:
        return 0 if self.transport is None else self.transport.get_write_buffer_size()

    def pause_writing(self) -> None:
        """Bytes are unsent."""
        super().pause_writing()
        self._clients.unsent.stalls(self)
        self._start_send_timer()

    def resume_writing(self) -> None:
        self._clients.unsent.reads(self)
        self._end_send_timer()
        super().resume_writing()

    def _start_send_timer(self) -> None:
        self._unsent_before = self.unsent_bytes()
        self._send_timer = self.loop.call_later(self.limits.send_deadline, self._send_deadline_passed)

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


def plain(status: int, text: str) -> bytes:
    """A whole answer in plain text, after which the connection closes; in HTTP/1.1, whatever version the request has."""
    body = text.encode()
    head = (
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nServer: {SERVER}\r\n"
        f"Content-Type: text/plain; charset=utf-8\r\nContent-Length: {len(body)}\r\nDate: {date(int(time())).decode()}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body


@lru_cache(maxsize=1)
def date(second: int) -> bytes:
    """The Date header of an answer that is made in this second since 1970."""
    return formatdate(second, usegmt=True).encode()


def reset(transport: asyncio.Transport) -> None:
    """Close a connection without sending the rest, also what the kernel has: a client that does not read learns of it."""
    with contextlib.suppress(OSError):  # closed already
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    transport.abort()


def _tune(transport: asyncio.Transport, kernel_unsent: int) -> None:
    """Make writers wait while bytes are unsent, without which the kernel buffers megabytes; notice clients that vanish."""
    transport.set_write_buffer_limits(high=0)
    peer = transport.get_extra_info("socket")
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if _TCP_NOTSENT_LOWAT is not None and peer.family in (socket.AF_INET, socket.AF_INET6):
        peer.setsockopt(socket.IPPROTO_TCP, _TCP_NOTSENT_LOWAT, kernel_unsent)


def writelines_pauses(version: tuple[int, int, int]) -> bool:
    """Whether `writelines` of this Python's asyncio tells the protocol that the client does not read.

    It did not in 3.12 before 3.12.9 and in 3.13 before 3.13.2 (CVE-2024-12254): the server would not wait for such a client.
    """
    return version < (3, 12, 0) or (3, 12, 9) <= version < (3, 13, 0) or version >= (3, 13, 2)


_WRITELINES_PAUSES: Final = writelines_pauses(sys.version_info[:3])
