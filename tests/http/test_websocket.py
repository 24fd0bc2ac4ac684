"""Watch over a WebSocket: who gets one, and what it says. No other route ever answers 101 (hazard S19)."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import json
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from conformance.client import Client
from noxu.http import websocket
from noxu.http.websocket import BrokenProtocol, Frames, WebSocket, WebSocketPipe
from noxu.testing.handle import Noxu
from tests.http.wire import connected
from tests.rows import rows
from tests.timing import HANGS_AFTER

pytestmark = pytest.mark.noxu(profile="envtest")  # no ConfigMaps but those of the tests
MAPS = "/api/v1/namespaces/default/configmaps"
WATCH = f"{MAPS}?watch=1&timeoutSeconds=1"
KEY = base64.b64encode(b"0123456789abcdef").decode()
ACCEPT = base64.b64encode(
    hashlib.sha1(KEY.encode() + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11", usedforsecurity=False).digest()
).decode()

Headers = dict[str, str]


class Peer:
    """One connection, byte by byte."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        assert parts.hostname
        assert parts.port
        self.origin = url
        self.host = parts.netloc
        self.socket = socket.create_connection((parts.hostname, parts.port), HANGS_AFTER)
        self.file = self.socket.makefile("rb")

    def ask(self, path: str, method: str = "GET", headers: Headers | None = None, body: bytes = b"") -> int:
        """The status of the answer. A header of "" is left out."""
        given = {
            "Host": self.host,
            "Connection": "keep-alive, Upgrade",
            "Upgrade": "WebSocket",
            "Sec-WebSocket-Key": KEY,
            "Sec-WebSocket-Version": "13",
            "Origin": self.origin,
            **({"Content-Length": str(len(body)), "Content-Type": "application/json"} if body else {}),
            **(headers or {}),
        }
        lines = [f"{name}: {value}" for name, value in given.items() if value]
        self.socket.sendall("\r\n".join([f"{method} {path} HTTP/1.1", *lines, "", ""]).encode() + body)
        status = int(self.file.readline().split()[1])
        self.headers = {}
        while line := self.file.readline().strip().decode():
            name, _, value = line.partition(": ")
            self.headers[name.lower()] = value
        return status

    def frame(self) -> tuple[int, bytes]:
        """The opcode and the payload of the next frame, which must be whole and unmasked."""
        first, size = self.file.read(2)
        assert first & 0x80
        if size == 126:
            size = int.from_bytes(self.file.read(2), "big")
        elif size == 127:
            size = int.from_bytes(self.file.read(8), "big")
        return first & 0x0F, self.file.read(size)

    def send(self, opcode: int, payload: bytes) -> None:
        """A masked frame, as clients must."""
        assert len(payload) < 65536
        size = bytes([0x80 | len(payload)]) if len(payload) < 126 else b"\xfe" + len(payload).to_bytes(2, "big")
        self.socket.sendall(bytes([0x80 | opcode]) + size + bytes(4) + payload)


@pytest.fixture
def peer(noxu: Noxu) -> Iterator[Peer]:
    peer = Peer(noxu.url)
    yield peer
    peer.file.close()
    peer.socket.close()


def config_map(name: str, text: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"text": text}}


@pytest.mark.parametrize("size", [1, 65_000, 70_000], ids=["short", "a 16-bit length", "a 64-bit length"])
def test_every_event_is_a_text_message(noxu: Noxu, peer: Peer, size: int) -> None:
    noxu.apply(config_map("a", "x" * size), config_map("b", "é"))
    assert peer.ask(f"{MAPS}?watch=1") == 101
    assert peer.headers["sec-websocket-accept"] == ACCEPT
    assert peer.headers["upgrade"] == "websocket"
    for name, text in (("a", "x" * size), ("b", "é")):
        opcode, data = peer.frame()
        assert opcode == 1
        assert data.endswith(b"}\n")
        event = json.loads(data)
        assert event["type"] == "ADDED"
        assert (event["object"]["metadata"]["name"], event["object"]["data"]["text"]) == (name, text)
    noxu.apply(config_map("a", "changed"))
    assert json.loads(peer.frame()[1])["type"] == "MODIFIED"


