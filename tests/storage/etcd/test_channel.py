"""Calls over a channel: to a server of grpcio, and to a scripted one that answers with frames and shows what it was sent."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from struct import pack
from typing import Any

import pytest
import uvloop

from noxu.security.certificates import new_authority
from tests.etcd_server import free_ports
from tests.timing import HANGS_AFTER, eventually_async, hang_guard

pytest.importorskip("noxu_storage.etcd.channel", reason="package: grpc")

import grpc

from noxu_storage.etcd import channel as etcd_channel
from noxu_storage.etcd.channel import Channel, TlsFiles, credentials
from noxu_storage.etcd.errors import CallLost, CallRefused

PATH = "/S/M"

# Of HTTP/2 (RFC 9113).
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY = 0, 1, 3, 4, 6, 7
END_STREAM, ACK, END_HEADERS = 0x01, 0x01, 0x04
CANCEL = 0x8
MAX_CONCURRENT_STREAMS = 3

Answer = Callable[["Peer", int, bytes], Awaitable[None]]


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload


def fields(*pairs: tuple[str, str]) -> bytes:
    """Header fields that are not compressed."""
    return b"".join(
        b"\0" + bytes((len(name),)) + name.encode() + bytes((len(value),)) + value.encode() for name, value in pairs
    )


HEAD = fields((":status", "200"), ("content-type", "application/grpc"))
TRAILERS = fields(("grpc-status", "0"))


def message(data: bytes) -> bytes:
    return b"\0" + len(data).to_bytes(4, "big") + data


class Peer:
    """One connection of the server. `answer` is called with each request that is complete: its stream and its data."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answer: Answer) -> None:
        self._reader, self._writer, self._answer = reader, writer, answer
        self.frames: list[tuple[int, int, int, bytes]] = []
        self.requests: dict[int, bytes] = {}
        self.answers_pings = True

    async def run(self, settings: bytes) -> None:
        await self._reader.readexactly(24)
        self.send(frame(SETTINGS, 0, 0, settings))
        while True:
            head = await self._reader.readexactly(9)
            payload = await self._reader.readexactly(int.from_bytes(head[:3], "big"))
            kind, flags, stream = head[3], head[4], int.from_bytes(head[5:], "big")
            self.frames.append((kind, flags, stream, payload))
            if kind == PING and not flags & ACK and self.answers_pings:
                self.send(frame(PING, ACK, 0, payload))
            elif kind == SETTINGS and not flags & ACK:
                self.send(frame(SETTINGS, ACK, 0))
            elif kind == DATA:
                self.requests[stream] = self.requests.get(stream, b"") + payload
                if flags & END_STREAM:
                    await self._answer(self, stream, self.requests[stream][5:])

    def send(self, *frames: bytes) -> None:
        self._writer.write(b"".join(frames))

    def succeed(self, stream: int, data: bytes) -> None:
        self.send(
            frame(HEADERS, END_HEADERS, stream, HEAD),
            frame(DATA, 0, stream, message(data)),
            frame(HEADERS, END_HEADERS | END_STREAM, stream, TRAILERS),
        )

    def fail(self, stream: int, *pairs: tuple[str, str]) -> None:
        self.send(frame(HEADERS, END_HEADERS | END_STREAM, stream, fields(*pairs)))

    def was_reset(self, stream: int) -> bool:
        return (RST_STREAM, 0, stream, pack(">I", CANCEL)) in self.frames

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


class Echo(grpc.GenericRpcHandler):
    """A server of grpcio: calls are answered with what they send, streams with what `stream` makes."""

    def __init__(self, stream: Any = None) -> None:
        self.stream = stream
        self.calls: list[Any] = []  # their contexts

    def service(self, details: Any) -> Any:
        if self.stream is not None:
            return grpc.stream_stream_rpc_method_handler(self.stream)
        return grpc.unary_unary_rpc_method_handler(self._answer)

    async def _answer(self, request: bytes, context: Any) -> bytes:
        self.calls.append((dict(context.invocation_metadata()), context.time_remaining()))
        return request


@asynccontextmanager
async def echoing(handler: Echo, host: str = "127.0.0.1", port: int = 0) -> AsyncIterator[Channel]:
    server = grpc.aio.server(options=[("grpc.max_receive_message_length", -1)])
    server.add_generic_rpc_handlers((handler,))
    port = server.add_insecure_port(f"[{host}]:{port}" if ":" in host else f"{host}:{port}")
    await server.start()
    channel = Channel(host, port)
    try:
        async with hang_guard():
            yield channel
    finally:
        await channel.close()
        await server.stop(0)


