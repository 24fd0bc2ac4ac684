"""Every promise of storage/store.py, kept by every back end."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from noxu_storage import pins
from noxu_storage.store import Store
from noxu_storage.transactions import Decide, StagedWrite
from noxu_storage.types import (
    EVERYTHING,
    Batch,
    Closed,
    Compacted,
    Conflict,
    Event,
    FutureRevision,
    Key,
    KeyValue,
    Prefix,
    Revision,
)

Collect = Callable[..., Coroutine[Any, Any, list[Event]]]


def thing(name: str, partition: str = "default/", collection: str = "example.com/things") -> Key:
    return Key(collection, partition, name)


A, B, C, D = map(thing, "abcd")
THINGS = Prefix("example.com/things")


async def written(store: Store, *steps: tuple[Key, bytes | None]) -> list[Event]:
    """Put values, None deletes; the events that this must make."""
    events: list[Event] = []
    for key, value in steps:
        before = await store.get(key)
        expected = before.revision if before else 0
        if value is None:
            revision = await store.delete(key, expected=expected)
        else:
            revision = await store.put(key, value, expected=expected)
        events.append(Event(key, revision, value, before))
    return events


HISTORY = (
    (A, b"a1"), (B, b"b1"), (A, b"a2"), (C, b"c1"), (B, None), (thing("a", "other/"), b"o1"), (B, b"b2"), (A, None),
    (thing("x", "", "example.com/zones"), b"z1"), (C, b"c2"), (C, b"c3"), (C, None), (C, b"c4"),
)  # fmt: skip


def states(events: list[Event], at: Revision) -> dict[Key, KeyValue]:
    """The state at a revision, from the events alone."""
    state: dict[Key, KeyValue] = {}
    for key, revision, value, _ in events:
        if revision <= at:
            state.pop(key, None)
            if value is not None:
                state[key] = KeyValue(key, value, revision)
    return dict(sorted(state.items()))


# 1. Revisions.


async def test_an_empty_store_is_at_revision_1_and_not_compacted(store: Store) -> None:
    assert (store.revision, store.compacted) == (1, 0)
    assert await store.get(A) is None
    assert await store.list(EVERYTHING) == ([], 1, 0)
    assert await store.count(EVERYTHING) == 0


async def test_every_put_and_delete_gets_the_next_revision(store: Store) -> None:
    events = await written(store, *HISTORY)
    assert [event.revision for event in events] == list(range(2, len(HISTORY) + 2))
    assert store.revision == len(HISTORY) + 1


async def test_a_refused_write_uses_no_revision(store: Store) -> None:
    await store.put(A, b"1", expected=0)
    for call in (store.put(A, b"2", expected=0), store.delete(A, expected=7), store.delete(B, expected=0)):
        with pytest.raises(Conflict):
            await call
    assert store.revision == 2
    assert await store.put(B, b"1", expected=0) == 3


# 2. Compare and set.


@pytest.mark.parametrize(
    ("there", "write", "expected", "outcome"),
    [
        pytest.param([], b"v", 0, 2, id="create what does not exist"),
        pytest.param([], b"v", 1, None, id="update what does not exist"),
        pytest.param([], None, 0, None, id="delete what does not exist"),
        pytest.param([], None, 2, None, id="delete what never existed"),
        pytest.param([b"1"], b"v", 0, (b"1", 2), id="create what exists"),
        pytest.param([b"1"], b"v", 2, 3, id="update what was seen"),
        pytest.param([b"1"], b"1", 2, 3, id="update with the same value is an update"),
        pytest.param([b"1"], b"v", 3, (b"1", 2), id="update from a revision to come"),
        pytest.param([b"1"], None, 2, 3, id="delete what was seen"),
        pytest.param([b"1"], None, 0, (b"1", 2), id="delete without having seen it"),
        pytest.param([b"1", b"2"], b"v", 2, (b"2", 3), id="update what has changed"),
        pytest.param([b"1", b"2"], None, 2, (b"2", 3), id="delete what has changed"),
        pytest.param([b"1", None], b"v", 0, 4, id="create what was deleted"),
        pytest.param([b"1", None], b"v", 2, None, id="update what was deleted"),
        pytest.param([b"1", None], b"v", 3, None, id="update from the revision of the delete"),
        pytest.param([b"1", None], None, 3, None, id="delete twice"),
        pytest.param([b"1", None, b"3"], b"v", 2, (b"3", 4), id="update what was replaced by a namesake"),
    ],
)
async def test_a_write_succeeds_if_the_key_is_at_the_expected_revision(
    store: Store, there: list[bytes | None], write: bytes | None, expected: Revision, outcome: Any
) -> None:
    await written(store, *((A, value) for value in there))
    call = store.delete(A, expected=expected) if write is None else store.put(A, write, expected=expected)
    if isinstance(outcome, int):
        assert await call == outcome
        assert await store.get(A) == (None if write is None else KeyValue(A, write, outcome))
        return
    with pytest.raises(Conflict) as refused:
        await call
    assert refused.value.key == A
    assert refused.value.current == (None if outcome is None else KeyValue(A, *outcome))


@pytest.mark.parametrize("kind", ["create", "update", "delete", "update or delete"])
async def test_of_many_writers_with_the_same_expected_revision_exactly_one_succeeds(store: Store, kind: str) -> None:
    expected = 0 if kind == "create" else await store.put(A, b"first", expected=0)
    first = store.revision

    def attempt(number: int) -> Awaitable[Revision]:
        if kind == "delete" or (kind == "update or delete" and number % 2):
            return store.delete(A, expected=expected)
        return store.put(A, b"%d" % number, expected=expected)

    outcomes = await asyncio.gather(*map(attempt, range(40)), return_exceptions=True)
    assert [outcome for outcome in outcomes if not isinstance(outcome, Conflict)] == [first + 1]
    assert store.revision == first + 1
    current = await store.get(A)
    assert [o.current for o in outcomes if isinstance(o, Conflict)] == [current] * 39


async def test_increments_by_many_writers_add_up(store: Store) -> None:
    async def increment(times: int) -> None:
        for _ in range(times):
            while True:
                current = await store.get(A)
                try:
                    await store.put(
                        A,
                        b"%d" % (int(current.value) + 1 if current else 1),
                        expected=current.revision if current else 0,
                    )
                    break
                except Conflict:
                    pass

    await asyncio.gather(*(increment(5) for _ in range(8)))
    current = await store.get(A)
    assert current == KeyValue(A, b"40", 41)


async def test_writers_of_different_keys_do_not_disturb_each_other(store: Store) -> None:
    keys = [thing(f"n{number}", f"p{number % 3}/") for number in range(60)]
    revisions = await asyncio.gather(*(store.put(key, key.name.encode(), expected=0) for key in keys))
    assert sorted(revisions) == list(range(2, 62))
    assert await store.count(EVERYTHING) == 60


# Scans.


async def scanned(store: Store, *texts: bytes) -> dict[Key, KeyValue]:
    found = [item async for items in store.scan(texts) for item in items]
    assert len(found) == len({item.key for item in found})
    return {item.key: item for item in found}


SCANS: dict[str, tuple[tuple[bytes, ...], str]] = {
    "a text of one value": ((b"c4",), "c"),
    "a text of several values": ((b"1",), "oz"),
    "several texts": ((b"o1", b"b2"), "ob"),
    "a text of all values": ((b"",), "bcoz"),
    "texts of values that have been replaced or deleted": ((b"a", b"b1", b"c1", b"c3"), ""),
    "a text of no value": ((b"nothing",), ""),
    "a text with a NUL": ((b"c\x00",), ""),
}


@pytest.mark.parametrize(("texts", "found"), SCANS.values(), ids=SCANS)
async def test_a_scan_finds_the_current_values_that_contain_a_text(
    store: Store, texts: tuple[bytes, ...], found: str
) -> None:
    state = states(await written(store, *HISTORY), store.revision)
    expected = {key: item for key, item in state.items() if item.value[:1].decode() in found and found}
    assert await scanned(store, *texts) == expected


async def test_a_scan_finds_all_values_of_a_large_store(store: Store) -> None:
    keys = [thing(f"n{number}") for number in range(2500)]
    await asyncio.gather(*(store.put(key, b"text", expected=0) for key in keys))
    await store.compact(store.revision - 1000)
    assert (await scanned(store, b"text")).keys() == set(keys)


async def test_a_scan_does_not_miss_what_is_not_written_meanwhile(store: Store) -> None:
    for number in range(1500):
        await store.put(thing(f"n{number}"), b"old", expected=0)
    found: dict[Key, bytes] = {}
    async for items in store.scan([b"old", b"new"]):
        found |= {item.key: item.value for item in items}
        for name in ("n0", "n1499"):
            current = await store.get(thing(name))
            await store.put(thing(name), b"new", expected=current.revision if current else 0)
    assert {key for key, value in found.items() if value == b"old"} >= {
        thing(f"n{number}") for number in range(1, 1499)
    }


# 4. Visible when answered.


async def test_every_read_shows_an_acknowledged_write(store: Store, collect: Collect) -> None:
    for number in range(3):
        revision = await store.put(A, b"%d" % number, expected=store.revision if number else 0)
        state = KeyValue(A, b"%d" % number, revision)
        assert store.revision == revision
        assert await store.get(A) == state
        assert await store.list(THINGS) == ([state], revision, 0)
        assert await store.count(THINGS) == 1
        assert (await collect(store, after=revision - 1, upto=revision))[0].value == state.value


async def test_a_watch_that_waits_gets_the_event_before_the_writer_gets_the_answer(store: Store) -> None:
    seen: list[Revision] = []

    async def follow() -> None:
        async for batch in store.watch(after=1):
            seen.extend(event.revision for event in batch.events)

    follower = asyncio.create_task(follow())
    await asyncio.sleep(0)
    for number in range(5):
        revision = await store.put(thing(f"n{number}"), b"v", expected=0)
        assert seen[-1:] == [revision]
    await store.close()
    await follower


# 5. History.


async def test_a_list_at_an_old_revision_shows_the_state_at_that_revision(store: Store) -> None:
    events = await written(store, *HISTORY)
    for revision in range(1, store.revision + 1):
        page = await store.list(EVERYTHING, revision=revision)
        assert (list(page.items), page.revision, page.remaining) == (
            list(states(events, revision).values()), revision, 0,
        )  # fmt: skip


async def test_a_get_at_an_old_revision_shows_the_state_at_that_revision(store: Store) -> None:
    events = await written(store, *HISTORY)
    keys = {event.key for event in events} | {D}
    for revision in range(1, store.revision + 1):
        then = states(events, revision)
        for key in keys:
            assert await store.get(key, revision=revision) == then.get(key)


@pytest.mark.parametrize("name", ["\udcff", "a\ud800"])
async def test_a_key_that_cannot_be_encoded_does_not_exist(store: Store, name: str) -> None:
    await written(store, (A, b"1"), (A, b"2"))
    assert await store.get(thing(name)) is None
    assert await store.get(thing(name), revision=2) is None


async def test_a_list_without_a_revision_shows_the_newest_state(store: Store) -> None:
    events = await written(store, *HISTORY)
    page = await store.list(EVERYTHING, revision=0)
    assert page.revision == store.revision
    assert list(page.items) == list(states(events, store.revision).values())


async def test_pages_add_up_to_the_list_and_say_what_remains(store: Store) -> None:
    events = await written(store, *HISTORY)
    for revision in range(2, store.revision + 1):
        whole = list(states(events, revision).values())
        for limit in range(1, len(whole) + 2):
            got: list[KeyValue] = []
            remaining = len(whole)
            while remaining:
                page = await store.list(EVERYTHING, revision=revision, limit=limit, after=got[-1].key if got else None)
                assert 0 < len(page.items) <= limit
                got += page.items
                remaining -= len(page.items)
                assert (page.remaining, page.revision) == (remaining, revision)
            assert got == whole


@pytest.mark.parametrize(
    ("prefix", "after", "names"),
    [
        (EVERYTHING, None, "g/a//x g/a/p-q/x g/a/p/a g/a/p/b g/a/p/c g/a/q/a g/ab/p/a h/p/a"),
        (Prefix("g/a"), None, "g/a//x g/a/p-q/x g/a/p/a g/a/p/b g/a/p/c g/a/q/a"),
        (Prefix("g/a", "p/"), None, "g/a/p/a g/a/p/b g/a/p/c"),
        (Prefix("g/a", ""), None, "g/a//x"),
        (Prefix("g"), None, ""),
        (Prefix("g/a", "p"), None, ""),
        (Prefix(None, "p/"), None, "g/a/p/a g/a/p/b g/a/p/c g/ab/p/a h/p/a"),
        (Prefix("g/a", "p/"), Key("g/a", "p/", "a"), "g/a/p/b g/a/p/c"),
        (Prefix("g/a", "p/"), Key("g/a", "p/", "aa"), "g/a/p/b g/a/p/c"),
        (Prefix("g/a", "p/"), Key("g/a", "p/", "c"), ""),
        (Prefix("g/a", "p/"), Key("g/a", "", "zz"), "g/a/p/a g/a/p/b g/a/p/c"),
        (Prefix("g/a", "p/"), Key("g/a", "q/", "a"), ""),
        (Prefix("g/a", "p/"), Key("g", "q/", "z"), "g/a/p/a g/a/p/b g/a/p/c"),
        (Prefix("g/a"), Key("g/a", "p/", "b"), "g/a/p/c g/a/q/a"),
        (Prefix("g/a"), Key("g/a", "p-q/", "zz"), "g/a/p/a g/a/p/b g/a/p/c g/a/q/a"),
        (Prefix("g/a"), Key("g", "", ""), "g/a//x g/a/p-q/x g/a/p/a g/a/p/b g/a/p/c g/a/q/a"),
        (Prefix("g/a"), Key("g/ab", "", ""), ""),
        (Prefix(None, "p/"), Key("g/a", "p/", "c"), "g/ab/p/a h/p/a"),
        (EVERYTHING, Key("g/a", "p/", "c"), "g/a/q/a g/ab/p/a h/p/a"),
    ],
)
async def test_a_list_shows_the_keys_of_its_prefix_after_a_key_in_order(
    store: Store, collect: Collect, prefix: Prefix, after: Key | None, names: str
) -> None:
    keys = [
        Key("g/a", "", "x"), Key("g/a", "p-q/", "x"), Key("g/a", "p/", "a"), Key("g/a", "p/", "b"),
        Key("g/a", "p/", "c"), Key("g/a", "q/", "a"), Key("g/ab", "p/", "a"), Key("h", "p/", "a"),
    ]  # fmt: skip
    for key in reversed(keys):
        await store.put(key, b"", expected=0)

    def name(key: Key) -> str:
        return f"{key.collection}/{key.partition or '/'}{key.name}"

    page = await store.list(prefix, after=after)
    assert " ".join(name(item.key) for item in page.items) == names
    first = await store.list(prefix, after=after, limit=1)
    assert (list(first.items), first.remaining) == (list(page.items[:1]), max(len(page.items) - 1, 0))
    if after is None:
        assert await store.count(prefix) == len(page.items)
        events = await collect(store, after=1, upto=store.revision, prefix=prefix)
        assert [event.key for event in events] == [key for key in reversed(keys) if prefix.covers(key)]


@pytest.mark.parametrize(
    "name",
    [
        "a",
        "",
        "ä",
        "日本",
        "😀",
        "a/b",
        "../a",
        "a\0b",
        "a%",
        "a_",
        "'",
        '"',
        "\\",
        "x" * 5000,
        "\n",
        "NULL",
        "1",
        "\uffff",
    ],
)
async def test_names_are_not_interpreted(store: Store, name: str) -> None:
    neighbours = [thing("a", name), thing(name, "p"), Key(name, "p", "a"), Key(name, name, name)]
    for key in neighbours:
        revision = await store.put(key, name.encode(), expected=0)
        assert await store.get(key) == KeyValue(key, name.encode(), revision)
        assert await store.count(Prefix(key.collection, key.partition)) >= 1
    assert [item.key for item in (await store.list(EVERYTHING)).items] == sorted(neighbours)
    for key in neighbours:
        current = await store.get(key)
        assert current is not None
        await store.delete(key, expected=current.revision)
    assert await store.count(EVERYTHING) == 0


@pytest.mark.parametrize("value", [b"", b"\0", b"\xff\xfe", b'{"a":1}', bytes(range(256)) * 4_096])
async def test_values_are_returned_unchanged(store: Store, value: bytes, collect: Collect) -> None:
    await store.put(A, value, expected=0)
    await store.put(A, b"next", expected=2)
    [first, second] = await collect(store, after=1, upto=3)
    assert first.value == value
    assert second.previous == KeyValue(A, value, 2)
    assert (await store.list(THINGS, revision=2)).items[0].value == value


@pytest.mark.parametrize("store", ["memory", "sqlite"], indirect=True)
async def test_a_value_may_be_as_large_as_a_request(store: Store) -> None:
    value = bytes(range(256)) * 12_288
    await store.put(A, value, expected=0)
    assert await store.get(A) == KeyValue(A, value, 2)


async def test_a_future_revision_cannot_be_read(store: Store) -> None:
    await store.put(A, b"1", expected=0)
    for read in (store.list(EVERYTHING, revision=3), store.get(A, revision=3)):
        with pytest.raises(FutureRevision) as refused:
            await read
        assert refused.value.current == 2


# 5. Compaction.


async def test_compaction_at_any_revision_keeps_that_state_and_everything_after_it(
    store: Store, collect: Collect
) -> None:
    events = await written(store, *HISTORY)
    newest = store.revision
    for compacted in range(1, newest + 1):
        await store.compact(compacted)
        assert (store.compacted, store.revision) == (compacted, newest)
        for revision in range(compacted, newest + 1):
            page = await store.list(EVERYTHING, revision=revision)
            assert list(page.items) == list(states(events, revision).values())
            assert await store.get(B, revision=revision) == states(events, revision).get(B)
        if compacted < newest:
            assert await collect(store, after=compacted, upto=newest) == events[compacted - 1 :]
        for revision in range(1, compacted):
            for read in (store.list(EVERYTHING, revision=revision), store.get(B, revision=revision)):
                with pytest.raises(Compacted) as gone:
                    await read
                assert gone.value.revision == compacted
    for key, state in states(events, newest).items():
        assert await store.get(key) == state


async def test_compaction_does_not_change_the_revision(store: Store) -> None:
    await written(store, *HISTORY, (C, None))
    newest = store.revision
    await store.compact(newest)  # the newest event is a delete: nothing is left of it
    assert store.revision == newest
    assert await store.put(C, b"again", expected=0) == newest + 1


async def test_compacting_again_at_or_below_changes_nothing(store: Store) -> None:
    await written(store, *HISTORY)
    await store.compact(6)
    for revision in (6, 5, 1, 0):
        await store.compact(revision)
        assert store.compacted == 6


async def test_a_future_revision_cannot_be_compacted(store: Store) -> None:
    await written(store, *HISTORY)
    with pytest.raises(FutureRevision):
        await store.compact(store.revision + 1)
    assert store.compacted == 0


async def test_an_empty_store_can_be_compacted(store: Store, collect: Collect) -> None:
    await store.compact(1)
    assert store.compacted == 1
    await store.put(A, b"1", expected=0)
    assert await collect(store, after=1, upto=2) == [Event(A, 2, b"1", None)]


async def test_compaction_under_writes_loses_nothing(store: Store, collect: Collect) -> None:
    watching = asyncio.create_task(collect(store, after=1, upto=401))

    async def write(name: str) -> None:
        await written(store, *((thing(name), None if number % 5 == 4 else b"%d" % number) for number in range(50)))

    async def compact() -> None:
        while store.revision < 401:
            await store.compact(store.revision)
            await asyncio.sleep(0)

    await asyncio.gather(*map(write, "abcdefgh"), compact())
    events = await watching
    assert [event.revision for event in events] == list(range(2, 402))
    assert await store.count(EVERYTHING) == 0


async def test_compaction_stops_at_the_oldest_pin_until_it_is_released(store: Store, collect: Collect) -> None:
    events = await written(store, (A, b"1"), (pin("old"), b""), (A, b"2"), (pin("new"), b""), (A, b"3"))
    for compact in (store.compact, store.compact_in_turn):
        await compact(store.revision)
        assert store.compacted <= 3
    assert (await store.list(THINGS, revision=3)).items == [KeyValue(A, b"1", 2)]
    assert await collect(store, after=3, upto=6) == events[2:]

    await store.delete(pin("old"), expected=3)
    await store.compact(store.revision)
    assert store.compacted == 5

    moved = await store.put(pin("new"), b"", expected=5)
    await store.compact(store.revision)
    assert store.compacted == moved

    released = await store.delete(pin("new"), expected=moved)
    await store.compact(store.revision)
    assert store.compacted == released


def pin(name: str) -> Key:
    return Key(pins.COLLECTION, "", name)


# 6. Watches.


async def test_a_watch_delivers_every_event_once_in_order_with_its_previous_value(
    store: Store, collect: Collect
) -> None:
    watching = asyncio.create_task(collect(store, after=1, upto=len(HISTORY) + 1))
    await asyncio.sleep(0)
    events = await written(store, *HISTORY)
    assert await watching == events
    assert await collect(store, after=1, upto=store.revision) == events
    assert [event.previous is None for event in events[:3]] == [True, True, False]


async def test_a_watch_can_be_resumed_from_the_revision_of_any_batch(store: Store, collect: Collect) -> None:
    events = await written(store, *HISTORY)
    for after in range(1, store.revision):
        assert await collect(store, after=after, upto=store.revision) == events[after - 1 :]


async def test_events_written_together_arrive_together(store: Store) -> None:
    watch = store.watch(after=1)
    await asyncio.gather(*(store.put(thing(f"n{number}"), b"v", expected=0) for number in range(30)))
    batch = await anext(watch)
    while batch.revision < 31:
        following = await anext(watch)
        assert following.events[0].revision == batch.revision + 1
        batch = following
    assert batch.events[-1].revision == batch.revision


async def test_a_watch_of_a_prefix_skips_other_keys_and_reports_progress(store: Store) -> None:
    watch = store.watch(Prefix("example.com/things", "default/"), after=1)
    await store.put(thing("a", "other/"), b"1", expected=0)
    assert await anext(watch) == Batch([], 2)
    await store.put(A, b"1", expected=0)
    assert await anext(watch) == Batch([Event(A, 3, b"1", None)], 3)


async def test_concurrent_watches_of_all_kinds_agree(store: Store, collect: Collect) -> None:
    upto = len(HISTORY) + 1
    prefixes = [EVERYTHING, THINGS, Prefix("example.com/zones"), Prefix("example.com/things", "other/"), Prefix("none")]
    watching = [
        asyncio.create_task(collect(store, after=after, upto=upto, prefix=prefix))
        for prefix in prefixes
        for after in (0, 1, 5)
    ]
    events = await written(store, *HISTORY)
    for number, outcome in enumerate(await asyncio.gather(*watching)):
        prefix, after = prefixes[number // 3], (0, 1, 5)[number % 3]
        assert outcome == [event for event in events if prefix.covers(event.key) and event.revision > after]


async def test_a_watch_from_a_future_revision_waits_for_it(store: Store) -> None:
    watch = store.watch(after=4)
    waiting = asyncio.ensure_future(anext(watch))
    for name in "abc":
        await store.put(thing(name), b"v", expected=0)
        await asyncio.sleep(0)
        assert not waiting.done()
    await store.put(D, b"v", expected=0)
    batch = await waiting
    assert (list(batch.events), batch.revision) == ([Event(D, 5, b"v", None)], 5)


async def test_a_watch_that_was_cancelled_while_it_waited_can_be_resumed(store: Store) -> None:
    watch = store.watch(after=1)
    for _ in range(3):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.001):
                await anext(watch)
    await store.put(A, b"1", expected=0)
    assert (await anext(watch)).revision == 2


async def test_a_watch_cannot_start_before_the_compacted_revision(store: Store) -> None:
    await written(store, *HISTORY)
    await store.compact(5)
    for after in range(5):
        with pytest.raises(Compacted) as gone:
            await anext(store.watch(after=after))
        assert gone.value.revision == 5


async def test_compaction_does_not_end_a_watch_that_is_near_the_end_of_the_log(store: Store) -> None:
    watch = store.watch(after=1)
    events = await written(store, *HISTORY)
    await store.compact(store.revision)
    assert list((await anext(watch)).events) == events


# Closing.


# 7. Transactions.


async def test_the_writes_of_a_transaction_have_consecutive_revisions_and_arrive_in_order(
    store: Store, collect: Collect
) -> None:
    if store.shared:
        pytest.skip("etcd takes those of different keys in any order")
    before = await written(store, (A, b"a1"), (B, b"b1"))
    writes = [
        StagedWrite(C, b"c1", 0),
        StagedWrite(A, None, 2),
        StagedWrite(A, b"a2", 0),
        StagedWrite(B, b"b2", 3, b"b1"),
    ]
    assert await store.transact(deciding(writes)) == 7
    assert await collect(store, after=3, upto=7) == [
        Event(C, 4, b"c1", None),
        Event(A, 5, None, KeyValue(A, b"a1", 2)),
        Event(A, 6, b"a2", None),
        Event(B, 7, b"b2", KeyValue(B, b"b1", 3)),
    ]
    assert await store.list(THINGS) == ([KeyValue(A, b"a2", 6), KeyValue(B, b"b2", 7), KeyValue(C, b"c1", 4)], 7, 0)
    assert (await store.list(THINGS, revision=3)).items == [*states(before, 3).values()]


async def test_a_key_may_be_deleted_and_created_in_a_transaction(store: Store, collect: Collect) -> None:
    await written(store, (A, b"a1"), (B, b"b1"))
    writes = [StagedWrite(C, b"c1", 0), StagedWrite(A, None, 2), StagedWrite(A, b"a2", 0), StagedWrite(B, b"b2", 3)]
    assert await store.transact(deciding(writes)) == 7
    events = await collect(store, after=3, upto=7)
    assert sorted(event.revision for event in events) == [4, 5, 6, 7]
    assert [event.value for event in events if event.key == A] == [None, b"a2"]
    assert {item.key: item.value for item in (await store.list(THINGS)).items} == {A: b"a2", B: b"b2", C: b"c1"}


async def test_the_events_of_a_transaction_are_in_one_batch(store: Store) -> None:
    if store.shared:
        pytest.skip("in etcd they would share a revision")
    watch = store.watch(after=1)
    await store.transact(deciding([StagedWrite(thing(str(number)), b"v", 0) for number in range(300)]))
    batch = await anext(watch)
    assert ([event.revision for event in batch.events], batch.revision) == (list(range(2, 302)), 301)


@pytest.mark.parametrize(
    "writes",
    [
        pytest.param([StagedWrite(C, b"c", 0), StagedWrite(A, b"a2", 0)], id="create what exists"),
        pytest.param([StagedWrite(C, b"c", 0), StagedWrite(A, b"a2", 3)], id="update from another revision"),
        pytest.param([StagedWrite(C, b"c", 0), StagedWrite(D, b"d", 2)], id="update what does not exist"),
        pytest.param([StagedWrite(C, b"c", 0), StagedWrite(D, None, 0)], id="delete what does not exist"),
        pytest.param([StagedWrite(C, b"c", 0), StagedWrite(C, b"c", 0)], id="create twice"),
        pytest.param([StagedWrite(A, b"a2", 2), StagedWrite(A, b"a3", 2)], id="update twice"),
        pytest.param([StagedWrite(A, b"a2", 2), StagedWrite(A, b"a3", 4)], id="update what is updated"),
        pytest.param([StagedWrite(A, None, 2), StagedWrite(A, None, 2)], id="delete twice"),
        pytest.param([StagedWrite(A, None, 2), StagedWrite(A, b"a", 2)], id="update what is deleted"),
        pytest.param([StagedWrite(A, None, 2), StagedWrite(A, b"a", 0), StagedWrite(A, None, 2)], id="three of a key"),
    ],
)
async def test_a_transaction_with_a_conflict_does_nothing(store: Store, writes: list[StagedWrite]) -> None:
    await written(store, (A, b"a1"), (B, b"b1"))
    with pytest.raises(Conflict) as refused:
        await store.transact(deciding(writes))
    assert refused.value.key == writes[-1].key
    assert await store.list(EVERYTHING) == ([KeyValue(A, b"a1", 2), KeyValue(B, b"b1", 3)], 3, 0)
    assert await store.put(C, b"c", expected=0) == 4


async def test_a_transaction_without_writes_changes_nothing(store: Store) -> None:
    assert await store.transact(deciding([])) == 0
    assert store.revision == 1


async def test_no_other_write_is_between_what_a_transaction_reads_and_what_it_writes(store: Store) -> None:
    """Writers change the sum of two counters; each transaction sets both to the same value."""
    await written(store, (A, b"0"), (B, b"0"))
    is_done = False

    async def write(key: Key) -> None:
        while not is_done:
            state = await store.get(key)
            assert state is not None
            with contextlib.suppress(Conflict):
                await store.put(key, b"%d" % (int(state.value) + 1), expected=state.revision)
            await asyncio.sleep(0)

    async def level() -> Revision:
        async def decide() -> list[StagedWrite]:
            await asyncio.sleep(0.001)
            revision, page = store.revision, await store.list(THINGS)
            await asyncio.sleep(0.001)
            assert store.revision == revision
            return [StagedWrite(key, b"0", revision) for key, _, revision in page.items]

        return await store.transact(decide)

    writers = [asyncio.create_task(write(key)) for key in (A, B) for _ in range(4)]
    for _ in range(5):
        revision = await level()
        page = await store.list(THINGS, revision=revision)
        assert [item.value for item in page.items] == [b"0", b"0"]
    is_done = True
    await asyncio.gather(*writers)


@pytest.mark.parametrize("kind", ["create", "update", "delete"])
async def test_a_write_that_has_waited_for_a_transaction_is_overtaken_whatever_its_key(store: Store, kind: str) -> None:
    await written(store, (A, b"1"))
    state = KeyValue(A, b"1", 2)

    async def write() -> Revision:
        if kind == "create":
            return await store.put(B, b"1", expected=0)
        return await (store.put(A, b"2", expected=2) if kind == "update" else store.delete(A, expected=2))

    async def decide() -> list[StagedWrite]:
        await asyncio.sleep(0.01)
        return [StagedWrite(C, b"1", 0)]

    transaction = asyncio.ensure_future(store.transact(decide))
    outcomes = await asyncio.gather(transaction, write(), return_exceptions=True)
    assert outcomes[0] == 3
    assert isinstance(outcomes[1], Conflict)
    assert outcomes[1].current == (None if kind == "create" else state)
    assert await store.get(A) == state
    assert await write() == 4


async def test_a_transaction_that_fails_lets_others_write(store: Store) -> None:
    async def fail() -> list[StagedWrite]:
        raise LookupError

    writers = [asyncio.ensure_future(store.transact(fail)), asyncio.ensure_future(store.put(A, b"1", expected=0))]
    failed, written_at = await asyncio.gather(*writers, return_exceptions=True)
    assert isinstance(failed, LookupError)
    assert written_at == 2


async def test_a_transaction_may_be_large(store: Store) -> None:
    number = 500 if store.shared else 12_000  # more than the writes that wait at once
    names = [thing(f"{name:05}") for name in range(number)]
    revision = await store.transact(deciding([StagedWrite(name, b"v", 0) for name in names]))
    assert revision == number + 1
    assert await store.count(EVERYTHING) == number
    await store.transact(
        deciding([StagedWrite(item.key, None, item.revision) for item in (await store.list(EVERYTHING)).items])
    )
    assert await store.count(EVERYTHING) == 0


def deciding(writes: list[StagedWrite]) -> Decide:
    async def decide() -> list[StagedWrite]:
        return writes

    return decide


async def test_closing_finishes_pending_writes(store: Store) -> None:
    writes = [asyncio.create_task(store.put(thing(f"n{number}"), b"v", expected=0)) for number in range(20)]
    watching = asyncio.create_task(_revisions(store))
    for _ in range(5):
        await asyncio.sleep(0)
    await store.close()
    outcomes = await asyncio.gather(*writes, return_exceptions=True)
    written = [outcome for outcome in outcomes if isinstance(outcome, int)]
    assert await watching == sorted(written)


async def _revisions(store: Store) -> list[Revision]:
    return [event.revision async for batch in store.watch(after=1) for event in batch.events]


async def test_closing_ends_watches_after_the_last_event(store: Store) -> None:
    late = store.watch(after=1)
    waiting = asyncio.create_task(_revisions(store))
    await asyncio.sleep(0)
    await store.put(A, b"1", expected=0)
    await store.close()
    assert await waiting == [2]
    assert (await anext(late)).revision == 2
    with pytest.raises(StopAsyncIteration):
        await anext(late)


async def test_closing_twice_or_concurrently_is_allowed(store: Store) -> None:
    await asyncio.gather(store.close(), store.close())
    await store.close()


CALLS: dict[str, Callable[[Store], Awaitable[object]]] = {
    "get": lambda store: store.get(A),
    "list": lambda store: store.list(EVERYTHING),
    "count": lambda store: store.count(EVERYTHING),
    "put": lambda store: store.put(A, b"v", expected=0),
    "delete": lambda store: store.delete(A, expected=2),
    "watch": lambda store: anext(store.watch(after=1)),
    "catch up": lambda store: store.catch_up(),
    "compact": lambda store: store.compact(1),
    "status": lambda store: store.status(),
}


@pytest.mark.parametrize("call", CALLS)
async def test_a_closed_store_raises_closed(store: Store, call: str) -> None:
    await store.put(A, b"1", expected=0)
    await store.close()
    with pytest.raises(Closed):
        await CALLS[call](store)


async def test_the_status_describes_the_store(store: Store) -> None:
    await written(store, *HISTORY)
    await store.compact(3)
    status = await store.status()
    keys = await store.count(EVERYTHING)
    assert status[1:4] == (store.revision, 3, keys)
    assert status.bytes > 0
    assert status.fault == ""
