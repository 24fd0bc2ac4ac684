"""The object time of a running server: read it, set it, move it ahead.

    {"mode": "frozen"}                        stand still from now on
    {"mode": "frozen", "at": "2030-01-01T00:00:00Z"}
    {"mode": "offset", "offset": "1h"}        an hour beside the time of the system
    {"mode": "speed", "speed": 60}            an hour passes in a minute
    {"mode": "real"}                          the time of the system
    advance {"by": "36h"} or {"to": "2030-01-01T00:00:00Z"}

The answer is the state: `{"mode": "frozen", "now": "…", "offset": seconds, "speed": 0.0, "sleepers": 3, "due": "…"}`. Times
are RFC 3339, durations are Go's, with days: `365d`, `1d12h`, `90s`. A clock that a program has given to its server is that
program's: it is read, but neither set nor advanced.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final

from noxu.api.errors import ApiError, bad_request
from noxu.clock import MODES, AdjustableClock, Clock, ClockError
from noxu.control.settling import hasten, settled
from noxu.controllers.controller import Reconciler
from noxu.expressions import expression
from noxu.features import listed_names, meant
from noxu.go.time import SECOND, format_time, parse_duration
from noxu.values import Json, Object

_DAYS: Final = expression(r"(?P<days>[0-9]+)d(?P<rest>.*)")
SECONDS_A_DAY: Final = 86_400.0
_FIELDS: Final[Mapping[str, frozenset[str]]] = {
    "real": frozenset(),
    "frozen": frozenset({"at"}),
    "offset": frozenset({"offset"}),
    "speed": frozenset({"speed", "at"}),
}


def state(clock: Clock) -> Object:
    """How the clock is set; of a clock that a program has given: what it shows."""
    if not isinstance(clock, AdjustableClock):
        return {"mode": "given", "now": _text(clock.now())}
    current = clock.state
    shown: Object = {
        "mode": current.mode,
        "now": _text(current.now),
        "offset": round(current.offset, 6),
        "speed": current.speed,
        "sleepers": current.sleepers,
    }
    return shown if current.due is None else {**shown, "due": _text(current.due)}


def set_clock(clock: Clock, wanted: Mapping[str, Json]) -> Object:
    """Set the mode, and return the new state. Raises ApiError."""
    own = _adjustable(clock)
    mode = wanted.get("mode")
    if not isinstance(mode, str) or mode not in MODES:
        raise bad_request(f'"mode" must be one of {listed_names(MODES)}{meant(str(mode or ""), MODES)}')
    fields = _FIELDS[mode]
    for name in wanted.keys() - {"mode", *fields}:
        raise bad_request(f'mode {mode} has no "{name}": it has {listed_names(sorted(fields)) or "no further fields"}')
    _attempt(partial(_SETTERS[mode], own, wanted))
    return state(own)


async def advance(clock: Clock, controllers: Sequence[Reconciler[Any]], by: Mapping[str, Json]) -> Object:
    """Move ahead; what becomes due has happened when this returns. The state, and how many sleepers have woken. Raises ApiError."""
    own = _adjustable(clock)
    if len(by) != 1 or not by.keys() <= {"by", "to"}:
        raise bad_request(
            'write how far the clock is advanced, {"by": "1h"}, or to which time, {"to": "2030-01-01T00:00:00Z"}'
        )
    seconds = duration(by["by"]) if "by" in by else (time(by["to"]) - own.now()).total_seconds()
    try:
        woken = await own.advance(seconds, partial(settled, controllers))
    except ClockError as error:
        raise bad_request(str(error)) from None
    hasten(controllers, seconds)
    await settled(controllers)
    return {**state(own), "woken": woken}


def parsed(text: str) -> Object:
    """What `--clock` sets: `real`, `frozen`, `frozen=TIME`, `offset=1h`, `offset=-1h`, `speed=60`. Raises ApiError."""
    mode, _, value = text.partition("=")
    if not value:
        return {"mode": mode}
    if mode == "speed":
        try:
            return {"mode": mode, "speed": float(value)}
        except ValueError:
            raise bad_request(f"speed={value} is not a number, such as speed=60") from None
    return {"mode": mode, "at" if mode == "frozen" else "offset": value}


def begin(clock: AdjustableClock, text: str) -> None:
    """Set the clock of a server that has no objects in memory yet: it may begin in the past. Raises ApiError."""
    wanted = parsed(text)
    if wanted["mode"] == "offset" and str(wanted.get("offset", "")).startswith("-"):
        clock.start_at(clock.now() - timedelta(seconds=duration(str(wanted["offset"])[1:])))
    elif wanted["mode"] == "frozen" and "at" in wanted:
        clock.freeze()
        clock.start_at(time(wanted["at"]))
    else:
        set_clock(clock, wanted)


def duration(value: Json) -> float:
    """Seconds of a duration such as `365d`, `1d12h`, `90s`. Raises ApiError."""
    text = value if isinstance(value, str) else ""
    days = _DAYS.fullmatch(text)
    try:
        rest = days["rest"] if days else text
        seconds = parse_duration(rest) / SECOND if rest or not days else 0.0
    except ValueError:
        raise bad_request(f"{value!r} is not a duration, such as 365d, 1h30m or 90s") from None
    return seconds + (int(days["days"]) * SECONDS_A_DAY if days else 0.0)


def time(value: Json) -> datetime:
    """A time in RFC 3339. Raises ApiError."""
    try:
        moment = datetime.fromisoformat(value if isinstance(value, str) else "")
        has_zone = moment.tzinfo is not None
    except ValueError:
        has_zone = False
    if not has_zone:
        raise bad_request(f"{value!r} is not a time, such as 2030-01-01T00:00:00Z")
    return moment.astimezone(UTC)


def _optional_time(wanted: Mapping[str, Json]) -> datetime | None:
    return time(wanted["at"]) if "at" in wanted else None


def _speed(wanted: Mapping[str, Json]) -> float:
    factor = wanted.get("speed")
    if isinstance(factor, bool) or not isinstance(factor, int | float):
        raise bad_request('"speed" must be a number, such as 60: an hour passes in a minute')
    return factor


_SETTERS: Final[Mapping[str, Callable[[AdjustableClock, Mapping[str, Json]], None]]] = {
    "real": lambda clock, _: clock.set_real(),
    "frozen": lambda clock, wanted: clock.freeze(_optional_time(wanted)),
    "offset": lambda clock, wanted: clock.set_offset(duration(wanted.get("offset"))),
    "speed": lambda clock, wanted: clock.set_speed(_speed(wanted), _optional_time(wanted)),
}


def _adjustable(clock: Clock) -> AdjustableClock:
    if not isinstance(clock, AdjustableClock):
        raise ApiError(409, "the clock of this server is that of the program that started it: set it there", "Conflict")
    return clock


def _attempt(change: Callable[[], None]) -> None:
    try:
        change()
    except ClockError as error:
        raise bad_request(str(error)) from None


def _text(when: datetime) -> str:
    return format_time(when)
