"""Time as an argument.

A server has two kinds of time. *Object time* is visible in objects and answers: creation and deletion, the times of field
managers, the expiry of Events, the validity of tokens, ages in tables. It comes from a `Clock`.
*Process time* limits the cost of a request or a client: deadlines of requests and bodies, stalled connections, retries.
It is always that of the event loop.

The object time of a server can be set while it runs (`AdjustableClock`):

    mode      object time
    real      that of the operating system
    offset    so many seconds beside that of the operating system
    speed     passes so many times as fast
    frozen    stands still until it is advanced

`advance` moves it ahead, in each of these modes. What becomes due on the way happens in the order of its times, each at its
own time: a clock at 12:00 with sleepers until 12:10, 12:10 and 12:30, which is advanced by an hour,

    is at 12:10   two sleepers wake; the clock waits until both have ended or sleep again, one of them until 12:20
    is at 12:20   it wakes again
    is at 12:30   the third one wakes
    is at 13:00   `advance` returns

Object time never goes back: an object that was created would be younger than its creation, and what is due would be due twice.
"""

from __future__ import annotations

import asyncio
import heapq
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any, Final, Literal, NamedTuple, Protocol, get_args


class Clock(Protocol):
    """Object time. Durations are in seconds."""

    def now(self) -> datetime:
        """The time of day, in UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds since an arbitrary moment; never decreases."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds`."""
        ...


class SystemClock:
    """The time of the operating system."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


SYSTEM_CLOCK: Final[Clock] = SystemClock()


def rfc3339_now(clock: Clock) -> str:
    """The time of day as objects have it (metav1.Time): `2006-01-02T15:04:05Z`."""
    return clock.now().isoformat(timespec="seconds").removesuffix("+00:00") + "Z"


def timestamp(clock: Clock) -> float:
    """The time of day in seconds since 1970."""
    return clock.now().timestamp()


# -- time that is set -------------------------------------------------------------------------------------------------

Mode = Literal["real", "offset", "speed", "frozen"]
MODES: Final[tuple[Mode, ...]] = get_args(Mode)
MAX_SPEED: Final = 1e6
REST_WITHIN: Final = 10.0  # seconds of process time for what a sleeper does; if it takes longer, time goes on


class ClockError(ValueError):
    """The clock cannot be set like this. The message says why, and what can be done."""


class ClockState(NamedTuple):
    """How a clock is set. `offset` is in seconds beside the system's time, and 0 in the mode real."""

    mode: Mode
    now: datetime
    offset: float
    speed: float
    sleepers: int
    due: datetime | None
    """When the next sleeper wakes."""


class _Rate(NamedTuple):
    """How object time follows from the system's: at `since` of the system's monotonic time, it was `day` and `elapsed`."""

    mode: Mode
    speed: float
    since: float
    elapsed: float
    day: datetime


class _Sleeper(NamedTuple):
    due: float
    order: int
    woken: asyncio.Future[None]
    task: asyncio.Task[Any] | None


