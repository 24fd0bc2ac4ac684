"""The arguments of `noxu serve` about limits on requests, and the web pages that may send them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from noxu.arguments import values
from noxu.config import (
    MAX_IN_FLIGHT,
    MAX_MUTATING_IN_FLIGHT,
    MIN_REQUEST_TIMEOUT,
    REQUEST_TIMEOUT,
    Requests,
)

if TYPE_CHECKING:
    import argparse


def add(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("requests", "Limits on requests. The options are kube-apiserver's.")
    group.add_argument(
        "--request-timeout",
        type=_timeout,
        default=REQUEST_TIMEOUT,
        metavar="DURATION",
        help="the time for a request that is not a watch (default: 1m0s)",
    )
    group.add_argument(
        "--min-request-timeout",
        type=values.count,
        default=MIN_REQUEST_TIMEOUT,
        metavar="SECONDS",
        help="a watch without a timeout lasts one to two times as long (default: %(default)s)",
    )
    for option, number, what in (
        ("--max-requests-inflight", MAX_IN_FLIGHT, "that only read"),
        ("--max-mutating-requests-inflight", MAX_MUTATING_IN_FLIGHT, "of other kinds"),
    ):
        group.add_argument(
            option,
            type=values.count,
            default=number,
            metavar="N",
            help=f"the number of requests {what} that are handled at the same time, beyond which they are refused, except those "
            "of system:masters; 0: no limit (default: %(default)s)",
        )
    group.add_argument(
        "--cors-allowed-origins",
        action="append",
        default=[],
        type=_origins,
        metavar="REGEXP,...",
        help="the origins of web pages that may use the server, such as ^https://dashboard\\.example\\.com$; can be repeated",
    )


def requests(options: argparse.Namespace) -> Requests:
    return Requests(
        timeout=options.request_timeout,
        min_timeout=options.min_request_timeout,
        max_in_flight=options.max_requests_inflight,
        max_mutating_in_flight=options.max_mutating_requests_inflight,
        cors_allowed_origins=values.items(options.cors_allowed_origins),
    )


def _timeout(text: str) -> float:
    """A duration in Go's syntax, in seconds, that is not 0: every request would be too late."""
    found = values.seconds(text)
    if not found:
        raise values.refused("must be a positive duration, such as 30s or 5m")
    return found


def _origins(text: str) -> str:
    from noxu.security import cors  # rarely given

    try:
        cors.check(values.items([text]))
    except ValueError as error:
        raise values.refused(str(error)) from None
    return text
