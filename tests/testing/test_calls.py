"""How a call is made: it blocks where no loop runs, and is awaited where one does."""

from __future__ import annotations

import asyncio
import inspect
import traceback
from typing import Any

import pytest

from noxu import ApiError, Denied, Noxu
from noxu.testing import calls
from noxu.testing.errors import Stopped
from tests.testing.widgets import DEFINITION, size, widget

pytestmark = pytest.mark.noxu(DEFINITION)


def test_a_call_without_a_loop_returns_its_result(noxu: Noxu) -> None:
    assert noxu.list("widgets") == []


async def test_a_call_in_a_coroutine_is_a_coroutine(noxu: Noxu) -> None:
    call = noxu.create(widget("a"))
    assert inspect.iscoroutine(call)
    assert await noxu.list("widgets") == []  # it has not begun
    assert size(await call) == 1
    assert size(await asyncio.create_task(noxu.get("widgets", "a"))) == 1  # type: ignore[arg-type]


async def test_a_coroutine_that_waits_for_the_server_does_not_block_its_loop(noxu: Noxu) -> None:
    asked, answer = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    @noxu.validating("widgets.example.com")
    def slow(_: Any) -> None:
        loop.call_soon_threadsafe(asked.set)
        asyncio.run_coroutine_threadsafe(answer.wait(), loop).result()

    creating = asyncio.ensure_future(noxu.create(widget("a")))
    await asked.wait()
    assert not creating.done()
    answer.set()
    assert size(await creating) == 1


async def test_a_thread_of_an_async_test_blocks(noxu: Noxu) -> None:
    assert size(await asyncio.to_thread(lambda: noxu.create(widget("a")))) == 1


def test_hooks_may_use_the_handle(noxu: Noxu) -> None:
    @noxu.mutating("widgets.example.com")
    def in_a_thread(request: Any) -> None:
        request["object"]["spec"]["size"] = 1 + len(noxu.list("widgets"))

    @noxu.mutating("widgets.example.com")
    async def in_the_loop_of_the_server(request: Any) -> None:
        request["object"]["spec"]["low"] = len(await noxu.list("widgets"))

    assert noxu.create(widget("a"))["spec"] == {"size": 1, "low": 0}
    assert noxu.create(widget("b"))["spec"] == {"size": 2, "low": 1}


CAUSES = [
    ("an exception", RuntimeError("broken"), "RuntimeError: broken"),
    ("a denial", Denied("no"), "denied the request: no"),
]


@pytest.mark.parametrize(("error", "message"), [row[1:] for row in CAUSES], ids=[row[0] for row in CAUSES])
@pytest.mark.parametrize("kind", ["mutating", "validating"])
def test_the_cause_of_a_refusal_is_what_a_hook_raised(kind: str, error: Exception, message: str, noxu: Noxu) -> None:
    @getattr(noxu, kind)("widgets.example.com")
    def hook(_: Any) -> None:
        raise error

    with pytest.raises(ApiError, match=message) as refused:
        noxu.create(widget("a"))
    assert refused.value.__cause__ is error
    assert [frame.name for frame in traceback.extract_tb(error.__traceback__)][-1] == "hook"


async def test_the_cause_of_a_refusal_in_a_coroutine(noxu: Noxu) -> None:
    @noxu.validating("widgets.example.com")
    async def hook(_: Any) -> None:
        raise KeyError("a")

    with pytest.raises(ApiError) as refused:
        await noxu.create(widget("a"))
    assert isinstance(refused.value.__cause__, KeyError)


def test_the_cause_of_a_failed_conversion(noxu: Noxu) -> None:
    @noxu.converting("widgets.example.com")
    def convert(value: Any, _: str) -> None:
        raise ValueError(f"cannot convert {value['metadata']['name']}")

    noxu.create(widget("a"))
    with pytest.raises(ApiError, match="cannot convert a") as refused:
        noxu.get("widgets.v1alpha1.example.com", "a")
    assert isinstance(refused.value.__cause__, ValueError)


def test_a_refusal_without_a_hook_has_no_cause(noxu: Noxu) -> None:
    with pytest.raises(ApiError) as refused:
        noxu.get("widgets", "a")
    assert refused.value.__cause__ is None


def test_the_traceback_of_a_refusal_ends_in_the_handle(noxu: Noxu) -> None:
    with pytest.raises(ApiError) as refused:
        noxu.get("widgets", "a")
    names = [frame.name for frame in traceback.extract_tb(refused.value.__traceback__)]
    assert names == ["test_the_traceback_of_a_refusal_ends_in_the_handle", "get", "_ask", "call", "blocking"]


def test_a_server_that_is_stopped_says_so() -> None:
    with Noxu(None, [DEFINITION]) as noxu:
        pass
    with pytest.raises(Stopped, match="it was not started, or it is stopped"):
        noxu.list("widgets")


async def test_calls_that_are_not_awaited_are_known(noxu: Noxu, monkeypatch: pytest.MonkeyPatch) -> None:
    collected: list[calls.PendingCall] = []
    monkeypatch.setattr(calls, "unawaited", collected)
    await noxu.create(widget("a"))
    forgotten = noxu.create(widget("b"))
    assert [(call.name, call.has_begun) for call in collected] == [("create", True), ("create", False)]
    assert collected[1].place.startswith(f"{__file__}:")
    forgotten.close()  # type: ignore[attr-defined]


async def test_python_names_a_call_that_is_not_awaited(noxu: Noxu, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "unawaited", None)
    with pytest.warns(RuntimeWarning, match=r"coroutine 'Noxu\.create' was never awaited"):
        noxu.create(widget("b"))
