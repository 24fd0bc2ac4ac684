"""Durations and timestamps as Go's time package represents them.

A duration is an int64 of nanoseconds; a timestamp is seconds since 1970, nanoseconds, and the offset of a zone.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from noxu.cel.errors import CelError, shortened
from noxu.cel.memory import allocate_reading
from noxu.go import time as go_time
from noxu.go.text import quote
from noxu.go.time import SECOND
from noxu.values import MAX_INT64, MIN_INT64

MIN_SECONDS: Final = -62135596800  # 0001-01-01T00:00:00Z
MAX_SECONDS: Final = 253402300799  # 9999-12-31T23:59:59Z
_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()
_ERA_DAYS: Final = 146_097  # in 400 years, after which the calendar repeats


class Duration:
    __slots__ = ("nanos",)

    def __init__(self, nanos: int) -> None:
        self.nanos = nanos

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Duration) and self.nanos == other.nanos

    def __hash__(self) -> int:
        return hash((Duration, self.nanos))

    @property
    def seconds(self) -> float:
        return self._in(SECOND)

    def _in(self, unit: int) -> float:
        """Go's Seconds, Minutes and Hours: a float, rounded as Go rounds it."""
        whole, rest = divmod(abs(self.nanos), unit)
        value = whole + rest / unit
        return -value if self.nanos < 0 else value

    def part(self, name: str) -> int:
        """`getHours`, `getMinutes` …: the whole duration in that unit."""
        if name == "getMilliseconds":
            return _towards_zero(self.nanos, 10**6)
        return int(self._in({"getHours": 3600, "getMinutes": 60, "getSeconds": 1}[name] * SECOND))

    def __str__(self) -> str:
        return f"{plain_float(self.seconds)}s"


class Timestamp:
    """A point in time. `zone` is its offset from UTC in minutes, which matters for printing but not for comparisons."""

    __slots__ = ("nanos", "seconds", "zone")

    def __init__(self, seconds: int, nanos: int = 0, zone: int = 0) -> None:
        self.seconds = seconds
        self.nanos = nanos
        self.zone = zone

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Timestamp) and self.seconds == other.seconds and self.nanos == other.nanos

    def __hash__(self) -> int:
        return hash((self.seconds, self.nanos))

    @property
    def moment(self) -> int:
        """Nanoseconds since 1970."""
        return self.seconds * SECOND + self.nanos

    def __str__(self) -> str:
        """RFC 3339, with the fewest digits after the point: `2024-01-02T03:04:05.5+02:00`."""
        year, month, day, hour, minute, second = _civil(self.seconds + self.zone * 60)[:6]
        fraction = f".{self.nanos:09d}".rstrip("0") if self.nanos else ""
        sign, hours, minutes = ("-" if self.zone < 0 else "+"), *divmod(abs(self.zone), 60)
        zone = f"{sign}{hours:02d}:{minutes:02d}" if self.zone else "Z"
        return f"{year:04d}-{month:02d}-{day:02d}T{hour:02d}:{minute:02d}:{second:02d}{fraction}{zone}"

    def part(self, name: str, zone: str = "UTC") -> int:
        """`getFullYear`, `getMonth` … in a time zone, which is a name of the tz database or an offset (`+02:00`)."""
        local = self.seconds + _offset(zone, self.seconds)
        year, month, day, hour, minute, second, day_number = _civil(local)
        match name:
            case "getFullYear":
                return year
            case "getMonth":
                return month - 1
            case "getDayOfMonth":
                return day - 1
            case "getDate":
                return day
            case "getDayOfWeek":
                return (day_number + 4) % 7
            case "getDayOfYear":
                return day_number - _day_number(year, 1, 1)
            case "getHours":
                return hour
            case "getMinutes":
                return minute
            case "getSeconds":
                return second
            case _:
                return self.nanos // 10**6


