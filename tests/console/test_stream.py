"""The live stream: what a viewer is sent, and that a server without one does nothing for it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from types import FrameType
from typing import Final

import pytest

from benchmarks.history import Client
from noxu.config import Config
from noxu.console import stream
from noxu.console.stream import BEAT, MAX_EVENTS, MAX_LINES, Live, Viewer, timeline
from noxu.console.timeline import WRITE_COLUMNS, mark_of
from noxu.control.calls import ControlCall
from noxu.control.write_log import UNKNOWN_WRITERS
from noxu.http.recent_requests import RecentRequests
from noxu.http.request_details import Allowance, Bucket
from noxu.process.server import Server
from noxu.registry.access import ANONYMOUS
from noxu.registry.storage_form import SERVER_LEASES
from noxu_storage.types import Event, Key
from tests.timing import eventually_async


async def test_a_viewer_is_sent_the_writes_after_the_first_line() -> None:
    async with Server(Config(port=0)) as server:
        live = server.control.part(Live)
        cache = server.plane.cache
        assert live not in cache.watchers
        async with contextlib.aclosing(live.lines()) as lines:
            first = json.loads(await anext(lines))
            assert first == {
                "revision": server.plane.store.revision,
                "lost": 0,
                "columns": [*WRITE_COLUMNS],
                "writes": [],
                "marks": [],
                "received": [],
            }
            assert live in cache.watchers
            await server.plane.store.put(Key("example.com/widgets", "default/", "a"), b"{}", expected=0)
            line = json.loads(await asyncio.wait_for(anext(lines), 30))
            [mark] = map(mark_of, line["writes"])
            written = (mark["revision"], mark["event"], mark["resource"], mark["namespace"], mark["name"])
            assert written == (first["revision"] + 1, "ADDED", "widgets.example.com", "default", "a")
        assert live not in cache.watchers


async def test_what_is_no_object_of_the_api_makes_no_line() -> None:
    """A page takes a line without anything for the first one, and asks for everything again."""
    async with Server(Config(port=0)) as server:
        store = server.plane.store
        async with contextlib.aclosing(server.control.part(Live).lines()) as lines:
            await anext(lines)
            await store.put(Key(SERVER_LEASES, "", "a"), b"{}", expected=0)
            await asyncio.sleep(3 * BEAT)  # as long as a line would take
            await store.put(Key("example.com/widgets", "default/", "a"), b"{}", expected=0)
            line = json.loads(await asyncio.wait_for(anext(lines), 30))
            assert [mark_of(row)["name"] for row in line["writes"]] == ["a"]


async def test_a_viewer_costs_a_write_few_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the functions that do something for viewers alone, where a write is one of so many that its details are not kept."""
    monkeypatch.setattr(stream, "BEAT", 1e6)
    calls: list[str] = []

    def profile(frame: FrameType, what: str, _: object) -> None:
        if what == "call" and frame.f_code.co_filename.endswith(FOR_VIEWERS):
            calls.append(frame.f_code.co_qualname)

    async with Server(Config(port=0)) as server, asyncio.timeout(60):
        live, details = server.control.part(Live), server.interventions.details()
        details.kept = details.traces = Bucket(Allowance(0.0, 0.0))
        client = Client(*await asyncio.open_connection("127.0.0.1", server.listeners.port))
        async with contextlib.aclosing(live.lines()) as lines:
            await anext(lines)
            counts = []
            for writes in (10, 10, 30):
                calls.clear()
                sys.setprofile(profile)
                try:
                    for _ in range(writes):
                        await client.create()
                    await live._make_line()
                finally:
                    sys.setprofile(None)
                assert len(json.loads(await anext(lines))["writes"]) == writes
                counts.append(len(calls))
        await client.close()
    assert counts[2] - counts[1] == 20 * 8, sorted({*calls})


FOR_VIEWERS: Final = (
    *("console/stream.py", "console/write_marks.py", "console/timeline.py", "console/controller_causes.py"),
    *("http/recent_requests.py", "http/request_details.py", "control/history.py"),
)


