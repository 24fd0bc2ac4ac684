"""Measures the console: `python -m benchmarks.console [--rounds N] [--events N …] [--only server|page]`.

    server   the processor time of a server at 1,000 writes/s: without a viewer ever, after one has left, and with one
    page     in Chromium: the time of the first view, frames a second of the timeline with 10,000 marks while it scrolls, zooms
             and is sent writes, and the memory of the page after many events (skipped without Chromium and Playwright)

Two servers that never had a viewer take turns with one that has a viewer in every other turn: the ratio of the two is the noise
of the machine. Bars: after a viewer 1.00 ± 0.01, with one 1.05; the first view 300 ms; 30 frames a second.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import statistics
import time
from collections.abc import AsyncIterator
from typing import Final

from benchmarks import console_page
from benchmarks.history import Client
from benchmarks.processes import processor_seconds
from benchmarks.watchers import server
from noxu.console.stream import LINGER

PATH: Final = "/api/v1/namespaces/default/configmaps"
RATE: Final = 1_000  # writes a second
CONNECTIONS: Final = 8
WRITES: Final = 1_000  # of a turn
WARMS: Final = 1_000  # before them: of the first writes that a viewer sees, all have their bodies and traces kept
SETTLES: Final = 0.4  # seconds after a turn until a viewer has its last line
OBJECTS: Final = 500
STREAM: Final = b"GET /_noxu/console/stream HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


class Writing:
    """Connections that change objects of 2 KB, each at its share of a rate; a watch is read meanwhile."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._clients: list[Client] = []
        self._written = 0

    @contextlib.asynccontextmanager
    async def connected(self) -> AsyncIterator[None]:
        """In each turn anew: servers close connections that are idle during those of others."""
        self._clients = [Client(*await asyncio.open_connection("127.0.0.1", self.port)) for _ in range(CONNECTIONS)]
        yield
        for client in self._clients:
            await client.close()

    async def write(self, count: int, rate: float) -> None:
        """Write so often, and wait for the answers."""
        last = self._written + count
        await asyncio.gather(*(self._write(client, last, len(self._clients) / rate) for client in self._clients))

    async def _write(self, client: Client, last: int, pause: float) -> None:
        due = time.perf_counter()
        while self._written < last:
            self._written += 1
            number = self._written  # of this write: meanwhile the other connections count on
            await asyncio.sleep(max(due - time.perf_counter(), 0.0))
            due += pause
            body = {"metadata": {"name": f"a{number % OBJECTS}"}, "data": {"text": f"{number:8}" * 250}}
            await client.send("PUT", f"{PATH}/a{number % OBJECTS}", json.dumps(body).encode())


async def writing(port: int) -> Writing:
    """What writes to a server, which has the objects."""
    client = Client(*await asyncio.open_connection("127.0.0.1", port))
    for number in range(OBJECTS):
        await client.send("POST", PATH, json.dumps({"metadata": {"name": f"a{number}"}}).encode())
    await client.close()
    return Writing(port)


@contextlib.asynccontextmanager
async def reading(port: int, request: bytes) -> AsyncIterator[list[int]]:
    """An answer that is read while it comes, and how many bytes it has."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    await reader.readuntil(b"\r\n\r\n")
    received = [0]

    async def read() -> None:
        while data := await reader.read(1 << 20):
            received[0] += len(data)

    task = asyncio.create_task(read())
    yield received
    task.cancel()
    writer.close()


async def cost(pid: int, load: Writing) -> float:
    """The processor time of a server for a write, in µs."""
    async with load.connected():
        await load.write(WARMS, RATE)
        began = processor_seconds([pid])
        await load.write(WRITES, RATE)
        await asyncio.sleep(SETTLES)
    return (processor_seconds([pid]) - began) / WRITES * 1e6


async def measure_server(rounds: int) -> None:
    async with contextlib.AsyncExitStack() as stack:
        names = ("never a viewer", "never one, either", "watched")
        servers = [stack.enter_context(server()) for _ in names]
        loads = [await writing(port) for port, _ in servers]
        watch = f"GET {PATH}?watch=1&resourceVersion=1 HTTP/1.1\r\nHost: localhost\r\nUser-Agent: operator/v1\r\n\r\n"
        for port, _ in servers:
            await stack.enter_async_context(reading(port, watch.encode()))
        spent: dict[str, list[float]] = {name: [] for name in (*names[:2], "with a viewer", "after it has left")}
        (_, pid), load = servers[2], loads[2]
        received = 0
        for number in range(rounds + 1):  # the first one warms up
            turn = [await cost(pid, load) for (_, pid), load in zip(servers[:2], loads, strict=False)]
            async with reading(load.port, STREAM) as stream:
                turn.append(await cost(pid, load))
                received = stream[0]
            await asyncio.sleep(LINGER + 0.2)
            turn.append(await cost(pid, load))
            if number:
                for times, each in zip(spent.values(), turn, strict=True):
                    times.append(each)
    never = statistics.median(spent["never a viewer"])
    for name, times in spent.items():
        print(f"{name:18} {statistics.median(times):6.1f} µs a write, {statistics.median(times) / never:.3f}")
    pairs = [on / off for on, off in zip(spent["with a viewer"], spent["after it has left"], strict=True)]
    print(
        f"with a viewer against after it has left, in pairs: {statistics.median(pairs):.3f}; it reads {received / WRITES:.0f} bytes a write"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=8, help="turns of each server, of ten seconds (default: 8)")
    parser.add_argument("--events", type=int, nargs="*", default=[100_000, 1_000_000], metavar="N")
    parser.add_argument("--only", choices=("server", "page"))
    arguments = parser.parse_args()
    if arguments.only != "page":
        asyncio.run(measure_server(arguments.rounds))
    if arguments.only != "server":
        console_page.measure(arguments.events)


if __name__ == "__main__":
    main()
