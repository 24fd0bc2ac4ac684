"""All clients of a server: what they cost together, and who is disconnected when that is too much.

Three registers have a limit each, and one rule: a client that a server can do without goes first.

`Unsent` counts the bytes of answers that clients have not read yet. A handler holds the bytes of its answer until they are
sent. An object of bytes counts once, however many answers share it: a thousand GETs of one object refer to the same
rendering. Beyond the limit the clients that have read nothing for longest are disconnected; those that have read something in
the last `min_stalled` seconds are not, so the limit may be exceeded for that long. For example, with a limit of 3 MB:

    A and B get the object x of 2 MB        total 2: x is shared
    C gets y of 1 MB                        total 3
    A is done                               total 3: B still holds x
    D gets z of 1 MB                        total 4: of the stalled clients that hold something, B has read nothing for
                                            longest. B is disconnected: total 2

`Incoming` counts the bytes of requests that have not arrived completely. A head may have a megabyte and a body three, and
each may take half a minute or more to arrive. Beyond the limit the clients whose requests began first are disconnected: of
requests that a client is really sending, most are complete after milliseconds. The long target of a request that was answered,
which the parser keeps while the connection is idle, counts as well: idle connections may be closed at any time.

`OpenConnections` limits the number of connections. A process may open only so many files, and without one to spare it can
neither accept connections nor open its database. An idle connection is closed, as HTTP allows at any time: the first to open
of those that nothing has used since the last search (the algorithm of the second chance); if none is idle, the new one is.

Servers of one process share its memory and its files, so the clients of tenants count in the registers of their parent.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import errno
import os
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Protocol, Self

from noxu.http.limits import DEFAULT_LIMITS, Limits
from noxu.instruments import Counter

MIN_CONNECTIONS: Final = 16
"""That remain for clients, whatever else needs files."""
Part = bytes | memoryview
"""A part of an answer: all or a slice of an object of bytes."""


class Peer(Protocol):
    """A client's connection."""

    was_used: bool
    """A request has arrived since this was last set to False."""

    @property
    def is_idle(self) -> bool:
        """Whether no request is being handled or waits to be handled."""
        ...

    def abort(self) -> None:
        """Disconnect the client without sending the rest. Nothing happens if it is gone."""
        ...


class Receiver(Protocol):
    """A client's connection, to which answers are sent."""

    def unsent_bytes(self) -> int:
        """The number of bytes that the kernel has not taken yet."""
        ...

    def abort(self) -> None:
        """Disconnect the client without sending the rest. Nothing happens if it is gone."""
        ...


class Unsent:
    """The unsent bytes of one server, and its stalled clients. `total` is the sum in bytes."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS, now: Callable[[], float] = time.monotonic) -> None:
        self.total = 0
        self.limits = limits
        self._now = now
        self._stalled: dict[
            Receiver, tuple[float, int]
        ] = {}  # since when, and the unsent bytes then; the longest first
        self._held: dict[object, dict[int, bytes]] = {}  # by client and identity
        self._holders: dict[int, int] = {}  # the number of clients that hold an object of bytes, by identity
        self._check: asyncio.TimerHandle | None = None

    def stalls(self, client: Receiver) -> None:
        """The client does not read as fast as the server writes."""
        self._stalled.pop(client, None)
        self._stalled[client] = (self._now(), client.unsent_bytes())

    def reads(self, client: Receiver) -> None:
        """The client has read everything, or is gone."""
        self._stalled.pop(client, None)

    @contextlib.contextmanager
    def held(self, client: object, parts: Sequence[Part]) -> Iterator[None]:
        """Count the bytes of an answer to the client while they are being sent."""
        objects = {id(whole): whole for whole in map(_whole, parts)}
        self._held[client] = objects
        for identity, whole in objects.items():
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
        if self.total <= self.limits.unsent:
            return
        for client in self._longest_stalled():
            if client in self._held:
                self._disconnect(client)
            if self.total <= self.limits.unsent:
                return
        self._check = asyncio.get_running_loop().call_later(self.limits.min_stalled, self._enforce)

    def _longest_stalled(self) -> Iterator[Receiver]:
        """The clients that have read nothing for `min_stalled` seconds or more, the longest first."""
        now = self._now()
        for client, (since, size) in list(self._stalled.items()):
            if client.unsent_bytes() < size:
                self.stalls(client)  # again: it has read something since
            elif now - since >= self.limits.min_stalled:
                yield client

    def _disconnect(self, client: Receiver) -> None:
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


class Incoming:
    """The incomplete requests of one server. `total` is the sum of their bytes."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self.total = 0
        self.limits = limits
        self._sizes: dict[Peer, int] = {}  # in the order in which the requests began

    def add(self, sender: Peer, size: int) -> None:
        """Another piece of the sender's request has arrived, and it is not the last one."""
        self._sizes[sender] = self._sizes.get(sender, 0) + size
        self.total += size
        while self.total > self.limits.incoming:
            first = next(iter(self._sizes))
            self.end(first)
            first.abort()

    def end(self, sender: Peer) -> None:
        """The sender's request is complete, or refused, or the sender is gone."""
        self.total -= self._sizes.pop(sender, 0)


