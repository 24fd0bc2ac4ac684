"""Watch streams judged: the nine promises of etcd's robustness suite, each a validator, and streams to judge.

A stream is judged against the history of the whole store, which is read from the store's own log. What a watch may show
of a change follows from the change's old and new state: an object that enters the selection is ADDED, one that leaves
it DELETED.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import random
from bisect import bisect_right
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from typing import Any, NamedTuple

import aiohttp
import orjson

from noxu.process.server import Server
from noxu.registry.reader import Selection
from noxu.registry.resource import Resource
from noxu_storage.store import Store
from noxu_storage.types import FIRST, Key, Prefix
from tests.timing import hang_guard

Json = Any
Place = tuple[str, str]  # namespace and name


class Step(NamedTuple):
    """One change in the store: the object before and after, without their resourceVersions."""

    revision: int
    place: Place
    old: Json
    new: Json


class Seen(NamedTuple):
    """One event of a stream."""

    type: str
    revision: int
    place: Place
    object: Json


class Watched(NamedTuple):
    """The request of a watch and its events.

    `after` is where its live events begin: the resourceVersion asked for, or that of the initial state. `upto` is the
    newest revision that it must have shown; 0: unknown.
    """

    after: int
    events: Sequence[Seen]
    initial: Sequence[Seen] = ()
    selects: Callable[[Place, Json], bool] = lambda place, value: True
    upto: int = 0

    @property
    def live(self) -> list[Seen]:
        return [event for event in self.events if event.type in ("ADDED", "MODIFIED", "DELETED")]


# -- the validators ---------------------------------------------------------------------------------------------------


def expected(watched: Watched, history: Iterable[Step]) -> list[Seen]:
    """The events that are to be seen after `after`."""
    found = []
    for step in history:
        if step.revision <= watched.after:
            continue
        was = step.old is not None and watched.selects(step.place, step.old)
        if step.new is not None and watched.selects(step.place, step.new):
            found.append(Seen("MODIFIED" if was else "ADDED", step.revision, step.place, step.new))
        elif was:
            found.append(Seen("DELETED", step.revision, step.place, step.old))
    return found


def filterable(watched: Watched, _: Sequence[Step]) -> None:
    """A stream shows only what was asked for."""
    for event in [*watched.initial, *watched.live]:
        assert watched.selects(event.place, event.object), event


def ordered(watched: Watched, _: Sequence[Step]) -> None:
    """Revisions never go back, and live events are newer than the start."""
    newest = watched.after
    for event in watched.events:
        assert event.revision >= newest, event
        newest = event.revision
    assert all(event.revision > watched.after for event in watched.live)


def unique(watched: Watched, _: Sequence[Step]) -> None:
    """No event comes twice, nor an object of the initial state."""
    changes = [(event.revision, event.place) for event in watched.live]
    assert len(set(changes)) == len(changes)
    places = [event.place for event in watched.initial]
    assert len(set(places)) == len(places)


def atomic(watched: Watched, history: Sequence[Step]) -> None:
    """What happened at one revision is seen as a whole and at once."""
    by_revision: dict[int, list[Seen]] = {}
    for event in expected(watched, history):
        by_revision.setdefault(event.revision, []).append(event)
    seen: list[list[Seen]] = []
    for event in watched.live:
        if seen and seen[-1][0].revision == event.revision:
            seen[-1].append(event)
        else:
            seen.append([event])
    for events in seen:
        assert {event.place for event in events} == {event.place for event in by_revision[events[0].revision]}


def bookmarkable(watched: Watched, history: Sequence[Step]) -> None:
    """A bookmark's revision says that everything up to it has been sent."""
    due = [event.revision for event in expected(watched, history)]
    sent = 0
    for event in watched.events:
        if event.type == "BOOKMARK":
            assert sent == bisect_right(due, event.revision), event
        elif event.type != "ERROR":
            sent += 1


def resumable(watched: Watched, history: Sequence[Step]) -> None:
    """The first event is the first one after the revision asked for."""
    if watched.live:
        assert watched.live[0].revision == expected(watched, history)[0].revision


