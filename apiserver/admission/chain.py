"""The admission chain: the plug-ins that check a write, and their order.

    NamespaceLifecycle → MutatingAdmissionPolicy → MutatingAdmissionWebhook
    ValidatingAdmissionPolicy → ValidatingAdmissionWebhook

If a mutating plug-in requests it, all of them are called again (upstream's reinvoker). Policies are not subject to
admission themselves, webhook configurations not to webhooks.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from noxu.apiserver.admission.attributes import Attributes
from noxu.apiserver.admission.namespaces import NamespaceLifecycle
from noxu.apiserver.api.errors import Qualified
from noxu.apiserver.api.meta import OBJECT_META
from noxu.apiserver.apply.entries import InvalidEntries, decode
from noxu.apiserver.go import unstructured
from noxu.apiserver.kinds.admissionregistration import GROUP
from noxu.apiserver.registry.cache import Collection
from noxu.apiserver.registry.catalog import Catalog
from noxu.apiserver.registry.draft import Action, Draft
from noxu.apiserver.registry.reader import Reader
from noxu.apiserver.registry.resource import Resource
from noxu.apiserver.values import Json

if TYPE_CHECKING:
    from noxu.apiserver.admission.hooks import Hook

_MANAGED_FIELDS: Final = OBJECT_META.fields["managedFields"].type
_EXEMPT: Final = frozenset(
    Qualified(GROUP, f"{kind}admissionpolic{end}")
    for kind in ("validating", "mutating")
    for end in ("ies", "ybindings")
)
"""Resources without admission. Webhook configurations are subject to policies, but not to webhooks."""


class Plugin(Protocol):
    """Checks requests by its configuration."""

    def is_idle(self, reader: Reader) -> bool:
        """Whether certainly nothing is configured."""
        ...

    async def prepare(self, resource: Resource) -> None:
        """Called when objects of a resource are written: prepare for them if they configure this plug-in."""
        ...


class Mutating(Plugin, Protocol):
    async def admit(self, request: Attributes) -> None:
        """Change the object with `request.put`, or raise ApiError. Called again if `request.reinvoke` was set."""
        ...


class Validating(Plugin, Protocol):
    async def validate(self, request: Attributes) -> None:
        """Raises ApiError to refuse."""
        ...


P = TypeVar("P", bound=Plugin)


class Chain:
    """The `Admission` of a server."""

    def __init__(self, catalog: Catalog, *, lifecycle: bool = True) -> None:
        """`lifecycle`: whether NamespaceLifecycle runs."""
        self._lifecycle = NamespaceLifecycle(_find(catalog, "", "namespaces")) if lifecycle else None
        self._kinds = [resource for resource in catalog.resources if resource.group == GROUP]
        self._collections: list[Collection] = []  # of these kinds, as long as the cache keeps them
        self.mutating: list[Mutating] = []
        self.validating: list[Validating] = []
        self.local_mutating: list[Hook] = []
        """Webhooks in this process, called after configured ones."""
        self.local_validating: list[Hook] = []

    def mutate(self, draft: Draft) -> Awaitable[None] | None:
        """Change the object and set `draft.mutated`. Raises ApiError to refuse. None if nothing is configured."""
        waits = self._lifecycle.admit(draft) if self._lifecycle is not None else None
        if waits is None and self.is_idle(draft.environment.reader):
            return None
        return self._mutate(draft, waits)

    async def _mutate(self, draft: Draft, lifecycle: Awaitable[None] | None) -> None:
        if lifecycle is not None:
            await lifecycle
        if not (plugins := await self._active(draft, self.mutating)):
            return
        request = draft.admission_state = Attributes(draft)
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
        draft.mutated = request.changed

    def validate(self, draft: Draft) -> Awaitable[None] | None:
        """Raises ApiError to refuse. None: nothing is configured."""
        if draft.resource.group != GROUP and self.is_idle(draft.environment.reader):
            return None
        return self._validate(draft)

    async def _validate(self, draft: Draft) -> None:
        if draft.resource.group == GROUP:
            for plugin in (*self.mutating, *self.validating):
                await plugin.prepare(draft.resource)
        if not (plugins := await self._active(draft, self.validating)):
            return
        request = draft.admission_state
        if not isinstance(request, Attributes):
            request = draft.admission_state = Attributes(draft)
        request.refresh()
        for plugin in plugins:
            await plugin.validate(request)

    def check_again(self, draft: Draft) -> None:
        """Check what may have changed since `mutate`, right before a new object is stored. Raises ApiError."""
        if self._lifecycle is not None:
            self._lifecycle.check_again(draft)

    def is_idle(self, reader: Reader) -> bool:
        """Whether certainly nothing is configured. Every write calls this, so it has to be fast."""
        collections = self._collections
        loaded = reader.cache.collections
        if not collections or loaded.get(self._kinds[0].collection) is not collections[0]:
            return False  # not loaded yet, or the cache was cleared, which affects all collections
        for collection in collections:
            if collection.entries:
                return False
        return not self.local_mutating and not self.local_validating

    async def _active(self, draft: Draft, plugins: Sequence[P]) -> list[P]:
        """The plug-ins that are configured, none for a resource without admission."""
        if draft.resource.group_resource in _EXEMPT or draft.request.action is Action.REVIEW:
            return []  # reviews are exempt: they are needed to repair a cluster
        reader = draft.environment.reader
        self._collections = [await reader.collection(kind) for kind in self._kinds]
        return [plugin for plugin in plugins if not plugin.is_idle(reader)]


def _owners(draft: Draft) -> Json:
    metadata = draft.new.get("metadata")
    return metadata.get("managedFields") if isinstance(metadata, dict) else None


def _keep_readable(draft: Draft, before: Json) -> None:
    """Restore managedFields that admission has made unreadable (fieldmanager's admission controller)."""
    after = _owners(draft)
    if after is None or unstructured.mismatch(_MANAGED_FIELDS, after):
        return  # there are no owners, or validation will report the error
    try:
        decode(after)
    except InvalidEntries as error:
        draft.outcome.warnings.append(
            ".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated "
            f"mutating admission controller; please fix your requests: {error}"
        )
        draft.new = {**draft.new, "metadata": {**draft.new["metadata"], "managedFields": before or []}}


def _find(catalog: Catalog, group: str, plural: str) -> Resource:
    resource = catalog.find(group, "v1", plural)
    assert resource is not None
    return resource
