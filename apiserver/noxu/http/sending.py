"""Sending an answer: headers, gzip, bodies in pieces and in chunks, and errors as a Status.

A large body is written piece by piece, so that a client that does not read leaves at most a piece in the connection's
buffer, and the rest is shared with other answers where possible (`unsent`).

Most answers are small, over HTTP/1.1, and have usual headers. Their bytes are written at once, without aiohttp's response,
which makes headers of its own and adds to them (`_write_whole`). That both write the same is tested.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterable, Awaitable, Iterator
from functools import lru_cache, partial
from http import HTTPStatus
from typing import Any, Final

from aiohttp import web_request, web_response
from aiohttp.helpers import rfc822_formatted_time
from aiohttp.http import HttpVersion11
from multidict import CIMultiDict

from noxu.api import codec, errors
from noxu.api.errors import ApiError
from noxu.http import negotiation, responses
from noxu.http.answer import Answer, Headers, text_answer
from noxu.http.connection import SERVER, WRITTEN, Connection
from noxu.http.exchange import Exchange
from noxu.http.request import first, parse_query, split_target
from noxu.http.unsent import Part, Unsent

PIECE: Final = 64 * 1024
"""Bytes of a body that are written at once: the transport copies what the kernel does not take of them."""
_REASONS: Final = {status.value: status.phrase for status in HTTPStatus}


def headers_of(exchange: Exchange, content_type: str) -> CIMultiDict[str]:
    """The headers of every answer, and those that filters have added."""
    headers = CIMultiDict(exchange.headers)
    headers["Server"] = SERVER
    if content_type:
        headers["Content-Type"] = content_type
    headers["Audit-Id"] = exchange.id
    return headers


def send(exchange: Exchange, answer: Answer, unsent: Unsent) -> Awaitable[web_response.StreamResponse] | None:
    """Send an answer. None if the kernel has taken all of it: its aiohttp response is `WRITTEN`. Else what to await.

    The awaitable returns the aiohttp response, and raises ConnectionError.
    """
    if (head := _head_of_whole(exchange, answer)) is None:
        return _send(exchange, answer, unsent)
    waits = _write_whole(exchange, head, answer.body)
    return None if waits is None else _taken(waits)


async def _taken(waits: Awaitable[None]) -> web_response.StreamResponse:
    await waits
    return WRITTEN


async def _send(exchange: Exchange, answer: Answer, unsent: Unsent) -> web_response.StreamResponse:
    """Send an answer with aiohttp."""
    request = exchange.request
    headers = headers_of(exchange, answer.content_type)
    headers.extend(answer.headers)
    accept_encoding = request.headers.get("Accept-Encoding", "")
    if not isinstance(answer.body, (bytes, tuple)):
        gzip = negotiation.accepts_gzip(accept_encoding)
        return await _send_chunks(exchange, answer.body, headers, unsent, gzip=gzip)
    parts = (answer.body,) if isinstance(answer.body, bytes) else answer.body
    size = len(answer.body) if isinstance(answer.body, bytes) else sum([len(part) for part in parts])
    if size > negotiation.GZIP_THRESHOLD and negotiation.compresses(accept_encoding, size):
        headers["Content-Encoding"] = "gzip"
        headers.add("Vary", "Accept-Encoding")  # besides a Vary: Accept of some documents
        parts = (await asyncio.to_thread(answer.compress or partial(_gzip, parts)),)
        size = len(parts[0])
    exchange.sent_bytes = 0 if request.method == "HEAD" else size
    reason = _REASONS.get(answer.status, "")
    response: web_response.StreamResponse
    in_pieces = size > PIECE and request.method != "HEAD"
    if in_pieces:
        response = web_response.StreamResponse(status=answer.status, reason=reason, headers=headers)
        response.content_length = size
    else:
        body = answer.body if parts[0] is answer.body else b"".join(parts)
        response = web_response.Response(body=body, status=answer.status, reason=reason, headers=headers)
    if _is_closing(request) or "Connection" in headers:
        response.force_close()
    await response.prepare(request)
    if in_pieces:
        await _write(request, response, parts, unsent)
    await response.write_eof()
    return response


_WITHOUT_BODY: Final = frozenset({204, 304})
_OF_THE_CONNECTION: Final = frozenset({"connection", "content-length", "date", "transfer-encoding"})
"""Headers with which aiohttp deals."""
MAX_HEADS: Final = 256
"""Heads that are kept: one for each status, type and further headers."""


def _head_of_whole(exchange: Exchange, answer: Answer) -> tuple[bytes, bytes] | None:
    """The head of an answer before and after its Audit-Id; None: aiohttp has to send it.

    That is so for large and for empty bodies, HEAD, HTTP/1.0, a connection that closes, headers of filters, and any header
    that may need a look at its characters.
    """
    request, body, id_ = exchange.request, answer.body, exchange.id
    if not isinstance(body, bytes) or not 0 < len(body) <= PIECE or exchange.headers:
        return None
    protocol = request.protocol
    if not isinstance(protocol, Connection) or protocol.is_closing or protocol.is_lost:
        return None
    if request.version != HttpVersion11 or request.method == "HEAD" or not request.keep_alive:
        return None
    if not (id_.isascii() and id_.isprintable()):
        return None
    return _head(answer.status, answer.content_type, answer.headers)


@lru_cache(maxsize=MAX_HEADS)
def _head(status: int, content_type: str, headers: Headers) -> tuple[bytes, bytes] | None:
    """What `_head_of_whole` returns for the answers with this status, type and further headers."""
    if status in _WITHOUT_BODY or not content_type:
        return None
    if any(name.lower() in _OF_THE_CONNECTION for name, _ in headers):
        return None
    before = f"HTTP/1.1 {status} {_REASONS.get(status, '')}\r\nServer: {SERVER}\r\nContent-Type: {content_type}\r\nAudit-Id: "
    after = "".join([f"\r\n{name}: {value}" for name, value in headers])
    texts = (content_type, *(text for header in headers for text in header))
    if not all(text.isascii() and text.isprintable() for text in texts):
        return None
    return before.encode(), f"{after}\r\nContent-Length: ".encode()


def _write_whole(exchange: Exchange, head: tuple[bytes, bytes], body: Any) -> Awaitable[None] | None:
    """Write a small answer at once. None if the kernel has taken it, else what to await; that raises ConnectionError."""
    before, after = head
    exchange.sent_bytes = size = len(body)
    date = rfc822_formatted_time()
    protocol = exchange.request.protocol
    assert isinstance(protocol, Connection)
    length_and_date = f"{size}\r\nDate: {date}\r\n\r\n"
    return protocol.write_whole(b"".join((before, exchange.id.encode(), after, length_and_date.encode(), body)))


def _is_closing(request: web_request.BaseRequest) -> bool:
    """Whether the connection closes after this answer, because the rest of the body is not read."""
    return isinstance(request.protocol, Connection) and request.protocol.is_closing


async def _send_chunks(
    exchange: Exchange,
    chunks: AsyncIterable[bytes],
    headers: CIMultiDict[str],
    unsent: Unsent,
    *,
    gzip: bool,
) -> web_response.StreamResponse:
    """Send a body chunk by chunk; other tasks run in between."""
    request = exchange.request
    compressor = zlib.compressobj(1, wbits=31) if gzip else None
    if gzip:
        headers["Content-Encoding"] = "gzip"
        headers.add("Vary", "Accept-Encoding")
    response = web_response.StreamResponse(headers=headers)
    response.enable_chunked_encoding()
    await response.prepare(request)
    if request.method != "HEAD":
        async for chunk in chunks:
            compressed = compressor.compress(chunk) if compressor else chunk
            await _write(request, response, (compressed,), unsent)
            exchange.sent_bytes += len(compressed)
            await asyncio.sleep(0)
        if compressor:
            rest = compressor.flush()
            await response.write(rest)
            exchange.sent_bytes += len(rest)
    await response.write_eof()
    return response


async def _write(
    request: web_request.BaseRequest, response: web_response.StreamResponse, parts: tuple[Part, ...], unsent: Unsent
) -> None:
    """Write parts of a body; return when the kernel has taken most of them. Raises ConnectionError."""
    with unsent.held(request.protocol, parts):
        for piece in _pieces(parts):
            await response.write(piece)


def _pieces(parts: tuple[Part, ...]) -> Iterator[Part]:
    for part in parts:
        if len(part) <= PIECE:
            yield part
        else:
            view = memoryview(part)
            yield from (view[start : start + PIECE] for start in range(0, len(view), PIECE))


def _gzip(parts: tuple[Part, ...]) -> bytes:
    compressor = zlib.compressobj(1, wbits=31)
    return b"".join([*map(compressor.compress, parts), compressor.flush()])


# -- errors -----------------------------------------------------------------------------------------------------------


def error_answer(error: ApiError, request: web_request.BaseRequest, *, cbor: bool = False) -> Answer:
    """The Status in the requested format, or plain text for errors that upstream writes so. `cbor`: CBOR is offered."""
    extra = (("Retry-After", str(error.retry_after)),) if error.retry_after else ()
    if error.text is not None:
        return text_answer(error.text, error.code, extra)
    query = parse_query(split_target(request.raw_path)[1])
    accepted = negotiation.negotiate_error(
        request.headers.get("Accept", ""),
        pretty=first(query, "pretty"),
        user_agent=request.headers.get("User-Agent", ""),
        cbor=cbor,
    )
    headers = (("Cache-Control", "no-cache, private"), *extra)
    return Answer(responses.encode(error.status, accepted), error.code, accepted.content_type, headers)


def too_late() -> ApiError:
    """The error of a deadline. Upstream's timeout filter writes its Status without a kind and as plain text."""
    error = errors.timeout("request did not complete within the allotted timeout", 0)
    shown = {name: value for name, value in error.status.items() if name not in ("kind", "apiVersion")}
    error.text = codec.encode({**shown, "details": {}}, sort_keys=False).decode()
    return error
