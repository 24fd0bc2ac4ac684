"""Calls over a channel to a scripted server: it answers with frames, and shows what it was sent."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from struct import pack

import pytest

from tests.timing import HANGS_AFTER, eventually_async, hang_guard, loop_turns

pytest.importorskip("hpack", reason="package: hpack")

import hpack

from noxu_storage import grpc_channel, grpc_connection, http2
from noxu_storage.grpc_channel import Channel
from noxu_storage.grpc_status import Lost, Refused
from noxu_storage.http2 import frame

Answer = Callable[["Peer", int, bytes], Awaitable[None]]
PATH = "/S/M"


def fields(*pairs: tuple[str, str]) -> bytes:
    encoder = hpack.Encoder()
    encoder.header_table_size = 0
    return bytes(encoder.encode(list(pairs)))


HEAD = fields((":status", "200"), ("content-type", "application/grpc"))
TRAILERS = fields(("grpc-status", "0"), ("grpc-message", ""))


def message(data: bytes) -> bytes:
    return b"\0" + len(data).to_bytes(4, "big") + data


class Peer:
    """One connection of the server. `answer` is called with each request that is complete: its stream and its data."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answer: Answer) -> None:
        self._reader, self._writer, self._answer = reader, writer, answer
        self.frames: list[tuple[int, int, int, bytes]] = []
        self.requests: dict[int, bytes] = {}

    async def run(self, settings: bytes) -> None:
        await self._reader.readexactly(24)
        self.send(frame(http2.SETTINGS, 0, 0, settings))
        while True:
            head = await self._reader.readexactly(9)
            payload = await self._reader.readexactly(int.from_bytes(head[:3], "big"))
            kind, flags, stream = head[3], head[4], int.from_bytes(head[5:], "big")
            self.frames.append((kind, flags, stream, payload))
            if kind == http2.DATA:
                self.requests[stream] = self.requests.get(stream, b"") + payload
                if flags & http2.END_STREAM:
                    await self._answer(self, stream, self.requests[stream][5:])

    def send(self, *frames: bytes) -> None:
        self._writer.write(b"".join(frames))

    def succeed(self, stream: int, data: bytes) -> None:
        self.send(
            frame(http2.HEADERS, http2.END_HEADERS, stream, HEAD),
            frame(http2.DATA, 0, stream, message(data)),
            frame(http2.HEADERS, http2.END_HEADERS | http2.END_STREAM, stream, TRAILERS),
        )

    def fail(self, stream: int, *pairs: tuple[str, str]) -> None:
        self.send(frame(http2.HEADERS, http2.END_HEADERS | http2.END_STREAM, stream, fields(*pairs)))

    def close(self) -> None:
        self._writer.close()


@asynccontextmanager
async def serving(answer: Answer, settings: bytes = b"") -> AsyncIterator[tuple[Channel, list[Peer]]]:
    peers: list[Peer] = []
    tasks: list[asyncio.Task[None]] = []

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peers.append(Peer(reader, writer, answer))
        task = asyncio.current_task()
        assert task is not None
        tasks.append(task)
        try:
            await peers[-1].run(settings)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    channel = Channel("127.0.0.1", server.sockets[0].getsockname()[1])
    try:
        async with hang_guard():
            yield channel, peers
    finally:
        await channel.close()
        server.close()
        await asyncio.gather(*tasks, return_exceptions=True)


async def echo(peer: Peer, stream: int, data: bytes) -> None:
    peer.succeed(stream, data)


async def never(peer: Peer, stream: int, data: bytes) -> None:
    """No answer."""


async def test_calls_share_a_connection() -> None:
    async with serving(echo) as (channel, peers):
        answers = await asyncio.gather(*(channel.unary(PATH, b"%d" % number, 10) for number in range(100)))
        assert answers == [b"%d" % number for number in range(100)]
        assert len(peers) == 1


async def test_the_header_fields_of_a_call() -> None:
    async with serving(echo) as (channel, peers):
        await channel.unary(PATH, b"", 2.5, (("token", "secret"),))
        [block] = [payload for kind, _, _, payload in peers[0].frames if kind == http2.HEADERS]
        found = dict(hpack.Decoder().decode(block))
        assert (found[":path"], found["te"], found["grpc-timeout"], found["token"]) == (
            PATH,
            "trailers",
            "2500m",
            "secret",
        )


