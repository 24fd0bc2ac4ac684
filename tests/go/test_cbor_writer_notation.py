"""CBOR bytes in, diagnostic notation out: upstream's errors quote it."""

from __future__ import annotations

from typing import Final

from noxu.go.cbor_writer import diagnose
from tests.rows import rows

NOTATIONS: Final = [
    ("00", "0"),
    ("1b ffffffffffffffff", "18446744073709551615"),
    ("3b ffffffffffffffff", "-18446744073709551616"),
    ("84 f4 f5 f6 f7", "[false, true, null, undefined]"),
    ("e0", "simple(0)"),
    ("f8 ff", "simple(255)"),
    ("f9 3c00", "1.0"),
    ("f9 8000", "-0.0"),
    ("fb 3ff199999999999a", "1.1"),
    ("fb 7e37e43c8800759c", "1.0e+300"),
    ("f9 0001", "5.960464477539063e-8"),
    ("40", "h''"),
    ("42 6127", r"'a\''"),
    ("42 6122", "'a\"'"),
    ("62 6122", r'"a\""'),
    ("47 090a0d5c01c3bc", r"'\t\n\r\\\u0001\u00fc'"),
    ("64 f09f9880", r'"\ud83d\ude00"'),
    ("42 ff61", "h'ff61'"),
    ("5f 41 61 40 ff", "(_ 'a', h'')"),
    ("5f ff", "''_"),
    ("7f ff", '""_'),
    ("d9d9f7 a2 41 61 01 41 62 82 01 a0", "55799({'a': 1, 'b': [1, {}]})"),
    ("bf 41 61 9f 01 02 ff 41 62 c1 01 ff", "{_ 'a': [_ 1, 2], 'b': 1(1)}"),
    ("9f ff", "[_ ]"),
    ("82 01 61 ff", "820161ff"),  # text that is no UTF-8 has no notation
]


@rows(("data", "text"), NOTATIONS)
def test_notations(data: str, text: str) -> None:
    assert diagnose(bytes.fromhex(data)) == text


def test_depth_is_no_limit() -> None:
    assert diagnose(b"\x81" * 10_000 + b"\x01") == "[" * 10_000 + "1" + "]" * 10_000
