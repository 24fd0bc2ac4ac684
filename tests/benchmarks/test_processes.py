"""What is read of processes and of the machine."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks.processes import busy_seconds, machine, processor_seconds, resident_bytes, with_descendants
from tests import optional

pytestmark = optional.needs_platform("/proc", present=Path("/proc/self/task").exists())


def process(proc: Path, pid: int, children: str = "", status: str = "") -> None:
    (proc / str(pid) / "task" / str(pid)).mkdir(parents=True)
    (proc / str(pid) / "task" / str(pid) / "children").write_text(children)
    (proc / str(pid) / "status").write_text(status)


def test_a_server_is_its_processes_and_what_they_have_started(tmp_path: Path) -> None:
    process(tmp_path, 10, "11 12 ")
    process(tmp_path, 11, "13")
    process(tmp_path, 12)
    process(tmp_path, 13)
    process(tmp_path, 20)
    assert with_descendants([10, 20, 11, 99], tmp_path) == [10, 11, 12, 13, 20]


def test_memory_is_the_sum_of_what_is_resident(tmp_path: Path) -> None:
    process(tmp_path, 1, status="Name:\tVmRSS: 7 kB\nVmHWM:\t    9 kB\nVmRSS:\t     100 kB\n")
    process(tmp_path, 2, status="VmRSS:\t       1 kB\n")
    process(tmp_path, 3, status="Name:\tkernel\n")
    assert resident_bytes([1, 2, 3, 4], tmp_path) == 101 * 1024


def test_the_machine_is_busy_but_for_idle_and_waiting(tmp_path: Path) -> None:
    (tmp_path / "stat").write_text("cpu  1 2 3 1000 2000 4 5 6 100 100\ncpu0 9 9 9 9 9 9 9 9 9 9\n")
    assert busy_seconds(tmp_path) == 21 / os.sysconf("SC_CLK_TCK")


def test_the_machine(tmp_path: Path) -> None:
    (tmp_path / "cpuinfo").write_text("processor\t: 0\nmodel name\t: A processor\nmodel name\t: A processor\n")
    (tmp_path / "meminfo").write_text("MemTotal:       8000000 kB\n")
    found = machine(tmp_path)
    assert (found.processor, found.memory_gb) == ("A processor", 8.2)


def test_processor_time_includes_threads_that_have_ended() -> None:
    code = """
import sys, threading, time
def work():
    while time.thread_time() < 0.1: pass
thread = threading.Thread(target=work); thread.start(); thread.join()
print(time.process_time(), flush=True); sys.stdin.read()
"""
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        own = float(other.stdout.readline())
        assert own > 0.1
        assert own <= processor_seconds([other.pid])
        assert other.pid in with_descendants([os.getpid()])
    assert processor_seconds([other.pid]) == 0.0


def test_the_clock_of_this_process() -> None:
    before = time.process_time()
    assert before <= processor_seconds([os.getpid()]) == pytest.approx(before, abs=10)
