"""Kubernetes' IP addresses and CIDRs, as Go's net/netip reads and prints them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from apiserver.api.gotext import quote
from apiserver.cel.errors import CelError, no_such_overload
from apiserver.cel.library.declarations import Overload, overload
from apiserver.cel.types import CIDR, IP
from apiserver.cel.values import Opaque, Value

_HEX: Final = re.compile("[0-9a-fA-F]*")


class Address(Opaque):
    """`bits` is 32 or 128."""

    __slots__ = ("bits", "number")
    type = IP

    def __init__(self, number: int, bits: int) -> None:
        self.number = number
        self.bits = bits

    def equals(self, other: Value) -> bool:
        if not isinstance(other, Address):
            raise no_such_overload()
        return self.number == other.number and self.bits == other.bits

    @property
    def size(self) -> int:
        return self.bits // 8

    def __str__(self) -> str:
        if self.bits == 32:
            return ".".join(str(self.number >> shift & 255) for shift in (24, 16, 8, 0))
        return _shortest([self.number >> shift & 0xFFFF for shift in range(112, -16, -16)])


class Network(Opaque):
    __slots__ = ("address", "prefix")
    type = CIDR

    def __init__(self, address: Address, prefix: int) -> None:
        self.address = address
        self.prefix = prefix

    def equals(self, other: Value) -> bool:
        if not isinstance(other, Network):
            raise no_such_overload()
        return self.address.equals(other.address) and self.prefix == other.prefix

    @property
    def size(self) -> int:
        return -(-self.prefix // 8)

    def masked(self) -> Network:
        free = self.address.bits - self.prefix
        return Network(Address(self.address.number >> free << free, self.address.bits), self.prefix)

    def contains(self, address: Address) -> bool:
        free = self.address.bits - self.prefix
        return self.address.bits == address.bits and self.address.number >> free == address.number >> free

    def __str__(self) -> str:
        return f"{self.address}/{self.prefix}"


def _shortest(groups: list[int]) -> str:
    """RFC 5952: the first longest run of at least two zeros becomes `::`."""
    best, start = (0, 0), 0
    while start < 8:
        end = start
        while end < 8 and groups[end] == 0:
            end += 1
        if end - start >= 2 and end - start > best[1] - best[0]:
            best = (start, end)
        start = end + 1
    texts = [f"{group:x}" for group in groups]
    if best == (0, 0):
        return ":".join(texts)
    return f"{':'.join(texts[: best[0]])}::{':'.join(texts[best[1] :])}"


class _Bad(ValueError):
    """What net/netip says; `at` is the rest of the text where it went wrong."""

    def __init__(self, message: str, at: str = "") -> None:
        super().__init__(message)
        self.at = at


def _parse(text: str) -> tuple[Address, str]:
    """An address and its zone. Raises ValueError with Go's message."""
    first = next((char for char in text if char in ".:%"), "")
    try:
        return _READERS[first](text)
    except _Bad as bad:
        where = f" (at {quote(bad.at)})" if bad.at else ""
        raise ValueError(f"ParseAddr({quote(text)}): {bad}{where}") from None


def _ipv4(text: str) -> int:
    fields: list[int] = []
    digits = ""
    for position, char in enumerate(text):
        if char in "0123456789":
            if digits == "0":
                raise _Bad("IPv4 field has octet with leading zero")
            digits += char
            if int(digits) > 255:
                raise _Bad("IPv4 field has value >255")
        elif char == ".":
            if position in (0, len(text) - 1) or text[position - 1] == ".":
                raise _Bad("IPv4 field must have at least one digit", text[position:])
            if len(fields) == 3:
                raise _Bad("IPv4 address too long")
            fields.append(int(digits))
            digits = ""
        else:
            raise _Bad("unexpected character", text[position:])
    if len(fields) < 3:
        raise _Bad("IPv4 address too short")
    return int.from_bytes([*fields, int(digits or "0")])


def _ipv6(text: str) -> tuple[Address, str]:
    rest, percent, zone = text.partition("%")
    if percent and not zone:
        raise _Bad("zone must be a non-empty string")
    ellipsis = -1
    out = bytearray()
    if rest.startswith("::"):
        ellipsis, rest = 0, rest[2:]
        if not rest:
            return Address(0, 128), zone
    while len(out) < 16:
        digits = _HEX.match(rest)[0]  # type: ignore[index]
        if len(digits) > 4:
            raise _Bad("each group must have 4 or less digits", rest)
        if not digits:
            raise _Bad("each colon-separated field must have at least one digit", rest)
        if rest.startswith(".", len(digits)):
            if ellipsis < 0 and len(out) != 12:
                raise _Bad("embedded IPv4 address must replace the final 2 fields of the address", rest)
            if len(out) > 12:
                raise _Bad("too many hex fields to fit an embedded IPv4 at the end of the address", rest)
            out += _ipv4(rest).to_bytes(4)
            rest = ""
            break
        out += int(digits, 16).to_bytes(2)
        rest = rest[len(digits) :]
        if not rest:
            break
        if rest[0] != ":":
            raise _Bad("unexpected character, want colon", rest)
        if rest == ":":
            raise _Bad("colon must be followed by more characters", rest)
        rest = rest[1:]
        if rest[0] == ":":
            if ellipsis >= 0:
                raise _Bad("multiple :: in address", rest)
            ellipsis, rest = len(out), rest[1:]
            if not rest:
                break
    if rest:
        raise _Bad("trailing garbage after address", rest)
    if len(out) < 16:
        if ellipsis < 0:
            raise _Bad("address string too short")
        out[ellipsis:ellipsis] = bytes(16 - len(out))
    elif ellipsis >= 0:
        raise _Bad("the :: must expand to at least one field of zeros")
    return Address(int.from_bytes(out), 128), zone


