"""The namespaces of every cluster, and the deletion of namespaces (upstream's namespace controller).

The former are created again when they are gone. When a namespace is deleted, all objects in it are deleted. When none is
left, the finalizer `kubernetes` is removed, and the namespace is deleted. While objects remain, the status of the
namespace reports them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from noxu.apiserver.api import codec
from noxu.apiserver.api.errors import ApiError
from noxu.apiserver.apply import manager
from noxu.apiserver.clock import Clock
from noxu.apiserver.controllers.controller import Controller
from noxu.apiserver.controllers.emptiness import EmptinessWatch
from noxu.apiserver.controllers.namespace_conditions import Remaining, set_conditions
from noxu.apiserver.go.time import format_time
from noxu.apiserver.registry import ownership
from noxu.apiserver.registry.catalog import LiveCatalog
from noxu.apiserver.registry.change import Change
from noxu.apiserver.registry.deletion import delete_all
from noxu.apiserver.registry.draft import Action, Body, Options, WriteRequest
from noxu.apiserver.registry.entry import Entry, key_of, new_entry, object_at
from noxu.apiserver.registry.offload import offload
from noxu.apiserver.registry.persistence import Persistence
from noxu.apiserver.registry.reader import Reader
from noxu.apiserver.registry.resource import Resource
from noxu.apiserver.registry.write import Writer
from noxu.apiserver.values import Object, copy
from noxu.storage.types import StoreError

INITIAL: Final = ("default", "kube-system", "kube-public", "kube-node-lease")
FINALIZER: Final = "kubernetes"
MANAGER: Final = "kube-controller-manager"  # the field manager of the status
RECHECK: Final = 8.0  # seconds until the remaining objects are counted again; upstream's for objects with finalizers

_FINALIZERS: Final = b'"finalizers":'


class NamespaceController(Controller[str]):
    """Creates the namespaces of every cluster, and empties those that are deleted. Keys are names."""

    name = "namespace-controller"
    workers = 4

    def __init__(
        self,
        reader: Reader,
        writer: Writer,
        persistence: Persistence,
        catalog: LiveCatalog,
        resource: Resource,
        clock: Clock,
    ) -> None:
        super().__init__(reader, resource, clock)
        self.writer = writer
        self.persistence = persistence
        self.catalog = catalog
        self._watches: dict[str, list[EmptinessWatch]] = {}

    def observe(self, change: Change) -> Iterable[str]:
        name = change.key.name
        if change.entry is None:
            self._stop_watches(name)
            return [name] if name in INITIAL else ()
        return [name] if _may_be_terminating(change.entry) else ()

    def resync(self) -> Iterable[str]:
        for name in list(self._watches):
            self._stop_watches(name)
        terminating = [key.name for key, entry in self.collection.entries.items() if _may_be_terminating(entry)]
        return [*INITIAL, *(name for name in terminating if name not in INITIAL)]

    async def reconcile(self, name: str) -> float | None:
        entry = self.collection.entries.get(key_of(self.resource, "", name))
        if entry is None:
            self._stop_watches(name)
            if name in INITIAL:
                await self._create(name)
        elif object_at(entry, self.resource)["metadata"].get("deletionTimestamp"):
            return await self._empty(name)
        return None

    async def _create(self, name: str) -> None:
        value: Object = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        options = Options(field_manager="kube-apiserver")
        try:
            await self.writer.write(WriteRequest(Action.CREATE, self.resource, body=Body(value), options=options))
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise

    async def _empty(self, name: str) -> float | None:
        """Delete everything in a namespace, then the namespace. While objects remain, report and watch them."""
        resources = [resource for resource in self._stored_resources() if resource.namespaced]
        failures: list[ApiError | StoreError] = []
        for resource in resources:
            try:
                await delete_all(self.reader, self.writer, self.persistence, resource, name)
            except (ApiError, StoreError) as error:
                failures.append(error)
        self._stop_watches(name)
        objects, finalizers = await self._watch_remaining(name, resources)
        if not objects:  # upstream sets all conditions to False first, in an event that is followed by the deletion
            await self._finalize(name)
            return None
        await self._report(name, Remaining(objects, finalizers, [str(error) for error in failures]))
        if key_of(self.resource, "", name) not in self.collection.entries:  # it was deleted in the meantime
            self._stop_watches(name)
            return None
        if failures:
            raise failures[0]
        return RECHECK

    async def _watch_remaining(self, name: str, resources: Iterable[Resource]) -> tuple[Counter[str], Counter[str]]:
        """Watch the collections that are not empty. Returns the numbers of objects by resource, and by finalizer."""
        objects: Counter[str] = Counter()
        finalizers: Counter[str] = Counter()
        for resource in resources:
            collection = await self.reader.collection(resource)
            if not (keys := collection.select(f"{name}/")):
                continue
            watch = EmptinessWatch(collection, f"{name}/", lambda: self.queue.add(name))
            self._watches.setdefault(name, []).append(watch)
            objects[f"{resource.plural}.{resource.group}"] = len(keys)
            held = [entry for key in keys if _FINALIZERS in (entry := collection.entries[key]).stored]
            finalizers += await offload(sum(len(entry.stored) for entry in held), _count_finalizers, held)
        return objects, finalizers

    def _stop_watches(self, name: str) -> None:
        for watch in self._watches.pop(name, ()):
            watch.cancel()

    def _stored_resources(self) -> Iterable[Resource]:
        """One resource for each collection."""
        resources = [resource for resource in self.catalog.current.resources if resource.is_stored]
        return {resource.collection: resource.versions.storage for resource in resources}.values()

    async def _report(self, name: str, remaining: Remaining) -> None:
        """Write the conditions of a namespace, if they change."""
        while (entry := self.collection.entries.get(key_of(self.resource, "", name))) is not None:
            live, now = object_at(entry, self.resource), format_time(self.clock.now())
            new: Object = copy(live)
            if not set_conditions(new.setdefault("status", {}), remaining, now):
                return
            owned = manager.update(live, new, ownership.tracker(self.resource, "status"), manager=MANAGER, now=now)
            if await self.persistence.replace(entry, new_entry(entry.key, self.resource, owned)):
                return

    async def _finalize(self, name: str) -> None:
        """Remove the finalizer. A namespace without finalizers is deleted."""
        while (entry := self.collection.entries.get(key_of(self.resource, "", name))) is not None:
            value = object_at(entry, self.resource)
            spec = value["spec"]
            spec["finalizers"] = [finalizer for finalizer in spec.get("finalizers") or () if finalizer != FINALIZER]
            if not spec["finalizers"] and not value["metadata"].get("finalizers"):
                done = bool(await self.persistence.remove(entry))
            elif (updated := new_entry(entry.key, self.resource, value)).stored == entry.stored:
                return
            else:
                done = await self.persistence.replace(entry, updated)
            if done:
                return


def _count_finalizers(entries: Iterable[Entry]) -> Counter[str]:
    """The numbers of objects by finalizer."""
    counter: Counter[str] = Counter()
    for entry in entries:
        counter.update(codec.decode_stored(entry.stored)["metadata"].get("finalizers") or ())
    return counter


def _may_be_terminating(entry: Entry) -> bool:
    return b'"deletionTimestamp":' in entry.stored
