"""What snapshots and restores cost: in processor time, by the number of stored and of changed objects.

    python -m benchmarks.restores

The rows of a store are measured in turn, so that what else the machine does affects all of them. A restore of what changed in
10 of 100,000 objects may take 20 times as long as that of 10 of 1,000. `loop` is how long the event loop was not free for others.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

from benchmarks.held_loop import watched_loop
from noxu.config import Config
from noxu.control.snapshots import Snapshots
from noxu.process.server import Server
from noxu_storage.types import Key

ROUNDS: Final = 15
SIZES: Final = ((1_000, 10), (100_000, 10), (100_000, 1_000))
"""(Stored objects, those that change.)"""
LIMIT: Final = 20.0
_MAPS: Final = "/configmaps"


class Row(NamedTuple):
    """Times in milliseconds."""

    stored: int
    changed: int
    snapshot: float
    restore: float
    loop: float


def key(number: int) -> Key:
    return Key(_MAPS, "default/", f"m{number:06}")


def value(number: int, text: str) -> bytes:
    return (
        b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"m%06d","namespace":"default","uid":"%032d",'
        b'"creationTimestamp":"2026-01-01T00:00:00Z"},"data":{"a":"%s"}}' % (number, number, text.encode() * 100)
    )


class Measured:
    """A server with so many objects, all of them in the cache."""

    def __init__(self, server: Server, stored: int, changed: int) -> None:
        self.server, self.stored, self.changed = server, stored, changed
        self.snapshots = server.control.part(Snapshots)
        self.rows: list[Row] = []

    async def fill(self) -> None:
        store = self.server.plane.store
        for start in range(0, self.stored, 1_000):
            await asyncio.gather(*(store.put(key(n), value(n, "a"), expected=0) for n in range(start, start + 1_000)))
        await self.server.plane.cache.collection(_MAPS)
        await self.snapshots.delete((await self.snapshots.create())["name"])  # counts the keys, once

    async def measure(self) -> None:
        begun = time.process_time()
        name = (await self.snapshots.create())["name"]
        taken = time.process_time()
        store = self.server.plane.store
        for number in range(0, self.stored, self.stored // self.changed):
            state = await store.get(key(number))
            assert state is not None
            await store.put(key(number), value(number, "b"), expected=state.revision)
        async with watched_loop(time.process_time) as held:
            before = time.process_time()
            restored = await self.snapshots.restore(name, release=True)
            after = time.process_time()
        assert restored["changed"] == self.changed, restored
        self.rows.append(
            Row(
                self.stored,
                self.changed,
                1e3 * (taken - begun),
                1e3 * (after - before),
                1e3 * held.longest,
            )
        )

    def result(self) -> Row:
        return Row(self.stored, self.changed, *(median(column) for column in list(zip(*self.rows, strict=True))[2:]))


async def measured(directory: Path | None) -> list[Row]:
    """The rows of a store in memory (None) or below a directory."""
    async with contextlib.AsyncExitStack() as stack:
        servers = []
        for number, (stored, changed) in enumerate(SIZES):
            data = None if directory is None else directory / str(number)
            server = await stack.enter_async_context(Server(Config(port=0, data=data, durability="off")))
            servers.append(Measured(server, stored, changed))
            await servers[-1].fill()
        for _ in range(ROUNDS):
            for each in servers:
                await each.measure()
        return [each.result() for each in servers]


def main() -> None:
    directory = Path(tempfile.mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
    try:
        for name, place in (("memory", None), ("SQLite", directory)):
            rows = asyncio.run(measured(place))
            print(f"{name:8} {'stored':>8} {'changed':>8} {'snapshot':>10} {'restore':>10} {'loop':>10}")
            for row in rows:
                print(
                    f"{'':8} {row.stored:8} {row.changed:8} {row.snapshot:7.2f} ms {row.restore:7.2f} ms {row.loop:7.2f} ms"
                )
            ratio = rows[1].restore / rows[0].restore
            print(f"{'':8} 10 of 100,000 take {ratio:.1f} times as long as 10 of 1,000 (at most {LIMIT:g})\n")
    finally:
        shutil.rmtree(directory)


if __name__ == "__main__":
    main()
