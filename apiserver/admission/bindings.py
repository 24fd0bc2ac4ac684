"""What validating and mutating policies have in common: what binds them, whom they are about, and their params.

Upstream's pkg/admission/plugin/policy/generic. A policy acts through its bindings; each binding names one param, or
selects several, and the policy is evaluated for each of them. What is wrong with the configuration itself is told when
a request comes that it is about, as the policy's failurePolicy says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Final, Generic, NamedTuple, TypeVar

from apiserver.admission.attributes import Attributes, is_namespace
from apiserver.admission.configured import Configured
from apiserver.admission.expressions import Inputs
from apiserver.admission.matching import Criteria, criteria_of_policy, matched
from apiserver.api import errors
from apiserver.api.errors import ApiError, Qualified
from apiserver.api.gotext import compact_json
from apiserver.api.meta import GroupVersionKind
from apiserver.api.selectors import label_selector
from apiserver.api.types import Object
from apiserver.cel.admission import Composition
from apiserver.cel.library.authorization import Ask
from apiserver.registry.catalog import Catalog
from apiserver.registry.conversion_entries import entries_at
from apiserver.registry.entry import Entry, key_of, labels_of, object_at
from apiserver.registry.heavy import LIGHT, work
from apiserver.registry.pipeline import User
from apiserver.registry.resource import Resource
from apiserver.registry.store import Registry

Authorize = Callable[[User], Ask]
"""What answers the questions that expressions ask about a user."""

_QUICKLY_COMPILED: Final = 4 * 1024  # bytes of JSON, of which perhaps half are expressions: some 10 ms
_NONE_FOUND: Final = "no params found for policy binding with `Deny` parameterNotFoundAction"


class ConfigurationError(Exception):
    """A policy or a binding that cannot be used."""


class Policy:
    """One policy; expressions are compiled when they are first needed. `compiled`: all of them are."""

    def __init__(self, value: Object) -> None:
        self.compiled = False
        self.name: str = value["metadata"]["name"]
        self.spec: Object = value["spec"]
        self.fails = self.spec.get("failurePolicy") != "Ignore"
        self.param_kind: Object | None = self.spec.get("paramKind")

    @cached_property
    def criteria(self) -> Criteria:
        """Raises ConfigurationError."""
        return _criteria(self.spec.get("matchConstraints"))

    @cached_property
    def takes_long(self) -> bool:
        """Whether compiling it is not for the event loop."""
        return len(compact_json(self.spec)) > _QUICKLY_COMPILED

    def weight(self, request: Attributes) -> int:
        """Of an evaluation: how many bytes are looked at."""
        weight = request.draft.weight
        return weight if self.compiled or not self.takes_long else max(weight, LIGHT + 1)

    @cached_property
    def composition(self) -> Composition:
        variables = [(one["name"], one["expression"]) for one in self.spec.get("variables") or ()]
        return Composition(variables, params=self.param_kind is not None)


class Binding:
    """What makes a policy act."""

    def __init__(self, value: Object) -> None:
        self.name: str = value["metadata"]["name"]
        self.spec: Object = value["spec"]
        self.policy: str = self.spec["policyName"]
        self.param_ref: Object | None = self.spec.get("paramRef")
        self.actions: Sequence[str] = self.spec.get("validationActions") or ()

    @cached_property
    def criteria(self) -> Criteria | None:
        """None: whatever the policy is about. Raises ConfigurationError."""
        match = self.spec.get("matchResources")
        return None if match is None else _criteria(match)


def _criteria(match: Object | None) -> Criteria:
    try:
        return criteria_of_policy(match)
    except ValueError as error:
        raise ConfigurationError(str(error)) from None


P = TypeVar("P", bound=Policy)


class Bound(NamedTuple, Generic[P]):
    """A policy with all its bindings."""

    policy: P
    bindings: list[Binding]


class Policies(Generic[P]):
    """The policies of one kind that have bindings."""

    def __init__(self, policies: Resource, bindings: Resource, compile_: Callable[[Object], P]) -> None:
        self._policies = Configured(policies, compile_)
        self._bindings = Configured(bindings, Binding)
        self._seen: tuple[list[P], list[Binding]] | None = None
        self._bound: list[Bound[P]] = []

    async def all(self, registry: Registry) -> list[Bound[P]]:
        """Those in force now."""
        policies, bindings = await self._policies.all(registry), await self._bindings.all(registry)
        if self._seen is None or self._seen[0] is not policies or self._seen[1] is not bindings:
            self._seen = policies, bindings
            by_policy: dict[str, list[Binding]] = {}
            for one in bindings:
                by_policy.setdefault(one.policy, []).append(one)
            self._bound = [Bound(one, by_policy[one.name]) for one in policies if one.name in by_policy]
        return self._bound


# -- what a policy is about -------------------------------------------------------------------------------------------


class Invocation(NamedTuple, Generic[P]):
    """A policy to be evaluated through a binding: `resource` is the version that its rules name."""

    policy: P
    binding: Binding
    resource: Resource
    params: list[Object | None]


class Misconfigured(NamedTuple, Generic[P]):
    """A policy or, with a `binding`, a binding that cannot be used."""

    policy: P
    binding: Binding | None
    error: str


def _unusable(policy: P, binding: Binding | None, why: ConfigurationError | ApiError) -> Misconfigured[P]:
    what = "policy" if binding is None else "binding"
    told = why.message if isinstance(why, ApiError) else str(why)
    return Misconfigured(policy, binding, f"failed to configure {what}: {told}")


async def about(request: Attributes, bound: Bound[P]) -> list[Invocation[P] | Misconfigured[P]]:
    """How the policy is to be evaluated for a request."""
    policy = bound.policy
    found: list[Invocation[P] | Misconfigured[P]] = []
    try:
        resource = await matched(policy.criteria, request)
        if resource is None:
            return []
        kind = None if policy.param_kind is None else _param_resource(request.registry.catalog, policy.param_kind)
    except (ConfigurationError, ApiError) as error:
        return [_unusable(policy, None, error)]
    for binding in bound.bindings:
        try:
            if binding.criteria is None or await matched(binding.criteria, request) is not None:
                params = await _params(request, kind, binding.param_ref)
                found.append(Invocation(policy, binding, resource, params))
        except (ConfigurationError, ApiError) as error:
            found.append(_unusable(policy, binding, error))
    return found


# -- params -----------------------------------------------------------------------------------------------------------


def _param_resource(catalog: Catalog, kind: Object) -> Resource:
    group, _, version = kind["apiVersion"].rpartition("/")
    for one in catalog.in_version(group, version):
        if one.kind == kind["kind"] and one.stored:
            return one
    named = GroupVersionKind(group, version, kind["kind"])
    told = f"{named.group}/{named.version}, Kind={named.kind}"
    raise ConfigurationError(f"failed to find resource referenced by paramKind: '{told}'")


async def _params(request: Attributes, kind: Resource | None, reference: Object | None) -> list[Object | None]:
    """The params that a binding refers to: one that is None if it refers to none. Raises ConfigurationError and ApiError."""
    if kind is None or reference is None:
        return [None]
    namespace = _namespace_of_params(kind, reference, request.namespace)
    collection = await request.registry.collection(kind)
    if reference.get("name"):
        entry = collection.entries.get(key_of(kind, namespace, reference["name"]))
        found = [] if entry is None else [entry]
    else:
        found = _selected(list(collection.entries.values()), namespace, reference)
    if not found and reference.get("parameterNotFoundAction") == "Deny":
        raise ConfigurationError(_NONE_FOUND)
    return [await work(len(entry.stored), object_at, entry, kind) for entry in await entries_at(found, kind)]


def _namespace_of_params(kind: Resource, reference: Object, namespace: str) -> str:
    given: str = reference.get("namespace") or ""
    if not kind.namespaced:
        if given:
            raise ConfigurationError("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
        return ""
    if not given and not namespace:
        why = "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
        raise ConfigurationError(why)
    return given or namespace


def _selected(entries: list[Entry], namespace: str, reference: Object) -> list[Entry]:
    try:
        selector = label_selector(reference.get("selector"))
    except ValueError as error:
        raise ConfigurationError(str(error)) from None
    found = [one for one in entries if one.namespace == namespace and selector.matches(labels_of(one))]
    return sorted(found, key=lambda one: one.key.name)


# -- what expressions see ---------------------------------------------------------------------------------------------


async def inputs(request: Attributes, resource: Resource, namespace: Object | None, authorize: Authorize) -> Inputs:
    """For a policy whose rules name this version of the request's resource; params are still to come."""
    return Inputs(
        await request.new_at(resource),
        await request.old_at(resource),
        document(request, resource),
        (request.resource.group, request.resource.plural, request.subresource, request.namespace, request.name),
        namespace,
        None,
        authorize(request.draft.user),
    )