async def test_messages_larger_than_windows_and_frames_arrive() -> None:
    async def answered(peer: Peer, stream: int, data: bytes) -> None:
        content = message(data)
        peer.send(frame(http2.HEADERS, http2.END_HEADERS, stream, HEAD))
        for start in range(0, len(content), 1_000):
            peer.send(frame(http2.DATA, 0, stream, content[start : start + 1_000]))
        peer.send(frame(http2.HEADERS, http2.END_HEADERS | http2.END_STREAM, stream, TRAILERS))

    async with serving(answered, pack(">HI", http2.INITIAL_WINDOW_SIZE, 100)) as (channel, peers):
        call = asyncio.create_task(channel.unary(PATH, b"x" * 50_000, 10))
        await eventually_async(lambda: peers and peers[0].requests.get(1))
        assert len(peers[0].requests[1]) == 100
        peers[0].send(frame(http2.WINDOW_UPDATE, 0, 1, pack(">I", 100_000)))
        assert await call == b"x" * 50_000


STATUSES = {
    "an error that says that nothing was done": (("grpc-status", "3"), ("grpc-message", "a%20b"), Refused, "a b"),
    "an error after which that is not known": (("grpc-status", "14"), ("grpc-message", "gone"), Lost, "gone"),
    "an error without a text": (("grpc-status", "9"), ("x", "y"), Refused, "FAILED_PRECONDITION"),
    "an unknown code": (("grpc-status", "99"), ("x", "y"), Lost, "UNKNOWN"),
    "a code of thousands of digits": (("grpc-status", "9" * 5_000), ("x", "y"), Lost, "UNKNOWN"),
}


@pytest.mark.parametrize("kind", STATUSES)
async def test_how_calls_fail(kind: str) -> None:
    status, text, error, expected = STATUSES[kind]

    async def failed(peer: Peer, stream: int, data: bytes) -> None:
        peer.fail(stream, (":status", "200"), ("content-type", "application/grpc"), status, text)

    async with serving(failed) as (channel, _):
        with pytest.raises(error, match=f"^{expected}$"):
            await channel.unary(PATH, b"", 10)


@pytest.mark.parametrize(("status", "error"), [("401", Refused), ("502", Lost), ("200", Lost)])
async def test_answers_that_are_not_of_grpc(status: str, error: type[Exception]) -> None:
    async def failed(peer: Peer, stream: int, data: bytes) -> None:
        peer.fail(stream, (":status", status), ("content-type", "text/html"))

    async with serving(failed) as (channel, _):
        with pytest.raises(error):
            await channel.unary(PATH, b"", 10)


async def test_a_call_that_the_server_refuses_is_repeated_once() -> None:
    refused: list[int] = []

    async def first_refused(peer: Peer, stream: int, data: bytes) -> None:
        if len(refused) in (0, 2, 3):
            peer.send(frame(http2.RST_STREAM, 0, stream, pack(">I", http2.REFUSED_STREAM)))
        else:
            peer.succeed(stream, data)
        refused.append(stream)

    async with serving(first_refused) as (channel, _):
        assert await channel.unary(PATH, b"a", 10) == b"a"
        with pytest.raises(Lost) as lost:
            await channel.unary(PATH, b"b", 10)
        assert not lost.value.sent


async def test_a_call_that_the_server_resets_may_have_happened() -> None:
    async def reset(peer: Peer, stream: int, data: bytes) -> None:
        peer.send(frame(http2.RST_STREAM, 0, stream, pack(">I", http2.CANCEL)))

    async with serving(reset) as (channel, _):
        with pytest.raises(Lost) as lost:
            await channel.unary(PATH, b"", 10)
        assert lost.value.sent


async def test_calls_of_a_server_that_goes_away_end_and_others_connect_again() -> None:
    async with serving(never) as (channel, peers):
        old = asyncio.create_task(channel.unary(PATH, b"old", 10))
        await eventually_async(lambda: peers and peers[0].requests)
        peers[0].send(frame(http2.GOAWAY, 0, 0, pack(">II", 1, 0)))
        await eventually_async(lambda: channel._current is not None and channel._current.http2.going_away)
        new = asyncio.create_task(channel.unary(PATH, b"new", 10))
        await eventually_async(lambda: len(peers) == 2 and peers[1].requests)
        peers[0].succeed(1, b"1")
        peers[1].succeed(1, b"2")
        assert (await old, await new) == (b"1", b"2")


