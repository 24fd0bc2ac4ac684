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


# -- several objects


def test_a_number_of_objects_is_awaited(noxu: Noxu) -> None:
    watches = noxu._server.app.watches

    def change() -> None:
        eventually(lambda: watches.open)
        for name, app in (("a", "x"), ("b", "y"), ("c", "x")):
            noxu.create({**widget(name), "metadata": {"name": name, "labels": {"app": app}}})

    changing = threading.Thread(target=change)
    changing.start()
    found = noxu.wait("widgets", count=2, labels={"app": "x"}, timeout=HANGS_AFTER)
    changing.join()
    assert [each["metadata"]["name"] for each in found] == ["a", "c"]
    assert [each["metadata"]["name"] for each in noxu.wait("widgets", count=3, namespace="default")] == ["a", "b", "c"]
    noxu.status(found[0], READY)
    [ready] = noxu.wait("widgets", "Ready", count=1)
    assert ready["metadata"]["name"] == "a"
    for each in noxu.list("widgets"):
        noxu.delete(each)
    assert noxu.wait("widgets", count=0) == []


async def test_a_number_is_awaited_in_a_coroutine_until_it_is_exact(noxu: Noxu) -> None:
    async def is_large(value: Any) -> bool:
        await asyncio.sleep(0)
        return bool(value["spec"]["size"] > 2)

    for name, size in (("a", 3), ("b", 3), ("c", 1)):
        await noxu.create(widget(name, size=size))
    waiting = asyncio.ensure_future(noxu.wait("widgets", is_large, count=1, timeout=HANGS_AFTER))
    await eventually_async(lambda: noxu._server.app.watches.open)
    await noxu.patch("widgets", "a", {"spec": {"size": 1}})
    assert [each["metadata"]["name"] for each in await waiting] == ["b"]


@pytest.mark.parametrize("condition", ["Ready", lambda value: value["status"]["conditions"]])
def test_all_objects_of_a_list_are_awaited(condition: Any, noxu: Noxu) -> None:
    listed = [noxu.create(widget(name)) for name in ("b", "a")]
    for each in listed:
        noxu.status(each, READY)
    found = noxu.wait(listed, condition)
    assert [(each["metadata"]["name"], each["status"]) for each in found] == [("b", READY), ("a", READY)]
    for each in listed:
        noxu.delete(each)
    assert noxu.wait(listed, "delete") == [{}, {}]


async def test_a_list_is_awaited_in_a_coroutine(noxu: Noxu) -> None:
    listed = await noxu.apply(widget("a"), {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}})
    assert await noxu.wait(listed, "create") == listed
    with pytest.raises(WaitTimeout, match="ConfigMap default/b: waited 0 s until it is deleted"):
        await noxu.wait(listed[1:], "delete", timeout=0)


def test_the_message_about_a_number_says_of_which_it_is_so(noxu: Noxu) -> None:
    for name in ("a", "b", "c"):
        noxu.create(widget(name))
    noxu.status("widgets", "b", READY)
    with pytest.raises(WaitTimeout) as late:
        noxu.wait("widgets", "Ready", count=3, timeout=0.01)
    lines = str(late.value).splitlines()
    assert lines[:4] == [
        "widgets.example.com: waited 0.01 s until 3 of them: its condition Ready is True; it is so of 1",
        "these: default/b",
        "and not of: default/a, default/c",
        "one of these is now",
    ]


WRONG: list[tuple[str, Any, Any]] = [
    ("a count without a kind", lambda noxu: noxu.wait(widget("a"), "Ready", count=1), TypeError),
    ("selectors without a count", lambda noxu: noxu.wait("widgets", "a", "Ready", labels="a=b"), TypeError),
    ("a count of deleted objects", lambda noxu: noxu.wait("widgets", "delete", count=1), ValueError),
    ("a list without a condition", lambda noxu: noxu.wait([widget("a")]), TypeError),
    ("an empty list", lambda noxu: noxu.wait([], "Ready"), ValueError),
]


@pytest.mark.parametrize(("call", "error"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG])
def test_what_cannot_be_awaited(call: Any, error: type[Exception], noxu: Noxu) -> None:
    with pytest.raises(error):
        call(noxu)


# -- what the message of a timeout says about an object


