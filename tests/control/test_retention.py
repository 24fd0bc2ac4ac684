"""The oldest revision that is needed, round by round."""

from __future__ import annotations

import math

import pytest

from noxu.config import COMPACT_EVERY
from noxu.control.retention import Retention, history_of
from tests.rows import rows

MINUTE = 60.0


@rows(
    "text, seconds",
    [
        ("30m", 30 * MINUTE),
        ("1h30m", 90 * MINUTE),
        ("90s", 90.0),
        ("1d12h", 36 * 60 * MINUTE),
        ("all", math.inf),
        ("off", 0.0),
    ],
)
def test_how_long_history_is_kept(text: str, seconds: float) -> None:
    assert history_of(text) == seconds


@rows("text", ["", "0", "-5m", "30", "al", "ever"])
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(ValueError, match=r"history: '.*' is no duration, such as 30m, and not all or off"):
        history_of(text)


@rows(
    "seconds, newest, needed",
    [
        (COMPACT_EVERY, [10, 25, 40], [10, 25]),
        (1.0, [10, 25, 40], [10, 25]),
        (2 * COMPACT_EVERY, [10, 25, 25, 40], [0, 10, 25]),
        (2 * COMPACT_EVERY - 1, [10, 25, 40], [0, 10]),
        (math.inf, [10, 25, 40], [0, 0]),
    ],
)
def test_the_oldest_revision_that_is_needed(seconds: float, newest: list[int], needed: list[int]) -> None:
    retention = Retention(seconds)
    found = []
    for revision in newest:
        retention.end_round(revision)
        found.append(retention.oldest_needed())
    assert found[: len(needed)] == needed