# Calls.


async def test_calls_share_a_connection() -> None:
    async with serving(echo) as (channel, peers):
        answers = await asyncio.gather(*(channel.unary(PATH, b"%d" % number, 10) for number in range(100)))
        assert answers == [b"%d" % number for number in range(100)]
        assert len(peers) == 1


async def test_a_call_has_its_deadline_and_its_metadata() -> None:
    handler = Echo()
    async with echoing(handler) as channel:
        await channel.unary(PATH, b"", 2.5, (("token", "secret"),))
    [(metadata, remaining)] = handler.calls
    assert metadata["token"] == "secret"
    assert metadata["user-agent"].startswith("noxu ")
    assert 0 < remaining <= 2.6


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
async def test_messages_of_any_size_arrive(host: str) -> None:
    """Among them those beyond the limit of grpcio."""
    async with echoing(Echo(), host) as channel:
        for size in (0, 1, 100_000, 6_000_000):
            assert await channel.unary(PATH, b"x" * size, 10) == b"x" * size


STATUSES = {
    "an error that says that nothing was done": (("grpc-status", "3"), ("grpc-message", "a%20b"), CallRefused, "a b"),
    "an error after which that is not known": (("grpc-status", "14"), ("grpc-message", "gone"), CallLost, "gone"),
    "an error without a text": (("grpc-status", "9"), ("x", "y"), CallRefused, "FAILED_PRECONDITION"),
    "an unknown code": (("grpc-status", "99"), ("x", "y"), CallLost, "UNKNOWN"),
}


@pytest.mark.parametrize("kind", STATUSES)
async def test_how_calls_fail(kind: str) -> None:
    status, text, error, expected = STATUSES[kind]

    async def failed(peer: Peer, stream: int, data: bytes) -> None:
        peer.fail(stream, (":status", "200"), ("content-type", "application/grpc"), status, text)

    async with serving(failed) as (channel, _):
        with pytest.raises(error, match=f"^{expected}$") as raised:
            await channel.unary(PATH, b"", 10)
        assert getattr(raised.value, "sent", True)


@pytest.mark.parametrize(("status", "error"), [("401", CallRefused), ("502", CallLost), ("200", CallLost)])
async def test_answers_that_are_not_of_grpc(status: str, error: type[Exception]) -> None:
    async def failed(peer: Peer, stream: int, data: bytes) -> None:
        peer.fail(stream, (":status", status), ("content-type", "text/html"))

    async with serving(failed) as (channel, _):
        with pytest.raises(error):
            await channel.unary(PATH, b"", 10)


async def test_calls_wait_for_streams_that_the_server_permits() -> None:
    async with serving(never, pack(">HI", MAX_CONCURRENT_STREAMS, 2)) as (channel, peers):
        calls = [asyncio.create_task(channel.unary(PATH, b"", 10)) for _ in range(6)]
        for answered in range(6):
            await eventually_async(lambda: peers and len(peers[0].requests) > answered)  # noqa: B023 - called here
            assert len(peers[0].requests) <= answered + 2
            peers[0].succeed(1 + 2 * answered, b"a")
        assert await asyncio.gather(*calls) == [b"a"] * 6


# What was sent.


async def test_a_call_that_the_server_has_not_processed_is_repeated() -> None:
    requests: list[bytes] = []

    async def goes_away(peer: Peer, stream: int, data: bytes) -> None:
        requests.append(data)
        if len(requests) == 1:
            peer.send(frame(GOAWAY, 0, 0, pack(">II", 0, 0)))
        else:
            peer.succeed(stream, data)

    async with serving(goes_away) as (channel, peers):
        assert await channel.unary(PATH, b"a", 10) == b"a"
    assert (requests, len(peers)) == ([b"a", b"a"], 2)


async def resets(peer: Peer, stream: int, data: bytes) -> None:
    peer.send(frame(RST_STREAM, 0, stream, pack(">I", CANCEL)))


async def closes(peer: Peer, stream: int, data: bytes) -> None:
    peer.close()


async def violates(peer: Peer, stream: int, data: bytes) -> None:
    peer.send(frame(SETTINGS, 0, stream))


