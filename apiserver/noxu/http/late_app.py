"""The application of a server, which is made when the first request arrives.

It and the pipeline of writes are a third of all modules, which a server needs for requests only. A thread imports them
meanwhile, so that the event loop is not held; the requests that have arrived wait for it. A server without requests starts
sooner, and needs less memory.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Final

from aiohttp import web_request, web_response, web_server

from noxu.http.received import Received
from noxu.registry.offload import imported

if TYPE_CHECKING:
    from noxu.http.app import App

MODULES: Final = (
    "noxu.http.application", "noxu.registry.write", "noxu.admission.attributes",
)  # fmt: skip
"""What requests need; they import all others."""


class LateApp:
    """`make` makes the application; it imports modules of MODULES itself. `own_process`: the process is that of the server."""

    def __init__(self, make: Callable[[], App], *, own_process: bool = False) -> None:
        self._make = make
        self._importing = _uncollected if own_process else contextlib.nullcontext
        self.server = web_server.Server(self.handle, handler_cancellation=True, request_factory=Received)
        """aiohttp's server. Connections that are accepted later call the application itself."""
        self.made: App | None = None

    @property
    def app(self) -> App:
        """The application. It is made now if no request has arrived."""
        if self.made is None:
            self.made = app = self._make()
            self.server.request_handler = app.handle
        return self.made

    def handle(self, request: web_request.BaseRequest) -> Awaitable[web_response.StreamResponse]:
        """Answer a request."""
        return self._handle_first(request) if self.made is None else self.made.handle(request)

    async def _handle_first(self, request: web_request.BaseRequest) -> web_response.StreamResponse:
        with self._importing():
            for name in MODULES:
                await imported(name)
            app = self.app
        return await app.handle(request)


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    """Without garbage collections meanwhile, nor later of what is made meanwhile: modules live until the end."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
