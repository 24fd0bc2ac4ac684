"""Who does not take his events is cut off, costs little until then, and loses nothing by it (hazard R9)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from urllib.parse import urlsplit

import aiohttp
import pytest

from noxu.config import Config
from noxu.http import watch, watch_requests
from noxu.http.exchange import ListOptions
from noxu.manifests.documents import Document
from noxu.process.server import Server
from noxu.registry import cache
from noxu_storage.types import Key
from tests.http.streams import (
    DEFINITION,
    PATH,
    THINGS,
    Seen,
    Watched,
    Writer,
    everything,
    history_of,
    judge,
    resource_of,
    seen,
    stored_thing,
    watching,
)
from tests.timing import eventually_async, hang_guard, loop_turns

STALLED = int(os.environ.get("NOXU_STALLED", "12"))
EVENT = 16_000  # bytes
EVENTS = 350


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with Server(Config(port=0), [Document(DEFINITION, "streams")]) as running:
        yield running


async def stalled(server: Server, revision: int) -> socket.socket:
    """A client that asks for a watch, reads the answer's head, and then nothing."""
    parts = urlsplit(server.url)
    peer = socket.socket()
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    peer.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(peer, (parts.hostname, parts.port))
    await loop.sock_sendall(
        peer, f"GET {PATH}?watch=1&resourceVersion={revision} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
    )
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += await loop.sock_recv(peer, 1)
    assert head.startswith(b"HTTP/1.1 200")
    return peer


async def until_cut_off(peer: socket.socket) -> bytes:
    heard = b""
    with contextlib.suppress(ConnectionError):
        while piece := await asyncio.get_running_loop().sock_recv(peer, 1 << 20):
            heard += piece
    return heard


def whole_events(chunks: bytes) -> list[bytes]:
    """The lines in a chunked body that may break off anywhere."""
    body = b""
    while b"\r\n" in chunks:
        size, _, rest = chunks.partition(b"\r\n")
        body, chunks = body + rest[: int(size, 16)], rest[int(size, 16) + 2 :]
    return [line for line in body.splitlines(keepends=True) if line.endswith(b"\n")]


@pytest.mark.slow
async def test_stalled_watches_are_cut_off_and_resume_where_they_were(
    server: Server,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    record_property: Callable[[str, object], None],
) -> None:
    record_property("watches that do not read", STALLED)
    monkeypatch.setattr(watch, "STALLED_AFTER", 1.0)
    ended: list[watch.Stream] = []
    run = watch.Stream.run

    async def recorded(stream: watch.Stream, options: ListOptions, seconds: float) -> None:
        try:
            await run(stream, options, seconds)
        finally:
            ended.append(stream)

    monkeypatch.setattr(watch.Stream, "run", recorded)
    buffered: list[int] = []
    write = watch_requests._ChunkedPipe.write
    monkeypatch.setattr(
        watch_requests._ChunkedPipe, "write", lambda pipe, data: buffered.append(write(pipe, data)) or buffered[-1]
    )  # type: ignore[func-returns-value]
    store = server.plane.store
    start = store.revision
    peers = [await stalled(server, start) for _ in range(STALLED)]
    async with aiohttp.ClientSession() as session:
        url = f"{server.url}{PATH}?watch=1&resourceVersion="
        async with watching(session, f"{url}{start}") as fast:
            for n in range(EVENTS):
                await store.put(Key(THINGS, "a/", f"n{n}"), stored_thing("a", f"n{n}", "red", "x" * EVENT), expected=0)
                if n % 20 == 0:
                    await fast.until_revision(store.revision)
            await fast.until_revision(store.revision)
        history = await history_of(store, THINGS)
        judge(Watched(start, fast.events, upto=store.revision), history)
        assert max(buffered) <= watch.HIGH_WATER + watch.CHUNK_BYTES  # of each connection; the rest is shared
        await eventually_async(lambda: len(ended) > STALLED)  # the fast watch has ended, too
        async with hang_guard():
            heard = await asyncio.gather(*map(until_cut_off, peers))
        for peer in peers:
            peer.close()
        assert caplog.records == []  # it is nothing that the log should be filled with
        for each in heard[:5]:
            got = [seen(line) for line in whole_events(each)]
            assert len(got) < EVENTS
            after = got[-1].revision if got else start
            async with watching(session, f"{url}{after}") as resumed:
                await resumed.until_revision(store.revision)
            judge(Watched(start, got + resumed.events, upto=store.revision), history)


