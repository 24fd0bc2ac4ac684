"""Network addresses, read as Go's net and net/netip packages do.

The formats `ipv4`, `ipv6`, `cidr` and `mac` mean "Go's parser takes it". Two readings of IP addresses exist:
the strict one of Go today, and the one of Go before 1.17 that tolerates leading zeros. Kubernetes kept the latter
(k8s.io/utils/net, "sloppy") wherever stored objects might contain such addresses.
"""

from __future__ import annotations

import re
from typing import Final

_OCTET: Final = re.compile(r"(?:0|[1-9][0-9]{0,2})\Z")
_OCTET_SLOPPY: Final = re.compile(r"0*[0-9]{1,3}\Z")
_GROUP: Final = re.compile(r"[0-9a-fA-F]{1,4}\Z")
_GROUP_SLOPPY: Final = re.compile(r"0*[0-9a-fA-F]{1,4}\Z")


def is_ipv4(text: str, *, sloppy: bool = False) -> bool:
    """Four decimal octets."""
    octets = text.split(".")
    octet = _OCTET_SLOPPY if sloppy else _OCTET
    return len(octets) == 4 and all(octet.match(one) and int(one[-3:]) <= 255 for one in octets)


def is_ipv6(text: str, *, sloppy: bool = False) -> bool:
    """Eight groups of hex digits, one run of zeros as `::`, the last two groups possibly as an IPv4 address; no zone."""
    head, ellipsis, tail = text.partition("::")
    groups = head.split(":") if head else []
    groups += tail.split(":") if tail else []
    missing = 8 - len(groups)
    if groups and "." in groups[-1] and (tail or not ellipsis):
        if not is_ipv4(groups.pop(), sloppy=sloppy):
            return False
        missing -= 1
    group = _GROUP_SLOPPY if sloppy else _GROUP
    return (missing >= 1 if ellipsis else missing == 0) and all(map(group.match, groups))


def is_cidr(text: str) -> bool:
    """An address, sloppy, and the length of its prefix."""
    address, slash, length = text.partition("/")
    bits = 32 if is_ipv4(address, sloppy=True) else 128 if is_ipv6(address, sloppy=True) else -1
    return bool(slash) and _OCTET_SLOPPY.match(length) is not None and int(length[-3:]) <= bits


_MACS: Final = re.compile(
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
