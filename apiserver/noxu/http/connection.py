"""A client's connection: HTTP/1.1 from the socket to `Received`, and the bytes of answers back.

aiohttp's exported parser (`aiohttp.http.HttpRequestParser`, llhttp) reads heads and bodies; `Boundaries` gives it a connection's
bytes in pieces that end where a head ends. Requests are answered one after the other in the task of the connection. An answer
is written where it is made, with the methods of `outgoing`: `sending`, `watch_requests`, `websocket`.

What aiohttp's own server (`web_protocol.RequestHandler`) does is done here, or left out for a reason:

    a head or chunks that are malformed       400 in plain text, as Go; what follows is not read
    `Transfer-Encoding` in HTTP/1.0, …        `request.head_error`, before any handler
    a body that the handler has not read      the rest is read for `lingering` seconds, then the connection closes
    a body that is not read fast enough       the parser and the socket pause (`pause_reading`)
    requests that wait for one another        `pipelined` at most: the rest of the bytes is held, and the socket pauses
    an upgrade                                what follows is kept; it is HTTP again if the upgrade is declined
    a client that is gone                     the task is cancelled; so is a handler that waits
    a handler with a bug                      `app` answers 500; one in sending is logged, and answered if nothing was sent
    decompression of bodies                   none, like upstream: a small body could become a huge one

aiohttp limits each line of a head, but neither their sum nor the time that they take. Upstream's server, which is Go's,
does, and so do we (`limits`). A head that arrives in one piece costs nothing: a timer is set only for an incomplete one.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Any, Final

from aiohttp.http import HttpProcessingError, HttpRequestParser, RawRequestMessage
from aiohttp.streams import EMPTY_PAYLOAD, StreamReader

from noxu.api.errors import ApiError
from noxu.api.names import is_loopback
from noxu.containment import Contained
from noxu.expressions import expression
from noxu.http.clients import Clients
from noxu.http.outgoing import Outgoing, plain
from noxu.http.request import Received, answer_to_malformed, malformed_body
from noxu.registry.turns import CLIENT

_TOO_LARGE: Final = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Type: text/plain; charset=utf-8\r\n"
    b"Connection: close\r\n\r\n431 Request Header Fields Too Large"
)
_TROUBLE: Final = "500 Internal Server Error\n\nServer got itself in trouble"

Handle = Callable[[Received], Awaitable[None]]
"""Answers a request. Raises ConnectionError if the client is gone."""


class Connection(Outgoing):
    """See the module. `closes`: no further request is read."""

    __slots__ = (
        "__weakref__", "_answering", "_boundaries", "_content", "_frames_at_once", "_framing", "_handle", "_head_bytes", "_head_timer", "_held",
        "_http", "_idle_since", "_idle_timer", "_is_body_full", "_is_counted", "_is_paused", "_is_plain", "_is_queue_full",
        "_is_upgraded", "_kept_target", "_pipelined", "_queue", "_receive_frames", "_tail", "_waiter", "closes", "peername",
        "task", "was_used",
    )  # fmt: skip

    def __init__(self, handle: Handle, loop: asyncio.AbstractEventLoop, clients: Clients) -> None:
        super().__init__(loop, clients)
        limits = clients.limits
        self.task: asyncio.Task[None] | None = None
        self.peername: Any = None  # also for the audit log, when the client is gone
        self.closes = False
        self.was_used = False
        self._handle = handle
        self._http: HttpRequestParser | None = HttpRequestParser(
            self,
            loop,
            limits.read_ahead,
            max_line_size=2 * limits.head,  # the sum of all lines is what is limited
            max_field_size=2 * limits.head,
            max_headers=limits.headers,
            auto_decompress=False,
        )
        """None: nothing is read any more. The client is gone, or what follows is no HTTP."""
        self._boundaries = Boundaries()
        self._is_plain = True  # what arrives next begins a head, and may be parsed at once
        self._queue: deque[Received | str] = deque()  # what has arrived; a text is the parser's, about a malformed head
        self._waiter: asyncio.Future[None] | None = None  # for the next request
        self._answering: Received | None = None
        self._held = b""  # what the parser does not get yet
        self._head_bytes = 0  # of a head that is not complete yet
        self._content = self._framing = 0  # bytes of the last body, and of its framing since the last of them
        self._head_timer: asyncio.TimerHandle | None = None
        self._kept_target, self._pipelined = limits.kept_target, limits.pipelined
        self._idle_since = 0.0
        self._idle_timer: asyncio.TimerHandle | None = None
        self._is_body_full = self._is_queue_full = False  # why the socket is paused, see `_update_reading`
        self._is_paused = False
        self._is_counted = False  # among the incoming bytes of all connections
        self._is_upgraded = False  # the last request asks for an upgrade, or the connection is no longer HTTP
        self._tail = b""  # what has followed that request
        self._receive_frames: Callable[[bytes], None] | None = None  # of a WebSocket
        self._frames_at_once = 0  # bytes

    # -- from the first byte to the last

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.peername = transport.get_extra_info("peername")
        self._start_head_timer()
        self._clients.connections.opened(self)
        self.task = self.loop.create_task(self._serve())

    def connection_lost(self, exc: BaseException | None) -> None:
        super().connection_lost(exc)
        self._clients.connections.lost(self)
        self._clients.incoming.end(self)
        self._end_head()
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        if self.task is not None:
            self.task.cancel()
        # These refer to this connection, which needs no collection of garbage therefore.
        self._http, self._boundaries, self._receive_frames = None, Boundaries(), None
        self._is_plain = False
        self._queue.clear()

    def close(self) -> None:
        """Read no further request; close when the current one is answered."""
        self.closes, self._is_plain = True, False
        self._wake()

    def force_close(self) -> None:
        """Close when what has been written is sent."""
        self.close()
        if self.transport is not None:
            self.transport.close()

    async def shutdown(self, seconds: float) -> None:
        """Close the connection when its request is answered, after `seconds` at the latest.

        At once if it is idle, or if the body of its request has not arrived: the client may never send it.
        """
        task = self.task
        if self.is_idle or (self._answering is not None and not self._answering.body.is_eof()):
            self.force_close()
        self.close()
        if task is not None:
            await asyncio.wait([task], timeout=seconds)
            task.cancel()
        self.force_close()

    @property
    def target(self) -> str:
        """That of the request that is being answered; "" if there is none."""
        return "" if self._answering is None else self._answering.raw_path

    @property
    def is_idle(self) -> bool:
        """Whether no request is being handled or waits to be handled."""
        return self._waiter is not None and not self._waiter.done()

    # -- requests

    async def _serve(self) -> None:
        """Answer the requests of this connection until it closes. It is cancelled when the client is gone."""
        try:
            with contextlib.suppress(ConnectionError), Contained("a connection", passing=ConnectionError) as contained:
                await self._answer_requests(self._client())
            if contained.error is not None and not (self.has_answered or self.is_lost):
                self.answer(plain(500, _TROUBLE))
        finally:
            self._answering = self.task = None  # a cycle
            self.force_close()

    def _client(self) -> Hashable:
        """Who shares turns in the threads with whom: an address, or on this machine the connection."""
        address = self.peername[0] if isinstance(self.peername, tuple) else ""
        return object() if not address or is_loopback(f"[{address}]" if ":" in address else address) else address

    async def _answer_requests(self, client: Hashable) -> None:
        """Return when the connection may be closed. Raises ConnectionError if the client is gone."""
        while True:
            if not self._queue:
                if not self.closes:
                    self._waiter = self.loop.create_future()
                    await self._waiter
                    self._waiter = None
                if not self._queue:  # `close` has ended the wait
                    return
            request = self._queue.popleft()
            if self._is_queue_full and len(self._queue) <= self._pipelined // 2:
                self._is_queue_full = False
                self.data_received(b"")  # goes on with what is held
                self._update_reading()
            if isinstance(request, str):
                self.answer(plain(*answer_to_malformed(request)))
                return
            self._answering, self.has_answered = request, False
            CLIENT.set(client)  # until its user is authenticated: the context of this task still has the one before
            await self._handle(request)
            self._answering = None
            if request.body is not EMPTY_PAYLOAD and not request.body.is_eof():
                await self._linger(request.body)
            if self.closes or not request.keep_alive:
                return
            if self._is_upgraded and not self._queue:
                self._decline_upgrade()
            target = len(request.raw_path)
            del request  # which may be large, while the connection is idle
            self._idle_since = self.loop.time()
            if self._is_counted or self._head_bytes or target > self._kept_target or self._idle_timer is None:
                self._begin_idling(target)

    def answer(self, data: bytes) -> Awaitable[None] | None:
        """Write the beginning of an answer, or all of it. None if the kernel has taken it, else what to await.

        Raises ConnectionError if the client is gone, and so does the awaitable.
        """
        transport = self.transport
        if transport is None or transport.is_closing():
            raise ConnectionResetError("the client is gone")
        self.has_answered = True
        transport.write(data)
        return self.drain() if self.writing_paused else None

    async def _linger(self, body: StreamReader) -> None:
        """Read the rest of a refused body for a while, so that the client receives the answer; then close."""
        with contextlib.suppress(TimeoutError, ApiError):  # ApiError: the rest is malformed
            async with asyncio.timeout(self.limits.lingering):
                while not self.is_lost and not body.is_eof():
                    await body.readany()
        if not body.is_eof():
            self.close()

    def _begin_idling(self, target: int) -> None:
        """A request with a target of so many bytes is answered. The parser keeps the target until the next one."""
        if self._idle_timer is None:
            self._idle_timer = self.loop.call_later(self.limits.idle_deadline, self._idle_deadline_passed)
        if self._queue:
            return
        if self._head_bytes:  # of a head that has begun meanwhile
            if self._head_timer is None:
                self._start_head_timer()
            return
        self._uncount()
        if target > self._kept_target:
            self._count(target)

    def _idle_deadline_passed(self) -> None:
        """Close an idle connection. The timer is set for all requests of a while, and again when it has come too early."""
        self._idle_timer = None
        until = self._idle_since + self.limits.idle_deadline
        if self.loop.time() < until:
            self._idle_timer = self.loop.call_at(until, self._idle_deadline_passed)
        elif self.is_idle:
            self.force_close()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # -- receiving

    def data_received(self, data: bytes) -> None:
        """Bytes of the client; b"" when reading goes on after a pause."""
        if self._is_plain and data.startswith(KNOWN_BEGINNINGS) and _is_whole(data):
            self._receive_whole(data)  # as most reads
        elif self._receive_frames is not None:
            if len(data) > self._frames_at_once:
                self.force_close()  # thousands of frames at once would hold the event loop
            else:
                self._receive_frames(data)
        elif self._http is None or self.closes:
            pass
        elif self._is_upgraded:
            self._keep_tail(data)
        elif self._head_bytes and self._head_bytes + _head_in(data) > self.limits.head + self.limits.slack:
            self._refuse_head()
        else:
            self._receive_pieces(data)
            self._is_plain = self._boundaries.is_at_start and not self._is_waiting()

    def _is_waiting(self) -> bool:
        """Whether a head that arrives now would not be the next thing to parse, or would not be parsed at all."""
        is_held = self._is_queue_full or bool(self._held) or bool(self._head_bytes)
        return is_held or self._is_upgraded or self.closes or self._http is None

    def _receive_whole(self, data: bytes) -> None:
        """Parse a whole request. Nothing is to be done about boundaries when it is complete: the next byte begins a head again.

        A request whose handler answers a constant takes 10.1 µs of processor time instead of 11.3; a create takes 7 % less, an
        update 5 % (`benchmarks.http`).
        """
        messages = self._feed(data)
        head, body = messages[0] if len(messages) == 1 else (None, EMPTY_PAYLOAD)
        if head is not None and (body is EMPTY_PAYLOAD or body.is_eof()) and not self._is_upgraded:
            self._queue.append(
                Received(self, head.method, head.path, head.version, head.headers, body, not head.should_close)
            )
            self._has_received()
            if len(self._queue) > 1:
                self._count(len(data))  # it waits for the one before
        elif self._http is not None:
            self._is_plain = False
            self._boundaries.whole_head()
            self._take(messages, len(data))

    def _receive_pieces(self, data: bytes) -> None:
        """Give the parser one piece after the other, as long as it can go on; hold the rest."""
        if not data:
            self._parse(data)  # it may have kept something itself
        boundaries = self._boundaries
        boundaries.begin_read()
        if self._held:
            data, self._held = self._held + data, b""
            self._head_bytes = 0 if boundaries.is_at_start else self._head_bytes
        at = 0
        while at < len(data) and not (self.closes or self._is_upgraded or self._is_queue_full):
            piece, at = boundaries.take(data, at)
            if not piece:
                break
            self._parse(piece)
            if self._http is None:
                return
        if at < len(data) and not self.closes:
            (self._keep_tail if self._is_upgraded else self._hold)(data[at:])

    def _parse(self, data: bytes) -> None:
        """Parse a piece that has the end of at most one head, or bytes of one body."""
        messages = self._feed(data)
        if self._http is not None:
            self._take(messages, len(data))

    def _feed(self, data: bytes) -> Sequence[tuple[RawRequestMessage, StreamReader]]:
        """What the parser makes of bytes; nothing if they are malformed, or nothing is read any more."""
        if self._http is None:
            return ()
        try:
            messages, self._is_upgraded, behind = self._http.feed_data(data)
        except HttpProcessingError as error:
            self._refuse(error.message)
            return ()
        if behind:
            self._keep_tail(behind)
        return messages

    def _take(self, messages: Sequence[tuple[RawRequestMessage, StreamReader]], size: int) -> None:
        """Go on after a piece of `size` bytes, which has completed these heads."""
        boundaries = self._boundaries
        for head, body in messages:
            method = boundaries.message(head, body)
            self._queue.append(
                Received(self, method, head.path, head.version, head.headers, body, not head.should_close)
            )
        if messages:
            self._content = self._framing = 0
            self._has_received()
        elif boundaries.is_of_head:
            self._head_bytes += size
            if not self._is_body_full:
                boundaries.go_on()
            self._await_head()
        else:
            self._check_framing(size)
        if self._head_bytes or len(self._queue) > 1 or not boundaries.body.is_eof():
            self._is_counted = True  # its rest has not arrived, or it waits for the one before
            self._clients.incoming.add(self, size)
        elif not self._tail:
            self._uncount()

    def _has_received(self) -> None:
        """A head is complete, and its request is the last one in the queue."""
        if self._head_timer is not None or self._head_bytes:
            self._end_head()
        self.was_used = True
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)
        if len(self._queue) >= self._pipelined:
            self._is_queue_full, self._is_plain = True, False
            self._update_reading()

    def _count(self, size: int) -> None:
        """So many more bytes are those of requests that have not arrived, or that wait."""
        self._is_counted = True
        self._clients.incoming.add(self, size)

    def _uncount(self) -> None:
        if self._is_counted:
            self._is_counted = False
            self._clients.incoming.end(self)

    def _hold(self, data: bytes) -> None:
        """Keep bytes until more of them have arrived, or until the parser has read what is before them."""
        self._held = data
        if self._is_queue_full:
            self._count(len(data))
        elif self._boundaries.is_at_start:  # a method that is cut off
            self._head_bytes = len(data)
            self._await_head()

    def _check_framing(self, size: int) -> None:
        """Disconnect a client that sends a body's framing without end, which the parser keeps. `size` bytes have arrived."""
        content = self._boundaries.body.total_bytes
        if content > self._content or self._boundaries.body.is_eof():
            self._content, self._framing = content, 0
            return
        self._framing += size
        if self._framing > self.limits.trailer:
            self.force_close()

    def _await_head(self) -> None:
        """The rest of a head has to arrive before its deadline. One that follows a request has it when that is answered."""
        if self.is_idle and self._head_timer is None:
            self._start_head_timer()

    def _start_head_timer(self) -> None:
        self._head_timer = self.loop.call_later(self.limits.head_deadline, self._head_deadline_passed)

    def _end_head(self) -> None:
        self._head_bytes = 0
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _head_deadline_passed(self) -> None:
        self._head_timer = None
        if self.is_idle:
            self.force_close()

    def _refuse_head(self) -> None:
        if self.is_idle and self.transport is not None:
            self.transport.write(_TOO_LARGE)
        self.force_close()

    def _refuse(self, message: str) -> None:
        """Answer malformed HTTP when its turn comes, and read nothing that follows.

        Malformed chunks are refused in place of their request, unless its handler reads them already: then it gets an error.
        """
        body = self._boundaries.body
        self._http, self._boundaries = None, Boundaries()
        self._is_plain = False
        self._uncount()
        if not body.is_eof():
            last = self._queue[-1] if self._queue else None
            if not isinstance(last, Received) or last.body is not body:
                body.set_exception(malformed_body())
                self.close()
                return
            self._queue.pop()
        self._queue.append(message)
        self._wake()

    # -- pausing

    def pause_reading(self) -> None:
        """A body arrives faster than it is read. `StreamReader` calls it."""
        if self._http is not None and not self._is_body_full:
            self._is_body_full = True
            self._http.pause_reading()
            self._update_reading()

    def resume_reading(self, resume_parser: bool = True) -> None:
        """A body has been read, or is complete: then the parser goes on by itself. `StreamReader` calls it for every body."""
        if self._is_body_full:
            self._is_body_full = False
            if resume_parser:
                self.data_received(b"")
            self._update_reading()

    def _update_reading(self) -> None:
        """Read from the socket unless something is full: a body, the queue, or what is not read yet after an upgrade.

        A WebSocket whose client does not read is not read either: its pings are answered.
        """
        is_full = self._is_body_full or self._is_queue_full or len(self._tail) >= self.limits.read_ahead
        is_full = is_full or (self._receive_frames is not None and self.writing_paused)
        if is_full == self._is_paused or self.transport is None or self.transport.is_closing():
            return
        self._is_paused = is_full
        if is_full:
            self.transport.pause_reading()
        else:
            self.transport.resume_reading()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._update_reading()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._update_reading()

    # -- upgrades

    def upgrade(self, receive: Callable[[bytes], None], at_once: int = 0) -> None:
        """The request has been answered with 101: from now on the function gets what the client sends.

        `at_once`: the bytes that it accepts; 0: those of a WebSocket.
        """
        self._frames_at_once = at_once or self.limits.frames
        self.closes, self._is_plain = True, False  # when the handler returns: it will never be HTTP again
        self._receive_frames = receive
        behind = self._take_tail()
        if behind:
            self.data_received(behind)

    def _decline_upgrade(self) -> None:
        """The request has been answered like any other: what follows it is HTTP."""
        self._is_upgraded = False
        if self._http is not None:
            self._http.set_upgraded(False)
            self.data_received(self._take_tail())

    def _keep_tail(self, data: bytes) -> None:
        """Keep what follows a request for an upgrade until it is answered."""
        self._is_plain = False
        self._tail += data
        self._count(len(data))
        self._update_reading()

    def _take_tail(self) -> bytes:
        tail, self._tail = self._tail, b""
        self._uncount()
        self._update_reading()
        return tail


