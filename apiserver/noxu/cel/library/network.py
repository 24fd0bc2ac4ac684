"""Kubernetes' URLs, IP addresses and CIDRs in expressions, as Go's net/url and net/netip read and print them.

Addresses with zones and IPv4-mapped IPv6 addresses are refused, as upstream does.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final
from urllib.parse import quote as percent_encode
from urllib.parse import unquote_plus

from noxu.cel.errors import CelError, no_such_overload
from noxu.cel.library.declarations import Overload, overload
from noxu.cel.memory import ENTRY, LIST, MAP, TEXT, allocate, allocate_text
from noxu.cel.types.types import CIDR, IP, URL
from noxu.cel.values.values import MapValue, Opaque, Value
from noxu.go import net
from noxu.go import url as go_url
from noxu.go.text import quote

_PORT: Final = re.compile(r":[0-9]*\Z")
_RAW_PATH: Final = re.compile(r"(?:[a-zA-Z][a-zA-Z0-9+.-]*:)?(?://[^/?#]*)?([^?#]*)")
_ENCODED: Final = re.compile(r"[A-Za-z0-9\-_.~$&+,/:;=@!'()*\[\]%]*")
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9a-fA-F]{2})")
_MAX_PARAMETERS: Final = 10_000  # net/url ignores a query with more


class UrlValue(Opaque):
    __slots__ = ("parts", "text")
    type = URL

    def __init__(self, text: str, parts: go_url.Url) -> None:
        self.text = text
        self.parts = parts

    def equals(self, other: Value) -> bool:
        if not isinstance(other, UrlValue):
            raise no_such_overload()
        left, right = self.parts, other.parts
        return left._replace(path="") == right._replace(path="") and escaped_path(self) == escaped_path(other)

    def __str__(self) -> str:
        return self.text


def parse(text: str) -> UrlValue:
    allocate_text(2 * len(text), text)
    try:
        go_url.parse_request_uri(text)
        return UrlValue(text, go_url.parse(text))
    except ValueError as error:
        raise CelError(f"URL parse error during conversion from string: {error}") from None


def is_url(text: str) -> bool:
    try:
        go_url.parse_request_uri(text)
    except ValueError:
        return False
    return True


def hostname(url: UrlValue) -> str:
    allocate_text(2 * len(url.parts.host), url.parts.host)
    host = _PORT.sub("", url.parts.host)
    return host[1:-1] if host.startswith("[") and host.endswith("]") else host


def port(url: UrlValue) -> str:
    allocate_text(len(url.parts.host), url.parts.host)
    match = _PORT.search(url.parts.host)
    return match[0][1:] if match else ""


def escaped_path(url: UrlValue) -> str:
    """URL.EscapedPath: the path as it was written, if it was escaped correctly; else the path with the escapes of EscapedPath."""
    if url.parts.path == "*" or not url.parts.path:
        return url.parts.path
    allocate_text(3 * len(url.text), url.text)
    written = _RAW_PATH.match(url.text)[1]  # type: ignore[index]
    if _ENCODED.fullmatch(written):
        return str(written)
    return percent_encode(url.parts.path, safe="/$&+,:;=@-_.~", errors="surrogateescape")


def query(url: UrlValue) -> MapValue:
    """URL.Query: the values of each parameter. Parameters with a wrong escape or a semicolon are ignored."""
    text = url.parts.query
    allocate_text(len(text), text)
    allocate(MAP + (ENTRY + LIST + 2 * TEXT) * (text.count("&") + 1))
    parameters: dict[str, list[Value]] = {}
    if text.count("&") < _MAX_PARAMETERS:
        for pair in text.split("&"):
            name, _, value = pair.partition("=")
            if pair and ";" not in pair and not _BAD_ESCAPE.search(pair):
                parameters.setdefault(unquote_plus(name), []).append(unquote_plus(value))
    return MapValue(parameters.items())


URLS: Final[list[tuple[str, Overload]]] = [
    overload("string_to_url", "url(string) -> url", parse),
    overload("url_get_scheme", "url.getScheme() -> string", lambda url: url.parts.scheme),
    overload("url_get_host", "url.getHost() -> string", lambda url: url.parts.host),
    overload("url_get_hostname", "url.getHostname() -> string", hostname),
    overload("url_get_port", "url.getPort() -> string", port),
    overload("url_get_escaped_path", "url.getEscapedPath() -> string", escaped_path),
    overload("url_get_query", "url.getQuery() -> map(string, list(string))", query),
    overload("is_url_string", "isURL(string) -> bool", is_url),
]


_CIDR_ERROR: Final = "network address parse error during conversion from string: "


class AddressValue(Opaque):
    __slots__ = ("addr",)
    type = IP

    def __init__(self, addr: net.Addr) -> None:
        self.addr = addr

    def equals(self, other: Value) -> bool:
        if not isinstance(other, AddressValue):
            raise no_such_overload()
        return self.addr == other.addr

    @property
    def size(self) -> int:
        """Bytes, for costs."""
        return self.addr.bits // 8

    def __str__(self) -> str:
        return str(self.addr)


class Network(Opaque):
    __slots__ = ("prefix",)
    type = CIDR

    def __init__(self, prefix: net.IpPrefix) -> None:
        self.prefix = prefix

    def equals(self, other: Value) -> bool:
        if not isinstance(other, Network):
            raise no_such_overload()
        return self.prefix == other.prefix

    @property
    def size(self) -> int:
        """Bytes that the prefix covers, for costs."""
        return -(-self.prefix.length // 8)

    def __str__(self) -> str:
        return str(self.prefix)


def parse_address(text: str) -> AddressValue:
    try:
        addr = net.parse_addr(text)
    except ValueError as error:
        raise CelError(f"IP Address {quote(text)} parse error during conversion from string: {error}") from None
    if addr.zone:
        raise CelError(f"IP address {quote(text)} with zone value is not allowed")
    if addr.is_4in6:
        raise CelError(f"IPv4-mapped IPv6 address {quote(text)} is not allowed")
    return AddressValue(addr)


def parse_network(text: str) -> Network:
    try:
        prefix = net.parse_prefix(text)
    except ValueError as error:
        raise CelError(f"{_CIDR_ERROR}{_CIDR_ERROR}{error}") from None  # upstream wraps the error twice
    if prefix.addr.is_4in6:
        raise CelError(f"{_CIDR_ERROR}IPv4-mapped IPv6 address {quote(text)} is not allowed")
    return Network(prefix)


def is_address(text: str) -> bool:
    return _succeeds(parse_address, text)


def is_network(text: str) -> bool:
    return _succeeds(parse_network, text)


def _succeeds(parse: Callable[[str], Value], text: str) -> bool:
    try:
        parse(text)
    except CelError:
        return False
    return True


def contains_address(network: Network, address: AddressValue) -> bool:
    return network.prefix.contains(address.addr)


def contains_address_text(network: Network, text: str) -> bool:
    try:
        return contains_address(network, parse_address(text))
    except CelError:
        raise no_such_overload() from None


def contains_network(network: Network, other: Network) -> bool:
    return network.prefix.length <= other.prefix.length and network.prefix.contains(other.prefix.addr)


def _property(name: str) -> Callable[[AddressValue], bool]:
    return lambda address: bool(getattr(address.addr, name))


OVERLOADS: Final[list[tuple[str, Overload]]] = [
    overload("string_to_ip", "ip(string) -> ip", parse_address),
    overload("ip_family", "ip.family() -> int", lambda address: 4 if address.addr.bits == 32 else 6),
    overload("ip_is_canonical", "ip::isCanonical(string) -> bool", lambda text: str(parse_address(text)) == text),
    overload("ip_is_unspecified", "ip.isUnspecified() -> bool", _property("is_unspecified")),
    overload("ip_is_loopback", "ip.isLoopback() -> bool", _property("is_loopback")),
    overload("ip_is_link_local_multicast", "ip.isLinkLocalMulticast() -> bool", _property("is_link_local_multicast")),
    overload("ip_is_link_local_unicast", "ip.isLinkLocalUnicast() -> bool", _property("is_link_local_unicast")),
    overload("ip_is_global_unicast", "ip.isGlobalUnicast() -> bool", _property("is_global_unicast")),
    overload("is_ip", "isIP(string) -> bool", is_address),
    overload("ip_to_string", "string(ip) -> string", str),
    overload("string_to_cidr", "cidr(string) -> cidr", parse_network),
    overload("cidr_contains_ip_string", "cidr.containsIP(string) -> bool", contains_address_text),
    overload("cidr_contains_ip_ip", "cidr.containsIP(ip) -> bool", contains_address),
    overload(
        "cidr_contains_cidr_string",
        "cidr.containsCIDR(string) -> bool",
        lambda network, text: contains_network(network, parse_network(text)),
    ),
    overload("cidr_contains_cidr", "cidr.containsCIDR(cidr) -> bool", contains_network),
    overload("cidr_ip", "cidr.ip() -> ip", lambda network: AddressValue(network.prefix.addr)),
    overload("cidr_prefix_length", "cidr.prefixLength() -> int", lambda network: network.prefix.length),
    overload("cidr_masked", "cidr.masked() -> cidr", lambda network: Network(network.prefix.masked())),
    overload("is_cidr", "isCIDR(string) -> bool", is_network),
    overload("cidr_to_string", "string(cidr) -> string", str),
]