def is_create(watched: Watched, history: Sequence[Step]) -> None:
    """ADDED is what the watch did not know, MODIFIED and DELETED what it knew."""
    there = {step.place for step in _state(watched, history)}
    for event in watched.live:
        assert (event.place in there) == (event.type != "ADDED"), event
        if event.type == "DELETED":
            there.remove(event.place)
        else:
            there.add(event.place)


def reliable(watched: Watched, history: Sequence[Step]) -> None:
    """Nothing is missing between the start and the newest event, nor up to where the watch has come."""
    upto = max([watched.upto, *(event.revision for event in watched.events)])
    due = [(event.revision, event.place) for event in expected(watched, history) if event.revision <= upto]
    assert [(event.revision, event.place) for event in watched.live] == due
    if watched.initial:
        state = {step.place: step.new for step in _state(watched, history)}
        assert {event.place: event.object for event in watched.initial} == state


def previous_value(watched: Watched, history: Sequence[Step]) -> None:
    """An event shows the object as it became; DELETED as it was last, with the revision at which it went."""
    due = {(event.revision, event.place): event for event in expected(watched, history)}
    for event in watched.live:
        expected_event = due.get((event.revision, event.place))
        assert expected_event is None or event.object == expected_event.object, event


def _state(watched: Watched, history: Sequence[Step]) -> list[Step]:
    """What was selected at the start."""
    state: dict[Place, Step] = {}
    for step in history:
        if step.revision <= watched.after:
            state.pop(step.place, None)
            if step.new is not None and watched.selects(step.place, step.new):
                state[step.place] = step
    return list(state.values())


VALIDATORS = (filterable, ordered, unique, atomic, bookmarkable, resumable, is_create, reliable, previous_value)


def violations(watched: Watched, history: Sequence[Step]) -> list[str]:
    """The names of the promises that a stream breaks."""
    broken = []
    for validator in VALIDATORS:
        try:
            validator(watched, history)
        except (AssertionError, KeyError, IndexError):
            broken.append(validator.__name__)
    return broken


def judge(watched: Watched, history: Sequence[Step]) -> None:
    for validator in VALIDATORS:
        validator(watched, history)


# -- history and streams ----------------------------------------------------------------------------------------------


async def history_of(store: Store, collection: str, upto: int = 0) -> list[Step]:
    """Every change of a collection that the store's log still has."""
    upto = upto or store.revision
    steps: list[Step] = []
    if upto <= max(store.compacted, FIRST):
        return steps
    async for batch in store.watch(Prefix(collection), after=store.compacted):
        for event in batch.events:
            old = orjson.loads(event.previous.value) if event.previous else None
            new = orjson.loads(event.value) if event.value is not None else None
            steps.append(Step(event.revision, (event.key.partition[:-1], event.key.name), old, new))
        if batch.revision >= upto:
            break
    return steps


def seen(line: bytes) -> Seen:
    """An event as it came over the wire."""
    event = orjson.loads(line)
    metadata = event["object"]["metadata"]
    revision = int(metadata.pop("resourceVersion", 0) or 0)
    return Seen(event["type"], revision, (metadata.get("namespace", ""), metadata.get("name", "")), event["object"])


def is_end_of_initial(event: Seen) -> bool:
    return event.type == "BOOKMARK" and "k8s.io/initial-events-end" in event.object["metadata"].get("annotations", {})


def with_initial(events: Sequence[Seen], **more: Any) -> Watched:
    """A stream that was asked for the initial state (sendInitialEvents)."""
    end = next(n for n, event in enumerate(events) if is_end_of_initial(event))
    return Watched(events[end].revision, events[end:], events[:end], **more)


