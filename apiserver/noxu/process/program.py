"""A program under test, as `noxu run` runs it: how often it lives, when it is killed, where its output goes.

The first restarts come at once. Later ones wait, as kubelet does (`CrashLoopBackOff`): twice as long each time, up to ten seconds.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self

MAX_PAUSE: Final = 10.0  # seconds
MAX_LINE: Final = 300  # characters
_FIRST_PAUSES: Final = 2
"""So many restarts come at once: those of a test that kills."""


class ProgramRun(NamedTuple):
    """`kill_after`: SIGKILL so many seconds after the first start; 0: never. `restarts`: at most so many; None: any number."""

    kill_after: float = 0.0
    restarts: int | None = 0
    log: Path | None = None

    def lives(self) -> Iterator[int]:
        """The numbers of its lives, from 1 on."""
        return iter(count(1) if self.restarts is None else range(1, self.restarts + 2))

    def pause_before(self, life: int) -> float:
        """Seconds before a life begins."""
        late = life - 1 - _FIRST_PAUSES
        return 0.0 if late < 1 else min(0.1 * 2 ** min(late, 10), MAX_PAUSE)


ONCE: Final = ProgramRun()


class LogError(Exception):
    """The log of a program cannot be written."""


class ProgramLog:
    """A file that has the output of a program, and a line for each start, kill and exit; None: there is no file.

    A context manager. Raises LogError when it is opened.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self.output: int | None = None
        """Its descriptor, while it is open."""

    def __enter__(self) -> Self:
        if self._path is not None:
            try:
                self.output = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            except OSError as error:
                raise LogError(f"{self._path} cannot be written: {error.strerror}") from None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.output is not None:
            os.close(self.output)

    def note(self, text: str) -> None:
        """Write a line about the program; a command may have several, and be long."""
        if self.output is not None:  # one call of the system: a signal handler may write, too
            now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            line = " ".join(text.split())[:MAX_LINE]
            os.write(self.output, f"noxu: {now} {line}\n".encode(errors="surrogateescape"))
