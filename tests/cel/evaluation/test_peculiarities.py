"""Peculiarities of upstream's engine; each row was confirmed with the reference."""

from __future__ import annotations

from typing import Any

import pytest

from noxu.cel.kubernetes import rules
from noxu.cel.types.schema_types import decl_type
from noxu.cel.values.values import from_json_or_failed
from noxu.schema.structural import parse

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
    """The value of a rule, or its error, and its cost."""
    declared = decl_type(SCHEMA)
    assert declared is not None
    found = rules.expression(rule, declared)
    assert not found.error, found.error
    assert found.program is not None
    ran = found.program.evaluate({"self": from_json_or_failed(value, SCHEMA)})
    return ran.value if ran.error is None else ran.error, ran.cost


ROWS: list[tuple[str, str, Any, tuple[object, int]]] = [
    ("an empty list is sorted by a key", "self.names.sortBy(n, n) == self.names", {"names": []}, (True, 18)),
    ("searching a constant list costs nothing", "self.names[0] in [dyn(1), dyn('a')]", {"names": ["a"]}, (True, 3)),
    (
        "bytes are no key",
        "{self.bytes: 1}.size() == 1",
        {"bytes": "aGk="},
        ("internal error: runtime error: hash of unhashable type types.Bytes", 2),
    ),
    ("a list as a key equals only itself", "{self.names: 1} == {self.names: 1}", {"names": ["a"]}, (False, 65)),
    ("a null cannot be joined", "[dyn('a'), dyn(null)].join() == ''", {}, ("join: invalid input: 0", 1)),
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


@pytest.mark.parametrize(("rule", "value", "expected"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_a_peculiarity(rule: str, value: Any, expected: tuple[object, int]) -> None:
    assert outcome(rule, value) == expected
