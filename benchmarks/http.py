"""What requests cost over HTTP: `python -m benchmarks.http [--against DIRECTORY]`.

A server of this checkout (and one of another, for ratios from one interleaved run) keeps its data in SQLite, durably.
This process is the client: some connections, each asking again as soon as it is answered. The number to look at is the
processor time of the server per request, in all its threads, as Linux tells it; the floor is a request that does
nothing (`GET /livez/ping`). Best of several rounds; other work on the machine makes all numbers larger, ratios less so.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.samples import DEFINITION, GROUP, sample

ROOT = Path(__file__).parents[1]
COLLECTION = f"/apis/{GROUP}/v1/namespaces/default/benches"
LISTED = f"/apis/{GROUP}/v1/namespaces/listed/benches"
JSON, MERGE, APPLY = "application/json", "application/merge-patch+json", "application/apply-patch+yaml"


class Request(NamedTuple):
    method: str
    path: str
    body: bytes = b""
    content_type: str = JSON
    status: int = 200

    def bytes(self) -> bytes:
        head = f"{self.method} {self.path} HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: bench/1\r\n"
        return (
            f"{head}Content-Type: {self.content_type}\r\nContent-Length: {len(self.body)}\r\n\r\n".encode() + self.body
        )


NAME = re.compile(rb'"name":"(o-[0-9]+-[0-9]+)"')
REVISION = re.compile(rb'"resourceVersion":"([0-9]+)"')
Ask = Callable[[], Request | None]
"""The next request to send; None if there are enough."""


class Connection(asyncio.Protocol):
    """Sends one request after the other, and reads the answers as little as can be."""

    def __init__(self, ask: Ask, revisions: dict[str, str]) -> None:
        self._ask = ask
        self._revisions = revisions
        self._wanted = 0
        self._answer = b""
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._next()

    def _next(self) -> None:
        request = self._ask()
        if request is None:
            self._transport.close()
            self.done.set_result(None)
            return
        self._wanted = request.status
        self._transport.write(request.bytes())

    def data_received(self, data: bytes) -> None:
        self._answer = self._answer + data if self._answer else data
        head, found, body = self._answer.partition(b"\r\n\r\n")
        if not found or not _is_whole(head, body):
            return
        if int(head[9:12]) != self._wanted:
            self.done.set_exception(SystemExit(f"wanted {self._wanted}, got {self._answer[:2000]!r}"))
            self._transport.close()
            return
        if (name := NAME.search(body)) and (revision := REVISION.search(body)):
            self._revisions[name[1].decode()] = revision[1].decode()
        self._answer = b""
        self._next()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(exc or ConnectionError("the server closed the connection"))


def _is_whole(head: bytes, body: bytes) -> bool:
    length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
    return len(body) >= int(length) if length else body.endswith(b"0\r\n\r\n")


class Server:
    """A server of a checkout, in a process of its own."""

    def __init__(self, name: str, checkout: Path, place: Path) -> None:
        self.name = name
        kubeconfig = place / f"{name}.kubeconfig"
        command = [sys.executable, "-m", "apiserver", "serve", "--data", str(place / name), "--port", "0"]
        self._process = subprocess.Popen(
            [*command, "--kubeconfig", str(kubeconfig)], stdout=subprocess.DEVNULL, cwd=checkout
        )
        while not kubeconfig.exists():
            if self._process.poll() is not None:
                raise SystemExit(f"the server of {checkout} did not start")
            time.sleep(0.01)
        url: str = json.loads(kubeconfig.read_text())["clusters"][0]["cluster"]["server"]
        self._port = int(url.rpartition(":")[2])
        self.revisions: dict[str, str] = {}
        """By the name of an object, as it was last answered."""

    def processor_seconds(self) -> float:
        tasks = Path(f"/proc/{self._process.pid}/task").glob("*/schedstat")
        return sum(int(one.read_text().split()[0]) for one in tasks) / 1e9

    async def load(self, ask: Ask, clients: int) -> None:
        loop = asyncio.get_running_loop()
        made = [
            await loop.create_connection(lambda: Connection(ask, self.revisions), "127.0.0.1", self._port)
            for _ in range(clients)
        ]
        await asyncio.gather(*(connection.done for _, connection in made))

    async def do(self, request: Request) -> None:
        left = iter([request])
        await self.load(lambda: next(left, None), 1)

    def stop(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        self._process.wait()


class Phase(NamedTuple):
    """`request` makes the request for an object, of which the revision is known if there is one."""

    name: str
    clients: int
    requests: int
    request: Callable[[str, str], Request]


def written(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def phases(clients: int, requests: int, listed: int) -> list[Phase]:
    def create(name: str, _: str) -> Request:
        return Request("POST", COLLECTION, written(sample(name)), status=201)

    def on(method: str, make: Callable[[str, str], Any], media_type: str = JSON, query: str = "") -> Any:
        def request(name: str, revision: str) -> Request:
            body = make(name, revision)
            return Request(method, f"{COLLECTION}/{name}{query}", b"" if body is None else written(body), media_type)

        return request

    def updated(name: str, revision: str) -> Any:
        value = sample(name)
        value["metadata"]["resourceVersion"] = revision
        value["spec"]["replicas"] = 4
        return value

    def applied(name: str, _: str) -> Any:
        return {**sample(name), "spec": {"replicas": 6, "template": {}}}

    query = "?fieldManager=applier&force=true"
    return [
        Phase("floor", clients, requests, lambda *_: Request("GET", "/livez/ping")),
        Phase("create", clients, requests, create),
        Phase("get", clients, requests, on("GET", lambda *_: None)),
        Phase("update", clients, requests, on("PUT", updated)),
        Phase("merge patch", clients, requests, on("PATCH", lambda *_: {"spec": {"replicas": 5}}, MERGE)),
        Phase("apply", clients, requests, on("PATCH", applied, APPLY, query)),
        Phase("json patch", clients, requests, on("PATCH", lambda *_: OPERATIONS, "application/json-patch+json")),
        Phase("status", clients, requests, on("PATCH", lambda *_: {"status": {"conditions": []}}, MERGE)),
        Phase(f"list {listed}", 1, 20, lambda *_: Request("GET", LISTED)),
        Phase("delete", clients, requests, on("DELETE", lambda *_: None)),
    ]


OPERATIONS = [{"op": "replace", "path": "/spec/replicas", "value": 7}]


async def measure(server: Server, phase: Phase, round_: int) -> tuple[float, float]:
    """Microseconds of the server's processors per request, and requests per second."""
    asked = 0

    def ask() -> Request | None:
        nonlocal asked
        if asked == phase.requests:
            return None
        asked += 1
        name = f"o-{round_}-{asked}"
        return phase.request(name, server.revisions.get(name, ""))

    spent, began = server.processor_seconds(), time.perf_counter()
    await server.load(ask, min(phase.clients, phase.requests))
    seconds = time.perf_counter() - began
    return 1e6 * (server.processor_seconds() - spent) / phase.requests, phase.requests / seconds


