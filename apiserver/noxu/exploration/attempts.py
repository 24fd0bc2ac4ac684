"""A plan that is run and judged, and run again to confirm what it shows.

A run that confirms has more patience with a controller that waits before it tries again. Of a plan with several parts, only those
stay without which the finding goes away.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple, TypeAlias

from noxu.config import StartError
from noxu.control.faults.shrinking import smallest
from noxu.exploration import judging, masks, runs
from noxu.exploration.findings import CleanRuns, RunFinding, is_done
from noxu.exploration.masks import Mask
from noxu.exploration.plans import CLEAN, RunPlan
from noxu.exploration.recording import RunRecording
from noxu.exploration.run_programs import KnownTimes
from noxu.exploration.run_steps import RunFailed
from noxu.exploration.settings import Exploration
from noxu.manifests.documents import LoadError

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
    """At which the controller listens: only one of it runs at a time in a network."""
    jobs: int = 1
    """So many runs may go on at a time."""
    has_networks: bool = False
    """Whether clean runs in networks of their own have shown the same, so that others go on meanwhile."""


JudgeRun: TypeAlias = Callable[[RunPlan, RunRecording], Sequence[RunFinding]]


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
    """A finding, with the plan that shows it. `is_stable`: it showed again, and is no noise. `number` counts them, from 1 on."""

    number: int
    finding: RunFinding
    others: Sequence[RunFinding]
    plan: RunPlan
    recording: RunRecording
    is_stable: bool
    is_noise: bool = False
    """Whether a clean run has shown it, too."""


def clean_run(exploration: Exploration, learnt: Learnt) -> RunRecording:
    """One more. Raises RunFailed, StartError, LoadError."""
    return runs.run(exploration, CLEAN, learnt.known)


def patient_clean_run(exploration: Exploration, learnt: Learnt) -> RunRecording | None:
    """One more, with the patience of a run that confirms; None if it could not be made, or is no clean one this time."""
    recording = attempt(_patient(exploration), learnt, CLEAN).recording
    return None if recording is None or judging.judge_clean(recording) else recording


def _patient(exploration: Exploration) -> Exploration:
    return replace(exploration, quiet=min(exploration.quiet * PATIENCE, 3.0), sleeps=SLEEPS)


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


def _shown_again(judged: Judged, again: Judged) -> RunFinding | None:
    """The gravest finding of a run that another one shows, too, as that one says it."""
    shown_again = {each.signature: each for each in reversed(again.findings)}  # the first of each signature
    return next((shown_again[each.signature] for each in judged.findings if each.signature in shown_again), None)


def judging_with(exploration: Exploration, learnt: Learnt, clean: RunRecording) -> JudgeRun:
    """How runs are judged with one more clean run: what differs there, too, or is later in any patient run, is no finding."""
    recordings = [*learnt.recordings, clean]
    usual = judging.clean_runs(recordings, masks.learn(recordings, exploration.ignore))
    return partial(judging.judge, usual)


def confirm(exploration: Exploration, learnt: Learnt, judged: Judged, number: int) -> Confirmed:
    """Run the plan again, and leave out what the finding does not need.

    The finding is the gravest of the first run that shows again: on a busy machine graver ones may be about time only. If a patient run
    shows others only, what comes of an attempt for which the first one had no patience, these are confirmed by one more.
    """
    patient = _patient(exploration)
    again = attempt(patient, learnt, judged.plan)
    finding = _shown_again(judged, again)
    if finding is None and again.findings:
        once_more = attempt(patient, learnt, judged.plan)
        again, finding = once_more, _shown_again(again, once_more)
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
