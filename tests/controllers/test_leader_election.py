"""The election of the server that runs the controllers: servers with one store, and clocks of their own."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from noxu.config import LeaderElection
from noxu.control_plane import ControlPlane, resource_of, running
from noxu.controllers.leader_election import NAME, NAMESPACE, Election
from noxu.registry.draft import Action, Body, WriteRequest
from noxu.registry.stored_object import key_of, object_at
from noxu.values import Object
from tests.clocks import ManualClock
from tests.control_planes import assemble
from tests.faults.flaky import FlakyStore
from tests.timing import eventually_async, loop_turns

PERIODS = LeaderElection(True, 15.0, 10.0, 2.0)


class SharedStore(FlakyStore):
    """A store of several servers: it stays open when one of them stops."""

    async def close(self) -> None: ...

    async def really_close(self) -> None:
        await super().close()


class Server:
    """A control plane with a clock of its own, which `stop` stops."""

    def __init__(self, store: SharedStore, skew: float = 0.0) -> None:
        self.store = store
        self.clock = ManualClock()
        self.clock.jump(skew)
        self.plane: ControlPlane = assemble(
            store, clock=self.clock, controllers=["serviceaccount-controller"], leader_election=PERIODS
        )
        self._stack = contextlib.AsyncExitStack()

    @property
    def election(self) -> Election:
        assert self.plane.election is not None
        return self.plane.election

    @property
    def leads(self) -> bool:
        return self.election.is_leader

    async def start(self) -> None:
        await self._stack.enter_async_context(running(self.plane))

    async def stop(self) -> None:
        await self._stack.aclose()

    async def pass_time(self, seconds: float) -> None:
        """Let time pass on this server's clock, a little at a time."""
        for _ in range(round(seconds / 0.5)):
            self.clock.advance(0.5)
            await loop_turns()

    async def lease(self) -> Object | None:
        leases = resource_of(self.plane.served_resources, "coordination.k8s.io", "leases")
        found = (await self.plane.reader.collection(leases)).entries.get(key_of(leases, NAMESPACE, NAME))
        return None if found is None else object_at(found, leases)

    async def spec(self) -> Object:
        lease = await self.lease()
        assert lease is not None
        spec: Object = lease["spec"]
        return spec

    async def write_lease(self, action: Action, lease: Object) -> None:
        """As a client does."""
        leases = resource_of(self.plane.served_resources, "coordination.k8s.io", "leases")
        body = Body({} if action is Action.DELETE else lease)
        await self.plane.writer.write(WriteRequest(action, leases, NAMESPACE, NAME, body=body))

    async def has_accounts(self, namespace: str) -> bool:
        """Whether the controller has done its work in a namespace."""
        accounts = resource_of(self.plane.served_resources, "", "serviceaccounts")
        return key_of(accounts, namespace, "default") in (await self.plane.reader.collection(accounts)).entries

    async def create_namespace(self, name: str) -> None:
        namespaces = resource_of(self.plane.served_resources, "", "namespaces")
        value: Object = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        await self.plane.writer.write(WriteRequest(Action.CREATE, namespaces, "", "", body=Body(value)))


Start = Callable[..., Any]


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    """Starts a server with the store of the test; `skew` is what its time of day differs by, in seconds."""
    store, servers = SharedStore(), []

    async def start(skew: float = 0.0) -> Server:
        server = Server(store, skew)
        servers.append(server)
        await server.start()
        return server

    yield start
    for server in servers:
        await server.stop()
    await store.really_close()


async def test_the_first_server_leads_and_its_controllers_have_run_in_a_new_store(start: Start) -> None:
    one = await start()
    assert one.leads
    assert await one.has_accounts("default")
    spec = await one.spec()
    assert spec["holderIdentity"] == one.election.identity
    assert (spec["leaseDurationSeconds"], spec["leaseTransitions"]) == (15, 0)
    assert spec["acquireTime"] == spec["renewTime"] == "2026-01-02T03:04:05.678901Z"


async def test_the_second_server_does_not_run_them_and_is_healthy(start: Start) -> None:
    one, two = await start(), await start()
    assert (one.leads, two.leads) == (True, False)
    await one.create_namespace("n")
    await eventually_async(lambda: one.has_accounts("n"))
    [standing_by] = two.election.controllers
    assert standing_by.stands_by
    assert standing_by.health() == standing_by.sync_fault() == ""
    assert standing_by.queue.depth == 0


