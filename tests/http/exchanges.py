"""An App over a store in memory, served on loopback, with a sink that records its exchanges."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, NamedTuple

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from noxu.control_plane import ControlPlane, running
from noxu.http.answer import Answer
from noxu.http.app import App
from noxu.http.clients import Clients
from noxu.http.documents import Documents
from noxu.http.exchange import Backend, Exchange
from noxu.http.http_server import HttpServer
from noxu.http.traces import Traces
from noxu.observability import health
from noxu.registry.access import ANONYMOUS, User
from noxu.registry.offload import LargeRequests
from noxu.security.credentials import Credentials
from noxu_storage.memory import MemoryStore
from tests.control_planes import assemble

MAPS = "/api/v1/namespaces/default/configmaps"


class Reply(NamedTuple):
    code: int
    text: str
    headers: CIMultiDict[str]


def backend_of(plane: ControlPlane, **parts: Any) -> Backend:
    """The backend of a control plane; `parts` replace some of it."""
    names = ("reader", "writer", "persistence", "served_resources", "clock", "features", "tokens", "authorize")
    found: dict[str, Any] = {name: getattr(plane, name) for name in names}
    return Backend(**found | {"large_requests": LargeRequests()} | parts)


def documents_of(plane: ControlPlane, checks: health.Checks | None = None) -> Documents:
    return Documents(
        lambda: plane.served_resources.current,
        "127.0.0.1:1",
        lambda: "1.0",
        checks or health.Checks({}, {}),
        plane.clock.now,
    )


class ServedApp:
    """`exchanges` are those that are complete, the oldest first."""

    def __init__(self, app: App, exchanges: list[Exchange], session: aiohttp.ClientSession, url: str) -> None:
        self.app = app
        self.exchanges = exchanges
        self.session = session
        self.url = url

    async def send(self, method: str, path: str, body: Any = None, **headers: str) -> Reply:
        async with self.session.request(
            method, URL(f"{self.url}{path}", encoded=True), json=body, headers=headers
        ) as answer:
            return Reply(answer.status, await answer.text(), answer.headers.copy())


class NamedUsers:
    """Believes what clients say: X-User is the name, X-Groups are the groups. Without X-User a client is anonymous."""

    allows_anonymous = False

    def authenticate(self, given: Credentials, warnings: list[str]) -> User:
        name, groups = given.headers.get("X-User"), given.headers.get("X-Groups")
        return User(name, "", (*(groups.split(",") if groups else ()), "system:authenticated")) if name else ANONYMOUS


@contextlib.asynccontextmanager
async def serving_app(
    *sinks: Callable[[Exchange], None],
    traces: Traces | None = None,
    checks: health.Checks | None = None,
    **parts: Any,
) -> AsyncIterator[ServedApp]:
    """`sinks` are called after the one that records. `parts` are those of `assemble`."""
    exchanges: list[Exchange] = []
    async with running(assemble(MemoryStore(), **parts)) as plane:
        app = App(
            backend_of(plane),
            documents_of(plane, checks),
            traces_=traces,
            sinks=[exchanges.append, *sinks],
            authenticator=NamedUsers(),
        )
        server = HttpServer(lambda: app, Clients())
        async with await asyncio.get_running_loop().create_server(server.connection, "127.0.0.1", 0) as listening:
            address = "{}:{}".format(*listening.sockets[0].getsockname())
            try:
                async with aiohttp.ClientSession() as session:
                    yield ServedApp(app, exchanges, session, f"http://{address}")
            finally:
                app.end_watches()
                await server.shutdown(5.0)


Handler = Callable[[Exchange], Awaitable[Answer]]
