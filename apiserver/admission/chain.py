"""The admission chain: who judges a write, and in which order.

    NamespaceLifecycle → MutatingAdmissionPolicy → MutatingAdmissionWebhook
    ValidatingAdmissionPolicy → ValidatingAdmissionWebhook

If a mutating plug-in wants it all of them are asked once more (upstream's reinvoker). What configures admission is not
itself judged by what it configures.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from apiserver.admission.attributes import Attributes
from apiserver.admission.namespaces import NamespaceLifecycle
from apiserver.registry.catalog import Catalog
from apiserver.registry.pipeline import Draft
from apiserver.registry.resource import Resource
from apiserver.registry.store import Registry

if TYPE_CHECKING:
    from apiserver.admission.webhooks import Hook

GROUP: Final = "admissionregistration.k8s.io"


class Plugin(Protocol):
    """Judges requests as it is configured."""

    def idle(self, registry: Registry) -> bool:
        """Whether nothing is configured, for certain."""
        ...


class Mutating(Plugin, Protocol):
    async def admit(self, request: Attributes) -> None:
        """Change the object with `request.put`, or raise ApiError. Called twice if `request.reinvoke` was set."""
        ...


class Validating(Plugin, Protocol):
    async def validate(self, request: Attributes) -> None:
        """Raises ApiError to refuse."""
        ...


P = TypeVar("P", bound=Plugin)


class Chain:
    """The registry's `Admission`. It knows the registry, which does not know it: `registry` is set once both are there."""

    registry: Registry

    def __init__(self, catalog: Catalog) -> None:
        self._lifecycle = NamespaceLifecycle(_find(catalog, "", "namespaces"))
        self.mutating: Sequence[Mutating] = ()
        self.validating: Sequence[Validating] = ()
        self.local_mutating: list[Hook] = []
        """Webhooks in this process, asked after those that are configured."""
        self.local_validating: list[Hook] = []

    async def mutate(self, draft: Draft) -> bool:
        """Whether the object was changed. Raises ApiError to refuse."""
        await self._lifecycle.admit(self.registry, draft)
        plugins = self._awake(draft, self.mutating)
        if not plugins:
            return False
        request = draft.judged = Attributes(draft, self.registry)
        for plugin in plugins:
            await plugin.admit(request)
        if request.reinvoke:
            request.round = 1
            for plugin in plugins:
                await plugin.admit(request)
        await request.settle()
        return request.changed

    async def validate(self, draft: Draft) -> None:
        """Raises ApiError to refuse."""
        plugins = self._awake(draft, self.validating)
        if not plugins:
            return
        request = draft.judged
        if isinstance(request, Attributes):
            request.refresh()
        else:
            request = draft.judged = Attributes(draft, self.registry)
        for plugin in plugins:
            await plugin.validate(request)

    def _awake(self, draft: Draft, plugins: Sequence[P]) -> list[P]:
        """The plug-ins that have anything to say about a request."""
        if draft.resource.group == GROUP or not draft.resource.stored:
            return []  # nor are questions judged: asking who may do what is how a cluster is repaired
        return [plugin for plugin in plugins if not plugin.idle(self.registry)]


def _find(catalog: Catalog, group: str, plural: str) -> Resource:
    resource = catalog.find(group, "v1", plural)
    assert resource is not None
    return resource
