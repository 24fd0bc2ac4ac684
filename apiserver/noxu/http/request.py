"""A request: what a connection has received of it (`Received`), and what its target means (`RequestInfo`).

`head_error` says what the parser accepts and Go's net/http refuses. Another server in front of this one could understand such a
request differently, and see other requests than this server does. So it is refused, and the connection closes, because the
bytes that follow may not be a request. An absolute URL remains part of the target, see `split_target`.

`RequestInfo` is the verb, resource and object of a request, from its decoded path (upstream's pkg/endpoints/request).
Like upstream, it first decodes the path and then splits it: `%2F` separates like `/`, so authorization and handlers see
the same resource however it is encoded. Namespaces are checked here and nowhere else; names are checked, as in upstream,
when the key of the object is made (`api.names.check_path_name`).
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from aiohttp.http import HttpVersion, HttpVersion10, HttpVersion11
from aiohttp.streams import EMPTY_PAYLOAD, StreamReader
from multidict import CIMultiDictProxy

from noxu.api.codec import MAX_BODY
from noxu.api.errors import ApiError, bad_request, timeout, too_large
from noxu.expressions import expression
from noxu.go.text import parse_int, quote
from noxu.go.time import SECOND, parse_duration
from noxu.go.url import decoded, has_bad_escape

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


def head_error(request: Received) -> ApiError | None:
    """The error of a request that has to be refused, with net/http's texts; None for any other."""
    version, headers = request.version, request.headers
    if version == HttpVersion11 and "Transfer-Encoding" not in headers and "Expect" not in headers:
        return None  # as nearly all
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
    version = _UNKNOWN_VERSION.search(message)
    return (505, UNSUPPORTED_VERSION) if version is not None and version[1] != "1" else (400, "400 Bad Request")


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


# -- the target ---------------------------------------------------------------------------------------------------------


_VERBS: Final = {
    "POST": ("create", "create"),
    "GET": ("list", "get"),
    "HEAD": ("list", "get"),
    "PUT": ("update", "update"),
    "PATCH": ("patch", "patch"),
    "DELETE": ("deletecollection", "delete"),
}
"""By method: the verb without and with a name."""

MAX_CACHED_TARGET: Final = 300
"""Characters of a target and its method: a name, its namespace and its resource, each of usual length."""
MAX_DURATION: Final = 1024  # characters of the parameter `timeout`; upstream adds up as many numbers as a URL can have
MAX_PARAMETERS: Final = 10_000
"""Parameters of a query; Go ignores one that has more (net/url, urlmaxqueryparams)."""
_LONG_SUBRESOURCES: Final = frozenset({"attach", "exec", "proxy", "log", "portforward"})
_NAMESPACE_SUBRESOURCES: Final = frozenset({"status", "finalize"})

Query = dict[str, list[str]]


class RequestInfo(NamedTuple):
    """The parsed path. `verb` is "" for other methods, and for paths that are not of a resource."""

    is_resource: bool
    """False for documents (discovery, OpenAPI, health …); the other fields are then empty."""
    verb: str
    group: str
    version: str
    resource: str
    namespace: str
    name: str
    subresource: str
    in_namespace: bool
    """The path continues below a namespace; that of a namespace itself does not."""
    watching: bool
    """The path is that of a watch (`watch/`)."""
    more: bool
    """The path has more segments, which are not interpreted."""


NO_RESOURCE: Final = RequestInfo(False, "", "", "", "", "", "", "", False, False, False)


class Target(NamedTuple):
    """The target of a request without its query. `host` is "" unless the target is an absolute URL.

    Below PAST, `moment` is the segment that follows, and `path` what follows that: `/api/v1/pods` of `/_noxu/at/-5m/api/v1/pods`.
    So whatever judges a request judges what it reads.
    """

    path: str
    """Decoded."""
    host: str
    info: RequestInfo
    is_long_running: bool = False
    """It may last as long as its client likes."""
    moment: str = ""


PAST: Final = "/_noxu/at/"
"""How the paths begin that show the API as it was at a moment."""


def parse_target(method: str, target: str) -> tuple[Target, Query]:
    """Parse the target of a request. Raises ApiError for an invalid URL or namespace."""
    if target.startswith("/"):  # as nearly all
        target, _, raw_query = target.partition("?")
    else:
        raw_query = "" if method == "CONNECT" else split_target(target)[1]
    query = parse_query(raw_query) if raw_query else {}
    known = _known_target if len(method) + len(target) <= MAX_CACHED_TARGET else _known_target.__wrapped__
    return known(method, target, "watch" in query and is_watch(query)), query


@lru_cache(maxsize=2048)
def _known_target(method: str, target: str, watch: bool) -> Target:
    """The Target, whose namespace is checked. Clients ask for the same paths again and again.

    A GET takes a seventh more processor time in this process without the cache (`benchmarks.http`, `get`).
    """
    if method == "CONNECT" and not target.startswith("/"):
        return Target("", target, NO_RESOURCE)  # `host:port`, as proxies get it
    raw_path, _, host = split_target(target)
    path, moment = decode_path(raw_path), ""
    if path.startswith(PAST):
        segment, slash, inner = path.removeprefix(PAST).partition("/")
        if segment and inner:  # else it is a call of /_noxu/ itself
            # from here on the path is the inner one: filters, handlers and sinks see no other
            path, moment = slash + inner, segment
    info = resource_info(method, path, watch=watch)
    if info.namespace:
        check_namespace(info.namespace)
    return Target(path, host, info, is_long_running(info), moment)