def _late(noxu: Noxu, *arguments: Any) -> str:
    with pytest.raises(WaitTimeout) as late:
        noxu.wait(*arguments, timeout=0.01)
    return str(late.value)


def _event(number: int, **fields: Any) -> dict[str, Any]:
    subject = {"apiVersion": "example.com/v1", "kind": "Widget", "name": "a", "namespace": "default"}
    at = f"2026-01-01T00:00:{number:02}Z"
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"a.{number}", "namespace": "default"},
        "involvedObject": subject,
        "reason": "Failed",
        "type": "Warning",
        "message": f"no backend\nfor the {number}th time",
        "firstTimestamp": at,
        "lastTimestamp": at,
        **fields,
    }


def test_the_message_has_what_keeps_an_object(noxu: Noxu) -> None:
    value = widget("a")
    value["metadata"]["finalizers"] = ["example.com/cleanup"]
    created = noxu.create(value)
    owner = {"apiVersion": "example.com/v1", "kind": "Widget", "name": "a", "uid": created["metadata"]["uid"]}
    noxu.create({**widget("b"), "metadata": {"name": "b", "ownerReferences": [owner]}})
    assert "its finalizers: example.com/cleanup\nits dependents: Widget default/b" in _late(noxu, created, "Ready")
    noxu.delete(created)
    message = _late(noxu, created, "delete")
    assert "it is being deleted (deletionTimestamp 20" in message
    assert "); finalizers keep it: example.com/cleanup\n" in message
    assert "its owner: Widget a" in _late(noxu, "widgets", "b", "Ready")
    noxu.patch(created, {"metadata": {"finalizers": None}})


@pytest.mark.noxu(DEFINITION, controllers=["*", "-garbagecollector"])
def test_the_message_says_that_an_owner_does_not_exist(noxu: Noxu) -> None:
    owner = {"apiVersion": "example.com/v1", "kind": "Widget", "name": "x", "uid": "4c2b"}
    noxu.create({**widget("b"), "metadata": {"name": "b", "ownerReferences": [owner]}})
    assert "its owner: Widget x, which does not exist" in _late(noxu, "widgets", "b", "Ready")


def test_the_message_has_the_newest_events(noxu: Noxu) -> None:
    created = noxu.create(widget("a"))
    for number in range(12):
        noxu.create(_event(number, count=number + 1))
    noxu.create({**_event(30), "metadata": {"name": "b.1"}, "involvedObject": {"kind": "Widget", "name": "b"}})
    lines = _late(noxu, created, "Ready").splitlines()
    assert lines[-11] == "Events (the last 10 of 12):"
    assert lines[-10] == "  Warning Failed: no backend for the 2th time (3 times)"
    assert lines[-1] == "  Warning Failed: no backend for the 11th time (12 times)"


def test_the_message_about_a_missing_object_has_events_and_those_that_exist(noxu: Noxu) -> None:
    assert _late(noxu, "widgets", "a", "Ready").endswith("it does not exist\nthere is no Widget at all")
    noxu.create(widget("aa"))
    noxu.create(_event(1))
    assert _late(noxu, "widgets", "a", "Ready").splitlines()[1:] == [
        "there is default/aa",
        "Events:",
        "  Warning Failed: no backend for the 1th time",
    ]


def test_the_message_has_a_limited_size_and_the_status_of_a_large_object(noxu: Noxu) -> None:
    noxu.apply(
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a", "annotations": {"note": "x" * 100_000}},
         "spec": {"selector": {"matchLabels": {"a": "b"}},
                  "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "a", "image": "i"}]}}}}
    )  # fmt: skip
    noxu.status("deployments", "a", {"conditions": [{"type": "Available", "status": "False", "reason": "NoPods"}]})
    for number in range(20):
        noxu.create(_event(number, message="m" * 900, involvedObject={"kind": "Deployment", "name": "a", "namespace": "default"}))  # fmt: skip
    message = _late(noxu, "deployments", "a", "Available")
    assert "reason: NoPods" in message
    assert len(message) < 10_000


def test_what_looks_like_a_word_is_said(noxu: Noxu) -> None:
    noxu.create(widget("a"))
    assert 'its condition deleted is True (did you mean "delete"?)' in _late(noxu, "widgets", "a", "deleted")