_LENGTH: Final = expression(rb"\r\n[Cc]ontent-[Ll]ength: ?([0-9]{1,9})\r\n")


def _is_whole(data: bytes) -> bool:
    """Whether a head ends with these bytes, or its body does, whose length it says. The parser judges both."""
    end = data.find(END_OF_HEAD) + len(END_OF_HEAD)
    if end == len(data):
        return True
    length = _LENGTH.search(data, 0, end)
    return length is not None and end + int(length[1]) == len(data)


def _head_in(data: bytes) -> int:
    """The number of bytes of the data that belong to the current head."""
    end = data.find(END_OF_HEAD)
    return len(data) if end < 0 else end


# -- where heads begin --------------------------------------------------------------------------------------------------


_KNOWN: Final = frozenset(
    {b"GET", b"PUT", b"POST", b"PATCH", b"DELETE", b"HEAD", b"OPTIONS", b"CONNECT", b"TRACE", b"PRI"}
)
KNOWN_BEGINNINGS: Final = tuple(method + b" " for method in sorted(_KNOWN))
"""Of heads that need no replacement: for `bytes.startswith`."""
_TOKEN: Final = expression(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")  # RFC 9110
_STAND_IN: Final = b"TRACE"
MAX_METHOD: Final = 8192
END_OF_HEAD: Final = b"\r\n\r\n"
_MAX_CHUNKED: Final = 100
"""Pieces of one read into which a chunked body is cut: each may be the last, and a client chooses how many there are."""


def _replaced(data: bytes) -> tuple[str, bytes]:
    """Replace an unknown method at the beginning of a head: (the method or "", the data for the parser)."""
    end = data.find(b" ", 0, MAX_METHOD + 1)
    method = data[: max(end, 0)]
    if method in _KNOWN or not _TOKEN.fullmatch(method):
        return "", data
    return method.decode("ascii"), _STAND_IN + data[end:]


def _is_cut(data: bytes) -> bool:
    """Whether a head may begin with these bytes, which do not have all of its method."""
    return len(data) <= MAX_METHOD and _TOKEN.fullmatch(data) is not None


class Boundaries:
    """Where the heads in the bytes of a connection begin and end. `method` is the one that was replaced in the last head.

    Go accepts any token as a method, and upstream answers an unknown one like OPTIONS: 405 of the resource. aiohttp's parser
    refuses it as malformed. So before the parser reads a head whose method is unknown, the method is replaced by one that has no
    meaning of its own, and the parsed message gets it back:

        FOO /version HTTP/1.1  →  TRACE /version HTTP/1.1  →  a message with the method FOO

    So the parser gets the bytes of a connection in pieces that end where a head ends (`Boundaries`), however they have arrived:
    a method may follow a body in the same read, or be cut off by it. Where bodies end is for the parser to say, or a Content-Length
    that it has read. A method of more than MAX_METHOD
    bytes is refused by the parser.
    """

    __slots__ = ("_cuts", "_in_head", "_is_chunked", "_is_complete", "_last", "_rest", "body", "is_of_head", "method")

    def __init__(self) -> None:
        self.method = ""
        self.body: StreamReader = EMPTY_PAYLOAD
        """That of the last request whose head is complete."""
        self.is_of_head = False
        """Whether the last piece belongs to a head, or to the line ends before one."""
        self._in_head = False
        self._is_complete = False  # the head in which we are, whose message the parser has not made yet
        self._last = b""  # the last bytes that were taken: an end may begin in them
        self._rest = 0  # bytes of the body, if its length is known
        self._is_chunked = False
        self._cuts = 0

    @property
    def is_at_start(self) -> bool:
        """Whether the next byte begins a head."""
        return not self._in_head and not self._rest and self.body.is_eof()

    def take(self, data: bytes, at: int) -> tuple[bytes, int]:
        """(The next piece for the parser, where the one after it begins) of data from a position on.

        No piece: the parser, or the client, has to go on first.
        """
        self.is_of_head = self.body.is_eof() and not self._rest
        if self._rest:
            piece = data[at : at + self._rest]
            self._rest -= len(piece)
            return piece, at + len(piece)
        if self._is_complete:
            return b"", at
        if not self.body.is_eof():
            return self._up_to_end(data, at) if self._is_chunked else (b"", at)
        if self._in_head:
            return self._head(data, at)
        if data[at] in b"\r\n":  # which the parser ignores before a head
            end = at + len(data[at:]) - len(data[at:].lstrip(b"\r\n"))
            return data[at:end], end
        if _is_cut(data[at : at + MAX_METHOD + 1]):
            return b"", at
        self._in_head, self._last = True, b""  # an end must not begin in the body before
        piece, end = self._head(data, at)
        self.method, piece = _replaced(piece)
        return piece, end

    def _head(self, data: bytes, at: int) -> tuple[bytes, int]:
        piece, end = self._up_to_end(data, at)
        self._is_complete = self._last == END_OF_HEAD
        return piece, end

    def _up_to_end(self, data: bytes, at: int) -> tuple[bytes, int]:
        """The piece up to the next empty line, which may have begun in the last one."""
        begun = self._last[-3:]
        across = (begun + data[at : at + 3]).find(END_OF_HEAD)
        head_end = data.find(END_OF_HEAD, at) if across < 0 else at + across - len(begun)
        is_found = max(across, head_end) >= 0 and self._cuts <= _MAX_CHUNKED
        piece = data[at : head_end + len(END_OF_HEAD)] if is_found else data[at:]
        self._cuts += self._is_chunked
        self._last = (
            (begun + piece)[-len(END_OF_HEAD) :] if len(piece) < len(END_OF_HEAD) else piece[-len(END_OF_HEAD) :]
        )
        return piece, at + len(piece)

    def begin_read(self) -> None:
        self._cuts = 0

    def whole_head(self) -> None:
        """The next piece is a whole head, which was not taken."""
        self._in_head = self._is_complete = self.is_of_head = True

    def go_on(self) -> None:
        """The parser is not paused, but has made no message: the head goes on, as the preface of HTTP/2 does."""
        self._is_complete = False

    def message(self, head: RawRequestMessage, body: StreamReader) -> str:
        """The parser has made a message: the method that it really has."""
        self._in_head = self._is_complete = False
        self.body, self._rest, self._is_chunked, self._last = body, 0, False, b""
        if body is not EMPTY_PAYLOAD:
            self._is_chunked = head.chunked
            self._rest = 0 if head.chunked else int(head.headers.get("Content-Length", 0)) - body.total_bytes
        method, self.method = self.method, ""  # that of the next head is its own
        return method or head.method
