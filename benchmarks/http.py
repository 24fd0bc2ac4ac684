"""Measures requests over HTTP: `python -m benchmarks.http [--against DIRECTORY | --tls]`.

Starts a server of this checkout, and one to compare with in the same interleaved run: of the checkout DIRECTORY, or
without TLS, while ours has it, and a client certificate. Connections are opened before anything is measured, handshakes
included. Both store durably in SQLite. This process is the client: each connection sends its next request as soon as the
last one is answered. With `--tls` it does so when all connections have their answers: TLS makes the client slower, too,
and a server that waits for its clients needs more time for each request.

Prints the server's processor time per request, in all its threads, as Linux reports it, and requests per second, the best
of several rounds; and the ratio of the processor times, the median of the rounds. `floor` is a request that does nothing
(`GET /livez/ping`), `objects` a table with whole objects, `named` a list of the objects of one name in all namespaces,
`page` a page of one. Other work on the machine makes all numbers larger, ratios less so.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import uvloop

from benchmarks.load import APPLY, JSON, JSON_PATCH, MERGE, Request, Requests, Target, send_all
from benchmarks.processes import processor_seconds, python_path, with_descendants
from benchmarks.samples import DEFINITION, GROUP, sample
from noxu.commands import api_client

ROOT = Path(__file__).parents[1]
COLLECTION = f"/apis/{GROUP}/v1/namespaces/default/benches"
LISTED = f"/apis/{GROUP}/v1/namespaces/listed/benches"
EVERYWHERE = f"/apis/{GROUP}/v1/benches"


NAME = re.compile(rb'"name":"(o-[0-9]+-[0-9]+)"')
REVISION = re.compile(rb'"resourceVersion":"([0-9]+)"')
NextRequest = Callable[[], Request | None]
"""Returns the next request to send, None after the last one."""


class Server:
    """A server of a checkout, in its own process. `directory` holds its data."""

    def __init__(self, name: str, checkout: Path, directory: Path, *options: str, bursts: bool = False) -> None:
        self.name = name
        self.bursts = bursts
        kubeconfig = directory / f"{name}.kubeconfig"
        command = [sys.executable, "-m", "noxu", "serve", "--data", str(directory / name), "--port", "0"]
        self._process = subprocess.Popen(
            [*command, *options, "--kubeconfig", str(kubeconfig)],
            stdout=subprocess.DEVNULL,
            cwd=checkout,
            env=os.environ | {"PYTHONPATH": python_path(checkout)},
        )
        while not kubeconfig.exists():
            if self._process.poll() is not None:
                raise SystemExit(f"the server of {checkout} did not start")
            time.sleep(0.01)
        endpoint = api_client.endpoint_from_kubeconfig(kubeconfig)
        tls = api_client.ssl_context(endpoint) if endpoint.certificate_authority else None
        self._target = Target("127.0.0.1", int(endpoint.url.rpartition(":")[2]), tls)
        self.revisions: dict[str, str] = {}
        """The last resourceVersion that the server returned, by the name of the object."""

    def processor_seconds(self) -> float:
        return processor_seconds(with_descendants([self._process.pid]))

    async def load(self, next_request: NextRequest, clients: int) -> tuple[float, float]:
        """Send requests over `clients` connections until there are no more. Returns processor time and time, in seconds."""

        def requests() -> Requests:
            while (request := next_request()) is not None:
                body = yield request
                if (name := NAME.search(body)) and (revision := REVISION.search(body)):
                    self.revisions[name[1].decode()] = revision[1].decode()

        cpu = 0.0

        def opened() -> None:
            nonlocal cpu
            cpu = self.processor_seconds()

        done = await send_all(self._target, [requests() for _ in range(clients)], opened=opened, bursts=self.bursts)
        return self.processor_seconds() - cpu, done.seconds

    async def send(self, request: Request) -> None:
        requests = iter([request])
        await self.load(lambda: next(requests, None), 1)

    def stop(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        self._process.wait()


class Phase(NamedTuple):
    """One kind of request. `request(name, resource_version)` creates the request for an object."""

    name: str
    clients: int
    requests: int
    request: Callable[[str, str], Request]


def encode(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def phases(clients: int, requests: int, listed: int) -> list[Phase]:
    def create(name: str, _: str) -> Request:
        return Request("POST", COLLECTION, encode(sample(name)), status=201)

    def on_object(method: str, body_of: Callable[[str, str], Any], media_type: str = JSON, query: str = "") -> Any:
        def request(name: str, revision: str) -> Request:
            body = body_of(name, revision)
            return Request(method, f"{COLLECTION}/{name}{query}", b"" if body is None else encode(body), media_type)

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
        Phase("get", clients, requests, on_object("GET", lambda *_: None)),
        Phase("update", clients, requests, on_object("PUT", updated)),
        Phase("merge patch", clients, requests, on_object("PATCH", lambda *_: {"spec": {"replicas": 5}}, MERGE)),
        Phase("apply", clients, requests, on_object("PATCH", applied, APPLY, query)),
        Phase("json patch", clients, requests, on_object("PATCH", lambda *_: OPERATIONS, JSON_PATCH)),
        Phase("status", clients, requests, on_object("PATCH", lambda *_: {"status": {"conditions": []}}, MERGE)),
        Phase(f"list {listed}", 1, 20, lambda *_: Request("GET", LISTED)),
        Phase(f"table {listed}", 1, 20, lambda *_: Request("GET", LISTED, accept=shown_as("Table"))),
        Phase(
            f"metadata {listed}",
            1,
            20,
            lambda *_: Request("GET", LISTED, accept=shown_as("PartialObjectMetadataList")),
        ),
        Phase(
            f"objects {listed}",
            1,
            20,
            lambda *_: Request("GET", f"{LISTED}?includeObject=Object", accept=shown_as("Table")),
        ),
        Phase("named", 8, 200, lambda *_: Request("GET", f"{EVERYWHERE}?fieldSelector=metadata.name%3Dlisted-1")),
        Phase("page", 8, 200, lambda *_: Request("GET", f"{LISTED}?limit=1")),
        Phase("delete", clients, requests, on_object("DELETE", lambda *_: None)),
    ]


def shown_as(kind: str) -> str:
    return f"{JSON};as={kind};g=meta.k8s.io;v=v1"


OPERATIONS = [{"op": "replace", "path": "/spec/replicas", "value": 7}]


async def measure(server: Server, phase: Phase, round_: int) -> tuple[float, float]:
    """The server's processor time per request in microseconds, and requests per second."""
    sent = 0

    def next_request() -> Request | None:
        nonlocal sent
        if sent == phase.requests:
            return None
        sent += 1
        name = f"o-{round_}-{sent}"
        return phase.request(name, server.revisions.get(name, ""))

    cpu, seconds = await server.load(next_request, min(phase.clients, phase.requests))
    return 1e6 * cpu / phase.requests, phase.requests / seconds


