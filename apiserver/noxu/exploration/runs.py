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
import signal
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NamedTuple, TypeAlias
from urllib.parse import urlsplit

from noxu.api.errors import ApiError
from noxu.exploration import invariants, pod_mounts, processes, steps, webhook_servers
from noxu.exploration.moves import Moves
from noxu.exploration.passing import pass_time
from noxu.exploration.plans import RunPlan
from noxu.exploration.recording import (
    CONTROLLER,
    MAX_OUTPUT,
    Life,
    ObjectPlace,
    RecordedChange,
    RunRecording,
    StepResult,
)
from noxu.exploration.server import ExploredServer
from noxu.exploration.settings import ControllerCommand, Exploration, SettingsError
from noxu.process.supervision import check_command
from noxu.testing.errors import Stopped, WaitTimeout
from noxu.testing.programs import TestedProgram
from noxu.testing.users import TestUser
from noxu.values import Object

FIRST_QUIET: Final = 1.0  # seconds without a request, after which a program has started that is not known yet
LOOKS_EVERY: Final = 0.02  # seconds
IDLE_WITHIN: Final = 10.0  # seconds for a run to become idle after a step, at least
WITH_VIEW: Final = 1.5  # seconds for a run to become idle whose controller sees the past
SLOWER: Final = 5.0  # so many times as long as in the clean runs may it take
TIME_OF_A_WAIT: Final = 20.0  # seconds of object time, in which what is waited for may come about
LISTS_WITHIN: Final = 5.0  # seconds
MIN_PATIENCE: Final = 1.5  # seconds
MAX_PATIENCE: Final = 6.0
MAX_LOG: Final = 8 * 1024 * 1024  # bytes of output, from which on the older ones are dropped
LOOKS_AT_LOG_EVERY: Final = 0.1  # seconds
OUTPUT: Final = "output"  # the file of what programs say
GRACE: Final = 1.0  # seconds between SIGTERM and SIGKILL at the end of a run, which is recorded by then
KILLED: Final = 128 + signal.SIGKILL


class KnownTimes(NamedTuple):
    """What the clean runs have shown. `watches`: how many each program opens when it starts. `seconds`: the longest time of a step."""

    watches: tuple[int, ...] = ()
    seconds: float = 0.0
    start: float = 0.0

    @property
    def idle_within(self) -> float:
        return max(IDLE_WITHIN, SLOWER * self.seconds)

    @property
    def patience(self) -> float:
        """So long may a controller be silent before it goes on: a step that waits takes as long as that."""
        return min(max(self.seconds + 0.5, MIN_PATIENCE), MAX_PATIENCE)


IsUsual: TypeAlias = Callable[[Sequence[RecordedChange], Sequence[tuple[ObjectPlace, Object]]], bool]
"""Whether a run may end with these changes and objects."""


def _always(_changes: Sequence[RecordedChange], _objects: Sequence[tuple[ObjectPlace, Object]]) -> bool:
    return True


class RunFailed(Exception):
    """A run cannot begin or go on. The message says why."""


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


_servers: Final[set[ExploredServer]] = set()  # of the runs that go on in this process
_interrupted: Final = threading.Event()


def interrupt() -> None:
    """End all runs of this process, in the midst of what they do, and begin no further one until `allow`. It does not wait."""
    _interrupted.set()
    for server in list(_servers):
        server.interrupt()


def allow() -> None:
    _interrupted.clear()


@dataclass(slots=True)
class _Programs:
    """The programs of a run, and their kubeconfigs' users."""

    started: list[TestedProgram]
    users: list[str]
    log: Path
    kills: int = 0
    """How often a plan has killed one."""
    known: KnownTimes = field(default_factory=KnownTimes)
    waits_left_out: bool = False
    """Whether the workload has not waited for something, because a plan has hidden it from the controller."""
    webhooks: int = 0
    """The port of their webhooks; 0: they have none."""
    serving: set[tuple[int, int]] = field(default_factory=set)
    """The lives of programs, by their numbers, that have answered there."""


