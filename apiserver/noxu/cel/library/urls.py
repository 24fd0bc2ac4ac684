"""Kubernetes' URLs in expressions, as Go's net/url parses them."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote as percent_encode
from urllib.parse import unquote_plus

from noxu.cel.errors import CelError, no_such_overload
from noxu.cel.library.declarations import Overload, overload
from noxu.cel.memory import ENTRY, LIST, MAP, TEXT, allocate, allocate_text
from noxu.cel.types.types import URL
from noxu.cel.values.values import MapValue, Opaque, Value
from noxu.go import url as go_url

_PORT: Final = re.compile(r":[0-9]*\Z")
_RAW_PATH: Final = re.compile(r"(?:[a-zA-Z][a-zA-Z0-9+.-]*:)?(?://[^/?#]*)?([^?#]*)")
_ENCODED: Final = re.compile(r"[A-Za-z0-9\-_.~$&+,/:;=@!'()*\[\]%]*")
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9a-fA-F]{2})")
_MAX_PARAMETERS: Final = 10_000  # net/url ignores a query with more


class Url(Opaque):
    __slots__ = ("parts", "text")
    type = URL

    def __init__(self, text: str, parts: go_url.Url) -> None:
        self.text = text
        self.parts = parts

    def equals(self, other: Value) -> bool:
        if not isinstance(other, Url):
            raise no_such_overload()
        left, right = self.parts, other.parts
        return left._replace(path="") == right._replace(path="") and escaped_path(self) == escaped_path(other)

    def __str__(self) -> str:
        return self.text


def parse(text: str) -> Url:
    allocate_text(2 * len(text), text)
    try:
        go_url.parse_request_uri(text)
        return Url(text, go_url.parse(text))
    except ValueError as error:
        raise CelError(f"URL parse error during conversion from string: {error}") from None


def is_url(text: str) -> bool:
    try:
        go_url.parse_request_uri(text)
    except ValueError:
        return False
    return True


def hostname(url: Url) -> str:
    allocate_text(2 * len(url.parts.host), url.parts.host)
    host = _PORT.sub("", url.parts.host)
    return host[1:-1] if host.startswith("[") and host.endswith("]") else host


def port(url: Url) -> str:
    allocate_text(len(url.parts.host), url.parts.host)
    found = _PORT.search(url.parts.host)
    return found[0][1:] if found else ""


def escaped_path(url: Url) -> str:
    """URL.EscapedPath: the path as it was written, if it was escaped correctly; else the path with the escapes of EscapedPath."""
    if url.parts.path == "*" or not url.parts.path:
        return url.parts.path
    allocate_text(3 * len(url.text), url.text)
    written = _RAW_PATH.match(url.text)[1]  # type: ignore[index]
    if _ENCODED.fullmatch(written):
        return str(written)
    return percent_encode(url.parts.path, safe="/$&+,:;=@-_.~", errors="surrogateescape")


def query(url: Url) -> MapValue:
    """URL.Query: the values of each parameter. Parameters with a wrong escape or a semicolon are ignored."""
    text = url.parts.query
    allocate_text(len(text), text)
    allocate(MAP + (ENTRY + LIST + 2 * TEXT) * (text.count("&") + 1))
    found: dict[str, list[Value]] = {}
    if text.count("&") < _MAX_PARAMETERS:
        for pair in text.split("&"):
            name, _, value = pair.partition("=")
            if pair and ";" not in pair and not _BAD_ESCAPE.search(pair):
                found.setdefault(unquote_plus(name), []).append(unquote_plus(value))
    return MapValue(found.items())


OVERLOADS: Final[list[tuple[str, Overload]]] = [
    overload("string_to_url", "url(string) -> url", parse),
    overload("url_get_scheme", "url.getScheme() -> string", lambda url: url.parts.scheme),
    overload("url_get_host", "url.getHost() -> string", lambda url: url.parts.host),
    overload("url_get_hostname", "url.getHostname() -> string", hostname),
    overload("url_get_port", "url.getPort() -> string", port),
    overload("url_get_escaped_path", "url.getEscapedPath() -> string", escaped_path),
    overload("url_get_query", "url.getQuery() -> map(string, list(string))", query),
    overload("is_url_string", "isURL(string) -> bool", is_url),
]
