"""R10: thousands of watches. Each costs little memory, and an event reaches all of them.

NOXU_WATCHES is their number, 10,000 at most (`http/watch_quota.py`). The limit of open files of this process and of the server is raised as far as necessary.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.faults.server_process import MAPS, Process, exchange, many_files
from tests.timing import HANGS_AFTER, cpu_seconds_of

WATCHES = int(os.environ.get("NOXU_WATCHES", "1000"))
FIRST = 20  # watches whose memory is not measured
EVENTS = 3
MEMORY = 48 * 1024  # bytes for each watch
CPU_SECONDS = 0.001  # of an event for each watch; it takes a tenth
BESIDES = 1_000  # open files besides the watches


@contextlib.contextmanager
def opened(port: int, count: int) -> Iterator[list[socket.socket]]:
    """Watches that have been answered."""
    with contextlib.ExitStack() as stack:
        peers = []
        for start in range(0, count, 200):  # as many as wait to be accepted
            some = []
            for _ in range(min(200, count - start)):
                peer = stack.enter_context(socket.create_connection(("127.0.0.1", port), HANGS_AFTER))
                peer.sendall(f"GET {MAPS}?watch=1&resourceVersion=1 HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
                some.append(peer)
            for peer in some:
                assert peer.recv(65536).startswith(b"HTTP/1.1 200 ")
            peers += some
        yield peers


def until_all_have(peers: list[socket.socket], text: bytes) -> dict[socket.socket, bytes]:
    """Read from all connections until each has received the text. What each has received."""
    received = dict.fromkeys(peers, b"")
    with selectors.DefaultSelector() as selector:
        for peer in peers:
            selector.register(peer, selectors.EVENT_READ)
        while selector.get_map():
            ready = selector.select(HANGS_AFTER)
            assert ready, f"{len(selector.get_map())} watches wait for an event"
            for key, _ in ready:
                assert isinstance(key.fileobj, socket.socket)
                piece = key.fileobj.recv(65536)
                assert piece, "a watch has ended"
                received[key.fileobj] += piece
                if text in received[key.fileobj]:
                    selector.unregister(key.fileobj)
    return received


@pytest.mark.timeout(300 + WATCHES // 10)
def test_an_event_reaches_all_of_thousands_of_watches_each_of_which_costs_little(
    tmp_path: Path, port: int, record_property: Callable[[str, object], None]
) -> None:
    with many_files(WATCHES + BESIDES), contextlib.ExitStack() as stack:
        server = Process(tmp_path, port)
        stack.callback(lambda: server.process.poll() is None and server.end(signal.SIGKILL))
        with opened(port, FIRST) as first, contextlib.closing(server.connect()) as connection:
            assert exchange(connection, "GET", MAPS)[0] == 200  # what is needed once is there now
            before = server.resident_bytes()
            others = stack.enter_context(opened(port, WATCHES - FIRST))
            each = (server.resident_bytes() - before) / len(others)
            peers = first + others
            record_property("watches", WATCHES)
            record_property("KiB for each watch", round(each / 1024, 1))
            assert each <= MEMORY
            elapsed = []
            cpu = cpu_seconds_of(server.process.pid)
            for number in range(EVENTS):
                value = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"event{number}"}}
                start = time.monotonic()
                assert exchange(connection, "POST", MAPS, value)[0] == 201
                answered = time.monotonic()
                received = until_all_have(peers, b'"name":"event%d"' % number)
                elapsed.append((answered - start, time.monotonic() - start))
                for body in received.values():
                    assert body.count(b'"type":"ADDED"') == 1
            cpu = (cpu_seconds_of(server.process.pid) - cpu) / EVENTS
        record_property("seconds of processor time for an event", round(cpu, 2))
        record_property("seconds until all have an event", round(min(total for _, total in elapsed), 2))
        record_property("seconds until its write is answered", round(max(write for write, _ in elapsed), 3))
        assert cpu <= CPU_SECONDS * WATCHES
        output = server.end(signal.SIGTERM)
        assert "Traceback" not in output, output
