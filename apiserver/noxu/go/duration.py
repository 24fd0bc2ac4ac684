"""Durations as Go's time package reads and prints them, and as go-openapi's strfmt reads those of schemas.

A duration is an int64 of nanoseconds.
"""

from __future__ import annotations

import re
from typing import Final

from noxu.expressions import expression
from noxu.go.time import quote
from noxu.values import MAX_INT64, MIN_INT64

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
        raise _error("invalid duration", text)
    total = position = 0
    while position < len(terms):
        term = _TERM.match(terms, position)
        assert term is not None, "the pattern matches any text"
        whole, fraction, unit = term[1], (term[2] or ".")[1:], term[3]
        if terms[position] not in "0123456789" and not fraction:
            raise _error("invalid duration", text)
        if len(whole) > _MAX_DIGITS or int(whole or 0) > _LARGEST:
            raise _error("invalid duration", text)
        if not unit:
            raise _error("missing unit in duration", text)
        if unit not in _UNITS:
            raise _error(f"unknown unit {quote(unit)} in duration", text)
        total += int(whole or 0) * _UNITS[unit] + _fraction(fraction, _UNITS[unit])
        if total > _LARGEST:
            raise _error("invalid duration", text)
        position = term.end()
    if negative:
        return -total
    if total > MAX_INT64:
        raise _error("invalid duration", text)
    return total


def _error(message: str, text: str) -> ValueError:
    return ValueError(f"time: {message} {quote(text)}")


def _fraction(digits: str, unit: int) -> int:
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
            return f"{sign}{_decimal(size, unit)}{name}"
    minutes, rest = divmod(size, MINUTE)
    hours, minutes_left = divmod(minutes, 60)
    text = f"{_decimal(rest, SECOND)}s"
    if minutes:
        text = f"{minutes_left}m{text}"
    return f"{sign}{hours}h{text}" if hours else f"{sign}{text}"


def _decimal(size: int, unit: int) -> str:
    """`size` in `unit`s without trailing zeros: _decimal(1500, 1000) → `1.5`."""
    whole, fraction = divmod(size, unit)
    digits = str(fraction + unit)[1:].rstrip("0")
    return f"{whole}.{digits}" if digits else str(whole)
