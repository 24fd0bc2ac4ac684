"""The object time of a running server: read it, set it, move it ahead.

    GET  /_noxu/clock
    PUT  /_noxu/clock           {"mode": "frozen"}                        stand still from now on
                                {"mode": "frozen", "at": "2030-01-01T00:00:00Z"}
                                {"mode": "offset", "offset": "1h"}        an hour beside the time of the system
                                {"mode": "speed", "speed": 60}            an hour passes in a minute
                                {"mode": "real"}                          the time of the system
    POST /_noxu/clock/advance   {"by": "36h"} or {"to": "2030-01-01T00:00:00Z"}

The answer is the state: `{"mode": "frozen", "now": "…", "offset": seconds, "speed": 0.0, "sleepers": 3, "due": "…"}`. Times
are RFC 3339. A clock that a program has given to its server is that program's: it is read, but neither set nor advanced.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from noxu.api.errors import ApiError, bad_request
from noxu.clock import MODES, AdjustableClock, Clock, ClockError
from noxu.control.arguments import DURATION, NUMBER, TIME, Argument, duration, one_of, time
from noxu.control.calls import ControlCall, ControlRoute
from noxu.control.settling import hasten, settled
from noxu.controllers.controller import Reconciler
from noxu.features import meant
from noxu.go.time import format_time
from noxu.values import Object

_FIELDS: Final[Mapping[str, Sequence[str]]] = {
    "real": (),
    "frozen": ("at",),
    "offset": ("offset",),
    "speed": ("speed", "at"),
}
_SETTERS: Final[Mapping[str, Callable[[AdjustableClock, Mapping[str, Any]], None]]] = {
    "real": lambda clock, _: clock.set_real(),
    "frozen": lambda clock, wanted: clock.freeze(wanted.get("at")),
    "offset": lambda clock, wanted: clock.set_offset(wanted["offset"]),
    "speed": lambda clock, wanted: clock.set_speed(wanted["speed"], wanted.get("at")),
}
_REQUIRED: Final = ("offset", "speed")


def state(clock: Clock) -> Object:
    """How the clock is set; of a clock that a program has given: what it shows."""
    if not isinstance(clock, AdjustableClock):
        return {"mode": "given", "now": format_time(clock.now())}
    current = clock.state
    shown: Object = {
        "mode": current.mode,
        "now": format_time(current.now),
        "offset": round(current.offset, 3) + 0.0,  # no -0.0
        "speed": current.speed,
        "sleepers": current.sleepers,
    }
    return shown if current.due is None else {**shown, "due": format_time(current.due)}


def set_clock(clock: Clock, wanted: Mapping[str, Any]) -> Object:
    """Set the mode, and return the new state. Fields that are None are absent. Raises ApiError."""
    own, mode = _adjustable(clock), str(wanted["mode"])
    fields = {name: value for name, value in wanted.items() if value is not None and name != "mode"}
    for name in fields:
        if name not in _FIELDS[mode]:
            has = f"it has {', '.join(_FIELDS[mode])}" if _FIELDS[mode] else "it has no further fields"
            raise bad_request(f'the mode {mode} has no "{name}": {has}')
    for name in _REQUIRED:
        if name in _FIELDS[mode] and name not in fields:
            raise bad_request(f'the mode {mode} needs "{name}"')
    try:
        _SETTERS[mode](own, fields)
    except ClockError as error:
        raise bad_request(str(error)) from None
    return state(own)


async def advance(
    clock: Clock, controllers: Sequence[Reconciler[Any]], *, by: float | None = None, to: datetime | None = None
) -> Object:
    """Move ahead by seconds, or to a time. What becomes due has happened when this returns. Raises ApiError.

    What follows from earlier writes happens before: it has the time that is now.

    The state, and in `woken` how many sleepers have woken.
    """
    own = _adjustable(clock)
    if (by is None) == (to is None):
        raise bad_request('write how far, {"by": "1h"}, or to which time, {"to": "2030-01-01T00:00:00Z"}')
    await settled(controllers)  # what was written before this has its effects at its own time
    seconds = by if by is not None else (to - own.now()).total_seconds() if to is not None else 0.0
    try:
        woken = await own.advance(seconds, partial(settled, controllers))
    except ClockError as error:
        raise bad_request(str(error)) from None
    hasten(controllers, seconds)
    await settled(controllers)
    return {**state(own), "woken": woken}


def _adjustable(clock: Clock) -> AdjustableClock:
    if not isinstance(clock, AdjustableClock):
        raise ApiError(409, "the clock of this server is that of the program that started it: set it there", "Conflict")
    return clock


# -- texts of the command line ----------------------------------------------------------------------------------------


def parsed(text: str) -> dict[str, Any]:
    """What `--clock` sets: `real`, `frozen`, `frozen=TIME`, `offset=1h`, `offset=-1h`, `speed=60`. Raises ValueError."""
    mode, _, value = text.partition("=")
    if mode not in MODES:
        raise ValueError(f"{mode} is none of {', '.join(MODES)}{meant(mode, MODES)}")
    if not value:
        return {"mode": mode}
    if mode == "speed":
        try:
            return {"mode": mode, "speed": float(value)}
        except ValueError:
            raise ValueError(f"{value} is not a number, such as speed=60") from None
    if mode == "offset":
        sign = -1.0 if value.startswith("-") else 1.0
        return {"mode": mode, "offset": sign * duration(value.removeprefix("-"))}
    return {"mode": mode, "at": time(value)}


def begin(clock: AdjustableClock, text: str) -> None:
    """Set the clock of a server that starts: it may begin in the past. Raises ValueError, ApiError."""
    wanted = parsed(text)
    if wanted["mode"] == "offset" and "offset" in wanted:
        clock.start_at(clock.now() + timedelta(seconds=wanted["offset"]))
    elif wanted["mode"] == "frozen" and "at" in wanted:
        clock.freeze()
        clock.start_at(wanted["at"])
    else:
        set_clock(clock, wanted)


# -- routes -----------------------------------------------------------------------------------------------------------


async def _read(call: ControlCall) -> Object:
    return state(call.plane.clock)


async def _set(call: ControlCall) -> Object:
    return set_clock(call.plane.clock, call.body)


async def _advance(call: ControlCall) -> Object:
    # in a task of its own: it comes to its end even if the client does not wait for it
    moved = asyncio.ensure_future(advance(call.plane.clock, call.plane.all_controllers, **call.body))
    return await asyncio.shield(moved)


PATH: Final = "/_noxu/clock"
ROUTES: Final = (
    ControlRoute("GET", PATH, _read, "Show how the clock is set."),
    ControlRoute(
        "PUT",
        PATH,
        _set,
        "Set the clock, not to an earlier time.",
        body={
            "mode": Argument(one_of(*MODES), "how object time passes", required=True),
            "at": Argument(TIME, "where it begins, in the modes frozen and speed (default: now)"),
            "offset": Argument(DURATION, "how far it is ahead, in the mode offset"),
            "speed": Argument(NUMBER, "how fast it passes, in the mode speed"),
        },
    ),
    ControlRoute(
        "POST",
        f"{PATH}/advance",
        _advance,
        "Move the clock ahead; what becomes due has happened when the answer comes.",
        body={
            "by": Argument(DURATION, "how far"),
            "to": Argument(TIME, "to which time"),
        },
    ),
)
