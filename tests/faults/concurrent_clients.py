"""Twelve clients that change one object concurrently, and the history of what they did and saw.

They create, update with a precondition, patch, delete, read and list. Some requests are cut off: their outcome is unknown.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable, Sequence
from math import inf
from random import Random
from typing import Any, Final

from tests.faults.keepalive import Connection
from tests.faults.linearizability import Operation, Outcome
from tests.faults.server_process import MAPS
from tests.timing import HANGS_AFTER, eventually_async

CLIENTS: Final = 12
REQUESTS: Final = 20  # of each client
MERGE: Final = "application/merge-patch+json"
LOST: Final = (ConnectionError, asyncio.IncompleteReadError)


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
            within = self.random.uniform(0, 0.02) if self.random.random() < 0.05 else HANGS_AFTER
            operation = operation._replace(called=time.monotonic())
            try:
                async with asyncio.timeout(within):
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


async def change(
    ports: int | Sequence[int], name: str, random: Random, disturb: Callable[[], Awaitable[None]] | None = None
) -> Object:
    """The history of a new object; clients are spread over the ports of servers. Somewhere in the middle `disturb` is awaited; no request starts meanwhile."""
    up = asyncio.Event()
    up.set()
    changed = Object(name, random)
    known = [ports] if isinstance(ports, int) else ports
    clients = [asyncio.create_task(changed.client(Connection(known[n % len(known)]), up)) for n in range(CLIENTS)]
    if disturb is not None:
        moment = random.randrange(20, 150)
        await eventually_async(lambda: len(changed.history) >= moment or all(each.done() for each in clients))
        up.clear()
        await disturb()
        up.set()
    await asyncio.gather(*clients)
    return changed


def winners(history: list[Operation]) -> list[int]:
    """The revisions that an update or a delete has replaced, and was answered so."""
    return [each.expected for each in history if each.outcome is Outcome.DONE and each.expected]
