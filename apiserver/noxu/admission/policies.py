"""ValidatingAdmissionPolicy (upstream's pkg/admission/plugin/policy/validating).

A policy is evaluated for each of its matching bindings, and for each of their params. Every validation that is false, and
with failurePolicy Fail every one that cannot be evaluated, is a decision to deny. The binding determines its effect: Deny
refuses the request with the first one, Warn adds all of them as warnings, Audit to the audit log.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from noxu.admission.attributes import Attributes, refusal
from noxu.admission.bindings import Binding, Invocation, Misconfigured, Policies, Policy, matching_invocations
from noxu.admission.expressions import (
    ConditionError,
    Evaluation,
    Inputs,
    OutOfBudget,
    Result,
    run_within_budget,
)
from noxu.admission.inputs import for_conditions, inputs_of, namespace_of
from noxu.cel import PER_CALL_LIMIT, Expression, Purpose
from noxu.cpu_budget import CpuBudget
from noxu.go.text import compact_json, trim_space
from noxu.registry.resource import Resource
from noxu.registry.trace import Note, has_secrets
from noxu.values import Object, cached_property

MAX_MESSAGE: Final = 5 * 1024  # bytes; longer messages are replaced by the default
MAX_AUDIT_VALUE: Final = 10 * 1024
MAX_AUDITED_FAILURES: Final = 50
_AUDIT_KEY: Final = "validation.policy.admission.k8s.io/validation_failure"
_CODES: Final = {"Forbidden": 403, "Unauthorized": 401, "RequestEntityTooLarge": 413}
_DEFAULT_REASON: Final = "Invalid"


class Validation(NamedTuple):
    """`message_expression` may be None."""

    expression: Expression
    message_expression: Expression | None
    message: str
    reason: str


class ValidatingPolicy(Policy):
    @cached_property
    def validations(self) -> list[Validation]:
        return [self._validation(validation) for validation in self.spec.get("validations") or ()]

    def _validation(self, validation: Object) -> Validation:
        compose = self.composition.expression
        message_expression = validation.get("messageExpression")
        return Validation(
            compose(validation["expression"], Purpose.CONDITION),
            compose(message_expression, Purpose.MESSAGE, authorizer=False) if message_expression else None,
            validation.get("message") or "",
            validation.get("reason") or _DEFAULT_REASON,
        )

    @property
    def has_secret_params(self) -> bool:
        """Whether a value in an expression may be one of a Secret that configures it."""
        return (self.param_kind or {}).get("kind") == "Secret"

    @cached_property
    def annotations(self) -> list[tuple[str, Expression]]:
        """(key, expression) of the audit annotations."""
        compose = self.composition.expression
        return [
            (annotation["key"], compose(annotation["valueExpression"], Purpose.AUDIT_VALUE))
            for annotation in self.spec.get("auditAnnotations") or ()
        ]


class PolicyDecision(NamedTuple):
    """The decision of a validation: the message of a denial, "" to admit."""

    message: str = ""
    reason: str = ""


class PolicyResult(NamedTuple):
    """The result of a policy for a request and one param.

    `decisions` are those of the validations, in order. `annotations` are (key, value) for the audit log; `failed` are the
    errors of those that cannot be evaluated, each of which denies the request whatever the binding says. `notes` are those
    of a trace: the expressions that deny, with the values in them.
    """

    decisions: list[PolicyDecision]
    annotations: Sequence[tuple[str, str]] = ()
    failed: Sequence[str] = ()
    notes: Sequence[Note] = ()


ADMIT: Final = PolicyDecision()


def evaluate(
    policy: ValidatingPolicy, inputs: Inputs, cpu_budget: CpuBudget | None, *, is_traced: bool = False
) -> PolicyResult:
    """Evaluate a policy; with its notes if it is traced. Raises LoopBudgetExceeded."""
    conditions = policy.conditions
    try:
        if conditions and not conditions.met_within(cpu_budget, for_conditions(inputs), fail=policy.fails_closed):
            return PolicyResult([])
        evaluation = Evaluation(inputs, policy.composition, cpu_budget=cpu_budget)
        results = [evaluation.run(validation.expression) for validation in policy.validations]
        decisions = _decisions(policy, results, _Messages(policy, inputs, evaluation.budget, cpu_budget))
        annotations, failed = _annotations(policy, inputs, cpu_budget)
        notes = list(_notes(policy, decisions, evaluation)) if is_traced else ()
    except (ConditionError, OutOfBudget) as error:
        decision = PolicyDecision(str(error)) if policy.fails_closed else ADMIT
        return PolicyResult([decision], notes=[Note("", str(error))] if is_traced and policy.fails_closed else ())
    policy.compiled = True
    return PolicyResult(decisions, annotations, failed, notes)


def _notes(policy: ValidatingPolicy, decisions: list[PolicyDecision], evaluation: Evaluation) -> Iterator[Note]:
    for validation, decision in zip(policy.validations, decisions, strict=True):
        if decision.message:
            expression = validation.expression
            values = evaluation.observed_values(expression)
            yield Note("", decision.message, rule=trim_space(expression.text), values=values)


class _Messages:
    """The results of messageExpressions. All are evaluated, or none counts if together they exceed the budget."""

    def __init__(self, policy: ValidatingPolicy, inputs: Inputs, budget: int, cpu_budget: CpuBudget | None) -> None:
        self._policy = policy
        self._inputs = inputs
        self._budget = budget
        self._cpu_budget = cpu_budget

    @property
    def may_exceed_budget(self) -> bool:
        """Whether they may exceed the budget: then they are evaluated even if no message is needed."""
        count = len(self._policy.composition.variables) + sum(
            1 for validation in self._policy.validations if validation[1]
        )
        return count * PER_CALL_LIMIT > self._budget

    @cached_property
    def results(self) -> list[Result] | str:
        """The result for each validation, an error if they exceed the budget."""
        policy = self._policy
        evaluation = Evaluation(
            self._inputs, policy.composition, budget=self._budget, cpu_budget=self._cpu_budget, authorizer=False
        )
        expressions = [validation.message_expression for validation in policy.validations]
        try:
            return [Result(None) if expression is None else evaluation.run(expression) for expression in expressions]
        except OutOfBudget as error:
            return f"failed messageExpression: {error}"


def _decisions(policy: ValidatingPolicy, results: list[Result], messages: _Messages) -> list[PolicyDecision]:
    decisions = []
    texts = (
        messages.results
        if messages.may_exceed_budget or not all(result.value is True or result.error for result in results)
        else []
    )
    for n, (validation, result) in enumerate(zip(policy.validations, results, strict=True)):
        if result.error:
            decisions.append(PolicyDecision(result.error) if policy.fails_closed else ADMIT)
        elif isinstance(texts, str):
            decisions.append(PolicyDecision(texts) if policy.fails_closed else ADMIT)
        elif result.value is True:
            decisions.append(ADMIT)
        else:
            message = _usable(texts[n]) or trim_space(validation.message)
            message = message or f"failed expression: {trim_space(validation.expression.text)}"
            decisions.append(PolicyDecision(message, validation.reason))
    return decisions


def _usable(result: Result) -> str:
    """The message of a messageExpression, "" if it cannot be used."""
    if not isinstance(result.value, str):
        return ""
    message = trim_space(result.value)
    return "" if "\n" in message or len(message.encode("utf-8", "replace")) > MAX_MESSAGE else message


def _annotations(
    policy: ValidatingPolicy, inputs: Inputs, cpu_budget: CpuBudget | None
) -> tuple[list[tuple[str, str]], list[str]]:
    """((key, value) of annotations, the errors of those that cannot be evaluated)."""
    if not policy.annotations:
        return [], []
    evaluation = Evaluation(inputs, policy.composition, cpu_budget=cpu_budget, authorizer=False)
    results = [(key, evaluation.run(expression)) for key, expression in policy.annotations]
    failed = [result.error for _, result in results if result.error and policy.fails_closed]
    values = [(key, trim_space(result.value)) for key, result in results if isinstance(result.value, str)]
    return [(key, value) for key, value in values if value], failed


# -- the plug-in ------------------------------------------------------------------------------------------------------


class _Denial(NamedTuple):
    policy: ValidatingPolicy
    binding: Binding | None
    decision: PolicyDecision


class _RequestResult:
    """The effects of all policies on one request."""

    def __init__(self, request: Attributes) -> None:
        self.request = request
        self.denials: list[_Denial] = []
        self.audited: list[Object] = []
        self._inputs: dict[Resource, Inputs] = {}

    async def inputs_at(self, resource: Resource) -> Inputs:
        """The inputs for policies whose rules name this version."""
        if resource not in self._inputs:
            namespace = await namespace_of(self.request)
            self._inputs[resource] = await inputs_of(self.request, resource, namespace)
        return self._inputs[resource]

    def add(self, invocation: Invocation[ValidatingPolicy], result: PolicyResult, seconds: float) -> None:
        """`seconds` is how long the evaluation took."""
        policy, binding = invocation.policy, invocation.binding
        for n, decision in enumerate(result.decisions):
            if decision.message:
                self._deny(policy, binding, n, decision)
                for action in binding.actions:
                    share = seconds / len(result.decisions)
                    self.request.metrics.policy(policy.name, binding.name, decision.message, action.lower(), share)
        self.denials += [_Denial(policy, binding, PolicyDecision(error)) for error in result.failed]

    def _deny(self, policy: ValidatingPolicy, binding: Binding, index: int, decision: PolicyDecision) -> None:
        for action in binding.actions:
            match action:
                case "Deny":
                    self.denials.append(_Denial(policy, binding, decision))
                case "Warn":
                    prefix = f"Validation failed for ValidatingAdmissionPolicy '{policy.name}'"
                    self.request.draft.outcome.warnings.append(
                        f"{prefix} with binding '{binding.name}': {decision.message}"
                    )
                case "Audit":
                    failure = {
                        "message": decision.message,
                        "policy": policy.name,
                        "binding": binding.name,
                        "expressionIndex": index,
                        "validationActions": list(binding.actions),
                    }
                    self.audited.append(failure)

    def misconfigured(self, match: Misconfigured[ValidatingPolicy]) -> None:
        """Deny the request, whatever the binding says, unless the failurePolicy is Ignore."""
        if match.policy.fails_closed:
            self.denials.append(_Denial(match.policy, match.binding, PolicyDecision(match.error)))

    def apply(self) -> None:
        """Add audit annotations, and refuse a denied request. Raises ApiError."""
        if self.audited:
            shown = compact_json(self.audited[:MAX_AUDITED_FAILURES], sort_keys=False)
            self.request.draft.outcome.audit_annotations[_AUDIT_KEY] = shown
        if not self.denials:
            return
        policy, binding, decision = self.denials[0]
        through = "" if binding is None else f" with binding '{binding.name}'"
        message = f"ValidatingAdmissionPolicy '{policy.name}'{through} denied request: {decision.message}"
        error = refusal(self.request, message)
        error.reason = decision.reason or _DEFAULT_REASON
        error.code = _CODES.get(error.reason, 422)
        error.details = {**(error.details or {}), "causes": [{"message": message}]}
        raise error


class ValidatingPolicies:
    """The plug-in."""

    def __init__(self, policies: Resource, bindings: Resource) -> None:
        self._policies = Policies(policies, bindings, ValidatingPolicy)

    async def validate(self, request: Attributes) -> None:
        """Raises ApiError."""
        if request.is_review:
            return  # reviews are exempt: they are needed to repair a cluster
        request_result = _RequestResult(request)
        for bound in await self._policies.all(request.reader):
            annotations: dict[str, list[str]] = {}
            for match in await matching_invocations(request, bound):
                if isinstance(match, Misconfigured):
                    request_result.misconfigured(match)
                    continue
                for params in match.params:
                    inputs = (await request_result.inputs_at(match.resource))._replace(params=params)
                    start = time.perf_counter()
                    result = await _evaluated(request, match, inputs)
                    request_result.add(match, result, time.perf_counter() - start)
                    _collect(annotations, result)
            _publish(request.draft.outcome.audit_annotations, bound.policy.name, annotations)
        request_result.apply()


async def _evaluated(request: Attributes, invocation: Invocation[ValidatingPolicy], inputs: Inputs) -> PolicyResult:
    start = time.perf_counter()
    policy, is_traced = invocation.policy, request.draft.outcome.trace is not None
    work = partial(evaluate, policy, inputs, is_traced=is_traced)
    result = await run_within_budget(policy.weight(request), work)
    if is_traced:
        are_secret = has_secrets(request.resource) or policy.has_secret_params
        notes = [note._replace(values={}) for note in result.notes] if are_secret else result.notes
        request.draft.record(f"policy {policy.name}", notes=notes, seconds=time.perf_counter() - start)
    return result


def _collect(annotations: dict[str, list[str]], result: PolicyResult) -> None:
    """Several bindings and params may give several values for a key."""
    for key, value in result.annotations:
        values = annotations.setdefault(key, [])
        if value not in values:
            values.append(value)


def _publish(audit: dict[str, str], policy: str, annotations: Mapping[str, list[str]]) -> None:
    for key, values in annotations.items():
        cut = [value.encode("utf-8", "replace")[:MAX_AUDIT_VALUE].decode("utf-8", "ignore") for value in values]
        audit[f"{policy}/{key}"] = ", ".join(cut)
