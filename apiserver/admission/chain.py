"""The admission chain: who judges a write, and in which order.

    NamespaceLifecycle → MutatingAdmissionPolicy → MutatingAdmissionWebhook
    ValidatingAdmissionPolicy → ValidatingAdmissionWebhook

If a mutating plug-in wants it all of them are asked once more (upstream's reinvoker). Policies are not judged
themselves, nor are webhooks by webhooks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from apiserver.admission.attributes import Attributes
from apiserver.admission.namespaces import NamespaceLifecycle
from apiserver.api import unstructured
from apiserver.api.errors import Qualified
from apiserver.api.meta import OBJECT_META
from apiserver.api.types import Json
from apiserver.apply.entries import InvalidEntries, decode
from apiserver.registry.cache import Collection
from apiserver.registry.catalog import Catalog
from apiserver.registry.pipeline import Draft
from apiserver.registry.resource import Resource
from apiserver.registry.store import Registry

if TYPE_CHECKING:
    from apiserver.admission.webhooks import Hook

_MANAGED_FIELDS: Final = OBJECT_META.fields["managedFields"].type
GROUP: Final = "admissionregistration.k8s.io"
_EXEMPT: Final = frozenset(
    Qualified(GROUP, f"{kind}admissionpolic{end}")
    for kind in ("validating", "mutating")
    for end in ("ies", "ybindings")
)
"""Nobody judges these; the configurations of webhooks are judged by policies, but not by webhooks."""


class Plugin(Protocol):
    """Judges requests as it is configured."""

    def idle(self, registry: Registry) -> bool:
        """Whether nothing is configured, for certain."""
        ...

    async def prepare(self, resource: Resource) -> None:
        """Objects of a resource are being written: get ready for them if they are this plug-in's configuration."""
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
        self._kinds = [resource for resource in catalog.resources if resource.group == GROUP]
        self._collections: list[Collection] = []  # of these kinds, as long as the cache keeps them
        self.mutating: list[Mutating] = []
        self.validating: list[Validating] = []
        self.local_mutating: list[Hook] = []
        """Webhooks in this process, asked after those that are configured."""
        self.local_validating: list[Hook] = []

    async def mutate(self, draft: Draft) -> bool:
        """Whether the object was changed. Raises ApiError to refuse."""
        await self._lifecycle.admit(self.registry, draft)
        if self._has_nothing() or not (plugins := await self._awake(draft, self.mutating)):
            return False
        request = draft.judged = Attributes(draft, self.registry)
        owners = _owners(draft)
        for plugin in plugins:
            await plugin.admit(request)
        if request.reinvoke:
            request.round = 1
            for plugin in plugins:
                await plugin.admit(request)
        await request.settle()
        if request.changed:
            _keep_readable(draft, owners)
        return request.changed

    async def validate(self, draft: Draft) -> None:
        """Raises ApiError to refuse."""
        if draft.resource.group == GROUP:
            for one in (*self.mutating, *self.validating):
                await one.prepare(draft.resource)
        if self._has_nothing() or not (plugins := await self._awake(draft, self.validating)):
            return
        request = draft.judged
        if not isinstance(request, Attributes):
            request = draft.judged = Attributes(draft, self.registry)
        request.refresh()
        for plugin in plugins:
            await plugin.validate(request)

    def _has_nothing(self) -> bool:
        """Whether nothing is configured, for certain. Every write asks this, so it is quick."""
        collections = self._collections
        if not collections or self.registry.cache.peek(self._kinds[0].collection) is not collections[0]:
            return False  # not looked at yet, or the cache was emptied, which it is as a whole
        for collection in collections:
            if collection.entries:
                return False
        return not self.local_mutating and not self.local_validating

    async def _awake(self, draft: Draft, plugins: Sequence[P]) -> list[P]:
        """The plug-ins that have anything to say about a request."""
        if draft.resource.what in _EXEMPT or not draft.resource.stored:
            return []  # nor are questions judged: asking who may do what is how a cluster is repaired
        self._collections = [await self.registry.collection(kind) for kind in self._kinds]
        return [plugin for plugin in plugins if not plugin.idle(self.registry)]


def _owners(draft: Draft) -> Json:
    metadata = draft.new.get("metadata")
    return metadata.get("managedFields") if isinstance(metadata, dict) else None


def _keep_readable(draft: Draft, before: Json) -> None:
    """managedFields that admission has made unreadable are put back (fieldmanager's admission controller)."""
    after = _owners(draft)
    if after is None or unstructured.mismatch(_MANAGED_FIELDS, after):
        return  # nobody owns anything, or validation will tell
    try:
        decode(after)
    except InvalidEntries as error:
        draft.warnings.append(
            ".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated "
            f"mutating admission controller; please fix your requests: {error}"
        )
        draft.new = {**draft.new, "metadata": {**draft.new["metadata"], "managedFields": before or []}}


def _find(catalog: Catalog, group: str, plural: str) -> Resource:
    resource = catalog.find(group, "v1", plural)
    assert resource is not None
    return resource
