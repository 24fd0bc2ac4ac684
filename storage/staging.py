"""Writes on their way to the disk: checked against each other, collected into commits.

A write is staged when nothing speaks against it, with the next revision; from then on other writes of its key are
judged by it. Reads and watches do not see it. One commit is being made at a time; whatever is staged meanwhile is
the next one. When a commit fails, everything staged was judged by what may not exist: it is all thrown back, to be
judged again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from storage.rows import Row, row
from storage.types import Key, Revision, StoreError

# A write waits while more than this is staged. One that is larger by itself goes when it is alone.
MAX_STAGED: Final = 10_000
MAX_STAGED_BYTES: Final = 64 * 1024 * 1024


class Write:
    """One staged row. `answer` becomes its revision when it is durable, or None when it has to be staged again."""

    __slots__ = ("answer", "commit", "key", "previous", "revision", "row", "value")

    def __init__(self, key: Key, revision: Revision, previous: Revision, value: bytes | None, commit: Commit) -> None:
        self.row: Row = row(key, revision, previous, value)
        self.key = key
        self.revision = revision
        self.previous = previous
        self.value = value
        self.commit = commit
        self.answer: asyncio.Future[Revision | None] = asyncio.get_running_loop().create_future()

    @property
    def leaves(self) -> Revision:
        """The revision at which the next write finds the key; 0: it does not exist."""
        return 0 if self.value is None else self.revision


class Commit:
    """The writes of one transaction."""

    __slots__ = ("_settled", "bytes", "writes")

    def __init__(self) -> None:
        self.writes: list[Write] = []
        self.bytes = 0
        self._settled: asyncio.Future[None] | None = None

    async def settled(self) -> None:
        """Wait until it is in the log, or given up."""
        if self._settled is None:
            self._settled = asyncio.get_running_loop().create_future()
        await asyncio.shield(self._settled)  # it is everybody's: a caller who gives up must not cancel it

    def succeed(self) -> None:
        """Tell the writers, in order."""
        for write in self.writes:
            if not write.answer.done():  # else its caller has given up
                write.answer.set_result(write.revision)
        self._settle()

    def fail(self, refusal: Callable[[], StoreError]) -> None:
        for write in self.writes:
            if not write.answer.done():
                write.answer.set_exception(refusal())
        self._settle()

    def throw_back(self) -> None:
        for write in self.writes:
            if not write.answer.done():
                write.answer.set_result(None)
        self._settle()

    def _settle(self) -> None:
        if self._settled is not None and not self._settled.done():
            self._settled.set_result(None)


_NOTHING: Final = Commit()


class Staging:
    """What is staged: the commit being collected, and the one being made."""

    def __init__(self, revision: Revision) -> None:
        self._next = revision + 1
        self._newest: dict[Key, Write] = {}
        self._collected = Commit()
        self._made: Commit | None = None

    def __bool__(self) -> bool:
        return bool(self._collected.writes)

    @property
    def full(self) -> bool:
        collected, made = self._collected, self._made or _NOTHING
        return (
            len(collected.writes) + len(made.writes) >= MAX_STAGED or collected.bytes + made.bytes >= MAX_STAGED_BYTES
        )

    async def room(self) -> None:
        """Wait until the next commit is through."""
        await (self._made or self._collected).settled()

    def newest(self, key: Key) -> Write | None:
        """The last staged write of a key."""
        return self._newest.get(key)

    def add(self, key: Key, previous: Revision, value: bytes | None) -> Write:
        """Stage a write. Raises ValueError for a key that is no Unicode text, TypeError for a value that is no bytes."""
        write = Write(key, self._next, previous, value, self._collected)
        self._next += 1
        self._newest[key] = write
        self._collected.writes.append(write)
        self._collected.bytes += len(value or b"")
        return write

    def take(self) -> Commit:
        """What is to be committed now; `done` or `reset` has to follow."""
        self._made, self._collected = self._collected, Commit()
        return self._made

    def done(self, commit: Commit) -> None:
        """The commit is in the log."""
        self._made = None
        for write in commit.writes:
            if self._newest.get(write.key) is write:
                del self._newest[write.key]

    def reset(self, revision: Revision) -> None:
        """The commit has failed, the log ends at `revision`: everything collected meanwhile is staged anew."""
        collected, self._collected = self._collected, Commit()
        self._made = None
        self._newest.clear()
        self._next = revision + 1
        collected.throw_back()
