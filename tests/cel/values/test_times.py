"""Durations and timestamps, as Go and as the formats of schemas read and print them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from noxu.cel.errors import CelError
from noxu.cel.values import times
from noxu.cel.values.times import Duration, Timestamp
from tests.rows import rows

S, M, H, D = 10**9, 60 * 10**9, 3600 * 10**9, 86400 * 10**9
MAX = 2**63 - 1

PRINTED = [
    (0, "0s"), (1, "0.000000001s"), (1_500, "0.0000015s"), (1_500_000, "0.0015s"), (S, "1s"), (90 * M, "5400s"),
    (-61 * S, "-61s"), (3_723_500_000_000, "3723.5s"), (-1, "-0.000000001s"), (999_999_999, "0.999999999s"),
]  # fmt: skip


@rows(("nanos", "text"), PRINTED, ids=[row[1] for row in PRINTED])
def test_a_duration_is_converted_to_a_string_in_seconds(nanos: int, text: str) -> None:
    assert str(Duration(nanos)) == text


@pytest.mark.parametrize(
    ("name", "value"), [("getHours", -1), ("getMinutes", -90), ("getSeconds", -5400), ("getMilliseconds", -5_400_000)]
)
def test_a_part_of_a_duration_is_all_of_it_in_that_unit(name: str, value: int) -> None:
    assert Duration(-90 * M).part(name) == value


TIMESTAMPS = [
    ("1970-01-01T00:00:00Z", (0, 0, 0), "1970-01-01T00:00:00Z"),
    ("2024-02-29T12:30:45.5Z", (1709209845, 500_000_000, 0), "2024-02-29T12:30:45.5Z"),
    ("2024-02-29T12:30:45+05:30", (1709190045, 0, 330), "2024-02-29T12:30:45+05:30"),
    ("2024-02-29T12:30:45-08:00", (1709238645, 0, -480), "2024-02-29T12:30:45-08:00"),
    ("1969-12-31T23:59:59.999999999Z", (-1, 999_999_999, 0), "1969-12-31T23:59:59.999999999Z"),
    ("0001-01-01T00:00:00Z", (times.MIN_SECONDS, 0, 0), "0001-01-01T00:00:00Z"),
    ("9999-12-31T23:59:59Z", (times.MAX_SECONDS, 0, 0), "9999-12-31T23:59:59Z"),
    ("0000-03-01T00:00:00Z", (times.MIN_SECONDS - 306 * 86400, 0, 0), "0000-03-01T00:00:00Z"),
]


@pytest.mark.parametrize(("text", "parts", "printed"), TIMESTAMPS, ids=[row[0] for row in TIMESTAMPS])
def test_a_timestamp_is_parsed_and_printed(text: str, parts: tuple[int, int, int], printed: str) -> None:
    moment = times.parse_timestamp(text)
    assert ((moment.seconds, moment.nanos, moment.zone), str(moment)) == (parts, printed)


def test_zones_do_not_matter_in_comparisons() -> None:
    here, there = (times.parse_timestamp(f"2024-01-01T1{hour}:00:00{zone}") for hour, zone in ((0, "Z"), (2, "+02:00")))
    assert here == there
    assert hash(here) == hash(there)


MOMENT = times.parse_timestamp("2024-02-29T23:30:45.5Z")
PARTS = [
    ("getFullYear", "", 2024), ("getMonth", "", 1), ("getDate", "", 29), ("getDayOfMonth", "", 28),
    ("getDayOfWeek", "", 4), ("getDayOfYear", "", 59), ("getHours", "", 23), ("getMinutes", "", 30),
    ("getSeconds", "", 45), ("getMilliseconds", "", 500), ("getHours", "UTC", 23), ("getHours", "+01:00", 0),
    ("getDate", "+01:00", 1), ("getMonth", "+01:00", 2), ("getHours", "-00:45", 22), ("getMinutes", "-00:45", 45),
    ("getHours", "5:00", 4), ("getHours", "Europe/Berlin", 0), ("getHours", "America/New_York", 18),
]  # fmt: skip


@rows(("name", "zone", "value"), PARTS, ids=[f"{row[0]} {row[1]}" for row in PARTS])
def test_a_part_of_a_timestamp(name: str, zone: str, value: int) -> None:
    assert MOMENT.part(name, zone) == value


@pytest.mark.parametrize(
    ("zone", "error"),
    [
        ("Nowhere/Else", "unknown time zone Nowhere/Else"),
        ("../etc", "time: invalid location name"),
        ("/etc", "time: invalid location name"),
        ("a:00", 'strconv.Atoi: parsing "a": invalid syntax'),
        ("1:", 'strconv.Atoi: parsing "": invalid syntax'),
        ("99999999999999999999:00", 'strconv.Atoi: parsing "99999999999999999999": value out of range'),
    ],
)
def test_a_zone_is_refused(zone: str, error: str) -> None:
    with pytest.raises(CelError) as caught:
        MOMENT.part("getHours", zone)
    assert caught.value.message == error


OVERFLOWS: list[tuple[str, Callable[[], object], str]] = [
    ("before the year 1", lambda: times.add(Timestamp(times.MIN_SECONDS), -1), "timestamp overflow"),
    ("after the year 9999", lambda: times.add(Timestamp(times.MAX_SECONDS), S), "timestamp overflow"),
    ("a difference of 300 years", lambda: times.difference(Timestamp(10**10), Timestamp(0)), "integer overflow"),
    ("a duration", lambda: times.nanos_in_range(MAX + 1), "integer overflow"),
]


@pytest.mark.parametrize(("run", "error"), [row[1:] for row in OVERFLOWS], ids=[row[0] for row in OVERFLOWS])
def test_overflows(run: Callable[[], object], error: str) -> None:
    with pytest.raises(CelError) as caught:
        run()
    assert caught.value.message == error


@pytest.mark.parametrize(
    ("text", "seconds"), [("2024-02-29", 1709164800), ("1970-01-01", 0), ("0001-01-01", times.MIN_SECONDS)]
)
def test_a_date_is_parsed(text: str, seconds: int) -> None:
    assert times.parse_date(text) == Timestamp(seconds)


def test_no_date_and_time_is_1970() -> None:
    assert times.parse_date_time("") == Timestamp(0)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1"), (1.5, "1.5"), (0.1, "0.1"), (1e21, "1000000000000000000000"), (1.5e-7, "0.00000015"),
        (-2.5e20, "-250000000000000000000"), (123456789.125, "123456789.125"), (0.0, "0"), (5e-324, f"0.{'0' * 323}5"),
    ],
)  # fmt: skip
def test_a_float_is_printed_without_an_exponent(value: float, text: str) -> None:
    assert times.plain_float(value) == text
