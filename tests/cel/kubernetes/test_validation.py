"""Rules of a schema, evaluated on values: their errors, warnings and costs."""

from __future__ import annotations

from typing import Any

import pytest

from noxu.cel.errors import TimeExceeded
from noxu.cel.kubernetes.validation import BUDGET, RuleValidator, ValidationResult
from noxu.schema.correlation import Correlated
from noxu.schema.structural import parse
from tests.rows import rows

INTEGER = {"type": "integer"}


def ruled(schema: dict[str, Any], *rules: str | dict[str, Any]) -> dict[str, Any]:
    given = [{"rule": rule} if isinstance(rule, str) else rule for rule in rules]
    return {**schema, "x-kubernetes-validations": given}


def validate(schema: dict[str, Any], new: Any, old: Any = None, **more: Any) -> ValidationResult:
    structural = parse(schema)
    if old is not None:
        more.setdefault("correlation", Correlated(new, old, structural))
    return RuleValidator(structural, root=False).validate(new, old, **more)


def errors(schema: dict[str, Any], new: Any, old: Any = None, **more: Any) -> list[str]:
    return list(map(str, validate(schema, new, old, **more).errors))


def object_of(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


I = object_of(i=INTEGER)  # noqa: E741 - an object with a field i
FAILED: list[tuple[str, dict[str, Any], Any, list[str]]] = [
    ("a rule that holds", ruled(I, "self.i > 0"), {"i": 1}, []),
    ("a rule of an object", ruled(I, "self.i > 0"), {"i": 0}, ["<nil>: Invalid value: failed rule: self.i > 0"]),
    ("a rule of a scalar prints the value", object_of(i=ruled(INTEGER, "self > 0")), {"i": 0}, ["i: Invalid value: 0: failed rule: self > 0"]),
    ("every rule is evaluated", ruled(I, "self.i > 0", "self.i > 1"), {"i": 0}, ["<nil>: Invalid value: failed rule: self.i > 0", "<nil>: Invalid value: failed rule: self.i > 1"]),
    ("rules above come first", ruled(object_of(i=ruled(INTEGER, "self > 0")), "self.i > 1"), {"i": 0}, ["<nil>: Invalid value: failed rule: self.i > 1", "i: Invalid value: 0: failed rule: self > 0"]),
    ("items", object_of(l={"type": "array", "items": ruled(INTEGER, "self > 0")}), {"l": [1, 0]}, ["l[1]: Invalid value: 0: failed rule: self > 0"]),
    ("values of a map", object_of(m={"type": "object", "additionalProperties": ruled(INTEGER, "self > 0")}), {"m": {"a": 1, "b": 0}}, ["m[b]: Invalid value: 0: failed rule: self > 0"]),
    ("null has no rules", object_of(i=ruled({**INTEGER, "nullable": True}, "self > 0")), {"i": None}, []),
    ("what is absent has none", object_of(i=ruled(INTEGER, "self > 0")), {}, []),
    ("a message", ruled(I, {"rule": "self.i > 0", "message": " too small\n"}), {"i": 0}, ["<nil>: Invalid value: too small"]),
    ("a messageExpression", ruled(I, {"rule": "self.i > 0", "messageExpression": "'not ' + string(self.i)"}), {"i": 0}, ["<nil>: Invalid value: not 0"]),
    ("takes precedence", ruled(I, {"rule": "self.i > 0", "message": "no", "messageExpression": "'yes'"}), {"i": 0}, ["<nil>: Invalid value: yes"]),
    ("unless it fails", ruled(I, {"rule": "self.i > 0", "message": "no", "messageExpression": "string(1 / self.i)"}), {"i": 0}, ["<nil>: Invalid value: no"]),
    ("or has several lines", ruled(I, {"rule": "self.i > 0", "message": "no", "messageExpression": "'a\\nb'"}), {"i": 0}, ["<nil>: Invalid value: no"]),
    ("or none", ruled(I, {"rule": "self.i > 0", "message": "no", "messageExpression": "' '"}), {"i": 0}, ["<nil>: Invalid value: no"]),
    ("a reason", object_of(i=ruled(INTEGER, {"rule": "self > 0", "reason": "FieldValueForbidden"})), {"i": 0}, ["i: Forbidden: failed rule: self > 0"]),
    ("another reason", object_of(i=ruled(INTEGER, {"rule": "self > 0", "reason": "FieldValueDuplicate"})), {"i": 0}, ["i: Duplicate value: 0"]),
    ("a missing field", ruled(I, {"rule": "self.i > 0", "reason": "FieldValueRequired", "fieldPath": ".i"}), {"i": 0}, ["i: Required value: failed rule: self.i > 0"]),
    ("an error", ruled(I, "1 / self.i > 0"), {"i": 0}, ["<nil>: Invalid value: division by zero evaluating rule: 1 / self.i > 0"]),
    ("an error of overloads", ruled(object_of(p={"x-kubernetes-int-or-string": True}), "self.p > 1"), {"p": "a"}, ["<nil>: Invalid value: 'no such overload': call arguments did not match a supported operator, function or macro signature for rule: self.p > 1"]),
    ("a rule that does not compile", ruled(I, "nope"), {"i": 0}, ["<nil>: Invalid value: rule compile error: compilation failed: ERROR: <input>:1:1: undeclared reference to 'nope' (in container '')\n | nope\n | ^"]),
]  # fmt: skip


@rows(("schema", "value", "expected"), [row[1:] for row in FAILED], ids=[row[0] for row in FAILED])
def test_errors(schema: dict[str, Any], value: Any, expected: list[str]) -> None:
    found = [
        error.replace('"object"', "").replace("Invalid value: : ", "Invalid value: ") for error in errors(schema, value)
    ]
    assert found == expected


GROWS = ruled(I, "self.i >= oldSelf.i")
OPTIONAL = ruled(I, {"rule": "oldSelf.hasValue() && self.i >= oldSelf.value().i", "optionalOldSelf": True})
ITEMS = {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": ruled(object_of(k={"type": "string"}, i=INTEGER), "self.i >= oldSelf.i")}  # fmt: skip
TRANSITIONS: list[tuple[str, dict[str, Any], Any, Any, int]] = [
    ("a rule holds", GROWS, {"i": 2}, {"i": 1}, 0),
    ("a rule fails", GROWS, {"i": 1}, {"i": 2}, 1),
    ("without an old value it is skipped", GROWS, {"i": 1}, None, 0),
    ("with an optional one it is not", OPTIONAL, {"i": 1}, None, 1),
    ("and sees it if there is one", OPTIONAL, {"i": 2}, {"i": 1}, 0),
    ("properties are correlated by name", object_of(o=GROWS), {"o": {"i": 1}}, {"o": {"i": 2}}, 1),
    ("values of maps as well", object_of(m={"type": "object", "additionalProperties": GROWS}), {"m": {"a": {"i": 1}}}, {"m": {"a": {"i": 2}}}, 1),
    ("new values are not", object_of(m={"type": "object", "additionalProperties": GROWS}), {"m": {"b": {"i": 1}}}, {"m": {"a": {"i": 2}}}, 0),
    ("items of lists of type map by their keys", object_of(l=ITEMS), {"l": [{"k": "b", "i": 1}, {"k": "a", "i": 1}]}, {"l": [{"k": "a", "i": 1}, {"k": "b", "i": 2}]}, 1),
    ("other items are not", object_of(l={"type": "array", "items": GROWS}), {"l": [{"i": 1}]}, {"l": [{"i": 2}]}, 0),
]  # fmt: skip


@rows(("schema", "new", "old", "count"), [row[1:] for row in TRANSITIONS], ids=[row[0] for row in TRANSITIONS])
def test_transition_rules(schema: dict[str, Any], new: Any, old: Any, count: int) -> None:
    assert len(errors(schema, new, old)) == count


RATCHETED: list[tuple[str, dict[str, Any], Any, Any, tuple[int, int]]] = [
    ("an unchanged value is a warning", ruled(I, "self.i > 0"), {"i": 0}, {"i": 0}, (0, 1)),
    ("a changed value is an error", ruled(I, "self.i > 0"), {"i": 0}, {"i": -1}, (1, 0)),
    ("transition rules give errors", ruled(I, "self.i > oldSelf.i"), {"i": 0}, {"i": 0}, (1, 0)),
    ("an unchanged field of a changed object", object_of(i=ruled(INTEGER, "self > 0"), j=INTEGER), {"i": 0, "j": 1}, {"i": 0, "j": 2}, (0, 1)),
    ("without correlation the nearest value above counts", object_of(l={"type": "array", "items": ruled(INTEGER, "self > 0")}), {"l": [0]}, {"l": [0]}, (0, 1)),
    ("which may have changed", object_of(l={"type": "array", "items": ruled(INTEGER, "self > 0")}), {"l": [0, 1]}, {"l": [0]}, (1, 0)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("schema", "new", "old", "counts"), [row[1:] for row in RATCHETED], ids=[row[0] for row in RATCHETED]
)
def test_ratcheting(schema: dict[str, Any], new: Any, old: Any, counts: tuple[int, int]) -> None:
    result = validate(schema, new, old)
    assert (len(result.errors), len(result.warnings)) == counts
    strict = validate(schema, new, old, correlation=None)
    assert (len(strict.errors), len(strict.warnings)) == (sum(counts), 0)


def test_costs_are_taken_from_the_budget() -> None:
    schema = ruled(I, "self.i > 0", {"rule": "self.i > 1", "messageExpression": "'a' + 'b'"})
    assert validate(schema, {"i": 1}).remaining == BUDGET - 3 - 3 - 1


@pytest.mark.parametrize("runs", [1, 10], ids=["interpreted", "generated"])
def test_nothing_is_evaluated_when_the_budget_is_used_up(runs: int) -> None:
    validator = RuleValidator(parse(ruled(I, "self.i > 0", "self.i > 1", "self.i > 2")), root=False)
    for _ in range(runs):
        result = validator.validate({"i": 0}, budget=5)
    assert result.remaining == -1
    first, last = map(str, result.errors)
    assert "failed rule: self.i > 0" in first
    assert "validation failed due to running out of cost budget, no further validation rules will be run" in last


def test_a_rule_that_exceeds_its_limit_is_the_last() -> None:
    schema = ruled({"type": "array", "items": INTEGER}, "self.all(a, self.all(b, self.all(c, true)))", "false")
    result = validate(schema, [1] * 200)
    (error,) = result.errors
    assert "call cost exceeds limit for rule: self.all(a" in str(error)
    assert result.remaining == -1


@pytest.mark.slow
def test_a_message_that_costs_too_much_is_the_end() -> None:
    message = "self.map(a, self.map(b, self.map(c, 'x').join()).join()).join()"
    schema = ruled({"type": "array", "items": INTEGER}, {"rule": "false", "messageExpression": message}, "false")
    result = validate(schema, [1] * 200)
    assert "call cost exceeds limit for messageExpression" in str(result.errors[0])
    assert result.remaining == -1


def test_the_result_is_the_same_for_generated_rules() -> None:
    schema = ruled(I, "self.i > 0", "1 / self.i > 0", "self.i == 0", "self.i >= oldSelf.i")
    validator = RuleValidator(parse(schema), root=False)
    results = [validator.validate({"i": 0}, {"i": 1}) for _ in range(10)]
    assert len({(str(one.errors), one.remaining) for one in results}) == 1


class Budget:
    """Interrupts everything."""

    def __init__(self) -> None:
        self.rules = 0
        self.checkpoints = 0

    def begin(self) -> None:
        self.rules += 1

    def check(self, upcoming_cost: int = 0) -> None:
        raise TimeExceeded

    def checkpoint(self) -> None:
        self.checkpoints += 1

    def spend(self, units: int) -> None:
        """Errors count as work, too; this is not what is tested."""

    def require_imported(self, module: str, name: str) -> None:
        raise AssertionError


def test_an_interrupted_rule_is_the_last() -> None:
    budget = Budget()
    schema = ruled({"type": "array", "items": INTEGER}, "self.size() > 0", "self.all(a, self.all(b, true))", "false")
    result = validate(schema, [1] * 200, cpu_budget=budget)
    (error,) = result.errors
    assert "operation interrupted evaluating rule: self.all(a" in str(error)
    assert (result.remaining, budget.rules, budget.checkpoints) == (-1, 2, 3)


def test_failed_rules_are_kept_with_the_values_that_they_used() -> None:
    (failed,) = validate(ruled(I, "self.i > 0"), {"i": 0}).failed
    assert (failed.text, failed.observed_values()) == ("self.i > 0", {"self.i": "0"})


def test_a_schema_without_rules_costs_nothing() -> None:
    assert validate(I, {"i": 1}) == ValidationResult([], [], BUDGET, [])


@rows(
    ("schema", "value", "bodies"),
    [
        (
            ruled(I, "self.i > 0"),
            {"i": 0},
            {34: 'Invalid value: "object": failed rule: self.i > 0', 35: "Invalid value: failed rule: self.i > 0"},
        ),
        (
            {"type": "object", "properties": {"i": ruled({"type": "integer"}, "self > 0")}},
            {"i": 0},
            {34: 'Invalid value: "integer": failed rule: self > 0', 35: "Invalid value: 0: failed rule: self > 0"},
        ),
    ],
)
def test_the_error_of_a_rule_shows_the_type_in_older_releases(schema: Any, value: Any, bodies: dict[int, str]) -> None:
    assert {release: validate(schema, value, release=release).errors[0].body for release in bodies} == bodies
