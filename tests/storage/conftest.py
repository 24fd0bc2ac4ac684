"""Every back end, one after the other, behind the same fixture; and what the tests of all of them need."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from storage.memory import MemoryStore
from storage.sqlite import SqliteStore
from storage.store import Store
from storage.types import EVERYTHING, Event, Prefix, Revision

Collect = Callable[..., Awaitable[list[Event]]]


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    for thread in set(threading.enumerate()) - before:
        thread.join(timeout=1)  # it may still be on its way out
        assert not thread.is_alive()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "noxu.db"


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, file: Path) -> AsyncIterator[Store]:
    store: Store = MemoryStore() if request.param == "memory" else await SqliteStore.open(file)
    yield store
    await store.close()


@pytest.fixture
async def sqlite(file: Path) -> AsyncIterator[SqliteStore]:
    store = await SqliteStore.open(file)
    yield store
    await store.close()


@pytest.fixture
def collect() -> Collect:
    """The events of a watch up to a revision; its batches have to advance."""

    async def collect(store: Store, *, after: Revision, upto: Revision, prefix: Prefix = EVERYTHING) -> list[Event]:
        events: list[Event] = []
        reached = after
        async with asyncio.timeout(10):
            async for batch in store.watch(prefix, after=after):
                assert batch.revision > reached
                assert all(reached < event.revision <= batch.revision for event in batch.events)
                reached = batch.revision
                events += batch.events
                if reached >= upto:
                    break
        return events

    return collect
