"""Measures what metrics cost: `python -m benchmarks.metrics [--series N]`.

Prints the processor time of counting a request, and its ratio to parsing the target of the same request, which every request
needs; and for a scrape of N series the longest time for which the event loop is held, beside the time of the text.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from functools import partial
from types import SimpleNamespace
from typing import Any

from benchmarks.calls import seconds
from benchmarks.held_loop import watched_loop
from noxu.control_plane import WITHOUT_CONTROLLERS, assemble
from noxu.http.metrics import RequestMetrics
from noxu.http.request import parse_target
from noxu.instruments import Family
from noxu.observability.metrics import render
from noxu.registry.access import ALLOWED, ANONYMOUS
from noxu.registry.draft import Outcome
from noxu.registry.offload import LOOP_LIMIT, offload
from noxu_storage.memory import MemoryStore

TARGETS = (
    ("GET", "/api/v1/namespaces/default/configmaps/a"),
    ("GET", "/apis/batch/v1/namespaces/default/jobs"),
    ("PUT", "/apis/apps/v1/namespaces/default/deployments/a/status"),
)
CALLS = 20_000
ROUNDS = 7


def exchange_of(method: str, target: str) -> Any:
    parsed, query = parse_target(method, target)
    return SimpleNamespace(
        request=SimpleNamespace(method=method, headers={}),
        path=parsed.path,
        query=query,
        info=parsed.info,
        code=200,
        received=0.0,
        answered=0.003,
        noted=Outcome(),
        sent_bytes=3000,
        received_bytes=3000,
        user=ANONYMOUS,
        impersonator=None,
        authentication="success",
        decision=ALLOWED,
    )


def count_requests() -> None:
    metrics = RequestMetrics(assemble(WITHOUT_CONTROLLERS, MemoryStore()).served_resources)

    def count(exchange: Any) -> None:
        """The sink, and the four looks at the clock of the filters."""
        began = time.perf_counter()
        exchange.authentication_seconds = time.perf_counter() - began
        began = time.perf_counter()
        exchange.authorization_seconds = time.perf_counter() - began
        metrics(exchange)

    for method, target in TARGETS:
        exchange = exchange_of(method, target)
        counting = seconds(partial(count, exchange), calls=CALLS, rounds=ROUNDS)
        parsing = seconds(partial(parse_target, method, target), calls=CALLS, rounds=ROUNDS)
        print(f"{method} {target}: {counting * 1e6:.2f} µs, {counting / parsing:.2f} of parsing the target")


async def scrape(series: int) -> None:
    """Of the series of histograms with 23 buckets."""
    numbers = [((str(n),), [1.0] * 25) for n in range(series // 26)]
    family = Family("sizes", "histogram", "", ("name",), numbers, tuple(float(n) for n in range(23)))
    async with watched_loop() as held:
        for _ in range(3):  # the first one imports the library
            held.longest = 0.0
            start = time.perf_counter()
            text = await offload(LOOP_LIMIT + 1, render, [family], "")
            taken = time.perf_counter() - start
    print(
        f"{series} series: {len(text.body)} bytes in {taken * 1e3:.0f} ms, the loop held for {held.longest * 1e3:.1f} ms at most"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="What metrics cost")
    parser.add_argument("--series", type=int, default=10_000)
    arguments = parser.parse_args()
    count_requests()
    asyncio.run(scrape(arguments.series))


if __name__ == "__main__":
    main()
