"""The connections of one server, and a limit on their number.

A process may open only so many files, and without one to spare it can neither accept connections nor open its database.
When the limit is exceeded, the connection that has been idle for longest is closed, as HTTP allows at any time; if none is
idle, the new one is.
"""

from __future__ import annotations

import contextlib
from typing import Final, Protocol

MAX_CONNECTIONS: Final = 12_000  # 10,000 watches, and others
RESERVED: Final = (
    64  # files that are not connections of clients: the database, webhooks. At most half of what is allowed
)


class Peer(Protocol):
    """A client's connection."""

    @property
    def is_idle(self) -> bool:
        """Whether no request is being handled or waits to be handled."""
        ...

    def abort(self) -> None:
        """Disconnect the client. Nothing happens if it is gone."""
        ...


class OpenConnections:
    """See the module."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._peers: dict[Peer, None] = {}  # those that have been used least recently, or were found busy before, first

    def __len__(self) -> int:
        return len(self._peers)

    def opened(self, peer: Peer) -> None:
        """Add a connection, and close one if there are too many."""
        if len(self._peers) >= self._limit:
            closed = self._longest_idle() or peer
            self._peers.pop(closed, None)
            closed.abort()
            if closed is peer:
                return
        self._peers[peer] = None

    def used(self, peer: Peer) -> None:
        """A request has arrived."""
        if peer in self._peers:
            del self._peers[peer]
            self._peers[peer] = None

    def lost(self, peer: Peer) -> None:
        self._peers.pop(peer, None)

    def _longest_idle(self) -> Peer | None:
        """The peer that has been idle for longest. Busy ones before it become the last ones."""
        for _ in range(len(self._peers)):
            peer = next(iter(self._peers))
            if peer.is_idle:
                return peer
            self.used(peer)
        return None


def max_connections() -> int:
    """The number of connections that this process may have: fewer than the files that it may open."""
    try:
        import resource
    except ImportError:  # not on every platform
        return MAX_CONNECTIONS
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return (
        MAX_CONNECTIONS if files == resource.RLIM_INFINITY else min(MAX_CONNECTIONS, files - min(RESERVED, files // 2))
    )


def raise_file_limit() -> None:
    """Let this process open as many files as it may: the soft limit becomes the hard one.

    Go's programs do so when they start (its package os): the soft limit, often 1024, is for programs that call select(2).
    """
    try:
        import resource
    except ImportError:  # not on every platform
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with contextlib.suppress(OSError, ValueError):  # macOS refuses its own hard limit
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
