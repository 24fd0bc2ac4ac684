"""A store without a file: the promises of a store for as long as the process lives.

A write is committed synchronously on the event loop, so no write is ever pending, and no outcome is unknown.

Several stores can begin with the same states, a `Base`, and share them: a store has its own dict of a collection from the
first write to it on.

    base     revision 7: widgets/a at 3, gadgets/b at 7
    store    put widgets/a → 8     its own dict of widgets; gadgets are those of the base
    another  put gadgets/c → 8     sees neither the one nor its absence
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Final, NamedTuple, TypeAlias

from noxu_storage import pins
from noxu_storage.log import Log
from noxu_storage.states import KeyOrder
from noxu_storage.transactions import Decide, Turn, refused
from noxu_storage.types import (
    EVERYTHING,
    FIRST,
    Batch,
    Conflict,
    Event,
    FutureRevision,
    Key,
    KeyValue,
    Page,
    Prefix,
    Revision,
    Status,
)

COMPACTION_SPAN: Final = 1_000  # revisions that compaction handles before other tasks run
LIST_SPAN: Final = 5_000  # states that a list reads before other tasks run: about 8 ms
SCAN_SPAN: Final = 1_000  # keys that a scan reads before other tasks run


_revision = attrgetter("revision")
_key = attrgetter("key")

_History: TypeAlias = Event | list[Event]
"""The states of a key: the changes that made them, without what these replaced, which compaction drops. `value` None: deleted.

Most keys are written once, so a single state is not in a list. The state at a revision is the last one whose revision is not
greater, which a bisection finds:

    revisions   3    7    9
    states      A    B    None

    at(2)   bisect_right = 0: None, the key did not exist
    at(7)   bisect_right = 2: states[1] = B
    at(8)   bisect_right = 2: states[1] = B
    at(9)   bisect_right = 3: states[2] = None, deleted

    compacted(8)   drops A: B is the state at 8 and stays
    compacted(9)   drops everything: at 9 the key is deleted
"""


def _states(history: _History) -> list[Event]:
    return history if isinstance(history, list) else [history]


def _at(history: _History, revision: Revision) -> KeyValue | None:
    states = _states(history)
    position = bisect_right(states, revision, key=_revision)
    return _shown(states[position - 1]) if position else None


def _shown(state: Event) -> KeyValue | None:
    return None if state.value is None else KeyValue(state.key, state.value, state.revision)


def _compacted(history: _History, revision: Revision) -> list[Event]:
    """Without the states that were superseded at or before a revision, and without a delete at or before it."""
    states = _states(history)
    position = bisect_right(states, revision, key=_revision)
    if position and states[position - 1].value is not None:
        position -= 1
    return states[position:]


class _Collection:
    """The histories of a collection's keys, including those of deleted keys."""

    __slots__ = ("_order", "histories")

    def __init__(self, histories: Mapping[Key, _History]) -> None:
        self.histories = dict(histories)  # a copy: those of a base are shared
        self._order = KeyOrder(histories)

    def change(self, event: Event) -> None:
        key, revision, value, previous = event
        state = event if previous is None else Event(key, revision, value, None)
        history = self.histories.get(key)
        if history is None:
            self.histories[key] = state
            self._order.append(key)
        elif isinstance(history, list):
            history.append(state)
        else:
            self.histories[key] = [history, state]

    def compact(self, key: Key, revision: Revision) -> None:
        history = self.histories.get(key)
        if history is None:
            return
        kept = _compacted(history, revision)
        if kept:
            self.histories[key] = kept[0] if len(kept) == 1 else kept
        else:
            del self.histories[key]
            self._order.clear()

    def keys(self, partition: str | None, after: Key | None) -> list[Key]:
        """The keys of a partition, or of all, after a key, in order; including deleted ones."""
        return self._order.select(self.histories, partition, after)


NO_EVENTS: Final[Mapping[Key, Event]] = {}


class Base(NamedTuple):
    """What several stores begin with, and none of them changes.

    `events` are in the order of their revisions; `collections` have the same events by their keys, in the order of these.
    `bytes` is the size of the `keys` values. `compacted`: as for `Store`; the events up to there are no history.
    """

    revision: Revision
    events: Sequence[Event]
    collections: Mapping[str, Mapping[Key, Event]]
    keys: int
    bytes: int
    compacted: Revision = 0

    def state(self, key: Key) -> KeyValue | None:
        """The state that a store begins with."""
        event = self.collections.get(key.collection, NO_EVENTS).get(key)
        return None if event is None else _shown(event)