async def prepare(server: Server, listed: int) -> None:
    await server.send(
        Request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", encode(DEFINITION), status=201)
    )
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "listed"}}
    await server.send(Request("POST", "/api/v1/namespaces", encode(namespace), status=201))
    names = iter(range(listed))

    def next_request() -> Request | None:
        n = next(names, None)
        if n is None:
            return None
        value = sample(f"listed-{n}")
        value["metadata"]["namespace"] = "listed"
        return Request("POST", LISTED, encode(value), status=201)

    await server.load(next_request, 32)


async def run(servers: list[Server], all_phases: list[Phase], rounds: int, listed: int) -> None:
    for server in servers:
        await prepare(server, listed)
    measured: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for round_ in range(rounds):
        for phase in all_phases:
            for server in servers if round_ % 2 else reversed(servers):
                measured.setdefault((phase.name, server.name), []).append(await measure(server, phase, round_))
    print(
        f"{'':<14}" + "".join(f" {server.name + ' CPU µs':>16} {'per second':>12}" for server in servers) + "   ratio"
    )
    for phase in all_phases:
        rows = [measured[phase.name, server.name] for server in servers]
        best = [(min(cpu for cpu, _ in row), max(rate for _, rate in row)) for row in rows]
        ratio = ""
        if len(rows) > 1:
            ratio = f"{median(ours / theirs for (ours, _), (theirs, _) in zip(*rows, strict=True)):>8.2f}"
        print(f"{phase.name:<14}" + "".join(f" {cpu:>16.0f} {rate:>12.0f}" for cpu, rate in best) + ratio)


@contextlib.contextmanager
def started(checkouts: dict[str, tuple[Path, tuple[str, ...]]], *, bursts: bool = False) -> Iterator[list[Server]]:
    """Servers by name: their checkouts, and options."""
    with tempfile.TemporaryDirectory() as directory, contextlib.ExitStack() as stack:
        servers = []
        for name, (checkout, options) in checkouts.items():
            servers.append(Server(name, checkout, Path(directory), *options, bursts=bursts))
            stack.callback(servers[-1].stop)
        yield servers


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the processor time of requests.")
    others = parser.add_mutually_exclusive_group()
    others.add_argument("--against", type=Path, help="another checkout to compare with")
    others.add_argument("--tls", action="store_true", help="compare HTTPS with HTTP")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--requests", type=int, default=1500)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--listed", type=int, default=1000)
    parser.add_argument(
        "--only", action="append", metavar="KIND", help="measure these kinds of requests; can be repeated"
    )
    options = parser.parse_args()
    if not Path("/proc/self/schedstat").exists():
        raise SystemExit("this needs Linux, which reports the processor time of the threads of another process")
    checkouts: dict[str, tuple[Path, tuple[str, ...]]] = {"ours": (ROOT, ())}
    if options.against:
        checkouts["theirs"] = (options.against.resolve(), ())
    if options.tls:
        checkouts = {"https": (ROOT, ("--tls",)), "http": (ROOT, ())}
    with started(checkouts, bursts=options.tls) as servers:
        all_phases = phases(options.clients, options.requests, options.listed)
        selected = [phase for phase in all_phases if not options.only or phase.name in options.only]
        uvloop.run(run(servers, selected, options.rounds, options.listed))


if __name__ == "__main__":
    main()
