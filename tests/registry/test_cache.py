"""The watch cache: it applies each commit as a whole, contains watchers that fail, and starts again after compaction."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from itertools import product
from typing import Final

import pytest

from noxu.registry import cache
from noxu.registry.cache import Change, Collection, WatchCache
from noxu.registry.stored_object import StoredObject
from noxu_storage.types import (
    Batch,
    Compacted,
    Corrupt,
    Event,
    Key,
    KeyValue,
    Page,
    Prefix,
    Revision,
    StoreError,
    Unavailable,
)
from tests.faults.flaky import FlakyStore
from tests.rows import rows
from tests.timing import loop_turns

THINGS: Final = "example.com/things"
OTHERS: Final = "example.com/others"


def key(name: str, partition: str = "default/", collection: str = THINGS) -> Key:
    return Key(collection, partition, name)


A, B, C = key("a"), key("b"), key("c")


class Recorder:
    """A watcher that records what it receives. `fails` and `fails_to_end`: its methods raise."""

    def __init__(self, log: list[str] | None = None, *, fails: bool = False, fails_to_end: bool = False) -> None:
        self.received: list[tuple[list[str], Revision]] = []
        self.ends = 0
        self._log = [] if log is None else log
        self._fails, self._fails_to_end = fails, fails_to_end

    def deliver(self, changes: Sequence[Change], revision: Revision) -> None:
        self._log.append("watcher")
        self.received.append(([change.key.name for change in changes], revision))
        if self._fails:
            raise RuntimeError("broken")

    def end(self) -> None:
        self.ends += 1
        if self._fails_to_end:
            raise RuntimeError("broken")


class GatedStore(FlakyStore):
    """`list` waits until `gate` is set, and then shows what was stored when it was called."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()
        self.gate.set()
        self.lists = 0
        self.list_fails: StoreError | None = None

    async def list(self, prefix: Prefix, *, revision: Revision = 0, limit: int = 0, after: Key | None = None) -> Page:
        self.lists += 1
        page = await super().list(prefix, revision=revision, limit=limit, after=after)
        await self.gate.wait()
        if self.list_fails is not None:
            error, self.list_fails = self.list_fails, None
            raise error
        return page


@contextlib.asynccontextmanager
async def following(store: GatedStore) -> AsyncIterator[WatchCache]:
    found = WatchCache(store)
    task = asyncio.create_task(found.follow())
    try:
        yield found
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


@pytest.fixture
async def store() -> GatedStore:
    return GatedStore()


@pytest.fixture
async def watch_cache(store: GatedStore) -> AsyncIterator[WatchCache]:
    async with following(store) as found:
        yield found


def contents(collection: Collection) -> dict[str, tuple[bytes, Revision]]:
    assert list(collection.entries.keys() - collection.keys) == []
    return {
        found.name: (collection.entries[found].stored, collection.entries[found].revision) for found in collection.keys
    }


# -- a collection -----------------------------------------------------------------------------------------------------


def changed(collection: Collection, *events: Event) -> list[Change]:
    return [collection.apply(event) for event in events]


def created(at: Key, revision: Revision, value: bytes = b"1") -> Event:
    return Event(at, revision, value, None)


def updated(at: Key, revision: Revision, previous: Revision, value: bytes = b"2") -> Event:
    return Event(at, revision, value, KeyValue(at, b"1", previous))


def deleted(at: Key, revision: Revision, previous: Revision) -> Event:
    return Event(at, revision, None, KeyValue(at, b"1", previous))


def test_events_change_the_objects_and_their_order() -> None:
    things = Collection(THINGS)
    changed(things, created(B, 2), created(A, 3), created(C, 4), updated(B, 5, 2), deleted(A, 6, 3))
    assert contents(things) == {"b": (b"2", 5), "c": (b"1", 4)}
    assert things.keys == [B, C]
    assert things.changed == 6


def test_a_change_has_both_states_and_the_old_one_has_its_revision() -> None:
    things = Collection(THINGS)
    create, update, delete = changed(things, created(A, 2), updated(A, 3, 2), deleted(A, 4, 3))
    states = [
        (change.before and (change.before.stored, change.before.revision), change.entry and change.entry.stored)
        for change in (create, update, delete)
    ]
    assert states == [(None, b"1"), ((b"1", 3), b"2"), ((b"2", 4), None)]


