"""IP addresses and prefixes as Go's net/netip reads and prints them."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noxu.go.net import Addr, is_ipv4, is_ipv6, parse_addr, parse_prefix
from tests.rows import rows

PRINTED = [  # text, how it is printed
    ("1.2.3.4", "1.2.3.4"),
    ("255.255.255.255", "255.255.255.255"),
    ("::", "::"),
    ("::1", "::1"),
    ("1::", "1::"),
    ("2001:DB8::1", "2001:db8::1"),
    ("2001:db8:0:0:0:0:0:1", "2001:db8::1"),
    ("0:0:0:1:0:0:0:0", "0:0:0:1::"),
    ("1:0:0:2:0:0:0:3", "1:0:0:2::3"),  # the longest run of zeros
    ("1:0:0:2:3:0:0:4", "1::2:3:0:0:4"),  # the first of two
    ("1:0:2:3:4:5:6:7", "1:0:2:3:4:5:6:7"),  # not a single zero
    ("0001:0002:0003:0004:0005:0006:0007:0008", "1:2:3:4:5:6:7:8"),
    ("::ffff:1.2.3.4", "::ffff:1.2.3.4"),
    ("::ffff:102:304", "::ffff:1.2.3.4"),
    ("::1.2.3.4", "::102:304"),
    ("1:2:3:4:5:6:1.2.3.4", "1:2:3:4:5:6:102:304"),
    ("fe80::1%eth0", "fe80::1%eth0"),
    ("fe80::1%a%b", "fe80::1%a%b"),
    ("::ffff:1.2.3.4%eth0", "::ffff:1.2.3.4%eth0"),
]


@rows(("text", "printed"), PRINTED, ids=[row[0] for row in PRINTED])
def test_an_address_is_printed(text: str, printed: str) -> None:
    assert str(parse_addr(text)) == printed


MULTIPLE = "multiple :: in address"
GROUP = "each group must have 4 or less digits"
FIELD = "each colon-separated field must have at least one digit"
REFUSED = [  # text, why
    ("", "unable to parse IP"),
    ("bad", "unable to parse IP"),
    ("1234", "unable to parse IP"),
    ("eth0%", "missing IPv6 address"),
    ("%eth0::1", "missing IPv6 address"),
    ("1.2.3", "IPv4 address too short"),
    ("1.2.3.4.5", "IPv4 address too long"),
    ("1.2.3.256", "IPv4 field has value >255"),
    ("01.2.3.4", "IPv4 field has octet with leading zero"),
    ("1.2.3.00", "IPv4 field has octet with leading zero"),
    (".1.2.3", 'IPv4 field must have at least one digit (at ".1.2.3")'),
    ("1..2.3", 'IPv4 field must have at least one digit (at ".2.3")'),
    ("1.2.3.", 'IPv4 field must have at least one digit (at ".")'),
    ("1.2.3.4%eth0", 'unexpected character (at "%eth0")'),
    ("1.2.3.x", 'unexpected character (at "x")'),
    ("1.2.3.１", 'unexpected character (at "１")'),
    ("::1%", "zone must be a non-empty string"),
    ("1:2:3", "address string too short"),
    ("1:2:3:4:5:6:7:8:9", 'trailing garbage after address (at "9")'),
    ("1::2::3", f'{MULTIPLE} (at ":3")'),
    (":::", f'{FIELD} (at ":")'),
    ("1:::2", f'{FIELD} (at ":2")'),
    (":1", f'{FIELD} (at ":1")'),
    ("1:", 'colon must be followed by more characters (at ":")'),
    ("12345::", f'{GROUP} (at "12345::")'),
    ("::g", f'{FIELD} (at "g")'),
    ("1:2g::", 'unexpected character, want colon (at "g::")'),
    ("1:2:3:4:5:6:7::8", "the :: must expand to at least one field of zeros"),
    ("1:2:3:4:5:1.2.3.4", 'embedded IPv4 address must replace the final 2 fields of the address (at "1.2.3.4")'),
    (
        "1:2:3:4:5:6::7:1.2.3.4",
        'too many hex fields to fit an embedded IPv4 at the end of the address (at "1.2.3.4")',
    ),
    ("::1.2.3.04", "IPv4 field has octet with leading zero"),
    ("::1.2.3", "IPv4 address too short"),
]


@rows(("text", "why"), REFUSED, ids=[row[0] or "no text" for row in REFUSED])
def test_an_address_is_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the message is compared whole
        parse_addr(text)
    assert str(error.value) == f'ParseAddr("{text}"): {why}'


NO_PREFIX = [
    ("no slash", "10.0.0.0", "no '/'"),
    ("no length", "10.0.0.0/", 'bad bits after slash: ""'),
    ("a leading zero", "10.0.0.0/08", 'bad bits after slash: "08"'),
    ("a sign", "10.0.0.0/+8", 'bad bits after slash: "+8"'),
    ("no number", "10.0.0.0/a", 'bad bits after slash: "a"'),
    ("too long", "10.0.0.0/33", "prefix length out of range"),
    ("too long for IPv6", "::/129", "prefix length out of range"),
    ("a zone", "fe80::1%a/64", "IPv6 zones cannot be present in a prefix"),
    ("two slashes", "10.0.0.0/8/8", 'ParseAddr("10.0.0.0/8"): unexpected character (at "/8")'),
    ("no address", "/8", 'ParseAddr(""): unable to parse IP'),
]


@rows(("text", "why"), [row[1:] for row in NO_PREFIX], ids=[row[0] for row in NO_PREFIX])
def test_a_prefix_is_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the message is compared whole
        parse_prefix(text)
    assert str(error.value) == f'netip.ParsePrefix("{text}"): {why}'


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("10.1.2.3/8", "10.0.0.0/8"),
        ("10.1.2.3/32", "10.1.2.3/32"),
        ("10.1.2.3/0", "0.0.0.0/0"),
        ("2001:db8:ffff::1/33", "2001:db8:8000::/33"),
        ("::1/0", "::/0"),
    ],
)
def test_a_prefix_is_masked(text: str, masked: str) -> None:
    prefix = parse_prefix(text)
    assert (str(prefix), str(prefix.masked())) == (text, masked)


@pytest.mark.parametrize(
    ("prefix", "inside", "outside"),
    [
        ("10.0.0.0/8", ["10.0.0.0", "10.255.255.255"], ["11.0.0.0", "::a00:0", "::ffff:10.0.0.1"]),
        ("0.0.0.0/0", ["1.2.3.4"], ["::"]),
        ("10.1.2.3/32", ["10.1.2.3"], ["10.1.2.2"]),
        ("fe80::/10", ["fe80::1", "febf::"], ["fec0::", "fe80::1%eth0"]),
    ],
)
def test_a_prefix_contains_addresses(prefix: str, inside: list[str], outside: list[str]) -> None:
    found = parse_prefix(prefix)
    assert [found.contains(parse_addr(text)) for text in inside] == [True] * len(inside)
    assert [found.contains(parse_addr(text)) for text in outside] == [False] * len(outside)


PROPERTIES = ("unspecified", "loopback", "multicast", "link_local_unicast", "link_local_multicast", "global_unicast")
KINDS = [  # address, the properties that it has
    ("0.0.0.0", {"unspecified"}),
    ("::", {"unspecified"}),
    ("127.0.0.1", {"loopback"}),
    ("127.255.255.255", {"loopback"}),
    ("::1", {"loopback"}),
    ("169.254.1.1", {"link_local_unicast"}),
    ("fe80::1", {"link_local_unicast"}),
    ("febf:ffff::", {"link_local_unicast"}),
    ("224.0.0.1", {"multicast", "link_local_multicast"}),
    ("ff02::1", {"multicast", "link_local_multicast"}),
    ("ff12::1", {"multicast", "link_local_multicast"}),
    ("224.0.1.0", {"multicast"}),
    ("239.255.255.255", {"multicast"}),
    ("ff05::1", {"multicast"}),
    ("10.0.0.1", {"global_unicast"}),  # private addresses are global
    ("fc00::1", {"global_unicast"}),
    ("8.8.8.8", {"global_unicast"}),
    ("255.255.255.255", set()),
    ("240.0.0.1", {"global_unicast"}),
]


@rows(("text", "expected"), KINDS, ids=[row[0] for row in KINDS])
def test_kinds_of_addresses(text: str, expected: set[str]) -> None:
    addr = parse_addr(text)
    assert {name for name in PROPERTIES if getattr(addr, f"is_{name}")} == expected


def test_a_mapped_address_is_recognised() -> None:
    assert [parse_addr(text).is_4in6 for text in ("::ffff:1.2.3.4", "::1.2.3.4", "1.2.3.4")] == [True, False, False]


@given(st.integers(min_value=0, max_value=2**128 - 1))
def test_ipv6_addresses_are_printed_as_python_prints_them(number: int) -> None:
    addr = Addr(number, 128)
    assert parse_addr(str(addr)) == addr
    assert addr.is_4in6 or str(addr) == str(ipaddress.IPv6Address(number))


PARTS = ["0", "1", "00", "255", "256", "a", "ffff", "10000", ":", "::", ".", "%", "%e", "1.2.3.4", "1.2.3.04", "g", " "]


@given(st.lists(st.sampled_from(PARTS), max_size=17).map("".join))
def test_net_accepts_what_netip_accepts_without_zones(text: str) -> None:
    try:
        addr = parse_addr(text)
    except ValueError:
        accepted = False
    else:
        accepted = not addr.zone
    assert (is_ipv4(text) or is_ipv6(text)) is accepted
