"""Spans of OpenTelemetry: one for each request, and below it one for each call of a webhook and each write to the store.

    PUT /apis/example.com/v1/namespaces/{:namespace}/widgets/{:name}      SERVER, its parent is the client's traceparent
    ├─ POST                                                               CLIENT, a webhook, which gets a traceparent, too
    └─ update example.com/widgets                                         CLIENT, when the store has answered

Names are those of upstream's server (k8s.io/apiserver, pkg/endpoints/filters/traces.go), attributes those of the semantic
conventions for HTTP and databases; what they do not have is named after upstream's terms. A span of a watch lasts as long as
the watch. Only a server with --tracing-config-file imports this module. What is not sampled has no children.
"""

from __future__ import annotations

from collections.abc import Awaitable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import urlsplit

from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanContext, SpanKind, Status, StatusCode, Tracer, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from noxu.http.exchange import Exchange
from noxu.http.filters import RequestFilter
from noxu.http.trace_context import TRACE_CONTEXT, TraceContext
from noxu.registry.persistence import Operation, StoreMetrics
from noxu.webhook.client import MAX_ANSWER, USER_AGENT, Caller, WebhookEndpoint, WebhookReply
from noxu_storage.types import Key

if TYPE_CHECKING:
    from noxu.http.request import RequestInfo

MAX_TEXT: Final = 1000  # characters of what a client has sent
_SERVER_ERROR: Final = 500

T = TypeVar("T")

SPAN: Final[ContextVar[Span | None]] = ContextVar("span", default=None)
"""That of the request which the current task answers."""
_PROPAGATOR: Final = TraceContextTextMapPropagator()


class ServerSpans(RequestFilter):
    """Begins a span when the target of a request is known; `end` is the sink that ends it."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        self._open: dict[Exchange, Span] = {}

    def enter(self, exchange: Exchange) -> None:
        context = exchange.trace_context
        # never the current one of this thread: in a test that may be the test's own
        parent = Context() if context is None else _PROPAGATOR.extract(context.headers, Context())
        span = self._tracer.start_span(exchange.request.method, parent, SpanKind.SERVER)
        self._open[exchange] = span  # until its answer is sent
        if span.is_recording() and exchange.outcome.sent is None:
            exchange.outcome.sent = {}  # filled in by the write: the name of a new object is in its body
        SPAN.set(span)  # in the context of this task, which answers further requests

    def end(self, exchange: Exchange) -> None:
        """The request is answered, or its client is gone."""
        span = self._open.pop(exchange, None)
        if span is None:  # it was refused before its target was known
            return
        SPAN.set(None)  # the task goes on with the next request of the connection
        if span.is_recording():
            if route := _route(exchange):
                span.update_name(f"{exchange.request.method} {route}")
                span.set_attribute("http.route", route)
            span.set_attributes(_attributes(exchange))
            if exchange.code >= _SERVER_ERROR:
                span.set_status(Status(StatusCode.ERROR, exchange.error.message[:MAX_TEXT] if exchange.error else None))
        span.end()


def _route(exchange: Exchange) -> str:
    """The path without what is a name in it; "" if the server has no such path."""
    if exchange.is_routed:
        return route_of(exchange.info)
    is_document = not exchange.info.is_resource and 0 < exchange.code < 400
    return exchange.path[:MAX_TEXT] if is_document else ""


def route_of(info: RequestInfo) -> str:
    """As upstream's getSpanNameFromRequestInfo."""
    start = f"/apis/{info.group}/{info.version}" if info.group else f"/api/{info.version}"
    namespace = "/namespaces/{:namespace}" if info.namespace else ""
    name = "/{:name}" if info.name else ""
    return f"{start}{namespace}/{info.resource}{name}{f'/{info.subresource}' if info.subresource else ''}"


