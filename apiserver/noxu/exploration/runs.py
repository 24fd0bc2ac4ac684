"""One run: a fresh server, the program under test, the workload step by step, and what a plan does meanwhile.

    server starts ─ program starts ─ idle ─ step 1 ─ idle ─ … ─ step n ─ idle ─ faults and views end ─ idle ─ recorded

Idle means that the program has done what it does: it runs, watches what it has watched in the clean runs, and has not asked
for anything for `quiet` seconds. Every wait has a limit. A program that ends by itself is started again, as in a cluster;
a recording says so. Nothing is left of a run: neither process nor port nor file.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ALL_COMPLETED, FIRST_COMPLETED, CancelledError, Future, wait
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Protocol, TypeAlias, TypeVar

from noxu.control.recorded_requests import RecordedRequest
from noxu.exploration import (
    invariants,
    older_kinds,
    pod_mounts,
    processes,
    run_programs,
    run_steps,
    steps,
    webhook_servers,
)
from noxu.exploration.findings import own_steps
from noxu.exploration.meanwhile import meanwhile
from noxu.exploration.plans import RunPlan
from noxu.exploration.recording import (
    CONTROLLER,
    PANIC,
    ObjectPlace,
    RecordedChange,
    RunRecording,
    StepResult,
)
from noxu.exploration.run_programs import OUTPUT, KnownTimes
from noxu.exploration.run_steps import RunFailed
from noxu.exploration.server import ExploredServer
from noxu.exploration.settings import Exploration, SettingsError
from noxu.process.supervision import check_command
from noxu.testing.errors import Stopped
from noxu.values import Object

MAX_LOG: Final = 8 * 1024 * 1024  # bytes of output, from which on the older ones are dropped
LOOKS_AT_LOG_EVERY: Final = 0.1  # seconds
LOOKS_FOR_SIGNALS_EVERY: Final = 0.2  # seconds

T = TypeVar("T")
IsUsual: TypeAlias = Callable[[Sequence[RecordedChange], Sequence[tuple[ObjectPlace, Object]]], bool]
"""Whether a run may end with these changes and objects."""


def _always(_changes: Sequence[RecordedChange], _objects: Sequence[tuple[ObjectPlace, Object]]) -> bool:
    return True


class RunInterrupted(Exception):
    """The exploration was ended while a run went on: `interrupt`."""


class _Interruptible:
    """A run that was interrupted has no result, whether something failed in it or not: RunInterrupted."""

    def __enter__(self) -> None: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if _interrupted.is_set() and (error is None or isinstance(error, Exception)):
            raise RunInterrupted from None


class HasRuns(Protocol):
    """Where runs go on."""

    def interrupt(self) -> None:
        """End them. It does not wait."""


_running: Final[set[HasRuns]] = set()  # in this process
_interrupted: Final = threading.Event()


def interrupt() -> None:
    """End all runs of this process, in the midst of what they do, and begin no further one until `allow`. It does not wait."""
    _interrupted.set()
    for each in list(_running):
        each.interrupt()


def interrupt_soon() -> None:
    """Likewise, in a thread of its own: for a handler of a signal, which must take no lock."""
    threading.Thread(target=interrupt, name="noxu-interrupt").start()


def allow() -> None:
    _interrupted.clear()


def wait_for(futures: Iterable[Future[T]], return_when: str = ALL_COMPLETED) -> tuple[set[Future[T]], set[Future[T]]]:
    """Those that are done, and the others, as of `concurrent.futures.wait`; handlers of signals run meanwhile.

    A signal that arrives just before its thread waits for a lock does not wake it, so it is not left there for long.
    """
    waiting = set(futures)
    while True:
        done, others = wait(waiting, LOOKS_FOR_SIGNALS_EVERY, return_when)
        if not others or (done and return_when == FIRST_COMPLETED):
            return done, others


def check(exploration: Exploration) -> Exploration:
    """The exploration, ready to run: its programs exist, and find what they need. Raises NotRunnable, SettingsError, LoadError."""
    for program in (*exploration.controllers, *exploration.beside):
        check_command(program.command[0])
    for name, given in (("exec", exploration.answers), ("stages", exploration.stages)):
        if given and exploration.nodes is None:
            raise SettingsError(f"{name}: there are no pods without simulated nodes: add `nodes: 1`")
    for controller in exploration.controllers:
        if controller.has_mounts and (failure := pod_mounts.failure()):
            what, instead = (
                ("inCluster", "let the controller read $KUBECONFIG")
                if controller.in_cluster
                else ("hosts", "name them in /etc/hosts")
            )
            raise SettingsError(f"controller.{what}: {failure}; run as root, allow namespaces of users, or {instead}")
    return webhook_servers.prepared(exploration)


def run(
    exploration: Exploration,
    plan: RunPlan,
    known: KnownTimes = KnownTimes(),  # noqa: B008 - immutable
    is_usual: IsUsual = _always,
) -> RunRecording:
    """Raises RunFailed, StartError, LoadError, NotRunnable.

    `is_usual`: whether the run may end in this state; if not, the controller gets more time to reach another one.
    """
    directory = Path(tempfile.mkdtemp(prefix="noxu-explore-"))
    try:
        with _Interruptible(), _bounded(directory / OUTPUT):
            return _run(exploration, plan, known, directory, is_usual)
    finally:
        processes.kill_those_of(directory)  # such as one that has left its group
        shutil.rmtree(directory, ignore_errors=True)


def _run(
    exploration: Exploration, plan: RunPlan, known: KnownTimes, directory: Path, is_usual: IsUsual
) -> RunRecording:
    began = time.monotonic()
    options: dict[str, Any] = {}
    if exploration.nodes is not None:
        options |= {"nodes": exploration.nodes, "stages": exploration.stages}
    if exploration.webhooks is not None:
        options["services"] = exploration.webhooks.services
        options["address"] = f"{webhook_servers.HOST}:{exploration.webhooks.port}"
    kinds = [older_kinds.write(each, directory) if isinstance(each, str) else each for each in exploration.kinds]
    with (
        ExploredServer(manifests=exploration.manifests, kinds=kinds, history="all", tls=True, **options) as server,
        contextlib.ExitStack() as open_,
    ):
        open_.enter_context(interruptible(server))
        _check_invariants(server, exploration)
        for rule in exploration.answers:
            server.pods.exec(rule.pods, rule.command, exact=rule.exact, **rule.result._asdict())
        programs = run_programs.made(server, exploration, plan, directory, known, _release_locks)
        began_fair = programs.clock() - time.monotonic()
        loaded, bounds, results = server.revision, list[int](), list[StepResult]()
        warnings, said = list[str](), ""  # when the first step failed: later ones have some of their own

        with server.faults({"rules": list(plan.faults)}) as faults:
            for program in (*programs.beside, *programs.started):
                open_.enter_context(program)
            results.append(run_steps.start(server, programs, exploration))
            watched = run_programs.watches(server, programs.users)
            moves = server.moves(plan.moves, f"{CONTROLLER}*", programs.kill)
            extra = {int(step["after"]): step for step in plan.steps}
            own = own_steps(plan) if plan.klass == "drift" else range(0)
            for number, step in enumerate(_workload(exploration, extra), 1):
                bounds.append(server.revision)
                server.begin_step(moves, number)
                before = dict(server.stored()) if exploration.resync and number in own else {}
                result = run_steps.run_step(server, programs, step, exploration, number, moves)
                results.append(result._replace(tries_again=run_steps.tries_again(server, programs, faults.fired)))
                if before:
                    run_steps.until_restored(server, programs, exploration, before)
                if results[-1].failure and not said:
                    warnings, said = server.warnings(), run_programs.tail(programs.log)
                if plan.is_clean and (results[-1].failure or results[-1].never_idle):
                    break
            fired = list(faults.fired)
        if ended := run_programs.ended_beside(programs, exploration):
            raise RunFailed(ended)
        ports = processes.fixed_ports(processes.of_directory(directory))
        results.append(run_steps.end(server, programs, moves, exploration))
        changes, objects = server.changes(loaded, bounds), server.stored()
        if not results[-1].never_idle and not is_usual(changes, objects):
            results[-1] = run_steps.more_time(server, programs, exploration, results[-1], partial(is_usual, changes))
            changes, objects = server.changes(loaded, bounds), server.stored()
        results[-1] = results[-1]._replace(tries_again=run_steps.tries_again(server, programs, fired))
        requests, refusals, habits = _requests(server), _refusals(server), server.habits()
        lives = run_programs.lives(programs, fired)
        waited = began_fair - (programs.clock() - time.monotonic())
    output = run_programs.tail(programs.log)
    if said and not PANIC.search(output):
        output = said
    seconds = time.monotonic() - began - waited
    recording = RunRecording(
        changes,
        objects,
        requests,
        lives,
        results,
        output,
        seconds,
        [*fired, *moves.made],
        habits=habits,
        watches=watched,
        ports=tuple(ports),
        refusals=refusals,
        warnings=warnings,
    )
    return replace(recording, broken=invariants.broken(exploration.invariants, recording))


def _check_invariants(server: ExploredServer, exploration: Exploration) -> None:
    """Raises RunFailed if one is about a resource that there is not."""
    for invariant in exploration.invariants:
        for name in invariants.compiled(invariant.expression).resources:
            if problem := server.unknown(name):
                raise RunFailed(f"invariants: {invariant.expression}: {problem}")


@contextlib.contextmanager
def interruptible(runs: HasRuns) -> Iterator[None]:
    """`interrupt` ends them while the block waits for what they do. Raises RunInterrupted."""
    with _Interruptible():
        _running.add(runs)
        try:
            if _interrupted.is_set():
                raise RunInterrupted
            yield
        finally:
            _running.discard(runs)


def _bounded(log: Path) -> AbstractContextManager[None]:
    """Programs that write without end do not fill the disk: what there is of their output is dropped, which is appended."""

    def look(over: threading.Event) -> None:
        while not over.wait(LOOKS_AT_LOG_EVERY):
            with contextlib.suppress(OSError):
                if log.stat().st_size > MAX_LOG:
                    os.truncate(log, 0)

    return meanwhile("log", look)


def _workload(exploration: Exploration, extra: dict[int, Object]) -> Iterator[steps.WorkloadStep]:
    for number, step in enumerate(exploration.workload, 1):
        yield step
        if number in extra:
            yield from steps.parse(extra[number]["steps"], Path(), "steps")


def _release_locks(server: ExploredServer, user: str) -> None:
    if not _interrupted.is_set():
        with contextlib.suppress(Stopped, CancelledError):  # it is interrupted meanwhile
            server.release_locks(user)


# -- what is recorded -------------------------------------------------------------------------------------------------


def _refusals(server: ExploredServer) -> list[tuple[str, int, str]]:
    """The kinds of requests that were answered with errors only: what, how often, and the last message.

    That there is not what is read, or that there is what is created, is no refusal.
    """
    refused: dict[str, tuple[int, str]] = {}
    succeeded = set[str]()
    for request in server.requests():
        if not request.user.startswith(CONTROLLER) or not request.verb:
            continue
        what = f"{request.verb} of {_what(request)}"
        if request.code < HTTPStatus.BAD_REQUEST or (request.verb, request.code) in _EXPECTED:
            succeeded.add(what)
        else:
            refused[what] = (refused.get(what, (0, ""))[0] + 1, f"{request.code} {request.message or request.reason}")
    return [(what, *found) for what, found in refused.items() if what not in succeeded]


def _what(request: RecordedRequest) -> str:
    """`pods`, `pods/exec`."""
    return f"{request.resource}/{request.subresource}" if request.subresource else request.resource


_EXPECTED: Final = (("get", HTTPStatus.NOT_FOUND), ("create", HTTPStatus.CONFLICT), ("delete", HTTPStatus.NOT_FOUND))


def _requests(server: ExploredServer) -> list[tuple[str, str, int, int]]:
    asked = Counter(
        (request.verb, _what(request), request.code)
        for request in server.requests()
        if request.user.startswith(CONTROLLER) and request.verb
    )
    return [(*what, number) for what, number in sorted(asked.items())]
