"""R1: kill -9 in the middle of everything loses nothing that was acknowledged (etcd's KillFailpoint, Jepsen's kill)."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from storage.check import check
from storage.sqlite import SqliteStore
from storage.types import EVERYTHING, Event, Key, KeyValue, Revision

KILLS = int(os.environ.get("NOXU_KILLS", "10"))
HERE = Path(__file__)


class Ack(NamedTuple):
    revision: Revision
    expected: Revision
    name: str
    value: bytes | None


def run_and_kill(file: Path, seed: int, after: float) -> tuple[Revision, list[Ack], float]:
    """What the writers were told until they died: the revision they began with, acknowledgements, the seconds they had."""
    with subprocess.Popen(
        [sys.executable, str(HERE.parent / "writer.py"), str(file), str(seed)],
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(HERE.parents[2])},
    ) as process:
        assert process.stdout is not None
        ready = process.stdout.readline().split()
        began = time.monotonic()
        time.sleep(after)
        process.kill()
        lasted = time.monotonic() - began
        lines = process.stdout.read().decode().splitlines()
    assert process.returncode == -9, lines
    acks = []
    for line in lines:
        revision, expected, name, value = line.split(" ")
        acks.append(Ack(int(revision), int(expected), name, None if value == "-" else value.encode()))
    return int(ready[1]), acks, lasted


async def inspect(file: Path) -> tuple[SqliteStore, dict[Revision, Event], dict[str, KeyValue]]:
    """The store opened again, all history it has, and its state."""
    began = time.monotonic()
    store = await SqliteStore.open(file)
    page = await store.list(EVERYTHING)
    assert time.monotonic() - began < 1
    events: dict[Revision, Event] = {}
    reached = store.compacted
    watch = store.watch(after=reached)
    while reached < store.revision:
        batch = await anext(watch)
        events |= {event.revision: event for event in batch.events}
        reached = batch.revision
    return store, events, {item.key.name: item for item in page.items}


@pytest.mark.timeout(60 + 6 * KILLS)
def test_kill_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    file = tmp_path / "noxu.db"
    random = Random(os.urandom(8))
    newest = 1
    acknowledged = 0
    lasted = 0.0
    last: dict[str, Ack] = {}
    for number in range(KILLS):
        began_with, acks, seconds = run_and_kill(file, number, random.uniform(0.0, 0.4))
        assert began_with == newest
        acknowledged += len(acks)
        lasted += seconds
        assert len({ack.revision for ack in acks}) == len(acks)
        newest = asyncio.run(_verify(file, acks, last, newest))
        assert check(file).damage == []
    assert acknowledged >= 100 * lasted, "too few writes to mean anything"


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
        for name, ack in last.items():  # the state is what was acknowledged last, or was on its way when the end came
            item = state.get(name)
            if item is None or item.revision != ack.revision:
                later = [e for r, e in events.items() if r > ack.revision and e.key.name == name]
                assert later or (item is None and ack.value is None)
            else:
                assert item.value == ack.value
        for name in last:  # from here on this is what has to last
            found = state.get(name)
            last[name] = Ack(found.revision if found else store.revision, 0, name, found.value if found else None)
        return store.revision
    finally:
        await store.close()
