"""What a server counts and notes of its requests (apiserver's pkg/endpoints/metrics, pkg/endpoints/filters/metrics.go and
pkg/storage/cacher/metrics).

Filters and handlers count nothing: an exchange carries what they decided and how long that took, and one sink
(`RequestMetrics`) reads it when the request has been answered. It only adds to lists. All numbers of requests that are about
the same are in one record, which costs one look-up in a dict:

    GET /api/v1/namespaces/default/configmaps/a
      → the record of verb GET, resource configmaps, scope resource: its codes, durations, sizes

Labels have known values only, as in upstream's cleanVerb: a method that Kubernetes does not use is `other`, and a path without
a resource of this server has no resource, whatever its segments are. Deviation: upstream counts no requests for such paths,
and none that it refuses before it looks for a handler.

A stream counts its events itself, into lists of its own resource (`Sent`). The access log is another sink. What is scraped,
and from where, is in `scraping`.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from noxu.http.exchange import Exchange, Sink
from noxu.http.request import is_watch
from noxu.instruments import MAX_SERIES, OTHER, Counter, Family, Histogram, Labels, exponential, merged
from noxu.observability.logs import REQUEST_LINES, Request
from noxu.registry.resource import APPLY_PATCH, Resource
from noxu.registry.served_resources import LiveResources, ServedResources

if TYPE_CHECKING:
    from noxu.observability.line_writer import LineWriter

COMPONENT: Final = "apiserver"
_SECONDS: Final = (
    0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0
)  # fmt: skip
DURATIONS: Final = (0.005, 0.025, *_SECONDS)
_SHORTER: Final = len(DURATIONS) - len(_SECONDS)
SIZES: Final = exponential(1000, 10, 7)
BODY_SIZES: Final = tuple(50_000.0 + 100_000 * n for n in range(31))
REQUEST_LABELS: Final = ("verb", "group", "version", "resource", "subresource", "scope", "component")
_SIZED: Final = frozenset({"GET", "LIST"})
_CHANGING: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_CONNECT: Final = frozenset({"log", "exec", "portforward", "attach", "proxy"})
_DOCUMENTS: Final = frozenset({"/healthz", "/livez", "/readyz", "/version", "/openapi", "/apis", "/api", "/metrics"})
_BODY_VERBS: Final = {
    "create": "create",
    "update": "update",
    "patch": "patch",
    "delete": "delete",
    "deletecollection": "delete_collection",
}
_TERMINATED: Final = frozenset({429, 504})
"""The codes of requests beyond the limits: too many in flight, too late. Their answers are plain text, unlike other 429 and 504."""
_DEFAULT_BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)  # client_golang's DefBuckets


class About(NamedTuple):
    """What a request is about: its labels, and `dry_run`, which some metrics have besides."""

    labels: Labels
    dry_run: str = ""
    body: Labels = ()
    """The labels of its body, if it may have one."""
    deprecated: bool = False
    """The version of the resource is deprecated."""


_Key = tuple[str, str, str, str, str, str, str, str, bool]
"""An `About` as one tuple: verb, group, version, resource, subresource, scope, `dry_run`, verb of the body, deprecated.

