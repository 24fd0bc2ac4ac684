"""Lines that are written by a thread, so that no write blocks the event loop.

Lines are collected for DELAY and handed to the thread together. The queue is bounded: beyond MAX_WAITING bytes `put`
drops the line, unless the caller has waited for `room` first. A line may be a function that makes it: the thread calls
it.

A failure is logged once, with the number of lost lines when writing works again. The callers of `put` get no error.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from noxu.containment import Contained

DELAY: Final = 0.01  # seconds
MAX_WAITING: Final = 64 * 1024 * 1024  # bytes
CLOSE_WITHIN: Final = 5.0  # seconds for what waits to be written

log: Final = logging.getLogger("noxu")

Line = bytes | Callable[[], bytes]


class Output(Protocol):
    """Where lines go. The methods are called in the thread and raise OSError."""

    def write(self, lines: Sequence[bytes]) -> int: ...

    def close(self) -> None: ...


class LineWriter:
    """See the module. `name` is the subject of log messages. Its methods are called in the event loop."""

    def __init__(self, output: Output, name: str, max_waiting: int = MAX_WAITING) -> None:
        self._output = output
        self._name = name
        self._max_waiting = max_waiting
        self._waiting = 0
        self._lines: list[Line] = []
        self._weight = 0
        self._batches: queue.SimpleQueue[tuple[list[Line], int, asyncio.Future[bool] | None] | None]
        self._batches = queue.SimpleQueue()
        self._waiters: list[asyncio.Future[None]] = []
        self._lost = 0
        self._dropped = 0
        self._failed = [0, 0]  # lines: in the loop, in the thread
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._thread = threading.Thread(target=self._run, name="noxu-log-writer", daemon=True)
        self._thread.start()

    @property
    def failed(self) -> int:
        """The lines that were dropped, lost or left out until now."""
        return sum(self._failed)

    @property
    def is_full(self) -> bool:
        return self._waiting >= self._max_waiting

    def put(self, line: Line, weight: int, *, bounded: bool = True) -> None:
        """Write a line soon. `weight` is the memory that it takes until then. A `bounded` one is dropped if there is no room."""
        if bounded and self._waiting >= self._max_waiting:
            if not self._dropped:
                log.warning("%s is written too slowly: lines are dropped", self._name)
            self._dropped += 1
            self._failed[0] += 1
            return
        self._waiting += weight
        self._weight += weight
        self._lines.append(line)
        if self._timer is None:
            self._timer = self._loop.call_later(DELAY, self._hand_over)

    async def room(self) -> None:
        """Return when there is room for a line."""
        while self.is_full:
            waiter = self._loop.create_future()
            self._waiters.append(waiter)
            await waiter

    async def flushed(self) -> bool:
        """Return when the lines until now are written: whether all of them were."""
        written: asyncio.Future[bool] = self._loop.create_future()
        self._hand_over(written)
        return await asyncio.shield(written)

    async def close(self) -> None:
        """Write what waits, and close the output."""
        self._hand_over()
        self._batches.put(None)
        await asyncio.to_thread(self._thread.join, CLOSE_WITHIN)
        if self._thread.is_alive():
            log.error("%s is not complete: the last lines could not be written within %g s", self._name, CLOSE_WITHIN)

    def _hand_over(self, written: asyncio.Future[bool] | None = None) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._lines or written is not None:
            self._batches.put((self._lines, self._weight, written))
            self._lines, self._weight = [], 0

    def _done(self, weight: int, succeeded: bool, written: asyncio.Future[bool] | None) -> None:
        """The thread has finished a batch."""
        self._waiting -= weight
        if written is not None and not written.done():
            written.set_result(succeeded)
        if self._dropped and not self.is_full:
            log.warning("%s is written again: %d lines were dropped", self._name, self._dropped)
            self._dropped = 0
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    # -- in the thread ------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while (batch := self._batches.get()) is not None:
            lines, weight, written = batch
            succeeded = self._write(lines)
            try:
                self._loop.call_soon_threadsafe(self._done, weight, succeeded, written)
            except RuntimeError:  # the loop is closed
                return
        with Contained(f"closing {self._name}", passing=OSError):
            self._output.close()

    def _write(self, lines: list[Line]) -> bool:
        written = [line if isinstance(line, bytes) else _made(self._name, line) for line in lines]
        whole = [line for line in written if line]
        lost = len(written) - len(whole)
        try:
            left_out = self._output.write(whole)
        except OSError as error:
            if not self._lost:
                log.error("%s cannot be written: %s; lines are lost", self._name, error.strerror or error)  # noqa: TRY400
            self._lost += len(lines)
            self._failed[1] += len(lines)
            return False
        self._failed[1] += left_out + lost
        if left_out:
            log.error("%s: %d lines are longer than a file may be, and were left out", self._name, left_out)
        if self._lost:
            log.warning("%s is written again: %d lines were lost", self._name, self._lost)
            self._lost = 0
        return not left_out and not lost


def _made(name: str, line: Callable[[], bytes]) -> bytes:
    """The line that a function makes, b"" after a bug in it."""
    with Contained(f"a line of {name}"):
        return line()
    return b""
