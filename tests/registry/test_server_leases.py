"""The leases of servers that share a store: their addresses, and the bytes that upstream's servers read and write."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from noxu.process import stores
from noxu.registry import etcd_built_in
from noxu.registry.etcd_layout import KubernetesLayout
from noxu.registry.server_leases import ServerLeases
from noxu.registry.storage_form import SERVER_LEASES
from noxu_storage.memory import MemoryStore
from noxu_storage.types import Key

KEY = Key(SERVER_LEASES, "", "192.0.2.7")


@pytest.fixture
async def store() -> AsyncIterator[MemoryStore]:
    store = MemoryStore()
    yield store
    await store.close()


async def test_servers_see_each_other_until_they_stop(store: MemoryStore) -> None:
    one, two = ServerLeases(store, "192.0.2.7"), ServerLeases(store, "192.0.2.10")
    await one.renew()
    await two.renew()
    assert await one.addresses() == ["192.0.2.10", "192.0.2.7"]
    await two.remove()
    assert await one.addresses() == ["192.0.2.7"]
    await two.remove()
    assert await one.addresses() == ["192.0.2.7"]


async def test_a_renewal_changes_the_object_so_that_it_lives_on(store: MemoryStore) -> None:
    leases = ServerLeases(store, "192.0.2.7")
    for _ in range(2):
        await leases.renew()
    found = await store.get(KEY)
    assert found is not None
    assert found.value == (
        b'{"kind":"Endpoints","apiVersion":"v1","metadata":{"generation":2},'
        b'"subsets":[{"addresses":[{"ip":"192.0.2.7"}]}]}'
    )


async def test_a_server_that_stops_leaves_the_lease_to_another_one_with_its_address(store: MemoryStore) -> None:
    one, two = ServerLeases(store, "192.0.2.7"), ServerLeases(store, "192.0.2.7")
    await one.renew()
    await two.renew()
    await one.remove()
    assert await two.addresses() == ["192.0.2.7"]
    await two.remove()
    assert await two.addresses() == []


@pytest.mark.parametrize(
    "value", [b"?", b"[]", b"{}", b'{"subsets":[{"addresses":[]}]}', b'{"subsets":[{"addresses":1}]}']
)
async def test_what_is_no_lease_is_no_address_and_is_replaced(store: MemoryStore, value: bytes) -> None:
    await store.put(KEY, value, expected=0)
    leases = ServerLeases(store, "192.0.2.7")
    assert await leases.addresses() == []
    await leases.renew()
    assert await leases.addresses() == ["192.0.2.7"]


@pytest.mark.parametrize("event_ttl", [0, 3600])
def test_etcd_deletes_what_is_not_renewed(event_ttl: float) -> None:
    assert stores.lifetimes(event_ttl)[SERVER_LEASES] == 15


async def test_etcd_has_the_keys_and_bytes_of_upstream(store: MemoryStore) -> None:
    await ServerLeases(store, "192.0.2.7").renew()
    found = await store.get(KEY)
    assert found is not None
    layouts = [KubernetesLayout("/registry", [SERVER_LEASES], kind) for kind in etcd_built_in.MEDIA_TYPES]
    assert {layout.key(KEY) for layout in layouts} == {b"/registry/masterleases/192.0.2.7"}
    assert {layout.key_of(b"/registry/masterleases/192.0.2.7") for layout in layouts} == {KEY}
    as_json, as_protobuf = (layout.to_etcd(KEY, found.value) for layout in layouts)
    assert as_json == found.value + b"\n"
    assert as_protobuf == (
        b'k8s\0\n\x0f\n\x02v1\x12\tEndpoints\x12#\n\x10\n\0\x12\0\x1a\0"\0*\x002\x008\x01B\0'
        b'\x12\x0f\n\r\n\t192.0.2.7\x1a\0\x1a\0"\0'
    )
    assert layouts[0].from_etcd(KEY, as_protobuf) == found.value
