"""Plug-ins that are made when something is configured for them: what they import is large, and few need it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Generic, TypeVar

from apiserver.admission.attributes import Attributes
from apiserver.admission.chain import GROUP, Mutating, Plugin, Validating
from apiserver.registry import damage
from apiserver.registry.catalog import Catalog
from apiserver.registry.resource import Resource
from apiserver.registry.store import Registry

if TYPE_CHECKING:
    from apiserver.admission.webhooks import Hook

P = TypeVar("P", bound=Plugin)


class _Deferred(Generic[P]):
    """A plug-in that has nothing to say unless there are objects of all these kinds, or it has something of its own."""

    def __init__(self, kinds: tuple[Resource, ...], make: Callable[..., P], own: Sequence[Hook] = ()) -> None:
        self._kinds = kinds
        self._collections = tuple(kind.collection for kind in kinds)
        self._make = make
        self._own = own

    @cached_property
    def plugin(self) -> P:
        return self._make(*self._kinds)

    def idle(self, registry: Registry) -> bool:
        if self._own:
            return False
        peek = registry.cache.peek
        for name in self._collections:
            collection = peek(name)
            if collection is not None and not collection.entries and not collection.damaged:
                return True
        return False

    async def configured(self, registry: Registry) -> bool:
        """Raises ApiError: nobody knows what a damaged configuration would have said."""
        found = [await registry.collection(kind) for kind in self._kinds]
        for kind, collection in zip(self._kinds, found, strict=True):
            if collection.damaged:
                raise damage.unlistable(kind, collection.damaged)
        return bool(self._own) or all(collection.entries for collection in found)


class DeferredMutating(_Deferred[Mutating]):
    async def admit(self, request: Attributes) -> None:
        if await self.configured(request.registry):
            await self.plugin.admit(request)


class DeferredValidating(_Deferred[Validating]):
    async def validate(self, request: Attributes) -> None:
        if await self.configured(request.registry):
            await self.plugin.validate(request)


def _validating_policies(policies: Resource, bindings: Resource) -> Validating:
    from apiserver.admission.policies import ValidatingPolicies

    return ValidatingPolicies(policies, bindings)


def _mutating_policies(policies: Resource, bindings: Resource) -> Mutating:
    from apiserver.admission.mutations import MutatingPolicies

    return MutatingPolicies(policies, bindings)


def mutating_policies(catalog: Catalog) -> DeferredMutating:
    """MutatingAdmissionPolicy."""
    return DeferredMutating(_kinds(catalog, "mutatingadmissionpolicies"), _mutating_policies)


def validating_policies(catalog: Catalog) -> DeferredValidating:
    """ValidatingAdmissionPolicy."""
    return DeferredValidating(_kinds(catalog, "validatingadmissionpolicies"), _validating_policies)


def mutating_webhooks(catalog: Catalog, local: Sequence[Hook]) -> DeferredMutating:
    """MutatingAdmissionWebhook. `local` are webhooks in this process."""

    def make(configurations: Resource) -> Mutating:
        from apiserver.admission.webhooks import MutatingWebhooks

        return MutatingWebhooks(configurations, local)

    return DeferredMutating((_kind(catalog, "mutatingwebhookconfigurations"),), make, local)


def validating_webhooks(catalog: Catalog, local: Sequence[Hook]) -> DeferredValidating:
    """ValidatingAdmissionWebhook. `local` are webhooks in this process."""

    def make(configurations: Resource) -> Validating:
        from apiserver.admission.webhooks import ValidatingWebhooks

        return ValidatingWebhooks(configurations, local)

    return DeferredValidating((_kind(catalog, "validatingwebhookconfigurations"),), make, local)


def _kinds(catalog: Catalog, policies: str) -> tuple[Resource, Resource]:
    return _kind(catalog, policies), _kind(catalog, policies.replace("policies", "policybindings"))


def _kind(catalog: Catalog, plural: str) -> Resource:
    found = catalog.find(GROUP, "v1", plural)
    assert found is not None
    return found
