"""Plug-ins that are made when something is configured for them: what they import is large, and few need it.

They are made in a thread, for the imports take a tenth of a second: when the first configuration is written, or after a
restart by the first write that they have to judge.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

from apiserver.admission.attributes import Attributes
from apiserver.admission.chain import GROUP
from apiserver.registry import damage
from apiserver.registry.catalog import Catalog
from apiserver.registry.heavy import LIGHT, work
from apiserver.registry.resource import Resource
from apiserver.registry.store import Registry

if TYPE_CHECKING:
    from apiserver.admission.webhooks import Hook


class _Mutating(Protocol):
    async def admit(self, request: Attributes) -> None: ...


class _Validating(Protocol):
    async def validate(self, request: Attributes) -> None: ...


P = TypeVar("P")

IMPORTS: Final = LIGHT + 1  # they are heavy, whatever that is in bytes


class _Deferred(Generic[P]):
    """A plug-in that has nothing to say unless there are objects of all these kinds, or it has something of its own."""

    def __init__(self, kinds: tuple[Resource, ...], make: Callable[..., P], own: Sequence[Hook] = ()) -> None:
        self._kinds = kinds
        self._collections = tuple(kind.collection for kind in kinds)
        self._make = make
        self._own = own
        self._made: P | None = None

    async def plugin(self) -> P:
        if self._made is None:
            self._made = await work(IMPORTS, self._make, *self._kinds)
        return self._made

    async def prepare(self, resource: Resource) -> None:
        if resource in self._kinds:
            await self.plugin()

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


class DeferredMutating(_Deferred[_Mutating]):
    async def admit(self, request: Attributes) -> None:
        if await self.configured(request.registry):
            await (await self.plugin()).admit(request)


class DeferredValidating(_Deferred[_Validating]):
    async def validate(self, request: Attributes) -> None:
        if await self.configured(request.registry):
            await (await self.plugin()).validate(request)


def _validating_policies(policies: Resource, bindings: Resource) -> _Validating:
    from apiserver.admission.policies import ValidatingPolicies

    return ValidatingPolicies(policies, bindings)


def _mutating_policies(policies: Resource, bindings: Resource) -> _Mutating:
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

    def make(configurations: Resource) -> _Mutating:
        from apiserver.admission.webhooks import MutatingWebhooks

        return MutatingWebhooks(configurations, local)

    return DeferredMutating((_kind(catalog, "mutatingwebhookconfigurations"),), make, local)


def validating_webhooks(catalog: Catalog, local: Sequence[Hook]) -> DeferredValidating:
    """ValidatingAdmissionWebhook. `local` are webhooks in this process."""

    def make(configurations: Resource) -> _Validating:
        from apiserver.admission.webhooks import ValidatingWebhooks

        return ValidatingWebhooks(configurations, local)

    return DeferredValidating((_kind(catalog, "validatingwebhookconfigurations"),), make, local)


def _kinds(catalog: Catalog, policies: str) -> tuple[Resource, Resource]:
    return _kind(catalog, policies), _kind(catalog, policies.replace("policies", "policybindings"))


def _kind(catalog: Catalog, plural: str) -> Resource:
    found = catalog.find(GROUP, "v1", plural)
    assert found is not None
    return found
