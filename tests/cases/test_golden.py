"""What came is written in the place where it is expected, and everything around it stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from noxu.cases import golden, running
from noxu.cases.golden import NotWritten, replaced
from tests.rows import rows

ROWS = [
    ("on a line", "a: {b: 1}  # why\nc: 2\n", ["a"], {"b": 3}, "a: {b: 3}  # why\nc: 2\n"),
    ("a block", "a:\n  b: 1\n# next\nc: 2\n", ["a"], {"b": 3, "d": [1]}, "a:\n  b: 3\n  d:\n  - 1\n# next\nc: 2\n"),
    ("a block within a list", "- x: 1\n  a:\n    b: 1\n\n- y\n", [0, "a"], {"b": {"c": 2}}, "- x: 1\n  a:\n    b:\n      c: 2\n\n- y\n"),
    ("a scalar", "a: ''\nc: 2\n", ["a"], {"b": "yes"}, "a: {b: 'yes'}\nc: 2\n"),
    ("an emptied block", "a:\n  b: 1\nc: 2\n", ["a"], {}, "a:\n  {}\nc: 2\n"),
    ("the end of a file without a line break", "a:\n  b: 1", ["a"], {"b": 2}, "a:\n  b: 2"),
]  # fmt: skip


@rows("what, text, path, value, written", ROWS, ids=[row[0] for row in ROWS])
def test_a_value_is_replaced(what: str, text: str, path: list, value: dict, written: str) -> None:
    assert replaced(text, [(path, value)]) == written


@pytest.mark.parametrize("path", ["a", "b"])
def test_a_shared_value_is_not_replaced(path: str) -> None:
    with pytest.raises(NotWritten, match="shares its value by an anchor"):
        replaced("a: &x {c: 1}\nb: *x\n", [([path], {})])


CASES = """apiVersion: noxu.dev/v1
kind: Test
cases:
- name: a file, and a value
  object: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {b: c}}
  expect: {stored: GOLDEN}   # kept
"""


@pytest.mark.parametrize(
    "before", ["", "# what it is\n# for\n{apiVersion: v1, kind: ConfigMap, metadata: {name: b}}\n"]
)
def test_a_golden_file_is_written_below_its_comments(before: str, tmp_path: Path) -> None:
    path, file = tmp_path / "a_test.yaml", tmp_path / "golden" / "a.yaml"
    path.write_text(CASES.replace("GOLDEN", "golden/a.yaml"))
    if before:
        file.parent.mkdir()
        file.write_text(before)
    [outcome] = running.run_paths([path], updates=True)
    assert golden.update(outcome) == [file]
    [head, _, body] = file.read_text().rpartition("for\n")
    assert head == ("# what it is\n# " if before else "")
    assert body == "apiVersion: v1\ndata:\n  b: c\nkind: ConfigMap\nmetadata:\n  name: a\n  namespace: default\n"
    assert [each.verdict for each in running.run_paths([path])[0].outcomes] == ["passed"]


def test_a_value_in_a_file_of_cases_is_written(tmp_path: Path) -> None:
    path = tmp_path / "a_test.yaml"
    path.write_text(CASES.replace("GOLDEN", "{data: {b: d}}"))
    assert golden.update(running.run_paths([path])[0]) == [path]
    assert path.read_text() == CASES.replace("GOLDEN", "{data: {b: c}}")
