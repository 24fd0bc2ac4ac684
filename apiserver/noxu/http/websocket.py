"""Watch over a WebSocket: one text message per event (upstream's HandleWS, on golang.org/x/net/websocket).

Only watches are upgraded; every other route ignores the request for an upgrade (CVE-2018-1002105: an upgrade that a
server forwards carries the server's rights). Like upstream, it requires an Origin header, which browsers always send and
`filters.check_origin` has checked. One subprotocol is echoed, whatever its name; several are refused.

What a client sends is read only for its pings and its close: `Frames` takes bytes, and gives control frames. aiohttp's
reader of frames (`aiohttp.http.WebSocketReader`) needs a queue that aiohttp does not export.

    81 85 00000000 68656c6c6f      FIN and text, masked, 5 bytes, the mask, "hello": a message, which is ignored
    01 82 00000000 6865            text without FIN: more of the message follows, 4 KiB of it at most
    89 80 00000000                 a ping, which may come between two parts of a message, is answered
    88 82 00000000 03e8            close, with the code 1000
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import hashlib
import struct
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle, islice
from typing import Final

from aiohttp.http import WS_KEY, WSCloseCode, WSMsgType
from multidict import CIMultiDict

from noxu.http.answer import Answer
from noxu.http.connection import Connection
from noxu.http.request import Received
from noxu.security.credentials import PROTOCOL_PREFIX, subprotocols

MAX_MESSAGE: Final = 4096  # bytes; messages from clients are ignored
VERSION: Final = "13"
CLOSE_WITHIN: Final = 1.0  # seconds for a client to answer a close
_KEY_BYTES: Final = 16
_MAX_CONTROL: Final = 125  # bytes of a control frame (RFC 6455, 5.5)
_FIRST_CONTROL: Final = 8
_FIRST_OWN_CODE: Final = 3000  # codes of closes from here on are free
_CLOSE_CODES: Final = frozenset(WSCloseCode)
_DATA: Final = frozenset({WSMsgType.CONTINUATION, WSMsgType.TEXT, WSMsgType.BINARY})
_CONTROL: Final = frozenset({WSMsgType.CLOSE, WSMsgType.PING, WSMsgType.PONG})


# -- the handshake ----------------------------------------------------------------------------------------------------


def is_upgrade(request: Received) -> bool:
    """Whether the client requests a WebSocket."""
    headers = request.headers
    return headers.get("Upgrade", "").lower() == "websocket" and "upgrade" in headers.get("Connection", "").lower()


def refusal(request: Received) -> Answer | None:
    """The answer that refuses the WebSocket of a watch; None if it is accepted."""
    if (malformed := malformed_handshake(request)) is not None:
        return malformed
    origin = request.headers.get("Origin", "")
    if "://" not in origin and not origin.startswith("/"):
        return _refused(403)
    if len(tuple(islice(offered(request), 2))) > 1:
        return _refused(400)
    return None


def malformed_handshake(request: Received) -> Answer | None:
    """The answer to a request that is no handshake; None if it is one."""
    headers = request.headers
    if request.method != "GET":
        return _refused(405, "bad method")
    if not _is_key(headers.get("Sec-WebSocket-Key", "")):
        return _refused(400, "mismatch challenge/response")
    if headers.get("Sec-WebSocket-Version") != VERSION:
        return _refused(400, "missing or bad WebSocket Version", ("Sec-WebSocket-Version", VERSION))
    return None


def accept(request: Received, protocol: str | None = None) -> CIMultiDict[str]:
    """The headers of the answer 101. The caller has checked `refusal`. `protocol` None: the one that the client offers."""
    key = request.headers["Sec-WebSocket-Key"].encode()
    digest = hashlib.sha1(key + WS_KEY, usedforsecurity=False).digest()
    headers = CIMultiDict({"Upgrade": "websocket", "Connection": "upgrade"})
    headers["Sec-WebSocket-Accept"] = base64.b64encode(digest).decode()
    for name in filter(None, islice(offered(request), 2) if protocol is None else (protocol,)):
        headers["Sec-WebSocket-Protocol"] = name
    return headers


def _is_key(text: str) -> bool:
    try:
        return len(base64.b64decode(text, validate=True)) == _KEY_BYTES
    except (binascii.Error, ValueError):
        return False


def offered(request: Received) -> Iterator[str]:
    """The protocols that a client offers, without the one that carries its token."""
    if request.headers.get("Sec-WebSocket-Protocol", "").strip():
        yield from (name for name in subprotocols(request.headers) if not name.startswith(PROTOCOL_PREFIX))


def _refused(code: int, text: str = "", *headers: tuple[str, str]) -> Answer:
    return Answer(text.encode(), code, "text/plain; charset=utf-8", (*headers, ("Connection", "close")))


# -- frames -----------------------------------------------------------------------------------------------------------


class BrokenProtocol(Exception):
    """The client breaks the protocol. `code` says how (RFC 6455, 7.4.1)."""

    def __init__(self, code: WSCloseCode) -> None:
        super().__init__(code.name)
        self.code = code


class Frames:
    """Reads frames, however their bytes arrive. Keeps no more than a message of MAX_MESSAGE bytes."""

    def __init__(self) -> None:
        self._bytes = bytearray()  # of a frame that has not arrived completely
        self._message = bytearray()  # its parts until now
        self._kind = WSMsgType.CONTINUATION  # that of the message whose parts arrive; this one: there is none

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """The control frames that are complete now: (opcode, payload). Raises BrokenProtocol."""
        self._bytes += data
        at = 0
        try:
            while (frame := self._frame(at)) is not None:
                is_last, opcode, payload, at = frame
                if opcode >= _FIRST_CONTROL:
                    yield opcode, payload
                else:
                    self._part(opcode, payload, is_last=is_last)
        finally:
            del self._bytes[:at]  # in place: what is left begins the next frame

    def _frame(self, at: int) -> tuple[bool, int, bytes, int] | None:
        """(Whether it is the last of its message, opcode, payload, its end) of the frame at a position; None: it is incomplete."""
        data = self._bytes
        if len(data) - at < 2:
            return None
        first, second = data[at], data[at + 1]
        opcode, size, start = first & 0x0F, second & 0x7F, at + 2
        is_last = bool(first & 0x80)
        is_control = opcode in _CONTROL
        if first & 0x70 or not (is_control or opcode in _DATA) or (is_control and (not is_last or size > _MAX_CONTROL)):
            raise BrokenProtocol(WSCloseCode.PROTOCOL_ERROR)
        if size > _MAX_CONTROL:  # the length is in the 2 or 8 bytes that follow
            width = 2 if size == 126 else 8
            if len(data) - start < width:
                return None
            size, start = int.from_bytes(data[start : start + width], "big"), start + width
        if not is_control and len(self._message) + size >= MAX_MESSAGE:
            raise BrokenProtocol(WSCloseCode.MESSAGE_TOO_BIG)
        mask = bytes(data[start : start + 4]) if second & 0x80 else b""
        start += 4 if second & 0x80 else 0
        end = start + size
        if len(data) < end:
            return None
        payload = bytes(data[start:end])
        return is_last, opcode, _unmasked(payload, mask), end

    def _part(self, opcode: int, payload: bytes, *, is_last: bool) -> None:
        """A part of a message, or all of it. Raises BrokenProtocol."""
        has_begun = self._kind is not WSMsgType.CONTINUATION
        if has_begun != (opcode == WSMsgType.CONTINUATION):
            raise BrokenProtocol(WSCloseCode.PROTOCOL_ERROR)
        self._kind = self._kind if has_begun else WSMsgType(opcode)
        self._message += payload
        if is_last:
            if self._kind is WSMsgType.TEXT:
                _check_text(bytes(self._message))
            self._kind = WSMsgType.CONTINUATION
            self._message.clear()


def _unmasked(payload: bytes, mask: bytes) -> bytes:
    return bytes(byte ^ key for byte, key in zip(payload, cycle(mask), strict=False)) if any(mask) else payload


def _check_text(text: bytes) -> None:
    try:
        text.decode()
    except UnicodeDecodeError:
        raise BrokenProtocol(WSCloseCode.INVALID_TEXT) from None


def _check_close(payload: bytes) -> None:
    """A close says nothing, or a code and a reason. Raises BrokenProtocol."""
    if not payload:
        return
    code = int.from_bytes(payload[:2], "big")
    if len(payload) < 2 or (code < _FIRST_OWN_CODE and code not in _CLOSE_CODES):
        raise BrokenProtocol(WSCloseCode.PROTOCOL_ERROR)
    _check_text(payload[2:])


def frame_header(opcode: int, size: int) -> bytes:
    """The header of a whole message from the server, which is not masked."""
    first = 0x80 | opcode
    if size < 126:
        return bytes([first, size])
    return struct.pack("!BBH", first, 126, size) if size < 65536 else struct.pack("!BBQ", first, 127, size)


# -- a connection -----------------------------------------------------------------------------------------------------


class WebSocket:
    """The WebSocket of a connection whose request was answered with 101. Each side closes once, in any order.

    `closed` is called when the client closes it, or breaks the protocol. Pings are answered, messages ignored.
    """

    def __init__(self, connection: Connection, closed: Callable[[], object]) -> None:
        self._connection = connection
        self._closed = closed
        self._frames = Frames()
        self._has_closed = False  # the server
        self._is_closed = asyncio.Event()  # by the client
        connection.upgrade(self._receive)

    def _receive(self, data: bytes) -> None:
        if self._is_closed.is_set():
            return
        try:
            for opcode, payload in self._frames.feed(data):
                if opcode == WSMsgType.PING:
                    self._send(WSMsgType.PONG, payload)
                elif opcode == WSMsgType.CLOSE:
                    _check_close(payload)
                    self._end(WSCloseCode.OK)
                    return
        except BrokenProtocol as broken:
            self._end(broken.code)

    def _end(self, code: WSCloseCode) -> None:
        """The client has ended it: nothing that follows is read."""
        self._is_closed.set()
        self._say_close(code)
        self._closed()

    async def close(self) -> None:
        """Close it in good order: wait a while for the client's close, unless it has come."""
        self._say_close(WSCloseCode.OK)
        with contextlib.suppress(TimeoutError, ConnectionError):
            async with asyncio.timeout(CLOSE_WITHIN):
                await self._connection.drain()
                await self._is_closed.wait()

    def _say_close(self, code: WSCloseCode) -> None:
        if not self._has_closed:
            self._has_closed = True
            self._send(WSMsgType.CLOSE, code.to_bytes(2, "big"))

    def _send(self, opcode: int, payload: bytes) -> None:
        if not self._connection.is_lost and (opcode == WSMsgType.CLOSE or not self._has_closed):
            self._connection.write_pieces((frame_header(opcode, len(payload)), payload))


class WebSocketPipe:
    """The client's end of a watch: every line is a message."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def framed(self, events: Sequence[bytes]) -> Sequence[bytes]:
        return [piece for event in events for piece in (frame_header(WSMsgType.TEXT, len(event)), event)]

    def write(self, pieces: Sequence[bytes]) -> int:
        return self._connection.write_pieces(pieces)

    async def drain(self) -> None:
        await self._connection.drain()
