"""Transactions: several writes that follow from what was read, without another write in between.

A transaction has its turn: it is alone with its store while it reads and until its writes are made. Other writes of the store
that begin meanwhile wait, those that have begun before are finished first:

    put(a, …)        under way
    transact(…)      takes its turn; waits for the put
    put(b, …)        waits for the turn to end
    decide()         reads the store, which has the first put and not the second
    the writes       are checked and made, as one
    put(b, …)        gets a Conflict, whatever state b has: what it follows from was read before the transaction

A transaction that makes no writes, or fails, lets the others go on.

The writes are checked as if they were made one after the other, so a key may be deleted and created again. What is created or
changed in a transaction cannot be changed in it once more: its revision is not known yet.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple, TypeAlias

from noxu_storage.types import Key, Revision


class StagedWrite(NamedTuple):
    """A value (None: delete the key) for a key at revision `expected`. `replaced` is the value there, if it is known."""

    key: Key
    value: bytes | None
    expected: Revision
    replaced: bytes | None = None


Decide: TypeAlias = Callable[[], Awaitable[Sequence[StagedWrite]]]
"""Reads the store, and returns the writes of a transaction. It must not write itself: that would wait for the transaction."""


class Turn:
    """Who may write to a store: a transaction alone, or everyone else."""

    def __init__(self) -> None:
        self.is_taken = False
        """A transaction is alone with the store: other writes have to wait for `ended`."""
        self.made = 0
        """Transactions that have written."""
        self._made_before = 0  # the turn
        self._transaction = asyncio.Lock()
        self._ended = asyncio.Event()

    async def ended(self) -> bool:
        """Return when no transaction is alone with the store: whether one has written, meanwhile or earlier in its turn."""
        has_waited, before = self.is_taken, self._made_before
        while self.is_taken:
            await self._ended.wait()
        return has_waited and self.made != before

    @asynccontextmanager
    async def taken(self) -> AsyncIterator[None]:
        """The turn of one transaction. Others wait for it, in their order."""
        async with self._transaction:
            self.is_taken, self._ended, self._made_before = True, asyncio.Event(), self.made
            try:
                yield
            finally:
                self.is_taken = False
                self._ended.set()


def refused(writes: Sequence[StagedWrite], revision_of: Callable[[Key], Revision]) -> Key | None:
    """The key of the first write that cannot be made, None if all can. `revision_of` a key that does not exist is 0."""
    made: dict[Key, bool] = {}  # by key: whether it exists after the writes before
    for key, value, expected, _ in writes:
        if key in made:
            stored = -1 if made[key] else 0  # -1: it has no revision yet, so no write can expect it
        else:
            stored = revision_of(key)
        if stored != expected or not (stored or value is not None):
            return key
        made[key] = value is not None
    return None
