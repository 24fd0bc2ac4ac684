"""Policies and their bindings, validating and mutating ones: which of them apply to a request, with which params.

Upstream's pkg/admission/plugin/policy/generic. A policy takes effect through its bindings; each binding names one param,
or selects several, and the policy is evaluated for each of them. Errors in the configuration are reported by requests
that match, as the policy's failurePolicy says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Generic, NamedTuple, TypeVar

from noxu.admission.attributes import Attributes
from noxu.admission.configured import CompiledConfigurations
from noxu.admission.expressions import MatchConditions
from noxu.admission.matching import Criteria, criteria_of_policy, matched
from noxu.api.errors import ApiError
from noxu.api.selectors import label_selector
from noxu.cel import Composition
from noxu.go.text import compact_json
from noxu.registry.conversion.converters import entries_at
from noxu.registry.offload import LOOP_LIMIT, offload
from noxu.registry.reader import Reader, key_of
from noxu.registry.resource import Resource
from noxu.registry.served_resources import ServedResources
from noxu.registry.stored_object import StoredObject, object_at, packed_labels
from noxu.values import Object, cached_property

_MAX_COMPILED_ON_LOOP: Final = 4 * 1024  # bytes of JSON, about half of them expressions: compiled in some 10 ms
_NONE_FOUND: Final = "no params found for policy binding with `Deny` parameterNotFoundAction"


class ConfigurationError(Exception):
    """A policy or a binding that cannot be used."""


class Policy:
    """One policy; expressions are compiled on first use. `compiled`: all of them are."""

    def __init__(self, value: Object) -> None:
        self.compiled = False
        self.name: str = value["metadata"]["name"]
        self.spec: Object = value["spec"]
        self.fails_closed = self.spec.get("failurePolicy") != "Ignore"
        self.param_kind: Object | None = self.spec.get("paramKind")

    @cached_property
    def criteria(self) -> Criteria:
        """Raises ConfigurationError."""
        return _criteria(self.spec.get("matchConstraints"))

    @cached_property
    def takes_long(self) -> bool:
        """Whether compiling it takes too long for the event loop."""
        return len(compact_json(self.spec)) > _MAX_COMPILED_ON_LOOP

    def weight(self, request: Attributes) -> int:
        """The weight of an evaluation: the number of bytes that it reads."""
        weight = request.draft.weight
        return weight if self.compiled or not self.takes_long else max(weight, LOOP_LIMIT + 1)

    @cached_property
    def conditions(self) -> MatchConditions:
        return MatchConditions(self.spec.get("matchConditions") or (), self.composition)

    @cached_property
    def composition(self) -> Composition:
        variables = [(variable["name"], variable["expression"]) for variable in self.spec.get("variables") or ()]
        return Composition(variables, params=self.param_kind is not None)


class Binding:
    """One binding of a policy."""

    def __init__(self, value: Object) -> None:
        self.name: str = value["metadata"]["name"]
        self.spec: Object = value["spec"]
        self.policy: str = self.spec["policyName"]
        self.param_ref: Object | None = self.spec.get("paramRef")
        self.actions: Sequence[str] = self.spec.get("validationActions") or ()

    @cached_property
    def criteria(self) -> Criteria | None:
        """The binding's criteria, None to match everything that the policy matches. Raises ConfigurationError."""
        match = self.spec.get("matchResources")
        return None if match is None else _criteria(match)


def _criteria(match: Object | None) -> Criteria:
    try:
        return criteria_of_policy(match)
    except ValueError as error:
        raise ConfigurationError(str(error)) from None


P = TypeVar("P", bound=Policy)


class BoundPolicy(NamedTuple, Generic[P]):
    """A policy with all its bindings."""

    policy: P
    bindings: list[Binding]


