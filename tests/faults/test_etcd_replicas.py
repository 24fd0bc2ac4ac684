"""R17: servers that share an etcd, through kills, pauses, compaction and clocks that disagree: nothing is lost, nothing
happens twice, and all of them tell the same history.

The truth is what etcd has in the end: a new store that reads the history from the beginning. NOXU_REPLICA_ROUNDS is the
number of rounds of faults, NOXU_REPLICA_WRITES that of the answered writes between two faults, NOXU_REPLICA_PAUSE the
seconds for which etcd and servers are stopped (longer than ten: connections are cut).
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import time
import urllib.request
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from noxu_storage.store import Store
from noxu_storage.types import Revision
from tests import etcd_server
from tests.etcd_server import EtcdMembers, EtcdServer
from tests.faults.concurrent_clients import change, winners
from tests.faults.keepalive import Connection
from tests.faults.linearizability import is_linearizable
from tests.faults.replicas import (
    COUNTERS,
    Answers,
    Client,
    Replicas,
    Seen,
    Server,
    config_map,
    create,
    history,
    increment,
    listed,
    stored,
    watched,
)
from tests.faults.server_process import MAPS
from tests.timing import eventually_async

pytest.importorskip("noxu_storage.etcd.channel", reason="package: grpc")

ROUNDS = int(os.environ.get("NOXU_REPLICA_ROUNDS", "1"))
WRITES = int(os.environ.get("NOXU_REPLICA_WRITES", "30"))
PAUSE = float(os.environ.get("NOXU_REPLICA_PAUSE", "0.3"))
HOUR = 3600.0

Record = Callable[[str, object], None]
pytestmark = pytest.mark.timeout(300 + 200 * ROUNDS)


@pytest.fixture
def etcd(tmp_path: Path) -> Iterator[EtcdServer]:
    if reason := etcd_server.lacking():
        pytest.skip(reason)
    with etcd_server.running_etcd(tmp_path / "etcd") as server:
        yield server


@pytest.fixture
def members(tmp_path: Path) -> Iterator[EtcdMembers]:
    if reason := etcd_server.lacking():
        pytest.skip(reason)
    with etcd_server.running_members(tmp_path / "members") as found:
        yield found


@pytest.fixture
def replicas(etcd: EtcdServer, tmp_path: Path) -> Iterator[Replicas]:
    """Two servers, whose clocks differ by two hours."""
    found = Replicas(etcd, tmp_path)
    try:
        found.start(-HOUR)
        found.start(HOUR)
        yield found
    finally:
        for server in list(found.servers):
            found.kill(server)


class Run:
    """The faults of one run, and the writers meanwhile."""

    def __init__(self, replicas: Replicas) -> None:
        self.replicas = replicas
        self.answers = Answers()
        self.compacted: Revision = 0
        self.compared = 0
        self.recoveries: list[float] = []

    async def progress(self) -> None:
        before = self.answers.count
        await eventually_async(lambda: self.answers.count > before + WRITES)

    # -- faults

    async def kill_a_server(self) -> None:
        await asyncio.to_thread(self.replicas.kill, self.replicas.servers[0])
        await asyncio.to_thread(self.replicas.start, -HOUR)

    async def stop_a_server_for_a_while(self) -> None:
        server = self.replicas.servers[0].process
        server.send_signal(signal.SIGSTOP)
        await asyncio.sleep(PAUSE)
        server.send_signal(signal.SIGCONT)

    async def compact_while_a_server_stands_still(self) -> None:
        truth = await self.replicas.truth()
        await self.compare_histories(truth)
        server = self.replicas.servers[0].process
        server.send_signal(signal.SIGSTOP)
        await asyncio.sleep(PAUSE)
        await self.progress()
        await truth.catch_up()
        self.compacted = truth.revision
        await truth.compact(self.compacted)
        await truth.close()
        server.send_signal(signal.SIGCONT)

    async def compare_histories(self, truth: Store) -> list[Seen]:
        """The events since the last compaction, which all servers must have delivered."""
        await truth.catch_up()
        events = await history(truth, self.compacted, truth.revision)
        for server in self.replicas.servers:
            seen = await watched(server.port, self.compacted or 1, events[-1].revision)
            assert seen == events
        self.compared += len(events)
        return events

    async def stop_etcd_for_a_while(self) -> None:
        await self._stop_etcd(PAUSE)

    async def stop_etcd_for_a_moment(self) -> None:
        """Shorter than what requests wait for: all are answered."""
        await self._stop_etcd(min(PAUSE, 3.0))

    async def _stop_etcd(self, seconds: float) -> None:
        await stop(self.replicas.etcd, seconds)

    async def kill_etcd(self) -> None:
        """All members at once."""
        await self._restart(signal.SIGKILL)

    async def terminate_etcd(self) -> None:
        """etcd closes its connections with GOAWAY."""
        await self._restart(signal.SIGTERM)

    async def _restart(self, number: signal.Signals) -> None:
        etcd = self.replicas.etcd
        etcd.signal(number)
        await asyncio.to_thread(etcd.kill)
        await asyncio.to_thread(etcd.start)
        begin, before = time.monotonic(), self.answers.count
        await eventually_async(lambda: self.answers.count > before)
        self.recoveries.append(time.monotonic() - begin)

    @property
    def faults(self) -> list[Callable[[], Awaitable[None]]]:
        return [
            self.kill_a_server,
            self.stop_a_server_for_a_while,
            self.stop_etcd_for_a_while,
            self.compact_while_a_server_stands_still,
        ]

    async def run(self, faults: Sequence[Callable[[], Awaitable[None]]]) -> None:
        """Write through all faults."""
        clients = [Client(self.replicas, number) for number in range(8)]
        for counter in COUNTERS:
            assert await clients[0].ask("POST", MAPS, config_map(counter, "0")) is not None
        stop = asyncio.Event()
        writers = [
            asyncio.create_task(write(client, f"w{number}", self.answers, stop))
            for number, (client, write) in enumerate(zip(clients, (create, increment) * 4, strict=True))
        ]
        for _ in range(ROUNDS):
            for fault in faults:
                await self.progress()
                await fault()
        await self.progress()
        stop.set()
        await asyncio.gather(*writers)


async def stop(member: EtcdServer | EtcdMembers, seconds: float) -> None:
    await asyncio.to_thread(member.pause)
    await asyncio.sleep(seconds)
    member.resume()


def test_servers_lose_nothing_and_do_nothing_twice(replicas: Replicas, record_property: Record) -> None:
    async def scenario() -> None:
        run = Run(replicas)
        await run.run(run.faults)
        truth = await replicas.truth()
        lost, twice = await compare(replicas, run, truth)
        record_property("answered writes", run.answers.count)
        record_property("lost", len(lost))
        record_property("twice", len(twice))
        record_property("without an answer", run.answers.unknown + run.answers.uncreated + len(run.answers.doubtful))
        record_property("events compared", run.compared)
        assert (lost, twice) == ([], [])
        await eventually_async(lambda: one_leads(replicas))
        await truth.close()

    asyncio.run(scenario())
    output = replicas.stop()
    replicas.servers.clear()
    assert "Traceback" not in output, output


def test_members_that_are_killed_or_stopped_cost_nothing_that_was_answered(
    members: EtcdMembers, tmp_path: Path, record_property: Record
) -> None:
    """Two of three members go on: servers change to another one, which may not have yet what they have seen. Then all end."""
    replicas = Replicas(members, tmp_path)
    run, random = Run(replicas), Random(1)

    async def kill_the_leader() -> None:
        leader = await asyncio.to_thread(members.leader)
        await asyncio.to_thread(leader.kill)
        await run.progress()
        await asyncio.to_thread(leader.start)

    async def stop_a_member() -> None:
        await stop(random.choice(members.members), PAUSE)

    async def scenario() -> None:
        await run.run((kill_the_leader, stop_a_member, run.kill_etcd, run.terminate_etcd))
        truth = await replicas.truth()
        lost, twice = await compare(replicas, run, truth)
        await truth.close()
        record_property("answered writes", run.answers.count)
        record_property("lost", len(lost))
        record_property("twice", len(twice))
        record_property("without an answer", run.answers.unknown + run.answers.uncreated + len(run.answers.doubtful))
        record_property("events compared", run.compared)
        record_property("first write after a restart of etcd, s", f"{max(run.recoveries):.2f}")
        assert (lost, twice) == ([], [])

    try:
        replicas.start(-HOUR)
        replicas.start(HOUR)
        asyncio.run(scenario())
        output = replicas.stop()
        replicas.servers.clear()
        assert "Traceback" not in output, output
    finally:
        for server in list(replicas.servers):
            replicas.kill(server)


async def compare(replicas: Replicas, run: Run, truth: Store) -> tuple[list[str], list[str]]:
    """(What was lost, what happened twice) after all writes. The histories and lists are the same everywhere."""
    answers = run.answers
    events = await run.compare_histories(truth)
    found = await stored(truth)
    for server in replicas.servers:
        assert await listed(server.port) == found
    written = {(event.name, event.revision): event for event in events}
    lost = [name for name, at in answers.created.items() if at > run.compacted and (name, at) not in written]
    removable = answers.deleted | answers.doubtful
    lost += [name for name in answers.created if name not in found and name not in removable]
    lost += [name for name in answers.deleted if name in found]
    creations = Counter(event.name for event in events if event.value is not None and event.name not in COUNTERS)
    twice = [name for name, times in creations.items() if times > 1]
    twice += [str(revision) for revision, times in Counter(answers.increments).items() if times > 1]
    total = sum(int(found[counter].split()[0]) for counter in COUNTERS)
    assert len(answers.increments) <= total <= len(answers.increments) + answers.unknown
    return lost, twice


async def one_leads(replicas: Replicas) -> bool:
    return sorted([await leads(server) for server in replicas.servers]) == [0] * (len(replicas.servers) - 1) + [1]


async def leads(server: Server) -> int:
    """1 if the controllers run in this server."""

    def scrape() -> str:
        with urllib.request.urlopen(f"{server.url}/metrics") as answer:
            return bytes(answer.read()).decode()

    found = re.search(r"^leader_election_master_status{.*} (\d)", await asyncio.to_thread(scrape), re.MULTILINE)
    assert found is not None
    return int(found[1])


async def test_clients_of_both_servers_see_one_object_change_in_one_order(
    replicas: Replicas, record_property: Record
) -> None:
    """Linearizable, while servers are killed, and servers and etcd are stopped for a while."""
    run, random = Run(replicas), Random(2)
    faults = (run.kill_a_server, run.stop_a_server_for_a_while, run.stop_etcd_for_a_moment)
    operations = 0
    for number in range(len(faults) * ROUNDS):
        ports = [server.port for server in replicas.servers]
        changed = await change(ports, f"object{number}", random, faults[number % len(faults)])
        replaced = winners(changed.history)
        assert len(set(replaced)) == len(replaced), "two writers have replaced the same revision"
        assert is_linearizable(changed.history), changed.history
        operations += len(changed.history)
    record_property("operations", operations)


async def test_a_leader_that_is_killed_or_stopped_is_replaced(replicas: Replicas) -> None:
    await eventually_async(lambda: one_leads(replicas))
    for end in ("kill", "stop"):
        [leader] = [server for server in replicas.servers if await leads(server)]
        if end == "kill":
            await asyncio.to_thread(replicas.kill, leader)
            await asyncio.to_thread(replicas.start, HOUR)
        else:
            leader.process.send_signal(signal.SIGSTOP)
        others = [server for server in replicas.servers if server is not leader]
        await eventually_async(lambda others=others: any_leads(others))  # type: ignore[misc]
        leader.process.send_signal(signal.SIGCONT)
        await eventually_async(lambda: one_leads(replicas))


async def any_leads(servers: list[Server]) -> bool:
    return any([await leads(server) for server in servers])


async def test_a_server_that_was_stopped_catches_up_with_large_objects(
    replicas: Replicas, record_property: Record
) -> None:
    """Its watch has not been read meanwhile: what etcd has not sent, it still has."""
    stopped, other = replicas.servers
    begin = int((await ask(other, "POST", MAPS, config_map("first", "x")))["metadata"]["resourceVersion"])
    before = stopped.resident_bytes()
    stopped.process.send_signal(signal.SIGSTOP)
    connection, count = Connection(other.port), 100 * ROUNDS
    for number in range(count):
        status, found = await connection.ask("POST", MAPS, config_map(f"large{number}", "x" * 100_000))
        assert status == 201
    stopped.process.send_signal(signal.SIGCONT)
    last = int(found["metadata"]["resourceVersion"])
    events = await watched(stopped.port, begin, last)
    assert [event.name for event in events] == [f"large{number}" for number in range(count)]
    assert await listed(stopped.port) == await listed(other.port)
    connection.close()
    record_property("MB of events", count // 10)
    record_property("MiB of memory more", (stopped.resident_bytes() - before) >> 20)


async def ask(server: Server, method: str, path: str, value: object = None) -> Any:
    connection = Connection(server.port)
    status, found = await connection.ask(method, path, value)
    connection.close()
    assert status < 300, found
    return found


async def test_cancelled_requests_happen_once_or_not_at_all_and_leave_no_call_in_etcd(
    replicas: Replicas, etcd: EtcdServer, record_property: Record
) -> None:
    """Half of the clients disconnect at a random moment."""
    random, count = Random(2), 400
    first = await ask(replicas.servers[0], "POST", MAPS, config_map("first", "x"))
    begin = int(first["metadata"]["resourceVersion"])

    async def one(number: int) -> bool:
        connection = Connection(replicas.servers[number % 2].port)
        within = random.uniform(0, 0.05) if number % 4 < 2 else 60
        try:
            async with asyncio.timeout(within):
                return (await connection.ask("POST", MAPS, config_map(f"n{number}", "x")))[0] == 201
        except TimeoutError:
            return False
        finally:
            connection.close()

    for start in range(0, count, 50):
        answered = await asyncio.gather(*(one(number) for number in range(start, start + 50)))
        assert all(answered[number] for number in range(50) if (start + number) % 4 >= 2)
    await eventually_async(lambda: calls_in(etcd) == 0)
    last = await ask(replicas.servers[0], "POST", MAPS, config_map("last", "x"))
    truth = await replicas.truth()
    events = await history(truth, begin, int(last["metadata"]["resourceVersion"]))
    await truth.close()
    names = [event.name for event in events]
    assert len(set(names)) == len(names)
    record_property("requests", count)
    record_property("written", len(names) - 1)
    record_property("calls left in etcd", calls_in(etcd))


def calls_in(etcd: EtcdServer) -> int:
    """The transactions that etcd has begun and not ended."""
    with urllib.request.urlopen(f"{etcd.url}/metrics") as answer:
        text = answer.read().decode()

    def total(name: str) -> float:
        found = re.findall(rf'^{name}{{.*grpc_method="Txn".*}} (\S+)$', text, re.MULTILINE)
        return sum(map(float, found))

    return round(total("grpc_server_started_total") - total("grpc_server_handled_total"))
