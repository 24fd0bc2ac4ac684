"""Measures what it costs to keep who wrote: `python -m benchmarks.history [--writes N]`.

Prints the processor time of a create and a GET with and without history, in one server whose journal is taken away and given
back in turns, in memory and in a file (with saving); the memory of a recorded write; and of the log of N writes the longest
time for which the event loop is held.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import statistics
import tempfile
import time
import tracemalloc
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from benchmarks.held_loop import watched_loop
from noxu import garbage
from noxu.config import Config
from noxu.control import write_log
from noxu.control.history import WriteHistory
from noxu.process.server import Server
from noxu.registry.authors import Author, Journal
from noxu_storage.memory import MemoryStore
from noxu_storage.types import Key

PATH: Final = "/api/v1/namespaces/default/configmaps"
ROUNDS, CALLS = 40, 100
AGENT: Final = "operator/v0.0.0 (linux/amd64) kubernetes/$Format"


class Client:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._names = 0

    async def send(self, method: str, path: str, body: bytes = b"") -> None:
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: {AGENT}\r\nContent-Type: application/json\r\n"
        )
        self._writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        answer = await self._reader.readuntil(b"\r\n\r\n")
        assert answer[9:10] == b"2", answer
        [length] = [
            int(line.split(b":")[1]) for line in answer.split(b"\r\n") if line.lower().startswith(b"content-length")
        ]
        await self._reader.readexactly(length)

    async def close(self) -> None:
        self._writer.close()
        await self._writer.wait_closed()

    async def create(self) -> None:
        self._names += 1
        value = {"metadata": {"name": f"a{self._names}"}, "data": {"k": "x" * 3000}}
        await self.send("POST", PATH, json.dumps(value).encode())

    async def get(self) -> None:
        await self.send("GET", f"{PATH}/first")


async def compare(name: str, data: Path | None) -> None:
    """The processor time of requests with and without history."""
    async with Server(Config(port=0, data=data, profile="envtest")) as server:
        persistence, history = server.plane.persistence, server.history
        assert history is not None
        journal = persistence.journal
        client = Client(*await asyncio.open_connection("127.0.0.1", server.listeners.port))
        await client.send("POST", PATH, json.dumps({"metadata": {"name": "first"}}).encode())
        calls: dict[str, Callable[[], Awaitable[None]]] = {"create": client.create, "GET": client.get}
        for call, ask in calls.items():
            times: dict[bool, list[float]] = {True: [], False: []}
            for number in range(2 * ROUNDS + 2):
                keeps = number % 2 == 0
                persistence.journal = journal if keeps else None
                began = time.process_time()
                for _ in range(CALLS):
                    await ask()
                if keeps:
                    await history.save()  # a part of the cost: in a server it comes some seconds later
                times[keeps].append((time.process_time() - began) / CALLS)
            off, on = (statistics.median(times[keeps][1:]) for keeps in (False, True))
            ratios = [a / b for a, b in zip(times[True][1:], times[False][1:], strict=True)]
            print(
                f"{name}, {call}: {off * 1e6:.1f} µs without, {on * 1e6:.1f} µs with history, ratio {statistics.median(ratios):.3f}"
            )


async def remember(writes: int) -> None:
    """The memory of recorded writes, each of another request."""
    gc.collect()
    tracemalloc.start()
    journal = Journal()
    history = WriteHistory(MemoryStore(), journal)
    for revision in range(2, writes + 2):
        agent, id_ = AGENT[:-1] + "t", f"{revision:036d}"
        author = Author("update", "status", "system:serviceaccount:a:b", "".join(agent), "operator", id_, "", "", 0.5)
        journal.writes.append((revision, time.time(), author))
    await history.take()
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    print(f"a recorded write: {size / len(history.known):.0f} bytes, of {len(history.known)}")


async def search(writes: int) -> None:
    """How long the loop is held by the log of a long history."""
    store, journal = MemoryStore(), Journal()
    history = WriteHistory(store, journal)
    for number in range(writes):
        key = Key("/configmaps", "default/", f"a{number}")
        revision = await store.put(key, b'{"metadata":{"name":"a"}}', expected=0)
        journal.writes.append((revision, time.time(), Author("create")))
    garbage.begin(garbage.OF_A_SERVER)  # as in the process of a server
    async with watched_loop() as held:
        began = time.perf_counter()
        found = await write_log.newest(store, write_log.Selected("/configmaps", None, "nothing"))
        await history.revision_at(0.0)
        took = time.perf_counter() - began
    assert not found.events
    print(
        f"the log of {writes} writes: {took * 1e3:.0f} ms, of which the loop is held for {held.longest * 1e3:.1f} ms at most"
    )


async def measure(writes: int) -> None:
    await compare("in memory", None)
    with tempfile.TemporaryDirectory() as directory:
        await compare("in a file", Path(directory))
    await remember(50_000)
    await search(writes)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--writes", type=int, default=100_000)
    asyncio.run(measure(arguments.parse_args().writes))


if __name__ == "__main__":
    main()
