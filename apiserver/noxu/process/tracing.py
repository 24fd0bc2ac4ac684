"""The tracing of a server: its configuration file, the export of its spans, and where in the server they are made."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

from noxu.config import StartError
from noxu.observability.tracing_configuration import read

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

    from noxu.control_plane import ControlPlane
    from noxu.http.app import App
    from noxu.webhook.client import Caller

_FLAG: Final = "--tracing-config-file"
_EXTRA: Final = "noxu[otel]"
EXPORT: Final = "noxu.observability.span_export"  # it and the next import the SDK: a quarter of a second
SPANS: Final = "noxu.http.spans"


class ServerTracing:
    """Where in a server spans are made. A tenant has that of its parent."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        self._spans = import_module(SPANS)

    def calls(self, caller: Caller) -> Caller:
        """The caller of webhooks, with spans."""
        traced: Caller = self._spans.TracedCaller(self._tracer, caller)
        return traced

    def observe_writes(self, plane: ControlPlane, system: str) -> None:
        """Make spans of the writes to the store that requests cause. `system` is its kind."""
        plane.persistence.metrics = self._spans.TracedStoreMetrics(self._tracer, system)

    def observe_requests(self, app: App) -> None:
        spans = self._spans.ServerSpans(self._tracer)
        app.observe(spans, spans.end)


@contextlib.asynccontextmanager
async def opened(file: Path, version: str) -> AsyncIterator[ServerTracing]:
    """The tracing of a running server; what it has traced is sent when the context ends.

    Raises StartError: the file is invalid, or the extra is not installed.
    """
    try:
        configuration = read(file)
    except ValueError as error:
        raise StartError(f"{_FLAG}: {error}") from None
    try:
        export = import_module(EXPORT).SpanExport(configuration, version)
    except ImportError as error:
        package = (error.name or "opentelemetry").partition(".")[0]
        raise StartError(f"{_FLAG} needs the package {package}: pip install '{_EXTRA}'") from None
    except ValueError as error:  # of an environment variable
        raise StartError(f"{_FLAG}: {error}") from None
    try:
        yield ServerTracing(export.tracer)
    finally:
        await export.close()
