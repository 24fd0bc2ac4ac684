"""Methods that the parser does not know, and where heads begin: answers do not depend on how the bytes have arrived."""

from __future__ import annotations

import asyncio
import random

import pytest

from noxu.http.clients import Clients
from noxu.http.connection import MAX_METHOD
from noxu.http.request import Received, read_body
from tests.http.wire import connected
from tests.rows import rows
from tests.timing import eventually_async

HOST = b" HTTP/1.1\r\nHost: a\r\n"
Seen = list[tuple[str, str, bytes]]


async def conversation(pieces: list[bytes], requests: int, *, reads: bool = True) -> tuple[Seen, bytes, int]:
    """(What a handler has seen, what was answered, the bytes that are held as incomplete) for bytes in these pieces.

    `reads`: the handler reads bodies; else the connection has to.
    """
    seen: Seen = []

    async def handle(request: Received) -> None:
        body = await read_body(request) if reads else b""
        seen.append((request.method, request.raw_path, body))
        request.connection.answer(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    clients = Clients()
    connection, transport = connected(handle, clients)
    for piece in pieces:
        connection.data_received(piece)
        if random.random() < 0.1:
            await asyncio.sleep(0)
    await eventually_async(lambda: len(seen) == requests or transport.closed)
    await eventually_async(lambda: transport.sent.count(b"HTTP/1.1 ") >= requests or transport.closed)
    total = clients.incoming.total
    connection.force_close()
    connection.connection_lost(None)
    return seen, transport.sent, total


def with_length(line: bytes, body: bytes) -> bytes:
    return line + HOST + b"Content-Length: %d\r\n\r\n" % len(body) + body


def chunked(line: bytes, *chunks: bytes, trailers: bytes = b"") -> bytes:
    framed = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks)
    return line + HOST + b"Transfer-Encoding: chunked\r\n\r\n" + framed + b"0\r\n" + trailers + b"\r\n"


