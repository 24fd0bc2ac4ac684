"""Positions: the line and column of a field, of an error and of a repeated key."""

from __future__ import annotations

import pytest

from noxu.manifests.positions import Text
from tests.rows import rows

YAML = """\
kind: Widget
spec:
  size: 0
  sizes:
  - 1
  - a.b: 2
    "c": [3, {d: 4}]
  labels: {x/y.z: 5, "": 6}
  a: {b: 7, b.c: 8, "b.c[d]": 9}
  base: &base {e: 10}
  same: *base
  merged: {<<: *base, f: 11}
"""

IN_YAML: list[tuple[str, str, tuple[int, int]]] = [
    ("the whole object", "", (1, 1)),
    ("a field", "kind", (1, 1)),
    ("a field in a field", "spec.size", (3, 3)),
    ("an item", "spec.sizes[0]", (5, 5)),
    ("a field of an item: at its key", "spec.sizes[1].c", (7, 5)),
    ("a key with a dot", "spec.sizes[1].a.b", (6, 5)),
    ("an item of a list in brackets", "spec.sizes[1].c[1]", (7, 14)),
    ("a field of it", "spec.sizes[1].c[1].d", (7, 15)),
    ("a key in brackets", "spec.labels[x/y.z]", (8, 12)),
    ("an empty key", "spec.labels[]", (8, 22)),
    ("the longest key is meant", "spec.a.b.c", (9, 13)),
    ("the shorter one, if it ends there", "spec.a.b", (9, 7)),
    ("a key with brackets", "spec.a[b.c[d]]", (9, 21)),
    ("a missing field: the one around it", "spec.sizes[1].c[1].none.more", (7, 14)),
    ("a missing item", "spec.sizes[7]", (4, 3)),
    ("a field of a scalar", "spec.size.none", (3, 3)),
    ("an index into an object", "spec[0]", (2, 1)),
    ("a field of an alias: where the alias is", "spec.same.e", (11, 3)),
    ("a merged field: where it is merged", "spec.merged.e", (12, 3)),
    ("a field beside it", "spec.merged.f", (12, 23)),
    ("a path of nothing", "nothing", (1, 1)),
]


@rows(("path", "position"), [row[1:] for row in IN_YAML], ids=[row[0] for row in IN_YAML])
def test_where_a_field_of_yaml_is(path: str, position: tuple[int, int]) -> None:
    assert Text(YAML.encode()).position(path) == position


JSON = '{"kind": "Widget",\n\t"spec": {\n\t\t"size": 0, "url": "https:\\/\\/x", "a\\"\\u0062": [true,\n{"ä": 1, "c": null}]}}\n'

IN_JSON: list[tuple[str, str, tuple[int, int]]] = [
    ("the whole object", "", (1, 1)),
    ("a field after tabs", "spec", (2, 2)),
    ("a field in it", "spec.size", (3, 3)),
    ("an escaped key", 'spec[a"b]', (3, 36)),
    ("an item", 'spec[a"b][1]', (4, 1)),
    ("a field after a letter of two bytes", 'spec[a"b][1].c', (4, 10)),
]


@pytest.mark.parametrize(("path", "position"), [row[1:] for row in IN_JSON], ids=[row[0] for row in IN_JSON])
def test_where_a_field_of_json_is(path: str, position: tuple[int, int]) -> None:
    assert Text(JSON.encode()).position(path) == position


def test_lines_count_from_the_beginning_of_the_file() -> None:
    text = Text(b"\na: [\nb: 1", first_line=10)
    assert text.position("a") == (11, 1)
    assert text.error == (13, 1), "the list is still open there"


ERRORS: list[tuple[str, str, tuple[int, int]]] = [
    ("YAML", "a: 1\nb: [1\nc: 2\n", (3, 2)),
    ("JSON", '{"a": 1,\n  "b" 2}', (2, 7)),
    ("JSON that ends early", '{"a": 1', (1, 8)),
    ("a tab in YAML", "a:\n\tb: 1", (2, 1)),
    ("bytes that are no text", "a: \x00", (1, 1)),
    ("no error, after an empty line", "\n a: 1", (2, 2)),
    ("no error", "a: 1", (1, 1)),
]


@pytest.mark.parametrize(("text", "position"), [row[1:] for row in ERRORS], ids=[row[0] for row in ERRORS])
def test_where_a_text_stops_being_readable(text: str, position: tuple[int, int]) -> None:
    assert Text(text.encode()).error == position


DUPLICATES: list[tuple[str, list[tuple[int, int]]]] = [
    ("a: 1\nb: 2", []),
    ("a: 1\nb: {c: 1, c: 2, d: {c: 3}}\na: 2", [(2, 11), (3, 1)]),
    ('{"a": 1, "b": {"c": 1, "c": 2},\n "a": 2}', [(1, 24), (2, 2)]),
]


@pytest.mark.parametrize(("text", "positions"), DUPLICATES)
def test_where_keys_are_repeated(text: str, positions: list[tuple[int, int]]) -> None:
    assert Text(text.encode()).duplicates == positions


def test_the_fields_before_an_error_have_positions() -> None:
    assert Text(b"a: 1\nb: {c: 2\nd: ]").position("b.c") == (2, 5)


def test_the_nesting_is_not_limited() -> None:
    assert Text(("[" * 3000 + "]" * 3000).encode()).position("[0]" * 2999) == (1, 3000)
    assert Text(('{"a":' * 3000 + "1" + "}" * 3000).encode()).position(".".join("a" * 3000)) == (1, 3000 * 5 - 3)


def test_a_mapping_as_a_key_ends_the_scan() -> None:
    assert Text(b"a: 1\n? {b: 1}\n: 2\nc: 3").position("c") == (1, 1)
