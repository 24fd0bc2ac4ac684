"""IP addresses and prefixes as Go's net/netip parses and prints them, error messages included, and the older parsers of net.

    2001:DB8:0:0::1   →   2001:db8::1         fe80::1%eth0   an address with the zone eth0
    10.1.2.3/8        →   10.1.2.3/8, which is 10.0.0.0/8 when masked

`ipv4_octets` and `ipv6_groups` hold the syntax of addresses. Only text that they refuse is scanned again, character by
character as Go does, to find the message.

The formats `ipv4`, `ipv6`, `cidr` and `mac` mean "Go's parser accepts it". Go has two more parsers of IP addresses that
matter here:

- net.ParseIP, today. It accepts what netip.ParseAddr accepts, except zones.
- net.ParseIP and net.ParseCIDR before Go 1.17, which allow leading zeros in octets and groups, and in the length of a
  prefix. Kubernetes kept them (k8s.io/utils/net, "sloppy") wherever stored objects may contain such addresses.

    010.0.0.1   strict: refused, because old parsers read 010 as octal    sloppy: 10.0.0.1
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from noxu.expressions import expression
from noxu.go.text import quote

_OCTET: Final = expression(r"(?:0|[1-9][0-9]{0,2})\Z")
_GROUP: Final = expression(r"[0-9a-fA-F]{1,4}\Z")
_HEX: Final = expression("[0-9a-fA-F]*")
_PREFIX_LENGTH: Final = expression(r"[0-9]|[1-9][0-9]{1,18}")


class Addr(NamedTuple):
    """An address: `number` of `bits` bits (32 or 128), and the `zone` of an IPv6 address."""

    number: int
    bits: int
    zone: str = ""

    @property
    def is_4in6(self) -> bool:
        """Whether it is an IPv4-mapped IPv6 address, ::ffff:1.2.3.4."""
        return self.bits == 128 and self.number >> 32 == 0xFFFF

    @property
    def is_unspecified(self) -> bool:
        return self.number == 0 and not self.zone

    @property
    def is_loopback(self) -> bool:
        return self.number >> 24 == 127 if self.bits == 32 else self.number == 1

    @property
    def is_multicast(self) -> bool:
        return self.number >> 28 == 14 if self.bits == 32 else self.number >> 120 == 0xFF

    @property
    def is_link_local_unicast(self) -> bool:
        """169.254.0.0/16, fe80::/10."""
        return self.number >> 16 == 0xA9FE if self.bits == 32 else self.number >> 118 == 0xFE80 >> 6

    @property
    def is_link_local_multicast(self) -> bool:
        """224.0.0.0/24, ff02::/16 with any flags."""
        return self.number >> 8 == 0xE00000 if self.bits == 32 else self.number >> 112 & 0xFF0F == 0xFF02

    @property
    def is_global_unicast(self) -> bool:
        """Whether it is a unicast address that is not loopback or link-local. Private addresses are global, too."""
        if self.number == 0 or (self.bits == 32 and self.number == 0xFFFFFFFF):
            return False
        return not (self.is_loopback or self.is_multicast or self.is_link_local_unicast)

    def __str__(self) -> str:
        if self.bits == 32:
            return _dotted(self.number)
        if self.is_4in6:
            text = f"::ffff:{_dotted(self.number & 0xFFFFFFFF)}"
        else:
            text = _colon_separated([self.number >> shift & 0xFFFF for shift in range(112, -16, -16)])
        return f"{text}%{self.zone}" if self.zone else text


class IpPrefix(NamedTuple):
    """A network: an address and the number of its leading bits that count."""

    addr: Addr
    length: int

    def masked(self) -> IpPrefix:
        """With all other bits of the address zero."""
        free = self.addr.bits - self.length
        return IpPrefix(Addr(self.addr.number >> free << free, self.addr.bits), self.length)

    def contains(self, addr: Addr) -> bool:
        """Never an address of the other family, or one with a zone."""
        free = self.addr.bits - self.length
        return self.addr.bits == addr.bits and not addr.zone and self.addr.number >> free == addr.number >> free

    def __str__(self) -> str:
        return f"{self.addr}/{self.length}"


def _dotted(number: int) -> str:
    return ".".join(str(number >> shift & 255) for shift in (24, 16, 8, 0))


def _colon_separated(groups: list[int]) -> str:
    """RFC 5952: the first of the longest runs of at least two zero groups becomes `::`.

    [0x2001, 0, 0, 1, 0, 0, 0, 1]   →   2001:0:0:1::1
    """
    longest, start = (0, 0), 0
    while start < 8:
        end = start
        while end < 8 and groups[end] == 0:
            end += 1
        if end - start >= 2 and end - start > longest[1] - longest[0]:
            longest = (start, end)
        start = end + 1
    texts = [f"{group:x}" for group in groups]
    if longest == (0, 0):
        return ":".join(texts)
    return f"{':'.join(texts[: longest[0]])}::{':'.join(texts[longest[1] :])}"


def ipv4_octets(text: str, octet: re.Pattern[str] = _OCTET) -> list[int] | None:
    """The four octets of `1.2.3.4`; None if the text is not an IPv4 address. `octet` is the pattern of an octet."""
    octets = text.split(".")
    if len(octets) != 4 or not all(map(octet.match, octets)):
        return None
    numbers = [int(digits[-3:]) for digits in octets]  # a pattern may allow any number of leading zeros
    return numbers if max(numbers) <= 255 else None


def ipv6_groups(text: str, octet: re.Pattern[str] = _OCTET, group: re.Pattern[str] = _GROUP) -> list[str] | None:
    """The eight groups of an IPv6 address without a zone, in hex; None if the text is not one.

        2001:db8::1      →   head 2001, db8 and tail 1; "::" stands for the five groups that are missing
        ::ffff:1.2.3.4   →   the last two groups are an IPv4 address: 0, 0, 0, 0, 0, ffff, 102, 304

    `octet` and `group` are the patterns of their parts.
    """
    head, ellipsis, tail = text.partition("::")
    groups = head.split(":") if head else []
    tail_start = len(groups)
    groups += tail.split(":") if tail else []
    embedded: list[str] = []
    if groups and "." in groups[-1] and (tail or not ellipsis):  # not before a final "::"
        octets = ipv4_octets(groups.pop(), octet)
        if octets is None:
            return None
        embedded = [f"{octets[0] << 8 | octets[1]:x}", f"{octets[2] << 8 | octets[3]:x}"]
    missing = 8 - len(groups) - len(embedded)
    if (missing < 1 if ellipsis else missing != 0) or not all(map(group.match, groups)):
        return None
    if missing:
        groups[tail_start:tail_start] = ["0"] * missing
    return groups + embedded


def parse_addr(text: str) -> Addr:
    """netip.ParseAddr. Raises ValueError with Go's message."""
    octets = ipv4_octets(text)
    if octets is not None:
        return Addr(int.from_bytes(octets), 32)
    address, percent, zone = text.partition("%")
    groups = ipv6_groups(address)
    if groups is None or (percent and not zone):
        error = _addr_error(text)
        where = f" (at {quote(error.rest)})" if error.rest else ""
        raise ValueError(f"ParseAddr({quote(text)}): {error}{where}")
    number = 0
    for group in groups:
        number = number << 16 | int(group, 16)
    return Addr(number, 128, zone)


