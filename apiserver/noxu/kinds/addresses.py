"""IP addresses and networks in fields that are validated strictly, and the addresses that endpoints cannot have.

The rules are those of k8s.io/apimachinery pkg/util/validation/ip.go, and ValidateNonSpecialIP in pkg/apis/core/validation
of k8s.io/kubernetes. Fields that are older than strict validation keep the values that a stored object has: see
`checks.address`.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Final

from noxu.api import field
from noxu.api.field import Path
from noxu.go.net import Addr, IpPrefix, is_cidr, is_ipv4, is_ipv6, parse_addr, parse_prefix
from noxu.go.text import quote
from noxu.kinds.checks import Errors

_NOT_AN_ADDRESS: Final = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
_NOT_A_NETWORK: Final = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"


def address_texts(text: str) -> list[str]:
    """The errors of an address that must be strictly valid: without leading zeros, and as Go prints it (IsValidIP)."""
    if not (is_ipv4(text, sloppy=True) or is_ipv6(text, sloppy=True)):
        return [_NOT_AN_ADDRESS]
    addr = parsed(text)
    if addr is None:
        return ["must not have leading 0s"]
    if addr.is_4in6:
        return ["must not be an IPv4-mapped IPv6 address"]
    return [] if str(addr) == text else [f"must be in canonical form ({quote(str(addr))})"]


def network(text: str, path: Path, *, stored: Container[str] = (), strict: bool = False) -> Errors:
    """A network in CIDR notation. `stored` are values that the stored object has; `strict`: as Go prints it, too."""
    if text in stored:
        return
    if not is_cidr(text):
        yield field.invalid(path, text, _NOT_A_NETWORK)
        return
    prefix = parsed_network(text)
    if prefix is None:
        yield field.invalid(path, text, "must not have leading 0s in IP or prefix length")
    elif prefix.addr.is_4in6:
        yield field.invalid(path, text, "must not have an IPv4-mapped IPv6 address")
    elif prefix.masked() != prefix:
        yield field.invalid(path, text, "must not have bits set beyond the prefix length")
    elif strict and str(prefix) != text:
        yield field.invalid(path, text, f"must be in canonical form ({quote(str(prefix))})")


def of_endpoint(text: str, path: Path) -> Errors:
    """Endpoints are neither unspecified, nor loopback, nor link-local."""
    addr = parsed(text)
    if addr is None:
        yield field.invalid(path, text, "must be a valid IP address")
        return
    if addr.number == 0:
        yield field.invalid(path, text, f"may not be unspecified ({text})")
    if addr.is_loopback:
        yield field.invalid(path, text, "may not be in the loopback range (127.0.0.0/8, ::1/128)")
    if addr.is_link_local_unicast:
        yield field.invalid(path, text, "may not be in the link-local range (169.254.0.0/16, fe80::/10)")
    if _is_link_local_multicast(addr):
        yield field.invalid(path, text, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)")


def _is_link_local_multicast(addr: Addr) -> bool:
    if addr.bits == 32:
        return addr.number >> 8 == 0xE00000
    return addr.number >> 112 & 0xFF0F == 0xFF02


def parsed(text: str) -> Addr | None:
    try:
        return parse_addr(text)
    except ValueError:
        return None


def parsed_network(text: str) -> IpPrefix | None:
    try:
        return parse_prefix(text)
    except ValueError:
        return None
