"""R2: power fails at any moment (SQLite's crash tests, etcd's LazyFS).

With durability `full` no write that was acknowledged or shown is lost. With `normal` the newest may be lost, but what
remains is a prefix of the history. The file is never corrupt. NOXU_CUTS is the number of failures for each durability.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

from noxu_storage import database
from noxu_storage.check import check
from noxu_storage.database import Durability
from noxu_storage.sqlite import SqliteStore
from noxu_storage.types import EVERYTHING, Conflict, Event, Key, KeyValue, Revision, StoreError
from tests.faults.power import Disk, write_files
from tests.faults.sqlite_files import SqliteFiles
from tests.timing import hang_guard

CUTS = int(os.environ.get("NOXU_CUTS", "60"))
WRITERS = 6
WRITES = 30  # of each writer, between two starts
STARTS = 3
KEPT = 60  # revisions of history that compaction keeps
FILE = "data/store/noxu.db"


class Checkpointing(database.FileConnection):
    """Checkpoints often, so that many failures are in the middle of one."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.execute("PRAGMA wal_autocheckpoint = 25")


class Shown(NamedTuple):
    """A mark among the operations: from here on this revision has been acknowledged, or sent to a watch."""

    revision: Revision


class Run(NamedTuple):
    """The disk before a run, the operations of the run, and every event up to its end."""

    disk: Disk
    operations: list[Any]
    history: list[Event]


def key(name: object) -> Key:
    return Key("g/things", "p/", str(name))


async def write(store: SqliteStore, writer: int, random: Random, show: Callable[[Revision], None]) -> None:
    for _ in range(WRITES):
        name = key(random.choice(["shared", *(f"{writer}-{number}" for number in range(4))]))
        current = await store.get(name)
        expected = current.revision if current else 0
        try:
            if current is not None and random.random() < 0.25:
                show(await store.delete(name, expected=expected))
            else:
                value = random.randbytes(random.choice([10, 300, 3_000, 30_000]))
                show(await store.put(name, value, expected=expected))
        except Conflict:
            assert name.name == "shared"


async def follow(store: SqliteStore, history: list[Event], show: Callable[[Revision], None]) -> None:
    async for batch in store.watch(after=store.revision):
        history += batch.events
        show(batch.revision)


async def compact(store: SqliteStore) -> None:
    while True:
        await store.compact(max(store.revision - KEPT, 0))
        await asyncio.sleep(0)


async def traffic(root: Path, durability: Durability, random: Random, operations: list[Any]) -> list[Event]:
    """Start the store, write and stop it, several times. The complete history."""

    def show(revision: Revision) -> None:
        operations.append(Shown(revision))

    history: list[Event] = []
    for _ in range(STARTS):
        store = await SqliteStore.open(root / FILE, durability)
        following = asyncio.create_task(follow(store, history, show))
        compacting = asyncio.create_task(compact(store))
        await asyncio.sleep(0)
        async with hang_guard():
            await asyncio.gather(*(write(store, writer, random, show) for writer in range(WRITERS)))
            compacting.cancel()
            await asyncio.wait([compacting])
            await store.close()
            await following
    return history


def record(root: Path, durability: Durability, seed: int) -> Run:
    root.mkdir()
    disk, files = Disk(root), SqliteFiles(root)
    with files():
        history = asyncio.run(traffic(root, durability, Random(seed), files.operations))
    return Run(disk, files.operations, history)


async def inspect(file: Path, history: list[Event]) -> Revision:
    """Open what is left, compare it with the history, and write to it. Its newest revision."""
    store = await SqliteStore.open(file)
    try:
        newest = reached = store.revision
        assert newest <= len(history) + 1
        expected = history[: newest - 1]
        state: dict[Key, KeyValue] = {}
        for event in expected:
            state.pop(event.key, None)
            if event.value is not None:
                state[event.key] = KeyValue(event.key, event.value, event.revision)
        assert sorted(state.values()) == list((await store.list(EVERYTHING)).items)
        reached = max(store.compacted, 1)
        watch = store.watch(after=reached)
        events: list[Event] = []
        while reached < newest:
            batch = await anext(watch)
            events += batch.events
            reached = batch.revision
        assert events == expected[max(store.compacted, 1) - 1 :]
        assert await store.put(key("after"), b"after", expected=0) == newest + 1
        return newest
    finally:
        await store.close()