def _no_address(text: str) -> tuple[Address, str]:
    raise _Bad("missing IPv6 address" if "%" in text else "unable to parse IP")


_READERS: Final[dict[str, Callable[[str], tuple[Address, str]]]] = {  # by the first of these characters
    ".": lambda text: (Address(_ipv4(text), 32), ""),
    ":": _ipv6,
    "%": _no_address,
    "": _no_address,
}


def _is_mapped(address: Address) -> bool:
    return address.bits == 128 and address.number >> 32 == 0xFFFF


def read_address(text: str) -> Address:
    try:
        address, zone = _parse(text)
    except ValueError as error:
        raise CelError(f"IP Address {quote(text)} parse error during conversion from string: {error}") from None
    if zone:
        raise CelError(f"IP address {quote(text)} with zone value is not allowed")
    if _is_mapped(address):
        raise CelError(f"IPv4-mapped IPv6 address {quote(text)} is not allowed")
    return address


def read_network(text: str) -> Network:
    told = "network address parse error during conversion from string: "
    try:
        network = _parse_network(text)
    except ValueError as error:
        raise CelError(f"{told}{told}netip.ParsePrefix({quote(text)}): {error}") from None
    if _is_mapped(network.address):
        raise CelError(f"{told}IPv4-mapped IPv6 address {quote(text)} is not allowed")
    return network


def _parse_network(text: str) -> Network:
    before, slash, after = text.rpartition("/")
    if not slash:
        raise ValueError("no '/'")
    address, zone = _parse(before)
    if zone:
        raise ValueError("IPv6 zones cannot be present in a prefix")
    if not re.fullmatch(r"[0-9]|[1-9][0-9]{1,18}", after):
        raise ValueError(f"bad bits after slash: {quote(after)}")
    if int(after) > address.bits:
        raise ValueError("prefix length out of range")
    return Network(address, int(after))


def is_address(text: str) -> bool:
    return _succeeds(read_address, text)


def is_network(text: str) -> bool:
    return _succeeds(read_network, text)


def _succeeds(read: object, text: str) -> bool:
    try:
        read(text)  # type: ignore[operator]
    except CelError:
        return False
    return True


def is_loopback(address: Address) -> bool:
    return address.number >> 24 == 127 if address.bits == 32 else address.number == 1


def is_link_local_unicast(address: Address) -> bool:
    if address.bits == 32:
        return address.number >> 16 == 169 << 8 | 254
    return address.number >> 112 & 0xFFC0 == 0xFE80


def is_link_local_multicast(address: Address) -> bool:
    if address.bits == 32:
        return address.number >> 8 == 224 << 16
    return address.number >> 112 & 0xFF0F == 0xFF02


def _is_multicast(address: Address) -> bool:
    return address.number >> 28 == 14 if address.bits == 32 else address.number >> 120 == 0xFF


def is_global_unicast(address: Address) -> bool:
    """Private addresses too."""
    if address.number == 0 or (address.bits == 32 and address.number == 2**32 - 1):
        return False
    return not (is_loopback(address) or _is_multicast(address) or is_link_local_unicast(address))


def contains_text(network: Network, text: str) -> bool:
    try:
        return network.contains(read_address(text))
    except CelError:
        raise no_such_overload() from None


def contains_network(network: Network, other: Network) -> bool:
    shorter = Network(network.address, min(network.prefix, other.prefix))
    return shorter.contains(other.address) and network.prefix <= other.prefix


OVERLOADS: Final[list[tuple[str, Overload]]] = [
    overload("string_to_ip", "ip(string) -> ip", read_address),
    overload("ip_family", "ip.family() -> int", lambda address: 4 if address.bits == 32 else 6),
    overload("ip_is_canonical", "ip::isCanonical(string) -> bool", lambda text: str(read_address(text)) == text),
    overload("ip_is_unspecified", "ip.isUnspecified() -> bool", lambda address: address.number == 0),
    overload("ip_is_loopback", "ip.isLoopback() -> bool", is_loopback),
    overload("ip_is_link_local_multicast", "ip.isLinkLocalMulticast() -> bool", is_link_local_multicast),
    overload("ip_is_link_local_unicast", "ip.isLinkLocalUnicast() -> bool", is_link_local_unicast),
    overload("ip_is_global_unicast", "ip.isGlobalUnicast() -> bool", is_global_unicast),
    overload("is_ip", "isIP(string) -> bool", is_address),
    overload("ip_to_string", "string(ip) -> string", str),
    overload("string_to_cidr", "cidr(string) -> cidr", read_network),
    overload("cidr_contains_ip_string", "cidr.containsIP(string) -> bool", contains_text),
    overload("cidr_contains_ip_ip", "cidr.containsIP(ip) -> bool", Network.contains),
    overload(
        "cidr_contains_cidr_string",
        "cidr.containsCIDR(string) -> bool",
        lambda network, text: contains_network(network, read_network(text)),
    ),
    overload("cidr_contains_cidr", "cidr.containsCIDR(cidr) -> bool", contains_network),
    overload("cidr_ip", "cidr.ip() -> ip", lambda network: network.address),
    overload("cidr_prefix_length", "cidr.prefixLength() -> int", lambda network: network.prefix),
    overload("cidr_masked", "cidr.masked() -> cidr", Network.masked),
    overload("is_cidr", "isCIDR(string) -> bool", is_network),
    overload("cidr_to_string", "string(cidr) -> string", str),
]