async def compresses(peer: Peer, stream: int, data: bytes) -> None:
    peer.send(frame(HEADERS, END_HEADERS, stream, HEAD), frame(DATA, END_STREAM, stream, b"\1\0\0\0\1a"))


@pytest.mark.parametrize("answer", [resets, closes, violates, compresses, never])
async def test_a_call_that_is_cut_off_may_have_happened(answer: Answer) -> None:
    async with serving(answer) as (channel, peers):
        for _ in range(2):
            with pytest.raises(CallLost) as lost:
                await channel.unary(PATH, b"", 0.1 if answer is never else 10)
            assert lost.value.sent
        assert any(peer.requests for peer in peers)


async def test_a_call_without_a_connection_was_not_sent() -> None:
    """The server accepts connections, and says nothing."""
    accepted: list[asyncio.StreamWriter] = []
    server = await asyncio.start_server(lambda _, writer: accepted.append(writer), "127.0.0.1", 0)
    channel = Channel("127.0.0.1", server.sockets[0].getsockname()[1])
    async with hang_guard():
        with pytest.raises(CallLost, match=r"^Deadline Exceeded$") as lost:
            await channel.unary(PATH, b"", 0.1)
    assert not lost.value.sent
    await channel.close()
    for writer in accepted:
        writer.close()
    server.close()
    await server.wait_closed()


async def test_calls_of_a_server_that_goes_away_end_and_others_connect_again() -> None:
    async with serving(never) as (channel, peers):
        old = asyncio.create_task(channel.unary(PATH, b"old", 10))
        await eventually_async(lambda: peers and peers[0].requests)
        peers[0].send(frame(GOAWAY, 0, 0, pack(">II", 1, 0)))
        new = asyncio.create_task(channel.unary(PATH, b"new", 10))
        await eventually_async(lambda: len(peers) == 2 and peers[1].requests)
        peers[0].succeed(1, b"1")
        peers[1].succeed(1, b"2")
        assert (await old, await new) == (b"1", b"2")


async def test_a_server_that_does_not_answer_pings_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(etcd_channel, "PING_AFTER", 0.05)
    monkeypatch.setattr(etcd_channel, "PING_WITHIN", 0.05)
    async with serving(never) as (channel, peers):
        call = asyncio.create_task(channel.unary(PATH, b"", 60))
        await eventually_async(lambda: peers)
        peers[0].answers_pings = False
        with pytest.raises(CallLost) as lost:
            await call
        assert lost.value.sent
        assert any(kind == PING for kind, *_ in peers[0].frames)


# Connecting.


HTTP = (b"HTTP/1.1 400 Bad Request\r\n\r\n", "the server does not speak HTTP/2")
NOTHING = (b"", "the server has closed the connection")


@pytest.mark.parametrize(("answer", "text"), [HTTP, NOTHING])
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
        with pytest.raises(CallLost, match=f"^cannot connect to 127.0.0.1:{port}: {text}$") as lost:
            await channel.unary(PATH, b"", 10)
    assert not lost.value.sent
    await channel.close()
    server.close()
    await server.wait_closed()


async def test_a_name_that_does_not_exist() -> None:
    channel = Channel("etcd.invalid", 2379)
    with pytest.raises(CallLost, match=r"^cannot connect to etcd\.invalid:2379: .") as lost:
        await channel.unary(PATH, b"", 10)
    assert not lost.value.sent
    await channel.close()