async def prepare(server: Server, listed: int) -> None:
    await server.do(
        Request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", written(DEFINITION), status=201)
    )
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "listed"}}
    await server.do(Request("POST", "/api/v1/namespaces", written(namespace), status=201))
    names = iter(range(listed))

    def ask() -> Request | None:
        n = next(names, None)
        if n is None:
            return None
        value = sample(f"listed-{n}")
        value["metadata"]["namespace"] = "listed"
        return Request("POST", LISTED, written(value), status=201)

    await server.load(ask, 32)


async def run(servers: list[Server], clients: int, requests: int, rounds: int, listed: int) -> None:
    for server in servers:
        await prepare(server, listed)
    todo = phases(clients, requests, listed)
    best: dict[tuple[str, str], tuple[float, float]] = {}
    for round_ in range(rounds):
        for phase in todo:
            for server in servers if round_ % 2 else reversed(servers):
                found = await measure(server, phase, round_)
                known = best.get((phase.name, server.name), found)
                best[phase.name, server.name] = min(found[0], known[0]), max(found[1], known[1])
    print(f"{'':<14}" + "".join(f" {one.name + ' CPU µs':>16} {'per second':>12}" for one in servers) + "   ratio")
    for phase in todo:
        rows = [best[phase.name, server.name] for server in servers]
        ratio = f"{rows[0][0] / rows[1][0]:>8.2f}" if len(rows) > 1 else ""
        print(f"{phase.name:<14}" + "".join(f" {cpu:>16.0f} {rate:>12.0f}" for cpu, rate in rows) + ratio)


@contextlib.contextmanager
def started(checkouts: dict[str, Path]) -> Iterator[list[Server]]:
    with tempfile.TemporaryDirectory() as place, contextlib.ExitStack() as stop:
        servers = []
        for name, checkout in checkouts.items():
            servers.append(Server(name, checkout, Path(place)))
            stop.callback(servers[-1].stop)
        yield servers


def main() -> None:
    parser = argparse.ArgumentParser(description="What requests cost the server.")
    parser.add_argument("--against", type=Path, help="another checkout, for ratios")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--requests", type=int, default=1500)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--listed", type=int, default=1000)
    given = parser.parse_args()
    if not Path("/proc/self/schedstat").exists():
        raise SystemExit("this needs Linux, which tells the processor time of another process's threads")
    checkouts = {"ours": ROOT} | ({"theirs": given.against.resolve()} if given.against else {})
    with started(checkouts) as servers:
        asyncio.run(run(servers, given.clients, given.requests, given.rounds, given.listed))


if __name__ == "__main__":
    main()
