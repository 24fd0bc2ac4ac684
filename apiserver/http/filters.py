"""Before a handler sees a request: who may talk to us at all, and how much at once.

A development server on loopback without TLS is reachable from any web page through the browser of whoever runs it.
So Host must be loopback (DNS rebinding), and a request that carries an Origin must come from this very server.
"""

from __future__ import annotations

import ipaddress
from functools import lru_cache
from typing import Final

from apiserver.api.errors import ApiError

MAX_IN_FLIGHT: Final = 400  # upstream's --max-requests-inflight
MAX_MUTATING_IN_FLIGHT: Final = 200  # upstream's --max-mutating-requests-inflight
MAX_HOST: Final = 260  # characters of a Host header that is remembered: a DNS name and a port
READING: Final = frozenset({"get", "list", "watch", "head", ""})


def split_host(host: str) -> str:
    """The host of a Host header or origin, without port and brackets, lower-cased."""
    host = host.strip().lower()
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.rpartition(":")[0] if host.count(":") == 1 else host


def is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@lru_cache(maxsize=64)
def _is_ours(header: str, own_names: frozenset[str]) -> bool:
    """Whether a Host header names this server, or nothing. Clients say the same each time."""
    host = split_host(header)
    return not host or is_loopback(host) or host in own_names


def check_origin(host_header: str, origin: str | None, own_names: frozenset[str]) -> None:
    """Raises ApiError Forbidden for a foreign Host or Origin. `own_names` are allowed beside loopback."""
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


class Gate:
    """Lets so many in at a time, and refuses more: a context manager that all of them enter."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._inside = 0

    def __enter__(self) -> None:
        """Raises ApiError TooManyRequests."""
        if self._inside >= self._limit:
            error = ApiError(429, "Too many requests, please try again later.", "TooManyRequests")
            error.text, error.retry_after = f"{error.message}\n", 1
            raise error
        self._inside += 1

    def __exit__(self, *_: object) -> None:
        self._inside -= 1


class InFlight:
    """The gates for requests under way; watches do not count."""

    def __init__(self, limit: int = MAX_IN_FLIGHT, mutating_limit: int = MAX_MUTATING_IN_FLIGHT) -> None:
        self._reading = Gate(limit)
        self._mutating = Gate(mutating_limit)

    def request(self, verb: str) -> Gate:
        return self._reading if verb in READING else self._mutating
