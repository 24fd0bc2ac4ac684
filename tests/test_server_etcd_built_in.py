"""Built-in kinds in etcd: two servers of which one writes JSON and the other protobuf, and Events that expire."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import aiohttp
import pytest

from noxu.config import STORAGE_MEDIA_TYPES, Config, Etcd
from noxu.process.server import Server
from tests.etcd_server import EtcdServer
from tests.test_server_etcd import Clients
from tests.timing import eventually_async

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
EVENTS = "/api/v1/namespaces/default/events"
JSON, PROTOBUF = 0, 1


@pytest.fixture
async def both(etcd: EtcdServer) -> AsyncIterator[Clients]:
    prefix = f"/registry/{uuid4()}"
    async with contextlib.AsyncExitStack() as stack:
        configs = [
            Config(port=0, etcd=Etcd((etcd.url,), prefix, media_type=media_type)) for media_type in STORAGE_MEDIA_TYPES
        ]
        servers = [await stack.enter_async_context(Server(config)) for config in configs]
        session = await stack.enter_async_context(aiohttp.ClientSession())
        yield Clients(servers, session, prefix)


@pytest.fixture
async def kept(etcd: EtcdServer, both: Clients) -> AsyncIterator[Any]:
    """Read a key in etcd: `await kept("pods/default/a")` is its KeyValue. `kept.client` is the client."""
    from noxu_storage.etcd.client import EtcdClient
    from noxu_storage.etcd.messages import RANGE, Message

    client = EtcdClient([etcd.url])

    async def read(at: str) -> Any:
        [found] = (await client.call(RANGE, Message["RangeRequest"](key=f"{both.prefix}/{at}".encode()))).kvs
        return found

    read.client = client  # type: ignore[attr-defined]
    yield read
    await client.close()


async def test_each_reads_and_rewrites_what_the_other_has_written(both: Clients, kept: Any) -> None:
    config_map = {"metadata": {"name": "a"}, "data": {"text": "<ü>&"}, "binaryData": {"b": "AP8="}}
    code, created = await both.ask(PROTOBUF, "POST", CONFIG_MAPS, config_map)
    assert code == 201
    assert (await kept("configmaps/default/a")).value.startswith(b"k8s\0")
    assert await both.ask(JSON, "GET", f"{CONFIG_MAPS}/a") == (200, created)
    code, updated = await both.ask(JSON, "PUT", f"{CONFIG_MAPS}/a", created | {"data": {"text": "x"}})
    assert code == 200
    assert (await kept("configmaps/default/a")).value.startswith(b'{"kind":"ConfigMap","apiVersion":"v1",')
    assert await both.ask(PROTOBUF, "GET", f"{CONFIG_MAPS}/a") == (200, updated)


async def test_what_is_protobuf_after_a_restart_is_what_was_answered(both: Clients) -> None:
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}], "nodeName": "n"}}
    code, created = await both.ask(PROTOBUF, "POST", "/api/v1/namespaces/default/pods", pod)
    assert code == 201, created
    roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    code, role = await both.ask(PROTOBUF, "POST", roles, {"metadata": {"name": "r"}, "rules": []})
    assert (code, role["rules"]) == (201, None)
    replaced = role | {"rules": []}
    code, again = await both.ask(PROTOBUF, "PUT", f"{roles}/r", replaced)
    assert (code, again | {"metadata": None}) == (200, role | {"metadata": None}), (
        "only the time of managed fields may change"
    )
    role = again
    slices = "/apis/discovery.k8s.io/v1/endpointslices"
    third = Config(port=0, profile="envtest", etcd=both.servers[JSON].config.etcd)
    async with Server(third) as server:
        clients = Clients([server], both.session, both.prefix)
        assert await clients.ask(0, "GET", "/api/v1/namespaces/default/pods/p") == (200, created)
        assert await clients.ask(0, "GET", f"{roles}/r") == (200, role)
        for path in (roles, slices):
            answered = (await both.ask(PROTOBUF, "GET", path))[1]["items"]
            assert (await clients.ask(0, "GET", path))[1]["items"] == answered


async def test_what_cannot_be_decoded_fails_when_it_is_read(both: Clients, kept: Any) -> None:
    from noxu_storage.etcd.messages import PUT, Message

    key = f"{both.prefix}/configmaps/default/bad".encode()
    await kept.client.call(PUT, Message["PutRequest"](key=key, value=b"k8s\0\x0a\x05\x0a\x03bad"))
    for path in (f"{CONFIG_MAPS}/bad", CONFIG_MAPS):
        code, status = await both.ask(JSON, "GET", path)
        assert (code, status["message"]) == (500, "invalid character 'k' looking for beginning of value")


async def test_events_have_a_lease_and_expire(both: Clients, kept: Any) -> None:
    from noxu_storage.etcd.messages import LEASE_REVOKE, Message

    event = {"metadata": {"name": "e"}, "involvedObject": {"namespace": "default"}, "reason": "r"}
    assert (await both.ask(JSON, "POST", EVENTS, event))[0] == 201
    found = await kept("events/default/e")
    assert found.value.startswith(b'{"kind":"Event","apiVersion":"v1",')
    assert found.lease
    assert (await kept("namespaces/default")).lease == 0
    assert both.servers[JSON].plane.controllers
    assert "event-ttl-controller" not in {each.name for each in both.servers[JSON].plane.controllers}
    await kept.client.call(LEASE_REVOKE, Message["LeaseRevokeRequest"](ID=found.lease))

    async def is_gone() -> bool:
        return [(await both.ask(which, "GET", f"{EVENTS}/e"))[0] for which in (0, 1)] == [404, 404]

    await eventually_async(is_gone)