def test_the_old_state_of_an_object_that_is_not_in_the_cache_is_that_of_the_log() -> None:
    """For example of one that was corrupt when the collection was loaded."""
    [change] = changed(Collection(THINGS), updated(A, 3, 2))
    assert change.before is not None
    assert (change.before.stored, change.before.revision) == (b"1", 3)


def test_a_delete_of_an_unknown_object_is_a_change() -> None:
    things = Collection(THINGS)
    [change] = changed(things, deleted(A, 3, 2))
    assert (change.entry, things.keys) == (None, [])


def test_the_entry_that_its_writer_prepared_is_kept_if_the_bytes_are_equal() -> None:
    things = Collection(THINGS)
    mine, other = StoredObject(A, b"1", 0), StoredObject(A, b"other", 0)
    things.apply(created(A, 2), mine)
    assert things.entries[A] is mine
    assert mine.revision == 2
    things.apply(updated(A, 3, 2), other)
    assert things.entries[A] is not other
    assert contents(things) == {"a": (b"2", 3)}
    assert other.revision == 0


def test_a_corrupt_object_is_readable_when_it_is_written_or_deleted() -> None:
    things = Collection(THINGS)
    things.corrupt.update({A: 2, key("a", "other/"): 3, B: 4})
    assert things.corrupt_in("default/") == {A: 2, B: 4}
    assert things.corrupt_in(None) == things.corrupt
    changed(things, updated(A, 5, 2), deleted(B, 6, 4))
    assert things.corrupt_in("default/") == {}


SELECTIONS: Final[dict[str, tuple[str | None, Key | None, list[str]]]] = {
    "all": (None, None, ["a-b/x", "a/x", "a/y", "b/x"]),
    "all after a key": (None, key("x", "a/"), ["a/y", "b/x"]),
    "all after a key that does not exist": (None, key("xx", "a/"), ["a/y", "b/x"]),
    "one partition": ("a/", None, ["a/x", "a/y"]),
    "one partition after a key": ("a/", key("x", "a/"), ["a/y"]),
    "after its last key": ("a/", key("y", "a/"), []),
    "after a key of a later partition": ("a/", key("x", "b/"), []),
    "after a key of an earlier partition": ("b/", key("y", "a/"), ["b/x"]),
    "a partition whose name begins with that of another": ("a-b/", None, ["a-b/x"]),
    "a partition that does not exist": ("aa/", None, []),
}


@rows(("partition", "after", "expected"), SELECTIONS.values(), ids=SELECTIONS)
def test_the_keys_of_a_partition_after_a_key(partition: str | None, after: Key | None, expected: list[str]) -> None:
    things = Collection(THINGS)
    for revision, (where, name) in enumerate([("b/", "x"), ("a/", "y"), ("a-b/", "x"), ("a/", "x")], 2):
        things.apply(created(key(name, where), revision))
    assert [f"{found.partition}{found.name}" for found in things.select(partition, after)] == expected


# -- recent changes ---------------------------------------------------------------------------------------------------


def with_changes(count: int, floor: Revision = 0) -> Collection:
    """Changes at the revisions floor + 2, floor + 4, …"""
    things = Collection(THINGS)
    things.floor = things.changed = floor
    for n in range(1, count + 1):
        things.apply(created(key(f"{n:04}"), floor + 2 * n))
    return things


SINCE: Final[dict[str, tuple[Revision, list[Revision] | None]]] = {
    "the beginning": (10, [12, 14, 16]),
    "between two changes": (13, [14, 16]),
    "a change": (14, [16]),
    "the newest change": (16, []),
    "the future": (99, []),
    "before the collection was loaded": (9, None),
}


@pytest.mark.parametrize(("after", "expected"), SINCE.values(), ids=SINCE)
def test_the_changes_since_a_revision(after: Revision, expected: list[Revision] | None) -> None:
    changes = with_changes(3, floor=10).since(after)
    assert (None if changes is None else [change.revision for change in changes]) == expected


