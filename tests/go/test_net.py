"""Addresses as Go reads them. The reference server gave every expected result."""

from __future__ import annotations

import pytest

from noxu.go.net import is_ipv4, is_ipv6, parse_sloppy
from noxu.schema import formats
from tests.rows import rows

# fmt: off
TABLE: dict[str, tuple[list[str], list[str]]] = {  # format → (accepted, refused)
    "ipv4": (
        [
            "1.2.3.4", "01.02.03.04", "::ffff:1.2.3.4", "0001.2.3.4", "::01.2.3.4", "::1.2.3.04",
            "00000000000000000000001.2.3.4",
        ],
        [
            "1.2.3.4/8", "::1", "1.2.3.256", "", " 1.2.3.4", "1.2.3", "1.2.3.4.5", "1..2.3", "0x1.2.3.4",
            "1.2.3.4%a", "1.2.3.1000", "a.b.c.d",
        ],
    ),
    "ipv6": (
        [
            "::", "::1", "1::", "1:2:3:4:5:6:7:8", "1::8", "1:2:3:4:5:6:7::", "::2:3:4:5:6:7:8",
            "::ffff:1.2.3.4", "1:2:3:4:5:6:1.2.3.4", "::ABCD", "1:2:3:4:5::1.2.3.4",
        ],
        [
            "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "1::2::3", ":::", "1:::2", ":1", "1:", "::1.2.3.04",
            "1:2:3:4:5:1.2.3.4", "1.2.3.4::", "::1.2.3.4:5", "fe80::1%eth0", "::g", "12345::", "00001::",
            "1.2.3.4", "1:2:3:4:5:6:7:1.2.3.4", "1:2:3:4:5:6::1.2.3.4", "::1%", "1::2:3:4:5:6:7:8",
            "1:2:3:4::5:6:7:8",
        ],
    ),
    "cidr": (
        ["10.0.0.0/8", "10.0.0.1/8", "::/0", "010.0.0.0/8", "10.0.0.0/08", "::1/128", "00001::/64", "10.0.0.0/0000032"],
        [
            "10.0.0.0/33", "::1/129", "::1", "10.0.0.0", "10.0.0.0/", "/8", "10.0.0.0/-1", "10.0.0.0/8/8",
            "::1%a/64", "10.0.0.0/99999999999", "10.0.0.0/ 8", "1.2.3.4/+8",
        ],
    ),
    "mac": (
        [
            "00:11:22:33:44:55", "00-11-22-33-44-55", "0011.2233.4455", "001122334455",
            "00:11:22:33:44:55:66:77", "0011223344556677", "0011.2233.4455.6677",
        ],
        [
            "00:11:22:33:44", "00:11-22:33:44:55", "zz:11:22:33:44:55", "abababababababababab",
            "0:1:2:3:4:5", "00:11:22:33:44:5", "0011.2233.44", "00112233445G", "éé:11:22:33:44:55",
            "00:11:22:33:44:55 ",
        ],
    ),
}
# fmt: on


@rows(("name", "text"), [(name, text) for name, (good, _) in TABLE.items() for text in good])
def test_accepts(name: str, text: str) -> None:
    check = formats.checker(name)
    assert check is not None
    assert check(text)


@rows(("name", "text"), [(name, text) for name, (_, bad) in TABLE.items() for text in bad])
def test_refuses(name: str, text: str) -> None:
    check = formats.checker(name)
    assert check is not None
    assert not check(text)


@rows(
    ("text", "strict", "sloppy"),
    [
        ("1.2.3.4", True, True),
        ("0.0.0.0", True, True),
        ("01.2.3.4", False, True),
        ("00.0.0.0", False, True),
        ("0" * 10_000 + "1.2.3.4", False, True),
        ("255.255.255.255", True, True),
        ("255.255.255.256", False, False),
        ("1.2.3.0999", False, False),
        ("1.2.3.", False, False),
        ("１.2.3.4", False, False),
        ("1.2.3.4\n", False, False),
    ],
)
def test_leading_zeros_of_an_octet_are_for_the_sloppy(text: str, strict: bool, sloppy: bool) -> None:
    assert (is_ipv4(text), is_ipv4(text, sloppy=True)) == (strict, sloppy)


@pytest.mark.parametrize(
    ("text", "strict", "sloppy"),
    [
        ("::1", True, True),
        ("00001::", False, True),
        ("10000::", False, False),
        ("::1.2.3.4", True, True),
        ("::1.2.3.04", False, True),
        ("::1%eth0", False, False),
    ],
)
def test_leading_zeros_of_a_group_are_for_the_sloppy(text: str, strict: bool, sloppy: bool) -> None:
    assert (is_ipv6(text), is_ipv6(text, sloppy=True)) == (strict, sloppy)


@rows(
    ("text", "printed"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("010.000.0.01", "10.0.0.1"),
        ("::FFFF:1.2.3.4", "1.2.3.4"),
        ("FE80:0:0::1", "fe80::1"),
        ("fe80::1%eth0", None),
        ("10.0.0", None),
        ("10.0.0.256", None),
        (" 10.0.0.1", None),
        ("", None),
    ],
)
def test_sloppy_addresses_as_go_prints_them(text: str, printed: str | None) -> None:
    found = parse_sloppy(text)
    assert (None if found is None else str(found)) == printed
