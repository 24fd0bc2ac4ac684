"""Servers in processes of their own that share an etcd, and clients of all of them.

A client moves on to the next server when its own one does not answer. What it was not answered is unknown.
"""

from __future__ import annotations

import asyncio
import json
import signal
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import randrange
from typing import Any, Final, NamedTuple

import aiohttp

from noxu.config import Config, Etcd
from noxu.process.stores import open_store
from noxu_storage.store import Store
from noxu_storage.types import Prefix, Revision
from tests.etcd_server import EtcdMembers, EtcdServer
from tests.faults.keepalive import Connection
from tests.faults.server_process import MAPS, Process, free_port
from tests.timing import HANGS_AFTER, eventually

LOST: Final = (ConnectionError, asyncio.IncompleteReadError, TimeoutError)
PREFIX: Final = "/registry/faults"
COLLECTION: Final = Prefix("/configmaps", "default/")
PATIENCE: Final = 3.0  # seconds until a client asks another server; what it was not answered is unknown then
COUNTERS: Final = ("counter0", "counter1", "counter2")
ELECTION: Final = (
    "--leader-elect-lease-duration=2s",
    "--leader-elect-renew-deadline=1500ms",
    "--leader-elect-retry-period=200ms",
)


class Server(Process):
    """Its output is read all the time: it logs much while etcd does not answer, and would wait for a full pipe."""

    def __init__(self, directory: Path, command: Sequence[str], options: Sequence[str]) -> None:
        super().__init__(directory, free_port(), command, profile="local", options=options)
        self._lines = [self.first_line]
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        self._lines.extend(self.process.stdout)

    def end(self, number: signal.Signals) -> str:
        self.process.send_signal(number)
        self.process.wait(HANGS_AFTER)
        self._reading.join(HANGS_AFTER)
        if self.process.stdout is not None:
            self.process.stdout.close()
        return self.output

    @property
    def output(self) -> str:
        return "".join(self._lines)


class Replicas:
    """The servers of one etcd."""

    def __init__(self, etcd: EtcdServer | EtcdMembers, directory: Path) -> None:
        self.etcd, self.directory = etcd, directory
        self.servers: list[Server] = []
        self.started = 0

    def start(self, skew: float = 0.0) -> Server:
        """Start one more; `skew` is added to its time of day, in seconds."""
        place = self.directory / f"server{self.started}"
        place.mkdir()
        self.started += 1
        command = ("-m", "tests.faults.skewed_server", str(skew))
        options = ("--etcd-servers", self.etcd.url, "--etcd-prefix", PREFIX, *ELECTION)
        server = Server(place, command, options)
        eventually(lambda: _answers(server))  # its first line may be one of the log
        self.servers.append(server)
        return server

    def kill(self, server: Server) -> None:
        self.servers.remove(server)
        server.end(signal.SIGKILL)

    def stop(self) -> str:
        """Stop all servers. Returns what they have printed."""
        for server in self.servers:
            server.process.send_signal(signal.SIGCONT)
        return "".join(server.end(signal.SIGTERM) for server in self.servers)

    async def truth(self) -> Store:
        """A store that reads everything from etcd."""
        return await open_store(Config(etcd=Etcd(tuple(self.etcd.url.split(",")), PREFIX)))


def _answers(server: Server) -> bool:
    try:
        return server.ask("GET", MAPS)[0] == 200
    except ConnectionRefusedError:
        assert server.process.poll() is None, server.output
        return False


class Seen(NamedTuple):
    """An event. `value` is None for a deletion."""

    name: str
    revision: Revision
    value: str | None


@dataclass
class Answers:
    """What all clients were answered.

    `doubtful` are objects whose deletion had no answer. `unknown` counts the increments that had none, or an error of the
    server, and `uncreated` the creations.
    """

    created: dict[str, Revision] = field(default_factory=dict)
    deleted: set[str] = field(default_factory=set)
    doubtful: set[str] = field(default_factory=set)
    increments: list[Revision] = field(default_factory=list)
    unknown: int = 0
    uncreated: int = 0

    @property
    def count(self) -> int:
        return len(self.created) + len(self.deleted) + len(self.increments)


def config_map(name: str, value: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"v": value}}


