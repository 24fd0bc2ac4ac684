"""Spans are sent to a collector: OTLP over HTTP, by the SDK of OpenTelemetry (the extra `noxu[otel]`).

The SDK's BatchSpanProcessor sends them in a thread of its own, from a queue that drops what it has no room for. So a collector
that cannot be reached costs a request nothing; it is logged once, and again when spans arrive. At the end what waits is sent
within CLOSE_WITHIN.

What the file of --tracing-config-file does not say is what the SDK reads in its environment variables: OTEL_EXPORTER_OTLP_*,
OTEL_TRACES_SAMPLER, OTEL_RESOURCE_ATTRIBUTES, OTEL_SERVICE_NAME, OTEL_BSP_* and the limits of spans.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Final

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ParentBased, TraceIdRatioBased
from opentelemetry.trace import Tracer

from noxu.observability.tracing_configuration import TracingConfiguration

CLOSE_WITHIN: Final = 2.0  # seconds for the spans that wait
SERVICE: Final = "noxu"

log: Final = logging.getLogger("noxu")


class SpanExport:
    """Sends the spans of `tracer` from now on; `close` ends it. It begins a thread."""

    def __init__(self, configuration: TracingConfiguration, version: str, close_within: float = CLOSE_WITHIN) -> None:
        """Raises ValueError if an environment variable has a value that the SDK does not understand."""
        self._close_within = close_within
        self._exporter = _LoggedOnce(OTLPSpanExporter(endpoint=configuration.endpoint or None), configuration.endpoint)
        self._processor = BatchSpanProcessor(self._exporter)
        provider = TracerProvider(
            sampler=_sampler(configuration.rate, os.environ),
            resource=Resource.create(_service(os.environ, version)),
            shutdown_on_exit=False,
        )
        provider.add_span_processor(self._processor)
        self.tracer: Tracer = provider.get_tracer("noxu", version)

    async def close(self) -> None:
        """Send what waits, and end the thread."""
        # a daemon: an interpreter that ends does not wait for a collector
        ending = threading.Thread(target=self._processor.shutdown, name="noxu-span-export", daemon=True)
        ending.start()
        await asyncio.to_thread(ending.join, self._close_within)
        if ending.is_alive():
            log.warning("the last spans were not sent to %s within %g s", self._exporter.where, self._close_within)
            self._exporter.shutdown()  # which ends its attempts


def _sampler(rate: float | None, environment: Mapping[str, str]) -> Any:
    """A parent that is sampled is always followed. None: the SDK looks into the environment itself."""
    if rate is not None:
        return ParentBased(TraceIdRatioBased(rate))
    return None if environment.get("OTEL_TRACES_SAMPLER") else ParentBased(ALWAYS_OFF)  # as upstream without a rate


def _service(environment: Mapping[str, str], version: str) -> dict[str, str]:
    """The attributes of the resource that the environment does not give."""
    is_named = environment.get("OTEL_SERVICE_NAME") or "service.name=" in environment.get(
        "OTEL_RESOURCE_ATTRIBUTES", ""
    )
    return {"service.version": version} if is_named else {"service.name": SERVICE, "service.version": version}


class _LoggedOnce:
    """An exporter whose failures are logged when they begin; those that the SDK logs itself, again and again, are not."""

    def __init__(self, exporter: OTLPSpanExporter, where: str) -> None:
        self._exporter = exporter
        self._lost = 0
        self.where = where or "the collector"

    def export(self, spans: Sequence[Any]) -> Any:
        with _Quiet():
            result = self._exporter.export(spans)
        if result is SpanExportResult.SUCCESS:
            if self._lost:
                log.warning("spans are sent to %s again: %d were lost", self.where, self._lost)
            self._lost = 0
            return result
        if not self._lost:
            log.warning("spans cannot be sent to %s: they are lost until it answers", self.where)
        self._lost += len(spans)
        return result

    def shutdown(self) -> None:
        with _Quiet():
            self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return bool(self._exporter.force_flush(timeout_millis))


class _Quiet:
    """Drops what this thread logs with the logger of the exporter. Other threads may have exporters of their own."""

    _logger: Final = logging.getLogger(OTLPSpanExporter.__module__)

    def __enter__(self) -> None:
        self._thread = threading.get_ident()
        self._logger.addFilter(self.filter)

    def __exit__(self, *error: object) -> None:
        self._logger.removeFilter(self.filter)

    def filter(self, record: logging.LogRecord) -> bool:
        return record.thread != self._thread
