"""The log in memory: what its tail keeps, and how watches read the tail and history."""

from __future__ import annotations

import asyncio

import pytest

from noxu_storage import log as module
from noxu_storage.log import Log
from noxu_storage.types import (
    EVERYTHING,
    Batch,
    Closed,
    Compacted,
    Event,
    FutureRevision,
    Key,
    KeyValue,
    Prefix,
    Revision,
)
from tests.rows import rows


def event(revision: Revision, size: int = 1, collection: str = "c", replaced: int = 0) -> Event:
    key = Key(collection, "p", f"k{revision}")
    return Event(key, revision, b"v" * size, KeyValue(key, b"p" * replaced, 1) if replaced else None)


def run(first: Revision, last: Revision, size: int = 1) -> list[Event]:
    return [event(revision, size) for revision in range(first, last + 1)]


class Backend:
    """Serves history as a file would, `span` revisions at a time."""

    def __init__(self, *, delay: bool = False, span: int = 500) -> None:
        self.requests: list[tuple[Revision, Revision]] = []
        self.delay = delay
        self.span = span
        self.closed = False

    async def history(self, prefix: Prefix, after: Revision, upto: Revision) -> Batch:
        self.requests.append((after, upto))
        if self.delay:
            await asyncio.sleep(0)
        if self.closed:
            raise Closed("closed")
        upto = min(upto, after + self.span)
        return Batch([event for event in run(after + 1, upto) if prefix.covers(event.key)], upto)


async def seen(log: Log, after: Revision, prefix: Prefix = EVERYTHING) -> list[Revision]:
    """The revisions that a watch delivers up to the end of the log."""
    revisions: list[Revision] = []
    watch = log.watch(prefix, after)
    while not revisions or revisions[-1] < log.revision:
        revisions += [event.revision for event in (await anext(watch)).events]
    return revisions


@pytest.mark.parametrize(
    ("requested", "shown"),
    [(0, 9), (9, 9), (6, 6), (5, 5), (4, Compacted), (1, Compacted), (10, FutureRevision)],
)
def test_a_read_shows_the_newest_revision_or_one_that_is_not_compacted(
    requested: Revision, shown: Revision | type[Exception]
) -> None:
    log = Log(9, compacted=5)
    if isinstance(shown, int):
        assert log.read_revision(requested) == shown
    else:
        with pytest.raises(shown):
            log.read_revision(requested)


def test_events_in_the_tail_are_found_by_revision() -> None:
    log = Log(10)
    log.publish(run(11, 14))
    log.publish(run(15, 15))
    assert [log.find(revision) for revision in range(11, 16)] == run(11, 15)
    assert [log.find(revision) for revision in (0, 1, 10, 16)] == [None] * 4


def test_publishing_no_events_changes_nothing() -> None:
    log = Log(4)
    assert not log.publish([])
    assert log.revision == 4


# The tail.


@pytest.mark.parametrize(
    ("events", "kept"),
    [
        pytest.param(20, 20, id="up to twice the limit is kept"),
        pytest.param(21, 10, id="then it is trimmed to the limit"),
        pytest.param(31, 20, id="and grows again"),
    ],
)
def test_the_tail_is_bounded_by_events(monkeypatch: pytest.MonkeyPatch, events: int, kept: int) -> None:
    monkeypatch.setattr(module, "TAIL_EVENTS", 10)
    log = Log(1, history=Backend().history)
    for event in run(2, events + 1):
        log.publish([event])
    assert sum(log.find(revision) is not None for revision in range(log.revision + 1)) == kept
    assert log.find(log.revision) is not None


@pytest.mark.parametrize(
    ("size", "replaced", "count", "kept"),
    [
        pytest.param(10, 0, 20, 20, id="up to twice the bytes"),
        pytest.param(10, 0, 21, 10, id="then it is trimmed"),
        pytest.param(5, 5, 21, 10, id="previous values count"),
        pytest.param(60, 0, 4, 1, id="whole events only"),
        pytest.param(500, 0, 1, 0, id="an event larger than the limit is not kept"),
    ],
)
def test_the_tail_is_bounded_by_bytes(
    monkeypatch: pytest.MonkeyPatch, size: int, replaced: int, count: int, kept: int
) -> None:
    monkeypatch.setattr(module, "TAIL_BYTES", 100)
    log = Log(1, history=Backend().history)
    for revision in range(2, count + 2):
        log.publish([event(revision, size, replaced=replaced)])
    assert sum(log.find(revision) is not None for revision in range(log.revision + 1)) == kept


