"""The life of a definition: names accepted, established, served, terminating, gone (upstream's apiextensions controllers).

A definition is served when its POST answers: the conditions are set in upstream's order, each with its event, and the
catalog is swapped before the answer leaves. Deleting one deletes its custom resources first; while some of them wait
for finalizers, so does the definition.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Sequence
from typing import Final, NamedTuple

from apiserver.api.errors import ApiError
from apiserver.api.gotime import format_time
from apiserver.api.types import Object
from apiserver.api.values import equal
from apiserver.apply import manager
from apiserver.crd import conditions
from apiserver.crd.conditions import Condition
from apiserver.registry import ownership
from apiserver.registry.cache import Collection
from apiserver.registry.change import Change
from apiserver.registry.custom import versions_of
from apiserver.registry.deletion import delete_all, until_empty
from apiserver.registry.entry import Entry, key_of, made, object_at
from apiserver.registry.heavy import LIGHT, work
from apiserver.registry.resource import Resource, Versions
from apiserver.registry.store import Registry
from storage.types import Revision

MANAGER: Final = "kube-apiserver"
APPROVAL_DELAY: Final = 0.004  # seconds
DELETE_AGAIN: Final = 1.0  # seconds until what could not be deleted is tried again


class _Seen(NamedTuple):
    """A definition as one entry has it, and what it serves: None is nothing. `versions`: None if they are as they were."""

    crd: Object
    served: Object | None = None
    versions: Versions | None = None


class Definitions:
    """Follows the collection of definitions; the registry's `Lifecycle` for it."""

    failed = "precondition failed"

    def __init__(self, registry: Registry, resource: Resource) -> None:
        self.registry = registry
        self.resource = resource
        self._collection = Collection(resource.collection)
        self._served: dict[str, Object] = {}  # name → what was served of it, to see whether a change concerns it
        self._names: dict[str, Object] = {}  # name → group and accepted names, of all definitions
        self._settling: dict[str, asyncio.Task[None]] = {}
        self._changed: set[str] = set()  # changed again while it was settling
        self._finishing: dict[str, asyncio.Task[None]] = {}
        self._judging: dict[str, asyncio.Task[None]] = {}

    async def start(self) -> None:
        """Load all definitions into the catalog, and go on with those that were left half done."""
        self._collection = await self.registry.collection(self.resource)
        for entry in list(self._collection.entries.values()):
            self._serve(entry, self._look(entry))
            self._wake(entry.key.name)
        self._collection.watchers[self] = None
        await asyncio.gather(*self._settling.values())

    async def stop(self) -> None:
        tasks = [*self._settling.values(), *self._finishing.values(), *self._judging.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # -- what the cache tells

    def deliver(self, changes: Sequence[Change], revision: Revision) -> None:
        for change in changes:
            name = change.key.name
            if change.entry is not None:
                if len(change.entry.stored) <= LIGHT:  # else it takes long, and is done while settling
                    self._serve(change.entry, self._look(change.entry))
            else:
                self._withdraw(name)
                group = self._names.pop(name, {}).get("group")
                for other, about in self._names.items():  # its names are free again
                    if about["group"] == group:
                        self._wake(other)
            self._wake(name)

    def end(self) -> None:
        """The cache lost track of the log: begin anew."""
        self._beginning = asyncio.get_running_loop().create_task(self.start())

    # -- serving

    def _look(self, entry: Entry) -> _Seen:
        crd = object_at(entry, self.resource)
        if not conditions.is_true(crd, "Established"):
            return _Seen(crd)
        served = {"spec": crd["spec"], "acceptedNames": crd["status"]["acceptedNames"]}
        if equal(self._served.get(entry.key.name), served):
            return _Seen(crd, served)
        versions = versions_of(crd, entry.revision)
        versions.converter = self.registry.conversions.define(entry.key.name, crd["spec"])
        return _Seen(crd, served, versions)

    def _look_long(self, entry: Entry) -> _Seen:
        """For the thread: all that is big is made here, and not when it is first needed."""
        seen = self._look(entry)
        for one in seen.versions.all if seen.versions else ():
            one.prepare()
        return seen

    def _serve(self, entry: Entry, seen: _Seen) -> None:
        """Bring the catalog up to date with one definition."""
        name, (crd, served, versions) = entry.key.name, seen
        self._names[name] = {"group": crd["spec"]["group"], "status": {"acceptedNames": crd["status"]["acceptedNames"]}}
        if served is None:
            self._withdraw(name)
            return
        if versions is not None:
            self._served[name] = served
            self.registry.catalog = self.registry.catalog.with_definition(name, versions)
            self.registry.cache.end_watches(versions.storage.collection)
        self.registry.catalog.defined[name].terminating = conditions.is_true(crd, "Terminating")

    def _withdraw(self, name: str) -> None:
        if self._served.pop(name, None) is None:
            return
        collection = self.registry.catalog.defined[name].storage.collection
        self.registry.catalog = self.registry.catalog.with_definition(name, None)
        self.registry.cache.end_watches(collection)

    # -- settling: conditions and names

    async def settled(self, name: str) -> None:
        while (task := self._settling.get(name)) is not None:
            await asyncio.shield(task)

    def _wake(self, name: str) -> None:
        if name in self._settling:
            self._changed.add(name)
            return
        self._settling[name] = asyncio.get_running_loop().create_task(self._settle(name))

    async def _settle(self, name: str) -> None:
        try:
            while True:
                self._changed.discard(name)
                while await self._step(name):
                    pass
                if name not in self._changed:
                    return
        finally:
            del self._settling[name]  # here: a done task that is still there would be awaited without end

    async def _step(self, name: str) -> bool:
        """Set the next conditions, if any are due."""
        entry = self._collection.entries.get(key_of(self.resource, "", name))
        if entry is None:
            return False
        if len(entry.stored) > LIGHT:
            seen = await work(len(entry.stored), self._look_long, entry)
            if self._collection.entries.get(entry.key) is not entry:
                return True
            self._serve(entry, seen)
            crd = seen.crd
        else:
            crd = object_at(entry, self.resource)
        if crd["metadata"].get("deletionTimestamp") and conditions.CLEANUP_FINALIZER in crd["metadata"].get(
            "finalizers", ()
        ):
            self._finish(name)
        group = crd["spec"]["group"]
        others = [about for other, about in self._names.items() if other != name and about["group"] == group]
        if not advance(crd, others, self._now()):
            self._judge_approval_later(name, crd)
            return False
        await self._store(entry, crd)
        return True

    def _judge_approval_later(self, name: str, crd: Object) -> None:
        """Another approval annotation gives another condition, some time after the answer.

        It says nothing about what is served, and whoever updates a definition twice in a row keeps the resourceVersion
        that the first answer told.
        """
        approved = conditions.approved(crd)
        if approved is not None and not conditions.is_set(crd, approved) and name not in self._judging:
            self._judging[name] = asyncio.get_running_loop().create_task(self._judge_approval(name))

    async def _judge_approval(self, name: str) -> None:
        try:
            await asyncio.sleep(APPROVAL_DELAY)
        finally:
            del self._judging[name]
        while (entry := self._collection.entries.get(key_of(self.resource, "", name))) is not None:
            crd = await work(len(entry.stored), object_at, entry, self.resource)
            approved = conditions.approved(crd)
            if approved is None or conditions.is_set(crd, approved):
                return
            conditions.set_condition(crd, approved, self._now())
            if await self._store(entry, crd):
                return

    async def _store(self, entry: Entry, crd: Object) -> bool:
        """Write a status; False if somebody else was faster."""
        return await self.registry.replace(entry, await work(len(entry.stored), self._updated, entry, crd))

    def _updated(self, entry: Entry, crd: Object) -> Entry:
        """The entry with another status, which the manager that upstream's controllers are owns."""
        tracker = ownership.tracker(self.resource, "status")
        live = object_at(entry, self.resource)
        owned = manager.update(_without_spec(live), _without_spec(crd), tracker, manager=MANAGER, now=self._now())
        return made(entry.key, self.resource, {**crd, "metadata": owned["metadata"]})

    def _now(self) -> str:
        return format_time(self.registry.sources.now())

    # -- terminating

    def holds(self, value: Object) -> bool:
        return False

    def begin_delete(self, value: Object, now: str) -> bool:
        metadata = value["metadata"]
        if metadata.get("deletionTimestamp"):
            return False
        metadata["deletionTimestamp"] = now
        metadata["finalizers"] = [
            *(one for one in metadata.get("finalizers", ()) if one != conditions.CLEANUP_FINALIZER),
            conditions.CLEANUP_FINALIZER,
        ]
        conditions.set_condition(value, conditions.DELETION_PENDING, now)
        return True

    def _finish(self, name: str) -> None:
        if name not in self._finishing:
            task = self._finishing[name] = asyncio.get_running_loop().create_task(self._clean_up(name))
            task.add_done_callback(lambda _: self._finishing.pop(name, None))

    async def _clean_up(self, name: str) -> None:
        """Delete every instance, wait for those with finalizers, let the definition go."""
        await self._mark(name, conditions.DELETION_IN_PROGRESS)
        versions = self.registry.catalog.defined.get(name)
        outcome = conditions.NEVER_ESTABLISHED
        if versions is not None:
            told = ""
            while failure := await _failure_of(delete_all(self.registry, versions.storage, None)):
                if failure != told:
                    await self._mark(name, conditions.deletion_failed(failure))
                told = failure
                await asyncio.sleep(DELETE_AGAIN)
            await until_empty(self.registry, versions.storage, None)
            outcome = conditions.DELETION_COMPLETED
        await self._mark(name, outcome, done=True)

    async def _mark(self, name: str, condition: Condition, *, done: bool = False) -> None:
        """Set the Terminating condition; when `done`, take our finalizer away, and with the last one the definition."""
        while (entry := self._collection.entries.get(key_of(self.resource, "", name))) is not None:
            crd = await work(len(entry.stored), object_at, entry, self.resource)
            conditions.set_condition(crd, condition, self._now())
            if done:
                metadata = crd["metadata"]
                metadata["finalizers"] = [
                    one for one in metadata.get("finalizers", ()) if one != conditions.CLEANUP_FINALIZER
                ]
                if not metadata["finalizers"]:
                    if await self.registry.remove(entry):
                        return
                    continue
            if await self._store(entry, crd):
                return


async def _failure_of(work: Awaitable[None]) -> str:
    """Empty if it worked."""
    try:
        await work
    except ApiError as error:  # a webhook that is to convert does not, for example
        return error.message
    return ""


def _without_spec(crd: Object) -> Object:
    return {name: value for name, value in crd.items() if name != "spec"}


def advance(crd: Object, others: Iterable[Object], now: str) -> bool:
    """Set the conditions that are due next, in place; False if there are none. `others`: the group's definitions.

    First come the names and what follows from them, then Established: each is an event of its own, as upstream's.
    """
    naming = conditions.names_conditions(crd, others)
    due: list[Condition] = []
    if not conditions.is_set(crd, naming.names_accepted) or naming.accepted != crd["status"]["acceptedNames"]:
        due += [naming.names_accepted, naming.established]
    if conditions.find(crd, conditions.APPROVED) is None and (approved := conditions.approved(crd)):
        due.append(approved)
    wanted = [one for one in due if not conditions.is_set(crd, one)]
    if due and (wanted or naming.accepted != crd["status"]["acceptedNames"]):
        crd["status"]["acceptedNames"] = naming.accepted
        for condition in wanted:
            conditions.set_condition(crd, condition, now)
        return True
    if naming.names_accepted.status != "True" or conditions.is_true(crd, conditions.ESTABLISHED):
        return False
    established = conditions.established(crd)
    if conditions.is_set(crd, established):
        return False
    conditions.set_condition(crd, established, now)
    return True