async def renewing(leader: Server, other: Server, seconds: float) -> None:
    """Let the same time pass for two servers."""
    for _ in range(round(seconds / 0.5)):
        await leader.pass_time(0.5)
        await other.pass_time(0.5)


@pytest.mark.parametrize("skew", [0.0, 3600.0, -3600.0], ids=["same time", "an hour ahead", "an hour behind"])
async def test_a_leader_that_renews_remains_whatever_the_clocks_say(start: Start, skew: float) -> None:
    one, two = await start(), await start(skew)
    before = await one.spec()
    await renewing(one, two, 60)
    after = await one.spec()
    assert (one.leads, two.leads) == (True, False)
    assert after["renewTime"] > before["renewTime"]
    assert after | {"renewTime": ""} == before | {"renewTime": ""}


@pytest.mark.parametrize("skew", [0.0, 3600.0, -3600.0], ids=["same time", "an hour ahead", "an hour behind"])
async def test_a_leader_that_does_not_renew_is_replaced_after_the_duration(start: Start, skew: float) -> None:
    one, two = await start(), await start(skew)
    await two.pass_time(14.5)
    assert not two.leads
    await two.pass_time(0.5 + PERIODS.retry_period * 2.2)
    assert two.leads
    spec = await two.spec()
    assert (spec["holderIdentity"], spec["leaseTransitions"]) == (two.election.identity, 1)
    await eventually_async(lambda: not one.leads)
    await one.create_namespace("n")
    await eventually_async(lambda: two.has_accounts("n"))
    assert [controller.stands_by for controller in one.election.controllers] == [True]


async def test_a_released_lease_is_taken_at_once(start: Start) -> None:
    one, two = await start(), await start()
    await one.stop()
    await eventually_async(lambda: two.leads)
    assert two.clock.monotonic() == 0
    assert (await two.spec())["leaseTransitions"] == 1
    await two.create_namespace("n")
    await eventually_async(lambda: two.has_accounts("n"))


async def test_the_last_server_leaves_a_lease_without_a_holder(start: Start) -> None:
    one = await start()
    await one.stop()
    entry = await one.store.get(one.election._key)
    assert entry is not None
    assert b'"holderIdentity":""' in entry.value
    assert b'"leaseDurationSeconds":1,' in entry.value


async def test_a_leader_that_cannot_renew_stops_before_others_lead(start: Start) -> None:
    one, two = await start(), await start()
    one.store.fail("put", lambda key: key.name == NAME, times=100_000)
    await renewing(one, two, PERIODS.renew_deadline - 0.5)
    assert (one.leads, two.leads) == (True, False)
    await renewing(one, two, 1.0)
    assert (one.leads, two.leads) == (False, False)
    assert [controller.stands_by for controller in one.election.controllers] == [True]
    one.store.planned.clear()
    await renewing(one, two, PERIODS.lease_duration + 5)
    assert one.leads != two.leads, "one of them has acquired it again"
    leader = one if one.leads else two
    await leader.create_namespace("n")
    await eventually_async(lambda: leader.has_accounts("n"))


async def test_a_leader_whose_lease_is_taken_stops_at_once(start: Start) -> None:
    one = await start()
    lease = await one.lease()
    assert lease is not None
    lease["spec"]["holderIdentity"] = "another"
    await one.write_lease(Action.REPLACE, lease)
    await eventually_async(lambda: not one.leads)
    assert one.clock.monotonic() == 0


async def test_a_deleted_lease_is_created_again(start: Start) -> None:
    one = await start()
    await one.write_lease(Action.DELETE, {})
    await eventually_async(one.lease)
    assert (await one.spec())["holderIdentity"] == one.election.identity
    assert one.leads


async def test_of_many_candidates_one_leads(start: Start) -> None:
    servers = [await start() for _ in range(5)]
    await servers[0].stop()
    await eventually_async(lambda: any(server.leads for server in servers[1:]))
    for server in servers[1:]:
        await server.pass_time(5)
    assert [server.leads for server in servers[1:]].count(True) == 1


async def test_a_reset_of_the_cache_leaves_the_leader_alone(start: Start) -> None:
    one = await start()
    one.plane.cache.reset(one.store.revision)
    await one.pass_time(5)
    assert one.leads
    assert one.election in one.plane.cache.watchers


async def test_without_controllers_there_is_no_election() -> None:
    assert assemble(FlakyStore(), leader_election=PERIODS).election is None
    assert assemble(FlakyStore(), controllers=["*"]).election is None
