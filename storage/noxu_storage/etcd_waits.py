"""Waits until a store shows a revision: a write waits for its own event, a read for what others have written before it."""

from __future__ import annotations

import asyncio
from heapq import heappop, heappush
from itertools import count
from typing import Final

from noxu_storage.log import Log
from noxu_storage.types import Closed, Revision

WAIT_WITHIN: Final = 30.0  # seconds


class Waits:
    """The waits for one log. `wake` has to be called when it has grown."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._waits: list[tuple[Revision, int, asyncio.Future[None]]] = []  # a heap
        self._numbers = count()
        self._before = 0  # the numbers of waits that have not begun after the last expiry are less
        self._expiry: asyncio.TimerHandle | None = None
        self._closed = False

    async def reach(self, revision: Revision) -> None:
        """Wait until the log shows a revision. Raises Closed, TimeoutError after WAIT_WITHIN to twice that."""
        if revision <= self._log.revision:
            await asyncio.sleep(0)  # waiting watches get the event before its writer continues
            return
        if self._closed:
            raise Closed("the store is closed")
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heappush(self._waits, (revision, next(self._numbers), future))
        if self._expiry is None:
            self._expire()
        await future

    async def reached_within(self, seconds: float, revision: Revision) -> bool:
        """Whether the log shows a revision after so many seconds at most. Raises Closed."""
        try:
            async with asyncio.timeout(seconds):
                await self.reach(revision)
        except TimeoutError:
            return self._log.revision >= revision
        return True

    def wake(self) -> None:
        while self._waits and self._waits[0][0] <= self._log.revision:
            future = heappop(self._waits)[2]
            if not future.done():
                future.set_result(None)

    def close(self) -> None:
        """End all waits, and those that begin later: the log does not grow any more."""
        self._closed = True
        if self._expiry is not None:
            self._expiry.cancel()
        while self._waits:
            future = heappop(self._waits)[2]
            if not future.done():
                future.set_exception(Closed("the store is closed"))

    def _expire(self) -> None:
        """End the waits that began before the last call, and call again after WAIT_WITHIN. One timer for all waits."""
        for _, number, future in self._waits:
            if number < self._before and not future.done():
                future.set_exception(TimeoutError())
        self._before = next(self._numbers)
        loop = asyncio.get_running_loop()
        self._expiry = loop.call_later(WAIT_WITHIN, self._expire) if self._waits else None
