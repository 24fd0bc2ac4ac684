"""Time in tests: the object time of the server, `noxu.clock`, and waiting until nothing happens any more, `noxu.idle()`.

    noxu.clock.freeze()
    noxu.clock.advance("1h")            # Events of before are gone when it returns
    noxu.clock.advance(days=365)
    await noxu.clock.advance("90s")     # in a coroutine

    noxu.apply(widget)
    noxu.idle()                         # the operator has done what it does about it

See `noxu.control.clock` and `noxu.control.idle` for what they do.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from noxu.control import arguments, idle
from noxu.control import clock as control
from noxu.control.program_work import WorkOfPrograms
from noxu.testing import calls
from noxu.testing.calls import AnsweredCall
from noxu.testing.errors import hidden
from noxu.testing.session import Runner
from noxu.testing.sources import names
from noxu.values import Object

__tracebackhide__ = hidden


class ServerTime(NamedTuple):
    """How the clock is set. `offset` is in seconds beside the system's time. `due`: when something is due next."""

    mode: str
    now: datetime
    offset: float = 0.0
    speed: float = 1.0
    sleepers: int = 0
    due: datetime | None = None
    woken: int = 0
    """How many waited for the time that has passed, after `advance`."""


class ServerClock:
    """`noxu.clock`: methods return the new state, and raise ApiError for what would set the clock back."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner

    def __repr__(self) -> str:
        return f"<clock {control.state(self._runner.running.plane.clock)}>"

    def state(self) -> AwaitableTime:
        """How it is set."""
        return self._call("clock.state", self._state)

    def freeze(self, at: datetime | str | None = None) -> AwaitableTime:
        """Stand still, at a time that is not before now; None: now. A text is RFC 3339."""
        return self._set("clock.freeze", mode="frozen", at=None if at is None else _moment(at))

    def set_real(self) -> AwaitableTime:
        """Follow the system again."""
        return self._set("clock.set_real", mode="real")

    def set_offset(self, by: str | float | timedelta) -> AwaitableTime:
        """Be ahead of the system."""
        return self._set("clock.set_offset", mode="offset", offset=_seconds(by))

    def set_speed(self, factor: float) -> AwaitableTime:
        """Pass so many times as fast."""
        return self._set("clock.set_speed", mode="speed", speed=factor)

    def advance(
        self, by: str | float | timedelta | None = None, *, to: datetime | str | None = None, **parts: float
    ) -> AwaitableTime:
        """Move ahead by a duration (`"1h30m"`, seconds, a timedelta, or its parts: `days=365`), or to a time.

        What becomes due has happened, each at its own time, when this returns.
        """
        if parts and by is None:
            by = timedelta(**parts)
        seconds, moment = None if by is None else _seconds(by), None if to is None else _moment(to)
        return self._call("clock.advance", self._advance, seconds, moment)

    def _set(self, name: str, **wanted: Any) -> AwaitableTime:
        return self._call(name, self._changed, wanted)

    def _call(self, name: str, work: Any, *args: Any) -> AwaitableTime:
        return cast("AwaitableTime", calls.call(self._runner, name, work, *args))

    async def _state(self) -> AnsweredCall[ServerTime]:
        return _answered(control.state(self._runner.running.plane.clock))

    async def _changed(self, wanted: dict[str, Any]) -> AnsweredCall[ServerTime]:
        return _answered(control.set_clock(self._runner.running.plane.clock, wanted))

    async def _advance(self, by: float | None, to: datetime | None) -> AnsweredCall[ServerTime]:
        plane = self._runner.running.plane
        return _answered(await control.advance(plane.clock, plane.all_controllers, by=by, to=to))


class TimeCalls:
    """The part of the handle about time."""

    _runner: Runner

    @property
    def clock(self) -> ServerClock:
        """The object time of the server: freeze it, advance it."""
        return ServerClock(self._runner)

    def idle(
        self, quiet: float = idle.QUIET, timeout: float = idle.WITHIN, *, ignore: Iterable[str] = idle.IGNORED
    ) -> AwaitableObject:
        """Return when nothing is under way, and no client has asked for anything for `quiet` seconds.

        `ignore` are plurals of resources that do not count. Returns `{"quiet", "seconds", "requests"}`. Raises ApiError 504
        after `timeout` seconds, which says who is busy with what.
        """
        ignored = names(ignore)

        async def waited() -> AnsweredCall[Object]:
            server = self._runner.running
            waiting = idle.until_idle(
                server.interventions.activity(),
                server.plane.all_controllers,
                quiet=quiet,
                within=timeout,
                ignore=ignored,
                programs=server.control.part(WorkOfPrograms),
            )
            return AnsweredCall(await waiting)

        return cast("AwaitableObject", calls.call(self._runner, "idle", waited))


def _answered(state: dict[str, Any]) -> AnsweredCall[ServerTime]:
    shown: dict[str, Any] = {**state}
    for name in ("now", "due"):
        if name in shown:
            shown[name] = arguments.time(shown[name])
    return AnsweredCall(ServerTime(**shown))


def _seconds(duration: str | float | timedelta) -> float:
    if isinstance(duration, timedelta):
        return duration.total_seconds()
    return arguments.duration(duration) if isinstance(duration, str) else float(duration)


def _moment(time: datetime | str) -> datetime:
    if isinstance(time, str):
        return arguments.time(time)
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)


if TYPE_CHECKING:
    from noxu.testing.calls import AwaitableObject

    class AwaitableTime(ServerTime):
        def __await__(self) -> Generator[Any, None, ServerTime]: ...
