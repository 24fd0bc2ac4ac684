"""Whether the programs that Noxu has started are at work, as the kernel of Linux knows it: proc(5).

A controller that waits for its turn on a busy machine is silent, too, and is not done. It is at work while

- a thread of it, or of a process that it has started, runs or waits for a processor (R) or for a disk (D),
- it has used processor time since the last look, or has started or ended a process,
- it has not read what it was sent (`peer_sockets`).

A program that is paused (SIGSTOP) is not at work, whatever it was sent. Silence counts from the last moment at which a program
was seen at work. One that has used `LONGEST` of processor time without asking for anything computes for its own sake, such as one
that spins: then only silence counts. Of other clients, and elsewhere than on Linux, nothing is known but their silence.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from noxu.control import peer_sockets
from noxu.control.peer_sockets import Addresses, PeerSocket
from noxu.control.program_sleep import AWAKE, TICKS, ProgramSleep
from noxu.control.programs import Programs
from noxu.control.running import Activity, Control

LONGEST: Final = 5.0  # seconds of processor time
LOOKS: Final = 5  # in a quiet time
LOOK_EVERY: Final = (0.005, 0.05)  # seconds, at least and at most
FORESEES_EVERY: Final = 0.01  # seconds
SLOWER: Final = 1.3
MOST_ALIKE: Final = 10
"""So many times as long is the pause after a look that was like the one before, and after at most so many."""
MAX_CONNECTIONS: Final = 200
"""With more it would cost too much to ask which bytes were not read."""
_READ_AT_ONCE: Final = 4096  # bytes, which are more than a line of these files has
_BUSY: Final = frozenset("RD")
_AWAKE: Final = frozenset("RDS")


class ProcessState(NamedTuple):
    """`threads`: a letter for the state of each. `ticks`: processor time of all so far, also of children that have ended."""

    threads: str
    ticks: int

    @property
    def is_awake(self) -> bool:
        """Whether it is neither paused nor a zombie."""
        return not _AWAKE.isdisjoint(self.threads)


class WorkStreak(NamedTuple):
    """Of programs that are at work again and again, with no quiet time in between.

    `began`, `last`: times of the first and of the last look. `counts`: time of the last one at which their work still counted.
    `ticks`: the processor time that they had used by the first one.
    """

    began: float
    last: float
    counts: float
    ticks: int


# -- the decisions, which are pure -------------------------------------------------------------------------------------


def work(
    before: Mapping[int, ProcessState] | None, now: Mapping[int, ProcessState], unread: Mapping[int, int] | None = None
) -> str:
    """What processes do, in words; "" if they are quiet. `before`: at the last look, None: there was none.

    `unread`: by process, the bytes that were sent to it and that it has not read.
    """
    for pid, state in now.items():
        if not state.is_awake:
            continue
        if not _BUSY.isdisjoint(state.threads):
            return f"process {pid} runs, or waits for a processor"
        if before is not None and pid not in before:
            return f"process {pid} has started"
        if before is not None and state.ticks > before[pid].ticks:
            return f"process {pid} has computed"
        if unread and unread.get(pid):
            return f"process {pid} has not read {unread[pid]} bytes that it was sent"
    ended = [] if before is None else [pid for pid in before if pid not in now]
    return f"process {ended[0]} has ended" if ended else ""


def next_streak(
    streak: WorkStreak | None, now: float, silent_since: float, quiet: float, *, at_work: bool, ticks: int = 0
) -> WorkStreak | None:
    """After a look. `silent_since`: when clients or controllers last did something. What follows that is a new streak.

    `ticks`: the processor time that the programs have used so far. On a busy machine they wait for it, and have done little yet.
    """
    if at_work:
        if streak is None or streak.began < silent_since:
            return WorkStreak(now, now, now, ticks)
        counts = now if ticks - streak.ticks <= LONGEST * TICKS else streak.counts
        return streak._replace(last=now, counts=counts)
    return None if streak is None or now - streak.last >= quiet else streak


def quiet_since(silent_since: float, streak: WorkStreak | None) -> float:
    """From when on neither clients do anything, nor the programs, as far as that counts."""
    return silent_since if streak is None else max(silent_since, streak.counts)


# -- looking ----------------------------------------------------------------------------------------------------------


class WorkOfPrograms:
    """That of one server's programs: a part of its `Control`."""

    def __init__(self, control: Control) -> None:
        self._programs = control.part(Programs)
        self.streak: WorkStreak | None = None  # it outlives a question whether the server is idle
        self.sleep = ProgramSleep()  # and so does this

    def pids(self) -> list[int]:
        """The processes of programs that can be looked at."""
        return self._programs.pids if sys.platform == "linux" else []


