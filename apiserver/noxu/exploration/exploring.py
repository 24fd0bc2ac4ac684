"""An exploration: learn from clean runs, plan, run the plans, judge, confirm, shrink.

`explore` yields what happens as it happens, so that a command, a test and a page show the same. A finding is reported once it has
been confirmed: its plan is run again, with more patience for a controller that waits before it tries again. What does not
repeat is reported as unstable, apart. Of a plan with several parts, only those stay without which the finding goes away.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, NamedTuple, TypeAlias

from noxu.config import StartError
from noxu.control.faults.shrinking import smallest
from noxu.exploration import judging, masks, planning, runs, transitions
from noxu.exploration.findings import CleanRuns, RunFinding, is_done
from noxu.exploration.masks import Mask
from noxu.exploration.plans import CLEAN, RunPlan
from noxu.exploration.recording import RunRecording
from noxu.exploration.run_programs import KnownTimes
from noxu.exploration.run_steps import RunFailed
from noxu.exploration.runs import RunInterrupted
from noxu.exploration.settings import Exploration
from noxu.manifests.documents import LoadError

ATTEMPTS: Final = 3  # plans that show the same, of which none shows it again, before it counts as chance
SLEEPS: Final = 70.0  # seconds, in such a run: kopf tries again a minute after an error
PATIENCE: Final = 5.0  # so many times as quiet as usual has a run to be that confirms a finding


class Learnt(NamedTuple):
    """What the clean runs have shown."""

    recordings: Sequence[RunRecording]
    mask: Mask
    clean: CleanRuns
    known: KnownTimes
    plans: Sequence[RunPlan]
    ports: Sequence[int] = ()
    """At which the controller listens: only one of it runs at a time."""


class Judged(NamedTuple):
    """A plan that was run. `seconds` of wall time. `failed`: why it could not be run; "" if it was."""

    plan: RunPlan
    findings: Sequence[RunFinding]
    recording: RunRecording | None
    seconds: float
    failed: str = ""
    had_effect: bool = True
    """Whether anything of the plan has happened."""


class Confirmed(NamedTuple):
    """A finding, with the plan that shows it. `is_stable`: it showed again. `number` counts them, from 1 on."""

    number: int
    finding: RunFinding
    others: Sequence[RunFinding]
    plan: RunPlan
    recording: RunRecording
    is_stable: bool


Happening: TypeAlias = Learnt | Judged | Confirmed


@dataclass
class Explored:
    """What an exploration has found. `unusable`: findings of the clean runs, with which it ends."""

    learnt: Learnt | None = None
    judged: list[Judged] = field(default_factory=list)
    confirmed: list[Confirmed] = field(default_factory=list)
    unusable: Sequence[RunFinding] = ()
    left: Sequence[RunPlan] = ()
    """Plans for which there was no time."""
    seconds: float = 0.0

    def add(self, happening: Judged | Confirmed) -> None:
        if isinstance(happening, Judged):
            self.judged.append(happening)
        else:
            self.confirmed.append(happening)

    def finish(self, plans: Sequence[RunPlan], seconds: float) -> None:
        """It is over: those of the plans that were not run are left."""
        done = {id(judged.plan) for judged in self.judged}
        self.left = [plan for plan in plans if id(plan) not in done]
        self.seconds = seconds

    @property
    def findings(self) -> list[Confirmed]:
        return [each for each in self.confirmed if each.is_stable]

    @property
    def unstable(self) -> list[Confirmed]:
        return [each for each in self.confirmed if not each.is_stable]


class UnusableController(Exception):
    """The controller does not do in a clean run what the workload needs. `findings` say what."""

    def __init__(self, findings: Sequence[RunFinding], recording: RunRecording) -> None:
        super().__init__(findings[0].sentence)
        self.findings, self.recording = findings, recording


# -- learning ---------------------------------------------------------------------------------------------------------


def learn(exploration: Exploration) -> Learnt:
    """Clean runs, and the plans that are made of them. Raises UnusableController, RunFailed, StartError, LoadError, NotRunnable."""
    recordings: list[RunRecording] = []
    known = KnownTimes()
    for _ in range(exploration.clean_runs):
        recording = runs.run(exploration, CLEAN, known)
        if findings := judging.judge_clean(recording):
            raise UnusableController(findings, recording)
        recordings.append(recording)
        known = _known(recordings)
    mask = masks.learn(recordings, exploration.ignore)
    considered = transitions.consider(recordings[0], has_nodes=exploration.nodes is not None)
    clean = judging.clean_runs(recordings, mask)
    webhooks = () if exploration.webhooks is None else (exploration.webhooks.port,)
    ports = sorted({port for recording in recordings for port in recording.ports}.union(webhooks))
    planned = planning.plans(considered, exploration.classes_to_run)
    return Learnt(recordings, mask, clean, known, [plan for plan in planned if plan.instances == 1 or not ports], ports)


def _known(recordings: Sequence[RunRecording]) -> KnownTimes:
    return KnownTimes(
        tuple(map(min, zip(*(recording.watches for recording in recordings), strict=True))),
        max(step.seconds for recording in recordings for step in recording.steps),
        max(recording.steps[0].seconds for recording in recordings),
    )


# -- running ----------------------------------------------------------------------------------------------------------


def attempt(exploration: Exploration, learnt: Learnt, plan: RunPlan) -> Judged:
    """Run a plan, and judge it."""
    began = time.monotonic()
    try:
        recording = runs.run(exploration, plan, learnt.known, partial(judging.is_usual, learnt.clean))
    except (RunFailed, StartError, LoadError) as error:
        return Judged(plan, (), None, time.monotonic() - began, str(error), had_effect=False)
    findings = judging.judge(learnt.clean, plan, recording)
    return Judged(plan, findings, recording, time.monotonic() - began, had_effect=_had_effect(plan, recording))


_ONLY_MARKS: Final = frozenset({"when", "mark", "before", "through"})
"""A move with these alone changes nothing."""


def _had_effect(plan: RunPlan, recording: RunRecording) -> bool:
    fired = [hit for hit in recording.fired if "move" not in hit or set(hit["move"]) - _ONLY_MARKS]
    return bool(fired) or plan.instances > 1 or (bool(plan.steps) and is_done(plan, recording))


def explore(
    exploration: Exploration,
    learnt: Learnt,
    plans: Sequence[RunPlan],
    *,
    until: float,
    stop: Callable[[], bool] = lambda: False,
) -> Iterator[Judged | Confirmed]:
    """Run plans, `exploration.jobs` at a time, until a moment of the monotonic clock, or until `runs.interrupt`."""
    candidates = Candidates()
    waiting = list(plans)
    found: list[Callable[[], Judged | Confirmed]] = []  # to be confirmed, before other plans
    running: set[Future[Judged | Confirmed]] = set()
    jobs = 1 if learnt.ports else max(exploration.jobs, 1)
    with ThreadPoolExecutor(max_workers=jobs, thread_name_prefix="noxu-explore") as pool:
        try:
            while True:
                while len(running) < jobs and found:
                    running.add(pool.submit(found.pop(0)))
                while waiting and len(running) < jobs and time.monotonic() < until and not stop():
                    running.add(pool.submit(attempt, exploration, learnt, waiting.pop(0)))
                if not running:
                    return
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    happening = future.result()
                    if isinstance(happening, Judged):
                        chosen = candidates.judged(happening)
                    else:
                        chosen = candidates.confirmed(happening)
                    if chosen is not None:
                        found.append(partial(confirm, exploration, learnt, chosen, candidates.number))
                    yield happening
        except RunInterrupted:
            return
        except BaseException:  # such as KeyboardInterrupt: what runs must not keep it waiting
            runs.interrupt()
            raise


# -- confirming -------------------------------------------------------------------------------------------------------


Identity: TypeAlias = tuple[str, str, str, int]
"""Plans of one class that show the same in the same step."""


def _identity(plan: RunPlan, finding: RunFinding) -> Identity:
    return (plan.klass, *finding.signature, finding.step)


class Candidates:
    """Which plans are run again: of those that show the same one, and if it does not show that again, another one.

    What a plan shows by chance must not hide what another one shows each time.
    """

    def __init__(self) -> None:
        self.number = 0
        """Of the newest one that was chosen."""
        self._known: set[Identity] = set()
        self._chosen: dict[int, Identity] = {}
        self._attempts: Counter[Identity] = Counter()
        self._others: dict[Identity, list[Judged]] = {}

    def judged(self, judged: Judged) -> Judged | None:
        """It, if it is to be confirmed now."""
        if not judged.findings or judged.recording is None:
            return None
        identity = _identity(judged.plan, judged.findings[0])
        if identity in self._known:
            others = self._others.setdefault(identity, [])
            if identity in self._chosen.values() and len(others) < ATTEMPTS:
                others.append(judged)
            return None
        return self._choose(identity, judged)

    def confirmed(self, confirmed: Confirmed) -> Judged | None:
        """Another one that shows the same and is to be confirmed, if this one has not shown it again."""
        identity = self._chosen.pop(confirmed.number)
        others = self._others.setdefault(identity, [])
        if confirmed.is_stable:
            others.clear()
            # which may not be the gravest of the first run
            self._known.add(_identity(confirmed.plan, confirmed.finding))
        elif self._attempts[identity] < ATTEMPTS:
            if others:
                return self._choose(identity, others.pop(0))
            self._known.discard(identity)
        return None

    def _choose(self, identity: Identity, judged: Judged) -> Judged:
        self.number += 1
        self._chosen[self.number] = identity
        self._known.add(identity)
        self._attempts[identity] += 1
        return judged


def confirm(exploration: Exploration, learnt: Learnt, judged: Judged, number: int) -> Confirmed:
    """Run the plan again, and leave out what the finding does not need.

    The finding is the gravest of the first run that shows again: on a busy machine graver ones may be about time only.
    """
    patient = replace(exploration, quiet=min(exploration.quiet * PATIENCE, 3.0), sleeps=SLEEPS)
    again = attempt(patient, learnt, judged.plan)
    shown_again = {each.signature: each for each in reversed(again.findings)}  # the first of each signature
    finding = next((shown_again[each.signature] for each in judged.findings if each.signature in shown_again), None)
    assert judged.recording is not None
    if finding is None or again.recording is None:
        first, *others = judged.findings
        return Confirmed(number, first, others, judged.plan, judged.recording, is_stable=False)
    plan, recording, signature = judged.plan, again.recording, finding.signature
    if len(judged.plan.faults) > 1:

        def shows(faults: Sequence[object]) -> bool:
            smaller = judged.plan._replace(faults=tuple(faults))  # type: ignore[arg-type]
            found = attempt(exploration, learnt, smaller).findings
            return any(each.signature == signature for each in found)

        plan = judged.plan._replace(faults=tuple(smallest(judged.plan.faults, shows)))
    others = [each for each in again.findings if each.signature != signature]
    return Confirmed(number, finding, others, plan, recording, is_stable=True)
