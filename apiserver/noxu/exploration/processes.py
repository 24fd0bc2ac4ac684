"""Processes of programs under test, as /proc(5) shows them on Linux; elsewhere nothing is known of them.

A program is ended with its group. One that has left its group, as daemons do, is found by the directory of its run, which is
in the environment that it was started with.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

PROC: Final = Path("/proc")
LISTENS: Final = "0A"  # TCP_LISTEN, as in /proc/net/tcp
_EPHEMERAL: Final = PROC / "sys/net/ipv4/ip_local_port_range"


def kill_those_of(directory: Path) -> None:
    """Kill the processes in whose environment the directory is, but not this one."""
    for pid in of_directory(directory):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def of_directory(directory: Path) -> list[int]:
    """The processes that were started with a variable that names the directory, or a file in it."""
    wanted = os.fsencode(f"={directory}")
    found = []
    for pid in _pids():
        with contextlib.suppress(OSError):  # it is another user's, or has ended
            if pid != os.getpid() and wanted in (PROC / str(pid) / "environ").read_bytes():
                found.append(pid)
    return found


def fixed_ports(pids: Iterable[int]) -> list[int]:
    """The ports at which processes listen, without those that the system has chosen."""
    inodes = {inode for pid in pids for inode in _sockets(pid)}
    chosen = _chosen_by_the_system()
    return sorted({port for inode, port in _listening() if inode in inodes and port not in chosen})


def _pids() -> Iterator[int]:
    with contextlib.suppress(OSError):
        yield from (int(path.name) for path in PROC.iterdir() if path.name.isdecimal())


def _sockets(pid: int) -> Iterator[str]:
    """The inodes of the sockets that a process has open."""
    with contextlib.suppress(OSError):
        for descriptor in (PROC / str(pid) / "fd").iterdir():
            with contextlib.suppress(OSError):
                kind, _, inode = str(descriptor.readlink()).partition("socket:[")
                if not kind and inode:
                    yield inode.removesuffix("]")


def _listening() -> Iterator[tuple[str, int]]:
    """(Inode, port) of the TCP sockets that listen."""
    for table in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):
            for line in (PROC / "net" / table).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == LISTENS:
                    yield fields[9], int(fields[1].rpartition(":")[2], 16)


def _chosen_by_the_system() -> range:
    """The ports that are given to those who ask for any."""
    try:
        lowest, highest = map(int, _EPHEMERAL.read_text().split())
    except (OSError, ValueError):
        lowest, highest = 32768, 60999
    return range(lowest, highest + 1)