def lost_in(run: Run, tmp_path: Path, random: Random, cuts: int) -> list[int]:
    """For each of `cuts` failures: how many of the revisions that had been shown are missing.

    Every fourth time the power fails again while the store recovers.
    """
    lost = []
    done, shown = 0, 1
    for number, cut in enumerate(sorted(random.randrange(len(run.operations) + 1) for _ in range(cuts))):
        run.disk.run(run.operations[done:cut])
        shown = max([shown, *(mark.revision for mark in run.operations[done:cut] if isinstance(mark, Shown))])
        done = cut
        root = tmp_path / f"cut{number}"
        root.mkdir()
        write_files(run.disk.after_failure(random), root)
        if number % 4 == 0:
            root = cut_again(root, random)
        newest = 1
        if (root / FILE).exists():
            newest = asyncio.run(inspect(root / FILE, run.history))
            assert check(root / FILE).problems == []
        lost.append(max(shown - newest, 0))
        for path in sorted(root.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
    return lost


def cut_again(root: Path, random: Random) -> Path:
    """What is left if the power fails during recovery: another directory."""
    if not (root / FILE).exists():
        return root
    disk, files = Disk(root), SqliteFiles(root)

    async def recover() -> None:
        await (await SqliteStore.open(root / FILE)).close()

    with files():
        asyncio.run(recover())
    disk.run(files.operations[: random.randrange(len(files.operations) + 1)])
    again = root.with_suffix(".again")
    again.mkdir()
    write_files(disk.after_failure(random), again)
    return again


KINDS: dict[str, tuple[Durability, type[database.FileConnection]]] = {
    "full": ("full", Checkpointing),
    "normal": ("normal", Checkpointing),
    "normal, with checkpoints as rare as they are": ("normal", database.FileConnection),
}


@pytest.mark.timeout(300 + CUTS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_power_failure_loses_what_the_durability_allows_and_never_corrupts(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
) -> None:
    durability, connection = KINDS[kind]
    monkeypatch.setattr(database, "FileConnection", connection)
    run = record(tmp_path / "run", durability, seed=1)
    lost = lost_in(run, tmp_path, Random(2), CUTS)
    record_property("power failures", len(lost))
    record_property("power failures that lost acknowledged writes", sum(1 for number in lost if number))
    record_property("acknowledged writes lost at most", max(lost))
    if durability == "full":
        assert not any(lost), lost
    else:
        assert any(lost), "the simulation of failures loses nothing: durability `normal` syncs as often as `full`"


def test_the_simulation_corrupts_a_store_that_does_not_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(database._DURABILITY, "full", "PRAGMA synchronous = OFF;")
    run = record(tmp_path / "run", "full", seed=1)
    with pytest.raises((AssertionError, StoreError)):
        lost_in(run, tmp_path, Random(2), 200)


def test_a_directory_that_the_store_creates_survives_a_power_failure(tmp_path: Path) -> None:
    """Whose name is in its parent only when that is synced: SQLite syncs the directory of its files, not those above."""
    root = tmp_path / "run"
    root.mkdir()
    disk, files = Disk(root), SqliteFiles(root)

    async def start() -> None:
        store = await SqliteStore.open(root / FILE)
        await store.put(key("a"), b"1", expected=0)
        files.operations.append(Shown(2))
        await store.close()

    with files():
        asyncio.run(start())
    disk.run(files.operations[: files.operations.index(Shown(2))])
    for seed in range(20):
        assert FILE in disk.after_failure(Random(seed))
