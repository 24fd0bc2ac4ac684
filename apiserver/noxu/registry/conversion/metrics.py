"""The numbers of conversion webhooks (apiextensions-apiserver's pkg/apiserver/conversion/metrics.go).

Functions of this process that convert count like webhooks.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Final

from noxu.instruments import Counter, Family, Histogram, exponential

_SECONDS: Final = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 45, 60)
CALL_FAILED: Final = "conversion_webhook_call_failure"
BAD_ANSWER: Final = "conversion_webhook_malformed_response_failure"


class ConversionState:
    """The state of one conversion."""

    failure = CALL_FAILED
    """The type of a failure now."""

    def answered(self) -> None:
        """The webhook has answered."""
        self.failure = BAD_ANSWER  # what fails from now on is the answer's fault


class ConversionMetrics:
    """The instruments of the converters of one server."""

    def __init__(self) -> None:
        self._conversions = Histogram(
            "apiserver_crd_conversion_webhook_duration_seconds",
            "CRD webhook conversion duration in seconds",
            ("crd_name", "from_version", "to_version", "succeeded"),
            exponential(0.001, 2, 15),
        )
        self._requests = Counter(
            "apiserver_conversion_webhook_request_total",
            "Counter for conversion webhook requests with success/failure and failure error type",
            "result",
            "failure_type",
        )
        self._request_seconds = Histogram(
            "apiserver_conversion_webhook_duration_seconds",
            "Conversion webhook request latency",
            ("result", "failure_type"),
            _SECONDS,
        )

    @contextlib.contextmanager
    def conversion(self, definition: str, source: str, target: str) -> Iterator[ConversionState]:
        """Measure a conversion from one version to another. It fails if the body raises something."""
        state, start, succeeded = ConversionState(), time.perf_counter(), False
        try:
            yield state
            succeeded = True
        finally:
            seconds = time.perf_counter() - start
            result = ("success", "") if succeeded else ("failure", state.failure)
            self._conversions.observe((definition, source, target, str(succeeded).lower()), seconds)
            self._requests.add(result)
            self._request_seconds.observe(result, seconds)

    def families(self) -> list[Family]:
        return [metric.family() for metric in (self._conversions, self._requests, self._request_seconds)]
