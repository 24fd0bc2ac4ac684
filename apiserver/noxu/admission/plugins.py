"""Plug-ins that are created when they are first configured: their imports are large, and few servers need them.

They are created in a thread, because the imports take a tenth of a second: when the first configuration is written, or
after a restart by the first write that they have to check.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

from noxu.features import ADMISSION_GROUP
from noxu.registry import corrupt_objects
from noxu.registry.catalog import Catalog
from noxu.registry.offload import LOOP_LIMIT, offload
from noxu.registry.reader import Reader
from noxu.registry.resource import Resource

if TYPE_CHECKING:
    from noxu.admission.attributes import Attributes
    from noxu.admission.hooks import Hook
    from noxu.webhook.client import Caller


class _Mutating(Protocol):
    async def admit(self, request: Attributes) -> None: ...


class _Validating(Protocol):
    async def validate(self, request: Attributes) -> None: ...


P = TypeVar("P")

IMPORT_WEIGHT: Final = LOOP_LIMIT + 1  # enough to run in the worker thread


class _Deferred(Generic[P]):
    """A plug-in that is active if there are objects of all these kinds, or webhooks of its own."""

    def __init__(
        self, name: str, kinds: tuple[Resource, ...], make: Callable[..., P], own: Sequence[Hook] = ()
    ) -> None:
        self.name = name
        self._kinds = kinds
        self._collections = tuple(kind.collection for kind in kinds)
        self._make = make
        self._own = own
        self._made: P | None = None

    async def plugin(self) -> P:
        if self._made is None:
            self._made = await offload(IMPORT_WEIGHT, self._make, *self._kinds)
        return self._made

    async def prepare(self, resource: Resource) -> None:
        if resource in self._kinds:
            await self.plugin()

    def is_idle(self, reader: Reader) -> bool:
        if self._own:
            return False
        collections = reader.cache.collections
        for name in self._collections:
            collection = collections.get(name)
            if collection is not None and not collection.entries and not collection.corrupt:
                return True
        return False

    async def configured(self, reader: Reader) -> bool:
        """Whether the plug-in is active. Raises ApiError if a configuration is corrupt."""
        found = [await reader.collection(kind) for kind in self._kinds]
        for kind, collection in zip(self._kinds, found, strict=True):
            if collection.corrupt:
                raise corrupt_objects.unlistable(kind, collection.corrupt)
        return bool(self._own) or all(collection.entries for collection in found)


class DeferredMutating(_Deferred[_Mutating]):
    async def admit(self, request: Attributes) -> None:
        if await self.configured(request.reader):
            await (await self.plugin()).admit(request)


class DeferredValidating(_Deferred[_Validating]):
    async def validate(self, request: Attributes) -> None:
        if await self.configured(request.reader):
            await (await self.plugin()).validate(request)


class DeferredQuotas(DeferredValidating):
    """A corrupt quota matters only in its namespace, so the plug-in itself looks for one."""

    async def configured(self, reader: Reader) -> bool:
        return not self.is_idle(reader)


def _validating_policies(policies: Resource, bindings: Resource) -> _Validating:
    from noxu.admission.policies import ValidatingPolicies

    return ValidatingPolicies(policies, bindings)


def _mutating_policies(policies: Resource, bindings: Resource) -> _Mutating:
    from noxu.admission.mutations import MutatingPolicies

    return MutatingPolicies(policies, bindings)


def mutating_policies(catalog: Catalog) -> DeferredMutating:
    """MutatingAdmissionPolicy."""
    return DeferredMutating("MutatingAdmissionPolicy", _kinds(catalog, "mutatingadmissionpolicies"), _mutating_policies)


def validating_policies(catalog: Catalog) -> DeferredValidating:
    """ValidatingAdmissionPolicy."""
    return DeferredValidating(
        "ValidatingAdmissionPolicy", _kinds(catalog, "validatingadmissionpolicies"), _validating_policies
    )


def mutating_webhooks(catalog: Catalog, caller: Caller, local: Sequence[Hook]) -> DeferredMutating:
    """MutatingAdmissionWebhook. `caller` reaches webhooks; `local` are webhooks in this process."""

    def make(configurations: Resource) -> _Mutating:
        from noxu.admission.webhooks import MutatingWebhooks

        return MutatingWebhooks(configurations, caller, local)

    return DeferredMutating("MutatingAdmissionWebhook", (_kind(catalog, "mutatingwebhookconfigurations"),), make, local)


def validating_webhooks(catalog: Catalog, caller: Caller, local: Sequence[Hook]) -> DeferredValidating:
    """ValidatingAdmissionWebhook. `caller` reaches webhooks; `local` are webhooks in this process."""

    def make(configurations: Resource) -> _Validating:
        from noxu.admission.webhooks import ValidatingWebhooks

        return ValidatingWebhooks(configurations, caller, local)

    return DeferredValidating(
        "ValidatingAdmissionWebhook", (_kind(catalog, "validatingwebhookconfigurations"),), make, local
    )


def resource_quotas(catalog: Catalog) -> DeferredQuotas:
    """ResourceQuota."""

    def make(quotas: Resource) -> _Validating:  # noqa: ARG001
        from noxu.admission.builtin.resource_quotas import ResourceQuotas

        return ResourceQuotas()

    quotas = catalog.find("", "v1", "resourcequotas")
    assert quotas is not None
    return DeferredQuotas("ResourceQuota", (quotas,), make)


def _kinds(catalog: Catalog, policies: str) -> tuple[Resource, Resource]:
    return _kind(catalog, policies), _kind(catalog, policies.replace("policies", "policybindings"))


def _kind(catalog: Catalog, plural: str) -> Resource:
    found = catalog.find(ADMISSION_GROUP, "v1", plural)
    assert found is not None
    return found
