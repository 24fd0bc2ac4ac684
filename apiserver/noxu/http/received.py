"""A request as a connection has received it: its head, its body, and what is refused about both.

`refusal` says what the parser accepts and Go's net/http refuses. Another server in front of this one could understand such a
request differently, and see other requests than this server does. So it is refused, and the connection closes, because the
bytes that follow may not be a request.

An absolute URL remains part of the target, see `request.split_target`.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from aiohttp.http import HttpVersion, HttpVersion10, HttpVersion11
from aiohttp.streams import EMPTY_PAYLOAD, StreamReader
from multidict import CIMultiDictProxy

from noxu.api.codec import MAX_BODY
from noxu.api.errors import ApiError, timeout, too_large
from noxu.expressions import expression

if TYPE_CHECKING:
    from noxu.http.connection import Connection

UNSUPPORTED_VERSION: Final = "505 HTTP Version Not Supported: unsupported protocol version"
_HTTP_2: Final = HttpVersion(2, 0)
_UNKNOWN_VERSION: Final = expression(r"Invalid HTTP version:\s*b'[^\n]* HTTP/([0-9])\.[0-9]'")
"""The message of aiohttp's parser about a version that it does not know, and the line of the request."""
_CONTINUE: Final = expression(r"(?<![^\s,])100-continue(?![^\s,])", re.IGNORECASE)
"""The expectation among others: between commas and white space."""


@dataclass(slots=True, eq=False)
class Received:
    """One request. Its filters may change `version`, that of the answer, and its answer `keep_alive`: both are the connection's."""

    connection: Connection
    method: str
    raw_path: str
    """The target, as it was sent."""
    version: HttpVersion
    headers: CIMultiDictProxy[str]
    body: StreamReader = EMPTY_PAYLOAD
    keep_alive: bool = True
    """Whether the client, and later the answer, wants the connection to stay."""

    @property
    def remote(self) -> str:
        """The client's address, also when it is gone; "" for a Unix socket."""
        peer = self.connection.peername
        return peer[0] if isinstance(peer, tuple) else ""


# -- the head


def refusal(request: Received) -> ApiError | None:
    """The error of a request that has to be refused, with net/http's texts; None for any other."""
    version, headers = request.version, request.headers
    if version < HttpVersion10:  # or the line of the request has no version: the parser does not tell which
        return ApiError(400, "", text="400 Bad Request: malformed HTTP version")
    if version >= _HTTP_2:
        return ApiError(505, "", text=UNSUPPORTED_VERSION)
    if "Transfer-Encoding" in headers:
        if version < HttpVersion11:  # Go ignores the header, which RFC 9112, 6.1 calls faulty
            return ApiError(400, "", text="400 Bad Request")
        encodings = headers.getall("Transfer-Encoding")
        if len(encodings) != 1 or encodings[0].lower() != "chunked":
            return ApiError(501, "", text="Unsupported transfer encoding")
    if "Expect" in headers and not _expects_continue(headers["Expect"]):
        return ApiError(417, "", text="")
    return None


def _expects_continue(expect: str) -> bool:
    """Whether `100-continue` is one of the expectations. Nothing is expected by an empty header."""
    return not expect or _CONTINUE.search(expect) is not None


def answer_to_malformed(message: str) -> tuple[int, str]:
    """The code and the text of the answer to a head that the parser refuses with this message.

    A well-formed version is not supported if it is none of HTTP/1. Deviation: HTTP/1.2 to HTTP/1.9, which Go serves like
    HTTP/1.1, are malformed to the parser.
    """
    found = _UNKNOWN_VERSION.search(message)
    return (505, UNSUPPORTED_VERSION) if found is not None and found[1] != "1" else (400, "400 Bad Request")


# -- the body


def malformed_body() -> ApiError:
    """The error of a request whose chunks are malformed."""
    return ApiError(400, "", text="400 Bad Request")


async def read_body(request: Received) -> bytes:
    """The whole body. Raises ApiError RequestEntityTooLarge after at most MAX_BODY bytes."""
    length = request.headers.get("Content-Length")
    if length is not None and int(length) > MAX_BODY:
        raise _too_large(request)
    if request.body.at_eof():
        return b""
    if request.body.is_eof():  # it came with the head, like most bodies
        body = request.body.read_nowait()
        if len(body) > MAX_BODY:
            raise _too_large(request)
        return body
    connection = request.connection
    if request.headers.get("Expect", "").lower() == "100-continue" and not connection.is_lost:
        connection.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    chunks: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(connection.limits.body_deadline):
            while chunk := await request.body.readany():
                size += len(chunk)
                if size > MAX_BODY:
                    raise _too_large(request)
                chunks.append(chunk)
    except TimeoutError:
        connection.close()
        raise timeout("request did not complete within the allotted timeout", 0) from None
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def _too_large(request: Received) -> ApiError:
    request.connection.close()  # the rest is not read: what follows cannot be a request
    return too_large(f"limit is {MAX_BODY}")
