"""The log of writes: which are listed, what is said of them, and how much of the event loop it takes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from noxu.control import write_log
from noxu.control.history import WriteHistory
from noxu.control.write_log import Searching, Selected, entry, newest, why
from noxu.registry.authors import Author, Journal, WatchScope
from noxu.testing.handle import MakeNoxu, Noxu
from noxu_storage.memory import MemoryStore
from noxu_storage.sqlite import SqliteStore
from noxu_storage.store import Store
from noxu_storage.types import Key
from tests.control.test_users import sent
from tests.rows import rows

MAPS = "/api/v1/namespaces/default/configmaps"


def key(name: str, partition: str = "a/", collection: str = "g/widgets") -> Key:
    return Key(collection, partition, name)


async def put(store: Store, at: Key, value: bytes | None = b"{}") -> int:
    current = await store.get(at)
    expected = current.revision if current else 0
    return await (store.delete(at, expected=expected) if value is None else store.put(at, value, expected=expected))


async def filled(store: Store) -> Store:
    """Revisions 2 to 8."""
    for at in (key("x"), key("y"), key("x", "b/"), key("x"), key("x", collection="g/gadgets"), key("x")):
        await put(store, at)
    await put(store, key("y"), None)
    return store


# -- which are listed --------------------------------------------------------------------------------------------------


SELECTED = [
    (Selected(), [2, 3, 4, 5, 6, 7, 8], True),
    (Selected(limit=7), [2, 3, 4, 5, 6, 7, 8], True),
    (Selected(limit=3), [6, 7, 8], False),
    (Selected(after=5), [6, 7, 8], True),
    (Selected(after=5, limit=2), [7, 8], False),
    (Selected("g/widgets"), [2, 3, 4, 5, 7, 8], True),
    (Selected("g/widgets", "a/"), [2, 3, 5, 7, 8], True),
    (Selected("g/widgets", "a/", "x"), [2, 5, 7], True),
    (Selected(None, "b/"), [4], True),
    (Selected(None, None, "y"), [3, 8], True),
    (Selected("g/nothing"), [], True),
    (Selected(after=8), [], True),
]


@rows("selected, revisions, is_complete", SELECTED)
async def test_the_newest_writes_are_listed_in_order(
    selected: Selected, revisions: Sequence[int], is_complete: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for span in (1, 2, 3, 1000):
        monkeypatch.setattr(write_log, "FIRST_SPAN", span)
        found = await newest(await filled(MemoryStore()), selected)
        assert [event.revision for event in found.events] == revisions
        assert found.is_complete == is_complete


async def test_those_of_a_file_that_was_opened_again(tmp_path: Path) -> None:
    await (await filled(await SqliteStore.open(tmp_path / "noxu.db"))).close()
    store = await SqliteStore.open(tmp_path / "noxu.db")
    for selected, revisions, _ in SELECTED:
        assert [event.revision for event in (await newest(store, selected)).events] == revisions
    await store.close()


async def test_what_was_compacted_is_not_listed() -> None:
    store = await filled(MemoryStore())
    await store.compact(5)
    found = await newest(store, Selected())
    assert [event.revision for event in found.events] == [6, 7, 8]


# -- what is said of a write -------------------------------------------------------------------------------------------


async def recorded(store: Store, *writes: tuple[int, Author]) -> WriteHistory:
    journal = Journal()
    journal.writes.extend((revision, 0.5, author) for revision, author in writes)
    return WriteHistory(store, journal)


async def test_an_entry() -> None:
    store = MemoryStore()
    await put(store, key("x"), b'{"spec":{"size":1}}')
    await put(store, key("x"), b'{"spec":{"size":2}}')
    author = Author("patch", "status", "jane", "kubectl/1.37", "kubectl-edit", "id", "00-1-2-01")
    history = await recorded(store, (3, author))
    first, second = (await newest(store, Selected())).events
    assert await entry(second, await history.of(3)) == {
        "revision": 3,
        "time": "1970-01-01T00:00:00.500000Z",
        "verb": "patch",
        "event": "MODIFIED",
        "resource": "widgets.g",
        "namespace": "a",
        "name": "x",
        "subresource": "status",
        "user": "jane",
        "userAgent": "kubectl/1.37",
        "manager": "kubectl-edit",
        "controller": "",
        "requestID": "id",
        "traceparent": "00-1-2-01",
        "changed": ["spec.size"],
    }
    unknown = await entry(first, None)
    assert (unknown["verb"], unknown["event"], unknown["time"], unknown["changed"]) == ("create", "ADDED", "", [])


def watching(*spans: tuple[WatchScope, int, int], user: str = "c", arrived: float = 1.0) -> Author:
    return Author(
        "update",
        user=user,
        arrived=arrived,
        watching=tuple((scope, since) for scope, since, _ in spans),
        shown=tuple(upto for *_, upto in spans),
    )


WIDGETS = WatchScope("g/widgets", None)


async def test_why_a_client_wrote() -> None:
    store = await filled(MemoryStore())
    history = await recorded(store, (4, watching((WIDGETS, 1, 3))), (8, watching((WIDGETS, 1, 7), arrived=2.0)))
    write = await history.of(8)
    assert write is not None
    assert await why(store, history, write) == [
        {"how": "watch", "revision": 7, "resource": "widgets.g", "namespace": "a", "name": "x", "event": "MODIFIED"},
        {"how": "watch", "revision": 5, "resource": "widgets.g", "namespace": "a", "name": "x", "event": "MODIFIED"},
        {"how": "watch", "revision": 4, "resource": "widgets.g", "namespace": "b", "name": "x", "event": "ADDED"},
    ]


async def test_many_causes_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write_log, "MAX_CAUSES", 2)
    store = await filled(MemoryStore())
    history = await recorded(store, (8, watching((WIDGETS, 1, 7))))
    write = await history.of(8)
    assert write is not None
    found = await why(store, history, write)
    assert [cause.get("revision") for cause in found] == [7, 5, None]
    assert found[-1] == {"how": "more", "number": 3}


@rows("room, revisions, is_over", [(6, [7, 5, 4, 3, 2], False), (4, [7, 5, 4], True), (0, [], True)])
async def test_causes_are_looked_for_in_so_many_revisions(room: int, revisions: Sequence[int], is_over: bool) -> None:
    store = await filled(MemoryStore())
    history = await recorded(store, (8, watching((WIDGETS, 1, 7))))
    write = await history.of(8)
    assert write is not None
    searching = Searching(room + (room == 6))
    found = [cause["revision"] for cause in await why(store, history, write, searching)]
    assert (found, searching.is_over) == (revisions, is_over)


@rows(
    "scope, revisions",
    [
        (WatchScope("g/widgets", None, labels="app=a"), [3, 2]),
        (WatchScope("g/widgets", None, labels="app!=a"), [3]),
        (WatchScope("g/widgets", None, fields="metadata.name=y"), [4]),
        (WatchScope("g/widgets", None, labels="app in ("), [4, 3, 2]),
    ],
)
async def test_a_watch_with_selectors_has_shown_what_is_or_was_selected(
    scope: WatchScope, revisions: Sequence[int]
) -> None:
    store = MemoryStore()
    await put(store, key("x"), b'{"metadata":{"name":"x","labels":{"app":"a"}}}')
    await put(store, key("x"), b'{"metadata":{"name":"x","labels":{"app":"b"}}}')
    await put(store, key("y"), b'{"metadata":{"name":"y","labels":{"app":"a"}}}')
    await put(store, key("y"), None)
    scope_of_x = [(scope, 1, 4)]
    history = await recorded(store, (5, watching(*scope_of_x)))
    write = await history.of(5)
    assert write is not None
    found = [cause["revision"] for cause in await why(store, history, write)]
    assert [revision for revision in found if revision in revisions] == revisions


# -- the call ----------------------------------------------------------------------------------------------------------


def items(noxu: Noxu, **query: Any) -> list[dict[str, Any]]:
    return list(ask(noxu, **query)["items"])


def ask(noxu: Noxu, **query: Any) -> dict[str, Any]:
    path = "&".join(f"{name}={value}" for name, value in query.items())
    reply = sent(noxu.kubeconfig, "GET", f"/_noxu/log?{path}")
    assert reply.value is not None
    return dict(reply.value)


def test_a_write_of_the_handle(noxu: Noxu) -> None:
    noxu.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "1"}})
    noxu.patch("configmaps", "a", {"data": {"k": "2"}})
    created, patched = items(noxu, type="cm", name="a", namespace="default")
    assert (created["verb"], created["event"], created["changed"]) == ("create", "ADDED", [])
    assert (patched["verb"], patched["changed"], patched["user"]) == ("patch", ["data.k"], "system:anonymous")
    assert patched["time"] > "2020"
    assert patched["requestID"] != created["requestID"]
    [after] = items(noxu, type="ConfigMap", since=created["revision"])
    assert after == patched


def test_what_the_server_writes_has_the_name_of_its_controller(noxu: Noxu) -> None:
    listed = items(noxu, limit=5000)
    names = {item["controller"] for item in listed if not item["userAgent"]}
    assert "" not in names, "everything has an author"
    assert names & {"bootstrap", "template"}


def test_a_restore_has_the_author_who_asked_for_it(noxu: Noxu) -> None:
    sent(noxu.kubeconfig, "POST", "/_noxu/snapshots", {"name": "before"})
    for name in "ab":
        noxu.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
    sent(noxu.kubeconfig, "POST", "/_noxu/snapshots/before/restore")
    listed = items(noxu, type="configmaps", namespace="default")[-2:]
    assert [(item["verb"], item["event"], item["user"]) for item in listed] == [
        ("restore", "DELETED", "system:anonymous")
    ] * 2
    assert all("pins" not in item["resource"] for item in items(noxu)), "a snapshot is no object"


def test_the_answer_says_what_is_left_out(noxu: Noxu) -> None:
    for name in "abc":
        noxu.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
    answer = ask(noxu, type="configmaps", namespace="default", limit=2)
    assert [item["name"] for item in answer["items"]] == ["b", "c"]
    assert answer["note"].startswith("only the newest 2 writes are listed: a larger limit, up to 5000, ")
    assert "note" not in ask(noxu, type="configmaps", namespace="default", limit=50)


def test_a_server_without_history_lists_writes_without_authors(make_noxu: MakeNoxu) -> None:
    noxu = make_noxu(history="off")
    noxu.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})
    answer = ask(noxu, type="configmaps", name="a")
    assert [(item["verb"], item["user"]) for item in answer["items"]] == [("create", "")]
    assert answer["note"] == "who wrote is not known: the server runs with --history off"
    assert "without --history off" in ask(noxu, why="true")["message"]
    assert "runs with --history off" in ask(noxu, since="5m")["message"]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"type": "widgtes"}, "type: no kind 'widgtes' is served"),
        ({"type": "configmapz"}, "did you mean configmaps?"),
        ({"limit": 0}, "limit: 0 is not between 1 and 5000"),
        ({"limit": 5001}, "limit: 5001 is not between 1 and 5000"),
        ({"limit": "a"}, "limit: expected an integer"),
        ({"since": "soon"}, "since: 'soon' is no revision, no duration such as 5m, and no time such as"),
        ({"since": 10**9}, "since: revision 1000000000 does not exist yet: the newest is "),
        ({"sicne": 1}, "did you mean since?"),
    ],
)
def test_what_is_refused(noxu: Noxu, query: dict[str, Any], message: str) -> None:
    answer = ask(noxu, **query)
    assert answer["code"] == 400
    assert message in answer["message"]


# -- the event loop ----------------------------------------------------------------------------------------------------


async def test_other_tasks_run_while_a_long_history_is_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted in events between two turns of the loop, not in seconds."""
    store = MemoryStore()
    for n in range(6 * write_log.PORTION):
        await put(store, key(f"n{n % 50}"))
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    counting = asyncio.create_task(count())
    found = await newest(store, Selected(None, None, "nothing"))
    counting.cancel()
    assert found.events == []
    assert turns >= 3