def check(exploration: Exploration) -> Exploration:
    """The exploration, ready to run: its programs exist, and find what they need. Raises NotRunnable, SettingsError, LoadError."""
    for controller in exploration.controllers:
        check_command(controller.command[0])
    if any(controller.in_cluster for controller in exploration.controllers) and (failure := pod_mounts.failure()):
        raise SettingsError(
            f"controller.inCluster: {failure}; run as root, allow namespaces of users, or let the controller read $KUBECONFIG"
        )
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
    options: dict[str, Any] = (
        {} if exploration.nodes is None else {"nodes": exploration.nodes, "exec": exploration.answers}
    )
    if exploration.webhooks is not None:
        options["services"] = exploration.webhooks.services
        options["address"] = f"{webhook_servers.HOST}:{exploration.webhooks.port}"
    with (
        ExploredServer(manifests=exploration.manifests, history="all", tls=True, **options) as server,
        contextlib.ExitStack() as open_,
    ):
        open_.enter_context(_interruptible(server))
        _check_invariants(server, exploration)
        programs = _programs(server, exploration, plan, directory, known)
        loaded, bounds, results = server.revision, list[int](), list[StepResult]()

        def restart() -> None:
            programs.kills += 1
            for program in programs.started:
                program.send(signal.SIGKILL)

        with server.faults({"rules": list(plan.faults)}) as faults:
            for program in programs.started:
                open_.enter_context(program)
            results.append(_start(server, programs, exploration))
            watched = watches(server, programs.users)
            moves = server.moves(plan.moves, f"{CONTROLLER}*", restart)
            extra = {int(step["after"]): step for step in plan.steps}
            for number, step in enumerate(_workload(exploration, extra), 1):
                bounds.append(server.revision)
                server.begin_step(moves, number)
                results.append(_step(server, programs, step, exploration, number, moves))
                if results[-1].failure and plan.is_clean:
                    break
            fired = list(faults.fired)
        ports = processes.fixed_ports(processes.of_directory(directory))
        results.append(_end(server, programs, moves, exploration))
        changes, objects = server.changes(loaded, bounds), server.stored()
        if not results[-1].never_idle and not is_usual(changes, objects):
            results[-1] = _more_time(server, programs, exploration, results[-1], partial(is_usual, changes))
            changes, objects = server.changes(loaded, bounds), server.stored()
        requests, habits = _requests(server), server.habits()
        lives = _lives(programs, fired)
    output = _tail(programs.log)
    seconds = time.monotonic() - began
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
    )
    return replace(recording, broken=invariants.broken(exploration.invariants, recording))


def _check_invariants(server: ExploredServer, exploration: Exploration) -> None:
    """Raises RunFailed if one is about a resource that there is not."""
    for invariant in exploration.invariants:
        for name in invariants.compiled(invariant.expression).resources:
            if problem := server.unknown(name):
                raise RunFailed(f"invariants: {invariant.expression}: {problem}")


@contextlib.contextmanager
def _interruptible(server: ExploredServer) -> Iterator[None]:
    _servers.add(server)
    try:
        if _interrupted.is_set():
            raise RunInterrupted
        yield
    finally:
        _servers.discard(server)


