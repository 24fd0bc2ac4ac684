"""One connection to a server of gRPC: the transport, its calls, their deadlines, and pings.

While calls are open, pings find a server that does not answer: the connection is cut after about ten seconds. What calls send
in one iteration of the event loop leaves together. See http2.py for the protocol.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from math import inf
from typing import Final, cast

from noxu_storage import http2
from noxu_storage.grpc_calls import Call, Malformed, framed
from noxu_storage.grpc_status import Lost, Refused, Unprocessed
from noxu_storage.types import reason

PING_AFTER: Final = 6.0  # seconds of silence; etcd permits a ping every five
PING_WITHIN: Final = 4.0  # seconds for anything to arrive after a ping
CLOSE_WITHIN: Final = 1.0  # seconds in which what is left is sent


class Connection(asyncio.Protocol):
    """One connection of a channel."""

    def __init__(self, ended: Callable[[Connection], None]) -> None:
        """`ended` is called when it takes no calls any more, and when the transport is closed."""
        self.http2 = http2.Connection()
        self.calls: dict[int, Call] = {}
        self.waiting: dict[asyncio.Future[None], None] = {}  # those of calls that wait for room, the first one is next
        loop = asyncio.get_running_loop()
        self.ready: asyncio.Future[None] = loop.create_future()
        self.closed: asyncio.Future[None] = loop.create_future()
        self._ended = ended
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
        self._write()

    def _write(self) -> None:
        """Send what there is, unless the peer does not read or is gone: a closed transport of uvloop refuses to be written."""
        if self._transport is None or self._transport.is_closing():
            return
        if self.http2.has_output() and not self.http2.blocked:
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
            except Malformed as malformed:
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
                call.end(Unprocessed(text) if refused else Lost(text, sent=True))
        elif isinstance(event, http2.Ready):
            if not self.ready.done():
                self.ready.set_result(None)
        elif isinstance(event, http2.Terminated):
            is_known = self.ready.done()
            self.lose(f"the server violates HTTP/2: {event.text}" if is_known else "the server does not speak HTTP/2")

    def _forget(self, number: int) -> Call | None:
        call = self.calls.pop(number, None)
        if call is not None:
            call.connection = None
        return call

    async def wait_for_room(self, deadline: float) -> None:
        """Wait until there may be room for a call. Raises Lost."""
        turn: asyncio.Future[None] = self._loop.create_future()
        self.waiting[turn] = None
        came: set[asyncio.Future[None]] = set()
        try:
            came, _ = await asyncio.wait([turn], timeout=max(deadline - self._loop.time(), 0))
        finally:
            if not came:
                self.waiting.pop(turn, None)
                if turn.done():
                    self._let_in()  # the next one takes its turn
        if not came:
            raise Lost("Deadline Exceeded", sent=False)

    def _let_in(self) -> None:
        """Let calls that wait for room look again."""
        room = self.http2.has_room() or self.http2.going_away
        while self.waiting and room:
            turn = next(iter(self.waiting))
            del self.waiting[turn]
            turn.set_result(None)
            room = self.http2.going_away  # one at a time: the next one is let in by it

    # Calls.

    def start(self, call: Call, block: bytes, message: bytes | None) -> None:
        """`message` is the only one of the call; None: others follow."""
        call.connection = self
        call.number = self.http2.open(block, b"" if message is None else framed(message), ends=message is not None)
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
        self.http2.send(number, framed(message))
        self._flush_soon()

    def taken(self, number: int, size: int) -> None:
        self.http2.taken(number, size)
        if self.http2.has_output():
            self._flush_soon()

    def cancel(self, call: Call) -> None:
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
        self._write()
        if self._transport is not None:
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
        self._ended(self)

    async def gone(self) -> None:
        """Wait until the transport is closed."""
        if self._transport is None:
            return
        await asyncio.wait([self.closed], timeout=CLOSE_WITHIN)
        if not self.closed.done():
            self._transport.abort()
            await self.closed
