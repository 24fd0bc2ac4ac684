"""Run a command beside something that is kept for it, such as a server: `noxu run -- COMMAND`.

Three processes, so that none of them leaves another one behind:

    supervisor      what was started: it waits for the command, passes signals on, and ends as the command does
     ├─ keeper      keeps what the command needs. It is forked, in a session of its own: no signal of the terminal reaches it
     └─ COMMAND     in the group of the supervisor, with its terminal, standard input and outputs

Two pipes connect supervisor and keeper. On the first one the keeper says what it keeps, a line of JSON. The second one is
the lifeline: on it the supervisor says which process the command is, and then nothing more. Its end means that the
supervisor has ended, however that happened, also by SIGKILL: the keeper ends the command, if that still runs, and itself.

Ctrl-C in a terminal sends SIGINT to all processes of the group, so the command has it already. Any other signal is sent to
the supervisor only, which passes it on. A program under test (`process.program`) has a group of its own instead, so that it
can be killed with what it has started; all signals are passed on to that group. The exit statuses are those of shells: 126 the command is no program, 127 there is
none, 128 + N signal N has ended it.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Final, NoReturn, Self

from noxu import garbage
from noxu.process.program import ONCE, ProgramLog, ProgramRun
from noxu.process.signals import STOPPING, Interrupted
from noxu.values import Object

NOT_EXECUTABLE: Final = 126
NOT_FOUND: Final = 127
BY_SIGNAL: Final = 128
GRACE: Final = 5.0  # seconds between SIGTERM and SIGKILL, for a command whose supervisor was killed
_POLL: Final = 0.05  # seconds
_IGNORED_BY_PYTHON: Final = [
    signal.Signals[name] for name in ("SIGPIPE", "SIGXFSZ") if name in signal.Signals.__members__
]


@dataclass(eq=False)
class Supervised:
    """The command, as its keeper knows it. `pid` is 0 while it does not run; `leads_group`: its group has its children, too."""

    leads_group: bool
    pid: int = 0

    def send(self, number: int) -> None:
        """Send a signal to it; nothing happens if it has ended."""
        pid = self.pid  # read once: a thread sets it, and 0 would mean the group of this process
        with contextlib.suppress(ProcessLookupError, PermissionError):  # macOS: all of the group are zombies
            if pid:
                (os.killpg if self.leads_group else os.kill)(pid, number)


Keep = Callable[[Callable[[Object], object], Supervised], int]
"""Keeps something until SIGTERM. It calls its first argument with what is kept, and returns an exit status."""


class NotRunnable(Exception):
    """A command cannot be run. `status` is the exit status for it."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def check_command(name: str) -> None:
    """Raises NotRunnable for what is certainly no program, and for any on Windows, which has no groups of processes."""
    if not hasattr(os, "fork"):
        raise NotRunnable(NOT_EXECUTABLE, f"{name} cannot be run: it needs fork(2), which Windows does not have")
    if shutil.which(name) is not None:
        return
    places = [""] if os.sep in name else os.get_exec_path()
    there = [place for place in places if Path(place, name).exists()]
    if there:
        raise NotRunnable(NOT_EXECUTABLE, f"{Path(there[0], name)} is not executable")
    raise NotRunnable(NOT_FOUND, f"there is no command {name}" + ("" if os.sep in name else " in the PATH"))


# -- the keeper --------------------------------------------------------------------------------------------------------


