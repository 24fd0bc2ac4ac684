"""Comma-separated values as Go reads them."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noxu.go.csv import BARE_QUOTE, QUOTE, read
from tests.rows import rows

RECORDS: list[tuple[str, str, list[list[str]]]] = [
    ("nothing", "", []),
    ("empty lines", "\n\r\n\n", []),
    ("a record without a line end", "a,b", [["a", "b"]]),
    ("line ends of two kinds", "a,b\r\nc\n", [["a", "b"], ["c"]]),
    ("empty fields", ",,\n", [["", "", ""]]),
    ("spaces, which belong to their fields", " a , b\n", [[" a ", " b"]]),
    ("what others take for a comment", "# a,b\n", [["# a", "b"]]),
    ("a quoted comma", 't,u,1,"g1,g2"\n', [["t", "u", "1", "g1,g2"]]),
    ("two quotes, which are one", '"a""b"\n', [['a"b']]),
    ("an empty quoted field", '"",x\n', [["", "x"]]),
    ("a quoted line end", '"a\r\nb",c\n', [["a\nb", "c"]]),
    ("a quoted field at the end of the text", 'a,"b"', [["a", "b"]]),
    ("a comma after a quoted field", '"a",\n', [["a", ""]]),
]


@rows(("text", "records"), [row[1:] for row in RECORDS], ids=[row[0] for row in RECORDS])
def test_records(text: str, records: list[list[str]]) -> None:
    assert read(text) == records


ERRORS: list[tuple[str, str, str]] = [
    ("a quote inside a field", 'a\nb,c"d\n', f"parse error on line 2, column 4: {BARE_QUOTE}"),
    ("a quote after a space", 'a, "b"\n', f"parse error on line 1, column 4: {BARE_QUOTE}"),
    ("text after a quoted field", '"a"b\n', f"parse error on line 1, column 3: {QUOTE}"),
    ("no closing quote", '"a\nb', f"record on line 1; parse error on line 2, column 2: {QUOTE}"),
]


@pytest.mark.parametrize(("text", "message"), [row[1:] for row in ERRORS], ids=[row[0] for row in ERRORS])
def test_what_is_malformed(text: str, message: str) -> None:
    with pytest.raises(ValueError, match="parse error") as caught:
        read(text)
    assert str(caught.value) == message


@pytest.mark.slow
@given(st.lists(st.lists(st.text(st.characters(exclude_characters="\r", codec="utf-8")), min_size=2), max_size=5))
def test_what_is_written_quoted_is_read_again(records: list[list[str]]) -> None:
    text = "".join(",".join('"' + field.replace('"', '""') + '"' for field in record) + "\n" for record in records)
    assert read(text) == records


@given(st.text(alphabet='a,"\n\r '))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(ValueError):
        assert all(record for record in read(text))
