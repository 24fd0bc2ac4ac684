"""Evaluation: which errors are absorbed, what is evaluated in which order, and how it is limited."""

from __future__ import annotations

from typing import Any

from noxu.cel.checking.environment import KUBERNETES
from noxu.cel.errors import TimeExceeded
from noxu.cel.program import Program
from noxu.cel.values.values import ABSENT, FailedConversion, UntypedMap
from noxu.cpu_budget import CHECK_INTERVAL, CURRENT
from tests.cel.evaluate import Error, evaluate, program
from tests.rows import rows

ZERO = Error("division by zero")
ROWS: list[tuple[str, str, Any]] = [
    ("or absorbs an error on the right", "true || 1 / 0 == 1", True),
    ("and on the left", "1 / 0 == 1 || true", True),
    ("but not if the other is false", "1 / 0 == 1 || false", ZERO),
    ("and absorbs one as well", "1 / 0 == 1 && false", False),
    ("the first error counts", "1 / 0 == 1 && d.a", ZERO),
    ("an operand that is no boolean", "dyn(1) || false", Error("no such overload")),
    ("and one that does not matter", "dyn(1) || true", True),
    ("all absorbs errors", "[0, 1].all(x, 1 / x > 1)", False),
    ("unless all others hold", "[0, 1].all(x, 1 / x > 0)", ZERO),
    ("exists absorbs errors", "[0, 1].exists(x, 1 / x == 1)", True),
    ("exists_one does not", "[0, 1].exists_one(x, 1 / x == 1)", ZERO),
    ("nor does map", "[0].map(x, 1 / x)", ZERO),
    ("a conditional evaluates one branch", "true ? 1 : 1 / 0", 1),
    ("an error in the condition", "1 / 0 == 1 ? 1 : 2", ZERO),
    ("a condition that is no boolean", "dyn(1) ? 1 : 2", Error("no such overload")),
    ("equality of errors is the first", "1 / 0 == 1 % 0", ZERO),
    ("an absent key", "{'a': 1}.b", Error("no such key: b")),
    ("has of an absent key", "has({'a': 1}.b)", False),
    ("has of a value", "has({'a': null}.a)", True),
    ("has below an absent key", "has(d.b.c)", Error("no such key: b")),
    ("an index beyond the end", "[1][1]", Error("index out of bounds: 1")),
    ("a negative index", "[1][-1]", Error("index out of bounds: -1")),
    ("a double as an index", "dyn([1, 2])[1.0]", 2),
    ("a double that is none", "dyn([1])[0.5]", Error("unsupported index value 0.5 in list")),
    ("a text as an index", "dyn([1])['a']", Error("unsupported index type 'string' in list")),
    ("an absent variable", "i + 0", Error("no such attribute(s): i")),
    ("a variable that cannot be converted", "s", Error("broken")),
    ("an optional selection of nothing", "d.?x.y.hasValue()", False),
    ("an optional selection of something", "d.?a.b.value()", 1),
    ("an optional index", "l[?9].orValue(7)", 7),
    ("an error in an optional index", "l[?1 / 0]", ZERO),
    ("orValue does not evaluate its argument", "optional.of(1).orValue(1 / 0)", 1),
    ("or of optionals", "optional.none().or(optional.of(2)).value()", 2),
    ("the value of an empty optional", "optional.none().value()", Error("optional.none() dereference")),
    ("has of an optional", "has(d.?x.y)", False),
    ("an optional element that is empty", "[1, ?optional.none()].size()", 1),
    ("an optional entry that is empty", "{?'a': optional.none()}.size()", 0),
    ("an optional entry removes one before it", "{'a': 1, ?'a': optional.none()}.size()", 0),
    ("a macro over a map runs over keys", "{'a': 1}.map(k, k) == ['a']", True),
    ("with two variables over both", "{'a': 1}.transformList(k, v, v) == [1]", True),
    ("and over indices of a list", "['a'].transformMap(i, v, v)[0]", "a"),
    ("a key inserted twice", "['a', 'a'].transformMapEntry(i, v, {v: i})", Error("insert failed: key a already exists")),
    ("a macro over a scalar", "dyn(1).all(x, true)", Error("got 'types.Int', expected iterable type")),
    ("with two variables", "dyn(1).all(x, y, true)", Error("unsupported comprehension range type: types.Int")),
    ("variables of macros hide others", "[1].all(l, l == 1)", True),
    ("a name after a dot is not hidden", "[1].all(l, .l == [1, 2, 3])", True),
    ("a comparison across types", "1 < 1.5 && 1u < 2 && 2.0 >= 2u", True),
    ("NaN", "double('NaN') < 1.0", Error("NaN values cannot be ordered")),
    ("addition overflows", "9223372036854775807 + 1", Error("integer overflow")),
    ("subtraction of unsigned numbers overflows", "1u - 2u", Error("unsigned integer overflow")),
    ("negation overflows", "-(-9223372036854775808)", Error("integer overflow")),
    ("a timestamp and a duration", "timestamp(0) + duration('1s') == timestamp(1)", True),
    ("a difference of timestamps", "timestamp(1) - timestamp(0) == duration('1s')", True),
    ("a boolean is not negated by a minus", "-dyn(true)", Error("no such overload")),
]  # fmt: skip


