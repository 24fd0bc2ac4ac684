"""Go's %q, %v and encoding/json, as upstream's messages contain them."""

from __future__ import annotations

import math
from typing import Any

from noxu.go.text import compact_json, float_json, plain, quote, quote_list
from tests.rows import rows

QUOTED = {
    "plain ASCII": ("abc", '"abc"'),
    "nothing": ("", '""'),
    "a quotation mark": ('a"b', r'"a\"b"'),
    "a backslash": ("a\\b", r'"a\\b"'),
    "escapes of one letter": ("\a\b\f\n\r\t\v", r'"\a\b\f\n\r\t\v"'),
    "another control character": ("\x00\x1b", r'"\x00\x1b"'),
    "delete": ("\x7f", r'"\x7f"'),
    "printable letters": ("äß日😀", '"äß日😀"'),
    "a space that is not ASCII's": ("a\u00a0b", r'"a\u00a0b"'),
    "a character of the second plane that is not printable": ("\U000e0001", r'"\U000e0001"'),
    "a byte that is not UTF-8": (b"a\xff".decode("utf-8", "surrogateescape"), r'"a\xff"'),
}


@rows(("text", "quoted"), QUOTED.values(), ids=QUOTED)
def test_strings_are_quoted(text: str, quoted: str) -> None:
    assert quote(text) == quoted


def test_lists_of_strings_are_quoted() -> None:
    assert [quote_list(texts) for texts in ([], ["a"], ["a", 'b"c'])] == ["[]", '["a"]', '["a" "b\\"c"]']


PLAIN: list[tuple[Any, str]] = [
    (None, "<nil>"),
    (True, "true"),
    (False, "false"),
    (-3, "-3"),
    (2**63 - 1, "9223372036854775807"),
    ("as is", "as is"),
    (0.0, "0"),
    (-0.0, "-0"),
    (1.0, "1"),
    (100000.0, "100000"),
    (999999.0, "999999"),
    (1000000.0, "1e+06"),
    (0.0001, "0.0001"),
    (0.00001, "1e-05"),
    (1.5e300, "1.5e+300"),
    (math.inf, "+Inf"),
    (-math.inf, "-Inf"),
    (math.nan, "NaN"),
]


@rows(("value", "text"), PLAIN)
def test_scalars_are_printed(value: Any, text: str) -> None:
    assert plain(value) == text


FLOATS = [
    (1.0, "1"),
    (-0.0, "-0"),
    (123.456, "123.456"),
    (0.000001, "0.000001"),
    (0.0000009, "9e-7"),
    (1e20, "100000000000000000000"),
    (1e21, "1e+21"),
    (5e-324, "5e-324"),
    (1.7976931348623157e308, "1.7976931348623157e+308"),
]


@rows(("value", "text"), FLOATS)
def test_floats_in_json_have_exponents_below_1e_minus_6_and_from_1e21(value: float, text: str) -> None:
    assert float_json(value) == text


WRITTEN: dict[str, tuple[Any, str]] = {
    "null": (None, "null"),
    "a string": ("a", '"a"'),
    "characters of HTML": ("<a>&", r'"\u003ca\u003e\u0026"'),
    "line separators": ("\u2028\u2029", r'"\u2028\u2029"'),
    "control characters": ("\x00\n\x1f", r'"\u0000\n\u001f"'),
    "text that is not ASCII": ("ä日😀", '"ä日😀"'),
    "an integer and a float": ([1, 1.0, 1.5], "[1,1,1.5]"),
    "keys are sorted and escaped": ({"b": 1, "<": 2}, r'{"\u003c":2,"b":1}'),
    "nothing but containers": ({"a": [], "b": {}}, '{"a":[],"b":{}}'),
}


@rows(("value", "text"), WRITTEN.values(), ids=WRITTEN)
def test_values_are_written_as_json(value: Any, text: str) -> None:
    assert compact_json(value) == text


def test_keys_may_keep_their_order() -> None:
    assert compact_json({"b": 1, "a": {"d": 2, "c": 3}}, sort_keys=False) == '{"b":1,"a":{"d":2,"c":3}}'