def test_a_limited_number_of_changes_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "MAX_RECENT", 3)
    things = with_changes(5)
    assert [change.revision for change in things.recent] == [6, 8, 10]
    assert things.floor == 4
    assert [change.revision for change in things.since(4) or ()] == [6, 8, 10]
    assert things.since(3) is None


def test_the_size_of_the_changes_that_are_kept_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "MAX_RECENT_BYTES", 30)
    things = Collection(THINGS)
    for revision, size in enumerate((10, 10, 10, 5), 2):
        things.apply(created(key(str(revision)), revision, b"x" * size))
    assert ([change.revision for change in things.recent], things.recent_bytes) == ([3, 4, 5], 25)
    things.apply(created(key("large"), 6, b"x" * 31))
    assert (list(things.recent), things.recent_bytes, things.floor) == ([], 0, 6)
    assert things.since(6) == []
    assert things.since(5) is None


# -- commits ----------------------------------------------------------------------------------------------------------


async def test_a_write_is_applied(store: GatedStore, watch_cache: WatchCache) -> None:
    things = await watch_cache.collection(THINGS)
    revision = await store.put(A, b"1", expected=0)
    await watch_cache.reached(revision)
    assert contents(things) == {"a": (b"1", revision)}
    assert watch_cache.revision == revision


async def test_a_commit_is_applied_as_a_whole_before_watchers_writers_and_streams_learn_of_it() -> None:
    async with following(GatedStore()) as watch_cache:
        things, others = await watch_cache.collection(THINGS), await watch_cache.collection(OTHERS)
        order: list[str] = []
        state: list[tuple[int, int, Revision]] = []

        class Watching(Recorder):
            def deliver(self, changes: Sequence[Change], revision: Revision) -> None:
                super().deliver(changes, revision)
                state.append((len(things.entries), len(others.entries), watch_cache.revision))

        class Streaming:
            partition: str | None = None

            def deliver(self, changes: Sequence[Change], revision: Revision) -> bool:
                order.append("stream")
                return True

            def fall_behind(self) -> None: ...

            def end(self) -> None: ...

        stream = Streaming()
        things.streams.add(stream)
        things.streams.follow(stream)
        things.watchers[Watching(order)] = None
        others.watchers[Watching(order)] = None
        waiting = asyncio.create_task(watch_cache.reached(8))
        waiting.add_done_callback(lambda _: order.append("writer"))
        await loop_turns()
        watch_cache._apply(Batch([created(A, 7), created(key("b", collection=OTHERS), 8)], 8))
        await loop_turns()
        assert state == [(1, 1, 8), (1, 1, 8)]
        assert order == ["watcher", "watcher", "stream", "writer"]  # the writer's task runs in the next iteration


async def test_a_commit_is_delivered_to_watchers_of_the_changed_collections_only(
    store: GatedStore, watch_cache: WatchCache
) -> None:
    things, others = await watch_cache.collection(THINGS), await watch_cache.collection(OTHERS)
    watcher, other = Recorder(), Recorder()
    things.watchers[watcher] = others.watchers[other] = None
    await watch_cache.reached(await store.put(A, b"1", expected=0))
    assert (watcher.received, other.received) == ([(["a"], 2)], [])


FAILING: Final[dict[str, Callable[[], Recorder]]] = {
    "deliver raises": lambda: Recorder(fails=True),
    "end raises, too": lambda: Recorder(fails=True, fails_to_end=True),
}


@pytest.mark.parametrize("failing", FAILING.values(), ids=FAILING)
async def test_a_watcher_that_fails_harms_only_itself(
    failing: Callable[[], Recorder], store: GatedStore, watch_cache: WatchCache, caplog: pytest.LogCaptureFixture
) -> None:
    things = await watch_cache.collection(THINGS)
    before, broken, after = Recorder(), failing(), Recorder()
    for watcher in (before, broken, after):
        things.watchers[watcher] = None
    first = await store.put(A, b"1", expected=0)
    await watch_cache.reached(first)
    second = await store.put(B, b"1", expected=0)
    await watch_cache.reached(second)
    assert before.received == after.received == [(["a"], first), (["b"], second)]
    assert (before.ends, after.ends) == (0, 0)
    assert (len(broken.received), broken.ends) == (1, 1)
    assert list(things.watchers) == [before, after]
    assert contents(things) == {"a": (b"1", first), "b": (b"1", second)}
    assert {record.message for record in caplog.records} == {f"a watcher of {THINGS} failed"}