class Sink:
    """A client that takes some, and then nothing until it is reply to."""

    def __init__(self, room: int) -> None:
        self.room, self.data, self.open = room, b"", asyncio.Event()

    def framed(self, events: Sequence[bytes]) -> Sequence[bytes]:
        return events

    def write(self, pieces: Sequence[bytes]) -> int:
        self.data += b"".join(pieces)
        return max(len(self.data) - self.room, 0)

    async def drain(self) -> None:
        if len(self.data) > self.room:
            await self.open.wait()

    def take_all(self) -> None:
        self.room = 1 << 30
        self.open.set()

    @property
    def events(self) -> list[Seen]:
        return [seen(line) for line in self.data.splitlines()]

    async def until(self, revision: int) -> list[Seen]:
        await eventually_async(lambda: self.data and self.events[-1].revision >= revision)
        return self.events


async def write(server: Server, count: int, *, seed: int = 1) -> None:
    writer = Writer(server.plane.store, seed)
    for _ in range(count):
        await writer.write()


def stream_to(server: Server, sink: Sink) -> watch.Stream:
    metrics = server.app.watches.metrics
    representation = watch.Representation(resource_of(server))
    stream = watch.Stream(server.plane.reader, everything(server), representation, sink, metrics)
    stream.after = server.plane.store.revision
    return stream


async def begun(stream: watch.Stream) -> asyncio.Task[None]:
    running = asyncio.create_task(stream.run(ListOptions(stream.selection, str(stream.after)), 60))
    await loop_turns()
    return running


async def run(server: Server, sink: Sink) -> asyncio.Task[None]:
    return await begun(stream_to(server, sink))


async def test_a_client_that_is_behind_costs_no_memory_and_gets_everything(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However far behind: what is not sent is read from the log when its turn comes."""
    monkeypatch.setattr(cache, "MAX_RECENT", 10)
    monkeypatch.setattr(watch, "HIGH_WATER", 0)
    store = server.plane.store
    start = store.revision
    sink = Sink(0)
    running = await run(server, sink)
    await write(server, 60)
    collection = await server.plane.reader.collection(resource_of(server))
    assert len(collection.recent) == 10
    assert len(sink.events) == 1  # it was one too many
    sink.take_all()
    judge(Watched(start, await sink.until(store.revision), upto=store.revision), await history_of(store, THINGS))
    running.cancel()


async def test_a_client_so_far_behind_that_the_log_is_compacted_gets_an_error(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "MAX_RECENT", 10)
    monkeypatch.setattr(watch, "HIGH_WATER", 0)
    store = server.plane.store
    sink = Sink(0)
    running = await run(server, sink)
    await write(server, 30)
    await store.compact(store.revision)
    sink.take_all()
    async with hang_guard():
        await running
    last = json.loads(sink.data.splitlines()[-1])
    assert (last["type"], last["object"]["code"], last["object"]["reason"]) == ("ERROR", 410, "Expired")


async def test_a_client_that_pauses_for_a_moment_gets_everything(server: Server) -> None:
    store = server.plane.store
    start = store.revision
    sink = Sink(0)
    running = await run(server, sink)
    await write(server, 300)
    sink.take_all()
    judge(Watched(start, await sink.until(store.revision), upto=store.revision), await history_of(store, THINGS))
    running.cancel()


async def test_when_the_definition_changes_a_client_that_is_behind_gets_the_rest_and_then_the_end(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "HIGH_WATER", 0)
    store = server.plane.store
    start = store.revision
    sink = Sink(0)
    running = await run(server, sink)
    await write(server, 20)
    end = server.plane.cache.revision
    server.plane.cache.end_watches(THINGS)
    await write(server, 20, seed=2)  # it is of another schema
    sink.take_all()
    async with hang_guard():
        await running
    assert sink.events[-1].revision == end
    judge(Watched(start, sink.events, upto=end), await history_of(store, THINGS))


async def test_a_client_that_stalls_is_disconnected(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "HIGH_WATER", 0)
    monkeypatch.setattr(watch, "STALLED_AFTER", 0.05)
    running = await run(server, Sink(0))
    await write(server, 1)
    with pytest.raises(ConnectionError, match="does not read"):
        async with hang_guard():
            await running
    assert terminated(server) == [1]


def terminated(server: Server) -> list[object]:
    """The numbers of watches that ended because their clients do not read."""
    families = server.app.watches.metrics.families()
    (found,) = [one for one in families if one.name == "apiserver_terminated_watchers_total"]
    return [number for _, number in found.numbers]


async def test_a_client_that_stalls_does_not_hold_up_the_end(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "HIGH_WATER", 0)
    monkeypatch.setattr(watch, "STALLED_AFTER", 3600.0)
    stream = stream_to(server, Sink(0))
    running = await begun(stream)
    await write(server, 1)
    await loop_turns()
    stream.stop()
    with pytest.raises(ConnectionError, match="does not read"):
        async with hang_guard():
            await running
    assert terminated(server) == []
