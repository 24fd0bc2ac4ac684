"""The filters, one by one: what each refuses, what it sets, and that it undoes what it did."""

from __future__ import annotations

import math
from typing import Any

import pytest
from aiohttp import HttpVersion, HttpVersion10, HttpVersion11
from multidict import CIMultiDict

from noxu.api import errors
from noxu.api.errors import ApiError
from noxu.config import Requests
from noxu.http import filters
from noxu.http.answer import Answered
from noxu.http.clients import Unsent
from noxu.http.exchange import Exchange
from noxu.http.filters import (
    Authenticate,
    Authorize,
    CheckOrigin,
    Cors,
    InFlight,
    ParseTarget,
    RequestFilter,
    SetDeadline,
    Tracing,
)
from noxu.http.traces import Traces
from noxu.registry.access import ANONYMOUS, AccessAttributes, Decision, User, allow_everything
from noxu.security.audit import AuditLog
from noxu.security.audit_policy import EVERYTHING
from noxu.security.cors import AllowedOrigins
from noxu.security.credentials import Credentials
from tests.http.exchanges import MAPS
from tests.http.wire import received
from tests.rows import rows
from tests.security.lines import Lines


def exchange_of(
    method: str = "GET", target: str = MAPS, version: HttpVersion = HttpVersion11, backend: Any = None, **headers: str
) -> Exchange:
    """An exchange that no filter has seen. `Audit_Id` is the header Audit-Id."""
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return Exchange(received(method, target, given, version=version), backend, "id", received=100.0)


def parsed(*arguments: Any, **more: Any) -> Exchange:
    """An exchange that `ParseTarget` has seen."""
    exchange = exchange_of(*arguments, **more)
    ParseTarget().enter(exchange)
    return exchange


class Deny:
    """Knows no user."""

    allows_anonymous = False

    def authenticate(self, given: Credentials, warnings: list[str]) -> User:
        raise errors.ApiError(401, "who are you?", "Unauthorized")


def refuse(attributes: AccessAttributes) -> Decision:
    return Decision(allowed=False)


def chain(**parts: Any) -> tuple[RequestFilter, ...]:
    defaults: dict[str, Any] = {
        "own_names": frozenset(),
        "authenticator": Deny(),
        "authorize": refuse,
        "traces": None,
        "unsent": Unsent(),
        "audit_log": AuditLog(EVERYTHING, Lines()),
        "limits": Requests(cors_allowed_origins=("^https://app$",)),
        "shares_store": True,
    }
    return filters.chain(**defaults | parts)


def refusal(filter_: RequestFilter, exchange: Exchange) -> tuple[int, str] | None:
    """The code and message, or the text, with which a filter refuses; None if it lets the request pass."""
    try:
        assert filter_.enter(exchange) is None
    except ApiError as error:
        return error.code, error.text or error.message
    return None


def test_the_order_is_upstreams() -> None:
    assert [type(filter_).__name__ for filter_ in chain()] == [
        "ParseTarget", "CheckOrigin", "SetDeadline", "Cors", "Authenticate", "RecordAudit", "Impersonate", "InFlight", "ConsistentRead", "Authorize",
        "Tracing",
    ]  # fmt: skip


def test_without_an_audit_log_there_is_no_filter_for_it() -> None:
    assert "RecordAudit" not in [type(filter_).__name__ for filter_ in chain(audit_log=None)]


def test_a_server_with_a_store_of_its_own_does_not_wait_for_others() -> None:
    assert "ConsistentRead" not in [type(filter_).__name__ for filter_ in chain(shares_store=False)]


def test_without_allowed_origins_there_is_no_filter_for_them() -> None:
    assert "Cors" not in [type(filter_).__name__ for filter_ in chain(limits=Requests())]


def test_without_an_authenticator_every_client_is_anonymous() -> None:
    assert "Authenticate" not in [type(filter_).__name__ for filter_ in chain(authenticator=None)]
    assert parsed(X_User="root").user is ANONYMOUS


def test_where_everything_is_allowed_nothing_is_asked() -> None:
    assert "Authorize" not in [type(filter_).__name__ for filter_ in chain(authorize=allow_everything)]


