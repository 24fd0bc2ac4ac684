"""Watches over HTTP and in the process: every stream is judged by the nine validators (hazards R6, R7, R8)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import aiohttp
import pytest

from noxu.config import Config
from noxu.http import watch
from noxu.http.exchange import ListOptions
from noxu.manifests.documents import Document
from noxu.process.server import Server
from noxu.registry import cache
from noxu.registry.reader import Selection
from noxu_storage.memory import MemoryStore
from noxu_storage.types import Key
from tests.control_planes import assemble
from tests.http import streams
from tests.http.streams import (
    PATH,
    THINGS,
    Seen,
    Watched,
    Writer,
    everything,
    history_of,
    judge,
    seen,
    stored_thing,
    watching,
    watching_socket,
    with_initial,
)
from tests.timing import eventually_async, hang_guard, loop_turns

pytestmark = pytest.mark.slow(every=4)

EVENTS = int(os.environ.get("NOXU_EVENTS", "20000"))
HISTORY = int(os.environ.get("NOXU_HISTORY", "300"))


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    documents = [Document(streams.DEFINITION, "streams", 1)]
    async with Server(Config(port=0), documents) as running:
        yield running


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        yield session


async def write(server: Server, count: int, seed: int = 1, **more: Any) -> None:
    writer = Writer(server.plane.store, seed, **more)
    for _ in range(count):
        await writer.write()


# -- R6


def red(_: Any, value: Any) -> bool:
    return bool(value["metadata"].get("labels", {}).get("color") == "red")


WATCHES = {
    "everything": ("", lambda place, value: True),
    "one namespace": ("ns:a", lambda place, value: place[0] == "a"),
    "a label": ("labelSelector=color%3Dred", red),
    "no such label": ("labelSelector=!color", lambda place, value: "labels" not in value["metadata"]),
    "a name": ("fieldSelector=metadata.name%3D1-3", lambda place, value: place[1] == "1-3"),
    "a label in a namespace": ("ns:b&labelSelector=color%3Dred", lambda place, value: place[0] == "b" and red(place, value)),
}  # fmt: skip


def url_of(server: Server, query: str, **more: str) -> str:
    path = PATH
    if query.startswith("ns:"):
        namespace, _, query = query.removeprefix("ns:").partition("&")
        path = PATH.replace("things", f"namespaces/{namespace}/things")
    parameters = "&".join([query, "watch=1", "allowWatchBookmarks=true", *(f"{k}={v}" for k, v in more.items())])
    return f"{server.url}{path}?{parameters}"


@pytest.mark.slow
@pytest.mark.timeout(600 + EVENTS // 100)
async def test_r6_streams_keep_their_promises_under_load(
    server: Server,
    session: aiohttp.ClientSession,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
) -> None:
    """Eight watches of all kinds, 20,000 events, bookmarks all the time."""
    monkeypatch.setattr(watch, "BOOKMARK_EVERY", 0.02)
    monkeypatch.setattr(watch, "STALLED_AFTER", 3600.0)  # the clients share one thread with the server
    store = server.plane.store
    await write(server, 50)
    urls = [url_of(server, query) for query, _ in WATCHES.values()]
    selections = [selects for _, selects in WATCHES.values()]
    initial = url_of(server, "", sendInitialEvents="true", resourceVersionMatch="NotOlderThan")
    start = store.revision
    async with (
        watching(session, initial) as first,
        watching_socket(session, initial) as second,
        contextlib.AsyncExitStack() as stack,
    ):
        others = [await stack.enter_async_context(watching(session, f"{url}&resourceVersion={start}")) for url in urls]
        readers = [first, second, *others]
        writers = [Writer(store, seed) for seed in (2, 3, 4)]
        for n in range(EVENTS // 30):
            await asyncio.gather(*[_several(writer, 10) for writer in writers])
            if n % 100 == 99:  # so that no watch falls too far behind
                for reader in readers:
                    await reader.until_revision(store.revision - 5000)
        for reader in readers:
            await reader.until_revision(store.revision)
        end = store.revision
    history = await history_of(store, THINGS)
    assert len(history) > EVENTS
    for reader in (first, second):
        judge(with_initial(reader.events, upto=end), history)
    for reader, selects in zip(others, selections, strict=True):
        assert any(event.type == "BOOKMARK" for event in reader.events)
        judge(Watched(start, reader.events, (), selects, upto=end), history)
    record_property("events", len(history))
    record_property("watches", len(readers))


async def _several(writer: Writer, count: int) -> None:
    for _ in range(count):
        await writer.write()


async def test_r6_a_client_that_reconnects_all_the_time_misses_nothing(
    server: Server, session: aiohttp.ClientSession
) -> None:
    """What a client does with an unstable network: resume from the last resourceVersion that it has seen."""
    store = server.plane.store
    start = store.revision
    writing = asyncio.create_task(write(server, 1500))
    events: list[Seen] = []
    while not writing.done() or events[-1].revision < store.revision:
        after = events[-1].revision if events else start
        async with watching(session, url_of(server, "", resourceVersion=str(after))) as reader:
            await reader.until(lambda: len(reader.events) >= 37 or bool(reader.events and writing.done()))
            got = reader.events[:37]
        judge(Watched(after, got), await history_of(store, THINGS))
        events += got
    judge(Watched(start, events, upto=store.revision), await history_of(store, THINGS))


# -- R7, in the process: no sockets, so that thousands of watches take seconds


class Tap:
    """A client that takes everything at once."""

    def __init__(self) -> None:
        self.data: list[bytes] = []
        self.written = asyncio.Event()

    def framed(self, events: Sequence[bytes]) -> Sequence[bytes]:
        return events

    def write(self, pieces: Sequence[bytes]) -> int:
        self.data.append(b"".join(pieces))
        self.written.set()
        return 0

    async def drain(self) -> None:
        pass

    @property
    def events(self) -> list[Seen]:
        return [seen(line) for line in b"".join(self.data).splitlines()]


async def cancelled(running: asyncio.Task[None]) -> None:
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


def options(server: Server, after: int = 0) -> ListOptions:
    return ListOptions(selection=everything(server), resource_version=str(after))


async def tapped(server: Server, after: int, seconds: float = 0.0) -> Tap:
    """What a watch from a revision sends at once."""
    tap = Tap()
    stream = watch.Stream(
        server.plane.reader, everything(server), watch.Representation(streams.resource_of(server)), tap
    )
    stream.after = after
    await stream.run(options(server, after), seconds)
    return tap


async def test_r7_a_watch_from_every_revision_shows_the_exact_rest(
    server: Server, monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
) -> None:
    """Also from 1, from now, and where the cache has forgotten and the store remembers."""
    monkeypatch.setattr(cache, "MAX_RECENT", HISTORY // 2)
    store = server.plane.store
    await server.plane.reader.collection(streams.resource_of(server))
    since = streams.resource_of(server).versions.since
    await write(server, HISTORY)
    history = await history_of(store, THINGS)
    lines = b"".join((await tapped(server, since)).data).splitlines()
    assert len(lines) == len(history) == HISTORY
    judge(Watched(since, [seen(line) for line in lines], upto=store.revision), history)
    for n, step in enumerate(history):
        assert b"".join((await tapped(server, step.revision)).data).splitlines() == lines[n + 1 :]
    assert (await tapped(server, store.revision + 1)).data == []
    record_property("revisions", HISTORY)


async def test_r7_after_compaction_a_watch_shows_the_exact_rest_or_expired(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "MAX_RECENT", 20)
    store = server.plane.store
    await server.plane.reader.collection(streams.resource_of(server))
    await write(server, 100)
    history = await history_of(store, THINGS)
    middle = history[50].revision
    await store.compact(middle)
    for step in history:
        events = (await tapped(server, step.revision)).events
        if step.revision >= middle or not events or events[0].type != "ERROR":
            judge(Watched(step.revision, events, upto=store.revision), history)
        else:
            [error] = events
            assert error.object["code"] == 410
            assert error.object["reason"] == "Expired"
    assert (await tapped(server, history[0].revision)).events[0].type == "ERROR"


async def test_r7_a_watch_from_the_future_shows_only_what_comes_after(server: Server) -> None:
    store = server.plane.store
    future = store.revision + 3
    tap = Tap()
    stream = watch.Stream(
        server.plane.reader, everything(server), watch.Representation(streams.resource_of(server)), tap
    )
    stream.after = future
    running = asyncio.create_task(stream.run(options(server, future), 3600.0))
    await asyncio.sleep(0)
    await write(server, 8)
    await eventually_async(lambda: tap.data and tap.events[-1].revision == store.revision)
    await cancelled(running)
    assert [event.revision for event in tap.events] == list(range(future + 1, store.revision + 1))


@pytest.mark.parametrize("revision", ["0", ""])
async def test_r7_without_a_revision_or_from_zero_it_is_the_state_and_then_everything(
    server: Server, session: aiohttp.ClientSession, revision: str
) -> None:
    """Jepsen's edge case is revision 0: it is not history from the beginning."""
    await write(server, 40)
    store = server.plane.store
    start = store.revision
    state = {step.place: step for step in await history_of(store, THINGS)}
    there = {place for place, step in state.items() if step.new is not None}
    async with watching(session, url_of(server, "", resourceVersion=revision)) as reader:
        await reader.until(lambda: len(reader.events) >= len(there))
        await write(server, 10, seed=9)
        await reader.until(lambda: reader.events[-1].revision == store.revision)
    initial, rest = reader.events[: len(there)], reader.events[len(there) :]
    judge(Watched(start, rest, initial, upto=store.revision), await history_of(store, THINGS))


