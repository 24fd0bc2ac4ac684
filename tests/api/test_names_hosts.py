"""Which host names mean this machine, and which merely look like it."""

from __future__ import annotations

from noxu.api.names import is_loopback, split_host
from tests.rows import rows

SPLIT = [
    ("a name", "example.com", "example.com"),
    ("a name and a port", "example.com:8080", "example.com"),
    ("an empty port", "example.com:", "example.com"),
    ("capitals", "EXAMPLE.com:80", "example.com"),
    ("an IPv4 address and a port", "127.0.0.1:80", "127.0.0.1"),
    ("an IPv6 address in brackets", "[::1]", "::1"),
    ("an IPv6 address and a port", "[::1]:8080", "::1"),
    ("a bare IPv6 address", "::1", "::1"),
    ("nothing", "", ""),
    ("a port alone", ":80", ""),
    ("text after the brackets", "[::1]evil.com", "[::1]evil.com"),
    ("text after the brackets, and a port", "[::1]evil.com:80", "[::1]evil.com:80"),
    ("text before the brackets", "evil.com[::1]", "evil.com[::1]"),
    ("no closing bracket", "[::1", "[::1"),
    ("a port that is no number", "localhost:evil", "localhost:evil"),
    ("two ports", "localhost:80:80", "localhost:80:80"),
    ("nested brackets", "[[::1]]", "[[::1]]"),
    ("a line end", "localhost\n", "localhost\n"),
]


@rows(("authority", "host"), [row[1:] for row in SPLIT], ids=[row[0] for row in SPLIT])
def test_the_host_of_an_authority(authority: str, host: str) -> None:
    assert split_host(authority) == host


@rows("authority", [row[1] for row in SPLIT], ids=[row[0] for row in SPLIT])
def test_a_host_is_its_own_host(authority: str) -> None:
    assert split_host(split_host(authority)) == split_host(authority)


LOOPBACK = [
    "localhost",
    "localhost:8443",
    "LocalHost",
    "noxu.localhost",
    "a.b.localhost:80",
    "127.0.0.1",
    "127.0.0.1:",
    "127.1.2.3:80",
    "127.255.255.254",
    "::1",
    "[::1]",
    "[::1]:80",
    "[0:0:0:0:0:0:0:1]",
    "[::ffff:127.0.0.1]:80",
    "[::FFFF:7f00:1]",
]


@rows("authority", LOOPBACK)
def test_this_machine(authority: str) -> None:
    assert is_loopback(authority)


NOT_LOOPBACK = [
    "",
    ":80",
    "0.0.0.0",
    "10.0.0.1:80",
    "[::]:80",
    "[::2]",
    "[::ffff:10.0.0.1]",
    "localhost.example.com",
    "localhost.",
    ".localhost",
    "notlocalhost",
    "127.0.0.1.example.com",
    "127.0.0.1.evil.com:80",
    "[::1]evil.com",
    "[::1].evil.com:80",
    "[::1].localhost",
    "[::1]evil.com.localhost",
    "[localhost]",
    "[127.0.0.1]:80",
    "[a.localhost]",
    "evil.com:80.localhost",
    "evil.com/.localhost",
    "evil.com#.localhost",
    "evil.com?.localhost",
    "evil.com@a.localhost",
    "evil com.localhost",
    "a..localhost",
    "evil.com:80:.localhost",
    "[::1]:80evil.com",
    "evil.com[::1]",
    "[::1",
    "::1]",
    "::1:80",
    "[::1%eth0]",
    "127.1",
    "2130706433",
    "0x7f000001",
    "0177.0.0.1",
    "127.0.0.1 ",
    "127.0.0.1\n",
    "localhost:evil",
    "user@localhost",
    "localhost@evil.com",
    "localhost/..",
    "１２７.0.0.1",
]


@rows("authority", NOT_LOOPBACK)
def test_other_machines_and_malformed_hosts(authority: str) -> None:
    assert not is_loopback(authority)
