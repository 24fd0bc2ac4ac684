"""Calls of gRPC to one server over HTTP/2: those with one answer, and streams. See http2.py for the protocol.

A channel connects when it is used. An attempt that fails is followed by another one after FIRST_DELAY to LAST_DELAY seconds;
until then calls fail at once. When the server goes away, its calls end as they would, and further ones get a new connection.
While calls are open, pings find a server that does not answer: the connection is cut after about ten seconds.

What a call sends in one iteration of the event loop leaves together with what others send.

A call fails in one of two ways. `Refused`: the server answered, and did nothing. `Lost`: there is no answer; unless the request
was not sent, the server may have done what was requested.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import Mapping, Sequence
from math import ceil, inf
from random import uniform
from typing import Final, TypeAlias, cast
from urllib.parse import unquote

from noxu.storage import http2
from noxu.storage.http2_headers import request_block
from noxu.storage.types import reason

CONNECT_WITHIN: Final = 5.0  # seconds until the first settings of the server
FIRST_DELAY, LAST_DELAY = 0.05, 1.0  # seconds before another attempt to connect
PING_AFTER: Final = 6.0  # seconds of silence; etcd permits a ping every five
PING_WITHIN: Final = 4.0  # seconds for anything to arrive after a ping
CLOSE_WITHIN: Final = 1.0  # seconds in which what is left is sent
MAX_MESSAGE: Final = 1024 * 1024 * 1024  # bytes of a message of the server
MESSAGES_AT_ONCE: Final = 32  # messages of a stream that are read before other tasks run
MAX_BLOCKS: Final = 64  # blocks of requests that are remembered

OK: Final = b"0"
CODES: Final = (
    "OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS",
    "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED",
    "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED",
)  # fmt: skip
_LOST: Final = frozenset(
    {"UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELLED", "INTERNAL", "UNKNOWN", "ABORTED", "DATA_LOSS"}
)
_OF_HTTP: Final = {"400": "INTERNAL", "401": "UNAUTHENTICATED", "403": "PERMISSION_DENIED", "404": "UNIMPLEMENTED"}
"""The codes of answers that are not gRPC's, by their status; others are no answer."""

Metadata: TypeAlias = tuple[tuple[str, str], ...]