# -- R8: etcd's track record, at the level of the API. The numbers are those of etcd's issues


async def test_r8_17247_catching_up_from_the_log_shows_no_event_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """The log is ahead of the cache when a watch goes over from one to the other."""
    monkeypatch.setattr(cache, "MAX_RECENT", 0)
    store = MemoryStore()
    start = store.revision
    await _put_config_map(store, "early")
    plane = assemble(store)
    config_maps = plane.served_resources.current.find("", "v1", "configmaps")
    assert config_maps is not None
    await plane.reader.collection(config_maps)
    await _put_config_map(store, "late")
    tap = Tap()
    selection = Selection(config_maps)
    stream = watch.Stream(plane.reader, selection, watch.Representation(config_maps), tap)
    stream.after = start
    running = asyncio.create_task(stream.run(ListOptions(selection, str(start)), 3600.0))
    await tap.written.wait()
    following = asyncio.create_task(plane.cache.follow())
    await _put_config_map(store, "last")
    await eventually_async(lambda: tap.events[-1].place[1] == "last")
    await cancelled(running)
    await store.close()
    await following
    assert [event.place[1] for event in tap.events] == ["early", "late", "last"]


async def _put_config_map(store: MemoryStore, name: str) -> None:
    metadata = {"name": name, "namespace": "default", "uid": name}
    value = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata}
    await store.put(Key("/configmaps", "default/", name), json.dumps(value).encode(), expected=0)


