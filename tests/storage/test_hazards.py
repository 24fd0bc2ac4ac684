"""Bugs of other stores in watches, revisions and compaction (etcd's track record, Jepsen's edge cases).

The numbers are those of etcd's issues. A random history is written once, and watched from every revision.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from random import Random
from typing import Any

import pytest

from noxu_storage import log, sqlite
from noxu_storage.memory import MemoryStore
from noxu_storage.sqlite import SqliteStore
from noxu_storage.store import Store
from noxu_storage.types import EVERYTHING, Compacted, Event, Key, KeyValue, Prefix, Revision
from tests.storage.rebased import RebasedStore

Collect = Callable[..., Coroutine[Any, Any, list[Event]]]

LENGTH = 200


def at(name: str) -> Key:
    return Key("g/things", "p/", name)


async def record(store: Store, seed: int = 7, length: int = LENGTH) -> list[Event]:
    """A random history over few keys: creates, updates, deletes."""
    random = Random(seed)
    known: dict[Key, KeyValue] = {}
    events = []
    while len(events) < length:
        key = Key(random.choice(["g/a", "g/b"]), random.choice(["p/", "q/"]), random.choice("abcd"))
        before = known.pop(key, None)
        if before is not None and random.random() < 0.4:
            revision = await store.delete(key, expected=before.revision)
            events.append(Event(key, revision, None, before))
        else:
            value = random.randbytes(random.randrange(20))
            revision = await store.put(key, value, expected=before.revision if before else 0)
            events.append(Event(key, revision, value, before))
            known[key] = KeyValue(key, value, revision)
    return events


@pytest.fixture(
    params=["memory", "sqlite", "sqlite with a short tail", "sqlite reopened", "etcd", "etcd with a short tail"]
)
async def recorded(
    request: pytest.FixtureRequest, file: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[Store, list[Event]]]:
    """A store with a history that is served from memory, from the back end, or from both."""
    if "tail" in request.param:
        monkeypatch.setattr(log, "TAIL_EVENTS", 30)
        monkeypatch.setattr(sqlite, "HISTORY_SPAN", 23)
    store: Store
    if request.param == "memory":
        store = MemoryStore()
    elif "sqlite" in request.param:
        store = await SqliteStore.open(file, "normal")
    else:
        store = await request.getfixturevalue("open_etcd")()
    events = await record(store)
    if "reopened" in request.param:
        await store.close()
        store = await SqliteStore.open(file, "normal")
    yield store, events
    await store.close()


def suffix(events: list[Event], after: Revision, prefix: Prefix = EVERYTHING) -> list[Event]:
    return [event for event in events if event.revision > after and prefix.covers(event.key)]


def step(store: Store) -> int:
    """Of every how many revisions tests watch one. etcd takes 0.1 s before it sends older events."""
    return 19 if isinstance(store, RebasedStore) else 1


PREFIXES = [EVERYTHING, Prefix("g/b", "q/")]


@pytest.mark.parametrize("prefix", PREFIXES, ids=str)
async def test_r7_a_watch_from_every_revision_delivers_the_exact_rest(
    recorded: tuple[Store, list[Event]], collect: Collect, prefix: Prefix
) -> None:
    store, events = recorded
    newest = store.revision
    assert newest == LENGTH + 1
    for after in range(0, newest, step(store)):  # 0 and 1 are the same: nothing happened at 1
        assert await collect(store, after=after, upto=newest, prefix=prefix) == suffix(events, after, prefix)


@pytest.mark.parametrize("compacted", [1, 57, LENGTH, LENGTH + 1])
async def test_r7_after_compaction_a_watch_delivers_the_exact_rest_or_raises_compacted(
    recorded: tuple[Store, list[Event]], collect: Collect, compacted: Revision
) -> None:
    store, events = recorded
    newest = store.revision
    await store.compact(compacted)
    for after in sorted({*range(0, newest, step(store)), compacted - 1, min(compacted, newest - 1)}):
        if after < compacted:
            with pytest.raises(Compacted):
                await anext(store.watch(after=after))
        else:
            assert await collect(store, after=after, upto=newest) == suffix(events, after)


@pytest.mark.parametrize("ahead", [0, 1, 3])
async def test_r7_a_watch_from_now_or_later_sees_only_what_comes_after(
    recorded: tuple[Store, list[Event]], collect: Collect, ahead: int
) -> None:
    store, _ = recorded
    newest = store.revision
    watching = asyncio.create_task(collect(store, after=newest + ahead, upto=newest + 6))
    for number in range(6):
        await asyncio.sleep(0)
        await store.put(at(f"new{number}"), b"v", expected=0)
    assert [event.revision for event in await watching] == list(range(newest + ahead + 1, newest + 7))


async def test_r8_15220_progress_is_never_ahead_of_events(recorded: tuple[Store, list[Event]]) -> None:
    store, events = recorded
    newest = store.revision
    prefix = Prefix("g/b", "q/")
    got: list[Event] = []
    async for batch in store.watch(prefix, after=0):
        got += batch.events
        assert got == [event for event in suffix(events, 0, prefix) if event.revision <= batch.revision]
        if batch.revision == newest:
            break


async def test_r8_17247_a_watch_that_is_opened_during_writes_gets_no_event_twice(
    recorded: tuple[Store, list[Event]], collect: Collect
) -> None:
    store, events = recorded
    newest = store.revision
    keys = [at(f"k{number}") for number in range(60)]
    watching = [asyncio.create_task(collect(store, after=newest - 20, upto=newest + 60))]
    for key in keys:
        writing = asyncio.create_task(store.put(key, b"v", expected=0))
        watching.append(asyncio.create_task(collect(store, after=store.revision - 3, upto=newest + 60)))
        await writing
    for seen in await asyncio.gather(*watching):
        assert [event.revision for event in seen] == list(range(seen[0].revision, newest + 61))
    assert (await watching[0])[:20] == events[-20:]


async def test_r8_17529_a_starved_watch_misses_nothing(recorded: tuple[Store, list[Event]], collect: Collect) -> None:
    store, _ = recorded
    newest = store.revision
    watch = store.watch(after=newest)
    seen: list[Revision] = []
    for number in range(200):
        await store.put(at(f"n{number}"), b"v", expected=0)
        if number % 70 == 69:  # it is scheduled rarely
            seen += [event.revision for event in (await anext(watch)).events]
    while not seen or seen[-1] < newest + 200:
        seen += [event.revision for event in (await anext(watch)).events]
    assert seen == list(range(newest + 1, newest + 201))


async def test_r8_18089_a_waiting_watch_gets_a_delete_that_is_compacted_at_once(
    recorded: tuple[Store, list[Event]],
) -> None:
    store, _ = recorded
    created = await store.put(at("x"), b"v", expected=0)
    watch = store.watch(after=created)
    deleted = await store.delete(at("x"), expected=created)
    await store.compact(deleted)
    batch = await anext(watch)
    assert list(batch.events) == [Event(at("x"), deleted, None, KeyValue(at("x"), b"v", created))]


async def test_r8_19179_a_watch_from_the_compacted_revision_misses_no_delete(
    recorded: tuple[Store, list[Event]], collect: Collect
) -> None:
    store, _ = recorded
    created = await store.put(at("x"), b"v", expected=0)
    deleted = await store.delete(at("x"), expected=created)
    later = await store.put(at("y"), b"v", expected=0)
    delete = Event(at("x"), deleted, None, KeyValue(at("x"), b"v", created))
    await store.compact(created)
    assert (await collect(store, after=created, upto=later))[0] == delete
    await store.compact(deleted)
    with pytest.raises(Compacted):  # the delete has been removed, so the watch must not start after it
        await anext(store.watch(after=created))
    assert [event.key.name for event in await collect(store, after=deleted, upto=later)] == ["y"]


async def test_r8_an_event_after_the_compacted_revision_keeps_its_previous_value(
    recorded: tuple[Store, list[Event]], collect: Collect
) -> None:
    store, events = recorded
    for compacted in range(2, store.revision, 12 + step(store)):
        await store.compact(compacted)
        rest = await collect(store, after=compacted, upto=store.revision)
        assert [event.previous for event in rest] == [event.previous for event in suffix(events, compacted)]


async def test_r8_20221_a_watch_from_the_future_delivers_no_older_event(
    recorded: tuple[Store, list[Event]], collect: Collect
) -> None:
    store, _ = recorded
    newest = store.revision
    watch = store.watch(Prefix("g/things"), after=newest + 100)
    for number in range(100):
        await store.put(at(f"n{number}"), b"v", expected=0)
        if number == 50:
            await store.compact(store.revision)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await anext(watch)
    await store.put(at("last"), b"v", expected=0)
    assert [event.key.name for event in (await anext(watch)).events] == ["last"]


@pytest.mark.parametrize("history", ["p", "pd", "pdp", "pp", "ppd"])
async def test_r8_17780_the_revision_does_not_go_back_when_the_end_is_compacted_and_the_store_reopened(
    file: Path, history: str
) -> None:
    store = await SqliteStore.open(file)
    seen = 0
    for step in history:
        if step == "p":
            seen = await store.put(at("x"), b"v", expected=seen)
        else:
            await store.delete(at("x"), expected=seen)
            seen = 0
    revision = len(history) + 1
    await store.compact(revision)
    for _ in range(2):
        await store.close()
        store = await SqliteStore.open(file)
        assert (store.revision, store.compacted) == (revision, revision)
    assert await store.put(at("y"), b"v", expected=0) == revision + 1
    await store.close()


async def test_a_reader_that_compaction_overtakes_gets_compacted(
    recorded: tuple[Store, list[Event]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log, "TAIL_EVENTS", 10)
    store, _ = recorded
    watch = store.watch(after=store.revision)
    for number in range(100):
        await store.put(at(f"n{number}"), b"v", expected=0)
    await store.compact(store.revision - 5)
    with pytest.raises(Compacted) as gone:
        await anext(watch)
    assert gone.value.revision == store.revision - 5
    with pytest.raises(Compacted):
        await anext(watch)


async def test_compaction_of_history_that_is_being_read(file: Path, collect: Collect) -> None:
    """Rows may be removed while they are being read: the reader gets all of them, or Compacted."""
    store = await SqliteStore.open(file, "normal")
    events = await record(store)
    for compacted in range(20, LENGTH, 40):
        await store.close()
        store = await SqliteStore.open(file, "normal")
        readers = [
            asyncio.create_task(collect(store, after=after, upto=LENGTH + 1))
            for after in range(compacted - 15, compacted + 15)
        ]
        await asyncio.sleep(0)
        await store.compact(compacted)
        for number, outcome in enumerate(await asyncio.gather(*readers, return_exceptions=True)):
            if not isinstance(outcome, Compacted):
                assert outcome == suffix(events, compacted - 15 + number)
            else:
                assert compacted - 15 + number < compacted
    await store.close()
