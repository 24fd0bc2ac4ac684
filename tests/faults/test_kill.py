"""R1: kill -9 at any moment loses no acknowledged write (etcd's KillFailpoint, Jepsen's kill)."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from noxu_storage.check import check
from noxu_storage.sqlite import SqliteStore
from noxu_storage.types import EVERYTHING, FIRST, Event, Key, KeyValue, Revision

KILLS = int(os.environ.get("NOXU_KILLS", "10"))
HERE = Path(__file__)
WRITES = (0, 1, 10, 300)  # acknowledged before a kill


class Ack(NamedTuple):
    revision: Revision
    expected: Revision
    name: str
    value: bytes | None


def run_and_kill(file: Path, seed: int, writes: int, pause: float) -> tuple[Revision, list[Ack]]:
    """Run the writers and kill them some time after so many writes. The revision at the start, and all acknowledgements."""
    with subprocess.Popen(
        [sys.executable, str(HERE.parent / "writer.py"), str(file), str(seed)],
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(HERE.parents[2])},
    ) as process:
        assert process.stdout is not None
        ready = process.stdout.readline().split()
        lines = [process.stdout.readline() for _ in range(writes)]
        time.sleep(pause)
        process.kill()
        lines += process.stdout.readlines()
    assert process.returncode == -9, lines
    acks = []
    for line in lines:
        revision, expected, name, value = line.decode().rstrip("\n").split(" ")
        acks.append(Ack(int(revision), int(expected), name, None if value == "-" else value.encode()))
    return int(ready[1]), acks


async def inspect(file: Path) -> tuple[SqliteStore, dict[Revision, Event], dict[str, KeyValue]]:
    """Open the store again: all its history, and its state."""
    began = time.process_time()
    store = await SqliteStore.open(file)
    page = await store.list(EVERYTHING)
    assert time.process_time() - began < 2  # recovery takes a few milliseconds
    events: dict[Revision, Event] = {}
    reached = max(store.compacted, FIRST)  # an empty store has this revision, and no event
    watch = store.watch(after=reached)
    while reached < store.revision:
        batch = await anext(watch)
        events |= {event.revision: event for event in batch.events}
        reached = batch.revision
    return store, events, {item.key.name: item for item in page.items}


@pytest.mark.timeout(60)
def test_a_store_that_was_killed_before_its_first_write_is_empty(tmp_path: Path) -> None:
    asyncio.run(_create(tmp_path / "noxu.db"))
    assert asyncio.run(_verify(tmp_path / "noxu.db", [], {}, FIRST)) == FIRST


async def _create(file: Path) -> None:
    store = await SqliteStore.open(file)
    await store.close()


@pytest.mark.timeout(300 + 60 * KILLS)
def test_kill_loses_no_acknowledged_write(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    file = tmp_path / "noxu.db"
    random = Random(os.urandom(8))
    newest, total = 1, 0
    last: dict[str, Ack] = {}
    for number in range(KILLS):
        start, acks = run_and_kill(file, number, WRITES[number % len(WRITES)], random.uniform(0.0, 0.1))
        assert start == newest
        total += len(acks)
        assert len({ack.revision for ack in acks}) == len(acks)
        newest = asyncio.run(_verify(file, acks, last, newest))
        assert check(file).problems == []
    record_property("kills", KILLS)
    record_property("acknowledged", total)


async def _verify(file: Path, acks: list[Ack], last: dict[str, Ack], newest: Revision) -> Revision:
    store, events, state = await inspect(file)
    try:
        assert store.revision >= max([ack.revision for ack in acks], default=newest)
        assert sorted(events) == list(range(max(store.compacted, 1) + 1, store.revision + 1))
        for ack in acks:
            last[ack.name] = max(last.get(ack.name, ack), ack)
            if ack.revision <= store.compacted:
                continue
            event = events[ack.revision]
            assert event.key == Key("g/things", "p/", ack.name)
            assert event.value == ack.value
            assert (event.previous.revision if event.previous else 0) == ack.expected
        for (
            name,
            ack,
        ) in (
            last.items()
        ):  # the state is the last acknowledged write, or one that was in flight when the process was killed
            item = state.get(name)
            if item is None or item.revision != ack.revision:
                later = [e for r, e in events.items() if r > ack.revision and e.key.name == name]
                assert later or (item is None and ack.value is None)
            else:
                assert item.value == ack.value
        for name in last:  # the next run has to preserve this state
            found = state.get(name)
            last[name] = Ack(found.revision if found else store.revision, 0, name, found.value if found else None)
        return store.revision
    finally:
        await store.close()