def _attributes(exchange: Exchange) -> dict[str, Any]:
    request, info, error = exchange.request, exchange.info, exchange.error
    path, _, query = request.raw_path.partition("?")
    host, colon, port = exchange.host.rpartition(":")
    named = (exchange.noted.sent or {}).get("name", "") if exchange.noted else ""
    attributes: dict[str, Any] = {  # a collector may be another machine: nothing of the bodies is among them
        "http.request.method": request.method,
        "url.path": path[:MAX_TEXT],
        "url.query": query[:MAX_TEXT],
        "url.scheme": _scheme(exchange),
        "server.address": host if colon and port.isdigit() else exchange.host,
        "client.address": request.remote,
        "network.protocol.version": f"{request.version.major}.{request.version.minor}",
        "user_agent.original": request.headers.get("User-Agent", "")[:MAX_TEXT],
        "http.response.status_code": exchange.code,
        "error.type": (error.reason or str(error.code)) if error is not None and error.code >= _SERVER_ERROR else "",
        "audit-id": exchange.id[:MAX_TEXT],  # upstream's name
        "user.name": exchange.user.name[:MAX_TEXT],
        "k8s.verb": info.verb,
        "k8s.api.group": info.group,
        "k8s.api.version": info.version,
        "k8s.resource": info.resource,
        "k8s.subresource": info.subresource,
        "k8s.namespace.name": info.namespace,
        "k8s.object.name": info.name or named,
    }
    return {name: value for name, value in attributes.items() if value}


def _scheme(exchange: Exchange) -> str:
    transport = exchange.request.connection.transport
    return "https" if transport is not None and transport.get_extra_info("ssl_object") is not None else "http"


# -- what a request causes --------------------------------------------------------------------------------------------


def _parent() -> Span | None:
    """The span of the request that the current task answers, if it is sampled and has not ended."""
    span = SPAN.get()
    # tasks that a request has begun share its context, also when it is answered
    return span if span is not None and span.is_recording() else None


class TracedCaller:
    """Calls webhooks with spans, in which the spans of webhooks may have their parents. See `webhook.client.Caller`."""

    def __init__(self, tracer: Tracer, caller: Caller) -> None:
        self._tracer = tracer
        self._caller = caller

    async def __call__(
        self,
        endpoint: WebhookEndpoint,
        body: bytes,
        *,
        timeout: int,  # noqa: ASYNC109 - as for every caller
        user_agent: str = USER_AGENT,
        limit: int = MAX_ANSWER,
    ) -> WebhookReply:
        """Raises CallFailed."""
        parent = _parent()
        if parent is None:
            return await self._caller(endpoint, body, timeout=timeout, user_agent=user_agent, limit=limit)
        url = urlsplit(endpoint.url)
        attributes = {"http.request.method": "POST", "url.full": endpoint.url, "server.address": url.netloc}
        with self._tracer.start_as_current_span(
            "POST", set_span_in_context(parent, Context()), SpanKind.CLIENT, attributes
        ) as span:
            # webhooks may be called one after the other in this task, each with a span of its own
            token = TRACE_CONTEXT.set(context_of(span.get_span_context()))
            try:
                reply = await self._caller(endpoint, body, timeout=timeout, user_agent=user_agent, limit=limit)
            finally:
                TRACE_CONTEXT.reset(token)
            span.set_attribute("http.response.status_code", reply.code)
            return reply


def context_of(span: SpanContext) -> TraceContext:
    """What is sent to a server whose spans are to be children of this one."""
    traceparent = f"00-{span.trace_id:032x}-{span.span_id:016x}-{int(span.trace_flags):02x}"
    return TraceContext(traceparent, span.trace_state.to_header())


class TracedStoreMetrics(StoreMetrics):
    """Measures requests to the store, those of clients with spans."""

    def __init__(self, tracer: Tracer, system: str) -> None:
        """`system`: etcd, sqlite or memory."""
        super().__init__()
        self._tracer = tracer
        self._system = system

    async def measured(self, operation: Operation, key: Key, request: Awaitable[T]) -> T:
        parent = _parent()
        if parent is None:
            return await super().measured(operation, key, request)
        attributes = {
            "db.system.name": self._system,
            "db.operation.name": operation,
            "db.collection.name": key.collection,
        }
        context = set_span_in_context(parent, Context())
        name = f"{operation} {key.collection}"
        with self._tracer.start_as_current_span(name, context, SpanKind.CLIENT, attributes):
            return await super().measured(operation, key, request)
