"""Calls of gRPC on a stream of a connection: those with one answer, and streams of messages in both directions."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING, Final

from noxu_storage.grpc_status import OK, Lost, Refused, failure, http_failure

if TYPE_CHECKING:
    from noxu_storage.grpc_connection import Connection

MAX_MESSAGE: Final = 1024 * 1024 * 1024  # bytes of a message of the server
MESSAGES_AT_ONCE: Final = 32  # messages of a stream that are read before other tasks run


class Malformed(Exception):
    """What arrives is no message of gRPC."""


class Messages:
    """Divides data into messages: a flag (1: compressed, which was not offered), four bytes with the length, the message."""

    __slots__ = ("_rest",)

    def __init__(self) -> None:
        self._rest = bytearray()

    def add(self, data: bytes) -> Sequence[bytes]:
        """The messages that are complete now. Raises Malformed."""
        rest = self._rest
        if not rest and len(data) >= 5 and not data[0] and int.from_bytes(data[1:5], "big") == len(data) - 5:
            return (data[5:],)
        rest += data
        found = []
        while len(rest) >= 5:
            size = int.from_bytes(rest[1:5], "big")
            if rest[0] or size > MAX_MESSAGE:
                raise Malformed("a message is compressed" if rest[0] else "a message is too large")
            if len(rest) < 5 + size:
                break
            found.append(bytes(rest[5 : 5 + size]))
            del rest[: 5 + size]
        return found

    @property
    def incomplete(self) -> int:
        """The bytes of a message that is not complete."""
        return len(self._rest)


def framed(message: bytes) -> bytes:
    return b"\0" + len(message).to_bytes(4, "big") + message


class Call:
    """A call on a stream of a connection. `deadline` is a time of the event loop."""

    __slots__ = ("connection", "deadline", "messages", "number")

    def __init__(self, deadline: float) -> None:
        self.deadline = deadline
        self.messages = Messages()
        self.connection: Connection | None = None
        self.number = 0

    def arrived(self, messages: Sequence[bytes], size: int) -> None:
        """Some bytes of data, and the messages that are complete with them. Raises Malformed."""
        raise NotImplementedError

    def end(self, error: Refused | Lost | None) -> None:
        """The call has ended; None: as it should."""
        raise NotImplementedError

    def headers(self, fields: Mapping[bytes, bytes], ended: bool) -> Refused | Lost | None:
        """The reason to end the call. Raises Malformed."""
        status = fields.get(b":status")
        if ended:
            if (code := fields.get(b"grpc-status")) is not None:
                self.end(None if code == OK else failure(code, fields.get(b"grpc-message", b"")))
                return None
            return http_failure(status)
        if status is None:
            raise Malformed("header fields follow others")
        if status != b"200":
            return None if status.startswith(b"1") else http_failure(status)
        if not fields.get(b"content-type", b"").startswith(b"application/grpc"):
            raise Malformed("the answer is not gRPC")
        return None

    def cancel(self) -> None:
        if self.connection is not None:
            self.connection.cancel(self)


class Unary(Call):
    __slots__ = ("answer", "future")

    def __init__(self, deadline: float, future: asyncio.Future[bytes]) -> None:
        super().__init__(deadline)
        self.future = future
        self.answer: bytes | None = None

    def arrived(self, messages: Sequence[bytes], size: int) -> None:
        if messages:
            if len(messages) > 1 or self.answer is not None:
                raise Malformed("a call has several answers")
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


class Stream(Call):
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
