"""Pending writes: checked against each other, and collected into transactions.

A write that passes its check becomes pending, with the next revision. Later writes of the same key are checked against
it, as if it were committed; reads and watches do not see it. One transaction is being committed at a time. Writes that
arrive meanwhile are collected into the next one. If a commit fails, the writes behind it were checked against a state
that may not exist, so all of them are checked again.

A conflict inside a batch, with the key `a` at revision 7, and no other writes:

    put(a, b"1", expected=7)    passes: pending as revision 8, previous 7
    put(a, b"2", expected=7)    does not match the pending revision 8. It waits for the transaction of the first write:
                                committed: Conflict with revision 8; failed: checked again, and it may succeed
    put(a, b"3", expected=8)    passes: pending as revision 9, previous 8, in the same transaction
    delete(a, expected=9)       passes: pending as revision 10, previous 9
    put(a, b"4", expected=0)    passes: after the pending delete the key does not exist
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from noxu_storage.rows import Row, row
from noxu_storage.types import Key, Revision, StoreError

# A write waits while more than this is pending. A larger one is accepted when nothing else is pending.
MAX_PENDING_WRITES: Final = 10_000
MAX_PENDING_BYTES: Final = 64 * 1024 * 1024


class Write:
    """A pending row. `result` becomes its revision when it is durable, or None if it has to be checked again."""

    __slots__ = ("key", "previous", "replaced", "result", "revision", "row", "transaction", "value")

    def __init__(
        self,
        key: Key,
        revision: Revision,
        previous: Revision,
        value: bytes | None,
        replaced: bytes | None,
        transaction: Transaction,
        result: asyncio.Future[Revision | None],
    ) -> None:
        self.row: Row = row(key, revision, previous, value)
        self.key = key
        self.revision = revision
        self.previous = previous
        self.value = value
        self.replaced = replaced
        self.transaction = transaction
        self.result = result

    @property
    def resulting_revision(self) -> Revision:
        """The revision of the key after this write; 0 after a delete."""
        return 0 if self.value is None else self.revision


class Transaction:
    """The writes of one transaction. Exactly one of `succeed`, `fail` and `retry` ends it."""

    __slots__ = ("_finished", "bytes", "writes")

    def __init__(self) -> None:
        self.writes: list[Write] = []
        self.bytes = 0
        self._finished: asyncio.Future[None] | None = None

    async def finished(self) -> None:
        """Return when the transaction has ended, in whatever way."""
        if self._finished is None:
            self._finished = asyncio.get_running_loop().create_future()
        await asyncio.shield(self._finished)  # several callers await it: cancelling one must not cancel the others

    def succeed(self) -> None:
        """Answer the writers, in order."""
        for write in self.writes:
            if not write.result.done():  # else its caller was cancelled
                write.result.set_result(write.revision)
        self._finish()

    def fail(self, make_error: Callable[[], StoreError]) -> None:
        for write in self.writes:
            if not write.result.done():
                write.result.set_exception(make_error())
        self._finish()

    def retry(self) -> None:
        """Have the writers check their writes again."""
        for write in self.writes:
            if not write.result.done():
                write.result.set_result(None)
        self._finish()

    def _finish(self) -> None:
        if self._finished is not None and not self._finished.done():
            self._finished.set_result(None)


_NO_WRITES: Final = Transaction()


class PendingWrites:
    """The transaction that collects writes, and the one that is being committed. True while writes are collected."""

    def __init__(self, revision: Revision) -> None:
        self._next = revision + 1
        self._create_future = asyncio.get_running_loop().create_future
        self._newest: dict[Key, Write] = {}
        self._collecting = Transaction()
        self._committing: Transaction | None = None

    def __bool__(self) -> bool:
        return bool(self._collecting.writes)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is collected or being committed."""
        return self._committing is None and not self._collecting.writes

    @property
    def full(self) -> bool:
        collecting, committing = self._collecting, self._committing or _NO_WRITES
        return (
            len(collecting.writes) + len(committing.writes) >= MAX_PENDING_WRITES
            or collecting.bytes + committing.bytes >= MAX_PENDING_BYTES
        )

    async def wait_for_room(self) -> None:
        """Return when the next transaction has ended."""
        await (self._committing or self._collecting).finished()

    def newest(self, key: Key) -> Write | None:
        """The last pending write of a key."""
        return self._newest.get(key)

    def add(self, key: Key, previous: Revision, value: bytes | None, replaced: bytes | None = None) -> Write:
        """Add a write. `replaced`: the value at `previous`, if it is known.

        Raises ValueError for a key that cannot be encoded, TypeError for a value that is not bytes.
        """
        write = Write(key, self._next, previous, value, replaced, self._collecting, self._create_future())
        self._next += 1
        self._newest[key] = write
        self._collecting.writes.append(write)
        self._collecting.bytes += len(value or b"")
        return write

    def begin_commit(self) -> Transaction:
        """The transaction to commit now. `committed` or `reset` has to follow."""
        self._committing, self._collecting = self._collecting, Transaction()
        return self._committing

    def committed(self, transaction: Transaction) -> None:
        """The transaction is in the log."""
        self._committing = None
        for write in transaction.writes:
            if self._newest.get(write.key) is write:
                del self._newest[write.key]

    def reset(self, revision: Revision) -> None:
        """The commit has failed, and the log ends at `revision`: everything collected meanwhile is checked again."""
        collected, self._collecting = self._collecting, Transaction()
        self._committing = None
        self._newest.clear()
        self._next = revision + 1
        collected.retry()
