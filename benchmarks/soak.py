"""Runs a steady mix of requests, and fails if the memory of the server grows: `python -m benchmarks.soak --minutes 30`.

Each round creates, reads, replaces, patches, applies, lists and deletes objects, sends requests that are refused, opens
a watch that is reset and sometimes one that ends, writes a large body, and creates and deletes a definition with an
object. All objects of a round are deleted at its end, so the server has the same state after each. The rate is `--rate`
rounds a second, or less if the server is slower.

Prints the resident memory, the stored objects, the open files, the threads and the rounds at each tenth of the time. What
a server keeps up to a limit (recent changes, the newest part of the log) fills during the first half, if that has 300
rounds. The history is in SQLite, in a temporary folder: with `--memory` ten minutes of it are in memory, so the
run has to be longer than 20. Exit status 1 if the average of the second half exceeds that of the tenth before it by more
than `--growth`.
"""

from __future__ import annotations

import argparse
import http.client
import json
import re
import socket
import struct
import sys
import tempfile
import time
from pathlib import Path
from statistics import mean
from typing import Any, Final, NamedTuple

from benchmarks.http import COLLECTION, REVISION, shown_as
from benchmarks.load import APPLY, JSON, JSON_PATCH, MERGE
from benchmarks.processes import resident_bytes
from benchmarks.samples import DEFINITION, GROUP, sample
from benchmarks.servers import DEFINITIONS
from benchmarks.watchers import server

SAMPLES: Final = 100  # of the memory, during the whole run
CONFIG_MAPS: Final = "/api/v1/namespaces/default/configmaps"
TABLE, METADATA = shown_as("Table"), shown_as("PartialObjectMetadataList")
TURNS: Final = "turns"  # the resource whose definition is created and deleted
LARGE: Final = 300_000  # bytes
WATCHED: Final = 10  # each of so many rounds has a watch that lasts a second


class Call(NamedTuple):
    status: int
    method: str
    path: str
    body: Any = None
    content_type: str = JSON
    accept: str = JSON


def calls(n: int) -> list[Call]:
    """The requests of one round, in order."""
    name = f"o-{n}"
    one, definition = f"{COLLECTION}/{name}", _definition(TURNS)
    large = {"metadata": {"name": name}, "data": {"text": "x" * LARGE}}
    return [
        Call(201, "POST", COLLECTION, sample(name)),
        Call(409, "POST", COLLECTION, sample(name)),
        Call(422, "POST", COLLECTION, {**sample(f"{name}-bad"), "spec": {}}),
        Call(400, "POST", COLLECTION, "no object"),
        Call(404, "GET", f"{COLLECTION}/absent-{n}"),
        Call(200, "GET", one),
        Call(200, "PUT", one, sample(name)),
        Call(200, "PATCH", one, {"spec": {"replicas": 5}}, MERGE),
        Call(200, "PATCH", one, [{"op": "replace", "path": "/spec/replicas", "value": 7}], JSON_PATCH),
        Call(200, "PATCH", f"{one}?fieldManager=soak-{n}&force=true", sample(name), APPLY),
        Call(200, "GET", COLLECTION),
        Call(200, "GET", COLLECTION, accept=TABLE),
        Call(200, "GET", COLLECTION, accept=METADATA),
        Call(200, "GET", f"{COLLECTION}?labelSelector=round%3D{n}"),
        Call(200, "GET", f"{COLLECTION}?fieldSelector=metadata.name%3D{name}"),
        *([Call(200, "GET", f"{COLLECTION}?watch=1&timeoutSeconds=1&resourceVersion=0")] if n % WATCHED == 0 else []),
        Call(406, "GET", COLLECTION, accept="text/plain"),
        Call(404, "GET", f"/apis/absent-{n}.example.com/v1/things"),
        Call(200, "DELETE", one),
        Call(201, "POST", CONFIG_MAPS, large),
        Call(200, "DELETE", f"{CONFIG_MAPS}/{name}"),
        Call(201, "POST", DEFINITIONS, definition),
        Call(201, "POST", f"/apis/{GROUP}/v1/namespaces/default/{TURNS}", {**sample(name), "kind": TURNS.title()}),
        Call(200, "GET", "/openapi/v2"),
        Call(200, "DELETE", f"{DEFINITIONS}/{definition['metadata']['name']}"),
        Call(200, "GET", "/metrics"),
    ]