class Client:
    """Sends requests to one server, and to any when that does not answer."""

    def __init__(self, replicas: Replicas, first: int) -> None:
        self._replicas = replicas
        self._turn = first
        self._connection: Connection | None = None

    async def ask(self, method: str, path: str, value: Any = None) -> tuple[int, Any] | None:
        """The answer; None if there is none, after which the request may have happened."""
        servers = self._replicas.servers
        if self._connection is None:
            self._connection = Connection(servers[self._turn % len(servers)].port)
        try:
            async with asyncio.timeout(PATIENCE):
                return await self._connection.ask(method, path, value)
        except LOST:
            self._connection.close()
            self._connection, self._turn = None, randrange(1000)
            await asyncio.sleep(0.005)
            return None

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()


async def create(client: Client, name: str, answers: Answers, stop: asyncio.Event) -> None:
    """Create objects, and delete every fourth."""
    number = 0
    while not stop.is_set():
        number += 1
        own = f"{name}-{number}"
        found = await client.ask("POST", MAPS, config_map(own, own))
        if found is None or found[0] != 201:
            answers.uncreated += 1
            continue
        answers.created[own] = int(found[1]["metadata"]["resourceVersion"])
        if number % 4 == 0:
            found = await client.ask("DELETE", f"{MAPS}/{own}")
            is_deleted = found is not None and found[0] == 200
            (answers.deleted if is_deleted else answers.doubtful).add(own)
    client.close()


async def increment(client: Client, name: str, answers: Answers, stop: asyncio.Event) -> None:
    """Add one to each counter in turn, under the resourceVersion that was read. A value is `NUMBER WRITER ATTEMPT`."""
    turn = 0
    while not stop.is_set():
        turn += 1
        counter = COUNTERS[turn % len(COUNTERS)]
        found = await client.ask("GET", f"{MAPS}/{counter}")
        if found is None or found[0] != 200:
            continue
        value = found[1]
        value["data"]["v"] = f"{int(value['data']['v'].split()[0]) + 1} {name} {turn}"
        found = await client.ask("PUT", f"{MAPS}/{counter}", value)
        if found is not None and found[0] == 200:
            answers.increments.append(int(found[1]["metadata"]["resourceVersion"]))
        elif found is None or found[0] != 409:
            answers.unknown += 1
    client.close()


async def history(store: Store, after: Revision, upto: Revision) -> list[Seen]:
    """The events of the collection in etcd."""
    events: list[Seen] = []
    async for batch in store.watch(COLLECTION, after=after):
        for event in batch.events:
            if event.revision <= upto:
                value = None if event.value is None else _value(json.loads(event.value))
                events.append(Seen(event.key.name, event.revision, value))
        if batch.revision >= upto:
            break
    return events


async def watched(port: int, after: Revision, upto: Revision) -> list[Seen]:
    """The events that a watch of a server delivers, up to the one at `upto`."""
    url = f"http://127.0.0.1:{port}{MAPS}?watch=1&resourceVersion={after}&timeoutSeconds=300"
    events: list[Seen] = []
    async with asyncio.timeout(HANGS_AFTER), aiohttp.ClientSession() as session, session.get(url) as stream:
        assert stream.status == 200, await stream.text()
        buffered = b""
        while not events or events[-1].revision < upto:
            *lines, buffered = (buffered + await stream.content.readany()).split(b"\n")
            for event in map(json.loads, lines):
                assert event["type"] in ("ADDED", "MODIFIED", "DELETED"), event
                value, is_gone = event["object"], event["type"] == "DELETED"
                at = int(value["metadata"]["resourceVersion"])
                events.append(Seen(value["metadata"]["name"], at, None if is_gone else _value(value)))
    return [event for event in events if event.revision <= upto]


async def listed(port: int) -> dict[str, str]:
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}{MAPS}") as answer:
        assert answer.status == 200, await answer.text()
        return {item["metadata"]["name"]: _value(item) for item in (await answer.json())["items"]}


async def stored(store: Store) -> dict[str, str]:
    """The objects in etcd."""
    return {item.key.name: _value(json.loads(item.value)) for item in (await store.list(COLLECTION)).items}


def _value(config_map: Any) -> str:
    return str(config_map.get("data", {}).get("v", ""))
