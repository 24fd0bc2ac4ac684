"""Until when the programs that Noxu has started sleep, as the kernel of Linux knows it: proc(5), and the calls of syscalls(2).

A thread that sleeps waits in a call to the kernel, whose arguments say when it wakes by itself:

    epoll_pwait(4, …, 497)          after 497 ms, unless something comes
    futex(…, FUTEX_WAIT, 1, NULL)   never: another thread has to wake it

So if all threads of all programs have slept at one moment, and nothing is under way to them, then nothing happens until the first of
these times. To wait for that would show nothing more. That all have slept at one moment is known from two looks at each thread
between which it has not run. A timeout that counts from the beginning of a call begins at the last moment at which the thread
certainly was not in it yet.

What is not known here is no sleep: other calls, another machine, timers of the kernel (timerfd_create, timer_create), io_uring,
connections with something else than Noxu, and a kernel that does not let us look. Then only silence counts.
"""

from __future__ import annotations

import math
import os
import platform
import struct
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from noxu.control import peer_sockets

AWAKE: Final = -math.inf
"""Of a thread that runs, or of which it is not known when it wakes."""
NEVER: Final = math.inf
_READ_AT_ONCE: Final = 4096  # bytes, which are more than these files have
TICKS: Final = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
_UNCERTAIN: Final = 2 / TICKS  # seconds, in the time at which a thread began
_PAIR: Final = struct.Struct("=qq")  # timespec and timeval of 64 bits
_OWN_TIMERS: Final = ("anon_inode:[timerfd]", "anon_inode:[io_uring]")


class SleepingCall(NamedTuple):
    """A call to the kernel that may sleep: which argument says for how long, and in what form.

    `unit`: milliseconds, timespec, timeval; clock and futex, whose other arguments say what it counts from; "": it has no timeout.
    """

    argument: int = 0
    unit: str = ""


_READ, _POLL = SleepingCall(), SleepingCall(2, "milliseconds")
_EPOLL, _EPOLL_2 = SleepingCall(3, "milliseconds"), SleepingCall(3, "timespec")
_PPOLL, _SELECT, _PSELECT = SleepingCall(2, "timespec"), SleepingCall(4, "timeval"), SleepingCall(4, "timespec")
_NANOSLEEP, _CLOCK_NANOSLEEP = SleepingCall(0, "timespec"), SleepingCall(2, "clock")
_FUTEX, _SIGTIMEDWAIT = SleepingCall(3, "futex"), SleepingCall(2, "timespec")

CALLS: Final[Mapping[str, Mapping[int, SleepingCall]]] = {
    "x86_64": {
        0: _READ, 34: _READ, 43: _READ, 61: _READ, 130: _READ, 247: _READ, 288: _READ,
        7: _POLL, 23: _SELECT, 35: _NANOSLEEP, 128: _SIGTIMEDWAIT, 202: _FUTEX, 230: _CLOCK_NANOSLEEP, 232: _EPOLL,
        270: _PSELECT, 271: _PPOLL, 281: _EPOLL, 441: _EPOLL_2,
    },
    "aarch64": {
        63: _READ, 95: _READ, 133: _READ, 202: _READ, 242: _READ, 260: _READ,
        22: _EPOLL, 72: _PSELECT, 73: _PPOLL, 98: _FUTEX, 101: _NANOSLEEP, 115: _CLOCK_NANOSLEEP, 137: _SIGTIMEDWAIT,
        441: _EPOLL_2,
    },
}  # fmt: skip
"""By machine and number. Without a timeout: read, pause, accept, accept4, wait4, waitid, rt_sigsuspend."""
_WAIT, _WAIT_BITSET, _OPERATION, _REALTIME = 0, 9, 0x7F, 0x100  # of futex(2)
_GO_MONITOR: Final = 60.0
"""Seconds for which a thread of the runtime of Go sleeps in FUTEX_WAIT while nothing runs: then it looks whether garbage is to be
collected (sysmon, proc.go). The program does nothing by that: its own timers are those of epoll_pwait."""


class Timeout(NamedTuple):
    """How long a call sleeps: `seconds`, or until these are shown by a clock. NEVER and AWAKE are `seconds`, too."""

    seconds: float
    clock: int | None = None


