"""The registry: create, read, update and delete objects of any resource over a Store (upstream's generic registry).

Optimistic locking, no-op detection, finalizers and dry run are decided here. Whoever loses a race for a key tries again
against the newer state, unless the caller named the state it had seen.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from apiserver.api import codec, errors, field
from apiserver.api.errors import ApiError, Qualified
from apiserver.api.gotext import quote
from apiserver.api.types import Object
from apiserver.features import Features
from apiserver.registry import damage, pipeline
from apiserver.registry.cache import Collection, WatchCache
from apiserver.registry.catalog import Catalog
from apiserver.registry.conversion import Conversions, InProcess
from apiserver.registry.conversion_entries import at_storage_version, entry_at
from apiserver.registry.entry import Entry, body_at, body_before_storage, key_of, made, object_at, read
from apiserver.registry.heavy import Turns, work
from apiserver.registry.limits import check_size
from apiserver.registry.pipeline import Admission, Draft, Operation, Options, User
from apiserver.registry.resource import Resource
from apiserver.registry.sources import Sources
from apiserver.registry.tokens import Tokens
from apiserver.registry.trace import Note
from apiserver.webhook.client import Caller, no_caller
from storage.store import Store
from storage.types import Conflict, Corrupt, Key, Unknown

GENERATE_NAME_ATTEMPTS: Final = 8
ORPHAN: Final = "orphan"
FOREGROUND: Final = "foregroundDeletion"


class Preconditions(NamedTuple):
    """What the stored object must be. None: anything."""

    uid: str | None = None
    resource_version: str | None = None


class DeleteOptions(NamedTuple):
    """Already validated. `propagation` is Foreground, Background, Orphan, or "" if the caller did not say.

    `damaged`: the object is to be deleted even if it cannot be read.
    """

    dry_run: bool = False
    propagation: str = ""
    preconditions: Preconditions = Preconditions()
    damaged: bool = False


Revise = Callable[[Object], Awaitable[Draft]]
"""Makes the draft of an update from the stored object, read at the resource's version. The object is its to keep."""

AdmitDelete = Callable[[Object], Awaitable[None]]
"""Judges the stored object that is about to be deleted; raises ApiError."""


@dataclass(slots=True)
class Written:
    """What a write gave: the entry that is stored now or would be, or the object where there is none any more.

    `revised`: the entry has a resourceVersion. What would be created has none.
    """

    entry: Entry | None
    value: Object | None = None
    created: bool = False
    revised: bool = True

    def body(self, resource: Resource) -> bytes:
        """As JSON at `resource`'s version."""
        if self.entry is not None:
            return body_at(self.entry, resource) if self.revised else body_before_storage(self.entry, resource)
        behaviour = resource.behaviour
        return codec.encode(behaviour.written(self.value or {}), sort_keys=behaviour.sorted_keys)


class Lifecycle(Protocol):
    """Who looks after the objects of a collection, beyond storing them.

    `failed` is how it says that a deletion's precondition is not met.
    """

    failed: str

    async def settled(self, name: str, /) -> None:
        """Return when everything that follows from the newest state of an object has happened."""
        ...

    def begin_delete(self, value: Object, now: str, /) -> bool:
        """Mark an object that is to be deleted; True if it must wait for the lifecycle to finish with it."""
        ...

    def holds(self, value: Object, /) -> bool:
        """Whether an object that is being deleted must stay even without finalizers in its metadata."""
        ...


