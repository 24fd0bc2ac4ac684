"""What stands around the handlers: a tuple of filters, entered in order and left in reverse.

A filter refuses by raising ApiError when it is entered; then it is not left, and those behind it are not entered. `enter`
may return an awaitable. `leave` runs whatever became of the request, with its code or error in the exchange.

The order is upstream's (DefaultBuildHandlerChain): an earlier refusal hides a later one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import lru_cache
from typing import Final

from aiohttp import HttpVersion10

from noxu.apiserver.api.errors import ApiError
from noxu.apiserver.api.hosts import is_loopback, split_host
from noxu.apiserver.http import negotiation
from noxu.apiserver.http.exchange import Exchange
from noxu.apiserver.http.options import request_timeout
from noxu.apiserver.http.request import parse_target
from noxu.apiserver.http.traces import HEADER, Traces, is_wanted
from noxu.apiserver.observability.health import ENDPOINTS
from noxu.apiserver.security.authentication import Authenticator
from noxu.apiserver.security.authorization import Authorizer

REQUEST_DEADLINE: Final = 60.0  # seconds; upstream's --request-timeout. Watches have their own
MAX_IN_FLIGHT: Final = 400  # upstream's --max-requests-inflight
MAX_MUTATING_IN_FLIGHT: Final = 200  # upstream's --max-mutating-requests-inflight
MAX_HOST: Final = 260  # characters of a Host header that is remembered: a DNS name and a port
_READING: Final = frozenset({"get", "list", "watch", "head", ""})

Sink = Callable[[Exchange], None]
"""Is called with every finished exchange: metrics, an audit log, an access log."""


class Filter:
    """A filter does nothing but what its subclass overrides."""

    def enter(self, exchange: Exchange) -> Awaitable[None] | None:
        """Raises ApiError to refuse."""

    def leave(self, exchange: Exchange) -> None: ...


class Report(Filter):
    """Hand the finished exchange to the sinks."""

    def __init__(self, sinks: Sequence[Sink]) -> None:
        self._sinks = tuple(sinks)

    def leave(self, exchange: Exchange) -> None:
        for sink in self._sinks:
            sink(exchange)


class Target(Filter):
    """What is asked: path, query, RequestInfo (upstream's WithRequestInfo)."""

    def enter(self, exchange: Exchange) -> None:
        request = exchange.request
        if request.version < HttpVersion10:
            raise ApiError(400, "", text="400 Bad Request: malformed HTTP version")
        exchange.path, exchange.query, host, exchange.info = parse_target(request.method, request.raw_path)
        exchange.host = host or request.headers.get("Host", "")


class Origin(Filter):
    """Which hosts and web pages may use the server.

    A development server on loopback without TLS is reachable from any web page through the browser of its user. So Host
    must be loopback (DNS rebinding), and a request with an Origin must come from this very server. `own_names` are allowed
    besides loopback.
    """

    def __init__(self, own_names: frozenset[str]) -> None:
        self._own_names = own_names

    def enter(self, exchange: Exchange) -> None:
        check_origin(exchange.host, exchange.request.headers.get("Origin"), self._own_names)


class Deadline(Filter):
    """When the request must be answered: after what it asks for (`timeout=5s`), but never later than others."""

    def enter(self, exchange: Exchange) -> None:
        if exchange.info.is_resource and exchange.info.verb != "watch":
            asks = "timeout" in exchange.query
            seconds = request_timeout(exchange.query, REQUEST_DEADLINE) if asks else REQUEST_DEADLINE
            exchange.deadline = exchange.received + seconds


class Authenticate(Filter):
    """Who asks. `authenticator` None: every client is anonymous."""

    def __init__(self, authenticator: Authenticator | None) -> None:
        self._authenticator = authenticator

    def enter(self, exchange: Exchange) -> None:
        if self._authenticator is not None:
            exchange.user = self._authenticator.authenticate(exchange.request.headers)


class InFlight(Filter):
    """How many requests may be under way. Watches, health checks and OpenAPI's long answers do not count.

    A busy server is not ill, so health checks are answered even then.
    """

    def __init__(self, limit: int = MAX_IN_FLIGHT, mutating_limit: int = MAX_MUTATING_IN_FLIGHT) -> None:
        self._limits = (limit, mutating_limit)
        self._inside = [0, 0]

    def enter(self, exchange: Exchange) -> None:
        kind = self._kind(exchange)
        if kind is None:
            return
        if self._inside[kind] >= self._limits[kind]:
            error = ApiError(429, "Too many requests, please try again later.", "TooManyRequests")
            error.text, error.retry_after = f"{error.message}\n", 1
            raise error
        self._inside[kind] += 1

    def leave(self, exchange: Exchange) -> None:
        kind = self._kind(exchange)
        if kind is not None:
            self._inside[kind] -= 1

    def _kind(self, exchange: Exchange) -> int | None:
        """0: reading, 1: mutating, None: does not count."""
        if exchange.info.is_resource:
            return None if exchange.info.verb == "watch" else int(exchange.info.verb not in _READING)
        return None if exchange.path in _HEALTH else 0


_HEALTH: Final = frozenset(f"/{name}" for name in ENDPOINTS)


class Authorize(Filter):
    """Whether the user may do this. `authorizer` None: every user may do everything."""

    def __init__(self, authorizer: Authorizer | None) -> None:
        self._authorizer = authorizer

    def enter(self, exchange: Exchange) -> None:
        if self._authorizer is not None:
            self._authorizer.authorize(exchange.user, exchange.info, exchange.path)


class Tracing(Filter):
    """Traces of writes, for clients that ask for one. `traces` None: the server offers none."""

    def __init__(self, traces: Traces | None) -> None:
        self._traces = traces

    def enter(self, exchange: Exchange) -> None:
        if HEADER not in exchange.request.headers or not exchange.info.is_resource:
            return
        if self._traces is None:
            raise ApiError(400, f"{HEADER}: this server offers no traces: it is not on loopback", "BadRequest")
        if is_wanted(exchange.request.headers[HEADER]) and exchange.info.verb not in ("get", "list", "watch"):
            exchange.trace = []

    def leave(self, exchange: Exchange) -> None:
        if exchange.trace is not None and self._traces is not None:
            request = exchange.request
            about = {"method": request.method, "path": request.raw_path, "user": exchange.user.name}
            exchange.headers.append((HEADER, self._traces.keep(about, exchange.trace, exchange.error)))


class Warnings(Filter):
    """Warnings become headers of the answer."""

    def leave(self, exchange: Exchange) -> None:
        if exchange.outcome.warnings:
            texts = negotiation.warning_headers(exchange.outcome.warnings)
            exchange.headers += [("Warning", text) for text in texts]


class LargeRequestSlot(Filter):
    """A large request gives its slot back when it is answered."""

    def leave(self, exchange: Exchange) -> None:
        if exchange.has_slot:
            exchange.has_slot = False
            exchange.backend.large_requests.leave()


def chain(
    *,
    own_names: frozenset[str],
    authenticator: Authenticator | None,
    authorizer: Authorizer | None,
    traces: Traces | None,
    sinks: Sequence[Sink],
) -> tuple[Filter, ...]:
    """All filters, in order."""
    return (
        Report(sinks),
        Target(),
        Origin(own_names),
        Deadline(),
        Warnings(),
        Authenticate(authenticator),
        InFlight(),
        Authorize(authorizer),
        Tracing(traces),
        LargeRequestSlot(),
    )


# -- host and origin --------------------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def _is_ours(header: str, own_names: frozenset[str]) -> bool:
    """Whether a Host header names this server, or is empty. Clients send the same one each time."""
    host = split_host(header)
    return not host or is_loopback(host) or host in own_names


def check_origin(host_header: str, origin: str | None, own_names: frozenset[str]) -> None:
    """Raises ApiError Forbidden for a foreign Host or Origin."""
    is_ours = _is_ours if len(host_header) <= MAX_HOST else _is_ours.__wrapped__
    if not is_ours(host_header, own_names):
        host = split_host(host_header)
        raise ApiError(
            403, f"Host {host!r} is not this server: use its loopback address, or name it in --host", "Forbidden"
        )
    if origin is not None:
        _, _, place = origin.partition("://")
        name = split_host(place)
        if place.lower() != host_header.lower() or not (is_loopback(name) or name in own_names):
            raise ApiError(403, f"Origin {origin!r} may not use this server from a browser", "Forbidden")
