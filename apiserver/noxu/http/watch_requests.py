"""Requests for watches: from the options of one to its stream of events, in chunks or over a WebSocket.

Their number is limited, and so is the memory that they take: a watch keeps its selectors and its target until it ends, which
takes up to an hour. Watches with equal selectors share them (`api.selectors`), so a selector counts once. For example, with
the selectors A and B of 20,000 requirements each:

    two watches with A        2 × the target, 1 × A (8 MB)
    one watch with B          3 × the target, A and B (16 MB)
    both with A end           1 × the target, B (8 MB)
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from aiohttp.http import HttpVersion11
from multidict import CIMultiDict

from noxu.api import errors
from noxu.api.errors import ApiError
from noxu.api.selectors import cost_of
from noxu.config import MIN_REQUEST_TIMEOUT
from noxu.go import cbor_writer
from noxu.http import auditing, negotiation, responses, watch, websocket
from noxu.http.answer import Answer
from noxu.http.connection import Connection
from noxu.http.exchange import Exchange, ListOptions
from noxu.http.metrics import WatchMetrics
from noxu.http.negotiation import Accepted
from noxu.http.request import first, is_watch
from noxu.http.sending import begin_chunks, end_chunks, head_of, headers_of
from noxu.registry.authors import WatchScope
from noxu.registry.reader import Fields, Labels, Selection
from noxu_storage.types import Revision

if TYPE_CHECKING:
    from noxu.control.faults.streams import StreamFaults

_SELECTORS: Final = ("labelSelector", "fieldSelector")
_GZIP: Final = zlib.MAX_WBITS | 16  # the form of zlib's output


class Watches:
    """The watches of one server."""

    def __init__(self, min_timeout: float = MIN_REQUEST_TIMEOUT) -> None:
        """`min_timeout` in seconds: upstream's --min-request-timeout."""
        self._min_timeout = min_timeout
        self.streams: dict[watch.Stream, Exchange] = {}
        """Those that are open, and their requests."""
        self.quota = WatchQuota()
        self.metrics = WatchMetrics()

    @property
    def open(self) -> list[Exchange]:
        """The requests of all watches."""
        return list(self.streams.values())

    def hit_by(self, faults_of: Callable[[Exchange], StreamFaults | None]) -> None:
        """Let faults hit the open watches."""
        for stream, exchange in list(self.streams.items()):
            before, faults = exchange.stream_faults, faults_of(exchange)
            ending = faults.follow(before) if faults is not None else before.end() if before is not None else "stays"
            exchange.stream_faults = faults
            stream.hit_by(faults, ending)

    def end(self) -> None:
        """End all watches immediately."""
        for stream in list(self.streams):
            stream.stop()

    async def handle(self, exchange: Exchange) -> Answer | None:
        """Stream events until the watch ends. An answer refuses it. Raises ApiError, ConnectionError."""
        request = exchange.request
        accepted = exchange.accept()
        self.quota.check(request.raw_path, [first(exchange.query, name) for name in _SELECTORS])
        options = await exchange.list_options(watch=is_watch(exchange.query))
        after = watch.start_revision(options)
        accepted = negotiation.as_stream(accepted, cbor=exchange.backend.features.cbor)
        upgrade = websocket.is_upgrade(request)
        compress = not upgrade and request.version == HttpVersion11 and _is_compressed(exchange, options)
        representation = _representation(exchange, accepted, upgrade=upgrade)
        journal = exchange.backend.persistence.journal
        scope = None if journal is None else exchange.scope()
        for name in _SELECTORS:  # long texts, perhaps, which are parsed
            exchange.query.pop(name, None)  # the exchange lives as long as the watch
        exchange.headers += [("Warning", text) for text in negotiation.warning_headers(exchange.outcome.warnings)]
        headers = headers_of(exchange, accepted.content_type)
        headers["Cache-Control"] = "no-cache, private"
        if compress:
            headers["Content-Encoding"] = "gzip"
            headers.add("Vary", "Accept-Encoding")
        refusal = websocket.refusal(request) if upgrade else None
        if refusal is not None:
            return refusal
        with self.quota.taken(request.raw_path, options.selection):
            await self._stream(
                exchange, headers, options, representation, after, scope, compress=compress, upgrade=upgrade
            )
        return None

    async def _stream(
        self,
        exchange: Exchange,
        headers: CIMultiDict[str],
        options: ListOptions,
        representation: watch.Representation,
        after: Revision,
        scope: WatchScope | None,
        *,
        compress: bool,
        upgrade: bool,
    ) -> None:
        """Answer with the events after a revision. Raises ApiError, ConnectionError."""
        connection = exchange.request.connection
        exchange.code = 101 if upgrade else 200
        if upgrade:
            headers.update(websocket.accept(exchange.request))
            connection.answer(head_of(exchange, exchange.code, headers))
            is_framed = False
            pipe: watch.Pipe = websocket.WebSocketPipe(connection)
        else:
            is_framed = await begin_chunks(exchange, headers)
            pipe = _GzipPipe(connection) if compress else (_ChunkedPipe if is_framed else _UnframedPipe)(connection)
        if exchange.events_seen is not None:
            # its type is in the view of a stream, so that recorded streams share with one another alone
            pipe = _RecordedPipe(pipe, exchange.events_seen(exchange))
        if exchange.record is not None:
            auditing.observe_start(exchange, exchange.record)
        if exchange.request.method == "HEAD":
            return
        connection.allow_unsent(watch.HIGH_WATER)
        stream = watch.Stream(exchange.backend.reader, options.selection, representation, pipe, self.metrics)
        stream.after = after  # the stream moves it on with each batch
        if exchange.stream_faults is not None:
            stream.hit_by(exchange.stream_faults)
        self.streams[stream] = exchange  # until it ends: metrics and the end of the server look here
        journal = exchange.backend.persistence.journal
        if journal is not None and scope is not None:
            journal.begin_watch(exchange.client, stream, scope)
        try:
            socket = websocket.WebSocket(connection, stream.stop) if upgrade else None
            await stream.run(options, watch.lifetime(options.timeout, self._min_timeout))
            if socket is not None:
                await socket.close()
        except (ConnectionError, asyncio.CancelledError):
            connection.abort()
            raise
        finally:
            self.streams.pop(stream, None)
            if journal is not None:
                journal.end_watch(exchange.client, stream)
            connection.allow_unsent(0)
        if not upgrade:
            await end_chunks(connection, is_framed=is_framed)


