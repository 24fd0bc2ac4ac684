"""Servers that share one etcd."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import re
from collections.abc import AsyncIterator
from functools import partial
from typing import Any
from uuid import uuid4

import aiohttp
import pytest

from noxu.config import Config, Etcd
from noxu.http import watch
from noxu.process.server import Server
from noxu.registry import cache
from noxu_storage import log
from noxu_storage.types import Prefix
from tests.definitions import version, widgets
from tests.etcd_server import EtcdServer
from tests.http import streams
from tests.http import test_slow_watchers as slow_watchers
from tests.timing import eventually_async, hang_guard

CRD = widgets(version({"type": "object", "x-kubernetes-preserve-unknown-fields": True}))
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"

pytestmark = pytest.mark.slow(every=4)

ADDRESSES = ("192.0.2.7", "192.0.2.10")
"""Those of the servers, of which they tell others; they listen on loopback."""


class Clients:
    """Two servers, and a session for requests to them."""

    def __init__(self, servers: list[Server], session: aiohttp.ClientSession, prefix: str) -> None:
        self.servers = servers
        self.session = session
        self.prefix = prefix

    async def ask(self, which: int, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        data = None if body is None else io.BytesIO(json.dumps(body).encode())
        headers = {"Content-Type": "application/json"}
        async with self.session.request(method, self.servers[which].url + path, data=data, headers=headers) as answer:
            is_json = answer.content_type == "application/json"
            return answer.status, json.loads(await answer.text()) if is_json else await answer.text()

    async def gone(self) -> None:
        """Wait until the definition no longer exists."""

        async def is_gone() -> bool:
            return (await self.ask(0, "GET", f"{DEFINITIONS}/widgets.example.com"))[0] == 404

        await eventually_async(is_gone)

    async def define(self) -> None:
        """Create the definition with the first server."""
        assert (await self.ask(0, "POST", DEFINITIONS, CRD))[0] == 201


@pytest.fixture
async def both(etcd: EtcdServer) -> AsyncIterator[Clients]:
    prefix = f"/registry/{uuid4()}"
    async with contextlib.AsyncExitStack() as stack:
        options = Etcd((etcd.url,), prefix)
        servers = [
            await stack.enter_async_context(
                Server(Config(port=0, etcd=options, services="10.0.0.0/28", advertise_address=address))
            )
            for address in ADDRESSES
        ]
        session = await stack.enter_async_context(aiohttp.ClientSession())
        yield Clients(servers, session, prefix)


def named(name: str, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, **fields}


async def raw(clients: Clients, name: str, value: bytes | None = None) -> bytes:
    """The value of a widget in etcd; with a value: put it, as another program does."""
    return await raw_at(clients, f"example.com/widgets/default/{name}", value)


async def raw_at(clients: Clients, at: str, value: bytes | None = None) -> bytes:
    from noxu_storage.etcd.client import EtcdClient
    from noxu_storage.etcd.messages import PUT, RANGE, Message

    options = clients.servers[0].config.etcd
    assert options is not None
    client = EtcdClient(options.servers)
    key = f"{clients.prefix}/{at}".encode()
    try:
        if value is not None:
            await client.call(PUT, Message["PutRequest"](key=key, value=value))
            return value
        return bytes((await client.call(RANGE, Message["RangeRequest"](key=key))).kvs[0].value)
    finally:
        await client.close()


async def test_each_server_shows_what_the_other_has_answered(both: Clients) -> None:
    await both.define()
    for number in range(10):
        which = number % 2
        code, created = await both.ask(which, "POST", WIDGETS, named(f"n{number}"))
        assert code == 201
        assert await both.ask(1 - which, "GET", f"{WIDGETS}/n{number}") == (200, created)
        listed = (await both.ask(1 - which, "GET", WIDGETS))[1]
        assert len(listed["items"]) == number + 1
        code, _ = await both.ask(1 - which, "GET", f"{WIDGETS}?resourceVersion={listed['metadata']['resourceVersion']}")
        assert code == 200


async def test_a_definition_and_a_namespace_can_be_used_at_the_other_server_at_once(both: Clients) -> None:
    for number in range(5):
        crd = json.loads(json.dumps(CRD).replace("idget", f"idget{number}"))
        assert (await both.ask(0, "POST", DEFINITIONS, crd))[0] == 201
        assert (await both.ask(0, "POST", "/api/v1/namespaces", {"metadata": {"name": f"n{number}"}}))[0] == 201
        path = f"/apis/example.com/v1/namespaces/n{number}/widget{number}s"
        widget = named("a") | {"kind": f"Widget{number}"}
        assert (await both.ask(1, "POST", path, widget))[0] == 201
    assert (await both.ask(1, "GET", "/apis/example.com/v1/namespaces/default/others"))[0] == 404
    assert (await both.ask(1, "POST", "/apis/example.com/v1/namespaces/other/widget0s", named("a")))[0] == 404


async def test_both_servers_show_the_past_of_what_either_has_written(both: Clients) -> None:
    await both.define()
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": {"size": 1}}
    created = (await both.ask(0, "POST", WIDGETS, widget))[1]
    changed = (await both.ask(1, "PUT", f"{WIDGETS}/a", {**created, "spec": {"size": 2}}))[1]
    await both.ask(0, "DELETE", f"{DEFINITIONS}/widgets.example.com")
    await both.gone()
    for which in (0, 1):
        for written, size in ((created, 1), (changed, 2)):
            at = f"/_noxu/at/{written['metadata']['resourceVersion']}{WIDGETS}"
            code, shown = await both.ask(which, "GET", f"{at}/a")
            assert (code, shown["spec"]) == (200, {"size": size})
            assert [item["spec"] for item in (await both.ask(which, "GET", at))[1]["items"]] == [{"size": size}]
        at = changed["metadata"]["resourceVersion"]
        code, blamed = await both.ask(which, "GET", f"/_noxu/blame?type=widgets&name=a&at={at}")
        revisions = {line["text"].strip(): str(line["revision"]) for line in blamed["lines"]}
        assert (revisions["size: 2"], revisions["name: a"]) == (at, created["metadata"]["resourceVersion"])
        start = created["metadata"]["resourceVersion"]
        code, different = await both.ask(which, "GET", f"/_noxu/diff?from={start}&to={at}&type=widgets")
        assert [item["change"] for item in different["items"]] == ["changed"]


async def test_only_one_of_the_writers_of_both_servers_succeeds(both: Clients) -> None:
    await both.define()
    answers = await asyncio.gather(
        *(both.ask(number % 2, "POST", WIDGETS, named("same", number=number)) for number in range(10))
    )
    assert sorted(code for code, _ in answers) == [201] + [409] * 9
    _, current = await both.ask(0, "GET", f"{WIDGETS}/same")
    answers = await asyncio.gather(
        *(both.ask(number % 2, "PUT", f"{WIDGETS}/same", current | {"number": 100 + number}) for number in range(10))
    )
    assert sorted(code for code, _ in answers) == [200] + [409] * 9


async def test_a_watch_shows_the_writes_of_the_other_server(both: Clients) -> None:
    await both.define()
    start = (await both.ask(1, "GET", WIDGETS))[1]["metadata"]["resourceVersion"]
    url = f"{both.servers[1].url}{WIDGETS}?watch=1&resourceVersion={start}"
    async with hang_guard(), both.session.get(url) as stream:
        _, created = await both.ask(0, "POST", WIDGETS, named("a"))
        event = json.loads(await stream.content.readline())
        assert event == {"type": "ADDED", "object": created}


async def test_a_client_that_does_not_read_the_writes_of_the_other_server_costs_no_memory_and_is_cut_off(
    both: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it has not read is in etcd, from which it is read when its turn comes."""
    monkeypatch.setattr(log, "TAIL_EVENTS", 5)
    monkeypatch.setattr(cache, "MAX_RECENT", 5)
    monkeypatch.setattr(watch, "HIGH_WATER", 0)
    writing, watched = both.servers
    assert (await both.ask(0, "POST", DEFINITIONS, streams.DEFINITION))[0] == 201
    assert (await both.ask(1, "GET", streams.PATH))[0] == 200
    store, client, other = watched.plane.store, slow_watchers.Sink(0), slow_watchers.Sink(0)
    start = store.revision
    running = [await slow_watchers.begun(slow_watchers.stream_to(watched, sink)) for sink in (client, other)]
    await slow_watchers.write(writing, 40)
    await watched.plane.reader.be_consistent()
    assert store._log.since(start) is None  # type: ignore[attr-defined]
    collection = await watched.plane.reader.collection(streams.resource_of(watched))
    assert (len(collection.recent), len(client.events), len(other.events)) == (5, 1, 1)
    monkeypatch.setattr(watch, "STALLED_AFTER", 0.05)
    client.take_all()
    found = streams.Watched(start, await client.until(collection.changed), upto=collection.changed)
    streams.judge(found, await streams.history_of(store, streams.THINGS))
    running[0].cancel()
    stalled = await slow_watchers.begun(slow_watchers.stream_to(watched, slow_watchers.Sink(0)))
    await slow_watchers.write(writing, 1, seed=2)
    with pytest.raises(ConnectionError, match="does not read"):
        async with hang_guard():
            await stalled
    running[1].cancel()


