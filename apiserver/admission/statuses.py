"""The status of ValidatingAdmissionPolicies: what upstream's controller writes into it.

The status says which generation of the policy was looked at, and warns of expressions that do not fit the schemas of
what it is about. A policy is looked at when it changes, not when a schema does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final

from apiserver.admission.chain import GROUP
from apiserver.api.gotime import format_time
from apiserver.api.types import Object
from apiserver.apply import manager
from apiserver.registry import ownership
from apiserver.registry.change import Change
from apiserver.registry.entry import Entry, made, object_at
from apiserver.registry.heavy import work
from apiserver.registry.store import Registry
from storage.types import Revision

MANAGER: Final = "validatingadmissionpolicy-status"


class PolicyStatuses:
    """Follows the collection of policies."""

    def __init__(self, registry: Registry) -> None:
        resource = registry.catalog.find(GROUP, "v1", "validatingadmissionpolicies")
        assert resource is not None
        self._registry = registry
        self._resource = resource
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        collection = await self._registry.collection(self._resource)
        collection.watchers[self] = None
        self._look(collection.entries.values())

    async def stop(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def deliver(self, changes: Sequence[Change], revision: Revision) -> None:
        self._look(change.entry for change in changes if change.entry is not None)

    def end(self) -> None:
        """The cache lost track of the log: begin anew."""
        self._begin(asyncio.get_running_loop().create_task(self.start()))

    def _begin(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _look(self, entries: Iterable[Entry]) -> None:
        for entry in list(entries):
            self._begin(asyncio.get_running_loop().create_task(self._check(entry)))

    async def _check(self, entry: Entry) -> None:
        checked = await work(len(entry.stored), self._checked, entry)
        if checked is not None:
            await self._registry.replace(entry, checked)  # if somebody was faster, that is looked at, too

    def _checked(self, entry: Entry) -> Entry | None:
        """The entry with its status, None if that is up to date."""
        policy = object_at(entry, self._resource)
        generation = policy["metadata"].get("generation", 0)
        status: Object = policy.get("status") or {}
        if generation <= status.get("observedGeneration", 0):
            return None
        from apiserver.admission.typechecking import warnings  # large, and few need it

        found = warnings(policy, self._registry.catalog)
        checking = {"expressionWarnings": found} if found else {}
        new = {**policy, "status": {**status, "observedGeneration": generation, "typeChecking": checking}}
        tracker = ownership.tracker(self._resource, "status")
        now = format_time(self._registry.sources.now())
        return made(entry.key, self._resource, manager.update(policy, new, tracker, manager=MANAGER, now=now))