class Keeper:
    """A process that keeps something until `end`. It is forked, so only a process without threads may start one."""

    def __init__(self, keep: Keep, mask: set[int], *, leads_group: bool) -> None:
        """Made while signals wait; `mask` are those that wait in its process, too. Raises OSError."""
        said, say = os.pipe()  # which the command does not inherit, as no descriptor in Python
        lifeline, held = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(said)
            os.close(held)  # else its own end would hold the lifeline
            _keep(keep, say, lifeline, mask, Supervised(leads_group))
        os.close(say)
        os.close(lifeline)
        self._said, self._lifeline = os.fdopen(said), held
        self.status: int | None = None
        """Its exit status, when it has ended."""

    def kept(self) -> Object | None:
        """What it keeps, as soon as it says so; None: it has ended instead."""
        line = self._said.readline()
        found: Object | None = json.loads(line) if line else None
        return found

    def command_is(self, pid: int) -> None:
        """From now on the process ends with the supervisor; 0: it has ended. Returns when the keeper knows it."""
        with contextlib.suppress(BrokenPipeError):  # the keeper has ended
            os.write(self._lifeline, f"{pid}\n".encode())
            self._said.readline()

    def terminate(self) -> None:
        """Tell it to end."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGTERM)

    def end(self) -> int:
        """End it, and wait. Returns its exit status."""
        os.close(self._lifeline)
        self._said.close()
        while self.status is None:
            _, status = os.waitpid(self.pid, 0)
            self.status = exit_status(status)
        return self.status


@contextlib.contextmanager
def _signals_wait() -> Iterator[set[int]]:
    """Signals that arrive in the body act after it. Yields the mask of those that have waited before."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
    try:
        yield mask
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _keep(keep: Keep, say: int, lifeline: int, mask: set[int], command: Supervised) -> NoReturn:
    """The life of the keeper, which ends here."""
    try:
        for number in STOPPING:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, signal.SIG_DFL)  # the supervisor's functions are none of this process
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        os.setsid()
        with contextlib.suppress(OSError):  # stderr is closed
            os.dup2(2, 1)  # the standard output is the command's, and so is the end of a pipe that it may be
        threading.Thread(target=_end_with, args=(lifeline, say, command), name="noxu-lifeline", daemon=True).start()
        status = keep(lambda kept: os.write(say, f"{json.dumps(kept)}\n".encode()), command)
    except BaseException:  # noqa: BLE001 - it must not return into the code of the supervisor
        traceback.print_exc()
        status = 1
    garbage.end_process(status)


def _end_with(lifeline: int, say: int, command: Supervised) -> None:
    """Learn which process the command is until the supervisor ends; end the command, if it is still there, and this process."""
    with os.fdopen(lifeline) as lines:
        for line in lines:
            command.pid = int(line)
            with contextlib.suppress(BrokenPipeError):
                os.write(say, b"\n")
    if command.pid:
        command.send(signal.SIGTERM)
        command.send(signal.SIGCONT)  # what is paused cannot end
        until = time.monotonic() + GRACE
        while time.monotonic() < until and _is_there(command.pid):
            time.sleep(_POLL)
        if command.leads_group or _is_there(command.pid):
            command.send(signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGTERM)  # last: this thread ends with the process


def _is_there(pid: int) -> bool:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False


# -- the command -------------------------------------------------------------------------------------------------------


