"""What is measured of a server: each operation with its clients, and how its requests are made.

Objects are those of a workload. Writes always change something, because servers may skip others.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any, Final, NamedTuple

from benchmarks import servers as server_module
from benchmarks.load import APPLY, JSON, JSON_PATCH, MERGE, Request, Requests, Watcher, ask, send_all
from benchmarks.processes import processor_seconds, resident_bytes
from benchmarks.results import Measured, percentile
from benchmarks.samples import DEFINITION
from benchmarks.servers import DEFINITIONS, Server, Source
from benchmarks.workloads import BENCH, Workload

WRITERS: Final = 64  # objects that are changed: one for each connection
CREATES_UNTIL_USABLE: Final = 60.0  # seconds
FILLING: Final = 32  # connections


def encode(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


class Subject:
    """A server under measurement, and what was created in it."""

    def __init__(self, server: Server, group: str, workload: Workload = BENCH) -> None:
        self.server = server
        self.group = group
        self.workload = workload
        self.created: deque[str] = deque()
        self.stored: dict[str, Any] = {}
        """The objects that are updated, as they were read last, by name."""
        self.serial = count(1)
        self.definitions: list[str] = []

    def collection(self, namespace: str, plural: str = "benches") -> str:
        return f"/apis/{self.group}/v1/namespaces/{namespace}/{plural}"

    def value(self, name: str, namespace: str, kind: str = "Benches") -> Any:
        value = self.workload.sample(name)
        value["apiVersion"], value["kind"] = f"{self.group}/v1", kind
        value["metadata"]["namespace"] = namespace
        return value

    def definition(self, plural: str = "benches") -> Any:
        """A definition of the workload, in the server's group."""
        [version] = DEFINITION["spec"]["versions"]
        version = {
            **version,
            "schema": {"openAPIV3Schema": self.workload.schema},
            "additionalPrinterColumns": self.workload.columns,
        }
        return {
            **DEFINITION,
            "metadata": {"name": f"{plural}.{self.group}"},
            "spec": {
                **DEFINITION["spec"],
                "group": self.group,
                "names": {"plural": plural, "kind": plural.capitalize()},
                "versions": [version],
            },
        }

    async def define(self, plural: str = "benches") -> None:
        """Create a definition, and wait until its objects can be created."""
        body = self.definition(plural)
        self.definitions.append(body["metadata"]["name"])
        await ask(self.server.target, Request("POST", DEFINITIONS, encode(body), status=201))
        await self.usable(plural)

    async def usable(self, plural: str) -> None:
        probe = encode(self.value("probe", "default", plural.capitalize()))
        deadline = time.monotonic() + CREATES_UNTIL_USABLE
        while True:
            try:
                await ask(self.server.target, Request("POST", self.collection("default", plural), probe, status=201))
                return
            except SystemExit:
                if time.monotonic() > deadline:
                    raise
                await asyncio.sleep(0.02)

    async def namespace(self, name: str) -> None:
        """Create a namespace; some servers have none, and take objects in any."""
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        try:
            await ask(self.server.target, Request("POST", "/api/v1/namespaces", encode(body), status=201))
        except SystemExit as refused:
            if "404" not in str(refused):
                raise

    async def fill(self, namespace: str, first: int, end: int, seconds: float = float("inf")) -> int:
        """Create objects o-N. Returns the number after the last one, `end` unless the time was over."""
        numbers = iter(range(first, end))
        done = first

        def creates() -> Requests:
            nonlocal done
            for n in numbers:
                body = encode(self.value(f"o-{n:06}", namespace))
                yield Request("POST", self.collection(namespace), body, status=201)
                done += 1

        await send_all(self.server.target, [creates() for _ in range(min(FILLING, end - first))], seconds=seconds)
        return done

    async def items(self, namespace: str) -> list[Any]:
        answer = await ask(self.server.target, Request("GET", self.collection(namespace)))
        found: list[Any] = decoded(answer)["items"]
        return found

    async def remove(self) -> None:
        """Delete the definitions, with all their objects."""
        for name in self.definitions:
            await ask(self.server.target, Request("DELETE", f"{DEFINITIONS}/{name}"))


def decoded(answer: bytes) -> Any:
    """The value of a body, which may be chunked: lines of sizes between the parts."""
    if answer.startswith(b"{"):
        return json.loads(answer)
    parts, at = [], 0
    while at < len(answer):
        end = answer.index(b"\r\n", at)
        size = int(answer[at:end], 16)
        parts.append(answer[end + 2 : end + 2 + size])
        at = end + 2 + size + 2
    return json.loads(b"".join(parts))


# -- requests of each connection ---------------------------------------------------------------------------------------


def pings(_: Subject, __: int) -> Requests:
    while True:
        yield Request("GET", "/livez/ping")


