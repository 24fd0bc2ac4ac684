"""Requests for watches: their headers, their exchange, and how they end."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator

import pytest

from conformance.client import DEFINITIONS
from noxu.http.watch_requests import WatchQuota
from noxu.registry.reader import Selection
from tests.http.conftest import widgets
from tests.http.exchanges import MAPS, ServedApp, serving_app
from tests.timing import eventually_async, hang_guard

WIDGETS = "/apis/watches.example.com/v1/widgets"
WATCH = f"{MAPS}?watch=1"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
METADATA = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
PROTOBUF = "application/vnd.kubernetes.protobuf"


@pytest.fixture
async def served() -> AsyncIterator[ServedApp]:
    async with serving_app() as found:
        yield found


SHORT = "&timeoutSeconds=1"
STREAMS: list[tuple[str, str, str]] = [
    ("JSON", "", "application/json"),
    ("tables", TABLE, "application/json"),
    ("metadata", METADATA, "application/json"),
    ("protobuf", PROTOBUF, f"{PROTOBUF};stream=watch"),
]


@pytest.mark.parametrize(("accept", "content_type"), [row[1:] for row in STREAMS], ids=[row[0] for row in STREAMS])
async def test_the_headers_of_a_stream_of(served: ServedApp, accept: str, content_type: str) -> None:
    headers = {"Accept": accept} if accept else {}
    async with served.session.get(f"{served.url}{WATCH}", headers=headers) as answer:
        assert answer.status == 200
        assert answer.headers["Content-Type"] == content_type
        assert answer.headers["Cache-Control"] == "no-cache, private"
        assert answer.headers["Transfer-Encoding"] == "chunked"


async def test_the_warnings_of_a_watch_are_in_its_head(served: ServedApp) -> None:
    definition = widgets("watches.example.com", {}, deprecated=True, deprecationWarning="v1 is deprecated")
    assert (await served.send("POST", DEFINITIONS, definition)).code == 201
    reply = await served.send("GET", f"{WIDGETS}?watch=1{SHORT}")
    assert reply.headers.getall("Warning") == ['299 - "v1 is deprecated"']


async def test_head_of_a_watch_by_its_path_has_no_events(served: ServedApp) -> None:
    await served.send("POST", DEFINITIONS, widgets("watches.example.com", {}))
    async with hang_guard():
        reply = await served.send("HEAD", WIDGETS.replace("/v1/", "/v1/watch/"))
    assert (reply.code, reply.text) == (200, "")
    [_, exchange] = served.exchanges
    assert (exchange.info.verb, exchange.code) == ("watch", 200)


async def test_a_web_socket_ends_with_code_101(served: ServedApp) -> None:
    origin = served.url.rstrip("/")
    async with served.session.ws_connect(f"{served.url}{WATCH}", origin=origin) as socket:
        await socket.close()
    await eventually_async(lambda: served.exchanges)
    assert [exchange.code for exchange in served.exchanges] == [101]


async def test_a_web_socket_that_is_refused(served: ServedApp) -> None:
    headers = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Key": "x"}
    reply = await served.send("GET", WATCH, **headers)
    assert (reply.code, reply.text) == (400, "mismatch challenge/response")
    assert [exchange.code for exchange in served.exchanges] == [400]


async def test_the_end_of_the_server_ends_all_watches(served: ServedApp) -> None:
    async with contextlib.AsyncExitStack() as stack:
        answers = [await stack.enter_async_context(served.session.get(f"{served.url}{WATCH}")) for _ in range(3)]
        assert served.exchanges == []
        served.app.end_watches()
        async with hang_guard():
            assert await asyncio.gather(*(answer.read() for answer in answers)) == [b"", b"", b""]
    await eventually_async(lambda: len(served.exchanges) == 3)
    assert [exchange.code for exchange in served.exchanges] == [200, 200, 200]


async def test_a_watch_of_a_resource_without_watches_is_refused(served: ServedApp) -> None:
    reply = await served.send("GET", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews?watch=1")
    assert (reply.code, json.loads(reply.text)["reason"]) == (405, "MethodNotAllowed")


# -- limits -----------------------------------------------------------------------------------------------------------


async def test_a_watch_beyond_the_limit_is_refused_and_may_be_retried(served: ServedApp) -> None:
    served.app.watches.quota = WatchQuota(max_watches=1)
    async with served.session.get(f"{served.url}{WATCH}"):
        reply = await served.send("GET", WATCH)
        assert (reply.code, json.loads(reply.text)["reason"]) == (429, "TooManyRequests")
        assert reply.headers["Retry-After"] == "1"
        assert (await served.send("GET", MAPS)).code == 200
    await eventually_async(lambda: served.app.watches.quota.watches == 0)
    assert (await served.send("GET", f"{WATCH}{SHORT}")).code == 200


async def test_a_watch_beyond_the_limit_is_refused_before_its_selectors_are_parsed(served: ServedApp) -> None:
    served.app.watches.quota = WatchQuota(max_memory=1_000)
    for selector in ("labelSelector=a,b,c,d,e,f,g,h,-", "fieldSelector=a,b,c,d,e,f,g,h"):
        reply = await served.send("GET", f"{WATCH}&{selector}")
        assert (reply.code, json.loads(reply.text)["reason"]) == (429, "TooManyRequests")
    reply = await served.send("GET", f"{WATCH}&labelSelector=-")
    assert reply.code == 400


async def test_a_watch_keeps_one_selector_of_equal_ones_and_not_its_text(served: ServedApp) -> None:
    def selections() -> list[Selection]:
        return [stream.selection for stream in served.app.watches.streams]

    async with contextlib.AsyncExitStack() as stack:
        for _ in range(2):
            target = f"{served.url}{WATCH}&labelSelector=a,b&fieldSelector=metadata.name!%3Dx"
            await stack.enter_async_context(served.session.get(target))
        assert len(selections()) == 2
        assert len({id(selection.labels) for selection in selections()}) == 1
        assert len({id(selection.fields) for selection in selections()}) == 1
    await eventually_async(lambda: len(served.exchanges) == 2)
    assert [exchange.query for exchange in served.exchanges] == [{"watch": ["1"]}] * 2
