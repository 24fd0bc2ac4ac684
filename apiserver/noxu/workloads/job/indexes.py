"""Sets of completion indexes, as the status of an indexed Job has them: `1,3-5,7` (indexed_job_utils.go).

A set is a sequence of closed intervals in increasing order, which neither overlap nor touch.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import TypeAlias

Intervals: TypeAlias = Sequence[tuple[int, int]]
"""The first and the last index of each interval."""


def parse(text: str, completions: int) -> Intervals:
    """The indexes below `completions` of a text. Parts that are not numbers are skipped."""
    found = []
    for part in filter(None, text.split(",")):
        limits = part.split("-")
        try:
            first, last = int(limits[0]), int(limits[1]) if len(limits) > 1 else int(limits[0])
        except ValueError:
            continue
        if first >= completions:
            break
        found.append((first, min(last, completions - 1)))
    return merged(found)


def text_of(intervals: Intervals) -> str:
    """Two indexes in a row are no range: `1,2`."""
    return ",".join(
        str(first) if first == last else f"{first}{',' if last == first + 1 else '-'}{last}"
        for first, last in intervals
    )


def of(indexes: Iterable[int]) -> Intervals:
    return merged([(index, index) for index in indexes])


def merged(*sets: Intervals) -> Intervals:
    """The indexes that are in any of the sets."""
    result: list[tuple[int, int]] = []
    for first, last in sorted(chain.from_iterable(sets)):
        if result and first <= result[-1][1] + 1:
            result[-1] = (result[-1][0], max(result[-1][1], last))
        else:
            result.append((first, last))
    return result


def total(intervals: Intervals) -> int:
    return sum(last - first + 1 for first, last in intervals)


def contains(intervals: Intervals, index: int) -> bool:
    at = bisect_left(intervals, index, key=lambda interval: interval[1])
    return at < len(intervals) and intervals[at][0] <= index


def common(left: Intervals, right: Intervals) -> int:
    """The number of indexes that are in both sets."""
    found = i = j = 0
    while i < len(left) and j < len(right):
        found += max(0, min(left[i][1], right[j][1]) - max(left[i][0], right[j][0]) + 1)
        if left[i][1] < right[j][1]:
            i += 1
        else:
            j += 1
    return found


def first_missing(intervals: Intervals, count: int, completions: int) -> list[int]:
    """The `count` lowest indexes below `completions` that are not in the set; fewer, if there are fewer."""
    result: list[int] = []
    candidate = 0
    for first, last in (*intervals, (completions, completions)):
        result += range(candidate, min(first, completions, candidate + count - len(result)))
        candidate = max(candidate, last + 1)
        if len(result) >= count:
            break
    return result
