"""The log as watches see it: its newest part in memory, older history from the back end.

A watch is a position, not a queue: it reads what comes after its position from the tail, or, when it has fallen behind
the tail, from the back end, in order and without a gap. So a slow reader costs nothing, fast ones share one batch
object, and a reader is lost only when compaction has overtaken it *and* the tail no longer holds what it has not seen.

Everything here runs on the event loop and is synchronous but for the two things a watch waits for: news, and history.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Final, TypeAlias

from storage.types import (
    EVERYTHING,
    FIRST,
    Batch,
    Closed,
    Compacted,
    Event,
    FutureRevision,
    Prefix,
    Revision,
)

# A running watch never ends with Compacted while it is at most this far behind. Up to twice as much is kept.
TAIL_EVENTS: Final = 10_000
TAIL_BYTES: Final = 16 * 1024 * 1024  # of values, those that were replaced included

HISTORY_SPAN: Final = 500  # revisions read from the back end at a time

# Events of a prefix after the first revision, up to and including the second.
History: TypeAlias = Callable[[Prefix, Revision, Revision], Awaitable[Sequence[Event]]]


class Log:
    """What has been committed: `publish` is called once per commit, after it.

    Revisions are consecutive: the tail is a plain list, and the event of a revision is found by subtraction. A back
    end that keeps older events gives `history`; without one the tail holds everything that has not been compacted.
    """

    def __init__(self, revision: Revision = FIRST, compacted: Revision = 0, *, history: History | None = None) -> None:
        self.revision = revision
        self.compacted = compacted
        self.closed = False
        self.history = history
        self._tail: list[Event] = []  # every event in (self._start, self.revision]
        self._tail_bytes = 0
        self._start = revision
        self._newest = Batch((), revision)
        self._newest_after = revision
        self._waiting: dict[asyncio.Future[None], None] = {}

    def require_open(self) -> None:
        if self.closed:
            raise Closed("the store is closed")

    def at(self, revision: Revision) -> Revision:
        """The revision that a read of `revision` (0: now) shows."""
        if revision > self.revision:
            raise FutureRevision(self.revision)
        if revision and revision < self.compacted:
            raise Compacted(self.compacted)
        return revision or self.revision

    def find(self, revision: Revision) -> Event | None:
        """The event of a revision, if the tail still has it."""
        if self._start < revision <= self.revision:
            return self._tail[revision - self._start - 1]
        return None

    def publish(self, events: Sequence[Event]) -> bool:
        """Show a commit to reads and watches. Says whether a watch was waiting for it."""
        if not events:
            return False
        self._newest_after = self.revision
        self._newest = Batch(events, events[-1].revision)
        self.revision = self._newest.revision
        self._tail += events
        self._tail_bytes += sum(map(_weight, events))
        if self.history is not None and (len(self._tail) > 2 * TAIL_EVENTS or self._tail_bytes > 2 * TAIL_BYTES):
            self.trim(self.revision)
        return self._wake()

    def trim(self, revision: Revision) -> None:
        """Let go of events at or before `revision`, but never of the newest, as far as TAIL_EVENTS and TAIL_BYTES go."""
        kept = weight = 0
        for event in reversed(self._tail):
            weight += _weight(event)
            if kept == TAIL_EVENTS or weight > TAIL_BYTES:
                break
            kept += 1
        cut = min(len(self._tail) - kept, revision - self._start)
        if cut > 0:
            self._tail_bytes -= sum(map(_weight, self._tail[:cut]))
            del self._tail[:cut]
            self._start += cut

    def watch(self, prefix: Prefix, after: Revision) -> Watch:
        self.require_open()
        if after < self.compacted:
            raise Compacted(self.compacted)
        return Watch(self, prefix, max(after, FIRST))

    def close(self) -> None:
        """Watches deliver what has been published, and end."""
        self.closed = True
        self._wake()

    def tail(self, prefix: Prefix, after: Revision) -> Batch | None:
        """What comes after a revision; None if the tail does not reach back to it."""
        if after < self._start:
            return None
        if after != self._newest_after:
            batch = Batch(self._tail[after - self._start :], self.revision)
        else:
            batch = self._newest
        if prefix == EVERYTHING:
            return batch
        return Batch([event for event in batch.events if prefix.covers(event.key)], batch.revision)

    async def older(self, prefix: Prefix, after: Revision) -> Batch:
        """Like `tail`, for what it no longer has: some of it."""
        upto = min(after + HISTORY_SPAN, self._start)
        self._require_kept(after)
        assert self.history is not None
        events = await self.history(prefix, after, upto)
        self._require_kept(after)  # compaction may have begun to remove what was being read
        return Batch(events, upto)

    async def news(self) -> None:
        """Wait until something is published, or the end."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[waiter] = None
        try:
            await waiter
        finally:
            self._waiting.pop(waiter, None)

    def _require_kept(self, after: Revision) -> None:
        if after < self.compacted or self.history is None:
            raise Compacted(self.compacted)

    def _wake(self) -> bool:
        waiting, self._waiting = self._waiting, {}
        for waiter in waiting:
            if not waiter.done():
                waiter.set_result(None)
        return bool(waiting)


class Watch(AsyncIterator[Batch]):
    """A position in the log. Not to be iterated by two tasks at once."""

    def __init__(self, log: Log, prefix: Prefix, after: Revision) -> None:
        self._log = log
        self._prefix = prefix
        self._after = after

    async def __anext__(self) -> Batch:
        log = self._log
        while self._after >= log.revision:
            if log.closed:
                raise StopAsyncIteration
            await log.news()
        while (batch := log.tail(self._prefix, self._after)) is None:
            try:
                batch = await log.older(self._prefix, self._after)
            except Closed:
                raise StopAsyncIteration from None
            self._after = batch.revision
            if batch.events:
                return batch
        self._after = batch.revision
        return batch


def _weight(event: Event) -> int:
    return len(event.value or b"") + (len(event.previous.value) if event.previous is not None else 0)
