"""R1 and R14 for the whole server: killed during writes it loses none, stopped it leaves no files behind.

NOXU_KILLS is the number of kills (10; 100 take a few minutes), NOXU_OBJECTS that of the objects of a server that is killed
and started again.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import random
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from noxu_storage.check import check
from tests.faults.keepalive import Connection
from tests.faults.server_process import MAPS, ROOT, Process, exchange, free_port, many_files
from tests.timing import HANGS_AFTER, cpu_seconds_of, eventually

KILLS = int(os.environ.get("NOXU_KILLS", "10"))
OBJECTS = int(os.environ.get("NOXU_OBJECTS", "1000"))
WATCHES = 1000
WRITERS = 4
CPU_SECONDS = 5.0  # of a start, and of a shutdown with a thousand watches; they take 0.5 s


class Ack(NamedTuple):
    """An acknowledged write. `value` is None for a delete."""

    name: str
    revision: int
    value: str | None


def stop(server: Process, number: signal.Signals) -> str:
    """Like `Process.end`, with a bound on the processor time that the shutdown takes."""
    before, others = cpu_seconds_of(server.process.pid), _cpu_seconds_of_children()
    output = server.end(number)
    assert _cpu_seconds_of_children() - others - before < CPU_SECONDS
    return output


def _cpu_seconds_of_children() -> float:
    """The processor time of child processes that have ended and have been waited for."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


# -- kill -9


class Writer(threading.Thread):
    """Creates, updates and deletes a few objects of its own until the server ends. Records what was acknowledged."""

    def __init__(self, server: Process, number: int, known: dict[str, int]) -> None:
        super().__init__(daemon=True)
        self.server, self.number = server, number
        self.random = random.Random(os.urandom(8))
        self.known = known  # resourceVersions by name
        self.acks: list[Ack] = []
        self.in_flight = ""  # the name in the last request, whose outcome may be unknown
        self.failure: BaseException | None = None

    def run(self) -> None:
        connection = self.server.connect()
        try:
            while True:
                self.write(connection)
        except (OSError, http.client.HTTPException):
            pass  # killed
        except (AssertionError, KeyError, ValueError) as error:
            self.failure = error
        finally:
            connection.close()

    def write(self, connection: http.client.HTTPConnection) -> None:
        name = self.in_flight = f"{self.number}-{self.random.randrange(5)}"
        known = self.known.get(name)
        if known and self.random.random() < 0.3:
            options = {"preconditions": {"resourceVersion": str(known)}}
            status, answer = exchange(connection, "DELETE", f"{MAPS}/{name}", options)
            assert status == 200, answer
            del self.known[name]
            self.acks.append(Ack(name, known, None))
            return
        value = f"{self.random.getrandbits(64):x}" * self.random.choice([1, 50])
        metadata = {"name": name} | ({"resourceVersion": str(known)} if known else {})
        config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"v": value}}
        method, path = ("PUT", f"{MAPS}/{name}") if known else ("POST", MAPS)
        status, answer = exchange(connection, method, path, config_map)
        assert status in (200, 201), answer
        self.known[name] = int(answer["metadata"]["resourceVersion"])
        self.acks.append(Ack(name, self.known[name], value))


def have_written(writers: list[Writer]) -> bool:
    """Whether a few writes have been acknowledged; also if a writer has failed, which is reported later."""
    return acknowledged(writers) >= 20 or any(writer.failure for writer in writers)


def acknowledged(writers: list[Writer]) -> int:
    return sum(len(writer.acks) for writer in writers)


def events_after(server: Process, revision: int) -> Iterator[dict[str, Any]]:
    """The history as a watch shows it, up to now."""
    marker = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "marker-"}}
    status, last = server.ask("POST", MAPS, marker)
    assert status == 201
    with contextlib.closing(server.connect()) as connection:
        connection.request("GET", f"{MAPS}?watch=1&resourceVersion={revision}")
        for line in connection.getresponse():
            event = json.loads(line)
            if event["object"]["metadata"]["name"] == last["metadata"]["name"]:
                return
            yield event


@pytest.mark.timeout(300 + 60 * KILLS)
def test_kill_loses_no_acknowledged_write(
    tmp_path: Path, port: int, record_property: Callable[[str, object], None]
) -> None:
    server = Process(tmp_path, port)
    total = 0
    known: dict[str, int] = {}
    for _ in range(KILLS):
        start = int(server.ask("GET", MAPS)[1]["metadata"]["resourceVersion"])
        mine = [{name: known[name] for name in known if name.startswith(f"{n}-")} for n in range(WRITERS)]
        writers = [Writer(server, n, mine[n]) for n in range(WRITERS)]
        for writer in writers:
            writer.start()
        eventually(partial(have_written, writers))
        time.sleep(random.uniform(0.0, 0.3))
        server.end(signal.SIGKILL)
        for writer in writers:
            writer.join()
            assert writer.failure is None, writer.failure
        assert check(tmp_path / "data" / "noxu.db").problems == []
        server = Process(tmp_path, port)  # immediately, with the same file and the same port
        assert server.first_line.startswith("Noxu serves"), server.first_line
        assert server.cpu_seconds < CPU_SECONDS
        total += acknowledged(writers)
        known = verify(server, start, writers)
    output = server.end(signal.SIGTERM)
    record_property("kills", KILLS)
    record_property("acknowledged", total)
    assert "Traceback" not in output