def parse_query(text: str) -> Query:
    """The query parameters. Those that Go refuses (with a `;`, or a `%` that escapes nothing) are dropped, as it does.

    So are all if there are too many.
    """
    query: Query = {}
    if text.count("&") >= MAX_PARAMETERS:
        return query
    for part in text.split("&"):
        if part and ";" not in part and not has_bad_escape(part):
            name, _, value = part.partition("=")
            query.setdefault(_unescaped(name), []).append(_unescaped(value))
    return query


def _unescaped(text: str) -> str:
    if "+" in text:
        text = text.replace("+", " ")
    return decoded(text).decode(errors="replace") if "%" in text else text


def first(query: Query, name: str) -> str:
    """The first value of a parameter, "" if it is absent."""
    values = query.get(name)
    return values[0] if values else ""


def split_target(target: str) -> tuple[str, str, str]:
    """Split a target into path, query, and host if it is an absolute URL, as clients send it to proxies."""
    host = ""
    if not target.startswith("/"):
        scheme, separator, rest = target.partition("://")
        if separator and scheme.lower() in ("http", "https"):
            host, slash, rest = rest.partition("/")
            target = slash + rest
    path, _, query = target.partition("?")
    return path, query, host


def decode_path(raw: str) -> str:
    """The decoded path. Raises ApiError for an invalid URL."""
    if "%" not in raw:
        return raw
    if has_bad_escape(raw):
        raise ApiError(400, "", text="400 Bad Request")
    return decoded(raw).decode(errors="surrogateescape")


def is_watch(query: Query) -> bool:
    """Whether `watch` is given with any value but `0` and `false`; an empty one requests a watch, too."""
    return "watch" in query and first(query, "watch").lower() not in ("0", "false")


def resource_info(method: str, path: str, *, watch: bool = False) -> RequestInfo:
    """The RequestInfo of a path below /api/v1/ or /apis/GROUP/VERSION/; NO_RESOURCE for every other path.

    `watch`: the query asks for a watch.
    """
    if not path.startswith(("/api/", "/apis/")):  # `//apis/` is another path
        return NO_RESOURCE
    parts = path.strip("/").split("/")  # empty segments inside remain
    if len(parts) > 2 and parts[0] == "api":
        group, version, rest = "", parts[1], parts[2:]
    elif len(parts) > 3 and parts[0] == "apis" and parts[1]:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return NO_RESOURCE
    watching = rest[0] == "watch" and len(rest) > 1
    if watching:
        rest = rest[1:]
    namespace, in_namespace = "", False
    if rest[0] == "namespaces" and len(rest) > 1:
        if len(rest) > 2 and not (rest[2] in _NAMESPACE_SUBRESOURCES and len(rest) == 3):
            namespace, in_namespace, rest = rest[1], True, rest[2:]
        else:
            namespace = rest[1]
    resource, name, subresource = (*rest, "", "")[:3]
    without_name, with_name = _VERBS.get(method, ("", ""))
    verb = with_name if name else without_name
    if watching or (verb == "list" and watch):
        verb = "watch"
    more = len(rest) > 3
    return RequestInfo(True, verb, group, version, resource, namespace, name, subresource, in_namespace, watching, more)


def is_long_running(info: RequestInfo) -> bool:
    """Whether a request may last as long as its client likes (kube-apiserver's BasicLongRunningRequestCheck)."""
    return info.verb == "watch" or info.subresource in _LONG_SUBRESOURCES


def check_namespace(namespace: str) -> None:
    """Check the namespace in a path. Harmless names pass, even if no namespace can have them. Raises ApiError."""
    if namespace in (".", ".."):
        raise bad_request(f"Namespace parameter invalid: {quote(namespace)}: may not be '{namespace}'")
    try:
        namespace.encode()
    except UnicodeEncodeError:
        raise bad_request(f"Namespace parameter invalid: {quote(namespace)}: must be UTF-8") from None


# -- single parameters of a query (apimachinery's Convert_Slice_string_To_…) ------------------------------------------------


def boolean(query: Query, name: str) -> bool | None:
    """The value of a parameter: false for `false` and `0`, true for any other text, also an empty one; None if absent."""
    return None if name not in query else first(query, name).lower() not in ("false", "0")


def integer(query: Query, name: str) -> int | None:
    if name not in query:
        return None
    try:
        return parse_int(first(query, name))
    except ValueError as error:
        raise bad_request(str(error)) from None


def request_timeout(query: Query, longest: float) -> float:
    """The seconds that a request may take: its parameter `timeout` (`5s`), at most `longest`. Raises ApiError."""
    text = first(query, "timeout")
    if not text:
        return longest
    if len(text) > MAX_DURATION:
        raise bad_request(
            f"invalid timeout specified in the request URL - time: invalid duration of more than {MAX_DURATION} characters"
        )
    try:
        seconds = parse_duration(text) / SECOND
    except ValueError as error:
        raise bad_request(f"invalid timeout specified in the request URL - {error}") from None
    return seconds if 0 < seconds < longest else longest