async def test_a_future_version_is_too_large(both: Clients, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("noxu.registry.reader.BLOCK_TIMEOUT", 0.2)
    current = int((await both.ask(0, "GET", "/api/v1/namespaces"))[1]["metadata"]["resourceVersion"])
    code, status = await both.ask(1, "GET", f"/api/v1/namespaces?resourceVersion={current + 1000}")
    assert code == 504
    assert status["message"].startswith(f"Timeout: Too large resource version: {current + 1000}, current: ")


async def test_etcd_has_the_bytes_that_the_reference_writes(both: Clients) -> None:
    await both.define()
    _, created = await both.ask(0, "POST", WIDGETS, named("a", text="<ü>&", number=1.0))
    del created["metadata"]["resourceVersion"]
    text = json.dumps(created, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    for character, escaped in (("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026")):
        text = text.replace(character, escaped)
    assert await raw(both, "a") == f"{text}\n".encode()


async def test_what_others_write_is_served(both: Clients) -> None:
    await both.define()
    by_hand = {
        "metadata": {"name": "b", "namespace": "default", "uid": "u", "resourceVersion": "7"},
        "kind": "Widget",
        "apiVersion": "example.com/v1",
    }
    await raw(both, "b", json.dumps(by_hand, indent=2).encode())
    code, found = await both.ask(0, "GET", f"{WIDGETS}/b")
    assert (code, found["metadata"]["name"]) == (200, "b")
    assert int(found["metadata"]["resourceVersion"]) > 7


async def test_what_is_not_json_fails_with_its_own_message(both: Clients) -> None:
    await both.define()
    await raw(both, "bad", b"not json")
    for path in (f"{WIDGETS}/bad", WIDGETS, f"{WIDGETS}?labelSelector=a"):
        code, status = await both.ask(0, "GET", path)
        assert (code, status["message"]) == (500, "invalid character 'o' in literal null (expecting 'u')")


UNSAFE = "ignoreStoreReadErrorWithClusterBreakingPotential=true"


@pytest.mark.parametrize("value", [b"not json", b"[1]", b'{"kind":"Widget","apiVersion":"x.y/v1"}'])
async def test_what_cannot_be_decoded_can_be_deleted(both: Clients, value: bytes) -> None:
    await both.define()
    await raw(both, "bad", value)
    assert (await both.ask(0, "DELETE", f"{WIDGETS}/bad"))[0] == 500
    deleted = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    deleted |= {"details": {"name": "bad", "kind": "Widget"}, "code": 200}
    assert await both.ask(0, "DELETE", f"{WIDGETS}/bad?{UNSAFE}&dryRun=All") == (200, deleted)
    assert (await both.ask(0, "GET", WIDGETS))[0] == 500
    assert await both.ask(0, "DELETE", f"{WIDGETS}/bad?{UNSAFE}") == (200, deleted)
    for which in (0, 1):
        assert (await both.ask(which, "GET", f"{WIDGETS}/bad"))[0] == 404
        assert (await both.ask(which, "GET", WIDGETS))[1]["items"] == []


@pytest.mark.parametrize(
    ("size", "message"),
    [
        (1_600_000, "etcdserver: request is too large"),
        (
            2_500_000,
            r"rpc error: code = ResourceExhausted desc = trying to send message larger than max \(25\d{5} vs. 2097152\)",
        ),
    ],
)
async def test_an_object_that_etcd_does_not_take_is_refused(both: Clients, size: int, message: str) -> None:
    await both.define()
    code, status = await both.ask(1, "POST", WIDGETS, named("large", text="x" * size))
    assert code == 500
    assert re.fullmatch(message, status["message"])


async def test_one_server_runs_the_controllers_and_the_other_one_when_it_has_stopped(both: Clients) -> None:
    lease = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-controller-manager"
    leads = [server.plane.election is not None and server.plane.election.is_leader for server in both.servers]
    assert leads == [True, False]
    first = (await both.ask(1, "GET", lease))[1]["spec"]
    await eventually_async(lambda: endpoints_are(both, sorted(ADDRESSES)))
    at = f"masterleases/{ADDRESSES[1]}"
    assert json.loads(await raw_at(both, at))["subsets"] == [{"addresses": [{"ip": ADDRESSES[1]}]}]
    await both.servers[0].__aexit__(None, None, None)
    assert await endpoints_are(both, [ADDRESSES[1]])
    await eventually_async(lambda: holder_changed(both, lease, first["holderIdentity"]))
    assert (await both.ask(1, "GET", lease))[1]["spec"]["leaseTransitions"] == first["leaseTransitions"] + 1
    assert (await both.ask(1, "POST", "/api/v1/namespaces", {"metadata": {"name": "n"}}))[0] == 201
    await eventually_async(lambda: exists(both, "/api/v1/namespaces/n/serviceaccounts/default"))
    metrics = (await both.ask(1, "GET", "/metrics"))[1]
    assert 'leader_election_master_status{name="kube-controller-manager"} 1.0\n' in metrics
    assert (await both.ask(1, "GET", "/readyz"))[0] == 200


SERVICES = "/api/v1/namespaces/default/services"


def service(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}], **spec}}


