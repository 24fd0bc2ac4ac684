"""Estimated costs: at least and at most."""

from __future__ import annotations

from typing import Any, Final

from noxu.cel.checking.environment import KUBERNETES
from noxu.cel.program import Program
from noxu.cel.types import types
from noxu.cel.types.schema_types import decl_type
from noxu.cel.values.values import from_json_or_failed
from noxu.schema.structural import parse
from tests.rows import rows

MAX = 2**64 - 1
NAME = {"type": "string", "maxLength": 10}  # at most 40 bytes
SCHEMA: Final = parse(
    {
        "type": "object",
        "properties": {
            "i": {"type": "integer"},
            "b": {"type": "boolean"},
            "name": NAME,
            "long": {"type": "string"},
            "names": {"type": "array", "items": NAME, "maxItems": 5},
            "numbers": {"type": "array", "items": {"type": "integer"}, "maxItems": 7},
            "labels": {"type": "object", "additionalProperties": NAME, "maxProperties": 3},
            "items": {"type": "array", "maxItems": 100, "items": {"type": "object", "properties": {"name": NAME}}},
        },
    }
)
DECLARED: Final = decl_type(SCHEMA)


OBJECT: Final[dict[str, Any]] = {
    "i": 1, "b": True, "name": "ab", "long": "abc", "names": ["a", "b"], "numbers": [1, 2],
    "labels": {"a": "b"}, "items": [{"name": "a"}],
}  # fmt: skip


def program(text: str) -> Program:
    assert DECLARED is not None
    return Program(text, KUBERNETES.extend({"self": DECLARED.named("selfType1")}))


def estimate(text: str) -> tuple[int, int]:
    found = program(text).estimate(DECLARED)
    return found.low, found.high


ROWS: list[tuple[str, str, tuple[int, int]]] = [
    ("a literal", "1", (0, 0)),
    ("an identifier", "self", (1, 1)),
    ("a selection", "self.i", (2, 2)),
    ("has", "has(self.i)", (1, 1)),
    ("a list", "[1, 2]", (10, 10)),
    ("a map", "{'a': 1}", (30, 30)),
    ("a message", "google.protobuf.Int32Value{value: 1}", (40, 40)),
    ("a call", "self.i + 1", (3, 3)),
    ("a second operand that may be skipped", "self.b && self.i > 0", (2, 5)),
    ("the cheaper and the dearer branch", "self.b ? self.i : 1", (2, 4)),
    ("a comparison of a text of known size", "self.name == 'abcde'", (3, 3)),
    ("a comparison reads the shorter text", "self.name < self.long", (5, 8)),
    ("a text of unknown size", "self.long == self.long", (5, 4 + 314573)),
    ("a prefix", "self.name.startsWith('a')", (3, 3)),
    ("a part", "self.name.contains('abcdefghijkl')", (2, 2 + 4 * 2)),
    ("a pattern", "self.name.matches('abcd')", (2 + 1, 2 + 5)),
    ("a pattern that is data", "self.name.matches(self.name)", (4, 4 + 5 * 10)),
    ("an addition of texts", "(self.name + 'abc').size() > 0", (2 + 1 + 2, 2 + 5 + 2)),
    ("all", "self.numbers.all(x, x > 0)", (3, 3 + 7 * 5)),
    ("exists", "self.numbers.exists(x, x > 0)", (3, 3 + 7 * 6)),
    ("exists_one", "self.numbers.exists_one(x, x > 0)", (4, 4 + 7 * 4)),
    ("map", "self.numbers.map(x, x + 1)", (13, 13 + 7 * 14)),
    (
        "a macro in a macro",
        "self.items.all(i, self.items.all(j, i.name != j.name))",
        (3, 3 + 100 * (2 + 1 + 3 + 100 * 11)),
    ),
    ("the size of an element", "self.names.all(n, n.startsWith(n))", (3, 3 + 5 * (4 + 5))),
    ("the keys of a map", "self.labels.all(k, k == 'abcdefghijkl')", (3, 3 + 3 * 4)),
    ("the values of a map", "self.labels.all(k, self.labels[k] == 'abcdefghijkl')", (3, 3 + 3 * 9)),
    ("a sum of a list", "self.numbers.sum() > 0", (3, 10)),
    ("the join of a list", "self.names.join(',') == ''", (2, 2 + 21)),
    ("a list that is searched", "self.i in self.numbers", (4, 4 + 7)),
    ("sorting", "self.numbers.sort() == []", (2 + 11 + 10, 2 + 2 * 49 + 11 + 10)),
    ("distinct elements", "self.numbers.distinct().size() > 0", (2 + 11 + 2, 2 + 2 * 49 + 11 + 2)),
    ("sets", "sets.contains(self.numbers, self.numbers)", (5, 5 + 49)),
    ("a quantity", "quantity(self.name).isInteger()", (3, 7)),
    ("an address", "ip('1.2.3.4').family() == 4", (3, 3)),
    ("a check of a format", "format.uuid().validate(self.name).hasValue()", (4, 4 + 4 * 32)),
]


@rows(("text", "expected"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_an_estimate(text: str, expected: tuple[int, int]) -> None:
    assert estimate(text) == expected


@rows("text", [row[1] for row in ROWS], ids=[row[0] for row in ROWS])
def test_an_evaluation_costs_no_more_than_estimated(text: str) -> None:
    outcome = program(text).evaluate({"self": from_json_or_failed(OBJECT, SCHEMA)})
    assert outcome.cost <= estimate(text)[1]


def test_estimates_saturate() -> None:
    """A dyn may be of any size."""
    nested = Program("d.all(x, x.all(y, y.size() > 0))", KUBERNETES.extend({"d": types.DYN}))
    assert nested.estimate(None) == (2, MAX)
