"""Every request is answered, passes the filters in order, and leaves a complete exchange to the sinks."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

import aiohttp
import pytest

from conformance.client import DEFINITIONS
from noxu.api import errors
from noxu.http import app, filters
from noxu.http.answer import Answer
from noxu.http.app import call_all
from noxu.http.exchange import Exchange
from noxu.http.filters import RequestFilter
from noxu_storage.types import StoreError
from tests.http.conftest import widgets
from tests.http.exchanges import MAPS, Handler, ServedApp, serving_app
from tests.timing import eventually_async

MAP = {"metadata": {"name": "a"}}
BUG = "Internal error occurred: this is a bug in the server; its log says more"


@pytest.fixture
async def served() -> AsyncIterator[ServedApp]:
    async with serving_app() as found:
        yield found


def answering(monkeypatch: pytest.MonkeyPatch, handler: Handler) -> None:
    """Answer requests for resources with `handler`."""
    monkeypatch.setattr(app, "handler_of", lambda resource, info: handler)


# -- the exchange -----------------------------------------------------------------------------------------------------

ALL = ["answered", "handled", "routed"]
UNROUTED = ["answered", "handled"]


def stages_of(exchange: Exchange) -> list[str]:
    """The stages that are completed."""
    completed = {"answered": exchange.answered, "handled": exchange.handled, "routed": exchange.is_routed}
    return [stage for stage, is_completed in completed.items() if is_completed]


# name, method, path, code, verb, resource, stages that were completed
EXCHANGES: list[tuple[str, str, str, int, str, str, list[str]]] = [
    ("a list", "GET", MAPS, 200, "list", "configmaps", ALL),
    ("an object that does not exist", "GET", f"{MAPS}/a", 404, "get", "configmaps", ALL),
    ("a body of no known type", "POST", MAPS, 415, "create", "configmaps", ALL),
    ("a watch", "GET", f"{MAPS}?watch=1&timeoutSeconds=1", 200, "watch", "configmaps", ALL),
    ("a watch that is refused", "GET", f"{MAPS}?watch=1&sendInitialEvents=1", 422, "watch", "configmaps", ALL),
    ("a verb that the resource has not", "PUT", MAPS, 405, "update", "configmaps", UNROUTED),
    ("a document", "GET", "/version", 200, "", "", UNROUTED),
    ("a path without a document", "GET", "/nothing", 404, "", "", UNROUTED),
    ("a namespace that is refused", "GET", "/api/v1/namespaces/%2e%2e/configmaps", 400, "", "", UNROUTED),
    ("a timeout that is refused", "GET", f"{MAPS}?timeout=x", 400, "list", "configmaps", UNROUTED),
]  # fmt: skip


@pytest.mark.parametrize(
    ("method", "path", "code", "verb", "resource", "stages"),
    [row[1:] for row in EXCHANGES],
    ids=[row[0] for row in EXCHANGES],
)
async def test_the_exchange_of(
    served: ServedApp, method: str, path: str, code: int, verb: str, resource: str, stages: list[str]
) -> None:
    assert (await served.send(method, path)).code == code
    await eventually_async(lambda: served.exchanges)
    [exchange] = served.exchanges
    assert exchange.code == code
    assert (exchange.info.verb, exchange.info.resource) == (verb, resource)
    assert (exchange.error is None) == (code == 200 or (not verb and code == 404))
    assert exchange.error is None or exchange.error.__traceback__ is None  # its frames would be a cycle
    assert stages_of(exchange) == stages
    assert exchange.received <= exchange.handled <= exchange.answered


async def test_the_exchange_of_a_request_that_times_out(served: ServedApp, monkeypatch: pytest.MonkeyPatch) -> None:
    async def hang(exchange: Exchange) -> Answer:
        await asyncio.Event().wait()
        raise AssertionError("unreachable")

    answering(monkeypatch, hang)
    reply = await served.send("GET", f"{MAPS}?timeout=10ms")
    [exchange] = served.exchanges
    assert (reply.code, json.loads(reply.text)["reason"]) == (504, "Timeout")
    assert (exchange.code, exchange.error and exchange.error.reason) == (504, "Timeout")
    assert stages_of(exchange) == ALL
    assert exchange.handled >= exchange.deadline


FAILURES: list[tuple[str, Exception, int, str]] = [
    ("an error", errors.bad_request("no"), 400, "no"),
    ("a failure of the store", StoreError("disk full"), 500, "Internal error occurred: the storage failed: disk full"),
    ("a bug", KeyError("x"), 500, BUG),
    ("a timeout that is not its deadline", TimeoutError(), 500, BUG),
]


@pytest.mark.parametrize(
    ("failure", "code", "message"), [row[1:] for row in FAILURES], ids=[row[0] for row in FAILURES]
)
async def test_a_handler_that_raises(
    served: ServedApp,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    failure: Exception,
    code: int,
    message: str,
) -> None:
    async def fail(exchange: Exchange) -> Answer:
        raise failure

    answering(monkeypatch, fail)
    reply = await served.send("GET", MAPS)
    [exchange] = served.exchanges
    assert (reply.code, json.loads(reply.text)["message"]) == (code, message)
    assert (exchange.code, exchange.error and exchange.error.message) == (code, message)
    assert stages_of(exchange) == ALL
    logged = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert len(logged) == (code == 500)
    assert all(text.startswith(f"GET {MAPS}") for text in logged)


async def test_the_exchange_of_a_client_that_is_gone(served: ServedApp, monkeypatch: pytest.MonkeyPatch) -> None:
    started = asyncio.Event()

    async def hang(exchange: Exchange) -> Answer:
        started.set()
        await asyncio.Event().wait()
        raise AssertionError("unreachable")

    answering(monkeypatch, hang)
    request = asyncio.create_task(served.send("GET", MAPS))
    await started.wait()
    request.cancel()
    await eventually_async(lambda: served.exchanges)
    [exchange] = served.exchanges
    assert (exchange.code, exchange.error) == (0, None)
    assert stages_of(exchange) == ALL


async def test_the_exchange_of_a_watch_whose_client_is_gone(served: ServedApp) -> None:
    async with aiohttp.ClientSession() as session:
        answer = await session.get(f"{served.url}{MAPS}?watch=1")
        assert answer.status == 200
        answer.close()
    await eventually_async(lambda: served.exchanges)
    [exchange] = served.exchanges
    assert (exchange.code, exchange.error) == (200, None)


IDS = [("its own", {}, None), ("the client's", {"Audit-Id": "x-1"}, "x-1"), ("an empty one", {"Audit-Id": ""}, None)]


@pytest.mark.parametrize(("headers", "expected"), [row[1:] for row in IDS], ids=[row[0] for row in IDS])
async def test_the_id_is_in_the_answer(served: ServedApp, headers: dict[str, str], expected: str | None) -> None:
    reply = await served.send("GET", "/version", **headers)
    [exchange] = served.exchanges
    assert reply.headers["Audit-Id"] == exchange.id
    assert exchange.id
    assert expected in (None, exchange.id)


async def test_a_sink_that_fails_is_logged_and_costs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def fail(exchange: Exchange) -> None:
        raise KeyError("x")

    later: list[Exchange] = []
    async with serving_app(fail, later.append) as served:
        assert (await served.send("GET", "/version")).code == 200
        assert later == served.exchanges != []
    assert [record.getMessage() for record in caplog.records if record.name == "noxu"] == [
        "a sink for GET /version failed"
    ]


# -- filters ----------------------------------------------------------------------------------------------------------


class Noted(RequestFilter):
    """Writes down that it is entered and left; `fails` when it is."""

    def __init__(self, name: str, notes: list[str], fails: str = "") -> None:
        self._name, self._notes, self._fails = name, notes, fails

    def enter(self, exchange: Exchange) -> None:
        self._note("enter")
        exchange.leaving.append(self._leave)

    def _leave(self, exchange: Exchange) -> None:
        self._note("leave")

    def _note(self, event: str) -> None:
        self._notes.append(f"{event} {self._name}")
        if self._fails == "refuse" and event == "enter":
            raise errors.bad_request("no")
        if self._fails == event:
            raise KeyError("x")


COMPLETE: Final = "enter a, enter b, enter c, leave c, leave b, leave a"
PASSAGES: list[tuple[str, list[str], int, str]] = [
    ("all pass", ["", "", ""], 200, COMPLETE),
    ("one refuses", ["", "refuse", ""], 400, "enter a, enter b, leave a"),
    ("the first refuses", ["refuse", "", ""], 400, "enter a"),
    ("one has a bug when it is entered", ["", "enter", ""], 500, "enter a, enter b, leave a"),
    ("one has a bug when it is left", ["", "leave", ""], 200, COMPLETE),
    ("all have it", ["leave"] * 3, 200, COMPLETE),
]


@pytest.mark.parametrize(("fails", "code", "expected"), [row[1:] for row in PASSAGES], ids=[row[0] for row in PASSAGES])
async def test_filters_are_entered_in_order_and_left_in_reverse_order(
    monkeypatch: pytest.MonkeyPatch, fails: list[str], code: int, expected: str
) -> None:
    notes: list[str] = []
    noted = tuple(Noted(name, notes, fail) for name, fail in zip("abc", fails, strict=True))
    own = filters.chain
    monkeypatch.setattr(filters, "chain", lambda **parts: (*own(**parts), *noted))
    async with serving_app() as served:
        assert (await served.send("GET", "/version")).code == code
        await eventually_async(lambda: len(served.exchanges) == 1)
        assert ", ".join(notes) == expected
        assert [exchange.code for exchange in served.exchanges] == [code]


async def test_what_is_left_finds_the_error_and_may_add_headers(monkeypatch: pytest.MonkeyPatch) -> None:
    class Leaving(RequestFilter):
        def enter(self, exchange: Exchange) -> None:
            exchange.leaving.append(
                lambda left: left.headers.append(("X-Error", str(left.error and left.error.message)))
            )

    own = filters.chain
    added = (Leaving(), Noted("b", [], "refuse"))
    monkeypatch.setattr(filters, "chain", lambda **parts: (*own(**parts), *added))
    async with serving_app() as served:
        reply = await served.send("GET", "/version")
    assert (reply.code, reply.headers["X-Error"]) == (400, "no")


async def test_warnings_become_headers_behind_those_of_filters(
    served: ServedApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def warn(exchange: Exchange) -> Answer:
        exchange.outcome.warnings += ["a", 'b"', "a"]
        exchange.headers.append(("X", "y"))
        return Answer(b"{}")

    answering(monkeypatch, warn)
    headers = (await served.send("GET", MAPS)).headers
    assert [(name, value) for name, value in headers.items() if name in ("X", "Warning")] == [
        ("X", "y"), ("Warning", '299 - "a"'), ("Warning", '299 - "b\\""')
    ]  # fmt: skip


@pytest.mark.parametrize(
    "ends", [None, errors.bad_request("no"), KeyError("a bug")], ids=["answered", "refused", "bug"]
)
async def test_the_room_of_a_large_request_is_given_back_once(
    served: ServedApp, monkeypatch: pytest.MonkeyPatch, ends: Exception | None
) -> None:
    given_back: list[int] = []
    rooms = served.app.backend.large_requests
    leave = rooms.leave
    monkeypatch.setattr(rooms, "leave", lambda weight: (given_back.append(weight), leave(weight)))

    async def take_room(exchange: Exchange) -> Answer:
        await exchange.read_body()
        if ends is not None:
            raise ends
        return Answer(b"{}")

    answering(monkeypatch, take_room)
    await served.send("POST", MAPS, {"a": "x" * 20_000})
    assert given_back == [20_009]
    await served.send("POST", MAPS, {})
    assert given_back == [20_009]


async def test_a_filter_may_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    class Waiting(RequestFilter):
        async def _wait(self) -> None:
            await asyncio.sleep(0)
            raise errors.bad_request("after a while")

        def enter(self, exchange: Exchange) -> Any:
            return self._wait()

    own = filters.chain
    monkeypatch.setattr(filters, "chain", lambda **parts: (*own(**parts), Waiting()))
    async with serving_app() as served:
        assert json.loads((await served.send("GET", "/version")).text)["message"] == "after a while"


async def test_a_deprecated_version_warns(served: ServedApp) -> None:
    definition = widgets("app.example.com", {}, deprecated=True, deprecationWarning="v1 is deprecated")
    assert (await served.send("POST", DEFINITIONS, definition)).code == 201
    collection = "/apis/app.example.com/v1/widgets"
    for method, path, code in (
        ("GET", collection, 200),
        ("GET", f"{collection}/a", 404),
        ("GET", f"{collection}/a/status", 404),
        ("PATCH", f"{collection}/a/nothing", 404),
        ("GET", f"{collection}/a/scale?watch=1", 404),
        ("OPTIONS", collection, 405),
    ):
        reply = await served.send(method, path)
        assert (reply.code, reply.headers.getall("Warning")) == (code, ['299 - "v1 is deprecated"'])
    assert "Warning" not in (await served.send("GET", "/apis/app.example.com/v2/widgets")).headers


def test_all_functions_are_called_even_if_some_fail(caplog: pytest.LogCaptureFixture) -> None:
    called: list[int] = []

    def function(number: int) -> Callable[[list[int]], None]:
        def call(numbers: list[int]) -> None:
            numbers.append(number)
            if number % 2:
                raise ValueError(number)

        return call

    call_all("the numbers", map(function, range(5)), called)
    assert called == list(range(5))
    assert [record.getMessage() for record in caplog.records] == ["the numbers failed"] * 2


def test_a_cancellation_ends_the_calls() -> None:
    def cancel(_: object) -> None:
        raise asyncio.CancelledError

    called: list[object] = []
    with pytest.raises(asyncio.CancelledError):
        call_all("the calls", [cancel, called.append], None)
    assert called == []
