"""The last stages of a write: encode the object, write it to the store, and wait until its controller has seen it.

As all stages, they are functions of one `Draft` (see `registry.stages`).
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final

from noxu.api import codec, errors
from noxu.go.text import parse_uint
from noxu.registry.conversion.converters import at_storage_version
from noxu.registry.draft import Action, Draft, Written
from noxu.registry.limits import SIZE_CHECKED, check_size
from noxu.registry.offload import offload
from noxu.registry.reader import Follower, key_of, unreadable
from noxu.registry.resource import Resource
from noxu.registry.stages import NameTaken, Superseded, is_dry_run, metadata_of, terminating
from noxu.registry.storage_form import as_json
from noxu.registry.stored_object import StoredObject, new_entry, render
from noxu.registry.strategies import finalization_of
from noxu.values import Object
from noxu_storage.types import Conflict, Corrupt, Key


def encode(draft: Draft) -> Awaitable[None] | None:
    """Encode the object at the storage version, pruned by its schema. Waits for a conversion by a webhook.

    Its selfLink, which admission and the answer to a dry run have, is not stored (upstream's PrepareObjectForStorage).
    """
    if _is_to_be_removed(draft):
        return None
    metadata = metadata_of(draft)
    if "selfLink" in metadata and not is_dry_run(draft):
        draft.new = draft.new | {"metadata": {name: metadata[name] for name in metadata if name != "selfLink"}}
    resource, new = draft.resource, draft.new
    if draft.request.action is Action.CREATE and not is_dry_run(draft):
        _refuse_resource_version(new["metadata"])
    found = draft.found
    key = found.key if found is not None else key_of(resource, draft.request.namespace, new["metadata"]["name"])
    if resource.versions.converter is not None and resource.versions.storage is not resource:
        return _encode_converted(draft, key)
    draft.entry = _entry(resource, key, new, draft)
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


async def _encode_converted(draft: Draft, key: Key) -> None:
    [value], weight = await at_storage_version(draft.new, draft.resource.versions.storage, draft.weight)
    draft.entry = await offload(weight, _entry, draft.resource, key, value, draft)


def _entry(resource: Resource, key: Key, value: Object, draft: Draft) -> StoredObject:
    """The entry of a draft's object, which is at the resource's version or already at the storage version.

    Its defaults are filled in, unless it is a write to /scale, which may create maps; then the next read does it.
    """
    complete, persistence = draft.scale is None, draft.environment.persistence
    storage = resource.versions.storage
    if storage is not resource and value["apiVersion"] != storage.api_version:
        value = storage.codec.convert(storage, codec.decode_stored(codec.encode(value, sort_keys=False)))
    served_as_stored = complete and storage is resource and resource.serves_as_stored
    entry = new_entry(
        key,
        storage,
        value,
        served_as_stored=served_as_stored,
        valid=draft.valid,
        exact=draft.valid and storage is resource and resource.is_exact,
        as_cbor=persistence.as_cbor,
        as_protobuf=persistence.as_protobuf,
    )
    if not served_as_stored:
        render(entry, storage.versions)
    return entry


def _is_to_be_removed(draft: Draft) -> bool:
    """Whether this is a deletion without finalizers, or an update that removes the last finalizer of a deleted object.

    An object with a grace period remains: another deletion makes it shorter.
    """
    if draft.operation == "DELETE":
        return not draft.new
    if draft.found is None:
        return False
    metadata = metadata_of(draft)
    if not metadata.get("deletionTimestamp") or metadata.get("finalizers"):
        return False
    if draft.old is not None and draft.old["metadata"].get("deletionGracePeriodSeconds"):
        return False
    finalization = finalization_of(draft.resource)
    return finalization is None or not finalization.held(draft.new)


async def persist(draft: Draft) -> None:
    """Write to the store if the stored object is still the one that was found. Raises Superseded if not."""
    if draft.entry is None:
        await _remove(draft)
    elif draft.found is None:
        await _create(draft, draft.entry)
    else:
        await _replace(draft, draft.found, draft.entry)
        if draft.removed_at_once:
            await _remove_marked(draft, draft.entry)


async def _create(draft: Draft, entry: StoredObject) -> None:
    resource = draft.resource
    if resource.is_custom and _is_terminating_now(draft):
        raise terminating(draft)
    if is_dry_run(draft):
        existing = (await draft.environment.reader.collection(resource)).entries.get(entry.key)
        if existing is not None:
            raise _key_exists(draft, entry.key, existing.stored)
        draft.note(DRY_RUN)
        version = draft.new["metadata"].get("resourceVersion") or ""
        draft.written = Written(entry, created=True, unstored_version=version)
        return
    if len(entry.written) > SIZE_CHECKED:
        check_size(resource, entry, update=False)
    if not draft.request.internal:
        draft.environment.admission.check_again(draft)
    try:
        await draft.environment.persistence.create(entry)
    except Conflict as conflict:
        stored = conflict.current.value if conflict.current else b"{}"
        exists = await offload(len(stored), _key_exists, draft, entry.key, stored)
        if isinstance(exists, Superseded):
            await draft.environment.persistence.catch_up(conflict)  # so that it is found now
        raise exists from None
    except Corrupt as corrupt:
        raise unreadable(resource, entry.key, corrupt.keys.get(entry.key, 0)) from None
    if draft.trace is not None:
        draft.note(f"created at resourceVersion {entry.revision}")
    draft.written = Written(entry, created=True)


def _is_terminating_now(draft: Draft) -> bool:
    """Whether the definition is being deleted or gone, which may have happened since the first stage.

    Nothing waits between this and the write's place in the store's queue, so the finalizer finds every object that passes.
    """
    resource = draft.resource
    versions = draft.environment.served_resources.current.defined.get(f"{resource.plural}.{resource.group}")
    return versions is None or versions.terminating


async def _replace(draft: Draft, found: StoredObject, entry: StoredObject) -> None:
    if is_dry_run(draft):
        entry.revision = found.revision
        draft.note(DRY_RUN)
        draft.written = Written(entry)
        return
    if entry.stored == found.stored and entry.is_cbor == found.is_cbor:
        draft.note(UNCHANGED)
        draft.written = Written(draft.shown)
        return
    if draft.operation != "DELETE" and len(entry.written) > SIZE_CHECKED:
        check_size(draft.resource, entry, update=True)
    if not await draft.environment.persistence.replace(found, entry):
        raise Superseded
    if draft.trace is not None:
        draft.note(f"stored at resourceVersion {entry.revision}")
    draft.written = Written(entry)


async def _remove(draft: Draft) -> None:
    found, shown = draft.found, draft.shown
    assert found is not None
    assert shown is not None
    revision = found.revision if is_dry_run(draft) else await draft.environment.persistence.remove(found)
    if not revision:
        raise Superseded
    if draft.operation == "DELETE":
        entry = shown if draft.resource.is_custom else shown.with_revision(revision)
        draft.written = Written(entry, deleted=True, uid=_old_uid(draft))
        return
    draft.note(REMOVED)
    metadata_of(draft)["resourceVersion"] = str(found.revision)  # the answer keeps its old resourceVersion
    draft.written = Written(None, draft.new, deleted=True)


async def _remove_marked(draft: Draft, entry: StoredObject) -> None:
    """Remove an object that has been marked as being deleted. Another client may have done it meanwhile."""
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
    is_generated = request.action is Action.CREATE and bool(draft.name)
    if request.action is not Action.CREATE and key == key_of(draft.resource, request.namespace, request.name):
        return Superseded()
    make = errors.generate_name_conflict if draft.new["metadata"].get("generateName") else errors.already_exists
    error = make(draft.resource.group_resource, draft.new["metadata"]["name"])
    if (codec.decode_stored(as_json(stored)).get("metadata") or {}).get("deletionTimestamp"):
        error.message = f"object is being deleted: {error.message}"
    return NameTaken(error) if is_generated else error


def settle(draft: Draft) -> Awaitable[None] | None:
    """Wait until the controller of the collection has reconciled the object, for example until a definition is served."""
    follower = draft.environment.followers.get(draft.resource.collection)
    if follower is None or draft.written is None or draft.written.entry is None or is_dry_run(draft):
        return None
    return _settled(follower, draft.written.entry)


async def _settled(follower: Follower, entry: StoredObject) -> None:
    try:
        await follower.settled(entry.key.name)
    finally:
        entry.decoded = None  # if the follower has not read it
