"""URLs as Go's net/url parses them, error texts included."""

from __future__ import annotations

import ipaddress
import re
from typing import Final, NamedTuple
from urllib.parse import quote as percent_encode

from noxu.expressions import expression
from noxu.go.text import quote

_CONTROL: Final = expression(r"[\x00-\x1f\x7f]")
_SCHEME: Final = expression(r"([a-zA-Z][a-zA-Z0-9+.-]*)?:")
_USERINFO: Final = expression(r"[A-Za-z0-9._:~!$&'()*+,;=%@-]*\Z")
_PORT: Final = expression(r"(:[0-9]*)?\Z")
_BAD_ESCAPE: Final = expression(r"%(?![0-9a-fA-F]{2}).{0,2}", re.DOTALL)
_NOT_IN_HOST: Final = frozenset(map(chr, range(0x21))) | set("#/?@\\^`{|}\x7f")
_ASCII_ESCAPE: Final = expression(r"%(?!25)[0-7][0-9a-fA-F]")  # in hosts only bytes outside ASCII are escaped
# In zones only characters of hosts and the space (for Windows) may be escaped.
_ZONE_BYTES: Final = (f"{code:02x}" for code in range(0x80) if chr(code) in " %" or chr(code) not in _NOT_IN_HOST)
_ZONE_ESCAPE: Final = expression(f"%(?!{'|'.join(_ZONE_BYTES)})[0-9a-f]{{2}}", re.IGNORECASE)


class Url(NamedTuple):
    scheme: str = ""
    user: str | None = None  # escaped: `name` or `name:password`
    host: str = ""  # with the port
    path: str = ""
    query: str = ""
    fragment: str = ""


def parse(text: str) -> Url:
    """net/url's Parse. Raises ValueError with Go's message."""
    before, _, fragment = text.partition("#")
    try:
        url = _parse(before)
    except ValueError as error:
        raise ValueError(f"parse {quote(before)}: {error}") from None
    try:
        return url._replace(fragment=_unescape(fragment))
    except ValueError as error:
        raise ValueError(f"parse {quote(text)}: {error}") from None


def parse_request_uri(text: str) -> Url:
    """net/url's ParseRequestURI: a URL or an absolute path; `#` has no meaning. Raises ValueError with Go's message."""
    try:
        return _parse(text, request=True)
    except ValueError as error:
        raise ValueError(f"parse {quote(text)}: {error}") from None


def _parse(text: str, *, request: bool = False) -> Url:
    if _CONTROL.search(text):
        raise ValueError("net/url: invalid control character in URL")
    if request and not text:
        raise ValueError("empty url")
    if text == "*":
        return Url(path="*")
    scheme, rest = "", text
    if match := _SCHEME.match(text):
        if not match[1]:
            raise ValueError("missing protocol scheme")
        scheme, rest = match[1].lower(), text[match.end() :]
    rest, _, query = rest.partition("?")
    if not rest.startswith("/"):
        if scheme:  # opaque, not parsed any further
            return Url(scheme, query=query)
        if request:
            raise ValueError("invalid URI for request")
        if ":" in rest.partition("/")[0]:
            raise ValueError("first path segment in URL cannot contain colon")
    user, host = None, ""
    if rest.startswith("//") and (scheme or not (request or rest.startswith("///"))):
        authority, slash, rest = rest[2:].partition("/")
        user, host = _authority(scheme, authority)
        rest = slash + rest
    return Url(scheme, user, host, _unescape(rest), query)


def _authority(scheme: str, authority: str) -> tuple[str | None, str]:
    userinfo, at, host = authority.rpartition("@")
    host = _host(scheme, host)
    if not at:
        return None, host
    if not _USERINFO.match(userinfo):
        raise ValueError("net/url: invalid userinfo")
    return ":".join(
        percent_encode(_unescape(part), safe="$&+,;=", errors="surrogateescape") for part in userinfo.split(":", 1)
    ), host


def _host(scheme: str, host: str) -> str:
    if "[" in host:
        return _ip_literal(host)
    if ":" in host:
        strict = scheme in ("http", "https")  # for other schemes, several `host:port` may be listed
        port = host[host.index(":") if strict else host.rindex(":") :]
        _check_port(port)
    return _unescape_host(host)


def _ip_literal(host: str) -> str:
    if host.rindex("[") > 0:
        raise ValueError("invalid IP-literal")
    name, bracket, port = host[1:].rpartition("]")
    if not bracket:
        raise ValueError("missing ']' in host")
    _check_port(port)
    address, percent, zone = name.partition("%25")
    address = _unescape_host(address)
    literal = f"{address}%{_unescape_host(zone, _ZONE_ESCAPE)}" if percent else address
    try:
        parsed = ipaddress.ip_address(address if zone or not percent else "")
    except ValueError:
        raise ValueError(f"invalid host: ParseAddr({quote(literal)}): unable to parse IP") from None
    if parsed.version == 4:
        raise ValueError("invalid IP-literal")
    return f"[{literal}]{port}"


def _check_port(port: str) -> None:
    if not _PORT.match(port):
        raise ValueError(f"invalid port {quote(port)} after host")


def _unescape_host(host: str, bad_escape: re.Pattern[str] = _ASCII_ESCAPE) -> str:
    for position, char in enumerate(host):  # the first error is reported
        escape = host[position : position + 3]
        if char == "%" and (_BAD_ESCAPE.match(host, position) or bad_escape.match(host, position)):
            raise ValueError(f"invalid URL escape {quote(escape)}")
        if char in _NOT_IN_HOST:
            raise ValueError(f"invalid character {quote(char)} in host name")
    return decoded(host).decode(errors="surrogateescape")


def has_bad_escape(text: str) -> bool:
    """Whether a `%` is not followed by two hexadecimal digits."""
    return "%" in text and _BAD_ESCAPE.search(text) is not None


def decoded(text: str) -> bytes:
    """The bytes of a text whose escapes are all good: `a%2F` gives `a/`.

    A megabyte of escapes takes a few milliseconds: they become those of Python's strings, whose decoder is written in C.
    """
    data = text.encode(errors="surrogateescape")
    if b"%" not in data:
        return data
    return data.replace(b"\\", b"\\\\").replace(b"%", b"\\x").decode("unicode_escape").encode("latin-1")


def _unescape(text: str) -> str:
    if bad := _BAD_ESCAPE.search(text):
        raise ValueError(f"invalid URL escape {quote(bad[0])}")
    return decoded(text).decode(errors="surrogateescape")
