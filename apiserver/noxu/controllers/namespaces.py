"""The deletion of namespaces (upstream's namespace controller, pkg/controller/namespace).

When a namespace is deleted, all objects in it are deleted, pods before everything else, as a client would delete them:
admission sees a deletion by the controller's user. When none is left, the finalizer `kubernetes` is removed, and with it the
namespace. While objects remain, the status of the namespace reports them. The next round begins when a collection has
become empty, or after some seconds.

Upstream waits five seconds before the first round, for other servers to see the deletion. Here it begins at once:
writes that were admitted before the deletion are stored before the controller's own, see
`NamespaceLifecycle.check_again`.

Watch whether collections become empty: a namespace or definition is deleted after the objects in it.

The conditions of a terminating namespace: its remaining content, and failed deletions.

Types, reasons and messages are those of upstream's namespace controller (status_condition_utils.go).
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeVar

from noxu.api import codec, errors
from noxu.api.errors import ApiError, Qualified
from noxu.clock import rfc3339_now
from noxu.controllers import controller
from noxu.controllers.controller import Controller, ControllerParts
from noxu.go.time import unix_nanos
from noxu.kinds.core import NAMESPACE_FINALIZER
from noxu.registry.cache import Change, Collection
from noxu.registry.deletion import delete_all
from noxu.registry.draft import Action, Body, DeleteOptions, Options, WriteRequest
from noxu.registry.offload import offload
from noxu.registry.resource import Resource
from noxu.registry.stored_object import StoredObject, key_of, object_at
from noxu.values import Object
from noxu_storage.types import Revision, StoreError


class EmptinessWatch:
    """Calls `call` after a change that leaves a collection, or one of its partitions, empty; also when the watch ends.

    A `Watcher` of the cache.
    """

    def __init__(self, collection: Collection, partition: str | None, call: Callable[[], None]) -> None:
        """`partition` None: the whole collection."""
        self._collection = collection
        self._partition = partition
        self._call = call
        collection.watchers[self] = None

    def deliver(self, changes: Sequence[Change], revision: Revision) -> None:
        if self._collection.is_empty(self._partition):
            self._call()

    def end(self) -> None:
        self._call()

    def cancel(self) -> None:
        self._collection.watchers.pop(self, None)


# -- namespace conditions ---------------------------------------------------------------------------------------------


CONTENT_FAILURE: Final = "NamespaceDeletionContentFailure"
CONTENT_REMAINING: Final = "NamespaceContentRemaining"
FINALIZERS_REMAINING: Final = "NamespaceFinalizersRemaining"

# (type, reason and message of status False), in upstream's order
_FALSE: Final = (
    ("NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", "All resources successfully discovered"),
    ("NamespaceDeletionGroupVersionParsingFailure", "ParsedGroupVersions", "All legacy kube types successfully parsed"),
    (CONTENT_FAILURE, "ContentDeleted", "All content successfully deleted, may be waiting on finalization"),
    (CONTENT_REMAINING, "ContentRemoved", "All content successfully removed"),
    (FINALIZERS_REMAINING, "ContentHasNoFinalizers", "All content-preserving finalizers finished"),
)


class Remaining(NamedTuple):
    """The contents of a terminating namespace after an attempt to delete everything in it.

    `objects` are numbers of objects by `plural.group`, `finalizers` are numbers of objects by finalizer, and `errors` are
    the messages of failed deletions, one for each resource.
    """

    objects: Mapping[str, int]
    finalizers: Mapping[str, int]
    errors: Sequence[str] = ()


def set_conditions(status: Object, remaining: Remaining, now: str) -> bool:
    """Set the conditions in the status of a namespace, in place. Returns whether one of them changed."""
    true = {name: (reason, message) for name, reason, message in _true_conditions(remaining)}
    conditions = status.setdefault("conditions", [])
    current = {condition["type"]: condition for condition in conditions}
    changed = False
    for name, false_reason, false_message in _FALSE:
        reason, message = true.get(name, (false_reason, false_message))
        new = {"status": str(name in true), "reason": reason, "message": message}
        old = current.get(name)
        if old is None:
            conditions.append({"type": name, "status": new["status"], "lastTransitionTime": now, **new})
        elif any(old.get(field) != value for field, value in new.items()):
            if old.get("status") != new["status"]:
                old["lastTransitionTime"] = now
            old.update(new)
        else:
            continue
        changed = True
    return changed


def _true_conditions(remaining: Remaining) -> Iterable[tuple[str, str, str]]:
    """(Type, reason and message) of each condition whose status is True."""
    objects, finalizers, errors = remaining
    if errors:
        text = f"Failed to delete all resource types, {len(errors)} remaining: {', '.join(sorted(errors))}"
        yield CONTENT_FAILURE, "ContentDeletionFailed", text
    if objects:
        numbers = sorted(f"{resource} has {number} resource instances" for resource, number in objects.items())
        yield CONTENT_REMAINING, "SomeResourcesRemain", f"Some resources are remaining: {', '.join(numbers)}"
    if finalizers:
        numbers = sorted(f"{finalizer} in {number} resource instances" for finalizer, number in finalizers.items())
        text = f"Some content in the namespace has finalizers remaining: {', '.join(numbers)}"
        yield FINALIZERS_REMAINING, "SomeFinalizersRemain", text


# -- namespaces -------------------------------------------------------------------------------------------------------


USER: Final = controller.controller("namespace-controller")
PODS: Final = Qualified("", "pods")
FINALIZERS_TAKE: Final = 15  # seconds; the estimate for objects with finalizers, upstream's

_FINALIZERS: Final = b'"finalizers":'
_BACKGROUND: Final = DeleteOptions(propagation="Background")
_BACKGROUND_SENT: Final = {"propagationPolicy": "Background"}

T = TypeVar("T")

log = logging.getLogger("noxu")


@dataclass(slots=True)
class _Round:
    """What one attempt to delete everything has left. `estimate`: seconds until the rest is gone; 0: unknown."""

    objects: Counter[str] = field(default_factory=Counter)
    finalizers: Counter[str] = field(default_factory=Counter)
    failures: list[ApiError | StoreError] = field(default_factory=list)
    estimate: int = 0

    @property
    def done(self) -> bool:
        return not self.objects and not self.failures

    @property
    def remaining(self) -> Remaining:
        return Remaining(self.objects, self.finalizers, [str(failure) for failure in self.failures])


class NamespaceController(Controller[str]):
    """Empties namespaces that are deleted, and finishes their deletion. Keys are names."""

    name = "namespace-controller"
    follows = (("", "namespaces"),)
    workers = 4

    def __init__(self, parts: ControllerParts) -> None:
        super().__init__(parts)
        self._watches: dict[str, list[EmptinessWatch]] = {}

    def observe(self, change: Change) -> Iterable[str]:
        name = change.key.name
        if change.entry is None:
            self._stop_watches(name)
            return ()
        return [name] if _may_be_terminating(change.entry) else ()

    def resync(self) -> Iterable[str]:
        for name in list(self._watches):
            self._stop_watches(name)
        return [key.name for key, entry in self.collection.entries.items() if _may_be_terminating(entry)]

    async def reconcile(self, name: str) -> float | None:
        namespace = self._namespace(name)
        if namespace is None or not (deleted := namespace["metadata"].get("deletionTimestamp")):
            self._stop_watches(name)
            return None
        if NAMESPACE_FINALIZER not in _finalizers(namespace):
            return None
        result = await self._delete_content(name, seconds_since=self._now() - unix_nanos(deleted) / 1e9)
        if self._namespace(name) is None:  # it was deleted in the meantime
            self._stop_watches(name)
            return None
        if not result.done or _is_kept(namespace) or (namespace.get("status") or {}).get("conditions"):
            await self._report(name, result.remaining)
        if result.failures:
            raise result.failures[0]
        if result.objects:
            return result.estimate // 2 + 1
        await self._update(name, "finalize", _remove_finalizer)
        return None

    # -- the content

    async def _delete_content(self, name: str, *, seconds_since: float) -> _Round:
        """Delete everything in a namespace that was deleted some seconds ago, and watch what remains."""
        self._stop_watches(name)
        resources = self._resources()
        result = _Round()
        for resource in [candidate for candidate in resources if candidate.group_resource == PODS]:
            await self._delete_all(resource, name, result, seconds_since)
        if not result.done:
            return result  # other objects may be needed by the pods
        for resource in [candidate for candidate in resources if candidate.group_resource != PODS]:
            await self._delete_all(resource, name, result, seconds_since)
        return result

    def _resources(self) -> list[Resource]:
        """The namespaced resources whose objects can be deleted: each once, whatever its versions are.

        Custom resources may have the names of a built-in kind; they are another resource.
        """
        resources: dict[tuple[Qualified, str], Resource] = {}
        for resource in self.served_resources.current.resources:
            if resource.namespaced and resource.is_stored and "delete" in resource.verbs:
                resources.setdefault((resource.group_resource, resource.collection), resource)
        return list(resources.values())

    async def _delete_all(self, resource: Resource, name: str, result: _Round, seconds_since: float) -> None:
        """Delete the objects of one resource, and add what remains to the result."""
        storage, partition = resource.versions.storage, f"{name}/"
        request = WriteRequest(
            Action.DELETE, storage, delete_options=_BACKGROUND, options_sent=_BACKGROUND_SENT, user=USER
        )
        try:
            collection = await self.reader.collection(storage)
            if collection.is_empty(partition):
                return
            grace = 0
            if resource.group_resource == PODS:
                grace = await self._of_objects(_longest_grace, collection.entries_in(partition))
            await delete_all(self.reader, self.writer, request, name)
            entries = (collection := await self.reader.collection(storage)).entries_in(partition)
        except (ApiError, StoreError) as failure:  # upstream neither counts what remains
            result.failures.append(failure)
            return
        if not entries:
            return
        watch = EmptinessWatch(collection, partition, lambda: self.queue.add(name))
        self._watches.setdefault(name, []).append(watch)
        held = [entry for entry in entries if _FINALIZERS in entry.stored]
        finalizers = await self._of_objects(_count_finalizers, held)
        result.objects[f"{resource.plural}.{resource.group}"] += len(entries)
        result.finalizers += finalizers
        estimate = grace if seconds_since < grace else FINALIZERS_TAKE if finalizers else 0
        result.estimate = max(result.estimate, estimate)
        if not estimate:
            what = f"{resource.group}/{resource.version}, Resource={resource.plural}"
            why = f"unexpected items still remain in namespace: {name} for gvr: {what}"
            result.failures.append(errors.plain_error(why))

    async def _of_objects(self, function: Callable[[Sequence[StoredObject]], T], entries: Sequence[StoredObject]) -> T:
        return await offload(sum(len(entry.stored) for entry in entries), function, entries)

    def _stop_watches(self, name: str) -> None:
        for watch in self._watches.pop(name, ()):
            watch.cancel()

    # -- the namespace

    def _namespace(self, name: str) -> Object | None:
        entry = self.collection.entries.get(key_of(self.resource, "", name))
        return None if entry is None else object_at(entry, self.resource)

    async def _report(self, name: str, remaining: Remaining) -> None:
        """Write the conditions of a namespace, if they change. A failure is logged: the deletion has to go on."""
        now = rfc3339_now(self.clock)
        try:
            await self._update(
                name, "status", lambda value: set_conditions(value.setdefault("status", {}), remaining, now)
            )
        except ApiError as error:
            log.warning("%s: the conditions of %s are not written: %s", self.name, name, error)

    async def _update(self, name: str, subresource: str, change: Callable[[Object], bool]) -> None:
        """Write a subresource of a namespace, if `change` returns true; again after a conflict. Raises ApiError."""
        while (value := self._namespace(name)) is not None and change(value):
            revision = value["metadata"]["resourceVersion"]
            options = Options(field_manager=controller.CONTROLLER_MANAGER)
            request = WriteRequest(
                Action.REPLACE, self.resource, "", name, subresource, Body(value), options=options, user=USER
            )
            try:
                await self.writer.write(request)
                return
            except ApiError:
                newest = self._namespace(name)
                if newest is not None and newest["metadata"]["resourceVersion"] == revision:
                    raise

    def _now(self) -> float:
        return self.clock.now().timestamp()


def _finalizers(namespace: Object) -> list[str]:
    """The finalizers in the spec."""
    return (namespace.get("spec") or {}).get("finalizers") or []


def _remove_finalizer(namespace: Object) -> bool:
    before = _finalizers(namespace)
    namespace["spec"] = {"finalizers": sorted(set(before) - {NAMESPACE_FINALIZER})}
    return NAMESPACE_FINALIZER in before


def _is_kept(namespace: Object) -> bool:
    """Whether the namespace remains after its content, because others have to finalize it, too."""
    return bool(namespace["metadata"].get("finalizers") or len(_finalizers(namespace)) > 1)


def _count_finalizers(entries: Iterable[StoredObject]) -> Counter[str]:
    """The numbers of objects by finalizer."""
    counter: Counter[str] = Counter()
    for entry in entries:
        counter.update(codec.decode_stored(entry.stored)["metadata"].get("finalizers") or ())
    return counter


def _longest_grace(entries: Iterable[StoredObject]) -> int:
    """The longest terminationGracePeriodSeconds of pods that have not ended."""
    pods = (codec.decode_stored(entry.stored) for entry in entries)
    running = (pod for pod in pods if (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed"))
    return max(((pod.get("spec") or {}).get("terminationGracePeriodSeconds") or 0 for pod in running), default=0)


def _may_be_terminating(entry: StoredObject) -> bool:
    return b'"deletionTimestamp":' in entry.stored
