"""Fixtures: every back end in turn, and the events of a watch."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from noxu_storage.memory import MemoryStore
from noxu_storage.sqlite import SqliteStore
from noxu_storage.store import Store
from noxu_storage.types import EVERYTHING, Event, Prefix, Revision
from tests.etcd_server import EtcdServer
from tests.storage.rebased import open_rebased
from tests.timing import HANGS_AFTER, hang_guard

SLOW = pytest.mark.slow(every=3)  # memory and SQLite in turn
SLOW_ETCD = pytest.mark.slow(every=8)


def pytest_itemcollected(item: pytest.Item) -> None:
    if item.get_closest_marker("slow") is None:
        item.add_marker(SLOW_ETCD if "etcd" in item.name.partition("[")[2] else SLOW)


Collect = Callable[..., Coroutine[Any, Any, list[Event]]]
OpenEtcd = Callable[[], Awaitable[Store]]


@pytest.fixture(autouse=True)
def _no_thread_remains() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    for thread in set(threading.enumerate()) - before:
        thread.join(HANGS_AFTER)  # it may still be ending
        assert not thread.is_alive()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "noxu.db"


@pytest.fixture(params=["memory", "memory on a base", "sqlite", "etcd"])
async def store(request: pytest.FixtureRequest, file: Path) -> AsyncIterator[Store]:
    store: Store
    if request.param == "memory":
        store = MemoryStore()
    elif request.param == "memory on a base":
        store = MemoryStore(MemoryStore().base())
    elif request.param == "sqlite":
        store = await SqliteStore.open(file)
    else:
        store = await request.getfixturevalue("open_etcd")()
    yield store
    await store.close()


@pytest.fixture
def open_etcd(etcd: EtcdServer) -> OpenEtcd:
    """Open a store under a new prefix of etcd, whose revisions are shown from 1 on."""

    async def open_etcd() -> Store:
        return await open_rebased(etcd.url)

    return open_etcd


@pytest.fixture
async def sqlite(file: Path) -> AsyncIterator[SqliteStore]:
    store = await SqliteStore.open(file)
    yield store
    await store.close()


@pytest.fixture
def collect() -> Collect:
    """The events of a watch up to a revision. The revisions of its batches must grow."""

    async def collect(store: Store, *, after: Revision, upto: Revision, prefix: Prefix = EVERYTHING) -> list[Event]:
        events: list[Event] = []
        reached = after
        async with hang_guard():
            async for batch in store.watch(prefix, after=after):
                assert batch.revision > reached
                assert all(reached < event.revision <= batch.revision for event in batch.events)
                reached = batch.revision
                events += batch.events
                if reached >= upto:
                    break
        return events

    return collect