NO_BASE: Final = Base(FIRST, (), {}, 0, 0)


def base_of(states: Iterable[KeyValue], revision: Revision, compacted: Revision = 0) -> Base:
    """What stores begin with that have these states at a revision. The events are their creations."""
    newest = sorted(states)  # by their keys
    events = [Event(state.key, state.revision, state.value, None) for state in newest]
    collections: dict[str, dict[Key, Event]] = {}
    for event in events:
        collections.setdefault(event.key.collection, {})[event.key] = event
    size = sum(len(state.value) for state in newest)
    return Base(revision, sorted(events, key=_revision), collections, len(events), size, compacted)


class MemoryStore:
    """See store.py for its promises. `MemoryStore()` is ready for use."""

    shared = False
    groups_writes = False

    def __init__(self, base: Base | None = None) -> None:
        """`base` is what the store begins with."""
        self._base = NO_BASE if base is None else base
        self._log = Log() if base is None else Log(base.revision, base.compacted, inherited=self._inherited)
        self._collections: dict[str, _Collection] = {}  # those of the base when they are written
        self._replaced: dict[Key, bytes] = {}
        self._compacting = asyncio.Lock()
        self._turn = Turn()
        self._keys = self._base.keys  # that exist
        self._bytes = self._base.bytes  # of their values

    @property
    def revision(self) -> Revision:
        return self._log.revision

    @property
    def compacted(self) -> Revision:
        return self._log.compacted

    async def get(self, key: Key, *, revision: Revision = 0) -> KeyValue | None:
        self._log.require_open()
        history = self._history_of(key)
        if not revision:
            return None if history is None else _shown(_states(history)[-1])
        revision = self._log.read_revision(revision)
        return None if history is None else _at(history, revision)

    async def list(self, prefix: Prefix, *, revision: Revision = 0, limit: int = 0, after: Key | None = None) -> Page:
        while True:
            self._log.require_open()
            at = self._log.read_revision(revision)
            items: list[KeyValue] = []
            remaining = 0
            for number, state in enumerate(self._states(prefix, at, after), 1):
                if limit and len(items) == limit:
                    remaining += 1
                else:
                    items.append(state)
                if number % LIST_SPAN == 0:
                    await asyncio.sleep(0)  # what others write meanwhile is later than `at`
            if (
                at >= self._log.compacted
            ):  # else compaction has overtaken it: it raises Compacted, or reads what is newest now
                return Page(items, at, remaining)

    async def count(self, prefix: Prefix) -> int:
        self._log.require_open()
        if prefix == EVERYTHING:
            return self._keys
        return sum(1 for _ in self._states(prefix, self._log.revision, None))

    async def scan(self, texts: Sequence[bytes]) -> AsyncIterator[Sequence[KeyValue]]:
        for name in self._names():
            keys = list(self._histories(name))
            for start in range(0, len(keys), SCAN_SPAN):
                self._log.require_open()
                states = [self._current(key) for key in keys[start : start + SCAN_SPAN]]
                yield [state for state in states if state and any(text in state.value for text in texts)]
                await asyncio.sleep(0)

    async def catch_up(self) -> None:
        self._log.require_open()

    async def put(self, key: Key, value: bytes, *, expected: Revision, replaced: bytes | None = None) -> Revision:
        return await self._write(key, value, expected)

    async def delete(self, key: Key, *, expected: Revision, replaced: bytes | None = None) -> Revision:
        return await self._write(key, None, expected)

    def watch(self, prefix: Prefix = EVERYTHING, *, after: Revision) -> AsyncIterator[Batch]:
        return self._log.watch(prefix, after)

    async def compact(self, revision: Revision) -> None:
        log = self._log
        log.require_open()
        if revision > log.revision:
            raise FutureRevision(log.revision)
        async with self._compacting:
            revision = await pins.compactable(self, revision)
            while log.compacted < revision:
                upto = min(log.compacted + COMPACTION_SPAN, revision)
                for superseding in range(log.compacted + 1, upto + 1):
                    if (event := log.find(superseding)) is not None:
                        self._compact(event.key, upto)
                log.compacted = upto
                await asyncio.sleep(0)
            log.trim(log.compacted)

    def _compact(self, key: Key, revision: Revision) -> None:
        collection = self._collections.get(key.collection)  # its own: what is compacted was written here
        if collection is not None:
            collection.compact(key, revision)
            if not collection.histories and key.collection not in self._base.collections:
                del self._collections[key.collection]

    async def compact_in_turn(self, revision: Revision) -> None:
        await self.compact(revision)

    async def status(self) -> Status:
        self._log.require_open()
        return Status("memory", self.revision, self.compacted, self._keys, self._bytes)

    async def close(self) -> None:
        self._log.close()

    def reopen(self) -> None:
        """Use the closed store again, perhaps in another event loop, with its contents and its history."""
        self._log.reopen()
        self._compacting, self._turn = asyncio.Lock(), Turn()

    def base(self) -> Base:
        """What other stores can begin with: the present states, each as if it had been created so.

        The events of the base are these creations. Revisions are those of this store; what was superseded or deleted is gone.
        """
        return base_of(self._states(EVERYTHING, self._log.revision, None), self._log.revision)

    def _names(self) -> Sequence[str]:
        """The collections, in order."""
        return sorted({*self._collections, *self._base.collections})

    def _histories(self, name: str) -> Mapping[Key, _History]:
        """The histories of a collection, to be read: its own ones, or those that the base shares."""
        own = self._collections.get(name)
        return self._base.collections.get(name, NO_EVENTS) if own is None else own.histories

    def _own(self, name: str) -> _Collection:
        """A collection to write, which shares nothing with other stores but states."""
        own = self._collections.get(name)
        if own is None:
            own = self._collections[name] = _Collection(self._base.collections.get(name, NO_EVENTS))
        return own

    def replace(self, values: Mapping[Key, bytes]) -> None:
        """Give keys of the base other values here, as if they had been created with them. Only while the store is unused."""
        self._replaced.update(values)
        for key, value in values.items():
            shared = self._base.collections[key.collection][key]
            self._own(key.collection).histories[key] = shared._replace(value=value)
            self._bytes += len(value) - len(shared.value or b"")

    def _inherited(self) -> Sequence[Event]:
        """The events before those of this store."""
        replaced = self._replaced
        return [
            event._replace(value=replaced[event.key]) if event.key in replaced else event for event in self._base.events
        ]

    def _history_of(self, key: Key) -> _History | None:
        return self._histories(key.collection).get(key)

    def _current(self, key: Key) -> KeyValue | None:
        history = self._history_of(key)
        return None if history is None else _shown(_states(history)[-1])

    def _states(self, prefix: Prefix, revision: Revision, after: Key | None) -> Iterator[KeyValue]:
        names = self._names() if prefix.collection is None else [prefix.collection]
        for name in names:
            own = self._collections.get(name) or _Collection(self._histories(name))
            for key in own.keys(prefix.partition, after):
                history = own.histories.get(
                    key
                )  # compaction may have removed one while this waited: it was deleted before
                if history is not None and (state := _at(history, revision)) is not None:
                    yield state

    async def transact(self, decide: Decide) -> Revision:
        self._log.require_open()
        async with self._turn.taken():
            writes = await decide()
            self._log.require_open()
            if (key := refused(writes, self._revision_of)) is not None:
                raise Conflict(key, self._current(key))
            first = self._log.revision + 1
            # one after the other: a key may be written twice
            events = [self._change(*write[:2], revision) for revision, write in enumerate(writes, first)]
            self._turn.made += bool(events)
            if self._log.publish(events):
                await asyncio.sleep(0)  # waiting watches get the events before the caller continues
        return events[-1].revision if events else 0

    def _revision_of(self, key: Key) -> Revision:
        current = self._current(key)
        return current.revision if current else 0

    async def _write(self, key: Key, value: bytes | None, expected: Revision) -> Revision:
        self._log.require_open()
        if self._turn.is_taken:
            is_overtaken = await self._turn.ended()
            self._log.require_open()
            if is_overtaken:
                raise Conflict(key, self._current(key))
        current = self._current(key)
        if (current.revision if current else 0) != expected or (current is None and value is None):
            raise Conflict(key, current)
        event = self._change(key, value, self._log.revision + 1)
        if self._log.publish((event,)):
            await asyncio.sleep(0)  # waiting watches get this event before the writer continues
        return event.revision

    def _change(self, key: Key, value: bytes | None, revision: Revision) -> Event:
        """Change the state of a key in place. The event is not published yet, and no other task may run before it is."""
        current = self._current(key)
        event = Event(key, revision, value, current)
        self._own(key.collection).change(event)
        self._keys += (value is not None) - (current is not None)
        self._bytes += len(value or b"") - (len(current.value) if current else 0)
        return event
