"""The filters around the handlers: a tuple (`chain`), entered in order and left in reverse order.

A filter refuses a request by raising ApiError from `enter`; then the filters after it are not entered. `enter` may return an
awaitable. A filter adds to `exchange.leaving` what it does when the handler has returned or failed, before the answer is
sent: that may add headers, and finds the code and the error in the exchange.

An `observer` comes before all of them: in tests it records requests (`recent_requests`).

The order is upstream's (DefaultBuildHandlerChain); a refusal by one filter hides those by later ones:

    ParseTarget     HTTP that is ambiguous; path, query and RequestInfo
    CheckOrigin     Host and Origin headers
    SetDeadline     when the request must be answered
    Cors            headers for web pages that may use the server, and preflights
    Authenticate    sets the user, or refuses bad credentials
    RecordAudit     records the request, if there is an audit log
    Impersonate     sets another user, if the user may impersonate it
    InFlight        limits the number of requests that are handled or answered at the same time
    ConsistentRead  waits for what other servers have answered, if they may have the same store
    Authorize       refuses what the user may not do
    Tracing         traces a write on request

What is not configured is not in the chain: Cors, Authenticate, RecordAudit, ConsistentRead, and Authorize where everything
is allowed.

To add a filter, write a subclass of `RequestFilter` and insert it into `chain` at its place in upstream's order: injected faults
after Authorize. Filters count nothing. What observes requests and refuses none (metrics, an access log) is not a filter but
a sink, see `exchange`. A bug in a handler or a filter becomes a 500 in `app`.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Sequence
from functools import lru_cache
from time import perf_counter
from typing import Final

from aiohttp.http import HttpVersion11

from noxu.api.errors import ApiError, internal_error
from noxu.api.names import is_loopback, is_origin_of, split_host
from noxu.config import DEFAULT_REQUESTS, MAX_IN_FLIGHT, MAX_MUTATING_IN_FLIGHT, REQUEST_TIMEOUT, Requests
from noxu.crd import types as crd_types
from noxu.http import auditing
from noxu.http.answer import Answer, Answered
from noxu.http.clients import Unsent
from noxu.http.exchange import Exchange, InFlightLimit, attributes_of
from noxu.http.request import first, head_error, parse_target, request_timeout
from noxu.http.trace_context import TRACE_CONTEXT, TRACEPARENT, received
from noxu.http.traces import HEADER, Traces, is_requested
from noxu.observability.health import ENDPOINTS
from noxu.registry import access
from noxu.registry.access import ANONYMOUS, User
from noxu.registry.reader import be_consistent
from noxu.registry.turns import CLIENT
from noxu.security import cors, impersonation
from noxu.security.audit import AuditLog
from noxu.security.authentication import Authenticator
from noxu.security.authorization import NOSNIFF, refusal
from noxu.security.credentials import MASTERS, Credentials

MAX_CACHED_HOST: Final = 260  # characters: a DNS name and a port. Longer Host headers are not cached
_OTHER_SITES: Final = frozenset({"cross-site", "same-site"})
"""Values of Sec-Fetch-Site: pages of other sites, and of other origins of this one."""
DEFINITIONS: Final = f"{crd_types.GROUP}/{crd_types.RESOURCE}"  # their collection
_READ_FROM: Final = ("resourceVersion", "continue")  # in a query: the state to read
_READING: Final = frozenset({"get", "list", "watch"})


class RequestFilter:
    """A step before the handler; a subclass says which."""

    def enter(self, exchange: Exchange) -> Awaitable[None] | None:
        """Let the request pass, or raise ApiError to refuse it."""
        raise NotImplementedError


class ParseTarget(RequestFilter):
    """Refuse ambiguous HTTP. Parse the target: path, query, RequestInfo (upstream's WithRequestInfo).

    `OPTIONS *` is about the server as a whole. net/http answers it before kube-apiserver sees it, to any client.
    """

    def enter(self, exchange: Exchange) -> None:
        request = exchange.request
        if TRACEPARENT in request.headers:
            join_trace(exchange)
        refused = head_error(request)
        if refused is not None:
            request.version = HttpVersion11  # of the answer, like Go's, whatever version the request has
            exchange.headers.append(("Connection", "close"))
            raise refused
        target, exchange.query = parse_target(request.method, request.raw_path)
        exchange.path, host, exchange.info, exchange.is_long_running, exchange.moment = target
        exchange.host = host or request.headers.get("Host", "")
        if exchange.path == "*" and request.method == "OPTIONS":
            exchange.is_judged = True  # nothing is asked for, so the audit policy is not asked either
            raise Answered(Answer(b"", 200, "", ()))


class CheckOrigin(RequestFilter):
    """Refuse requests under another host's name or from another server's web pages.

    A development server on loopback without TLS is reachable from any web page through the browser of its user. So Host
    must be loopback (DNS rebinding) or one of `own_names`, and an Origin the server's own: the same scheme, host and port as
    the request. A page of another port of this machine is another program's. A browser that calls a request cross-site or
    same-site is believed: the latter comes from another port or subdomain. Pages of `allowed` origins may use the server, too.
    Clients that are no browsers send neither header.

    Over TLS (`any_host`) Host may be any name, as upstream: a certificate says which server this is. The rest applies: a
    browser may have a client certificate, and would send it for any web page.
    """

    def __init__(
        self, own_names: frozenset[str], allowed: cors.AllowedOrigins | None = None, *, any_host: bool = False
    ) -> None:
        self._own_names = own_names
        self._allowed = allowed
        self._any_host = any_host
        self._scheme = "https" if any_host else "http"

    def enter(self, exchange: Exchange) -> None:
        headers, host = exchange.request.headers, exchange.host
        is_ours = _is_ours if len(host) <= MAX_CACHED_HOST else _is_ours.__wrapped__
        if not self._any_host and not is_ours(host, self._own_names):
            raise foreign_host(host)
        if "Origin" in headers:
            origins = headers.getall("Origin")
            if len(origins) == 1 and self._allowed is not None and origins[0] in self._allowed:
                return
            check_origin(", ".join(origins), self._scheme, host)
        if "Sec-Fetch-Site" in headers and not _OTHER_SITES.isdisjoint(headers.getall("Sec-Fetch-Site")):
            raise ApiError(403, "web pages of other sites may not use this server", "Forbidden")


class SetDeadline(RequestFilter):
    """Set the deadline: `timeout`, or less if the query has a `timeout=5s`. Long-running requests and documents have none.

    A `timeout` that is no duration is refused on every path, also on those that do not exist (upstream's
    WithRequestDeadline); long-running requests ignore it.
    """

    def __init__(self, timeout: float = REQUEST_TIMEOUT) -> None:
        """`timeout` in seconds: upstream's --request-timeout."""
        self._timeout = timeout

    def enter(self, exchange: Exchange) -> None:
        if exchange.is_long_running:
            return
        has_timeout = "timeout" in exchange.query
        seconds = request_timeout(exchange.query, self._timeout) if has_timeout else self._timeout
        if exchange.info.is_resource:
            exchange.deadline = exchange.received + seconds  # from its arrival, not from here


class Cors(RequestFilter):
    """Let web pages of allowed origins use the server. A preflight is answered here, before its user is asked for."""

    def __init__(self, allowed: cors.AllowedOrigins) -> None:
        self._allowed = allowed

    def enter(self, exchange: Exchange) -> None:
        origin = exchange.request.headers.get("Origin")
        if not origin or origin not in self._allowed:
            return
        # also of errors: a page may read those, too
        exchange.headers += [("Access-Control-Allow-Origin", origin), *cors.HEADERS]
        if exchange.request.method == "OPTIONS":
            raise Answered(Answer(b"", 204, ""))


class Authenticate(RequestFilter):
    """Set the user, who also is the client whose work takes turns with that of others.

    A request without credentials is anonymous before anything is measured or asked, if such requests are allowed: a GET
    takes a twelfth less (`benchmarks.http`, `get`).
    """

    def __init__(self, authenticator: Authenticator) -> None:
        self._authenticator = authenticator
        self._allows_anonymous = authenticator.allows_anonymous

    def enter(self, exchange: Exchange) -> Awaitable[None] | None:
        headers = exchange.request.headers
        chain = getattr(exchange.request.connection.transport, "client_chain", ())
        may_have_token = "Authorization" in headers or "Sec-WebSocket-Protocol" in headers
        if self._allows_anonymous and not chain and not may_have_token:
            exchange.authentication = "success"  # in no time, and the user stays anonymous
            return None
        began = perf_counter()
        presented = Credentials(headers, chain)
        warnings: list[str] = []
        try:
            user = self._authenticator.authenticate(presented, warnings)
        except ApiError:
            self._refused(exchange, began)
            raise
        finally:
            if warnings:
                exchange.outcome.warnings += warnings
        if not isinstance(user, User):
            return self._enter_later(exchange, user, began)
        exchange.authentication, exchange.authentication_seconds = "success", perf_counter() - began
        if user is not ANONYMOUS:
            exchange.user = user
            CLIENT.set(user.name)  # in the context of this task: what it awaits finds it
        return None

    async def _enter_later(self, exchange: Exchange, identified: Awaitable[User], began: float) -> None:
        try:
            exchange.user = await identified
        except ApiError:
            self._refused(exchange, began)
            raise
        exchange.authentication, exchange.authentication_seconds = "success", perf_counter() - began
        if exchange.user is not ANONYMOUS:
            CLIENT.set(exchange.user.name)  # in the context of this task

    def _refused(self, exchange: Exchange, began: float) -> None:
        exchange.authentication = "error" if "Authorization" in exchange.request.headers else "failure"
        exchange.authentication_seconds = perf_counter() - began


_IMPERSONATE: Final = "impersonate-"  # in lower case: how the names of its headers begin


class Impersonate(RequestFilter):
    """Make another user that of the request, if its own user may impersonate it."""

    def __init__(self, authorize: access.Authorize) -> None:
        self._authorize = authorize

    def enter(self, exchange: Exchange) -> None:
        headers = exchange.request.headers
        if _IMPERSONATE not in "\n".join(headers).lower():  # which costs a quarter of looking at each name
            return
        wanted = impersonation.wanted(headers)
        if wanted is None:
            return
        granted = impersonation.impersonate(self._authorize, attributes_of(exchange), wanted)
        # from here on all ask about the other user
        exchange.impersonator, exchange.user, exchange.constraint = exchange.user, granted.user, granted.constraint
        if exchange.record is not None:
            exchange.record.impersonated(granted.user, granted.constraint)  # the record has begun with the own user


class RecordAudit(RequestFilter):
    """Begin the record, which the policy decides about. See `AuditLog` for what `mode` makes of a slow or broken log."""

    def __init__(self, log: AuditLog) -> None:
        self._log = log

    def enter(self, exchange: Exchange) -> Awaitable[None] | None:
        record = auditing.begin(self._log, exchange, exchange.user)
        if record is None:
            return None
        exchange.record = record
        exchange.outcome.sent = {}  # asks the write to note what was sent
        if record.received() and self._log.mode == "blocking-strict":
            return self._stored()
        if self._log.mode != "batch" and self._log.writer.is_full:
            return self._log.writer.room()
        return None

    async def _stored(self) -> None:
        """Raises ApiError InternalError if the log cannot be written."""
        await self._log.writer.room()
        if not await self._log.writer.flushed():
            self._log.rejected()  # counted: upstream has a metric of it
            raise internal_error("failed to store audit event")


class InFlight(RequestFilter):
    """Limit the requests that are handled or answered at the same time (upstream's WithMaxInFlightLimit).

    Long-running requests do not count, and system:masters are never refused. A busy server is healthy, so health checks are
    answered beyond the limit, too. Clients that do not read their answers do not keep others out: one of them is disconnected
    for each request that is refused.
    """

    def __init__(
        self,
        unsent: Unsent,
        limit: int = MAX_IN_FLIGHT,
        mutating_limit: int = MAX_MUTATING_IN_FLIGHT,
    ) -> None:
        """0: no limit."""
        self._unsent = unsent
        self.reading, self.mutating = InFlightLimit(limit or sys.maxsize), InFlightLimit(mutating_limit or sys.maxsize)
        self._second = 0.0  # when the current one began

    def enter(self, exchange: Exchange) -> None:
        info = exchange.info
        if info.is_resource:
            if exchange.is_long_running:
                return
            limit = self.reading if info.verb in _READING else self.mutating
        elif exchange.path in _HEALTH:
            return
        else:
            limit = self.reading if exchange.request.method == "GET" else self.mutating
        if limit.running >= limit.maximum and MASTERS not in exchange.user.groups:
            self._unsent.disconnect_stalled()  # one client makes room for the next attempt
            error = ApiError(429, "Too many requests, please try again later.", "TooManyRequests")
            error.text, error.retry_after = f"{error.message}\n", 1
            raise error
        exchange.limit = limit
        limit.running += 1  # shared by all requests; `App` subtracts it when this one has been answered
        if exchange.received >= self._second + 1:
            self._begin_second(exchange.received)
        if limit.running > limit.highest:
            limit.highest = limit.running

    def highest(self, now: float) -> tuple[int, int]:
        """The maximum number of requests in the last second: that only read, and others."""
        if now >= self._second + 1:
            self._begin_second(now)
        reading, mutating = self.reading, self.mutating
        return max(reading.highest_before, reading.highest), max(mutating.highest_before, mutating.highest)

    def _begin_second(self, now: float) -> None:
        is_next = now < self._second + 2  # else nothing has arrived in the one before this
        for limit in (self.reading, self.mutating):
            # shared, like `running`: all in the event loop, so nothing is lost
            limit.highest_before = limit.highest if is_next else limit.running
            limit.highest = limit.running
        self._second = now


_HEALTH: Final = frozenset(f"/{name}" for name in ENDPOINTS)


class ConsistentRead(RequestFilter):
    """Wait for what other servers with the same store have answered, which the request may depend on.

    It is judged by their roles, definitions and policies, and reads show their writes. Reads that name a resourceVersion ask
    for no more than that. Users are authenticated before, and the limit of requests in flight holds while etcd is slow.
    """

    def enter(self, exchange: Exchange) -> Awaitable[None] | None:
        info, query = exchange.info, exchange.query
        if not info.is_resource or (info.verb in _READING and any(first(query, name) for name in _READ_FROM)):
            return None
        definition, environment = f"{info.resource}.{info.group}", exchange.backend.writer.environment
        return be_consistent(environment.reader, environment.followers, DEFINITIONS, definition)


class Authorize(RequestFilter):
    """Refuse what the user may not do.

    It comes before routing: who may not do anything does not learn what exists.
    """

    def __init__(self, authorize: access.Authorize) -> None:
        self._authorize = authorize

    def enter(self, exchange: Exchange) -> None:
        began = perf_counter()
        asked = attributes_of(exchange)
        decision = exchange.decision = self._authorize(asked)
        exchange.authorization_seconds = perf_counter() - began
        if decision.allowed:
            return
        if not decision.error:
            exchange.headers.append(NOSNIFF)  # the reason may quote what the client sent
        raise refusal(asked, decision, exchange.request.raw_path)


class AwaitTurn(RequestFilter):
    """Let the request begin when `turn` allows it; None: at once."""

    def __init__(self, turn: Callable[[], Awaitable[None] | None]) -> None:
        self._turn = turn

    def enter(self, exchange: Exchange) -> Awaitable[None] | None:
        return self._turn()


class Tracing(RequestFilter):
    """Trace the write if the client requests it. `traces` None: the server offers none."""

    def __init__(self, traces: Traces | None) -> None:
        self._traces = traces

    def enter(self, exchange: Exchange) -> None:
        if HEADER not in exchange.request.headers or not exchange.info.is_resource:
            return
        if self._traces is None:
            raise ApiError(400, f"{HEADER}: this server offers no traces: it is not on loopback", "BadRequest")
        if is_requested(exchange.request.headers[HEADER]) and exchange.info.verb not in _READING:
            exchange.trace = []  # the stages of the write append to it
            exchange.leaving.append(self._traces.finished)


def chain(
    *,
    own_names: frozenset[str],
    any_host: bool = False,
    authenticator: Authenticator | None,
    authorize: access.Authorize,
    traces: Traces | None,
    unsent: Unsent,
    audit_log: AuditLog | None = None,
    limits: Requests = DEFAULT_REQUESTS,
    shares_store: bool = False,
    observer: RequestFilter | None = None,
    last: Sequence[RequestFilter] = (),
) -> tuple[RequestFilter, ...]:
    """All filters, in order. `shares_store`: other servers may have the same store. `authenticator` None: all are anonymous."""
    allowed = cors.AllowedOrigins(limits.cors_allowed_origins) if limits.cors_allowed_origins else None
    return (
        *((observer,) if observer is not None else ()),
        ParseTarget(),
        CheckOrigin(own_names, allowed, any_host=any_host),
        SetDeadline(limits.timeout),
        *((Cors(allowed),) if allowed is not None else ()),
        *((Authenticate(authenticator),) if authenticator is not None else ()),
        *((RecordAudit(audit_log),) if audit_log is not None else ()),
        Impersonate(authorize),
        InFlight(unsent, limits.max_in_flight, limits.max_mutating_in_flight),
        *((ConsistentRead(),) if shares_store else ()),
        *((Authorize(authorize),) if authorize is not access.allow_everything else ()),
        Tracing(traces),
        *last,
    )


# -- what a client traces ---------------------------------------------------------------------------------------------


def join_trace(exchange: Exchange) -> None:
    """Let the request, and what it causes, belong to the trace that its client says."""
    exchange.trace_context = context = received(exchange.request.headers)
    if context is not None:
        TRACE_CONTEXT.set(context)  # in the context of this task, which answers further requests
        exchange.leaving.append(_leave_trace)


def _leave_trace(exchange: Exchange) -> None:  # noqa: ARG001
    TRACE_CONTEXT.set(None)


# -- host and origin --------------------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def _is_ours(header: str, own_names: frozenset[str]) -> bool:
    """Whether a Host header names this server, or is empty. Clients send the same one each time.

    Kept: 2.7 µs of the 45 of a GET (`benchmarks.http`, `get`).
    """
    host = split_host(header)
    return not host or is_loopback(host) or host in own_names


def foreign_host(header: str) -> ApiError:
    """The error for the Host header of another server."""
    host = _shown(split_host(header))
    return ApiError(
        403, f"Host {host!r} is not this server: use its loopback address, or name it in --host", "Forbidden"
    )


def check_origin(origin: str, scheme: str, host_header: str) -> None:
    """Raises ApiError Forbidden for an Origin that is not that of this server, which was asked by this scheme and Host."""
    if not is_origin_of(origin, scheme, host_header):
        text = (
            f"Origin {_shown(origin)!r} may not use this server from a browser: --cors-allowed-origins allows origins"
        )
        raise ApiError(403, text, "Forbidden")


def _shown(text: str) -> str:
    """A text in a message, cut if it is longer than a host can be."""
    return text if len(text) <= MAX_CACHED_HOST else f"{text[:MAX_CACHED_HOST]}…"
