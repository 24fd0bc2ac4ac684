"""Runs in processes of their own, so that several at a time do not wait for each other: threads share one interpreter.

    explore ── (exploration, learnt), then ("attempt", plan), ("confirm", judged, number) or ("clean_run",) ──▶ worker
            ◀──────────── (True, what that returns) or (False, what that raises) ────────────

A worker is a process of this interpreter, in a session of its own: signals of the terminal do not reach it. It ends what it runs on
SIGTERM, and when the process that asks is gone, however that has ended. What it leaves is in one directory, which goes with it. With a
network of its own (network_namespaces(7) of Linux, a loopback interface and nothing else) it can run what listens on a fixed port, while
others do: for root, or where users may have namespaces of their own.
"""

from __future__ import annotations

import contextlib
import logging
import os
import pickle
import queue
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Final, Self

from noxu import garbage
from noxu.exploration import pod_mounts, processes, python_programs, runs
from noxu.exploration.attempts import Confirmed, Judged, Learnt, attempt, clean_run, confirm, patient_clean_run
from noxu.exploration.plans import RunPlan
from noxu.exploration.recording import RunRecording
from noxu.exploration.run_steps import RunFailed
from noxu.exploration.settings import Exploration

try:  # noqa: SIM105 - a test looks for names that a platform lacks
    import fcntl
except ImportError:  # Windows
    pass

ENDS_WITHIN: Final = 10.0  # seconds, after which a worker is killed
OWN_NETWORK: Final = "own-network"
_WORK: Final = "import sys; from noxu.exploration import run_workers; run_workers.work(*sys.argv[1:])"
_CALLS: Final[dict[str, Callable[..., object]]] = {
    called.__name__: called for called in (clean_run, patient_clean_run, attempt, confirm)
}
_NEW_NETWORK: Final = 0x40000000  # CLONE_NEWNET
_SET_FLAGS: Final = 0x8914  # SIOCSIFFLAGS
_UP: Final = 0x1 | 0x40  # IFF_UP, IFF_RUNNING
_INTERFACE: Final = struct.Struct("16sH22x")  # ifreq: name and flags


class WorkerEnded(Exception):
    """The process has ended in the midst of a run. The message says so."""


class RunWorkers:
    """As many processes as runs go on at a time. They begin when they are needed, and end with the block."""

    def __init__(self, exploration: Exploration, learnt: Learnt, *, own_networks: bool = False) -> None:
        self._own_networks = own_networks
        self._first = pickle.dumps((exploration, learnt._replace(plans=())), pickle.HIGHEST_PROTOCOL)
        self._idle: list[_Worker] = []  # shared by the threads that ask

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        for worker in self._idle:
            worker.end()

    def clean_run(self) -> RunRecording:
        """As `attempts.clean_run`. Raises RunFailed, StartError, LoadError, RunInterrupted, WorkerEnded."""
        recording: RunRecording = self._ask("clean_run")
        return recording

    def patient_clean_run(self) -> RunRecording | None:
        """As `attempts.patient_clean_run`. Raises RunInterrupted."""
        try:
            recording: RunRecording | None = self._ask("patient_clean_run")
        except WorkerEnded:
            return None
        return recording

    def attempt(self, plan: RunPlan) -> Judged:
        """As `attempts.attempt`. Raises RunInterrupted."""
        began = time.monotonic()
        try:
            judged: Judged = self._ask("attempt", plan)
        except WorkerEnded as error:
            return Judged(plan, (), None, time.monotonic() - began, str(error), had_effect=False)
        return judged._replace(plan=plan)  # that one, and not a copy

    def confirm(self, judged: Judged, number: int) -> Confirmed:
        """As `attempts.confirm`. Raises RunInterrupted."""
        try:
            confirmed: Confirmed = self._ask("confirm", judged, number)
        except WorkerEnded:
            first, *others = judged.findings
            assert judged.recording is not None
            return Confirmed(number, first, others, judged.plan, judged.recording, is_stable=False)
        return confirmed

    def _ask(self, *call: object) -> Any:
        worker = self._idle.pop() if self._idle else _Worker(self._first, OWN_NETWORK if self._own_networks else "")
        try:
            with runs.interruptible(worker):
                is_done, answer = worker.ask(call)
        finally:
            if worker.is_alive:
                self._idle.append(worker)
            else:
                worker.end()
        if not is_done:
            raise answer
        return answer