def for_conditions(seen: Inputs) -> Inputs:
    """The same for match conditions: they see no namespace, and the resource as the request named it."""
    return seen._replace(namespace=None, request={**seen.request, "resource": seen.request["requestResource"]})


def document(request: Attributes, resource: Resource) -> Object:
    """The AdmissionRequest as expressions see it: nothing empty, no uid, no objects."""
    user = request.draft.user
    own = request.resource
    kind, requested = request.kind_at(resource), request.kind
    shown: Object = {
        "kind": kind._asdict(),
        "resource": {"group": resource.group, "version": resource.version, "resource": resource.plural},
        "subResource": request.subresource,
        "requestKind": requested._asdict(),
        "requestResource": {"group": own.group, "version": own.version, "resource": own.plural},
        "requestSubResource": request.subresource,
        "name": request.name,
        "namespace": request.namespace,
    }
    shown = {name: value for name, value in shown.items() if value}
    shown["operation"] = request.operation
    info: Object = {
        "username": user.name,
        "uid": user.uid,
        "groups": list(user.groups),
        "extra": {name: list(values) for name, values in user.extra},
    }
    shown["userInfo"] = {name: value for name, value in info.items() if value}
    shown["dryRun"] = request.dry_run
    shown["options"] = request.options
    return shown


_UNSEEN: Final = ("managedFields", "ownerReferences", "selfLink")


async def namespace_of(request: Attributes) -> Object | None:
    """The namespace of the request, as expressions see it; None for what is in none. Raises ApiError NotFound."""
    if not request.namespace or is_namespace(request.resource):
        return None
    namespaces = request.registry.catalog.find("", "v1", "namespaces")
    assert namespaces is not None
    entry = (await request.registry.collection(namespaces)).entries.get(key_of(namespaces, "", request.namespace))
    if entry is None:
        raise errors.not_found(Qualified("", "namespaces"), request.namespace)
    value = await work(len(entry.stored), object_at, entry, namespaces)
    metadata = {name: one for name, one in value["metadata"].items() if name not in _UNSEEN}
    return {"metadata": metadata, "spec": value.get("spec", {}), "status": value.get("status", {})}


def refusal(request: Attributes, why: str) -> ApiError:
    """admission.NewForbidden."""
    return errors.forbidden(request.resource.what, request.name or _given_name(request), why)


def _given_name(request: Attributes) -> str:
    metadata = request.draft.new.get("metadata") or {}
    return str(metadata.get("name") or metadata.get("generateName") or "Unknown")
