"""Expressions of admission's configurations, when these are written."""

from __future__ import annotations

from noxu.kinds.kind import Checker, Use, is_internal
from tests.rows import rows

VARIABLES = (("n", "1"), ("text", "string(variables.n)"))


@rows(
    ("expression", "use"),
    [
        ("object.spec.n < 10", Use("bool")),
        ("authorizer.path('/').check('get').allowed()", Use("bool")),
        ("params.x == 1", Use("bool", params=True)),
        ("variables.n == 1 && variables.text == '1'", Use("bool", variables=VARIABLES)),
        ("'text'", Use("string")),
        ("null", Use("string or null")),
        ("[1, 2]", Use("any")),
        ("object", Use("any")),
        ("Object{spec: Object.spec{a: 1}}", Use("ApplyConfiguration")),
        ("[JSONPatch{op: 'add', path: '/a', value: Object{}}]", Use("JSONPatch")),
        ("[1].includes(1)", Use("bool", stored=True)),
    ],
)
def test_valid_expressions(expression: str, use: Use) -> None:
    assert Checker()(expression, use) == ""


@rows(
    ("expression", "use", "fault"),
    [
        ("object.", Use("bool"), "compilation failed: ERROR: <input>:1:8: Syntax error: no viable alternative at input '.'"),
        ("object.n", Use("bool"), "must evaluate to bool but got dyn"),
        ("1", Use("string"), "must evaluate to string but got int"),
        ("1", Use("string or null"), "must evaluate to one of [string null_type] but got int"),
        ("object", Use("ApplyConfiguration"), "must evaluate to Object but got dyn"),
        ("[]", Use("JSONPatch"), "must evaluate to list(JSONPatch) but got list(dyn)"),
        ("params.x == 1", Use("bool"), "compilation failed: ERROR: <input>:1:1: undeclared reference to 'params'"),
        ("authorizer.path('/') == 1", Use("bool", authorizer=False), "compilation failed: ERROR: <input>:1:1: undeclared reference to 'authorizer'"),
        ("variables.m == 1", Use("bool", variables=VARIABLES), "compilation failed: ERROR: <input>:1:10: undefined field 'm'"),
        ("variables.text == 1", Use("bool", variables=VARIABLES), "compilation failed: ERROR: <input>:1:16: found no matching overload"),
        ("Object{}", Use("any"), "compilation failed: ERROR: <input>:1:7: undeclared reference to 'Object'"),
        ("[1].includes(1)", Use("bool"), "compilation failed: ERROR: <input>:1:13: undeclared reference to 'includes'"),
        ("int('x') == 1", Use("bool"), "program instantiation failed: type conversion error from 'string' to 'int'"),
    ],
)  # fmt: skip
def test_invalid_expressions(expression: str, use: Use, fault: str) -> None:
    assert Checker()(expression, use).startswith(fault)


def test_only_expressions_that_cannot_run_are_internal_errors() -> None:
    check = Checker()
    assert is_internal(check("int('x') == 1", Use("bool")))
    assert not is_internal(check("1", Use("bool")))


def test_many_variables_are_compiled_one_after_the_other() -> None:
    check = Checker()
    variables: tuple[tuple[str, str], ...] = ()
    for n in range(300):
        variables += ((f"v{n}", f"variables.v{n - 1} + 1" if n else "0"),)
        assert check(f"variables.v{n} >= 0", Use("bool", variables=variables)) == ""
