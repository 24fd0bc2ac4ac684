"""R15: what twelve clients do to one object could have happened one after another (etcd's and Jepsen's check).

The server is a process of its own. Clients create, update with a precondition, patch, delete, read and list; some
disconnect during a request, and the server is killed and started again: the outcomes of these requests are unknown.
NOXU_HISTORIES is the number of objects, NOXU_INCREMENTS that of increments of a counter.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from functools import partial
from random import Random

import pytest

from tests.faults.concurrent_clients import CLIENTS, REQUESTS, change, winners
from tests.faults.keepalive import Connection
from tests.faults.linearizability import is_linearizable
from tests.faults.server_process import MAPS, Process

HISTORIES = int(os.environ.get("NOXU_HISTORIES", "9"))
INCREMENTS = int(os.environ.get("NOXU_INCREMENTS", "200"))


async def killed_and_restarted(servers: list[Process]) -> None:
    """Kill the last server; the next one is appended."""
    await asyncio.to_thread(servers[-1].end, signal.SIGKILL)
    servers.append(await asyncio.to_thread(Process, servers[-1].directory, servers[-1].port))


@pytest.mark.timeout(300 + 10 * HISTORIES)
def test_what_concurrent_clients_see_could_have_happened_one_after_another(
    started: Process, record_property: Callable[[str, object], None]
) -> None:
    servers, random = [started], Random(os.urandom(8))
    operations = cancelled = killed = 0
    try:
        for number in range(HISTORIES):
            disturb = partial(killed_and_restarted, servers) if number % 3 == 2 else None
            changed = asyncio.run(change(started.port, f"object{number}", random, disturb))
            replaced = winners(changed.history)
            assert len(set(replaced)) == len(replaced), "two writers have replaced the same revision"
            assert is_linearizable(changed.history), changed.history
            operations += len(changed.history)
            cancelled += changed.cancelled
            killed += changed.killed
    finally:
        output = servers[-1].end(signal.SIGKILL)
    assert "Traceback" not in output, output
    assert operations > HISTORIES * CLIENTS * REQUESTS * 0.8
    assert killed
    record_property("histories", HISTORIES)
    record_property("operations", operations)
    record_property("cancelled requests", cancelled)
    record_property("requests cut off by a kill", killed)


# -- a counter

COUNTER = f"{MAPS}/counter"


async def increment(connection: Connection, count: int, done: list[int], conflicts: list[int]) -> None:
    """Read the counter and write one more unless it has changed meanwhile, until `count` increments are done."""
    status, body = await connection.ask("GET", COUNTER)
    while len(done) < count:
        expected = int(body["metadata"]["resourceVersion"])
        body["data"]["n"] = str(int(body["data"]["n"]) + 1)
        status, body = await connection.ask("PUT", COUNTER, body)
        if status == 200:
            done.append(expected)
        else:
            assert status == 409
            conflicts.append(expected)
            status, body = await connection.ask("GET", COUNTER)
            assert status == 200
    connection.close()


@pytest.mark.timeout(300 + INCREMENTS)
@pytest.mark.parametrize(("clients", "share"), [(CLIENTS, 1), (64, 8)])
def test_increments_sum_exactly_and_each_revision_has_one_winner(
    started: Process, clients: int, share: int, record_property: Callable[[str, object], None]
) -> None:
    counter = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "counter"}, "data": {"n": "0"}}
    assert started.ask("POST", MAPS, counter)[0] == 201
    done: list[int] = []
    conflicts: list[int] = []

    async def all_clients() -> None:
        connections = [Connection(started.port) for _ in range(clients)]
        await asyncio.gather(*(increment(each, INCREMENTS // share, done, conflicts) for each in connections))

    asyncio.run(all_clients())
    assert int(started.ask("GET", COUNTER)[1]["data"]["n"]) == len(done) >= INCREMENTS // share
    assert len(set(done)) == len(done), "two writers have replaced the same revision"
    assert conflicts
    record_property("clients", clients)
    record_property("increments", len(done))
    record_property("refused increments", len(conflicts))