class ProgramLooks:
    """Looks at the programs of a server, while something waits until it is idle."""

    def __init__(self, work: WorkOfPrograms | None, quiet: float, *, foresees: bool = False) -> None:
        """`quiet`: the quiet time, in seconds. `foresees`: whether it is asked until when they sleep."""
        least, most = LOOK_EVERY
        self._foresees = foresees
        self._every = min(max(quiet / LOOKS, least), most)
        self._was_busy, self._alike = False, 0  # and how many looks in a row were alike
        self._work, self._quiet = work, quiet
        self._before: dict[int, ProcessState] | None = None
        self._doing = ""

    def look(self, activity: Activity) -> bool:
        """Look at the programs. Returns whether there are any."""
        pids = [] if self._work is None else self._work.pids()
        now = processes(pids)
        clients = client_sockets(activity.connections()) if pids else []
        self._doing = work(self._before, now, unread_bytes(clients, now)) if pids else ""
        self._before = now if pids else None
        if self._work is not None and self._foresees and not self._doing:
            self._work.sleep.look([*now], frozenset(client.inode for client in clients))
        return bool(pids)

    def pause(self, *, busy: bool) -> float:
        """Seconds until the next look. While nothing changes they become longer, because a look costs processor time."""
        if not self._foresees:
            return self._every
        is_busy = busy or bool(self._doing)
        self._alike = min(self._alike + 1, MOST_ALIKE) if is_busy is self._was_busy else 0
        self._was_busy = is_busy
        return min(FORESEES_EVERY * SLOWER**self._alike, self._every)

    def sleep_until(self, silent_since: float) -> float:
        """Until when all programs sleep at least, after a look; AWAKE: that is not known."""
        return AWAKE if self._work is None or not self._before or self._doing else self._work.sleep.until(silent_since)

    def judged(self, now: float, silent_since: float) -> tuple[float, str]:
        """From when on it is quiet, after a look, and what a program does; "": nothing that counts."""
        if self._work is None:
            return silent_since, ""
        ticks = sum(state.ticks for state in (self._before or {}).values())
        streak = next_streak(self._work.streak, now, silent_since, self._quiet, at_work=bool(self._doing), ticks=ticks)
        self._work.streak = streak
        since = quiet_since(silent_since, streak)
        return since, self._doing if since == now else ""


def processes(pids: Iterable[int]) -> dict[int, ProcessState]:
    """The processes, and all that they have started; without those that have ended meanwhile."""
    found, waiting = dict[int, ProcessState](), list(pids)
    while waiting:
        pid = waiting.pop()
        try:
            _, times = _stat(f"/proc/{pid}/stat")
            threads = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208 - a Path takes several times as long
        except OSError:
            continue
        states = ""
        for thread in threads:
            task = f"/proc/{pid}/task/{thread}"
            try:
                states += _stat(f"{task}/stat")[0]
                waiting += map(int, _read(f"{task}/children").split())
            except OSError:  # it has ended, or the kernel does not list children
                continue
        found[pid] = ProcessState(states, times)
    return found


def _stat(path: str) -> tuple[str, int]:
    """State and ticks. The name of a program, in parentheses, may contain anything. Raises OSError."""
    fields = _read(path).rpartition(b")")[2].split()
    return fields[0].decode(), sum(map(int, fields[11:15]))  # utime, stime, cutime, cstime


def _read(path: str) -> bytes:
    """Raises OSError. A file object would take ten times as long."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return os.read(descriptor, _READ_AT_ONCE)
    finally:
        os.close(descriptor)


def client_sockets(connections: Sequence[Addresses]) -> list[PeerSocket]:
    """The other ends of connections, if they are on this machine; none of too many."""
    return peer_sockets.find(connections if len(connections) <= MAX_CONNECTIONS else ())


def unread_bytes(clients: Iterable[PeerSocket], pids: Iterable[int]) -> dict[int, int]:
    """By process, the bytes that were sent to it and that it has not read."""
    waiting = {client.inode: client.unread for client in clients if client.unread}
    if not waiting:  # which is usual, and spares a look at all descriptors
        return {}
    return {pid: sum(waiting.get(number, 0) for number in peer_sockets.of_process(pid)) for pid in pids}