def _definition(plural: str) -> Any:
    definition = json.loads(json.dumps(DEFINITION))
    definition["metadata"]["name"] = f"{plural}.{GROUP}"
    kind = plural.title()
    definition["spec"]["names"] = {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"}
    return definition


def send(connection: http.client.HTTPConnection, call: Call, revision: str = "") -> str:
    """Send a request, and check the status of its answer; return the resourceVersion in it. Raises SystemExit.

    `revision` is that of the last answer, which a PUT requires.
    """
    value = call.body
    if call.method == "PUT":
        value = {**value, "metadata": {**value["metadata"], "resourceVersion": revision}}
    body = None if value is None else json.dumps(value)
    connection.request(call.method, call.path, body, {"Content-Type": call.content_type, "Accept": call.accept})
    answer = connection.getresponse()
    text = answer.read()
    if answer.status != call.status:
        raise SystemExit(f"{call.method} {call.path}: expected {call.status}, got {answer.status} {text[:500]!r}")
    found = REVISION.search(text)
    return found[1].decode() if found else revision


def wait_until_gone(connection: http.client.HTTPConnection, path: str) -> None:
    """The server deletes the objects of a definition before it. Raises SystemExit."""
    for _ in range(1_000):
        connection.request("GET", path)
        answer = connection.getresponse()
        answer.read()
        if answer.status == 404:
            return
        time.sleep(0.03)
    raise SystemExit(f"GET {path}: expected 404 after 30 s, got {answer.status}")


def reset_watch(port: int) -> None:
    """Open a watch of all objects, and reset its connection."""
    with socket.create_connection(("127.0.0.1", port)) as peer:
        peer.sendall(f"GET {COLLECTION}?watch=1 HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        peer.recv(1)
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def send_round(connection: http.client.HTTPConnection, n: int) -> None:
    """The requests of one round, and a watch that is reset. Raises SystemExit."""
    revision = ""
    for call in calls(n):
        revision = send(connection, call, revision)
    wait_until_gone(connection, f"{DEFINITIONS}/{TURNS}.{GROUP}")
    reset_watch(connection.port)


def run(port: int, pid: int, seconds: float, rate: float) -> list[int]:
    """Send rounds for so long, and return the resident memory in bytes at equal intervals."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    send(connection, Call(201, "POST", DEFINITIONS, DEFINITION))
    start = time.monotonic()
    resident: list[int] = []
    rounds = 0
    while (passed := time.monotonic() - start) < seconds:
        send_round(connection, rounds)
        rounds += 1
        if passed >= seconds * len(resident) / SAMPLES:
            resident.append(resident_bytes([pid]))
            if len(resident) % (SAMPLES // 10) == 0:
                print(f"{passed:6.0f} s {rounds:7} rounds {_state(connection, pid, resident[-1])}", flush=True)
        time.sleep(max(0.0, start + rounds / rate - time.monotonic()))
    connection.close()
    return resident


def _state(connection: http.client.HTTPConnection, pid: int, resident: int) -> str:
    connection.request("GET", "/metrics")
    objects = stored_objects(connection.getresponse().read().decode())
    process = Path(f"/proc/{pid}")
    files, threads = len(list((process / "fd").iterdir())), len(list((process / "task").iterdir()))
    return f"{resident / 1e6:7.1f} MB {objects:5} objects {files:4} files {threads:3} threads"


def stored_objects(metrics: str) -> int:
    """The sum over all resources."""
    return sum(
        int(float(found)) for found in re.findall(r"^apiserver_resource_objects\{.*\} (\S+)$", metrics, re.MULTILINE)
    )


def growth(resident: list[int]) -> float:
    """How much the average of the second half exceeds that of the tenth before it, as a fraction."""
    half, tenth = len(resident) // 2, max(1, len(resident) // 10)
    return mean(resident[half:]) / mean(resident[half - tenth : half]) - 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--rate", type=float, default=2.0, help="rounds a second, at most")
    parser.add_argument("--growth", type=float, default=0.02, help="the fraction by which memory may grow")
    parser.add_argument("--memory", action="store_true", help="store in memory")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as data,
        server(*(["--memory"] if options.memory else ["--data", data])) as (port, pid),
    ):
        found = growth(run(port, pid, 60 * options.minutes, options.rate))
    print(f"growth in the second half: {found:+.1%}")
    sys.exit(found > options.growth)


if __name__ == "__main__":
    main()
