"""Instruments: counters and histograms as plain numbers, by the values of their labels.

Observing something adds to numbers in a dict, and nothing else, so that requests do not wait for metrics. A scrape copies
the numbers as families (`Family`), from which `observability.metrics` makes text.

An instrument keeps MAX_SERIES combinations of label values. Further ones are counted together under the value `other`, so
the memory is bounded whatever the names of webhooks and policies are.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

MAX_SERIES: Final = 2000
OTHER: Final = "other"

Labels = tuple[str, ...]
"""The values of labels, in the order of their names."""
Kind = Literal["counter", "gauge", "histogram"]


class Family(NamedTuple):
    """The numbers of one metric at one time.

    `numbers` are pairs of label values and a number; that of a histogram is a list: how many observations each bucket has
    of its own, how many exceed all of them, and their sum.
    """

    name: str
    kind: Kind
    help: str
    labels: Sequence[str]
    numbers: Sequence[tuple[Labels, float | Sequence[float]]]
    buckets: Sequence[float] = ()


def exponential(start: float, factor: float, count: int) -> tuple[float, ...]:
    """The upper bounds of buckets, each a multiple of the one before (client_golang's ExponentialBuckets)."""
    bounds = []
    for _ in range(count):
        bounds.append(start)
        start *= factor
    return tuple(bounds)


class Counter:
    """Numbers that grow."""

    def __init__(self, name: str, help: str, *labels: str) -> None:  # noqa: A002 - the field's name
        self.name = name
        self.help = help
        self.labels = labels
        self._values: dict[Labels, float] = {}

    def add(self, values: Labels, amount: float = 1) -> None:
        """Add to the number of these label values."""
        sums = self._values
        if values in sums:
            sums[values] += amount
            return
        if len(sums) >= MAX_SERIES:
            values = (OTHER,) * len(values)
        sums[values] = sums.get(values, 0) + amount

    def family(self) -> Family:
        return Family(self.name, "counter", self.help, self.labels, list(self._values.items()))


class Histogram:
    """Distributions of numbers over buckets, whose upper bounds are included."""

    def __init__(self, name: str, help: str, labels: Sequence[str], buckets: Sequence[float]) -> None:  # noqa: A002
        self.name = name
        self.help = help
        self.labels = labels
        self.buckets = tuple(buckets)
        self._values: dict[Labels, list[float]] = {}

    def observe(self, values: Labels, number: float) -> None:
        """Count a number under these label values."""
        counts = self._values.get(values) or self.series(values)
        counts[bisect_left(self.buckets, number)] += 1
        counts[-1] += number

    def series(self, values: Labels) -> list[float]:
        """The numbers of these label values, for `add_to`."""
        if values not in self._values:
            if len(self._values) >= MAX_SERIES:
                values = (OTHER,) * len(values)
            self._values.setdefault(values, [0.0] * (len(self.buckets) + 2))
        return self._values[values]

    def family(self) -> Family:
        numbers = [(values, counts.copy()) for values, counts in list(self._values.items())]
        return Family(self.name, "histogram", self.help, self.labels, numbers, self.buckets)


def merged(families: Sequence[Family]) -> Family:
    """Families of the same metric as one. Numbers with equal label values are added: a text must not have them twice."""
    sums: dict[Labels, float | Sequence[float]] = {}
    for family in families:
        for values, number in family.numbers:
            total = sums.get(values)
            sums[values] = number if total is None else _sum(total, number)
    return families[0]._replace(numbers=list(sums.items()))


def _sum(left: float | Sequence[float], right: float | Sequence[float]) -> float | list[float]:
    if isinstance(left, (int, float)) or isinstance(right, (int, float)):
        assert isinstance(left, (int, float))
        assert isinstance(right, (int, float))
        return left + right
    return [a + b for a, b in zip(left, right, strict=True)]
