"""The log of committed events as watches read it: the newest part, called the tail, in memory; the rest in the back end.

A watch is a position in the log, not a queue. It reads the events after its position from the tail or, if it has fallen
behind the tail, from the back end, in order and without a gap. So a slow reader costs no memory, fast readers share one
batch object, and a watch ends early only if compaction has overtaken it *and* the tail no longer has its next event.

The tail holds every event in (start, revision], in order. Revisions grow, but need not be consecutive, and several events
may share one: a back end that others write to, too, has revisions without events here, and transactions of several keys.
So positions are found by bisection of the revisions:

    revision    4   7   7   8   12      start = 3, revision = 15: nothing happened at 13, 14 and 15
    tail[…]     0   1   2   3   4

    since(4)            tail[bisect_right(4):] = tail[1:]
    read_tail(after 5)  tail[1:], up to revision 15
    read_tail(after 2)  None: what happened at 3 is not in the tail; read_history gives (2, 3], then the tail goes on
    trim(8)             if TAIL_EVENTS is 3: may drop tail[0] and tail[1], but not one of the two events at 7 alone. So it
                        drops tail[0]; start = 4

Everything here runs on the event loop, and is synchronous except for the two things that a watch waits for: new events,
and history.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left, bisect_right
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from operator import attrgetter
from typing import Final, TypeAlias

from noxu_storage.types import (
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

# A running watch never ends with Compacted while it is at most this far behind. The tail is trimmed at twice as much.
TAIL_EVENTS: Final = 10_000
TAIL_BYTES: Final = 16 * 1024 * 1024  # of values, including those that were replaced

# Gives the events that several logs begin with, in order. What it returns is not changed.
Inherited: TypeAlias = Callable[[], Sequence[Event]]

# Reads events of a prefix after the first revision: all of them up to the batch's revision, which is the second or less.
History: TypeAlias = Callable[[Prefix, Revision, Revision], Awaitable[Batch]]


class Log:
    """The committed events. `publish` is called once per transaction, after it has been committed.

    A back end that stores older events passes `history`. Without it the tail holds everything that is not compacted.
    """

    def __init__(
        self,
        revision: Revision = FIRST,
        compacted: Revision = 0,
        *,
        history: History | None = None,
        inherited: Inherited | None = None,
    ) -> None:
        """`inherited` gives the events up to `revision`, which this log shares with others. It is called when they are read."""
        self.revision = revision
        self.compacted = compacted
        self.closed = False
        self.history = history
        self._tail: list[Event] = []  # every event in (self._start, self.revision]
        self._revisions: list[Revision] = []  # those of the tail
        self._tail_bytes = 0
        self._start = revision
        self._inherited = inherited
        self._newest = Batch((), revision)
        self._newest_after = revision
        self._waiters: dict[asyncio.Future[None], None] = {}

    def require_open(self) -> None:
        """Raises Closed."""
        if self.closed:
            raise Closed("the store is closed")

    def read_revision(self, revision: Revision) -> Revision:
        """The revision that a read of `revision` (0: now) shows. Raises FutureRevision or Compacted."""
        if revision > self.revision:
            raise FutureRevision(self.revision)
        if revision and revision < self.compacted:
            raise Compacted(self.compacted)
        return revision or self.revision

    def find(self, revision: Revision) -> Event | None:
        """The event of a revision, if it is in the tail; the first one of several."""
        position = bisect_left(self._revisions, revision)
        if position < len(self._revisions) and self._revisions[position] == revision:
            return self._tail[position]
        return None

    def since(self, revision: Revision) -> list[Event] | None:
        """The events after a revision; None if some of them may no longer be in the tail."""
        return None if revision < self._start else self._tail[bisect_right(self._revisions, revision) :]

    def first(self) -> Revision | None:
        """The revision of the oldest event in the tail, None if it is empty."""
        return self._revisions[0] if self._revisions else None

    def publish(self, events: Sequence[Event], revision: Revision = 0) -> bool:
        """Show the events of a transaction to reads and watches. Returns whether a watch was waiting for events.

        `revision` is how far the events are complete, which may be after the last of them (0: up to the last one).
        """
        revision = max(revision, events[-1].revision if events else 0)
        if revision <= self.revision:
            return False
        self._newest_after = self.revision
        self._newest = Batch(events, revision)
        self.revision = revision
        self._tail += events
        self._revisions += [event.revision for event in events]
        self._tail_bytes += sum(map(_size, events))
        if self.history is not None and (len(self._tail) > 2 * TAIL_EVENTS or self._tail_bytes > 2 * TAIL_BYTES):
            self.trim(self.revision)
        return self._wake()

    def trim(self, revision: Revision) -> None:
        """Drop events at or before `revision` from the tail, except for the newest TAIL_EVENTS or TAIL_BYTES."""
        kept = size = 0
        for event in reversed(self._tail):
            size += _size(event)
            if kept == TAIL_EVENTS or size > TAIL_BYTES:
                break
            kept += 1
        dropped = min(len(self._tail) - kept, bisect_right(self._revisions, revision))
        if 0 < dropped < len(self._tail):  # a transaction is dropped as a whole
            dropped = min(dropped, bisect_left(self._revisions, self._revisions[dropped]))
        if dropped > 0:
            self._start = self._revisions[dropped - 1]
            self._inherited = None  # what follows it is not complete any more
            self._tail_bytes -= sum(map(_size, self._tail[:dropped]))
            del self._tail[:dropped], self._revisions[:dropped]

    def restart(self, revision: Revision) -> None:
        """Continue at a revision. What happened before is not known: watches that have not reached it end."""
        self.revision = self.compacted = self._start = self._newest_after = revision
        self._newest = Batch((), revision)
        self._tail, self._revisions, self._tail_bytes = [], [], 0
        self._inherited = None
        self._wake()

    def watch(self, prefix: Prefix, after: Revision) -> Watch:
        """Raises Closed or Compacted."""
        self.require_open()
        if after < self.compacted:
            raise Compacted(self.compacted)
        return Watch(self, prefix, max(after, FIRST))

    def close(self) -> None:
        """Watches deliver what has been published, and end."""
        self.closed = True
        self._wake()

    def reopen(self) -> None:
        """Go on after `close`."""
        self.closed = False
        self._waiters = {}

    def read_tail(self, prefix: Prefix, after: Revision) -> Batch | None:
        """The events after a revision; None if the next one is no longer in the tail."""
        if after < self._start:
            if self._inherited is None:
                return None
            shared = self._inherited()
            batch = Batch([*shared[bisect_right(shared, after, key=_revision) :], *self._tail], self.revision)
        elif after != self._newest_after:
            batch = Batch(self._tail[bisect_right(self._revisions, after) :], self.revision)
        else:
            batch = self._newest
        if prefix == EVERYTHING:
            return batch
        return Batch([event for event in batch.events if prefix.covers(event.key)], batch.revision)

    async def read_history(self, prefix: Prefix, after: Revision) -> Batch:
        """Some of the events between `after` and the tail. Raises Compacted, and what `history` raises."""
        self._require_not_compacted(after)
        assert self.history is not None
        batch = await self.history(prefix, after, self._start)
        self._require_not_compacted(after)  # compaction may have started to remove what was being read
        return batch

    async def wait_for_events(self) -> None:
        """Return when events are published, or the log is closed."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters[waiter] = None
        try:
            await waiter
        finally:
            self._waiters.pop(waiter, None)

    def _require_not_compacted(self, after: Revision) -> None:
        if after < self.compacted or self.history is None:
            raise Compacted(self.compacted)

    def _wake(self) -> bool:
        waiters, self._waiters = self._waiters, {}
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)
        return bool(waiters)


class Watch(AsyncIterator[Batch]):
    """A position in the log. Only one task may iterate it at a time."""

    def __init__(self, log: Log, prefix: Prefix, after: Revision) -> None:
        self._log = log
        self._prefix = prefix
        self._after = after

    async def __anext__(self) -> Batch:
        log = self._log
        while self._after >= log.revision:
            if log.closed:
                raise StopAsyncIteration
            await log.wait_for_events()
        while (batch := log.read_tail(self._prefix, self._after)) is None:
            try:
                batch = await log.read_history(self._prefix, self._after)
            except Closed:
                raise StopAsyncIteration from None
            self._after = batch.revision
            if batch.events:
                return batch
        self._after = batch.revision
        return batch


_revision = attrgetter("revision")


def _size(event: Event) -> int:
    """The bytes of the values that an event keeps in memory."""
    return len(event.value or b"") + (len(event.previous.value) if event.previous is not None else 0)
