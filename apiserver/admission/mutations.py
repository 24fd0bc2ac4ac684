"""MutatingAdmissionPolicy (upstream's pkg/admission/plugin/policy/mutating).

A mutation is an expression that writes an apply configuration, merged without regard to who owns what, or a JSON patch;
each sees what the one before it has done, with defaults filled in. What cannot be done is an error of the policy: under
failurePolicy Fail all of them together refuse the request. There is nothing to change about a DELETE.

If the object was changed, here or by a webhook, policies whose reinvocationPolicy is IfNeeded are evaluated once more.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import cached_property, partial
from typing import Final, NamedTuple

from apiserver.admission.attributes import Attributes
from apiserver.admission.bindings import (
    Authorize,
    Binding,
    Bound,
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
    allow_all,
    patiently,
)
from apiserver.admission.patching import NotJson, configuration, patch_value
from apiserver.api import errors
from apiserver.api.difference import difference
from apiserver.api.gotext import compact_json, quote
from apiserver.api.types import Json, Object
from apiserver.api.values import copy, equal
from apiserver.apply.goprint import GoValue
from apiserver.apply.merging import merge
from apiserver.apply.patch import FailedTest, PatchFailed, apply_operations
from apiserver.apply.typed import told, validate
from apiserver.apply.types import Type
from apiserver.cel.admission import APPLY_CONFIGURATION, JSON_PATCH, Expression
from apiserver.cel.errors import Patience
from apiserver.cel.library.patches import ObjectValue, Operation, misplaced
from apiserver.cel.values import Value
from apiserver.registry import ownership
from apiserver.registry.resource import Resource

_KINDS: Final = {
    "JSONPatch": ("jsonPatch", JSON_PATCH),
    "ApplyConfiguration": ("applyConfiguration", APPLY_CONFIGURATION),
}


class MutationError(Exception):
    """A mutation that cannot be done."""


class Mutation(NamedTuple):
    """`patches`: the expression writes a JSON patch, not an apply configuration."""

    expression: Expression
    patches: bool


class MutatingPolicy(Policy):
    @cached_property
    def conditions(self) -> MatchConditions:
        return MatchConditions(self.spec.get("matchConditions") or (), self.composition)

    @cached_property
    def mutations(self) -> list[Mutation]:
        return [self._mutation(one) for one in self.spec.get("mutations") or ()]

    def _mutation(self, one: Object) -> Mutation:
        field, wanted = _KINDS[one["patchType"]]
        expression = self.composition.expression(one[field]["expression"], wanted, patches=True)
        return Mutation(expression, wanted is JSON_PATCH)

    @property
    def again(self) -> bool:
        """Whether it wants to see what others make of its work."""
        return bool(self.spec.get("reinvocationPolicy") == "IfNeeded")


# -- one mutation -----------------------------------------------------------------------------------------------------


def mutated(policy: MutatingPolicy, mutation: Mutation, seen: Inputs, kind: Type, patience: Patience | None) -> Object:
    """The object as the mutation makes it, not yet defaulted; it shares with the one that is seen.

    Raises MutationError, and TakesLong.
    """
    if mutation.expression.error:
        raise MutationError(mutation.expression.error)
    try:
        result = Evaluation(seen, policy.composition, patience=patience).run(mutation.expression)
    except OutOfBudget as error:
        raise MutationError(str(error)) from None
    if result.error:
        raise MutationError(result.error)
    assert seen.object is not None
    if mutation.patches:
        return _patched(seen.object, result.value)
    return _applied(seen.object, result.value, kind)


def _patched(value: Object, operations: list[Value]) -> Object:
    """A JSON patch whose test fails changes nothing."""
    patch = [_operation(one.operation) for one in operations]
    try:
        patched = apply_operations(value, patch)
    except FailedTest:
        return value
    except PatchFailed as failed:
        raise MutationError(f"JSON Patch: {failed.text}") from None
    if not isinstance(patched, dict) or not patched.get("kind"):
        raise errors.internal_error(f"Object 'Kind' is missing in '{compact_json(patched)}'")
    return patched


def _operation(given: Operation) -> Object:
    operation: Object = {"op": given.op, "path": given.path}
    if given.source:
        operation["from"] = given.source
    for value in given.value:
        if isinstance(value, ObjectValue):
            _check_places(value)
        try:
            operation["value"] = patch_value(value)
        except NotJson as error:
            why = "JSONPath valueExpression evaluated to a type that could not marshal to JSON"
            raise MutationError(f"{why}: {error}") from None
        if given.op == "test" and value is None:
            operation["value"] = _NOTHING
    return operation


_NOTHING: Final = object()
"""As upstream makes patches of expressions, nothing passes a test for null, not even null."""


def _check_places(value: ObjectValue) -> None:
    if wrong := list(misplaced(value)):
        raise MutationError("type mismatch: " + "\n".join(wrong))


def _applied(value: Object, written: ObjectValue, kind: Type) -> Object:
    _check_places(written)
    try:
        patch = configuration(written)
    except NotJson:
        raise MutationError("invalid return type: *dynamic.ObjectVal") from None
    patch |= {name: value[name] for name in ("apiVersion", "kind") if name in value}
    if wrong := validate(patch, kind):
        raise MutationError(f"error applying patch: failed to convert patch object to typed object: {told(wrong)}")
    if strange := next(_strange(patch), None):
        raise MutationError(f"error applying patch: cannot use {strange.type} as JSON")  # upstream panics
    if atomics := list(_atomics(patch, kind)):
        why = f"may not mutate atomic arrays, maps or structs: {', '.join(atomics)}"
        raise MutationError(f"error applying patch: invalid ApplyConfiguration: {why}")
    if wrong := validate(value, kind, duplicates=True):
        raise MutationError(f"error applying patch: failed to convert original object to typed object: {told(wrong)}")
    merged: Object = merge(value, patch, kind)
    return merged


def _strange(root: Json) -> Iterator[GoValue]:
    """What is no JSON, where the type takes whatever comes."""
    todo = [root]
    while todo:
        one = todo.pop()
        if isinstance(one, GoValue):
            yield one
        elif isinstance(one, (dict, list)):
            todo += one.values() if isinstance(one, dict) else one


def _atomics(root: Json, kind: Type) -> Iterator[str]:
    """Where a configuration sets something that is owned as a whole: what it does not say would be lost.

    As upstream has it the values of maps are not looked into.
    """
    todo = [("", root, kind)]
    while todo:
        path, value, kind = todo.pop()
        below: list[tuple[str, Json, Type]] = []
        if isinstance(value, dict) and kind.map is not None:
            if kind.map.atomic:
                yield path
            fields = kind.map.fields
            below = [(f"{path}.{name}", one, fields[name][1]) for name, one in value.items() if name in fields]
        elif isinstance(value, list) and kind.list is not None:
            if not kind.list.associative:
                yield path
            below = [(f"{path}[{n}]", one, kind.list.items) for n, one in enumerate(value)]
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
"""A policy, its binding, and the namespace and name of the param."""


class _Rounds:
    """Which policies are evaluated again in round 1 (upstream's policyReinvokeContext)."""

    def __init__(self) -> None:
        self.output: Object | None = None
        """The object as the policies left it in round 0."""
        self.again: set[_Key] = set()
        self._evaluated: set[_Key] = set()

    def evaluated(self, key: _Key) -> None:
        self._evaluated.add(key)

    def changed(self) -> None:
        """Those evaluated so far get to see the change."""
        self.again |= self._evaluated
        self._evaluated = set()


class MutatingPolicies:
    """The plug-in."""

    def __init__(self, policies: Resource, bindings: Resource, authorize: Authorize = lambda user: allow_all) -> None:  # noqa: ARG005
        self._policies = Policies(policies, bindings, MutatingPolicy)
        self._authorize = authorize

    async def admit(self, request: Attributes) -> None:
        """Raises ApiError."""
        if request.operation == "DELETE" or not request.resource.stored:
            return
        bounds = await self._policies.all(request.registry)
        found = await _about_all(request, bounds)
        failures = [_Failure(one.policy, one.binding, one.error) for one in found if isinstance(one, Misconfigured)]
        invocations = [one for one in found if isinstance(one, Invocation)]
        if any(one.params for one in invocations):
            failures += await self._mutate(request, invocations)
        if told_ := [one for one in failures if one.policy.fails]:
            raise _refused(request, told_)

    async def _mutate(self, request: Attributes, invocations: list[Invocation[MutatingPolicy]]) -> list[_Failure]:
        rounds: _Rounds = request.memory.setdefault(MutatingPolicies, _Rounds())
        if request.round:
            now = await request.new_at(request.resource)
            if now is not rounds.output and not equal(now, rounds.output):
                rounds.changed()
        namespace = await namespace_of(request)
        failures: list[_Failure] = []
        for one in invocations:
            for params in one.params:
                failures += await self._invoke(request, one, params, namespace, rounds)
        if request.changed:
            rounds.changed()
            await _settle(request)
        rounds.output = await request.new_at(request.resource)  # nobody changes it: it is replaced
        return failures

    async def _invoke(
        self,
        request: Attributes,
        found: Invocation[MutatingPolicy],
        params: Object | None,
        namespace: Object | None,
        rounds: _Rounds,
    ) -> list[_Failure]:
        policy, binding, resource = found.policy, found.binding, found.resource
        seen = (await inputs(request, resource, namespace, self._authorize))._replace(params=params)
        try:
            if not await patiently(policy.weight(request), partial(_concerns, policy, seen)):
                return []
        except ConditionError as error:
            return [_Failure(policy, binding, str(error), "Invalid")]
        key = _key(policy, binding, params)
        if request.round and key not in rounds.again:
            return []
        began = time.perf_counter()
        failures: list[_Failure] = []
        before = seen.object
        for mutation in policy.mutations:
            try:
                new = await self._mutated(request, resource, policy, mutation, seen)
            except MutationError as error:
                failures.append(_Failure(policy, binding, str(error), "Invalid"))
                continue
            request.put(resource, new)
            request.reinvoke = True
            seen = seen._replace(object=new)
        policy.compiled = True
        if not equal(before, seen.object):
            rounds.changed()
        if policy.again:
            rounds.evaluated(key)
        if request.draft.trace is not None:
            seconds = time.perf_counter() - began
            request.draft.did(f"policy {policy.name}", patch=difference(before, seen.object), seconds=seconds)
        return failures

    async def _mutated(
        self, request: Attributes, resource: Resource, policy: MutatingPolicy, mutation: Mutation, seen: Inputs
    ) -> Object:
        """The object as the mutation makes it, with defaults. Raises MutationError and ApiError."""
        scaling = request.subresource == "scale"
        kind = ownership.SCALE.type if scaling else ownership.tracker(resource, request.subresource).type

        def work(patience: Patience | None) -> Object:
            made = mutated(policy, mutation, seen, kind, patience)
            if made is seen.object or scaling:
                return made
            new: Object = copy(made)  # it shares with what others still look at
            if new.get("kind") == resource.kind and new.get("apiVersion") == resource.api_version:
                resource.behaviour.default(resource, new)
            return new

        return await patiently(policy.weight(request), work)


def _concerns(policy: MutatingPolicy, seen: Inputs, patience: Patience | None) -> bool:
    """Whether its match conditions are met. Raises ConditionError and TakesLong."""
    conditions = policy.conditions
    return not conditions or conditions.met_within(patience, for_conditions(seen), fail=policy.fails)


async def _settle(request: Attributes) -> None:
    """Raises ApiError if what the policies made is not of the request's group any more, or cannot be converted."""
    try:
        await request.settle()
    except errors.ApiError as error:
        raise errors.internal_error(f"failed to convert object: {error.message}") from None


async def _about_all(
    request: Attributes, bounds: list[Bound[MutatingPolicy]]
) -> list[Invocation[MutatingPolicy] | Misconfigured[MutatingPolicy]]:
    return [one for bound in bounds for one in await about(request, bound)]


def _key(policy: MutatingPolicy, binding: Binding, params: Object | None) -> _Key:
    metadata = {} if params is None else params["metadata"]
    return policy.name, binding.name, metadata.get("namespace", ""), metadata.get("name", "")


def _refused(request: Attributes, failures: list[_Failure]) -> errors.ApiError:
    """All of them are causes, the first one gives message and reason; the code stays that of Forbidden."""
    error = refusal(request, "")
    error.message = str(failures[0])
    error.reason = failures[0].reason
    error.details = {**(error.details or {}), "causes": [{"message": str(one)} for one in failures]}
    return error
