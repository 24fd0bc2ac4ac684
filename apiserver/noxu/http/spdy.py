"""The server's end of SPDY/3.1, as far as streams of commands need it. No I/O: bytes in, events and bytes out.

client-go speaks it before 1.31 to run commands in pods, with moby/spdystream (SPDY Protocol, draft 3.1). A client opens
streams, each with headers; the server replies, and sends data. What a client sends on its streams, which is stdin and sizes of
terminals, is skipped without being kept.

    80 03 0001 01 00002c 00000001 00000000 00 00 …     SYN_STREAM: flags, a length, its id, no parent, priority, headers
    80 03 0002 00 000016 00000001 …                    SYN_REPLY: the id, headers
    00000001 01 000002 68 69                           DATA: the id, flags (FIN), a length, "hi"
    80 03 0006 00 000004 00000001                      PING: answered with the same

All headers of a direction are one stream of zlib with the dictionary below: a number of pairs, then names and values with their
lengths. What breaks the protocol, or is larger than a stream of commands needs, raises BrokenSpdy; then nothing more is read.
Windows are not looked at, as in spdystream: both ends send what they have.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

MAX_CONTROL: Final = 16 * 1024
"""Bytes of a control frame, and of its headers when they are decompressed."""
MAX_STREAMS: Final = 16
MAX_FRAMES: Final = 4096
"""Frames in one piece of bytes."""
MAX_DATA: Final = 16 * 1024
"""Bytes of a frame of data that is sent."""
_WORDS: Final = (
    "options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age allow "
    "authorization cache-control connection content-base content-encoding content-language content-length "
    "content-location content-md5 content-range content-type date etag expect expires from host if-match "
    "if-modified-since if-none-match if-range if-unmodified-since last-modified location max-forwards pragma "
    "proxy-authenticate proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade "
    "user-agent vary via warning www-authenticate method get status",
    "200 OK",
    "version HTTP/1.1 url public set-cookie keep-alive origin",
)
_TEXT: Final = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
    "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden"
    "404 Not Found500 Internal Server Error501 Not Implemented503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug "
    "Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,"
    "application/xml,application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age=gzip,deflate,sdch"
    "charset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)


def _sized(text: bytes) -> bytes:
    return len(text).to_bytes(4, "big") + text


def _dictionary() -> bytes:
    first, whole, last = _WORDS
    words = [*first.split(), whole, *last.split()]
    return b"".join(_sized(word.encode()) for word in words) + _TEXT.encode()


DICTIONARY: Final = _dictionary()
"""Of the compression of headers (2.6.10.1)."""

_CONTROL: Final = 0x8003  # the bit of a control frame, and the version
_FIN: Final = 1
SYN_STREAM: Final = 1
SYN_REPLY: Final = 2
RST_STREAM: Final = 3
SETTINGS: Final = 4
PING: Final = 6
GOAWAY: Final = 7
HEADERS: Final = 8
WINDOW_UPDATE: Final = 9
_SIZES: Final = {RST_STREAM: 8, PING: 4, GOAWAY: 8, WINDOW_UPDATE: 8}
"""Of the control frames whose size is known."""
_SKIPPED: Final = frozenset({RST_STREAM, SETTINGS, GOAWAY, WINDOW_UPDATE})


class BrokenSpdy(Exception):
    """The client breaks the protocol, or asks for too much."""


class StreamOpened(NamedTuple):
    """`fields` are its headers: the last one of a name."""

    id: int
    fields: dict[str, str]


class Pinged(NamedTuple):
    """It is answered with the same id."""

    id: int


class ServerSpdy:
    """One connection. It keeps an incomplete control frame and the ids of the streams."""

    def __init__(self) -> None:
        self._bytes = bytearray()  # of a frame that has not arrived completely
        self._skip = 0  # bytes of data that are still to come
        self._inflate = zlib.decompressobj(zdict=DICTIONARY)
        self._deflate = zlib.compressobj(zdict=DICTIONARY)
        self._last = 0  # the id of the last stream
        self._streams = 0

    # -- receiving

    def feed(self, data: bytes) -> Iterator[StreamOpened | Pinged]:
        """What the frames that are complete now say. Raises BrokenSpdy."""
        self._bytes += data
        at = 0
        try:
            for _ in range(MAX_FRAMES):
                skipped = min(self._skip, len(self._bytes) - at)
                at, self._skip = at + skipped, self._skip - skipped
                if self._skip or len(self._bytes) - at < 8:
                    return
                first, flags_and_size = struct.unpack_from("!II", self._bytes, at)
                size = flags_and_size & 0xFFFFFF
                if not first >> 31:  # data
                    self._check_stream(first)
                    at, self._skip = at + 8, size
                    continue
                if first >> 16 != _CONTROL or size > MAX_CONTROL:
                    raise BrokenSpdy("not a control frame of SPDY/3.1, or a large one")
                if len(self._bytes) - at - 8 < size:
                    return
                payload = bytes(self._bytes[at + 8 : at + 8 + size])
                at += 8 + size
                yield from self._control(first & 0xFFFF, payload)
            raise BrokenSpdy("too many frames at once")
        finally:
            del self._bytes[:at]  # in place: what is left begins the next frame

    def _control(self, kind: int, payload: bytes) -> Iterator[StreamOpened | Pinged]:
        if len(payload) != _SIZES.get(kind, len(payload)):
            raise BrokenSpdy("a control frame of another size")
        if kind == SYN_STREAM:
            yield self._open(payload)
        elif kind == PING:
            yield Pinged(int.from_bytes(payload, "big"))
        elif kind == HEADERS:  # read all the same: the compression goes on from frame to frame
            self._headers(payload[4:])
        elif kind not in _SKIPPED:
            raise BrokenSpdy(f"a control frame of the kind {kind}")

    def _open(self, payload: bytes) -> StreamOpened:
        if len(payload) < 10:
            raise BrokenSpdy("a short SYN_STREAM")
        id_ = int.from_bytes(payload[:4], "big") & 0x7FFFFFFF
        self._streams += 1
        if not id_ % 2 or id_ <= self._last or self._streams > MAX_STREAMS:
            raise BrokenSpdy("a stream with an id that is not the client's next one, or too many streams")
        self._last = id_
        return StreamOpened(id_, self._headers(payload[10:]))

    def _check_stream(self, id_: int) -> None:
        if not id_ % 2 or id_ > self._last:
            raise BrokenSpdy("data of a stream that is not open")

    def _headers(self, compressed: bytes) -> dict[str, str]:
        try:
            block = self._inflate.decompress(compressed, MAX_CONTROL)
        except zlib.error:
            raise BrokenSpdy("headers that are not compressed with the dictionary") from None
        if self._inflate.unconsumed_tail or self._inflate.eof:
            raise BrokenSpdy("large headers")
        return dict(_pairs(block))

    # -- sending

    def reply(self, id_: int) -> bytes:
        """The reply that accepts a stream, without headers."""
        block = self._deflate.compress(bytes(4)) + self._deflate.flush(zlib.Z_SYNC_FLUSH)
        return _control_frame(SYN_REPLY, id_.to_bytes(4, "big") + block)

    def goaway(self) -> bytes:
        """The end of the connection, because of an error in the protocol."""
        return _control_frame(GOAWAY, self._last.to_bytes(4, "big") + (1).to_bytes(4, "big"))


def pong(id_: int) -> bytes:
    return _control_frame(PING, id_.to_bytes(4, "big"))


def data_frames(id_: int, data: bytes) -> Sequence[bytes]:
    """All that a stream gets: it ends with them."""
    starts = range(0, max(len(data), 1), MAX_DATA)
    return [_data_frame(id_, data[at : at + MAX_DATA], is_last=at == starts[-1]) for at in starts]


def _data_frame(id_: int, data: bytes, *, is_last: bool) -> bytes:
    return struct.pack("!II", id_, (_FIN if is_last else 0) << 24 | len(data)) + data


def _control_frame(kind: int, payload: bytes) -> bytes:
    return struct.pack("!HHI", _CONTROL, kind, len(payload)) + payload


def _pairs(block: bytes) -> Iterator[tuple[str, str]]:
    """Names, in lower case, and values. Raises BrokenSpdy."""
    number, at = int.from_bytes(block[:4], "big"), 4
    if len(block) < 4 or number > len(block) // 8:
        raise BrokenSpdy("headers that are cut off")
    for _ in range(number):
        name, at = _text(block, at)
        value, at = _text(block, at)
        yield name.lower(), value


def _text(block: bytes, at: int) -> tuple[str, int]:
    end = at + 4 + int.from_bytes(block[at : at + 4], "big")
    if len(block) < at + 4 or len(block) < end:
        raise BrokenSpdy("headers that are cut off")
    return block[at + 4 : end].decode("latin-1"), end
