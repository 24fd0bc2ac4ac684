"""Corners of the language, as upstream's engine has them; each row was asked of the reference."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.cel import rules
from apiserver.cel.schema_types import decl_type
from apiserver.cel.values import from_json_or_failed
from apiserver.schema.structural import parse

SCHEMA = parse(
    {
        "type": "object",
        "properties": {
            "names": {"type": "array", "items": {"type": "string", "maxLength": 9}, "maxItems": 9},
            "bytes": {"type": "string", "format": "byte", "maxLength": 9},
            "day": {"type": "string", "format": "date"},
        },
    }
)


def outcome(rule: str, value: Any) -> tuple[object, int]:
    """What a rule gives (an error as text), and what it costs."""
    declared = decl_type(SCHEMA)
    assert declared is not None
    found = rules.expression(rule, declared)
    assert not found.error, found.error
    assert found.program is not None
    ran = found.program.evaluate({"self": from_json_or_failed(value, SCHEMA)})
    return ran.value if ran.error is None else ran.error, ran.cost


ROWS: list[tuple[str, str, Any, tuple[object, int]]] = [
    ("an empty list is sorted by a key", "self.names.sortBy(n, n) == self.names", {"names": []}, (True, 18)),
    ("a constant list is searched for nothing", "self.names[0] in [dyn(1), dyn('a')]", {"names": ["a"]}, (True, 3)),
    (
        "bytes are no key",
        "{self.bytes: 1}.size() == 1",
        {"bytes": "aGk="},
        ("internal error: runtime error: hash of unhashable type types.Bytes", 2),
    ),
    ("a list as a key is itself only", "{self.names: 1} == {self.names: 1}", {"names": ["a"]}, (False, 65)),
    ("null has no text to join", "[dyn('a'), dyn(null)].join() == ''", {}, ("join: invalid input: 0", 1)),
    (
        "a date with a time of day",
        "self.day > timestamp(0)",
        {"day": "2024-01-01T00:00:00Z"},
        (
            'Invalid date formatted string 2024-01-01T00:00:00Z: parsing time "2024-01-01T00:00:00Z": '
            'extra text: "T00:00:00Z"',
            3,
        ),
    ),
]


@pytest.mark.parametrize(("what", "rule", "value", "expected"), ROWS, ids=[row[0] for row in ROWS])
def test_corner(what: str, rule: str, value: Any, expected: tuple[object, int]) -> None:
    assert outcome(rule, value) == expected