To make an `About` for each request takes a ninth of one that does nothing (`benchmarks.http`, `floor`).
"""


def _about(key: _Key) -> About:
    _, group, _, resource, _, _, dry_run, body_verb, deprecated = key
    body = (group, resource, body_verb) if body_verb else ()
    return About((*key[:6], COMPONENT if resource else ""), dry_run, body, deprecated)


class _Record:
    """The numbers of all requests that are about the same."""

    __slots__ = ("about", "bodies", "codes", "durations", "sizes", "slis")

    def __init__(self, about: About) -> None:
        self.about = about
        self.codes: dict[int, int] = {}
        self.durations = [0.0] * (len(DURATIONS) + 2)
        self.slis = [0.0] * (len(_SECONDS) + 2)
        self.sizes = [0.0] * (len(SIZES) + 2) if about.labels[0] in _SIZED else None
        self.bodies = [0.0] * (len(BODY_SIZES) + 2) if about.body else None


class RequestMetrics:
    """See the module. It is called with each exchange."""

    def __init__(self, served_resources: LiveResources) -> None:
        self._served_resources = served_resources
        self.access = AccessMetrics()
        self._records: dict[_Key, _Record] = {}
        self._compilations = Histogram(
            "apiserver_cel_compilation_duration_seconds", "CEL compilation time in seconds.", (), _DEFAULT_BUCKETS
        )
        self._evaluations = Histogram(
            "apiserver_cel_evaluation_duration_seconds", "CEL evaluation time in seconds.", (), _DEFAULT_BUCKETS
        )
        self._terminated = Counter(
            "apiserver_request_terminations_total",
            "Number of requests which apiserver terminated in self-defense.",
            *REQUEST_LABELS,
            "code",
        )

    def __call__(self, exchange: Exchange) -> None:
        key = _key_of(exchange, self._served_resources.current)
        record = self._records.get(key) or self._new_record(key)
        noted, waited = exchange.noted, 0.0
        if noted is not None:
            waited = noted.webhook_seconds
            if noted.rule_seconds:
                self._evaluations.observe((), noted.rule_seconds)  # all rules of a write are one observation
            for taken in noted.compile_seconds:
                self._compilations.observe((), taken)
        codes, code = record.codes, exchange.code
        if code in _TERMINATED and exchange.error is not None and exchange.error.text is not None:
            self._terminated.add((*record.about.labels, str(code)))
        codes[code] = codes.get(code, 0) + 1  # here and below in place: a scrape copies in the same thread
        seconds = exchange.answered - exchange.received
        bucket = bisect_left(DURATIONS, seconds)
        record.durations[bucket] += 1
        record.durations[-1] += seconds  # the last number is the sum
        if not record.about.dry_run:
            if waited:
                seconds -= waited  # not the server's own time
                bucket = bisect_left(DURATIONS, seconds)
            record.slis[bucket - _SHORTER if bucket > _SHORTER else 0] += 1
            record.slis[-1] += seconds
        if record.sizes is not None:
            record.sizes[bisect_left(SIZES, exchange.sent_bytes)] += 1
            record.sizes[-1] += exchange.sent_bytes
        elif record.bodies is not None:
            size = exchange.received_bytes
            if size is not None:
                record.bodies[bisect_left(BODY_SIZES, size)] += 1
                record.bodies[-1] += size
        self.access.count(exchange)

    def _new_record(self, key: _Key) -> _Record:
        """The record of requests that are about this; beyond MAX_SERIES they share one for each verb."""
        about = _about(key)
        if len(self._records) >= MAX_SERIES:
            key = (key[0], OTHER, OTHER, OTHER, OTHER, OTHER, "", "", False)
            about = About((key[0], *(OTHER,) * (len(REQUEST_LABELS) - 1)))
        return self._records.setdefault(key, _Record(about))  # kept for ever, so there are at most MAX_SERIES

    def families(self) -> list[Family]:
        """The numbers until now. Several records may have the same labels in a family: their numbers are added."""
        return [merged([family]) for family in self._families()]

    def _families(self) -> list[Family]:
        records = list(self._records.values())
        total = [
            ((*row.about.labels, row.about.dry_run, str(code)), float(count))
            for row in records
            for code, count in row.codes.items()
        ]
        with_dry_run = [((*row.about.labels, row.about.dry_run), row.durations.copy()) for row in records]
        slis = [(row.about.labels, row.slis.copy()) for row in records if not row.about.dry_run]
        sizes = [(row.about.labels, row.sizes.copy()) for row in records if row.sizes is not None]
        bodies = [(row.about.body, row.bodies.copy()) for row in records if row.bodies is not None and any(row.bodies)]
        return [
            Family(
                "apiserver_request_total", "counter",
                "Counter of apiserver requests broken out for each verb, dry run value, group, version, resource, scope, "
                "component, and HTTP response code.",
                (*REQUEST_LABELS, "dry_run", "code"), total,
            ),
            Family(
                "apiserver_requested_deprecated_apis", "gauge",
                "Gauge of deprecated APIs that have been requested, broken out by API group, version, resource, "
                "subresource, and removed_release.",
                ("group", "version", "resource", "subresource", "removed_release"),
                [(values, 1.0) for values in dict.fromkeys((*row.about.labels[1:5], "") for row in records if row.about.deprecated)],
            ),
            Family(
                "apiserver_request_duration_seconds", "histogram",
                "Response latency distribution in seconds for each verb, dry run value, group, version, resource, "
                "subresource, scope and component.",
                (*REQUEST_LABELS, "dry_run"), with_dry_run, DURATIONS,
            ),
            Family(
                "apiserver_request_sli_duration_seconds", "histogram",
                "Response latency distribution (not counting webhook duration and priority & fairness queue wait times) in "
                "seconds for each verb, group, version, resource, subresource, scope and component.",
                REQUEST_LABELS, slis, _SECONDS,
            ),
            Family(
                "apiserver_response_sizes", "histogram",
                "Response size distribution in bytes for each group, version, verb, resource, subresource, scope and "
                "component.",
                REQUEST_LABELS, sizes, SIZES,
            ),
            Family(
                "apiserver_request_body_size_bytes", "histogram",
                "Apiserver request body size in bytes broken out by resource and verb.",
                ("group", "resource", "verb"), bodies, BODY_SIZES,
            ),
            self._terminated.family(),
            self._compilations.family(),
            self._evaluations.family(),
        ]  # fmt: skip


def about_of(exchange: Exchange, served_resources: ServedResources) -> About:
    """What a request is about."""
    return _about(_key_of(exchange, served_resources))


def _key_of(exchange: Exchange, served_resources: ServedResources) -> _Key:
    info = exchange.info
    resource = served_resources.by_path.get((info.group, info.version, info.resource)) if info.is_resource else None
    if resource is None:
        document = "" if info.is_resource else _document(exchange.path)
        return _verb(exchange, ""), "", "", "", document, "", "", "", False
    subresource = info.subresource if info.subresource in resource.subresources else ""
    scope = "resource" if info.name or info.verb == "create" else "namespace" if info.namespace else "cluster"
    return (
        CONNECT if subresource in _CONNECT else _verb(exchange, scope),
        resource.group,
        resource.version,
        resource.plural,
        subresource,
        scope,
        _dry_run(exchange.query.get("dryRun")) if exchange.query else "",
        _BODY_VERBS.get(info.verb, "") if exchange.request.method in _CHANGING else "",
        bool(resource.deprecation_text),
    )


CONNECT: Final = "CONNECT"


def _verb(exchange: Exchange, scope: str) -> str:
    method = exchange.request.method
    if method in ("GET", "HEAD"):
        if exchange.info.verb == "watch" or (method == "GET" and exchange.query and is_watch(exchange.query)):
            return "WATCH"
        return "LIST" if scope not in ("resource", "") else "GET"
    if method == "PATCH" and exchange.request.headers.get("Content-Type", "") == APPLY_PATCH:
        return "APPLY"
    return method if method in _CHANGING else OTHER


def _document(path: str) -> str:
    """The path of a document without what follows it, "" if there is none."""
    document = path[: path.find("/", 1)] if "/" in path[1:] else path
    return document if document in _DOCUMENTS else ""


def _dry_run(values: Collection[str] | None) -> str:
    if values is None:
        return ""
    return "All" if set(values) == {"All"} else "invalid"


# -- authentication and authorization ----------------------------------------------------------------------------------


ACCESS_SECONDS: Final = exponential(0.001, 2, 15)
SUCCESS, FAILURE, ERROR = "success", "failure", "error"
ALLOWED, NO_OPINION = "allowed", "no-opinion"
_SHORT: Final = ACCESS_SECONDS[0]
_USERS: Final = frozenset({"admin", "client", "kube_proxy", "kubelet", "system:serviceaccount:kube-system:default"})


class AccessMetrics:
    """How users were found, and what they may do. A duration is most often less than the first bucket, a millisecond."""

    def __init__(self) -> None:
        self._authentications = {result: _series() for result in (SUCCESS, FAILURE, ERROR)}
        self._authorizations = {result: _series() for result in (ALLOWED, NO_OPINION, ERROR)}
        self._users: dict[str, int] = {}

    def count(self, exchange: Exchange) -> None:
        """A request has been answered, or refused before it was asked who the user is, or what the user may do."""
        result = exchange.authentication
        if result:
            series, seconds = self._authentications[result], exchange.authentication_seconds
            series[0 if seconds <= _SHORT else bisect_left(ACCESS_SECONDS, seconds)] += 1
            series[-1] += seconds  # the sum, behind the counts
            if result == SUCCESS:
                user = compressed((exchange.impersonator or exchange.user).name)
                self._users[user] = self._users.get(user, 0) + 1
        decision = exchange.decision
        if decision is not None:
            answer = ALLOWED if decision.allowed else ERROR if decision.error else NO_OPINION
            series, seconds = self._authorizations[answer], exchange.authorization_seconds
            series[0 if seconds <= _SHORT else bisect_left(ACCESS_SECONDS, seconds)] += 1
            series[-1] += seconds

    def families(self, open_: Iterable[Exchange] = ()) -> list[Family]:
        """The numbers until now, with those of `open_` requests: watches, which are counted when they end."""
        together = AccessMetrics()
        together._authentications = {result: series.copy() for result, series in self._authentications.items()}
        together._authorizations = {result: series.copy() for result, series in self._authorizations.items()}
        together._users = self._users.copy()
        for exchange in open_:
            together.count(exchange)  # into the copies: it is counted for good when it ends
        return together._families()

    def _families(self) -> list[Family]:
        return [
            _attempts("authentication_attempts", "Counter of authenticated attempts.", self._authentications),
            _durations(
                "authentication_duration_seconds",
                "Authentication duration in seconds broken out by result.",
                self._authentications,
            ),
            Family(
                "authenticated_user_requests",
                "counter",
                "Counter of authenticated requests broken out by username.",
                ("username",),
                [((name,), float(count)) for name, count in self._users.items()],
            ),
            _attempts(
                "authorization_attempts_total",
                "Counter of authorization attempts broken down by result. It can be either 'allowed', 'denied', 'no-opinion' "
                "or 'error'.",
                self._authorizations,
            ),
            _durations(
                "authorization_duration_seconds",
                "Authorization duration in seconds broken out by result.",
                self._authorizations,
            ),
        ]


def compressed(name: str) -> str:
    """A user's name without saying who it is (compressUsername)."""
    if name in _USERS:
        return name
    return "email_id" if "@" in name else OTHER


