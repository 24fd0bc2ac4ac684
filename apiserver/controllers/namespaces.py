"""Namespaces: there from the start, active, terminating with everything in them, gone (upstream's namespace controller).

When a namespace is deleted, all objects of all kinds in it are deleted; when the last one is gone, the finalizer
`kubernetes` is taken away and the namespace goes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from noxu.apiserver.api.errors import ApiError
from noxu.apiserver.clock import Clock
from noxu.apiserver.controllers.controller import Controller
from noxu.apiserver.controllers.emptiness import EmptinessWatch
from noxu.apiserver.registry.catalog import LiveCatalog
from noxu.apiserver.registry.change import Change
from noxu.apiserver.registry.deletion import delete_all
from noxu.apiserver.registry.draft import Action, Body, Options, WriteRequest
from noxu.apiserver.registry.entry import Entry, key_of, new_entry, object_at
from noxu.apiserver.registry.persistence import Persistence
from noxu.apiserver.registry.reader import Reader
from noxu.apiserver.registry.resource import Resource
from noxu.apiserver.registry.write import Writer
from noxu.apiserver.values import Object

INITIAL: Final = ("default", "kube-system", "kube-public", "kube-node-lease")
FINALIZER: Final = "kubernetes"


class NamespaceController(Controller[str]):
    """Creates the namespaces that every cluster has, and empties those that are deleted. Keys are names."""

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
        self._waiting: dict[str, list[EmptinessWatch]] = {}

    def observe(self, change: Change) -> Iterable[str]:
        name = change.key.name
        if change.entry is None:
            self._stop_waiting(name)
            return ()
        return [name] if _may_be_terminating(change.entry) else ()

    def resync(self) -> Iterable[str]:
        for name in list(self._waiting):
            self._stop_waiting(name)
        terminating = [key.name for key, entry in self.collection.entries.items() if _may_be_terminating(entry)]
        return [*INITIAL, *(name for name in terminating if name not in INITIAL)]

    async def reconcile(self, name: str) -> None:
        entry = self.collection.entries.get(key_of(self.resource, "", name))
        if entry is None:
            if name in INITIAL:
                await self._create(name)
        elif object_at(entry, self.resource)["metadata"].get("deletionTimestamp"):
            await self._empty(name)

    async def _create(self, name: str) -> None:
        value: Object = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        options = Options(field_manager="kube-apiserver")
        try:
            await self.writer.write(WriteRequest(Action.CREATE, self.resource, body=Body(value), options=options))
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise

    async def _empty(self, name: str) -> None:
        """Delete everything in a namespace, and let it go when nothing is left; until then wait for changes."""
        resources = [one for one in self._stored_resources() if one.namespaced]
        for resource in resources:
            await delete_all(self.reader, self.writer, self.persistence, resource, name)
        self._stop_waiting(name)
        for resource in resources:
            collection = await self.reader.collection(resource)
            if collection.select(f"{name}/"):
                watch = EmptinessWatch(collection, f"{name}/", lambda: self.queue.add(name))
                self._waiting.setdefault(name, []).append(watch)
        if name not in self._waiting:
            await self._finalize(name)

    def _stop_waiting(self, name: str) -> None:
        for watch in self._waiting.pop(name, ()):
            watch.cancel()

    def _stored_resources(self) -> Iterable[Resource]:
        """One resource for each collection."""
        resources = self.catalog.current.resources
        return {one.collection: one.versions.storage for one in resources if one.is_stored}.values()

    async def _finalize(self, name: str) -> None:
        """Take our finalizer away; with the last one goes the namespace."""
        while (entry := self.collection.entries.get(key_of(self.resource, "", name))) is not None:
            value = object_at(entry, self.resource)
            spec = value["spec"]
            spec["finalizers"] = [one for one in spec.get("finalizers") or () if one != FINALIZER]
            if not spec["finalizers"] and not value["metadata"].get("finalizers"):
                done = bool(await self.persistence.remove(entry))
            elif (updated := new_entry(entry.key, self.resource, value)).stored == entry.stored:
                return
            else:
                done = await self.persistence.replace(entry, updated)
            if done:
                return


def _may_be_terminating(entry: Entry) -> bool:
    return b'"deletionTimestamp":' in entry.stored
