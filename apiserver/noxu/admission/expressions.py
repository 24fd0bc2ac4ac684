"""Evaluation of admission expressions (upstream's pkg/admission/plugin/cel and webhook/matchconditions).

Expressions that are evaluated together share their inputs, the variables that a policy composes, and a cost budget. A
variable is evaluated when an expression first uses it; errors in unused variables have no effect.

Expressions run on the event loop if that takes little time. One that takes longer, or that reads a large object, is run
again from the beginning in the worker thread, because expressions have no side effects. So the function behind
`authorizer` may be called from there.

The warnings in the status of ValidatingAdmissionPolicies: expressions that do not fit the kinds that the policy applies to.

When a policy is evaluated its objects are dyn; here `object`, `oldObject` and `params` have the types of the schemas of
up to ten kinds that the rules name, and every validation is compiled for each of them (upstream's
policy/validating/typechecking.go). Warnings have no effect on requests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from time import thread_time
from typing import Final, NamedTuple, TypeVar
from weakref import ref

from noxu.api.meta import GroupVersionKind
from noxu.cel import (
    PER_CALL_LIMIT,
    Authorize,
    AuthorizerDecision,
    CelError,
    Composition,
    EvaluationResult,
    Expression,
    Memory,
    Purpose,
    Type,
    TypeChecker,
    Value,
    activation,
    match_condition,
    object_type,
)
from noxu.cpu_budget import CpuBudget, limited_by
from noxu.registry.offload import LOOP_LIMIT, offload
from noxu.registry.resource import Resource
from noxu.registry.served_resources import ServedResources
from noxu.registry.turns import LoopBudget, LoopBudgetExceeded, RuleBudget, loop_turn
from noxu.values import Object

BUDGET: Final = 10_000_000
"""The total cost of the expressions of one kind, for each binding and param of a policy."""
BUDGET_OF_CONDITIONS: Final = BUDGET // 4
LONGEST: Final = 5.0
"""Seconds for an evaluation, in addition to its cost budget: upstream is faster, so that costs suffice there."""
_NO_BUDGET: Final = "validation failed due to running out of cost budget, no further validation rules will be run"

_SMALL: Final = (bool, int, float, type(None))

T = TypeVar("T")


def allow_all(_: Mapping[str, str]) -> AuthorizerDecision:
    """An authorizer that allows everything."""
    return AuthorizerDecision(allowed=True)


class Inputs(NamedTuple):
    """The inputs of expressions, as JSON.

    `request` is an AdmissionRequest without uid, objects and empty fields; its `resource` may be an equivalent one that a
    rule has matched. `about` is the resource for `authorizer.requestResource`: group, resource, subresource, namespace,
    name.
    """

    object: Object | None
    old_object: Object | None
    request: Object
    about: tuple[str, str, str, str, str] = ("", "", "", "", "")
    namespace: Object | None = None
    params: Object | None = None
    authorize: Authorize = allow_all


class OutOfBudget(Exception):
    """The expressions together exceed their cost budget; no more are evaluated."""


class Result(NamedTuple):
    """A value or an error."""

    value: Value
    error: str = ""


class Evaluation:
    """Evaluates expressions with the same inputs, one after the other."""

    def __init__(
        self,
        inputs: Inputs,
        composition: Composition | None = None,
        *,
        budget: int | None = None,
        cpu_budget: CpuBudget | None = None,
        authorizer: bool = True,
    ) -> None:
        """Without `authorizer`, expressions that name it fail."""
        self.budget = BUDGET if budget is None else budget
        self._cpu_budget = cpu_budget
        self._memory = Memory(cpu_budget)
        self._kept = 0  # bytes of values that are in use until the end
        self._composed = 0  # the cost of variables that is not yet charged
        self._variables = activation(
            object_=inputs.object,
            old_object=inputs.old_object,
            request=inputs.request,
            namespace=inputs.namespace,
            params=inputs.params,
            authorize=inputs.authorize if authorizer else None,
            resource=inputs.about,
            variables=None if composition is None else self._composed_variables(composition),
        )

    def _composed_variables(self, composition: Composition) -> dict[str, Callable[[], Value]]:
        # The functions are reachable from the variables: a reference to `self` would keep all of them until a collection.
        evaluation = ref(self)
        return {name: partial(_variable, evaluation, name, text) for name, text in composition.variables.items()}

    def run(self, expression: Expression) -> Result:
        """Raises OutOfBudget, and what the CPU budget raises (LoopBudgetExceeded)."""
        if expression.error:
            return Result(None, f"compilation error: {expression.error}")
        outcome = self._evaluate(expression)
        for cost in (self._composed, outcome.cost):
            if cost > self.budget:
                raise OutOfBudget(_NO_BUDGET)
            self.budget -= cost
        self._composed = 0
        if outcome.error is not None:
            return Result(None, f"expression '{expression.text}' resulted in error: {outcome.error}")
        return Result(outcome.value)

    def observed_values(self, expression: Expression) -> dict[str, str]:
        """The values that an expression has used, by the text of the attribute. Raises what the CPU budget raises."""
        return expression.observed_values(self._variables)

    def variable(self, name: str, expression: Expression) -> Value:
        """The value of a composed variable. Raises CelError."""
        if expression.error:
            raise CelError(f'composited variable "{name}" fails to compile: {expression.error}')
        outcome = self._evaluate(expression)
        self._composed += outcome.cost
        if outcome.error is not None:
            raise CelError(f'composited variable "{name}" fails to evaluate: {outcome.error}')
        return outcome.value

    def _evaluate(self, expression: Expression) -> EvaluationResult:
        """What it has made counts until the end, as values share their parts; unless its value is a number or the like."""
        left, kept = self._memory.left, self._kept
        outcome = expression.evaluate(self._variables, PER_CALL_LIMIT, self._cpu_budget, self._memory)
        if isinstance(outcome.value, _SMALL):
            self._memory.restore(left - (self._kept - kept))
        else:
            self._kept = kept + left - self._memory.left
        return outcome


def _variable(evaluation: ref[Evaluation], name: str, expression: Expression) -> Value:
    running = evaluation()
    assert running is not None  # it is what evaluates
    return running.variable(name, expression)


class EvaluationDeadline(RuleBudget):
    """The time limit, in the worker thread, of all expressions that are evaluated together. Created in that thread."""

    def __init__(self) -> None:
        super().__init__()
        self._end = thread_time() + LONGEST

    def begin(self) -> None:
        """All expressions share the time."""


async def run_within_budget(weight: int, evaluate: Callable[[CpuBudget | None], T]) -> T:
    """Evaluate on the event loop if that is fast, else in the worker thread. `weight`: the bytes that are read.

    Many fast evaluations, of many policies or params, leave the loop to others between them.
    """
    if weight <= LOOP_LIMIT:
        if loop_turn.is_over:
            await loop_turn.free()
        budget, began = LoopBudget(), thread_time()
        try:
            with limited_by(budget):
                return evaluate(budget)
        except LoopBudgetExceeded:
            pass
        finally:
            loop_turn.spend(thread_time() - began)
    return await offload(max(weight, LOOP_LIMIT + 1), lambda: evaluate(EvaluationDeadline()))


class ConditionError(Exception):
    """It is unknown whether the conditions are met."""


class MatchConditions:
    """The match conditions of a webhook or policy, compiled."""

    def __init__(self, conditions: Iterable[Object], composition: Composition | None = None) -> None:
        self._composition = composition
        self._expressions: Sequence[Expression] = [
            match_condition(condition["expression"])
            if composition is None
            else composition.expression(condition["expression"], Purpose.CONDITION)
            for condition in conditions
        ]

    def __bool__(self) -> bool:
        """Whether there are conditions."""
        return bool(self._expressions)

    async def met(self, inputs: Inputs, weight: int, *, fail: bool) -> bool:
        """Whether all conditions are true. One that is false decides, even if others fail.

        If none is false and some fail, raises ConditionError with `fail`, and returns False without.
        """
        return await run_within_budget(weight, lambda cpu_budget: self.met_within(cpu_budget, inputs, fail=fail))

    def met_within(self, cpu_budget: CpuBudget | None, inputs: Inputs, *, fail: bool) -> bool:
        """`met` as part of a longer evaluation. Raises ConditionError and LoopBudgetExceeded."""
        evaluation = Evaluation(inputs, self._composition, budget=BUDGET_OF_CONDITIONS, cpu_budget=cpu_budget)
        try:
            results = [evaluation.run(expression) for expression in self._expressions]
        except OutOfBudget as error:
            results = []
            errors = [str(error)]
        else:
            errors = list(dict.fromkeys(result.error for result in results if result.error))
        if any(result.value is False for result in results):
            return False
        if errors and fail:
            raise ConditionError(errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]")
        return not errors


# -- typechecking -----------------------------------------------------------------------------------------------------


MAX_KINDS: Final = 10  # of one rule


def warnings(policy: Object, served_resources: ServedResources) -> list[Object]:
    """ExpressionWarnings."""
    checkers = list(_checkers(policy["spec"], served_resources))
    messages = []
    for n, validation in enumerate(policy["spec"].get("validations") or ()):
        for name in ("expression", "messageExpression"):
            text = validation.get(name)
            errors = [f"{kind}: {error}\n" for kind, checker in checkers if text and (error := checker.error(text))]
            if errors:
                messages.append({"fieldRef": f"spec.validations[{n}].{name}", "warning": "\n".join(errors)})
    return messages


def _checkers(spec: Object, served_resources: ServedResources) -> Iterator[tuple[str, TypeChecker]]:
    """(kind, checker of expressions about its objects) of the kinds that the policy applies to."""
    params = spec.get("paramKind")
    params_type: Type | None = None
    if params is not None:
        group, _, version = params["apiVersion"].rpartition("/")
        resources = [
            resource for resource in served_resources.in_version(group, version) if resource.kind == params["kind"]
        ]
        params_type = _type_of(resources[0]) if resources else None
    variables = [(variable["name"], variable["expression"]) for variable in spec.get("variables") or ()]
    for resource in _resources(spec, served_resources):
        type_ = _type_of(resource)
        if type_ is None:
            continue
        kind = GroupVersionKind(resource.group, resource.version, resource.kind)
        checker = TypeChecker(type_, variables, has_params=params is not None, params_type=params_type)
        yield f"{kind.group}/{kind.version}, Kind={kind.kind}", checker


def _resources(spec: Object, served_resources: ServedResources) -> list[Resource]:
    """The resources that the rules name without wildcards, sorted by group, version and kind."""
    resources: set[Resource] = set()
    for rule in (spec.get("matchConstraints") or {}).get("resourceRules") or ():
        count = 0
        for place in _places(rule):
            resource = served_resources.find(*place)
            if resource is not None:
                resources.add(resource)
                count += 1
            if count == MAX_KINDS:  # other rules are not looked at either
                return _sorted(resources)
    return _sorted(resources)


def _places(rule: Object) -> Iterator[tuple[str, str, str]]:
    groups, versions = rule.get("apiGroups") or [], rule.get("apiVersions") or []
    if any("*" in name for name in (*groups, *versions)):
        return
    resources = [name for name in rule.get("resources") or () if "*" not in name and "/" not in name]
    for group in sorted(groups):
        for version in sorted(versions):
            for resource in sorted(resources):
                yield group, version, resource


def _sorted(resources: set[Resource]) -> list[Resource]:
    return sorted(resources, key=lambda resource: (resource.group, resource.version, resource.kind))


def _type_of(resource: Resource) -> Type | None:
    """The type of a resource's objects, None if there is no schema for it."""
    return object_type(resource.kind, struct=resource.codec.struct, schema=resource.schema)
