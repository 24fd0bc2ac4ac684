"""Compiled rules: their cache, their errors, and when code is generated for them."""

from __future__ import annotations

from typing import Any

import pytest

from noxu.cel.kubernetes import rules
from noxu.cel.kubernetes.rules import CompiledRule, Declarations
from noxu.cel.types.schema_types import decl_type
from noxu.schema.structural import Structural, parse

SCHEMA = {"type": "object", "properties": {"i": {"type": "integer"}, "s": {"type": "string", "maxLength": 10}}}


def compiled(rule: dict[str, Any], schema: dict[str, Any] = SCHEMA, *, stored: bool = False) -> CompiledRule:
    structural = parse({**schema, "x-kubernetes-validations": [rule]})
    declared = decl_type(structural)
    assert declared is not None
    return CompiledRule(structural.rules[0], structural, declared, stored=stored, stored_message=stored)


ERRORS = [
    ("a syntax error", {"rule": "self."}, "compilation failed: ERROR: <input>:1:6: Syntax error", ""),
    ("an undeclared name", {"rule": "nope"}, "undeclared reference to 'nope'", ""),
    ("a rule that is no boolean", {"rule": "self.i"}, "cel expression must evaluate to a bool", ""),
    ("a rule that is dyn", {"rule": "dyn(self.i)"}, "cel expression must evaluate to a bool", ""),
    ("a constant without a value", {"rule": "int('x') == 1"}, "program instantiation failed: type conversion error", ""),
    ("a message that is no string", {"rule": "true", "messageExpression": "1"}, "", "messageExpression must evaluate to a string"),
    ("a message that does not compile", {"rule": "true", "messageExpression": "x"}, "", "messageExpression compilation failed: ERROR"),
    ("the message of a rule that does not compile is not looked at", {"rule": "x", "messageExpression": "x"}, "undeclared reference", ""),
    ("a function that is for stored rules", {"rule": "[1].includes(1)"}, "undeclared reference to 'includes'", ""),
]  # fmt: skip


@pytest.mark.parametrize(
    ("rule", "error", "message_error"), [row[1:] for row in ERRORS], ids=[row[0] for row in ERRORS]
)
def test_a_rule_has_errors(rule: dict[str, Any], error: str, message_error: str) -> None:
    found = compiled(rule)
    assert error in found.error
    assert message_error in found.message_error
    assert (bool(found.error), bool(found.message_error)) == (bool(error), bool(message_error))


def test_a_stored_rule_may_use_more_functions() -> None:
    assert compiled({"rule": "[1].includes(1)"}, stored=True).error == ""


@pytest.mark.parametrize(
    ("rule", "optional", "needs_old"),
    [("self.i > 0", None, False), ("self.i > oldSelf.i", None, True), ("oldSelf.hasValue()", True, False)],
)
def test_a_transition_rule_needs_an_old_value(rule: str, optional: bool | None, needs_old: bool) -> None:
    found = compiled({"rule": rule, "optionalOldSelf": optional})
    assert (found.error, found.needs_old) == ("", needs_old)


def test_expressions_are_cached_by_their_text_and_the_type_of_self() -> None:
    first, again = compiled({"rule": "self.i > 0"}), compiled({"rule": "self.i > 0"})
    assert first.condition is again.condition
    other = {"type": "object", "properties": {"i": {"type": "integer"}}}
    assert compiled({"rule": "self.i > 0"}, other).condition is not first.condition
    rules.clear_cache()
    assert compiled({"rule": "self.i > 0"}).condition is not first.condition


def test_code_is_generated_after_some_interpretations() -> None:
    rule, schema = compiled({"rule": "self.i > 0"}), parse(SCHEMA)
    for _ in range(3):
        rule.interpreted(schema)
        assert rule.generated is None
        assert rule.may_be_generated
    rule.interpreted(schema)
    assert rule.generated is not None
    assert not rule.may_be_generated


def test_code_is_generated_after_a_long_interpretation() -> None:
    rule = compiled({"rule": "self.i > 0"})
    rule.interpreted(parse(SCHEMA), long=True)
    assert rule.generated is not None
    unsupported = compiled({"rule": "self.?i.hasValue()"})
    unsupported.interpreted(parse(SCHEMA), long=True)
    assert unsupported.generated is None
    assert not unsupported.may_be_generated


@pytest.mark.parametrize(
    ("rule", "path"),
    [
        ({"rule": "true", "fieldPath": ".i"}, "i"),
        ({"rule": "true", "fieldPath": ".nope"}, ""),
        ({"rule": "true"}, ""),
        ({"rule": "true", "fieldPath": ".i", "messageExpression": "1"}, ""),
    ],
)
def test_failures_name_a_field(rule: dict[str, Any], path: str) -> None:
    assert compiled(rule).field_path == path


def test_nodes_below_a_rule_have_the_types_that_the_rule_sees() -> None:
    metadata = {
        "type": "object",
        "properties": {"name": {"type": "string", "maxLength": 3}},
        "x-kubernetes-validations": [{"rule": "true"}],
    }
    root = parse(
        {"type": "object", "properties": {"metadata": metadata}, "x-kubernetes-validations": [{"rule": "true"}]}
    )
    declared = Declarations(root).of(root.properties["metadata"])
    assert declared is not None
    assert declared.fields is not None
    assert set(declared.fields) == {"name", "generateName"}


def test_nodes_without_rules_above_or_on_them_have_no_type() -> None:
    root: Structural = parse(SCHEMA)
    assert Declarations(root).of(root) is None
