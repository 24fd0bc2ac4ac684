"""Times and dates as Go reads and writes them."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import pytest

from noxu.go.time import (
    MICRO,
    format_time,
    is_normal_time,
    parse_date,
    parse_time,
    unix_nanos,
)
from tests.rows import rows

MOMENT = datetime(2024, 5, 6, 7, 8, 9, 123_456, tzinfo=UTC)


@pytest.mark.parametrize(
    ("moment", "digits", "text"),
    [
        (MOMENT, 0, "2024-05-06T07:08:09Z"),
        (MOMENT, MICRO, "2024-05-06T07:08:09.123456Z"),
        (MOMENT.replace(microsecond=0), MICRO, "2024-05-06T07:08:09.000000Z"),
        (MOMENT.astimezone(timezone(timedelta(hours=2))), 0, "2024-05-06T07:08:09Z"),
    ],
)
def test_times_are_written_in_utc(moment: datetime, digits: int, text: str) -> None:
    assert format_time(moment, digits) == text


TIMES = [
    ("in its final form", "2024-05-06T07:08:09Z", "2024-05-06T07:08:09Z"),
    ("a fraction is dropped", "2024-05-06T07:08:09.999Z", "2024-05-06T07:08:09Z"),
    ("a comma is a point", "2024-05-06T07:08:09,5Z", "2024-05-06T07:08:09Z"),
    ("an hour of one digit", "2024-05-06T7:08:09Z", "2024-05-06T07:08:09Z"),
    ("a zone to the east", "2024-05-06T00:30:00+01:00", "2024-05-05T23:30:00Z"),
    ("a zone to the west", "2024-12-31T23:30:00-00:45", "2025-01-01T00:15:00Z"),
    ("a leap day", "2024-02-29T00:00:00Z", "2024-02-29T00:00:00Z"),
    ("the year 0", "0000-02-29T00:00:00Z", "0000-02-29T00:00:00Z"),
]


@pytest.mark.parametrize(("text", "normal"), [row[1:] for row in TIMES], ids=[row[0] for row in TIMES])
def test_times(text: str, normal: str) -> None:
    assert parse_time(text) == normal
    assert parse_time(normal) == normal
    assert is_normal_time(text) is (text == normal and "-29T" not in text)


def test_micro_times_have_six_digits() -> None:
    assert parse_time("2024-05-06T07:08:09.123456+01:00", MICRO) == "2024-05-06T06:08:09.123456Z"
    with pytest.raises(ValueError, match=r'cannot parse "Z" as ".000000"'):
        parse_time("2024-05-06T07:08:09Z", MICRO)


LAYOUT = '"2006-01-02T15:04:05Z07:00"'
MALFORMED_TIMES = [
    ("", f'parsing time "" as {LAYOUT}: cannot parse "" as "2006"'),
    ("24-01-01T00:00:00Z", f'parsing time "24-01-01T00:00:00Z" as {LAYOUT}: cannot parse "24-01-01T00:00:00Z" as "2006"'),
    ("2024-1-01T00:00:00Z", f'parsing time "2024-1-01T00:00:00Z" as {LAYOUT}: cannot parse "1-01T00:00:00Z" as "01"'),
    ("2024-13-01T00:00:00Z", 'parsing time "2024-13-01T00:00:00Z": month out of range'),
    ("2023-02-29T00:00:00Z", 'parsing time "2023-02-29T00:00:00Z": day out of range'),
    ("2024-01-01T24:00:00Z", 'parsing time "2024-01-01T24:00:00Z": hour out of range'),
    ("2024-01-01T00:00:60Z", 'parsing time "2024-01-01T00:00:60Z": second out of range'),
    ("2024-01-01T00:00:00", f'parsing time "2024-01-01T00:00:00" as {LAYOUT}: cannot parse "" as "Z07:00"'),
    ("2024-01-01T00:00:00+25:00", 'parsing time "2024-01-01T00:00:00+25:00": time zone offset hour out of range'),
    ("2024-01-01T00:00:00Zx", 'parsing time "2024-01-01T00:00:00Zx": extra text: "x"'),
    ("2024-01-01 00:00:00Z", f'parsing time "2024-01-01 00:00:00Z" as {LAYOUT}: cannot parse " 00:00:00Z" as "T"'),
    ("ä", f'parsing time "\\xc3\\xa4" as {LAYOUT}: cannot parse "\\xc3\\xa4" as "2006"'),
]  # fmt: skip


@rows(("text", "message"), MALFORMED_TIMES)
def test_malformed_times(text: str, message: str) -> None:
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the message is compared whole
        parse_time(text)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T00:00:01.5Z", 1_500_000_000),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1969-12-31T23:59:59Z", -1_000_000_000),
        ("0001-01-01T00:00:00Z", -62_135_596_800 * 10**9),
        ("0000-01-01T00:00:00Z", -62_167_219_200 * 10**9),
    ],
)
def test_nanoseconds_since_1970(text: str, nanoseconds: int) -> None:
    assert unix_nanos(text) == nanoseconds


def test_dates() -> None:
    assert parse_date("2024-02-29") == date(2024, 2, 29)
    assert parse_date("0000-02-29") == date(400, 2, 29)  # Python has no year 0
    with pytest.raises(ValueError, match='extra text: "T"'):
        parse_date("2024-02-29T")
