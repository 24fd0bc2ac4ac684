"""HTTP/2 of a client (RFC 9113) without I/O: bytes in, events out, and bytes to send.

It has what calls of gRPC need: requests on streams, both windows of flow control in both directions, the limits of the peer.
There is no push, no priority, and no upgrade from HTTP/1.1: the peer is known to speak HTTP/2.

**Receiving.** The window of the connection is given back as data arrives, that of a stream when the reader has `taken` the
data: a reader that stops holds at most WINDOW bytes, and does not stop the others. Either is given back when half is used.
**Sending.** Data that the windows of the peer, or a full transport (`blocked`), do not admit waits here, and streams that
wait take turns by frames.
**Violations.** What a peer must not send ends the connection: `receive` returns the event Terminated as the last one, and
what is to be sent names the error. The memory that a peer can occupy is bounded: by windows, MAX_FRAME, MAX_BLOCK and
MAX_UNSENT. A violation of one stream ends the connection, too, which the standard permits.

A call whose data fits, and its answer (`→` is sent):

    → 00 00 2a  01  04  00 00 00 01   HEADERS, END_HEADERS, stream 1: 42 bytes of a block follow
    → 00 00 07  00  01  00 00 00 01   DATA, END_STREAM: 7 bytes follow
      00 00 0e  01  04  00 00 00 01   HEADERS: 14 bytes     event Headers(1, {b":status": b"200", …}, False)
      00 00 09  00  00  00 00 00 01   DATA: 9 bytes         event Data(1, b"…", False)
      00 00 10  01  05  00 00 00 01   HEADERS, END_STREAM   event Headers(1, {b"grpc-status": b"0", …}, True)

`receive` may get these bytes in any pieces.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct, iter_unpack
from typing import Final, NamedTuple, TypeAlias

from noxu_storage.http2_headers import BlockDecoder, DecodingError

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
WINDOW: Final = 16 * 1024 * 1024  # bytes of a stream, and of the connection, that the peer may send
FIRST_WINDOW: Final = 65_535  # the window of the connection, and of streams unless settings say otherwise
MAX_WINDOW: Final = 2**31 - 1
MAX_FRAME: Final = 16_384  # bytes that a frame of the peer may have, and one for it unless its settings say more
MAX_BLOCK: Final = 64 * 1024  # bytes of a block of header fields, and nine for each of its frames
MAX_UNSENT: Final = 1_000  # frames that wait until the transport takes them, if the peer makes more of them
LAST_STREAM: Final = 2**31 - 1

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
END_STREAM, ACK, END_HEADERS, PADDED, WITH_PRIORITY = 0x01, 0x01, 0x04, 0x08, 0x20
NO_ERROR, PROTOCOL_ERROR, INTERNAL_ERROR, FLOW_CONTROL_ERROR = 0x0, 0x1, 0x2, 0x3
FRAME_SIZE_ERROR, REFUSED_STREAM, CANCEL, COMPRESSION_ERROR, ENHANCE_YOUR_CALM = 0x6, 0x7, 0x8, 0x9, 0xB
HEADER_TABLE_SIZE, ENABLE_PUSH, MAX_CONCURRENT_STREAMS, INITIAL_WINDOW_SIZE, MAX_FRAME_SIZE = range(1, 6)
MAX_HEADER_LIST_SIZE: Final = 6

_HEAD: Final = Struct(">IBI")  # length (three bytes) and type, flags, stream
_SETTING: Final = Struct(">HI")
_NUMBER: Final = Struct(">I")
_TWO_NUMBERS: Final = Struct(">II")


class Headers(NamedTuple):
    """The header fields of a response, or its trailers. `ended`: nothing more follows on the stream."""

    stream: int
    fields: Mapping[bytes, bytes]
    ended: bool


class Data(NamedTuple):
    stream: int
    data: bytes
    ended: bool


class Reset(NamedTuple):
    """The peer has ended a stream. REFUSED_STREAM: it has done nothing with the request."""

    stream: int
    code: int


class Ready(NamedTuple):
    """The first settings of the peer have arrived."""


class GoingAway(NamedTuple):
    """The peer takes no further streams. Those that it has not seen were reset with REFUSED_STREAM by events before."""

    code: int
    text: str


class Terminated(NamedTuple):
    """The peer has violated the protocol: the connection has to be closed."""

    code: int
    text: str


Event: TypeAlias = Headers | Data | Reset | Ready | GoingAway | Terminated


class _Violation(Exception):
    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class _Stream:
    __slots__ = ("allowed", "ends", "has_headers", "queued", "sent", "taken", "window")

    def __init__(self, window: int) -> None:
        self.window = window  # bytes that the peer admits
        self.allowed = WINDOW  # bytes that the peer may send
        self.taken = 0  # bytes that the reader has taken and the peer does not know of
        self.queued = b""  # data that is not sent; the first `sent` bytes of it are
        self.sent = 0
        self.ends = False  # with the data that is queued, or was sent
        self.has_headers = False


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return _HEAD.pack(len(payload) << 8 | kind, flags, stream) + payload


_SETTINGS_OF_CLIENT: Final = frame(
    SETTINGS,
    0,
    0,
    _SETTING.pack(HEADER_TABLE_SIZE, 0)  # blocks do not depend on earlier ones
    + _SETTING.pack(ENABLE_PUSH, 0)
    + _SETTING.pack(INITIAL_WINDOW_SIZE, WINDOW)
    + _SETTING.pack(MAX_HEADER_LIST_SIZE, MAX_BLOCK),
)
_GREETING: Final = PREFACE + _SETTINGS_OF_CLIENT + frame(WINDOW_UPDATE, 0, 0, _NUMBER.pack(WINDOW - FIRST_WINDOW))


class Connection:
    """One connection. After every call, `take` has what is to be sent."""

    def __init__(self) -> None:
        self.streams: dict[int, _Stream] = {}
        self.ready = False  # whether the first settings have arrived
        self.going_away = False  # no stream can be opened any more
        self.blocked = False  # the transport is full: no data is sent
        self._out: list[bytes] = [_GREETING]
        self._next = 1
        self._rest = b""  # the beginning of a frame
        self._block: tuple[int, int, list[bytes], int] | None = None  # (stream, flags, parts, bytes) of a block
        self._decoder = BlockDecoder(MAX_BLOCK)
        self._allowed = WINDOW  # bytes that the peer may send
        self._window = FIRST_WINDOW  # bytes that the peer admits
        self._stream_window = FIRST_WINDOW  # those of a new stream
        self._max_frame = MAX_FRAME
        self._max_streams = LAST_STREAM
        self._waiting: dict[int, _Stream] = {}  # with data, and a window of the stream

    # Sending.

    def take(self) -> bytes:
        """What is to be sent. It is forgotten here."""
        out, self._out = self._out, []
        return out[0] if len(out) == 1 else b"".join(out)

    def has_output(self) -> bool:
        return bool(self._out)

    def has_room(self) -> bool:
        """Whether a stream can be opened now."""
        return not self.going_away and not self.blocked and len(self.streams) < self._max_streams

    def open(self, block: bytes, data: bytes, *, ends: bool) -> int:
        """Send the header fields and the first data of a request. Returns the stream's number. `has_room` must be true."""
        number = self._next
        self._next += 2
        if self._next > LAST_STREAM:
            self.going_away = True
        stream = self.streams[number] = _Stream(self._stream_window)
        stream.ends = ends
        size = len(data)
        if size <= min(stream.window, self._window, self._max_frame) and len(block) <= MAX_FRAME and not self._waiting:
            stream.window -= size
            self._window -= size
            head = _HEAD.pack(len(block) << 8 | HEADERS, END_HEADERS, number)
            self._out.append(head + block + _HEAD.pack(size << 8, ends, number) + data)  # of type DATA, which is 0
            return number
        pieces = [block[start : start + MAX_FRAME] for start in range(0, len(block), MAX_FRAME)]
        for index, piece in enumerate(pieces):
            flags = END_HEADERS if index == len(pieces) - 1 else 0
            flags |= END_STREAM if ends and not size and not index else 0
            self._out.append(frame(CONTINUATION if index else HEADERS, flags, number, piece))
        self._queue(number, stream, data)
        return number

    def send(self, number: int, data: bytes) -> None:
        """Send data on a stream that was opened without an end. Nothing happens if it has ended meanwhile."""
        stream = self.streams.get(number)
        if stream is not None:
            self._queue(number, stream, data)

    def reset(self, number: int, code: int = CANCEL) -> None:
        """End a stream: nothing more of it is sent, and what still arrives is dropped."""
        if self.streams.pop(number, None) is not None:
            self._waiting.pop(number, None)
            self._out.append(frame(RST_STREAM, 0, number, _NUMBER.pack(code)))

    def taken(self, number: int, size: int) -> None:
        """The reader of a stream has taken some of its data."""
        stream = self.streams.get(number)
        if stream is None:
            return
        stream.taken += size
        if stream.taken >= WINDOW // 2:
            self._out.append(frame(WINDOW_UPDATE, 0, number, _NUMBER.pack(stream.taken)))
            stream.allowed += stream.taken
            stream.taken = 0

    def ping(self) -> None:
        self._out.append(frame(PING, 0, 0, b"noxu-etc"))

    def go_away(self, code: int = NO_ERROR, text: str = "") -> None:
        """Say that the connection is closed."""
        self.going_away = True
        self._out.append(frame(GOAWAY, 0, 0, _TWO_NUMBERS.pack(0, code) + text.encode()))

    def block(self) -> None:
        """The transport is full: send no data until `unblock`."""
        self.blocked = True

    def unblock(self) -> None:
        self.blocked = False
        self._send_waiting()

    def _queue(self, number: int, stream: _Stream, data: bytes) -> None:
        stream.queued, stream.sent = stream.queued[stream.sent :] + data, 0
        self._admit(number, stream)

    def _admit(self, number: int, stream: _Stream) -> None:
        """Let a stream wait for its turn if it has data and a window."""
        if stream.window > 0 and stream.sent < len(stream.queued):
            self._waiting[number] = stream
            self._send_waiting()

    def _send_waiting(self) -> None:
        """A frame of each stream in turn."""
        while self._waiting and self._window > 0 and not self.blocked:
            number = next(iter(self._waiting))
            stream = self._waiting.pop(number)
            start, total = stream.sent, len(stream.queued)
            end = min(total, start + min(stream.window, self._window, self._max_frame))
            stream.window -= end - start
            self._window -= end - start
            stream.sent = end
            self._out.append(
                frame(DATA, END_STREAM if stream.ends and end == total else 0, number, stream.queued[start:end])
            )
            if end == total:
                stream.queued, stream.sent = b"", 0
            elif stream.window > 0:
                self._waiting[number] = stream

    # Receiving.

    def receive(self, data: bytes) -> list[Event]:
        """What the peer has sent. After Terminated, nothing more may be received."""
        if self._rest:
            data = self._rest + data
        events: list[Event] = []
        at, size = 0, len(data)
        try:
            while size - at >= 9:
                first, flags, stream = _HEAD.unpack_from(data, at)
                end = at + 9 + (first >> 8)
                if first >> 8 > MAX_FRAME:
                    raise _Violation(FRAME_SIZE_ERROR, "a frame is too large")  # noqa: TRY301 - below, too
                if end > size:
                    break
                self._frame(first & 0xFF, flags, stream & LAST_STREAM, data[at + 9 : end], events)
                at = end
        except _Violation as violation:
            self.go_away(violation.code, str(violation))
            events.append(Terminated(violation.code, str(violation)))
        self._rest = data[at:]
        return events

    def _frame(self, kind: int, flags: int, number: int, payload: bytes, events: list[Event]) -> None:
        if self._block is not None and kind != CONTINUATION:
            raise _Violation(PROTOCOL_ERROR, "a block of header fields is interrupted")
        if kind == DATA:
            self._data(flags, number, payload, events)
        elif kind == HEADERS:
            self._headers(flags, number, payload, events)
        elif kind == SETTINGS:
            self._settings(flags, number, payload, events)
        elif kind in _RARE:
            _RARE[kind](self, flags, number, payload, events)
        if not self.ready:
            raise _Violation(PROTOCOL_ERROR, "the first frame has no settings")

    def _require_opened(self, number: int) -> None:
        if not number & 1 or number >= self._next:
            raise _Violation(PROTOCOL_ERROR, f"stream {number} was not opened")

    def _data(self, flags: int, number: int, payload: bytes, events: list[Event]) -> None:
        size = len(payload)
        self._allowed -= size
        if self._allowed < 0:
            raise _Violation(FLOW_CONTROL_ERROR, "the window of the connection is exceeded")
        if self._allowed <= WINDOW // 2:
            self._out.append(frame(WINDOW_UPDATE, 0, 0, _NUMBER.pack(WINDOW - self._allowed)))
            self._allowed = WINDOW
        stream = self.streams.get(number)
        if stream is None:
            self._require_opened(number)
            return  # it has ended here
        if not stream.has_headers:
            raise _Violation(PROTOCOL_ERROR, "data precedes the header fields")
        stream.allowed -= size
        if stream.allowed < 0:
            raise _Violation(FLOW_CONTROL_ERROR, "the window of a stream is exceeded")
        if flags & PADDED:
            payload = _unpadded(payload)
            self.taken(number, size - len(payload))
        events.append(Data(number, payload, bool(flags & END_STREAM)))
        if flags & END_STREAM:
            self._ended(number)

    def _headers(self, flags: int, number: int, payload: bytes, events: list[Event]) -> None:
        if number not in self.streams:
            self._require_opened(number)
        if flags & PADDED:
            payload = _unpadded(payload)
        if flags & WITH_PRIORITY:
            if len(payload) < 5:
                raise _Violation(FRAME_SIZE_ERROR, "a priority is incomplete")
            payload = payload[5:]
        if flags & END_HEADERS:
            self._fields(flags, number, payload, events)
        else:
            self._block = number, flags, [payload], len(payload) + 9

    def _continuation(self, flags: int, number: int, payload: bytes, events: list[Event]) -> None:
        if self._block is None or self._block[0] != number:
            raise _Violation(PROTOCOL_ERROR, "a continuation follows no header fields")
        _, first_flags, parts, size = self._block
        parts.append(payload)
        size += len(payload) + 9
        if size > MAX_BLOCK:
            raise _Violation(ENHANCE_YOUR_CALM, "a block of header fields is too large")
        self._block = number, first_flags, parts, size
        if flags & END_HEADERS:
            self._block = None
            self._fields(first_flags, number, b"".join(parts), events)

    def _fields(self, flags: int, number: int, block: bytes, events: list[Event]) -> None:
        try:
            fields = self._decoder.decode(block)
        except DecodingError as error:
            raise _Violation(COMPRESSION_ERROR, str(error)) from None
        stream = self.streams.get(number)
        if stream is None:
            return
        stream.has_headers = True
        events.append(Headers(number, fields, bool(flags & END_STREAM)))
        if flags & END_STREAM:
            self._ended(number)

    def _ended(self, number: int) -> None:
        """The peer has sent all of a stream."""
        stream = self.streams[number]
        if stream.ends and not stream.queued:
            del self.streams[number]
        else:
            self.reset(number, NO_ERROR)

    def _settings(self, flags: int, number: int, payload: bytes, events: list[Event]) -> None:
        if number:
            raise _Violation(PROTOCOL_ERROR, "settings are of a stream")
        if len(payload) % 6 or (flags & ACK and payload):
            raise _Violation(FRAME_SIZE_ERROR, "settings are incomplete")
        if flags & ACK:
            return
        for name, value in iter_unpack(">HI", payload):
            self._set(name, value)
        self._acknowledge(frame(SETTINGS, ACK, 0))
        if not self.ready:
            self.ready = True
            events.append(Ready())

    def _set(self, name: int, value: int) -> None:
        if name == INITIAL_WINDOW_SIZE:
            if value > MAX_WINDOW:
                raise _Violation(FLOW_CONTROL_ERROR, "a window is too large")
            change, self._stream_window = value - self._stream_window, value
            for number, stream in self.streams.items():
                self._widen(number, stream, change)
        elif name == MAX_FRAME_SIZE:
            if not MAX_FRAME <= value < 2**24:
                raise _Violation(PROTOCOL_ERROR, "a size of frames is not permitted")
            self._max_frame = value
        elif name == MAX_CONCURRENT_STREAMS:
            self._max_streams = value
        elif name == ENABLE_PUSH and value:
            raise _Violation(PROTOCOL_ERROR, "a server cannot permit pushing")

    def _widen(self, number: int, stream: _Stream, change: int) -> None:
        stream.window += change
        if stream.window > MAX_WINDOW:
            raise _Violation(FLOW_CONTROL_ERROR, "the window of a stream is too large")
        if stream.window <= 0:
            self._waiting.pop(number, None)
        else:
            self._admit(number, stream)

    def _window_update(self, flags: int, number: int, payload: bytes, events: list[Event]) -> None:
        added = _number(payload) & MAX_WINDOW
        if not added:
            raise _Violation(PROTOCOL_ERROR, "a window does not grow")
        if number:
            if (stream := self.streams.get(number)) is not None:
                self._widen(number, stream, added)
            else:
                self._require_opened(number)
            return
        self._window += added
        if self._window > MAX_WINDOW:
            raise _Violation(FLOW_CONTROL_ERROR, "the window of the connection is too large")
        self._send_waiting()

    def _rst_stream(self, flags: int, number: int, payload: bytes, events: list[Event]) -> None:
        code = _number(payload)
        self._require_opened(number)
        self._drop(number, code, events)

    def _drop(self, number: int, code: int, events: list[Event]) -> None:
        if self.streams.pop(number, None) is not None:
            self._waiting.pop(number, None)
            events.append(Reset(number, code))

    def _goaway(self, flags: int, number: int, payload: bytes, events: list[Event]) -> None:
        if number or len(payload) < 8:
            raise _Violation(PROTOCOL_ERROR if number else FRAME_SIZE_ERROR, "a GOAWAY is malformed")
        last, code = _TWO_NUMBERS.unpack_from(payload)
        self.going_away = True
        for stream in [stream for stream in self.streams if stream > last & LAST_STREAM]:
            self._drop(stream, REFUSED_STREAM, events)
        events.append(GoingAway(code, payload[8:].decode("utf-8", "replace")))

    def _ping(self, flags: int, number: int, payload: bytes, events: list[Event]) -> None:
        if number or len(payload) != 8:
            raise _Violation(PROTOCOL_ERROR if number else FRAME_SIZE_ERROR, "a PING is malformed")
        if not flags & ACK:
            self._acknowledge(frame(PING, ACK, 0, payload))

    def _acknowledge(self, answer: bytes) -> None:
        if len(self._out) >= MAX_UNSENT and self.blocked:
            raise _Violation(ENHANCE_YOUR_CALM, "answers are requested and not read")
        self._out.append(answer)

    def _priority(self, flags: int, number: int, payload: bytes, events: list[Event]) -> None:
        if not number or len(payload) != 5:
            raise _Violation(FRAME_SIZE_ERROR if number else PROTOCOL_ERROR, "a PRIORITY is malformed")

    def _push_promise(self, flags: int, number: int, payload: bytes, events: list[Event]) -> None:
        raise _Violation(PROTOCOL_ERROR, "pushing is not permitted")


_RARE: Final = {
    PRIORITY: Connection._priority,  # noqa: SLF001 - of this module
    RST_STREAM: Connection._rst_stream,  # noqa: SLF001
    PUSH_PROMISE: Connection._push_promise,  # noqa: SLF001
    PING: Connection._ping,  # noqa: SLF001
    GOAWAY: Connection._goaway,  # noqa: SLF001
    WINDOW_UPDATE: Connection._window_update,  # noqa: SLF001
    CONTINUATION: Connection._continuation,  # noqa: SLF001
}
"""Other types of frames are ignored, as the standard requires."""


def _number(payload: bytes) -> int:
    if len(payload) != 4:
        raise _Violation(FRAME_SIZE_ERROR, "a frame has another size than its type")
    found: int = _NUMBER.unpack(payload)[0]
    return found


def _unpadded(payload: bytes) -> bytes:
    """The first byte is the length of the padding at the end."""
    if not payload or payload[0] >= len(payload):
        raise _Violation(PROTOCOL_ERROR, "padding is longer than its frame")
    return payload[1 : len(payload) - payload[0]]