@rows(("text", "expected"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_an_evaluation(text: str, expected: Any) -> None:
    found = evaluate(text, d=UntypedMap({"a": {"b": 1}}), i=ABSENT, s=FailedConversion("broken"))
    assert (type(found), found) == (type(expected), expected)


COSTS = [
    ("a literal", "1", 0),
    ("a variable", "i", 1),
    ("a selection", "d.a.b", 3),
    ("has", "has(d.a.b)", 2),
    ("an index", "l[0]", 2),
    ("an index that is an attribute itself", "l[d.n]", 3),
    ("a conditional and the attribute that it chooses", "i > 0 ? d.a.b : i", 2 + 2),
    ("a selection from a conditional", "(i > 0 ? l : l)[0]", 2 + 1),
    ("a call", "i + 1", 2),
    ("a failing call", "i / 0", 2),
    ("logic", "i > 0 && i < 9", 4),
    ("logic that is decided", "i < 0 && i < 9", 2),
    ("a list", "[i]", 11),
    ("a constant list", "[1]", 0),
    ("a map", "{'a': i}", 31),
    ("all over three elements", "l.all(x, x > 0)", 1 + 3 * 5 + 1),
    ("all that ends early", "l.all(x, x > 1)", 1 + 5 + 2 + 1),
    ("exists that ends early", "l.exists(x, x > 0)", 1 + 6 + 3 + 1),
    ("map", "l.map(x, x)", 1 + 3 * (1 + 1 + 10 + 1) + 1),
    ("membership in a constant list", "i in [1, 2, 3]", 1),
    ("membership in a list", "i in l", 2 + 3),
    ("an optional selection of nothing", "d.?x", 1),
    ("an optional selection of something", "d.?a", 2),
]


@rows(
    ("text", "cost"),
    [row[1:] for row in COSTS],
    ids=[row[0] for row in COSTS],
)
def test_an_evaluation_costs(text: str, cost: int) -> None:
    variables = {"d": UntypedMap({"a": {"b": 1}, "n": 0}), "l": [1, 2, 3], "i": 3}
    assert program(text).evaluate(variables).cost == cost


def test_an_evaluation_ends_at_its_limit() -> None:
    expression, numbers = program("l.all(x, x >= 0)"), {"l": list(range(1000))}
    outcome = expression.evaluate(numbers, 100)
    assert outcome.error == "operation cancelled: actual cost limit exceeded"
    assert outcome.cost == 101
    assert expression.evaluate(numbers, 5002) == (True, None, 5002)


def test_a_call_that_exceeds_the_limit_is_not_begun() -> None:
    outcome = program("lists.range(1000).distinct()").evaluate({}, 10_000)
    assert outcome.error == "operation cancelled: actual cost limit exceeded"
    assert outcome.cost > 2_000_000


class Budget:
    """Counts the calls; interrupts at the given check."""

    def __init__(self, last: int = 10**9) -> None:
        self.checks: list[int] = []
        self.last = last

    def begin(self) -> None:
        raise AssertionError

    def check(self, upcoming_cost: int = 0) -> None:
        assert CURRENT.get() is self
        self.checks.append(upcoming_cost)
        if len(self.checks) == self.last:
            raise TimeExceeded

    def checkpoint(self) -> None:
        raise AssertionError

    def spend(self, units: int) -> None:
        raise AssertionError

    def require_imported(self, module: str, name: str) -> None:
        raise AssertionError


def test_the_cpu_budget_is_checked_at_intervals() -> None:
    budget = Budget()
    cost = program("l.all(x, x >= 0)").evaluate({"l": list(range(1000))}, cpu_budget=budget).cost
    assert len(budget.checks) == cost // (CHECK_INTERVAL + 1)
    assert set(budget.checks) == {0}
    assert CURRENT.get() is None


def test_the_cpu_budget_is_checked_before_a_call_that_costs_much() -> None:
    budget = Budget()
    program("l.distinct()").evaluate({"l": [1, 2, 3]}, cpu_budget=budget)
    assert budget.checks == [2 * 9 + 11]


def test_the_cpu_budget_may_interrupt() -> None:
    outcome = program("l.all(x, x >= 0)").evaluate({"l": list(range(1000))}, cpu_budget=Budget(last=3))
    assert outcome == (None, "operation interrupted", 3 * (CHECK_INTERVAL + 1))


def test_a_comprehension_does_not_change_its_initial_list() -> None:
    expression = program("[l.map(x, x), l.map(x, x)]")
    first = expression.evaluate({"l": [1]}).value
    assert first == expression.evaluate({"l": [1]}).value == [[1], [1]]


def test_deep_expressions_are_evaluated() -> None:
    assert Program("1" + " + 1" * 240, KUBERNETES).evaluate({}).value == 241
    assert Program("[" * 70 + "]" * 70, KUBERNETES).evaluate({}).error is None
