"""Sends requests over HTTP/1.1 as fast as a server answers them.

Each connection has a coroutine of its own, a generator that yields requests and receives the bodies of the answers. It
sends its next request as soon as the last one is answered, until the generator ends or the time is over. Connections are
opened before anything is measured, TLS handshakes included. Answers are parsed as far as needed to find their end.

    def updates(path, revision):
        while True:
            answer = yield Request("PUT", path, body(revision))
            revision = revision_of(answer)
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from typing import NamedTuple, cast

JSON, MERGE, APPLY = "application/json", "application/merge-patch+json", "application/apply-patch+yaml"
JSON_PATCH = "application/json-patch+json"
SETTLE = 0.2  # seconds: a server completes a TLS handshake later than its client, whose certificate it verifies
NO_DEADLINE = float("inf")


class Request(NamedTuple):
    method: str
    path: str
    body: bytes = b""
    content_type: str = JSON
    status: int = 200
    accept: str = JSON
    gzip: bool = False

    def bytes(self, headers: str = "") -> bytes:
        """As it is sent. `headers` are further ones, each with its line end."""
        head = f"{self.method} {self.path} HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: bench/1\r\n{headers}"
        head += f"Accept: {self.accept}\r\n{'Accept-Encoding: gzip' if self.gzip else 'Accept-Encoding: identity'}\r\n"
        return (
            f"{head}Content-Type: {self.content_type}\r\nContent-Length: {len(self.body)}\r\n\r\n".encode() + self.body
        )


Requests = Generator[Request, bytes, None]


class Target(NamedTuple):
    """Where a server listens, and how to connect to it."""

    host: str
    port: int
    tls: ssl.SSLContext | None = None
    headers: str = ""


class Burst:
    """Connections that send their next requests when all of them have an answer."""

    def __init__(self, clients: int) -> None:
        self._clients = clients
        self._waiting: list[Connection] = []

    def answered(self, connection: Connection) -> None:
        self._waiting.append(connection)
        if len(self._waiting) == self._clients:
            waiting, self._waiting = self._waiting, []
            self._clients = sum([each.send_next() for each in waiting])


class Connection(asyncio.Protocol):
    """Sends one request after the other, and parses of the answers only what is needed."""

    def __init__(
        self,
        requests: Requests,
        headers: str = "",
        answered: Callable[[Connection], object] | None = None,
        *,
        until: float = NO_DEADLINE,
    ) -> None:
        """`answered` is called with the connection when an answer is complete; by default the next request is sent.

        No request is sent after `until`, a time of `perf_counter`.
        """
        self._requests = requests
        self._headers = headers
        self._answered = answered or Connection.send_next
        self._until = until
        self._expected_status = 0
        self._sent = 0.0
        self._begun = False
        self._pieces: list[bytes] = []
        self._missing: int | None = None
        self.latencies: list[float] = []
        """Seconds from each request to the end of its answer."""
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is no subclass

    def send_next(self) -> bool:
        """Send the next request, or close the connection if there is none. Returns whether there was one."""
        answer, self._pieces = b"".join(self._pieces), []
        try:
            if self._begun and time.perf_counter() >= self._until:
                self._requests.close()
                raise StopIteration  # noqa: TRY301
            request = self._requests.send(answer) if self._begun else next(self._requests)
        except StopIteration:
            self._transport.close()
            if not self.done.done():
                self.done.set_result(None)
            return False
        self._begun = True
        self._expected_status = request.status
        data = request.bytes(self._headers)
        self._sent = time.perf_counter()
        self._transport.write(data)
        return True

    def data_received(self, data: bytes) -> None:
        """Collect an answer. `_missing`: bytes of its body that are not there; None before its head, -1 if it is chunked."""
        if self._missing is None:
            if self._pieces:
                data = self._pieces.pop() + data
            head, found, data = data.partition(b"\r\n\r\n")
            if not found:
                self._pieces = [head]
                return
            if int(head[9:12]) != self._expected_status:
                self._fail(f"expected {self._expected_status}, got {(head + data)[:2000]!r}")
                return
            length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
            self._missing = int(length) if length else -1
        if data:
            self._pieces.append(data)
        if self._missing >= 0:
            self._missing -= len(data)
        elif b"".join(self._pieces[-5:])[-5:] == b"0\r\n\r\n":
            self._missing = 0
        if self._missing == 0:
            self._missing = None
            self.latencies.append(time.perf_counter() - self._sent)
            self._answered(self)

    def _fail(self, message: str) -> None:
        if not self.done.done():
            self.done.set_exception(SystemExit(message))
        self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(exc or ConnectionError("the server closed the connection"))


class Load(NamedTuple):
    """What was sent. `latencies` are sorted, in seconds."""

    seconds: float
    latencies: Sequence[float]


async def send_all(
    target: Target,
    coroutines: Sequence[Requests],
    *,
    seconds: float = NO_DEADLINE,
    opened: Callable[[], object] = lambda: None,
    bursts: bool = False,
    settle: float = SETTLE,
) -> Load:
    """Send the requests of each coroutine over a connection of its own. `opened` is called when all are open.

    After `seconds` only answers are awaited.
    """
    loop = asyncio.get_running_loop()
    answered = Burst(len(coroutines)).answered if bursts else None
    connections = [
        (
            await loop.create_connection(
                lambda requests=requests: Connection(requests, target.headers, answered),
                target.host, target.port, ssl=target.tls,
            )
        )[1]
        for requests in coroutines
    ]  # fmt: skip
    if target.tls is not None and settle:
        await asyncio.sleep(settle)
    opened()
    start = time.perf_counter()
    for connection in connections:
        connection._until = start + seconds  # noqa: SLF001
        connection.send_next()
    await asyncio.gather(*(connection.done for connection in connections))
    elapsed = time.perf_counter() - start
    return Load(elapsed, sorted(latency for each in connections for latency in each.latencies))


async def ask(target: Target, request: Request) -> bytes:
    """The body of the answer; SystemExit if its status is another than that of the request."""
    received = b""

    def requests() -> Requests:
        nonlocal received
        received = yield request

    await send_all(target, [requests()], settle=0.0)
    return received


class Watcher(asyncio.Protocol):
    """A watch that is read. Its n-th event is that of the n-th update; events are lines that end in `}`.

    `sent` are the times of the updates, to which latencies are added.
    """

    def __init__(self, request: bytes, sent: Sequence[float], received: Callable[[], object]) -> None:
        """`received` is called after each read, and once when the server has accepted the watch."""
        self._request = request
        self._sent = sent
        self._received = received
        self._ends_in_brace = False
        self.accepted = False
        self.events = 0
        self.latencies: list[float] = []
        self.failure = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        if not self.accepted:
            self.accepted = True
            if data[9:12] != b"200":
                self.failure = data[:500].decode(errors="replace")
        count = data.count(b"}\n") + (self._ends_in_brace and data.startswith(b"\n"))
        self._ends_in_brace = data.endswith(b"}")
        now = time.perf_counter()
        for n in range(self.events, self.events + count):
            if n < len(self._sent):
                self.latencies.append(now - self._sent[n])
        self.events += count
        self._received()

    def connection_lost(self, exc: Exception | None) -> None:
        self.failure = self.failure or f"the server closed a watch: {exc}"
        self._received()

    def close(self) -> None:
        with suppress(RuntimeError):
            self._transport.abort()
