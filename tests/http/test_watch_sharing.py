"""What watches share: one write for the same view of a batch, and references instead of copies for what is unsent."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Any, cast

import pytest

from noxu.api import selectors
from noxu.config import Config
from noxu.http import outgoing, watch
from noxu.http.exchange import ListOptions
from noxu.http.watch_requests import _ChunkedPipe
from noxu.http.websocket import WebSocketPipe
from noxu.manifests.documents import Document
from noxu.process.server import Server
from noxu.registry import cache
from noxu.registry.cache import Change, Delivery
from noxu.registry.reader import Selection
from noxu_storage.types import Key
from tests.http.streams import DEFINITION, THINGS, resource_of, stored_thing
from tests.http.wire import connected
from tests.timing import eventually_async, loop_turns


class Sink:
    """A client of a framing of its own. It keeps what is written; with room for nothing, it is behind after each write."""

    def __init__(self, room: int = 1 << 30) -> None:
        self.room, self.writes, self.open = room, list[Sequence[bytes]](), asyncio.Event()

    def framed(self, events: Sequence[bytes]) -> Sequence[bytes]:
        return (b"<", *events, b">")

    def write(self, pieces: Sequence[bytes]) -> int:
        self.writes.append(pieces)
        return max(sum(len(piece) for write in self.writes for piece in write) - self.room, 0)

    async def drain(self) -> None:
        if self.room == 0:
            await self.open.wait()

    @property
    def text(self) -> bytes:
        return b"".join(piece for write in self.writes for piece in write)


class OtherSink(Sink):
    def framed(self, events: Sequence[bytes]) -> Sequence[bytes]:
        return (b"[", *events, b"]")


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with Server(Config(port=0), [Document(DEFINITION, "streams")]) as running:
        yield running


@pytest.fixture
async def running() -> AsyncIterator[list[asyncio.Task[None]]]:
    tasks: list[asyncio.Task[None]] = []
    yield tasks
    for task in tasks:
        task.cancel()
    for task in tasks:
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def follow(
    server: Server, selection: Selection, sinks: Sequence[Sink], running: list[asyncio.Task[None]]
) -> None:
    """Streams to these sinks, which follow the fan-out from now on."""
    after = server.plane.store.revision
    for sink in sinks:
        stream = watch.Stream(server.plane.reader, selection, watch.Representation(selection.resource), sink)
        stream.after = after
        running.append(asyncio.create_task(stream.run(ListOptions(selection, str(after)), 3600.0)))
    await loop_turns()


async def put(server: Server, namespace: str, name: str, color: str, pad: int = 0) -> int:
    value = stored_thing(namespace, name, color, "x" * pad)
    return await server.plane.store.put(Key(THINGS, f"{namespace}/", name), value, expected=0)


VIEWS: dict[str, tuple[str | None, str, str]] = {
    "everything": (None, "", ""),
    "a namespace": ("a", "", ""),
    "a label": (None, "color=red", ""),
    "another label": (None, "color=blue", ""),
    "a label in a namespace": ("a", "color=red", ""),
    "a name": (None, "", "metadata.name=n1"),
    "a name and a label": (None, "color=red", "metadata.name=n1"),
}


def selection_of(server: Server, view: str) -> Selection:
    namespace, labels, fields = VIEWS[view]
    resource = resource_of(server)
    return Selection(
        resource, namespace,
        selectors.parse_labels(labels) if labels else None,
        selectors.parse_fields(fields) if fields else None,
    )  # fmt: skip


async def test_streams_with_the_same_view_write_the_very_same_bytes_and_others_their_own(
    server: Server, running: list[asyncio.Task[None]]
) -> None:
    names = [(n, namespace, color) for n in range(4) for namespace, color in (("a", "red"), ("b", "blue"))]
    sinks: dict[str, list[Sink]] = {view: [Sink(), Sink(), OtherSink()] for view in VIEWS}
    for view, opened in sinks.items():
        await follow(server, selection_of(server, view), opened, running)
    revisions = [await put(server, namespace, f"n{n}", color) for n, namespace, color in names]
    await eventually_async(lambda: str(revisions[-1]).encode() in sinks["everything"][0].text)
    await loop_turns()
    expected = {
        "everything": names,
        "a namespace": [name for name in names if name[1] == "a"],
        "a label": [name for name in names if name[2] == "red"],
        "another label": [name for name in names if name[2] == "blue"],
        "a label in a namespace": [name for name in names if name[1:] == ("a", "red")],
        "a name": [name for name in names if name[0] == 1],
        "a name and a label": [(1, "a", "red")],
    }
    for view, (one, same, other) in sinks.items():
        shown = [f'"resourceVersion":"{revision}"'.encode() in one.text for revision in revisions]
        assert shown == [name in expected[view] for name in names], view
        assert one.writes, view
        assert all(a[0] is b[0] for a, b in zip(one.writes, same.writes, strict=True)), view
        assert other.text == one.text.replace(b"<{", b"[{").replace(b"\n>", b"\n]"), view


async def test_what_is_unsent_to_clients_that_are_behind_is_kept_once(
    server: Server, running: list[asyncio.Task[None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of 30 clients has a portion unsent: CHUNK_BYTES and an event. Together they have no more than one of them has."""
    monkeypatch.setattr(watch, "HIGH_WATER", 0)
    sinks = [Sink(room=0) for _ in range(30)]
    for sink in sinks:
        sink.open.set()
    await follow(server, Selection(resource_of(server)), sinks, running)
    for sink in sinks:
        sink.open.clear()
    for n in range(60):
        await put(server, "a", f"n{n}", "red", pad=2_000)
    await loop_turns()
    assert {len(sink.writes) for sink in sinks} == {1}  # nothing is queued while a client does not read
    for sink in sinks:
        sink.open.set()  # it reads what it has, and nothing of the portion that follows
        sink.open.clear()
    await eventually_async(lambda: all(len(sink.writes) == 2 for sink in sinks))
    assert all(len(sink.text) > 60 * 2_000 for sink in sinks)
    kept = {id(piece): len(piece) for sink in sinks for write in sink.writes for piece in write}
    assert sum(kept.values()) <= watch.CHUNK_BYTES + 2 * 2_500  # and the event that was written first


