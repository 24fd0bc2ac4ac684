"""The values that a failed rule used, which explain why it failed."""

from __future__ import annotations

from typing import Any

from noxu.cel.kubernetes.validation import RuleValidator
from noxu.schema.structural import parse
from tests.rows import rows

SPEC: dict[str, Any] = {
    "type": "object",
    "properties": {
        "min": {"type": "integer"},
        "max": {"type": "integer"},
        "name": {"type": "string"},
        "on": {"type": "boolean"},
        "ports": {"type": "array", "items": {"type": "object", "properties": {"port": {"type": "integer"}}}},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "until": {"type": "string", "format": "date-time"},
    },
}
OBJECT: dict[str, Any] = {
    "min": 5,
    "max": 2,
    "name": 'a "quoted" name',
    "on": False,
    "ports": [{"port": 80}, {"port": 81}],
    "labels": {"app": "web"},
    "until": "2024-01-02T03:04:05Z",
}

RULES = [
    ("two fields", "self.min <= self.max", {"self.min": "5", "self.max": "2"}),
    ("a field twice", "self.min < 0 || self.min > 9", {"self.min": "5"}),
    ("text is quoted", "self.name == 'x'", {"self.name": '"a \\"quoted\\" name"'}),
    ("a boolean", "self.on", {"self.on": "false"}),
    ("the presence of a field", "has(self.on) && self.on", {"has(self.on)": "true", "self.on": "false"}),
    ("an item", "self.ports[1].port == 80", {"self.ports[1].port": "81"}),
    ("a missing item", "self.ports[7].port == 80", None),
    ("a value of a map", "self.labels['app'] == 'db'", {'self.labels["app"]': '"web"'}),
    ("a size", "self.ports.size() == 3", {"size(self.ports)": "2"}),
    ("the range of a macro, but not its variable", "self.ports.all(p, p.port == 80)",
     {"self.ports": '[{"port":80},{"port":81}]'}),
    ("a part of a macro that does not depend on its variable", "self.ports.all(p, p.port == self.min)",
     {"self.ports": '[{"port":80},{"port":81}]', "self.min": "5"}),
    ("a date", "self.until < timestamp('2020-01-01T00:00:00Z')", {"self.until": "2024-01-02T03:04:05Z"}),
    ("an argument", "self.name.startsWith(self.labels.app)",
     {"self.name": '"a \\"quoted\\" name"', "self.labels.app": '"web"'}),
    ("the node itself", "self == oldSelf", None),
    ("nothing at all", "1 > 2", {}),
]  # fmt: skip


@rows(("rule", "expected"), [row[1:] for row in RULES], ids=[row[0] for row in RULES])
def test_the_values_that_a_failed_rule_used(rule: str, expected: dict[str, str] | None) -> None:
    schema = parse({**SPEC, "x-kubernetes-validations": [{"rule": rule}]})
    result = RuleValidator(schema, root=False).validate(OBJECT, path="spec")
    if expected is None:  # the rule did not evaluate to false: it had an error, or was not evaluated
        assert result.failed == []
        return
    (failed,) = result.failed
    assert (failed.error.field, failed.rule.rule.rule, failed.observed_values()) == ("spec", rule, expected)


def test_old_values_are_included() -> None:
    schema = parse({**SPEC, "x-kubernetes-validations": [{"rule": "self.max >= oldSelf.max"}]})
    result = RuleValidator(schema, root=False).validate(OBJECT, {**OBJECT, "max": 9})
    assert result.failed[0].observed_values() == {"self.max": "2", "oldSelf.max": "9"}


def test_an_optional_old_value() -> None:
    rule = {"rule": "oldSelf.hasValue() && self.on", "optionalOldSelf": True}
    schema = parse({**SPEC, "x-kubernetes-validations": [rule]})
    result = RuleValidator(schema, root=False).validate(OBJECT)
    assert result.failed[0].observed_values() == {"oldSelf": "optional.none()", "self.on": "false"}


def test_long_values_are_cut() -> None:
    schema = parse({**SPEC, "x-kubernetes-validations": [{"rule": "self.name == ''"}]})
    result = RuleValidator(schema, root=False).validate({"name": "x" * 1000})
    (text,) = result.failed[0].observed_values().values()
    assert text == '"' + "x" * 199 + "…"


def test_rules_that_hold_have_no_values() -> None:
    schema = parse({**SPEC, "x-kubernetes-validations": [{"rule": "self.min == 5"}]})
    assert RuleValidator(schema, root=False).validate(OBJECT).failed == []
