"""R14: the server is stopped for a while, and continues (SIGSTOP and SIGCONT; Jepsen's pause).

It does not know that time has passed. What it answers afterwards is not stale, watches are complete, and no client is
treated as if it had been slow. NOXU_PAUSE is the length of a pause in seconds.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

import pytest

from tests.faults.concurrent_clients import change
from tests.faults.keepalive import Connection
from tests.faults.linearizability import Outcome, is_linearizable
from tests.faults.server_process import MAPS, Process
from tests.timing import eventually_async, hang_guard

PAUSE = float(os.environ.get("NOXU_PAUSE", "0.5"))
WATCHES = 20
WAITING = 12  # requests that are sent during a pause, of each kind
MARKER = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "marker-"}}


async def follow(port: int, revision: int, events: list[dict[str, Any]]) -> None:
    """Record the events of a watch until it is cancelled, or the server ends it."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
    try:
        writer.write(f"GET {MAPS}?watch=1&resourceVersion={revision} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        await reader.readuntil(b"\r\n\r\n")
        while size := int(await reader.readline(), 16):
            events += map(json.loads, (await reader.readexactly(size + 2))[:-2].splitlines())
    finally:
        writer.transport.abort()


async def newest_revision(port: int) -> int:
    connection = Connection(port)
    _, listed = await connection.ask("GET", MAPS)
    connection.close()
    return int(listed["metadata"]["resourceVersion"])


async def ask_once(port: int, *request: Any) -> Any:
    connection = Connection(port)
    try:
        return await connection.ask(*request)
    finally:
        connection.close()


async def pause(server: Process, created: list[int]) -> None:
    """Stop the server, send requests to it, and let it continue. Adds the revisions of what the requests created."""
    newest = await newest_revision(server.port)
    server.process.send_signal(signal.SIGSTOP)
    reads = [asyncio.create_task(ask_once(server.port, "GET", MAPS)) for _ in range(WAITING)]
    writes = [asyncio.create_task(ask_once(server.port, "POST", MAPS, MARKER)) for _ in range(WAITING)]
    await asyncio.sleep(PAUSE)
    assert not any(task.done() for task in reads + writes)
    server.process.send_signal(signal.SIGCONT)
    async with hang_guard():
        for status, listed in await asyncio.gather(*reads):
            assert status == 200
            assert int(listed["metadata"]["resourceVersion"]) >= newest, "a stale list"
        for status, answer in await asyncio.gather(*writes):
            assert status == 201
            created.append(int(answer["metadata"]["resourceVersion"]))


@pytest.mark.timeout(300 + 10 * PAUSE)
async def test_after_a_pause_nothing_is_stale_and_watches_are_complete(
    started: Process, record_property: Callable[[str, object], None]
) -> None:
    start = await newest_revision(started.port)
    streams: list[list[dict[str, Any]]] = [[] for _ in range(WATCHES)]
    watching = [asyncio.create_task(follow(started.port, start, events)) for events in streams]
    written: list[int] = []
    operations = 0
    for number in range(3):
        changed = await change(started.port, f"object{number}", Random(number), partial(pause, started, written))
        assert is_linearizable(changed.history), changed.history
        operations += len(changed.history)
        written += [each.revision for each in changed.history if each.outcome is Outcome.DONE and each.revision]
    _, last = await ask_once(started.port, "POST", MAPS, MARKER)
    end = int(last["metadata"]["resourceVersion"])

    def complete() -> bool:
        assert not any(task.done() for task in watching), "a watch has ended"
        return all(events and revision_of(events[-1]) >= end for events in streams)

    await eventually_async(complete)
    for task in watching:
        task.cancel()
    await asyncio.gather(*watching, return_exceptions=True)
    shown = [revision_of(event) for event in streams[0]]
    assert shown == sorted(set(shown))
    assert set(written) <= set(shown)
    assert all(events == streams[0] for events in streams)
    output = started.end(signal.SIGTERM)
    assert "Traceback" not in output, output
    record_property("seconds of each pause", PAUSE)
    record_property("operations", operations)
    record_property("watches", WATCHES)


def revision_of(event: dict[str, Any]) -> int:
    return int(event["object"]["metadata"]["resourceVersion"])