async def test_attempts_to_connect_have_pauses_in_which_calls_fail_at_once() -> None:
    accepted: list[object] = []

    def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        accepted.append(writer)
        writer.close()

    server = await asyncio.start_server(refuse, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    channel = Channel("127.0.0.1", port)
    for _ in range(3):
        with pytest.raises(CallLost, match=f"cannot connect to 127.0.0.1:{port}: ") as lost:
            await channel.unary(PATH, b"", 10)
        assert not lost.value.sent
    assert len(accepted) == 1
    await channel.close()
    server.close()
    await server.wait_closed()


async def test_a_server_that_comes_back_is_found_within_a_second() -> None:
    [port] = free_ports(1)
    channel = Channel("127.0.0.1", port)

    async def is_answered() -> bool:
        try:
            return await channel.unary(PATH, b"a", 10) == b"a"
        except CallLost:
            return False

    assert not await is_answered()
    async with echoing(Echo(), port=port):
        await eventually_async(is_answered)
    await channel.close()


async def test_no_proxy_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    async with echoing(Echo()) as channel:
        assert await channel.unary(PATH, b"a", 10) == b"a"


# Cancelling and closing.


@pytest.mark.parametrize("way", ["deadline", "cancellation", "closing"])
async def test_a_call_that_ends_early_is_reset(way: str) -> None:
    async with serving(never) as (channel, peers):
        call = asyncio.create_task(channel.unary(PATH, b"", 0.1 if way == "deadline" else 10))
        await eventually_async(lambda: peers and peers[0].requests)
        if way == "cancellation":
            call.cancel()
        elif way == "closing":
            await channel.close()
        with pytest.raises(asyncio.CancelledError if way == "cancellation" else CallLost):
            await call
        await eventually_async(lambda: peers[0].was_reset(1) or way == "closing")
        if way == "closing":
            with pytest.raises(CallLost, match="the connection was closed") as lost:
                await channel.unary(PATH, b"", 10)
            assert not lost.value.sent


async def test_a_channel_that_is_retired_ends_with_its_last_call() -> None:
    async with serving(never) as (channel, peers):
        call = asyncio.create_task(channel.unary(PATH, b"", 10))
        await eventually_async(lambda: peers and peers[0].requests)
        channel.retire()
        with pytest.raises(CallLost, match="the connection was closed"):
            await channel.unary(PATH, b"", 10)
        assert not channel.is_gone()
        peers[0].succeed(1, b"a")
        assert await call == b"a"
        await eventually_async(channel.is_gone)


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_loops_in_several_threads_and_one_after_the_other(
    loop: Callable[[], asyncio.AbstractEventLoop], caplog: pytest.LogCaptureFixture
) -> None:
    """One thread of grpcio serves them all. It must not tell a closed loop of the end of a call."""

    async def call() -> None:
        async with serving(echo) as (channel, _):
            for _ in range(20):
                await asyncio.gather(*(channel.unary(PATH, b"a", 10) for _ in range(5)))
        async with serving(never) as (channel, peers):
            calls = [asyncio.create_task(channel.unary(PATH, b"a", 10)) for _ in range(10)]
            await eventually_async(lambda: peers and len(peers[0].requests) == 10)
            calls[0].cancel()
        await asyncio.gather(*calls, return_exceptions=True)

    def run() -> None:
        for _ in range(3):
            with asyncio.Runner(loop_factory=loop) as runner:
                runner.run(call())

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANGS_AFTER)
    assert not any(thread.is_alive() for thread in threads)
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


# Streams.


async def test_a_stream_reads_what_has_arrived_and_then_the_reason_of_its_end() -> None:
    async with serving(never) as (channel, peers):
        stream = await channel.stream(PATH, 10)
        stream.write(b"request")
        await eventually_async(lambda: peers and peers[0].requests.get(1) == message(b"request"))
        peers[0].send(frame(HEADERS, END_HEADERS, 1, HEAD))
        whole = message(b"one") + message(b"two")
        for start in range(len(whole)):
            peers[0].send(frame(DATA, 0, 1, whole[start : start + 1]))
        assert [await stream.read(), await stream.read()] == [b"one", b"two"]
        peers[0].fail(1, ("grpc-status", "7"), ("grpc-message", "no%2C"))
        for _ in range(2):
            with pytest.raises(CallRefused, match=r"^no,$"):
                await stream.read()
        stream.write(b"more")
        stream.cancel()


async def test_a_stream_that_the_server_ends_is_lost() -> None:
    async def ends(requests: Any, context: Any) -> AsyncIterator[bytes]:
        async for request in requests:
            yield request
            return

    async with echoing(Echo(ends)) as channel:
        stream = await channel.stream(PATH, 10)
        stream.write(b"a")
        assert await stream.read() == b"a"
        with pytest.raises(CallLost, match="the stream has ended"):
            await stream.read()
        stream.cancel()


@pytest.mark.parametrize("what", ["the stream", "the channel"])
async def test_reading_ends_when_something_else_is_closed(what: str) -> None:
    """grpcio raises CancelledError, though the task that reads is not cancelled."""
    async with serving(never) as (channel, peers):
        stream = await channel.stream(PATH, 10)
        stream.write(b"a")
        reading = asyncio.create_task(stream.read())
        await eventually_async(lambda: peers and peers[0].requests)
        if what == "the channel":
            await channel.close()
        else:
            stream.cancel()
        with pytest.raises(CallLost, match="the connection was closed"):
            await reading
        stream.cancel()