async def test_a_watcher_may_leave_while_changes_are_delivered(store: GatedStore, watch_cache: WatchCache) -> None:
    things = await watch_cache.collection(THINGS)

    class Leaving(Recorder):
        def deliver(self, changes: Sequence[Change], revision: Revision) -> None:
            super().deliver(changes, revision)
            del things.watchers[self]

    leaving, staying = Leaving(), Recorder()
    things.watchers[leaving] = things.watchers[staying] = None
    for name in "ab":
        await watch_cache.reached(await store.put(key(name), b"1", expected=0))
    assert (len(leaving.received), len(staying.received)) == (1, 2)


# -- waiting for a revision -------------------------------------------------------------------------------------------


async def test_waiting_ends_in_the_order_of_revisions(store: GatedStore, watch_cache: WatchCache) -> None:
    ended: list[Revision] = []

    async def wait(revision: Revision) -> None:
        await watch_cache.reached(revision)
        ended.append(revision)

    tasks = [asyncio.create_task(wait(revision)) for revision in (4, 2, 3, 1)]
    await loop_turns()
    assert ended == [1]
    for name in "abc":
        await store.put(key(name), b"1", expected=0)
        await loop_turns()
        assert ended == [1, 2, 3, 4][: store.revision]
    await asyncio.gather(*tasks)


async def test_a_cancelled_wait_does_not_affect_others(store: GatedStore, watch_cache: WatchCache) -> None:
    cancelled, other = (asyncio.create_task(watch_cache.reached(2)) for _ in range(2))
    await loop_turns()
    cancelled.cancel()
    await loop_turns()
    await store.put(A, b"1", expected=0)
    await other
    assert cancelled.cancelled()


# -- loading ----------------------------------------------------------------------------------------------------------


async def test_a_collection_is_loaded_once(store: GatedStore, watch_cache: WatchCache) -> None:
    await store.put(A, b"1", expected=0)
    first, second = await asyncio.gather(watch_cache.collection(THINGS), watch_cache.collection(THINGS))
    assert first is second is await watch_cache.collection(THINGS)
    assert store.lists == 1
    assert contents(first) == {"a": (b"1", 2)}
    assert (first.floor, first.changed) == (2, 2)


async def test_writes_during_the_loading_are_applied(store: GatedStore, watch_cache: WatchCache) -> None:
    await store.put(A, b"1", expected=0)
    store.gate.clear()
    loading = asyncio.create_task(watch_cache.collection(THINGS))
    await loop_turns()
    await store.put(B, b"1", expected=0)
    await store.delete(A, expected=2)
    await loop_turns()
    store.gate.set()
    things = await loading
    assert contents(things) == {"b": (b"1", 3)}
    assert [change.revision for change in things.since(2) or ()] == [3, 4]


async def test_a_load_that_its_first_reader_cancels_continues_for_others(
    store: GatedStore, watch_cache: WatchCache
) -> None:
    store.gate.clear()
    cancelled, other = (asyncio.create_task(watch_cache.collection(THINGS)) for _ in range(2))
    await loop_turns()
    cancelled.cancel()
    await loop_turns()
    store.gate.set()
    assert (await other).name == THINGS
    assert store.lists == 1


async def test_a_load_that_fails_is_repeated_by_the_next_reader(store: GatedStore, watch_cache: WatchCache) -> None:
    store.list_fails = Unavailable("planned")
    with pytest.raises(Unavailable):
        await watch_cache.collection(THINGS)
    await watch_cache.reached(await store.put(A, b"1", expected=0))
    assert contents(await watch_cache.collection(THINGS)) == {"a": (b"1", 2)}


async def test_corrupt_objects_are_known_and_the_others_are_loaded(
    store: GatedStore, watch_cache: WatchCache, caplog: pytest.LogCaptureFixture
) -> None:
    readable = Page([KeyValue(A, b"1", 2)], 1, 0)
    store.list_fails = Corrupt("b is corrupt", {B: 3}, readable)
    things = await watch_cache.collection(THINGS)
    assert (contents(things), things.corrupt) == ({"a": (b"1", 2)}, {B: 3})
    assert "b is corrupt" in caplog.text


