"""The numbers of requests: their labels, and that no path, method or query of a client takes memory."""

from __future__ import annotations

import random
import string
from collections import Counter
from typing import Any

import pytest

from noxu.api import errors
from noxu.api.errors import ApiError
from noxu.http.clients import Unsent
from noxu.http.exchange import Exchange
from noxu.http.filters import InFlight, ParseTarget
from noxu.http.metrics import DURATIONS, RequestMetrics, about_of
from noxu.http.responses import too_late
from noxu_storage.memory import MemoryStore
from tests.control_planes import assemble
from tests.http.exchanges import MAPS
from tests.http.wire import received
from tests.rows import rows

LIVE = assemble(MemoryStore()).served_resources
CATALOG = LIVE.current
APPLY = {"Content-Type": "application/apply-patch+yaml"}
MERGE = {"Content-Type": "application/merge-patch+json"}
JOBS = "/apis/batch/v1/namespaces/a/jobs"


def exchange_of(method: str, target: str, **headers: str) -> Exchange:
    exchange = Exchange(received(method, target, headers), None, "id", received=100.0)  # type: ignore[arg-type]
    ParseTarget().enter(exchange)
    exchange.answered = 100.0
    exchange.code = 200
    return exchange


# method, target, headers → verb, group, version, resource, subresource, scope
LABELS: dict[str, tuple[str, str, dict[str, str], str]] = {
    "an object": ("GET", f"{MAPS}/a", {}, "GET v1 configmaps - resource"),
    "HEAD of an object": ("HEAD", f"{MAPS}/a", {}, "GET v1 configmaps - resource"),
    "a list in a namespace": ("GET", MAPS, {}, "LIST v1 configmaps - namespace"),
    "a list of all namespaces": ("GET", "/api/v1/configmaps", {}, "LIST v1 configmaps - cluster"),
    "a list in a group": ("GET", "/apis/batch/v1/jobs", {}, "LIST batch/v1 jobs - cluster"),
    "a watch": ("GET", f"{MAPS}?watch=1", {}, "WATCH v1 configmaps - namespace"),
    "no watch": ("GET", f"{MAPS}?watch=0", {}, "LIST v1 configmaps - namespace"),
    "a watch by its old path": ("GET", "/api/v1/watch/configmaps", {}, "WATCH v1 configmaps - cluster"),
    "a GET with the parameter watch": ("GET", f"{MAPS}/a?watch=true", {}, "WATCH v1 configmaps - resource"),
    "a create": ("POST", MAPS, {}, "POST v1 configmaps - resource"),
    "an update": ("PUT", f"{MAPS}/a", {}, "PUT v1 configmaps - resource"),
    "a patch": ("PATCH", f"{MAPS}/a", MERGE, "PATCH v1 configmaps - resource"),
    "an apply": ("PATCH", f"{MAPS}/a", APPLY, "APPLY v1 configmaps - resource"),
    "a deletion": ("DELETE", f"{MAPS}/a", {}, "DELETE v1 configmaps - resource"),
    "a deletion of many": ("DELETE", MAPS, {}, "DELETE v1 configmaps - namespace"),
    "a status": ("PATCH", f"{JOBS}/a/status", MERGE, "PATCH batch/v1 jobs status resource"),
    "a log": ("GET", "/api/v1/namespaces/a/pods/b/log", {}, "CONNECT v1 pods log resource"),
    "a namespace": ("GET", "/api/v1/namespaces/a", {}, "GET v1 namespaces - resource"),
    "another method": ("BREW", MAPS, {}, "other v1 configmaps - namespace"),
    "a subresource that does not exist": ("GET", f"{MAPS}/a/b", {}, "GET v1 configmaps - resource"),
    "a resource that does not exist": ("GET", "/api/v1/none", {}, "GET - - - -"),
    "a group that does not exist": ("DELETE", "/apis/none.example.com/v1/x/y", {}, "DELETE - - - -"),
    "a path": ("GET", "/favicon.ico", {}, "GET - - - -"),
    "health": ("GET", "/healthz", {}, "GET - - /healthz -"),
    "one check": ("GET", "/readyz/poststarthook/x", {}, "GET - - /readyz -"),
    "discovery": ("GET", "/apis/batch/v1", {}, "GET - - /apis -"),
    "OpenAPI": ("GET", "/openapi/v3", {}, "GET - - /openapi -"),
    "another method of a document": ("OPTIONS", "/version", {}, "other - - /version -"),
}


