"""Stores that begin with the same base: each is a store of its own, and the base stays as it is."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from noxu_storage.memory import Base, MemoryStore
from noxu_storage.types import EVERYTHING, Compacted, Conflict, Event, FutureRevision, Key, KeyValue, Prefix

WIDGET, GADGET, GONE, NEW = (
    Key("widgets", "a/", "w"),
    Key("gadgets", "", "g"),
    Key("gadgets", "", "x"),
    Key("new", "", "n"),
)


async def made() -> Base:
    """Revision 5: a widget at 4, which was written twice, and a gadget at 3. A second gadget was deleted at 5."""
    store = MemoryStore()
    at = await store.put(WIDGET, b"first", expected=0)
    await store.put(GADGET, b"gadget", expected=0)
    await store.put(WIDGET, b"second", expected=at)
    gone = await store.put(GONE, b"gone", expected=0)
    await store.delete(GONE, expected=gone)
    return store.base()


async def states(store: MemoryStore, **options: Any) -> list[tuple[str, bytes, int]]:
    page = await store.list(EVERYTHING, **options)
    return [(item.key.name, item.value, item.revision) for item in page.items]


BEGIN = [("g", b"gadget", 3), ("w", b"second", 4)]


async def test_a_store_begins_with_the_states_and_the_revision_of_its_base() -> None:
    store = MemoryStore(await made())
    assert (store.revision, store.compacted) == (6, 0)
    assert await states(store) == BEGIN
    assert await store.get(WIDGET) == KeyValue(WIDGET, b"second", 4)
    assert await store.count(Prefix("gadgets")) == 1
    assert [item.key.name async for items in store.scan([b"second"]) for item in items] == ["w"]
    status = await store.status()
    assert (status.keys, status.bytes) == (2, len(b"gadgetsecond"))


async def test_what_one_store_writes_is_invisible_in_all_others_and_in_the_base() -> None:
    base = await made()
    one, other = MemoryStore(base), MemoryStore(base)
    assert await one.put(WIDGET, b"mine", expected=4) == 7
    assert await one.put(NEW, b"new", expected=0) == 8
    assert await one.delete(GADGET, expected=3) == 9
    assert await states(one) == [("n", b"new", 8), ("w", b"mine", 7)]
    for unchanged in (other, MemoryStore(base)):
        assert (unchanged.revision, await states(unchanged)) == (6, BEGIN)
    assert await other.put(GADGET, b"theirs", expected=3) == 7
    assert await states(one) == [("n", b"new", 8), ("w", b"mine", 7)]
    assert MemoryStore(base).base() == base
    assert await states(MemoryStore(one.base())) == [("n", b"new", 8), ("w", b"mine", 7)]


async def test_expected_revisions_are_those_of_the_base() -> None:
    store = MemoryStore(await made())
    with pytest.raises(Conflict) as conflict:
        await store.put(WIDGET, b"x", expected=0)
    assert conflict.value.current == KeyValue(WIDGET, b"second", 4)
    with pytest.raises(Conflict):
        await store.delete(GONE, expected=5)


async def test_the_history_before_a_store_is_the_creation_of_what_its_base_has(
    collect: Callable[..., Coroutine[Any, Any, list[Event]]],
) -> None:
    store = MemoryStore(await made())
    await store.put(WIDGET, b"third", expected=4)
    created = [Event(GADGET, 3, b"gadget", None), Event(WIDGET, 4, b"second", None)]
    changed = Event(WIDGET, 7, b"third", KeyValue(WIDGET, b"second", 4))
    assert await collect(store, after=1, upto=7) == [*created, changed]
    assert await collect(store, after=3, upto=7) == [created[1], changed]
    assert await collect(store, after=6, upto=7) == [changed]
    assert await collect(store, after=2, upto=7, prefix=Prefix("gadgets")) == created[:1]
    assert await states(store, revision=2) == []
    assert await states(store, revision=3) == BEGIN[:1]
    assert await states(store, revision=6) == BEGIN
    assert await store.get(WIDGET, revision=4) == KeyValue(WIDGET, b"second", 4)
    with pytest.raises(FutureRevision):
        await states(store, revision=8)


async def test_compaction_removes_what_was_superseded_of_the_base() -> None:
    base = await made()
    store = MemoryStore(base)
    await store.put(WIDGET, b"third", expected=4)
    await store.delete(GADGET, expected=3)
    await store.compact(8)
    assert await states(store) == [("w", b"third", 7)]
    with pytest.raises(Compacted):
        await states(store, revision=6)
    with pytest.raises(Compacted):
        store.watch(after=6)
    assert await store.get(GADGET) is None
    assert await states(MemoryStore(base)) == BEGIN


async def test_values_that_are_replaced_are_there_from_the_beginning(
    collect: Callable[..., Coroutine[Any, Any, list[Event]]],
) -> None:
    base = await made()
    store = MemoryStore(base)
    store.replace({GADGET: b"own"})
    assert await states(store) == [("g", b"own", 3), BEGIN[1]]
    assert await states(store, revision=3) == [("g", b"own", 3)]
    assert (await store.status()).bytes == len(b"ownsecond")
    await store.put(GADGET, b"next", expected=3)
    assert await collect(store, after=2, upto=7, prefix=Prefix("gadgets")) == [
        Event(GADGET, 3, b"own", None),
        Event(GADGET, 7, b"next", KeyValue(GADGET, b"own", 3)),
    ]
    assert await states(MemoryStore(base)) == BEGIN
