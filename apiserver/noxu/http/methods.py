"""Methods that the HTTP parser does not know.

Go accepts any token as a method, and upstream answers an unknown one like OPTIONS: 405 of the resource. aiohttp's parser
refuses it as malformed. So before the parser reads a head whose method is unknown, the method is replaced by one that has no
meaning of its own, and the parsed message gets it back:

    FOO /version HTTP/1.1  →  TRACE /version HTTP/1.1  →  a message with the method FOO

So the parser gets the bytes of a connection in pieces that end where a head ends (`Boundaries`), however they have arrived:
a method may follow a body in the same read, or be cut off by it. Where bodies end is for the parser to say, or a Content-Length
that it has read. A method of more than MAX_METHOD bytes is refused by the parser.
"""

from __future__ import annotations

from typing import Final

from aiohttp.http import RawRequestMessage
from aiohttp.streams import EMPTY_PAYLOAD, StreamReader

from noxu.expressions import expression

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


def replace(data: bytes) -> tuple[str, bytes]:
    """Replace an unknown method at the beginning of a head: (the method or "", the data for the parser)."""
    end = data.find(b" ", 0, MAX_METHOD + 1)
    method = data[: max(end, 0)]
    if method in _KNOWN or not _TOKEN.fullmatch(method):
        return "", data
    return method.decode("ascii"), _STAND_IN + data[end:]


def is_cut(data: bytes) -> bool:
    """Whether a head may begin with these bytes, which do not have all of its method."""
    return len(data) <= MAX_METHOD and _TOKEN.fullmatch(data) is not None


class Boundaries:
    """Where the heads in the bytes of a connection begin and end. `method` is the one that was replaced in the last head."""

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
        if is_cut(data[at : at + MAX_METHOD + 1]):
            return b"", at
        self._in_head, self._last = True, b""  # an end must not begin in the body before
        piece, end = self._head(data, at)
        self.method, piece = replace(piece)
        return piece, end

    def _head(self, data: bytes, at: int) -> tuple[bytes, int]:
        piece, end = self._up_to_end(data, at)
        self._is_complete = self._last == END_OF_HEAD
        return piece, end

    def _up_to_end(self, data: bytes, at: int) -> tuple[bytes, int]:
        """The piece up to the next empty line, which may have begun in the last one."""
        begun = self._last[-3:]
        across = (begun + data[at : at + 3]).find(END_OF_HEAD)
        found = data.find(END_OF_HEAD, at) if across < 0 else at + across - len(begun)
        is_found = max(across, found) >= 0 and self._cuts <= _MAX_CHUNKED
        piece = data[at : found + len(END_OF_HEAD)] if is_found else data[at:]
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
