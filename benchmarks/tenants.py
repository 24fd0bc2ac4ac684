"""Measures tenants over HTTP: `python -m benchmarks.tenants [FILE ...] [--tenants 200] [--churn 10000] [--tls]`.

Starts `noxu serve` with the manifests, and prints, beside the bounds that they have to keep:

    create    the time of a POST until its answer, which comes when the tenant serves, and the processor time of the server
    first     the first list in a new tenant
    memory    what the tenants cost together: the growth of the resident memory, after the first one has made the template
    gone      the time from `kill -9` of the process that holds a tenant until its port is free
    churn     files, threads and memory of the server before and after so many were created, asked and deleted; half of
              them held by a connection that is closed

On Linux only. Times are wall clock, the median and the worst; other load changes them.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import signal
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from benchmarks.processes import processor_seconds, resident_bytes
from noxu.commands.api_client import endpoint_from_kubeconfig, ssl_context

ROOT: Final = Path(__file__).parents[1]
PATH: Final = "/_noxu/tenants"
NAMESPACES: Final = "/api/v1/namespaces"
READY_WITHIN: Final = 120.0  # seconds
BOUNDS: Final = {"create": 5.0, "memory": 60.0, "gone": 100.0}
"""Milliseconds, megabytes for 200, milliseconds."""
HOLDER: Final = """
import json, sys, time, urllib.request
answer = urllib.request.urlopen(sys.argv[1], data=b'{"hold": true}')
print(json.loads(answer.readline())["url"], flush=True)
time.sleep(3600)
"""


class Client:
    """A client of the server, which keeps its connection."""

    def __init__(self, url: str, context: ssl.SSLContext | None = None) -> None:
        parts = urlsplit(url)
        assert parts.hostname is not None
        self.connection = (
            http.client.HTTPConnection(parts.hostname, parts.port)
            if context is None
            else http.client.HTTPSConnection(parts.hostname, parts.port, context=context)
        )

    def ask(self, method: str, path: str, value: Any = None) -> Any:
        body = None if value is None else json.dumps(value)
        self.connection.request(method, path, body, {"Content-Type": "application/json"})
        answer = self.connection.getresponse()
        content = answer.read()
        if answer.status >= 300:
            raise SystemExit(f"{method} {path}: {answer.status} {content!r}")
        return json.loads(content)

    def close(self) -> None:
        self.connection.close()


class Served:
    """A server that runs in a process of its own."""

    def __init__(self, process: subprocess.Popen[bytes], kubeconfig: Path) -> None:
        endpoint = endpoint_from_kubeconfig(kubeconfig)
        self.pid, self.url = process.pid, endpoint.url
        self.context = ssl_context(endpoint) if endpoint.url.startswith("https") else None
        self.client = Client(self.url, self.context)

    def processor(self) -> float:
        return processor_seconds([self.pid])

    def memory(self) -> float:
        """Megabytes."""
        return resident_bytes([self.pid]) / 1e6

    def count(self, what: str) -> int:
        """The number of its files (`fd`), or threads (`task`)."""
        return len(list(Path(f"/proc/{self.pid}/{what}").iterdir()))


@contextmanager
def served(files: Sequence[str], *, tls: bool) -> Iterator[Served]:
    with tempfile.TemporaryDirectory() as directory:
        kubeconfig = Path(directory) / "kubeconfig"
        command = [sys.executable, "-m", "noxu", "serve", "--memory", "--port", "0", "--quiet"]
        command += [
            "--kubeconfig",
            str(kubeconfig),
            "--max-tenants",
            "100000",
            "--keep-going",
            *(["--tls"] if tls else []),
            *files,
        ]
        environment = os.environ | {"PYTHONPATH": f"{ROOT / 'apiserver'}{os.pathsep}{ROOT / 'storage'}"}
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment)
        try:
            deadline = time.monotonic() + READY_WITHIN
            while not kubeconfig.exists():
                if process.poll() is not None or time.monotonic() > deadline:
                    raise SystemExit("the server does not start")
                time.sleep(0.01)
            yield Served(process, kubeconfig)
        finally:
            process.terminate()
            process.wait()


def creations(server: Served, count: int) -> list[str]:
    """Create tenants, print what that costs, and return their names."""
    seconds, first, names = [], [], []
    began, memory = server.processor(), server.memory()
    urls = []
    for _ in range(count):
        start = time.perf_counter()
        made = server.client.ask("POST", PATH, {"ttl": "1h"})
        seconds.append(time.perf_counter() - start)
        names.append(made["name"])
        urls.append(made["url"])
    processor, grown = server.processor() - began, server.memory() - memory
    shown("create", seconds, BOUNDS["create"], f"processor {1000 * processor / count:.2f} ms")
    print(f"memory  {count} tenants {grown:8.1f} MB   bound {BOUNDS['memory'] * count / 200:g} MB")
    if server.context is None:
        for url in urls[: min(count, 50)]:
            client = Client(url)
            start = time.perf_counter()
            client.ask("GET", NAMESPACES)
            first.append(time.perf_counter() - start)
            client.close()
        shown("first", first)
        print(f"memory  {len(first)} of them asked {server.memory() - memory:.1f} MB")
    return names


def shown(name: str, seconds: Sequence[float], bound: float = 0.0, more: str = "") -> None:
    milliseconds = [1000 * each for each in seconds]
    limit = f"bound {bound:g} ms" if bound else ""
    print(
        f"{name:7} median {statistics.median(milliseconds):8.2f} ms   worst {max(milliseconds):8.2f} ms   {limit}  {more}"
    )


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def killed(server: Served, times: int) -> None:
    """Kill processes that hold tenants, and print how long these live on."""
    seconds = []
    for _ in range(times):
        command = [sys.executable, "-c", HOLDER, f"{server.url}{PATH}"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
            assert holder.stdout is not None
            port = urlsplit(holder.stdout.readline().strip()).port
            assert port is not None
            holder.send_signal(signal.SIGKILL)
            start = time.perf_counter()
            while not is_free(port):
                time.sleep(0.0005)
            seconds.append(time.perf_counter() - start)
    shown("gone", seconds, BOUNDS["gone"])


def churn(server: Served, count: int) -> None:
    """Create and delete tenants, and print what is left of them."""

    def state() -> str:
        return f"files {server.count('fd'):4}   threads {server.count('task'):3}   memory {server.memory():7.1f} MB"

    print(f"before  {state()}")
    start = time.perf_counter()
    for number in range(count):
        held = Client(server.url, server.context) if number % 2 else None
        if held is None:
            made = server.client.ask("POST", PATH, {})
        else:
            held.connection.request("POST", PATH, '{"hold": true}', {"Content-Type": "application/json"})
            answer = held.connection.getresponse()
            made = json.loads(answer.readline())
        if server.context is None:
            client = Client(made["url"])
            client.ask("GET", NAMESPACES)
            client.close()
        if held is None:
            server.client.ask("DELETE", f"{PATH}/{made['name']}")
        else:
            answer.close()
            held.close()
        if (number + 1) % max(count // 5, 1) == 0:
            print(f"{number + 1:6}  {state()}")
    seconds = time.perf_counter() - start
    while server.client.ask("GET", PATH)["items"]:
        time.sleep(0.01)
    print(f"after   {state()}   {1000 * seconds / count:.2f} ms each")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", help="manifests of the server")
    parser.add_argument("--tenants", type=int, default=200)
    parser.add_argument("--churn", type=int, default=10_000)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--tls", action="store_true")
    options = parser.parse_args()
    with served(options.files, tls=options.tls) as server:
        start = time.perf_counter()
        for _ in range(3):
            made = server.client.ask("POST", PATH, {})
            if server.context is None:
                client = Client(made["url"])
                client.ask("GET", NAMESPACES)
                client.close()
            server.client.ask("DELETE", f"{PATH}/{made['name']}")
        print(f"three   {1000 * (time.perf_counter() - start):.1f} ms, with the template")
        for name in creations(server, options.tenants):
            server.client.ask("DELETE", f"{PATH}/{name}")
        print(f"deleted memory {server.memory():.1f} MB")
        if not options.tls:
            killed(server, options.kills)
        churn(server, options.churn)


if __name__ == "__main__":
    main()
