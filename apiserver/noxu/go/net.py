"""Network addresses as Go's net package reads them, and as Kubernetes reads those of stored objects.

The formats `ipv4`, `ipv6`, `cidr` and `mac` mean "Go's parser accepts it". Go has two parsers of IP addresses that matter
here:

- net.ParseIP, today. It accepts what netip.ParseAddr accepts, except zones (see `noxu.go.netip`).
- net.ParseIP and net.ParseCIDR before Go 1.17, which allow leading zeros in octets and groups, and in the length of a
  prefix. Kubernetes kept them (k8s.io/utils/net, "sloppy") wherever stored objects may contain such addresses.

    010.0.0.1   strict: refused, because old parsers read 010 as octal    sloppy: 10.0.0.1
"""

from __future__ import annotations

from typing import Final

from noxu.expressions import expression
from noxu.go.netip import Addr, ipv4_octets, ipv6_groups

_SLOPPY_OCTET: Final = expression(r"0*[0-9]{1,3}\Z")
_SLOPPY_GROUP: Final = expression(r"0*[0-9a-fA-F]{1,4}\Z")


def is_ipv4(text: str, *, sloppy: bool = False) -> bool:
    """Four decimal octets."""
    return (ipv4_octets(text, _SLOPPY_OCTET) if sloppy else ipv4_octets(text)) is not None


def is_ipv6(text: str, *, sloppy: bool = False) -> bool:
    """Eight groups of hex digits, one run of zeros as `::`, the last two groups possibly as an IPv4 address; no zone."""
    return (ipv6_groups(text, _SLOPPY_OCTET, _SLOPPY_GROUP) if sloppy else ipv6_groups(text)) is not None


def parse_sloppy(text: str) -> Addr | None:
    """The address, without zone and with leading zeros allowed; an IPv4-mapped one is IPv4, as net.IP prints it."""
    octets = ipv4_octets(text, _SLOPPY_OCTET)
    if octets is not None:
        return Addr(int.from_bytes(octets), 32)
    groups = ipv6_groups(text, _SLOPPY_OCTET, _SLOPPY_GROUP)
    if groups is None:
        return None
    number = 0
    for group in groups:
        number = number << 16 | int(group, 16)
    address = Addr(number, 128)
    return Addr(number & 0xFFFFFFFF, 32) if address.is_4in6 else address


def is_cidr(text: str) -> bool:
    """A sloppy address and the length of its prefix."""
    address, slash, length = text.partition("/")
    bits = 32 if is_ipv4(address, sloppy=True) else 128 if is_ipv6(address, sloppy=True) else -1
    return bool(slash) and _SLOPPY_OCTET.match(length) is not None and int(length[-3:]) <= bits


_MACS: Final = expression(
    "|".join(
        rf"{byte}(?:{separator}{byte}){{{count - 1}}}"
        for bytes_ in (6, 8, 20)
        for byte, separator, count in (
            ("[0-9a-fA-F]{2}", ":", bytes_),
            ("[0-9a-fA-F]{2}", "-", bytes_),
            ("[0-9a-fA-F]{2}", "", bytes_),
            ("[0-9a-fA-F]{4}", r"\.", bytes_ // 2),
        )
    )
)


def is_mac(text: str) -> bool:
    """An IEEE MAC-48, EUI-48, EUI-64 or 20-octet InfiniBand address: colons, hyphens, dots or nothing between."""
    return _MACS.fullmatch(text) is not None
