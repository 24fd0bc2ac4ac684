"""Measures what open watches cost: the rate of writes with many watches, compared with none.

    python -m benchmarks.watchers [--watchers N] [--seconds S]

Prints the ratio of the rate with watches to the rate without, measured before and after, and the memory of an open
watch. Idle watches are of another namespace. Following watches are read continuously. Stalled watches are never read:
their buffers fill up, and the server closes them five seconds later.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import re
import resource
import selectors
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.processes import resident_bytes

ROOT = Path(__file__).parents[1]
WRITTEN = "/api/v1/namespaces/default/configmaps"
OTHER = "/api/v1/namespaces/kube-system/configmaps"


def server(*store: str) -> contextlib.AbstractContextManager[tuple[int, int]]:
    """Start a server that stores in memory, unless options say where; yield its port and process id."""
    return started(sys.executable, "-m", "noxu", "serve", *(store or ("--memory",)), "--port", "0")


@contextlib.contextmanager
def started(*command: str) -> Iterator[tuple[int, int]]:
    """Start a command that is a server; yield its port, which the first line ends with, and its process id."""
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        found = re.search(r":(\d+)$", process.stdout.readline().strip())
        assert found
        try:
            yield int(found[1]), process.pid
        finally:
            process.terminate()


def writes_per_second(port: int, seconds: float) -> float:
    """The rate of one client that waits for each answer and writes objects of 2 KB."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "written"}, "data": {"text": ""}}
    headers = {"Content-Type": "application/json"}
    connection.request("POST", WRITTEN, json.dumps(body), headers)
    connection.getresponse().read()
    count = 0
    start = time.monotonic()
    while time.monotonic() - start < seconds:
        body["data"] = {"text": f"{count:8}" * 250}
        connection.request("PUT", f"{WRITTEN}/written", json.dumps(body), headers)
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 200, answer.status
        count += 1
    connection.close()
    return count / (time.monotonic() - start)


def open_watches(port: int, count: int, path: str) -> list[socket.socket]:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", f"{path}?limit=1")
    now = json.loads(connection.getresponse().read())["metadata"]["resourceVersion"]
    connection.close()
    peers = []
    for _ in range(count):
        peer = socket.socket()
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        peer.connect(("127.0.0.1", port))
        peer.sendall(f"GET {path}?watch=1&resourceVersion={now} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        peers.append(peer)
    return peers


def follow(peers: list[socket.socket], stop: threading.Event) -> None:
    """Read from all connections until `stop` is set."""
    with selectors.DefaultSelector() as selector:
        for peer in peers:
            selector.register(peer, selectors.EVENT_READ)
        while not stop.is_set():
            for key, _ in selector.select(0.1):
                assert isinstance(key.fileobj, socket.socket)
                key.fileobj.recv(1 << 16)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--watchers", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=3.0)
    options = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with server() as (port, pid):
        writes_per_second(port, 1)
        for name in ("idle", "following", "stalled"):
            before, used = writes_per_second(port, options.seconds), resident_bytes([pid])
            peers = open_watches(port, options.watchers, OTHER if name == "idle" else WRITTEN)
            time.sleep(1)
            each = (resident_bytes([pid]) - used) / options.watchers / 1024
            stop = threading.Event()
            reader = threading.Thread(target=follow, args=(peers, stop))
            if name == "following":
                reader.start()
            rate = writes_per_second(port, options.seconds)
            stop.set()
            if name == "following":
                reader.join()
            for peer in peers:
                peer.close()
            time.sleep(1)
            without = (before + writes_per_second(port, options.seconds)) / 2
            print(
                f"{options.watchers} {name:10} {rate:6.0f} writes/s, {without:6.0f} without: {rate / without:4.0%}; "
                f"{each:3.0f} KiB for each open watch"
            )


if __name__ == "__main__":
    main()