class _Worker:
    """One process. Raises WorkerEnded if it cannot be started."""

    def __init__(self, first: bytes, network: str) -> None:
        self._first = first
        self._directory = Path(tempfile.mkdtemp(prefix="noxu-explore-"))
        words, needed = python_programs.this_interpreter("-P", "-c", _WORK, str(self._directory), network)
        try:
            self._process = subprocess.Popen(  # noqa: S603 - this interpreter
                words,
                env={**os.environ, **needed},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            self._directory.rmdir()
            raise WorkerEnded(f"no process can be started: {error}") from None

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, call: tuple[object, ...]) -> tuple[bool, Any]:
        """Raises WorkerEnded."""
        asked, answers = self._process.stdin, self._process.stdout
        assert asked is not None
        assert answers is not None
        first, self._first = self._first, b""
        try:
            asked.write(first + pickle.dumps(call, pickle.HIGHEST_PROTOCOL))
            asked.flush()
            is_done, answer = pickle.load(answers)  # noqa: S301 - of a process that this one has started
        except (OSError, EOFError, pickle.UnpicklingError):
            raise WorkerEnded(f"the process of the run has ended with status {self.end()}") from None
        return is_done, answer

    def interrupt(self) -> None:
        """End what it runs. It does not wait."""
        self._process.terminate()

    def end(self) -> int:
        """Return its exit status. Nothing is left of it."""
        for stream in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):  # what was not read yet cannot be written
                if stream is not None:
                    stream.close()
        try:
            return self._process.wait(ENDS_WITHIN)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()
        finally:
            processes.kill_those_of(self._directory)
            shutil.rmtree(self._directory, ignore_errors=True)


# -- in the process ---------------------------------------------------------------------------------------------------


def work(directory: str, network: str) -> None:
    """Do what is asked for on standard input, until that ends. `network`: OWN_NETWORK, or "". Exit status FORBIDDEN: it has none."""
    if network == OWN_NETWORK:
        try:
            enter_network()
        except OSError:
            garbage.end_process(pod_mounts.FORBIDDEN)
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what is printed is no answer
    tempfile.tempdir = directory
    logging.getLogger("noxu").setLevel(logging.ERROR)  # what controllers of a server warn of is in its events
    signal.signal(signal.SIGTERM, lambda _number, _frame: runs.interrupt_soon())
    asked: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(sys.stdin.buffer, asked), name="noxu-asked", daemon=True).start()
    first = asked.get()
    garbage.begin(garbage.OF_A_SERVER)
    with ThreadPoolExecutor(1, thread_name_prefix="noxu-run") as pool:
        while first is not None and (call := asked.get()) is not None:
            name, *arguments = call
            submitted = pool.submit(_CALLS[name], *first, *arguments)
            runs.wait_for([submitted])
            with contextlib.suppress(OSError):  # the process that asked is gone
                answers.write(_answer(submitted))
                answers.flush()
    shutil.rmtree(directory, ignore_errors=True)  # the process that asked may be gone
    garbage.end_process(0)


def enter_network() -> None:
    """Enter a new network, with all that this process starts. There must be no other threads yet. Raises OSError."""
    if sys.platform != "linux":
        raise OSError("only Linux has networks of processes")
    pod_mounts.enter(_NEW_NETWORK)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SET_FLAGS, _INTERFACE.pack(b"lo", _UP))


def _answer(done: Future[object]) -> bytes:
    """What is returned, or what is raised where it was asked for, with the traceback of this process."""
    error = done.exception()
    if error is None:
        return pickle.dumps((True, done.result()), pickle.HIGHEST_PROTOCOL)
    text = "".join(traceback.format_exception(error))
    error.add_note(text)
    try:
        return pickle.dumps((False, error))
    except (pickle.PicklingError, TypeError, AttributeError):  # it has what is of this process only
        return pickle.dumps((False, RunFailed(text)))


def _read(stream: BinaryIO, asked: queue.SimpleQueue[Any]) -> None:
    with contextlib.suppress(OSError, EOFError, pickle.UnpicklingError):
        while True:
            asked.put(pickle.load(stream))  # noqa: S301 - of the process that has started this one
    runs.interrupt()
    asked.put(None)
