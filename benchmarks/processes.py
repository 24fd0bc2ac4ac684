"""What Linux says of processes and of the machine: processor time, memory, other load.

The processor time of a process is read from its clock (clock_getcpuclockid(3)): nanoseconds, with the threads that have
ended. A server may be several processes: those that are named, and all that they have started and that still run.
"""

from __future__ import annotations

import os
import platform
import re
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

PROC: Final = Path("/proc")
_SCHEDULED: Final = 2  # CPUCLOCK_SCHED of Linux: what the scheduler has counted
_TICKS: Final = os.sysconf("SC_CLK_TCK")


def python_path(checkout: Path) -> str:
    """The PYTHONPATH with which a checkout runs without an installation; older ones have their packages at the top."""
    folders = [checkout / "apiserver", checkout / "storage"]
    return os.pathsep.join(map(str, folders if (folders[0] / "noxu").is_dir() else [checkout]))


def with_descendants(pids: Iterable[int], proc: Path = PROC) -> list[int]:
    """These processes and what they have started, as far as it runs. A process that has ended is left out."""
    found: list[int] = []
    waiting = list(pids)
    while waiting:
        pid = waiting.pop()
        if pid in found or not (proc / str(pid)).exists():
            continue
        found.append(pid)
        for children in (proc / str(pid) / "task").glob("*/children"):
            waiting.extend(int(child) for child in children.read_text().split())
    return sorted(found)


def processor_seconds(pids: Iterable[int]) -> float:
    """The processor time of processes, all their threads included; one that has ended counts as 0."""
    total = 0.0
    for pid in pids:
        try:
            total += time.clock_gettime(~pid << 3 | _SCHEDULED)
        except OSError:
            continue
    return total


def resident_bytes(pids: Iterable[int], proc: Path = PROC) -> int:
    """The memory of processes that is in RAM (VmRSS). Pages that they share count several times."""
    total = 0
    for pid in pids:
        try:
            status = (proc / str(pid) / "status").read_text()
        except OSError:
            continue
        if found := re.search(r"^VmRSS:\s+(\d+) kB$", status, re.MULTILINE):
            total += int(found[1]) * 1024
    return total


def busy_seconds(proc: Path = PROC) -> float:
    """The processor time that the machine has spent on anything.

    The first line of /proc/stat is `cpu USER NICE SYSTEM IDLE IOWAIT IRQ SOFTIRQ STEAL …`, in clock ticks.
    """
    fields = [int(field) for field in (proc / "stat").read_text().partition("\n")[0].split()[1:9]]
    return (sum(fields) - fields[3] - fields[4]) / _TICKS


class Machine(NamedTuple):
    """Where a run took place."""

    processor: str
    cores: int
    memory_gb: float
    kernel: str
    python: str


def machine(proc: Path = PROC) -> Machine:
    model = re.search(r"^model name\s*: (.*)$", (proc / "cpuinfo").read_text(), re.MULTILINE)
    memory = re.search(r"^MemTotal:\s+(\d+) kB$", (proc / "meminfo").read_text(), re.MULTILINE)
    return Machine(
        model[1].strip() if model else platform.machine(),
        len(os.sched_getaffinity(0)),
        round(int(memory[1]) * 1024 / 1e9, 1) if memory else 0.0,
        platform.release(),
        platform.python_version(),
    )