def _series() -> list[float]:
    return [0.0] * (len(ACCESS_SECONDS) + 2)


def _attempts(name: str, about: str, results: dict[str, list[float]]) -> Family:
    numbers: list[tuple[Labels, float]] = [((result,), sum(series[:-1])) for result, series in results.items()]
    return Family(name, "counter", about, ("result",), [(values, count) for values, count in numbers if count])


def _durations(name: str, about: str, results: dict[str, list[float]]) -> Family:
    numbers = [((result,), series.copy()) for result, series in results.items() if any(series[:-1])]
    return Family(name, "histogram", about, ("result",), numbers, ACCESS_SECONDS)


# -- watches -----------------------------------------------------------------------------------------------------------


EVENT_SIZES: Final = exponential(1024, 2, 8)
_WATCH_LABELS: Final = ("group", "version", "resource")


class EventSizes(NamedTuple):
    """Those of encoded events: the bucket of each, and all bytes."""

    buckets: list[int]
    total: int


def event_sizes(frames: Sequence[bytes]) -> EventSizes:
    sizes = [len(frame) for frame in frames]
    return EventSizes([bisect_left(EVENT_SIZES, size) for size in sizes], sum(sizes))


class Sent:
    """The events sent to the watches of a resource."""

    __slots__ = ("_initial", "_of", "_sizes", "_terminated")

    def __init__(self, of: tuple[str, str], sizes: list[float], initial: Counter, terminated: Counter) -> None:
        self._of = of
        self._sizes = sizes
        self._initial = initial
        self._terminated = terminated

    def events(self, measured: EventSizes) -> None:
        """Encoded events were sent."""
        sizes = self._sizes
        for bucket in measured.buckets:
            sizes[bucket] += 1  # those of the resource: all its watches share the list
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
            "apiserver_watch_events_sizes", "Watch event size distribution in bytes", _WATCH_LABELS, EVENT_SIZES
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
        # the list of the histogram itself, into which a stream counts
        sizes = self._sizes.series((resource.group, resource.version, resource.plural))
        return Sent((resource.group, resource.plural), sizes, self._initial, self._terminated)

    def families(self) -> list[Family]:
        sizes = self._sizes.family()
        counts = [(labels, float(sum(list(numbers)[:-1]))) for labels, numbers in sizes.numbers]  # type: ignore[arg-type]
        total = Family(
            "apiserver_watch_events_total", "counter", "Number of events sent in watch clients", _WATCH_LABELS, counts
        )
        return [total, sizes, self._initial.family(), self._terminated.family()]


# -- the access log ----------------------------------------------------------------------------------------------------


def access_log(writer: LineWriter, format_: str, now: Callable[[], float] = time.time) -> Sink:
    """A sink that writes to `writer`."""
    line_of = REQUEST_LINES[format_]

    def write(exchange: Exchange) -> None:
        seconds = exchange.answered - exchange.received
        request, verb = exchange.request, exchange.info.verb
        about = Request(
            now(),
            exchange.user.name,
            verb or request.method,
            request.raw_path,
            exchange.code,
            seconds,
            exchange.id,
            exchange.traceparent,
        )
        line = line_of(about)
        writer.put(line, len(line))  # the thread of the log writes it

    return write
