"""Until when programs sleep: what is concluded from the calls that threads wait in, and what the kernel says of real ones."""

from __future__ import annotations

import math
import platform
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from noxu.control import peer_sockets, program_sleep
from noxu.control.program_sleep import AWAKE, CALLS, NEVER, ProgramSleep, ThreadState, Timeout
from noxu.exploration.server import ExploredServer
from tests.optional import needs_platform
from tests.rows import rows
from tests.timing import eventually

POINTS = {0x7F00: (2, 500_000_000), 0x7E00: (60, 0)}
PLACE = "0x7ffc5a27ed38 0x4944c3"  # of the stack and of the program, at the end of each line


@rows(
    "machine, line, expected",
    [
        ("x86_64", "running", Timeout(AWAKE)),
        ("x86_64", f"-1 {PLACE}", Timeout(AWAKE)),
        (
            "x86_64",
            f"45 0x3 0x7f01 0x10 0x0 0x0 0x0 {PLACE}",
            Timeout(AWAKE),
        ),  # recvfrom, which may have a timeout of its own
        ("x86_64", f"0 0x0 0x7ffe 0x1 0x0 0x3 0x0 {PLACE}", Timeout(NEVER)),
        ("x86_64", f"34 0x0 0x0 0x2 0x7fa0 0xe6c8 0xe6e8 {PLACE}", Timeout(NEVER)),
        ("x86_64", f"281 0x4 0x7f13 0x80 0x1f1 0x0 0x0 {PLACE}", Timeout(0.497)),
        ("x86_64", f"281 0x4 0x7f13 0x80 0xffffffff 0x0 0x0 {PLACE}", Timeout(NEVER)),
        ("x86_64", f"232 0x4 0x7f13 0x80 0xffffffffffffffff 0x0 0x0 {PLACE}", Timeout(NEVER)),
        ("x86_64", f"7 0x7fe2 0x1 0x36ee80 0x0 0x0 0x0 {PLACE}", Timeout(3600.0)),
        ("x86_64", f"202 0x2712 0x80 0x0 0x0 0x0 0x0 {PLACE}", Timeout(NEVER)),
        ("x86_64", f"202 0x2712 0x80 0x0 0x7f00 0x0 0x0 {PLACE}", Timeout(2.5)),
        ("x86_64", f"202 0x2712 0x80 0x0 0x7e00 0x0 0x0 {PLACE}", Timeout(NEVER)),  # the monitor of Go's runtime
        ("x86_64", f"230 0x1 0x0 0x7e00 0x0 0x0 0x0 {PLACE}", Timeout(60.0)),
        ("x86_64", f"202 0x2712 0x89 0x0 0x7f00 0x0 0xffffffff {PLACE}", Timeout(2.5, clock=1)),
        ("x86_64", f"202 0x2712 0x189 0x0 0x7f00 0x0 0xffffffff {PLACE}", Timeout(2.5, clock=0)),
        ("x86_64", f"202 0x2712 0x189 0x0 0x0 0x0 0xffffffff {PLACE}", Timeout(NEVER)),
        ("x86_64", f"202 0x2712 0x86 0x0 0x7f00 0x0 0x0 {PLACE}", Timeout(AWAKE)),  # FUTEX_LOCK_PI
        ("x86_64", f"202 0x2712 0x80 0x0 0x6666 0x0 0x0 {PLACE}", Timeout(AWAKE)),  # which cannot be read
        ("x86_64", f"230 0x1 0x1 0x7f00 0x0 0x0 0x0 {PLACE}", Timeout(2.5, clock=1)),
        ("x86_64", f"230 0x1 0x0 0x7f00 0x0 0x0 0x0 {PLACE}", Timeout(2.5)),
        ("x86_64", f"23 0x1 0x0 0x0 0x0 0x7f00 0x0 {PLACE}", Timeout(502.0)),  # a timeval
        ("aarch64", f"22 0x4 0x7f13 0x80 0x1f1 0x0 0x0 {PLACE}", Timeout(0.497)),
        ("aarch64", f"98 0x2712 0x80 0x0 0x7f00 0x0 0x0 {PLACE}", Timeout(2.5)),
        ("riscv64", f"22 0x4 0x7f13 0x80 0xffffffff 0x0 0x0 {PLACE}", Timeout(AWAKE)),
    ],
)
def test_how_long_a_call_sleeps(machine: str, line: str, expected: Timeout) -> None:
    assert program_sleep.timeout(line, machine, POINTS) == expected


@rows(
    "timeout, since, expected",
    [
        (Timeout(0.5), 100.0, 100.5),
        (Timeout(NEVER), 100.0, NEVER),
        (Timeout(AWAKE), 100.0, AWAKE),
        (Timeout(130.0, clock=1), 100.0, 130.0),
        (Timeout(1_000_130.0, clock=0), 100.0, 130.0),
        (Timeout(130.0, clock=9), 100.0, AWAKE),
    ],
)
def test_when_a_call_ends_by_itself(timeout: Timeout, since: float, expected: float) -> None:
    assert program_sleep.wakes(timeout, since, {0: 1_000_000.0, 1: 0.0}) == expected


@rows(
    "before, since, now, until, latest",
    [
        (None, 40.0, 100.0, 100.0, 160.0),  # it has fallen asleep between 40 and 100
        (ThreadState(6, 40.0, 41.0, 42.0), 90.0, 100.0, 150.0, 160.0),
        (ThreadState(7, 40.0, 100.0, 130.0), 40.0, 120.0, 100.0, 130.0),  # the same call as at the look before
    ],
)
def test_between_which_moments_a_thread_wakes(
    before: ThreadState | None, since: float, now: float, until: float, latest: float
) -> None:
    state = program_sleep.thread_state(before, 7, since, Timeout(60.0), now, {})
    assert (state.until, state.latest) == (until, latest)


