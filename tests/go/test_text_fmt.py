"""Go's %v, %#v and %T of decoded JSON."""

from __future__ import annotations

from typing import Any

import pytest

from noxu.go.text import default_format, go_syntax, go_type, yaml_go_syntax
from tests.rows import rows

PRINTED: list[tuple[Any, str, str, str]] = [
    (None, "<nil>", "interface {}(nil)", "<nil>"),
    (True, "true", "true", "bool"),
    (7, "7", "7", "int64"),
    (1.5, "1.5", "1.5", "float64"),
    (1e21, "1e+21", "1e+21", "float64"),
    (123456789.0, "1.23456789e+08", "1.23456789e+08", "float64"),
    ("a\nb", "a\nb", '"a\\nb"', "string"),
    ([], "[]", "[]interface {}{}", "[]interface {}"),
    ([1, "a", None], "[1 a <nil>]", '[]interface {}{1, "a", interface {}(nil)}', "[]interface {}"),
    ({}, "map[]", "map[string]interface {}{}", "map[string]interface {}"),
    (
        {"b": [True], "a": {"c": "x y"}},
        "map[a:map[c:x y] b:[true]]",
        'map[string]interface {}{"a":map[string]interface {}{"c":"x y"}, "b":[]interface {}{true}}',
        "map[string]interface {}",
    ),
    ([[], {}, [[1]]], "[[] map[] [[1]]]", "[]interface {}{[]interface {}{}, map[string]interface {}{}, "
     "[]interface {}{[]interface {}{1}}}", "[]interface {}"),
]  # fmt: skip


@rows(("value", "plain", "syntax", "kind"), PRINTED)
def test_values_are_printed_as_by_go(value: Any, plain: str, syntax: str, kind: str) -> None:
    assert default_format(value) == plain
    assert go_syntax(value) == syntax
    assert go_type(value) == kind


def test_depth_does_not_matter() -> None:
    value: Any = 1
    for _ in range(5_000):
        value = {"a": [value]}
    assert default_format(value) == "map[a:[" * 5_000 + "1" + "]]" * 5_000
    assert go_syntax(value).count("interface {}{") == 10_000


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "<nil>"),
        ("a\n", r'"a\n"'),
        (1, "1"),
        (1e21, "1e+21"),
        (True, "true"),
        ([], "[]interface {}{}"),
        ([None, {"b": [1], "a": "x"}],
         '[]interface {}{interface {}(nil), map[interface {}]interface {}{"a":"x", "b":[]interface {}{1}}}'),
    ],
)  # fmt: skip
def test_go_yaml_has_maps_with_keys_of_any_type(value: Any, text: str) -> None:
    assert yaml_go_syntax(value) == text
