"""Whether programs are at work: what is concluded from states of processes, and from which moment on silence counts."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from noxu import Noxu
from noxu.control import peer_sockets, program_work
from noxu.control.program_sleep import TICKS
from noxu.control.program_work import LONGEST, ProcessState, WorkStreak
from tests.optional import needs_platform
from tests.rows import rows
from tests.timing import eventually

on_linux = needs_platform("/proc", present=Path("/proc/self/task").exists())
SLEEPS, PAUSED, ZOMBIE = ProcessState("SSS", 7), ProcessState("TTT", 7), ProcessState("Z", 7)


@rows(
    "before, now, unread, found",
    [
        ({1: SLEEPS}, {1: SLEEPS}, {}, ""),
        ({1: SLEEPS}, {1: ProcessState("SRS", 7)}, {}, "process 1 runs, or waits for a processor"),
        ({1: SLEEPS}, {1: ProcessState("SSD", 7)}, {}, "process 1 runs, or waits for a processor"),
        ({1: SLEEPS}, {1: ProcessState("SSS", 8)}, {}, "process 1 has computed"),
        ({1: SLEEPS}, {1: SLEEPS, 2: SLEEPS}, {}, "process 2 has started"),
        ({1: SLEEPS, 2: SLEEPS}, {1: SLEEPS}, {}, "process 2 has ended"),
        ({1: SLEEPS, 2: SLEEPS}, {1: SLEEPS, 2: ZOMBIE}, {}, ""),
        ({1: SLEEPS}, {1: SLEEPS}, {1: 120}, "process 1 has not read 120 bytes that it was sent"),
        ({1: PAUSED}, {1: PAUSED}, {1: 120}, ""),
        ({1: ProcessState("SRS", 7)}, {1: ProcessState("TTT", 9)}, {}, ""),
        ({1: ProcessState("R", 7)}, {1: ZOMBIE}, {}, ""),
        (None, {1: SLEEPS}, {}, ""),
        (None, {1: ProcessState("R", 1)}, {}, "process 1 runs, or waits for a processor"),
        (None, {1: SLEEPS}, {1: 1}, "process 1 has not read 1 bytes that it was sent"),
        (None, {}, {}, ""),
    ],
)
def test_a_program_is_at_work(
    before: dict[int, ProcessState] | None, now: dict[int, ProcessState], unread: dict[int, int], found: str
) -> None:
    assert program_work.work(before, now, unread) == found


SILENT_SINCE, QUIET = 10.0, 0.5


@rows(
    "looks, since",
    [
        ([], SILENT_SINCE),
        ([(10.1, False), (10.2, False)], SILENT_SINCE),
        ([(10.1, True)], 10.1),
        ([(10.1, True), (10.2, False), (10.3, True), (10.4, False)], 10.3),
        ([(10.1, True), (10.6, False)], SILENT_SINCE),  # the quiet time has passed
        ([(10.1, True), (10.7, False), (12.0, True)], 12.0),
        ([(10.0 + n / 10, True, n / 10) for n in range(70)], 10.0 + LONGEST),  # it spins
        ([(10.0 + n / 10, True, n / 100) for n in range(70)], 16.9),  # it waits for a processor most of the time
        ([(9.0, True)], SILENT_SINCE),  # what others have done since is what silence counts from
        ([*((5.0 + n / 10, True) for n in range(60)), (11.0, True)], 11.0),  # others have given it something to do
    ],
)
def test_silence_counts_from_the_last_work_that_counts(looks: list[tuple[Any, ...]], since: float) -> None:
    streak: WorkStreak | None = None
    for now, at_work, *computed in looks:
        silent_since = SILENT_SINCE if now >= SILENT_SINCE else 0.0
        ticks = round(sum(computed) * TICKS)
        streak = program_work.next_streak(streak, now, silent_since, QUIET, at_work=at_work, ticks=ticks)
    assert program_work.quiet_since(SILENT_SINCE, streak) == pytest.approx(since)


# -- what the kernel says ---------------------------------------------------------------------------------------------


@contextmanager
def running(code: str) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stdin=subprocess.PIPE, process_group=0
    ) as process:
        try:
            yield process
        finally:
            os.killpg(process.pid, signal.SIGKILL)


@on_linux
def test_processes_are_looked_at_with_their_children() -> None:
    child = "import sys; print(flush=True); sys.stdin.read()"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    with running(code) as process:
        assert process.stdout is not None
        process.stdout.readline()

        def states() -> list[str]:
            return [state.threads for state in program_work.processes([process.pid]).values()]

        eventually(lambda: states() == ["S", "S"])
        os.killpg(process.pid, signal.SIGSTOP)
        eventually(lambda: states() == ["T", "T"])
    assert program_work.processes([process.pid]) == {}


@on_linux
def test_what_a_client_has_not_read_is_known() -> None:
    for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        try:
            listener = socket.create_server((host, 0), family=family)
        except OSError:  # without IPv6
            continue
        with listener, socket.create_connection(listener.getsockname()[:2]) as client:
            served, peer = listener.accept()
            with served:
                served.sendall(b"12345")
                connections = [(peer, served.getsockname()), ("", served.getsockname()), (("127.0.0.1", 1), peer)]
                [found] = peer_sockets.find(connections)
                assert found == (os.fstat(client.fileno()).st_ino, 5)
                assert peer_sockets.inode(peer, served.getsockname()) == found.inode
                assert program_work.client_sockets(connections) == [found]
                assert program_work.client_sockets(connections * program_work.MAX_CONNECTIONS) == []
                assert program_work.unread_bytes([found], [os.getpid(), 0]) == {os.getpid(): 5, 0: 0}
                client.recv(5)
                assert program_work.unread_bytes(peer_sockets.find(connections), [os.getpid()]) == {}
            client.recv(1)
            assert peer_sockets.find(connections) == []  # the server has closed it


@on_linux
def test_a_program_that_computes_is_waited_for() -> None:
    code = """
import json, os, time, urllib.request
while time.process_time() < 0.2:
    pass
url = os.environ["NOXU_URL"] + "/api/v1/namespaces/default/configmaps"
value = {"metadata": {"name": "made"}}
asked = urllib.request.Request(url, json.dumps(value).encode(), {"Content-Type": "application/json"})
urllib.request.urlopen(asked).read()
time.sleep(600)
"""
    with Noxu() as noxu, noxu.program([sys.executable, "-c", code]) as program:
        eventually(lambda: program.pid)
        noxu.idle(quiet=0.05, timeout=60)
        assert noxu.get("configmap", "made", namespace="default")