async def test_a_stream_that_is_not_read_holds_a_window() -> None:
    sent = 0

    async def floods(requests: Any, context: Any) -> AsyncIterator[bytes]:
        nonlocal sent
        async for _ in requests:
            for _ in range(1_000):
                yield bytes(100_000)
                sent += 1

    async with echoing(Echo(floods)) as channel:
        stream = await channel.stream(PATH, 10)
        stream.write(b"a")
        await stream.read()
        before = -1
        while before != sent:
            before = sent
            await asyncio.sleep(0.2)
        assert sent < 160  # 16 MB
        for _ in range(999):
            assert len(await stream.read()) == 100_000
        stream.cancel()


# TLS.


@pytest.fixture
def files(tmp_path: Any) -> dict[str, Any]:
    authority, other = new_authority(), new_authority()
    server, wrong = authority.issue_server(["127.0.0.1"]), authority.issue_server(["example.com"])
    client, foreign = authority.issue_client("noxu"), other.issue_client("noxu")
    contents = {
        "ca": authority.certificate, "other ca": other.certificate, "nothing": b"", "server.crt": server.certificate,
        "server.key": server.key, "wrong.crt": wrong.certificate, "wrong.key": wrong.key, "client.crt": client.certificate,
        "client.key": client.key, "foreign.crt": foreign.certificate, "foreign.key": foreign.key,
    }  # fmt: skip
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    return {name: tmp_path / name for name in contents}


CLIENT = ("client.crt", "client.key")
TLS = {
    "as it should be": ("server", ("ca", *CLIENT), ""),
    "another CA": ("server", ("other ca", *CLIENT), "certificate verify failed: unable to get local issuer certificate"),
    "the system's CAs": ("server", (None, *CLIENT), "certificate verify failed: unable to get local issuer certificate"),
    "another name": ("wrong", ("ca", *CLIENT), "certificate verify failed: Hostname mismatch"),
    "no certificate of the client": ("server", ("ca", None, None), "the server has closed the connection after the handshake of TLS"),
    "one of another CA": ("server", ("ca", "foreign.crt", "foreign.key"), "the server has closed the connection after the handshake of TLS"),
    "no TLS": ("", ("ca", *CLIENT), "the server does not speak TLS"),
}  # fmt: skip


@asynccontextmanager
async def listening(name: str, files: dict[str, Any]) -> AsyncIterator[int]:
    """The port of a server with a certificate, which asks for one; without a name it does not speak TLS."""
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((Echo(),))
    if name:
        pair = (files[f"{name}.key"].read_bytes(), files[f"{name}.crt"].read_bytes())
        asks = grpc.ssl_server_credentials([pair], files["ca"].read_bytes(), require_client_auth=True)
        port = server.add_secure_port("127.0.0.1:0", asks)
    else:
        port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    yield port
    await server.stop(0)


@pytest.mark.parametrize("kind", TLS)
async def test_tls(kind: str, files: dict[str, Any], capfd: pytest.CaptureFixture[str]) -> None:
    name, (ca, certificate, key), text = TLS[kind]
    tls = TlsFiles(*(None if each is None else files[each] for each in (ca, certificate, key)))
    async with hang_guard(), listening(name, files) as port:
        channel = Channel("127.0.0.1", port, credentials(tls))
        if not text:
            assert await channel.unary(PATH, b"a", 10) == b"a"
        else:
            with pytest.raises(CallLost, match=f"^cannot connect to 127.0.0.1:{port}: {text}$") as lost:
                await channel.unary(PATH, b"", 10)
            assert not lost.value.sent
        await channel.close()
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (("nothing", None, None), "NO_CERTIFICATE"),
        (("ca", "nothing", "client.key"), "PEM"),
        (("ca", "foreign.crt", "client.key"), "KEY_VALUES_MISMATCH"),
    ],
)
def test_files_that_are_not_what_they_have_to_be(
    names: tuple[str | None, ...], text: str, files: dict[str, Any]
) -> None:
    with pytest.raises(OSError, match=text):
        credentials(TlsFiles(*(None if name is None else files[name] for name in names)))