def creates(subject: Subject, _: int) -> Requests:
    while True:
        name = f"c-{next(subject.serial)}"
        try:
            yield Request("POST", subject.collection("default"), encode(subject.value(name, "default")), status=201)
        finally:  # also if no request follows the answer, because the time is up
            subject.created.append(name)


def gets(subject: Subject, n: int) -> Requests:
    while True:
        yield Request("GET", f"{subject.collection('written')}/o-{n:06}")


def updates(subject: Subject, n: int) -> Requests:
    """As controllers do: the whole object as it was read last, managedFields included, with a change."""
    path = f"{subject.collection('written')}/o-{n:06}"
    value = subject.stored[f"o-{n:06}"]
    while True:
        subject.workload.change(value, next(subject.serial))
        answer = yield Request("PUT", path, encode(value))
        value = decoded(answer)


def patches(
    media_type: str, body: Callable[[Workload, int], Any], suffix: str = "", namespace: str = "written"
) -> Callable[[Subject, int], Requests]:
    def requests(subject: Subject, n: int) -> Requests:
        path = f"{subject.collection(namespace)}/o-{n:06}{suffix}"
        while True:
            yield Request("PATCH", path, encode(body(subject.workload, next(subject.serial))), media_type)

    return requests


def applies(subject: Subject, n: int) -> Requests:
    path = f"{subject.collection('applied')}/a-{n:06}?fieldManager=bench&force=true"
    value = subject.value(f"a-{n:06}", "applied")
    value.pop("status", None)
    while True:
        subject.workload.change(value, next(subject.serial))
        yield Request("PATCH", path, encode(value), APPLY)


def deletes(subject: Subject, _: int) -> Requests:
    while subject.created:
        yield Request("DELETE", f"{subject.collection('default')}/{subject.created.popleft()}")


def lists(size: int, accept: str = JSON, *, gzip: bool = False, query: str = "") -> Callable[[Subject, int], Requests]:
    def requests(subject: Subject, _: int) -> Requests:
        while True:
            yield Request("GET", f"{subject.collection(f'list-{size}')}{query}", accept=accept, gzip=gzip)

    return requests


def shown_as(kind: str) -> str:
    return f"{JSON};as={kind};g=meta.k8s.io;v=v1"


def _status(_: Workload, serial: int) -> Any:
    conditions = [{"type": "Ready", "status": "True", "message": f"change {serial}"}]
    return {"status": {"conditions": conditions}}


class Operation(NamedTuple):
    """`requests` makes the requests of the n-th connection."""

    name: str
    clients: int
    requests: Callable[[Subject, int], Requests]


def operations(listed: int, many: int) -> list[Operation]:
    """In their order: what is deleted was created before. `many`: the size of the long list; 0 for none."""
    return [
        Operation("no operation", WRITERS, pings),
        *(Operation(f"get, {clients} at a time", clients, gets) for clients in (1, 8, WRITERS)),
        Operation("list of 1", 1, lists(1)),
        Operation(f"list of {listed:,}", 1, lists(listed)),
        *([Operation(f"list of {many:,}", 1, lists(many))] if many else []),
        Operation(f"Table of {listed:,}", 1, lists(listed, shown_as("Table"))),
        Operation(
            f"PartialObjectMetadata of {listed:,}", 1, lists(listed, shown_as("PartialObjectMetadataList"))
        ),
        Operation(f"list of {listed:,}, gzip", 1, lists(listed, gzip=True)),
        *(Operation(f"create, {clients} at a time", clients, creates) for clients in (1, 8, WRITERS)),
        Operation("update", WRITERS, updates),
        Operation("merge patch", WRITERS, patches(MERGE, Workload.merge_patch)),
        Operation("JSON patch", WRITERS, patches(JSON_PATCH, Workload.json_patch)),
        Operation("status patch", WRITERS, patches(MERGE, _status, "/status")),
        Operation("apply", WRITERS, applies),
        Operation("delete", WRITERS, deletes),
    ]  # fmt: skip


async def prepare(subject: Subject, sizes: list[int]) -> None:
    """Create the definition, and what is read and changed."""
    await subject.define()
    for namespace in ("written", "applied", *(f"list-{size}" for size in sizes)):
        await subject.namespace(namespace)
    await subject.fill("written", 0, WRITERS)
    for size in sizes:
        await subject.fill(f"list-{size}", 0, size)
        if (found := len(await subject.items(f"list-{size}"))) != size:
            raise SystemExit(f"{subject.server.name} lists {found} of {size} objects")
    for n in range(WRITERS):
        [request] = [next(applies(subject, n))]
        await ask(subject.server.target, request._replace(status=201))


# -- measuring ---------------------------------------------------------------------------------------------------------


