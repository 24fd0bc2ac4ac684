"""Sending answers: their heads, gzip, bodies in pieces and in chunks.

Most answers are small, over HTTP/1.1, and have usual headers: `app` writes their head and body at once, and most heads have been
made before (`usual_head`). `send` is for all others. A large body is written piece by piece, so that a client that does not read leaves at most a piece in the connection's
buffer, and the rest is shared with other answers where possible (`clients.Unsent`).

    bytes, or parts of known length    one write, or pieces: the Content-Length is known
    chunks that are still being made   "Transfer-Encoding: chunked"; to HTTP/1.0 as they are, and the connection closes
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterable, Awaitable, Iterator
from functools import lru_cache, partial
from http import HTTPStatus
from time import time
from typing import Final

from aiohttp.http import HttpVersion10
from multidict import CIMultiDict

from noxu.http import negotiation
from noxu.http.answer import Answer, Headers
from noxu.http.clients import Part, Unsent
from noxu.http.connection import Connection
from noxu.http.exchange import Exchange
from noxu.http.outgoing import SERVER, date

PIECE: Final = 64 * 1024
"""Bytes of a body that are written at once: the transport copies what the kernel does not take of them."""
MAX_HEADS: Final = 256
"""Heads that are kept: one for each status, type and further headers."""
_WITHOUT_BODY: Final = frozenset({101, 204, 304})
_OF_THE_CONNECTION: Final = frozenset({"connection", "content-length", "date", "transfer-encoding"})


@lru_cache(maxsize=MAX_HEADS)
def usual_head(status: int, content_type: str, headers: Headers) -> tuple[bytes, bytes] | None:
    """The head of an answer with a body before and after its Audit-Id, up to its Content-Length; None: `send` has to make it.

    That is so for any header that may need a look at its characters.
    """
    if status in _WITHOUT_BODY or not content_type:
        return None
    if any(name.lower() in _OF_THE_CONNECTION for name, _ in headers):
        return None
    texts = (content_type, *(text for header in headers for text in header))
    if not all(text.isascii() and text.isprintable() for text in texts):
        return None
    before = f"HTTP/1.1 {_status(status)}\r\nServer: {SERVER}\r\nContent-Type: {content_type}\r\nAudit-Id: "
    after = "".join([f"\r\n{name}: {value}" for name, value in headers])
    return before.encode(), f"{after}\r\nContent-Length: ".encode()


async def send(exchange: Exchange, answer: Answer, unsent: Unsent) -> None:
    """Send any answer."""
    request = exchange.request
    headers = headers_of(exchange, answer.content_type)
    headers.extend(answer.headers)
    accept_encoding = request.headers.get("Accept-Encoding", "")
    if not isinstance(answer.body, (bytes, tuple)):
        await _send_chunks(exchange, answer.body, headers, unsent, gzip=negotiation.accepts_gzip(accept_encoding))
        return
    parts = (answer.body,) if isinstance(answer.body, bytes) else answer.body
    size = sum(map(len, parts))
    if size > negotiation.GZIP_THRESHOLD and negotiation.compresses(accept_encoding, size):
        _add_gzip(headers)
        parts = (await asyncio.to_thread(answer.compress or partial(_gzip, parts)),)
        size = len(parts[0])
    if answer.status not in _WITHOUT_BODY and (size or request.method != "HEAD"):
        headers["Content-Length"] = str(size)
    head = head_of(exchange, answer.status, headers)
    if request.method == "HEAD" or answer.status in _WITHOUT_BODY:
        parts, size = (), 0
    exchange.sent_bytes = size
    connection = request.connection
    if size <= PIECE:
        await _taken(connection.answer(b"".join((head, *parts))))
        return
    await _taken(connection.answer(head))
    with unsent.held(connection, parts):
        for piece in _pieces(parts):  # slices of what other answers send, too
            await _taken(connection.write(piece))


async def _send_chunks(
    exchange: Exchange,
    chunks: AsyncIterable[bytes],
    headers: CIMultiDict[str],
    unsent: Unsent,
    *,
    gzip: bool,
) -> None:
    """Send a body chunk by chunk; other tasks run in between."""
    connection = exchange.request.connection
    compressor = zlib.compressobj(1, wbits=31) if gzip else None
    if gzip:
        _add_gzip(headers)
    is_framed = await begin_chunks(exchange, headers)
    if exchange.request.method == "HEAD":
        return

    async def write(chunk: bytes) -> None:
        exchange.sent_bytes += len(chunk)
        with unsent.held(connection, (chunk,)):
            for piece in _pieces((chunk,)):
                # the piece is not copied, so that what is unsent shares its bytes with other answers
                connection.write_pieces((b"%x\r\n" % len(piece), piece, b"\r\n") if is_framed else (piece,))
                if connection.writing_paused:
                    await connection.drain()

    async for chunk in chunks:
        compressed = compressor.compress(chunk) if compressor else chunk
        if compressed:  # an empty one would end the body
            await write(compressed)
        await asyncio.sleep(0)
    if compressor:
        await write(compressor.flush())
    await end_chunks(connection, is_framed=is_framed)


async def begin_chunks(exchange: Exchange, headers: CIMultiDict[str], status: int = 200) -> bool:
    """Send the head of an answer whose length is not known; return whether its chunks have to be framed.

    HTTP/1.0 has no chunks: the body ends with the connection.
    """
    request = exchange.request
    is_framed = request.version != HttpVersion10
    if not is_framed:
        request.keep_alive = False
    elif request.method != "HEAD":
        headers["Transfer-Encoding"] = "chunked"
    await _taken(request.connection.answer(head_of(exchange, status, headers)))
    return is_framed


async def end_chunks(connection: Connection, *, is_framed: bool) -> None:
    """Send the end of a body in chunks."""
    if is_framed:
        await _taken(connection.write(b"0\r\n\r\n"))


async def _taken(waits: Awaitable[None] | None) -> None:
    if waits is not None:
        await waits


def _pieces(parts: tuple[Part, ...]) -> Iterator[Part]:
    for part in parts:
        if len(part) <= PIECE:
            yield part
        else:
            view = memoryview(part)  # pieces of it share its bytes
            yield from (view[start : start + PIECE] for start in range(0, len(view), PIECE))


def _gzip(parts: tuple[Part, ...]) -> bytes:
    compressor = zlib.compressobj(1, wbits=31)
    return b"".join([*map(compressor.compress, parts), compressor.flush()])


# -- heads ------------------------------------------------------------------------------------------------------------


def headers_of(exchange: Exchange, content_type: str) -> CIMultiDict[str]:
    """The headers of every answer, and those that filters have added."""
    headers = CIMultiDict(exchange.headers)  # a copy: those of a watch are added to
    headers["Server"] = SERVER
    if content_type:
        headers["Content-Type"] = content_type
    headers["Audit-Id"] = exchange.id
    return headers


def head_of(exchange: Exchange, status: int, headers: CIMultiDict[str]) -> bytes:
    """The head of an answer with these headers, to which those about the connection are added. Decides `keep_alive`."""
    request, is_old = exchange.request, exchange.request.version == HttpVersion10
    headers.setdefault("Date", date(int(time())).decode())
    if "Connection" in headers or request.connection.closes:  # the first is that of a refusal, or an upgrade
        request.keep_alive = False
    if "Connection" not in headers and request.keep_alive == is_old:  # what the version does not say by itself
        headers["Connection"] = "keep-alive" if is_old else "close"
    lines = [f"HTTP/{'1.0' if is_old else '1.1'} {_status(status)}", *map(": ".join, headers.items()), "", ""]
    return "\r\n".join(lines).encode(errors="ignore")  # what is no UTF-8 in a client's Audit-Id is left out


def _add_gzip(headers: CIMultiDict[str]) -> None:
    headers["Content-Encoding"] = "gzip"
    headers.add("Vary", "Accept-Encoding")  # besides a Vary: Accept of some documents


def _status(status: int) -> str:
    """The code and the phrase of a status, which a webhook may have made up."""
    return f"{status} {_PHRASES.get(status, '')}"


_PHRASES: Final = {status.value: status.phrase for status in HTTPStatus}
