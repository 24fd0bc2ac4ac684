"""Ages, as kubectl prints them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from noxu.go.time import unix_nanos
from noxu.tables.table import INVALID, UNKNOWN, human, since
from tests.rows import rows

NOW = datetime(2026, 11, 21, 12, 0, 0, 500_000, tzinfo=UTC)
SECOND, MINUTE, HOUR, DAY, YEAR = 1, 60, 3600, 86400, 365 * 86400


@rows(
    ("seconds", "words"),
    [
        (-2.0, INVALID),
        (-1.999, "0s"),
        (-1e9, INVALID),
        (0, "0s"),
        (0.999, "0s"),
        (1, "1s"),
        (119.9, "119s"),
        (2 * MINUTE, "2m"),
        (2 * MINUTE + 1, "2m1s"),
        (10 * MINUTE - 1, "9m59s"),
        (10 * MINUTE + 59, "10m"),
        (3 * HOUR - 1, "179m"),
        (3 * HOUR, "3h"),
        (3 * HOUR + 5 * MINUTE, "3h5m"),
        (8 * HOUR - 1, "7h59m"),
        (8 * HOUR + 59 * MINUTE, "8h"),
        (2 * DAY - 1, "47h"),
        (2 * DAY, "2d"),
        (2 * DAY + 3 * HOUR, "2d3h"),
        (8 * DAY - 1, "7d23h"),
        (8 * DAY + 5 * HOUR, "8d"),
        (2 * YEAR - 1, "729d"),
        (2 * YEAR, "2y"),
        (2 * YEAR + 3 * DAY, "2y3d"),
        (6 * YEAR + 325 * DAY, "6y325d"),
        (8 * YEAR - 1, "7y364d"),
        (8 * YEAR + 300 * DAY, "8y"),
        (1000 * YEAR, "292y"),
    ],
)
def test_a_duration_has_two_or_three_figures(seconds: float, words: str) -> None:
    assert human(int(seconds * 10**9)) == words


@rows(
    ("text", "words"),
    [
        ("2026-11-21T12:00:00Z", "0s"),
        ("2026-11-21T11:59:00Z", "60s"),
        ("2026-11-21T11:00:00Z", "60m"),
        ("2026-11-20T00:00:00Z", "36h"),
        ("2026-11-21T12:00:00+01:00", "60m"),
        ("2026-11-21T11:59:58.600Z", "1s"),
        ("2026-11-21T11:59:58,400Z", "2s"),
        ("2026-11-21T9:00:00Z", "3h"),
        ("2026-11-21T12:00:02Z", "0s"),
        ("2026-11-21T12:00:03Z", INVALID),
        ("2999-01-01T00:00:00Z", INVALID),
        ("1700-01-01T00:00:00Z", "292y"),
        ("0000-02-29T00:00:00Z", "292y"),
        ("0001-01-01T00:00:00Z", UNKNOWN),
        ("0001-01-01T01:00:00.0+01:00", UNKNOWN),
        ("", UNKNOWN),
        ("null", UNKNOWN),
        ("yesterday", INVALID),
        ("2026-11-21", INVALID),
        ("2026-11-21 12:00:00Z", INVALID),
        ("2026-11-21T12:00:00", INVALID),
        ("2026-02-30T12:00:00Z", INVALID),
        ("2026-W01-1T03:04:05Z", INVALID),
        ("2026-11-21T24:00:00Z", INVALID),
        ("٢٠٢٦-11-21T12:00:00Z", INVALID),
    ],
)
def test_the_age_shown_in_a_date_column(text: str, words: str) -> None:
    assert since(text, NOW) == words


def test_the_short_way_and_the_long_way_agree() -> None:
    for days in range(0, 4000, 37):
        moment = NOW - timedelta(days=days, seconds=days * 7)
        text = moment.strftime("%Y-%m-%dT%H:%M:%S")
        assert since(f"{text}Z", NOW) == since(f"{text}+00:00", NOW)


@pytest.mark.parametrize(
    ("text", "nanos"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1969-12-31T23:59:59.999999999Z", -1),
        ("2020-02-29T01:02:03.5+02:00", 1582930923_500_000_000),
        ("0000-12-31T00:00:00Z", -62135683200_000_000_000),
        ("9999-12-31T23:59:59-12:00", 253402343999_000_000_000),
    ],
)
def test_a_time_in_nanoseconds(text: str, nanos: int) -> None:
    assert unix_nanos(text) == nanos
