"""Which rules become Python functions, what these functions look like, and when they hand over to the interpreter.

That they agree with the interpreter is a law in tests/properties/test_cel.py.
"""

from __future__ import annotations

import math
from typing import Any, Final

import pytest

from noxu.cel.checking.environment import KUBERNETES
from noxu.cel.errors import CostExceeded
from noxu.cel.generation.codegen import FALLBACK_ERRORS, GeneratedRule
from noxu.cel.generation.writer import SourceWriter
from noxu.cel.program import Program
from noxu.cel.types.schema_types import decl_type
from noxu.schema.structural import parse
from tests.rows import rows

STRING = {"type": "string"}
INTEGER = {"type": "integer"}
SCHEMA: Final = parse(
    {
        "type": "object",
        "properties": {
            "i": INTEGER,
            "n": {"type": "number"},
            "b": {"type": "boolean"},
            "s": STRING,
            "a-b": STRING,
            "port": {"x-kubernetes-int-or-string": True},
            "time": {**STRING, "format": "date-time"},
            "numbers": {"type": "array", "items": INTEGER},
            "names": {"type": "array", "items": STRING},
            "items": {"type": "array", "items": {"type": "object", "properties": {"name": STRING, "weight": INTEGER}}},
            "labels": {"type": "object", "additionalProperties": STRING},
            "o": {"type": "object", "properties": {"x": INTEGER}},
            "unknown": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        },
    }
)
DECLARED: Final = decl_type(SCHEMA)
ENOUGH = 1_000_000


def program(rule: str) -> Program:
    assert DECLARED is not None
    self_type = DECLARED.named("selfType1")
    return Program(rule, KUBERNETES.extend({"self": self_type, "oldSelf": self_type}))


def generated(rule: str) -> GeneratedRule:
    found = program(rule).generate(SCHEMA, old_self=True)
    assert found is not None, rule
    return found


def no_limit(cost: int) -> int:
    raise AssertionError(cost)


HELD: list[tuple[str, str, dict[str, Any], int]] = [
    ("a comparison", "self.i > 0", {"i": 1}, 3),
    ("an escaped field", "self.a__dash__b == 'x'", {"a-b": "x"}, 3),
    ("an integer where a number is expected", "self.n > 1.5", {"n": 2}, 3),
    ("presence", "has(self.i) && self.i > 0", {"i": 1}, 4),
    ("absence", "!has(self.i) || self.i > 0", {}, 2),
    ("int or string", "self.port == 80 || self.port == 'http'", {"port": "http"}, 6),
    ("a format", "self.time > timestamp('2020-01-01T00:00:00Z')", {"time": "2024-01-01T00:00:00Z"}, 3),
    ("an index", "self.numbers[1] == 2", {"numbers": [1, 2]}, 4),
    ("a key", "self.labels['a'] == 'b'", {"labels": {"a": "b"}}, 4),
    ("a constant list", "self.s in ['a', 'b']", {"s": "a"}, 2),
    ("a list", "self.i in self.numbers", {"i": 2, "numbers": [1, 2]}, 6),
    ("a key of a map", "'a' in self.labels", {"labels": {"a": "b"}}, 3),
    ("a pattern", "self.s.matches('^a')", {"s": "abc"}, 3),
    ("a function of a library", "quantity(self.s).isInteger()", {"s": "1Gi"}, 4),
    ("a conditional", "(self.b ? self.i : 0) > 0", {"b": True, "i": 1}, 4),
    ("all", "self.numbers.all(x, x > 0)", {"numbers": [1, 2]}, 13),
    ("all of nothing", "self.numbers.all(x, x > 0)", {"numbers": []}, 3),
    ("exists", "self.numbers.exists(x, x > 1)", {"numbers": [1, 2, 3]}, 2 + 6 + 6 + 3 + 1),
    ("exists_one", "self.numbers.exists_one(x, x > 1)", {"numbers": [1, 2]}, 2 + 2 + 4 + 2),
    ("filter and map", "self.items.filter(i, i.weight > 1).map(i, i.name) == ['b']", {"items": [{"name": "a", "weight": 1}, {"name": "b", "weight": 2}]}, 2 + 2 * 3 + 13 + 1 + 14 + 1 + 1),
    ("two variables", "self.labels.all(k, v, k == v)", {"labels": {"a": "a"}}, 3 + 6),
    ("an old value", "self.i >= oldSelf.i", {"i": 1}, 5),
]  # fmt: skip


@rows(("rule", "value", "cost"), [row[1:] for row in HELD], ids=[row[0] for row in HELD])
def test_a_rule_that_holds_returns_its_cost(rule: str, value: dict[str, Any], cost: int) -> None:
    assert generated(rule)(value, value, ENOUGH, no_limit) == cost


def test_a_rule_that_does_not_hold_returns_its_cost_inverted() -> None:
    assert generated("self.i > 0")({"i": 0}, None, ENOUGH, no_limit) == ~3
    assert generated("self.numbers.all(x, x > 0)")({"numbers": [0, 1]}, None, ENOUGH, no_limit) == ~(2 + 5 + 2 + 1)


UNSUPPORTED = [
    ("an optional selection", "self.?s.hasValue()"),
    ("an optional index", "self.numbers[?0].orValue(1) > 0"),
    ("an optional old value", "oldSelf.?i.orValue(1) > 0"),
    ("transformMap", "self.numbers.transformMap(i, x, x).size() > 0"),
    ("sortBy", "self.numbers.sortBy(x, x).size() > 0"),
    ("an optional element", "[?self.?i].size() > 0"),
    ("a selection from a conditional", "(self.b ? self.o : self.o).x > 0"),
    ("a message", "google.protobuf.Int32Value{value: self.i} == 1"),
    ("a deep expression", "self.i" + " + 1" * 50 + " > 0"),
]


