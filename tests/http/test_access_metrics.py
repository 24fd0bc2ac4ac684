"""The numbers of authentication and authorization: what is counted, and under which names."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

import pytest

from noxu.api.errors import ApiError
from noxu.http.filters import Authenticate, Authorize
from noxu.http.metrics import ACCESS_SECONDS, AccessMetrics
from noxu.registry.access import ALLOWED, AccessAttributes, Decision, User
from noxu.security.credentials import Credentials
from tests.http.exchanges import serving_app
from tests.http.test_filters import parsed
from tests.timing import eventually_async


def numbers(metrics: AccessMetrics) -> dict[str, Any]:
    """By the name of a metric, its numbers by their label. Histograms are the counts of their buckets."""
    return {
        family.name: {
            values[0]: list(number[:-1]) if isinstance(number, list) else number for values, number in family.numbers
        }
        for family in metrics.families()
    }


class Known:
    """Knows the user of the header, and refuses requests without one; with `waits` after loading objects."""

    allows_anonymous = False

    def __init__(self, *, waits: bool) -> None:
        self.waits = waits

    def authenticate(self, given: Credentials, warnings: list[str]) -> User | Awaitable[User]:
        return self._later(given) if self.waits else self._user(given)

    async def _later(self, given: Credentials) -> User:
        return self._user(given)

    def _user(self, given: Credentials) -> User:
        if "X-User" not in given.headers:
            raise ApiError(401, "Unauthorized", "Unauthorized")
        return User(given.headers["X-User"])


ATTEMPTS: dict[str, tuple[dict[str, str], str, dict[str, int]]] = {
    "a person": ({"X_User": "ada@example.com"}, "success", {"email_id": 1}),
    "a name of kube-apiserver's list": ({"X_User": "kubelet"}, "success", {"kubelet": 1}),
    "an account": ({"X_User": "system:serviceaccount:a:b"}, "success", {"other": 1}),
    "no credentials where they are required": ({}, "failure", {}),
    "a bad token": ({"Authorization": "Bearer t"}, "error", {}),
}


@pytest.mark.parametrize("waits", [False, True], ids=["at once", "when objects are loaded"])
@pytest.mark.parametrize(("headers", "result", "users"), ATTEMPTS.values(), ids=ATTEMPTS)
async def test_the_authentication_of(headers: dict[str, str], result: str, users: dict[str, int], waits: bool) -> None:
    metrics = AccessMetrics()
    exchange = parsed(**headers)
    try:
        waiting = Authenticate(Known(waits=waits)).enter(exchange)
        assert (waiting is not None) == waits
        if waiting is not None:
            await waiting
    except ApiError:
        assert result != "success"
    metrics.count(exchange)
    found = numbers(metrics)
    assert found["authentication_attempts"] == {result: 1}
    assert sum(found["authentication_duration_seconds"].pop(result)) == 1
    assert found["authentication_duration_seconds"] == {}
    assert found["authenticated_user_requests"] == users


DECISIONS: dict[str, tuple[Decision, str]] = {
    "allowed": (ALLOWED, "allowed"),
    "refused": (Decision(allowed=False), "no-opinion"),
    "refused because of an error": (Decision(allowed=False, error="no role"), "error"),
    "allowed in spite of an error": (Decision(allowed=True, error="no role"), "allowed"),
}


@pytest.mark.parametrize(("decision", "result"), DECISIONS.values(), ids=DECISIONS)
def test_a_request_that_is(decision: Decision, result: str) -> None:
    metrics = AccessMetrics()

    def decide(_: AccessAttributes) -> Decision:
        return decision

    exchange = parsed()
    try:
        Authorize(decide).enter(exchange)
    except ApiError:
        assert not decision.allowed
    metrics.count(exchange)
    found = numbers(metrics)
    assert found["authorization_attempts_total"] == {result: 1}
    assert sum(found["authorization_duration_seconds"][result]) == 1


async def test_a_mode_that_allows_everything_is_counted() -> None:
    async with serving_app() as served:
        await served.send("GET", "/version")
        await eventually_async(lambda: len(served.exchanges) == 1)
    metrics = AccessMetrics()
    metrics.count(served.exchanges[0])
    assert numbers(metrics)["authorization_attempts_total"] == {"allowed": 1}


def test_a_request_that_was_refused_before_it_was_asked_is_not_counted() -> None:
    metrics = AccessMetrics()
    metrics.count(parsed())
    assert numbers(metrics)["authentication_attempts"] == numbers(metrics)["authorization_attempts_total"] == {}


def test_who_acts_as_another_user_is_counted_under_the_own_name() -> None:
    metrics, exchange = AccessMetrics(), parsed()
    exchange.authentication, exchange.impersonator, exchange.user = "success", User("kubelet"), User("admin")
    metrics.count(exchange)
    assert numbers(metrics)["authenticated_user_requests"] == {"kubelet": 1}


def test_a_watch_counts_while_it_is_open() -> None:
    metrics, exchange = AccessMetrics(), parsed()
    exchange.authentication, exchange.decision = "success", ALLOWED
    for open_, count in (([], 0), ([exchange], 1), ([], 0)):
        families = {family.name: family.numbers for family in metrics.families(open_)}
        assert sum(number for _, number in families["authentication_attempts"]) == count  # type: ignore[misc]
        assert sum(number for _, number in families["authorization_attempts_total"]) == count  # type: ignore[misc]


@pytest.mark.parametrize(
    ("seconds", "bucket"), [(0.0, 0), (0.001, 0), (0.0011, 1), (0.002, 1), (100.0, len(ACCESS_SECONDS))]
)
def test_the_bucket_of(seconds: float, bucket: int) -> None:
    metrics, exchange = AccessMetrics(), parsed()
    exchange.decision, exchange.authorization_seconds = ALLOWED, seconds
    metrics.count(exchange)
    counts = numbers(metrics)["authorization_duration_seconds"]["allowed"]
    assert [n for n, count in enumerate(counts) if count] == [bucket]