async def test_services_of_both_servers_have_different_addresses(both: Clients) -> None:
    """The range has 14 addresses, of which the Service kubernetes has one."""
    answers = await asyncio.gather(*(both.ask(n % 2, "POST", SERVICES, service(f"s{n}")) for n in range(13)))
    assert [code for code, _ in answers] == [201] * 13
    assert {answer["spec"]["clusterIP"] for _, answer in answers} == {f"10.0.0.{n}" for n in range(2, 15)}
    code, status = await both.ask(0, "POST", SERVICES, service("more"))
    assert (code, status["message"].rpartition(": ")[2]) == (500, "range is full")
    await eventually_async(lambda: has_no_claims(both))


async def test_a_node_port_that_both_servers_are_asked_for_is_given_once(both: Clients) -> None:
    spec: Any = {"type": "NodePort", "ports": [{"port": 80, "nodePort": 30_080}]}
    answers = await asyncio.gather(*(both.ask(n % 2, "POST", SERVICES, service(f"s{n}", **spec)) for n in range(6)))
    assert sorted(code for code, _ in answers) == [201] + [422] * 5
    messages = {status["message"].rpartition(": ")[2] for code, status in answers if code == 422}
    assert messages == {"provided port is already allocated"}
    await eventually_async(lambda: has_no_claims(both))


