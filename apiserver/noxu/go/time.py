"""Times and durations as Go's time package reads and writes them.

metav1.Time is in whole seconds, metav1.MicroTime in microseconds, both in UTC. `parse_time` and `unix_nanos` follow Go's
time.Parse with its RFC 3339 layout, error texts included.

A duration is an int64 of nanoseconds. `parse_schema_duration` reads those of schemas, as go-openapi's strfmt does.
"""

from __future__ import annotations

import calendar
import re
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Final

from noxu.expressions import expression
from noxu.values import MAX_INT64, MIN_INT64

SECONDS: Final = 0
MICRO: Final = 6
_LAYOUTS: Final = {SECONDS: "2006-01-02T15:04:05Z07:00", MICRO: "2006-01-02T15:04:05.000000Z07:00"}


def format_time(moment: datetime, digits: int = SECONDS) -> str:
    """A moment as `2006-01-02T15:04:05Z`, with microseconds if `digits` is MICRO."""
    utc = moment if moment.tzinfo is UTC else moment.astimezone(UTC)
    return utc.isoformat("T", "microseconds" if digits else "seconds").removesuffix("+00:00") + "Z"


def parse_time(text: str, digits: int = SECONDS) -> str:
    """An RFC 3339 text in the form of `format_time`. Raises ValueError with Go's message."""
    if not digits and is_normal_time(text):
        return text
    year, month, day, hour, minute, second, nanos, offset = _Parser(text, _LAYOUTS[digits]).parse()
    if offset:
        moment = datetime(max(year, 1), month, day, hour, minute, second, tzinfo=UTC)
        try:
            moment -= timedelta(minutes=offset)
        except OverflowError:
            raise ValueError(f'parsing time "{text}": year outside of range [0,9999]') from None
        year, month, day, hour, minute = moment.year, moment.month, moment.day, moment.hour, moment.minute
    fraction = f".{nanos // 1000:06d}" if digits else ""
    return f"{year:04d}-{month:02d}-{day:02d}T{hour:02d}:{minute:02d}:{second:02d}{fraction}Z"


def to_rfc3339_nano(text: str) -> tuple[str, int]:
    """(An RFC 3339 text in Go's layout RFC3339Nano, its offset from UTC in minutes). Raises ValueError with Go's message."""
    year, month, day, hour, minute, second, nanos, offset = _Parser(text, _LAYOUTS[SECONDS]).parse()
    fraction = f".{nanos:09d}".rstrip("0") if nanos else ""
    zone = f"{'-' if offset < 0 else '+'}{abs(offset) // 60:02d}:{abs(offset) % 60:02d}" if offset else "Z"
    return f"{year:04d}-{month:02d}-{day:02d}T{hour:02d}:{minute:02d}:{second:02d}{fraction}{zone}", offset


def unix_nanos(text: str) -> int:
    """An RFC 3339 text in nanoseconds since 1970. Raises ValueError with Go's message."""
    year, month, day, hour, minute, second, nanos, offset = _Parser(text, _LAYOUTS[SECONDS]).parse()
    days = date(year or 400, month, day).toordinal() - date(1970, 1, 1).toordinal()
    if not year:  # Go has a year 0; the calendar repeats every 400 years
        days -= 146_097
    return (((days * 24 + hour) * 60 + minute - offset) * 60 + second) * 10**9 + nanos


def parse_date(text: str) -> date:
    """A date in Go's layout 2006-01-02; year 0 is returned as 400. Raises ValueError with Go's message."""
    return _Parser(text, "2006-01-02").parse_date()


_normal: Final = expression(
    r"[0-9]{4}-(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)"
    r"T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z"
)


def is_normal_time(text: str) -> bool:
    """Whether a text certainly is a time as `format_time` writes it, in whole seconds. False for the 29th of February."""
    return len(text) == len("2006-01-02T15:04:05Z") and _is_normal_time(text)


@lru_cache(maxsize=1024)
def _is_normal_time(text: str) -> bool:
    """Cached: objects written in one second have the same time, which is read again and again."""
    return _normal.fullmatch(text) is not None


