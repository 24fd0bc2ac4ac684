"""The numbers of a work queue, with client-go's names (component-base's metrics/prometheus/workqueue)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

from noxu.instruments import Family, Kind, exponential

SECONDS: Final = exponential(10e-9, 10, 10)
_LABELS: Final = ("name",)


class QueueMetrics:
    """`adds` are the keys that became ready or were changed while they were processed, `retries` those that failed."""

    __slots__ = ("adds", "retries", "waited", "worked")

    def __init__(self) -> None:
        self.adds = 0
        self.retries = 0
        self.waited = [0.0] * (len(SECONDS) + 2)
        self.worked = [0.0] * (len(SECONDS) + 2)

    def taken(self, seconds: float) -> None:
        """A worker has taken a key that was ready for so long."""
        self.waited[bisect_left(SECONDS, seconds)] += 1
        self.waited[-1] += seconds

    def done(self, seconds: float) -> None:
        """A key was processed, which took so long."""
        self.worked[bisect_left(SECONDS, seconds)] += 1
        self.worked[-1] += seconds

    def families(self, name: str, depth: int, running: Sequence[float]) -> list[Family]:
        """`running` are the seconds for which each key that is being processed has been so."""
        rows: tuple[tuple[str, Kind, str, float | list[float]], ...] = (
            ("depth", "gauge", "Current depth of workqueue", depth),
            ("adds_total", "counter", "Total number of adds handled by workqueue", self.adds),
            (
                "queue_duration_seconds",
                "histogram",
                "How long in seconds an item stays in workqueue before being requested.",
                self.waited.copy(),
            ),
            (
                "work_duration_seconds",
                "histogram",
                "How long in seconds processing an item from workqueue takes.",
                self.worked.copy(),
            ),
            (
                "unfinished_work_seconds",
                "gauge",
                "How many seconds of work has done that is in progress and hasn't been observed by work_duration. Large "
                "values indicate stuck threads. One can deduce the number of stuck threads by observing the rate at which "
                "this increases.",
                sum(running),
            ),
            (
                "longest_running_processor_seconds",
                "gauge",
                "How many seconds has the longest running processor for workqueue been running.",
                max(running, default=0.0),
            ),
            ("retries_total", "counter", "Total number of retries handled by workqueue", self.retries),
        )
        return [
            Family(f"workqueue_{key}", kind, text, _LABELS, [((name,), number)], SECONDS if kind == "histogram" else ())
            for key, kind, text, number in rows
        ]