LOOKS_LIKE = b'"x"FOO / HTTP/1.1\r\n\r\nBAR / HTTP/1.1\r\n\r\n'
LARGE = b"b" * 300_000
REQUESTS: dict[str, tuple[bytes, tuple[str, str, bytes]]] = {
    "a read": (b"GET /1" + HOST + b"\r\n", ("GET", "/1", b"")),
    "an unknown method": (b"FOO /2" + HOST + b"\r\n", ("FOO", "/2", b"")),
    "another": (b"get /3" + HOST + b"\r\n", ("get", "/3", b"")),
    "a write": (with_length(b"POST /4", b"body"), ("POST", "/4", b"body")),
    "an unknown method with a body": (with_length(b"BAR /5", b"FOO"), ("BAR", "/5", b"FOO")),
    "an empty body": (with_length(b"POST /6", b""), ("POST", "/6", b"")),
    "a body like requests": (with_length(b"PUT /7", LOOKS_LIKE), ("PUT", "/7", LOOKS_LIKE)),
    "chunks": (chunked(b"POST /8", b"a", b"bc"), ("POST", "/8", b"abc")),
    "chunks like requests": (chunked(b"POST /9", LOOKS_LIKE, LOOKS_LIKE), ("POST", "/9", LOOKS_LIKE * 2)),
    "chunks with trailers": (chunked(b"BAZ /10", b"a", trailers=b"X: y\r\n"), ("BAZ", "/10", b"a")),
    "an upgrade that is refused": (b"GET /11" + HOST + b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n", ("GET", "/11", b"")),
    "a long method": (b"A" * 5000 + b" /12" + HOST + b"\r\n", ("A" * 5000, "/12", b"")),
    "a large body": (with_length(b"POST /13", LARGE), ("POST", "/13", LARGE)),
}  # fmt: skip
PAIRS = [(first, second) for first in REQUESTS for second in ("an unknown method", "a write")]


@rows(("first", "second"), PAIRS, ids=[f"{second} after {first}" for first, second in PAIRS])
async def test_in_one_piece(first: str, second: str) -> None:
    (sent, expected), (next_sent, next_expected) = REQUESTS[first], REQUESTS[second]
    seen, answered, held = await conversation([sent + next_sent], 2)
    assert seen == [expected, next_expected]
    assert answered.count(b"HTTP/1.1 200 OK") == 2
    assert held == 0


@rows("seed", range(40))
async def test_in_random_pieces(seed: int) -> None:
    choose = random.Random(seed)
    names = choose.choices(list(REQUESTS), k=5)
    sent = b"".join(REQUESTS[name][0] for name in names)
    size = choose.choice([1, 3, 40, 1000]) if len(sent) < 10_000 else choose.choice([1000, 70_000])
    pieces = []
    while sent:
        at = choose.randint(1, size)
        pieces.append(sent[:at])
        sent = sent[at:]
    random.seed(seed)
    seen, answered, held = await conversation(pieces, len(names))
    assert seen == [REQUESTS[name][1] for name in names], names
    assert answered.count(b"HTTP/1.1 200 OK") == len(names)
    assert held == 0


async def test_each_in_a_read_of_its_own() -> None:
    seen, answered, held = await conversation([sent for sent, _ in REQUESTS.values()], len(REQUESTS))
    assert seen == [expected for _, expected in REQUESTS.values()]
    assert answered.count(b"HTTP/1.1 200 OK") == len(REQUESTS)
    assert held == 0


UPGRADE = b"Connection: Upgrade\r\nUpgrade: websocket\r\n"
UNCLEAR: dict[str, bytes] = {
    "two lengths": b"Content-Length: 4\r\nContent-Length: 5\r\n",
    "two lengths in the other order": b"Content-Length: 5\r\nContent-Length: 4\r\n",
    "the same length twice": b"Content-Length: 4\r\nContent-Length: 4\r\n",
    "a length and chunks": b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
    "chunks and a length": b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n",
    "a length in a value": b"X: a\r\nY: Content-Length: 4\r\n",
    "a length with a sign": b"Content-Length: +4\r\n",
    "a length of two numbers": b"Content-Length: 4, 4\r\n",
    "an upgrade": UPGRADE + b"Content-Length: 4\r\n",
    "an expectation": b"Expect: 100-continue\r\nContent-Length: 4\r\n",
}


@rows("headers", UNCLEAR.values(), ids=UNCLEAR)
async def test_a_body_in_the_read_of_its_head_is_the_one_in_the_next_read(headers: bytes) -> None:
    head = b"POST /1" + HOST + headers + b"\r\n"
    for body in (b"body", b"1\r\na\r\n0\r\n\r\n"):
        whole, cut = await conversation([head + body], 1), await conversation([head, body], 1)
        assert whole[0] == cut[0], (headers, body)
        assert undated(whole[1]) == undated(cut[1])


def undated(answers: bytes) -> list[bytes]:
    return [line for line in answers.split(b"\r\n") if not line.startswith(b"Date:")]


@pytest.mark.parametrize("name", ["a write", "a large body", "chunks"])
async def test_after_a_body_that_nobody_has_read(name: str) -> None:
    """The client learns of the answer before its body was read, and goes on."""
    sent, (method, path, _) = REQUESTS[name]
    seen, answered, _ = await conversation([sent[:60], sent[60:] + b"FOO /2" + HOST + b"\r\n"], 2, reads=False)
    assert [each[:2] for each in seen] == [(method, path), ("FOO", "/2")]
    assert answered.count(b"HTTP/1.1 200 OK") == 2


async def test_more_requests_than_wait_at_once() -> None:
    names = ["a read", "an unknown method", "a write"] * 60
    seen, _, held = await conversation([b"".join(REQUESTS[name][0] for name in names)], len(names))
    assert seen == [REQUESTS[name][1] for name in names]
    assert held == 0


@pytest.mark.parametrize(
    "sent",
    [b"\0 / HTTP/1.1\r\n\r\n", b"(FOO) /" + HOST + b"\r\n", b"FOO\r\n\r\n", b"A" * (MAX_METHOD + 1) + b" /" + HOST + b"\r\n"],
    ids=["a control character", "signs", "no target", "too long"],
)  # fmt: skip
@pytest.mark.parametrize("size", [1, 10_000])
async def test_what_is_no_method_is_refused_in_any_pieces(sent: bytes, size: int) -> None:
    _, answered, _ = await conversation([sent[at : at + size] for at in range(0, len(sent), size)], 1)
    assert answered.startswith(b"HTTP/1.1 400 Bad Request")