def _representation(exchange: Exchange, accepted: Accepted, *, upgrade: bool) -> watch.Representation:
    """The representation of the objects. Raises ApiError."""
    resource = exchange.resource
    is_binary = accepted.media_type in (negotiation.PROTOBUF, negotiation.CBOR)
    if accepted.convert is None and not is_binary:
        return watch.Representation(resource)
    include = exchange.include(accepted)
    make = responses.converter(resource, accepted, include, exchange.now)
    is_table = accepted.convert is not None and accepted.convert.kind == "Table"
    if not is_binary:
        make_later = responses.later_events(resource, accepted, include, exchange.now)
        if make_later is None:
            representation = watch.Reencoded(resource, make)
        else:
            key = None if is_table else ("metadata", resource, accepted.convert)
            representation = watch.Summarized(resource, make, make_later, responses.is_joined(include), key)
        if is_table and resource.is_custom:
            representation.weigh = responses.columns_of(resource).weigh  # cells may read the whole object
        return representation
    if upgrade:
        raise errors.not_acceptable((negotiation.JSON,))  # its messages are lines of text
    encode = functools.partial(responses.encode, accepted=accepted)
    if accepted.media_type == negotiation.PROTOBUF:
        return watch.InProtobuf(resource, make, encode)
    shared = (resource, accepted.convert)
    return watch.InCbor(resource, make, encode, cbor_writer.watch_event, shared)


def _is_compressed(exchange: Exchange, options: ListOptions) -> bool:
    """Whether the client of a watch that begins with all objects accepts gzip (upstream's gate WatchListCompression)."""
    is_list = bool(options.initial_events) and options.bookmarks
    accept_encoding = exchange.request.headers.get("Accept-Encoding", "")
    return is_list and exchange.backend.features.watch_list_compression and negotiation.accepts_gzip(accept_encoding)