@rows(("method", "target", "headers", "expected"), LABELS.values(), ids=LABELS)
def test_the_labels_of(method: str, target: str, headers: dict[str, str], expected: str) -> None:
    found = about_of(exchange_of(method, target, **headers), CATALOG).labels
    verb, group, version, resource, subresource, scope, component = found
    api_version = f"{group}/{version}" if group else version
    assert [verb, api_version or "-", resource or "-", subresource or "-", scope or "-"] == expected.split()
    assert component == ("apiserver" if resource else "")


# the query, the label
DRY_RUNS = [
    ("", ""),
    ("?pretty=1", ""),
    ("?dryRun=All", "All"),
    ("?dryRun=All&dryRun=All", "All"),
    ("?dryRun=", "invalid"),
    ("?dryRun=All&dryRun=Some", "invalid"),
]


@pytest.mark.parametrize(("query", "expected"), DRY_RUNS)
def test_the_dry_run(query: str, expected: str) -> None:
    assert about_of(exchange_of("POST", f"{MAPS}{query}"), CATALOG).dry_run == expected


def test_requests_are_counted_under_their_labels_whatever_came_before() -> None:
    """The records that are found by what most requests have in common are those of the labels."""
    queries = ("", "?fieldManager=a", "?pretty=1&timeout=5s", "?dryRun=All", "?dryRun=", "?watch=1", "?watch=0")
    requests = [
        (method, target + query, headers)
        for method, target, headers, _ in LABELS.values()
        for query in queries
        if not query or "?" not in target
    ]
    observed, expected = metrics(), Counter[tuple[str, ...]]()
    for _ in range(2):
        for method, target, headers in requests:
            exchange = exchange_of(method, target, **headers)
            observed(exchange)
            about = about_of(exchange, CATALOG)
            expected[*about.labels, about.dry_run, "200"] += 1
        random.Random(1).shuffle(requests)
    [total] = [family for family in observed.families() if family.name == "apiserver_request_total"]
    assert dict(total.numbers) == expected


def metrics() -> RequestMetrics:
    return RequestMetrics(LIVE)


def numbers(observed: RequestMetrics, name: str) -> list[Any]:
    return [number for family in observed.families() if family.name == name for _, number in family.numbers]


def test_codes_are_counted_separately() -> None:
    observed = metrics()
    for code in (200, 404, 200):
        exchange = exchange_of("GET", f"{MAPS}/a")
        exchange.code = code
        observed(exchange)
    assert numbers(observed, "apiserver_request_total") == [2, 1]
    assert sum(numbers(observed, "apiserver_request_duration_seconds")[0][:-1]) == 3


def test_the_sli_leaves_out_webhooks() -> None:
    observed = metrics()
    exchange = exchange_of("POST", MAPS)
    exchange.answered += 0.7
    exchange.outcome.webhook_seconds = 0.25
    observed(exchange)
    (duration,), (sli,) = (numbers(observed, f"apiserver_request_{part}duration_seconds") for part in ("", "sli_"))
    assert [duration.index(1), duration[-1]] == [DURATIONS.index(0.8), pytest.approx(0.7)]
    assert [sli.index(1), sli[-1]] == [DURATIONS.index(0.6) - 2, pytest.approx(0.45)]


@pytest.mark.parametrize("seconds", [0, 0.005, 0.02, 0.04, 0.05, 0.06, 60, 61])
def test_durations_and_slis_have_the_same_buckets_from_50_milliseconds_on(seconds: float) -> None:
    observed = metrics()
    exchange = exchange_of("GET", f"{MAPS}/a")
    exchange.answered += seconds
    observed(exchange)
    (duration,), (sli,) = (numbers(observed, f"apiserver_request_{part}duration_seconds") for part in ("", "sli_"))
    assert sli[:-1] == [sum(duration[:3]), *duration[3:-1]]


def test_dry_runs_have_no_sli() -> None:
    observed = metrics()
    observed(exchange_of("POST", f"{MAPS}?dryRun=All"))
    assert numbers(observed, "apiserver_request_sli_duration_seconds") == []
    assert numbers(observed, "apiserver_request_total") == [1]


def test_bodies_and_answers_have_a_size() -> None:
    observed = metrics()
    read, written = exchange_of("GET", f"{MAPS}/a"), exchange_of("PUT", f"{MAPS}/a")
    read.sent_bytes, written.received_bytes, written.sent_bytes = 5000, 60_000, 7
    refused = exchange_of("PUT", f"{MAPS}/a")
    for exchange in (read, written, refused):
        observed(exchange)
    (sizes,), (bodies,) = (
        numbers(observed, f"apiserver_{part}") for part in ("response_sizes", "request_body_size_bytes")
    )
    assert sizes[1] == 1
    assert sizes[-1] == 5000
    assert bodies[1] == 1
    assert sum(bodies[:-1]) == 1
    assert bodies[-1] == 60_000


