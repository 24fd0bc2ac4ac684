"""The common rules of webhooks and admission policies. (test_webhooks and test_policies have whole objects.)"""

from __future__ import annotations

from typing import Any

import pytest

from noxu.api.field import FieldError
from noxu.kinds import defaults
from noxu.kinds.kind import Unevaluable, Use
from noxu.kinds.matching import (
    chosen,
    condition_errors,
    expression_errors,
    match_resources_errors,
    mutable_errors,
    repeats,
    reserved_name_errors,
    rule_errors,
)
from noxu.values import Object
from tests.rows import rows

RULE: Object = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}


def texts(errors: list[FieldError]) -> list[str]:
    return [str(error) for error in errors]


@pytest.mark.parametrize(
    ("holder", "required", "errors"),
    [
        ({"f": "A"}, True, []),
        ({}, False, []),
        ({}, True, ["p.f: Required value"]),
        ({"f": ""}, True, ["p.f: Required value"]),
        ({"f": ""}, False, ['p.f: Unsupported value: "": supported values: "A", "B"']),
        ({"f": "C"}, True, ['p.f: Unsupported value: "C": supported values: "A", "B"']),
    ],
)
def test_fields_with_a_few_values(holder: Object, required: bool, errors: list[str]) -> None:
    assert texts(chosen(holder, "p", "f", ["A", "B"], required=required)) == errors


def test_repeated_values() -> None:
    assert repeats(["a", "b", "a", "c", "a", "b"]) == {2, 4, 5}
    assert repeats([]) == set()


def test_reserved_names_cannot_be_created() -> None:
    new = {"metadata": {"name": "a.static.k8s.io"}}
    assert [error.field for error in reserved_name_errors(new, None)] == ["metadata.name"]
    assert reserved_name_errors(new, new) == []
    assert reserved_name_errors({"metadata": {"name": "a"}}, None) == []


RULES: list[tuple[str, Object, list[str]]] = [
    ("a rule", {}, []),
    ("a scope", {"scope": "Cluster"}, []),
    ("an unknown scope", {"scope": "All"}, ['r.scope: Unsupported value: "All": supported values: "*", "Cluster", "Namespaced"']),
    ("an empty version", {"apiVersions": [""]}, ["r.apiVersions[0]: Required value"]),
    ("subresources", {"resources": ["pods/status", "*/scale", "pods/*"]}, []),
    ("all subresources, and one", {"resources": ["pods/*", "pods/status"]}, ["r.resources[1]: Invalid value: \"pods/status\": if 'pods/*' is present, must not specify pods/status"]),
    ("a subresource of no resource", {"resources": ["/status"]}, []),
    ("an empty resource", {"resources": ["pods", ""]}, ["r.resources[1]: Required value"]),
    ("all resources, and one", {"resources": ["*", "pods"]}, ["r.resources: Invalid value: [\"*\",\"pods\"]: if '*' is present, must not specify other resources without subresources"]),
    ("a subresource and all resources", {"resources": ["*", "pods/status"]}, []),
]  # fmt: skip


@rows(("change", "errors"), [row[1:] for row in RULES], ids=[row[0] for row in RULES])
def test_rules(change: Object, errors: list[str]) -> None:
    assert texts(rule_errors({**RULE, **change}, "r")) == errors


def test_match_resources_of_policies() -> None:
    match: Object = {"resourceRules": [{**RULE, "resourceNames": ["a", "a/b", "a"]}]}
    fill = defaults.defaulter("admissionregistration/v1.MatchResources")
    assert fill is not None
    fill(match)
    assert (match["matchPolicy"], match["namespaceSelector"], match["objectSelector"]) == ("Equivalent", {}, {})
    assert match["resourceRules"][0]["scope"] == "*"
    assert texts(match_resources_errors(match, "m")) == [
        "m.resourceRules[0].resourceNames[1]: Invalid value: \"a/b\": may not contain '/'",
        'm.resourceRules[0].resourceNames[2]: Duplicate value: "a"',
    ]
    assert texts(match_resources_errors({}, "m")) == [
        "m.matchPolicy: Required value",
        "m.namespaceSelector: Required value",
        "m.objectSelector: Required value",
    ]
    assert match_resources_errors(None, "m") == []


def test_a_delete_cannot_be_mutated() -> None:
    match = {"resourceRules": [{"operations": ["CREATE", "DELETE"]}]}
    assert texts(mutable_errors(match, "m")) == [
        'm.resourceRules.operations: Unsupported value: "DELETE": supported values: "*", "CONNECT", "CREATE", "UPDATE"'
    ]
    assert mutable_errors(None, "m") == []


def failing(expression: str, use: Use) -> str:
    return "" if expression == "true" else f"{use.result}: no"


def test_expressions_that_do_not_compile_are_marked() -> None:
    assert expression_errors("e", "true", Use("bool"), failing) == []
    [error] = expression_errors("e", "x", Use("bool"), failing)
    assert isinstance(error, Unevaluable)
    assert str(error) == 'e: Invalid value: "x": bool: no'
    [shown] = expression_errors("e", "x", Use("bool"), failing, shown=" x ")
    assert str(shown) == 'e: Invalid value: " x ": bool: no'
    [internal] = expression_errors("e", "x", Use("bool"), lambda *_: "program instantiation failed: x")
    assert str(internal) == "e: Internal error: program instantiation failed: x"


def test_match_conditions() -> None:
    seen: list[tuple[str, bool]] = []

    def check(expression: str, use: Use) -> str:
        seen.append((expression, use.stored))
        return ""

    conditions: list[Any] = [
        {"name": "a", "expression": " true "},
        {"name": "a", "expression": "old"},
        {"name": "b c", "expression": ""},
        {"expression": "true"},
    ]
    errors = condition_errors(conditions, "c", check, params=False, before=["old"])
    assert [(error.field, error.reason) for error in errors] == [
        ("c[1].name", "FieldValueDuplicate"),
        ("c[2].expression", "FieldValueRequired"),
        ("c[2].name", "FieldValueInvalid"),
        ("c[3].name", "FieldValueRequired"),
    ]
    assert seen == [("true", False), ("old", True), ("true", False)]


def test_there_are_at_most_64_match_conditions() -> None:
    conditions = [{"name": f"c{n}", "expression": "true"} for n in range(65)]
    errors = condition_errors(conditions, "c", lambda *_: "", params=False, before=())
    assert texts(errors) == ["c: Too many: 65: must have at most 64 items"]