async def test_calls_wait_for_streams_that_the_server_permits() -> None:
    async with serving(never, pack(">HI", http2.MAX_CONCURRENT_STREAMS, 2)) as (channel, peers):
        calls = [asyncio.create_task(channel.unary(PATH, b"", 10)) for _ in range(6)]
        answered = 0

        def is_one_more_requested() -> bool:
            return bool(peers) and len(peers[0].requests) > answered

        while answered < 6:
            await eventually_async(is_one_more_requested)
            assert len(peers[0].requests) <= answered + 2
            peers[0].succeed(1 + 2 * answered, b"a")
            answered += 1
        assert await asyncio.gather(*calls) == [b"a"] * 6


@pytest.mark.parametrize("way", ["deadline", "cancellation", "cancellation in its turn"])
async def test_a_call_that_ends_while_it_waits_does_not_take_the_turn_of_another_one(way: str) -> None:
    async with serving(never, pack(">HI", http2.MAX_CONCURRENT_STREAMS, 1)) as (channel, peers):
        first = asyncio.create_task(channel.unary(PATH, b"first", 10))
        await eventually_async(lambda: peers and peers[0].requests)
        ends = asyncio.create_task(channel.unary(PATH, b"ends", 0.05 if way == "deadline" else 10))
        third = asyncio.create_task(channel.unary(PATH, b"third", HANGS_AFTER))
        connection = channel._current
        assert connection is not None
        await eventually_async(lambda: len(connection.waiting) == 2)
        if way == "cancellation in its turn":
            turn = next(iter(connection.waiting))
            turn.add_done_callback(lambda _: ends.cancel())
        elif way == "cancellation":
            ends.cancel()
        if way != "cancellation in its turn":
            await asyncio.wait([ends])
        peers[0].succeed(1, b"1")
        await eventually_async(lambda: len(peers[0].requests) == 2)
        peers[0].succeed(3, b"3")
        assert (await first, await third) == (b"1", b"3")
        with pytest.raises((Lost, asyncio.CancelledError)):
            await ends


@pytest.mark.parametrize("way", ["deadline", "cancellation"])
async def test_a_call_that_ends_early_is_reset(way: str) -> None:
    async with serving(never) as (channel, peers):
        call = asyncio.create_task(channel.unary(PATH, b"", 0.1 if way == "deadline" else 10))
        await eventually_async(lambda: peers and peers[0].requests)
        if way == "cancellation":
            call.cancel()
        with pytest.raises((Lost, asyncio.CancelledError)):
            await call
        await eventually_async(lambda: peers[0].frames[-1] == (http2.RST_STREAM, 0, 1, pack(">I", http2.CANCEL)))


async def test_a_connection_that_breaks_loses_its_calls() -> None:
    async def closed(peer: Peer, stream: int, data: bytes) -> None:
        peer.close()

    async with serving(closed) as (channel, peers):
        with pytest.raises(Lost) as lost:
            await channel.unary(PATH, b"", 10)
        assert lost.value.sent
        with pytest.raises(Lost):
            await channel.unary(PATH, b"", 10)
        assert len(peers) == 2


async def test_what_is_left_is_not_written_to_a_transport_that_is_closed() -> None:
    """uvloop closes it when the peer resets the connection, before it says so; then it raises RuntimeError for a write."""

    class Closed(asyncio.Transport):
        def is_closing(self) -> bool:
            return True

        def write(self, data: object) -> None:
            raise RuntimeError("unable to perform operation; the handler is closed")

        def abort(self) -> None:
            pass

    connection = grpc_connection.Connection(lambda ended: None)
    connection.connection_made(Closed())  # which flushes the beginning of HTTP/2
    connection.resume_writing()
    await loop_turns()
    connection.lose("no answer")
    assert connection.http2.has_output()


async def test_a_server_that_does_not_answer_pings_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grpc_connection, "PING_AFTER", 0.05)
    monkeypatch.setattr(grpc_connection, "PING_WITHIN", 0.05)
    async with serving(never) as (channel, peers):
        with pytest.raises(Lost, match="the server does not answer"):
            await channel.unary(PATH, b"", 60)
        await eventually_async(lambda: any(kind == http2.PING for kind, *_ in peers[0].frames))