def verify(server: Process, start: int, writers: list[Writer]) -> dict[str, int]:
    """The state is the last acknowledged write, or one in flight; the history shows every acknowledged write."""
    listed = server.ask("GET", MAPS)[1]
    state = {item["metadata"]["name"]: item for item in listed["items"]}
    written: dict[int, tuple[str, str | None]] = {}
    deleted: dict[str, list[int]] = {}
    for event in events_after(server, start):
        metadata = event["object"]["metadata"]
        if event["type"] == "DELETED":
            deleted.setdefault(metadata["name"], []).append(int(metadata["resourceVersion"]))
        else:
            written[int(metadata["resourceVersion"])] = (metadata["name"], event["object"].get("data", {}).get("v"))
    for writer in writers:
        last: dict[str, Ack] = {}
        for ack in writer.acks:
            last[ack.name] = ack
            if ack.value is not None:
                assert written[ack.revision] == (ack.name, ack.value)
                assert int(listed["metadata"]["resourceVersion"]) >= ack.revision
            else:
                assert any(revision > ack.revision for revision in deleted[ack.name])
        for name, ack in last.items():
            found = state.get(name)
            if name != writer.in_flight:
                assert (found["data"]["v"] if found else None) == ack.value
            elif found is not None and int(found["metadata"]["resourceVersion"]) == ack.revision:
                assert found["data"]["v"] == ack.value
    return {name: int(item["metadata"]["resourceVersion"]) for name, item in state.items()}


@pytest.mark.timeout(300 + OBJECTS // 10)
def test_a_killed_server_with_many_objects_is_ready_again_soon(
    started: Process, record_property: Callable[[str, object], None]
) -> None:
    async def create(numbers: Iterator[int]) -> None:
        connection = Connection(started.port)
        for number in numbers:
            value = {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": f"n{number}"},
                "data": {"v": "x" * 500},
            }
            status, _ = await connection.ask("POST", MAPS, value)
            assert status == 201
        connection.close()

    async def create_all() -> None:
        numbers = iter(range(OBJECTS))
        await asyncio.gather(*(create(numbers) for _ in range(32)))

    start = time.monotonic()
    asyncio.run(create_all())
    record_property("objects", OBJECTS)
    record_property("creates in a second", round(OBJECTS / (time.monotonic() - start)))
    started.end(signal.SIGKILL)
    start = time.monotonic()
    again = Process(started.directory, started.port)
    try:
        assert again.ask("GET", f"{MAPS}?limit=1")[0] == 200
        record_property("seconds until the first list is answered", round(time.monotonic() - start, 2))
        record_property("of these, processor time", cpu_seconds_of(again.process.pid))
        assert again.cpu_seconds < CPU_SECONDS
        assert len(again.ask("GET", MAPS)[1]["items"]) == OBJECTS
    finally:
        again.end(signal.SIGKILL)


# -- SIGTERM


def test_sigterm_ends_a_thousand_watches_with_whole_events(tmp_path: Path, port: int) -> None:
    with many_files(WATCHES + 500), contextlib.ExitStack() as stack:
        server = Process(tmp_path, port)
        stack.callback(lambda: server.process.poll() is None and server.end(signal.SIGKILL))
        peers = []
        for _ in range(WATCHES):
            peer = stack.enter_context(socket.create_connection(("127.0.0.1", port), HANGS_AFTER))
            peer.sendall(f"GET {MAPS}?watch=1 HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            peers.append(peer)
        for peer in peers:
            assert peer.recv(65536).startswith(b"HTTP/1.1 200 ")
        writers = [Writer(server, n, {}) for n in range(WRITERS)]
        for writer in writers:
            writer.start()
        eventually(partial(have_written, writers))
        output = stop(server, signal.SIGTERM)
        assert server.process.returncode == 0
        assert "Traceback" not in output, output
        for peer in peers:
            received = b""
            while piece := peer.recv(65536):
                received += piece
            assert received.endswith(b"0\r\n\r\n")  # whole events, and the end of the stream
        for writer in writers:
            writer.join()
            assert writer.failure is None, writer.failure
        left = sorted(path.name for path in tmp_path.rglob("*") if path.is_file())
        assert left == [".gitignore", "noxu.db"]  # no kubeconfig, no write-ahead log, nothing temporary
        assert list((tmp_path / "tmp").iterdir()) == []
        again = Process(tmp_path, port)
        stack.callback(again.end, signal.SIGKILL)
        items = again.ask("GET", MAPS)[1]["items"]
        stored = {item["metadata"]["name"]: item["data"]["v"] for item in items if "v" in item["data"]}
        for writer in writers:
            for ack in {ack.name: ack for ack in writer.acks}.values():
                if ack.name != writer.in_flight:
                    assert stored.get(ack.name) == ack.value


def test_a_second_server_on_the_same_file_is_refused_and_the_first_goes_on(
    started: Process, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    cpu, start = _cpu_seconds_of_children(), time.monotonic()
    refused = subprocess.run(
        [sys.executable, "-m", "noxu", "serve", "--data", tmp_path / "data", "--port", str(free_port())],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=HANGS_AFTER,
        check=False,
    )
    record_property("seconds until the process of a second server has ended", round(time.monotonic() - start, 2))
    assert _cpu_seconds_of_children() - cpu < CPU_SECONDS
    assert refused.returncode != 0
    assert "in use by another process" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert started.ask("GET", MAPS)[0] == 200


def test_a_server_that_is_stopped_right_after_its_start_leaves_only_its_data(started: Process, tmp_path: Path) -> None:
    assert "Traceback" not in stop(started, signal.SIGINT)
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == [".gitignore", "noxu.db"]
