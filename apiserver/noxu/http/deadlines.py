"""The deadlines of the requests that are being handled, with one timer for all of them.

Nearly all requests are answered long before their deadline, so a timer for each (`asyncio.timeout_at`) would be set and
cancelled in vain. Nearly all have the same time, too, so the deadline of a new request is rarely the earliest, and the timer
stays as it is. It fires at the earliest deadline that it knew: then it ends the requests that are late, and is set for the
earliest of the others. With requests that have 60 seconds:

    at 0    a begins: the timer is set for 60       at 61   c is handled, which began at 61: nothing changes
    at 1    a is answered: the timer stays          at 90   d begins, and has 5 seconds: the timer is set for 95
    at 60   the timer fires; b began at 30: set     at 95   the timer fires, d is late; set for 121, that of c
            for 90, and so on

A late task is cancelled like by `asyncio.timeout_at`, and its body ends with TimeoutError.
"""

from __future__ import annotations

import asyncio
import math
from types import TracebackType
from typing import Any, Self


class Deadlines:
    """The bodies of `with deadlines.until(…)` that are running."""

    def __init__(self) -> None:
        self._running: set[Deadline] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._fires_at = math.inf

    def until(self, when: float, task: asyncio.Task[Any] | None = None) -> Deadline:
        """A context manager whose body may run until `when`, in the event loop's time. It is used once.

        `task` is the current one: to find it, where it is not given, is a system call before Python 3.12.
        """
        return Deadline(self, when, task or _current_task())

    def begin(self, deadline: Deadline) -> None:
        self._running.add(deadline)
        # the timer is never set for later: it fires in vain instead
        if deadline.when < self._fires_at:
            self._set_timer(deadline.when)

    def end(self, deadline: Deadline) -> None:
        self._running.discard(deadline)

    def _set_timer(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._fires_at = when
        self._timer = None if when == math.inf else asyncio.get_running_loop().call_at(when, self._fire)

    def _fire(self) -> None:
        self._timer = None
        now = asyncio.get_running_loop().time()
        late = [deadline for deadline in self._running if deadline.when <= now]
        self._running.difference_update(late)  # before they are expired: each may end by itself in the same turn
        self._set_timer(min([deadline.when for deadline in self._running], default=math.inf))
        for deadline in late:
            deadline.expire()


def _current_task() -> asyncio.Task[Any]:
    task = asyncio.current_task()
    assert task is not None
    return task


class Deadline:
    """See `Deadlines.until`. `expired`: the body has been cancelled because it is late."""

    __slots__ = ("_cancellations", "_deadlines", "_task", "expired", "when")

    def __init__(self, deadlines: Deadlines, when: float, task: asyncio.Task[Any]) -> None:
        self._deadlines = deadlines
        self._task = task
        self.when = when
        self.expired = False

    def __enter__(self) -> Self:
        self._cancellations = self._task.cancelling()  # those of others, which must not become a TimeoutError
        self._deadlines.begin(self)
        return self

    def expire(self) -> None:
        self.expired = True  # before the task goes on
        self._task.cancel()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._deadlines.end(self)
        if self.expired and self._task.uncancel() <= self._cancellations and kind is asyncio.CancelledError:
            raise TimeoutError from error
