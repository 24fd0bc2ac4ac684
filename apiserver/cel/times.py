"""Durations and timestamps as Go's time package keeps them: int64 nanoseconds; seconds and nanoseconds with a zone."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from apiserver.api import gotime
from apiserver.api.gotext import quote
from apiserver.api.types import MAX_INT64, MIN_INT64
from apiserver.cel.errors import CelError

SECOND: Final = 10**9
MIN_SECONDS: Final = -62135596800  # 0001-01-01T00:00:00Z
MAX_SECONDS: Final = 253402300799  # 9999-12-31T23:59:59Z
_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()
_ERA_DAYS: Final = 146_097  # the calendar repeats every 400 years
_UNITS: Final = {
    "ns": 1, "us": 1000, "µs": 1000, "μs": 1000, "ms": 10**6, "s": SECOND, "m": 60 * SECOND, "h": 3600 * SECOND,
}  # fmt: skip
_DURATION: Final = re.compile(r"[+-]?(?:0|(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+)")
_AMOUNT: Final = re.compile(r"([0-9]*)(?:\.([0-9]*))?(ns|us|µs|μs|ms|s|m|h)")
_LOOSE_AMOUNT: Final = re.compile(r"([0-9]+)[\t\n\f\r ]*([A-Za-zµ]+)")
_LOOSE_UNITS: Final = (
    (("ns",), "nano", 1),
    (("us", "µs"), "micro", 1000),
    (("ms",), "milli", 10**6),
    (("s",), "sec", SECOND),
    (("m",), "min", 60 * SECOND),
    (("h", "hr"), "hour", 3600 * SECOND),
    (("d",), "day", 86400 * SECOND),
    (("w", "wk"), "week", 7 * 86400 * SECOND),
)


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
        """Go's Seconds, Minutes and Hours: floats, with their rounding."""
        whole, rest = divmod(abs(self.nanos), unit)
        value = whole + rest / unit
        return -value if self.nanos < 0 else value

    def part(self, name: str) -> int:
        """`getHours` and so on: the whole duration in that unit."""
        if name == "getMilliseconds":
            return _towards_zero(self.nanos, 10**6)
        return int(self._in({"getHours": 3600, "getMinutes": 60, "getSeconds": 1}[name] * SECOND))

    def __str__(self) -> str:
        return f"{plain_float(self.seconds)}s"


