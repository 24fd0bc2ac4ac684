"""Consecutive keys share a lease, for some time and up to some number of keys."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final
from uuid import uuid4

import pytest

from noxu_storage.types import Event, Key, Prefix, Unavailable
from tests.etcd_server import EtcdServer
from tests.timing import hang_guard

pytest.importorskip("noxu_storage.etcd.channel", reason="package: grpc")

from noxu_storage.etcd.client import EtcdClient
from noxu_storage.etcd.errors import CallLost
from noxu_storage.etcd.layout import PlainLayout
from noxu_storage.etcd.messages import LEASE_GRANT, LEASE_REVOKE, RANGE, Message, Method
from noxu_storage.etcd.store import EtcdStore
from noxu_storage.etcd.writes import MAX_KEYS, Leases

HOUR: Final = 3600


class Etcd:
    """Grants leases 1, 2, …; `granted` are their seconds. `now` is the time."""

    def __init__(self) -> None:
        self.granted: list[int] = []
        self.now = 100.0
        self.lost = False

    async def call(self, call: Method, request: Any) -> Any:
        assert call is LEASE_GRANT
        await asyncio.sleep(0)
        if self.lost:
            raise CallLost("no answer", sent=True)
        self.granted.append(request.TTL)
        return Message["LeaseGrantResponse"](ID=len(self.granted), TTL=request.TTL)

    def leases(self) -> Leases:
        return Leases(self, lambda: self.now)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("lifetime", "granted", "reused_until"),
    [(HOUR, 3660, 60), (24 * HOUR, 24 * HOUR + 60, 60), (600, 630, 30), (20, 21, 1), (10, 10, 0)],
)
async def test_a_lease_is_reused_for_five_percent_of_the_lifetime_and_a_minute_at_most(
    lifetime: int, granted: int, reused_until: int
) -> None:
    etcd = Etcd()
    leases = etcd.leases()
    assert await leases.lease(lifetime) == 1
    assert etcd.granted == [granted]
    if reused_until:
        etcd.now += reused_until - 0.5
        assert await leases.lease(lifetime) == 1, "the key exists for its whole lifetime"
    etcd.now += 0.5
    assert await leases.lease(lifetime) == 2


async def test_a_lease_gets_no_more_than_a_thousand_keys() -> None:
    etcd = Etcd()
    leases = etcd.leases()
    found = [await leases.lease(HOUR) for _ in range(MAX_KEYS + 1)]
    assert found == [1] * MAX_KEYS + [2]


async def test_concurrent_writes_get_one_lease() -> None:
    etcd = Etcd()
    leases = etcd.leases()
    assert await asyncio.gather(*(leases.lease(HOUR) for _ in range(10))) == [1] * 10
    assert etcd.granted == [3660]


async def test_lifetimes_have_leases_of_their_own() -> None:
    leases = Etcd().leases()
    assert [await leases.lease(seconds) for seconds in (HOUR, 60, HOUR, 60)] == [1, 2, 1, 2]


async def test_after_a_failure_and_when_it_is_forgotten_a_lease_is_granted_anew() -> None:
    etcd = Etcd()
    leases = etcd.leases()
    etcd.lost = True
    with pytest.raises(CallLost):
        await leases.lease(HOUR)
    etcd.lost = False
    assert await leases.lease(HOUR) == 1
    leases.forget()
    assert await leases.lease(HOUR) == 2


EVENT, THING = Key("/events", "default/", "e"), Key("example.com/things", "default/", "t")


@asynccontextmanager
async def opened(url: str, prefix: str) -> AsyncIterator[EtcdStore]:
    store = await EtcdStore.open([url], PlainLayout(prefix), lifetimes={EVENT.collection: HOUR})
    try:
        yield store
    finally:
        await store.close()


async def lease_of(client: EtcdClient, store: EtcdStore, key: Key) -> int:
    request = Message["RangeRequest"](key=store._layout.key(key))
    return int((await client.call(RANGE, request)).kvs[0].lease)


async def test_what_expires_is_deleted_and_watches_show_it(etcd: EtcdServer) -> None:
    """A lease that is revoked deletes its keys as one that has expired."""
    client = EtcdClient([etcd.url])
    async with opened(etcd.url, f"/tests/{uuid4()}/") as store, hang_guard():
        first = await store.put(EVENT, b"1", expected=0)
        await store.put(THING, b"1", expected=0)
        changed = await store.put(EVENT, b"2", expected=first)
        other = EVENT._replace(name="f")
        await store.put(other, b"1", expected=0)
        lease = await lease_of(client, store, EVENT)
        assert [await lease_of(client, store, key) for key in (EVENT, other, THING)] == [lease, lease, 0]
        assert lease
        await client.call(LEASE_REVOKE, Message["LeaseRevokeRequest"](ID=lease))
        found: list[Event] = []
        async for batch in store.watch(Prefix(EVENT.collection), after=changed + 1):
            found += batch.events
            if len(found) == 2:
                break
        assert {(event.key, event.value) for event in found} == {(EVENT, None), (other, None)}
        assert {event.previous.value for event in found if event.previous} == {b"1", b"2"}
        assert await store.get(EVENT) is None
        assert await store.get(THING) is not None
    await client.close()


async def test_a_lease_that_was_lost_fails_one_write_only(etcd: EtcdServer) -> None:
    client = EtcdClient([etcd.url])
    async with opened(etcd.url, f"/tests/{uuid4()}/") as store:
        await store.put(EVENT, b"1", expected=0)
        await client.call(LEASE_REVOKE, Message["LeaseRevokeRequest"](ID=await lease_of(client, store, EVENT)))
        with pytest.raises(Unavailable, match="requested lease not found"):
            await store.put(EVENT._replace(name="f"), b"1", expected=0)
        await store.put(EVENT._replace(name="f"), b"1", expected=0)
    await client.close()
