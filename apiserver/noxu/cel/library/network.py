"""Kubernetes' IP addresses and CIDRs in expressions, as Go's net/netip reads and prints them.

Addresses with zones and IPv4-mapped IPv6 addresses are refused, as upstream does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from noxu.cel.errors import CelError, no_such_overload
from noxu.cel.library.declarations import Overload, overload
from noxu.cel.types.types import CIDR, IP
from noxu.cel.values.values import Opaque, Value
from noxu.go import net
from noxu.go.text import quote

_CIDR_ERROR: Final = "network address parse error during conversion from string: "


class Address(Opaque):
    __slots__ = ("addr",)
    type = IP

    def __init__(self, addr: net.Addr) -> None:
        self.addr = addr

    def equals(self, other: Value) -> bool:
        if not isinstance(other, Address):
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


def parse_address(text: str) -> Address:
    try:
        addr = net.parse_addr(text)
    except ValueError as error:
        raise CelError(f"IP Address {quote(text)} parse error during conversion from string: {error}") from None
    if addr.zone:
        raise CelError(f"IP address {quote(text)} with zone value is not allowed")
    if addr.is_4in6:
        raise CelError(f"IPv4-mapped IPv6 address {quote(text)} is not allowed")
    return Address(addr)


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


def contains_address(network: Network, address: Address) -> bool:
    return network.prefix.contains(address.addr)


def contains_address_text(network: Network, text: str) -> bool:
    try:
        return contains_address(network, parse_address(text))
    except CelError:
        raise no_such_overload() from None


def contains_network(network: Network, other: Network) -> bool:
    return network.prefix.length <= other.prefix.length and network.prefix.contains(other.prefix.addr)


def _property(name: str) -> Callable[[Address], bool]:
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
    overload("cidr_ip", "cidr.ip() -> ip", lambda network: Address(network.prefix.addr)),
    overload("cidr_prefix_length", "cidr.prefixLength() -> int", lambda network: network.prefix.length),
    overload("cidr_masked", "cidr.masked() -> cidr", lambda network: Network(network.prefix.masked())),
    overload("is_cidr", "isCIDR(string) -> bool", is_network),
    overload("cidr_to_string", "string(cidr) -> string", str),
]
