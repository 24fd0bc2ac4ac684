"""Watch over a WebSocket: one text message per event (upstream's HandleWS, on golang.org/x/net/websocket).

Only watches are upgraded; every other route ignores the request for an upgrade (CVE-2018-1002105: an upgrade that a
server forwards carries the server's rights). Like upstream, it requires an Origin header, which browsers always send and
`filters.check_origin` has checked. One subprotocol is echoed, whatever its name; several are refused.
"""

from __future__ import annotations

import base64
import binascii
import struct
from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final

from aiohttp import web_request
from aiohttp.http import WSMsgType
from multidict import CIMultiDict

from noxu.http.answer import Answer
from noxu.http.unsent import write_pieces
from noxu.security.credentials import PROTOCOL_PREFIX, subprotocols

if TYPE_CHECKING:
    from aiohttp import web_ws

MAX_MESSAGE: Final = 4096  # bytes; messages from clients are ignored
VERSION: Final = "13"
_TEXT: Final = b"\x81"  # FIN, text
_KEY_BYTES: Final = 16


def is_upgrade(request: web_request.BaseRequest) -> bool:
    """Whether the client requests a WebSocket."""
    headers = request.headers
    return headers.get("Upgrade", "").lower() == "websocket" and "upgrade" in headers.get("Connection", "").lower()


def refusal(request: web_request.BaseRequest) -> Answer | None:
    """The answer that refuses a WebSocket; None if it is accepted."""
    headers = request.headers
    if request.method != "GET":
        return _refused(405, "bad method")
    if not _is_key(headers.get("Sec-WebSocket-Key", "")):
        return _refused(400, "mismatch challenge/response")
    if headers.get("Sec-WebSocket-Version") != VERSION:
        return _refused(400, "missing or bad WebSocket Version", ("Sec-WebSocket-Version", VERSION))
    if "://" not in headers.get("Origin", "") and not headers.get("Origin", "").startswith("/"):
        return _refused(403)
    if len(_protocols(request)) > 1:
        return _refused(400)
    return None


async def accept(request: web_request.BaseRequest, headers: CIMultiDict[str]) -> web_ws.WebSocketResponse:
    """Answer 101 and return the WebSocket. The caller has checked `refusal`."""
    from aiohttp import web_ws  # with the first one: few servers have any

    response = web_ws.WebSocketResponse(
        protocols=_protocols(request), max_msg_size=MAX_MESSAGE, compress=False, timeout=1.0
    )
    response.headers.update(headers)
    await response.prepare(request)
    return response


async def ignore_messages(response: web_ws.WebSocketResponse) -> None:
    """Return when the client closes the connection, or breaks the protocol. Pings are answered."""
    while (await response.receive()).type in (WSMsgType.TEXT, WSMsgType.BINARY):
        pass


class WebSocketPipe:
    """The client's end of a watch: every line is a message."""

    def __init__(self, request: web_request.BaseRequest) -> None:
        self._request = request

    def framed(self, events: Sequence[bytes]) -> Sequence[bytes]:
        return [piece for event in events for piece in (_TEXT + _length(len(event)), event)]

    def write(self, pieces: Sequence[bytes]) -> int:
        return write_pieces(self._request.transport, pieces)

    async def drain(self) -> None:
        await self._request.writer.drain()


def _length(size: int) -> bytes:
    if size < 126:
        return bytes([size])
    return struct.pack("!BH", 126, size) if size < 65536 else struct.pack("!BQ", 127, size)


def _is_key(text: str) -> bool:
    try:
        return len(base64.b64decode(text, validate=True)) == _KEY_BYTES
    except (binascii.Error, ValueError):
        return False


def _protocols(request: web_request.BaseRequest) -> tuple[str, ...]:
    """Those that a client offers, without the one that carries its token; two of them if there are more."""
    if not request.headers.get("Sec-WebSocket-Protocol", "").strip():
        return ()
    names = (name for name in subprotocols(request.headers) if not name.startswith(PROTOCOL_PREFIX))
    return tuple(islice(names, 2))


def _refused(code: int, text: str = "", *headers: tuple[str, str]) -> Answer:
    return Answer(text.encode(), code, "text/plain; charset=utf-8", (*headers, ("Connection", "close")))
