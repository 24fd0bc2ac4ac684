"""Fan-out: the changes of one collection go to its streams, to a few in every turn of the event loop.

What a write costs does not grow with those who watch. A stream is told only of its own partition, and a round, which
tells all streams of all changes since the last one, is taken in small steps; what is written meanwhile is the next
round's, so that many streams get several changes at once instead of holding up the writers. A stream whose client does
not take what it is sent falls behind: it is told nothing until it has caught up by itself and follows again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final, Protocol

from apiserver.registry.change import Change
from storage.types import Revision

log = logging.getLogger("noxu")

STEP: Final = 16  # streams between two turns of the loop; each costs 10 to 20 µs, most of it in the kernel


class History(Protocol):
    """What happened in a collection."""

    changed: Revision

    def since(self, revision: Revision) -> list[Change] | None:
        """Every change after `revision`; None if that is too long ago."""
        ...


class Stream(Protocol):
    """Who is sent the changes of one partition (None: of all). All methods return at once."""

    partition: str | None

    def deliver(self, changes: Sequence[Change], revision: Revision) -> bool:
        """Send these changes, which are all that there are up to `revision`; False if it cannot follow any more."""
        ...

    def fall_behind(self) -> None:
        """From now on it is told nothing, until it follows again."""
        ...

    def end(self) -> None:
        """Nothing more will come: the resource is gone or has changed its schema."""
        ...


class Fanout:
    """The streams of one collection."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._open: dict[Stream, None] = {}
        self._following: dict[str | None, dict[Stream, None]] = {}
        self._told: Revision = 0  # the last round that is over told of everything up to here
        self._round: Iterator[tuple[Stream, Sequence[Change]]] | None = None
        self._upto: Revision = 0  # what the round that is under way tells of

    def enter(self, stream: Stream) -> None:
        """From now on it hears of the end."""
        self._open[stream] = None

    def leave(self, stream: Stream) -> None:
        self._open.pop(stream, None)
        self._part(stream)

    def follow(self, stream: Stream) -> None:
        """From now on it is told of changes; it knows those that there are."""
        if self._round is None and not self._following:
            self._told = self._history.changed
        self._following.setdefault(stream.partition, {})[stream] = None

    def settled(self, now: Revision) -> Revision:
        """Up to where those who follow have been told everything: `now`, unless a round is under way."""
        return now if self._round is None else self._told

    def tell(self) -> None:
        """Something has changed. Those who come first are told before this returns."""
        if self._round is None:
            self._begin()
            self._step()

    def end(self) -> None:
        """Tell what there is to be told, and then that it is over."""
        self.tell()
        while self._round is not None:
            self._tell(self._round)
            self._finish()
        for stream in list(self._open):
            stream.end()

    def _begin(self) -> None:
        if not self._following:
            return
        self._upto = self._history.changed
        changes = self._history.since(self._told)
        if changes is None:
            for stream in self._all():
                self._lose(stream)
            self._told = self._upto
        elif changes:
            self._round = iter(self._whom(changes))

    def _whom(self, changes: Sequence[Change]) -> list[tuple[Stream, Sequence[Change]]]:
        """Who is told of what, in this round."""
        by_partition: dict[str | None, list[Change]] = {}
        for change in changes:
            by_partition.setdefault(change.key.partition, []).append(change)
        told = [(stream, changes) for stream in self._following.get(None, ())]
        for partition, some in by_partition.items():
            told += [(stream, some) for stream in self._following.get(partition, ())]
        return told

    def _step(self) -> None:
        if self._round is None:  # somebody brought it to its end meanwhile
            return
        if self._tell(islice(self._round, STEP)) < STEP:
            self._finish()
        if self._round is not None:
            asyncio.get_running_loop().call_soon(self._step)

    def _tell(self, some: Iterator[tuple[Stream, Sequence[Change]]]) -> int:
        count = 0
        for stream, changes in some:
            count += 1
            if stream not in self._following.get(stream.partition, ()):
                continue  # it has fallen behind, or is gone
            try:
                if not stream.deliver(changes, self._upto):
                    self._lose(stream)
            except Exception:
                log.exception("a watch fails, and ends")
                self._part(stream)
                stream.end()
        return count

    def _finish(self) -> None:
        """The round is over. What has changed since it began is told in the next one."""
        self._told, self._round = self._upto, None
        if self._told < self._history.changed:
            self._begin()

    def _all(self) -> list[Stream]:
        return [stream for streams in self._following.values() for stream in streams]

    def _lose(self, stream: Stream) -> None:
        self._part(stream)
        stream.fall_behind()

    def _part(self, stream: Stream) -> None:
        streams = self._following.get(stream.partition)
        if streams is not None:
            streams.pop(stream, None)
            if not streams:
                del self._following[stream.partition]