TERMINATED: dict[str, tuple[ApiError | None, int, int]] = {
    "too many in flight": (ApiError(429, "", text="Too many requests\n"), 429, 1),
    "too late": (too_late(), 504, 1),
    "an eviction that a budget refuses": (ApiError(429, "Cannot evict pod", "TooManyRequests"), 429, 0),
    "a timeout of the request itself": (errors.timeout("slow", 0), 504, 0),
    "a success": (None, 200, 0),
}


@pytest.mark.parametrize(("error", "code", "count"), TERMINATED.values(), ids=TERMINATED)
def test_requests_beyond_the_limits_are_counted(error: ApiError | None, code: int, count: int) -> None:
    observed = metrics()
    exchange = exchange_of("GET", f"{MAPS}/a")
    exchange.error, exchange.code = error, code
    observed(exchange)
    found = {family.name: family.numbers for family in observed.families()}["apiserver_request_terminations_total"]
    labels = ("GET", "", "v1", "configmaps", "", "resource", "apiserver", str(code))
    assert found == ([(labels, 1)] if count else [])


def test_the_times_of_rules_are_counted_for_requests_that_have_some() -> None:
    observed = metrics()
    written, defined = exchange_of("PUT", f"{MAPS}/a"), exchange_of("PUT", f"{MAPS}/a")
    written.outcome.rule_seconds = 0.02
    defined.outcome.compile_seconds = [0.001, 0.3]
    for exchange in (written, defined, exchange_of("PUT", f"{MAPS}/a")):
        observed(exchange)
    found = {}
    for name in ("evaluation", "compilation"):
        (series,) = numbers(observed, f"apiserver_cel_{name}_duration_seconds")
        found[name] = [n for n, count in enumerate(series[:-1]) if count]
    assert found == {"evaluation": [2], "compilation": [0, 6]}


def test_deprecated_versions_are_named_once() -> None:
    observed = metrics()
    for method, target in (("GET", "/api/v1/endpoints"), ("POST", "/api/v1/namespaces/a/endpoints"), ("GET", MAPS)):
        observed(exchange_of(method, target))
    found = [family.numbers for family in observed.families() if family.name == "apiserver_requested_deprecated_apis"]
    assert found == [[(("", "v1", "endpoints", "", ""), 1)]]


SAME_LABELS = [
    ("GET", "/api/v1/namespaces/a/pods/b/log"),
    ("POST", "/api/v1/namespaces/a/pods/b/log"),
    ("POST", "/api/v1/namespaces/a/pods"),
    ("POST", "/api/v1/watch/namespaces/a/pods/b"),
]


def test_no_family_has_the_same_labels_twice() -> None:
    """Prometheus would refuse all metrics."""
    observed = metrics()
    for method, target in SAME_LABELS:
        exchange = exchange_of(method, target)
        exchange.received_bytes = 10
        observed(exchange)
    assert sorted(numbers(observed, "apiserver_request_total")) == [2, 2]
    assert all_unique(observed)


def all_unique(observed: RequestMetrics) -> bool:
    return all(len({labels for labels, _ in one.numbers}) == len(one.numbers) for one in observed.families())


@pytest.mark.slow
def test_random_requests_take_no_memory() -> None:
    """10,000 of them have a few dozen records."""
    choose = random.Random(7)

    def word() -> str:
        return "".join(choose.choices(string.ascii_lowercase, k=choose.randint(1, 8)))

    prefixes = ["", "/api/v1", "/apis", MAPS, f"{MAPS}/a", "/healthz", "/apis/batch/v1/namespaces"]
    methods = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]
    observed = metrics()
    for _ in range(10_000):
        path = "".join([choose.choice(prefixes), *(f"/{word()}" for _ in range(choose.randint(0, 5)))])
        method = choose.choice([*methods, word().upper()])
        query = choose.choice(["", "", f"?{word()}={word()}", f"?dryRun={word()}", f"?watch={word()}"])
        observed(exchange_of(method, path + query or "/"))
    assert sum(numbers(observed, "apiserver_request_total")) == 10_000
    assert len(observed._records) < 200
    assert all_unique(observed)


# -- in flight


def test_the_highest_number_in_flight_is_that_of_the_last_second() -> None:
    in_flight = InFlight(Unsent())
    first, second, write = exchange_of("GET", MAPS), exchange_of("GET", MAPS), exchange_of("POST", MAPS)
    for exchange in (first, second, write):
        in_flight.enter(exchange)
    assert in_flight.highest(100.5) == (2, 1)
    in_flight.reading.running -= 2
    assert in_flight.highest(101.2) == (2, 1)
    assert in_flight.highest(102.3) == (0, 1)