@contextlib.contextmanager
def _bounded(log: Path) -> Iterator[None]:
    """Programs that write without end do not fill the disk: what there is of their output is dropped, which is appended."""
    over = threading.Event()

    def look() -> None:
        while not over.wait(LOOKS_AT_LOG_EVERY):
            with contextlib.suppress(OSError):
                if log.stat().st_size > MAX_LOG:
                    os.truncate(log, 0)

    thread = threading.Thread(target=look, name="noxu-explore-log", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _workload(exploration: Exploration, extra: dict[int, Object]) -> Iterator[steps.WorkloadStep]:
    for number, step in enumerate(exploration.workload, 1):
        yield step
        if number in extra:
            yield from steps.parse(extra[number]["steps"], Path(), "steps")


# -- programs ---------------------------------------------------------------------------------------------------------


def _programs(
    server: ExploredServer, exploration: Exploration, plan: RunPlan, directory: Path, known: KnownTimes
) -> _Programs:
    """The programs, which do not run yet. Raises RunFailed."""
    programs = _Programs([], [], directory / OUTPUT, known=known)
    home = directory / "home"
    home.mkdir()
    if exploration.webhooks is not None:
        programs.webhooks = exploration.webhooks.port
        certificates = exploration.webhooks.directory or f"$TMPDIR/{'/'.join(webhook_servers.SERVING)}"
        variables = {"HOME": str(home), "TMPDIR": str(home)}
        webhook_servers.write_certificate(exploration.webhooks, Path(_replaced(certificates, variables)))
    wanted = [each for each in exploration.controllers for _ in range(plan.instances)]
    for number, controller in enumerate(wanted, 1):
        name = CONTROLLER if number == 1 else f"{CONTROLLER}-{number}"
        user = server.user(name, ["system:masters"])
        environment = _environment(controller, str(user.kubeconfig), home, server.url)
        words: Sequence[str] = controller.command
        if controller.in_cluster:
            words = _in_cluster(server, user, directory / f"pod-{number}", words, environment)
        program = server.program(
            words,
            restart=True,
            log=programs.log,
            environment=environment,
            inherit=False,
            directory=controller.directory,
        )
        program.grace = GRACE
        program.after_life = partial(_release_locks, server, name)
        programs.started.append(program)
        programs.users.append(name)
    return programs


def _in_cluster(
    server: ExploredServer, user: TestUser, directory: Path, command: Sequence[str], environment: dict[str, str]
) -> list[str]:
    """The command, which finds the server as in a pod; `environment` becomes that of a pod."""
    assert user.certificate_authority is not None  # over TLS
    authority = user.certificate_authority.read_bytes()
    pod_mounts.write_files(directory, server.token(user.name), authority, "default")
    address = urlsplit(server.url)
    del environment["KUBECONFIG"]  # which would come first
    environment |= {"KUBERNETES_SERVICE_HOST": str(address.hostname), "KUBERNETES_SERVICE_PORT": str(address.port)}
    return pod_mounts.words(directory, command)


def _release_locks(server: ExploredServer, user: str) -> None:
    if not _interrupted.is_set():
        with contextlib.suppress(Stopped, CancelledError):  # it is interrupted meanwhile
            server.release_locks(user)


def _environment(controller: ControllerCommand, kubeconfig: str, home: Path, url: str) -> dict[str, str]:
    """What a program gets besides PATH: nothing of the person's. HOME is an empty directory of the run."""
    own = {"KUBECONFIG": kubeconfig, "NOXU_URL": url, "HOME": str(home), "TMPDIR": str(home)}
    given = {name: _replaced(text, own) for name, text in controller.environment.items()}
    return own | given


def _replaced(text: str, variables: dict[str, str]) -> str:
    for name, value in variables.items():
        text = text.replace(f"${{{name}}}", value).replace(f"${name}", value)
    return text


def _start(server: ExploredServer, programs: _Programs, exploration: Exploration) -> StepResult:
    """Wait for the first request of each program, and until it is idle."""
    began = time.monotonic()
    until = began + exploration.start_within
    while True:
        asked = {request.user for request in server.requests()}
        if asked.issuperset(programs.users):
            break
        if all(program.statuses for program in programs.started):
            statuses = ", ".join(str(program.statuses[0]) for program in programs.started)
            raise RunFailed(
                f"the controller ended with status {statuses} before it asked for anything:\n{_tail(programs.log)}"
            )
        if time.monotonic() > until:
            raise RunFailed(
                f"the controller has not asked for anything within {exploration.start_within:g} s: does it use "
                f"$KUBECONFIG?\n{_tail(programs.log)}"
            )
        time.sleep(LOOKS_EVERY)
    quiet = exploration.quiet if programs.known.watches else max(exploration.quiet, FIRST_QUIET)
    # informers of client-go whose lists are refused three times wait up to eleven seconds before they watch
    never_idle = _settle(server, programs, quiet, max(programs.known.idle_within, exploration.start_within))
    return StepResult("start", time.monotonic() - began, never_idle=never_idle)


def watches(server: ExploredServer, users: list[str], since: float = 0.0) -> tuple[int, ...]:
    """How many watches each user has begun since a time."""
    begun = Counter(request.user for request in server.requests(verb="watch") if request.at >= since)
    return tuple(begun[user] for user in users)


# -- steps ------------------------------------------------------------------------------------------------------------


def _step(
    server: ExploredServer,
    programs: _Programs,
    step: steps.WorkloadStep,
    exploration: Exploration,
    number: int,
    moves: Moves,
) -> StepResult:
    """A view lasts until the workload waits for something: the controller cannot reach what it does not see."""
    began = time.monotonic()
    failure = ""
    waits = step.kind != "wait" or number > moves.through
    if step.kind == "wait" and waits and server.end_views(moves):
        _await_lists(server, moves)
        time.sleep(exploration.quiet)  # as at the end
        _settle(server, programs, exploration.quiet)
    if not waits:
        programs.waits_left_out = True
    else:
        try:
            with _ending_views(server, programs, moves) if step.kind == "wait" else contextlib.nullcontext():
                steps.run(step, server)
        except (ApiError, WaitTimeout, LookupError, ValueError) as error:
            failure = str(error)
    _await_lists(server, moves)
    never_idle = settle_with_moves(server, programs, exploration.quiet, moves)
    if programs.waits_left_out and not never_idle and not moves.views:
        programs.waits_left_out = False
        pass_time(server, TIME_OF_A_WAIT)
        never_idle = _settle(server, programs, exploration.quiet)
    return StepResult(f"step {number}: {step.title}", time.monotonic() - began, failure, never_idle, bool(moves.views))


@contextlib.contextmanager
def _ending_views(server: ExploredServer, programs: _Programs, moves: Moves) -> Iterator[None]:
    """A view that begins while the workload waits ends when the controller has had the time to act on it."""
    over, lasts = threading.Event(), max(WITH_VIEW, 2 * programs.known.start)

    def end() -> None:
        since = 0.0
        while not over.wait(LOOKS_EVERY):
            since = since or (time.monotonic() if moves.views else 0.0)
            if since and time.monotonic() > since + lasts:
                server.end_views(moves)
                return

    thread = threading.Thread(target=end, name="noxu-explore-views", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _await_lists(server: ExploredServer, moves: Moves) -> None:
    """A client whose stream has ended lists again, after a pause of its own. One that does not is not waited for."""
    until = time.monotonic() + LISTS_WITHIN
    while moves.to_list and time.monotonic() < until:
        time.sleep(LOOKS_EVERY)
        asked = [request for request in server.requests(verb="watch") if request.user.startswith(CONTROLLER)]
        for resource, since in [*moves.to_list.items()]:
            if any(request.resource == resource and request.at >= since for request in asked):
                del moves.to_list[resource]
    moves.to_list.clear()


def settle_with_moves(server: ExploredServer, programs: _Programs, quiet: float, moves: Moves) -> str:
    """Wait until the run is idle. Returns why it is not, "" if it is.

    With a view of the past, which a move may bring at any moment, only for a while: the controller may try in vain what it sees no
    reason not to try, and that is no fault of its own. The while begins when the program that a move has ended has started again:
    on a busy machine that takes longer, and before it sees nothing of the past.
    """
    until = time.monotonic() + programs.known.idle_within
    a_while = max(WITH_VIEW, 2 * programs.known.start, 3 * quiet)
    while True:
        had_views, ran = bool(moves.views), not _lacking(server, programs)
        never_idle = _settle(server, programs, quiet, a_while)
        is_over = time.monotonic() > until
        if moves.views and (not never_idle or (had_views and (ran or is_over))):
            return ""
        if not moves.views and (not never_idle or is_over):
            return never_idle


def _end(server: ExploredServer, programs: _Programs, moves: Moves, exploration: Exploration) -> StepResult:
    """The faults are over: what the controller sees is the present, and it may catch up."""
    began = time.monotonic()
    server.end_views(moves)
    _await_lists(server, moves)
    time.sleep(exploration.quiet)  # what is shown only now has to arrive: it is no request
    return StepResult("end", time.monotonic() - began, never_idle=_settle(server, programs, exploration.quiet))


def _more_time(
    server: ExploredServer,
    programs: _Programs,
    exploration: Exploration,
    end: StepResult,
    is_usual: Callable[[Sequence[tuple[ObjectPlace, Object]]], bool],
) -> StepResult:
    """The end is not the usual one: a controller that is silent may be about to go on."""
    began, never_idle = time.monotonic(), ""
    while not never_idle and time.monotonic() < began + programs.known.patience and not is_usual(server.stored()):
        time.sleep(exploration.quiet)
        never_idle = _settle(server, programs, exploration.quiet)
    return StepResult(end.title, end.seconds + time.monotonic() - began, never_idle=never_idle)


def _settle(server: ExploredServer, programs: _Programs, quiet: float, within: float = 0.0) -> str:
    """Wait until the run is idle, and each program runs and watches. Returns why it is not, "" if it is.

    `within`: so many seconds, at most; 0: as many as the clean runs suggest.
    """
    until = time.monotonic() + (within or programs.known.idle_within)
    while True:
        left = max(until - time.monotonic(), quiet)
        try:
            server.idle(quiet, left)
        except ApiError as error:
            return error.message
        lacking = _lacking(server, programs)
        waits = _waits(server, programs.users, quiet)
        if not lacking and not waits:
            return ""
        if not lacking and time.monotonic() + waits < until:
            time.sleep(waits)  # it has been asked to wait, and is silent until then
            continue
        if time.monotonic() > until:
            return lacking
        time.sleep(LOOKS_EVERY)


def _waits(server: ExploredServer, users: list[str], quiet: float) -> float:
    """For how many seconds more an answer has asked a program to wait (Retry-After), and may it be silent after that."""
    asked = [
        request.at + request.retry_after
        for request in server.requests()
        if request.retry_after and request.user in users
    ]
    return max(max(asked, default=0.0) + quiet - time.time(), 0.0)


def _lacking(server: ExploredServer, programs: _Programs) -> str:
    """Which program does not run, or does not watch yet what it has watched in the clean runs; "" for none."""
    for n, program in enumerate(programs.started):
        if not program.pid:
            return "the controller has ended, and is not started again yet"
        if programs.webhooks and (n, program.lives) not in programs.serving:
            if not webhook_servers.is_listening(programs.webhooks):
                return f"the controller does not listen on port {programs.webhooks} for its webhooks"
            programs.serving.add((n, program.lives))
        if len(programs.started) == len(programs.known.watches):  # of two instances one may wait for a lease
            [begun] = watches(server, [programs.users[n]], program.began)
            if begun < programs.known.watches[n]:
                again = " again" if program.lives > 1 else ""
                return (
                    f"the controller has started{again}, and watches {begun} of {programs.known.watches[n]} resources"
                )
    return ""


# -- what is recorded -------------------------------------------------------------------------------------------------


def _requests(server: ExploredServer) -> list[tuple[str, str, int, int]]:
    asked = Counter(
        (request.verb, request.resource, request.code)
        for request in server.requests()
        if request.user.startswith(CONTROLLER) and request.verb
    )
    return [(*what, number) for what, number in sorted(asked.items())]


def _lives(programs: _Programs, fired: list[Object]) -> list[Life]:
    """Each life. As many ends by SIGKILL as the plan has caused are planned."""
    kills = programs.kills * len(programs.started) + sum("process" in hit for hit in fired)
    lives = []
    for n, program in enumerate(programs.started):
        ended = list(program.statuses)
        if program.is_over and program.lives == len(ended):
            ended = ended[:-1]  # the last one was ended by the run
        for status in ended:
            planned = status == KILLED and kills > 0
            kills -= planned
            lives.append(Life(n, status, planned))
        lives.append(Life(n, None, planned=False))
    return lives


def _tail(path: Path) -> str:
    try:
        with path.open("rb") as file:
            file.seek(0, 2)
            size = file.tell()
            file.seek(max(size - MAX_OUTPUT, 0))
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""
