"""Ages for people (upstream's k8s.io/apimachinery/pkg/util/duration), with two or three significant figures.

`42s`, `5m`, `5m30s`, `3h5m`, `26h`, `3d4h`, `200d`, `6y325d`, `11y`; `<invalid>` for a time two seconds or more in the
future, `<unknown>` without a time.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from noxu.go.time import unix_nanos

UNKNOWN: Final = "<unknown>"
INVALID: Final = "<invalid>"

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_SECOND: Final = 10**9
_MAX_DURATION: Final = 2**63 - 1  # the limit of Go's time.Since, 292 years
_ZERO_TIME: Final = unix_nanos("0001-01-01T00:00:00Z")


class Age(NamedTuple):
    """A text with the age of a time, which only the time of the request completes: `2 (5m ago)`."""

    time: str
    before: str = ""
    after: str = ""

    def at(self, now: datetime) -> str:
        """The text at a time."""
        return f"{self.before}{since(self.time, now)}{self.after}"


def since(text: str, now: datetime) -> str:
    """The age of an RFC 3339 time in a date cell. `""` and `null` are unknown, other text that Go cannot parse is invalid."""
    if text in ("", "null", "0001-01-01T00:00:00Z"):
        return UNKNOWN
    if len(text) == 20 and text[4] == text[7] == "-" and text[10] == "T" and text[13] == ":" and text[19] == "Z":
        try:
            return human((now - datetime.fromisoformat(text)) // _MICROSECOND * 1000)
        except ValueError:
            pass
    try:
        moment = unix_nanos(text)
    except ValueError:
        return INVALID
    if moment == _ZERO_TIME:
        return UNKNOWN
    return human((now - _EPOCH) // _MICROSECOND * 1000 - moment)


def human(nanoseconds: int) -> str:
    """A duration as text. Up to two seconds below zero are tolerated, because clocks may differ."""
    nanoseconds = min(nanoseconds, _MAX_DURATION)
    if nanoseconds <= -2 * _SECOND:
        return INVALID
    seconds = max(nanoseconds, 0) // _SECOND
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if seconds < 120:
        return f"{seconds}s"
    if minutes < 10:
        return _two(minutes, "m", seconds % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return _two(days, "d", hours % 24, "h")
    if days < 2 * 365:
        return f"{days}d"
    if days < 8 * 365:
        return _two(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _two(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"