async def lines_of(answer: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    rest = b""
    async for piece in answer.content.iter_any():
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            yield line


class Reader:
    """A watch under way: its events so far."""

    def __init__(self, lines: AsyncIterator[bytes]) -> None:
        self.events: list[Seen] = []
        self.ended = False
        self._changed = asyncio.Event()
        self._task = asyncio.create_task(self._read(lines))

    async def _read(self, lines: AsyncIterator[bytes]) -> None:
        with contextlib.suppress(aiohttp.ClientError):
            async for line in lines:
                self.events.append(seen(line))
                self._changed.set()
        self.ended = True
        self._changed.set()

    @property
    def newest(self) -> int:
        return self.events[-1].revision if self.events else 0

    async def until(self, done: Callable[[], bool]) -> None:
        """Return when something is the case, or the stream has ended."""
        async with hang_guard():
            while not done() and not self.ended:
                self._changed.clear()
                await self._changed.wait()

    async def until_revision(self, revision: int) -> None:
        """Return when everything up to a revision has been seen."""
        await self.until(lambda: self.newest >= revision)

    async def stop(self) -> None:
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task


@contextlib.asynccontextmanager
async def watching(session: aiohttp.ClientSession, url: str) -> AsyncIterator[Reader]:
    async with session.get(url) as answer:
        assert answer.status == 200, await answer.text()
        reader = Reader(lines_of(answer))
        try:
            yield reader
        finally:
            await reader.stop()


@contextlib.asynccontextmanager
async def watching_socket(session: aiohttp.ClientSession, url: str) -> AsyncIterator[Reader]:
    """The same over a WebSocket."""

    async def messages(socket: aiohttp.ClientWebSocketResponse) -> AsyncIterator[bytes]:
        async for message in socket:
            assert message.type is aiohttp.WSMsgType.TEXT
            yield message.data.encode()

    origin = url.partition("/apis")[0]
    async with session.ws_connect(url, origin=origin, max_msg_size=0) as socket:
        reader = Reader(messages(socket))
        try:
            yield reader
        finally:
            await reader.stop()


# -- objects to watch -------------------------------------------------------------------------------------------------

GROUP = "watched.example.com"
ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
DEFINITION: Json = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"things.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"plural": "things", "kind": "Thing"},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": ANYTHING}}],
    },
}
THINGS = f"{GROUP}/things"
PATH = f"/apis/{GROUP}/v1/things"


def stored_thing(namespace: str, name: str, color: str, text: str = "") -> bytes:
    """A thing as the registry stores it: sorted keys, no resourceVersion."""
    labels = {"labels": {"color": color}} if color else {}
    uid = base64.b16encode(f"{namespace}/{name}".encode()).decode().lower()
    metadata = {"creationTimestamp": "2026-01-01T00:00:00Z", "generation": 1, **labels}
    metadata |= {"name": name, "namespace": namespace, "uid": uid}
    value = {"apiVersion": f"{GROUP}/v1", "kind": "Thing", "metadata": metadata, "spec": {"text": text}}
    return json.dumps(value, separators=(",", ":"), sort_keys=True).encode()


def resource_of(server: Server) -> Resource:
    found = server.plane.served_resources.current.find(GROUP, "v1", "things")
    assert found is not None
    return found


def everything(server: Server) -> Selection:
    return Selection(resource_of(server))


class Writer:
    """Random creates, updates and deletes of few things, straight in the store."""

    def __init__(self, store: Store, seed: int, namespaces: Sequence[str] = ("a", "b"), names: int = 8) -> None:
        self._store = store
        self._random = random.Random(seed)
        self._places = [(namespace, f"{seed}-{n}") for namespace in namespaces for n in range(names)]
        self._known: dict[Place, int] = {}

    def write(self) -> Awaitable[int]:
        choose = self._random.choice
        place = choose(self._places)
        return self._write(place, choose(["red", "green", ""]), "x" * choose([1, 50]), self._random.random() < 0.3)

    async def _write(self, place: Place, color: str, text: str, delete: bool) -> int:
        key = Key(THINGS, f"{place[0]}/", place[1])
        known = self._known.get(place, 0)
        if known and delete:
            del self._known[place]
            return await self._store.delete(key, expected=known)
        revision = await self._store.put(key, stored_thing(*place, color, text), expected=known)
        self._known[place] = revision
        return revision