@pytest.mark.slow
def test_when_the_time_is_up_it_is_closed_in_good_order(peer: Peer) -> None:
    assert peer.ask(WATCH) == 101
    assert peer.frame() == (8, b"\x03\xe8")
    peer.send(8, b"\x03\xe8")
    assert peer.file.read() == b""


def test_pings_are_answered_and_messages_ignored(noxu: Noxu, peer: Peer) -> None:
    assert peer.ask(f"{MAPS}?watch=1") == 101
    peer.send(1, b"hello")
    peer.send(2, b"\x00")
    peer.send(9, b"are you there")
    assert peer.frame() == (10, b"are you there")
    noxu.apply(config_map("a", ""))
    assert json.loads(peer.frame()[1])["type"] == "ADDED"


@pytest.mark.parametrize(
    ("opcode", "payload", "code"),
    [(8, b"\x03\xe8", 1000), (1, b"x" * 5000, 1009), (3, b"", 1002)],
    ids=["closes", "talks too much", "breaks the protocol"],
)
def test_the_watch_ends_when_the_client(peer: Peer, opcode: int, payload: bytes, code: int) -> None:
    assert peer.ask(f"{MAPS}?watch=1") == 101
    peer.send(opcode, payload)
    closing, reason = peer.frame()
    assert closing == 8
    assert int.from_bytes(reason[:2], "big") == code
    with contextlib.suppress(ConnectionError):
        assert peer.file.read() == b""


@pytest.mark.parametrize("protocol", ["binary.k8s.io", "base64.binary.k8s.io", "anything"])
def test_one_subprotocol_is_echoed(peer: Peer, protocol: str) -> None:
    assert peer.ask(WATCH, headers={"Sec-WebSocket-Protocol": protocol}) == 101
    assert peer.headers["sec-websocket-protocol"] == protocol


REFUSED: dict[str, tuple[Headers, int, bytes]] = {
    "no key": ({"Sec-WebSocket-Key": ""}, 400, b"mismatch challenge/response"),
    "no base64 as the key": ({"Sec-WebSocket-Key": "!"}, 400, b"mismatch challenge/response"),
    "no version": ({"Sec-WebSocket-Version": ""}, 400, b"missing or bad WebSocket Version"),
    "an old version": ({"Sec-WebSocket-Version": "8"}, 400, b"missing or bad WebSocket Version"),
    "no origin": ({"Origin": ""}, 403, b""),
    "two subprotocols": ({"Sec-WebSocket-Protocol": "a, b"}, 400, b""),
}


@pytest.mark.parametrize("why", REFUSED)
def test_there_is_no_websocket_with(peer: Peer, why: str) -> None:
    headers, status, text = REFUSED[why]
    assert peer.ask(WATCH, headers=headers) == status
    assert peer.file.read() == text  # and the connection is closed
    assert peer.headers.get("sec-websocket-version") == ("13" if "version" in why else None)


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "null", "https://127.0.0.1.evil.example", "http://127.0.0.1:1", "http://localhost"],
)
def test_web_pages_of_others_get_none(peer: Peer, origin: str) -> None:
    assert peer.ask(WATCH, headers={"Origin": origin}) == 403


@pytest.mark.parametrize(
    "headers", [{"Connection": "keep-alive"}, {"Upgrade": ""}, {"Upgrade": "h2c"}], ids=["no upgrade", "no protocol", "another protocol"]
)  # fmt: skip
def test_what_is_no_request_for_a_websocket_is_an_ordinary_watch(peer: Peer, headers: Headers) -> None:
    assert peer.ask(WATCH, headers=headers) == 200
    assert peer.headers["transfer-encoding"] == "chunked"


BODY = json.dumps(config_map("new", "")).encode()
ROUTES = [
    ("GET", "/version", b"", 200),
    ("GET", "/readyz", b"", 200),
    ("GET", "/apis", b"", 200),
    ("GET", "/openapi/v2", b"", 200),
    ("GET", "/openapi/v3", b"", 200),
    ("GET", MAPS, b"", 200),
    ("GET", f"{MAPS}/old?watch=1", b"", 200),
    ("GET", f"{MAPS}?watch=1&resourceVersion=x", b"", 500),
    ("GET", f"{MAPS}?watch=1&labelSelector=!!", b"", 400),
    ("GET", "/api/v1/namespaces/default/pods/p/exec", b"", 404),
    ("GET", "/api/v1/namespaces/default/pods/p/portforward?watch=1", b"", 404),
    ("GET", "/api/v1/nodes/n/proxy/", b"", 404),
    ("GET", "/apis/none.example.com/v1/things?watch=1", b"", 404),
    ("POST", MAPS, BODY, 201),
    ("PUT", f"{MAPS}/old", BODY.replace(b"new", b"old"), 200),
    ("PATCH", f"{MAPS}/old", b"{}", 415),
    ("DELETE", f"{MAPS}/old", b"", 200),
    ("DELETE", MAPS, b"", 200),
    ("CONNECT", MAPS, b"", 405),
    ("OPTIONS", MAPS, b"", 405),
    ("TRACE", MAPS, b"", 405),
]


