"""A client whose view is frozen sees what a server shows that lags behind: the same lists, the same errors, the same events.

Two servers share an etcd. The connection of the second one to etcd is held, so it lags; meanwhile the client of the first one
has a frozen view. When both are let go, their streams bring the same events.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import aiohttp
import pytest

from noxu.config import Config, Etcd
from noxu.control.fault_routes import Faults
from noxu.process.server import Server
from noxu.values import Object
from tests.etcd_server import EtcdServer
from tests.timing import eventually_async, hang_guard

MAPS = "/api/v1/namespaces/default/configmaps"
FROZEN = {"User-Agent": "frozen"}
IN_FLIGHT = 0.2  # seconds: what has passed the link before it was held arrives, and is seen to make a difference
VIEW: Object = {"name": "view", "match": {"resource": "configmaps", "userAgent": "frozen"}, "view": "freeze"}


class Link:
    """A connection to etcd that can be held: nothing comes from etcd meanwhile."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._flows = asyncio.Event()
        self._flows.set()
        self._tasks: set[asyncio.Task[None]] = set()

    def hold(self) -> None:
        self._flows.clear()

    def let_go(self) -> None:
        self._flows.set()

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        to_etcd_reader, to_etcd = await asyncio.open_connection("127.0.0.1", self._port)
        copies = [self._copy(reader, to_etcd, held=False), self._copy(to_etcd_reader, writer, held=True)]
        for copy in copies:
            task = asyncio.ensure_future(copy)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, held: bool) -> None:
        with contextlib.suppress(ConnectionError, asyncio.CancelledError):
            while data := await reader.read(65536):
                if held:
                    await self._flows.wait()
                writer.write(data)
                await writer.drain()
        writer.close()

    async def close(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@contextlib.asynccontextmanager
async def linked(etcd: EtcdServer) -> AsyncIterator[tuple[Link, str]]:
    """(A link to etcd, its URL)."""
    link = Link(urlsplit(etcd.url).port or 0)
    server = await asyncio.start_server(link.accept, "127.0.0.1", 0)
    try:
        yield link, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        await link.close()
        server.close()


class Client:
    """Two views of the objects: of the first server, frozen or not, and of the second one."""

    def __init__(self, session: aiohttp.ClientSession, *urls: str) -> None:
        self._session = session
        self._urls = urls

    async def write(self, name: str, n: int) -> None:
        """n 0 deletes it."""
        url = f"{self._urls[0]}{MAPS}/{name}"
        if not n:
            async with self._session.delete(url) as answer:
                assert answer.status == 200
            return
        value = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"n": str(n)}}
        query = {"fieldManager": "test", "force": "true"}
        headers = {"Content-Type": "application/apply-patch+yaml"}
        async with self._session.patch(url, params=query, data=json.dumps(value), headers=headers) as answer:
            assert answer.status in (200, 201)

    async def listed(self, which: int, version: str = "0") -> Any:
        async with self._session.get(
            self._urls[which] + MAPS, params={"resourceVersion": version}, headers=FROZEN
        ) as answer:
            return answer.status, await answer.json()

    async def watch(self, which: int, version: str) -> aiohttp.ClientResponse:
        query = {"watch": "1", "resourceVersion": version}
        return await self._session.get(self._urls[which] + MAPS, params=query, headers=FROZEN)


async def until(stream: aiohttp.ClientResponse, name: str) -> list[Any]:
    """The events of a stream, up to that about an object."""
    events = []
    while not events or events[-1]["object"]["metadata"]["name"] != name:
        events.append(json.loads(await stream.content.readline()))
    return events


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
async def test_a_frozen_view_is_that_of_a_lagging_server(etcd: EtcdServer, seed: int) -> None:
    chance, prefix = random.Random(seed), f"/{uuid4().hex}"
    async with (
        hang_guard(),
        linked(etcd) as (link, url),
        # no controllers: who leads them renews a Lease every two seconds
        Server(Config(port=0, etcd=Etcd((etcd.url,), prefix=prefix), controllers=())) as leader,
        Server(Config(port=0, etcd=Etcd((url,), prefix=prefix), controllers=())) as follower,
        aiohttp.ClientSession() as session,
    ):
        client, faults = Client(session, leader.url, follower.url), leader.control.part(Faults)
        await client.write("first", 1)

        async def are_equal() -> bool:
            return bool(await client.listed(0) == await client.listed(1))

        await eventually_async(are_equal)
        version = (await client.listed(0))[1]["metadata"]["resourceVersion"]
        streams = [await client.watch(which, version) for which in (0, 1)]
        exists = {"first"}

        async def both_are_held() -> bool:
            """Whether both stand at one revision: another write may have come in between."""
            await eventually_async(are_equal)
            link.hold()
            faults.add([VIEW])
            await asyncio.sleep(IN_FLIGHT)
            if await are_equal():
                return True
            link.let_go()
            faults.clear()
            return False

        for step in range(3):
            await eventually_async(both_are_held)
            for n in range(chance.randrange(3, 10)):
                name = chance.choice("abcd")
                gone = name in exists and chance.random() < 0.4
                await client.write(name, 0 if gone else 100 * step + n + 1)
                exists ^= {name} if gone or name not in exists else set()
            frozen, lagging = await client.listed(0), await client.listed(1)
            assert frozen == lagging
            if not step:  # it waits three seconds
                newer = str(leader.plane.cache.revision)
                assert await client.listed(0, newer) == await client.listed(1, newer)
            link.let_go()
            faults.clear()
        await client.write("last", 1)
        events = [await until(stream, "last") for stream in streams]
        for stream in streams:
            stream.close()
        assert events[0] == events[1]