async def test_a_collection_that_cannot_be_listed_at_all_is_an_error(
    store: GatedStore, watch_cache: WatchCache
) -> None:
    store.list_fails = Corrupt("the file is corrupt")
    with pytest.raises(Corrupt):
        await watch_cache.collection(THINGS)


# -- resets -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [Compacted(2), Corrupt("the log is corrupt")], ids=["compacted", "corrupt"])
async def test_when_the_log_cannot_be_followed_watches_end_and_collections_are_loaded_again(
    store: GatedStore, watch_cache: WatchCache, error: StoreError
) -> None:
    things = await watch_cache.collection(THINGS)
    watcher = Recorder()
    things.watchers[watcher] = None
    store.watch_fails = error
    revision = await store.put(A, b"1", expected=0)  # the cache does not receive this batch
    await watch_cache.reached(revision)
    assert (watcher.received, watcher.ends) == ([], 1)
    again = await watch_cache.collection(THINGS)
    assert again is not things
    assert contents(again) == {"a": (b"1", revision)}
    await watch_cache.reached(await store.put(B, b"1", expected=0))
    assert contents(again).keys() == {"a", "b"}
    assert watcher.received == []


async def test_other_failures_end_the_following(store: GatedStore) -> None:
    watch_cache = WatchCache(store)
    store.watch_fails = Unavailable("planned")
    await store.put(A, b"1", expected=0)
    with pytest.raises(Unavailable):
        await watch_cache.follow()


async def test_the_following_ends_with_the_store(store: GatedStore, watch_cache: WatchCache) -> None:
    other = asyncio.create_task(WatchCache(store).follow())
    await loop_turns()
    await store.close()
    await other


async def test_a_reset_wakes_those_who_wait_for_a_revision(store: GatedStore) -> None:
    watch_cache = WatchCache(store)
    waiting = asyncio.create_task(watch_cache.reached(5))
    await loop_turns()
    watch_cache.reset(5)
    await waiting


async def test_a_collection_is_loaded_again_if_the_cache_is_reset_meanwhile(
    store: GatedStore, watch_cache: WatchCache
) -> None:
    """The events between the page and the reset are missing."""
    store.gate.clear()
    loading = asyncio.create_task(watch_cache.collection(THINGS))
    await loop_turns()
    store.watch_fails = Compacted(2)
    await store.put(A, b"1", expected=0)
    await loop_turns()
    store.gate.set()
    assert contents(await loading) == {"a": (b"1", 2)}
    assert store.lists == 2


@pytest.mark.parametrize("loaded", [True, False])
async def test_the_watches_of_a_collection_can_be_ended(watch_cache: WatchCache, loaded: bool) -> None:
    others = await watch_cache.collection(OTHERS)
    watcher, other = Recorder(fails_to_end=True), Recorder()
    others.watchers[other] = None
    if loaded:
        things = await watch_cache.collection(THINGS)
        things.watchers[watcher] = None
    watch_cache.end_watches(THINGS)
    assert (watcher.ends, other.ends) == (int(loaded), 0)
    assert watch_cache.collections.get(THINGS) is (things if loaded else None)


# -- pages ------------------------------------------------------------------------------------------------------------


PARTITIONS = [None, "a/", "b/", "c/", "d/"]
POSITIONS = [None, key("", "a/"), key("b", "a/"), key("c", "a/"), key("z", "a/"), key("b", "c/")]


@rows("partition, after, limit", product(PARTITIONS, POSITIONS, [0, 1, 2, 9]))
def test_a_page_is_the_beginning_of_what_is_selected(partition: str | None, after: Key | None, limit: int) -> None:
    collection = Collection(THINGS)
    collection.fill([StoredObject(key(name, place), b"{}", 1) for place in ("a/", "c/") for name in "abc"])
    selected = collection.select(partition, after)
    found, remaining = collection.page(partition, after, limit)
    assert [entry.key for entry in found] == (selected[:limit] if limit else selected)
    assert remaining == len(selected) - len(found)
