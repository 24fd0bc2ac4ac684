"""The store without a file: it needs no opening, and compaction frees memory."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from noxu_storage import log, memory
from noxu_storage.memory import MemoryStore
from noxu_storage.types import EVERYTHING, Closed, Compacted, Key, KeyValue, Page, Prefix


def key(number: int) -> Key:
    return Key("c", "p", f"n{number:05}")


async def test_it_can_be_created_without_an_event_loop() -> None:
    assert MemoryStore().revision == 1


async def test_a_write_without_watchers_does_not_yield_to_the_event_loop() -> None:
    store = MemoryStore()
    writing = store.put(key(1), b"v", expected=0)
    with pytest.raises(StopIteration) as done:
        writing.send(None)  # type: ignore[attr-defined]
    assert done.value.value == 2


async def test_keys_are_in_order_after_any_additions_and_removals() -> None:
    store = MemoryStore()
    for number in (5, 3, 9, 1):
        await store.put(key(number), b"v", expected=0)
    assert [item.key for item in (await store.list(Prefix("c"))).items] == [key(1), key(3), key(5), key(9)]
    await store.delete(key(3), expected=3)
    await store.put(key(4), b"v", expected=0)
    await store.compact(store.revision)
    await store.put(key(2), b"v", expected=0)
    assert [item.key for item in (await store.list(Prefix("c"))).items] == [key(1), key(2), key(4), key(5), key(9)]
    await store.put(key(3), b"v", expected=0)
    assert [item.key.name for item in (await store.list(EVERYTHING, limit=2, after=key(2))).items] == [
        "n00003",
        "n00004",
    ]


@pytest.mark.slow
async def test_compaction_frees_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "TAIL_EVENTS", 10)
    store = MemoryStore()
    tracemalloc.start()
    try:
        for number in range(500):
            revision = await store.put(key(number % 7), bytes(10_000), expected=store.revision - 6 if number > 6 else 0)
        before, _ = tracemalloc.get_traced_memory()
        await store.compact(revision)
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert before > 5_000_000
    assert after < 300_000  # seven values, and the tail of the log


async def test_a_long_compaction_yields_to_other_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "COMPACTION_SPAN", 10)
    store = MemoryStore()
    for number in range(100):
        await store.put(key(number), b"v", expected=0)
    compacting = asyncio.create_task(store.compact(101))
    seen = []
    while not compacting.done():
        await asyncio.sleep(0)
        seen.append(store.compacted)
        assert (await store.list(EVERYTHING, revision=101)).items[0].revision == 2
    assert len(set(seen)) > 5
    assert store.compacted == 101


async def test_a_closed_store_is_used_again_with_its_history() -> None:
    store = MemoryStore()
    first = await store.put(key(1), b"1", expected=0)
    await store.close()
    with pytest.raises(Closed):
        await store.get(key(1))
    store.reopen()
    second = await store.put(key(1), b"2", expected=first)
    assert (await store.list(EVERYTHING, revision=first)).items == [KeyValue(key(1), b"1", first)]
    async for batch in store.watch(after=first):
        assert [(event.revision, event.value) for event in batch.events] == [(second, b"2")]
        break


class Slices:
    """Runs a step of a test whenever a list lets other tasks run."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *steps: Callable[[], Awaitable[object]]) -> None:
        monkeypatch.setattr(memory, "LIST_SPAN", 2)
        self.steps = list(steps)

    async def alongside(self, listing: Coroutine[Any, Any, Page]) -> Page:
        task = asyncio.create_task(listing)
        while not task.done():
            await asyncio.sleep(0)
            if self.steps and not task.done():
                await self.steps.pop(0)()
        return await task


async def filled(number: int = 6) -> MemoryStore:
    store = MemoryStore()
    for each in range(number):
        await store.put(key(each), b"1", expected=0)
    return store


@pytest.mark.parametrize("revision", [0, 7])
async def test_a_long_list_lets_others_write_and_shows_one_revision(
    monkeypatch: pytest.MonkeyPatch, revision: int
) -> None:
    store = await filled()
    slices = Slices(
        monkeypatch,
        lambda: store.put(key(5), b"2", expected=7),
        lambda: store.delete(key(0), expected=2),
        lambda: store.put(key(9), b"1", expected=0),
    )
    page = await slices.alongside(store.list(EVERYTHING, revision=revision))
    assert (page.revision, [(state.key, state.value) for state in page.items]) == (
        7,
        [(key(n), b"1") for n in range(6)],
    )
    assert slices.steps == []


async def test_a_long_list_that_compaction_overtakes_is_read_again_or_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    async def overtake(store: MemoryStore) -> None:
        await store.delete(key(5), expected=7)
        await store.compact(store.revision)

    store = await filled()
    page = await Slices(monkeypatch, lambda: overtake(store)).alongside(store.list(EVERYTHING))
    assert (page.revision, len(page.items)) == (8, 5)
    store = await filled()
    with pytest.raises(Compacted):
        await Slices(monkeypatch, lambda: overtake(store)).alongside(store.list(EVERYTHING, revision=7))
