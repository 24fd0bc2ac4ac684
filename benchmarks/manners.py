"""Measures what it costs to record requests and to report about them: `python -m benchmarks.manners [--requests N]`.

Prints the processor time of a GET and a create with and without the record, in two servers that take
turns; the memory of a recorded request; and the processor time of a report and of the least roles of N requests.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import statistics
import time
import tracemalloc
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from benchmarks.history import Client
from noxu import garbage
from noxu.config import Config
from noxu.control.least_roles import least_rules, manifests, questions, refused
from noxu.control.manners.observed import ObjectId, Observed, ObservedWrite, WriteAuthor
from noxu.control.manners.report import report
from noxu.control.recorded_requests import RecordedRequest
from noxu.process.server import Server

ROUNDS, CALLS = 40, 100
PATH: Final = "/api/v1/namespaces/default/configmaps"


async def main(number: int) -> None:
    async with (
        Server(Config(port=0, profile="envtest")) as without,
        Server(Config(port=0, profile="envtest", record_requests=True)) as recording,
    ):
        clients = [await connected(server) for server in (without, recording)]
        for name in ("get", "create"):
            off, on = await compared([getattr(client, name) for client in clients])
            print(f"{name:8} {off:6.1f} µs without, {on:6.1f} µs with the record: {on - off:+.1f} µs")
    requests = [recorded(n) for n in range(number)]
    tracemalloc.start()
    kept = [recorded(n) for n in range(number)]
    size = tracemalloc.get_traced_memory()[0] / number
    tracemalloc.stop()
    print(f"{len(kept)} recorded requests: {size:.0f} bytes each")
    writes = [
        ObservedWrite(
            n, ObjectId("configmaps", "default", f"a{n % 500}"), WriteAuthor("operator", "", "operator"), each.id
        )
        for n, each in enumerate(requests)
    ]
    began = time.process_time()
    report(Observed(requests, writes))
    print(f"a report of them: {(time.process_time() - began) * 1000:.0f} ms")
    began = time.process_time()
    asked = questions(requests)
    assert refused(manifests(least_rules(asked), "operator"), asked) == []
    print(f"their least roles, verified: {(time.process_time() - began) * 1000:.0f} ms")


def recorded(n: int) -> RecordedRequest:
    """An update of one of 500 objects."""
    name = f"a{n % 500}"
    return RecordedRequest(
        n, "PUT", f"{PATH}/{name}", "update", "configmaps", "", "default", name, "system:anonymous", "operator/v1",
        200, id=f"{n:036}", at=n / 50, version="v1",
    )  # fmt: skip


async def connected(server: Server) -> Client:
    """A client of a server that has the object which it gets."""
    client = Client(*await asyncio.open_connection("127.0.0.1", server.listeners.port))
    await client.send("POST", PATH, b'{"metadata": {"name": "first"}}')
    return client


async def compared(calls: Sequence[Callable[[], Awaitable[None]]]) -> list[float]:
    """The processor time of each call in µs: medians of rounds that take turns."""
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(ROUNDS):
        for call, spent in zip(calls, times, strict=True):
            began = time.process_time()
            for _ in range(CALLS):
                await call()
            spent.append((time.process_time() - began) / CALLS * 1e6)
    return [statistics.median(spent) for spent in times]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=10_000, metavar="N", help="of the report (default: 10000)")
    garbage.begin()
    gc.collect()
    asyncio.run(main(parser.parse_args().requests))