@pytest.mark.parametrize("rule", [row[1] for row in UNSUPPORTED], ids=[row[0] for row in UNSUPPORTED])
def test_a_rule_is_not_generated(rule: str) -> None:
    assert program(rule).generate(SCHEMA, old_self=True) is None


def test_a_rule_with_an_unsupported_variable_is_not_generated() -> None:
    assert program("self.i >= oldSelf.i").generate(SCHEMA, old_self=False) is None


def test_nested_macros_are_generated_up_to_a_depth() -> None:
    def nested(depth: int) -> str:
        rule = "true"
        for n in range(depth):
            rule = f"self.numbers.all(x{n}, {rule})"
        return rule

    assert program(nested(5)).generate(SCHEMA, old_self=True) is not None
    assert program(nested(30)).generate(SCHEMA, old_self=True) is None


FALLBACKS: list[tuple[str, str, Any]] = [
    ("an absent field", "self.i > 0", {}),
    ("a null", "self.i > 0", {"i": None}),
    ("a value of another type", "self.i > 0", {"i": "1"}),
    ("a boolean is no integer", "self.i > 0", {"i": True}),
    ("an object that is none", "self.i > 0", []),
    ("a number that is none", "self.n > 0.0", {"n": "1"}),
    ("NaN in a sum", "self.n + self.n > 0.0", {"n": math.nan}),
    ("an overflow", "self.i + 1 > 0", {"i": 2**63 - 1}),
    ("a division by zero", "1 / self.i > 0", {"i": 0}),
    ("an index beyond the end", "self.numbers[1] > 0", {"numbers": [1]}),
    ("a negative index", "self.numbers[self.i] > 0", {"numbers": [1], "i": -1}),
    ("an absent key", "self.labels['a'] == 'b'", {"labels": {}}),
    ("a null in a map", "has(self.labels.a)", {"labels": {"a": None}}),
    ("an element of another type", "self.numbers.all(x, x > 0)", {"numbers": ["1"]}),
    ("a list that is searched with such an element", "1 in self.numbers", {"numbers": [1, True]}),
    ("a time that is none", "self.time > timestamp('2020-01-01T00:00:00Z')", {"time": "x"}),
    ("an error of a function", "quantity(self.s).isInteger()", {"s": "x"}),
    ("an int-or-string of another type", "self.port == 80", {"port": 1.5}),
]


@rows(("rule", "value"), [row[1:] for row in FALLBACKS], ids=[row[0] for row in FALLBACKS])
def test_a_rule_hands_over_to_the_interpreter(rule: str, value: Any) -> None:
    with pytest.raises(FALLBACK_ERRORS):
        generated(rule)(value, value, ENOUGH, no_limit)


def test_a_rule_asks_for_a_new_limit() -> None:
    asked: list[int] = []

    def more(cost: int) -> int:
        asked.append(cost)
        return cost + 100

    numbers = {"numbers": list(range(100))}
    cost = generated("self.numbers.all(x, x >= 0)")(numbers, None, 100, more)
    assert cost == 2 + 100 * 5 + 1
    assert asked == [102, 207, 312, 417]


def test_a_call_that_costs_too_much_is_not_begun() -> None:
    def refuse(cost: int) -> int:
        raise CostExceeded

    with pytest.raises(CostExceeded):
        generated("self.numbers.distinct().size() > 0")({"numbers": [1] * 100}, None, 10_000, refuse)


# The examples in comments of the generation package
SOURCES = {
    "self.i <= self.o.x": """
def rule(s, o, limit, more):
 t1 = s
 if t1.__class__ is not dict: raise Fallback
 t2 = t1['i']
 if t2.__class__ is not int: raise Fallback
 t3 = t1['o']
 if t3.__class__ is not dict: raise Fallback
 t4 = t3['x']
 if t4.__class__ is not int: raise Fallback
 return 6 if (t2 <= t4) else -7
""",
    "has(self.i) && self.i > 3": """
def rule(s, o, limit, more):
 c = 0
 t1 = s
 if t1.__class__ is not dict: raise Fallback
 t2 = t1.get('i')
 t3 = t2 is not None
 c += 1
 if t3:
  if t2.__class__ is not int: raise Fallback
 t4 = t3
 if t4:
  if not t3: raise Fallback
  t4 = (t2 > (3))
  c += 3
 return c if t4 else ~c
""",
    "self.items.all(i, i.weight >= 0)": """
def rule(s, o, limit, more):
 c = 0
 t1 = s
 if t1.__class__ is not dict: raise Fallback
 t2 = t1['items']
 if t2.__class__ is not list: raise Fallback
 t3 = True
 c += 2
 for t4 in t2:
  if not t3:
   c += 2; break
  if t4.__class__ is not dict: raise Fallback
  t6 = t4['weight']
  if t6.__class__ is not int: raise Fallback
  t3 = (t6 >= (0))
  c += 6
  if c > limit: limit = more(c)
 c += 1
 return c if t3 else ~c
""",
}


@pytest.mark.parametrize("rule", list(SOURCES))
def test_the_source_of_a_rule(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = []
    write = SourceWriter.function

    def remember(self: SourceWriter, header: str) -> str:
        sources.append(write(self, header))
        return sources[-1]

    monkeypatch.setattr(SourceWriter, "function", remember)
    generated(rule)
    assert sources == [SOURCES[rule].strip()]


def test_literals_of_a_rule_cannot_leave_their_quotes() -> None:
    rule = """self.s == '\\'"); raise SystemExit(r"\\n'"""
    assert generated(rule)({"s": '\'"); raise SystemExit(r"\n'}, None, ENOUGH, no_limit) > 0
