"""Programs under test, as children of the test: started with the server's address, killed, started again, ended.

    with noxu.program(["./operator"], restart=True) as operator:
        with noxu.fault(verbs=["create"], nth=2, process={"kill": "after"}):     # a crash between two writes
            noxu.apply("widget.yaml")
            noxu.wait("widget", "a", "Ready")
    assert operator.lives == 2

A program has a process group of its own: what it has started ends with it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from noxu.control.programs import Programs
from noxu.process.program import ProgramLog, ProgramRun
from noxu.process.supervision import BY_SIGNAL, Supervised, check_command
from noxu.testing.errors import Stopped, hidden
from noxu.testing.session import Runner

__tracebackhide__ = hidden

GRACE: Final = 5.0
_GATE: Final = """
read -r _ < "/dev/fd/$0"
((read -r _ < "/dev/fd/$0"; kill -KILL 0) > /dev/null 2>&1 &)
exec "$@"
"""
"""The shell becomes the program when its process is known to the server. A process of its group waits for the end of the pipe,
which is that of the test, also by SIGKILL, and ends the group then. It is no child of the program.
"""


class TestedProgram:
    """A program that runs while the context is open. Faults may kill, pause and resume it."""

    __test__ = False  # pytest would take the class for one of tests

    def __init__(
        self,
        runner: Runner,
        words: Sequence[str],
        environment: Mapping[str, str],
        run: ProgramRun,
        directory: str | os.PathLike[str] | None = None,
    ) -> None:
        self._runner, self._words, self._environment, self._run = runner, words, environment, run
        self._directory = directory
        self._process = Supervised(leads_group=True)
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._live, name="noxu-program", daemon=True)
        self.grace = GRACE
        """Seconds between SIGTERM and SIGKILL at its end."""
        self.lives = 0
        """How often it was started."""
        self.status: int | None = None
        """The exit status of its last life that has ended, as shells have it: 137 is SIGKILL."""
        self.statuses: list[int] = []
        """Those of all lives that have ended."""
        self.began = 0.0
        """When its newest life began, in seconds since 1970."""
        self.after_life: Callable[[], None] | None = None
        """What is called when a life has ended, before the next one begins, in a thread of its own."""

    @property
    def pid(self) -> int:
        """Its process; 0: it does not run."""
        return self._process.pid

    @property
    def is_over(self) -> bool:
        """Whether its context was closed."""
        return self._over.is_set()

    def send(self, number: int) -> None:
        """Send a signal to it and to the processes that it has started."""
        self._process.send(number)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end of its last life, and return the exit status. Raises TimeoutError."""
        self._thread.join(timeout)
        if self._thread.is_alive() or self.status is None:
            raise TimeoutError(f"{self._words[0]} runs longer than {timeout:g} s" if timeout else "it was not started")
        return self.status

    def __enter__(self) -> Self:
        """Raises NotRunnable for a command that does not exist."""
        check_command(self._words[0])
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:  # no further life begins
            self._over.set()
        self._process.send(signal.SIGTERM)
        self._process.send(signal.SIGCONT)  # what is paused cannot end
        self._thread.join(self.grace)
        self._process.send(signal.SIGKILL)
        self._thread.join()
        if self._runner.is_running:
            with contextlib.suppress(Stopped, CancelledError):  # the server stops meanwhile
                self._runner.submit(self._unregister()).result()

    async def register(self) -> None:
        """From now on there may be rules about it."""
        self._runner.running.control.part(Programs).add(self._process)

    async def _unregister(self) -> None:
        self._runner.running.control.part(Programs).remove(self._process)

    def _live(self) -> None:
        """All lives, in a thread of their own."""
        with ProgramLog(self._run.log) as log:
            for life in self._run.lives():
                self._over.wait(self._run.pause_before(life))
                with self._lock:
                    if self._over.is_set():
                        return
                    started, lifeline = self._started(log)
                log.note(f"start {life}: process {started.pid}: {' '.join(self._words)}")
                code = started.wait()
                self.status = code if code >= 0 else BY_SIGNAL - code
                self.statuses.append(self.status)
                self._process.send(signal.SIGKILL)  # nothing that it has started outlives it
                self._process.pid = 0
                os.close(lifeline)
                log.note(f"exit: status {self.status}")
                if self.after_life is not None and not self.is_over:
                    self.after_life()

    def _started(self, log: ProgramLog) -> tuple[subprocess.Popen[bytes], int]:
        """The process, and a descriptor that is open as long as the process may run."""
        gate, opened = os.pipe()
        try:
            started = subprocess.Popen(  # noqa: S603 - the command of the test
                ["sh", "-c", _GATE, str(gate), *self._words],  # noqa: S607
                env=self._environment,
                cwd=self._directory,
                stdout=log.output,
                stderr=log.output,
                process_group=0,
                pass_fds=[gate],
            )
            self.began = time.time()
            self.lives += 1
            self._process.pid = started.pid  # who sees it in another thread sees the life that it belongs to
            os.write(opened, b"\n")
        except BaseException:
            os.close(opened)
            raise
        finally:
            os.close(gate)
        return started, opened


class ProgramCalls:
    """The part of the handle that runs programs under test."""

    url: str
    _runner: Runner
    _programs: list[TestedProgram]

    @property
    def kubeconfig(self) -> Path:
        """A file for clients."""
        raise NotImplementedError

    def program(
        self,
        command: Sequence[str | os.PathLike[str]],
        *,
        restart: bool | int = False,
        log: str | os.PathLike[str] | None = None,
        environment: Mapping[str, str] | None = None,
        inherit: bool = True,
        directory: str | os.PathLike[str] | None = None,
    ) -> TestedProgram:
        """A program under test, which runs while the context is open; it finds the server by KUBECONFIG and NOXU_URL.

        Faults may be about it before it starts: `operator = noxu.program(…)`, `with noxu.fault(process="kill", …), operator:`.

        `restart`: start it again when it has ended or was killed, always (True) or at most so many times. `log`: a file for its
        output, and a line for each start and exit. `environment`: further variables; without `inherit` these are all, with PATH,
        and whether KUBECONFIG and NOXU_URL are among them is up to the caller.
        `directory`: where it runs.
        """
        variables = {"KUBECONFIG": str(self.kubeconfig), "NOXU_URL": self.url} if inherit else {}
        restarts = None if restart is True else int(restart)
        run = ProgramRun(0.0, restarts, None if log is None else Path(log))
        words = [os.fspath(word) for word in command]
        inherited = os.environ if inherit else {"PATH": os.environ.get("PATH", os.defpath)}
        program = TestedProgram(self._runner, words, {**inherited, **variables, **(environment or {})}, run, directory)
        self._programs.append(program)
        self._runner.submit(program.register()).result()
        return program

    def _register_programs(self) -> None:
        """Tell a server that was started again of the programs that are not over."""
        for program in self._programs:
            if not program.is_over:
                self._runner.submit(program.register()).result()