def test_without_history_the_tail_grows_until_it_is_trimmed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TAIL_EVENTS", 10)
    log = Log()
    log.publish(run(2, 101))
    assert log.find(2) is not None
    log.trim(50)
    assert [log.find(50), log.find(51)] == [None, event(51)]
    log.trim(101)
    assert [log.find(91), log.find(92)] == [None, event(92)]
    log.trim(101)
    assert log.find(92) == event(92)


# Revisions that are not consecutive, or have several events.


def sparse(*revisions: Revision, last: Revision = 0) -> tuple[Log, list[Event]]:
    """A log that starts at revision 3, and its events; several at one revision have keys of their own."""
    log, events = Log(3, history=Backend().history), []
    for revision in sorted(set(revisions)):
        events += [
            Event(Key("c", "p", f"k{number}"), revision, b"v", None) for number in range(revisions.count(revision))
        ]
        log.publish([event for event in events if event.revision == revision])
    log.publish((), last)
    return log, events


@rows(
    ("after", "revisions"),
    [
        (3, [4, 7, 7, 8, 12]), (4, [7, 7, 8, 12]), (5, [7, 7, 8, 12]), (6, [7, 7, 8, 12]), (7, [8, 12]), (8, [12]),
        (11, [12]), (12, []), (14, []), (2, None),
    ],
)  # fmt: skip
def test_events_after_a_revision_are_found_in_a_sparse_tail(after: Revision, revisions: list[Revision] | None) -> None:
    log, _ = sparse(4, 7, 7, 8, 12, last=15)
    found, batch = log.since(after), log.read_tail(EVERYTHING, after)
    assert (None if found is None else [event.revision for event in found]) == revisions
    assert (None if batch is None else [event.revision for event in batch.events]) == revisions
    assert batch is None or batch.revision == 15


def test_an_event_is_found_by_its_revision_in_a_sparse_tail() -> None:
    log, events = sparse(4, 7, 7, 8, 12, last=15)
    assert [log.find(revision) for revision in (4, 7, 8, 12)] == [events[0], events[1], events[3], events[4]]
    assert [log.find(revision) for revision in (3, 5, 6, 9, 11, 13, 15)] == [None] * 7
    assert log.first() == 4
    assert Log(3).first() is None


async def test_progress_without_events_wakes_watches_and_is_a_batch() -> None:
    log, _ = sparse(4)
    waiting = asyncio.ensure_future(anext(log.watch(Prefix("c"), 4)))
    await asyncio.sleep(0)
    assert log.publish((), 9)
    assert await waiting == Batch([], 9)
    assert log.revision == 9


@pytest.mark.parametrize("revision", [0, 3, 4])
def test_progress_that_is_known_changes_nothing(revision: Revision) -> None:
    log, _ = sparse(4)
    assert not log.publish((), revision)
    assert log.revision == 4


@pytest.mark.parametrize(
    ("revisions", "kept", "start"),
    [
        pytest.param([4, 7, 8, 12], [8, 12], 7, id="whole transactions"),
        pytest.param([4, 8, 8, 12], [8, 8, 12], 4, id="a transaction that would be divided is kept"),
        pytest.param([4, 4, 4, 12], [4, 4, 4, 12], 3, id="also the oldest one"),
        pytest.param([4, 12, 12], [12, 12], 4, id="the newest transaction"),
        pytest.param([12, 12, 12], [12, 12, 12], 3, id="the only transaction"),
    ],
)
def test_a_sparse_tail_is_trimmed_by_transactions(
    monkeypatch: pytest.MonkeyPatch, revisions: list[Revision], kept: list[Revision], start: Revision
) -> None:
    monkeypatch.setattr(module, "TAIL_EVENTS", 2)
    log, events = sparse(*revisions)
    log.trim(log.revision)
    assert [event.revision for event in log.since(start) or ()] == kept
    assert log.since(start) == [event for event in events if event.revision > start]
    assert log.since(start - 1) is None


