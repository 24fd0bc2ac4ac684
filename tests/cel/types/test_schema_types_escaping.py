"""Names of fields as identifiers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noxu.cel.types.schema_types import escape, unescape
from tests.rows import rows

ROWS = [
    ("name", "name"),
    ("a1", "a1"),
    ("_a", "_a"),
    ("a_b", "a_b"),
    ("a__b", "a__underscores__b"),
    ("a___b", "a__underscores___b"),
    ("a.b", "a__dot__b"),
    ("a-b", "a__dash__b"),
    ("a/b", "a__slash__b"),
    ("-", "__dash__"),
    ("for", "__for__"),
    ("namespace", "__namespace__"),
    ("a.b-c/d__e", "a__dot__b__dash__c__slash__d__underscores__e"),
]


@rows(("name", "identifier"), ROWS, ids=[row[0] for row in ROWS])
def test_a_name_is_escaped(name: str, identifier: str) -> None:
    assert escape(name) == identifier
    assert unescape(identifier) == name


@pytest.mark.parametrize("name", ["", "1a", "a b", "a$", "é"])
def test_a_name_cannot_be_escaped(name: str) -> None:
    assert escape(name) is None


@pytest.mark.parametrize("identifier", ["__x__", "a__nope__b", "a__for__", "__for__a"])
def test_an_identifier_is_not_escaped_correctly(identifier: str) -> None:
    assert unescape(identifier) is None


@given(st.text("ab_.-/019", max_size=12))
def test_unescaping_reverts_escaping(name: str) -> None:
    identifier = escape(name)
    assert identifier is None or unescape(identifier) == name
