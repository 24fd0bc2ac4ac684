"""The access log: one line for each request, whatever became of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from noxu.http.metrics import access_log
from tests.http.exchanges import MAPS, serving_app


class Lines:
    def __init__(self) -> None:
        self.lines: list[bytes] = []

    def put(self, line: bytes | Callable[[], bytes], weight: int) -> None:
        assert isinstance(line, bytes)
        assert weight == len(line)
        self.lines.append(line)


def written() -> tuple[Any, Lines]:
    lines: Any = Lines()
    return access_log(lines, "json", now=lambda: 0.0), lines


def logged(**parts: Any) -> dict[str, Any]:
    sink, lines = written()
    exchange: Any = SimpleNamespace(
        request=SimpleNamespace(method="GET", raw_path="/x"),
        user=SimpleNamespace(name="ann"),
        info=SimpleNamespace(verb="list"),
        code=200,
        id="id-1",
        traceparent="",
        received=1.0,
        answered=61.5,
    )
    vars(exchange).update(parts)
    sink(exchange)
    [line] = lines.lines
    found: dict[str, Any] = json.loads(line)
    return found


def test_a_watch_is_logged_with_its_duration() -> None:
    found = logged(info=SimpleNamespace(verb="watch"))
    assert (found["verb"], found["code"], found["ms"]) == ("watch", 200, 60_500.0)


def test_a_request_for_no_resource_has_its_method() -> None:
    assert logged(info=SimpleNamespace(verb=""))["verb"] == "GET"


def test_a_client_that_left_has_code_0() -> None:
    assert logged(code=0)["code"] == 0


def test_the_trace_of_a_client_is_logged() -> None:
    assert "traceparent" not in logged()
    assert logged(traceparent="00-…")["traceparent"] == "00-…"


async def test_requests_that_are_refused_are_logged_too() -> None:
    sink, lines = written()
    async with serving_app(sink) as served:
        await served.send("GET", MAPS)
        await served.send("GET", "/api/v1/nothing")
        await served.send("GET", MAPS, Host="evil.example")
    assert [json.loads(line)["code"] for line in lines.lines] == [200, 404, 403]
