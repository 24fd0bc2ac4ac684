"""The HTTP server: makes the connections, and the application when the first request arrives.

Only requests need the application and the pipeline of writes, a third of all modules. A thread imports them, so the event
loop goes on; the requests that have arrived wait for it. A server without requests starts sooner, and needs less memory.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from noxu import garbage
from noxu.http.clients import Clients
from noxu.http.connection import Connection
from noxu.http.request import Received
from noxu.registry.offload import imported

if TYPE_CHECKING:
    from noxu.http.app import App

MODULES: Final = (
    "noxu.http.application", "noxu.registry.write", "noxu.admission.attributes",
)  # fmt: skip
"""What requests need; they import all others."""


class HttpServer:
    """`make` makes the application; it imports modules of MODULES itself. `own_process`: the process is that of the server."""

    def __init__(self, make: Callable[[], App], clients: Clients, *, own_process: bool = False) -> None:
        self.clients = clients
        self.made: App | None = None
        self._make = make
        self._importing = garbage.uncollected if own_process else contextlib.nullcontext
        self._handle: Callable[[Received], Awaitable[None]] = self.handle

    @property
    def app(self) -> App:
        """The application. It is made now if no request has arrived."""
        if self.made is None:
            self.made = app = self._make()  # once: requests that have waited for the modules find it here
            self._handle = app.handle  # connections that are accepted later call the application itself
        return self.made

    def connection(self) -> Connection:
        """A connection for a socket that has been accepted: the factory of `loop.create_server`."""
        return Connection(self._handle, asyncio.get_running_loop(), self.clients)

    def handle(self, request: Received) -> Awaitable[None]:
        """Answer a request."""
        return self._handle_first(request) if self.made is None else self.made.handle(request)

    async def _handle_first(self, request: Received) -> None:
        with self._importing():
            for name in MODULES:
                await imported(name)
            app = self.app
        await app.handle(request)

    async def shutdown(self, seconds: float) -> None:
        """Close all connections: idle ones at once, others when their requests are answered, within so many seconds."""
        # a list: connections leave the register while others are awaited
        connections = [peer for peer in self.clients.connections if isinstance(peer, Connection)]
        await asyncio.gather(*[connection.shutdown(seconds) for connection in connections])

    def abort_unsent(self) -> None:
        """Disconnect the clients that have not read their answers. The others have got all, and their connections close."""
        for peer in list(self.clients.connections):
            if isinstance(peer, Connection) and peer.unsent_bytes():
                peer.abort()

    def dismantle(self) -> None:
        """Cut the cycles among its parts, after `shutdown`: it answers no request any more."""
        if self.made is not None:
            self.made.deadlines.close()
            vars(self.made.documents).clear()  # it refers to the metrics, which refer to the application
        self.made, self._make, self._handle = None, _stopped, _refuse  # for a connection that comes too late


def _stopped() -> App:
    raise ConnectionResetError("the server has stopped")


async def _refuse(request: Received) -> None:  # noqa: ARG001 - a handler
    raise ConnectionResetError("the server has stopped")