def _day_number(year: int, month: int, day: int) -> int:
    """Days since 1970. Python's dates have the years 1 to 9999; others are shifted by whole eras of 400 years:

    year 0   →   date(400, …) less 1 era        year 10000   →   date(400, …) plus 24 eras
    """
    shifted, eras = (year, 0) if 1 <= year <= 9999 else (year % 400 + 400, year // 400 - 1)
    return date(shifted, month, day).toordinal() - _EPOCH_DAY + eras * _ERA_DAYS


def _civil(seconds: int) -> tuple[int, int, int, int, int, int, int]:
    """Year, month, day, hour, minute, second and days since 1970 of seconds since 1970."""
    days, rest = divmod(seconds, 86400)
    ordinal = days + _EPOCH_DAY
    eras = 0 if 1 <= ordinal <= date.max.toordinal() else (ordinal // _ERA_DAYS - 1)
    day = date.fromordinal(ordinal - eras * _ERA_DAYS)
    return day.year + eras * 400, day.month, day.day, rest // 3600, rest // 60 % 60, rest % 60, days


_MAX_ZONE: Final = 255  # characters of the name of a time zone, which is that of a file


def _offset(zone: str, seconds: int) -> int:
    """A zone's offset from UTC in seconds at that time. Raises CelError with Go's messages."""
    if zone in ("", "UTC", "Local"):
        return 0
    allocate_reading(zone)
    hours, colon, minutes = zone.partition(":")
    if colon:
        hour, minute = _atoi(hours), _atoi(minutes)
        return (hour * 60 - minute if zone[0] == "-" else hour * 60 + minute) * 60
    if ".." in zone or zone[0] in "/\\":
        raise CelError("time: invalid location name")
    if len(zone) > _MAX_ZONE:
        raise CelError(f"unknown time zone {shortened(zone)}")
    try:
        info = ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise CelError(f"unknown time zone {zone}") from None
    inside = min(max(seconds, MIN_SECONDS + 86400), MAX_SECONDS - 86400)
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=inside)
    offset = moment.astimezone(info).utcoffset()
    return int(offset.total_seconds()) if offset is not None else 0


def _atoi(text: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]+", text):
        raise CelError(f"strconv.Atoi: parsing {quote(shortened(text))}: invalid syntax")
    digits = text.lstrip("+-0") or "0"  # Python refuses to convert more than 4300 digits
    value = int(digits[:20]) * (-1 if text[0] == "-" else 1)
    if not MIN_INT64 <= value <= MAX_INT64:
        raise CelError(f"strconv.Atoi: parsing {quote(shortened(text))}: value out of range")
    return value


def parse_timestamp(text: str) -> Timestamp:
    """RFC 3339 as Go's time.Parse reads it. Raises ValueError with Go's message."""
    moment = go_time.unix_nanos(text)
    seconds, nanos = divmod(moment, SECOND)
    return Timestamp(seconds, nanos, _zone_of(text))


def parse_date_time(text: str) -> Timestamp:
    """A string of format `date-time`; the empty one is 1970 (strfmt.ParseDateTime). Raises ValueError."""
    if not text:
        return Timestamp(0)
    try:
        return parse_timestamp(text)
    except ValueError as error:  # upstream reports the layout that it tried last
        raise ValueError(str(error).replace("2006-01-02T15:04:05Z07:00", "2006-01-02T15:04:05")) from None


def parse_date(text: str) -> Timestamp:
    """A string of format `date`. Raises ValueError with Go's message."""
    day = go_time.parse_date(text)
    return Timestamp((day.toordinal() - _EPOCH_DAY - (0 if int(text[:4]) else _ERA_DAYS)) * 86400)


def _zone_of(text: str) -> int:
    if text[-1] == "Z":
        return 0
    hours, minutes = int(text[-5:-3]), int(text[-2:])
    return (hours * 60 + minutes) * (-1 if text[-6] == "-" else 1)


def in_range(seconds: int, nanos: int, zone: int) -> Timestamp:
    if not MIN_SECONDS <= seconds <= MAX_SECONDS:
        raise CelError("timestamp overflow")
    return Timestamp(seconds, nanos, zone)


def nanos_in_range(nanos: int) -> Duration:
    if not MIN_INT64 <= nanos <= MAX_INT64:
        raise CelError("integer overflow")
    return Duration(nanos)


def add(moment: Timestamp, nanos: int) -> Timestamp:
    seconds, rest = divmod(moment.moment + nanos, SECOND)
    return in_range(seconds, rest, moment.zone)


def difference(left: Timestamp, right: Timestamp) -> Duration:
    seconds = (left.seconds - right.seconds) * SECOND  # cel-go checks this before it adds the nanoseconds
    if not MIN_INT64 <= seconds <= MAX_INT64:
        raise CelError("integer overflow")
    return nanos_in_range(seconds + left.nanos - right.nanos)


def _towards_zero(value: int, unit: int) -> int:
    return -(-value // unit) if value < 0 else value // unit


def plain_float(value: float) -> str:
    """Go's FormatFloat(v, 'f', -1, 64): the fewest digits that identify the value, without an exponent.

    repr 1.5e-07  →  digits "15", point at -6  →  0.00000015
    repr 1.5e+16  →  digits "15", point at 17  →  15000000000000000
    """
    text = repr(value)
    if "e" not in text:
        return text.removesuffix(".0")
    sign = "-" if text.startswith("-") else ""
    mantissa, _, exponent = text.lstrip("-").partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = whole + fraction
    point = len(whole) + int(exponent)
    if point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    return f"{sign}{digits.ljust(point, '0')[:point]}" + (f".{digits[point:]}" if digits[point:].strip("0") else "")
