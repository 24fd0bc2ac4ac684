"""ValidatingAdmissionPolicy (upstream's pkg/admission/plugin/policy/validating).

A policy is evaluated for each of its bindings that match, and for each param of these. Every validation that fails, and
under failurePolicy Fail every one that cannot be evaluated, is a decision to deny; what becomes of it is the binding's
to say: Deny refuses the request with the first one, Warn tells all of them, Audit keeps them for the audit log.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from typing import Final, NamedTuple

from apiserver.admission.attributes import Attributes
from apiserver.admission.bindings import (
    Authorize,
    Binding,
    Invocation,
    Misconfigured,
    Policies,
    Policy,
    about,
    for_conditions,
    inputs,
    namespace_of,
    refusal,
)
from apiserver.admission.expressions import (
    ConditionError,
    Evaluation,
    Inputs,
    MatchConditions,
    OutOfBudget,
    Result,
    allow_all,
    patiently,
)
from apiserver.api.gotext import compact_json
from apiserver.api.types import Object
from apiserver.cel.admission import AUDIT_VALUE, CONDITION, MESSAGE, Expression
from apiserver.cel.errors import Patience
from apiserver.cel.rules import spaceless
from apiserver.cel.spending import PER_CALL_LIMIT
from apiserver.registry.resource import Resource
from apiserver.registry.trace import Note

MAX_MESSAGE: Final = 5 * 1024  # bytes; longer ones are not told
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
    def conditions(self) -> MatchConditions:
        return MatchConditions(self.spec.get("matchConditions") or (), self.composition)

    @cached_property
    def validations(self) -> list[Validation]:
        return [self._validation(one) for one in self.spec.get("validations") or ()]

    def _validation(self, one: Object) -> Validation:
        compose = self.composition.expression
        telling = one.get("messageExpression")
        return Validation(
            compose(one["expression"], CONDITION),
            compose(telling, MESSAGE, authorizer=False) if telling else None,
            one.get("message") or "",
            one.get("reason") or _DEFAULT_REASON,
        )

    @cached_property
    def annotations(self) -> list[tuple[str, Expression]]:
        """Keys and values."""
        compose = self.composition.expression
        given = self.spec.get("auditAnnotations") or ()
        return [(one["key"], compose(one["valueExpression"], AUDIT_VALUE)) for one in given]


class Decision(NamedTuple):
    """What a validation came to: a message to deny with, empty to admit."""

    message: str = ""
    reason: str = ""


class Judgement(NamedTuple):
    """What a policy has to say about a request, with one param.

    `decisions` are those of the validations, in order. `annotations` are keys and values for the audit log, `failed`
    why some could not be made, each a reason to deny whatever the binding says.
    """

    decisions: list[Decision]
    annotations: Sequence[tuple[str, str]] = ()
    failed: Sequence[str] = ()


ADMIT: Final = Decision()


def judge(policy: ValidatingPolicy, seen: Inputs, patience: Patience | None) -> Judgement:
    """Evaluate a policy. Raises TakesLong."""
    conditions = policy.conditions
    try:
        if conditions and not conditions.met_within(patience, for_conditions(seen), fail=policy.fails):
            return Judgement([])
        evaluation = Evaluation(seen, policy.composition, patience=patience)
        results = [evaluation.run(one.expression) for one in policy.validations]
        decisions = _decisions(policy, results, _Messages(policy, seen, evaluation.budget, patience))
        annotations, failed = _annotations(policy, seen, patience)
    except (ConditionError, OutOfBudget) as error:
        return Judgement([Decision(str(error)) if policy.fails else ADMIT])
    policy.compiled = True
    return Judgement(decisions, annotations, failed)


class _Messages:
    """The messages that expressions make. All are made, or none if they cost too much together."""

    def __init__(self, policy: ValidatingPolicy, seen: Inputs, budget: int, patience: Patience | None) -> None:
        self._policy = policy
        self._seen = seen
        self._budget = budget
        self._patience = patience

    @property
    def matter(self) -> bool:
        """Whether they may cost too much together: then they are made even if nobody reads them."""
        count = len(self._policy.composition.compiled) + sum(1 for one in self._policy.validations if one[1])
        return count * PER_CALL_LIMIT > self._budget

    @cached_property
    def made(self) -> list[Result] | str:
        """An error if they cost too much."""
        policy = self._policy
        evaluation = Evaluation(
            self._seen, policy.composition, budget=self._budget, patience=self._patience, authorizer=False
        )
        told = [one.message_expression for one in policy.validations]
        try:
            return [Result(None) if one is None else evaluation.run(one) for one in told]
        except OutOfBudget as error:
            return f"failed messageExpression: {error}"


def _decisions(policy: ValidatingPolicy, results: list[Result], messages: _Messages) -> list[Decision]:
    decisions = []
    told = messages.made if messages.matter or not all(one.value is True or one.error for one in results) else []
    for n, (validation, result) in enumerate(zip(policy.validations, results, strict=True)):
        if result.error:
            decisions.append(Decision(result.error) if policy.fails else ADMIT)
        elif isinstance(told, str):
            decisions.append(Decision(told) if policy.fails else ADMIT)
        elif result.value is True:
            decisions.append(ADMIT)
        else:
            message = _usable(told[n]) or spaceless(validation.message)
            message = message or f"failed expression: {spaceless(validation.expression.text)}"
            decisions.append(Decision(message, validation.reason))
    return decisions


def _usable(result: Result) -> str:
    """What a messageExpression says, if that can be told."""
    if not isinstance(result.value, str):
        return ""
    message = spaceless(result.value)
    return "" if "\n" in message or len(message.encode("utf-8", "replace")) > MAX_MESSAGE else message


def _annotations(
    policy: ValidatingPolicy, seen: Inputs, patience: Patience | None
) -> tuple[list[tuple[str, str]], list[str]]:
    """Keys and values, and why some could not be made."""
    if not policy.annotations:
        return [], []
    evaluation = Evaluation(seen, policy.composition, patience=patience, authorizer=False)
    results = [(key, evaluation.run(one)) for key, one in policy.annotations]
    failed = [result.error for _, result in results if result.error and policy.fails]
    values = [(key, spaceless(result.value)) for key, result in results if isinstance(result.value, str)]
    return [(key, value) for key, value in values if value], failed


# -- the plug-in ------------------------------------------------------------------------------------------------------


class _Denial(NamedTuple):
    policy: ValidatingPolicy
    binding: Binding | None
    decision: Decision


class _Ruling:
    """What all policies together make of one request."""

    def __init__(self, request: Attributes, authorize: Authorize) -> None:
        self.request = request
        self.denials: list[_Denial] = []
        self.audited: list[Object] = []
        self._authorize = authorize
        self._seen: dict[Resource, Inputs] = {}

    async def seen(self, resource: Resource) -> Inputs:
        """What policies see whose rules name this version."""
        if resource not in self._seen:
            namespace = await namespace_of(self.request)
            self._seen[resource] = await inputs(self.request, resource, namespace, self._authorize)
        return self._seen[resource]

    def add(self, found: Invocation[ValidatingPolicy], judgement: Judgement) -> None:
        policy, binding = found.policy, found.binding
        for n, decision in enumerate(judgement.decisions):
            if decision.message:
                self._deny(policy, binding, n, decision)
        self.denials += [_Denial(policy, binding, Decision(error)) for error in judgement.failed]

    def _deny(self, policy: ValidatingPolicy, binding: Binding, index: int, decision: Decision) -> None:
        for action in binding.actions:
            match action:
                case "Deny":
                    self.denials.append(_Denial(policy, binding, decision))
                case "Warn":
                    told = f"Validation failed for ValidatingAdmissionPolicy '{policy.name}'"
                    self.request.draft.warnings.append(f"{told} with binding '{binding.name}': {decision.message}")
                case "Audit":
                    failure = {
                        "message": decision.message,
                        "policy": policy.name,
                        "binding": binding.name,
                        "expressionIndex": index,
                        "validationActions": list(binding.actions),
                    }
                    self.audited.append(failure)

    def misconfigured(self, found: Misconfigured[ValidatingPolicy]) -> None:
        """Whatever the binding says, a request is denied."""
        if found.policy.fails:
            self.denials.append(_Denial(found.policy, found.binding, Decision(found.error)))

    def carry_out(self) -> None:
        """Raises ApiError."""
        if self.audited:
            shown = compact_json(self.audited[:MAX_AUDITED_FAILURES], sort_keys=False)
            self.request.draft.audit[_AUDIT_KEY] = shown
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

    def __init__(self, policies: Resource, bindings: Resource, authorize: Authorize = lambda user: allow_all) -> None:  # noqa: ARG005
        self._policies = Policies(policies, bindings, ValidatingPolicy)
        self._authorize = authorize

    async def validate(self, request: Attributes) -> None:
        """Raises ApiError."""
        if not request.resource.stored:
            return  # questions are not policed: who may ask what is how clusters are repaired
        ruling = _Ruling(request, self._authorize)
        for bound in await self._policies.all(request.registry):
            annotations: dict[str, list[str]] = {}
            for found in await about(request, bound):
                if isinstance(found, Misconfigured):
                    ruling.misconfigured(found)
                    continue
                for params in found.params:
                    judgement = await _judged(
                        request, found, (await ruling.seen(found.resource))._replace(params=params)
                    )
                    ruling.add(found, judgement)
                    _collect(annotations, judgement)
            _publish(request.draft.audit, bound.policy.name, annotations)
        ruling.carry_out()


async def _judged(request: Attributes, found: Invocation[ValidatingPolicy], seen: Inputs) -> Judgement:
    began = time.perf_counter()
    judgement = await patiently(found.policy.weight(request), partial(judge, found.policy, seen))
    if request.draft.trace is not None:
        notes = [Note("", one.message) for one in judgement.decisions if one.message]
        request.draft.did(f"policy {found.policy.name}", notes=notes, seconds=time.perf_counter() - began)
    return judgement


def _collect(annotations: dict[str, list[str]], judgement: Judgement) -> None:
    """Several bindings and params may give several values for a key."""
    for key, value in judgement.annotations:
        values = annotations.setdefault(key, [])
        if value not in values:
            values.append(value)


def _publish(audit: dict[str, str], policy: str, annotations: Mapping[str, list[str]]) -> None:
    for key, values in annotations.items():
        cut = [value.encode("utf-8", "replace")[:MAX_AUDIT_VALUE].decode("utf-8", "ignore") for value in values]
        audit[f"{policy}/{key}"] = ", ".join(cut)