class Policies(Generic[P]):
    """The policies of one kind that have bindings."""

    def __init__(self, policies: Resource, bindings: Resource, compile_: Callable[[Object], P]) -> None:
        self._policies = CompiledConfigurations(policies, compile_)
        self._bindings = CompiledConfigurations(bindings, Binding)
        self._bound_from: tuple[list[P], list[Binding]] | None = None
        self._bound: list[BoundPolicy[P]] = []

    async def all(self, reader: Reader) -> list[BoundPolicy[P]]:
        """The policies in force now. The list must not be changed."""
        policies, bindings = await self._policies.all(reader), await self._bindings.all(reader)
        if self._bound_from is None or self._bound_from[0] is not policies or self._bound_from[1] is not bindings:
            self._bound_from = policies, bindings
            by_policy: dict[str, list[Binding]] = {}
            for binding in bindings:
                by_policy.setdefault(binding.policy, []).append(binding)
            self._bound = [
                BoundPolicy(policy, by_policy[policy.name]) for policy in policies if policy.name in by_policy
            ]
        return self._bound


# -- matching ------------------------------------------------------------------------------------------


class Invocation(NamedTuple, Generic[P]):
    """A policy to be evaluated for a binding. `resource` is the version that its rules name."""

    policy: P
    binding: Binding
    resource: Resource
    params: list[Object | None]


class Misconfigured(NamedTuple, Generic[P]):
    """A policy that cannot be used, or its `binding` if there is one."""

    policy: P
    binding: Binding | None
    error: str


def _unusable(policy: P, binding: Binding | None, why: ConfigurationError | ApiError) -> Misconfigured[P]:
    subject = "policy" if binding is None else "binding"
    message = why.message if isinstance(why, ApiError) else str(why)
    return Misconfigured(policy, binding, f"failed to configure {subject}: {message}")


async def matching_invocations(request: Attributes, bound: BoundPolicy[P]) -> list[Invocation[P] | Misconfigured[P]]:
    """The evaluations of a policy for a request."""
    policy = bound.policy
    invocations: list[Invocation[P] | Misconfigured[P]] = []
    try:
        resource = await matched(policy.criteria, request)
        if resource is None:
            return []
        kind = None if policy.param_kind is None else _param_resource(request.served_resources, policy.param_kind)
    except (ConfigurationError, ApiError) as error:
        return [_unusable(policy, None, error)]
    for binding in bound.bindings:
        try:
            if binding.criteria is None or await matched(binding.criteria, request) is not None:
                params = await _params(request, kind, binding.param_ref)
                invocations.append(Invocation(policy, binding, resource, params))
        except (ConfigurationError, ApiError) as error:
            invocations.append(_unusable(policy, binding, error))
    return invocations


# -- params -----------------------------------------------------------------------------------------------------------


def _param_resource(served_resources: ServedResources, kind: Object) -> Resource:
    group, _, version = kind["apiVersion"].rpartition("/")
    for resource in served_resources.in_version(group, version):
        if resource.kind == kind["kind"] and resource.is_stored:
            return resource
    name = f"{group}/{version}, Kind={kind['kind']}"
    raise ConfigurationError(f"failed to find resource referenced by paramKind: '{name}'")


async def _params(request: Attributes, kind: Resource | None, reference: Object | None) -> list[Object | None]:
    """The params that a binding refers to; [None] if it refers to none. Raises ConfigurationError and ApiError."""
    if kind is None or reference is None:
        return [None]
    namespace = _namespace_of_params(kind, reference, request.namespace)
    collection = await request.reader.collection(kind)
    if reference.get("name"):
        entry = collection.entries.get(key_of(kind, namespace, reference["name"]))
        selected = [] if entry is None else [entry]
    else:
        selected = _selected(list(collection.entries.values()), namespace, reference)
    if not selected and reference.get("parameterNotFoundAction") == "Deny":
        raise ConfigurationError(_NONE_FOUND)
    return [await offload(len(entry.stored), object_at, entry, kind) for entry in await entries_at(selected, kind)]


def _namespace_of_params(kind: Resource, reference: Object, namespace: str) -> str:
    explicit: str = reference.get("namespace") or ""
    if not kind.namespaced:
        if explicit:
            raise ConfigurationError("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
        return ""
    if not explicit and not namespace:
        why = "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
        raise ConfigurationError(why)
    return explicit or namespace


def _selected(entries: list[StoredObject], namespace: str, reference: Object) -> list[StoredObject]:
    try:
        selector = label_selector(reference.get("selector"))
    except ValueError as error:
        raise ConfigurationError(str(error)) from None
    selected = [entry for entry in entries if entry.namespace == namespace and selector.matches(packed_labels(entry))]
    return sorted(selected, key=lambda entry: entry.key.name)
