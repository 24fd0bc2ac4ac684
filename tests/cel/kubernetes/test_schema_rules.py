"""Rules of a CRD that is written: whether they compile and stay within the limits of cost."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from noxu.api.field import Path, Verbatim
from noxu.cel.kubernetes.schema_rules import SchemaRules
from noxu.schema.structural import Structural, parse

LIST = {"type": "array", "items": {"type": "string"}}


class Site(NamedTuple):
    schema: Structural
    path: Path = "spec"
    cardinality: int | None = 1
    uncorrelatable: Path | None = None

    def echo(self, n: int) -> Verbatim:
        return Verbatim(f"rule {n}")


def checker(root: Structural, **more: Any) -> SchemaRules:
    given: dict[str, Any] = {"stored_rules": frozenset(), "stored_messages": frozenset(), "limit_each": True, **more}
    return SchemaRules(root, **given)


def errors(
    schema: dict[str, Any], *rules: dict[str, Any], site: dict[str, Any] | None = None, **more: Any
) -> list[str]:
    root = parse({"type": "object", "properties": {"spec": {**schema, "x-kubernetes-validations": list(rules)}}})
    checked = checker(root, **more)
    found = checked.check(Site(root.properties["spec"], **(site or {})))
    return list(map(str, found + checked.totals("schema")))


RULES = "spec.x-kubernetes-validations[0]"
ADVICE = "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"
ROWS: list[tuple[str, dict[str, Any], dict[str, Any], dict[str, Any], list[str]]] = [
    ("a rule that is fine", {**LIST, "maxItems": 10}, {"rule": "self.size() > 0"}, {}, []),
    (
        "a rule that does not compile",
        LIST,
        {"rule": "self.size("},
        {},
        [f"{RULES}.rule: Invalid value: rule 0: compilation failed: ERROR: <input>:1:11: Syntax error"],
    ),
    (
        "a message that does not compile",
        LIST,
        {"rule": "true", "messageExpression": "self"},
        {},
        [f"{RULES}.messageExpression: Invalid value: rule 0: messageExpression must evaluate to a string"],
    ),
    (
        "a rule that may cost too much",
        LIST,
        {"rule": "self.all(x, self.all(y, x == y))"},
        {},
        [
            f"{RULES}.rule: Forbidden: estimated rule cost exceeds budget by factor of more than 100x {ADVICE}",
            f"{RULES}.rule: Forbidden: contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema",
            "schema: Forbidden: x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema exceeds budget by factor of more than 100x",
        ],
    ),
    (
        "a message that may cost too much",
        LIST,
        {"rule": "true", "messageExpression": "self.map(x, self.join()).join()"},
        {},
        [
            f"{RULES}.messageExpression: Forbidden: estimated messageExpression cost exceeds budget by factor of more than 100x",
            f"{RULES}.messageExpression: Forbidden: contributed",
            "schema: Forbidden: ",
        ],
    ),
    (
        "a rule of many values",
        {**LIST, "maxItems": 10},
        {"rule": "self.all(x, x == 'a')"},
        {"cardinality": 200_000},
        [f"{RULES}.rule: Forbidden: estimated rule cost exceeds budget by factor of 1.040000x {ADVICE}"],
    ),
    (
        "oldSelf where nothing is correlated",
        LIST,
        {"rule": "self == oldSelf"},
        {"uncorrelatable": "spec.list"},
        [
            f'{RULES}.rule: Invalid value: "self == oldSelf": oldSelf cannot be used on the uncorrelatable portion of the schema within spec.list'
        ],
    ),
    (
        "optionalOldSelf without oldSelf",
        LIST,
        {"rule": "true", "optionalOldSelf": True},
        {},
        [f"{RULES}.optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used in rule"],
    ),
    (
        "a schema without a type",
        {"type": "array", "items": {"x-kubernetes-preserve-unknown-fields": True}},
        {"rule": "true"},
        {},
        [
            "spec.x-kubernetes-validations: Internal error: internal error: failed to construct type information for "
            "x-kubernetes-validations rules: unable to convert structural schema to CEL declarations"
        ],
    ),
]


@pytest.mark.parametrize(
    ("schema", "rule", "site", "expected"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS]
)
def test_errors(schema: dict[str, Any], rule: dict[str, Any], site: dict[str, Any], expected: list[str]) -> None:
    found = errors(schema, rule, site=site)
    assert len(found) == len(expected), found
    for message, start in zip(found, expected, strict=True):
        assert message.startswith(start)


def test_the_limit_of_each_rule_may_be_off() -> None:
    expensive = {"rule": "self.all(x, x == 'a')"}
    assert len(errors(LIST, expensive, site={"cardinality": 10})) == 1
    assert errors(LIST, expensive, site={"cardinality": 10}, limit_each=False) == []


def test_only_the_most_expensive_rules_are_reported() -> None:
    rules = [{"rule": f"self.all(x, self.all(y, x == y || {n} > 0))"} for n in range(6)]
    contributed = [error for error in errors(LIST, *rules) if "contributed" in error]
    assert len(contributed) == 4


def test_stored_expressions_may_use_more_functions() -> None:
    rule = {"rule": "self.includes('a')", "messageExpression": "string(self.includes('a'))"}
    limited = {**LIST, "maxItems": 10}
    assert len(errors(limited, rule)) == 1
    stored: dict[str, Any] = {
        "stored_rules": frozenset({rule["rule"]}),
        "stored_messages": frozenset({rule["messageExpression"]}),
    }
    assert errors(limited, rule, **stored) == []
    stored["stored_messages"] = frozenset()
    assert len(errors(limited, rule, **stored)) == 1


def test_defaults_are_checked_unchanged_and_newly_set() -> None:
    root = parse({"type": "integer", "x-kubernetes-validations": [{"rule": "self > 0"}, {"rule": "self > oldSelf"}]})
    checked = checker(root)
    assert [str(error) for error in checked.check_default(root, 0, "spec.default", False)] == [
        "spec.default: Invalid value: 0: failed rule: self > 0",
        "spec.default: Invalid value: 0: failed rule: self > oldSelf",
    ]
    positive = parse({"type": "integer", "x-kubernetes-validations": [{"rule": "self > 0"}]})
    assert checked.check_default(positive, 1, "spec.default", False) == []


def test_all_defaults_share_a_budget() -> None:
    rule = {"rule": "self.all(a, self.all(b, self.all(c, true)))"}
    root = parse({"type": "array", "items": {"type": "integer"}, "x-kubernetes-validations": [rule]})
    checked = checker(root)
    assert len(checked.check_default(root, [1] * 200, "a", False)) == 1
    assert checked.check_default(root, [1] * 200, "b", False) == []