async def test_a_violation_cuts_the_connection() -> None:
    async def pushed(peer: Peer, stream: int, data: bytes) -> None:
        peer.send(frame(http2.PUSH_PROMISE, http2.END_HEADERS, stream, pack(">I", 2)))

    async with serving(pushed) as (channel, _):
        with pytest.raises(Lost, match="the server violates HTTP/2: pushing is not permitted"):
            await channel.unary(PATH, b"", 10)


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "the server does not speak HTTP/2"),
        (b"", "the server has closed the connection"),
    ],
)
async def test_a_server_that_is_not_one_of_grpc(answer: bytes, text: str) -> None:
    async def answered(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)
        writer.write_eof()
        with contextlib.suppress(ConnectionError):
            await reader.read()  # what is not read when a connection is closed resets it
        writer.close()

    server = await asyncio.start_server(answered, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    channel = Channel("127.0.0.1", port)
    async with hang_guard():
        with pytest.raises(Lost, match=f"^cannot connect to 127.0.0.1:{port}: {text}$"):
            await channel.unary(PATH, b"", 10)
    await channel.close()
    server.close()
    await server.wait_closed()


async def test_attempts_to_connect_have_pauses_in_which_calls_fail_at_once() -> None:
    server = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    channel = Channel("127.0.0.1", port)
    for _ in range(3):
        with pytest.raises(Lost, match=f"cannot connect to 127.0.0.1:{port}: ") as lost:
            await channel.unary(PATH, b"", 10)
        assert not lost.value.sent
    assert channel._delay == 2 * grpc_channel.FIRST_DELAY  # one attempt
    await channel.close()


async def test_a_stream_reads_what_has_arrived_and_then_the_reason_of_its_end() -> None:
    async with serving(never) as (channel, peers):
        stream = await channel.stream(PATH, 10)
        stream.write(b"request")
        await eventually_async(lambda: peers and peers[0].requests.get(1) == message(b"request"))
        peers[0].send(frame(http2.HEADERS, http2.END_HEADERS, 1, HEAD))
        whole = message(b"one") + message(b"two")
        for start in range(len(whole)):
            peers[0].send(frame(http2.DATA, 0, 1, whole[start : start + 1]))
        peers[0].fail(1, ("grpc-status", "7"), ("grpc-message", "no%2C"))
        assert [await stream.read(), await stream.read()] == [b"one", b"two"]
        for _ in range(2):
            with pytest.raises(Refused, match=r"^no,$"):
                await stream.read()
        with pytest.raises(Refused):
            stream.write(b"more")


def given_back(peer: Peer) -> int:
    """The bytes that a stream may receive beyond its first window."""
    updates = [payload for kind, _, number, payload in peer.frames if kind == http2.WINDOW_UPDATE and number]
    return sum(int.from_bytes(payload, "big") for payload in updates)


async def test_a_stream_that_is_not_read_holds_a_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http2, "WINDOW", 100_000)
    async with serving(never) as (channel, peers):
        stream = await channel.stream(PATH, 10)
        stream.write(b"request")
        await eventually_async(lambda: peers and peers[0].requests)
        peers[0].send(frame(http2.HEADERS, http2.END_HEADERS, 1, HEAD))
        for _ in range(9):
            peers[0].send(frame(http2.DATA, 0, 1, message(bytes(10_000))))
        await eventually_async(lambda: len(stream._arrived) == 9)
        assert given_back(peers[0]) == 0
        for _ in range(9):
            await stream.read()
        await eventually_async(lambda: given_back(peers[0]) >= 50_000)


@pytest.mark.parametrize("reads", ["meanwhile", "later"])
async def test_a_message_larger_than_the_window_arrives(reads: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http2, "WINDOW", 20_000)
    async with serving(never) as (channel, peers):
        stream = await channel.stream(PATH, 10)
        stream.write(b"request")
        await eventually_async(lambda: peers and peers[0].requests)
        [peer] = peers
        content = message(b"small") + message(bytes(50_000)) + message(b"last")
        peer.send(frame(http2.HEADERS, http2.END_HEADERS, 1, HEAD))

        async def read() -> list[bytes]:
            if reads == "later":
                await eventually_async(lambda: stream.messages.incomplete >= 19_000)
            return [await stream.read() for _ in range(3)]

        reading = asyncio.create_task(read())
        for start in range(0, len(content), 5_000):
            part = content[start : start + 5_000]
            await eventually_async(lambda: start + len(part) <= 20_000 + given_back(peer))  # noqa: B023 - called here
            peer.send(frame(http2.DATA, 0, 1, part))
        assert await reading == [b"small", bytes(50_000), b"last"]
        assert given_back(peer) <= len(content)


async def test_a_message_that_is_not_grpc_loses_the_call() -> None:
    async def compressed(peer: Peer, stream: int, data: bytes) -> None:
        peer.send(frame(http2.HEADERS, http2.END_HEADERS, stream, HEAD), frame(http2.DATA, 0, stream, b"\1\0\0\0\1a"))

    async with serving(compressed) as (channel, _):
        with pytest.raises(Lost, match="compressed"):
            await channel.unary(PATH, b"", 10)
