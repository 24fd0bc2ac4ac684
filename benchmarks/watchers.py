"""What watchers cost: the rate of writes without any, with many that follow, and with many that take nothing.

    python -m benchmarks.watchers [--watchers N] [--seconds S]

Prints the rates as ratios to the one without watches, measured before and after each, and the memory of an open watch.
Idle watches are of another namespace; following ones are read all the time; stalled ones are never read, so they are
first filled up, and cut off five seconds later.
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

ROOT = Path(__file__).parents[1]
MAPS = "/api/v1/namespaces/default/configmaps"
OTHERS = "/api/v1/namespaces/kube-system/configmaps"


@contextlib.contextmanager
def server() -> Iterator[tuple[int, int]]:
    """The port and the process of a server in memory."""
    command = [sys.executable, "-m", "apiserver", "serve", "--memory", "--port", "0"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        found = re.search(r":(\d+)$", process.stdout.readline().strip())
        assert found
        try:
            yield int(found[1]), process.pid
        finally:
            process.terminate()


def writes_per_second(port: int, seconds: float) -> float:
    """One client that waits for each answer; objects of 2 KB."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "written"}, "data": {"text": ""}}
    headers = {"Content-Type": "application/json"}
    connection.request("POST", MAPS, json.dumps(body), headers)
    connection.getresponse().read()
    count = 0
    began = time.monotonic()
    while time.monotonic() - began < seconds:
        body["data"] = {"text": f"{count:8}" * 250}
        connection.request("PUT", f"{MAPS}/written", json.dumps(body), headers)
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 200, answer.status
        count += 1
    connection.close()
    return count / (time.monotonic() - began)


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
    """Read what comes on all of them."""
    with selectors.DefaultSelector() as selector:
        for peer in peers:
            selector.register(peer, selectors.EVENT_READ)
        while not stop.is_set():
            for key, _ in selector.select(0.1):
                assert isinstance(key.fileobj, socket.socket)
                key.fileobj.recv(1 << 16)


def memory(pid: int) -> int:
    found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) * 1024 if found else 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--watchers", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=3.0)
    given = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with server() as (port, pid):
        writes_per_second(port, 1)
        for name in ("idle", "following", "stalled"):
            before, held = writes_per_second(port, given.seconds), memory(pid)
            peers = open_watches(port, given.watchers, OTHERS if name == "idle" else MAPS)
            time.sleep(1)
            each = (memory(pid) - held) / given.watchers / 1024
            stop = threading.Event()
            reader = threading.Thread(target=follow, args=(peers, stop))
            if name == "following":
                reader.start()
            rate = writes_per_second(port, given.seconds)
            stop.set()
            if name == "following":
                reader.join()
            for peer in peers:
                peer.close()
            time.sleep(1)
            without = (before + writes_per_second(port, given.seconds)) / 2
            print(
                f"{given.watchers} {name:10} {rate:6.0f} writes/s, {without:6.0f} without: {rate / without:4.0%}; "
                f"{each:3.0f} KiB more memory for each that is open"
            )


if __name__ == "__main__":
    main()