def thread(slices: int, until: float = NEVER) -> ThreadState:
    return ThreadState(slices, 0.0, until)


@rows(
    "before, now, expected",
    [
        ({1: thread(7), 2: thread(9)}, {1: thread(7), 2: thread(9)}, True),
        ({1: thread(7), 2: thread(9)}, {1: thread(7), 2: thread(9, 5.0)}, True),
        ({1: thread(7), 2: thread(9)}, {1: thread(7), 2: thread(10)}, False),  # it may have woken the first one
        ({1: thread(7, AWAKE)}, {1: thread(7)}, False),  # it ran until after the first look
        ({1: thread(7)}, {1: thread(7, AWAKE)}, False),
        ({}, {1: thread(7)}, False),
        ({1: thread(7), 2: thread(9)}, {1: thread(7)}, False),
    ],
)
def test_whether_all_threads_have_slept(
    before: Mapping[int, ThreadState], now: Mapping[int, ThreadState], *, expected: bool
) -> None:
    assert program_sleep.have_slept(before, now) == expected


# -- real programs ----------------------------------------------------------------------------------------------------


def _is_shown() -> bool:
    """Whether this kernel shows the calls of threads, and this machine's are known."""
    try:
        Path("/proc/self/syscall").read_text()
    except OSError:
        return False
    return platform.machine() in CALLS and Path("/proc/self/schedstat").exists()


on_linux = needs_platform("/proc/self/syscall", present=_is_shown())
SLEEPERS = {
    "a thread that waits for another one": ("import threading; threading.Event().wait()", math.inf),
    "it sleeps for an hour": ("import time; time.sleep(3600)", 3600.0),
    "one thread sleeps for a shorter time": (
        "import threading, time; threading.Timer(1800, print).start(); time.sleep(3600)",
        1800.0,
    ),
    "an event loop with a timer": ("import asyncio; asyncio.run(asyncio.sleep(600))", 600.0),
}


@on_linux
@rows("code, seconds", list(SLEEPERS.values()), ids=list(SLEEPERS))
def test_until_when_a_program_sleeps(code: str, seconds: float) -> None:
    began, sleep = time.monotonic(), ProgramSleep()
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.DEVNULL) as process:
        try:

            def until() -> float:
                sleep.look([process.pid])
                return sleep.until(began)

            eventually(lambda: until() > began + 100)
            assert sleep.until(time.monotonic()) == AWAKE  # something may have come since the look
            found = until()
            assert found == seconds or began - 1 < found - seconds < time.monotonic()
        finally:
            process.kill()


OTHERWISE = {
    "a timer of the kernel": "import ctypes, time; ctypes.CDLL(None).timerfd_create(1, 0); print(flush=True); time.sleep(600)",
    "a connection with another program": "import socket, time; a = socket.create_connection(('127.0.0.1', {port})); print(flush=True); time.sleep(600)",
}
LISTENS = "import socket, time; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True); a = s.accept(); time.sleep(600)"


@on_linux
@rows("code", list(OTHERWISE.values()), ids=list(OTHERWISE))
def test_what_else_may_wake_a_program(code: str) -> None:
    with subprocess.Popen([sys.executable, "-c", LISTENS], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        words = [sys.executable, "-c", code.format(port=other.stdout.readline().strip())]
        with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
            try:
                assert process.stdout is not None
                process.stdout.readline()  # it has begun
                sleep = ProgramSleep()

                def is_asleep() -> bool:
                    sleep.look([process.pid])
                    return sleep.is_asleep

                eventually(is_asleep)
                assert sleep.until(0.0) == AWAKE
            finally:
                process.kill()
                other.kill()


CONNECTS = "import socket, time; a = socket.create_connection(('127.0.0.1', {port})); time.sleep(600)"


@on_linux
def test_a_connection_with_the_server_is_known_without_a_table_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def goes_through_all() -> dict[tuple[str, str], int]:
        raise AssertionError("the kernel goes through all sockets that there could be")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        words = [sys.executable, "-c", CONNECTS.format(port=listener.getsockname()[1])]
        with subprocess.Popen(words) as process:
            try:
                connection, client = listener.accept()
                with connection:
                    [found] = peer_sockets.find([(client, connection.getsockname())])
                    sleep = ProgramSleep()

                    def is_asleep() -> bool:
                        sleep.look([process.pid], frozenset([found.inode]))
                        return sleep.is_asleep

                    eventually(is_asleep)
                    monkeypatch.setattr(program_sleep, "_established", goes_through_all)
                    assert sleep.until(0.0) > time.monotonic() + 500
            finally:
                process.kill()


@on_linux
@pytest.mark.timeout(120)
def test_silence_is_not_waited_for_if_it_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would take an hour. The server itself looks at what it needs every few seconds, which is left out here."""
    monkeypatch.setattr(ExploredServer, "_next_own", lambda _: math.inf)
    with (
        ExploredServer() as server,
        server.program([sys.executable, "-c", "import time; time.sleep(36000)"]) as program,
    ):
        eventually(lambda: program.pid)
        server.await_silence(3600, 3600)
        monkeypatch.setattr(ExploredServer, "_next_own", lambda _: 1800.0)
        eventually(
            lambda: server.is_silent_until(time.monotonic() + 1000)
        )  # on a busy machine a look may take too long
        assert not server.is_silent_until(time.monotonic() + 2000)