@pytest.mark.parametrize(("method", "path", "body", "status"), ROUTES, ids=[f"{m} {p}" for m, p, _, _ in ROUTES])
def test_every_other_route_answers_as_if_it_had_not_been_asked(
    noxu: Noxu, peer: Peer, method: str, path: str, body: bytes, status: int
) -> None:
    noxu.apply(config_map("old", ""))
    answered = peer.ask(path, method, body=body)
    assert answered != 101
    with Client(noxu.url) as client:
        if method == "POST":
            assert client.send("GET", f"{MAPS}/new").code == 200
    assert answered == status


async def test_a_client_that_is_gone_is_noticed() -> None:
    connection, _ = connected()
    connection.connection_lost(None)
    with pytest.raises(ConnectionResetError):
        WebSocketPipe(connection).write([b"{}\n"])


@pytest.mark.slow
def test_stopping_the_server_ends_them(noxu: Noxu, peer: Peer) -> None:
    assert peer.ask(f"{MAPS}?watch=1") == 101
    asyncio.run(asyncio.to_thread(noxu.stop))
    assert peer.frame()[0] == 8


EMPTY_FRAGMENTS = b"\x01\x80" + bytes(4) + (b"\x00\x80" + bytes(4)) * 3_000


@pytest.mark.parametrize("when", ["with the request", "at once", "a few at a time"])
def test_a_client_that_sends_thousands_of_frames_at_once_is_disconnected(peer: Peer, when: str) -> None:
    """The parser reads 3,000 empty fragments in 6 ms, and 250 KB of them, which may arrive together, in 80."""
    if when == "with the request":
        with contextlib.suppress(ConnectionError, IndexError):  # it may be disconnected before there is an answer
            assert peer.ask(f"{MAPS}?watch=1", body=EMPTY_FRAGMENTS, headers={"Content-Length": ""}) == 101
    else:
        assert peer.ask(f"{MAPS}?watch=1") == 101
        if when == "at once":
            peer.socket.sendall(EMPTY_FRAGMENTS)
        else:
            for _ in range(100):  # as a client may
                peer.send(0x9, b"ping")
                assert peer.frame()[0] in (0xA, 1)
            return
    with contextlib.suppress(ConnectionError):
        while peer.socket.recv(65536):
            pass


# -- frames, however they arrive

Controls = list[tuple[int, bytes]]


def frame(first: int, payload: bytes, *, mask: bytes | None = bytes(4)) -> bytes:
    """A frame whose first byte is this, with a length in as many bytes as it needs."""
    flag = 0 if mask is None else 0x80
    if len(payload) < 126:
        size = bytes([flag | len(payload)])
    else:
        size = bytes([flag | 126]) + len(payload).to_bytes(2, "big")
    masked = bytes(byte ^ (mask or b"\0")[n % len(mask or b"\0")] for n, byte in enumerate(payload))
    return bytes([first]) + size + (mask or b"") + masked


PING, CLOSE = frame(0x89, b"p"), frame(0x88, b"\x03\xe8")
READ: dict[str, tuple[bytes, Controls]] = {
    "a text": (frame(0x81, b"hello"), []),
    "bytes": (frame(0x82, b"\xff") + PING, [(9, b"p")]),
    "a ping without content": (frame(0x89, b""), [(9, b"")]),
    "a masked ping": (frame(0x89, b"hi", mask=b"abcd"), [(9, b"hi")]),
    "a ping without a mask": (frame(0x89, b"hi", mask=None), [(9, b"hi")]),
    "the longest ping": (frame(0x89, b"p" * 125), [(9, b"p" * 125)]),
    "a close": (PING + CLOSE, [(9, b"p"), (8, b"\x03\xe8")]),
    "a ping between the parts of a message": (frame(0x01, b"a") + PING + frame(0x80, b"b") + PING, [(9, b"p")] * 2),
    "a character in two parts": (frame(0x01, b"\xc3") + frame(0x80, b"\xa9") + PING, [(9, b"p")]),
    "the longest message": (frame(0x82, b"x" * 4095) + PING, [(9, b"p")]),
    "one message after the other": (frame(0x82, b"x" * 3000) * 3 + PING, [(9, b"p")]),
}


