"""R15: what twelve clients do to one object could have happened one after another (etcd's and Jepsen's check).

The server is a process of its own. Clients create, update with a precondition, patch, delete, read and list; some
disconnect during a request, and the server is killed and started again: the outcomes of these requests are unknown.
NOXU_HISTORIES is the number of objects, NOXU_INCREMENTS that of increments of a counter.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import signal
import time
from collections.abc import Callable
from math import inf
from random import Random
from typing import Any

import pytest

from tests.faults.keepalive import Connection
from tests.faults.linearizability import Operation, Outcome, is_linearizable
from tests.faults.server_process import MAPS, Process
from tests.timing import HANGS_AFTER, eventually_async

HISTORIES = int(os.environ.get("NOXU_HISTORIES", "12"))
INCREMENTS = int(os.environ.get("NOXU_INCREMENTS", "200"))
CLIENTS = 12
REQUESTS = 20  # of each client, for one object
MERGE = "application/merge-patch+json"
LOST = (ConnectionError, asyncio.IncompleteReadError)


def outcome_of(status: int, answer: Any) -> Outcome:
    """Raises AssertionError for an answer that no client expects."""
    if status in (200, 201):
        return Outcome.DONE
    found = {"NotFound": Outcome.MISSING, "AlreadyExists": Outcome.EXISTS, "Conflict": Outcome.CONFLICT}
    assert answer.get("reason") in found, answer
    return found[answer["reason"]]


class Object:
    """One object, and its history."""

    def __init__(self, name: str, random: Random) -> None:
        self.name, self.random = name, random
        self.history: list[Operation] = []
        self.values = itertools.count(1)
        self.cancelled = self.killed = 0

    def request(self, seen: int) -> tuple[Operation, tuple[Any, ...]]:
        """The operation that a client does next, and the arguments of its request.

        `seen` is the revision that the client knows, 0 for none.
        """
        action = self.random.choice(["create", "update", "update", "patch", "delete", "read", "read", "list"])
        path = f"{MAPS}/{self.name}"
        value = f"v{next(self.values)}" if action in ("create", "update", "patch") else ""
        body: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": self.name}}
        body["data"] = {"v": value}
        operation = Operation(action, 0, inf, Outcome.UNKNOWN, value)
        match action:
            case "create":
                return operation, ("POST", MAPS, body)
            case "update":
                body["metadata"]["resourceVersion"] = str(seen or 1)
                return operation._replace(expected=seen or 1), ("PUT", path, body)
            case "patch":
                return operation, ("PATCH", path, {"data": {"v": value}}, MERGE)
            case "delete" if self.random.random() < 0.5 and seen:
                options = {"preconditions": {"resourceVersion": str(seen)}}
                return operation._replace(expected=seen), ("DELETE", path, options)
            case "delete":
                return operation, ("DELETE", path)
            case "list":
                query = f"?fieldSelector=metadata.name%3D{self.name}"
                return operation._replace(action="read"), ("GET", f"{MAPS}{query}")
        return operation, ("GET", path)

    async def client(self, connection: Connection, up: asyncio.Event) -> None:
        seen = 0
        for _ in range(REQUESTS):
            await up.wait()
            operation, request = self.request(seen)
            patience = self.random.uniform(0, 0.02) if self.random.random() < 0.05 else HANGS_AFTER
            operation = operation._replace(called=time.monotonic())
            try:
                async with asyncio.timeout(patience):
                    status, answer = await connection.ask(*request)
            except ConnectionRefusedError:
                continue  # nothing was sent
            except (TimeoutError, *LOST) as error:
                self.cancelled += isinstance(error, TimeoutError)
                self.killed += isinstance(error, LOST)
                if operation.action != "read":
                    self.history.append(operation)
                continue
            done = self.answered(operation._replace(answered=time.monotonic()), status, answer)
            seen = done.revision or seen
            self.history.append(done)
        connection.close()

    def answered(self, operation: Operation, status: int, answer: Any) -> Operation:
        operation = operation._replace(outcome=outcome_of(status, answer))
        if operation.outcome is not Outcome.DONE or operation.action == "delete":
            return operation
        if answer["kind"] == "ConfigMapList":
            operation = operation._replace(read_at=int(answer["metadata"]["resourceVersion"]))
            if not answer["items"]:
                return operation._replace(outcome=Outcome.MISSING)
            [answer] = answer["items"]
        shown = operation._replace(value=answer["data"]["v"], revision=int(answer["metadata"]["resourceVersion"]))
        assert operation.action == "read" or shown.value == operation.value, "the answer shows another write"
        return shown


async def round_of(server: Process, name: str, random: Random, *, kill: bool) -> tuple[Object, Process]:
    """The history of a new object, and the server, which may be another one then."""
    up = asyncio.Event()
    up.set()
    changed = Object(name, random)
    clients = [asyncio.create_task(changed.client(Connection(server.port), up)) for _ in range(CLIENTS)]
    if kill:
        moment = random.randrange(20, 150)
        await eventually_async(lambda: len(changed.history) >= moment or all(each.done() for each in clients))
        up.clear()
        await asyncio.to_thread(server.end, signal.SIGKILL)
        server = await asyncio.to_thread(Process, server.directory, server.port)
        up.set()
    await asyncio.gather(*clients)
    return changed, server


def winners(history: list[Operation]) -> list[int]:
    """The revisions that an update or a delete has replaced, and was answered so."""
    return [each.expected for each in history if each.outcome is Outcome.DONE and each.expected]


@pytest.mark.timeout(300 + 10 * HISTORIES)
def test_what_concurrent_clients_see_could_have_happened_one_after_another(
    started: Process, record_property: Callable[[str, object], None]
) -> None:
    server, random = started, Random(os.urandom(8))
    operations = cancelled = killed = 0
    try:
        for number in range(HISTORIES):
            kill = number % 3 == 2
            changed, server = asyncio.run(round_of(server, f"object{number}", random, kill=kill))
            history = changed.history
            replaced = winners(history)
            assert len(set(replaced)) == len(replaced), "two writers have replaced the same revision"
            assert is_linearizable(history), history
            operations += len(history)
            cancelled += changed.cancelled
            killed += changed.killed
    finally:
        output = server.end(signal.SIGKILL)
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
