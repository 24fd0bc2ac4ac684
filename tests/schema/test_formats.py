"""What each string format accepts and refuses. The reference server gave every expected result."""

from __future__ import annotations

import time

import pytest

from noxu.schema import formats
from tests.rows import rows

# fmt: off
TABLE: dict[str, tuple[list[str], list[str]]] = {  # format → (accepted, refused)
    "uri": (
        [
            "http://a/b", "/rel", "a:b", "mailto:a@b", "http://[::1]:80/", "//x/y",
            "http://u:p@h:80/x?y=z#f", "http://[fe80::1%25en0]:80/", "http://[::ffff:1.2.3.4]/",
            "ldap://a:1,b:2/", "http://a%e9b/", "http://h/%41", "http://h:", "http://:80", "http://",
            "http:", "http:/", "*", "http://u@@h/", "http://é/", "a+b-.1://x", "http://h?a b",
            "http://h/a b", 'http://h<>"/', "http://h'()*,;=!$&~_/", "http://[fe80::1%25a%20b]/",
            "http://[fe80::1%25a%21]/", "http://[fe80::1%25é]/", "x://a@b@c/",
        ],
        [
            "rel", "http://x y", "#f", "?q", "", "http://[fe80::1%en0]/", "http://[1.2.3.4]/",
            "http://a:b:c/", "http://a%20b/", "http://h/%zz", "http://h:8a", "http://a[b]/",
            "http://[::1", "http://u%2@h/", "http://u ser@h/", "http://h/\x7f", "http://h/\n", "é:/x",
            "1http://x", "a_b://x", ":x", "://x", "http://h^/", "http://h|/", "http://h{/", "http://h`/",
            "http://h\\/", "http://[fe80::1%25]/", "http://[fe80::1%25%e9]/", "http://[::1%ab]/",
            "http://[::1]x",
        ],
    ),
    "hostname": (
        ["a", "a-", "é.com", "localhost", "my-host.com", "☃.com", "a.éé", "a-b-c.dd", "😀.dev", "1", "11.com"],
        [
            "a.b", "1.2", "a_b", "-a", "a.b.", "a.b1", "A.B", "a..b", "", "my-host.c", "a.é", "a--b",
            "a.com\n", "a b", "a.co-m", "a.-b.com", "a-.com",
        ],
    ),
    "uuid": (
        [
            "6BA7B810-9dad-11d1-80b4-00c04fd430c8", "6ba7b8109dad11d180b400c04fd430c8",
            "6ba7b810-9dad-11d1-80b400c04fd430c8",
        ],
        [
            "6ba7", "{6ba7b810-9dad-11d1-80b4-00c04fd430c8}", "6ba7b810-9dad-11d1-80b4-00c04fd430c8\n",
            "gggggggggggggggggggggggggggggggg",
        ],
    ),
    "uuid3": (
        ["6ba7b810-9dad-31d1-80b4-00c04fd430c8"],
        ["6ba7b810-9dad-11d1-80b4-00c04fd430c8"],
    ),
    "uuid4": (
        ["6ba7b810-9dad-41d1-80b4-00c04fd430c8", "6BA7B810-9DAD-41D1-AAB4-00C04FD430C8"],
        ["6ba7b810-9dad-41d1-C0b4-00c04fd430c8"],
    ),
    "uuid5": (
        ["6ba7b810-9dad-51d1-80b4-00c04fd430c8"],
        ["6ba7b810-9dad-51d1-00b4-00c04fd430c8"],
    ),
    "isbn": (
        ["0-306-40615-2", "978-0-306-40615-7", "0 8044 2957 X", "0321751043", "978-0321751041", "\t0306406152"],
        ["0306406153", "080442957x", "03064061522", "X804429570", "\x0b0306406152", "1", ""],
    ),
    "isbn10": (
        ["0-306-40615-2", "0 8044 2957 X", "0000000000"],
        ["978-0-306-40615-7"],
    ),
    "isbn13": (
        ["978-0-306-40615-7", "0000000000000"],
        ["9780306406158", "0306406152"],
    ),
    "creditcard": (
        [
            "4111-1111-1111-1111", "5555555555554444", "378282246310005", "6011 0009 9013 9424",
            "3530111333300000", "30569309025904", "card 4111111111111111 (visa)",
        ],
        ["4111111111111112", "4111", "213100000000008", "6521674451993089", ""],
    ),
    "ssn": (
        ["111-11-1111", "111 11 1111", "111-11 1111"],
        ["111111111", "111-111111", "111-11-11111", "1111-11-111", "a11-11-1111"],
    ),
    "hexcolor": (
        ["#FFF", "abc", "abcdef"],
        ["#ab12FG", "#ffff", "", "##fff", "#fff\n"],
    ),
    "rgbcolor": (
        ["rgb(255,255,255)", "rgb( 0 , 1 , 2 )", "rgb(199,200,249)", "rgb(0,\n0,0)"],
        ["rgb(1)", "rgb(256,0,0)", "rgb(01,0,0)", "rgb(0,0,0) ", "rgb(1 9,0,0)", "RGB(0,0,0)", "rgb(0,\x0b0,0)"],
    ),
    "byte": (
        ["YQ==", "YWI=", "////", "YWJj", "+/+/"],
        ["", "YQ", "a-_=", "Y Q==", "YWJj\n", "====", "YQ==YQ==", "YQ="],
    ),
    "password": (
        ["", "x"],
        [],
    ),
    "bsonobjectid": (
        ["507f1f77bcf86cd799439011", "507F1F77BCF86CD799439011"],
        ["xyz", "507f1f77bcf86cd79943901", "507f1f77bcf86cd7994390111", "507f1f77bcf86cd79943901g"],
    ),
    "date": (
        ["2020-01-01", "0000-01-01", "2000-02-29", "0000-02-29", "2020-12-31", "9999-12-31"],
        [
            "2020-1-1", "20200101", "2020-02-30", "", "2021-02-29", "1900-02-29", "2020-00-01",
            "2020-13-01", "2020-01-00", "2020-04-31", " 2020-01-01", "2020-01-01 ", "２０２０-01-01",
            "10000-01-01", "-001-01-01",
        ],
    ),
    "datetime": (
        [
            "2020-01-01T00:00:00Z", "2020-01-01T00:00:00+01:00", "2020-01-01t00:00:00z",
            "2020-01-01T00:00:00.123456789Z", "2020-01-01T00:00:00Ztx", "2020-01-01T00:00:00,5Z",
            "2020-01-01T00:00:00x5Z", "2020-01-01T00:00:00+99:99", "2020-01-01T00:00:00ZT",
            "2020-01-01T00:00:00é5Z",
        ],
        [
            "2020-01-01T00:00:00", "2020-01-01 00:00:00Z", "2020-13-01T00:00:00Z", "2020-01-01T24:00:00Z",
            "2020-01-01T00:00:60Z", "", "2020-01-01T00:00:00+0100", "2020-01-01T00:00Z",
            "2020-01-01T00:00:00.Z", "2020-01-01T00:00:00\n5Z", "2020-01-01T00:60:00Z",
            "2020-01-01T1:00:00Z", "tttt", "2020-01-01T", "2020-01-01", "2020-02-30T00:00:00Z",
        ],
    ),
    "duration": (
        [
            "1s", "1h2m", "1.5h", "3 days", "1 week", "2w", "1d", "-1s", "+1s", "0", "1 sec", "5 minutes",
            "1us", "1µs", "1μs", "1 hour 2 min", "1h 2m", "P1D", "9223372036854775807ns",
            "-9223372036854775808ns", "2562047h", "2562048h", "106751d", "-0", "+0", ".5s", "1.s",
            "1.2.3s", "1ms", "1m1", "1 S", "1 NanoFoo", "x1s", "1\ts", "é1s", "1sé", "0s0", "1h-1m",
            "--1s", "1 hours", "12 milliX", "1S", "1H", "1e3s", "0.0000000001ns", "9223372036.854775807s",
            "9223372036.854775808s", "153722867.28091292m", "00000000000000000000000001s", "1sec99",
            "µ1s", "1 µs", "1ns1", "9223372036854775807 d",
        ],
        [
            "1", "", "1month", "1mo", "1 month", "9223372036854775808ns", "-9223372036854775809ns",
            "99999999999999999999 s", "99999999999999999999s 1s", "1s 99999999999999999999 x", "00", ".s",
            "1mss", "1\x0bs", "1é", "1 hrs", "1 wks", "1 dd", "1 Μs", "1 µsx", "9223372036854775808 s",
        ],
    ),
    "k8s-short-name": (
        ["a-b", "a", "1"],
        ["A", "-a", "a-", "", "a.b", "a\n"],
    ),
    "k8s-long-name": (
        ["a.b", "a", "1.2"],
        ["a..b", "A.b", ".a", "a.", "a-.b", "a.-b"],
    ),
}
# fmt: on


