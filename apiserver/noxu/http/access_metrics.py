"""The numbers of authentication and authorization (apiserver's pkg/endpoints/filters/metrics.go): two filters count in them.

A duration is most often less than the first bucket, a millisecond, and then costs one comparison and two additions.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Final

from noxu.instruments import OTHER, Family, Labels, exponential
from noxu.registry.access import Decision

BUCKETS: Final = exponential(0.001, 2, 15)
SUCCESS, FAILURE, ERROR = "success", "failure", "error"
ALLOWED, NO_OPINION = "allowed", "no-opinion"
_FIRST: Final = BUCKETS[0]
_USERS: Final = frozenset({"admin", "client", "kube_proxy", "kubelet", "system:serviceaccount:kube-system:default"})


class AccessMetrics:
    """See the module. Durations are in seconds."""

    def __init__(self) -> None:
        self._authentications = {result: _series() for result in (SUCCESS, FAILURE, ERROR)}
        self._authorizations = {result: _series() for result in (ALLOWED, NO_OPINION, ERROR)}
        self._users: dict[str, int] = {}

    def identified(self, name: str, seconds: float) -> None:
        """A request has a user, also the anonymous one."""
        _add(self._authentications[SUCCESS], seconds)
        user = compressed(name)
        self._users[user] = self._users.get(user, 0) + 1

    def not_identified(self, seconds: float, *, is_error: bool) -> None:
        """A request has no user: its credentials are bad (`is_error`), or it has none that count."""
        _add(self._authentications[ERROR if is_error else FAILURE], seconds)

    def decided(self, decision: Decision, seconds: float) -> None:
        """A request is allowed or not."""
        result = ALLOWED if decision.allowed else ERROR if decision.error else NO_OPINION
        _add(self._authorizations[result], seconds)

    def families(self) -> list[Family]:
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
    return [0.0] * (len(BUCKETS) + 2)


def _add(series: list[float], seconds: float) -> None:
    series[0 if seconds <= _FIRST else bisect_left(BUCKETS, seconds)] += 1
    series[-1] += seconds


def _attempts(name: str, about: str, results: dict[str, list[float]]) -> Family:
    numbers: list[tuple[Labels, float]] = [((result,), sum(series[:-1])) for result, series in results.items()]
    return Family(name, "counter", about, ("result",), [(values, count) for values, count in numbers if count])


def _durations(name: str, about: str, results: dict[str, list[float]]) -> Family:
    numbers = [((result,), series.copy()) for result, series in results.items() if any(series[:-1])]
    return Family(name, "histogram", about, ("result",), numbers, BUCKETS)