async def test_threads_that_encode_an_event_at_the_same_time_keep_the_first_one(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    representation, encode, first = watch.Representation(resource_of(server)), watch.frame, list[bytes]()
    collection, before = await server.plane.reader.collection(representation.resource), server.plane.store.revision
    await put(server, "a", "n", "red")
    await eventually_async(lambda: collection.since(before))
    [change] = collection.since(before) or ()
    entry = change.entry
    assert entry is not None

    def meanwhile(kind: watch.EventType, body: bytes) -> bytes:
        monkeypatch.setattr(watch, "frame", encode)
        first.append(representation.event(kind, entry, change))
        return encode(kind, body)

    monkeypatch.setattr(watch, "frame", meanwhile)
    assert representation.event("ADDED", entry, change) is first[0]


async def test_what_streams_derive_from_a_batch_is_kept_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "MAX_SHARED_BYTES", 10)
    batch = Delivery([Change(Key(THINGS, "a/", "n"), 1, None, None)])
    batch.share("first", "1", 6)
    batch.share("second", "2", 5)
    batch.share("third", "3", 4)
    assert batch.shared == {"first": "1", "third": "3"}


class Transport:
    def __init__(self) -> None:
        self.pieces: list[bytes] = []

    def is_closing(self) -> bool:
        return False

    def write(self, data: bytes) -> None:
        self.pieces.append(data)

    def writelines(self, pieces: Sequence[bytes]) -> None:
        self.pieces += pieces

    def get_write_buffer_size(self) -> int:
        return sum(map(len, self.pieces))


EVENTS = [b'{"a":1}\n', b'{"b":"' + b"x" * 200 + b'"}\n']


@pytest.mark.parametrize(
    ("pipe", "expected"),
    [
        (_ChunkedPipe, b"d9\r\n" + EVENTS[0] + EVENTS[1] + b"\r\n"),
        (WebSocketPipe, b"\x81\x08" + EVENTS[0] + b"\x81\x7e\x00\xd1" + EVENTS[1]),
    ],
    ids=["one chunk", "two messages"],
)
async def test_a_pipe_writes_references_to_events(
    pipe: type[_ChunkedPipe | WebSocketPipe], expected: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outgoing, "_WRITELINES_PAUSES", True)
    made, _ = connected()
    made.transport = transport = cast("Any", Transport())
    end = pipe(made)
    assert end.write(end.framed(EVENTS)) == len(expected)
    assert b"".join(transport.pieces) == expected
    assert [piece for piece in transport.pieces if any(piece is event for event in EVENTS)] == EVENTS
    made.connection_lost(None)


WRITELINES_PAUSES: list[tuple[tuple[int, int, int], bool]] = [
    ((3, 11, 7), True),
    ((3, 12, 0), False),
    ((3, 12, 8), False),
    ((3, 12, 9), True),
    ((3, 13, 1), False),
    ((3, 13, 2), True),
    ((3, 14, 0), True),
]


@pytest.mark.parametrize(("version", "expected"), WRITELINES_PAUSES)
def test_whether_writelines_tells_that_a_client_does_not_read(version: tuple[int, int, int], expected: bool) -> None:
    assert outgoing.writelines_pauses(version) is expected


@pytest.mark.parametrize(
    ("pauses", "pieces", "written"),
    [
        (True, [b"a", b"b"], [b"a", b"b"]),
        (False, [b"a", b"b"], [b"ab"]),
        (True, [b"a"], [b"a"]),
        (False, [b"a"], [b"a"]),
    ],
)
async def test_pieces_are_joined_where_writelines_does_not_tell(
    pauses: bool, pieces: list[bytes], written: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outgoing, "_WRITELINES_PAUSES", pauses)
    made, _ = connected()
    made.transport = transport = cast("Any", Transport())
    assert made.write_pieces(pieces) == sum(map(len, written))
    assert transport.pieces == written
    made.connection_lost(None)
