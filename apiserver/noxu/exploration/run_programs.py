"""The programs of a run: how they are started, what they lack to be idle, and how they have ended.

A program gets nothing of the person's environment but PATH; HOME and TMPDIR are an empty directory of the run. One that ends by
itself is started again, as in a cluster.
"""

from __future__ import annotations

import re
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from noxu.control.recorded_requests import RecordedRequest
from noxu.exploration import pod_mounts, webhook_servers
from noxu.exploration.fair_clock import FairClock, looking_at
from noxu.exploration.plans import RunPlan
from noxu.exploration.recording import CONTROLLER, MAX_OUTPUT, PANIC, Life
from noxu.exploration.server import ExploredServer
from noxu.exploration.settings import ControllerCommand, Exploration
from noxu.testing.programs import TestedProgram
from noxu.testing.users import TestUser
from noxu.values import Object

IDLE_WITHIN: Final = 10.0  # seconds for a run to become idle after a step, at least
FIRST_IDLE_WITHIN: Final = 30.0  # seconds, if no run has shown yet how long it takes
SLOWER: Final = 5.0  # so many times as long as in the clean runs may it take
MIN_PATIENCE: Final = 1.5  # seconds
MAX_PATIENCE: Final = 6.0
BESIDE: Final = "beside"
"""How the users begin of programs that are no controllers: what they write counts as the workload's."""
OUTPUT: Final = "output"  # the file of what programs say
GRACE: Final = 1.0  # seconds between SIGTERM and SIGKILL at the end of a run, which is recorded by then
IN_VAIN: Final = 4
"""So many equal requests with equal answers are attempts in vain."""
NOT_ASKED: Final = ("leases.coordination.k8s.io", "events", "events.events.k8s.io")
"""Resources that a program writes again and again while it does nothing else."""
KILLED: Final = 128 + signal.SIGKILL
_VARIABLE: Final = re.compile(r"\$(?:(\w+)|\{(\w+)\})")


class KnownTimes(NamedTuple):
    """What the clean runs have shown. `watches`: how many each program opens when it starts. `seconds`: the longest time of a step."""

    watches: tuple[int, ...] = ()
    seconds: float = 0.0
    start: float = 0.0

    @property
    def idle_within(self) -> float:
        return max(IDLE_WITHIN, SLOWER * self.seconds) if self.seconds else FIRST_IDLE_WITHIN

    @property
    def patience(self) -> float:
        """So long may a controller be silent before it goes on: a step that waits takes as long as that."""
        return min(max(self.seconds + 0.5, MIN_PATIENCE), MAX_PATIENCE)


@dataclass(slots=True)
class RunPrograms:
    """The programs of a run, and their kubeconfigs' users."""

    started: list[TestedProgram]
    users: list[str]
    log: Path
    beside: list[TestedProgram] = field(default_factory=list)
    """What the programs connect to: it has begun before them, and is not started again."""
    clock: Callable[[], float] = time.monotonic
    """What limits are measured with: a `FairClock`."""
    kills: int = 0
    """How often a plan has killed them."""
    killed: dict[int, int] = field(default_factory=dict)
    """By the number of a program, its life that a plan has killed last: it may not have ended yet."""
    known: KnownTimes = field(default_factory=KnownTimes)
    slept: float = 0.0
    """For how many seconds has been waited because all were known to sleep."""
    left_out: float = 0.0
    """For how many seconds the workload has not waited for something, because a plan has hidden it from the controller."""
    webhooks: int = 0
    """The port of their webhooks; 0: they have none."""
    serving: set[tuple[int, int]] = field(default_factory=set)
    """The lives of programs, by their numbers, that have answered there."""

    def kill(self) -> None:
        """Kill all of them, which are started again then."""
        self.kills += 1
        for n, program in enumerate(self.started):
            if program.pid:
                self.killed[n] = program.lives
            program.send(signal.SIGKILL)


def made(
    server: ExploredServer,
    exploration: Exploration,
    plan: RunPlan,
    directory: Path,
    known: KnownTimes,
    after_life: Callable[[ExploredServer, str], None],
) -> RunPrograms:
    """The programs, which do not run yet. `after_life` is called with their users when one has ended."""
    programs = RunPrograms([], [], directory / OUTPUT, known=known)
    programs.clock = FairClock(looking_at(lambda: [each.pid for each in programs.started if each.pid]))
    home = directory / "home"
    home.mkdir()
    for number, each in enumerate(exploration.beside, 1):
        kubeconfig = str(server.user(f"{BESIDE}-{number}", ["system:masters"]).kubeconfig)
        environment = _environment(each, kubeconfig, home, server.url)
        words = replaced_words(each.command, environment)
        programs.beside.append(_program(server, each, words, environment, programs.log))
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
        words = replaced_words(controller.command, environment)
        if controller.has_mounts:
            files = directory / f"pod-{number}"
            files.mkdir()
            if controller.in_cluster:
                _write_files_of_pod(server, user, files, environment)
            pod_mounts.write_hosts(files, controller.hosts)
            words = pod_mounts.words(files, words)
        program = _program(server, controller, words, environment, programs.log, restart=True)
        program.after_life = partial(after_life, server, name)
        programs.started.append(program)
        programs.users.append(name)
    return programs


