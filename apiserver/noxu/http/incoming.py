"""The bytes of requests that have not arrived completely, and a limit on their sum over all connections.

A head may have a megabyte and a body three, and each may take half a minute or more to arrive. Beyond the limit the
clients whose requests began first are disconnected: of requests that a client is really sending, most are complete after
milliseconds. The long target of a request that was answered, which the parser keeps while the connection is idle, counts as
well: idle connections may be closed at any time.
"""

from __future__ import annotations

from typing import Final, Protocol

MAX_INCOMING: Final = 128 * 1024 * 1024  # bytes


class Sender(Protocol):
    """A client's connection."""

    def abort(self) -> None:
        """Disconnect the client. Nothing happens if it is gone."""
        ...


class Incoming:
    """The incomplete requests of one server. `total` is the sum of their bytes."""

    def __init__(self, limit: int = MAX_INCOMING) -> None:
        self.total = 0
        self._limit = limit
        self._sizes: dict[Sender, int] = {}  # in the order in which the requests began

    def add(self, sender: Sender, size: int) -> None:
        """Another piece of the sender's request has arrived, and it is not the last one."""
        self._sizes[sender] = self._sizes.get(sender, 0) + size
        self.total += size
        while self.total > self._limit:
            first = next(iter(self._sizes))
            self.end(first)
            first.abort()

    def end(self, sender: Sender) -> None:
        """The sender's request is complete, or refused, or the sender is gone."""
        self.total -= self._sizes.pop(sender, 0)
