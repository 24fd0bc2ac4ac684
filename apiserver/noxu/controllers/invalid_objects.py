"""Annotates stored objects that are invalid since a change of their CRD (`noxu serve --annotate-invalid`).

The proposal for validation of custom resources (2017) leaves it to a controller to find and annotate them. Such an
object carries the annotation INVALID with its errors; once it is valid again, because it was corrected or the CRD was
changed back, the annotation is removed. A valid object is never written, except to remove the annotation.

The annotation is not written through the pipeline: ratcheting does not ignore errors at the root of an object, and the
pipeline would remove fields that pruning only hides on reads. So only metadata changes: annotations and managedFields.

It never loops. An object is validated when its CRD changes, and after a change of its own if it is invalid or has the
annotation. It is written only to correct the annotation, after which the annotation is correct. One object is validated
at a time; after SLICE seconds other tasks run.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Final, NamedTuple

from noxu.api import codec
from noxu.api.errors import aggregate
from noxu.api.field import ROOT, FieldError
from noxu.api.meta import validate_annotations
from noxu.apply import manager
from noxu.clock import rfc3339_now
from noxu.controllers.controller import Controller, ControllerParts
from noxu.crd import types
from noxu.registry import ownership
from noxu.registry.cache import Change, Collection
from noxu.registry.offload import offload_if_long
from noxu.registry.persistence import attempt_again
from noxu.registry.reader import Follower
from noxu.registry.resource import Versions
from noxu.registry.stored_object import StoredObject, new_entry, read
from noxu.registry.strategies import revalidate
from noxu.values import Json, Object, copy
from noxu_storage.types import Key, Revision

INVALID: Final = "noxu.dev/invalid"
MANAGER: Final = "noxu-annotator"
SLICE: Final = 0.002  # seconds of validation without a pause
MAX_ERRORS: Final = 10  # in an annotation
MAX_ERROR_TEXT: Final = 500  # characters of each

_QUOTED: Final = f'"{INVALID}"'.encode()

log = logging.getLogger("noxu")


class WorkItem(NamedTuple):
    """The objects to validate: one object of a definition, or all of its objects (`key` None)."""

    definition: str
    key: Key | None = None


class InvalidObjectController(Controller[WorkItem]):
    """Follows all definitions, and the objects of each."""

    name = "invalid-object-controller"
    follows = ((types.GROUP, types.RESOURCE),)

    def __init__(self, parts: ControllerParts, definitions: Follower) -> None:
        """`definitions` keeps the served resources up to date."""
        super().__init__(parts)
        self._definitions = definitions
        self._objects: dict[str, _Objects] = {}
        self._since = 0.0  # when other tasks last ran

    def observe(self, change: Change) -> Iterable[WorkItem]:
        return [WorkItem(change.key.name)]

    def resync(self) -> Iterable[WorkItem]:
        return [WorkItem(key.name) for key in self.collection.keys]

    async def reconcile(self, item: WorkItem) -> None:
        name, key = item
        await self._definitions.settled(name)  # after that the served resources have the change
        versions = self.served_resources.current.defined.get(name)
        if versions is None:
            if (deleted := self._objects.pop(name, None)) is not None:
                deleted.stop()
        elif key is None:
            await self._check_all(name, versions)
        elif (objects := self._objects.get(name)) is not None:
            await self._check(objects, versions, key)

    async def _check_all(self, name: str, versions: Versions) -> None:
        """Check every object of a definition, unless they were checked against its current schema."""
        objects = self._objects.get(name)
        collection = await self.reader.collection(versions.storage)
        if objects is not None:
            if objects.versions is versions and self in self.collection.watchers and objects in collection.watchers:
                return
            objects.stop()
        objects = self._objects[name] = _Objects(self, name, versions, collection)
        for key in list(collection.keys):
            await self._check(objects, versions, key)
            if self.served_resources.current.defined.get(name) is not versions:
                return  # the schema has changed again: another item is in the queue
        if objects.invalid:
            log.info("%s: %d of %d objects do not validate", name, len(objects.invalid), len(collection.keys))

    async def _check(self, objects: _Objects, versions: Versions, key: Key) -> None:
        """Correct the annotation of one object."""
        invalid, attempts = objects.invalid, 1
        while True:
            await self._pause()
            entry = (await self.reader.collection(versions.storage)).entries.get(key)
            if entry is None or invalid.get(key) == entry.revision:
                return
            now = rfc3339_now(self.clock)
            weight, as_cbor = len(entry.stored), self.persistence.as_cbor
            valid, annotated = await offload_if_long(weight, _annotated, entry, versions, now, as_cbor=as_cbor)
            if valid:
                invalid.pop(key, None)
            else:
                invalid[key] = entry.revision
            if annotated is None:
                return
            if await self.persistence.replace(entry, annotated):
                if not valid:
                    invalid[key] = annotated.revision
                return
            attempts = await attempt_again(attempts, versions.storage.group_resource, key.name)

    async def _pause(self) -> None:
        loop = asyncio.get_running_loop()
        if loop.time() - self._since > SLICE:
            await asyncio.sleep(0)
            self._since = loop.time()


class _Objects:
    """The objects of one definition: `invalid` are those that do not validate, with the revisions that were checked.

    A `Watcher` of the cache.
    """

    def __init__(
        self, controller: InvalidObjectController, definition: str, versions: Versions, collection: Collection
    ) -> None:
        self.versions = versions
        self.invalid: dict[Key, Revision] = {}
        self._controller = controller
        self._definition = definition
        self._collection = collection
        collection.watchers[self] = None

    def deliver(self, changes: Sequence[Change], revision: Revision) -> None:
        for change in changes:
            if change.entry is None:
                self.invalid.pop(change.key, None)
            elif change.key in self.invalid or _QUOTED in change.entry.stored:
                self._controller.queue.add(WorkItem(self._definition, change.key))

    def end(self) -> None:
        """The schema was changed, or the definition was deleted."""
        self._controller.queue.add(WorkItem(self._definition))

    def stop(self) -> None:
        self._collection.watchers.pop(self, None)


# -- pure -------------------------------------------------------------------------------------------------------------


def _annotated(entry: StoredObject, versions: Versions, now: str, *, as_cbor: bool) -> tuple[bool, StoredObject | None]:
    """Whether the object is valid, and the entry that replaces it; None if its annotation is correct."""
    errors = revalidate(codec.decode_stored(entry.stored), versions).errors
    if not errors and _QUOTED not in entry.stored:
        return True, None
    value: Object = codec.decode_stored(entry.stored)
    metadata = value["metadata"]
    annotations = metadata.get("annotations") or {}
    text = message(errors)
    if annotations.get(INVALID, "") == text or metadata.get("deletionTimestamp"):
        return not errors, None
    annotations = {name: content for name, content in annotations.items() if name != INVALID}
    if text:
        annotations[INVALID] = text
        if validate_annotations(annotations, ROOT):
            return (
                False,
                None,
            )  # with this annotation their total size would exceed the limit, and later writes would fail
    value = _with_annotations(value, annotations, versions, now)
    annotated = new_entry(entry.key, versions.storage, value, served_as_stored=False, as_cbor=as_cbor)
    return not errors, annotated


def message(errors: list[FieldError]) -> str:
    """The text of the annotation; empty if there are no errors."""
    if not errors:
        return ""
    texts = (f"{text[:MAX_ERROR_TEXT]}…" if len(text) > MAX_ERROR_TEXT else text for text in map(str, errors))
    return aggregate(islice(texts, MAX_ERRORS), more=len(errors) - MAX_ERRORS)


def _with_annotations(value: Object, annotations: dict[str, str], versions: Versions, now: str) -> Object:
    """A stored object with these annotations; MANAGER is the field manager of those that changed."""
    resource = versions.of(value)
    before: Object = copy(value)
    read(resource, before)
    after = _replaced(before, annotations=annotations)
    owned = manager.update(before, after, ownership.tracker(resource, ""), manager=MANAGER, now=now)
    return _replaced(value, annotations=annotations, managedFields=owned["metadata"].get("managedFields"))


def _replaced(value: Object, **fields: Json) -> Object:
    """The object with these fields of metadata replaced. Empty fields are removed."""
    metadata = {name: content for name, content in value["metadata"].items() if name not in fields}
    return {**value, "metadata": metadata | {name: content for name, content in fields.items() if content}}
