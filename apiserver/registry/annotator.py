"""Marks stored objects that their CRD refuses since it was changed (`noxu serve --annotate-invalid`).

The proposal for validation of custom resources (2017) leaves it to a controller to find and annotate them. Such an
object carries the annotation INVALID with what is wrong; once it is valid again, because it was mended or the CRD was
changed back, the annotation goes. A valid object is never written, but to take the annotation away.

The annotation is written beside the pipeline: what validation refuses at the root of an object ratcheting does not
excuse, and a write through the pipeline would drop for good what pruning hides. So nothing changes but metadata:
annotations and who owns this one.

It never loops. An object is judged when its CRD changes, and when it changes itself and is, or says it is, invalid; it
is written only if the annotation is not what it should be, which the write that follows makes true. One object is judged
at a time; after SLICE seconds others get their turn.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from itertools import islice
from typing import Final

from apiserver.api import codec
from apiserver.api.errors import ApiError, aggregate
from apiserver.api.field import ROOT, FieldError
from apiserver.api.gotime import format_time
from apiserver.api.meta import validate_annotations
from apiserver.api.types import Json, Object
from apiserver.api.values import copy
from apiserver.apply import manager
from apiserver.registry import ownership, pipeline
from apiserver.registry.change import Change
from apiserver.registry.entry import Entry, made
from apiserver.registry.heavy import work
from apiserver.registry.resource import Resource, Versions
from apiserver.registry.store import Registry
from apiserver.registry.verdict import judge
from storage.types import Key, Revision, StoreError

INVALID: Final = "noxu.dev/invalid"
MANAGER: Final = "noxu-annotator"
SLICE: Final = 0.002  # seconds of judging without a pause
PATIENCE: Final = 1.0  # seconds to wait when nothing can be written
MAX_ERRORS: Final = 10  # told in an annotation
MAX_ERROR_TEXT: Final = 500  # characters of each

_QUOTED: Final = f'"{INVALID}"'.encode()

log = logging.getLogger("noxu")


class Annotator:
    """Follows all definitions, and the objects of each. `definitions` is their resource."""

    def __init__(self, registry: Registry, definitions: Resource) -> None:
        self.registry = registry
        self._definitions = definitions
        self._objects: dict[str, _Objects] = {}
        self._due: dict[tuple[str, Key | None], None] = {}  # definition and object; None: all of its objects
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._worker: asyncio.Task[None] | None = None
        self._since = 0.0  # when the loop had its last turn

    async def start(self) -> None:
        """Begin to follow, and to look at everything there is."""
        collection = await self.registry.collection(self._definitions)
        collection.watchers[self] = None
        self._find_new()
        if self._worker is None:
            self._worker = asyncio.create_task(self._work())

    async def stop(self) -> None:
        if self._worker is not None:
            self._worker.cancel()
            await asyncio.gather(self._worker, return_exceptions=True)

    async def idle(self) -> None:
        """Return when there is nothing left to look at."""
        await self._idle.wait()

    def deliver(self, changes: Sequence[Change], revision: Revision) -> None:
        """Definitions changed. Those that were served before tell it by ending the watches on their objects."""
        asyncio.get_running_loop().call_soon(self._find_new)  # when the catalog knows of it

    def end(self) -> None:
        """The cache lost track of the log: begin anew."""
        self._beginning = asyncio.get_running_loop().create_task(self.start())

    def look_at(self, definition: str, key: Key | None) -> None:
        self._due[definition, key] = None
        self._idle.clear()
        self._wake.set()

    def _find_new(self) -> None:
        for name in self.registry.catalog.defined.keys() - self._objects.keys():
            self._objects[name] = _Objects(self, name)
            self.look_at(name, None)

    # -- one after the other

    async def _work(self) -> None:
        while True:
            while self._due:
                name, key = due = next(iter(self._due))
                del self._due[due]
                try:
                    await self._look(name, key)
                except (ApiError, StoreError) as error:
                    log.warning("%s: objects cannot be annotated now: %s", name, error)
                    self.look_at(name, key)
                    await asyncio.sleep(PATIENCE)
            self._idle.set()
            await self._wake.wait()
            self._wake.clear()

    async def _look(self, name: str, key: Key | None) -> None:
        versions = self.registry.catalog.defined.get(name)
        if versions is None:
            self._objects.pop(name, None)
            return
        objects = self._objects[name]
        if key is not None:
            await self._judge(objects, versions, key)
            return
        objects.marked.clear()
        collection = await self.registry.collection(versions.storage)
        collection.watchers[objects] = None
        for one in list(collection.keys):
            await self._judge(objects, versions, one)
            if self.registry.catalog.defined.get(name) is not versions:
                return  # the schema has changed again, and all objects are due again
        if objects.marked:
            log.info("%s: %d of %d objects do not validate", name, len(objects.marked), len(collection.keys))

    async def _judge(self, objects: _Objects, versions: Versions, key: Key) -> None:
        """See to it that the annotation of one object is right."""
        marked = objects.marked
        while True:
            await self._give_way()
            entry = (await self.registry.collection(versions.storage)).entries.get(key)
            if entry is None or marked.get(key) == entry.revision:
                return
            now = format_time(self.registry.sources.now())
            valid, annotated = await work(len(entry.stored), _judge, entry, versions, now)
            if valid:
                marked.pop(key, None)
            else:
                marked[key] = entry.revision
            if annotated is None:
                return
            if await self.registry.replace(entry, annotated):
                if not valid:
                    marked[key] = annotated.revision
                return

    async def _give_way(self) -> None:
        loop = asyncio.get_running_loop()
        if loop.time() - self._since > SLICE:
            await asyncio.sleep(0)
            self._since = loop.time()


class _Objects:
    """The objects of one definition: `marked` are the invalid ones, with the revisions at which they were judged."""

    def __init__(self, annotator: Annotator, definition: str) -> None:
        self.marked: dict[Key, Revision] = {}
        self._annotator = annotator
        self._definition = definition

    def deliver(self, changes: Sequence[Change], revision: Revision) -> None:
        for change in changes:
            if change.entry is None:
                self.marked.pop(change.key, None)
            elif change.key in self.marked or _QUOTED in change.entry.stored:
                self._annotator.look_at(self._definition, change.key)

    def end(self) -> None:
        """Another schema, or none any more."""
        self._annotator.look_at(self._definition, None)


# -- pure -------------------------------------------------------------------------------------------------------------


def _judge(entry: Entry, versions: Versions, now: str) -> tuple[bool, Entry | None]:
    """Is the object valid, and what is to be stored in its place; None if its annotation is right."""
    errors = judge(codec.decode_stored(entry.stored), versions).errors
    if not errors and _QUOTED not in entry.stored:
        return True, None
    value: Object = codec.decode_stored(entry.stored)
    metadata = value["metadata"]
    annotations = metadata.get("annotations") or {}
    wanted = message(errors)
    if annotations.get(INVALID, "") == wanted or metadata.get("deletionTimestamp"):
        return not errors, None
    annotations = {name: text for name, text in annotations.items() if name != INVALID}
    if wanted:
        annotations[INVALID] = wanted
        if validate_annotations(annotations, ROOT):
            return False, None  # there are so many that one more would be refused in every later write
    value = _with_annotations(value, annotations, versions, now)
    return not errors, made(entry.key, versions.storage, value, reads_as_made=False)


def message(errors: list[FieldError]) -> str:
    """What the annotation says; empty if there are no errors."""
    if not errors:
        return ""
    texts = (f"{text[:MAX_ERROR_TEXT]}…" if len(text) > MAX_ERROR_TEXT else text for text in map(str, errors))
    return aggregate(islice(texts, MAX_ERRORS), more=len(errors) - MAX_ERRORS)


def _with_annotations(value: Object, annotations: dict[str, str], versions: Versions, now: str) -> Object:
    """A stored object with these annotations, and with MANAGER as the owner of what it changed."""
    resource = versions.of(value)
    before: Object = copy(value)
    pipeline.read(resource, before)
    after = _replaced(before, annotations=annotations)
    owned = manager.update(before, after, ownership.tracker(resource, ""), manager=MANAGER, now=now)
    return _replaced(value, annotations=annotations, managedFields=owned["metadata"].get("managedFields"))


def _replaced(value: Object, **fields: Json) -> Object:
    """The object with these fields of metadata; those that are empty go."""
    metadata = {name: one for name, one in value["metadata"].items() if name not in fields}
    return {**value, "metadata": metadata | {name: one for name, one in fields.items() if one}}
