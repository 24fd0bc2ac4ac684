"""A clock that stands still while a program waits for a processor, so that a limit means the same on a busy machine: proc(5) of Linux.

    elapsed = wall time − time for which a thread of the programs, or of the server, was ready to run and had no processor

The kernel counts that for each thread (`schedstat`). Of many threads the one counts that has waited longest since the last look. A
limit still comes to an end: at least a tenth of the wall time counts. Elsewhere than on Linux this is the monotonic clock.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final, TypeAlias

from noxu.control.program_work import processes

LEAST: Final = 0.1
"""The share of the wall time that counts at least."""
REMARKABLE: Final = 0.25
"""From which share of the wall time on it is said that a program has waited."""
NANOSECONDS: Final = 1e9
_PROC: Final = Path("/proc")

Delays: TypeAlias = Mapping[str, float]
"""By thread, for how many seconds it has waited for a processor since it began."""


class FairClock:
    """Call it for the time, in seconds. `look` returns the delays of the programs' threads, and those of this process."""

    def __init__(self, look: Callable[[], tuple[Delays, Delays]], wall: Callable[[], float] = time.monotonic) -> None:
        self._look, self._wall = look, wall
        self._began, self._waited = wall(), 0.0
        self._programs, self._own = look()
        self._lock = threading.Lock()  # a view is looked at in a thread of its own

    def __call__(self) -> float:
        with self._lock:
            programs, own = self._look()
            self._waited += longest(self._programs, programs) + longest(self._own, own)
            self._programs, self._own = programs, own
            return self._began + fair(self._wall() - self._began, self._waited)


def looking_at(pids: Callable[[], Iterable[int]]) -> Callable[[], tuple[Delays, Delays]]:
    """How a clock looks at programs, of which these are the processes, with what they have started."""
    return lambda: (delays(processes(pids())), delays([os.getpid()]))


def fair(wall: float, waited: float) -> float:
    """The elapsed time: waits that overlap do not make it stand still for good."""
    return max(wall - waited, wall * LEAST)


def longest(before: Delays, now: Delays) -> float:
    """The longest wait of a thread between two looks. A new one has begun since the first."""
    return max((seconds - before.get(thread, 0.0) for thread, seconds in now.items()), default=0.0)


def slowness(wall: float, elapsed: float) -> str:
    """In words, for what part of some wall time a processor was waited for; "" if that is not remarkable."""
    if wall <= 0 or 1 - elapsed / wall < REMARKABLE:
        return ""
    return f"; the machine is busy: for {wall - elapsed:.0f} of {wall:.0f} s it waited for a processor"


def delays(pids: Iterable[int]) -> Delays:
    """Of the threads of processes. What has ended, or is not counted here, is left out."""
    found: dict[str, float] = {}
    for pid in pids:
        try:
            threads = [*(_PROC / str(pid) / "task").iterdir()]
        except OSError:
            continue
        for thread in threads:
            try:
                _, nanoseconds, _ = (thread / "schedstat").read_text().split()
            except (OSError, ValueError):
                continue
            found[thread.name] = int(nanoseconds) / NANOSECONDS
    return found
