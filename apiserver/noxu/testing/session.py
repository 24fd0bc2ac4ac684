"""The session behind the handle: the server, in a thread with an event loop of its own, and a client for one user.

Calls from other threads are coroutines that run in that loop: `submit`. A server that has been stopped can be started again,
at its address and with its data (see `Server.after`).
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import threading
from collections.abc import Coroutine
from collections.abc import Set as AbstractSet
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from noxu.clock import Clock
from noxu.config import Config, StartError
from noxu.http.filters import RequestFilter
from noxu.http.recent_requests import RecentRequests
from noxu.process import limits as process_limits
from noxu.process.running import new_loop_factory
from noxu.process.server import Server
from noxu.registry.served_resources import ServedResources
from noxu.testing import addresses
from noxu.testing.client import UserClient
from noxu.testing.errors import EXPECTED, Stopped, hidden
from noxu.testing.templates import Beginning

__tracebackhide__ = hidden
ACCOUNT: Final = "system:serviceaccount:"
"""How the name of a service account's user begins: its namespace and its name follow."""
HTTP_ERRORS: Final = 400
"""The first code of an error."""


@dataclass(frozen=True, slots=True)
class Session:
    """`strict`: unknown fields are refused unless a call says otherwise."""

    runner: Runner
    client: UserClient
    requests: RecentRequests
    strict: bool = False
    named: AbstractSet[str] = frozenset()
    """The users that the handle has made."""

    async def check_namespace(self, namespace: str) -> None:
        """Raises ValueError for one that has never existed, as far as requests tell, unless objects need none. In the server's loop."""
        running = self.runner.running
        resource = running.plane.served_resources.current.find("", "v1", "namespaces")
        if not namespace or resource is None or "NamespaceLifecycle" not in running.config.admission_plugins:
            return
        there = await running.plane.reader.collection(resource)
        names = {key.name for key in there.entries}
        if namespace in names:
            return
        asked = (call for call in self.requests.since() if call.resource == "namespaces" and call.code < HTTP_ERRORS)
        addresses.namespace(namespace, names.union(call.name for call in asked if call.name))

    async def check_user(self, user: str) -> None:
        """Raises ValueError for one who is not known, and whose name is similar to a known one's. In the server's loop.

        Known are those that were made, those with a token or a service account, and those who have asked something.
        """
        plane = self.runner.running.plane
        names = {*self.named, *plane.static_tokens.names(), *(call.user for call in self.requests.since())}
        resource = plane.served_resources.current.find("", "v1", "serviceaccounts")
        if user.startswith(ACCOUNT) and resource is not None:
            accounts = await plane.reader.collection(resource)
            names |= {f"{ACCOUNT}{key.partition.removesuffix('/')}:{key.name}" for key in accounts.entries}
        addresses.user(user, names)

    @property
    def served_resources(self) -> ServedResources:
        return self.runner.running.plane.served_resources.current


T = TypeVar("T")
STOPPED: Final = "the server does not run: it was not started, or it is stopped"


class Runner:
    """`server` and `loop` exist when `start` has returned."""

    server: Server
    loop: asyncio.AbstractEventLoop

    def __init__(self, config: Config, beginning: Beginning, clock: Clock, observer: RequestFilter) -> None:
        self.config = config
        self._beginning = beginning
        self._clock = clock
        self._observer = observer
        self._stop: asyncio.Event
        self._started = threading.Event()
        self._error: BaseException | None = None
        self._thread: threading.Thread | None = None
        self._stopped: Server | None = None
        # a forgotten watch is closed wherever Python collects garbage, also by a thread that has the lock
        self._lock = threading.RLock()
        self._waiting: set[Future[Any]] = set()  # shared with the threads that submit, under the lock

    @property
    def is_running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    @property
    def running(self) -> Server:
        """The server. Raises Stopped."""
        if not self.is_running:
            raise Stopped(STOPPED)
        return self.server

    def start(self) -> None:
        """Return when the server is ready. Raises StartError."""
        self._started.clear()
        self._thread = threading.Thread(target=self._run, name="noxu", daemon=True)
        try:
            self._thread.start()
        except RuntimeError as error:
            raise StartError(process_limits.sentence(error) or str(error)) from None
        self._started.wait()
        if self._error is not None:
            self._thread.join()
            if isinstance(self._error, EXPECTED):
                raise self._error.with_traceback(None)
            raise self._error

    def stop(self) -> None:
        """Stop the server: its thread ends, its port is free. It may be called twice."""
        if self._thread is not None and self._thread.is_alive():
            with contextlib.suppress(RuntimeError):  # its loop is closed already
                self.loop.call_soon_threadsafe(self._stop.set)
            self._thread.join()

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Run a coroutine in the loop of the server. Raises Stopped, and so does the future if the server stops before."""
        with self._lock:
            if not self.is_running or self.loop.is_closed():
                work.close()
                raise Stopped(STOPPED)
            future = asyncio.run_coroutine_threadsafe(work, self.loop)
            self._waiting.add(future)
        future.add_done_callback(self._waiting.discard)
        return future

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=new_loop_factory()) as runner:
                runner.run(self._serve())
        finally:
            self._end_waiting()

    def _end_waiting(self) -> None:
        """The loop is closed: what has come after it has cancelled its tasks would never end."""
        with self._lock:
            waiting = [*self._waiting]
        for future in waiting:
            with contextlib.suppress(InvalidStateError):  # it has ended meanwhile
                future.set_exception(Stopped(STOPPED))

    async def _server(self) -> Server:
        """The first one. Raises StartError."""
        beginning = await self._beginning.completed()
        self._beginning = Beginning(None, None, ())  # what it has is not needed again
        return Server(
            self.config, beginning.documents, self._clock, observer=self._observer, template=beginning.template
        )

    def _again(self, before: Server) -> Server:
        return Server(self.config, (), self._clock, observer=self._observer, after=before)

    async def _serve(self) -> None:
        self.loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self._error = None
        try:
            before = self._stopped
            running = await self._server() if before is None else self._again(before)
            async with running:
                self.server = running
                self.config = dataclasses.replace(self.config, port=running.listeners.port)
                self._stopped = before = None
                self._started.set()
                await self._stop.wait()
            self._stopped = running
        except BaseException as error:
            self._error = error
            if self._started.is_set():
                raise
        finally:
            self._started.set()