class ThreadState(NamedTuple):
    """`slices`: how often it has run so far. `since`: not before this has it fallen asleep; `until`: not before this does it wake.

    `latest`: not after this does it wake.
    """

    slices: int
    since: float
    until: float
    latest: float = NEVER


# -- the decisions, which are pure -------------------------------------------------------------------------------------


def timeout(line: str, machine: str, memory: Mapping[int, tuple[int, int]] | _Memory) -> Timeout:
    """Of the call that a line of /proc/…/syscall shows. `memory`: pairs of numbers in the program, by address."""
    number, *words = line.split()
    call = CALLS.get(machine, {}).get(int(number)) if number.isdecimal() else None
    if call is None or len(words) < 6:
        return Timeout(AWAKE)
    arguments = [int(word, 16) for word in words]
    given = arguments[call.argument]
    if not call.unit:
        return Timeout(NEVER)
    if call.unit == "milliseconds":
        return Timeout(NEVER if given & 0x80000000 else (given & 0xFFFFFFFF) / 1000)
    operation = arguments[1] & _OPERATION
    if call.unit == "futex" and operation not in (_WAIT, _WAIT_BITSET):
        return Timeout(AWAKE)
    if not given:
        return Timeout(NEVER)
    try:
        whole, parts = memory[given]
    except (KeyError, OSError):
        return Timeout(AWAKE)
    seconds = whole + parts / (1e6 if call.unit == "timeval" else 1e9)
    if call.unit == "clock":
        return Timeout(seconds, arguments[0] if arguments[1] & 1 else None)
    if call.unit == "futex" and operation == _WAIT_BITSET:
        return Timeout(seconds, 0 if arguments[1] & _REALTIME else 1)
    return Timeout(NEVER if call.unit == "futex" and seconds == _GO_MONITOR else seconds)


def wakes(timeout: Timeout, since: float, clocks: Mapping[int, float]) -> float:
    """The moment at which a call ends by itself. `since`: when it began, at the earliest; `clocks`: what they show at the moment 0."""
    if timeout.clock is None:
        return since + timeout.seconds if timeout.seconds > AWAKE else AWAKE
    return timeout.seconds - clocks[timeout.clock] if timeout.clock in clocks else AWAKE


def thread_state(
    before: ThreadState | None, slices: int, since: float, lasts: Timeout, now: float, clocks: Mapping[int, float]
) -> ThreadState:
    """Of a thread in a call that lasts so long. At the latest it has fallen asleep when it was first seen there."""
    latest = wakes(lasts, now, clocks) if before is None or before.slices != slices else before.latest
    return ThreadState(slices, since, wakes(lasts, since, clocks), latest)


def have_slept(before: Mapping[int, ThreadState], now: Mapping[int, ThreadState]) -> bool:
    """Whether all threads have slept from one look to the next, so that all were asleep when that began."""
    return (
        before.keys() == now.keys()
        and all(state.until > AWAKE for state in (*before.values(), *now.values()))
        and all(state.slices == before[thread].slices for thread, state in now.items())
    )


# -- looking ----------------------------------------------------------------------------------------------------------


class ProgramSleep:
    """The threads of one server's programs, from look to look."""

    def __init__(self) -> None:
        self._threads: dict[int, ThreadState] = {}
        self._looked = 0.0
        self.is_asleep = False
        """Whether all have slept from one look to the next."""
        self._pids: Sequence[int] = ()
        self._clients: frozenset[int] = frozenset()
        self._otherwise: bool | None = None  # while all sleep, this does not change

    def look(self, pids: Sequence[int], clients: frozenset[int] = frozenset()) -> None:
        """`clients`: the numbers of the sockets that are connected with this server."""
        now = time.monotonic()
        found = _threads(pids, self._threads, self._looked, now)
        self.is_asleep = have_slept(self._threads, found)
        if not self.is_asleep:
            self._otherwise = None
        self._threads, self._looked, self._pids, self._clients = found, now, pids, clients

    def until(self, silent_since: float) -> float:
        """Until when nothing happens, at least, if nothing came to the programs since a moment; AWAKE: that is not known."""
        if not (self.is_asleep and self._threads) or self._looked < silent_since:
            return AWAKE
        if self._otherwise is None:
            self._otherwise = _may_wake_otherwise(self._pids, self._clients)
        return AWAKE if self._otherwise else min(state.until for state in self._threads.values())

    def latest(self) -> float:
        """When the first of them wakes by itself at the latest, after a look; AWAKE: that is not known."""
        return min((state.latest for state in self._threads.values()), default=AWAKE) if self.is_asleep else AWAKE


