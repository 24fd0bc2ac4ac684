"""The text of /metrics, from families of numbers: Prometheus' text format, and OpenMetrics for clients that accept it.

The library is imported when something asks for metrics for the first time. `render` takes as long as there are series, so
it belongs in a thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Final, NamedTuple

from noxu.instruments import Family
from noxu.observability import health
from noxu.releases import NEWEST

if TYPE_CHECKING:
    from prometheus_client.core import Metric

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
OPEN_METRICS: Final = "application/openmetrics-text"
_OPEN_METRICS_CONTENT_TYPE: Final = f"{OPEN_METRICS}; version=1.0.0; charset=utf-8"
_TOTAL: Final = "_total"

STARTED: Final = "process_start_time_seconds"
"""The only metric of the process that /metrics/slis has, too."""


class MetricsText(NamedTuple):
    body: bytes
    content_type: str


def render(families: Sequence[Family], accept: str, process: str = "") -> MetricsText:
    """The text of families, and of the metrics of this process whose names begin with `process`.

    `accept` is the header Accept.
    """
    from prometheus_client import exposition
    from prometheus_client.openmetrics import exposition as openmetrics

    metrics = _Metrics(families, process)
    if any(part.partition(";")[0].strip() == OPEN_METRICS for part in accept.split(",")):
        return MetricsText(openmetrics.generate_latest(metrics), _OPEN_METRICS_CONTENT_TYPE)  # type: ignore[no-untyped-call]
    text: bytes = exposition.generate_latest(metrics)
    for name in metrics.without_total:
        # The library has no counters with such names: those of OpenMetrics end in _total.
        text = text.replace(f"# TYPE {name} untyped\n".encode(), f"# TYPE {name} counter\n".encode())
    return MetricsText(text, CONTENT_TYPE)


class _Metrics:
    """A collector for prometheus_client."""

    def __init__(self, families: Sequence[Family], process: str) -> None:
        self._families = families
        self._process = process
        self.without_total = [
            family.name for family in families if family.kind == "counter" and not family.name.endswith(_TOTAL)
        ]

    def collect(self) -> Iterator[Metric]:
        from prometheus_client import ProcessCollector

        yield from map(_metric, self._families)
        of_process: Iterable[Metric] = ProcessCollector(registry=None).collect()
        yield from (metric for metric in of_process if metric.name.startswith(self._process))


def _metric(family: Family) -> Metric:
    from prometheus_client.core import Metric
    from prometheus_client.samples import Sample
    from prometheus_client.utils import floatToGoString

    name, kind = family.name, str(family.kind)
    if kind == "counter":
        kind, name = ("counter", name.removesuffix(_TOTAL)) if name.endswith(_TOTAL) else ("unknown", name)
    metric = Metric(name, family.help, kind)
    bounds = [floatToGoString(bound) for bound in (*family.buckets, float("inf"))]  # type: ignore[no-untyped-call]
    for values, number in family.numbers:
        labels = dict(zip(family.labels, values, strict=True))
        if isinstance(number, (int, float)):
            metric.samples.append(Sample(family.name, labels, number))
            continue
        *counts, total = number
        so_far = list(accumulate(counts))
        metric.samples += [
            Sample(f"{name}_bucket", {**labels, "le": bound}, count)
            for bound, count in zip(bounds, so_far, strict=True)
        ]
        metric.samples += [Sample(f"{name}_count", labels, so_far[-1]), Sample(f"{name}_sum", labels, total)]
    return metric


def build_info(own_version: str, release: int = NEWEST) -> Family:
    """kubernetes_build_info, which has what /version has."""
    version = health.version(own_version, release)
    labels = (
        "major",
        "minor",
        "gitVersion",
        "gitCommit",
        "gitTreeState",
        "buildDate",
        "goVersion",
        "compiler",
        "platform",
    )
    names = [_snake_case(label) for label in labels]
    help_ = (
        "A metric with a constant '1' value labeled by major, minor, git version, git commit, git tree state, build date, "
        "Go version, and compiler from which Kubernetes was built, and platform on which it is running."
    )
    return Family("kubernetes_build_info", "gauge", help_, names, [(tuple(version[label] for label in labels), 1.0)])


def _snake_case(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
