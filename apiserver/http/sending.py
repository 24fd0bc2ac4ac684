"""Sending an answer: headers, gzip, bodies in chunks, and errors as a Status."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterable
from http import HTTPStatus
from typing import Final

from aiohttp import web_request, web_response
from multidict import CIMultiDict

from noxu.apiserver.api import codec, errors
from noxu.apiserver.api.errors import ApiError
from noxu.apiserver.http import negotiation, responses
from noxu.apiserver.http.answer import Answer, text_answer
from noxu.apiserver.http.connection import SERVER, Connection
from noxu.apiserver.http.exchange import Exchange
from noxu.apiserver.http.request import first, parse_query, split_target

_REASONS: Final = {status.value: status.phrase for status in HTTPStatus}


def headers_of(exchange: Exchange, content_type: str) -> CIMultiDict[str]:
    """The headers of every answer, and those that filters have added."""
    headers = CIMultiDict(exchange.headers)
    headers["Server"] = SERVER
    headers["Content-Type"] = content_type
    headers["Audit-Id"] = exchange.id
    return headers


async def send(exchange: Exchange, answer: Answer) -> web_response.StreamResponse:
    """The aiohttp response. One in chunks has been sent; any other one aiohttp sends afterwards. Raises ConnectionError."""
    request = exchange.request
    headers = headers_of(exchange, answer.content_type)
    headers.extend(answer.headers)
    accept_encoding = request.headers.get("Accept-Encoding", "")
    if not isinstance(answer.body, bytes):
        return await _send_chunks(request, answer.body, headers, gzip=negotiation.accepts_gzip(accept_encoding))
    body = answer.body
    if len(body) > negotiation.GZIP_THRESHOLD and negotiation.compresses(accept_encoding, len(body)):
        headers["Content-Encoding"] = "gzip"
        headers.add("Vary", "Accept-Encoding")  # besides a Vary: Accept of some documents
        body = await asyncio.to_thread(_gzip, body)
    reason = _REASONS.get(answer.status, "")
    response = web_response.Response(body=body, status=answer.status, reason=reason, headers=headers)
    if headers.get("Connection") == "close" or _is_closing(request):
        response.force_close()
    return response


def _is_closing(request: web_request.BaseRequest) -> bool:
    """Whether the connection closes after this answer, because the rest of the body is not read."""
    return isinstance(request.protocol, Connection) and request.protocol.is_closing


async def _send_chunks(
    request: web_request.BaseRequest, chunks: AsyncIterable[bytes], headers: CIMultiDict[str], *, gzip: bool
) -> web_response.StreamResponse:
    """Send a body chunk by chunk; other tasks run in between."""
    compressor = zlib.compressobj(1, wbits=31) if gzip else None
    if gzip:
        headers["Content-Encoding"] = "gzip"
        headers.add("Vary", "Accept-Encoding")
    response = web_response.StreamResponse(headers=headers)
    response.enable_chunked_encoding()
    await response.prepare(request)
    if request.method != "HEAD":
        async for chunk in chunks:
            await response.write(compressor.compress(chunk) if compressor else chunk)
            await asyncio.sleep(0)
        if compressor:
            await response.write(compressor.flush())
    await response.write_eof()
    return response


def _gzip(body: bytes) -> bytes:
    compressor = zlib.compressobj(1, wbits=31)
    return compressor.compress(body) + compressor.flush()


# -- errors -----------------------------------------------------------------------------------------------------------


def error_answer(error: ApiError, request: web_request.BaseRequest) -> Answer:
    """The Status in the requested format, or plain text for errors that upstream writes so."""
    extra = (("Retry-After", str(error.retry_after)),) if error.retry_after else ()
    if error.text is not None:
        return text_answer(error.text, error.code, extra)
    query = parse_query(split_target(request.raw_path)[1])
    accepted = negotiation.negotiate_error(
        request.headers.get("Accept", ""),
        pretty=first(query, "pretty"),
        user_agent=request.headers.get("User-Agent", ""),
    )
    headers = (("Cache-Control", "no-cache, private"), *extra)
    return Answer(responses.encode(error.status, accepted), error.code, accepted.content_type, headers)


def too_late() -> ApiError:
    """The error of a deadline. Upstream's timeout filter writes its Status without a kind and as plain text."""
    error = errors.timeout("request did not complete within the allotted timeout", 0)
    shown = {name: value for name, value in error.status.items() if name not in ("kind", "apiVersion")}
    error.text = codec.encode({**shown, "details": {}}, sort_keys=False).decode()
    return error
