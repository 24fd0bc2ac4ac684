"""Expressions of admission: their purposes, and the variables that a policy composes.

How they are evaluated is tested in tests/admission/test_expressions.py.
"""

from __future__ import annotations

import pytest

from noxu.cel.kubernetes.admission import Composition, Purpose, activation, match_condition
from noxu.cel.library.kubernetes import AuthorizerDecision
from tests.rows import rows

PURPOSES = [
    ("a variable may be anything", Purpose.VARIABLE, "[1]", ""),
    ("a condition", Purpose.CONDITION, "object.spec.n > 1", ""),
    ("no condition", Purpose.CONDITION, "object.spec.n", "must evaluate to bool but got dyn"),
    ("a message", Purpose.MESSAGE, "'a'", ""),
    ("no message", Purpose.MESSAGE, "duration('1s')", "must evaluate to string but got google.protobuf.Duration"),
    ("an audit value", Purpose.AUDIT_VALUE, "null", ""),
    ("no audit value", Purpose.AUDIT_VALUE, "[1]", "must evaluate to one of [string null_type] but got list(int)"),
    ("an apply configuration", Purpose.APPLY_CONFIGURATION, "Object{spec: Object.spec{n: 1}}", ""),
    (
        "no apply configuration",
        Purpose.APPLY_CONFIGURATION,
        "Object.spec{n: 1}",
        "must evaluate to Object but got Object.spec",
    ),
    ("a patch", Purpose.JSON_PATCH, "[JSONPatch{op: 'add', path: '/a', value: 1}]", ""),
    ("no patch", Purpose.JSON_PATCH, "[1]", "must evaluate to list(JSONPatch) but got list(int)"),
]


@rows(("purpose", "text", "error"), [row[1:] for row in PURPOSES], ids=[row[0] for row in PURPOSES])
def test_the_purpose_of_an_expression_determines_its_type(purpose: Purpose, text: str, error: str) -> None:
    expression = Composition(params=False).expression(text, purpose)
    assert expression.error == error
    assert (expression.type is None) is bool(error)


def test_only_mutations_may_write_patches() -> None:
    assert "undeclared reference" in Composition(params=False).expression("Object{}").error
    assert "undeclared reference" in match_condition("JSONPatch{} == JSONPatch{}").error


def test_an_expression_that_can_never_run() -> None:
    error = "program instantiation failed: type conversion error from 'string' to 'int'"
    assert match_condition("int('x') == 1").error == error


def test_a_composition_is_extended_without_changing_it() -> None:
    first = Composition([("a", "1")], params=False)
    second = first.extended("b", "variables.a + 1")
    assert (list(first.variables), list(second.variables)) == (["a"], ["a", "b"])
    assert "undefined field 'b'" in first.expression("variables.b").error
    assert str(second.expression("variables.b").type) == "int"
    assert second.variables["a"] is first.variables["a"]


VARIABLE_TYPES = [
    ("1", "int"),
    ("[1]", "list(int)"),
    ("{'a': [timestamp(0)]}", "map(string, list(timestamp))"),
    ("object", "dyn"),
    ("quantity('1')", "dyn"),
    ("[ip('::1')]", "list(dyn)"),
    ("optional.of(1)", "dyn"),
    ("nope", "dyn"),
]


@pytest.mark.parametrize(("text", "type_"), VARIABLE_TYPES, ids=[row[0] for row in VARIABLE_TYPES])
def test_the_type_of_a_variable_in_other_expressions(text: str, type_: str) -> None:
    composition = Composition([("v", text)], params=False)
    assert str(composition.expression("variables.v").type) == type_


def test_the_values_of_variables() -> None:
    computed: list[str] = []
    variables = activation(
        object_={"a": 1},
        old_object=None,
        request={"name": "w"},
        namespace=None,
        params={"max": 1},
        authorize=lambda question: AuthorizerDecision(question["verb"] == "get"),
        resource=("g", "r", "", "ns", "n"),
        variables={"v": lambda: computed.append("v") or 1},  # type: ignore[func-returns-value]
    )
    expression = match_condition(
        "object.a == 1 && oldObject == null && request.name == 'w' && authorizer.requestResource.check('get').allowed()"
    )
    assert expression.evaluate(variables).value is True
    assert computed == []
    assert (variables["variables"].find("v"), variables["params"].find("max"), computed) == (1, 1, ["v"])


def test_variables_that_are_not_given_do_not_exist() -> None:
    variables = activation(object_=None, old_object=None, request={}, namespace=None, params=None, authorize=None)
    assert set(variables) == {"object", "oldObject", "request", "namespaceObject", "params"}
