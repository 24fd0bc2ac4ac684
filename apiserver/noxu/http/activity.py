"""What the clients of a server do now, for `noxu.control.idle`: a filter and a sink, from the first time that it is asked for.

A request counts from the first filter until its answer is handed to the socket. Watches do not count as requests: of them it
says which have not sent everything that they select, and whose clients have not taken it. The kernel of Linux tells for each
socket how many bytes are unsent or unacknowledged (SIOCOUTQ).
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Collection
from typing import TYPE_CHECKING, Final

from noxu.http.connection import Connection
from noxu.http.exchange import Exchange
from noxu.http.filters import RequestFilter

try:
    import fcntl
    import termios
except ImportError:  # Windows
    pass

if TYPE_CHECKING:
    from noxu.http.app import App

_CONTROL: Final = "/_noxu/"


class ClientActivity(RequestFilter):
    """The activity of one server's clients."""

    def __init__(self, app: App, now: float) -> None:
        """`now` is the event loop's time: what was asked before counts as asked now."""
        self.requests = 0
        self._app = app
        self._now = now
        self._under_way: dict[Exchange, None] = {}
        self._last: dict[str, float] = {"": now}  # by plural; "" is every other request
        connections = [peer for peer in app.connections if isinstance(peer, Connection)]
        asking = {connection for connection in connections if not connection.is_idle}
        self._before = {peer for peer in asking if not peer.target.startswith(_CONTROL)}
        """Connections with a request that has not passed this filter."""

    def enter(self, exchange: Exchange) -> None:
        info = exchange.info
        self._before.discard(exchange.request.connection)  # from here on its exchange counts, which may be a watch
        if exchange.path.startswith(_CONTROL):
            return
        self._touch(exchange)
        if info.verb != "watch":
            self._under_way[exchange] = None

    def sink(self, exchange: Exchange) -> None:
        """A request is answered, or its client is gone."""
        if exchange.path.startswith(_CONTROL):
            return
        self._under_way.pop(exchange, None)
        self.requests += 1
        self._touch(exchange)

    def _touch(self, exchange: Exchange) -> None:
        self._last[exchange.info.resource] = exchange.request.connection.loop.time()

    def last(self, ignored: Collection[str]) -> float:
        return max(time for plural, time in self._last.items() if plural not in ignored)

    def connections(self) -> list[tuple[object, object]]:
        return [
            (peer.peername, peer.transport.get_extra_info("sockname"))
            for peer in self._app.connections
            if isinstance(peer, Connection) and peer.transport is not None
        ]

    def under_way(self, ignored: Collection[str]) -> list[str]:
        if self._before:
            # of a connection that is closed nothing is under way, and what is a watch by now is open as long as it likes
            watching = {watch.request.connection for watch in self._app.watches.open}
            there = {peer for peer in self._before if peer in self._app.connections and not peer.is_idle}
            self._before = there - watching
        requests = [str(exchange) for exchange in self._under_way if exchange.info.resource not in ignored]
        earlier = [f"{connection.target} for {connection.peername}" for connection in self._before]
        watches = [
            f"{exchange} has not sent everything"
            for stream, exchange in self._app.watches.streams.items()
            if exchange.info.resource not in ignored
            if stream.is_behind or _has_unsent(exchange.request.connection)
        ]
        return [*requests, *earlier, *watches]


def _has_unsent(connection: Connection) -> bool:
    """Whether the client has not taken everything that was written."""
    if connection.transport is None:
        return False
    if connection.transport.get_write_buffer_size():
        return True
    if sys.platform == "linux" and (socket := connection.transport.get_extra_info("socket")) is not None:
        try:
            [unsent] = struct.unpack("i", fcntl.ioctl(socket.fileno(), termios.TIOCOUTQ, b"\0\0\0\0"))
        except OSError:  # it is being closed
            return False
        return bool(unsent)
    return False
