"""Waiting until an object satisfies a condition."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from noxu import Noxu, WaitTimeout
from tests.testing.widgets import DEFINITION, widget
from tests.timing import HANGS_AFTER, eventually, eventually_async

pytestmark = pytest.mark.noxu(DEFINITION)
READY = {"conditions": [{"type": "Ready", "status": "True"}]}

MET: list[tuple[str, Any]] = [
    ("a condition", "Ready"),
    ("CEL", "self.status.conditions.exists(c, c.type == 'Ready')"),
    ("a function", lambda value: value["status"]["conditions"]),
]


@pytest.mark.parametrize("condition", [row[1] for row in MET], ids=[row[0] for row in MET])
def test_what_is_met_returns_at_once(condition: Any, noxu: Noxu) -> None:
    created = noxu.create(widget("a"))
    noxu.status(created, READY)
    assert noxu.wait(created, condition)["status"] == READY
    assert noxu.wait("widgets", "a", condition)["status"] == READY


@pytest.mark.parametrize("condition", [row[1] for row in MET], ids=[row[0] for row in MET])
def test_what_becomes_true_is_awaited(condition: Any, noxu: Noxu) -> None:
    created = noxu.create(widget("a"))
    watches = noxu._server.app.watches

    def change() -> None:
        eventually(lambda: watches.open)
        noxu.status(created, {"size": 1})
        noxu.status(created, READY)

    changing = threading.Thread(target=change)
    changing.start()
    assert noxu.wait(created, condition, timeout=HANGS_AFTER)["status"]["conditions"] == READY["conditions"]
    changing.join()


async def test_a_coroutine_waits_without_blocking_its_loop(noxu: Noxu) -> None:
    async def is_ready(value: Any) -> bool:
        await asyncio.sleep(0)
        return bool(value["status"]["ready"])

    created = await noxu.create(widget("a"))
    waiting = asyncio.ensure_future(noxu.wait(created, is_ready, timeout=HANGS_AFTER))
    await eventually_async(lambda: noxu._server.app.watches.open)
    await noxu.status(created, {"ready": False})
    await noxu.status(created, {"ready": True})
    assert (await waiting)["status"] == {"ready": True}


async def test_creation_and_deletion_are_awaited(noxu: Noxu) -> None:
    watches = noxu._server.app.watches
    waiting = asyncio.ensure_future(noxu.wait("widgets", "a", "create", timeout=HANGS_AFTER))
    await eventually_async(lambda: watches.open)
    created = await noxu.create(widget("a"))
    assert await waiting == created
    await eventually_async(lambda: not watches.open)
    waiting = asyncio.ensure_future(noxu.wait("widgets", "a", "delete", timeout=HANGS_AFTER))
    await eventually_async(lambda: watches.open)
    await noxu.delete(created)
    assert (await waiting)["metadata"]["uid"] == created["metadata"]["uid"]
    assert await noxu.wait("widgets", "a", "delete") == {}


def test_the_message_of_a_timeout_has_the_newest_state(noxu: Noxu) -> None:
    noxu.create(widget("a", size=3))
    with pytest.raises(WaitTimeout) as late:
        noxu.wait("widgets", "a", "self.status.size == 3", timeout=0.01)
    first, *_, last = str(late.value).splitlines()
    assert (
        first == "Widget default/a: waited 0.01 s until self.status.size == 3 is true (no such key: status); now it is"
    )
    assert last == "  size: 3"
    assert isinstance(late.value, TimeoutError)


def test_the_message_has_what_a_function_did_not_find(noxu: Noxu) -> None:
    noxu.create(widget("a"))
    with pytest.raises(WaitTimeout, match=r"until a lambda is true \(KeyError: 'status'\); now it is"):
        noxu.wait("widgets", "a", lambda value: value["status"]["ready"], timeout=0.01)


def test_the_message_about_what_does_not_exist(noxu: Noxu) -> None:
    with pytest.raises(WaitTimeout, match="its condition Ready is True; it does not exist"):
        noxu.wait("widgets", "a", "Ready", timeout=0.01)


def test_other_errors_of_a_function_are_raised(noxu: Noxu) -> None:
    noxu.create(widget("a"))
    with pytest.raises(ZeroDivisionError):
        noxu.wait("widgets", "a", lambda value: 1 / 0)


def test_an_async_function_needs_a_coroutine(noxu: Noxu) -> None:
    async def condition(_: Any) -> bool:
        return True

    noxu.create(widget("a"))
    with pytest.raises(TypeError, match="an async function, and this call is in no coroutine"):
        noxu.wait("widgets", "a", condition)
