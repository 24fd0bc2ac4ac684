"""What went wrong in a run, compared with the clean ones: findings, each with a sentence and the revisions that prove it.

    exited       the controller ended by itself, or panicked
    busy         it did not become idle: a hot loop, or a livelock
    stuck        a step of the workload did not succeed, which it does in clean runs
    deleted      it deleted something that it leaves alone in clean runs
    created      it created something once more than in clean runs
    missing      an object is not there at the end
    left behind  an object is there at the end that is not there after a clean run
    differs      an object is not at the end what it is after a clean run
    not restored what was changed behind its back stays so
    not led back what was changed and changed back has left something behind
    manners      it has a bad habit that it does not have in clean runs, such as a hot loop
    invariant    a condition of the person does not hold

What a plan causes by itself is not held against the controller: objects that the plan deletes may be created again. If a
step is stuck, the end is not compared, because the workload has not happened. A controller that sleeps until it tries again what
the plan has refused several times is not stuck, and its state is none to compare. All functions are pure.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from noxu.control.manners.habits import HABITS
from noxu.exploration import unusual_states, unusual_writes
from noxu.exploration.findings import CleanRuns, RunFinding, is_done, own_steps
from noxu.exploration.masks import Mask, masked
from noxu.exploration.plans import RunPlan
from noxu.exploration.recording import (
    PANIC,
    ObjectPlace,
    RecordedChange,
    RunRecording,
    ends_of_bursts,
    number_of_steps,
)
from noxu.exploration.shapes import Shape
from noxu.values import Object

MAX_PANIC: Final = 200  # characters
CONFLICT: Final = 409
_CHANGES: Final = ("update", "patch")  # what is created may also be there already


def clean_runs(recordings: Sequence[RunRecording], mask: Mask) -> CleanRuns:
    created: Counter[Shape] = Counter()
    deleted: Counter[Shape] = Counter()
    in_bursts: Counter[tuple[str, Shape, int]] = Counter()
    seconds: dict[str, float] = {}
    runs = [masked(recording, mask) for recording in recordings]
    for run in runs:
        in_bursts |= Counter(unusual_writes.in_bursts(run))
        created |= unusual_writes.counts(run, "create")
        deleted |= unusual_writes.counts(run, "delete")
        for step in run.recording.steps:
            seconds[step.title] = max(seconds.get(step.title, 0.0), step.seconds)
    first = recordings[0]
    ends = [runs[0].until(step).end() for step in range(number_of_steps(first) + 1)]
    habits = frozenset(name for recording in recordings for name, _, _ in recording.habits)
    conflicts = max(_conflicts(recording) for recording in recordings)
    return CleanRuns(mask, ends, created, deleted, seconds, habits, ends_of_bursts(first), in_bursts, conflicts)


def _conflicts(recording: RunRecording) -> int:
    return sum(number for verb, _, code, number in recording.requests if code == CONFLICT and verb in _CHANGES)


def is_usual(
    clean: CleanRuns, changes: Sequence[RecordedChange], objects: Sequence[tuple[ObjectPlace, Object]]
) -> bool:
    """Whether these are the objects that are there at the end of a clean run."""
    there = RunRecording(changes, objects, [], [], [], "", 0.0)
    return masked(there, clean.mask).end() == clean.ends[-1]


def judge(clean: CleanRuns, plan: RunPlan, recording: RunRecording) -> list[RunFinding]:
    """The findings of a run, the gravest first."""
    findings = [*_exits(recording), *_busy(recording), *_stuck(recording, own_steps(plan)), *_broken(recording)]
    if not is_done(plan, recording):
        return findings
    run = masked(recording, clean.mask)
    if plan.klass == "spec":  # another spec is other objects, for as long as it lasts
        return findings or [*unusual_states.not_led_back(plan, run)]
    kinds = {finding.kind for finding in findings}
    if any(step.failure and step.tries_again for step in recording.steps):
        return findings  # there was no time for what the workload waits for
    if "stuck" in kinds and "busy" not in kinds:  # a later step waits for what is not restored
        restored = [*unusual_states.not_restored(plan, run)]
        findings = sorted([*restored, *findings], key=lambda finding: finding.kind != "exited")
    findings += unusual_writes.taken_away(clean, plan, run)
    if not kinds & {"stuck", "busy"}:
        findings += unusual_states.not_restored(plan, run)
        findings += unusual_writes.made_again(clean, plan, run)
        findings += unusual_states.at_end(clean, plan, run, {finding.subject for finding in findings})
    return [*findings, *_manners(clean, plan, recording)]


def judge_clean(recording: RunRecording) -> list[RunFinding]:
    """What is wrong with a clean run, before anything is explored."""
    return [*_exits(recording), *_busy(recording), *_stuck(recording), *_broken(recording)]


# -- the program ------------------------------------------------------------------------------------------------------


def _exits(recording: RunRecording) -> Iterator[RunFinding]:
    for life in recording.lives:
        if life.status is not None and not life.planned:
            said = last_panic(recording.output)
            what = f"panicked: {said}" if said else f"ended with status {life.status}"
            yield RunFinding("exited", said or f"status {life.status}", f"the controller {what}")
            return
    if said := last_panic(recording.output):
        yield RunFinding("exited", said, f"the controller logged a panic: {said}")


def last_panic(output: str) -> str:
    """The line of a panic in the output of a program; "" if there is none."""
    found = list(PANIC.finditer(output))
    if not found:
        return ""
    return found[-1][0].strip()[:MAX_PANIC]


def _busy(recording: RunRecording) -> Iterator[RunFinding]:
    for step in recording.steps:
        if step.never_idle:
            loop = _loop(recording)
            yield RunFinding(
                "busy",
                step.title,
                f"after {step.title} the controller did not become idle within {step.seconds:.0f} s: {loop or step.never_idle}",
            )
            return


def _loop(recording: RunRecording) -> str:
    """What the controller writes again and again; "" if nothing."""
    written = Counter(change.place for change in recording.changes if change.is_of_controller)
    for place, number in written.most_common(1):
        if number > 20:
            return f"it wrote {place} {number} times"
    return ""


_WARNINGS: Final = 3
_LINES: Final = 11
"""Of an object that is waited for."""


def _stuck(recording: RunRecording, leaving_out: range = range(0)) -> Iterator[RunFinding]:
    for n, step in enumerate(recording.steps):
        if step.failure and not step.tries_again and n not in leaving_out:
            first = step.failure.strip().splitlines()
            yield RunFinding(
                "stuck",
                step.title,
                f"{step.title} did not succeed: {first[0].removesuffix('; now it is') if first else ''}",
                (),
                (*(f"warning: {text}" for text in recording.warnings[-_WARNINGS:]), *_telling(first)[:_LINES]),
            )
            return


def _telling(failure: Sequence[str]) -> list[str]:
    """The lines below the first one of a failure: of an object, what it has been waited for comes first, then all but the metadata."""
    blocks: list[list[str]] = []
    for line in failure[1:]:
        if (not line or line.startswith((" ", "-"))) and blocks:  # a text may have empty lines
            blocks[-1].append(line)
        else:
            blocks.append([line])
    wanted = "metadata" if failure and "until it is deleted" in failure[0] else failure[0] if failure else ""

    def rank(block: Sequence[str]) -> tuple[bool, bool]:
        name = block[0].partition(":")[0]
        return not re.search(rf"\b{re.escape(name)}\b", wanted), name == "metadata"

    shown = (block for block in blocks if not block[0].startswith(("apiVersion:", "kind:")))
    return [line for block in sorted(shown, key=rank) for line in block]


def _broken(recording: RunRecording) -> Iterator[RunFinding]:
    for message, where in recording.broken:
        yield RunFinding("invariant", message, f"{message} ({where})")


_JUDGED: Final = ("hot_loops", "fights", "retries_without_backoff", "early_retries", "conflicts")
"""Habits that matter. Others, such as a write that changes nothing, cost a little more under a fault, and that is all."""


_OF_TWO: Final = ("conflicts", "fights")
"""Habits that two instances have which are in each other's way."""
_COINCIDENCE: Final = {"early_retries": 2}
"""So many may be by chance: an event comes, and the controller tries again because of that. Conflicts, of which some are tolerated
in each run, count from those of the clean runs on: they come and go with the time that everything takes."""


def _manners(clean: CleanRuns, plan: RunPlan, recording: RunRecording) -> Iterator[RunFinding]:
    """Bad habits that only a fault brings out. With a view of the past a controller cannot know better; two instances of one that
    elects no leader are in each other's way, lose conflicts, and set fields in turn until both have seen the same. If that does not
    end, they are busy."""
    if plan.moves:
        return
    for name, number, note in recording.habits:
        if name not in _JUDGED or name in clean.habits or (name in _OF_TWO and plan.instances > 1):
            continue
        if number <= (clean.conflicts if name == "conflicts" else _COINCIDENCE.get(name, 0)):
            continue
        habit = HABITS[name]
        often = "" if number == 1 else f", {number} times"
        yield RunFinding(
            "manners", name, f"the controller has a bad habit: {habit.title}{often}: {note}", (), (habit.advice,)
        )