def _program(
    server: ExploredServer,
    wanted: ControllerCommand,
    words: Sequence[str],
    environment: dict[str, str],
    log: Path,
    *,
    restart: bool = False,
) -> TestedProgram:
    program = server.program(
        words, restart=restart, log=log, environment=environment, inherit=False, directory=wanted.directory
    )
    program.grace = GRACE
    return program


def ended_beside(programs: RunPrograms, exploration: Exploration) -> str:
    """Which program beside the controller has ended, although it is to run as long as that; "" for none."""
    for wanted, program in zip(exploration.beside, programs.beside, strict=True):
        if program.statuses:
            return f"beside: {' '.join(wanted.command)} ended with status {program.statuses[0]}:\n{tail(programs.log)}"
    return ""


def _write_files_of_pod(server: ExploredServer, user: TestUser, directory: Path, environment: dict[str, str]) -> None:
    """With these a program finds the server as in a pod; `environment` becomes that of a pod."""
    assert user.certificate_authority is not None  # over TLS
    authority = user.certificate_authority.read_bytes()
    pod_mounts.write_files(directory, server.token(user.name), authority, "default")
    address = urlsplit(server.url)
    del environment["KUBECONFIG"]  # which would come first
    environment |= {"KUBERNETES_SERVICE_HOST": str(address.hostname), "KUBERNETES_SERVICE_PORT": str(address.port)}


def _environment(controller: ControllerCommand, kubeconfig: str, home: Path, url: str) -> dict[str, str]:
    """What a program gets besides PATH: nothing of the person's. HOME is an empty directory of the run."""
    own = {"KUBECONFIG": kubeconfig, "NOXU_URL": url, "HOME": str(home), "TMPDIR": str(home)}
    given = {name: _replaced(text, own) for name, text in controller.environment.items()}
    return own | given


def replaced_words(words: Sequence[str], environment: dict[str, str]) -> list[str]:
    """A command in which $NAME of what the program gets is replaced: `--kubeconfig=$KUBECONFIG`, as no shell does it."""
    return [_replaced(word, environment) for word in words]


def _replaced(text: str, variables: dict[str, str]) -> str:
    return _VARIABLE.sub(lambda found: variables.get(found[1] or found[2], found[0]), text)


def watches(server: ExploredServer, users: list[str], since: float = 0.0) -> tuple[int, ...]:
    """How many watches each user has begun since a time."""
    begun = Counter(request.user for request in server.requests(verb="watch") if request.at >= since)
    return tuple(begun[user] for user in users)


def lacking(server: ExploredServer, programs: RunPrograms) -> str:
    """Which program does not run, or does not watch yet what it has watched in the clean runs; "" for none."""
    for n, program in enumerate(programs.started):
        if not program.pid or programs.killed.get(n) == program.lives:
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


def requests_since(server: ExploredServer, programs: RunPrograms, since: float) -> list[RecordedRequest]:
    """The requests of programs since a time, in seconds since 1970, without those for the resources of NOT_ASKED."""
    return [
        request
        for request in server.requests()
        if request.user in programs.users and request.at >= since and request.resource not in NOT_ASKED
    ]


def is_in_vain(asked: Iterable[RecordedRequest]) -> bool:
    """Whether the same thing was asked for again and again, with the same answer: more will not come of it."""
    again = Counter(
        (
            request.user,
            request.verb,
            request.resource,
            request.subresource,
            request.namespace,
            request.name,
            request.code,
        )
        for request in asked
    )
    return max(again.values(), default=0) >= IN_VAIN


def lives(programs: RunPrograms, fired: list[Object]) -> list[Life]:
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


def tail(path: Path) -> str:
    """The end of what programs have said; and before it how the last crash began, as what follows that may be long."""
    try:
        said = path.read_bytes().decode("utf-8", "replace")
    except OSError:
        return ""
    if len(said) <= MAX_OUTPUT:
        return said
    crash = next((found.start() for found in reversed(list(PANIC.finditer(said)))), len(said))
    if crash >= len(said) - MAX_OUTPUT:
        return said[-MAX_OUTPUT:]
    half = MAX_OUTPUT // 2
    before = said.rfind("\n", 0, max(crash - half // 2, 0)) + 1
    return f"{said[before : before + half]}\n…\n{said[-half:]}"