class Registry:
    """All objects of all resources."""

    def __init__(
        self,
        store: Store,
        catalog: Catalog,
        sources: Sources,
        admission: Admission,
        features: Features = Features(),
        caller: Caller = no_caller,
    ) -> None:
        """`caller` reaches webhooks."""
        self.store = store
        self.cache = WatchCache(store)
        self.catalog = catalog
        self.sources = sources
        self.admission = admission
        self.features = features
        self.caller = caller
        self.conversions = Conversions(caller, sources=sources)
        self.lifecycles: dict[str, Lifecycle] = {}
        self.turns = Turns()
        self.tokens = Tokens()

    def draft(
        self,
        resource: Resource,
        operation: Operation,
        value: Object,
        *,
        namespace: str = "",
        name: str = "",
        options: Options = Options(),
        user: User = User(),
    ) -> Draft:
        """A draft that knows this registry's clock, admission and features."""
        return Draft(
            resource,
            operation,
            value,
            namespace=namespace,
            name=name,
            options=options,
            user=user,
            sources=self.sources,
            features=self.features,
            admission=self.admission,
        )

    def convert_in_process(self, definition: str, convert: InProcess | None) -> None:
        """Have a function convert the objects of a definition, whatever that says itself (None: as it says)."""
        self.conversions.in_process.pop(definition, None)
        if convert is not None:
            self.conversions.in_process[definition] = convert
        versions = self.catalog.defined.get(definition)
        if versions is not None:
            versions.converter = self.conversions.of(definition)
            self.cache.end_watches(versions.collection)

    async def collection(self, resource: Resource) -> Collection:
        return self.cache.peek(resource.collection) or await self.cache.collection(resource.collection)

    def size(self, resource: Resource, namespace: str, name: str) -> int:
        """How many bytes an object has, as far as is known without waiting."""
        collection = self.cache.peek(resource.collection) if name else None
        entry = collection.entries.get(key_of(resource, namespace, name)) if collection else None
        return len(entry.stored) if entry else 0

    async def get(self, resource: Resource, namespace: str, name: str) -> Entry:
        """The newest state, as it reads at the resource's version. Raises ApiError."""
        return await entry_at(await self._find(resource, namespace, name), resource)

    async def _find(self, resource: Resource, namespace: str, name: str) -> Entry:
        """The newest state, as it is stored. Raises ApiError NotFound."""
        collection, key = await self.collection(resource), key_of(resource, namespace, name)
        entry = collection.entries.get(key)
        if entry is None:
            if key in collection.damaged:
                raise damage.unreadable(resource, key, collection.damaged[key])
            raise errors.not_found(resource.what, name)
        return entry

    # -- create

    async def create(self, draft: Draft) -> Written:
        """Create an object. Raises AlreadyExists, and what the pipeline raises."""
        await pipeline.arrive(draft)
        if draft.metadata.get("name") or not draft.metadata.get("generateName"):
            return await self._create(draft)
        arrived = codec.encode(draft.new, sort_keys=False)
        for attempt in range(1, GENERATE_NAME_ATTEMPTS + 1):
            try:
                return await self._create(draft)
            except ApiError as error:
                if error.reason != "AlreadyExists" or attempt == GENERATE_NAME_ATTEMPTS:
                    raise
                draft.new, draft.errors = codec.decode_stored(arrived), []
        raise AssertionError("unreachable")

    async def _create(self, draft: Draft) -> Written:
        resource = draft.resource
        await pipeline.run(draft, pipeline.ADMIT + pipeline.SETTLE)
        draft.name = draft.metadata["name"]
        if draft.metadata.get("resourceVersion") not in (None, "", "0"):
            raise errors.plain_error("resourceVersion should not be set on objects to be created")
        key = key_of(resource, draft.namespace, draft.name)
        if draft.options.dry_run:
            existing = (await self.collection(resource)).entries.get(key)
            if existing is not None:
                raise _already_exists(draft, existing.stored)
            entry = await entry_at(await _entry_of(draft, key), resource)
            _told(draft, DRY_RUN)
            return Written(entry, created=True, revised=False)
        entry = await _entry_of(draft, key)
        check_size(resource, entry, update=False)
        try:
            await self.cache.follows(entry, self.store.put(key, entry.stored, expected=0))
        except Conflict as conflict:
            stored = conflict.current.value if conflict.current else b"{}"
            raise await work(len(stored), _already_exists, draft, stored) from None
        except Corrupt as corrupt:
            raise damage.unreadable(resource, key, corrupt.damaged.get(key, 0)) from None
        except Unknown:
            raise _unknown_outcome() from None
        _told(draft, f"created at resourceVersion {entry.revision}")
        await self._settled(resource, draft.name)
        return Written(await entry_at(entry, resource), created=True)

    async def _settled(self, resource: Resource, name: str) -> None:
        if resource.collection in self.lifecycles:
            await self.lifecycles[resource.collection].settled(name)

    # -- update

    async def update(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        revise: Revise,
        preconditions: Preconditions = Preconditions(),
        *,
        whole: bool = False,
    ) -> Written:
        """Replace an object by what `revise` makes of it. Raises NotFound, Conflict, and what the pipeline raises.

        `whole`: what it makes does not depend on the object, and it is given none. If another writer was faster
        `revise` is called again; a draft that names a resourceVersion then conflicts.
        """
        while True:
            entry = await self._find(resource, namespace, name)
            seen = await entry_at(entry, resource)
            weight = len(seen.stored)
            old = await work(weight, object_at, seen, resource)
            _check_storage_preconditions(resource, old, preconditions)
            draft = await revise({} if whole else await work(weight, object_at, seen, resource))
            draft.old = old
            draft.weight = max(draft.weight, weight)
            await pipeline.arrive(draft)
            await pipeline.run(draft, pipeline.ADMIT)
            _lock(draft, entry)
            await pipeline.run(draft, pipeline.SETTLE)
            written = await self._replace(draft, entry)
            if written is not None:
                await self._settled(resource, name)
                if written.entry is not None:
                    written.entry = await entry_at(written.entry, resource)
                return written
            _told(draft, "another writer was faster: once more, against what is stored now")

    async def _replace(self, draft: Draft, entry: Entry) -> Written | None:
        """Store the draft in place of `entry`; None if `entry` is no longer what is stored."""
        metadata = draft.metadata
        lifecycle = self.lifecycles.get(draft.resource.collection)
        held = metadata.get("finalizers") or (lifecycle is not None and lifecycle.holds(draft.new))
        if metadata.get("deletionTimestamp") and not held:
            # The last finalizer is gone, so the object goes, too. The answer keeps its old resourceVersion.
            metadata["resourceVersion"] = str(entry.revision)
            gone = draft.options.dry_run or await self.remove(entry)
            if not gone:
                return None
            _told(draft, "the last finalizer is gone, and so is the object")
            return Written(None, draft.new)
        new = await _entry_of(draft, entry.key)
        if draft.options.dry_run:
            new.revision = entry.revision
            _told(draft, DRY_RUN)
            return Written(new)
        if new.stored == entry.stored:
            _told(draft, "nothing changed: nothing is written")
            return Written(entry)
        check_size(draft.resource, new, update=True)
        if not await self.replace(entry, new):
            return None
        _told(draft, f"stored at resourceVersion {new.revision}")
        return Written(new)

    async def replace(self, entry: Entry, new: Entry) -> bool:
        """Put `new` in place of `entry`; False if `entry` is no longer what is stored."""
        try:
            await self.cache.follows(new, self.store.put(entry.key, new.stored, expected=entry.revision))
        except Conflict as conflict:
            await self._catch_up(conflict)
            return False
        except Unknown:
            raise _unknown_outcome() from None
        return True

    async def remove(self, entry: Entry) -> int:
        """Delete for good: the revision of the deletion, 0 if `entry` is no longer what is stored."""
        try:
            revision = await self.store.delete(entry.key, expected=entry.revision)
        except Conflict as conflict:
            await self._catch_up(conflict)
            return 0
        except Unknown:
            raise _unknown_outcome() from None
        await self.cache.reached(revision)
        return revision

    async def _catch_up(self, conflict: Conflict) -> None:
        """Wait until the cache shows at least what the winner wrote."""
        await self.cache.reached(conflict.current.revision if conflict.current else self.store.revision)

    # -- delete

    async def delete_damaged(self, resource: Resource, namespace: str, name: str, options: DeleteOptions) -> bool:
        """Delete an object if it cannot be read; nobody is asked, for there is nothing to show. Was it like that?"""
        key = key_of(resource, namespace, name)
        revision = (await self.collection(resource)).damaged.get(key)
        if revision is not None and not options.dry_run:
            await self.cache.reached(await self.store.delete(key, expected=revision))
        return revision is not None

    async def delete(
        self, resource: Resource, namespace: str, name: str, options: DeleteOptions, admit: AdmitDelete, now: str
    ) -> tuple[Entry, bool]:
        """Delete an object, or mark it as being deleted while it has finalizers.

        The entry as it was or as it waits now, and whether it is gone. `now` is the deletionTimestamp to set.
        """
        while True:
            entry = await self._find(resource, namespace, name)
            seen = await entry_at(entry, resource)
            weight = len(seen.stored)
            value = await work(weight, object_at, seen, resource)
            lifecycle = self.lifecycles.get(resource.collection)
            _check_preconditions(resource, value, options.preconditions, lifecycle)
            await admit(value)
            waits = lifecycle is not None and lifecycle.begin_delete(value, now)
            if not waits:
                metadata = value["metadata"]
                had = metadata.get("finalizers") or []
                finalizers = _finalizers_after(had, options.propagation)
                if not finalizers:
                    if options.dry_run or await self.remove(entry):
                        return seen, True
                    continue
                if set(finalizers) != set(had):
                    metadata["finalizers"] = finalizers
                _mark_deleted(metadata, now)
            marked = await _stored(resource, entry.key, value, weight)
            if marked.stored == entry.stored:
                return seen, False
            if options.dry_run:
                marked.revision = entry.revision
            elif not await self.replace(entry, marked):
                continue
            return await entry_at(marked, resource), False