async def test_r8_18089_the_event_of_a_compacted_delete_is_seen_by_watches(
    server: Server, session: aiohttp.ClientSession
) -> None:
    store = server.plane.store
    key = Key(THINGS, "a/", "x")
    async with watching(session, url_of(server, "", resourceVersion=str(store.revision))) as reader:
        created = await store.put(key, stored_thing("a", "x", "red"), expected=0)
        deleted = await store.delete(key, expected=created)
        await store.compact(deleted)
        await reader.until(lambda: len(reader.events) == 2)
    assert [(event.type, event.revision) for event in reader.events] == [("ADDED", created), ("DELETED", deleted)]


async def test_r8_19179_a_watch_from_the_compacted_revision_sees_the_delete_after_it(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "MAX_RECENT", 0)
    store = server.plane.store
    await server.plane.reader.collection(streams.resource_of(server))
    key = Key(THINGS, "a/", "x")
    created = await store.put(key, stored_thing("a", "x", "red"), expected=0)
    deleted = await store.delete(key, expected=created)
    await store.compact(created)
    [event] = (await tapped(server, created)).events
    assert (event.type, event.revision) == ("DELETED", deleted)


async def test_r8_15220_a_bookmark_is_never_ahead_of_a_slow_watch(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "BOOKMARK_EVERY", 0.0)

    class Slow(Tap):
        async def drain(self) -> None:
            await asyncio.sleep(0.001)

    tap = Slow()
    stream = watch.Stream(
        server.plane.reader, everything(server), watch.Representation(streams.resource_of(server)), tap
    )
    start = stream.after = server.plane.store.revision
    asked = options(server, start)._replace(bookmarks=True)
    running = asyncio.create_task(stream.run(asked, 3600.0))
    await write(server, 300)
    await eventually_async(lambda: sum(event.type == "BOOKMARK" for event in tap.events) > 10)
    await cancelled(running)
    judge(Watched(start, tap.events), await history_of(server.plane.store, THINGS))


async def test_a_watch_that_is_catching_up_when_the_definition_changes_ends(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does not follow the fan-out yet, and must not wait for events that are not sent any more."""
    monkeypatch.setattr(cache, "MAX_RECENT", 0)
    await server.plane.reader.collection(streams.resource_of(server))
    await write(server, 30)

    class Halting(Tap):
        async def drain(self) -> None:
            await asyncio.sleep(0.01)

    tap = Halting()
    stream = watch.Stream(
        server.plane.reader, everything(server), watch.Representation(streams.resource_of(server)), tap
    )
    stream.after = server.plane.store.revision - 20
    running = asyncio.create_task(stream.run(options(server, stream.after), 60.0))
    await tap.written.wait()
    server.plane.cache.end_watches(THINGS)
    async with hang_guard():
        await running


async def test_when_the_log_is_cut_off_watches_end_and_lists_are_loaded_again(server: Server) -> None:
    """Compaction that overtakes the cache itself: no watch goes on with a gap in its events."""
    plane = server.plane
    await write(server, 20)
    collection = await plane.reader.collection(streams.resource_of(server))
    tap = Tap()
    stream = watch.Stream(plane.reader, everything(server), watch.Representation(streams.resource_of(server)), tap)
    running = asyncio.create_task(stream.run(options(server), 60.0))
    await loop_turns()
    waiting = asyncio.ensure_future(plane.cache.reached(plane.store.revision + 5))
    await asyncio.sleep(0)
    plane.cache.reset(plane.store.revision + 5)  # what Compacted does in `follow`
    async with hang_guard():
        await running
        await waiting
    assert await plane.reader.collection(streams.resource_of(server)) is not collection
