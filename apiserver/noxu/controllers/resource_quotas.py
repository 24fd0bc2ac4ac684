"""Keeps the status of ResourceQuotas: limits, and usage in the namespace (upstream's resourcequota-controller).

A quota is counted again when its spec changes, when objects of its namespace are deleted, when a pod ends, when a service or
a claim changes, and every five minutes. Creations are not followed: the admission plug-in adds them to the status.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, Self

from noxu.api import codec
from noxu.api.errors import Qualified
from noxu.controllers.controller import Controller, ControllerParts
from noxu.go.time import format_time
from noxu.registry.cache import Change
from noxu.registry.offload import offload
from noxu.registry.resource import Resource, prepared
from noxu.registry.stored_object import StoredObject, object_at
from noxu.values import Json
from noxu_storage.types import Event, Key, Revision

if TYPE_CHECKING:
    from noxu.admission.builtin.usage import Evaluator

MANAGER: Final = "kube-controller-manager"
PERIOD: Final = 300.0
"""Seconds after which a quota is counted again (--resource-quota-sync-period)."""
_CHANGING: Final = frozenset({"/services", "/persistentvolumeclaims"})
"""The collections whose objects may use less after an update."""
_PHASES: Final = (b'"phase":"Succeeded"', b'"phase":"Failed"')


class ResourceQuotaController(Controller[Key]):
    """Keys are those of quotas. As long as there are some, it follows the changes of all collections, too."""

    name = "resourcequota-controller"
    follows = (("", "resourcequotas"),)
    on_process_time = True

    def __init__(self, parts: ControllerParts) -> None:
        super().__init__(parts)
        self._objects = _LimitedObjects(self)

    async def stop(self) -> None:
        self.reader.cache.watchers.pop(self._objects, None)
        await super().stop()

    def observe(self, change: Change) -> Iterable[Key]:
        self._follow_objects()
        entry, before = change.entry, change.before
        if entry is not None and (before is None or _spec(entry.stored) != _spec(before.stored)):
            yield change.key

    def _take_over(self, idle: Self) -> None:
        super()._take_over(idle)
        self._follow_objects()

    def resync(self) -> Iterable[Key]:
        self._follow_objects()
        return list(self.collection.keys)

    def _follow_objects(self) -> None:
        if self.collection.keys:
            self.reader.cache.watchers[self._objects] = None  # gets the rest of this batch of the log, too
        else:
            self.reader.cache.watchers.pop(self._objects, None)

    async def reconcile(self, key: Key) -> float | None:
        collection = await self.reader.collection(self.resource)
        while (entry := collection.entries.get(key)) is not None:
            updated = await self._counted(entry)
            if updated is None or await self.persistence.replace(entry, updated):
                return PERIOD
        return None

    async def _counted(self, entry: StoredObject) -> StoredObject | None:
        """The quota with its status, None if that is up to date."""
        from noxu.admission.builtin import pods, resource_quotas, usage  # with the first quota

        quota = object_at(entry, self.resource)
        limits = pods.quantities((quota.get("spec") or {}).get("hard"))
        counted: dict[Qualified, tuple[Evaluator, list[tuple[Resource, list[StoredObject]]]]] = {}
        for what, evaluator in usage.evaluators(limits).items():
            resources = self._resources(what)
            if resources:
                counted[what] = (evaluator, [(kind, await self._in(entry.key.partition, kind)) for kind in resources])
        now = self.clock.now()

        def count() -> StoredObject | None:
            objects = {
                what: (evaluator, (object_at(item, kind) for kind, entries in parts for item in entries))
                for what, (evaluator, parts) in counted.items()
            }
            before = usage.used(quota)
            after = {name: item for name, item in before.items() if name in limits}
            after |= usage.total(quota, objects, now.timestamp())
            status = quota.get("status") or {}
            has_both = {"hard", "used"} <= status.keys()
            if has_both and usage.equal(limits, usage.hard(quota)) and usage.equal(after, before):
                return None
            change = {"hard": usage.printed(limits), "used": usage.printed(after)}
            return resource_quotas.with_status(entry, self.resource, change, MANAGER, format_time(now))

        entries = (item for _, parts in counted.values() for _, part in parts for item in part)
        return await offload(sum(len(item.stored) for item in entries), count)

    async def _in(self, partition: str, resource: Resource) -> list[StoredObject]:
        """The objects of a namespace."""
        collection = await self.reader.collection(resource)
        entries = [collection.entries[key] for key in collection.select(partition)]
        if entries:
            await prepared(resource.versions)
        return entries

    def _resources(self, what: Qualified) -> list[Resource]:
        """The stored versions of a namespaced resource that is served: custom resources may have the names of a built-in one."""
        resources = (kind for kind in self.served_resources.current.resources if kind.group_resource == what)
        stored = {kind.collection: kind.versions.storage for kind in resources if kind.is_stored and kind.namespaced}
        return list(stored.values())


class _LimitedObjects:
    """The objects that quotas limit: a watcher of the log."""

    def __init__(self, controller: ResourceQuotaController) -> None:
        self._controller = controller

    def deliver(self, events: Sequence[Event], revision: Revision) -> None:
        controller = self._controller
        for event in events:
            if _frees(event):
                for quota in controller.collection.select(event.key.partition):
                    controller.queue.add(quota)

    def end(self) -> None:
        self._controller.end()


def _spec(stored: bytes) -> Json:
    return codec.decode_stored(stored).get("spec") if stored else None


def _frees(event: Event) -> bool:
    """Whether the objects of a namespace may use less after a change."""
    if event.value is None or event.key.collection in _CHANGING:
        return event.previous is not None
    if event.key.collection != "/pods" or event.previous is None:
        return False
    return any(phase in event.value and phase not in event.previous.value for phase in _PHASES)