class Timestamp:
    """A moment. `zone` is its offset from UTC in minutes: it is kept for printing, and ignored in comparisons."""

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
        """RFC 3339, with as many digits as needed."""
        year, month, day, hour, minute, second = _civil(self.seconds + self.zone * 60)[:6]
        fraction = f".{self.nanos:09d}".rstrip("0") if self.nanos else ""
        sign, hours, minutes = ("-" if self.zone < 0 else "+"), *divmod(abs(self.zone), 60)
        zone = f"{sign}{hours:02d}:{minutes:02d}" if self.zone else "Z"
        return f"{year:04d}-{month:02d}-{day:02d}T{hour:02d}:{minute:02d}:{second:02d}{fraction}{zone}"

    def part(self, name: str, zone: str = "UTC") -> int:
        """`getFullYear` and so on, in a time zone: a name of the tz database or an offset (`+02:00`)."""
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
    """Days since 1970."""
    shifted, eras = (year, 0) if 1 <= year <= 9999 else (year % 400 + 400, year // 400 - 1)
    return date(shifted, month, day).toordinal() - _EPOCH_DAY + eras * _ERA_DAYS


def _civil(seconds: int) -> tuple[int, int, int, int, int, int, int]:
    days, rest = divmod(seconds, 86400)
    ordinal = days + _EPOCH_DAY
    eras = 0 if 1 <= ordinal <= date.max.toordinal() else (ordinal // _ERA_DAYS - 1)
    day = date.fromordinal(ordinal - eras * _ERA_DAYS)
    return day.year + eras * 400, day.month, day.day, rest // 3600, rest // 60 % 60, rest % 60, days


def _offset(zone: str, seconds: int) -> int:
    """The zone's offset from UTC in seconds at that time. Errors are Go's."""
    if zone in ("", "UTC", "Local"):
        return 0
    hours, colon, minutes = zone.partition(":")
    if colon:
        hour, minute = _atoi(hours), _atoi(minutes)
        return (hour * 60 - minute if zone[0] == "-" else hour * 60 + minute) * 60
    if ".." in zone or zone[0] in "/\\":
        raise CelError("time: invalid location name")
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
        raise CelError(f"strconv.Atoi: parsing {quote(text)}: invalid syntax")
    value = int(text)
    if not MIN_INT64 <= value <= MAX_INT64:
        raise CelError(f"strconv.Atoi: parsing {quote(text)}: value out of range")
    return value


def parse_duration(text: str) -> int:
    """Go's time.ParseDuration, in nanoseconds. Raises ValueError."""
    if not _DURATION.fullmatch(text):
        raise ValueError(text)
    total = 0
    for whole, fraction, unit in _AMOUNT.findall(text):
        factor = _UNITS[unit]
        total += int(whole or "0") * factor
        if fraction:
            total += _fraction(fraction, factor)
        if total > MAX_INT64 + 1:
            raise ValueError(text)
    if text.startswith("-"):
        return -total
    if total > MAX_INT64:
        raise ValueError(text)
    return total


def _fraction(digits: str, unit: int) -> int:
    """Go keeps as many digits as an int64 holds, and multiplies in floats."""
    value, scale = 0, 1.0
    for digit in digits:
        if value > MAX_INT64 // 10 or value * 10 + int(digit) > MAX_INT64:
            break
        value = value * 10 + int(digit)
        scale *= 10
    return int(float(value) * (float(unit) / scale))


def parse_schema_duration(text: str) -> int:
    """A string of format `duration`: Go's, or any amounts with units somewhere in the text (strfmt.ParseDuration)."""
    try:
        return parse_duration(text)
    except ValueError:
        pass
    total, found = 0, False
    for amount, unit in _LOOSE_AMOUNT.findall(text):
        factor = int(amount)
        if factor > MAX_INT64:
            raise ValueError(f'strconv.Atoi: parsing "{amount}": value out of range')
        lowered = unit.lower()
        for names, prefix, nanos in _LOOSE_UNITS:
            if lowered in names or lowered.startswith(prefix):
                found = True
                total += factor * nanos
    if not found:
        raise ValueError(f"unable to parse {text} as duration")
    return (total - MIN_INT64) % 2**64 + MIN_INT64  # it overflows silently


def parse_timestamp(text: str) -> Timestamp:
    """RFC 3339 as Go's time.Parse reads it. Raises ValueError with Go's message."""
    moment = gotime.unix_nanos(text)
    seconds, nanos = divmod(moment, SECOND)
    return Timestamp(seconds, nanos, _zone_of(text))


def parse_date_time(text: str) -> Timestamp:
    """A string of format `date-time`; the empty one is 1970 (strfmt.ParseDateTime). Raises ValueError."""
    if not text:
        return Timestamp(0)
    try:
        return parse_timestamp(text)
    except ValueError as error:  # what is told is the last layout tried
        raise ValueError(str(error).replace("2006-01-02T15:04:05Z07:00", "2006-01-02T15:04:05")) from None


def parse_date(text: str) -> Timestamp:
    """A string of format `date`. Raises ValueError with Go's message."""
    day = gotime.parse_date(text)
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
    seconds = (left.seconds - right.seconds) * SECOND  # checked on its own, before the nanoseconds
    if not MIN_INT64 <= seconds <= MAX_INT64:
        raise CelError("integer overflow")
    return nanos_in_range(seconds + left.nanos - right.nanos)


def _towards_zero(value: int, unit: int) -> int:
    return -(-value // unit) if value < 0 else value // unit


def go_duration(nanos: int) -> str:
    """Go's time.Duration.String: 1h2m3.5s, 1.5ms, 0s."""
    size, sign = abs(nanos), "-" if nanos < 0 else ""
    if not size:
        return "0s"
    for unit, name in ((1, "ns"), (10**3, "µs"), (10**6, "ms")):
        if size < min(unit * 1000, SECOND):
            return f"{sign}{_decimal(size, unit)}{name}"
    minutes, rest = divmod(size, 60 * SECOND)
    hours, minutes_left = divmod(minutes, 60)
    told = f"{_decimal(rest, SECOND)}s"
    if minutes:
        told = f"{minutes_left}m{told}"
    return f"{sign}{hours}h{told}" if hours else f"{sign}{told}"


def _decimal(size: int, unit: int) -> str:
    whole, fraction = divmod(size, unit)
    digits = str(fraction + unit)[1:].rstrip("0")
    return f"{whole}.{digits}" if digits else str(whole)


def plain_float(value: float) -> str:
    """Go's FormatFloat(v, 'f', -1, 64): the shortest digits, never an exponent."""
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