def accepts(name: str, text: str) -> bool:
    check = formats.checker(name)
    assert check is not None
    return check(text)


@pytest.mark.slow
@rows(("name", "text"), [(name, text) for name, (good, _) in TABLE.items() for text in good])
def test_accepts(name: str, text: str) -> None:
    assert accepts(name, text)


@rows(("name", "text"), [(name, text) for name, (_, bad) in TABLE.items() for text in bad])
def test_refuses(name: str, text: str) -> None:
    assert not accepts(name, text)


@rows(
    ("name", "text", "accepted"),
    [
        ("hostname", "x" * 63, True),
        ("hostname", "x" * 64, False),
        ("hostname", "é" * 31, True),  # octets count
        ("hostname", "é" * 32, False),
        ("hostname", "x" * 63 + ".com", True),
        ("hostname", "x" * 64 + ".com", False),
        ("hostname", ".".join(["x" * 61] * 4) + ".abcdefg", True),  # 255 octets
        ("hostname", ".".join(["x" * 61] * 4) + ".abcdefgh", False),
        ("k8s-short-name", "x" * 63, True),
        ("k8s-short-name", "x" * 64, False),
        ("k8s-long-name", "x" * 253, True),
        ("k8s-long-name", "x" * 254, False),
        ("k8s-long-name", "x" * 100 + ".y", True),
    ],
)
def test_lengths(name: str, text: str, accepted: bool) -> None:
    assert accepts(name, text) is accepted


