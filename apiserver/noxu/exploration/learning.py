"""The clean runs: what they must show, what is noise in them, what is planned, and how many runs may go on at a time.

    first run, in the network of this process ─┬─ it listens on no fixed port ─ second run
                                               └─ it does ─ two runs at once, each in a network of its own ─┬─ they show the same
                                                                                                            └─ or not: second run

A controller that fails, ends or is never idle here ends the exploration with that finding. If it shows something else in a network
of its own, because it needs what is elsewhere, one run goes on at a time. A run mostly waits: as many go on at a time as keep the
processors busy, by what the first one has used and how long the shortest one has taken.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from noxu.config import StartError
from noxu.exploration import judging, masks, planning, runs, transitions
from noxu.exploration.attempts import Learnt
from noxu.exploration.findings import RunFinding
from noxu.exploration.plans import CLEAN
from noxu.exploration.recording import RunRecording
from noxu.exploration.run_programs import KnownTimes
from noxu.exploration.run_steps import RunFailed
from noxu.exploration.run_workers import RunWorkers, WorkerEnded
from noxu.exploration.settings import Exploration
from noxu.manifests.documents import LoadError

MOST_JOBS: Final = 16  # each takes about 150 MB
_QUOTA: Final = Path("/sys/fs/cgroup/cpu.max")
NOT_THERE: Final = (RunFailed, StartError, LoadError, WorkerEnded)
"""What a run raises that needs something that is not in its network, or that cannot have one."""
TRIALS: Final = 2  # clean runs in networks of their own, at once: what differs between them is noise


class UnusableController(Exception):
    """The controller does not do in a clean run what the workload needs. `findings` say what."""

    def __init__(self, findings: Sequence[RunFinding], recording: RunRecording) -> None:
        super().__init__(findings[0].sentence)
        self.findings, self.recording = findings, recording


def learn(exploration: Exploration) -> Learnt:
    """Clean runs, and the plans that are made of them. Raises UnusableController, RunFailed, StartError, LoadError, NotRunnable."""
    before = _processor_seconds()
    recordings = [_clean_run(exploration, KnownTimes())]
    used = _processor_seconds() - before
    ports = _ports(exploration, recordings)
    trials = _in_networks(exploration, recordings[0]) if ports and exploration.jobs != 1 else []
    if has_networks := _is_usual(exploration, trials, recordings):
        recordings += trials
    while len(recordings) < exploration.clean_runs:
        recordings.append(_clean_run(exploration, _known(recordings)))
    if not has_networks and (has_networks := _is_usual(exploration, recordings, trials)):
        recordings += trials
    shortest = min(recording.seconds for recording in recordings)  # a longer one may have slept
    jobs = exploration.jobs or jobs_for(used, shortest, _processors())
    mask = masks.learn(recordings, exploration.ignore)
    considered = transitions.consider(recordings[0], has_nodes=exploration.nodes is not None)
    ports = _ports(exploration, recordings)
    planned = planning.plans(considered, exploration.classes_to_run)
    return Learnt(
        recordings,
        mask,
        judging.clean_runs(recordings, mask),
        _known(recordings),
        [plan for plan in planned if plan.instances == 1 or not ports],
        ports,
        jobs if has_networks or not ports else 1,
        has_networks=has_networks,
    )


def _clean_run(exploration: Exploration, known: KnownTimes) -> RunRecording:
    recording = runs.run(exploration, CLEAN, known)
    if findings := judging.judge_clean(recording):
        raise UnusableController(findings, recording)
    return recording


def _ports(exploration: Exploration, recordings: Sequence[RunRecording]) -> list[int]:
    webhooks = () if exploration.webhooks is None else (exploration.webhooks.port,)
    return sorted({port for recording in recordings for port in recording.ports}.union(webhooks))


def _in_networks(exploration: Exploration, first: RunRecording) -> list[RunRecording]:
    """Clean runs in networks of their own; [] if the controller cannot do without something that is elsewhere."""
    mask = masks.learn([first], exploration.ignore)
    learnt = Learnt([first], mask, judging.clean_runs([first], mask), _known([first]), ())
    with (
        RunWorkers(exploration, learnt, own_networks=True) as workers,
        ThreadPoolExecutor(TRIALS, thread_name_prefix="noxu-explore") as pool,
    ):
        asked = [pool.submit(workers.clean_run) for _ in range(TRIALS)]
        try:
            runs.wait_for(asked)
            found = [each.result() for each in asked if not isinstance(each.exception(), NOT_THERE)]
        except BaseException:  # such as KeyboardInterrupt: what runs must not keep it waiting
            runs.interrupt()
            raise
    return [each for each in found if not judging.judge_clean(each)]


def _is_usual(exploration: Exploration, clean: Sequence[RunRecording], others: Sequence[RunRecording]) -> bool:
    """Whether one of the others shows what these do."""
    if not clean or not others:
        return False
    judged = judging.clean_runs(clean, masks.learn(clean, exploration.ignore))
    return not all(judging.judge(judged, CLEAN, other) for other in others)


def _known(recordings: Sequence[RunRecording]) -> KnownTimes:
    return KnownTimes(
        tuple(map(min, zip(*(recording.watches for recording in recordings), strict=True))),
        max(step.seconds for recording in recordings for step in recording.steps),
        max(recording.steps[0].seconds for recording in recordings),
    )


def jobs_for(used: float, seconds: float, processors: int) -> int:
    """How many runs at a time keep the processors busy, of which each uses so many seconds in so many seconds of wall time.

    No more, or all of them take longer, and what depends on time is another thing in each.
    """
    bearable = processors * seconds / max(used, 0.01)
    return min(max(int(bearable), processors), MOST_JOBS)


def allowed_processors(number: int, quota: str) -> int:
    """How many of them a process may use with this quota of its control group (cpu.max of cgroups(7)): `max 100000`, `150000 100000`."""
    time_, _, period = quota.partition(" ")
    if not time_.isdecimal() or not int(period or 0):
        return number
    return min(number, max(round(int(time_) / int(period)), 1))


def _processors() -> int:
    number = os.cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        number = len(os.sched_getaffinity(0))
    try:
        return allowed_processors(number, _QUOTA.read_text("ascii").strip())
    except (OSError, ValueError):
        return number


def _processor_seconds() -> float:
    """What this process has used, and those that it has started and that have ended."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system
