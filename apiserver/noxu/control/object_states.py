"""The states of one object, from its creation to a moment, as its kind is served at that moment.

The log is not searched: the state at a revision says which revision wrote it, and the state before that one is the next. So
the cost grows with the states of the object, whatever else is stored:

    get(key, revision=90)    revision 71
    get(key, revision=70)    revision 12
    get(key, revision=11)    None: it was created at 12, and its states are those of 12 and 71

An object that was deleted and created again begins with its last creation. If the past does not go back so far, or there are more
than MAX_STATES, the oldest state is the first that is known (`is_complete` False). States are read and decoded in portions,
and no more than one is in memory.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Final, NamedTuple

from noxu.api import errors
from noxu.api.errors import ApiError
from noxu.control.moments import KEEP_MORE, Moment
from noxu.control.past import TimeTravel, View
from noxu.registry import kind_names
from noxu.registry.cache import entries_of
from noxu.registry.conversion.converters import entries_at
from noxu.registry.offload import offload
from noxu.registry.reader import unreadable
from noxu.registry.resource import Resource, prepared
from noxu.registry.stored_object import StoredObject, key_of, object_at
from noxu.values import Object
from noxu_storage.store import Store
from noxu_storage.types import FIRST, Compacted, Corrupt, Key, KeyValue, Prefix, Revision

MAX_STATES: Final = 10_000
"""States of an object that are looked at, the newest."""
PORTION: Final = 100  # states
PORTION_BYTES: Final = 512 * 1024  # of the states in a portion, but for the last one
DEFAULT_NAMESPACE: Final = "default"
MAX_SECONDS: Final = 60.0
"""The time that an answer about the past may take."""


class ObjectState(NamedTuple):
    """An object, and the revision that wrote it."""

    revision: Revision
    value: Object


class ObjectName(NamedTuple):
    """How people name an object. `type` is any name of its kind (`registry.kind_names`)."""

    type: str
    name: str
    namespace: str = ""


class PastObject(NamedTuple):
    """An object at a moment, which need not exist then."""

    moment: Moment
    view: View
    resource: Resource
    key: Key

    @property
    def described(self) -> Object:
        """Its identity, in answers."""
        return {
            "apiVersion": self.resource.api_version,
            "kind": self.resource.kind,
            **({"namespace": self.key.partition.removesuffix("/")} if self.resource.namespaced else {}),
            "name": self.key.name,
        }

    def __str__(self) -> str:
        return f"{self.resource.group_resource} {self.key.partition}{self.key.name}"


async def resource_at(view: View, text: str) -> Resource:
    """The resource that a text named at a moment. Raises ApiError NotFound."""
    try:
        resource = kind_names.find(view.served, text)
    except LookupError as error:
        raise ApiError(404, f"at revision {view.revision}, {error}", "NotFound", {}) from None
    if not resource.is_stored:
        raise errors.bad_request(f"{resource.group_resource} have no past: they are not stored")
    await prepared(resource.versions)
    return resource


async def find(travel: TimeTravel, moment: Moment, named: ObjectName) -> PastObject:
    """The object of a name at a moment. Raises ApiError, StoreError."""
    view = await travel.views.view(moment.revision)
    resource = await resource_at(view, named.type)
    namespace = (named.namespace or DEFAULT_NAMESPACE) if resource.namespaced else ""
    return PastObject(moment, view, resource, key_of(resource, namespace, named.name))


class ObjectRevisions(NamedTuple):
    """The revisions that wrote an object, the oldest first; `is_complete`: the first one created it."""

    revisions: Sequence[Revision]
    is_complete: bool


async def written(store: Store, key: Key, upto: Revision) -> ObjectRevisions:
    """The revisions that wrote what an object was at a revision, and before. Raises ApiError Expired, StoreError."""
    revisions: list[Revision] = []
    at, is_complete = upto, False
    while at >= max(store.compacted, FIRST) and len(revisions) < MAX_STATES:
        try:
            state = await store.get(key, revision=at)
        except Compacted:
            break
        if state is None:
            is_complete = True
            break
        revisions.append(state.revision)
        at = state.revision - 1
        if len(revisions) % PORTION == 0:
            await asyncio.sleep(0)  # a store in memory never waits
    return ObjectRevisions(revisions[::-1], is_complete)


async def states(past: PastObject, store: Store, revisions: Sequence[Revision]) -> AsyncIterator[list[ObjectState]]:
    """The states of these revisions, a portion at a time. Raises ApiError, StoreError."""
    items: list[KeyValue] = []
    size = 0
    for revision in revisions:
        items.append(await _state(past, store, revision))
        size += len(items[-1].value)
        if len(items) == PORTION or size > PORTION_BYTES or revision == revisions[-1]:
            entries = await entries_at(await entries_of(items), past.resource)
            yield await offload(size, _decoded, entries, past.resource)
            items, size = [], 0
            await asyncio.sleep(0)


async def _state(past: PastObject, store: Store, revision: Revision) -> KeyValue:
    try:
        state = await store.get(past.key, revision=revision)
    except Corrupt:
        raise unreadable(past.resource, past.key, revision) from None
    assert state is not None, "its revision was found at this one"
    return state


def _decoded(entries: Sequence[StoredObject], resource: Resource) -> list[ObjectState]:
    return [ObjectState(entry.revision, object_at(entry, resource)) for entry in entries]


@contextlib.asynccontextmanager
async def looking_back() -> AsyncIterator[None]:
    """Around what reads the past. Raises ApiError Timeout if it takes longer than MAX_SECONDS, Expired if it is removed meanwhile."""
    try:
        async with asyncio.timeout(MAX_SECONDS):
            yield
    except TimeoutError:
        raise errors.timeout(
            f"this takes more than {MAX_SECONDS:g} seconds: ask about less, or a later moment", 0
        ) from None
    except Compacted as compacted:
        raise errors.expired(
            f"what this is about was removed meanwhile: the past begins at revision {compacted.revision}; {KEEP_MORE}"
        ) from None


async def existing(past: PastObject, store: Store) -> ObjectRevisions:
    """`written`, of an object that exists at its moment. Raises ApiError NotFound, which says when it was deleted."""
    revision = past.moment.revision
    found = await written(store, past.key, revision)
    if found.revisions:
        return found
    async with looking_back():
        deleted = await _deleted(store, past.key, revision)
    if deleted:
        why = f": it was deleted at revision {deleted}, and `at` {deleted - 1} shows it"
    else:
        since = f" since revision {store.compacted}, where the past begins" if store.compacted else ""
        why = f", nor has there been one{since}"
    raise ApiError(404, f"there is no {past} at revision {revision}{why}", "NotFound", {})


async def _deleted(store: Store, key: Key, upto: Revision) -> Revision:
    """The newest revision up to another one that deleted a key, 0 if none that is kept did. Raises Compacted."""
    deleted, after = 0, max(store.compacted, FIRST)
    if after >= upto:
        return 0
    async for batch in store.watch(Prefix(key.collection, key.partition), after=after):
        for event in batch.events:
            if event.key == key and event.value is None and event.revision <= upto:
                deleted = event.revision
        if batch.revision >= upto:
            break
        await asyncio.sleep(0)
    return deleted
