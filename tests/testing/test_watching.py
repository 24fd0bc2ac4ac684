"""The events of a watch, in a loop of a sync and of an async test."""

from __future__ import annotations

import pytest

from noxu import ApiError, Noxu, WaitTimeout
from tests.testing.widgets import DEFINITION, widget

pytestmark = pytest.mark.noxu(DEFINITION)


def test_a_watch_begins_with_what_there_is(noxu: Noxu) -> None:
    created = noxu.create(widget("a"))
    with noxu.watch("widgets") as events:
        assert next(events) == ("ADDED", created)
        changed = noxu.patch(created, {"spec": {"size": 2}})
        assert next(events) == ("MODIFIED", changed)
        noxu.delete(created)
        kind, last = next(events)
        assert (kind, last["metadata"]["uid"]) == ("DELETED", created["metadata"]["uid"])


async def test_a_watch_in_a_coroutine(noxu: Noxu) -> None:
    async with noxu.watch("widgets") as events:
        for name in "abc":
            await noxu.create(widget(name))
        names = []
        async for _, value in events:
            names.append(value["metadata"]["name"])
            if len(names) == 3:
                break
    assert names == ["a", "b", "c"]


async def test_a_coroutine_must_not_block(noxu: Noxu) -> None:
    async with noxu.watch("widgets") as events:
        with pytest.raises(RuntimeError, match="use `async for`"):
            next(events)


def test_a_watch_of_one_object(noxu: Noxu) -> None:
    kept = noxu.create(widget("b"))
    noxu.create(widget("a"))
    for events in (noxu.watch("widgets", "b"), noxu.watch(kept), noxu.watch("widgets", fields="metadata.name=b")):
        with events:
            assert next(events).object == kept


def test_a_watch_of_the_kind_of_an_object(noxu: Noxu) -> None:
    created = noxu.create(widget("a"))
    with noxu.watch({"apiVersion": "example.com/v1", "kind": "Widget"}) as events:
        assert next(events).object == created


def test_a_watch_from_a_version(noxu: Noxu) -> None:
    first = noxu.create(widget("a"))
    second = noxu.create(widget("b"))
    with noxu.watch("widgets", since=first["metadata"]["resourceVersion"]) as events:
        assert next(events) == ("ADDED", second)


def test_large_objects_are_one_event(noxu: Noxu) -> None:
    large = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "x" * 700_000}}
    noxu.create(large)
    with noxu.watch("configmaps", "a") as events:
        assert len(next(events).object["data"]["k"]) == 700_000


def test_an_iteration_has_a_time_limit(noxu: Noxu) -> None:
    with noxu.watch("widgets", timeout=0.01) as events:
        with pytest.raises(WaitTimeout, match=r"no event of widgets\.example\.com within 0\.01 s"):
            next(events)
        created = noxu.create(widget("a"))
        events._timeout = None
        assert next(events) == ("ADDED", created)  # it can be continued


def test_a_watch_that_the_server_ends_ends_the_loop(noxu: Noxu) -> None:
    with noxu.watch("widgets") as events:
        noxu.delete("crds", "widgets.example.com")
        assert list(events) == []


def test_a_closed_watch_ends_the_loop(noxu: Noxu) -> None:
    events = noxu.watch("widgets")
    events.close()
    events.close()
    assert list(events) == []


def test_watches_end_with_the_server() -> None:
    with Noxu() as noxu:
        noxu.watch("pods")
        kept = noxu.watch("pods")
    kept.close()


def test_refusals_are_raised_by_the_call(noxu: Noxu) -> None:
    with pytest.raises(ApiError, match="unable to parse requirement"):
        noxu.watch("widgets", labels="a in")


def test_an_error_event_is_raised(noxu: Noxu) -> None:
    with noxu.watch("widgets", since="1") as events, pytest.raises(ApiError, match="too old resource version") as old:
        next(events)
    assert (old.value.code, old.value.reason) == (410, "Expired")