class _UnframedPipe:
    """The client's end of a watch in HTTP/1.0: events, until the connection ends."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def framed(self, events: Sequence[bytes]) -> Sequence[bytes]:
        return events

    def write(self, pieces: Sequence[bytes]) -> int:
        return self._connection.write_pieces(pieces)

    async def drain(self) -> None:
        await self._connection.drain()


class _ChunkedPipe(_UnframedPipe):
    """The client's end of a watch in chunks. It frames the chunks itself, so several events cost one write and no task.

    The event {"type":"ADDED"} and its line end, 17 bytes, are written as b'11\\r\\n', the event, and b'\\r\\n'.
    """

    def framed(self, events: Sequence[bytes]) -> Sequence[bytes]:
        return (b"%x\r\n" % sum(map(len, events)), *events, b"\r\n")


class _GzipPipe(_ChunkedPipe):
    """The client's end of a compressed watch: what is sent at once is a member of its own (RFC 1952, 2.2), as upstream's.

    So no state is kept for a connection, and streams with the same view share what was compressed. The data of a member is
    flushed before the member ends: Go's reader, which gets data together with the end, waits for the next member first.
    """

    def framed(self, events: Sequence[bytes]) -> Sequence[bytes]:
        packer = zlib.compressobj(1, zlib.DEFLATED, _GZIP)
        data = packer.compress(b"".join(events)) + packer.flush(zlib.Z_SYNC_FLUSH)
        return super().framed((data + packer.flush(),))


class _RecordedPipe:
    """The client's end of a watch that is recorded: `seen` is called with the events before they are framed.

    What streams share are the events without their frames, so all recorded ones may.
    """

    def __init__(self, pipe: watch.Pipe, seen: Callable[[Sequence[bytes]], None]) -> None:
        self._pipe = pipe
        self._seen = seen

    def framed(self, events: Sequence[bytes]) -> Sequence[bytes]:
        return events

    def write(self, pieces: Sequence[bytes]) -> int:
        self._seen(pieces)
        # a message of a WebSocket is one event, and what is shared is joined: lines are events in JSON alone
        events = [
            line for piece in pieces for line in (piece.splitlines(keepends=True) if piece[:1] == b"{" else [piece])
        ]
        return self._pipe.write(self._pipe.framed(events))

    async def drain(self) -> None:
        await self._pipe.drain()


# -- limits ------------------------------------------------------------------------------------------------------------


MAX_WATCHES: Final = 10_000
MAX_MEMORY: Final = 64 * 1024 * 1024  # bytes
TARGET_COPIES: Final = 3  # the target, its query, and the URL that the parser makes of it
COMPARISON_BYTES: Final = 400  # of a selector at most, for each comparison that a match may take
RETRY_AFTER: Final = 1  # seconds

Selector = Labels | Fields


class WatchQuota:
    """The open watches of one server. `memory` is the sum in bytes."""

    def __init__(self, max_watches: int = MAX_WATCHES, max_memory: int = MAX_MEMORY) -> None:
        self.watches = 0
        self.memory = 0
        self._max_watches = max_watches
        self._max_memory = max_memory
        self._users: dict[int, int] = {}  # the number of watches with a selector, by its identity

    def check(self, target: str, texts: Sequence[str]) -> None:
        """Refuse a watch that will certainly be refused, before its selectors are parsed. Raises ApiError TooManyRequests."""
        if self.watches >= self._max_watches:
            raise _too_many(f"there are {self._max_watches} watches")
        added = TARGET_COPIES * len(target) + COMPARISON_BYTES * sum(map(cost_of, texts))
        if self.memory + added > self._max_memory:
            raise _too_many("the selectors of all watches together are too large")

    @contextlib.contextmanager
    def taken(self, target: str, selection: Selection) -> Iterator[None]:
        """Count a watch while it lasts. Raises ApiError TooManyRequests beyond a limit."""
        selectors = [selector for selector in (selection.labels, selection.fields) if selector is not None]
        own = TARGET_COPIES * len(target)
        added = own + sum([_memory_of(selector) for selector in selectors if id(selector) not in self._users])
        if self.watches >= self._max_watches:
            raise _too_many(f"there are {self._max_watches} watches")
        if self.memory + added > self._max_memory:
            raise _too_many("the selectors of all watches together are too large")
        self.watches += 1
        self.memory += added  # given back below, part by part: a selector with its last watch
        for selector in selectors:
            # equal selectors are one object, so they count once
            self._users[id(selector)] = self._users.get(id(selector), 0) + 1
        try:
            yield
        finally:
            self.watches -= 1
            self.memory -= own
            for selector in selectors:
                self._release(selector)

    def _release(self, selector: Selector) -> None:
        self._users[id(selector)] -= 1
        if not self._users[id(selector)]:
            del self._users[id(selector)]  # the identity may belong to another selector from now on
            self.memory -= _memory_of(selector)


def _memory_of(selector: Selector) -> int:
    return COMPARISON_BYTES * selector.cost


def _too_many(why: str) -> ApiError:
    message = f"Too many requests, please try again later: {why}"
    return ApiError(429, message, "TooManyRequests", {"retryAfterSeconds": RETRY_AFTER})
