"""Ranges of costs and sizes, with arithmetic that saturates at 2^64-1 as upstream's does."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Final, NamedTuple

from noxu.cel.values.numbers import MAX_UINT64

_TWO_64: Final = 2.0**64


class Range(NamedTuple):
    """A cost or a size: at least `low`, at most `high`."""

    low: int
    high: int

    def plus(self, other: Range) -> Range:
        return Range(min(self.low + other.low, MAX_UINT64), min(self.high + other.high, MAX_UINT64))

    def by(self, other: Range) -> Range:
        return Range(min(self.low * other.low, MAX_UINT64), min(self.high * other.high, MAX_UINT64))

    def times(self, factor: float) -> Range:
        return Range(_times(self.low, factor), _times(self.high, factor))

    def union(self, other: Range) -> Range:
        return Range(min(self.low, other.low), max(self.high, other.high))


def _times(value: int, factor: float) -> int:
    """`value` × `factor`, rounded up. Computed in floats, because upstream does."""
    as_float = float(value)
    if as_float > 0 and factor > 0 and as_float > _TWO_64 / factor:
        return MAX_UINT64
    product = ceil(as_float * factor)
    return MAX_UINT64 if product >= _TWO_64 else product


NOTHING: Final = Range(0, 0)
ONE: Final = Range(1, 1)
UNKNOWN: Final = Range(0, MAX_UINT64)
EMPTY_UNION: Final = Range(MAX_UINT64, 0)
"""The union of no ranges."""


def fixed(value: int) -> Range:
    return Range(value, value)


def total(costs: Sequence[Range]) -> Range:
    result = NOTHING
    for cost in costs:
        result = result.plus(cost)
    return result