async def test_a_bug_in_one_line_does_not_end_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object) -> None:
        monkeypatch.undo()
        raise RuntimeError("a bug")

    async with Server(Config(port=0)) as server:
        store, live = server.plane.store, server.control.part(Live)
        async with contextlib.aclosing(live.lines()) as lines:
            await anext(lines)
            monkeypatch.setattr(live, "sights", fail)
            await store.put(Key("example.com/widgets", "default/", "a"), b"{}", expected=0)
            assert json.loads(await asyncio.wait_for(anext(lines), 10))["lost"] == 1
            await store.put(Key("example.com/widgets", "default/", "b"), b"{}", expected=0)
            line = json.loads(await asyncio.wait_for(anext(lines), 10))
            assert [mark_of(row)["name"] for row in line["writes"]] == ["b"]


async def test_nothing_is_recorded_after_the_last_viewer_has_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a server without a viewer does for one is nothing: no filter, no watcher of its log, no task, no notes."""
    monkeypatch.setattr(stream, "LINGER", 0.0)
    async with Server(Config(port=0)) as server:
        live, app, intervening = server.control.part(Live), server._http.app, server.interventions
        before = (app.filters, list(server.plane.cache.watchers))
        async with contextlib.aclosing(live.lines()) as one, contextlib.aclosing(live.lines()) as other:
            await anext(one)
            await anext(other)
            await one.aclose()
            assert any(isinstance(each, RecentRequests) for each in app.filters)
        await eventually_async(lambda: live._lingering is None)
        assert (app.filters, list(server.plane.cache.watchers)) == before
        assert (live._beating, len(live._events), len(live._write_marks.awaited)) == (None, 0, 0)
        # a report wants all requests from its first call on: they begin anew, and no viewer ends them
        record = intervening.begin_requests()
        intervening.end_requests()
        since = record.began
        assert intervening.requests() is record
        intervening.end_requests()
        assert record in app.filters
        assert record.began > since


async def test_a_viewer_that_comes_back_at_once_finds_no_gap_in_the_requests() -> None:
    async with Server(Config(port=0)) as server:
        live, app = server.control.part(Live), server._http.app
        for _ in range(2):
            async with contextlib.aclosing(live.lines()) as lines:
                await anext(lines)
            assert any(isinstance(each, RecentRequests) for each in app.filters)


async def test_events_that_wait_for_a_line_are_bounded() -> None:
    async with Server(Config(port=0)) as server:
        live = server.control.part(Live)
        event = Event(Key("example.com/widgets", "default/", "a"), 7, b"{}", None)
        for count in (1, MAX_EVENTS + 4, 1, 2 * MAX_EVENTS, 3):
            live.deliver([event] * count, 7)
        assert sum(len(events) for _, events in live._events) == live._waiting == MAX_EVENTS
        assert live._lost == 2 * MAX_EVENTS + 9
        assert len(live._events) == 2
        live._rest()


async def test_the_timeline_says_from_when_on_requests_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the first viewer on, and from the next one on if there was none for a while."""
    monkeypatch.setattr(stream, "LINGER", 0.0)
    async with Server(Config(port=0)) as server:
        live, since = server.control.part(Live), []
        for _ in range(2):
            async with contextlib.aclosing(live.lines()) as one, contextlib.aclosing(live.lines()) as other:
                await anext(one)
                first = await misses_before(server)
                await anext(other)
                assert await misses_before(server) == first
            since.append(first)
            await eventually_async(lambda: live._lingering is None)
        assert 0.0 < since[0] < since[1]


async def test_a_server_that_records_requests_from_its_start_misses_none() -> None:
    async with Server(Config(port=0, record_requests=True)) as server:
        assert await misses_before(server) == 0.0


async def misses_before(server: Server) -> float:
    found = await timeline(ControlCall({}, {"limit": 1}, {}, ANONYMOUS, server.control))
    assert isinstance(found.body, bytes)
    return float(json.loads(found.body)["requestsMissBefore"])


@pytest.mark.parametrize(("history", "note"), [(300.0, ""), (0.0, UNKNOWN_WRITERS)])
async def test_the_timeline_says_if_who_wrote_is_not_known(history: float, note: str) -> None:
    async with Server(Config(port=0, history=history)) as server:
        found = await timeline(ControlCall({}, {"limit": 1}, {}, ANONYMOUS, server.control))
        assert isinstance(found.body, bytes)
        answer = json.loads(found.body)
        assert (len(answer["marks"]), answer["note"]) == (1, note)


def test_a_viewer_that_does_not_read_loses_the_oldest_lines() -> None:
    viewer = Viewer()
    for number in range(MAX_LINES + 1):
        viewer.add(b"%d" % number)
    assert (viewer.lost, viewer.lines[0]) == (True, b"1")