class Supervisor:
    """A context manager, in which signals are passed on to the command. Before there is one they end the keeper.

    No exception is raised where a signal arrives: it would be lost in code that ignores exceptions.
    """

    def __init__(self, complain: Callable[[str], object]) -> None:
        """`complain` gets messages for people."""
        self._complain = complain
        self._keeper: Keeper | None = None
        self._command = 0
        self._interrupted = 0
        self._ends = False
        """Whether a signal has arrived: there is no further life."""
        self._leads_group = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        for number in STOPPING:
            before = signal.getsignal(number)
            if (
                before is not signal.SIG_IGN
            ):  # as by nohup(1), or in the background of a script: the command inherits it
                self._before[number] = before
                signal.signal(number, self._received)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    def run(self, command: Sequence[str], keep: Keep, program: ProgramRun | None = None) -> int:
        """Run a command beside a keeper, which gives it variables of the environment, and return the exit status.

        That of its last life, if it is a program under test; that of the keeper, if it ends before the command can start.
        Raises NotRunnable, Interrupted, OSError.
        """
        self._leads_group = program is not None
        with _signals_wait() as mask:
            self._keeper = keeper = Keeper(keep, mask, leads_group=self._leads_group)
        try:
            variables = keeper.kept()
            if variables is not None:
                with ProgramLog(None if program is None else program.log) as log:
                    lived = self._lived(command, {**os.environ, **variables}, program or ONCE, log)
                if lived is not None:
                    return lived
        finally:
            for number in self._before:
                signal.signal(number, signal.SIG_IGN)  # what follows is the end, which is short
            status = keeper.end()
        if self._interrupted:
            raise Interrupted(self._interrupted)
        return status

    def _lived(
        self, command: Sequence[str], environment: Mapping[str, str], program: ProgramRun, log: ProgramLog
    ) -> int | None:
        """The exit status of the last life of a command; None: it has none, because a signal was faster."""
        keeper, status = self._keeper, None
        assert keeper is not None
        for life in program.lives():
            self._pause(program.pause_before(life))
            with _signals_wait() as mask:  # none may arrive after the question whether one has arrived
                if self._ends:
                    break
                self._command = _started(command, environment, mask, keeper, log.output, in_group=self._leads_group)
            log.note(f"start {life}: process {self._command}: {' '.join(command)}")
            if life == 1 and program.kill_after:
                self._kill_in(program.kill_after, log)
            status = self._waited(keeper)
            log.note(f"exit: status {status}")
            if keeper.status is not None:
                break  # there is no server any more
        return status

    def _waited(self, keeper: Keeper) -> int:
        """The exit status of the command, when it has ended."""
        while True:
            pid, status = os.waitpid(-1, 0)
            if pid == self._command:
                if self._leads_group:
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        os.killpg(pid, signal.SIGKILL)  # nothing that it has started outlives it
                self._command = 0
                keeper.command_is(0)  # another process may get its id
                return exit_status(status)
            if pid == keeper.pid:
                keeper.status = exit_status(status)
                self._complain("the server has ended, and the command runs on without it")

    def _pause(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while not self._ends and time.monotonic() < until:
            time.sleep(_POLL)

    def _kill_in(self, seconds: float, log: ProgramLog) -> None:
        """Kill the command after a time, if it is still the same one."""
        pid = self._command

        def kill(_number: int, _frame: FrameType | None) -> None:
            if self._command == pid:
                log.note(f"kill: after {seconds:g} seconds")
                self._send(signal.SIGKILL)

        signal.signal(signal.SIGALRM, kill)
        signal.setitimer(signal.ITIMER_REAL, seconds)

    def _received(self, number: int, _frame: FrameType | None) -> None:
        self._ends = True
        if not self._command:
            self._interrupted = number
            if self._keeper is not None:
                self._keeper.terminate()
            return
        if number == signal.SIGINT and not self._leads_group and _is_in_foreground():
            return  # the terminal has sent it to the command, too
        self._send(number)
        if self._leads_group:
            self._send(signal.SIGCONT)  # what is paused cannot react

    def _send(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            (os.killpg if self._leads_group else os.kill)(self._command, number)


def _started(
    command: Sequence[str],
    environment: Mapping[str, str],
    mask: set[int],
    keeper: Keeper,
    output: int | None,
    *,
    in_group: bool,
) -> int:
    """Start a command as a child, and return its id. `output`: where it writes; None: as this process. Raises NotRunnable, OSError.

    The child waits until the keeper knows it: if this process is killed in between, the child ends, too.
    """
    gate, opened = os.pipe()
    failure, failed = os.pipe()  # closed by the system when the child becomes the command
    pid = os.fork()
    if pid == 0:
        os.close(opened)  # else its own end would hold the gate
        if in_group:
            os.setpgid(0, 0)
        _become(command, environment, mask, gate, failed, output)
    if in_group:
        with contextlib.suppress(OSError):
            os.setpgid(pid, pid)  # both do it: neither may go on without the group
    os.close(gate)
    os.close(failed)
    keeper.command_is(pid)
    os.write(opened, b"!")
    os.close(opened)
    with os.fdopen(failure) as reported:
        error = reported.read()
    if error:
        os.waitpid(pid, 0)
        keeper.command_is(0)
        raise _not_runnable(command[0], int(error))
    return pid


def _become(
    command: Sequence[str],
    environment: Mapping[str, str],
    mask: set[int],
    gate: int,
    failed: int,
    output: int | None,
) -> NoReturn:
    """The life of the child until it is the command."""
    try:
        for number in (*STOPPING, *_IGNORED_BY_PYTHON):
            if number in _IGNORED_BY_PYTHON or signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, signal.SIG_DFL)
        if output is not None:
            os.dup2(output, 1)
            os.dup2(output, 2)
        if os.read(gate, 1):
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            os.execvpe(command[0], list(command), environment)  # noqa: S606 - the command of the user
    except OSError as error:
        os.write(failed, str(error.errno).encode())
    finally:
        os._exit(NOT_EXECUTABLE)


def _not_runnable(name: str, error: int) -> NotRunnable:
    if error == errno.ENOENT:  # of its interpreter, after `#!`: it is there itself
        return NotRunnable(NOT_FOUND, f"there is no command {name}, or no program that interprets it")
    hint = "; a script begins with #!" if error == errno.ENOEXEC else ""
    return NotRunnable(NOT_EXECUTABLE, f"{name} cannot be run: {os.strerror(error)}{hint}")


def exit_status(wait_status: int) -> int:
    """The exit status of a process that has ended, as shells have it."""
    code = os.waitstatus_to_exitcode(wait_status)
    return code if code >= 0 else BY_SIGNAL - code


def _is_in_foreground() -> bool:
    """Whether this process is in the group to which its terminal sends signals."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)
