"""The bytes of answers that clients have not read yet, and a limit on their sum over all connections.

A handler holds the bytes of its answer until they are sent. An object of bytes counts once, however many answers share it:
a thousand GETs of one object refer to the same rendering. Beyond the limit the clients that have read nothing for longest
are disconnected; those that have read something in the last MIN_STALLED seconds are not, so the limit may be exceeded for
that long. For example, with a limit of 3 MB:

    A and B get the object x of 2 MB        total 2: x is shared
    C gets y of 1 MB                        total 3
    A is done                               total 3: B still holds x
    D gets z of 1 MB                        total 4: of the stalled clients that hold something, B has read nothing for
                                            longest. B is disconnected: total 2
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Protocol

MAX_UNSENT: Final = 256 * 1024 * 1024  # bytes
MIN_STALLED: Final = 1.0  # seconds without reading after which a client may be disconnected in favour of others

Part = bytes | memoryview
"""A part of an answer: all or a slice of an object of bytes."""


class Client(Protocol):
    """A client's connection."""

    def unsent_bytes(self) -> int:
        """The number of bytes that the kernel has not taken yet."""
        ...

    def abort(self) -> None:
        """Disconnect the client without sending the rest. Nothing happens if it is gone."""
        ...


class Unsent:
    """The unsent bytes of one server, and its stalled clients. `total` is the sum in bytes."""

    def __init__(self, limit: int = MAX_UNSENT, now: Callable[[], float] = time.monotonic) -> None:
        self.total = 0
        self._limit = limit
        self._now = now
        self._stalled: dict[Client, tuple[float, int]] = {}  # since when, and the unsent bytes then; the longest first
        self._held: dict[object, dict[int, bytes]] = {}  # by client and identity
        self._holders: dict[int, int] = {}  # the number of clients that hold an object of bytes, by identity
        self._check: asyncio.TimerHandle | None = None

    def stalls(self, client: Client) -> None:
        """The client does not read as fast as the server writes."""
        self._stalled.pop(client, None)
        self._stalled[client] = (self._now(), client.unsent_bytes())

    def reads(self, client: Client) -> None:
        """The client has read everything, or is gone."""
        self._stalled.pop(client, None)

    @contextlib.contextmanager
    def held(self, client: object, parts: Sequence[Part]) -> Iterator[None]:
        """Count the bytes of an answer to the client while they are being sent."""
        found = {id(whole): whole for whole in map(_whole, parts)}
        self._held[client] = found
        for identity, whole in found.items():
            self._holders[identity] = holders = self._holders.get(identity, 0) + 1
            self.total += len(whole) if holders == 1 else 0
        try:
            self._enforce()
            yield
        finally:
            self._release(client)

    def disconnect_stalled(self) -> bool:
        """Disconnect the client that has read nothing for longest; return whether there was one."""
        client = next(self._longest_stalled(), None)
        if client is not None:
            self._disconnect(client)
        return client is not None

    def _enforce(self) -> None:
        """Disconnect clients until the limit is kept; try again later if those that hold bytes have read just now."""
        if self._check is not None:
            self._check.cancel()
            self._check = None
        if self.total <= self._limit:
            return
        for client in self._longest_stalled():
            if client in self._held:
                self._disconnect(client)
            if self.total <= self._limit:
                return
        self._check = asyncio.get_running_loop().call_later(MIN_STALLED, self._enforce)

    def _longest_stalled(self) -> Iterator[Client]:
        """The clients that have read nothing for MIN_STALLED seconds or more, the longest first."""
        now = self._now()
        for client, (since, size) in list(self._stalled.items()):
            if client.unsent_bytes() < size:
                self.stalls(client)  # again: it has read something since
            elif now - since >= MIN_STALLED:
                yield client

    def _disconnect(self, client: Client) -> None:
        self._release(client)
        self._stalled.pop(client, None)
        client.abort()

    def _release(self, client: object) -> None:
        for identity, whole in self._held.pop(client, {}).items():
            self._holders[identity] -= 1
            if not self._holders[identity]:
                del self._holders[identity]
                self.total -= len(whole)


def _whole(part: Part) -> bytes:
    """The object of bytes that a part refers to."""
    if isinstance(part, bytes):
        return part
    assert isinstance(part.obj, bytes)
    return part.obj


def write_pieces(transport: asyncio.Transport | None, pieces: Sequence[bytes]) -> int:
    """Write without copying, where that is safe; return the number of bytes that are unsent.

    Raises ConnectionResetError if the client is gone.
    """
    if transport is None or transport.is_closing():
        raise ConnectionResetError("the client is gone")
    if len(pieces) == 1:
        transport.write(pieces[0])
    elif _WRITELINES_PAUSES:
        transport.writelines(pieces)
    else:
        transport.write(b"".join(pieces))
    return transport.get_write_buffer_size()


def writelines_pauses(version: tuple[int, int, int]) -> bool:
    """Whether `writelines` of this Python's asyncio tells the protocol that the client does not read.

    It did not in 3.12 before 3.12.9 and in 3.13 before 3.13.2 (CVE-2024-12254): the server would not wait for such a client.
    """
    return version < (3, 12, 0) or (3, 12, 9) <= version < (3, 13, 0) or version >= (3, 13, 2)


_WRITELINES_PAUSES: Final = writelines_pauses(sys.version_info[:3])
