"""Deletes the custom resources of a terminating definition, then the definition (upstream's crd finalizer).

While custom resources have finalizers, the definition remains, too. The condition Terminating is true for at least
IN_PROGRESS_FOR seconds, so that clients that poll can see it; upstream's informers take about as long.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final

from noxu.api.errors import ApiError
from noxu.clock import rfc3339_now
from noxu.controllers.controller import Controller, ControllerParts
from noxu.controllers.definitions import to_change, with_status
from noxu.controllers.namespaces import EmptinessWatch
from noxu.crd import conditions, types
from noxu.crd.conditions import Condition
from noxu.registry.cache import Change
from noxu.registry.deletion import delete_all
from noxu.registry.draft import Action, WriteRequest
from noxu.registry.offload import offload
from noxu.registry.stored_object import StoredObject, key_of, object_at
from noxu.values import Object

IN_PROGRESS_FOR: Final = 0.06
"""Seconds of the event loop's time; the reference's are 0.05 to 0.115."""


class DefinitionFinalizer(Controller[str]):
    """Finishes the deletion of definitions. Keys are names."""

    name = "crd-finalizer-controller"
    follows = ((types.GROUP, types.RESOURCE),)
    workers = 4

    def __init__(self, parts: ControllerParts) -> None:
        super().__init__(parts)
        self._watches: dict[str, EmptinessWatch] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}  # by name: the end of IN_PROGRESS_FOR

    def observe(self, change: Change) -> Iterable[str]:
        if change.entry is None:
            self._stop_watch(change.key.name)
            self._stop_timer(change.key.name)
            return ()
        return [change.key.name] if _may_be_terminating(change.entry) else ()

    def resync(self) -> Iterable[str]:
        for name in list(self._watches):
            self._stop_watch(name)
        return [key.name for key, entry in self.collection.entries.items() if _may_be_terminating(entry)]

    async def reconcile(self, name: str) -> None:
        crd = await self._terminating(name)
        if crd is None:
            return
        versions = self.served_resources.current.defined.get(name)
        if versions is None:
            await self._mark(name, conditions.NEVER_ESTABLISHED, done=True)
            return
        versions = self.served_resources.own(name)
        versions.terminating = True  # before the next write: what passes until then is stored before it
        if conditions.is_set(crd, conditions.DELETION_PENDING):
            await self._mark(name, conditions.DELETION_IN_PROGRESS)
            self._start_timer(name)
        try:
            request = WriteRequest(Action.DELETE, versions.storage, internal=True)  # without admission, as upstream
            await delete_all(self.reader, self.writer, request, None)
        except ApiError as error:  # a conversion webhook does not answer, for example
            await self._mark(name, conditions.deletion_failed(error.message))
            raise
        collection = await self.reader.collection(versions.storage)
        self._stop_watch(name)
        if collection.keys:
            if key_of(self.resource, "", name) in self.collection.entries:  # it was not deleted in the meantime
                self._watches[name] = EmptinessWatch(collection, None, lambda: self.queue.add(name))
        elif name not in self._timers:
            await self._mark(name, conditions.DELETION_COMPLETED, done=True)

    def _start_timer(self, name: str) -> None:
        def end() -> None:
            del self._timers[name]
            self.queue.add(name)

        self._stop_timer(name)
        self._timers[name] = asyncio.get_running_loop().call_later(IN_PROGRESS_FOR, end)

    def _stop_timer(self, name: str) -> None:
        if (timer := self._timers.pop(name, None)) is not None:
            timer.cancel()

    async def stop(self) -> None:
        for name in list(self._timers):
            self._stop_timer(name)
        await super().stop()

    def _stop_watch(self, name: str) -> None:
        if (watch := self._watches.pop(name, None)) is not None:
            watch.cancel()

    async def _terminating(self, name: str) -> Object | None:
        """The definition, if it is being deleted and has the finalizer of this controller."""
        entry = self.collection.entries.get(key_of(self.resource, "", name))
        if entry is None:
            return None
        crd = await offload(len(entry.stored), object_at, entry, self.resource)
        metadata = crd["metadata"]
        has_finalizer = conditions.CLEANUP_FINALIZER in (metadata.get("finalizers") or ())
        return crd if metadata.get("deletionTimestamp") and has_finalizer else None

    async def _mark(self, name: str, condition: Condition, *, done: bool = False) -> None:
        """Set the Terminating condition. When `done`, remove the finalizer; a definition without finalizers is deleted."""
        while (entry := self.collection.entries.get(key_of(self.resource, "", name))) is not None:
            crd = await offload(len(entry.stored), object_at, entry, self.resource)
            if not done and conditions.is_set(crd, condition):
                return
            new = to_change(crd)
            conditions.set_condition(new, condition, rfc3339_now(self.clock))
            if done and not _remove_finalizer(new["metadata"]):
                if await self.persistence.remove(entry):
                    return
                continue
            updated = await offload(len(entry.stored), with_status, entry, crd, new, self.resource, self.clock)
            if await self.persistence.replace(entry, updated.entry):
                return


def _may_be_terminating(entry: StoredObject) -> bool:
    return b'"deletionTimestamp":' in entry.stored


def _remove_finalizer(metadata: Object) -> list[str]:
    """Remove this controller's finalizer, in place. Returns the remaining ones."""
    remaining = [name for name in metadata.get("finalizers") or () if name != conditions.CLEANUP_FINALIZER]
    metadata["finalizers"] = remaining
    return remaining
