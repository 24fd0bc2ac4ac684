"""R11: the server has no file descriptors left, and none remain open when it stops (datasette's test_fd_leak).

NOXU_STARTS is the number of starts and stops.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import aiohttp
import pytest

from noxu.config import Config
from noxu.process.running import new_loop_factory
from noxu.process.server import Server
from tests.faults.server_process import MAPS, Process, exchange
from tests.optional import needs_platform
from tests.timing import HANGS_AFTER, cpu_seconds_of, eventually

STARTS = int(os.environ.get("NOXU_STARTS", "15"))
LIMIT = 64  # open files of the server
CLIENTS = 100
SECONDS = float(os.environ.get("NOXU_EXHAUSTED_SECONDS", "3"))  # for which the server has no descriptors
LEAKED = 2  # descriptors and threads, however often a server is started
# Connections may take all descriptors: otherwise the limit on their number keeps some for the server, and it never lacks one.
LIMITED = f"""
import resource, runpy, sys
LOOP
from noxu.http import clients
clients.max_connections = lambda limits: {LIMIT}
sys.argv[0] = "noxu"
resource.setrlimit(resource.RLIMIT_NOFILE, ({LIMIT}, {LIMIT}))
runpy.run_module("noxu", run_name="__main__")
"""

proc = needs_platform("/proc", present=Path("/proc/self/fd").is_dir())


def open_files(pid: int | str = "self") -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


LOOPS = {"uvloop": "import uvloop", "asyncio's own loop": "sys.modules['uvloop'] = None"}


@pytest.fixture(params=LOOPS)
def limited(request: pytest.FixtureRequest, tmp_path: Path, port: int) -> Iterator[Process]:
    """A server on each of the event loops that it can use."""
    server = Process(tmp_path, port, ("-c", LIMITED.replace("LOOP", LOOPS[request.param])))
    yield server
    if server.process.poll() is None:
        server.end(signal.SIGKILL)


@proc
def test_without_file_descriptors_the_server_waits_and_serves_again_when_there_are_some(
    limited: Process, record_property: Callable[[str, object], None]
) -> None:
    pid = limited.process.pid
    value = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "a-"}}
    with contextlib.closing(limited.connect()) as connection, contextlib.ExitStack() as stack:
        assert exchange(connection, "POST", MAPS, value)[0] == 201
        for _ in range(CLIENTS):
            stack.enter_context(socket.create_connection(("127.0.0.1", limited.port), HANGS_AFTER))
        eventually(lambda: open_files(pid) >= LIMIT - 3)  # libuv keeps one for itself
        cpu, start = cpu_seconds_of(pid), time.monotonic()
        time.sleep(SECONDS)
        cpu, elapsed = cpu_seconds_of(pid) - cpu, time.monotonic() - start
        assert exchange(connection, "POST", MAPS, value)[0] == 201  # connections that exist are served
        assert exchange(connection, "GET", f"{MAPS}?limit=1")[0] == 200
    record_property("processor", f"{cpu / elapsed:.1%}")
    assert cpu / elapsed < 0.5, "a busy loop"
    start = time.monotonic()
    eventually(lambda: answers(limited))
    record_property("seconds until it answers again", round(time.monotonic() - start, 2))
    output = limited.end(signal.SIGTERM)
    assert limited.process.returncode == 0
    assert "Traceback" not in output, output
    record_property("lines in the log", len(output.splitlines()))
    assert len(output.splitlines()) < 20 + 2 * elapsed, output


def answers(server: Process) -> bool:
    try:
        return server.ask("GET", MAPS)[0] == 200
    except OSError:
        return False


async def serve_once(data: Path | None) -> None:
    async with Server(Config(port=0, data=data)) as server, aiohttp.ClientSession() as session:
        config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "a-"}}
        async with session.post(server.url + MAPS, json=config_map) as answer:
            assert answer.status == 201
        async with session.get(f"{server.url}{MAPS}?watch=1&resourceVersion=1") as answer:
            assert answer.status == 200
            await answer.content.readline()


@proc
@pytest.mark.parametrize("kept", ["in memory", "in a file"])
def test_a_process_that_starts_and_stops_servers_keeps_no_descriptors_and_no_threads(
    tmp_path: Path, kept: str, record_property: Callable[[str, object], None]
) -> None:
    data = tmp_path / "data" if kept == "in a file" else None

    def serve() -> None:
        with asyncio.Runner(loop_factory=new_loop_factory()) as runner:
            runner.run(serve_once(data))

    serve()  # what is opened once and for all
    gc.collect()
    files, threads = open_files(), threading.active_count()
    for _ in range(STARTS):
        serve()
    gc.collect()
    record_property("starts and stops", STARTS)
    record_property("descriptors more", open_files() - files)
    record_property("threads more", threading.active_count() - threads)
    assert open_files() - files <= LEAKED
    assert threading.active_count() - threads <= LEAKED


SOFTLY_LIMITED = f"""
import resource, runpy, sys
sys.argv[0] = "noxu"
_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, ({LIMIT}, hard))
runpy.run_module("noxu", run_name="__main__")
"""


@proc
def test_a_soft_limit_is_raised_to_the_hard_one(tmp_path: Path, port: int) -> None:
    server = Process(tmp_path, port, ("-c", SOFTLY_LIMITED))
    try:
        limits = Path(f"/proc/{server.process.pid}/limits").read_text()
        soft, hard = next(line.split()[3:5] for line in limits.splitlines() if line.startswith("Max open files"))
        assert soft == hard != str(LIMIT)
    finally:
        server.end(signal.SIGKILL)
