"""R16: a write that is cancelled, at any of its awaits, happens or does not, and blocks no other write.

NOXU_CANCELLED is the number of writes that are cancelled at random moments, in each back end.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pytest

from noxu_storage import group_commit
from noxu_storage.sqlite import SqliteStore
from noxu_storage.store import Store
from noxu_storage.types import EVERYTHING, Conflict, Event, Key, KeyValue
from tests.timing import hang_guard

CANCELLED = int(os.environ.get("NOXU_CANCELLED", "300"))
AT_ONCE = 100
Collect = Callable[..., Coroutine[Any, Any, list[Event]]]


def key(name: object) -> Key:
    return Key("g/things", "p/", str(name))


async def cancelled_at(call: Coroutine[Any, Any, object], point: int) -> bool:
    """Run a coroutine as a task would, and cancel it at its await number `point`; False if it has fewer."""
    for passed in count():
        try:
            awaited = call.send(None)
        except StopIteration:
            return False
        except Conflict:
            return False
        if passed == point:
            if awaited is not None:
                awaited.cancel()  # as Task.cancel() does
            with pytest.raises(asyncio.CancelledError):
                call.throw(asyncio.CancelledError())
            return True
        if awaited is None:
            await asyncio.sleep(0)
        else:
            awaited._asyncio_future_blocking = False
            await asyncio.wait([awaited])
    raise AssertionError


WRITES: dict[str, Callable[[SqliteStore], Coroutine[Any, Any, object]]] = {
    "create": lambda store: store.put(key("new"), b"2", expected=0),
    "create in a collection that is not loaded": lambda store: store.put(Key("h", "", "new"), b"2", expected=0),
    "update": lambda store: store.put(key("there"), b"2", expected=2),
    "delete": lambda store: store.delete(key("there"), expected=2),
    "refused": lambda store: store.put(Key("h", "", "new"), b"2", expected=5),
    "compact": lambda store: store.compact(2),
}


@pytest.mark.parametrize("kind", WRITES)
@pytest.mark.parametrize("others", [0, 1, 5], ids=["alone", "with one other", "with five others"])
async def test_a_write_cancelled_at_any_await_happens_or_does_not(
    file: Path, kind: str, others: int, collect: Collect
) -> None:
    for point in count():
        store = await SqliteStore.open(file.with_suffix(f".{point}"), "normal")
        await store.put(key("there"), b"1", expected=0)
        concurrent = [asyncio.create_task(store.put(key(number), b"o", expected=0)) for number in range(others)]
        await asyncio.sleep(0)
        reached = await cancelled_at(WRITES[kind](store), point)
        async with hang_guard():
            assert sorted(await asyncio.gather(*concurrent))[:1] in ([], [2], [3], [4])
            revision = await store.put(key("after"), b"3", expected=0)  # later writes are not blocked
            events = await collect(store, after=max(store.compacted, 1), upto=revision)
        if store.compacted:
            events.insert(0, Event(key("there"), 2, b"1", None))
        assert [event.revision for event in events] == list(range(2, revision + 1))
        ours = [event for event in events if event.value == b"2" or event.value is None]
        assert len(ours) <= 1
        assert len(events) == 2 + others + len(ours)
        status = await store.status()
        assert status.fault == ""
        await store.close()
        store = await SqliteStore.open(file.with_suffix(f".{point}"), "normal")
        assert store.revision == revision
        await store.close()
        if not reached:
            break
    assert point > 0


async def test_a_writer_that_waits_for_a_conflicting_write_can_be_cancelled(sqlite: SqliteStore) -> None:
    first = asyncio.create_task(sqlite.put(key("a"), b"1", expected=0))
    await asyncio.sleep(0)
    for point in range(3):
        assert await cancelled_at(sqlite.put(key("a"), b"2", expected=0), point) or first.done()
    assert await first == 2
    assert await sqlite.get(key("a")) == KeyValue(key("a"), b"1", 2)


async def test_a_cancelled_conflicting_write_is_still_decided(sqlite: SqliteStore) -> None:
    await sqlite.put(key("warm"), b"1", expected=0)
    first = asyncio.create_task(sqlite.put(key("a"), b"1", expected=0))
    await asyncio.sleep(0)
    second = asyncio.create_task(sqlite.put(key("a"), b"2", expected=0))
    await asyncio.sleep(0)
    first.cancel()  # already pending: it happens, and its caller is not answered
    with pytest.raises(Conflict) as refused:
        await second
    assert refused.value.current == KeyValue(key("a"), b"1", 3)


async def test_a_writer_that_waits_for_room_can_be_cancelled(
    sqlite: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_commit, "MAX_PENDING_WRITES", 1)
    await sqlite.put(key("warm"), b"1", expected=0)
    tasks = [asyncio.create_task(sqlite.put(key(number), b"1", expected=0)) for number in range(10)]
    await asyncio.sleep(0)
    for task in tasks[1:6]:
        task.cancel()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert [isinstance(outcome, asyncio.CancelledError) for outcome in outcomes] == [False] + [True] * 5 + [False] * 4
    assert await sqlite.count(EVERYTHING) == 6


async def test_a_cancelled_close_continues(sqlite: SqliteStore, file: Path) -> None:
    writing = asyncio.create_task(sqlite.put(key("a"), b"1", expected=0))
    await asyncio.sleep(0)
    closing = asyncio.create_task(sqlite.close())
    await asyncio.sleep(0)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    await sqlite.close()
    assert await asyncio.gather(writing, return_exceptions=True)
    store = await SqliteStore.open(file)
    await store.close()


@pytest.mark.parametrize("seed", range(CANCELLED // AT_ONCE))
async def test_after_many_cancellations_each_key_exists_once_or_not_at_all(
    store: Store, collect: Collect, seed: int
) -> None:
    random = Random(seed)
    tasks = [asyncio.create_task(store.put(key(number), b"%d" % number, expected=0)) for number in range(200)]
    to_cancel = random.sample(tasks, AT_ONCE)
    for task in to_cancel:
        await asyncio.sleep(random.choice([0, 0, 0, 0.0001]))
        task.cancel()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    after = await store.put(key("after"), b"v", expected=0)
    *events, last = await collect(store, after=1, upto=after)
    assert (last.key, last.revision) == (key("after"), after)
    assert store.shared or after == len(events) + 2  # etcd may execute a cancelled write later, or skip revisions
    written = {event.key: event.revision for event in events}
    assert len(written) == len(events)
    for number, outcome in enumerate(outcomes):
        if isinstance(outcome, int):
            assert written.pop(key(number)) == outcome
        else:
            assert isinstance(outcome, asyncio.CancelledError)
            written.pop(key(number), None)
    assert written == {}
