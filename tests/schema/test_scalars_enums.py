"""Which values are members of an enum, by Go's conversions."""

from __future__ import annotations

from noxu.schema.scalars import membership
from noxu.values import Json
from tests.rows import rows

ROWS: list[tuple[str, list[Json], Json, bool]] = [
    ("a string", ["a", "b"], "b", True),
    ("another string", ["a"], "b", False),
    ("case matters", ["a"], "A", False),
    ("a boolean", [True], True, True),
    ("true is not 1", [1], True, False),
    ("1 is not true", [True], 1, False),
    ("an integer", [1, 2], 2, True),
    ("another integer", [1], 2, False),
    ("an integer for a float", [1.0], 1, True),
    ("an integer for another float", [1.5], 1, False),
    ("a float", [1.5], 1.5, True),
    ("a float is truncated to an integer", [1], 1.7, True),
    ("a negative one, too", [-1], -1.7, True),
    ("a float is not converted to a string", ["A"], 65.0, False),
    ("an integer is converted to a character", ["A"], 65, True),
    ("to the replacement character if there is none", ["\ufffd"], -1, True),
    ("half a surrogate pair is none", ["\ufffd"], 0xD800, True),
    ("a string is not converted to a number", [1], "1", False),
    ("null is never a member", [None], None, False),
    ("a list", [[1, "a"]], [1, "a"], True),
    ("a list with a float", [[1]], [1.0], False),
    ("an object in another order", [{"a": 1, "b": 2}], {"b": 2, "a": 1}, True),
    ("an object with another value", [{"a": 1}], {"a": 2}, False),
    ("an empty enum", [], "a", False),
]


@rows(("members", "value", "is_member"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_membership(members: list[Json], value: Json, is_member: bool) -> None:
    assert membership(type(value), members)(value) is is_member
