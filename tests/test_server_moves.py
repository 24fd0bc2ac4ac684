"""Clients that move from one server to another with the same store: what they have begun at the first one continues."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any
from uuid import uuid4

import aiohttp
import pytest

from noxu.config import Config, Etcd
from noxu.process.server import Server
from noxu_storage.store import Store
from tests.etcd_server import EtcdServer
from tests.timing import eventually_async, hang_guard

MAPS = "/api/v1/namespaces/default/configmaps"


class Answer:
    def __init__(self, code: int, headers: Any, body: Any) -> None:
        self.code, self.headers, self.body = code, headers, body

    @property
    def version(self) -> str:
        return str(self.body["metadata"]["resourceVersion"])

    @property
    def names(self) -> list[str]:
        return [item["metadata"]["name"] for item in self.body["items"]]


class Two:
    """Two servers, `a` and `b`."""

    def __init__(self, servers: Sequence[Server], session: aiohttp.ClientSession) -> None:
        self.a, self.b = servers
        self.session = session

    async def ask(self, server: Server, method: str, path: str, body: Any = None) -> Answer:
        async with self.session.request(method, server.url + path, json=body) as answer:
            return Answer(answer.status, answer.headers, json.loads(await answer.text()))

    async def create(self, server: Server, *names: str) -> list[Answer]:
        found = [await self.ask(server, "POST", MAPS, {"metadata": {"name": name}}) for name in names]
        assert [answer.code for answer in found] == [201] * len(names)
        return found

    async def read_events(self, server: Server, version: str, count: int) -> list[tuple[str, str, str]]:
        """(Type, name, resourceVersion) of the first events of a watch, which ends then."""
        events: list[tuple[str, str, str]] = []
        url = f"{server.url}{MAPS}?watch=1&resourceVersion={version}"
        async with hang_guard(), self.session.get(url) as stream:
            while len(events) < count:
                event = json.loads(await stream.content.readline())
                metadata = event["object"]["metadata"]
                events.append((event["type"], metadata["name"], metadata["resourceVersion"]))
        return events


@pytest.fixture
async def two(etcd: EtcdServer) -> AsyncIterator[Two]:
    config = Config(port=0, etcd=Etcd((etcd.url,), f"/registry/{uuid4()}"), profile="envtest")
    async with contextlib.AsyncExitStack() as stack:
        servers = [await stack.enter_async_context(Server(config)) for _ in range(2)]
        yield Two(servers, await stack.enter_async_context(aiohttp.ClientSession()))


@contextlib.contextmanager
def cut_off(store: Store) -> Iterator[None]:
    """A store that learns nothing until the end of the block."""
    apply: Callable[..., None] = store._apply  # type: ignore[attr-defined]
    late: list[tuple[Any, ...]] = []
    store._apply = lambda *arguments: late.append(arguments)  # type: ignore[attr-defined]
    try:
        yield
    finally:
        store._apply = apply  # type: ignore[attr-defined]
        for arguments in late:
            apply(*arguments)


async def test_the_pages_of_a_list_come_from_both_servers(two: Two) -> None:
    names = [f"n{number}" for number in range(7)]
    await two.create(two.a, *names)
    first = await two.ask(two.a, "GET", f"{MAPS}?limit=2")
    await two.ask(two.b, "DELETE", f"{MAPS}/n4")
    await two.create(two.b, "n9")
    shown, token, version, turn = first.names, first.body["metadata"]["continue"], first.version, 0
    assert first.body["metadata"]["remainingItemCount"] == 5
    while token:
        turn += 1
        page = await two.ask((two.a, two.b)[turn % 2], "GET", f"{MAPS}?limit=2&continue={token}")
        assert (page.code, page.version) == (200, version), "all pages are of one state"
        shown, token = shown + page.names, page.body["metadata"].get("continue")
    assert (shown, turn) == (names, 3)


async def test_a_token_that_etcd_has_compacted_is_expired_and_another_one_continues_elsewhere(two: Two) -> None:
    await two.create(two.a, "n0", "n1", "n2")
    first = await two.ask(two.a, "GET", f"{MAPS}?limit=1")
    await two.create(two.a, "n3", "n4")
    await two.a.plane.store.compact(two.a.plane.store.revision)
    expired = await two.ask(two.b, "GET", f"{MAPS}?limit=1&continue={first.body['metadata']['continue']}")
    assert (expired.code, expired.body["reason"]) == (410, "Expired")
    token = expired.body["metadata"]["continue"]
    assert (await two.ask(two.a, "GET", f"{MAPS}?continue={token}")).names == ["n1", "n2", "n3", "n4"]


@pytest.mark.parametrize("match", ["", "&resourceVersionMatch=NotOlderThan", "&resourceVersionMatch=Exact"])
async def test_a_version_of_one_server_is_one_of_the_other(two: Two, match: str) -> None:
    [created] = await two.create(two.a, "n0")
    listed = await two.ask(two.b, "GET", f"{MAPS}?resourceVersion={created.version}{match}")
    assert (listed.code, listed.names) == (200, ["n0"])
    read = await two.ask(two.b, "GET", f"{MAPS}/n0?resourceVersion={created.version}")
    assert (read.code, read.body) == (200, created.body)
    updated = await two.ask(two.b, "PUT", f"{MAPS}/n0", {**created.body, "data": {"a": "b"}})
    assert updated.code == 200
    stale = await two.ask(two.a, "PUT", f"{MAPS}/n0", {**created.body, "data": {"a": "c"}})
    assert (stale.code, stale.body["reason"]) == (409, "Conflict")


async def test_a_watch_continues_at_the_other_server(two: Two) -> None:
    start = (await two.create(two.a, "first"))[0].version
    expected = []
    for number in range(6):
        [created] = await two.create((two.a, two.b)[number % 2], f"n{number}")
        expected.append(("ADDED", f"n{number}", created.version))
    deleted = await two.ask(two.a, "DELETE", f"{MAPS}/n0")
    assert deleted.code == 200
    seen, version = [], start
    for turn in range(3):
        events = await two.read_events((two.a, two.b)[turn % 2], version, 2)
        seen, version = seen + events, events[-1][2]
    assert seen == expected
    assert [event[:2] for event in await two.read_events(two.b, version, 1)] == [("DELETED", "n0")]


async def test_a_watch_from_a_version_that_the_other_server_has_not_seen_yet_waits_for_it(two: Two) -> None:
    await two.create(two.a, "before")
    with cut_off(two.b.plane.store):
        created = await two.create(two.a, "n0", "n1")
        watching = asyncio.create_task(two.read_events(two.b, created[0].version, 1))
        listing = asyncio.create_task(two.ask(two.b, "GET", f"{MAPS}?resourceVersion={created[1].version}"))
        await asyncio.sleep(0.05)
        assert not watching.done()
        assert not listing.done()
        shown = (await two.ask(two.b, "GET", f"{MAPS}?resourceVersion=0")).version
        assert int(shown) < int(created[0].version)  # servers write by themselves, too
    assert await watching == [("ADDED", "n1", created[1].version)]
    assert (await listing).names == ["before", "n0", "n1"]


@pytest.mark.parametrize("query", ["", "?limit=1", "/n0"])
async def test_a_version_that_the_other_server_does_not_reach_is_too_large(
    two: Two, query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("noxu.registry.reader.BLOCK_TIMEOUT", 0.1)
    await two.create(two.a, "n0")
    await eventually_async(lambda: two.b.plane.cache.revision >= two.a.plane.cache.revision)
    with cut_off(two.b.plane.store):
        [created] = await two.create(two.a, "n1")
        shown = two.b.plane.cache.revision
        sign = "&" if "?" in query else "?"
        answer = await two.ask(two.b, "GET", f"{MAPS}{query}{sign}resourceVersion={created.version}")
    assert (answer.code, answer.headers["Retry-After"]) == (504, "1")
    assert answer.body == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": f"Timeout: Too large resource version: {created.version}, current: {shown}",
        "reason": "Timeout",
        "details": {
            "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
            "retryAfterSeconds": 1,
        },
        "code": 504,
    }
    assert (await two.ask(two.b, "GET", f"{MAPS}?resourceVersion={created.version}")).code == 200
