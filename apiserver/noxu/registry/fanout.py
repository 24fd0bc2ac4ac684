"""Fan-out: deliver the changes of one collection to its streams, a few in each iteration of the event loop.

The time of a write does not grow with the number of watches. Streams are grouped by partition, and one round of delivery
passes all changes since the previous round to all streams, STEP streams at a time. Changes that are written during a round
belong to the next round, so many streams receive several changes at once instead of delaying the writers. A stream whose
client does not read falls behind: it receives nothing until it has caught up by itself and follows again.

Two rounds, for the streams x and y (STEP = 1), while three changes are written:

    publish()   change 1   round up to 1: x gets [1]; y in the next iteration
    publish()   change 2   a round is under way: nothing to do
    publish()   change 3   likewise
    iteration              y gets [1]; the round is over, 3 > 1: round up to 3: x gets [2, 3]
    iteration              y gets [2, 3]; the round is over
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import islice
from typing import Final, Protocol

from noxu.containment import Contained
from noxu.registry.change import Batch, Change
from noxu_storage.types import Revision

STEP: Final = 16  # streams in each iteration of the loop; each takes about 10 µs, most of it in the kernel


class History(Protocol):
    """The changes of a collection."""

    changed: Revision
    """The revision of the newest change."""

    def since(self, revision: Revision) -> list[Change] | None:
        """The changes after `revision`, None if some of them are no longer kept."""
        ...


class Stream(Protocol):
    """Receives the changes of one partition (None: of all). No method waits."""

    partition: str | None

    def deliver(self, changes: Batch, revision: Revision) -> bool:
        """Send these changes, which are all up to `revision`. False if the stream can no longer follow."""
        ...

    def fall_behind(self) -> None:
        """Nothing is delivered until the stream follows again."""
        ...

    def end(self) -> None:
        """There are no further changes: the resource was deleted or its schema changed."""
        ...


class Fanout:
    """The streams of one collection."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._streams: dict[Stream, None] = {}
        self._followers: dict[str | None, dict[Stream, None]] = {}  # by partition
        self._delivered: Revision = 0  # the last complete round ended here
        self._round: Iterator[tuple[Stream, Batch]] | None = None  # deliveries that remain in this round
        self._round_end: Revision = 0  # the newest change in this round

    def add(self, stream: Stream) -> None:
        """Register a stream: it is notified of the end, and of changes once it follows."""
        self._streams[stream] = None

    def remove(self, stream: Stream) -> None:
        self._streams.pop(stream, None)
        self._unfollow(stream)

    def follow(self, stream: Stream) -> None:
        """Deliver future changes to a stream, which has all changes until now."""
        if self._round is None and not self._followers:
            self._delivered = self._history.changed
        self._followers.setdefault(stream.partition, {})[stream] = None

    def delivered(self, now: Revision) -> Revision:
        """The revision up to which all followers have every change: `now`, unless a round is under way."""
        return now if self._round is None else self._delivered

    def publish(self) -> None:
        """Deliver the changes since the last round; the first STEP streams have them when this returns."""
        if self._round is None:
            self._begin_round()
            self._step()

    def end(self) -> None:
        """Deliver all changes until now, and end all streams."""
        self.publish()
        while self._round is not None:
            self._deliver(self._round)
            self._end_round()
        for stream in list(self._streams):
            stream.end()

    def _begin_round(self) -> None:
        if not self._followers:
            return
        self._round_end = self._history.changed
        changes = self._history.since(self._delivered)
        if changes is None:
            for stream in [stream for streams in self._followers.values() for stream in streams]:
                self._leave_behind(stream)
            self._delivered = self._round_end
        elif changes:
            self._round = iter(self._deliveries(Batch(changes)))

    def _deliveries(self, changes: Batch) -> list[tuple[Stream, Batch]]:
        """Each follower with its changes."""
        by_partition: dict[str | None, Batch] = {}
        for change in changes:
            by_partition.setdefault(change.key.partition, Batch()).append(change)
        deliveries = [(stream, changes) for stream in self._followers.get(None, ())]
        for partition, partition_changes in by_partition.items():
            deliveries += [(stream, partition_changes) for stream in self._followers.get(partition, ())]
        return deliveries

    def _step(self) -> None:
        if self._round is None:  # `end` has completed the round
            return
        if self._deliver(islice(self._round, STEP)) < STEP:
            self._end_round()
        if self._round is not None:
            asyncio.get_running_loop().call_soon(self._step)

    def _deliver(self, deliveries: Iterator[tuple[Stream, Batch]]) -> int:
        """The number of deliveries, including those to streams that have gone meanwhile."""
        count = 0
        while True:
            with Contained("a watch") as contained:
                for stream, changes in deliveries:
                    count += 1
                    if stream not in self._followers.get(stream.partition, ()):
                        continue  # it has fallen behind or was removed during the round
                    if not stream.deliver(changes, self._round_end):
                        self._leave_behind(stream)
            if contained.error is None:
                return count
            self._unfollow(stream)  # the one that failed; the rest of the deliveries follows
            stream.end()

    def _end_round(self) -> None:
        """End the round. Changes since its beginning begin the next one."""
        self._delivered, self._round = self._round_end, None
        if self._delivered < self._history.changed:
            self._begin_round()

    def _leave_behind(self, stream: Stream) -> None:
        self._unfollow(stream)
        stream.fall_behind()

    def _unfollow(self, stream: Stream) -> None:
        streams = self._followers.get(stream.partition)
        if streams is not None:
            streams.pop(stream, None)
            if not streams:
                del self._followers[stream.partition]
