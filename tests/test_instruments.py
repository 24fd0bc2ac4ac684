"""Instruments: what they count, and that their memory is bounded."""

from __future__ import annotations

import pytest

from noxu import instruments
from noxu.instruments import MAX_SERIES, OTHER, Counter, Family, Histogram, exponential, merged


def test_a_counter_adds_by_its_labels() -> None:
    counter = Counter("calls_total", "Calls.", "name", "code")
    counter.add(("a", "200"))
    counter.add(("a", "200"), 2)
    counter.add(("b", "500"))
    assert counter.family() == Family(
        "calls_total", "counter", "Calls.", ("name", "code"), [(("a", "200"), 3), (("b", "500"), 1)]
    )


# a number, the buckets up to 1, 10 and infinity
OBSERVED = [(0.5, [1, 0, 0]), (1, [1, 0, 0]), (1.1, [0, 1, 0]), (10, [0, 1, 0]), (11, [0, 0, 1])]


@pytest.mark.parametrize(("number", "counts"), OBSERVED)
def test_the_upper_bound_of_a_bucket_is_part_of_it(number: float, counts: list[int]) -> None:
    histogram = Histogram("sizes", "Sizes.", ("name",), (1, 10))
    histogram.observe(("a",), number)
    assert histogram.family().numbers == [(("a",), [*counts, number])]


def test_a_family_does_not_change_afterwards() -> None:
    histogram = Histogram("sizes", "Sizes.", (), (1,))
    histogram.observe((), 1)
    family = histogram.family()
    histogram.observe((), 1)
    assert family.numbers == [((), [1, 0, 1])]


def test_further_names_are_counted_together() -> None:
    counter, histogram = Counter("c_total", "", "name"), Histogram("h", "", ("name",), (1,))
    for n in range(MAX_SERIES + 5):
        counter.add((str(n),))
        histogram.observe((str(n),), 1)
    counter.add(("0",))
    for family, expected in ((counter.family(), 5), (histogram.family(), [5, 0, 5])):
        numbers = dict(family.numbers)
        assert len(numbers) == MAX_SERIES + 1
        assert numbers[OTHER,] == expected
    assert dict(counter.family().numbers)["0",] == 2


def test_families_of_equal_metrics_are_one() -> None:
    counters = [Family("c", "counter", "", ("n",), [(("a",), n), ((str(n),), 1)]) for n in (2, 3)]
    assert merged(counters).numbers == [(("a",), 5), (("2",), 1), (("3",), 1)]
    histograms = [Family("h", "histogram", "", ("n",), [(("a",), [1, n, n])], (1,)) for n in (2, 3)]
    assert merged(histograms).numbers == [(("a",), [2, 5, 5])]


def test_the_bounds_are_those_of_upstream() -> None:
    assert exponential(1000, 10, 7)[-1] == 1e9
    assert instruments.exponential(10e-9, 10, 10)[:2] == (1e-08, 1e-07)
