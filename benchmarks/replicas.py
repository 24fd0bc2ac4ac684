"""Measures servers that share an etcd: `python -m benchmarks.replicas [--against DIRECTORY] [--clients N] [--requests N]`.

Starts etcd (of the PATH), which writes durably, and four servers; one more has SQLite. In each round, which repeats
for the best, 1, 2 and 4 of the servers create objects, with N connections each, while the others only follow. Prints:

    creates/s              of all servers together
    CPU µs per create      processor time of a server for a create of its own, without what it spends on those of others
    etcd                   processor time of etcd per create
    per foreign event      processor time of a server that creates nothing, per create of others

`excess` is what a create costs more than with SQLite, in the same rounds. `--against` measures the servers of another
checkout instead of those that share etcd, one after the other. This process is the client; it and all servers share
the cores of one machine, so the sum of creates per second does not grow with the servers: the processor times tell
how it would.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple
from uuid import uuid4

from benchmarks.http import COLLECTION, ROOT, Server, encode
from benchmarks.load import Request
from benchmarks.samples import DEFINITION, sample
from tests import etcd_server
from tests.timing import cpu_seconds_of

DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
REPLICAS: Final = (1, 2, 4)
SETTLE: Final = 0.3  # seconds in which servers apply the last events


class Measured(NamedTuple):
    """Of one round with some servers. Times are of processors, in µs per create."""

    rate: float
    creating: float
    following: float
    etcd: float


async def create(servers: list[Server], round_: str, clients: int, requests: int) -> float:
    """Create objects with each server at the same time. Returns the seconds that it took."""

    async def load(which: int, server: Server) -> float:
        names = iter(range(requests))

        def next_request() -> Request | None:
            n = next(names, None)
            if n is None:
                return None
            return Request("POST", COLLECTION, encode(sample(f"o-{round_}-{which}-{n}")), status=201)

        return (await server.load(next_request, clients))[1]

    return max(await asyncio.gather(*(load(which, server) for which, server in enumerate(servers))))


async def measure(
    all_servers: list[Server], creating: int, etcd: int, round_: str, clients: int, requests: int
) -> Measured:
    """Let some of the servers create objects. `etcd` is its process, 0 for none."""
    own, others = all_servers[:creating], all_servers[creating:]
    before = [server.processor_seconds() for server in all_servers]
    etcd_before = cpu_seconds_of(etcd) if etcd else 0.0
    seconds = await create(own, round_, clients, requests)
    await asyncio.sleep(SETTLE)
    used = [1e6 * (server.processor_seconds() - was) for server, was in zip(all_servers, before, strict=True)]
    created = requests * creating
    following = sum(used[creating:]) / len(others) / created if others else 0.0
    return Measured(
        created / seconds,
        sum(used[:creating]) / created,
        following,
        1e6 * (cpu_seconds_of(etcd) - etcd_before) / created if etcd else 0.0,
    )


async def run(alone: Server, shared: list[Server], etcd: int, options: argparse.Namespace) -> None:
    for server in (alone, shared[0]):
        await server.send(Request("POST", DEFINITIONS, encode(DEFINITION), status=201))
    rounds: dict[int, list[Measured]] = {}
    for round_ in range(options.rounds + 1):
        for servers in (0, *REPLICAS):
            group = [alone] if servers == 0 else shared
            found = await measure(
                group, max(servers, 1), etcd if servers else 0, f"{round_}-{servers}", options.clients, options.requests
            )
            if round_:  # the first one fills caches
                rounds.setdefault(servers, []).append(found)
    show(rounds)


def show(rounds: dict[int, list[Measured]]) -> None:
    foreign = min(found.following for servers in REPLICAS for found in rounds[servers] if found.following)
    alone = min(found.creating for found in rounds[0])
    print(f"{'servers':>8} {'creates/s':>10} {'CPU µs per create':>18} {'excess':>8} {'etcd':>8}")
    for servers, measured in rounds.items():
        rate = max(found.rate for found in measured)
        # of N creating servers each spends its own creates, and N - 1 foreign events for each of them
        own = min(found.creating for found in measured) - foreign * max(servers - 1, 0)
        etcd = min(found.etcd for found in measured)
        name = f"{servers}" if servers else "SQLite"
        excess = f"{own - alone:>8.0f} {etcd:>8.0f}" if servers else ""
        print(f"{name:>8} {rate:>10.0f} {own:>18.0f} {excess}")
    print(f"per foreign event {foreign:.0f} µs")


@contextlib.contextmanager
def started(checkout: Path) -> Iterator[tuple[Server, list[Server], int]]:
    """(A server with SQLite, those that share etcd, etcd's process)."""
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        directory = Path(name)
        etcd = stack.enter_context(etcd_server.running_etcd(directory / "etcd", durable=True))
        assert etcd.process is not None
        prefix = f"/registry/{uuid4()}"
        options = ("--etcd-servers", etcd.url, "--etcd-prefix", prefix, "--profile", "envtest", "--quiet")

        def start(server: str, *given: str) -> Server:
            found = Server(server, checkout, directory, *given)
            stack.callback(found.stop)
            return found

        alone = start("alone", "--profile", "envtest")
        yield alone, [start(f"shared{n}", *options) for n in range(max(REPLICAS))], etcd.process.pid


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure servers that share an etcd.")
    parser.add_argument("--against", type=Path, help="another checkout, which is measured first")
    parser.add_argument("--clients", type=int, default=64, help="connections to each server (default: %(default)s)")
    parser.add_argument(
        "--requests", type=int, default=2000, help="creates of each server in a round (default: %(default)s)"
    )
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    if reason := etcd_server.lacking():
        raise SystemExit(f"this needs etcd: {reason}")
    for checkout in (*([options.against.resolve()] if options.against else []), ROOT):
        if options.against:
            print(f"-- {checkout}")
        with started(checkout) as (alone, shared, etcd):
            asyncio.run(run(alone, shared, etcd, options))


if __name__ == "__main__":
    main()
