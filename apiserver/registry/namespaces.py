"""The life of a namespace: there from the start, active, terminating with everything in it, gone.

What upstream's namespace controller does: when a namespace is deleted, all objects of all kinds in it are deleted; when
the last one is gone, the finalizer `kubernetes` is taken away and the namespace goes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final

from apiserver.api.errors import ApiError
from apiserver.api.types import Object
from apiserver.registry.change import Change
from apiserver.registry.deletion import delete_all, until_empty
from apiserver.registry.entry import Entry, key_of, made, object_at
from apiserver.registry.pipeline import Options
from apiserver.registry.resource import Resource
from apiserver.registry.store import Registry
from storage.types import Revision

INITIAL: Final = ("default", "kube-system", "kube-public", "kube-node-lease")
FINALIZER: Final = "kubernetes"


class Namespaces:
    """Follows the collection of namespaces; the registry's `Lifecycle` for it."""

    failed = "Precondition failed"

    def __init__(self, registry: Registry, resource: Resource) -> None:
        self.registry = registry
        self.resource = resource
        self._finishing: dict[str, asyncio.Task[None]] = {}

    async def start(self) -> None:
        """Create the namespaces that every cluster has, and go on with those that were left half deleted."""
        for name in INITIAL:
            value: Object = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            draft = self.registry.draft(
                self.resource, "CREATE", value, name=name, options=Options(field_manager="kube-apiserver")
            )
            try:
                await self.registry.create(draft)
            except ApiError as error:
                if error.reason != "AlreadyExists":
                    raise
        collection = await self.registry.collection(self.resource)
        collection.watchers[self] = None
        for entry in list(collection.entries.values()):
            self._look(entry)

    async def stop(self) -> None:
        tasks = list(self._finishing.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def deliver(self, changes: Sequence[Change], revision: Revision) -> None:
        for change in changes:
            if change.entry is not None:
                self._look(change.entry)

    def end(self) -> None:
        """The cache lost track of the log: begin anew."""
        self._beginning = asyncio.get_running_loop().create_task(self.start())

    # -- deleting

    async def settled(self, name: str) -> None:
        """Nothing follows from creating or changing a namespace."""

    def holds(self, value: Object) -> bool:
        """A namespace has finalizers in its spec, too."""
        return bool((value.get("spec") or {}).get("finalizers"))

    def begin_delete(self, value: Object, now: str) -> bool:
        if not self.holds(value):
            return False
        value["metadata"].setdefault("deletionTimestamp", now)
        value.setdefault("status", {})["phase"] = "Terminating"
        return True

    def _look(self, entry: Entry) -> None:
        """Begin to empty a namespace that is being deleted."""
        name = entry.key.name
        if b'"deletionTimestamp":' not in entry.stored or name in self._finishing:
            return
        if object_at(entry, self.resource)["metadata"].get("deletionTimestamp"):
            task = self._finishing[name] = asyncio.get_running_loop().create_task(self._empty(name))
            task.add_done_callback(lambda _: self._finishing.pop(name, None))

    async def _empty(self, name: str) -> None:
        namespaced = [one for one in self._stored_resources() if one.namespaced]
        for resource in namespaced:
            await delete_all(self.registry, resource, name)
        for resource in namespaced:
            await until_empty(self.registry, resource, name)
        await self._finalize(name)

    def _stored_resources(self) -> Iterable[Resource]:
        """One resource for each collection."""
        return {one.collection: one.versions.storage for one in self.registry.catalog.resources if one.stored}.values()

    async def _finalize(self, name: str) -> None:
        """Take our finalizer away; with the last one goes the namespace."""
        collection = await self.registry.collection(self.resource)
        while (entry := collection.entries.get(key_of(self.resource, "", name))) is not None:
            value = object_at(entry, self.resource)
            spec = value["spec"]
            spec["finalizers"] = [one for one in spec.get("finalizers") or () if one != FINALIZER]
            if not spec["finalizers"] and not value["metadata"].get("finalizers"):
                done = await self.registry.remove(entry)
            else:
                done = await self.registry.replace(entry, made(entry.key, self.resource, value))
            if done:
                return
