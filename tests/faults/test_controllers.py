"""What follows from a write happens, whatever fails on the way: definitions, namespaces, Events (hazards R1, R5)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from noxu_storage.types import Compacted, Key
from tests.definitions import widgets
from tests.faults.flaky import Served, serving

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/faults.example.com/v1/namespaces/default/widgets"
DEFINITION = widgets(group="faults.example.com")
WIDGET = {"apiVersion": "faults.example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}
A_HANG = 30.0  # seconds after which a test gives up: nothing here takes one


@pytest.fixture
async def served(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Served]:
    async with serving(monkeypatch) as running:
        yield running


async def eventually(holds: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(A_HANG):
        while not await holds():  # noqa: ASYNC110 - what is waited for is an answer over HTTP
            await asyncio.sleep(0.01)


def is_definition(key: Key) -> bool:
    return key.collection == "apiextensions.k8s.io/customresourcedefinitions"


def is_event(key: Key) -> bool:
    return key.collection == "/events"


async def is_gone(served: Served, path: str) -> bool:
    return (await served.ask("GET", path))[0] == 404


@pytest.mark.parametrize("times", [1, 2, 5])
async def test_a_definition_is_served_although_its_conditions_cannot_be_stored_at_once(
    served: Served, times: int
) -> None:
    served.store.fail("put", is_definition, times)
    assert (await served.ask("POST", CRDS, DEFINITION))[0] == 201
    assert served.store.failures == times
    _, answer = await served.ask("GET", f"{CRDS}/widgets.faults.example.com")
    assert {condition["type"]: condition["status"] for condition in answer["status"]["conditions"]}[
        "Established"
    ] == "True"
    assert (await served.ask("POST", WIDGETS, WIDGET))[0] == 201


async def test_a_definition_that_cannot_be_stored_is_refused_and_not_there(served: Served) -> None:
    served.store.fail("create", is_definition)
    code, _ = await served.ask("POST", CRDS, DEFINITION)
    assert code == 500
    assert await is_gone(served, f"{CRDS}/widgets.faults.example.com")
    assert (await served.ask("POST", CRDS, DEFINITION))[0] == 201


async def test_a_terminating_definition_goes_although_its_objects_cannot_be_deleted_at_once(served: Served) -> None:
    await served.ask("POST", CRDS, DEFINITION)
    assert (await served.ask("POST", WIDGETS, WIDGET))[0] == 201
    served.store.fail("delete", lambda key: key.name == "w")
    assert (await served.ask("DELETE", f"{CRDS}/widgets.faults.example.com"))[0] == 200
    await eventually(lambda: is_gone(served, f"{CRDS}/widgets.faults.example.com"))
    assert served.store.failures == 1


async def test_a_namespace_is_emptied_although_an_object_cannot_be_deleted_at_once(served: Served) -> None:
    await served.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "n"}})
    for name in ("a", "b", "c"):
        assert (await served.ask("POST", "/api/v1/namespaces/n/configmaps", {"metadata": {"name": name}}))[0] == 201
    served.store.fail("delete", lambda key: key.name == "b")
    served.store.fail("put", lambda key: key.collection == "/namespaces")  # marks it as Terminating: the client's error
    assert (await served.ask("DELETE", "/api/v1/namespaces/n"))[0] == 500
    assert (await served.ask("DELETE", "/api/v1/namespaces/n"))[0] == 200
    await eventually(lambda: is_gone(served, "/api/v1/namespaces/n"))
    assert served.store.failures == 2


async def test_a_definition_that_went_while_the_log_was_cut_is_no_longer_served(served: Served) -> None:
    """Compaction overtakes the watch cache: what was deleted meanwhile has no event."""
    assert (await served.ask("POST", CRDS, DEFINITION))[0] == 201
    key = Key("apiextensions.k8s.io/customresourcedefinitions", "", "widgets.faults.example.com")
    stored = await served.store.get(key)
    assert stored is not None
    served.store.watch_fails = Compacted(stored.revision)
    await served.store.delete(key, expected=stored.revision)
    await eventually(lambda: is_gone(served, WIDGETS))
    assert served.store.failures == 1


async def test_a_definition_that_came_while_the_log_was_cut_is_served(served: Served) -> None:
    served.store.watch_fails = Compacted(served.store.revision)
    assert (await served.ask("POST", CRDS, DEFINITION))[0] == 201
    assert served.store.failures == 1
    _, answer = await served.ask("GET", f"{CRDS}/widgets.faults.example.com")
    assert {condition["type"]: condition["status"] for condition in answer["status"]["conditions"]}[
        "Established"
    ] == "True"
    assert (await served.ask("POST", WIDGETS, WIDGET))[0] == 201


async def test_the_log_is_followed_again_after_a_bug(served: Served) -> None:
    served.store.watch_fails = RuntimeError("a bug")
    assert (await served.ask("POST", CRDS, DEFINITION))[0] == 201
    assert (await served.ask("POST", WIDGETS, WIDGET))[0] == 201
    assert served.store.failures == 1
    assert await served.ask("GET", "/readyz") == (200, "ok")
