"""etcd that is killed, stopped and cut off while two servers write to it: nothing is lost, nothing happens twice.

The truth is what etcd has in the end: a new store that reads the history from the beginning.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import NamedTuple

import pytest

from noxu_storage.types import EVERYTHING, Conflict, Event, Key, OutcomeUnknown, Revision, Unavailable
from tests import etcd_server
from tests.etcd_server import EtcdMembers, EtcdServer
from tests.timing import eventually_async, hang_guard

pytest.importorskip("noxu_storage.etcd.channel", reason="package: grpc")

from noxu_storage.etcd.layout import PlainLayout
from noxu_storage.etcd.store import EtcdStore

PREFIX = "/faults/"
COUNTERS = [Key("g/counters", "p/", str(number)) for number in range(3)]


@pytest.fixture
def etcd(tmp_path: Path) -> Iterator[EtcdMembers]:
    if reason := etcd_server.lacking():
        pytest.skip(reason)
    with etcd_server.running_members(tmp_path) as members:
        yield members


class Outcome(NamedTuple):
    """The answers to the writers of one store."""

    created: dict[Key, Revision]
    increments: list[Revision]
    unknown: list[Key]


async def create(store: EtcdStore, name: str, outcome: Outcome, stop: asyncio.Event) -> None:
    number = 0
    while not stop.is_set():
        number += 1
        key = Key("g/things", "p/", f"{name}{number}")
        try:
            outcome.created[key] = await store.put(key, name.encode(), expected=0)
        except OutcomeUnknown:
            outcome.unknown.append(key)
        except Unavailable:
            await asyncio.sleep(0.01)


async def increment(store: EtcdStore, name: str, outcome: Outcome, stop: asyncio.Event) -> None:
    """Add one to each counter in turn. A value is `NUMBER WRITER`: two writers do not write the same bytes."""
    turn = 0
    while not stop.is_set():
        turn += 1
        key = COUNTERS[turn % len(COUNTERS)]
        current = await store.get(key)
        number = int(current.value.split()[0]) + 1 if current else 1
        try:
            value = f"{number} {name}".encode()
            outcome.increments.append(await store.put(key, value, expected=current.revision if current else 0))
        except Conflict:
            pass
        except OutcomeUnknown:
            outcome.unknown.append(key)
        except Unavailable:
            await asyncio.sleep(0.01)


async def restarted(etcd: EtcdMembers) -> None:
    etcd.kill()
    await asyncio.to_thread(etcd.start)


async def stopped(etcd: EtcdMembers) -> None:
    await asyncio.to_thread(etcd.pause)
    await asyncio.sleep(0.3)
    etcd.resume()


async def test_two_stores_lose_nothing_and_write_nothing_twice(etcd: EtcdMembers) -> None:
    stores = [await EtcdStore.open(etcd.url.split(","), PlainLayout(PREFIX)) for _ in range(2)]
    start = max(store.revision for store in stores)
    outcomes = [Outcome({}, [], []) for _ in stores]
    stop = asyncio.Event()
    writers = [
        asyncio.create_task(write(store, f"{kind}{number}-", outcome, stop))
        for store, outcome, number in zip(stores, outcomes, range(2), strict=True)
        for write, kind in ((create, "a"), (create, "b"), (increment, "c"), (increment, "d"))
    ]

    def progress() -> int:
        return sum(len(outcome.created) + len(outcome.increments) for outcome in outcomes)

    async with hang_guard():
        for fault in (restarted, stopped, restarted):
            before = progress()
            await eventually_async(lambda before=before: progress() > before + 40)  # type: ignore[misc]
            await fault(etcd)
        before = progress()
        await eventually_async(lambda: progress() > before + 40)
        stop.set()
        await asyncio.gather(*writers)
        truth = await EtcdStore.open(etcd.url.split(","), PlainLayout(PREFIX))
        await asyncio.gather(*(store.catch_up() for store in stores))
        histories = [await history(store, start) for store in (truth, *stores)]
    assert histories[0] == histories[1] == histories[2]
    for store in stores:
        assert (await store.list(EVERYTHING)).items == (await truth.list(EVERYTHING)).items
    revisions = {event.key: event.revision for event in histories[0] if event.key not in COUNTERS}
    for outcome in outcomes:
        assert {key: revisions.get(key) for key in outcome.created} == outcome.created
    acknowledged = [revision for outcome in outcomes for revision in outcome.increments]
    assert len(set(acknowledged)) == len(acknowledged)
    total = sum(int(item.value.split()[0]) for item in (await truth.list(EVERYTHING)).items if item.key in COUNTERS)
    unknown = sum(len(outcome.unknown) for outcome in outcomes)
    assert len(acknowledged) <= total <= len(acknowledged) + unknown
    for store in (truth, *stores):
        await store.close()


async def history(store: EtcdStore, after: Revision) -> list[Event]:
    events: list[Event] = []
    last = max(item.revision for item in (await store.list(EVERYTHING)).items)
    async for batch in store.watch(after=after):
        events += batch.events
        if batch.revision >= last:
            return [event for event in events if event.revision <= last]
    return events


async def test_without_space_nothing_that_was_refused_is_stored(tmp_path: Path) -> None:
    """etcd notices that its space is used up while it executes writes: it executes them, and answers with an error."""
    if reason := etcd_server.lacking():
        pytest.skip(reason)
    server = EtcdServer(tmp_path / "etcd", "--quota-backend-bytes", "18000000")
    refused: list[Key] = []
    created: dict[Key, Revision] = {}
    try:
        await asyncio.to_thread(server.start)
        store = await EtcdStore.open([server.url], PlainLayout(PREFIX))

        async def write(name: str) -> None:
            for number in count():
                key = Key("g/things", "p/", f"{name}{number}")
                try:
                    created[key] = await store.put(key, bytes(20_000), expected=0)
                except Unavailable as error:
                    assert "database space exceeded" in str(error)  # noqa: PT017
                    refused.append(key)
                    return

        async with hang_guard():
            await asyncio.gather(*(write(f"w{number}-") for number in range(64)))
        truth = await EtcdStore.open([server.url], PlainLayout(PREFIX))
        assert {item.key: item.revision for item in (await truth.list(EVERYTHING)).items} == created
        assert len(refused) == 64
        await truth.close()
        await store.close()
    finally:
        server.kill()