@rows("sent, expected", READ.values(), ids=READ)
def test_frames_are_read(sent: bytes, expected: Controls) -> None:
    for size in (1, 3, 10_000):
        frames, pieces = Frames(), [sent[at : at + size] for at in range(0, len(sent), size)]
        assert [found for piece in pieces for found in frames.feed(piece)] == expected, f"in pieces of {size} bytes"


BROKEN: dict[str, tuple[bytes, int]] = {
    "an opcode that does not exist": (frame(0x83, b""), 1002),
    "a control frame that does not exist": (frame(0x8B, b""), 1002),
    "a reserved bit": (frame(0xC1, b""), 1002),
    "another reserved bit": (frame(0x91, b""), 1002),
    "a ping in parts": (frame(0x09, b""), 1002),
    "a ping that is too long": (frame(0x89, b"p" * 126), 1002),
    "a part of no message": (frame(0x80, b"a"), 1002),
    "a message within a message": (frame(0x01, b"a") + frame(0x81, b"b"), 1002),
    "a message within an empty one": (frame(0x01, b"") + frame(0x81, b"b"), 1002),
    "a message that is too long": (frame(0x82, b"x" * 4096), 1009),
    "a length of 64 bits": (b"\x82\xff" + b"\xff" * 8, 1009),
    "parts that are too long together": (frame(0x02, b"x" * 2048) + frame(0x80, b"x" * 2048), 1009),
    "a text that is no UTF-8": (frame(0x81, b"\xff"), 1007),
    "half a character": (frame(0x01, b"\xc3") + frame(0x80, b"b"), 1007),
}


@rows("sent, code", BROKEN.values(), ids=BROKEN)
def test_the_protocol_is_broken_by(sent: bytes, code: int) -> None:
    for size in (1, 10_000):
        frames, pieces = Frames(), [sent[at : at + size] for at in range(0, len(sent), size)]
        with pytest.raises(BrokenProtocol) as broken:
            assert [found for piece in pieces for found in frames.feed(piece)] == []
        assert broken.value.code == code, f"in pieces of {size} bytes"


CLOSES: list[tuple[str, bytes, int]] = [
    ("nothing", b"", 1000),
    ("a code", b"\x03\xe9", 1000),
    ("a code of its own", b"\x0f\xa0bye", 1000),
    ("half a code", b"\x03", 1002),
    ("a code that does not exist", b"\x00\x05", 1002),
    ("a reason that is no UTF-8", b"\x03\xe8\xff", 1007),
]


@pytest.mark.parametrize(("payload", "code"), [row[1:] for row in CLOSES], ids=[row[0] for row in CLOSES])
async def test_the_answer_to_a_close_that_says(payload: bytes, code: int) -> None:
    connection, wire = connected()
    ended: list[bool] = []
    socket = WebSocket(connection, lambda: ended.append(True))
    connection.data_received(frame(0x88, payload) + PING)
    await socket.close()
    assert wire.sent == b"\x88\x02" + code.to_bytes(2, "big")
    assert ended == [True]
    connection.connection_lost(None)


async def test_a_client_that_does_not_answer_a_close_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(websocket, "CLOSE_WITHIN", 0.01)
    connection, wire = connected()
    socket = WebSocket(connection, lambda: None)
    await socket.close()
    connection.data_received(PING)
    assert wire.sent == b"\x88\x02\x03\xe8", "and its pings are not answered any more"
    connection.connection_lost(None)


async def test_a_client_that_does_not_read_pongs_is_not_read() -> None:
    connection, wire = connected()
    WebSocket(connection, lambda: None)
    connection.pause_writing()
    assert wire.paused
    connection.resume_writing()
    assert not wire.paused
    connection.connection_lost(None)
