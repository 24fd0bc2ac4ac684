"""The numbers of requests to the store (apiserver's pkg/storage/etcd3/metrics): writes, since reads are from the cache.

They have the names of etcd's, which dashboards and alerts know, whichever store it is. A write ends when it is durable. One
that conflicts with another is no error.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Awaitable
from time import perf_counter
from typing import Final, Literal, TypeVar

from noxu.instruments import MAX_SERIES, Counter, Family, Histogram, Labels
from noxu.registry import storage_form
from noxu_storage.types import Conflict, Key, StoreError

T = TypeVar("T")
Operation = Literal["create", "update", "delete"]

BUCKETS: Final = (
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0
)  # fmt: skip
_FIRST: Final = BUCKETS[0]
LABELS: Final = ("operation", "group", "resource")


class StoreMetrics:
    """See the module."""

    def __init__(self) -> None:
        self._durations = Histogram(
            "etcd_request_duration_seconds",
            "Etcd request latency in seconds for each operation and object type.",
            LABELS,
            BUCKETS,
        )
        self._known: dict[tuple[Operation, str], list[float]] = {}
        self._errors = Counter(
            "etcd_request_errors_total", "Etcd failed request counts for each operation and object type.", *LABELS
        )

    async def measured(self, operation: Operation, key: Key, request: Awaitable[T]) -> T:
        """The result of a request to the store."""
        began = perf_counter()
        try:
            return await request
        except Conflict:
            raise
        except StoreError:
            self._errors.add(_labels(operation, key.collection))
            raise
        finally:
            seconds = perf_counter() - began
            series = self._known.get((operation, key.collection)) or self._series(operation, key.collection)
            series[0 if seconds <= _FIRST else bisect_left(BUCKETS, seconds)] += 1
            series[-1] += seconds

    def _series(self, operation: Operation, collection: str) -> list[float]:
        if len(self._known) >= MAX_SERIES:
            self._known.clear()
        found = self._known[operation, collection] = self._durations.series(_labels(operation, collection))
        return found

    def families(self) -> list[Family]:
        durations = self._durations.family()
        counts: list[tuple[Labels, float]] = [
            (values, sum(numbers[:-1])) for values, numbers in durations.numbers if not isinstance(numbers, float)
        ]
        about = "Etcd request counts for each operation and object type."
        return [durations, Family("etcd_requests_total", "counter", about, LABELS, counts), self._errors.family()]


def _labels(operation: Operation, collection: str) -> Labels:
    group, _, plural = storage_form.group_and_plural(collection).partition("/")
    return operation, group, plural
