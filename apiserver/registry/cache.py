"""The watch cache: every object once, as the bytes that were stored, and the recent changes to it.

GET writes an entry's bytes out, LIST joins them, a watch event is built once and the same bytes go to every watcher.
One task follows the store's log and applies each commit as a whole; `reached` lets a writer wait until its own write
can be read here. Collections are loaded when they are first needed.
"""

from __future__ import annotations

import asyncio
import logging
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from itertools import takewhile
from typing import Final, Protocol

from apiserver.registry.change import Change
from apiserver.registry.entry import Entry
from apiserver.registry.fanout import Fanout
from storage.store import Store
from storage.types import Batch, Compacted, Corrupt, Event, Key, KeyValue, Page, Prefix, Revision

log = logging.getLogger("noxu")

RECENT: Final = 1024  # changes kept per collection for watches that resume; older ones come from the store's log
RECENT_BYTES: Final = 32 * 1024 * 1024  # of all their objects


class Watcher(Protocol):
    """A part of the server that knows of changes before their writers are answered. Both methods return at once."""

    def deliver(self, changes: Sequence[Change], revision: Revision) -> None: ...

    def end(self) -> None:
        """Nothing more will come: the resource is gone or has changed, or the cache lost track of the log."""
        ...


class Collection:
    """The objects of one resource, in key order, with those who watch them."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.entries: dict[Key, Entry] = {}
        self.keys: list[Key] = []
        self.damaged: dict[Key, Revision] = {}  # what could not be read, at which revision; it is not in `entries`
        self.recent: deque[Change] = deque()
        self.recent_bytes = 0
        self.floor: Revision = 0  # `recent` holds every change after this revision
        self.changed: Revision = 0  # the revision of the newest change
        self.watchers: dict[Watcher, None] = {}
        self.streams = Fanout(self)

    def apply(self, event: Event, made: Entry | None = None) -> Change:
        """`made` is the entry that a writer expects of its write, and has prepared."""
        key = event.key
        self.damaged.pop(key, None)
        old = self.entries.get(key)
        if old is None and event.previous is not None:
            old = Entry(key, event.previous.value, event.previous.revision)
        entry = None
        if event.value is not None:
            if made is not None and made.stored == event.value:
                entry, entry.revision = made, event.revision
            else:
                entry = Entry(key, event.value, event.revision)
            if key not in self.entries:
                insort(self.keys, key)
            self.entries[key] = entry
        elif self.entries.pop(key, None) is not None:
            del self.keys[bisect_left(self.keys, key)]
        change = Change(key, event.revision, entry, old.at(event.revision) if old else None)
        self.recent.append(change)
        self.recent_bytes += change.weight
        while len(self.recent) > RECENT or self.recent_bytes > RECENT_BYTES:
            forgotten = self.recent.popleft()
            self.recent_bytes -= forgotten.weight
            self.floor = forgotten.revision
        self.changed = event.revision
        return change

    def fill(self, items: Iterable[KeyValue]) -> None:
        for one in items:
            self.entries[one.key] = Entry(one.key, one.value, one.revision)
        self.keys = sorted(self.entries)

    def damage(self, partition: str | None) -> dict[Key, Revision]:
        """What cannot be read in one partition (None: in all)."""
        return {key: at for key, at in self.damaged.items() if partition in (None, key.partition)}

    def select(self, partition: str | None, after: Key | None = None) -> list[Key]:
        """The keys of one partition (None: of all), those behind `after`, in order."""
        start = 0 if after is None else bisect_left(self.keys, (*after, ""))
        if partition is None:
            return self.keys[start:] if start else self.keys
        first = bisect_left(self.keys, Key(self.name, partition, ""))
        last = bisect_left(self.keys, Key(self.name, partition + "\0", ""))
        return self.keys[max(first, start) : last]

    def since(self, revision: Revision) -> list[Change] | None:
        """Every change after `revision`; None if that is longer ago than `recent` goes."""
        if revision < self.floor:
            return None
        if revision >= self.changed:
            return []
        found = list(takewhile(lambda change: change.revision > revision, reversed(self.recent)))
        found.reverse()
        return found


class WatchCache:
    """All collections, kept up to date from the store's log."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.revision: Revision = store.revision
        self._collections: dict[str, Collection] = {}
        self._loading: dict[str, asyncio.Task[Collection]] = {}
        self._waiting: deque[tuple[Revision, asyncio.Future[None]]] = deque()
        self._pending: dict[str, list[Event]] = {}
        self._made: dict[Key, Entry] = {}
        self._gaps = 0

    async def follow(self) -> None:
        """Apply the log for ever. If it is cut off under us everything is forgotten, and loaded anew on demand."""
        while True:
            try:
                async for batch in self.store.watch(after=self.revision):
                    self._apply(batch)
                return
            except (Compacted, Corrupt):
                self._forget(self.store.revision)

    def _forget(self, revision: Revision) -> None:
        """Go on from `revision`; what happened before it is not known."""
        self.revision = revision
        self._gaps += 1
        for collection in self._collections.values():
            self._end(collection)
        self._collections.clear()
        self._wake()

    def _apply(self, batch: Batch) -> None:
        changed: dict[Collection, list[Change]] = {}
        for event in batch.events:
            collection = self._collections.get(event.key.collection)
            if collection is not None:
                made = self._made.get(event.key)
                changed.setdefault(collection, []).append(collection.apply(event, made))
            elif (pending := self._pending.get(event.key.collection)) is not None:
                pending.append(event)
        self.revision = batch.revision
        for collection, changes in changed.items():
            for watcher in list(collection.watchers):
                watcher.deliver(changes, batch.revision)
        self._wake()
        for collection in changed:
            collection.streams.tell()

    def _wake(self) -> None:
        """Tell those who wait for a revision that has been reached."""
        while self._waiting and self._waiting[0][0] <= self.revision:
            future = self._waiting.popleft()[1]
            if not future.done():
                future.set_result(None)

    async def follows(self, made: Entry, write: Awaitable[Revision]) -> None:
        """Return once a write can be read here, as the entry that was prepared for it. Raises what the write raises."""
        self._made[made.key] = made
        try:
            made.revision = await write
            await self.reached(made.revision)
        finally:
            if self._made.get(made.key) is made:
                del self._made[made.key]

    async def reached(self, revision: Revision) -> None:
        """Return once everything up to `revision` can be read here."""
        if revision <= self.revision:
            return
        future = asyncio.get_running_loop().create_future()
        insort(self._waiting, (revision, future), key=lambda pair: pair[0])
        await future

    def peek(self, name: str) -> Collection | None:
        """The collection, if it is loaded."""
        return self._collections.get(name)

    async def collection(self, name: str) -> Collection:
        found = self._collections.get(name)
        if found is not None:
            return found
        task = self._loading.get(name)
        if task is None:
            task = self._loading[name] = asyncio.ensure_future(self._load(name))
            task.add_done_callback(lambda _: self._loading.pop(name, None))
        return await asyncio.shield(task)

    async def _load(self, name: str) -> Collection:
        gaps = -1
        while gaps != self._gaps:  # else changes between the page and now were missed
            gaps = self._gaps
            pending = self._pending[name] = []
            try:
                page, damaged = await self._stored(name)
                await self.reached(page.revision)
            finally:
                del self._pending[name]
        collection = Collection(name)
        collection.fill(page.items)
        collection.damaged.update(damaged)
        collection.floor = collection.changed = page.revision
        for event in pending:
            if event.revision > page.revision:
                collection.apply(event)
        self._collections[name] = collection
        return collection

    async def _stored(self, name: str) -> tuple[Page, Mapping[Key, Revision]]:
        """All that is stored in a collection, and what of it is damaged."""
        try:
            return await self.store.list(Prefix(name)), {}
        except Corrupt as corrupt:
            if corrupt.page is None:
                raise
            log.error("%s: noxu check lists all damage", corrupt)  # noqa: TRY400 - it is no bug
            return corrupt.page, corrupt.damaged

    def end_watches(self, name: str) -> None:
        """End every watch on a collection: its resource changed or is gone."""
        collection = self._collections.get(name)
        if collection is not None:
            self._end(collection)

    def _end(self, collection: Collection) -> None:
        collection.streams.end()
        watchers, collection.watchers = list(collection.watchers), {}
        for watcher in watchers:
            watcher.end()
