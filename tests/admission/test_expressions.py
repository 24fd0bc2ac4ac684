"""Expressions of admission: what they see, what they cost, and what is said of those that cannot be evaluated."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from noxu.admission import expressions
from noxu.admission.expressions import (
    BUDGET,
    ConditionError,
    Evaluation,
    Inputs,
    MatchConditions,
    OutOfBudget,
    run_within_budget,
)
from noxu.cel import AuthorizerDecision, Composition, Purpose
from noxu.cpu_budget import CpuBudget
from noxu.registry import turns
from noxu.registry.offload import LOOP_LIMIT
from noxu.registry.turns import LoopBudget, LoopBudgetExceeded
from noxu.values import Object
from tests.rows import rows
from tests.timing import HANGS_AFTER

OBJECT: Object = {
    "metadata": {"name": "w", "labels": {"app.kubernetes.io/name": "x"}},
    "spec": {"n": 5, "f": 2.5, "a": "hello", "l": ["x", "y"], "m": {"k": "v"}, "nothing": None, "a-b": 1,
             "mixed": [1, 2.5, "x", None, {"q": 1}], "for": 1},
}  # fmt: skip
REQUEST: Object = {
    "kind": {"group": "g", "version": "v1", "kind": "Widget"},
    "resource": {"group": "g", "version": "v1", "resource": "widgets"},
    "requestKind": {"group": "g", "version": "v2", "kind": "Widget"},
    "requestResource": {"group": "g", "version": "v2", "resource": "widgets"},
    "name": "w",
    "operation": "CREATE",
    "userInfo": {"username": "bob", "groups": ["devs"]},
    "dryRun": False,
    "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1", "fieldManager": "me"},
}
NAMESPACE: Object = {
    "metadata": {"name": "default", "uid": "1", "labels": {"env": "prod"}, "creationTimestamp": "2024-01-01T00:00:00Z"},
    "spec": {"finalizers": ["kubernetes"]},
    "status": {"phase": "Active"},
}
SEEN = Inputs(OBJECT, None, REQUEST, ("g", "widgets", "", "default", "w"), NAMESPACE, {"max": 10})
COST = 40_000
EXPENSIVE = "lists.range(70).all(x, lists.range(70).all(y, x + y < 1000))"  # costs about as much


def outcome(text: str, seen: Inputs = SEEN, variables: tuple[tuple[str, str], ...] = (), **more: Any) -> object:
    """The value of an expression, or the error in words."""
    composition = Composition(variables, params=True)
    result = Evaluation(seen, composition, **more).run(composition.expression(text))
    return result.error or result.value


# What expressions see


@rows(
    ("what", "expression"),
    [
        ("fields of the object", "object.spec.n == 5 && object.spec.a == 'hello'"),
        ("numbers of both kinds", "object.spec.n < 5.5 && object.spec.f == 2.5 && object.spec.n + 1 == 6"),
        ("lists", "object.spec.l.all(x, x.size() == 1) && object.spec.l[1] == 'y' && 'x' in object.spec.l"),
        ("lists of anything", "object.spec.mixed.exists(x, x == 'x') && object.spec.mixed[4].q == 1"),
        ("maps", "object.spec.m == {'k': 'v'} && {'k': 'v'} == object.spec.m && 'k' in object.spec.m"),
        ("maps with two variables", "object.spec.m.all(k, v, k == 'k' && v == 'v')"),
        ("null, which is a value", "has(object.spec.nothing) && object.spec.nothing == null"),
        ("names that are no identifiers", "object.spec['a-b'] == 1 && object.spec.`a-b` == 1"),
        ("keywords, not escaped", "object.spec['for'] == 1 && !has(object.spec.__for__)"),
        ("label keys", "object.metadata.labels['app.kubernetes.io/name'] == 'x'"),
        ("optional fields", "object.spec.?none.orValue(3) == 3 && object.?spec.?n.value() == 5"),
        ("what is empty as a zero value", "!optional.ofNonZeroValue({}).hasValue() && object.spec.?l.hasValue()"),
        ("sizes", "size(object.spec.l) == 2 && object.spec.a.size() == 5 && size(object.spec.m) == 1"),
        ("types", "type(object.spec) == map && type(object.spec.l) == list && type(object.spec.nothing) == null_type"),
        ("sums of lists", "object.spec.l + ['z'] == ['x', 'y', 'z']"),
        ("no old object", "oldObject == null"),
        ("params", "params.max == 10"),
        ("the request", "request.operation == 'CREATE' && request.name == 'w' && !request.dryRun"),
        ("both kinds of the request", "request.kind.version == 'v1' && request.requestKind.version == 'v2'"),
        ("the user", "request.userInfo.username == 'bob' && 'devs' in request.userInfo.groups"),
        ("the options, untyped", "request.options.fieldManager == 'me' && !has(request.options.dryRun)"),
        ("what is empty in the request as absent", "!has(request.subResource) && !has(request.namespace)"),
        ("the namespace", "namespaceObject.metadata.labels.env == 'prod' && namespaceObject.status.phase == 'Active'"),
        ("an authorizer", "authorizer.group('').resource('pods').namespace('x').check('get').allowed()"),
        ("an authorizer for the request's resource", "authorizer.requestResource.check('frob').allowed()"),
        ("variables", "variables.double == 10 && has(variables.double)"),
        ("variables of variables", "variables.chain == 'n10'"),
    ],
)  # fmt: skip
def test_expressions_see(what: str, expression: str) -> None:
    variables = (("double", "object.spec.n * 2"), ("chain", "'n' + string(variables.double)"))
    assert outcome(expression, variables=variables) is True, what


@rows(
    ("expression", "error"),
    [
        ("object.spec.none == 1", "no such key: none"),
        ("object.spec.nothing.x == 1", "no such key: x"),
        ("oldObject.spec == 1", "no such key: spec"),
        ("object.spec.l[2] == 'x'", "index out of bounds: 2"),
        ("object.spec.m[1] == 'x'", "no such key: 1"),
        ("object.spec.n.startsWith('x')", "no such overload"),
        ("object.spec.n && true", "no such overload"),
        ("object.spec.n + 'x' == ''", "no such overload"),
        ("authorizer == authorizer", "no such overload"),
        ("request.subResource == ''", "no such key: subResource"),
        ("namespaceObject.metadata.UID == '1'", "no such key: UID"),
        ("namespaceObject.metadata.creationTimestamp > timestamp('2020-01-01T00:00:00Z')", "no such overload"),
        ("authorizer.serviceAccount('NO', 'sa').path('/').check('get').allowed()", "Invalid service account namespace"),
        ("authorizer.serviceAccount('n', 'S_A').path('/').check('get').allowed()", "Invalid service account name"),
    ],
)  # fmt: skip
def test_errors_when_evaluated_name_the_expression(expression: str, error: str) -> None:
    assert outcome(expression) == f"expression '{expression}' resulted in error: {error}"


@rows(
    ("expression", "error"),
    [
        ("object.spec.n <", "mismatched input '<EOF>'"),
        ("request.uid == ''", "undefined field 'uid'"),
        ("request.object == null", "undefined field 'object'"),
        ("request.kind == 'x'", "found no matching overload for '_==_' applied to '(kubernetes.GroupVersionKind, string)'"),
        ("namespaceObject.metadata.managedFields == 1", "undefined field 'managedFields'"),
        ("namespaceObject.status.conditions[0].when == 1", "undefined field 'when'"),
        ("variables.nope == 1", "undefined field 'nope'"),
        ("variables.double == 'x'", "found no matching overload for '_==_' applied to '(int, string)'"),
        ("self.x == 1", "undeclared reference to 'self'"),
        ("math.abs(1) == 1", "undeclared reference to 'math'"),
        ("Object{a: 1} == 1", "undeclared reference to 'Object'"),
        ("jsonpatch.escapeKey('a') == 'a'", "undeclared reference to 'jsonpatch'"),
    ],
)  # fmt: skip
def test_errors_of_compilation_are_reported_by_the_evaluation(expression: str, error: str) -> None:
    result = outcome(expression, variables=(("double", "1 + 1"),))
    assert isinstance(result, str)
    assert result.startswith("compilation error: compilation failed: ERROR: <input>:1:")
    assert error in result


@pytest.mark.parametrize(
    ("purpose", "expression", "error"),
    [
        (Purpose.CONDITION, "object.spec.n", "must evaluate to bool but got dyn"),
        (Purpose.CONDITION, "[1]", "must evaluate to bool but got list(int)"),
        (Purpose.MESSAGE, "1", "must evaluate to string but got int"),
        (Purpose.AUDIT_VALUE, "object.spec.n", "must evaluate to one of [string null_type] but got dyn"),
        (Purpose.AUDIT_VALUE, "null", ""),
        (Purpose.CONDITION, "double('x') == 1.0", "program instantiation failed: type conversion error from 'string' to 'double'"),
    ],
)  # fmt: skip
def test_an_expression_has_to_be_of_a_type(purpose: Purpose, expression: str, error: str) -> None:
    assert Composition(params=False).expression(expression, purpose).error == error


def test_params_and_authorizer_may_be_undeclared() -> None:
    assert "undeclared reference to 'params'" in Composition(params=False).expression("params.x == 1").error
    assert "undeclared reference to 'authorizer'" in Composition(params=False).expression(
        "authorizer.path('/').check('get').allowed()", authorizer=False
    ).error  # fmt: skip


def test_an_authorizer_may_be_declared_and_absent() -> None:
    result = outcome("authorizer.path('/').check('get').allowed()", authorizer=False)
    assert str(result).endswith("resulted in error: no such attribute(s): authorizer")


def test_functions_that_came_later_are_for_stored_expressions_only() -> None:
    composition = Composition(params=False)
    assert composition.expression("[1].includes(1)", stored=True).error == ""
    assert "undeclared reference" in composition.expression("[1].includes(1)", stored=False).error


def test_authorizer_checks_name_user_verb_and_resource() -> None:
    asked: list[dict[str, str]] = []

    def ask(question: Any) -> AuthorizerDecision:
        asked.append(dict(question))
        return AuthorizerDecision(allowed=False, reason="because")

    seen = SEEN._replace(authorize=ask)
    assert outcome("authorizer.requestResource.check('edit').reason()", seen) == "because"
    assert outcome("authorizer.serviceAccount('ns', 'sa').group('apps').resource('d').name('x').check('get').allowed()", seen) is False  # fmt: skip
    assert outcome("authorizer.path('/healthz').check('get').errored()", seen) is False
    about = {"group": "g", "resource": "widgets", "subresource": "", "namespace": "default", "name": "w"}
    assert asked == [
        {**about, "verb": "edit"},
        {"user": "system:serviceaccount:ns:sa", "group": "apps", "resource": "d", "name": "x", "verb": "get"},
        {"path": "/healthz", "verb": "get"},
    ]


# Variables


def test_variables_are_evaluated_once_and_only_if_used() -> None:
    asked = []
    seen = SEEN._replace(authorize=lambda question: asked.append(question) or AuthorizerDecision(allowed=True))
    variables = (("may", "authorizer.path('/').check('get').allowed()"), ("boom", "object.spec.none"))
    composition = Composition(variables, params=False)
    evaluation = Evaluation(seen, composition)
    assert evaluation.run(composition.expression("true")).value is True
    assert asked == []
    assert evaluation.run(composition.expression("variables.may && variables.may")).value is True
    assert evaluation.run(composition.expression("variables.may")).value is True
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("variable", "error"),
    [
        ("object.spec.none", 'composited variable "v" fails to evaluate: no such key: none'),
        ("object.spec.n +", 'composited variable "v" fails to compile: compilation failed: ERROR: <input>:1:16'),
    ],
)  # fmt: skip
def test_an_error_in_a_variable_is_one_of_the_expression_that_uses_it(variable: str, error: str) -> None:
    result = outcome("variables.v == 1", variables=(("v", variable),))
    assert error in str(result)
    assert outcome("variables.v == 1 || true", variables=(("v", variable),)) is True


def test_variables_have_types_as_far_as_upstream_keeps_them() -> None:
    variables = (("n", "1"), ("l", "['a']"), ("q", "quantity('1')"), ("o", "object.spec.?n"), ("bad", "1 +"))
    composition = Composition(variables, params=False)
    assert "(int, string)" in composition.expression("variables.n == 'x'").error
    assert "(list(string), list(int))" in composition.expression("variables.l == [1]").error
    for anything in ("variables.q == 1", "variables.o == 1", "variables.bad == 1"):
        assert composition.expression(anything).error == ""


def test_a_variable_sees_those_before_it_only() -> None:
    composition = Composition((("a", "variables.b"), ("b", "1")), params=False)
    assert "undefined field 'b'" in composition.variables["a"].error


# Cost


def test_an_expression_has_a_limit_and_so_has_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expressions, "PER_CALL_LIMIT", COST // 2)
    cancelled = "operation cancelled: actual cost limit exceeded"
    assert outcome(EXPENSIVE) == f"expression '{EXPENSIVE}' resulted in error: {cancelled}"
    result = f'composited variable "v" fails to evaluate: {cancelled}'
    assert (
        outcome("variables.v", variables=(("v", EXPENSIVE),)) == f"expression 'variables.v' resulted in error: {result}"
    )


def test_expressions_share_a_budget_and_variables_are_charged() -> None:
    composition = Composition((("v", EXPENSIVE),), params=False)
    plain, using = composition.expression("object.spec.n < 10"), composition.expression("variables.v")
    evaluation = Evaluation(SEEN, composition)
    evaluation.run(plain)
    assert BUDGET - evaluation.budget < 10
    evaluation.run(using)
    after_first = evaluation.budget
    assert COST * 0.8 < BUDGET - after_first < COST * 1.2
    evaluation.run(using)
    assert after_first - evaluation.budget < 10, "the variable is evaluated once"


def test_nothing_runs_when_the_budget_is_used_up() -> None:
    composition = Composition(params=False)
    evaluation = Evaluation(SEEN, composition, budget=int(COST * 1.5))
    evaluation.run(composition.expression(EXPENSIVE))
    with pytest.raises(OutOfBudget, match="validation failed due to running out of cost budget, no further validation"):
        evaluation.run(composition.expression(EXPENSIVE))


def test_what_takes_long_is_given_up_where_the_loop_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "MAX_LOOP_SECONDS", 0)
    composition = Composition((("v", EXPENSIVE),), params=False)
    for text in (EXPENSIVE, "variables.v"):
        with pytest.raises(LoopBudgetExceeded):
            Evaluation(SEEN, composition, cpu_budget=LoopBudget()).run(composition.expression(text))
    assert Evaluation(SEEN, composition, cpu_budget=LoopBudget()).run(composition.expression("true")).value is True


@pytest.mark.parametrize(
    ("what", "weight", "text", "elsewhere"),
    [
        ("quick ones run here", 100, "true", False),
        ("slow ones elsewhere", 100, EXPENSIVE, True),
        ("those on large objects elsewhere", LOOP_LIMIT + 1, "true", True),
    ],
)
async def test_where_expressions_run(
    what: str, weight: int, text: str, elsewhere: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    composition = Composition(params=False)
    expression = composition.expression(text)
    monkeypatch.setattr(turns, "MAX_LOOP_SECONDS", 0.0001)
    threads = []

    def evaluate(limited: CpuBudget | None) -> object:
        threads.append(threading.current_thread())
        return Evaluation(SEEN, composition, cpu_budget=limited).run(expression).value

    assert await run_within_budget(weight, evaluate) is True
    assert (threads[-1] is not threading.main_thread()) is elsewhere, what


async def test_the_loop_goes_on_while_something_expensive_is_evaluated() -> None:
    composition = Composition(params=False)
    expression = composition.expression(EXPENSIVE)
    loop_goes_on = threading.Event()

    def evaluate(limited: CpuBudget | None) -> object:
        if threading.current_thread() is not threading.main_thread():
            assert loop_goes_on.wait(HANGS_AFTER)
        return Evaluation(SEEN, composition, cpu_budget=limited).run(expression)

    done = asyncio.ensure_future(run_within_budget(1, evaluate))
    for _ in range(4):
        await asyncio.sleep(0.001)
        assert not done.done()
    loop_goes_on.set()
    await done


async def test_evaluation_in_the_thread_has_a_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expressions, "LONGEST", 0.0)
    composition = Composition(params=False)
    expression = composition.expression(EXPENSIVE)
    result = await run_within_budget(
        LOOP_LIMIT + 1, lambda limited: Evaluation(SEEN, composition, cpu_budget=limited).run(expression)
    )
    assert result.error == f"expression '{EXPENSIVE}' resulted in error: operation interrupted"


# Match conditions


def conditions(*texts: str) -> MatchConditions:
    return MatchConditions([{"name": str(n), "expression": text} for n, text in enumerate(texts)])


@rows(
    ("what", "texts", "met"),
    [
        ("none", [], True),
        ("all are true", ["true", "object.spec.n == 5"], True),
        ("one is false", ["true", "false"], False),
        ("false beats what fails before it", ["object.spec.none == 1", "false"], False),
        ("false beats what fails behind it", ["false", "object.spec.none == 1"], False),
        ("false beats what does not compile", ["object.", "false"], False),
    ],
)
@pytest.mark.parametrize("fail", [True, False])
async def test_conditions_are_met(what: str, texts: list[str], met: bool, fail: bool) -> None:
    assert await conditions(*texts).met(SEEN, 0, fail=fail) is met, what


@pytest.mark.parametrize(
    ("texts", "error"),
    [
        (["object.spec.no == 1"], "expression 'object.spec.no == 1' resulted in error: no such key: no"),
        (["true", "object.spec.no == 1"], "expression 'object.spec.no == 1' resulted in error: no such key: no"),
        (["object.a == 1", "object.b == 1"], "[expression 'object.a == 1' resulted in error: no such key: a, "
                                             "expression 'object.b == 1' resulted in error: no such key: b]"),
        (["object.a == 1", "object.a == 1"], "expression 'object.a == 1' resulted in error: no such key: a"),
        (["1"], "compilation error: must evaluate to bool but got int"),
    ],
)  # fmt: skip
async def test_conditions_that_cannot_be_evaluated(texts: list[str], error: str) -> None:
    with pytest.raises(ConditionError) as raised:
        await conditions(*texts).met(SEEN, 0, fail=True)
    assert str(raised.value) == error
    assert await conditions(*texts).met(SEEN, 0, fail=False) is False


def test_conditions_have_a_budget_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expressions, "BUDGET_OF_CONDITIONS", int(COST * 1.5))
    with pytest.raises(ConditionError, match=r"^validation failed due to running out of cost budget"):
        conditions(EXPENSIVE, EXPENSIVE, "false").met_within(None, SEEN, fail=True)
    assert conditions(EXPENSIVE, EXPENSIVE).met_within(None, SEEN, fail=False) is False


def test_webhooks_conditions_know_no_params_and_no_variables() -> None:
    for text in ("params == null", "variables.x == 1"):
        with pytest.raises(ConditionError, match="undeclared reference"):
            conditions(text).met_within(None, SEEN, fail=True)


def test_conditions_of_a_policy_may_use_its_variables() -> None:
    composition = Composition((("big", "object.spec.n > 3"),), params=True)
    met = MatchConditions([{"name": "a", "expression": "variables.big && params.max == 10"}], composition)
    assert met.met_within(None, SEEN, fail=True)


def test_conditions_are_true_if_there_are_any() -> None:
    assert not conditions()
    assert conditions("true")
