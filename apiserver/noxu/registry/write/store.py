"""The last phase of a write: from an object to bytes, to the store, and to what follows from it.

    new ── encode ──► written.entry ── claim, persist ──► the log ──► the cache ── wait_for_controllers ──► the answer

The bytes that are stored are the bytes that are served: they are encoded once, and the cache, reads and watches share them.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final

from noxu.api import codec, errors
from noxu.api.errors import TOO_LARGE, TOO_LARGE_TO_SEND, plain_error
from noxu.go.text import parse_uint
from noxu.registry import strategies
from noxu.registry.claims import Claimed
from noxu.registry.conversion.converters import at_storage_version
from noxu.registry.draft import (
    EXACT,
    VALID,
    Action,
    Draft,
    NameTaken,
    NewScale,
    Stored,
    Superseded,
    Written,
)
from noxu.registry.offload import offload
from noxu.registry.reader import Follower, storage_key, unreadable
from noxu.registry.resource import Resource
from noxu.registry.storage_form import as_json
from noxu.registry.stored_object import StoredObject, key_of, new_entry, render
from noxu.registry.strategies import finalization_of
from noxu.registry.write.decide import terminating
from noxu.values import Object
from noxu_storage.types import Conflict, Corrupt, Key


def is_dry_run(draft: Draft) -> bool:
    """Whether nothing is to be written."""
    return draft.request.options.dry_run or draft.request.delete_options.dry_run


def encode(draft: Draft) -> Awaitable[None] | None:
    """Encode the object at the storage version, pruned by its schema. Waits for a conversion by a webhook.

    Its selfLink, which admission and the answer to a dry run have, is not stored (upstream's PrepareObjectForStorage).
    """
    stored = draft.stored
    if stored is not None and _is_to_be_removed(draft):
        return None
    metadata = draft.new["metadata"]
    if "selfLink" in metadata and not is_dry_run(draft):
        draft.new = draft.new | {"metadata": {name: metadata[name] for name in metadata if name != "selfLink"}}
    resource, new = draft.resource, draft.new
    if draft.request.action is Action.CREATE and "resourceVersion" in metadata and not is_dry_run(draft):
        _refuse_resource_version(metadata)
    if resource.versions.converter is not None and resource.versions.storage is not resource:
        return _encode_converted(draft)
    draft.written = Written(_entry(draft, new))  # from here on the object is bytes; `draft.new` is for messages
    return None


def _refuse_resource_version(metadata: Object) -> None:
    """Refuse to create an object with a resourceVersion other than 0. As in upstream, a text that is no number is ignored."""
    version = metadata.get("resourceVersion")
    if not version:
        return
    try:
        revision = parse_uint(version)
    except ValueError:
        return
    if revision:
        raise errors.plain_error("resourceVersion should not be set on objects to be created")


async def _encode_converted(draft: Draft) -> None:
    [value], weight = await at_storage_version(draft.new, draft.resource.versions.storage, draft.weight)
    draft.written = Written(await offload(weight, _entry, draft, value))


def _entry(draft: Draft, value: Object) -> StoredObject:
    """The entry of a draft's object, which is at the resource's version or already at the storage version.

    Its defaults are filled in, unless it is a write to /scale, which may create maps; then the next read does it.
    """
    resource, persistence, stored = draft.resource, draft.environment.persistence, draft.stored
    storage = resource.versions.storage
    if storage is not resource and value["apiVersion"] != storage.api_version:
        value = storage.codec.convert(storage, codec.decode_stored(codec.encode(value, sort_keys=False)))
    is_complete = not isinstance(draft.sent, NewScale)
    served_as_stored = is_complete and storage is resource and resource.serves_as_stored
    name = draft.new["metadata"]["name"]
    entry = new_entry(
        key_of(resource, draft.request.namespace, name) if stored is None else stored.entry.key,
        storage,
        value,
        served_as_stored=served_as_stored,
        valid=draft.form >= VALID,
        exact=draft.form is EXACT,
        as_cbor=persistence.as_cbor,
        as_protobuf=persistence.as_protobuf,
    )
    if not served_as_stored:
        render(entry, storage.versions)  # before it is shared: a read finds it rendered
    return entry


def _is_to_be_removed(draft: Draft) -> bool:
    """Whether this is a deletion without finalizers, or an update that removes the last finalizer of a deleted object.

    An object with a grace period remains: another deletion makes it shorter.
    """
    if draft.operation == "DELETE":
        return not draft.new
    metadata = draft.new["metadata"]
    if not metadata.get("deletionTimestamp") or metadata.get("finalizers"):
        return False
    if draft.old is not None and draft.old["metadata"].get("deletionGracePeriodSeconds"):
        return False
    finalization = finalization_of(draft.resource)
    return finalization is None or not finalization.held(draft.new)


def claim(draft: Draft) -> Awaitable[None] | None:
    """Claim what `allocate` took, where several servers share the store."""
    reservation = draft.chosen.reservation
    if reservation is None or is_dry_run(draft):
        return None
    claiming = reservation.claim()
    return None if claiming is None else _claimed(claiming)


async def _claimed(claiming: Awaitable[None]) -> None:
    try:
        await claiming
    except Claimed:
        raise Superseded from None


def persist(draft: Draft) -> Awaitable[None]:
    """Write to the store if the stored object is still the one that was found. Raises Superseded if not."""
    entry = None if draft.written is None else draft.written.entry
    if entry is None:
        return _remove(draft)
    if draft.stored is None:
        return _create(draft, entry)
    if draft.operation == "DELETE" and _is_over(draft):
        return _mark_and_remove(draft, draft.stored, entry)
    return _replace(draft, draft.stored, entry)


def _is_over(draft: Draft) -> bool:
    """Whether a deletion has marked an object whose grace period is 0: it is removed when that is stored."""
    metadata = draft.new["metadata"]
    is_graceful = strategies.has_grace_periods(draft.resource)
    return is_graceful and metadata.get("deletionGracePeriodSeconds") == 0 and not metadata.get("finalizers")


async def _create(draft: Draft, entry: StoredObject) -> None:
    resource = draft.resource
    if resource.is_custom and _is_terminating_now(draft):
        raise terminating(draft)
    if is_dry_run(draft):
        existing = (await draft.environment.reader.collection(resource)).entries.get(entry.key)
        if existing is not None:
            raise _key_exists(draft, entry.key, existing.stored)
        draft.note(DRY_RUN)  # nothing reaches the store
        version = draft.new["metadata"].get("resourceVersion") or ""
        draft.written = Written(entry, created=True, unstored_version=version)
        return
    if len(entry.stored if entry.cbor is None else entry.cbor) > SIZE_CHECKED:
        check_size(resource, entry, update=False)
    if not draft.request.internal:
        draft.environment.admission.check_again(draft)  # nothing waits between this and the place in the queue
    try:
        await draft.environment.persistence.create(entry)
    except Conflict as conflict:
        if conflict.current is None:  # it has waited for a transaction, which may have changed anything
            await draft.environment.persistence.catch_up()
            raise Superseded from None
        stored = conflict.current.value
        exists = await offload(len(stored), _key_exists, draft, entry.key, stored)
        if isinstance(exists, Superseded):
            await draft.environment.persistence.catch_up()  # so that it is found now
        raise exists from None
    except Corrupt as corrupt:
        raise unreadable(resource, entry.key, corrupt.keys.get(entry.key, 0)) from None
    if draft.outcome.trace is not None:
        draft.note(f"created at resourceVersion {entry.revision}")
    draft.written = Written(entry, created=True)  # the cache has this entry by now: reads share its bytes


def _is_terminating_now(draft: Draft) -> bool:
    """Whether the definition is being deleted or gone, which may have happened since the first stage.

    So is one in whose place there is another one without the version in which the object would be stored. Nothing waits between
    this and the write's place in the store's queue, so the finalizer finds every object that passes.
    """
    resource = draft.resource
    versions = draft.environment.served_resources.current.defined.get(f"{resource.plural}.{resource.group}")
    if versions is None or versions.terminating:
        return True
    return versions is not resource.versions and versions.find(resource.versions.storage.api_version) is None


async def _replace(draft: Draft, stored: Stored, entry: StoredObject) -> None:
    before = stored.entry
    if is_dry_run(draft):
        entry.revision = before.revision  # the entry is not shared yet: a dry run shows the old number
        draft.note(DRY_RUN)
        return
    if entry.stored == before.stored and entry.is_cbor == before.is_cbor:
        draft.note(UNCHANGED)
        draft.written = Written(stored.shown)  # the entry of the cache itself, whose bytes are sent
        return
    if draft.operation != "DELETE" and len(entry.stored if entry.cbor is None else entry.cbor) > SIZE_CHECKED:
        check_size(draft.resource, entry, update=True)
    if not await draft.environment.persistence.replace(before, entry):  # compare and set, by revision
        raise Superseded
    if draft.outcome.trace is not None:
        draft.note(f"stored at resourceVersion {entry.revision}")


async def _remove(draft: Draft) -> None:
    stored = draft.stored
    assert stored is not None
    before = stored.entry
    revision = before.revision if is_dry_run(draft) else await draft.environment.persistence.remove(before)
    if not revision:
        raise Superseded
    if draft.operation == "DELETE":
        # the copy shares its bytes
        entry = stored.shown if draft.resource.is_custom else stored.shown.with_revision(revision)
        draft.written = Written(entry, deleted=True, uid=_old_uid(draft))
        return
    draft.note(REMOVED)
    draft.new["metadata"]["resourceVersion"] = str(before.revision)  # the answer keeps its old resourceVersion
    draft.written = Written(None, draft.new, deleted=True)


async def _mark_and_remove(draft: Draft, stored: Stored, entry: StoredObject) -> None:
    """Store that an object is being deleted, then remove it. Another client may have done it meanwhile."""
    await _replace(draft, stored, entry)
    revision = entry.revision
    if not is_dry_run(draft):
        revision = await draft.environment.persistence.remove(entry)
        gone = entry.key not in (await draft.environment.reader.collection(draft.resource)).entries
        if not revision and not gone:
            raise Superseded
    draft.written = Written(entry.with_revision(revision or entry.revision), deleted=True, uid=_old_uid(draft))


def _old_uid(draft: Draft) -> str:
    assert draft.old is not None
    uid: str = draft.old["metadata"].get("uid", "")
    return uid


DRY_RUN: Final = "a dry run: nothing is written"


UNCHANGED: Final = "nothing changed: nothing is written"


REMOVED: Final = "the last finalizer is removed: the object is deleted"


def _key_exists(draft: Draft, key: Key, stored: bytes) -> Exception:
    """The exception for a new object whose key exists.

    A replace or apply that found no object restarts, and finds it: unless mutating admission has given it another name,
    under which it would find nothing again. Upstream stores the object under the name of the URL then, with the other name
    inside.
    """
    request = draft.request
    is_generated = bool(draft.chosen.name)
    if request.action is not Action.CREATE and key == key_of(draft.resource, request.namespace, request.name):
        return Superseded()
    make = errors.generate_name_conflict if draft.new["metadata"].get("generateName") else errors.already_exists
    error = make(draft.resource.group_resource, draft.new["metadata"]["name"])
    if (codec.decode_stored(as_json(stored)).get("metadata") or {}).get("deletionTimestamp"):
        error.message = f"object is being deleted: {error.message}"
    return NameTaken(error) if is_generated else error


# -- the size -----------------------------------------------------------------------------------------------------------


MAX_REQUEST: Final = 1_572_864  # bytes


MAX_SENT: Final = 2_097_152  # bytes


SIZE_CHECKED: Final = MAX_REQUEST // 2  # bytes of an object; keys are at most a few hundred


_CREATE: Final = (2, 41)  # (keys in the transaction, its other bytes)


_UPDATE: Final = (3, 49)


def check_size(resource: Resource, entry: StoredObject, *, update: bool) -> None:
    """Raises ApiError for an object that is too large for etcd. Objects up to SIZE_CHECKED always fit."""
    keys, more = _UPDATE if update else _CREATE
    key = storage_key(resource, entry.key).encode("utf-8", "surrogateescape")
    size = len(entry.written) + keys * len(key) + more
    if size > MAX_SENT:
        raise plain_error(TOO_LARGE_TO_SEND.format(size, MAX_SENT))
    if size > MAX_REQUEST:
        raise plain_error(TOO_LARGE)


# -- what follows -------------------------------------------------------------------------------------------------------


def wait_for_controllers(draft: Draft) -> Awaitable[None] | None:
    """Wait until the controller of the collection has reconciled the object, for example until a definition is served."""
    follower = draft.environment.followers.get(draft.resource.collection)
    if follower is None or draft.written is None or draft.written.entry is None or is_dry_run(draft):
        return None
    return _until_reconciled(follower, draft.written.entry)


async def _until_reconciled(follower: Follower, entry: StoredObject) -> None:
    try:
        await follower.settled(entry.key.name)
    finally:
        entry.decoded = None  # if the follower has not read it
