"""What is particular to the store without a file: that it is there at once, and lets go of what is compacted."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc

import pytest

from storage import log, memory
from storage.memory import MemoryStore
from storage.types import EVERYTHING, Key, Prefix


def key(number: int) -> Key:
    return Key("c", "p", f"n{number:05}")


async def test_it_is_ready_without_being_opened_and_outside_of_a_loop_too() -> None:
    assert MemoryStore().revision == 1


async def test_a_write_needs_no_turn_of_the_event_loop_when_nobody_watches() -> None:
    store = MemoryStore()
    writing = store.put(key(1), b"v", expected=0)
    with pytest.raises(StopIteration) as done:
        writing.send(None)  # type: ignore[attr-defined]
    assert done.value.value == 2


async def test_keys_come_in_order_whatever_was_added_and_removed_in_between() -> None:
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


async def test_compaction_gives_memory_back(monkeypatch: pytest.MonkeyPatch) -> None:
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


async def test_a_long_compaction_lets_others_have_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "SLICE", 10)
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
