"""What a durable write costs, and reads and watches: `python -m benchmarks.store [--directory DIR] [--seconds S]`.

Values are of 3.4 KB and do not compress; names come in no order. A writer writes again when it was answered, so
"waiting" is the size of a commit. CPU is that of the whole process. Between two stores nothing is compared that was
not measured in the same run: the disk and the neighbours differ from day to day. The line `sqlite3 alone` is what the
disk and SQLite itself allow: the same rows and commits, from one thread, with nothing around them.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from itertools import count
from pathlib import Path

import uvloop

from storage import database, migrations
from storage.database import Durability
from storage.memory import MemoryStore
from storage.rows import row
from storage.sqlite import SqliteStore
from storage.store import Store
from storage.types import Key, Prefix

VALUE = os.urandom(3400)
WAITING = (1, 8, 64)
OBJECTS = 10_000
THINGS = Prefix("example.com/things")

Open = Callable[[Path], Awaitable[Store]]


def key(number: int) -> Key:
    """Names in no order, as those that servers generate."""
    return Key("example.com/things", "default/", f"thing-{number * 7919 % 1_000_003:07}")


class Clock:
    """Wall and processor time since it was made."""

    def __init__(self) -> None:
        self.began, self.cpu = time.perf_counter(), time.process_time()

    def rate(self, operations: int) -> str:
        wall, cpu = time.perf_counter() - self.began, time.process_time() - self.cpu
        return f"{operations / wall:>9,.0f}/s {cpu / operations * 1e6:>7.1f} µs"

    def once(self) -> str:
        return f"{(time.perf_counter() - self.began) * 1e3:>9.1f} ms"


async def memory(_: Path) -> Store:
    return MemoryStore()


def sqlite(durability: Durability) -> Open:
    async def opened(directory: Path) -> Store:
        return await SqliteStore.open(directory / "noxu.db", durability)

    return opened


STORES: dict[str, Open] = {"sqlite full": sqlite("full"), "sqlite normal": sqlite("normal"), "memory": memory}


@asynccontextmanager
async def fresh(open_: Open, parent: Path | None) -> AsyncIterator[Store]:
    directory = Path(tempfile.mkdtemp(dir=parent))
    store = await open_(directory)
    try:
        yield store
    finally:
        await store.close()
        shutil.rmtree(directory)


async def creates(store: Store, waiting: int, seconds: float) -> str:
    numbers = count()
    clock = Clock()

    async def write() -> None:
        while time.perf_counter() - clock.began < seconds:
            await store.put(key(next(numbers)), VALUE, expected=0)

    await asyncio.gather(*(write() for _ in range(waiting)))
    return clock.rate(next(numbers))


async def updates(store: Store, waiting: int, seconds: float) -> str:
    """Of objects that each writer has to itself."""
    first = await asyncio.gather(*(store.put(key(-number), VALUE, expected=0) for number in range(1, waiting + 1)))
    numbers = count()
    clock = Clock()

    async def write(name: Key, revision: int) -> None:
        while time.perf_counter() - clock.began < seconds:
            next(numbers)
            revision = await store.put(name, VALUE, expected=revision)

    await asyncio.gather(*(write(key(-number), revision) for number, revision in enumerate(first, start=1)))
    return clock.rate(next(numbers))


async def watched(store: Store, waiting: int, seconds: float) -> str:
    """Creates, with one watch that follows: the usual case."""
    following = asyncio.create_task(follow(store))
    rate = await creates(store, waiting, seconds)
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)
    return rate


async def follow(store: Store) -> None:
    async for _ in store.watch(after=store.revision):
        pass


def alone(durability: Durability, commit: int, seconds: float, parent: Path | None) -> str:
    """SQLite without a store."""
    directory = Path(tempfile.mkdtemp(dir=parent))
    with closing(sqlite3.connect(directory / "noxu.db", isolation_level=None)) as connection:
        connection.executescript(
            f"PRAGMA locking_mode = EXCLUSIVE; PRAGMA page_size = {database.PAGE_SIZE}; PRAGMA journal_mode = WAL;"
            f"PRAGMA synchronous = {durability}; PRAGMA cache_size = -{database.CACHE_SIZE}; {migrations.upgrade(0)}"
        )
        clock, number = Clock(), 0
        while time.perf_counter() - clock.began < seconds:
            connection.execute("BEGIN IMMEDIATE")
            batch = ((*key(each), each + 2, 0, 0, VALUE) for each in range(number, number + commit))
            connection.executemany(database.INSERT, batch)
            connection.execute("COMMIT")
            number += commit
        rate = clock.rate(number)
    shutil.rmtree(directory)
    return rate


async def writes(seconds: float, parent: Path | None) -> None:
    for name, measure in (("create", creates), ("create, watched", watched), ("update", updates)):
        print(f"\n{name:<16}" + "".join(f"{f'{waiting} waiting':>24}" for waiting in WAITING))
        for store_name, open_ in STORES.items():
            figures = []
            for waiting in WAITING:
                async with fresh(open_, parent) as store:
                    figures.append(await measure(store, waiting, seconds))
            print(f"{store_name:<16}" + "".join(f"{figure:>24}" for figure in figures), flush=True)
        if measure is creates:
            figures = [alone("full", waiting, seconds, parent) for waiting in WAITING]
            print(f"{'sqlite3 alone':<16}" + "".join(f"{figure:>24}" for figure in figures), flush=True)


async def reads(parent: Path | None) -> None:
    """With 10 000 objects, each written once."""
    print(f"\n{OBJECTS:,} objects")
    for name in ("sqlite full", "memory"):
        async with fresh(STORES[name], parent) as store:
            await fill(store)
            clock = Clock()
            for number in range(0, OBJECTS, 5):
                await store.get(key(number))
            print(f"{name:<16}{'get':<28}{clock.rate(OBJECTS // 5)}")
            for what, call in (
                ("list of all", store.list(THINGS)),
                ("page of 500", store.list(THINGS, limit=500)),
                ("count", store.count(THINGS)),
            ):
                clock = Clock()
                await call
                print(f"{name:<16}{what:<28}{clock.once()}")
            clock = Clock()
            events = await history(store, after=1)
            print(f"{name:<16}{'watch from the beginning':<28}{clock.rate(events)}", flush=True)


async def fill(store: Store) -> None:
    for start in range(0, OBJECTS, 500):
        await asyncio.gather(*(store.put(key(number), VALUE, expected=0) for number in range(start, start + 500)))


async def history(store: Store, after: int) -> int:
    events = 0
    async for batch in store.watch(after=after):
        events += len(batch.events)
        if batch.revision == store.revision:
            break
    return events


async def opening(parent: Path | None) -> None:
    """A file with 10 000 objects, as it is left by a server that was stopped, and by one that was killed."""
    directory = Path(tempfile.mkdtemp(dir=parent))
    file = directory / "noxu.db"
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.executescript(
            f"PRAGMA page_size = {database.PAGE_SIZE}; PRAGMA journal_mode = WAL; {migrations.upgrade(0)}"
        )
        connection.executemany(database.INSERT, (row(key(each), each + 2, 0, VALUE) for each in range(OBJECTS)))
        connection.commit()
        killed = directory / "killed.db"
        for suffix in ("", "-wal"):
            shutil.copy(f"{file}{suffix}", f"{killed}{suffix}")
    for name, path in (("stopped", file), ("killed", killed)):
        clock = Clock()
        store = await SqliteStore.open(path)
        opened = clock.once()
        clock = Clock()
        await store.put(key(OBJECTS), VALUE, expected=0)
        first = clock.once()
        clock = Clock()
        events = await history(store, after=1)
        replayed = clock.rate(events)
        clock = Clock()
        await store.compact(store.revision)
        compacted = clock.once()
        await store.close()
        print(f"{name:<16}open {opened}, first write {first}, all events {replayed}, compact {compacted}")
    shutil.rmtree(directory)


async def main(seconds: float, parent: Path | None) -> None:
    await writes(seconds, parent)
    await reads(parent)
    await opening(parent)


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(prog="python -m benchmarks.store", description="Measure the stores.")
    arguments.add_argument("--directory", type=Path, help="on the disk that is to be measured (default: temporary)")
    arguments.add_argument("--seconds", type=float, default=1.0, help="for each figure (default: 1)")
    given = arguments.parse_args()
    uvloop.run(main(given.seconds, given.directory))