def test_every_supported_format_is_in_a_table() -> None:
    elsewhere = {"ipv4", "ipv6", "cidr", "mac", "email"}  # in the tests of networks and mailboxes
    assert {name.replace("-", "") for name in TABLE} | elsewhere == formats._CHECKS.keys()


@pytest.mark.parametrize("name", ["date-time", "datetime", "date--time", "-datetime"])
def test_dashes_in_a_name_do_not_count(name: str) -> None:
    assert formats.checker(name) is formats.checker("datetime")


@pytest.mark.parametrize("name", ["", "Date", "date_time", "int32", "zzz", "-"])
def test_other_names_are_unknown(name: str) -> None:
    assert formats.checker(name) is None


@rows(
    ("name", "type_", "recognized"),
    [
        ("date", "string", True),
        ("date", "", True),
        ("date-time", "string", True),
        ("int32", "string", False),
        ("zzz", "string", False),
        ("int32", "integer", True),
        ("int64", "integer", True),
        ("int16", "integer", False),
        ("date", "integer", False),
        ("float", "number", True),
        ("double", "number", True),
        ("int32", "number", False),
        ("float", "integer", False),
        ("int32", "", False),
        ("date", "object", False),
        ("date", "array", False),
        ("date", "boolean", False),
        ("", "boolean", True),
    ],
)
def test_recognized_is_a_format_on_a_type(name: str, type_: str, recognized: bool) -> None:
    assert formats.is_recognized(name, type_) is recognized


EVIL = ["1" * 50_000, "a" * 50_000, "1 " * 25_000, "1h" * 25_000 + "x", "%" * 50_000, ":" * 50_000, "a." * 25_000]
EVIL += [
    "(" * 50_000,
    '"' + "a" * 50_000,
    "0" * 50_000 + ".1.1.1",
    "a@b," * 12_000,
    "A " * 25_000 + "<a@b>",
    "YQ==" * 12_000,
]


@rows("name", sorted(formats._CHECKS))
def test_time_is_linear_in_the_text(name: str) -> None:
    start = time.process_time()
    for text in EVIL:
        accepts(name, text)
    assert time.process_time() - start < 2  # 0.2 s; quadratic would take a minute
