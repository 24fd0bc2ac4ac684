"""Writes of entries: optimistic locking, the write can be read when the call returns, and outcomes that are unknown."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

import pytest

from noxu.api.errors import ApiError, Qualified
from noxu.config import MAX_MUTATING_IN_FLIGHT
from noxu.registry import persistence, server_leases
from noxu.registry.cache import WatchCache
from noxu.registry.draft import Action, WriteRequest, draft_for
from noxu.registry.server_leases import ServerLeases
from noxu.registry.storage_form import SERVER_LEASES
from noxu.registry.stored_object import StoredObject
from noxu.registry.subresources import pods
from noxu.values import Object
from noxu_storage.memory import MemoryStore
from noxu_storage.types import Conflict, Corrupt, Key, OutcomeUnknown, Revision, StoreError, Unavailable
from tests.faults.flaky import FlakyStore
from tests.registry.world import MERGE_PATCH, World, error_of, widget, world_of
from tests.timing import loop_turns

UNKNOWN: Final = "Internal error occurred: the outcome of the write is unknown: storage failed while committing it"
CREATE, UPDATE, DELETE = (
    (Action.CREATE, "create", widget("b")),
    (Action.PATCH, "put", {"spec": {"size": 2}}),
    (Action.DELETE, "delete", b""),
)
EVERY_WRITE: Final = pytest.mark.parametrize(
    ("action", "method", "value"), [CREATE, UPDATE, DELETE], ids=lambda given: getattr(given, "name", "")
)


@pytest.fixture
async def store() -> FlakyStore:
    """Fails as planned."""
    return FlakyStore()


@pytest.fixture
async def flaky(store: FlakyStore) -> AsyncIterator[World]:
    """A world with the Widget a over that store."""
    async with world_of(store) as world:
        await world.create()
        yield world


async def send(world: World, action: Action, value: Object | bytes) -> None:
    name = "" if action is Action.CREATE else "a"
    media_type = MERGE_PATCH if action is Action.PATCH else "application/json"
    await world.write(action, value, name=name, media_type=media_type)


@EVERY_WRITE
async def test_a_write_whose_outcome_is_unknown_is_an_internal_error(
    flaky: World, store: FlakyStore, action: Action, method: str, value: Object | bytes
) -> None:
    store.fail(method, lambda _: True, error=OutcomeUnknown("planned"))
    with pytest.raises(ApiError) as caught:
        await send(flaky, action, value)
    assert (caught.value.code, caught.value.message) == (500, UNKNOWN)
    assert store.failures == 1
    assert flaky.cache.expected == {}
    await send(flaky, action, value)


@EVERY_WRITE
async def test_a_store_that_is_unavailable_ends_the_write(
    flaky: World, store: FlakyStore, action: Action, method: str, value: Object | bytes
) -> None:
    store.fail(method, lambda _: True, error=Unavailable("planned"))
    with pytest.raises(Unavailable):
        await send(flaky, action, value)
    assert flaky.cache.expected == {}
    assert (await flaky.stored())["spec"] == {"size": 1}
    await send(flaky, action, value)


async def test_the_key_of_a_corrupt_object_is_not_free(flaky: World, store: FlakyStore) -> None:
    store.fail("create", lambda _: True, error=Corrupt("planned", {flaky.key("b"): 9}))
    message = await error_of(flaky.create(widget("b")))
    assert "object not decodable revision=9" in message
    assert "/registry/apiextensions.kubernetes.io/example.com/widgets/default/b" in message


async def test_a_write_can_be_read_from_the_cache_when_it_returns(world: World) -> None:
    things = await world.reader.collection(world.widgets)
    entry = StoredObject(world.key(), b"{}", 0)
    await world.persistence.create(entry)
    assert (things.entries[entry.key], entry.revision) == (entry, world.store.revision)
    new = StoredObject(entry.key, b'{"a":1}', 0)
    assert await world.persistence.replace(entry, new)
    assert things.entries[entry.key] is new
    assert await world.persistence.remove(new) == world.store.revision
    assert entry.key not in things.entries
    assert world.cache.expected == {}


async def ended_without_the_cache(call: Awaitable[object], cache: WatchCache) -> bool:
    """Whether a call ends before the cache follows the log; afterwards it does."""
    task = asyncio.ensure_future(call)
    await loop_turns()
    ended = task.done()
    following = asyncio.create_task(cache.follow())
    await task
    following.cancel()
    return ended


async def test_a_write_returns_when_the_cache_has_followed() -> None:
    store = MemoryStore()
    watch_cache = WatchCache(store)
    writes = persistence.Persistence(store, watch_cache)
    key = Key("c", "", "a")
    first, second, third = (StoredObject(key, text, 0) for text in (b"1", b"2", b"3"))
    assert not await ended_without_the_cache(writes.create(first), watch_cache)
    assert not await ended_without_the_cache(writes.replace(first, second), watch_cache)
    revision = await store.put(key, b"4", expected=second.revision)
    assert not await ended_without_the_cache(writes.replace(second, third), watch_cache)
    assert not await ended_without_the_cache(writes.remove(StoredObject(key, b"4", revision)), watch_cache)


async def test_an_entry_that_is_no_longer_stored_is_not_replaced_or_removed(world: World) -> None:
    """The cache has the state that won when the call returns."""
    things = await world.reader.collection(world.widgets)
    first, second = StoredObject(world.key(), b"1", 0), StoredObject(world.key(), b"2", 0)
    await world.persistence.create(first)
    revision = await world.store.put(first.key, b"2", expected=first.revision)
    assert not await world.persistence.replace(first, second)
    assert things.entries[first.key].revision == revision
    gone = await world.store.delete(first.key, expected=revision)
    assert await world.persistence.remove(first) == 0
    assert (first.key in things.entries, world.cache.revision) == (False, gone)
    assert not await world.persistence.replace(first, second)
    assert world.cache.expected == {}


async def test_a_key_that_exists_conflicts(world: World) -> None:
    entry = StoredObject(world.key(), b"1", 0)
    await world.persistence.create(entry)
    with pytest.raises(Conflict) as caught:
        await world.persistence.create(StoredObject(world.key(), b"2", 0))
    assert caught.value.current is not None
    assert caught.value.current.value == b"1"


async def test_of_concurrent_writers_one_succeeds(world: World) -> None:
    things = await world.reader.collection(world.widgets)
    entry = StoredObject(world.key(), b"0", 0)
    await world.persistence.create(entry)
    candidates = [StoredObject(entry.key, str(n).encode(), 0) for n in range(1, 9)]
    results = await asyncio.gather(*[world.persistence.replace(entry, new) for new in candidates])
    assert results.count(True) == 1
    winner = candidates[results.index(True)]
    assert (things.entries[entry.key].stored, things.entries[entry.key].revision) == (winner.stored, winner.revision)
    assert world.cache.expected == {}


async def test_a_corrupt_object_can_be_removed(world: World) -> None:
    things = await world.reader.collection(world.widgets)
    key = Key(things.name, "default/", "bad")
    revision = await world.store.put(key, b"1", expected=0)
    things.corrupt[key] = revision
    await world.persistence.remove_corrupt(key, revision)
    assert things.corrupt == {}
    with pytest.raises(StoreError):
        await world.persistence.remove_corrupt(key, revision)


# -- attempts at what others prevent ------------------------------------------------------------------------------------


class Overtaken(MemoryStore):
    """Another writer always comes first: each write of an existing key, and of a lease, conflicts, without any waiting."""

    def __init__(self) -> None:
        super().__init__()
        self.attempts = 0

    async def put(self, key: Key, value: bytes, *, expected: Revision, replaced: bytes | None = None) -> Revision:
        if not expected and key.collection != SERVER_LEASES:
            return await super().put(key, value, expected=expected)
        self.attempts += 1
        raise Conflict(key, await self.get(key))


POD: Final = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p"},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}


async def change_a_pod(world: World) -> None:
    pod = world.resource("pods")
    await world.create(POD, resource=pod)
    draft = draft_for(WriteRequest(Action.CREATE, pod, "default", "p"), world.environment)
    await pods.update(draft, "p", lambda value: value["metadata"].update(labels={"a": "b"}), dry_run=False)


async def renew_a_lease(world: World) -> None:
    await ServerLeases(world.store, "192.0.2.7").renew()


async def patch_an_object(world: World) -> None:
    await world.create()
    await world.patch({"spec": {"size": 2}})


@pytest.mark.parametrize("work", [change_a_pod, renew_a_lease, patch_an_object])
async def test_whoever_is_overtaken_every_time_gives_up(
    work: Callable[[World], Awaitable[None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(persistence, "MAX_ATTEMPTS", 7)
    monkeypatch.setattr(server_leases, "MAX_ATTEMPTS", 7)
    store, turns = Overtaken(), 0

    async def others() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    async with world_of(store) as world:
        running = asyncio.create_task(others())
        with pytest.raises((ApiError, Unavailable)):
            await work(world)
        running.cancel()
    assert store.attempts == 7
    assert turns >= 6


async def test_the_number_of_attempts_has_room_for_all_writes_in_flight() -> None:
    assert persistence.MAX_ATTEMPTS >= 5 * MAX_MUTATING_IN_FLIGHT
    assert await persistence.attempt_again(1, Qualified("", "pods"), "p") == 2
    with pytest.raises(ApiError, match='Operation cannot be fulfilled on pods "p": the object has been modified'):
        await persistence.attempt_again(persistence.MAX_ATTEMPTS, Qualified("", "pods"), "p")
