"""Durations as Go, and the format `duration` of schemas, read and print them."""

from __future__ import annotations

import contextlib

import pytest

from noxu.go.time import format_duration, parse_duration, parse_schema_duration
from tests.rows import rows
from tests.timing import cpu_seconds

S, M, H, D = 10**9, 60 * 10**9, 3600 * 10**9, 86400 * 10**9
MAX = 2**63 - 1

DURATIONS = [
    ("1s", S), ("1h30m", 90 * M), ("1.5s", 1_500_000_000), (".5s", 500_000_000), ("1.s", S), ("0", 0), ("-0", 0),
    ("-1s", -S), ("+2s", 2 * S), ("1µs", 1000), ("1μs", 1000), ("1us", 1000), ("7ns", 7), ("1s1s", 2 * S),
    ("0.000000001s", 1), ("0.0000000001s", 0), ("9223372036854775807ns", MAX), ("-9223372036854775808ns", -MAX - 1),
    ("1.0000000000000000000000000001s", S),
    ("1500ms", 1_500_000_000), ("2m3s", 2 * M + 3 * S), ("0h", 0), ("0.9223372036854775808ns", 0), ("0.99999999999999999999999h", H),
    ("0000000000000000000000000001s", S),
]  # fmt: skip


@rows(("text", "nanos"), DURATIONS, ids=[row[0] for row in DURATIONS])
def test_durations(text: str, nanos: int) -> None:
    assert parse_duration(text) == nanos


LOOSE = [
    ("Go's", "1h30m", 90 * M),
    ("days", "2 days", 2 * D),
    ("a short unit", "3d", 3 * D),
    ("weeks", "1w", 7 * D),
    ("any words that begin like a unit", "1 minute and 30 secs", M + 30 * S),
    ("in any case", "1 HOUR", H),
    ("anywhere in the text", "about 5 seconds, perhaps", 5 * S),
    ("microseconds", "10 microns", 10_000),
    ("an abbreviation", "2 hr", 2 * H),
    ("unknown units are skipped", "1 year 1 day", D),
    ("it wraps around", "300000000 weeks", (300_000_000 * 7 * D + 2**63) % 2**64 - 2**63),
    ("leading zeros", "0" * 5000 + "1 day", D),
]


@rows(("text", "nanos"), [row[1:] for row in LOOSE], ids=[row[0] for row in LOOSE])
def test_a_duration_is_parsed_as_formats_do(text: str, nanos: int) -> None:
    assert parse_schema_duration(text) == nanos


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "unable to parse  as duration"),
        ("soon", "unable to parse soon as duration"),
        ("1 year", "unable to parse 1 year as duration"),
        ("9223372036854775808 days", 'strconv.Atoi: parsing "9223372036854775808": value out of range'),
    ],
)
def test_text_is_no_duration_of_a_format(text: str, error: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the message is compared whole
        parse_schema_duration(text)
    assert str(caught.value) == error


@rows(
    ("text", "why"),
    [
        ("", 'invalid duration ""'),
        ("-", 'invalid duration "-"'),
        ("bad", 'invalid duration "bad"'),
        ("--1s", 'invalid duration "--1s"'),
        (".s", 'invalid duration ".s"'),
        ("5", 'missing unit in duration "5"'),
        ("1s2", 'missing unit in duration "1s2"'),
        ("1x", 'unknown unit "x" in duration "1x"'),
        ("1h 2m", 'unknown unit "h " in duration "1h 2m"'),
        ("1e3s", 'unknown unit "e" in duration "1e3s"'),
        ("9999999999h", 'invalid duration "9999999999h"'),
        ("9" * 5000 + "s", f'invalid duration "{"9" * 5000}s"'),
        ("1d", 'unknown unit "d" in duration "1d"'),
        ("s", 'invalid duration "s"'),
        ("1.2.3s", 'missing unit in duration "1.2.3s"'),
        ("9223372036854775808ns", 'invalid duration "9223372036854775808ns"'),
        ("-9223372036854775809ns", 'invalid duration "-9223372036854775809ns"'),
        ("9223372036854775807ns1ns", 'invalid duration "9223372036854775807ns1ns"'),
        ("1é", 'unknown unit "\\xc3\\xa9" in duration "1\\xc3\\xa9"'),
    ],
)
def test_malformed_durations(text: str, why: str) -> None:
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the message is compared whole
        parse_duration(text)
    assert str(error.value) == f"time: {why}"


PRINTED = [
    (0, "0s"), (1, "1ns"), (1_500, "1.5µs"), (1_500_000, "1.5ms"), (S, "1s"), (90 * M, "1h30m0s"), (-61 * S, "-1m1s"),
    (3_723_500_000_000, "1h2m3.5s"), (-1, "-1ns"), (999_999_999, "999.999999ms"),
]  # fmt: skip


@rows(("nanos", "text"), PRINTED, ids=[row[1] for row in PRINTED])
def test_durations_are_printed_as_go_does(nanos: int, text: str) -> None:
    assert format_duration(nanos) == text


@pytest.mark.slow
@pytest.mark.parametrize(
    "text", ["1" * 200_000, "1 " * 100_000, "1s" * 100_000, "0" * 200_000], ids=lambda text: text[:2]
)
def test_time_is_linear_in_the_length_of_a_text(text: str) -> None:
    def parse_both() -> None:
        for parse in (parse_duration, parse_schema_duration):
            with contextlib.suppress(ValueError):
                parse(text)

    assert cpu_seconds(parse_both) < 2  # 0.2 s