class Usage:
    """Processor time of a server and of this process, the client, since `begin`."""

    def __init__(self, server: Server) -> None:
        self._pids = server.pids
        self.begin()

    def begin(self) -> None:
        self._server, self._client, self._time = processor_seconds(self._pids), time.process_time(), time.perf_counter()

    def measured(
        self, operation: str, server: str, round_: int, number: int, seconds: float, latencies: list[float]
    ) -> Measured:
        """`latencies` are in seconds, `seconds` what the operations took."""
        cpu = processor_seconds(self._pids) - self._server
        client = time.process_time() - self._client
        n = max(number, 1)
        ordered = sorted(latencies)
        return Measured(
            operation, server, round_, number, 1e6 * cpu / n, number / seconds if seconds else 0.0,
            1e3 * percentile(ordered, 0.5), 1e3 * percentile(ordered, 0.99), 1e6 * client / n,
            client / seconds if seconds else 0.0, resident_bytes(self._pids) / 1e6,
        )  # fmt: skip


async def measure(
    subject: Subject, operation: Operation, round_: int, seconds: float, clients: int | None = None
) -> Measured:
    clients = min(clients or operation.clients, operation.clients)
    if operation.requests is updates:
        subject.stored = {item["metadata"]["name"]: item for item in await subject.items("written")}
    usage = Usage(subject.server)
    coroutines = [operation.requests(subject, n) for n in range(clients)]
    done = await send_all(subject.server.target, coroutines, seconds=seconds, opened=usage.begin)
    return usage.measured(
        operation.name, subject.server.name, round_, len(done.latencies), done.seconds, list(done.latencies)
    )


async def measure_watch(subject: Subject, watchers: int, round_: int, seconds: float) -> Measured:
    """Update an object again and again, while it is watched; the operations are the events that watchers receive."""
    server = subject.server
    path = f"{subject.collection('written')}/o-000000"
    item = next(item for item in await subject.items("written") if item["metadata"]["name"] == "o-000000")
    query = f"?watch=true&fieldSelector=metadata.name%3Do-000000&resourceVersion={item['metadata']['resourceVersion']}"
    head = Request("GET", f"{subject.collection('written')}{query}").bytes(server.target.headers)
    sent: list[float] = []
    changed = asyncio.Event()
    opened: list[Watcher] = []
    loop = asyncio.get_running_loop()
    gate = asyncio.Semaphore(32)

    async def open_one() -> None:
        async with gate:
            _, watcher = await loop.create_connection(
                lambda: Watcher(head, sent, changed.set), server.target.host, server.target.port, ssl=server.target.tls
            )
            opened.append(watcher)

    async def until(condition: Callable[[], bool]) -> None:
        while not condition():
            changed.clear()
            if failure := next((watcher.failure for watcher in opened if watcher.failure), ""):
                raise SystemExit(f"{server.name}: {failure}")
            await asyncio.wait_for(changed.wait(), 60)

    def requests() -> Requests:
        while True:
            body = encode({"metadata": {"annotations": {"change": str(next(subject.serial))}}})
            sent.append(time.perf_counter())
            yield Request("PATCH", path, body, MERGE)

    try:
        await asyncio.gather(*(open_one() for _ in range(watchers)))
        await until(lambda: all(watcher.accepted for watcher in opened))
        await asyncio.sleep(0.2)
        usage = Usage(server)
        start = time.perf_counter()
        await send_all(server.target, [requests()], seconds=seconds, opened=usage.begin)
        await until(lambda: all(watcher.events >= len(sent) for watcher in opened))
        latencies = [latency for watcher in opened for latency in watcher.latencies]
        name = f"watch, {watchers:,} watchers" if watchers > 1 else "watch, 1 watcher"
        return usage.measured(name, server.name, round_, watchers * len(sent), time.perf_counter() - start, latencies)
    finally:
        for watcher in opened:
            watcher.close()


async def measure_definition(subject: Subject, round_: int) -> Measured:
    """Create a definition until an object of it is created."""
    usage = Usage(subject.server)
    start = time.perf_counter()
    await subject.define(f"defined{next(subject.serial)}")
    seconds = time.perf_counter() - start
    return usage.measured("definition until usable", subject.server.name, round_, 1, seconds, [seconds])


async def measure_start(source: Source, round_: int, directory: Path) -> Measured:
    """Start a further server, empty, until it answers a list of definitions."""
    start, client = time.perf_counter(), time.process_time()
    server = await server_module.start(source, directory)
    seconds = time.perf_counter() - start
    try:
        cpu = processor_seconds(server.pids)
        client = time.process_time() - client
        memory = resident_bytes(server.pids) / 1e6
        return Measured(
            "start", source.name, round_, 1, 1e6 * cpu, 1 / seconds, 1e3 * seconds, 1e3 * seconds, 1e6 * client,
            client / seconds, memory,
        )  # fmt: skip
    finally:
        server.stop()


def alternated(subjects: list[Subject], round_: int) -> Iterator[Subject]:
    """The subjects, in the other order in every second round."""
    return iter(subjects if round_ % 2 == 0 else subjects[::-1])
