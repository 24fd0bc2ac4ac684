"""R16: a request that is cancelled at any of its awaits, as when its client disconnects, happens as a whole or not at all.

It holds nothing afterwards: the next write of the same object is answered. NOXU_CANCELLED_ROUNDS is the number of
rounds; in all but the first, other clients change the same object meanwhile, so that there are other awaits.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Generator
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from noxu.config import Config
from noxu.http.app import App
from noxu.http.request import Received
from noxu.process.server import Server
from tests.faults.keepalive import Connection
from tests.faults.server_process import MAPS
from tests.timing import eventually_async, hang_guard

ROUNDS = int(os.environ.get("NOXU_CANCELLED_ROUNDS", "2"))
DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS: Final = "/apis/example.com/v1/namespaces/default/widgets"
OTHERS: Final = "/api/v1/namespaces/kube-system/configmaps"
NAMESPACES: Final = "/api/v1/namespaces"


class CancelledAt:
    """Awaits a coroutine, and cancels the task while it waits for the `point`th time."""

    def __init__(self, coroutine: Coroutine[Any, Any, Any], point: int) -> None:
        self.coroutine, self.point = coroutine, point

    def __await__(self) -> Generator[Any, None, Any]:
        step: Callable[[], Any] = partial(self.coroutine.send, None)
        passed = 0
        while True:
            try:
                awaited = step()
            except StopIteration as end:
                return end.value
            passed += 1
            if passed == self.point:
                task = asyncio.current_task()
                assert task is not None
                task.cancel()  # takes effect at this await
            try:
                yield awaited
                step = partial(self.coroutine.send, None)
            except BaseException as error:  # noqa: BLE001 - handed on
                step = partial(self.coroutine.throw, error)


@pytest.fixture
async def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Server]:
    """A server that cancels a request at the await that its header `cancel-at` names."""
    handle = App.handle

    async def cancelled(app: App, request: Received) -> Any:
        point = int(request.headers.get("cancel-at", "0"))
        return await CancelledAt(handle(app, request), point)

    monkeypatch.setattr(App, "handle", cancelled)
    async with Server(Config(port=0, data=tmp_path / "data")) as running:
        yield running


def config_map(value: str, name: str = "a") -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"v": value}}


def widget(value: str) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "data": {"v": value}}


def definition(plural: str) -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    names = {"plural": plural, "kind": plural.title()[:-1]}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    kind = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    return kind | {"metadata": {"name": f"{plural}.example.com"}, "spec": spec}


def namespace() -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns"}}


class Kind(NamedTuple):
    """`request` is cancelled. The object at `path` exists before if `exists`; a collection has the object `a`."""

    collection: str
    exists: bool
    request: tuple[Any, ...]
    body: Callable[[str], dict[str, Any]] = config_map
    name: str = "a"

    @property
    def path(self) -> str:
        return f"{self.collection}/{self.name}"


APPLY, MERGE = "application/apply-patch+yaml", "application/merge-patch+json"
KINDS = {
    "create": Kind(MAPS, False, ("POST", MAPS, config_map("new"))),
    "update": Kind(MAPS, True, ("PUT", f"{MAPS}/a", config_map("new"))),
    "patch": Kind(MAPS, True, ("PATCH", f"{MAPS}/a", {"data": {"v": "new"}}, MERGE)),
    "apply": Kind(MAPS, False, ("PATCH", f"{MAPS}/a?fieldManager=m", config_map("new"), APPLY)),
    "delete": Kind(MAPS, True, ("DELETE", f"{MAPS}/a")),
    "delete a collection": Kind(MAPS, True, ("DELETE", MAPS)),
    "create a custom resource": Kind(WIDGETS, False, ("POST", WIDGETS, widget("new")), widget),
    "update a custom resource": Kind(WIDGETS, True, ("PATCH", f"{WIDGETS}/a", {"data": {"v": "new"}}, MERGE), widget),
    "create a definition": Kind(
        DEFINITIONS, False, ("POST", DEFINITIONS, definition("gadgets")), lambda _: definition("gadgets"),
        "gadgets.example.com",
    ),
    "delete a definition": Kind(
        DEFINITIONS, True, ("DELETE", f"{DEFINITIONS}/gadgets.example.com"), lambda _: definition("gadgets"),
        "gadgets.example.com",
    ),
    "create a namespace": Kind(NAMESPACES, False, ("POST", NAMESPACES, namespace()), lambda _: namespace(), "ns"),
    "delete a namespace": Kind(NAMESPACES, True, ("DELETE", f"{NAMESPACES}/ns"), lambda _: namespace(), "ns"),
}  # fmt: skip


async def absent(client: Connection, path: str) -> bool:
    return (await client.ask("GET", path))[0] == 404


async def prepare(client: Connection, kind: Kind) -> None:
    """Make the object exist, or not."""
    async with hang_guard():
        status, _ = await client.ask("DELETE", kind.path)
        assert status in (200, 202, 404)
        await eventually_async(lambda: absent(client, kind.path))
        if kind.exists:
            status, answer = await client.ask("POST", kind.collection, kind.body("old"))
            assert status == 201, answer


async def disturb(port: int, kind: Kind, stop: asyncio.Event) -> None:
    """Write a label of the object all the time."""
    other = Connection(port)
    for number in range(10_000):
        if stop.is_set():
            break
        status, answer = await other.ask("PATCH", kind.path, {"metadata": {"labels": {"n": str(number)}}}, MERGE)
        assert status in (200, 404, 409), answer
    other.close()


@pytest.mark.timeout(300 + 60 * ROUNDS)
@pytest.mark.parametrize("name", KINDS)
async def test_a_request_that_is_cancelled_at_any_await_happens_or_does_not(
    server: Server, name: str, caplog: pytest.LogCaptureFixture, record_property: Callable[[str, object], None]
) -> None:
    caplog.set_level(logging.WARNING)
    kind = KINDS[name]
    port = int(server.url.rpartition(":")[2])
    client = Connection(port)
    assert (await client.ask("POST", DEFINITIONS, definition("widgets")))[0] == 201
    points = 0
    happened = set()
    for number in range(ROUNDS):
        for point in range(1, 1_000):
            await prepare(client, kind)
            stop = asyncio.Event()
            disturbing = asyncio.create_task(disturb(port, kind, stop)) if number else None
            cancelled = Connection(port)
            try:
                async with hang_guard():
                    status, answer = await cancelled.ask(*kind.request, cancel_at=str(point))
            except (ConnectionError, asyncio.IncompleteReadError):
                points += 1
                status = 0
            else:
                assert status in (200, 201, 202, 409), answer
            cancelled.close()
            stop.set()
            if disturbing is not None:
                await disturbing
            happened.add(await is_whole(client, kind))
            if status:
                break
        else:
            raise AssertionError
    client.close()
    assert points >= ROUNDS
    assert True in happened
    assert [record.getMessage() for record in caplog.records] == []
    record_property("cancelled at so many awaits", points)


async def is_whole(client: Connection, kind: Kind) -> bool:
    """Whether the request has happened, as a whole; afterwards the object can be written as any other.

    It may still happen after its client has gone, but then in the same transaction as the next write, or before.
    """
    async with hang_guard():
        status, answer = await client.ask("POST", OTHERS, {"metadata": {"generateName": "barrier-"}})
        assert status == 201, answer
        status, found = await client.ask("GET", kind.path)
        if status == 200 and "data" in found:
            assert found["data"] in ({"v": "old"}, {"v": "new"})
            assert kind.exists or found["data"] == {"v": "new"}
        status_of_write, answer = await client.ask("PATCH", kind.path, {"metadata": {"labels": {"x": "y"}}}, MERGE)
        assert status_of_write == status or (status_of_write, kind.exists) == (404, True), answer
        remains = status == 200 and "deletionTimestamp" not in found["metadata"]
        return remains != kind.exists or (remains and found.get("data") == {"v": "new"})
