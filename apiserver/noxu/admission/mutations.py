"""MutatingAdmissionPolicy (upstream's pkg/admission/plugin/policy/mutating).

A mutation is an expression for an apply configuration, which is merged regardless of ownership, or for a JSON patch; each
sees the result of the previous one, with defaults filled in. A mutation that fails is an error of the policy: with
failurePolicy Fail, all of them together refuse the request. A DELETE is not mutated.

If the object was changed, here or by a webhook, policies whose reinvocationPolicy is IfNeeded are evaluated again.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial
from typing import Final, NamedTuple

from noxu.admission.attributes import Attributes, refusal
from noxu.admission.bindings import (
    Binding,
    BoundPolicy,
    Invocation,
    Misconfigured,
    Policies,
    Policy,
    matching_invocations,
)
from noxu.admission.expressions import (
    ConditionError,
    Evaluation,
    Inputs,
    OutOfBudget,
    run_within_budget,
)
from noxu.admission.inputs import for_conditions, inputs_of, namespace_of
from noxu.api import errors
from noxu.api.json_patches import difference
from noxu.apply.merging import merge
from noxu.apply.patch import MAX_COPIED, FailedTest, PatchFailed, apply_operations
from noxu.apply.typed import join_errors, validate
from noxu.apply.types import Type
from noxu.cel import Expression, PatchError, Purpose, Value, apply_configuration, json_patch
from noxu.cpu_budget import CpuBudget, limited_by
from noxu.go.text import GoValue, compact_json, quote
from noxu.registry import ownership
from noxu.registry.offload import offload
from noxu.registry.resource import Resource
from noxu.registry.trace import Note
from noxu.values import Json, Object, cached_property, copy, equal

_KINDS: Final = {
    "JSONPatch": ("jsonPatch", Purpose.JSON_PATCH),
    "ApplyConfiguration": ("applyConfiguration", Purpose.APPLY_CONFIGURATION),
}


class MutationError(Exception):
    """A mutation that cannot be applied."""


class Mutation(NamedTuple):
    """`patches`: the expression gives a JSON patch, not an apply configuration."""

    expression: Expression
    patches: bool


class MutatingPolicy(Policy):
    @cached_property
    def mutations(self) -> list[Mutation]:
        return [self._mutation(mutation) for mutation in self.spec.get("mutations") or ()]

    def _mutation(self, mutation: Object) -> Mutation:
        field, purpose = _KINDS[mutation["patchType"]]
        expression = self.composition.expression(mutation[field]["expression"], purpose)
        return Mutation(expression, purpose is Purpose.JSON_PATCH)

    @property
    def is_reinvoked(self) -> bool:
        """Whether it is evaluated again after changes by others."""
        return bool(self.spec.get("reinvocationPolicy") == "IfNeeded")


# -- one mutation -----------------------------------------------------------------------------------------------------


class Mutated(NamedTuple):
    """The object after a mutation, and the bytes by which it may have grown."""

    object: Object
    growth: int


def mutated(
    policy: MutatingPolicy, mutation: Mutation, inputs: Inputs, kind: Type, cpu_budget: CpuBudget | None
) -> Mutated:
    """The object after the mutation, without defaults; it shares parts with the input.

    Raises MutationError and LoopBudgetExceeded.
    """
    if mutation.expression.error:
        raise MutationError(mutation.expression.error)
    try:
        result = Evaluation(inputs, policy.composition, cpu_budget=cpu_budget).run(mutation.expression)
    except OutOfBudget as error:
        raise MutationError(str(error)) from None
    if result.error:
        raise MutationError(result.error)
    assert inputs.object is not None
    with nullcontext() if cpu_budget is None else limited_by(cpu_budget):
        if mutation.patches:
            return _patched(inputs.object, result.value, cpu_budget)
        return _applied(inputs.object, result.value, kind, cpu_budget)


def _patched(value: Object, operations: list[Value], cpu_budget: CpuBudget | None) -> Mutated:
    """Apply a JSON patch; one whose test fails changes nothing."""
    try:
        patch = json_patch(operations, cpu_budget)
        patched = apply_operations(value, patch.value)
    except PatchError as error:
        raise MutationError(str(error)) from None
    except FailedTest:
        return Mutated(value, 0)
    except PatchFailed as failed:
        raise MutationError(f"JSON Patch: {failed.text}") from None
    if not isinstance(patched, dict) or not patched.get("kind"):
        raise errors.internal_error(f"Object 'Kind' is missing in '{compact_json(patched)}'")
    copies = any(operation["op"] == "copy" for operation in patch.value)
    return Mutated(patched, patch.size + (MAX_COPIED if copies else 0))


def _applied(value: Object, written: Value, kind: Type, cpu_budget: CpuBudget | None) -> Mutated:
    try:
        patch, size = apply_configuration(written, cpu_budget)
    except PatchError as error:
        raise MutationError(str(error)) from None
    patch |= {name: value[name] for name in ("apiVersion", "kind") if name in value}
    if faults := validate(patch, kind):
        raise MutationError(
            f"error applying patch: failed to convert patch object to typed object: {join_errors(faults)}"
        )
    if number := next(_go_values(patch), None):
        raise MutationError(f"error applying patch: cannot use {number.type} as JSON")  # upstream panics
    if atomics := list(_atomics(patch, kind)):
        why = f"may not mutate atomic arrays, maps or structs: {', '.join(atomics)}"
        raise MutationError(f"error applying patch: invalid ApplyConfiguration: {why}")
    if faults := validate(value, kind, duplicates=True):
        raise MutationError(
            f"error applying patch: failed to convert original object to typed object: {join_errors(faults)}"
        )
    merged: Object = merge(value, patch, kind)
    return Mutated(merged, size)


def _go_values(root: Json) -> Iterator[GoValue]:
    """The values that are not JSON, which an open type has accepted."""
    todo = [root]
    while todo:
        value = todo.pop()
        if isinstance(value, GoValue):
            yield value
        elif isinstance(value, (dict, list)):
            todo += value.values() if isinstance(value, dict) else value


def _atomics(root: Json, kind: Type) -> Iterator[str]:
    """The paths at which a configuration sets an atomic value, whose other parts would be removed.

    As upstream, this ignores the values of maps.
    """
    todo = [("", root, kind)]
    while todo:
        path, value, kind = todo.pop()
        below: list[tuple[str, Json, Type]] = []
        if isinstance(value, dict) and kind.map is not None:
            if kind.map.atomic:
                yield path
            fields = kind.map.fields
            below = [(f"{path}.{name}", item, fields[name][1]) for name, item in value.items() if name in fields]
        elif isinstance(value, list) and kind.list is not None:
            if not kind.list.associative:
                yield path
            below = [(f"{path}[{n}]", item, kind.list.items) for n, item in enumerate(value)]
        todo += reversed(below)


# -- the plug-in ------------------------------------------------------------------------------------------------------


class _Failure(NamedTuple):
    policy: MutatingPolicy
    binding: Binding | None
    error: str
    reason: str = "Forbidden"

    def __str__(self) -> str:
        if self.binding is None:
            return f"policy {quote(self.policy.name)} denied request: {self.error}"
        return f"policy '{self.policy.name}' with binding '{self.binding.name}' denied request: {self.error}"


_Key = tuple[str, str, str, str]
"""(policy, binding, namespace of the param, name of the param)."""


class _Rounds:
    """The policies to evaluate again in round 1 (upstream's policyReinvokeContext)."""

    def __init__(self) -> None:
        self.output: Object | None = None
        """The object after the policies of round 0."""
        self.to_reinvoke: set[_Key] = set()
        self._evaluated: set[_Key] = set()

    def evaluated(self, key: _Key) -> None:
        self._evaluated.add(key)

    def changed(self) -> None:
        """The policies evaluated so far are evaluated again."""
        self.to_reinvoke |= self._evaluated
        self._evaluated = set()


class MutatingPolicies:
    """The plug-in."""

    def __init__(self, policies: Resource, bindings: Resource) -> None:
        self._policies = Policies(policies, bindings, MutatingPolicy)

    async def admit(self, request: Attributes) -> None:
        """Raises ApiError."""
        if request.operation == "DELETE" or request.is_review:
            return
        bounds = await self._policies.all(request.reader)
        matches = await _about_all(request, bounds)
        failures = [
            _Failure(match.policy, match.binding, match.error) for match in matches if isinstance(match, Misconfigured)
        ]
        invocations = [match for match in matches if isinstance(match, Invocation)]
        if any(invocation.params for invocation in invocations):
            failures += await self._mutate(request, invocations)
        if refusing := [failure for failure in failures if failure.policy.fails_closed]:
            raise _refused(request, refusing)

    async def _mutate(self, request: Attributes, invocations: list[Invocation[MutatingPolicy]]) -> list[_Failure]:
        rounds: _Rounds = request.plugin_state.setdefault(MutatingPolicies, _Rounds())
        if request.round:
            now = await request.new_at(request.resource)
            if now is not rounds.output and not equal(now, rounds.output):
                rounds.changed()
        namespace = await namespace_of(request)
        failures: list[_Failure] = []
        for invocation in invocations:
            for params in invocation.params:
                failures += await self._invoke(request, invocation, params, namespace, rounds)
        if request.changed:
            rounds.changed()
            await _settle(request)
        rounds.output = await request.new_at(request.resource)  # it is never changed in place
        return failures

    async def _invoke(
        self,
        request: Attributes,
        invocation: Invocation[MutatingPolicy],
        params: Object | None,
        namespace: Object | None,
        rounds: _Rounds,
    ) -> list[_Failure]:
        policy, binding, resource = invocation.policy, invocation.binding, invocation.resource
        inputs = (await inputs_of(request, resource, namespace))._replace(params=params)
        try:
            if not await run_within_budget(policy.weight(request), partial(_meets_conditions, policy, inputs)):
                return []
        except ConditionError as error:
            return [_Failure(policy, binding, str(error), "Invalid")]
        key = _key(policy, binding, params)
        if request.round and key not in rounds.to_reinvoke:
            return []
        start = time.perf_counter()
        failures: list[_Failure] = []
        before = inputs.object
        for mutation in policy.mutations:
            began, fault = time.perf_counter(), ""
            try:
                new = await self._mutated(request, resource, policy, mutation, inputs)
            except MutationError as failed:
                fault = str(failed)
            request.metrics.mutation(policy.name, binding.name, fault, time.perf_counter() - began)
            if fault:
                failures.append(_Failure(policy, binding, fault, "Invalid"))
                continue
            request.put(resource, new.object)
            request.draft.weight += new.growth
            request.reinvoke = True
            inputs = inputs._replace(object=new.object)
        policy.compiled = True
        if not await offload(request.draft.weight, equal, before, inputs.object):
            rounds.changed()
        if policy.is_reinvoked:
            rounds.evaluated(key)
        if request.draft.outcome.trace is not None:
            seconds = time.perf_counter() - start
            patch, notes = difference(before, inputs.object), [Note("", failure.error) for failure in failures]
            request.draft.record(f"policy {policy.name}", patch=patch, notes=notes, seconds=seconds)
        return failures

    async def _mutated(
        self, request: Attributes, resource: Resource, policy: MutatingPolicy, mutation: Mutation, inputs: Inputs
    ) -> Mutated:
        """The object after the mutation, with defaults. Raises MutationError and ApiError."""
        scaling, resource = request.subresource == "scale", request.body_at(resource)
        kind = ownership.SCALE.type if scaling else ownership.tracker(resource, request.subresource).type

        def work(cpu_budget: CpuBudget | None) -> Mutated:
            result = mutated(policy, mutation, inputs, kind, cpu_budget)
            if result.object is inputs.object or scaling:
                return result
            new: Object = copy(result.object)  # it shares parts with objects in use
            if new.get("kind") == resource.kind and new.get("apiVersion") == resource.api_version:
                resource.codec.default(resource, new)
            return Mutated(new, result.growth)

        return await run_within_budget(policy.weight(request), work)


def _meets_conditions(policy: MutatingPolicy, inputs: Inputs, cpu_budget: CpuBudget | None) -> bool:
    """Whether the policy's match conditions are met. Raises ConditionError and LoopBudgetExceeded."""
    conditions = policy.conditions
    return not conditions or conditions.met_within(cpu_budget, for_conditions(inputs), fail=policy.fails_closed)


async def _settle(request: Attributes) -> None:
    """Put the object into the draft. Raises ApiError if it cannot be converted to the request's version."""
    try:
        await request.settle()
    except errors.ApiError as error:
        raise errors.internal_error(f"failed to convert object: {error.message}") from None


async def _about_all(
    request: Attributes, bounds: list[BoundPolicy[MutatingPolicy]]
) -> list[Invocation[MutatingPolicy] | Misconfigured[MutatingPolicy]]:
    return [match for bound in bounds for match in await matching_invocations(request, bound)]


def _key(policy: MutatingPolicy, binding: Binding, params: Object | None) -> _Key:
    metadata = {} if params is None else params["metadata"]
    return policy.name, binding.name, metadata.get("namespace", ""), metadata.get("name", "")


def _refused(request: Attributes, failures: list[_Failure]) -> errors.ApiError:
    """The error for failures: each is a cause, the first gives message and reason; the code is that of Forbidden."""
    error = refusal(request, "")
    error.message = str(failures[0])
    error.reason = failures[0].reason
    error.details = {**(error.details or {}), "causes": [{"message": str(failure)} for failure in failures]}
    return error
