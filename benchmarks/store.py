"""Measures durable writes, reads and watches: `python -m benchmarks.store [--directory DIR] [--seconds S] [--etcd URL]`.

Values have 3.4 KB and do not compress; names come in no order. Each of N writers writes again as soon as its write is
durable, so a commit contains about N writes. Processor times are of the whole process. Compare stores within one run
only: disks differ from day to day. The line `plain sqlite3` is the upper bound that the disk and SQLite allow: the same
rows and commits from one thread, without a store.
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

from noxu_storage import database, migrations
from noxu_storage.database import Durability
from noxu_storage.memory import MemoryStore
from noxu_storage.rows import row
from noxu_storage.sqlite import SqliteStore
from noxu_storage.store import Store
from noxu_storage.types import Key, Prefix

VALUE = os.urandom(3400)
WRITERS = (1, 8, 64)
OBJECTS = 10_000
ALL_THINGS = Prefix("example.com/things")

Open = Callable[[Path], Awaitable[Store]]


def key(number: int) -> Key:
    """Names in no order, like generated ones."""
    return Key("example.com/things", "default/", f"thing-{number * 7919 % 1_000_003:07}")


class Stopwatch:
    """Wall and processor time since its creation."""

    def __init__(self) -> None:
        self.start, self.cpu = time.perf_counter(), time.process_time()

    def rate(self, operations: int) -> str:
        wall, cpu = time.perf_counter() - self.start, time.process_time() - self.cpu
        return f"{operations / wall:>9,.0f}/s {cpu / operations * 1e6:>7.1f} µs"

    def elapsed(self) -> str:
        return f"{(time.perf_counter() - self.start) * 1e3:>9.1f} ms"


async def memory(_: Path) -> Store:
    return MemoryStore()


def sqlite(durability: Durability) -> Open:
    async def opened(directory: Path) -> Store:
        return await SqliteStore.open(directory / "noxu.db", durability)

    return opened


def etcd(url: str) -> Open:
    """Each store has a prefix of its own."""

    try:
        import noxu_storage.etcd.store  # noqa: F401 - of an extra
    except ImportError as error:
        raise SystemExit(f"--etcd needs the extra etcd (pip install 'noxu[etcd]'): {error}") from None

    async def opened(directory: Path) -> Store:
        from noxu_storage.etcd.layout import PlainLayout
        from noxu_storage.etcd.store import EtcdStore

        return await EtcdStore.open([url], PlainLayout(f"/benchmarks{directory}/"))

    return opened


STORES: dict[str, Open] = {"sqlite full": sqlite("full"), "sqlite normal": sqlite("normal"), "memory": memory}


@asynccontextmanager
async def empty_store(open_: Open, parent: Path | None) -> AsyncIterator[Store]:
    directory = Path(tempfile.mkdtemp(dir=parent))
    store = await open_(directory)
    try:
        yield store
    finally:
        await store.close()
        shutil.rmtree(directory)


async def creates(store: Store, writers: int, seconds: float) -> str:
    numbers = count()
    stopwatch = Stopwatch()

    async def write() -> None:
        while time.perf_counter() - stopwatch.start < seconds:
            await store.put(key(next(numbers)), VALUE, expected=0)

    await asyncio.gather(*(write() for _ in range(writers)))
    return stopwatch.rate(next(numbers))


async def updates(store: Store, writers: int, seconds: float) -> str:
    """Each writer updates its own object."""
    first = await asyncio.gather(*(store.put(key(-number), VALUE, expected=0) for number in range(1, writers + 1)))
    numbers = count()
    stopwatch = Stopwatch()

    async def write(name: Key, revision: int) -> None:
        while time.perf_counter() - stopwatch.start < seconds:
            next(numbers)
            revision = await store.put(name, VALUE, expected=revision)

    await asyncio.gather(*(write(key(-number), revision) for number, revision in enumerate(first, start=1)))
    return stopwatch.rate(next(numbers))


async def watched(store: Store, writers: int, seconds: float) -> str:
    """Creates, while one watch reads all events: the usual case."""
    watch = asyncio.create_task(read_events(store))
    rate = await creates(store, writers, seconds)
    watch.cancel()
    await asyncio.gather(watch, return_exceptions=True)
    return rate


async def read_events(store: Store) -> None:
    async for _ in store.watch(after=store.revision):
        pass


def plain_sqlite(durability: Durability, commit: int, seconds: float, parent: Path | None) -> str:
    """The same rows and commits without a store."""
    directory = Path(tempfile.mkdtemp(dir=parent))
    with closing(sqlite3.connect(directory / "noxu.db", isolation_level=None)) as connection:
        connection.executescript(
            f"PRAGMA locking_mode = EXCLUSIVE; PRAGMA page_size = {database.PAGE_SIZE}; PRAGMA journal_mode = WAL;"
            f"PRAGMA synchronous = {durability}; PRAGMA cache_size = -{database.CACHE_SIZE}; {migrations.upgrade_script(0)}"
        )
        stopwatch, number = Stopwatch(), 0
        while time.perf_counter() - stopwatch.start < seconds:
            connection.execute("BEGIN IMMEDIATE")
            batch = ((*key(each), each + 2, 0, 0, VALUE) for each in range(number, number + commit))
            connection.executemany(database.INSERT, batch)
            connection.execute("COMMIT")
            number += commit
        rate = stopwatch.rate(number)
    shutil.rmtree(directory)
    return rate


async def writes(seconds: float, parent: Path | None) -> None:
    for name, measure in (("create", creates), ("create, watched", watched), ("update", updates)):
        print(f"\n{name:<16}" + "".join(f"{f'{writers} writers':>24}" for writers in WRITERS))
        for store_name, open_ in STORES.items():
            figures = []
            for writers in WRITERS:
                async with empty_store(open_, parent) as store:
                    figures.append(await measure(store, writers, seconds))
            print(f"{store_name:<16}" + "".join(f"{figure:>24}" for figure in figures), flush=True)
        if measure is creates:
            figures = [plain_sqlite("full", writers, seconds, parent) for writers in WRITERS]
            print(f"{'plain sqlite3':<16}" + "".join(f"{figure:>24}" for figure in figures), flush=True)


async def reads(parent: Path | None) -> None:
    """Reads of 10 000 objects, each written once."""
    print(f"\n{OBJECTS:,} objects")
    for name in ("sqlite full", "memory"):
        async with empty_store(STORES[name], parent) as store:
            await fill(store)
            stopwatch = Stopwatch()
            for number in range(0, OBJECTS, 5):
                await store.get(key(number))
            print(f"{name:<16}{'get':<28}{stopwatch.rate(OBJECTS // 5)}")
            for operation, call in (
                ("list of all", store.list(ALL_THINGS)),
                ("page of 500", store.list(ALL_THINGS, limit=500)),
                ("count", store.count(ALL_THINGS)),
            ):
                stopwatch = Stopwatch()
                await call
                print(f"{name:<16}{operation:<28}{stopwatch.elapsed()}")
            stopwatch = Stopwatch()
            events = await history(store, after=1)
            print(f"{name:<16}{'watch from the beginning':<28}{stopwatch.rate(events)}", flush=True)


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
    """Open a file with 10 000 objects: as a stopped server leaves it, and as a killed one does (with its log)."""
    directory = Path(tempfile.mkdtemp(dir=parent))
    file = directory / "noxu.db"
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.executescript(
            f"PRAGMA page_size = {database.PAGE_SIZE}; PRAGMA journal_mode = WAL; {migrations.upgrade_script(0)}"
        )
        connection.executemany(database.INSERT, (row(key(each), each + 2, 0, VALUE) for each in range(OBJECTS)))
        connection.commit()
        killed = directory / "killed.db"
        for suffix in ("", "-wal"):
            shutil.copy(f"{file}{suffix}", f"{killed}{suffix}")
    for name, path in (("stopped", file), ("killed", killed)):
        stopwatch = Stopwatch()
        store = await SqliteStore.open(path)
        opened = stopwatch.elapsed()
        stopwatch = Stopwatch()
        await store.put(key(OBJECTS), VALUE, expected=0)
        first = stopwatch.elapsed()
        stopwatch = Stopwatch()
        events = await history(store, after=1)
        replayed = stopwatch.rate(events)
        stopwatch = Stopwatch()
        await store.compact(store.revision)
        compacted = stopwatch.elapsed()
        await store.close()
        print(f"{name:<16}open {opened}, first write {first}, all events {replayed}, compact {compacted}")
    shutil.rmtree(directory)


async def main(seconds: float, parent: Path | None) -> None:
    await writes(seconds, parent)
    await reads(parent)
    await opening(parent)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.store", description="Measure the stores.")
    parser.add_argument("--directory", type=Path, help="a directory on the disk to measure (default: a temporary one)")
    parser.add_argument("--etcd", metavar="URL", help="an etcd to measure, too")
    parser.add_argument("--seconds", type=float, default=1.0, help="the duration of each measurement (default: 1)")
    options = parser.parse_args()
    if options.etcd:
        STORES["etcd"] = etcd(options.etcd)
    uvloop.run(main(options.seconds, options.directory))