async def has_no_claims(clients: Clients) -> bool:
    store = clients.servers[0].plane.store
    return not any([await store.count(Prefix(name)) for name in ("ranges/serviceips", "ranges/servicenodeports")])


async def test_a_quota_limits_the_objects_of_both_servers_together(both: Clients) -> None:
    path = "/api/v1/namespaces/default"
    quota = {"metadata": {"name": "q"}, "spec": {"hard": {"count/secrets": "5"}}}
    assert (await both.ask(0, "POST", f"{path}/resourcequotas", quota))[0] == 201
    await eventually_async(lambda: is_counted(both, f"{path}/resourcequotas/q"))
    answers = await asyncio.gather(
        *(both.ask(n % 2, "POST", f"{path}/secrets", {"metadata": {"name": f"s{n}"}}) for n in range(12))
    )
    assert sorted(code for code, _ in answers) == [201] * 5 + [403] * 7
    assert (await both.ask(1, "GET", f"{path}/resourcequotas/q"))[1]["status"]["used"] == {"count/secrets": "5"}


async def is_counted(clients: Clients, path: str) -> bool:
    found = [await clients.ask(which, "GET", path) for which in range(2)]
    return all("count/secrets" in value.get("status", {}).get("used", {}) for _, value in found)


async def endpoints_are(clients: Clients, addresses: list[str]) -> bool:
    """Whether these are the addresses of the Service kubernetes."""
    _, found = await clients.ask(1, "GET", "/api/v1/namespaces/default/endpoints/kubernetes")
    _, mirror = await clients.ask(1, "GET", "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes")
    shown = [address["ip"] for address in found["subsets"][0]["addresses"]]
    return shown == addresses and [each["addresses"] for each in mirror["endpoints"]] == [[one] for one in addresses]


async def holder_changed(clients: Clients, lease: str, before: str) -> bool:
    return bool((await clients.ask(1, "GET", lease))[1]["spec"]["holderIdentity"] not in ("", before))


async def exists(clients: Clients, path: str) -> bool:
    return (await clients.ask(1, "GET", path))[0] == 200


DEFINITION = "apiextensions.k8s.io/customresourcedefinitions/widgets.example.com"


