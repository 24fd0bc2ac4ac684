"""Ranges of costs, with arithmetic that saturates."""

from __future__ import annotations

from noxu.cel.cost.function_estimates import EMPTY_UNION, NOTHING, ONE, UNKNOWN, Range, total
from tests.rows import rows

MAX = 2**64 - 1
ROWS = [
    ("sums", Range(1, 2).plus(Range(3, 4)), Range(4, 6)),
    ("sums saturate", Range(1, MAX).plus(ONE), Range(2, MAX)),
    ("products", Range(1, 2).by(Range(3, 4)), Range(3, 8)),
    ("products saturate", UNKNOWN.by(UNKNOWN), UNKNOWN),
    ("factors round up", Range(1, 11).times(0.1), Range(1, 2)),
    ("factors saturate", UNKNOWN.times(2.0), UNKNOWN),
    ("a factor below one of everything", Range(0, MAX).times(0.1), Range(0, 1844674407370955264)),
    ("unions", Range(1, 2).union(Range(0, 1)), Range(0, 2)),
    ("the union of nothing", EMPTY_UNION.union(Range(3, 4)), Range(3, 4)),
    ("totals", total([ONE, Range(0, 5)]), Range(1, 6)),
    ("the total of nothing", total([]), NOTHING),
]


@rows(("found", "expected"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_ranges(found: Range, expected: Range) -> None:
    assert found == expected