DRY_RUN: Final = "a dry run: nothing is written"


def _told(draft: Draft, message: str) -> None:
    if draft.trace is not None:
        draft.did("persist", notes=[Note("", message)])


# -- rules ----------------------------------------------------------------------------------------------------------


async def _entry_of(draft: Draft, key: Key) -> Entry:
    """The entry that a draft becomes. Raises ApiError."""
    return await _stored(draft.resource, key, draft.new, draft.weight)


async def _stored(resource: Resource, key: Key, value: Object, weight: int) -> Entry:
    """The entry that an object becomes: converted to the storage version, and pruned by its schema. Raises ApiError."""
    storage = resource.versions.storage
    if storage is not resource and resource.versions.converter is not None:
        [value], weight = await at_storage_version(value, storage, weight)
    return await work(weight, _made, resource, key, value)


def _made(resource: Resource, key: Key, value: Object) -> Entry:
    """`value` is at the resource's version, or at the storage version already."""
    storage = resource.versions.storage
    if storage is not resource and value["apiVersion"] != storage.api_version:
        value = storage.behaviour.convert(storage, codec.decode_stored(codec.encode(value, sort_keys=False)))
    entry = made(key, storage, value, reads_as_made=storage is resource and resource.stores_shown)
    read(entry, storage.versions)
    return entry