async def test_definitions_are_in_etcd_as_v1beta1(both: Clients) -> None:
    await both.define()
    stored = await raw_at(both, DEFINITION)
    start = (
        b'{"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1beta1","metadata":{"name":"widgets.'
    )
    assert stored.startswith(start)
    assert stored.endswith(b'"storedVersions":["v1"]}}\n')
    spec = json.loads(stored)["spec"]
    assert list(spec) == [
        "group", "version", "names", "scope", "validation", "versions", "conversion", "preserveUnknownFields"
    ]  # fmt: skip
    for which in (0, 1):
        code, found = await both.ask(which, "GET", f"{DEFINITIONS}/widgets.example.com")
        assert (code, found["apiVersion"]) == (200, "apiextensions.k8s.io/v1")
        assert found["spec"]["versions"][0]["schema"] == spec["validation"]


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
async def test_a_definition_of_another_program_is_adopted(both: Clients, version: str) -> None:
    await both.define()
    stored = json.loads(await raw_at(both, DEFINITION))
    assert (await both.ask(0, "DELETE", f"{DEFINITIONS}/widgets.example.com"))[0] == 200
    await both.gone()
    by_hand = CRD if version == "v1" else {name: part for name, part in stored.items() if name != "status"}
    by_hand = by_hand | {"metadata": {"name": "widgets.example.com", "uid": "u"}}
    await raw_at(both, DEFINITION, json.dumps(by_hand, indent=1).encode())

    async def is_established() -> bool:
        _, found = await both.ask(0, "GET", f"{DEFINITIONS}/widgets.example.com")
        return any(one["type"] == "Established" for one in found.get("status", {}).get("conditions") or [])

    await eventually_async(is_established)
    adopted = json.loads(await raw_at(both, DEFINITION))
    assert adopted["apiVersion"] == "apiextensions.k8s.io/v1beta1"
    assert adopted["status"]["storedVersions"] == ["v1"]
    assert adopted["spec"] == stored["spec"]
    assert (await both.ask(0, "POST", WIDGETS, named("a")))[0] == 201


async def test_a_v1_definition_with_a_status_is_served_and_left_as_it_is(both: Clients) -> None:
    await both.define()
    _, found = await both.ask(0, "GET", f"{DEFINITIONS}/widgets.example.com")
    assert (await both.ask(0, "DELETE", f"{DEFINITIONS}/widgets.example.com"))[0] == 200
    await both.gone()
    by_hand = json.dumps(found | {"unknown": 1}, sort_keys=True, indent=1).encode()
    await raw_at(both, DEFINITION, by_hand)

    async def is_served() -> bool:
        return (await both.ask(0, "POST", WIDGETS, named("a")))[0] == 201

    await eventually_async(is_served)
    code, served = await both.ask(0, "GET", f"{DEFINITIONS}/widgets.example.com")
    assert code == 200
    assert json.dumps(served | {"metadata": 0}) == json.dumps(found | {"metadata": 0})
    assert await raw_at(both, DEFINITION) == by_hand


# -- the log of writes -------------------------------------------------------------------------------------------------


async def test_each_server_knows_who_wrote_through_it(both: Clients) -> None:
    maps = "/api/v1/namespaces/default/configmaps"
    for which, name in enumerate("ab"):
        assert (await both.ask(which, "POST", maps, {"metadata": {"name": name}}))[0] == 201

    async def written(which: int) -> list[tuple[str, str, bool]]:
        """[] until it knows both: what the other server has written comes from etcd."""
        code, listed = await both.ask(which, "GET", "/_noxu/log?type=configmaps&namespace=default&since=0")
        assert code == 200, listed
        found = [(item["name"], item["verb"], bool(item["user"])) for item in listed["items"] if item["name"] in "ab"]
        return found if len(found) > 1 else []

    for which in (0, 1):
        found = await eventually_async(partial(written, which))
        assert found == [("a", "create", which == 0), ("b", "create", which == 1)]


async def test_tenants_of_a_server_keep_nothing_in_its_etcd(etcd: EtcdServer) -> None:
    config = Config(port=0, etcd=Etcd((etcd.url,), f"/registry/{uuid4().hex}"))
    async with Server(config) as server, aiohttp.ClientSession() as session:
        clients = Clients([server], session, "")
        assert (await clients.ask(0, "POST", "/_noxu/snapshots", {"name": "empty"}))[0] == 201
        for source in ("template", "empty", {"snapshot": "empty"}):
            code, made = await clients.ask(0, "POST", "/_noxu/tenants", {"from": source})
            assert code == 201, made
            async with session.post(f"{made['url']}{DEFINITIONS}", json=CRD) as answer:
                assert answer.status == 201
            async with session.get(f"{made['url']}{WIDGETS}") as answer:
                assert answer.status == 200
            assert (await clients.ask(0, "DELETE", f"/_noxu/tenants/{made['name']}"))[0] == 200
        assert (await clients.ask(0, "GET", DEFINITIONS))[1]["items"] == []
        assert (await clients.ask(0, "GET", WIDGETS))[0] == 404