class AdjustableClock:
    """The clock of one server, for one event loop. Other threads may read the time."""

    def __init__(self, system: Clock = SYSTEM_CLOCK) -> None:
        self.system = system
        self._offset = timedelta()  # beside the system's time of day, in the modes real and offset
        self._jumped = 0.0  # seconds by which it was advanced, in the modes real and offset
        self._rate: _Rate | None = None  # None: time passes as the system's does
        self._sleepers: list[_Sleeper] = []  # a heap
        self._order = count()
        self._timer: asyncio.TimerHandle | None = None
        self._busy: dict[asyncio.Task[Any], asyncio.Future[None]] = {}  # woken by `advance`: done when they are at rest
        self._advancing = asyncio.Lock()
        self.timestamp: Callable[[], float] = self._timestamp
        self._is_set()

    # -- reading

    def now(self) -> datetime:
        if self._rate is None:
            return self.system.now() + self._offset
        return self._rate.day + timedelta(seconds=self._passed(self._rate))

    def _timestamp(self) -> float:
        return self.now().timestamp()

    def _is_set(self) -> None:
        """Let `timestamp` be the system's own function while time is: a write needs it, and makes no call of ours then."""
        is_real = self._rate is None and not self._offset and self.system is SYSTEM_CLOCK
        self.timestamp = time.time if is_real else self._timestamp

    def monotonic(self) -> float:
        if self._rate is None:
            return self.system.monotonic() + self._jumped
        return self._rate.elapsed + self._passed(self._rate)

    def _passed(self, rate: _Rate) -> float:
        return (self.system.monotonic() - rate.since) * rate.speed

    @property
    def state(self) -> ClockState:
        due = min((sleeper.due for sleeper in self._sleepers if not sleeper.woken.done()), default=None)
        now = self.now()
        when = None if due is None else _later(now, max(due - self.monotonic(), 0.0))
        number = sum(not sleeper.woken.done() for sleeper in self._sleepers)
        if self._rate is None:
            mode: Mode = "offset" if self._offset else "real"
            return ClockState(mode, now, self._offset.total_seconds(), 1.0, number, when)
        offset = (now - self.system.now()).total_seconds()
        return ClockState(self._rate.mode, now, offset, self._rate.speed, number, when)

    async def sleep(self, seconds: float) -> None:
        woken, task = asyncio.get_running_loop().create_future(), asyncio.current_task()
        heapq.heappush(self._sleepers, _Sleeper(self.monotonic() + max(seconds, 0.0), next(self._order), woken, task))
        self._set_timer()
        if task is not None:
            self._is_at_rest(task)
        try:
            await woken
        finally:
            woken.cancel()  # if it was not woken: it leaves the heap when its time comes

    # -- setting

    def set_real(self) -> None:
        """Follow the operating system. Raises ClockError if that is before the time that objects have."""
        self._follow_system(timedelta(), "real")

    def set_offset(self, seconds: float) -> None:
        """Be so many seconds beside the operating system's time. Raises ClockError."""
        self._follow_system(_span(seconds), "offset")

    def freeze(self, at: datetime | None = None) -> None:
        """Stand still, at a time that is not before now; None: now. A jump to it fires nothing. Raises ClockError."""
        self._set_rate("frozen", 0.0, at)

    def set_speed(self, factor: float, since: datetime | None = None) -> None:
        """Pass `factor` times as fast, from a time that is not before now. Raises ClockError."""
        if not 0 < factor <= MAX_SPEED:
            raise ClockError(f"speed {factor:g} is not between 0 and {MAX_SPEED:g}; `freeze` stops the clock")
        self._set_rate("speed", factor, since)

    def start_at(self, at: datetime) -> None:
        """Have a time before any object has one: it may be in the past. Time passes as it did."""
        if self._rate is None:
            self._offset = at - self.system.now()
        else:
            self._rate = self._rate._replace(day=at, elapsed=self.monotonic(), since=self.system.monotonic())
        self._is_set()

    def tick(self, seconds: float) -> None:
        """Let time pass, and wake those whose time has come."""
        self._jump(seconds)
        self._ring(self.monotonic())

    def _follow_system(self, offset: timedelta, mode: Mode) -> None:
        now, elapsed = self.now(), self.monotonic()
        try:
            ahead = self.system.now() + offset
        except OverflowError:
            raise ClockError(f"an offset of {offset.total_seconds():g} s is beyond the year 9999") from None
        self._refuse_past(ahead, now, mode)
        self._jumped = elapsed - self.system.monotonic()
        self._offset, self._rate = offset, None
        self._is_set()
        self._set_timer()

    def _set_rate(self, mode: Mode, speed: float, at: datetime | None) -> None:
        now, elapsed = self.now(), self.monotonic()
        if at is not None:
            self._refuse_past(at, now, mode)
        self._rate = _Rate(mode, speed, self.system.monotonic(), elapsed, at or now)
        self._is_set()
        self._set_timer()

    def _refuse_past(self, at: datetime, now: datetime, mode: Mode) -> None:
        if at < now and (self._offset or self._rate is not None or mode != "real"):
            raise ClockError(
                f"the clock is at {_text(now)}, and cannot be set back to {_text(at)}: objects would be younger than "
                "their creation; a snapshot that is restored, or another server, has an earlier time"
            )

    # -- moving ahead

    async def advance(self, seconds: float, settled: Callable[[], Awaitable[object]] | None = None) -> int:
        """Move ahead, and return how many sleepers have woken when all of them have ended or sleep again.

        `settled` is awaited after each time at which something was due: it returns when what follows from that is done.
        Calls are handled one after the other. Raises ClockError.
        """
        if seconds < 0:
            raise ClockError(f"the clock cannot be advanced by {seconds:g} s: object time never goes back")
        _later(self.now(), seconds)  # which is checked before anything happens
        async with self._advancing:
            target, number = self.monotonic() + seconds, 0
            while (due := self._next_due()) is not None and due <= target:
                self._jump(due - self.monotonic())
                number += await self._wake_due(due)
                if settled is not None:
                    await settled()
            self._jump(target - self.monotonic())
            return number

    def _jump(self, seconds: float) -> None:
        if seconds <= 0:  # time that passes by itself has done it
            return
        if self._rate is None:
            self._offset += timedelta(seconds=seconds)
            self._jumped += seconds
        else:
            # a new rate: what has passed until now is in it
            rate = self._rate
            day = rate.day + timedelta(seconds=self._passed(rate) + seconds)
            elapsed = rate.elapsed + self._passed(rate) + seconds
            self._rate = rate._replace(since=self.system.monotonic(), elapsed=elapsed, day=day)
        self._is_set()
        self._set_timer()

    def _next_due(self) -> float | None:
        self._drop_cancelled()
        return self._sleepers[0].due if self._sleepers else None

    def _drop_cancelled(self) -> None:
        while self._sleepers and self._sleepers[0].woken.done():
            heapq.heappop(self._sleepers)

    async def _wake_due(self, due: float) -> int:
        """Wake the sleepers that are due, and wait until each of their tasks has ended or sleeps again."""
        woken = self._ring(due)
        for sleeper in woken:
            if sleeper.task is not None and not sleeper.task.done():
                self._busy[sleeper.task] = asyncio.get_running_loop().create_future()
                sleeper.task.add_done_callback(self._is_at_rest)
        if self._busy:
            await asyncio.wait(self._busy.values(), timeout=REST_WITHIN)
            self._busy.clear()
        return len(woken)

    def _is_at_rest(self, task: asyncio.Task[Any]) -> None:
        rest = self._busy.get(task)
        if rest is not None and not rest.done():
            rest.set_result(None)

    def _ring(self, due: float) -> list[_Sleeper]:
        """Wake those whose time has come, in the order of their times, and of their sleep."""
        woken = []
        while self._sleepers and self._sleepers[0].due <= due:
            sleeper = heapq.heappop(self._sleepers)
            if not sleeper.woken.done():
                sleeper.woken.set_result(None)
                woken.append(sleeper)
        self._set_timer()
        return woken

    def _set_timer(self) -> None:
        """Wake the next sleeper when its time comes by itself."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due = self._next_due()
        speed = 1.0 if self._rate is None else self._rate.speed
        if due is not None and speed:
            wait = max(due - self.monotonic(), 0.0) / speed
            self._timer = asyncio.get_running_loop().call_later(wait, self._time_has_come)

    def _time_has_come(self) -> None:
        self._timer = None
        self._ring(self.monotonic())


def process_clock(clock: Clock) -> Clock:
    """The clock for pauses that a server makes for its own sake, such as between two looks at something: they do not stop with object time."""
    return clock.system if isinstance(clock, AdjustableClock) else clock


def _later(now: datetime, seconds: float) -> datetime:
    """Raises ClockError."""
    try:
        return now + timedelta(seconds=seconds)
    except OverflowError:
        raise ClockError(f"{seconds:g} s after {_text(now)} is beyond the year 9999") from None


def _span(seconds: float) -> timedelta:
    """Raises ClockError."""
    try:
        return timedelta(seconds=seconds)
    except OverflowError:
        raise ClockError(f"an offset of {seconds:g} s is beyond the year 9999") from None


def _text(when: datetime) -> str:
    return when.strftime("%Y-%m-%dT%H:%M:%SZ")