class Refused(Exception):
    """The server answered with an error, and did nothing. `code` is the name of gRPC's status code."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


class Lost(Exception):
    """There is no answer. `sent`: the request may have reached the server."""

    def __init__(self, text: str, *, sent: bool) -> None:
        super().__init__(text)
        self.sent = sent


class _Unprocessed(Lost):
    """The server says that it has done nothing with the request."""

    def __init__(self, text: str) -> None:
        super().__init__(text, sent=False)


class _Malformed(Exception):
    """What arrives is no message of gRPC."""


class _Messages:
    """Divides data into messages: a flag (1: compressed, which was not offered), four bytes with the length, the message."""

    __slots__ = ("_rest",)

    def __init__(self) -> None:
        self._rest = bytearray()

    def add(self, data: bytes) -> Sequence[bytes]:
        """The messages that are complete now. Raises _Malformed."""
        rest = self._rest
        if not rest and len(data) >= 5 and not data[0] and int.from_bytes(data[1:5], "big") == len(data) - 5:
            return (data[5:],)
        rest += data
        found = []
        while len(rest) >= 5:
            size = int.from_bytes(rest[1:5], "big")
            if rest[0] or size > MAX_MESSAGE:
                raise _Malformed("a message is compressed" if rest[0] else "a message is too large")
            if len(rest) < 5 + size:
                break
            found.append(bytes(rest[5 : 5 + size]))
            del rest[: 5 + size]
        return found

    @property
    def incomplete(self) -> int:
        """The bytes of a message that is not complete."""
        return len(self._rest)


class _Call:
    """A call on a stream of a connection. `deadline` is a time of the event loop."""

    __slots__ = ("connection", "deadline", "messages", "number")

    def __init__(self, deadline: float) -> None:
        self.deadline = deadline
        self.messages = _Messages()
        self.connection: _Connection | None = None
        self.number = 0

    def arrived(self, messages: Sequence[bytes], size: int) -> None:
        """Some bytes of data, and the messages that are complete with them. Raises _Malformed."""
        raise NotImplementedError

    def end(self, error: Refused | Lost | None) -> None:
        """The call has ended; None: as it should."""
        raise NotImplementedError

    def headers(self, fields: Mapping[bytes, bytes], ended: bool) -> Refused | Lost | None:
        """The reason to end the call. Raises _Malformed."""
        status = fields.get(b":status")
        if ended:
            if (code := fields.get(b"grpc-status")) is not None:
                self.end(None if code == OK else _failure(code, fields.get(b"grpc-message", b"")))
                return None
            return _http_failure(status)
        if status is None:
            raise _Malformed("header fields follow others")
        if status != b"200":
            return None if status.startswith(b"1") else _http_failure(status)
        if not fields.get(b"content-type", b"").startswith(b"application/grpc"):
            raise _Malformed("the answer is not gRPC")
        return None

    def cancel(self) -> None:
        if self.connection is not None:
            self.connection.cancel(self)


class _Unary(_Call):
    __slots__ = ("answer", "future")

    def __init__(self, deadline: float, future: asyncio.Future[bytes]) -> None:
        super().__init__(deadline)
        self.future = future
        self.answer: bytes | None = None

    def arrived(self, messages: Sequence[bytes], size: int) -> None:
        if messages:
            if len(messages) > 1 or self.answer is not None:
                raise _Malformed("a call has several answers")
            self.answer = messages[0]
        assert self.connection is not None
        self.connection.http2.taken(self.number, size)

    def end(self, error: Refused | Lost | None) -> None:
        if self.future.done():
            return
        if error is None and self.answer is not None:
            self.future.set_result(self.answer)
        else:
            self.future.set_exception(error or Lost("the answer has no message", sent=True))


class Stream(_Call):
    """The messages of a call in both directions. One task may read. The server's messages wait here until they are read,
    and it sends no more than a window."""

    __slots__ = ("_arrived", "_early", "_error", "_read", "_waiter")

    def __init__(self) -> None:
        super().__init__(inf)
        self._arrived: deque[tuple[bytes, int]] = deque()  # messages, and how many of their bytes are not taken
        self._early = 0  # bytes of the incomplete message that are taken
        self._error: Refused | Lost | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._read = 0

    def arrived(self, messages: Sequence[bytes], size: int) -> None:
        for message in messages:
            self._arrived.append((message, len(message) + 5 - self._early))
            self._early = 0
        if messages:
            self._wake()
        elif not self._arrived:
            self._take_incomplete()

    def _take_incomplete(self) -> None:
        """What the reader waits for is taken before it is complete: a message may be larger than the window."""
        size = self.messages.incomplete - self._early
        if size and self.connection is not None:
            self._early += size
            self.connection.taken(self.number, size)

    def end(self, error: Refused | Lost | None) -> None:
        if self._error is None:
            self._error = error or Lost("the stream has ended", sent=False)
            self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    @property
    def has_arrived(self) -> bool:
        """Whether `read` returns a message without waiting for the server."""
        return bool(self._arrived)

    async def read(self) -> bytes:
        """The next message. Raises Refused, Lost: also at the end."""
        while not self._arrived:
            if self._error is not None:
                raise self._error
            self._take_incomplete()
            self._waiter, self._read = asyncio.get_running_loop().create_future(), 0
            try:
                await self._waiter
            finally:
                self._waiter = None
        self._read += 1
        if self._read >= MESSAGES_AT_ONCE:
            self._read = 0
            await asyncio.sleep(0)
        message, size = self._arrived.popleft()
        if self.connection is not None:
            self.connection.taken(self.number, size)
        return message

    def write(self, message: bytes) -> None:
        """Raises Refused, Lost: the stream has ended."""
        if self._error is not None or self.connection is None:
            raise self._error or Lost("the stream has ended", sent=False)
        self.connection.send(self.number, message)


class _Connection(asyncio.Protocol):
    """One connection of a channel."""

    def __init__(self, channel: Channel) -> None:
        self.http2 = http2.Connection()
        self.calls: dict[int, _Call] = {}
        self.waiting: deque[asyncio.Future[None]] = deque()  # calls that wait for room
        loop = asyncio.get_running_loop()
        self.ready: asyncio.Future[None] = loop.create_future()
        self.closed: asyncio.Future[None] = loop.create_future()
        self._channel = channel
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._flushing = False
        self._quiet_since = 0.0
        self._pinged: float | None = None
        self._keepalive: asyncio.TimerHandle | None = None
        self._expiry: asyncio.TimerHandle | None = None
        self._expires = inf

    # The transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is no subclass
        secure = transport.get_extra_info("ssl_object")
        if secure is not None and secure.selected_alpn_protocol() != "h2":
            self.lose("the server does not speak HTTP/2")
            return
        self._flush()

    def data_received(self, data: bytes) -> None:
        self._quiet_since = self._loop.time()
        for event in self.http2.receive(data):
            self._handle(event)
        self._let_in()
        if self.http2.going_away and not self.calls:
            self.close()
        elif self.http2.has_output():
            self._flush_soon()

    def pause_writing(self) -> None:
        self.http2.block()

    def resume_writing(self) -> None:
        self.http2.unblock()
        self._flush_soon()
        self._let_in()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.closed.done():
            self.closed.set_result(None)
        self._end(reason(exc) if exc is not None else "the server has closed the connection")

    def _flush_soon(self) -> None:
        if not self._flushing:
            self._flushing = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._flushing = False
        if self._transport is not None and self.http2.has_output() and not self.http2.blocked:
            self._transport.write(self.http2.take())

    # Events.

    def _handle(self, event: http2.Event) -> None:
        if isinstance(event, http2.Data | http2.Headers):
            call = self.calls.get(event.stream)
            if call is None:
                return
            error: Refused | Lost | None
            try:
                if isinstance(event, http2.Data):
                    call.arrived(call.messages.add(event.data), len(event.data))
                    error = Lost("the answer has no status", sent=True) if event.ended else None
                else:
                    error = call.headers(event.fields, event.ended)
            except _Malformed as malformed:
                error = Lost(str(malformed), sent=True)
            if error is not None:
                self.http2.reset(event.stream)
                call.end(error)
            if error is not None or event.ended:
                self._forget(event.stream)
        elif isinstance(event, http2.Reset):
            if (call := self._forget(event.stream)) is not None:
                refused = event.code == http2.REFUSED_STREAM
                text = f"the server has ended the call: HTTP/2 error {event.code}"
                call.end(_Unprocessed(text) if refused else Lost(text, sent=True))
        elif isinstance(event, http2.Ready):
            if not self.ready.done():
                self.ready.set_result(None)
        elif isinstance(event, http2.Terminated):
            self.lose(f"the server violates HTTP/2: {event.text}")

    def _forget(self, number: int) -> _Call | None:
        call = self.calls.pop(number, None)
        if call is not None:
            call.connection = None
        return call

    def _let_in(self) -> None:
        """Let calls that wait for room look again."""
        room = self.http2.has_room() or self.http2.going_away
        while self.waiting and room:
            future = self.waiting.popleft()
            if not future.done():
                future.set_result(None)
                room = self.http2.going_away  # one at a time: the next one is let in by it

    # Calls.

    def start(self, call: _Call, block: bytes, message: bytes | None) -> None:
        """`message` is the only one of the call; None: others follow."""
        call.connection = self
        call.number = self.http2.open(block, b"" if message is None else _framed(message), ends=message is not None)
        self.calls[call.number] = call
        if self._keepalive is None:
            self._quiet_since, self._pinged = self._loop.time(), None
            self._keepalive = self._loop.call_later(PING_AFTER, self._keep_alive)
        if call.deadline < self._expires:
            self._expire_at(call.deadline)
        self._flush_soon()
        if self.waiting:
            self._let_in()

    def send(self, number: int, message: bytes) -> None:
        self.http2.send(number, _framed(message))
        self._flush_soon()

    def taken(self, number: int, size: int) -> None:
        self.http2.taken(number, size)
        if self.http2.has_output():
            self._flush_soon()

    def cancel(self, call: _Call) -> None:
        self.http2.reset(call.number)
        self._forget(call.number)
        self._flush_soon()
        self._let_in()
        if self.http2.going_away and not self.calls:
            self.close()

    def _expire_at(self, deadline: float) -> None:
        if self._expiry is not None:
            self._expiry.cancel()
        self._expires = deadline
        self._expiry = self._loop.call_at(deadline, self._expire) if deadline < inf else None

    def _expire(self) -> None:
        """End the calls whose deadlines have come. One timer for all calls, for the earliest deadline when it was set."""
        now = self._loop.time()
        for call in [call for call in self.calls.values() if call.deadline <= now]:
            self.cancel(call)
            call.end(Lost("Deadline Exceeded", sent=True))
        self._expire_at(min((call.deadline for call in self.calls.values()), default=inf))

    def _keep_alive(self) -> None:
        now = self._loop.time()
        self._keepalive = None
        if not self.calls:
            return
        if self._pinged is not None and self._quiet_since < self._pinged:
            self.lose("the server does not answer")
            return
        self._pinged = None
        if (rest := self._quiet_since + PING_AFTER - now) <= 0:
            self._pinged, rest = now, PING_WITHIN
            self.http2.ping()
            self._flush_soon()
        self._keepalive = self._loop.call_later(rest, self._keep_alive)

    # The end.

    def retire(self) -> None:
        """Take no further calls; close after the last one."""
        self.http2.going_away = True
        self._let_in()
        if not self.calls:
            self.close()

    def close(self) -> None:
        """End all calls, and close when what is left is sent."""
        if self._transport is not None and not self._transport.is_closing():
            for number in list(self.http2.streams):
                self.http2.reset(number)
            self.http2.go_away()
            self._transport.write(self.http2.take())
            self._transport.close()
        self._end("the connection was closed")

    def lose(self, text: str) -> None:
        """Cut the connection."""
        self._end(text)
        if self._transport is not None:
            if self.http2.has_output() and not self.http2.blocked:
                self._transport.write(self.http2.take())
            self._transport.abort()

    def _end(self, text: str) -> None:
        self.http2.going_away = True
        for timer in (self._keepalive, self._expiry):
            if timer is not None:
                timer.cancel()
        self._keepalive = self._expiry = None
        if not self.ready.done():
            self.ready.set_exception(Lost(text, sent=False))
            self.ready.exception()  # asyncio logs an exception that is not retrieved, also if no call waits for it
        calls, self.calls = self.calls, {}
        for call in calls.values():
            call.connection = None
            call.end(Lost(text, sent=True))
        self._let_in()
        self._channel.ended(self)

    async def gone(self) -> None:
        """Wait until the transport is closed."""
        if self._transport is None:
            return
        await asyncio.wait([self.closed], timeout=CLOSE_WITHIN)
        if not self.closed.done():
            self._transport.abort()
            await self.closed


class Channel:
    """The connection to one server, made again when it is lost. Created on a running event loop."""

    def __init__(self, host: str, port: int, tls: ssl.SSLContext | None = None) -> None:
        self._host, self._port, self._tls = host, port, tls
        self._authority = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        self._loop = asyncio.get_running_loop()
        self._current: _Connection | None = None
        self._connections: set[_Connection] = set()
        self._connecting: asyncio.Task[None] | None = None
        self._retry_at, self._delay, self._failure = 0.0, FIRST_DELAY, ""
        self._blocks: dict[tuple[str, float, Metadata], bytes] = {}
        self._closed = False

    async def unary(self, path: str, message: bytes, within: float, metadata: Metadata = ()) -> bytes:
        """The answer to a message. `metadata` is secret. Raises Refused, Lost."""
        block = self._block(path, within, metadata)
        deadline = self._loop.time() + within
        try:
            return await self._unary(block, message, deadline)
        except _Unprocessed:
            return await self._unary(block, message, deadline)

    async def _unary(self, block: bytes, message: bytes, deadline: float) -> bytes:
        connection = self._current
        if connection is None or connection.waiting or not connection.http2.has_room():
            connection = await self._room(deadline)
        call = _Unary(deadline, self._loop.create_future())
        connection.start(call, block, message)
        try:
            return await call.future
        except asyncio.CancelledError:
            call.cancel()
            raise

    async def stream(self, path: str, within: float, metadata: Metadata = ()) -> Stream:
        """Open a stream. `within` is for the connection: a stream has no deadline. Raises Lost."""
        connection = await self._room(self._loop.time() + within)
        stream = Stream()
        connection.start(stream, self._block(path, inf, metadata), None)
        return stream

    def _block(self, path: str, within: float, metadata: Metadata) -> bytes:
        known = self._blocks.get((path, within, metadata))
        if known is None:
            fields = [("content-type", "application/grpc"), ("te", "trailers"), ("user-agent", "noxu")]
            if within < inf:
                fields.append(("grpc-timeout", _timeout(within)))
            scheme = "http" if self._tls is None else "https"
            known = request_block(scheme, self._authority, path, fields, metadata)
            if len(self._blocks) >= MAX_BLOCKS:
                self._blocks.clear()
            self._blocks[path, within, metadata] = known
        return known

    async def _room(self, deadline: float) -> _Connection:
        """A connection on which a call can start. Raises Lost."""
        while True:
            if self._closed:
                raise Lost("the connection was closed", sent=False)
            connection = self._current
            if connection is not None and connection.http2.has_room():
                return connection
            if connection is not None and not connection.http2.going_away:
                future: asyncio.Future[None] = self._loop.create_future()
                connection.waiting.append(future)
                await self._until(future, deadline)
                continue
            if self._connecting is None:
                if self._loop.time() < self._retry_at:
                    raise Lost(self._failure, sent=False)
                self._connecting = self._loop.create_task(self._connect())
            await self._until(self._connecting, deadline)
            if self._current is None and not self._closed:
                raise Lost(self._failure or "the connection was closed", sent=False)

    async def _until(self, future: asyncio.Future[None], deadline: float) -> None:
        done, _ = await asyncio.wait([future], timeout=max(deadline - self._loop.time(), 0))
        if not done:
            raise Lost("Deadline Exceeded", sent=False)

    async def _connect(self) -> None:
        """Make a connection the current one, or remember why there is none."""
        connection = _Connection(self)
        options = {} if self._tls is None else {"ssl": self._tls, "server_hostname": self._host}
        try:
            async with asyncio.timeout(CONNECT_WITHIN):
                await self._loop.create_connection(lambda: connection, self._host, self._port, **options)  # type: ignore[call-overload]
                self._connections.add(connection)
                await connection.ready
        except (OSError, TimeoutError, Lost) as error:
            text = "no answer" if isinstance(error, TimeoutError) and not str(error) else reason(error)
            self._failure = f"cannot connect to {self._authority}: {text}"
            self._retry_at = self._loop.time() + self._delay * uniform(0.5, 1)  # noqa: S311 - not a secret
            self._delay = min(2 * self._delay, LAST_DELAY)
            connection.lose(text)
        except BaseException:
            connection.lose("the connection was closed")
            raise
        else:
            self._current, self._delay, self._failure = connection, FIRST_DELAY, ""
        finally:
            self._connecting = None

    def ended(self, connection: _Connection) -> None:
        """A connection takes no calls any more."""
        if self._current is connection:
            self._current = None
        if connection.closed.done():
            self._connections.discard(connection)

    def retire(self) -> None:
        """Take no further calls. Those that are open end as they would."""
        self._closed = True
        if self._connecting is not None:
            self._connecting.cancel()
        for connection in list(self._connections):
            connection.retire()

    def is_gone(self) -> bool:
        """Whether nothing is left of a channel that was retired."""
        return not self._connections and self._connecting is None

    async def close(self) -> None:
        """End all calls."""
        self._closed = True
        if self._connecting is not None:
            self._connecting.cancel()
            await asyncio.wait([self._connecting])
        for connection in list(self._connections):
            connection.close()
        await asyncio.gather(*(connection.gone() for connection in list(self._connections)))


def _framed(message: bytes) -> bytes:
    return b"\0" + len(message).to_bytes(4, "big") + message


def _timeout(seconds: float) -> str:
    """As the field grpc-timeout: at most eight digits and a unit."""
    return f"{max(ceil(seconds * 1000), 1)}m" if seconds < 10_000 else f"{min(ceil(seconds), 99_999_999)}S"


def _failure(code: bytes, message: bytes) -> Refused | Lost:
    """Of a status of gRPC, whose message is percent-encoded."""
    number = int(code) if code.isdigit() else 2
    name = CODES[number] if number < len(CODES) else "UNKNOWN"
    text = unquote(message.decode("utf-8", "replace"), errors="replace") or name
    return Lost(text, sent=True) if name in _LOST else Refused(name, text)


def _http_failure(status: bytes | None) -> Refused | Lost:
    """Of a response without gRPC's status."""
    number = (status or b"").decode("ascii", "replace")
    if number in ("", "200"):
        return Lost("the answer has no status", sent=True)
    name = _OF_HTTP.get(number, "UNKNOWN")
    text = f"the answer is not gRPC, and has the HTTP status {number}"
    return Lost(text, sent=True) if name in _LOST else Refused(name, text)