async def test_a_log_that_is_restarted_ends_watches_that_have_not_reached_the_new_start() -> None:
    log, _ = sparse(4, 7)
    behind, ahead = log.watch(EVERYTHING, 4), log.watch(EVERYTHING, 30)
    waiting = asyncio.ensure_future(anext(log.watch(EVERYTHING, 7)))
    await asyncio.sleep(0)
    log.restart(20)
    for reading in (waiting, anext(behind)):
        with pytest.raises(Compacted) as gone:
            await reading
        assert gone.value.revision == 20
    assert (log.revision, log.compacted, log.since(20)) == (20, 20, [])
    log.publish(run(31, 31))
    assert await anext(ahead) == Batch(run(31, 31), 31)


# Watches.


async def test_a_watch_reads_history_in_spans_and_then_the_tail() -> None:
    backend = Backend(span=4)
    log = Log(10, history=backend.history)
    log.publish(run(11, 13))
    assert await seen(log, 1) == list(range(2, 14))
    assert backend.requests == [(1, 10), (5, 10), (9, 10)]


async def test_history_without_events_of_the_prefix_yields_no_batch() -> None:
    backend = Backend(span=4)
    log = Log(30, history=backend.history)
    log.publish([event(31, collection="d")])
    batch = await anext(log.watch(Prefix("d"), 1))
    assert (batch.events, batch.revision) == ([event(31, collection="d")], 31)
    assert len(backend.requests) == 8


async def test_readers_at_the_end_of_the_log_share_one_batch() -> None:
    log = Log()
    watches = [log.watch(EVERYTHING, 1) for _ in range(3)]
    waiting = [asyncio.ensure_future(anext(watch)) for watch in watches]
    await asyncio.sleep(0)
    events = run(2, 5)
    assert log.publish(events)
    batches = await asyncio.gather(*waiting)
    assert all(batch is batches[0] for batch in batches)
    assert batches[0] == Batch(events, 5)


async def test_publishing_returns_whether_a_watch_was_waiting() -> None:
    log = Log()
    watch = log.watch(EVERYTHING, 1)
    assert not log.publish(run(2, 2))
    await anext(watch)
    waiting = asyncio.ensure_future(anext(watch))
    await asyncio.sleep(0)
    assert log.publish(run(3, 3))
    await waiting


async def test_a_cancelled_reader_is_removed_from_the_waiters() -> None:
    log = Log()
    for _ in range(10):
        waiting = asyncio.ensure_future(anext(log.watch(EVERYTHING, 1)))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    assert not log.publish(run(2, 2))


async def test_events_between_two_reads_arrive_in_one_batch() -> None:
    log = Log()
    watch = log.watch(EVERYTHING, 1)
    for revision in range(2, 6):
        log.publish([event(revision)])
    assert await anext(watch) == Batch(run(2, 5), 5)


async def test_compaction_during_a_read_of_history_ends_the_watch() -> None:
    backend = Backend(delay=True)
    log = Log(10, history=backend.history)
    reading = asyncio.ensure_future(anext(log.watch(EVERYTHING, 5)))
    await asyncio.sleep(0)
    log.compacted = 6  # what was read may be incomplete
    with pytest.raises(Compacted):
        await reading


async def test_compaction_ends_a_watch_only_if_the_tail_lacks_its_next_event() -> None:
    log = Log(10, history=Backend().history)
    behind, near = log.watch(EVERYTHING, 9), log.watch(EVERYTHING, 10)
    log.publish(run(11, 12))
    log.compacted = 12
    assert await anext(near) == Batch(run(11, 12), 12)
    with pytest.raises(Compacted):
        await anext(behind)
    with pytest.raises(Compacted):
        log.watch(EVERYTHING, 11)


async def test_closing_ends_a_watch_after_the_published_events() -> None:
    log = Log()
    watch, waiting = log.watch(EVERYTHING, 1), asyncio.ensure_future(anext(log.watch(EVERYTHING, 2)))
    await asyncio.sleep(0)
    log.publish(run(2, 2))
    log.close()
    assert (await anext(watch)).revision == 2
    with pytest.raises(StopAsyncIteration):
        await anext(watch)
    with pytest.raises(StopAsyncIteration):
        await waiting
    with pytest.raises(Closed):
        log.watch(EVERYTHING, 2)


async def test_closing_ends_a_watch_that_reads_history() -> None:
    backend = Backend(delay=True)
    log = Log(10, history=backend.history)
    reading = asyncio.ensure_future(anext(log.watch(EVERYTHING, 5)))
    await asyncio.sleep(0)
    backend.closed = True
    log.close()
    with pytest.raises(StopAsyncIteration):
        await reading
