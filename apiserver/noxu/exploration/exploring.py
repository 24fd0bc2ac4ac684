"""An exploration: what was learnt and planned is run, judged, confirmed.

`explore` yields what happens as it happens, so that a command, a test and a page show the same. A finding is reported once it has
been confirmed: what does not repeat is reported as unstable, apart. Several runs at a time are in processes of their own, unless
the controller can only run once.
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeAlias

from noxu.exploration import runs
from noxu.exploration.attempts import (
    Confirmed,
    Judged,
    JudgeRun,
    Learnt,
    attempt,
    confirm,
    judging_with,
    patient_clean_run,
)
from noxu.exploration.findings import RunFinding
from noxu.exploration.plans import RunPlan
from noxu.exploration.recording import RunRecording
from noxu.exploration.run_workers import RunWorkers
from noxu.exploration.runs import RunInterrupted
from noxu.exploration.settings import Exploration

ATTEMPTS: Final = 3  # plans that show the same, of which none shows it again, before it counts as chance

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


# -- running ----------------------------------------------------------------------------------------------------------


def explore(
    exploration: Exploration,
    learnt: Learnt,
    plans: Sequence[RunPlan],
    *,
    until: float,
    stop: Callable[[], bool] = lambda: False,
) -> Iterator[Judged | Confirmed]:
    """Run plans, `learnt.jobs` at a time, until a moment of the monotonic clock, or until `runs.interrupt`.

    With the first that is to be confirmed another clean run begins: what it shows, too, is noise that was not known yet.
    """
    candidates, held = Candidates(), HeldFindings(partial(judging_with, exploration, learnt))
    jobs = learnt.jobs if len(plans) > 1 else 1
    waiting = list(plans)
    found: list[Callable[[], _Outcome]] = []  # to be confirmed, before other plans
    running: set[Future[_Outcome]] = set()
    run: Callable[[RunPlan], Judged] = partial(attempt, exploration, learnt)
    run_again: Callable[[Judged, int], Confirmed] = partial(confirm, exploration, learnt)
    run_clean: Callable[[], RunRecording | None] = partial(patient_clean_run, exploration, learnt)
    with contextlib.ExitStack() as open_:
        if jobs > 1:
            workers = open_.enter_context(RunWorkers(exploration, learnt, own_networks=learnt.has_networks))
            run, run_again, run_clean = workers.attempt, workers.confirm, workers.patient_clean_run
        pool = open_.enter_context(ThreadPoolExecutor(max_workers=jobs, thread_name_prefix="noxu-explore"))
        try:
            while True:
                while len(running) < jobs and found:
                    running.add(pool.submit(found.pop(0)))
                while waiting and len(running) < jobs and time.monotonic() < until and not stop():
                    running.add(pool.submit(run, waiting.pop(0)))
                if not running:
                    return
                done, running = runs.wait_for(running, FIRST_COMPLETED)
                for happening in [each for future in done for each in held.settled(future.result())]:
                    if isinstance(happening, Judged):
                        chosen = candidates.judged(happening)
                    else:
                        chosen = candidates.confirmed(happening)
                    if chosen is not None:
                        found += [run_clean] if candidates.number == 1 else []
                        found.append(partial(run_again, chosen, candidates.number))
                    yield happening
        except RunInterrupted:
            return
        except BaseException:  # such as KeyboardInterrupt: what runs must not keep it waiting
            runs.interrupt()
            raise


_Outcome: TypeAlias = Judged | Confirmed | RunRecording | None
"""Of a run; that of the clean one is a recording, or None."""


class HeldFindings:
    """What has shown again waits for one more clean run, which may show it, too. `judging_with` makes of that how runs are judged."""

    def __init__(self, judging_with: Callable[[RunRecording], JudgeRun]) -> None:
        self._judging_with = judging_with
        self._waiting: list[Confirmed] = []
        self._judge: JudgeRun | None = None
        self._is_over = False

    def settled(self, outcome: _Outcome) -> list[Judged | Confirmed]:
        """What is known for good when a run has ended."""
        if isinstance(outcome, Judged):
            return [self._judged(outcome)]
        if isinstance(outcome, Confirmed):
            self._waiting.append(outcome)
        else:
            self._judge = None if outcome is None else self._judging_with(outcome)
            self._is_over = True
        if not self._is_over:
            return []
        released, self._waiting = self._waiting, []
        return [self._confirmed(each) for each in released]

    def _judged(self, judged: Judged) -> Judged:
        if self._judge is None or judged.recording is None or not judged.findings:
            return judged
        return judged._replace(findings=self._judge(judged.plan, judged.recording))

    def _confirmed(self, confirmed: Confirmed) -> Confirmed:
        if not confirmed.is_stable or self._judge is None:
            return confirmed
        shown = {finding.signature for finding in self._judge(confirmed.plan, confirmed.recording)}
        return confirmed if confirmed.finding.signature in shown else confirmed._replace(is_stable=False, is_noise=True)


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