class _Memory:
    """Of a process."""

    def __init__(self, pid: int) -> None:
        self._pid = pid

    def __getitem__(self, address: int) -> tuple[int, int]:
        descriptor = os.open(f"/proc/{self._pid}/mem", os.O_RDONLY)
        try:
            return _PAIR.unpack(os.pread(descriptor, _PAIR.size, address))
        except struct.error:
            raise OSError(f"there is nothing at {address}") from None
        finally:
            os.close(descriptor)


def _threads(
    pids: Iterable[int], known: Mapping[int, ThreadState], looked: float, now: float
) -> dict[int, ThreadState]:
    """All threads of processes. What cannot be looked at is awake. `looked`: when they were looked at before."""
    clocks = {0: time.time() - time.monotonic(), 1: 0.0, 7: _booted()}
    machine, found = platform.machine(), dict[int, ThreadState]()
    for pid in pids:
        try:
            threads = [int(thread) for thread in os.listdir(f"/proc/{pid}/task")]  # noqa: PTH208 - a Path is slower
        except OSError:
            continue  # it has ended
        for thread in threads:
            place = f"/proc/{pid}/task/{thread}"
            try:
                slices = int(_read(f"{place}/schedstat").split()[2])
                before = known.get(thread)
                if before is None:
                    since = _began(place, clocks[7])
                else:
                    since = before.since if before.slices == slices else looked
                lasts = timeout(_read(f"{place}/syscall"), machine, _Memory(pid))
                found[thread] = thread_state(before, slices, since, lasts, now, clocks)
            except (OSError, ValueError, IndexError):  # it has ended, or is not ours, or the kernel does not say
                found[thread] = ThreadState(-1, 0.0, AWAKE)
    return found


def _booted() -> float:
    """How long the machine was asleep: a thread's beginning counts from its start."""
    boot = getattr(time, "CLOCK_BOOTTIME", None)
    return 0.0 if boot is None else time.clock_gettime(boot) - time.monotonic()


def _began(place: str, asleep: float) -> float:
    """When a thread began, at the earliest."""
    fields = _read(f"{place}/stat").rpartition(")")[2].split()
    return int(fields[19]) / TICKS - _UNCERTAIN - asleep


def _read(path: str) -> str:
    """Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return os.read(descriptor, _READ_AT_ONCE).decode()
    finally:
        os.close(descriptor)


# -- what else could wake a program -----------------------------------------------------------------------------------


def _may_wake_otherwise(pids: Sequence[int], clients: frozenset[int]) -> bool:
    """Whether programs have timers that no thread waits for, or connections with something else than each other and Noxu."""
    if any(_has_timers(pid) for pid in pids):
        return True
    own = {number for pid in pids for number in peer_sockets.of_process(pid)}
    others = own - clients
    if not others:  # which spares the tables of all connections: the kernel goes through whatever there could be
        return False
    open_ = _established()
    ends = {number: address for address, number in open_.items()}
    ours = own.union(peer_sockets.of_process(os.getpid()))
    return any(open_.get(ends[number][::-1], 0) not in ours for number in others if number in ends)


def _has_timers(pid: int) -> bool:
    try:
        if _read(f"/proc/{pid}/timers"):
            return True
    except FileNotFoundError:
        pass  # the kernel has no such timers, or it has ended
    except OSError:
        return True
    try:
        opened = [str(descriptor.readlink()) for descriptor in Path(f"/proc/{pid}/fd").iterdir()]
    except OSError:  # it closes one, or is not ours
        return True
    return any(what in _OWN_TIMERS for what in opened)


def _established() -> dict[tuple[str, str], int]:
    """The numbers of the sockets that are connected over TCP, by their own address and that of the other end."""
    found = {}
    for name in ("tcp", "tcp6"):
        try:
            lines = Path(f"/proc/net/{name}").read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            if fields[3] == "01":
                found[_plain(fields[1]), _plain(fields[2])] = int(fields[9])
    return found


def _plain(address: str) -> str:
    """An address of IPv4 is the same one as a mapped address of IPv6."""
    host, _, port = address.rpartition(":")
    return f"{host.removeprefix('0000000000000000FFFF0000')}:{port}"
