"""The numbers of watches (apiserver's pkg/endpoints/metrics and pkg/storage/cacher/metrics).

A stream counts into lists of its own resource (`Sent`), so an event costs no look-up.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final, NamedTuple

from noxu.instruments import Counter, Family, Histogram, exponential
from noxu.registry.resource import Resource

SIZES: Final = exponential(1024, 2, 8)
_LABELS: Final = ("group", "version", "resource")


class Sizes(NamedTuple):
    """Those of encoded events: the bucket of each, and all bytes."""

    buckets: list[int]
    total: int


def sizes_of(frames: Sequence[bytes]) -> Sizes:
    sizes = [len(frame) for frame in frames]
    return Sizes([bisect_left(SIZES, size) for size in sizes], sum(sizes))


class Sent:
    """The events sent to the watches of a resource."""

    __slots__ = ("_initial", "_of", "_sizes", "_terminated")

    def __init__(self, of: tuple[str, str], sizes: list[float], initial: Counter, terminated: Counter) -> None:
        self._of = of
        self._sizes = sizes
        self._initial = initial
        self._terminated = terminated

    def events(self, measured: Sizes) -> None:
        """Encoded events were sent."""
        sizes = self._sizes
        for bucket in measured.buckets:
            sizes[bucket] += 1
        sizes[-1] += measured.total

    def initial(self, count: int) -> None:
        """So many of them are the state at the beginning of a watch."""
        self._initial.add(self._of, count)

    def terminated(self) -> None:
        """A watch ended because its client does not read."""
        self._terminated.add(self._of)


class WatchMetrics:
    """The instruments of the watches of one server."""

    def __init__(self) -> None:
        self._sizes = Histogram(
            "apiserver_watch_events_sizes", "Watch event size distribution in bytes", _LABELS, SIZES
        )
        self._initial = Counter(
            "apiserver_init_events_total",
            "Counter of init events processed in watch cache broken by resource type.",
            "group",
            "resource",
        )
        self._terminated = Counter(
            "apiserver_terminated_watchers_total",
            "Counter of watchers closed due to unresponsiveness broken by resource type.",
            "group",
            "resource",
        )

    def of(self, resource: Resource) -> Sent:
        """Where a watch of this resource counts."""
        sizes = self._sizes.series((resource.group, resource.version, resource.plural))
        return Sent((resource.group, resource.plural), sizes, self._initial, self._terminated)

    def families(self) -> list[Family]:
        sizes = self._sizes.family()
        counts = [(labels, float(sum(list(numbers)[:-1]))) for labels, numbers in sizes.numbers]  # type: ignore[arg-type]
        total = Family(
            "apiserver_watch_events_total", "counter", "Number of events sent in watch clients", _LABELS, counts
        )
        return [total, sizes, self._initial.family(), self._terminated.family()]
