"""The version and the framing of a request: what aiohttp's parser accepts, and Go's net/http refuses.

Another server in front of this one could understand such a request differently, and see other requests than this server
does. So it is refused, and the connection closes, because the bytes that follow may not be a request.
"""

from __future__ import annotations

import re
from typing import Final

from aiohttp import web_request
from aiohttp.http import HttpVersion, HttpVersion10, HttpVersion11
from multidict import CIMultiDictProxy

from noxu.api.errors import ApiError
from noxu.expressions import expression

UNSUPPORTED_VERSION: Final = "505 HTTP Version Not Supported: unsupported protocol version"
_HTTP_2: Final = HttpVersion(2, 0)
_UNKNOWN_VERSION: Final = expression(r"Invalid HTTP version:\s*b'[^\n]* HTTP/([0-9])\.[0-9]'")
"""The message of aiohttp's parser about a version that it does not know, and the line of the request."""


_CONTINUE: Final = expression(r"(?<![^\s,])100-continue(?![^\s,])", re.IGNORECASE)
"""The expectation among others: between commas and white space."""


def refusal(version: HttpVersion, headers: CIMultiDictProxy[str]) -> ApiError | None:
    """The error of a request that has to be refused, with net/http's texts; None for any other."""
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


def malformed_body() -> ApiError:
    """The error of a request whose chunks are malformed."""
    return ApiError(400, "", text="400 Bad Request")


def answer_to_malformed(message: str) -> tuple[int, str]:
    """The code and the text of the answer to a head that the parser refuses with this message.

    A well-formed version is not supported if it is none of HTTP/1. Deviation: HTTP/1.2 to HTTP/1.9, which Go serves like
    HTTP/1.1, are malformed to the parser.
    """
    found = _UNKNOWN_VERSION.search(message)
    return (505, UNSUPPORTED_VERSION) if found is not None and found[1] != "1" else (400, "400 Bad Request")


def answer_in_http_1_1(request: web_request.BaseRequest) -> None:
    """Answer a refused request in HTTP/1.1, as Go does, whatever version it has; aiohttp would answer in that version."""
    request._cache["version"] = HttpVersion11  # noqa: SLF001 - where `version` keeps its value


def _expects_continue(expect: str) -> bool:
    """Whether `100-continue` is one of the expectations. Nothing is expected by an empty header."""
    return not expect or _CONTINUE.search(expect) is not None
