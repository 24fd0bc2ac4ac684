"""The admission chain: the plug-ins that check a write, and their order.

    NamespaceLifecycle → plug-ins about the kind → MutatingAdmissionPolicy → MutatingAdmissionWebhook
    OwnerReferencesPermissionEnforcement → plug-ins about the kind → ValidatingAdmissionPolicy → ValidatingAdmissionWebhook → ResourceQuota

If a mutating plug-in requests it, all of them are called again (upstream's reinvoker). Policies are not subject to
admission themselves, webhook configurations not to webhooks. Plug-ins about built-in kinds (`builtin.table`) are only
consulted for their resources, and cost other writes nothing.

Namespaced objects need an existing namespace (upstream's NamespaceLifecycle).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Awaitable, Callable, Iterable, Sequence
from importlib import import_module
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from noxu.admission.builtin.table import OF_STATUS, consulted
from noxu.admission.metrics import STEP_BUCKETS, AdmissionMetrics, Step
from noxu.api import errors
from noxu.api.errors import ApiError, Qualified
from noxu.api.json_patches import difference
from noxu.api.meta import OBJECT_META
from noxu.apply.managed_fields import InvalidEntries, decode
from noxu.features import ADMISSION_GROUP
from noxu.go import unstructured
from noxu.registry.cache import Collection
from noxu.registry.draft import Action, Draft
from noxu.registry.reader import Reader
from noxu.registry.resource import Resource
from noxu.registry.served_resources import ServedResources
from noxu.registry.stored_object import StoredObject, object_at
from noxu.values import Json, copy
from noxu_storage.types import Key

if TYPE_CHECKING:
    from noxu.admission.attributes import Attributes
    from noxu.admission.reviews import Hook

IMMORTAL: Final = frozenset({"default", "kube-system", "kube-public"})
_ACCESS_REVIEWS: Final = frozenset({Qualified("authorization.k8s.io", "localsubjectaccessreviews")})
"""They are answered for every namespace: a refusal would say which namespaces exist."""


class NamespaceLifecycle:
    """Refuses creation in a missing or terminating namespace, and deletion of three namespaces."""

    def __init__(self, namespaces: Resource) -> None:
        self._namespaces = namespaces

    def passes(self, draft: Draft) -> bool:
        """Whether one look shows that `admit` has nothing to refuse, and need not wait; False says nothing."""
        if draft.operation != "CREATE":
            return draft.resource is not self._namespaces
        if not draft.resource.namespaced:
            return True
        collection = draft.environment.reader.cache.collections.get(self._namespaces.collection)
        if collection is None:
            return False
        entry = collection.entries.get(Key(collection.name, "", draft.request.namespace))
        return entry is not None and b"Terminating" not in entry.stored

    def admit(self, draft: Draft) -> Awaitable[None] | None:
        """Check a write; the result is awaitable if the namespaces are not loaded yet. Raises ApiError to refuse."""
        resource = draft.resource
        if resource is self._namespaces:
            if draft.operation == "DELETE" and draft.request.admitted_name in IMMORTAL:
                raise errors.forbidden(resource.group_resource, draft.request.name, "this namespace may not be deleted")
            return None
        if draft.operation != "CREATE" or not resource.namespaced or resource.group_resource in _ACCESS_REVIEWS:
            return None
        collection = draft.environment.reader.cache.collections.get(self._namespaces.collection)
        if collection is None:
            return self._load_and_check(draft)
        self._check(draft, collection)
        return None

    async def _load_and_check(self, draft: Draft) -> None:
        self._check(draft, await draft.environment.reader.collection(self._namespaces))

    def check_again(self, draft: Draft) -> None:
        """Check right before a new object is stored: the namespace may have changed since `admit`. Raises ApiError.

        Nothing waits between this and the write's place in the store's queue. So everything that was admitted before a
        namespace became terminating is stored before what its controller writes, which therefore finds it.
        """
        if draft.resource.namespaced and not self.passes(draft):
            collection = draft.environment.reader.cache.collections.get(self._namespaces.collection)
            if collection is not None:  # None: the cache was reset meanwhile
                self._check(draft, collection)

    def _namespace(self, draft: Draft, collection: Collection) -> StoredObject | None:
        return collection.entries.get(Key(collection.name, "", draft.request.namespace))

    def _check(self, draft: Draft, collection: Collection) -> None:
        entry = self._namespace(draft, collection)
        if entry is None:
            raise errors.not_found(self._namespaces.group_resource, draft.request.namespace)
        if is_terminating(entry, self._namespaces):
            raise _terminating(draft)


def is_terminating(entry: StoredObject, namespaces: Resource) -> bool:
    """Whether a namespace is being deleted."""
    if b"Terminating" not in entry.stored:
        return False
    return bool(object_at(entry, namespaces).get("status", {}).get("phase") == "Terminating")


def _terminating(draft: Draft) -> ApiError:
    namespace = draft.request.namespace
    metadata = draft.new.get("metadata") or {}
    name = (
        draft.request.name or metadata.get("name") or metadata.get("generateName") or "Unknown"
    )  # NewForbidden's order
    why = f"unable to create new content in namespace {namespace} because it is being terminated"
    error = errors.forbidden(draft.request.target.group_resource, name, why)
    cause = {
        "reason": "NamespaceTerminating",
        "message": f"namespace {namespace} is being terminated",
        "field": "metadata.namespace",
    }
    error.details = {**(error.details or {}), "causes": [cause]}
    return error


# -- chain ------------------------------------------------------------------------------------------------------------


OWNER_REFERENCES: Final = "OwnerReferencesPermissionEnforcement"
_MANAGED_FIELDS: Final = OBJECT_META.fields["managedFields"].type
_EXEMPT: Final = frozenset(
    Qualified(ADMISSION_GROUP, f"{kind}admissionpolic{end}")
    for kind in ("validating", "mutating")
    for end in ("ies", "ybindings")
)
"""Resources without admission. Webhook configurations are subject to policies, but not to webhooks."""


class Plugin(Protocol):
    """Checks requests by its configuration."""

    @property
    def name(self) -> str:
        """The name in `--enable-admission-plugins` and in metrics."""
        ...

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

    def __init__(self, served_resources: ServedResources, enabled: Iterable[str]) -> None:
        """`enabled` are the plug-ins that run; policies, webhooks and quotas are added to the lists below."""
        enabled = frozenset(enabled)
        lifecycle = "NamespaceLifecycle" in enabled
        self._lifecycle = NamespaceLifecycle(_find(served_resources, "", "namespaces")) if lifecycle else None
        self.check_again: Callable[[Draft], None] = self._lifecycle.check_again if self._lifecycle else _nothing
        """Check what may have changed since `mutate`, right before a new object is stored. Raises ApiError."""
        self._consulted = consulted(enabled)
        self._checks_owners = OWNER_REFERENCES in enabled
        self._kinds = [
            kind for kind in served_resources.resources if kind.group == ADMISSION_GROUP and not kind.is_custom
        ]
        if "ResourceQuota" in enabled:
            self._kinds.append(_find(served_resources, "", "resourcequotas"))
        self.metrics = AdmissionMetrics()
        self._counted: dict[tuple[Step, str], list[float]] = {}
        self._collections: list[Collection] = []  # of these kinds, as long as the cache keeps them
        self.mutating: list[Mutating] = []
        self.validating: list[Validating] = []
        self.local_mutating: list[Hook] = []
        """Webhooks in this process, called after configured ones."""
        self.local_validating: list[Hook] = []

    def mutate(self, draft: Draft) -> Awaitable[None] | None:
        """Change the object and set `draft.mutated`. Raises ApiError to refuse. None if nothing is configured."""
        began = perf_counter()
        if not self._has_plugins(draft) and self.is_idle(draft.environment.reader):
            lifecycle = self._lifecycle
            if lifecycle is None or lifecycle.passes(draft):
                series = self._counted.get(("admit", draft.operation)) or self._series("admit", draft.operation)
                seconds = perf_counter() - began
                series[bisect_left(STEP_BUCKETS, seconds)] += 1  # shared with `AdmissionMetrics.steps`
                series[-1] += seconds
                return None
        return self.metrics.step("admit", draft.operation, self._begin_mutating, draft)

    def _begin_mutating(self, draft: Draft) -> Awaitable[None] | None:
        waits = self._lifecycle.admit(draft) if self._lifecycle is not None else None
        is_consulted = self._consults(draft)
        if waits is None and not is_consulted and self.is_idle(draft.environment.reader):
            return None
        return self._mutate(draft, waits, is_consulted)

    def _series(self, step: Step, operation: str) -> list[float]:
        """The numbers of a step that had nothing to do, as nearly all have (see `Histogram.series`)."""
        series = self._counted[step, operation] = self.metrics.steps.series((step, operation, "false"))
        return series

    async def _mutate(self, draft: Draft, lifecycle: Awaitable[None] | None, is_consulted: bool) -> None:
        if lifecycle is not None:
            await lifecycle
        plugins = await self._active(draft, self.mutating)
        if not plugins and not is_consulted:
            return
        request = self._attributes(draft)
        if is_consulted:
            await self._consult(request)
        if not plugins:
            return
        draft.admission = request
        owners = _owners(draft)
        await self._admit(plugins, request)
        if request.reinvoke:
            request.round = 1
            if is_consulted:
                await request.settle()
                await self._consult(request)
                request.put(draft.resource, draft.new)
            await self._admit(plugins, request)
        await request.settle()
        if request.changed:
            _keep_readable(draft, owners)
        draft.mutated = request.changed

    def _consults(self, draft: Draft) -> bool:
        """Whether plug-ins about the kind check this write."""
        return draft.operation in ("CREATE", "UPDATE") and self._has_plugins(draft)

    def _has_plugins(self, draft: Draft) -> bool:
        """Whether there are plug-ins about the kind for writes to it, or to this subresource."""
        collection = draft.resource.collection
        is_of_all = draft.request.subresource != "status" or collection in OF_STATUS
        return is_of_all and collection in self._consulted.collections

    async def _admit(self, plugins: Sequence[Mutating], request: Attributes) -> None:
        for plugin in plugins:
            with self.metrics.plugin(plugin.name, "admit", request.operation):
                await plugin.admit(request)

    async def _consult(self, request: Attributes) -> None:
        """Call the mutating plug-ins about the kind of the request, which change the draft."""
        draft = request.draft
        for name, rules in self._consulted.rules(draft.resource.collection):
            if rules.mutate is None:
                continue
            before = copy(draft.new) if draft.outcome.trace is not None else None
            with self.metrics.plugin(name, "admit", request.operation):
                await rules.mutate(request)
            if before is not None and (patch := difference(before, draft.new)):
                draft.record(f"plug-in {name}", patch=patch)

    def validate(self, draft: Draft) -> Awaitable[None] | None:
        """Raises ApiError to refuse. None: nothing is configured."""
        began, resource = perf_counter(), draft.resource
        is_checked = self._checks_owners or resource.group == ADMISSION_GROUP or self._has_plugins(draft)
        if not is_checked and self.is_idle(draft.environment.reader):
            series = self._counted.get(("validate", draft.operation)) or self._series("validate", draft.operation)
            seconds = perf_counter() - began
            series[bisect_left(STEP_BUCKETS, seconds)] += 1
            series[-1] += seconds
            return None
        return self.metrics.step("validate", draft.operation, self._begin_validating, draft)

    def _begin_validating(self, draft: Draft) -> Awaitable[None] | None:
        if self._checks_owners and draft.operation in ("CREATE", "UPDATE"):
            with self.metrics.plugin(OWNER_REFERENCES, "validate", draft.operation):
                _of_attributes("check")(draft)
        is_consulted = self._consults(draft)
        if draft.resource.group != ADMISSION_GROUP and not is_consulted and self.is_idle(draft.environment.reader):
            return None
        return self._validate(draft, is_consulted)

    async def _validate(self, draft: Draft, is_consulted: bool) -> None:
        if draft.resource.group == ADMISSION_GROUP:
            for plugin in (*self.mutating, *self.validating):
                await plugin.prepare(draft.resource)
        plugins = await self._active(draft, self.validating)
        if not plugins and not is_consulted:
            return
        request = draft.admission = self._attributes(draft)
        request.refresh()
        if is_consulted:
            for name, rules in self._consulted.rules(draft.resource.collection):
                if rules.validate is not None:
                    with self.metrics.plugin(name, "validate", request.operation):
                        await rules.validate(request)
        for plugin in plugins:
            with self.metrics.plugin(plugin.name, "validate", request.operation):
                await plugin.validate(request)

    def _attributes(self, draft: Draft) -> Attributes:
        """What plug-ins see of a write; one object for all of them."""
        kind: type[Attributes] = _of_attributes("Attributes")
        attributes = draft.admission
        return attributes if isinstance(attributes, kind) else kind(draft, self.metrics)

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

    async def ignores(self, resource: Resource, reader: Reader) -> bool:
        """Whether updates of a resource are certainly neither changed nor refused."""
        if self._checks_owners or resource.collection in self._consulted.collections:
            return False
        if not self.is_idle(reader):
            await self._load(reader)
        return self.is_idle(reader)

    async def _load(self, reader: Reader) -> None:
        """Read what is configured, if the cache does not have it."""
        self._collections = [await reader.collection(kind) for kind in self._kinds]

    async def _active(self, draft: Draft, plugins: Sequence[P]) -> list[P]:
        """The plug-ins that are configured, none for a resource without admission."""
        if draft.resource.group_resource in _EXEMPT or draft.request.action is Action.REVIEW:
            return []  # reviews are exempt: they are needed to repair a cluster
        reader = draft.environment.reader
        await self._load(reader)
        return [plugin for plugin in plugins if not plugin.is_idle(reader)]


def _of_attributes(name: str) -> Any:
    """A name of `attributes`, which is imported with the first write that a plug-in sees: it takes 26 ms."""
    return getattr(import_module("noxu.admission.attributes"), name)


def _nothing(_: Draft) -> None: ...


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


def _find(served_resources: ServedResources, group: str, plural: str) -> Resource:
    resource = served_resources.find(group, "v1", plural)
    assert resource is not None
    return resource