class OpenConnections:
    """The connections of one server, `limit` at most."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._is_closed = False
        self._peers: dict[Peer, None] = {}  # those that opened first, or were found used least recently, first

    def __len__(self) -> int:
        return len(self._peers)

    def __iter__(self) -> Iterator[Peer]:
        return iter(self._peers)

    def close(self) -> None:
        """The server has stopped: a connection that comes later is disconnected."""
        self._is_closed = True

    def opened(self, peer: Peer) -> None:
        """Add a connection, and close one if there are too many."""
        if self._is_closed:
            peer.abort()
            return
        if len(self._peers) >= self.limit:
            closed = self._disused() or peer
            self._peers.pop(closed, None)
            closed.abort()
            if closed is peer:
                return
        self._peers[peer] = None

    def lost(self, peer: Peer) -> None:
        self._peers.pop(peer, None)

    @contextlib.contextmanager
    def reserved(self, files: int) -> Iterator[None]:
        """Leave so many files to something else. Raises OSError if too few connections would remain."""
        if self.limit - files < MIN_CONNECTIONS:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        self.limit -= files  # those that are open beyond it are closed when further ones are accepted
        try:
            yield
        finally:
            self.limit += files

    def _disused(self) -> Peer | None:
        """An idle peer that was not used since it was looked at. Those before it become the last ones."""
        for _ in range(2 * len(self._peers)):  # in the second round, those that were used before the first one
            peer = next(iter(self._peers))
            if peer.is_idle and not peer.was_used:
                return peer
            peer.was_used = False
            del self._peers[peer]
            self._peers[peer] = None
        return None


class TenantConnections(OpenConnections):
    """The connections of a tenant, which are also among those of its parent: the limit is that of both."""

    def __init__(self, parent: OpenConnections) -> None:
        super().__init__(parent.limit)
        self._parent = parent

    def opened(self, peer: Peer) -> None:
        if self._is_closed:
            peer.abort()
            return
        self._peers[peer] = None
        self._parent.opened(peer)  # which may abort this one, or one of another server

    def lost(self, peer: Peer) -> None:
        super().lost(peer)
        self._parent.lost(peer)


def max_connections(limits: Limits = DEFAULT_LIMITS) -> int:
    """The number of connections that this process may have: fewer than the files that it may open."""
    try:
        import resource
    except ImportError:  # not on every platform
        return limits.connections
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return limits.connections
    return min(limits.connections, files - min(limits.reserved_files, files // 2))


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


class Clients:
    """The clients of one server. `limits` may be replaced by another value at any time: connections read it when they need it."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self.limits = limits
        self.unsent = Unsent(limits)
        self.incoming = Incoming(limits)
        self.connections = OpenConnections(max_connections(limits))
        self.handshake_errors = Counter(
            "apiserver_tls_handshake_errors_total", "Number of requests dropped with 'TLS handshake error from' error"
        )

    def of_tenant(self) -> Self:
        """The clients of a tenant. The registers are shared, but its connections are known to be its own."""
        clients: Self = copy.copy(self)
        clients.connections = TenantConnections(self.connections)
        return clients
