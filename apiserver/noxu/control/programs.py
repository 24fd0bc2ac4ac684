"""The programs that Noxu has started and that faults may kill, pause and resume: those of `noxu run`, and of the handle.

    GET /_noxu/programs     the programs, their processes, whether they are paused

Nothing else is ever signalled, so a rule about processes is refused where there is no program.

A request is a program's if the other end of its connection is open in a process of the program's group. Linux says so: it
knows the number (inode) of each TCP socket, and those of a process (`peer_sockets`). Elsewhere every request counts as the
program's while one runs; there a rule says with `userAgent` or `user` which requests it means.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from noxu.control import peer_sockets
from noxu.control.calls import ControlCall, ControlRoute
from noxu.control.running import Control, ProgramUnderTest
from noxu.values import Object

PATH: Final = "/_noxu/programs"
_PROC: Final = Path("/proc")


class Programs:
    """The programs of one server: a part of its `Control`."""

    def __init__(self, control: Control) -> None:
        self._programs: dict[ProgramUnderTest, int] = {}  # and the process that is paused; 0: none is
        self._control = control
        self._waiting: set[asyncio.Task[None]] = set()
        control.closing.push_async_callback(self._stop)

    def add(self, program: ProgramUnderTest) -> None:
        self._programs[program] = 0

    def remove(self, program: ProgramUnderTest) -> None:
        self._programs.pop(program, None)

    def __bool__(self) -> bool:
        return bool(self._programs)

    @property
    def pids(self) -> list[int]:
        """The processes of those that run."""
        return [pid for program in self._programs if (pid := program.pid)]

    def asking(self, peer: object, local: object) -> ProgramUnderTest | None:
        """The program whose connection has these addresses (as of `getpeername` and `getsockname`); None: another client's."""
        running = [program for program in self._programs if program.pid]
        if not running or sys.platform != "linux":
            return running[0] if running else None
        inode = peer_sockets.inode(peer, local)
        return next((program for program in running if inode and inode in _sockets(program.pid)), None)

    def strike(self, what: str, seconds: float = 0.0, program: ProgramUnderTest | None = None) -> None:
        """kill, pause or resume a program; None: all of them. A pause ends after `seconds` of object time, if it has some."""
        for each in [*self._programs] if program is None else [program]:
            each.send(_NUMBERS[what])
            self._programs[each] = each.pid if what == "pause" else 0
            if what == "pause" and seconds:
                task = asyncio.ensure_future(self._resume(each, each.pid, seconds))
                self._waiting.add(task)
                task.add_done_callback(self._waiting.discard)

    def resume_paused(self) -> None:
        """What a fault has paused goes on, as there is no such fault any more."""
        for program, pid in self._programs.items():
            if pid and pid == program.pid:
                self.strike("resume", 0.0, program)

    async def _resume(self, program: ProgramUnderTest, pid: int, seconds: float) -> None:
        await self._control.server.clock.sleep(seconds)
        if self._programs.get(program) == pid:  # else it goes on already, or is another process by now
            self.strike("resume", 0.0, program)

    async def _stop(self) -> None:
        for task in self._waiting:
            task.cancel()
        self.resume_paused()

    def described(self) -> list[Object]:
        return [
            {"pid": program.pid, "running": bool(program.pid), "paused": bool(pid) and pid == program.pid}
            for program, pid in self._programs.items()
        ]


_NUMBERS: Final = {
    name: getattr(signal, number, signal.SIGTERM)  # Windows has none of them, and no program either
    for name, number in (("kill", "SIGKILL"), ("pause", "SIGSTOP"), ("resume", "SIGCONT"))
}


def _sockets(group: int) -> Iterator[int]:
    """The numbers of the sockets that the processes of a group have open."""
    for process in _PROC.iterdir():
        try:
            # the name, in parentheses, may contain anything; then state, parent, group
            if process.name.isdigit() and (process / "stat").read_text().rpartition(")")[2].split()[2] == str(group):
                yield from peer_sockets.of_process(int(process.name))
        except OSError:
            continue  # it has ended


async def _list(call: ControlCall) -> Object:
    return {"programs": call.control.part(Programs).described()}


ROUTES: Final = (ControlRoute("GET", PATH, _list, "List the programs that faults may kill and pause."),)
