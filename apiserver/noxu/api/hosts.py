"""Host names in URLs and Host headers: which ones certainly mean this machine.

Plain HTTP is allowed to loopback only, and a request from a web page may try to pass for one from this machine (DNS
rebinding). So the answer depends on the text alone, never on a name server, and anything malformed is not loopback.
"""

from __future__ import annotations

import ipaddress
from typing import Final

from noxu.expressions import expression

_AUTHORITY: Final = expression(r"(?:\[([^\[\]]*:[^\[\]]*)\]|([^:\[\]]*))(?::([0-9]*))?")
_MAX_NAME: Final = 253  # characters of a DNS name
_PORTS: Final = {"http": "80", "https": "443"}
_NAME: Final = expression(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*")


def split_host(authority: str) -> str:
    """The host of `host`, `host:port`, `[address]` or `[address]:port`, without brackets and in lower case.

    Anything else is returned whole, in lower case: a bare IPv6 address, and malformed text such as `[::1]evil.com` or
    `[localhost]`, which therefore never equals a known host.
    """
    found = _AUTHORITY.fullmatch(authority)
    if found is None:
        return authority.lower()
    address, name, _ = found.groups()
    return (name if address is None else address).lower()


def is_origin_of(origin: str, scheme: str, authority: str) -> bool:
    """Whether a header Origin names the scheme, the host and the port of an authority (RFC 6454, 4).

    A port that is not given is that of the scheme: `http://localhost` is the origin of `localhost:80`. The opaque origin `null`,
    several origins and malformed text are never equal to one.
    """
    given, separator, place = origin.partition("://")
    return (
        bool(separator) and given.lower() == scheme and _place(scheme, place) == _place(scheme, authority) != ("", "")
    )


def _place(scheme: str, authority: str) -> tuple[str, str]:
    """The host and the port of an authority, empty if it has no host or is malformed."""
    found = _AUTHORITY.fullmatch(authority)
    host = split_host(authority) if found is not None else ""
    return (host, (found[3] or "").lstrip("0") or _PORTS[scheme]) if found is not None and host else ("", "")


def is_loopback(authority: str) -> bool:
    """Whether a host, with or without port, is this machine.

    These are `localhost`, names below it (RFC 6761) and literal addresses in 127.0.0.0/8, `::1` and the IPv4-mapped
    form of the former, `::ffff:127.0.0.1`. Other spellings of an address (`127.1`, `::1%eth0`) do not count.
    """
    host = split_host(authority)
    if len(host) > _MAX_NAME:
        return False
    if host == "localhost" or (host.endswith(".localhost") and _NAME.fullmatch(host) is not None):
        return True
    if "%" in host:  # an IPv6 zone
        return False
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback
