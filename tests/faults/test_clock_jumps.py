"""R13: the time of day is set while the server runs (Jepsen's clock nemesis): a year ahead, a year back, a second.

Revisions grow, watches and deadlines count the time that passes, and only what is about the time of day follows it:
timestamps, and the validity of tokens. The lifetime of Events is in tests/controllers/test_expiry.py.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest

from noxu.clock import SystemClock
from noxu.config import Config
from noxu.go.time import format_time
from noxu.process.server import Server
from tests.faults.concurrent_clients import change
from tests.faults.keepalive import Connection
from tests.faults.linearizability import Outcome, is_linearizable
from tests.faults.server_process import MAPS
from tests.timing import hang_guard

ROUNDS = int(os.environ.get("NOXU_CLOCK_ROUNDS", "1"))
YEAR = 365 * 24 * 3600.0
JUMPS = {"a year ahead": YEAR, "a year back": -YEAR, "a second back": -1.0}


class SetClock(SystemClock):
    """The time of the operating system, and a part that a test adds. time.time() shows it, too."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.added = 0.0  # seconds
        real, real_ns = time.time, time.time_ns
        monkeypatch.setattr(time, "time", lambda: real() + self.added)
        monkeypatch.setattr(time, "time_ns", lambda: real_ns() + round(self.added * 1e9))

    def now(self) -> datetime:
        return datetime.now(UTC) + timedelta(seconds=self.added)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SetClock:
    return SetClock(monkeypatch)


@pytest.fixture
async def server(clock: SetClock, tmp_path: Path) -> AsyncIterator[Server]:
    async with Server(Config(port=0, data=tmp_path), clock=clock) as running:
        yield running


async def ask(server: Server, method: str, path: str, value: Any = None) -> Any:
    connection = Connection(int(server.url.rpartition(":")[2]))
    try:
        status, answer = await connection.ask(method, path, value)
    finally:
        connection.close()
    assert status in (200, 201), answer
    return answer


def config_map(name: str) -> Any:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


@pytest.mark.parametrize("jump", JUMPS)
async def test_concurrent_writes_do_not_notice_that_the_clock_is_set(
    server: Server, clock: SetClock, tmp_path: Path, jump: str, record_property: Callable[[str, object], None]
) -> None:
    operations = 0
    port = int(server.url.rpartition(":")[2])

    async def set_clock() -> None:
        clock.added += JUMPS[jump]

    for number in range(ROUNDS):
        history = (await change(port, f"object{number}", Random(number), set_clock)).history
        assert is_linearizable(history), history
        written = [each.revision for each in history if each.outcome is Outcome.DONE and each.action != "read"]
        operations += len(history)
        assert max(written) <= server.plane.store.revision
    record_property("operations", operations)
    newest = server.plane.store.revision
    await server.__aexit__(None, None, None)
    clock.added += JUMPS[jump]
    async with Server(Config(port=0, data=tmp_path), clock=clock) as again:  # it continues where it was
        created = await ask(again, "POST", MAPS, config_map("after"))
        assert int(created["metadata"]["resourceVersion"]) > newest


@pytest.mark.parametrize("jump", JUMPS)
async def test_a_watch_lasts_as_long_as_it_was_asked_for_when_the_clock_is_set(
    server: Server, clock: SetClock, jump: str
) -> None:
    started = time.monotonic()
    reader, writer = await asyncio.open_connection("127.0.0.1", int(server.url.rpartition(":")[2]))
    request = f"GET {MAPS}?watch=1&resourceVersion=1&timeoutSeconds=2 HTTP/1.1\r\nHost: localhost\r\n\r\n"
    writer.write(request.encode())
    async with hang_guard():
        await reader.readuntil(b"\r\n\r\n")
        clock.added += JUMPS[jump]
        await ask(server, "POST", MAPS, config_map("after"))
        stream = await reader.readuntil(b"0\r\n\r\n")
    writer.close()
    assert b'"name":"after"' in stream
    assert time.monotonic() - started >= 2


@pytest.mark.parametrize("jump", JUMPS)
async def test_timestamps_follow_the_time_of_day(server: Server, clock: SetClock, jump: str) -> None:
    before = await ask(server, "POST", MAPS, config_map("before"))
    clock.added += JUMPS[jump]
    earliest = format_time(clock.now())
    after = await ask(server, "POST", MAPS, config_map("after"))
    latest = format_time(clock.now())
    assert earliest <= after["metadata"]["creationTimestamp"] <= latest
    assert (await ask(server, "GET", f"{MAPS}/before"))["metadata"] == before["metadata"]


@pytest.mark.parametrize(("added", "valid"), [(0, True), (3_000, True), (YEAR, False), (-YEAR, False)])
async def test_a_token_is_valid_by_the_time_of_day(server: Server, clock: SetClock, added: float, valid: bool) -> None:
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}}
    await ask(server, "POST", "/api/v1/namespaces/default/serviceaccounts", account)
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    issued = await ask(server, "POST", "/api/v1/namespaces/default/serviceaccounts/robot/token", request)
    review = {
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": issued["status"]["token"]}
    }  # fmt: skip
    reviews = "/apis/authentication.k8s.io/v1/tokenreviews"
    clock.added += added
    assert (await ask(server, "POST", reviews, review))["status"].get("authenticated", False) is valid
    clock.added -= added
    assert (await ask(server, "POST", reviews, review))["status"]["authenticated"] is True