def test_the_docstring_lists_the_filters_in_their_order() -> None:
    lines = [line.split() for line in (filters.__doc__ or "").splitlines() if line.startswith("    ")]
    assert [words[0] for words in lines] == [type(filter_).__name__ for filter_ in chain()]


def test_an_earlier_refusal_hides_the_later_ones() -> None:
    """A request with every fault; each filter is asked, then taken out of its way."""
    exchange = parsed(target=f"{MAPS}?timeout=x", Host="evil.example", X_Noxu_Trace="1", Impersonate_Group="g")
    found = []
    for filter_ in chain(audit_log=None, shares_store=False):
        refused = refusal(filter_, exchange)
        found.append((type(filter_).__name__, refused[0] if refused else 0))
    assert found == [
        ("ParseTarget", 0), ("CheckOrigin", 403), ("SetDeadline", 400), ("Cors", 0), ("Authenticate", 401), ("Impersonate", 400),
        ("InFlight", 0),
        ("Authorize", 403), ("Tracing", 400),
    ]  # fmt: skip


# -- ParseTarget -----------------------------------------------------------------------------------------------------------

PARSED: list[tuple[str, str, str, str, str]] = [
    ("a path", "/api/v1/namespaces", "/api/v1/namespaces", "namespaces", "h"),
    ("an escaped path", "/api/v1/name%73paces", "/api/v1/namespaces", "namespaces", "h"),
    ("a whole URL, whose host counts", "http://other:1/api/v1/namespaces", "/api/v1/namespaces", "namespaces", "other:1"),
    ("a document", "/version", "/version", "", "h"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("target", "path", "resource", "host"), [row[1:] for row in PARSED], ids=[row[0] for row in PARSED]
)
def test_the_target_is_parsed(target: str, path: str, resource: str, host: str) -> None:
    exchange = parsed(target=target, Host="h")
    assert (exchange.path, exchange.info.resource, exchange.host) == (path, resource, host)


@pytest.mark.parametrize(
    ("method", "target", "path", "host"),
    [
        ("CONNECT", "a:1", "", "a:1"),
        ("CONNECT", "/version", "/version", "h"),
        ("FOO", "/version", "/version", "h"),
    ],
)
def test_a_target_that_need_not_be_a_path(method: str, target: str, path: str, host: str) -> None:
    exchange = parsed(method, target, Host="h")
    assert (exchange.path, exchange.info.verb, exchange.host) == (path, "", host)


MALFORMED: list[tuple[str, str, HttpVersion, tuple[int, str] | None]] = [
    ("HTTP/0.9", MAPS, HttpVersion(0, 9), (400, "400 Bad Request: malformed HTTP version")),
    ("HTTP/2.0", MAPS, HttpVersion(2, 0), (505, "505 HTTP Version Not Supported: unsupported protocol version")),
    ("HTTP/1.0", MAPS, HttpVersion10, None),
    ("an escape of nothing", "/api/v1/%zz", HttpVersion11, (400, "400 Bad Request")),
    ("a namespace that leads elsewhere", "/api/v1/namespaces/%2e%2e/configmaps", HttpVersion11,
     (400, 'Namespace parameter invalid: "..": may not be \'..\'')),
]  # fmt: skip


@pytest.mark.parametrize(
    ("target", "version", "expected"), [row[1:] for row in MALFORMED], ids=[row[0] for row in MALFORMED]
)
def test_a_malformed_target(target: str, version: HttpVersion, expected: tuple[int, str] | None) -> None:
    assert refusal(ParseTarget(), exchange_of(target=target, version=version)) == expected


def test_options_of_the_server_as_a_whole_is_answered_to_anyone() -> None:
    exchange = exchange_of("OPTIONS", "*", Host="evil.example")
    with pytest.raises(Answered) as answered:
        ParseTarget().enter(exchange)
    answer = answered.value.answer
    assert (answer.status, answer.body, answer.headers, exchange.is_judged) == (200, b"", (), True)


# -- CheckOrigin -----------------------------------------------------------------------------------------------------------

ORIGINS: list[tuple[str, str, str | None, bool]] = [
    ("an address of loopback", "127.0.0.1:80", None, True),
    ("another address of loopback", "127.9.9.9", None, True),
    ("localhost", "localhost:80", None, True),
    ("IPv6", "[::1]:80", None, True),
    ("no host", "", None, True),
    ("an own name", "noxu.test:80", None, True),
    ("another name", "evil.example", None, False),
    ("an own name's subdomain", "evil.noxu.test", None, False),
    ("an address of the network", "192.168.0.1", None, False),
    ("a name too long to be cached", "a" * 300, None, False),
    ("its own web page", "127.0.0.1:80", "http://127.0.0.1:80", True),
    ("its own web page on the usual port", "127.0.0.1:80", "http://127.0.0.1", True),
    ("its own web page on the usual port that Host leaves out", "127.0.0.1", "http://127.0.0.1:80", True),
    ("the web page of an own name", "noxu.test:81", "http://noxu.test:81", True),
    ("the web page of an IPv6 address", "[::1]:81", "http://[::1]:81", True),
    ("in other letters", "LOCALHOST:80", "HTTP://localhost:80", True),
    ("a web page of another program", "127.0.0.1:80", "http://127.0.0.1:81", False),
    ("a web page of kubectl proxy", "127.0.0.1:80", "http://localhost:8001", False),
    ("a web page of another program on the usual port", "127.0.0.1:81", "http://127.0.0.1", False),
    ("a web page of another scheme", "noxu.test:80", "https://noxu.test:80", False),
    ("a web page of another scheme on its usual port", "127.0.0.1:443", "https://127.0.0.1", False),
    ("its own web page under another name", "127.0.0.1:80", "http://localhost:80", False),
    ("a page in a zone of IPv6", "[::1]:80", "http://[::1%25lo]:80", False),
    ("a page of a name with a dot behind it", "localhost:80", "http://localhost.:80", False),
    ("a path behind its own page", "127.0.0.1:80", "http://127.0.0.1:80/", False),
    ("a user before its own page", "127.0.0.1:80", "http://a@127.0.0.1:80", False),
    ("a host that is not there", "", "http://", False),
    ("a long origin", "127.0.0.1:80", f"http://{'a' * 5000}", False),
    ("an extension of a browser", "127.0.0.1:80", "chrome-extension://localhost", False),
    ("an origin without a scheme", "127.0.0.1:80", "localhost", False),
    ("an own name's web page under another name", "127.0.0.1:80", "https://noxu.test:80", False),
    ("an own name's web page on another port", "noxu.test:80", "https://noxu.test:81", False),
    ("text behind an address", "127.0.0.1:80", "http://[::1]evil.com", False),
    ("a web page elsewhere", "127.0.0.1:80", "http://evil.example", False),
    ("a web page of no origin", "127.0.0.1:80", "null", False),
    ("an empty origin", "127.0.0.1:80", "", False),
    ("host and origin elsewhere", "evil.example", "http://evil.example", False),
]  # fmt: skip


@rows(("host", "origin", "passes"), [row[1:] for row in ORIGINS], ids=[row[0] for row in ORIGINS])
def test_origin(host: str, origin: str | None, passes: bool) -> None:
    exchange = parsed(Host=host, **({} if origin is None else {"Origin": origin}))
    refused = refusal(CheckOrigin(frozenset({"noxu.test"})), exchange)
    assert refused is None if passes else refused is not None and refused[0] == 403


@pytest.mark.parametrize(
    ("site", "passes"), [("same-origin", True), ("same-site", False), ("none", True), ("cross-site", False)]
)
def test_requests_that_a_browser_calls_cross_site_are_refused(site: str, passes: bool) -> None:
    refused = refusal(CheckOrigin(frozenset()), parsed(Host="127.0.0.1", Sec_Fetch_Site=site))
    assert refused is None if passes else refused is not None and refused[0] == 403


def test_one_of_several_origins_is_not_enough() -> None:
    given = CIMultiDict([("Host", "127.0.0.1"), ("Origin", "http://127.0.0.1"), ("Origin", "http://127.0.0.1:81")])
    exchange = Exchange(received("GET", MAPS, given), None, "id", received=100.0)  # type: ignore[arg-type]
    ParseTarget().enter(exchange)
    refused = refusal(CheckOrigin(frozenset(), AllowedOrigins(["^http://127\\.0\\.0\\.1$"])), exchange)
    assert refused is not None
    assert refused[0] == 403


@pytest.mark.parametrize(("origin", "passes"), [("https://noxu.test", True), ("http://noxu.test", False)])
def test_over_tls_the_scheme_is_another(origin: str, passes: bool) -> None:
    refused = refusal(CheckOrigin(frozenset(), any_host=True), parsed(Host="noxu.test", Origin=origin))
    assert (refused is None) == passes


def test_the_host_of_a_whole_url_is_checked() -> None:
    exchange = parsed(target=f"http://evil.example{MAPS}", Host="127.0.0.1")
    assert refusal(CheckOrigin(frozenset()), exchange) is not None


# -- SetDeadline ---------------------------------------------------------------------------------------------------------

DEADLINES: list[tuple[str, str, float]] = [
    ("a list", MAPS, 160.0),
    ("a document", "/version", math.inf),
    ("a watch", f"{MAPS}?watch=1&timeout=5s", math.inf),
    ("a shorter timeout", f"{MAPS}?timeout=5s", 105.0),
    ("a fraction of a second", f"{MAPS}?timeout=500ms", 100.5),
    ("a longer timeout", f"{MAPS}?timeout=2m", 160.0),
    ("no time at all", f"{MAPS}?timeout=0s", 160.0),
    ("a negative timeout", f"{MAPS}?timeout=-1s", 160.0),
    ("an empty timeout", f"{MAPS}?timeout=", 160.0),
]


@rows(("target", "deadline"), [row[1:] for row in DEADLINES], ids=[row[0] for row in DEADLINES])
def test_the_deadline_of(target: str, deadline: float) -> None:
    exchange = parsed(target=target)
    assert refusal(SetDeadline(), exchange) is None
    assert exchange.deadline == deadline


@pytest.mark.parametrize("path", [MAPS, "/version", "/livez", "/apis", "/nothing", "/", "/openapi/v2"])
@pytest.mark.parametrize(
    ("timeout", "why"),
    [
        ("x", 'invalid duration "x"'),
        ("5", 'missing unit in duration "5"'),
        ("%20", 'invalid duration " "'),
        ("1h" * 513, "invalid duration of more than 1024 characters"),
    ],
)
def test_a_timeout_that_is_no_duration_is_refused_on_every_path(path: str, timeout: str, why: str) -> None:
    text = f"invalid timeout specified in the request URL - time: {why}"
    assert refusal(SetDeadline(), parsed(target=f"{path}?timeout={timeout}")) == (400, text)


def test_a_watch_ignores_a_timeout_that_is_no_duration() -> None:
    assert refusal(SetDeadline(), parsed(target=f"{MAPS}?watch=1&timeout=x")) is None


# -- Authenticate and Authorize ---------------------------------------------------------------------------------------


class Names:
    """The user is whom the header X-User names."""

    allows_anonymous = False

    def authenticate(self, given: Credentials, warnings: list[str]) -> User:
        return User(given.headers["X-User"])


def only_reading_for_eve(asked: AccessAttributes) -> Decision:
    return Decision(asked.user.name != "eve" or asked.verb in ("get", "list", "watch"), "not she")


def test_the_authenticator_reads_the_headers() -> None:
    exchange = parsed(X_User="root")
    assert refusal(Authenticate(Names()), exchange) is None
    assert exchange.user == User("root")


class Slow:
    """Has to load objects first."""

    allows_anonymous = False

    async def authenticate(self, given: Credentials, warnings: list[str]) -> User:
        return User("late")


async def test_the_authenticator_may_have_to_wait() -> None:
    exchange = parsed()
    waiting = Authenticate(Slow()).enter(exchange)
    assert exchange.user is ANONYMOUS
    assert waiting is not None
    await waiting
    assert exchange.user == User("late")


REQUESTS: list[tuple[str, str, str, tuple[int, str] | None]] = [
    ("root", "POST", MAPS, None),
    ("eve", "GET", MAPS, None),
    ("eve", "GET", "/version", None),
    (
        "eve",
        "POST",
        MAPS,
        (
            403,
            'configmaps is forbidden: User "eve" cannot create resource "configmaps" in API group "" in the namespace "default": '
            "not she",
        ),
    ),
]


@pytest.mark.parametrize(("name", "method", "target", "expected"), REQUESTS)
def test_the_authorizer_sees_the_user_and_the_request(
    name: str, method: str, target: str, expected: tuple[int, str] | None
) -> None:
    exchange = parsed(method, target)
    exchange.user = User(name)
    assert refusal(Authorize(only_reading_for_eve), exchange) == expected
    assert refusal(Authorize(allow_everything), exchange) is None


# -- Cors -------------------------------------------------------------------------------------------------------------

PAGES = AllowedOrigins(["^https://app\\.example\\.com$"])
PAGE = "https://app.example.com"
CORS_HEADERS = [
    ("Access-Control-Allow-Origin", PAGE),
    ("Access-Control-Allow-Methods", "POST, GET, OPTIONS, PUT, DELETE, PATCH"),
    ("Access-Control-Allow-Headers",
     "Content-Type, Content-Length, Accept-Encoding, X-CSRF-Token, Authorization, X-Requested-With, If-Modified-Since"),
    ("Access-Control-Expose-Headers", "Date"),
    ("Access-Control-Allow-Credentials", "true"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("origin", "expected"),
    [(None, []), ("", []), ("https://evil.example", []), (PAGE, CORS_HEADERS)],
    ids=["no page", "an empty origin", "another page", "an allowed page"],
)
def test_the_headers_for(origin: str | None, expected: list[tuple[str, str]]) -> None:
    exchange = parsed(**({} if origin is None else {"Origin": origin}))
    assert refusal(Cors(PAGES), exchange) is None
    assert exchange.headers == expected


def test_a_preflight_is_answered_before_its_user_is_known() -> None:
    exchange = parsed("OPTIONS", Origin=PAGE)
    with pytest.raises(Answered) as answered:
        Cors(PAGES).enter(exchange)
    assert (answered.value.answer.status, answered.value.answer.body, exchange.headers) == (204, b"", CORS_HEADERS)
    assert refusal(Cors(PAGES), parsed("OPTIONS", Origin="https://evil.example")) is None


@pytest.mark.parametrize("any_host", [False, True], ids=["without TLS", "over TLS"])
def test_an_allowed_page_passes_the_check_of_origins_under_our_name_only(any_host: bool) -> None:
    origin = CheckOrigin(frozenset(), PAGES, any_host=any_host)
    assert refusal(origin, parsed(Host="127.0.0.1", Origin=PAGE, Sec_Fetch_Site="cross-site")) is None
    assert refusal(origin, parsed(Host="127.0.0.1", Origin="https://evil.example")) is not None
    rebound = refusal(origin, parsed(Host="evil.example", Origin=PAGE))
    assert (rebound is None) == any_host


# -- InFlight ---------------------------------------------------------------------------------------------------------


def answered(exchange: Exchange) -> None:
    """What `App` does when an answer has been sent."""
    assert exchange.limit is not None
    exchange.limit.running -= 1


READ, WRITE, FREE = "read", "write", "free"
KINDS: list[tuple[str, str, str, str]] = [
    ("a list", "GET", MAPS, READ),
    ("an object", "GET", f"{MAPS}/a", READ),
    ("a document", "GET", "/version", READ),
    ("OpenAPI", "GET", "/openapi/v2", READ),
    ("a document by POST", "POST", "/version", WRITE),
    ("a verb without meaning", "OPTIONS", MAPS, WRITE),
    ("a create", "POST", MAPS, WRITE),
    ("an update", "PUT", f"{MAPS}/a", WRITE),
    ("a patch", "PATCH", f"{MAPS}/a", WRITE),
    ("a delete", "DELETE", f"{MAPS}/a", WRITE),
    ("a delete of all", "DELETE", MAPS, WRITE),
    ("a watch", "GET", f"{MAPS}?watch=1", FREE),
    ("a log", "GET", "/api/v1/namespaces/default/pods/a/log", FREE),
    ("a connection to a pod", "POST", "/api/v1/namespaces/default/pods/a/exec", FREE),
    ("a health check", "GET", "/readyz", FREE),
    ("the check of one part", "GET", "/readyz/ping", READ),
]


@rows(("method", "target", "kind"), [row[1:] for row in KINDS], ids=[row[0] for row in KINDS])
def test_the_limit_of(method: str, target: str, kind: str) -> None:
    """With room for one read, or for one write."""
    for limits, limited in (((1, 100), READ), ((100, 1), WRITE)):
        in_flight = InFlight(Unsent(), *limits)
        first, second = parsed(method, target), parsed(method, target)
        assert refusal(in_flight, first) is None
        refused = refusal(in_flight, second)
        if kind != limited:
            assert refused is None
            continue
        assert refused == (429, "Too many requests, please try again later.\n")
        answered(first)
        assert refusal(in_flight, second) is None


@pytest.mark.slow
def test_there_may_be_no_limit() -> None:
    in_flight = InFlight(Unsent(), 0, 0)
    for method in ("GET", "POST"):
        assert [refusal(in_flight, parsed(method)) for _ in range(1000)] == [None] * 1000


def test_masters_are_never_refused_and_release_what_they_took() -> None:
    in_flight = InFlight(Unsent(), 1, 1)
    exchanges = [parsed() for _ in range(3)]
    for exchange in exchanges:
        exchange.user = User("admin", groups=("system:masters", "system:authenticated"))
        assert refusal(in_flight, exchange) is None
    assert refusal(in_flight, parsed()) == (429, "Too many requests, please try again later.\n")
    for exchange in exchanges:
        answered(exchange)
    assert refusal(in_flight, parsed()) is None


def test_who_acts_as_another_user_has_the_limits_of_that_user() -> None:
    in_flight = InFlight(Unsent(), 1, 1)
    assert refusal(in_flight, parsed()) is None
    exchange = parsed()
    exchange.impersonator, exchange.user = User("admin", groups=("system:masters",)), User("bob")
    assert refusal(in_flight, exchange) is not None


def test_for_each_refused_request_a_client_that_does_not_read_is_disconnected(monkeypatch: pytest.MonkeyPatch) -> None:
    disconnected: list[bool] = []
    unsent = Unsent()
    monkeypatch.setattr(unsent, "disconnect_stalled", lambda: disconnected.append(True))
    in_flight = InFlight(unsent, 1)
    assert refusal(in_flight, parsed()) is None
    assert disconnected == []
    assert refusal(in_flight, parsed()) is not None
    assert disconnected == [True]


def test_a_refused_client_may_try_again_after_a_second() -> None:
    in_flight = InFlight(Unsent(), 1, 1)
    in_flight.enter(parsed())
    with pytest.raises(ApiError) as caught:
        in_flight.enter(parsed())
    assert (caught.value.retry_after, caught.value.reason) == (1, "TooManyRequests")


# -- Tracing ----------------------------------------------------------------------------------------------------------

TRACED: list[tuple[str, str, str, str, bool]] = [
    ("a create", "POST", MAPS, "1", True),
    ("a delete", "DELETE", f"{MAPS}/a", "1", True),
    ("a read", "GET", f"{MAPS}/a", "1", False),
    ("a list", "GET", MAPS, "1", False),
    ("a watch", "GET", f"{MAPS}?watch=1", "1", False),
    ("a document", "POST", "/version", "1", False),
]


@pytest.mark.parametrize(
    ("method", "target", "header", "traced"), [row[1:] for row in TRACED], ids=[row[0] for row in TRACED]
)
def test_writes_are_traced_on_request(method: str, target: str, header: str, traced: bool) -> None:
    traces = Traces()
    exchange = parsed(method, target, X_Noxu_Trace=header)
    assert refusal(Tracing(traces), exchange) is None
    assert (exchange.trace == []) == traced
    for leave in exchange.leaving:
        leave(exchange)
    assert [name for name, _ in exchange.headers] == ["X-Noxu-Trace"] * traced


def test_a_write_without_the_header_is_not_traced() -> None:
    exchange = parsed("POST")
    assert refusal(Tracing(Traces()), exchange) is None
    assert exchange.trace is None


UNTRACED: list[tuple[str, Traces | None, str, str]] = [
    ("another value", Traces(), "yes", "X-Noxu-Trace: 'yes' is not supported: send 1 to have the write traced"),
    ("no traces", None, "1", "X-Noxu-Trace: this server offers no traces: it is not on loopback"),
]


@pytest.mark.parametrize(
    ("traces", "header", "message"), [row[1:] for row in UNTRACED], ids=[row[0] for row in UNTRACED]
)
def test_a_trace_that_is_refused(traces: Traces | None, header: str, message: str) -> None:
    assert refusal(Tracing(traces), parsed("POST", X_Noxu_Trace=header)) == (400, message)