def parse_prefix(text: str) -> IpPrefix:
    """netip.ParsePrefix: `10.0.0.0/8`. Raises ValueError with Go's message."""
    try:
        return _parse_prefix(text)
    except ValueError as error:
        raise ValueError(f"netip.ParsePrefix({quote(text)}): {error}") from None


def _parse_prefix(text: str) -> IpPrefix:
    address, slash, length = text.rpartition("/")
    if not slash:
        raise ValueError("no '/'")
    addr = parse_addr(address)
    if addr.zone:
        raise ValueError("IPv6 zones cannot be present in a prefix")
    if not _PREFIX_LENGTH.fullmatch(length):
        raise ValueError(f"bad bits after slash: {quote(length)}")
    if int(length) > addr.bits:
        raise ValueError("prefix length out of range")
    return IpPrefix(addr, int(length))


class _ScanError(ValueError):
    """Go's message; `rest` is the text from where it applies, "" if the message does not print it."""

    def __init__(self, message: str, rest: str = "") -> None:
        super().__init__(message)
        self.rest = rest


def _addr_error(text: str) -> _ScanError:
    """What net/netip finds wrong with text that is not an address.

    The first of the characters . : % decides how Go reads it.
    """
    first = next((char for char in text if char in ".:%"), "")
    if first in ("", "%"):
        return _ScanError("missing IPv6 address" if first else "unable to parse IP")
    try:
        _scan_ipv4(text) if first == "." else _scan_ipv6(text)
    except _ScanError as error:
        return error
    raise AssertionError(text)


