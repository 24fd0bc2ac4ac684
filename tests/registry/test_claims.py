"""KeyClaims of values that must be unique across servers with one store."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from noxu.registry import claims
from noxu.registry.cache import WatchCache
from noxu.registry.claims import Claimed, KeyClaims
from noxu_storage.types import EVERYTHING, Key, Unavailable
from tests.faults.flaky import FlakyStore
from tests.timing import eventually_async, hang_guard, loop_turns

A, B = Key("ranges/serviceips", "", "10.0.0.5"), Key("ranges/serviceips", "", "10.0.0.6")


@pytest.fixture
async def store() -> AsyncIterator[FlakyStore]:
    store = FlakyStore()
    yield store
    await store.close()


@contextlib.asynccontextmanager
async def a_server(store: FlakyStore) -> AsyncIterator[KeyClaims]:
    """The claims of a server that follows the store."""
    cache = WatchCache(store)
    following = asyncio.create_task(cache.follow())
    try:
        yield KeyClaims(store, cache)
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)


async def names(store: FlakyStore) -> list[str]:
    return [item.key.name for item in (await store.list(EVERYTHING)).items]


async def test_a_value_is_claimed_by_one_server_until_it_is_released(store: FlakyStore) -> None:
    async with a_server(store) as one, a_server(store) as two, hang_guard():
        made = await one.claim([A, B])
        assert await names(store) == [A.name, B.name]
        other = asyncio.create_task(two.claim([A]))
        await loop_turns()
        assert not other.done()
        one.release(made)
        with pytest.raises(Claimed):
            await other
        assert (await two.claim([A])).keys() == {A}


async def test_a_server_that_does_not_release_delays_others_for_a_limited_time(
    store: FlakyStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "WAIT_FOR", 0.05)
    async with a_server(store) as one, a_server(store) as two, hang_guard():
        await one.claim([A])
        with pytest.raises(Claimed):
            await two.claim([A])


async def test_all_values_are_claimed_or_none(store: FlakyStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "WAIT_FOR", 0.05)
    async with a_server(store) as one, a_server(store) as two, hang_guard():
        await one.claim([B])
        with pytest.raises(Claimed):
            await two.claim([A, B])
        await two.close()
        assert await names(store) == [B.name]
        store.fail("create", lambda key: key == Key("x/y", "", "z"))
        with pytest.raises(Unavailable):
            await two.claim([A, Key("x/y", "", "z")])
        await two.close()
        assert await names(store) == [B.name]


async def test_a_claim_has_what_was_stored_before_it(store: FlakyStore) -> None:
    async with a_server(store) as claims_of_one:
        await store.put(Key("/services", "default/", "a"), b"{}", expected=0)
        made = await claims_of_one.claim([A])
        assert claims_of_one._cache.revision >= made[A]


async def test_a_sweep_deletes_what_has_not_changed_since_the_last_one(store: FlakyStore) -> None:
    async with a_server(store) as one:
        made = await one.claim([A])
        await one.sweep([A.collection])
        await one.claim([B])
        assert await names(store) == [A.name, B.name]
        await store.delete(A, expected=made[A])
        again = await one.claim([A])
        await one.sweep([A.collection])
        assert await names(store) == [A.name, B.name], "A is another claim now, B is new"
        await one.sweep([A.collection])
        assert await names(store) == []
        one.release(again)
        await one.close()


async def test_a_release_that_fails_is_left_to_a_sweep(store: FlakyStore) -> None:
    async with a_server(store) as one:
        store.fail("delete", lambda key: key == A)
        one.release(await one.claim([A]))
        await one.close()
        assert await names(store) == [A.name]
        for _ in range(2):
            await one.sweep([A.collection])
        await eventually_async(lambda: _is_empty(store))


async def _is_empty(store: FlakyStore) -> bool:
    return await names(store) == []
