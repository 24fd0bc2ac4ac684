"""Plug-ins that are created when they are first configured: their imports are large, and few servers need them.

They are created in a thread, because the imports take a tenth of a second: when the first configuration is written, or
after a restart by the first write that they have to check.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

from noxu.features import ADMISSION_GROUP
from noxu.registry.offload import LOOP_LIMIT, offload
from noxu.registry.reader import Reader, unlistable
from noxu.registry.resource import Resource
from noxu.registry.served_resources import ServedResources

if TYPE_CHECKING:
    from noxu.admission.attributes import Attributes
    from noxu.admission.reviews import Hook
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
        collections = [await reader.collection(kind) for kind in self._kinds]
        for kind, collection in zip(self._kinds, collections, strict=True):
            if collection.corrupt:
                raise unlistable(kind, collection.corrupt)
        return bool(self._own) or all(collection.entries for collection in collections)


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


def _load(place: str, *more: object) -> Callable[..., Any]:
    """What makes a plug-in, from the kinds of its configurations; its class is at this place in the package."""

    def make(*kinds: Resource) -> Any:
        module, _, name = place.rpartition(".")
        return getattr(import_module(f"{__package__}.{module}"), name)(*kinds, *more)

    return make


def mutating_policies(served_resources: ServedResources) -> DeferredMutating:
    """MutatingAdmissionPolicy."""
    kinds = _kinds(served_resources, "mutatingadmissionpolicies")
    return DeferredMutating("MutatingAdmissionPolicy", kinds, _load("mutations.MutatingPolicies"))


def validating_policies(served_resources: ServedResources) -> DeferredValidating:
    """ValidatingAdmissionPolicy."""
    kinds = _kinds(served_resources, "validatingadmissionpolicies")
    return DeferredValidating("ValidatingAdmissionPolicy", kinds, _load("policies.ValidatingPolicies"))


def mutating_webhooks(served_resources: ServedResources, caller: Caller, local: Sequence[Hook]) -> DeferredMutating:
    """MutatingAdmissionWebhook. `caller` reaches webhooks; `local` are webhooks in this process."""
    kinds = (_kind(served_resources, "mutatingwebhookconfigurations"),)
    make = _load("webhooks.MutatingWebhooks", caller, local)
    return DeferredMutating("MutatingAdmissionWebhook", kinds, make, local)


def validating_webhooks(served_resources: ServedResources, caller: Caller, local: Sequence[Hook]) -> DeferredValidating:
    """ValidatingAdmissionWebhook. `caller` reaches webhooks; `local` are webhooks in this process."""
    kinds = (_kind(served_resources, "validatingwebhookconfigurations"),)
    make = _load("webhooks.ValidatingWebhooks", caller, local)
    return DeferredValidating("ValidatingAdmissionWebhook", kinds, make, local)


def resource_quotas(served_resources: ServedResources) -> DeferredQuotas:
    """ResourceQuota."""
    quotas = served_resources.find("", "v1", "resourcequotas")
    assert quotas is not None
    return DeferredQuotas("ResourceQuota", (quotas,), lambda _: _load("builtin.resource_quotas.ResourceQuotas")())


def _kinds(served_resources: ServedResources, policies: str) -> tuple[Resource, Resource]:
    return _kind(served_resources, policies), _kind(served_resources, policies.replace("policies", "policybindings"))


def _kind(served_resources: ServedResources, plural: str) -> Resource:
    resource = served_resources.find(ADMISSION_GROUP, "v1", plural)
    assert resource is not None
    return resource