class _Parser:
    """One pass over the layout's elements; `rest` is the text that has not been read yet."""

    def __init__(self, text: str, layout: str) -> None:
        self.text = text
        self.layout = layout
        self.rest = text

    def parse_date(self) -> date:
        year, month, day = self.date()
        self.end(year, month, day)
        return date(year or 400, month, day)

    def parse(self) -> tuple[int, int, int, int, int, int, int, int]:
        year, month, day = self.date()
        self.literal("T")
        hour = self.number("15", high=23, name="hour", fixed=False)
        self.literal(":")
        minute = self.number("04", high=59, name="minute")
        self.literal(":")
        second = self.number("05", high=59, name="second")
        nanos = self.fraction()
        offset = self.zone()
        self.end(year, month, day)
        return year, month, day, hour, minute, second, nanos, offset

    def date(self) -> tuple[int, int, int]:
        year = self.year()
        self.literal("-")
        month = self.number("01", low=1, high=12, name="month")
        self.literal("-")
        return year, month, self.number("02")

    def end(self, year: int, month: int, day: int) -> None:
        if self.rest:
            raise self.out(f": extra text: {quote(self.rest)}")
        if not 1 <= day <= calendar.monthrange(year or 400, month)[1]:
            raise self.out(": day out of range")

    def bad(self, rest: str, element: str) -> ValueError:
        return ValueError(
            f"parsing time {quote(self.text)} as {quote(self.layout)}: cannot parse {quote(rest)} as {quote(element)}"
        )

    def out(self, message: str) -> ValueError:
        return ValueError(f"parsing time {quote(self.text)}{message}")

    def literal(self, char: str) -> None:
        if not self.rest.startswith(char):
            raise self.bad(self.rest, char)
        self.rest = self.rest[1:]

    def year(self) -> int:
        digits = self.rest[:4]
        if len(digits) < 4 or not (digits.isascii() and digits.isdigit()):
            raise self.bad(self.rest, "2006")
        self.rest = self.rest[4:]
        return int(digits)

    def number(self, element: str, *, low: int = 0, high: int = 99, name: str = "", fixed: bool = True) -> int:
        width = 2 if _digit(self.rest, 1) else 1
        if not _digit(self.rest, 0) or (fixed and width == 1):
            raise self.bad(self.rest, element)
        value = int(self.rest[:width])
        self.rest = self.rest[width:]
        if not low <= value <= high:
            raise self.out(f": {name} out of range")
        return value

    def fraction(self) -> int:
        if self.layout == _LAYOUTS[MICRO]:  # this layout requires exactly six digits
            digits = self.rest[1:7]
            if self.rest[:1] not in (".", ",") or len(digits) < 6 or not (digits.isascii() and digits.isdigit()):
                raise self.bad(self.rest, ".000000")
            self.rest = self.rest[7:]
            return int(digits) * 1000
        if self.rest[:1] not in (".", ",") or not _digit(self.rest, 1):
            return 0
        end = 2
        while _digit(self.rest, end):
            end += 1
        digits = self.rest[1:end]
        self.rest = self.rest[end:]
        return int(digits[:9].ljust(9, "0"))

    def zone(self) -> int:
        """The offset from UTC in minutes."""
        if self.rest.startswith("Z"):
            self.rest = self.rest[1:]
            return 0
        sign, hours, colon, minutes = self.rest[:1], self.rest[1:3], self.rest[3:4], self.rest[4:6]
        numeric = (hours + minutes).isascii() and (hours + minutes).isdigit() and len(hours + minutes) == 4
        if colon != ":" or sign not in ("+", "-") or not numeric:
            raise self.bad(self.rest, "Z07:00")
        if int(hours) > 24 or int(minutes) > 60:
            raise self.out(f": time zone offset {'hour' if int(hours) > 24 else 'minute'} out of range")
        self.rest = self.rest[6:]
        return (int(hours) * 60 + int(minutes)) * (-1 if sign == "-" else 1)


def _digit(text: str, position: int) -> bool:
    return text[position : position + 1] in "0123456789" and position < len(text)


def quote(text: str) -> str:
    """time.quote, for errors: control characters and everything outside ASCII as bytes."""
    out = []
    for char in text:
        if char in '"\\':
            out.append("\\" + char)
        elif " " <= char < "\x7f":
            out.append(char)
        else:
            out += [f"\\x{byte:02x}" for byte in char.encode("utf-8", "surrogatepass")]
    return '"' + "".join(out) + '"'


SECOND: Final = 10**9
MINUTE: Final = 60 * SECOND
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR

_LARGEST: Final = -MIN_INT64  # what Go's parser adds up before it applies the sign
_MAX_DIGITS: Final = 19  # of an int64
_UNITS: Final = {"ns": 1, "us": 1000, "µs": 1000, "μs": 1000, "ms": 10**6, "s": SECOND, "m": MINUTE, "h": HOUR}
_TERM: Final = expression(r"0*([0-9]*)(\.[0-9]*)?([^.0-9]*)", re.DOTALL)

