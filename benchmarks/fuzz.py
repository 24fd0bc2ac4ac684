"""Sends random requests to a server in this process until one finds a bug: a 500 of ours, or a traceback in the log.

    python -m benchmarks.fuzz [--requests N] [--seed S] [--cbor]

Prints how many requests were answered with each code, or the request that found a bug and what it found. The
requests are those of tests/hostile/test_fuzz.py.
"""

from __future__ import annotations

import argparse
import logging
import tempfile
import time
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.hostile.fuzzing import Fuzzed, fuzzed_server
from tests.hostile.requests import Request, requests

PER_EXAMPLE = 10


def fuzz(server: Fuzzed, count: int, seed_: int) -> None:
    """Send `count` requests. Raises AssertionError for a bug."""

    @seed(seed_)
    @settings(
        max_examples=(count + PER_EXAMPLE - 1) // PER_EXAMPLE,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
        phases=[Phase.generate, Phase.shrink],
    )
    @given(sent=st.lists(requests(), min_size=PER_EXAMPLE, max_size=PER_EXAMPLE))
    def send(sent: list[Request]) -> None:
        for request in sent:
            server.send(request)

    send()


def main() -> None:
    parser = argparse.ArgumentParser(description="Random requests, until one finds a bug.")
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cbor", action="store_true", help="enable CBORServingAndStorage")
    arguments = parser.parse_args()
    logging.getLogger("noxu").addHandler(logging.NullHandler())
    with tempfile.TemporaryDirectory() as name, fuzzed_server(Path(name), cbor=arguments.cbor) as server:
        start = time.monotonic()
        try:
            fuzz(server, arguments.requests, arguments.seed)
        except AssertionError as bug:
            raise SystemExit(str(bug)) from None
        print(f"{server.sent} requests in {time.monotonic() - start:.0f} s, no bug found")
        for code, number in sorted(server.codes.items()):
            print(f"{code or 'closed':>6} {number:>8}")


if __name__ == "__main__":
    main()