def _scan_ipv4(text: str) -> None:
    """Raise an error at the first character at which the text stops being the beginning of an IPv4 address.

    1.02.3.4   →   reading the 2: "IPv4 field has octet with leading zero"
    1..2.3     →   at the second dot: "IPv4 field must have at least one digit (at ".2.3")"
    """
    dots = 0
    digits = ""
    for position, char in enumerate(text):
        if char in "0123456789":
            if digits == "0":
                raise _ScanError("IPv4 field has octet with leading zero")
            digits += char
            if int(digits) > 255:
                raise _ScanError("IPv4 field has value >255")
        elif char == ".":
            if position in (0, len(text) - 1) or text[position - 1] == ".":
                raise _ScanError("IPv4 field must have at least one digit", text[position:])
            if dots == 3:
                raise _ScanError("IPv4 address too long")
            dots += 1
            digits = ""
        else:
            raise _ScanError("unexpected character", text[position:])
    if dots < 3:
        raise _ScanError("IPv4 address too short")


def _scan_ipv6(text: str) -> None:
    """Raise an error at the first group at which the text stops being the beginning of an IPv6 address.

    `rest` is the text that is still to be read, `size` counts the bytes read so far, and `ellipsis` is the value of
    `size` at the "::":

        1::2:3   →   after "1::" rest is "2:3", size 2, ellipsis 2; at the end size is 6, and "::" stands for 10 bytes
    """
    rest, percent, zone = text.partition("%")
    if percent and not zone:
        raise _ScanError("zone must be a non-empty string")
    size, ellipsis = 0, -1
    if rest.startswith("::"):
        ellipsis, rest = 0, rest[2:]
        if not rest:
            return
    while size < 16:
        digits = _HEX.match(rest)[0]  # type: ignore[index]
        if len(digits) > 4:
            raise _ScanError("each group must have 4 or less digits", rest)
        if not digits:
            raise _ScanError("each colon-separated field must have at least one digit", rest)
        if rest.startswith(".", len(digits)):
            if ellipsis < 0 and size != 12:
                raise _ScanError("embedded IPv4 address must replace the final 2 fields of the address", rest)
            if size > 12:
                raise _ScanError("too many hex fields to fit an embedded IPv4 at the end of the address", rest)
            _scan_ipv4(rest)
            size, rest = size + 4, ""
            break
        size, rest = size + 2, rest[len(digits) :]
        if not rest:
            break
        if rest[0] != ":":
            raise _ScanError("unexpected character, want colon", rest)
        if rest == ":":
            raise _ScanError("colon must be followed by more characters", rest)
        rest = rest[1:]
        if rest[0] == ":":
            if ellipsis >= 0:
                raise _ScanError("multiple :: in address", rest)
            ellipsis, rest = size, rest[1:]
            if not rest:
                break
    if rest:
        raise _ScanError("trailing garbage after address", rest)
    if size < 16 and ellipsis < 0:
        raise _ScanError("address string too short")
    if size == 16 and ellipsis >= 0:
        raise _ScanError("the :: must expand to at least one field of zeros")


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
