"""IP addresses and networks in expressions; how they are parsed is tested in tests/go/test_net_netip.py."""

from __future__ import annotations

from typing import Any

from tests.cel.evaluate import Error, evaluate
from tests.rows import rows

ADDRESS_ERROR = "parse error during conversion from string: ParseAddr"
NETWORK_ERROR = "network address parse error during conversion from string: "
ROWS: list[tuple[str, Any]] = [
    ("string(ip('2001:DB8::1'))", "2001:db8::1"),
    ("ip('1.2.3.4').family()", 4),
    ("ip('::1').family()", 6),
    ("ip('::1') == ip('0:0::1')", True),
    ("ip('1.2.3.4') == ip('::102:304')", False),
    ("ip('1.2.3.256')", Error(f'IP Address "1.2.3.256" {ADDRESS_ERROR}("1.2.3.256"): IPv4 field has value >255')),
    ("ip('::ffff:1.2.3.4')", Error('IPv4-mapped IPv6 address "::ffff:1.2.3.4" is not allowed')),
    ("ip('fe80::1%eth0')", Error('IP address "fe80::1%eth0" with zone value is not allowed')),
    ("isIP('1.2.3.4')", True),
    ("isIP('fe80::1%eth0')", False),
    ("ip.isCanonical('2001:db8::1')", True),
    ("ip.isCanonical('2001:DB8::1')", False),
    ("ip('127.0.0.1').isLoopback()", True),
    ("ip('0.0.0.0').isUnspecified()", True),
    ("ip('169.254.0.1').isLinkLocalUnicast()", True),
    ("ip('224.0.0.1').isLinkLocalMulticast()", True),
    ("ip('10.0.0.1').isGlobalUnicast()", True),
    ("string(cidr('10.1.2.3/8'))", "10.1.2.3/8"),
    ("string(cidr('10.1.2.3/8').masked())", "10.0.0.0/8"),
    ("string(cidr('10.1.2.3/8').ip())", "10.1.2.3"),
    ("cidr('10.1.2.3/8').prefixLength()", 8),
    ("cidr('10.1.2.3/8') == cidr('10.0.0.0/8')", False),
    ("cidr('10.1.2.3/8').containsIP('10.9.9.9')", True),
    ("cidr('10.1.2.3/8').containsIP(ip('11.0.0.0'))", False),
    ("cidr('::/0').containsIP('1.2.3.4')", False),
    ("cidr('10.0.0.0/8').containsIP('x')", Error("no such overload")),
    ("cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16')", True),
    ("cidr('10.0.0.0/8').containsCIDR('10.0.0.0/8')", True),
    ("cidr('10.0.0.0/8').containsCIDR(cidr('0.0.0.0/0'))", False),
    (
        "cidr('10.0.0.0/33')",
        Error(f'{NETWORK_ERROR}{NETWORK_ERROR}netip.ParsePrefix("10.0.0.0/33"): prefix length out of range'),
    ),
    (
        "cidr('::ffff:1.2.3.4/128')",
        Error(f'{NETWORK_ERROR}IPv4-mapped IPv6 address "::ffff:1.2.3.4/128" is not allowed'),
    ),
    ("isCIDR('10.0.0.0/8')", True),
    ("isCIDR('10.0.0.0')", False),
    ("dyn(ip('::1')) == dyn(cidr('::1/128'))", Error("no such overload")),
]


@rows(("text", "expected"), ROWS, ids=[row[0] for row in ROWS])
def test_addresses_and_networks(text: str, expected: Any) -> None:
    found = evaluate(text)
    assert (type(found), found) == (type(expected), expected)
