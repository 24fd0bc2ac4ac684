"""Durations as Go reads them; the rows were given to Go."""

from __future__ import annotations

import pytest

from apiserver.api.gotime import parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1s", 1), ("1h30m", 5400), ("1500ms", 1.5), ("1.5s", 1.5), (".5s", 0.5), ("1.s", 1), ("0", 0), ("-0", 0),
        ("-1s", -1), ("+2s", 2), ("1µs", 1e-6), ("1us", 1e-6), ("7ns", 7e-9), ("2m3s", 123),
    ],
)  # fmt: skip
def test_a_duration(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
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
    ],
)
def test_what_is_none(text: str, why: str) -> None:
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the message is compared whole
        parse_duration(text)
    assert str(error.value) == f"time: {why}"