def _already_exists(draft: Draft, stored: bytes) -> ApiError:
    what = draft.resource.what
    make = errors.generate_name_conflict if draft.metadata.get("generateName") else errors.already_exists
    error = make(what, draft.name)
    if (codec.decode_stored(stored).get("metadata") or {}).get("deletionTimestamp"):
        error.message = f"object is being deleted: {error.message}"
    return error


def _lock(draft: Draft, entry: Entry) -> None:
    """Optimistic locking: the resourceVersion in the object is the state that the caller has seen."""
    given = draft.metadata.get("resourceVersion") or "0"
    if not (given.isascii() and given.isdigit()):
        raise errors.plain_error(f"strconv.ParseUint: parsing {quote(given)}: invalid syntax")
    if int(given) == 0:
        if not draft.resource.behaviour.unconditional_update:
            error = field.invalid("metadata.resourceVersion", 0, "must be specified for an update")
            raise errors.invalid(draft.resource.what, draft.name, [error])
        draft.metadata["resourceVersion"] = str(entry.revision)
    elif int(given) != entry.revision:
        raise errors.modified(draft.resource.what, draft.name)


def _check_storage_preconditions(resource: Resource, value: Object, wanted: Preconditions) -> None:
    """The uid that an update carries must be the stored one; told in the storage layer's words, as upstream does."""
    metadata = value["metadata"]
    if wanted.uid is not None and wanted.uid != metadata.get("uid", ""):
        key = key_of(resource, metadata.get("namespace", ""), metadata["name"])
        why = f"Precondition failed: UID in precondition: {wanted.uid}, UID in object meta: {metadata.get('uid', '')}"
        told = damage.storage_error("invalid object", 4, resource, key, why)
        raise errors.conflict(resource.what, metadata["name"], told)


def _check_preconditions(resource: Resource, value: Object, wanted: Preconditions, lifecycle: Lifecycle | None) -> None:
    metadata = value["metadata"]
    checks = (
        ("UID", wanted.uid, metadata.get("uid", ""), "deleted and then recreated"),
        ("ResourceVersion", wanted.resource_version, metadata["resourceVersion"], "modified"),
    )
    for name, expected, actual, happened in checks:
        if expected is None or expected == actual:
            continue
        if lifecycle is not None:
            why = f"{lifecycle.failed}: {name} in precondition: {expected}, {name} in object meta: {actual}"
            raise errors.conflict(resource.what, metadata["name"], why)
        what = Qualified(resource.group, resource.kind)  # here upstream names the kind
        why = f"the {name} in the precondition ({expected}) does not match the {name} in record ({actual}). "
        raise errors.conflict(what, metadata["name"], f"{why}The object might have been {happened}")


def _finalizers_after(finalizers: list[str], propagation: str) -> list[str]:
    """The finalizers that a deletion leaves: the object's own, and the garbage collector's as propagation asks for.

    Without a propagation policy a garbage collector's finalizer that is there stays.
    """
    own = [one for one in finalizers if one not in (ORPHAN, FOREGROUND)]
    if propagation:
        return own + {"Orphan": [ORPHAN], "Foreground": [FOREGROUND]}.get(propagation, [])
    return own + [one for one in finalizers if one in (ORPHAN, FOREGROUND)][:1]


def _mark_deleted(metadata: Object, now: str) -> None:
    if not metadata.get("deletionTimestamp"):
        if metadata.get("generation", 0) > 0:
            metadata["generation"] += 1
        metadata["deletionTimestamp"] = now
    metadata["deletionGracePeriodSeconds"] = 0


def _unknown_outcome() -> ApiError:
    return errors.internal_error("the outcome of the write is unknown: storage failed while committing it")