_LOOSE_TERM: Final = expression(r"(?<![0-9])([0-9]++)[\t\n\f\r ]*+([A-Za-zµ]+)")  # possessive: linear time
_LOOSE_UNITS: Final = (  # abbreviations, the start of the unit's name
    (("ns",), "nano", 1),
    (("us", "µs"), "micro", 1000),
    (("ms",), "milli", 10**6),
    (("s",), "sec", SECOND),
    (("m",), "min", MINUTE),
    (("h", "hr"), "hour", HOUR),
    (("d",), "day", DAY),
    (("w", "wk"), "week", 7 * DAY),
)


def parse_duration(text: str) -> int:
    """time.ParseDuration: `1h30m` → 5400·10⁹, `-1.5ms` → -1500000. Raises ValueError with Go's message."""
    negative, terms = text.startswith("-"), text[1:] if text[:1] in ("-", "+") else text
    if terms == "0":
        return 0
    if not terms:
        raise _duration_error("invalid duration", text)
    total = position = 0
    while position < len(terms):
        term = _TERM.match(terms, position)
        assert term is not None, "the pattern matches any text"
        whole, fraction, unit = term[1], (term[2] or ".")[1:], term[3]
        if terms[position] not in "0123456789" and not fraction:
            raise _duration_error("invalid duration", text)
        if len(whole) > _MAX_DIGITS or int(whole or 0) > _LARGEST:
            raise _duration_error("invalid duration", text)
        if not unit:
            raise _duration_error("missing unit in duration", text)
        if unit not in _UNITS:
            raise _duration_error(f"unknown unit {quote(unit)} in duration", text)
        total += int(whole or 0) * _UNITS[unit] + _duration_fraction(fraction, _UNITS[unit])
        if total > _LARGEST:
            raise _duration_error("invalid duration", text)
        position = term.end()
    if negative:
        return -total
    if total > MAX_INT64:
        raise _duration_error("invalid duration", text)
    return total


def _duration_error(message: str, text: str) -> ValueError:
    return ValueError(f"time: {message} {quote(text)}")


def _duration_fraction(digits: str, unit: int) -> int:
    """The nanoseconds of digits after a point. Go reads as many as an int64 holds, and multiplies as floats.

    _fraction("5", SECOND)   →   5 × (10⁹ / 10)   →   500000000
    """
    value, scale = 0, 1.0
    for digit in digits:
        if value > MAX_INT64 // 10 or value * 10 + int(digit) > _LARGEST:
            break
        value = value * 10 + int(digit)
        scale *= 10
    return int(float(value) * (float(unit) / scale))


def parse_schema_duration(text: str) -> int:
    """A string of format `duration` (strfmt.ParseDuration).

    Either as Go's ParseDuration, or any amounts with units somewhere in the text. A unit is one of the abbreviations, or any
    word that starts like its name:

        "1 day and 2 hours"   →   1 × day, 2 × hour
        "10 microns"          →   10 × micro

    Raises ValueError with upstream's message.
    """
    try:
        return parse_duration(text)
    except ValueError:
        pass
    total, found = 0, False
    for digits, word in _LOOSE_TERM.findall(text):
        significant = digits.lstrip("0")
        if len(significant) > _MAX_DIGITS or int(significant or 0) > MAX_INT64:
            raise ValueError(f'strconv.Atoi: parsing "{digits}": value out of range')
        unit = word.lower()
        for abbreviations, prefix, nanos in _LOOSE_UNITS:
            if unit in abbreviations or unit.startswith(prefix):
                found = True
                total += int(significant or 0) * nanos
    if not found:
        raise ValueError(f"unable to parse {text} as duration")
    return (total - MIN_INT64) % 2**64 + MIN_INT64  # upstream's int64 wraps around


def format_duration(nanos: int) -> str:
    """time.Duration.String: `1h2m3.5s`, `1.5ms`, `0s`."""
    size, sign = abs(nanos), "-" if nanos < 0 else ""
    if not size:
        return "0s"
    for unit, name in ((1, "ns"), (10**3, "µs"), (10**6, "ms")):
        if size < min(unit * 1000, SECOND):
            return f"{sign}{_duration_decimal(size, unit)}{name}"
    minutes, rest = divmod(size, MINUTE)
    hours, minutes_left = divmod(minutes, 60)
    text = f"{_duration_decimal(rest, SECOND)}s"
    if minutes:
        text = f"{minutes_left}m{text}"
    return f"{sign}{hours}h{text}" if hours else f"{sign}{text}"


def _duration_decimal(size: int, unit: int) -> str:
    """`size` in `unit`s without trailing zeros: _decimal(1500, 1000) → `1.5`."""
    whole, fraction = divmod(size, unit)
    digits = str(fraction + unit)[1:].rstrip("0")
    return f"{whole}.{digits}" if digits else str(whole)
