"""Schedules of CronJobs: five fields, or a macro such as `@hourly`; and names of time zones.

The grammar and the texts are those of github.com/robfig/cron/v3 (ParseStandard) and Go's time.LoadLocation:

    schedule  = [ ("TZ" | "CRON_TZ") "=" zone " " ] ( macro | minute hour day-of-month month day-of-week )
    macro     = "@yearly" | "@annually" | "@monthly" | "@weekly" | "@daily" | "@midnight" | "@hourly" | "@every " duration
    field     = range { "," range }
    range     = ( "*" | "?" | value [ "-" value ] ) [ "/" step ]

When a schedule is due next is in noxu.workloads.due_times.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from noxu.go.text import parse_int
from noxu.go.time import parse_duration

_MACROS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_EVERY: Final = "@every "
_FIELDS: Final = 5
_is_zone_part: Final = re.compile(r"[A-Za-z.\-_0-9+]{1,14}").fullmatch


class _Bounds(NamedTuple):
    lowest: int
    highest: int
    names: dict[str, int]


_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_BOUNDS: Final = (
    _Bounds(0, 59, {}),
    _Bounds(0, 23, {}),
    _Bounds(1, 31, {}),
    _Bounds(1, 12, {name: n for n, name in enumerate(_MONTHS, 1)}),
    _Bounds(0, 6, {name: n for n, name in enumerate(_DAYS)}),
)


class Schedule(NamedTuple):
    """The values of each field at which it is due.

    `every`: nanoseconds between two times, for `@every`; then the fields are empty. `zone`: "" if the text names none.
    `is_any_day`: the day of the month or that of the week is not restricted, so that a day has to be in both sets; if both
    are, one is enough.
    """

    minutes: frozenset[int] = frozenset()
    hours: frozenset[int] = frozenset()
    days: frozenset[int] = frozenset()
    months: frozenset[int] = frozenset()
    weekdays: frozenset[int] = frozenset()
    """0 is Sunday."""
    is_any_day: bool = False
    every: int = 0
    zone: str = ""


def schedule_error(text: str) -> str:
    """The error of a schedule, "" if it has none."""
    try:
        parse_schedule(text)
    except ValueError as error:
        return str(error)
    return ""


def parse_schedule(text: str) -> Schedule:
    """Raises ValueError."""
    zone = ""
    if text.startswith(("TZ=", "CRON_TZ=")):
        prefix, space, rest = text.partition(" ")
        zone = prefix.partition("=")[2]
        why = location_error(zone)
        if why or not space:
            raise ValueError(f"provided bad location {zone}: {why}")
        text = rest.strip()
    if text.startswith("@") and text not in _MACROS:
        return Schedule(every=_every(text), zone=zone)
    fields = _MACROS.get(text, text).split()
    if len(fields) != _FIELDS:
        raise ValueError(f"expected exactly {_FIELDS} fields, found {len(fields)}: [{' '.join(fields)}]")
    minutes, hours, days, months, weekdays = map(_parse_field, fields, _BOUNDS)
    return Schedule(
        minutes.values,
        hours.values,
        days.values,
        months.values,
        weekdays.values,
        days.is_any or weekdays.is_any,
        zone=zone,
    )


def _every(text: str) -> int:
    if not text.startswith(_EVERY):
        raise ValueError(f"unrecognized descriptor: {text}")
    try:
        return parse_duration(text.removeprefix(_EVERY))
    except ValueError as error:
        raise ValueError(f"failed to parse duration {text}: {error}") from None


class _Field(NamedTuple):
    values: frozenset[int]
    is_any: bool
    """It contains `*` or `?`."""


def _parse_field(field: str, bounds: _Bounds) -> _Field:
    ranges = [_parse_range(expression, bounds) for expression in filter(None, field.split(","))]
    return _Field(frozenset().union(*(found.values for found in ranges)), any(found.is_any for found in ranges))


def _parse_range(expression: str, bounds: _Bounds) -> _Field:
    limits, *steps = expression.split("/")
    first, *rest = limits.split("-")
    is_any = first in ("*", "?")
    if is_any:
        start, end = bounds.lowest, bounds.highest
    else:
        start = end = _value(first, bounds.names)
        if len(rest) > 1:
            raise ValueError(f"too many hyphens: {expression}")
        if rest:
            end = _value(rest[0], bounds.names)
    step = 1
    if len(steps) > 1:
        raise ValueError(f"too many slashes: {expression}")
    if steps:
        step = _number(steps[0])
        end = end if rest else bounds.highest
    if start < bounds.lowest:
        raise ValueError(f"beginning of range ({start}) below minimum ({bounds.lowest}): {expression}")
    if end > bounds.highest:
        raise ValueError(f"end of range ({end}) above maximum ({bounds.highest}): {expression}")
    if start > end:
        raise ValueError(f"beginning of range ({start}) beyond end of range ({end}): {expression}")
    if step == 0:
        raise ValueError(f"step of range should be a positive number: {expression}")
    return _Field(frozenset(range(start, end + 1, step)), is_any and step == 1)


def _value(text: str, names: dict[str, int]) -> int:
    number = names.get(text.lower())
    return _number(text) if number is None else number


def _number(text: str) -> int:
    try:
        number = parse_int(text)
    except ValueError as error:
        why = str(error).replace("strconv.ParseInt", "strconv.Atoi", 1)
        raise ValueError(f"failed to parse int from {text}: {why}") from None
    if number < 0:
        raise ValueError(f"negative number ({number}) not allowed: {text}")
    return number


def location_error(name: str) -> str:
    """time.LoadLocation's error, "" if there is none. Without a name it is UTC."""
    if name in ("", "UTC", "Local"):
        return ""
    if ".." in name.split("/") or name[0] in "/\\":
        return "time: invalid location name"
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return f"unknown time zone {name}"
    return ""


def zone_error(name: str) -> str:
    """The error of the `timeZone` of a CronJob, "" if it has none."""
    if not name:
        return "timeZone must be nil or non-empty string"
    for part in name.split("/"):
        if part in (".", "..") or part.startswith("-") or not _is_zone_part(part):
            return f"unknown time zone {name}"
    if name.lower() == "local":
        return "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
    return location_error(name)
