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
step is stuck, the end is not compared, because the workload has not happened. All functions are pure.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from noxu.control.manners.habits import HABITS
from noxu.exploration.masks import Mask, MaskedNames, Path, Shape, States, end_state, shape_of, state
from noxu.exploration.plans import WORKLOADS, RunPlan
from noxu.exploration.recording import (
    WORKLOAD,
    ObjectPlace,
    RecordedChange,
    RunRecording,
    Shown,
    at_step,
    bursts,
    ends_of_bursts,
    number_of_steps,
)
from noxu.values import Object

PANIC: Final = re.compile(r"^(panic: .*|fatal error: .*|thread '.*' panicked at .*)$", re.MULTILINE)
"""A traceback of Python is none: programs catch exceptions, and log them."""
MAX_PANIC: Final = 200  # characters
_TRANSIENT: Final = (
    "pods", "replicasets.apps", "endpoints", "endpointslices.discovery.k8s.io", "controllerrevisions.apps", "nodes",
    "persistentvolumes",
)  # fmt: skip
"""What controllers of the cluster make and remove as they go."""
COLLECTORS: Final = ("garbage-collector-controller", "namespace-controller", "pod-garbage-collector-controller")
MAX_FIELDS: Final = 5
_FOLLOWING: Final = ("endpoints", "endpointslices.discovery.k8s.io")
"""What follows from pods and Services: where it differs, they do."""


class RunFinding(NamedTuple):
    """`subject`: the shape or the step that it is about. `revisions`: of the writes that prove it. `details`: lines below the sentence.

    `step`: with which the burst of the write began that proves it; 0: it is about a state.
    """

    kind: str
    subject: str
    sentence: str
    revisions: tuple[int, ...] = ()
    details: tuple[str, ...] = ()
    step: int = 0

    @property
    def signature(self) -> tuple[str, str]:
        """Two runs that have it show the same bug."""
        return self.kind, self.subject


class CleanRuns(NamedTuple):
    """What the clean runs say: how often the controller created and deleted each shape, at most; and the end."""

    mask: Mask
    ends: Sequence[States]
    """After each step of the workload, the start first."""
    created: Mapping[Shape, int]
    deleted: Mapping[Shape, int]
    steps: Mapping[str, float]
    """The titles of steps, with the longest time."""
    habits: frozenset[str] = frozenset()
    """Bad habits that the controller has anyhow."""
    settled: Sequence[int] = ()
    """The numbers of the steps after which the controller is done."""
    in_bursts: Mapping[tuple[str, Shape, int], int] = {}
    """How often it created or deleted each shape in the burst that began with a step, at most."""


def clean_runs(recordings: Sequence[RunRecording], mask: Mask) -> CleanRuns:
    created: Counter[Shape] = Counter()
    deleted: Counter[Shape] = Counter()
    in_bursts: Counter[tuple[str, Shape, int]] = Counter()
    seconds: dict[str, float] = {}
    for recording in recordings:
        in_bursts |= Counter(_in_bursts(recording))
        created |= _counts(recording, "create")
        deleted |= _counts(recording, "delete")
        for step in recording.steps:
            seconds[step.title] = max(seconds.get(step.title, 0.0), step.seconds)
    first = recordings[0]
    ends = [end_state(at_step(first, step), mask) for step in range(number_of_steps(first) + 1)]
    habits = frozenset(name for recording in recordings for name, _, _ in recording.habits)
    return CleanRuns(mask, ends, created, deleted, seconds, habits, ends_of_bursts(first), in_bursts)


def is_usual(
    clean: CleanRuns, changes: Sequence[RecordedChange], objects: Sequence[tuple[ObjectPlace, Object]]
) -> bool:
    """Whether these are the objects that are there at the end of a clean run."""
    there = RunRecording(changes, objects, [], [], [], "", 0.0)
    return end_state(there, clean.mask) == clean.ends[-1]


def judge(clean: CleanRuns, plan: RunPlan, recording: RunRecording) -> list[RunFinding]:
    """The findings of a run, the gravest first."""
    findings = [*_exits(recording), *_busy(recording), *_stuck(recording, own_steps(plan)), *_broken(recording)]
    if not is_done(plan, recording):
        return findings
    if plan.klass == "spec":  # another spec is other objects, for as long as it lasts
        return findings or [*_not_led_back(clean, plan, recording)]
    findings += _taken_away(clean, plan, recording)
    if not any(finding.kind in ("stuck", "busy") for finding in findings):
        findings += _not_restored(clean, plan, recording)
        findings += _made_again(clean, plan, recording)
        findings += _end(clean, plan, recording, {finding.subject for finding in findings})
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
                "busy", step.title, f"after {step.title} the controller did not become idle: {loop or step.never_idle}"
            )
            return


def _loop(recording: RunRecording) -> str:
    """What the controller writes again and again; "" if nothing."""
    written = Counter(change.place for change in recording.changes if change.is_of_controller)
    for place, number in written.most_common(1):
        if number > 20:
            return f"it wrote {place} {number} times"
    return ""


def own_steps(plan: RunPlan) -> range:
    """The numbers of the steps that a plan adds to the workload, among those of a recording; 0 is the start."""
    if not plan.steps:
        return range(0)
    [extra] = plan.steps
    after = int(extra["after"])
    return range(after + 1, after + 1 + len(extra["steps"]))


def is_done(plan: RunPlan, recording: RunRecording) -> bool:
    """Whether what a plan adds was accepted. A server or a webhook may refuse it, which is no fault of the controller."""
    return not any(step.failure for n, step in enumerate(recording.steps) if n in own_steps(plan))


def _stuck(recording: RunRecording, leaving_out: range = range(0)) -> Iterator[RunFinding]:
    for n, step in enumerate(recording.steps):
        if step.failure and n not in leaving_out:
            first = step.failure.strip().splitlines()
            yield RunFinding(
                "stuck",
                step.title,
                f"{step.title} did not succeed: {first[0].removesuffix('; now it is') if first else ''}",
                (),
                tuple(first[1:12]),
            )
            return


def _broken(recording: RunRecording) -> Iterator[RunFinding]:
    for message, where in recording.broken:
        yield RunFinding("invariant", message, f"{message} ({where})")


_JUDGED: Final = ("hot_loops", "fights", "retries_without_backoff", "early_retries", "conflicts")
"""Habits that matter. Others, such as a write that changes nothing, cost a little more under a fault, and that is all."""


_COINCIDENCE: Final = {"early_retries": 2}
"""So many may be by chance: an event comes, and the controller tries again because of that."""


def _manners(clean: CleanRuns, plan: RunPlan, recording: RunRecording) -> Iterator[RunFinding]:
    """Bad habits that only a fault brings out. With a view of the past a controller cannot know better; two instances of one that
    elects no leader are in each other's way, and lose conflicts."""
    if plan.moves:
        return
    for name, number, note in recording.habits:
        if name not in _JUDGED or name in clean.habits or (name == "conflicts" and plan.instances > 1):
            continue
        if number <= _COINCIDENCE.get(name, 0):
            continue
        habit = HABITS[name]
        often = "" if number == 1 else f", {number} times"
        yield RunFinding(
            "manners", name, f"the controller has a bad habit: {habit.title}{often}: {note}", (), (habit.advice,)
        )


# -- writes -----------------------------------------------------------------------------------------------------------


def _counts(recording: RunRecording, effect: str) -> Counter[Shape]:
    """How often each shape was created or deleted, as far as that is the controller's doing."""
    names = MaskedNames(recording)
    return Counter(shape_of(change.place, change.object, names) for change in _writes_of(recording, effect))


def _writes_of(recording: RunRecording, effect: str) -> list[RecordedChange]:
    """Its creations, or its deletions and those that no one else accounts for. What waits for a finalizer counts when it begins.

    A controller may see that an object is gone before it sees that its owner is, and makes it once more; the garbage collector
    takes that away, and nothing has happened.
    """
    asked = _deletions(recording)
    collected = {uid for uid, author in asked.items() if author in COLLECTORS}
    begun = {_uid(change) for change in recording.changes if _begins(change)} if effect == "delete" else set[str]()
    return [
        change
        for change in recording.changes
        if ((change.effect == effect and _uid(change) not in begun) or (effect == "delete" and _begins(change)))
        and (change.is_of_controller or (effect == "delete" and _is_remarkable(change, asked)))
        and not (effect == "create" and _uid(change) in collected)
    ]


def _deletions(recording: RunRecording) -> dict[str, str]:
    """By uid, who has asked for the deletion of an object: that may wait for a finalizer, which another one removes."""
    asked: dict[str, str] = {}
    for change in recording.changes:
        if change.after is None or (change.after.get("metadata") or {}).get("deletionTimestamp"):
            asked.setdefault(_uid(change), change.author)
    return asked


def _in_bursts(recording: RunRecording) -> Iterator[tuple[str, Shape, int]]:
    names, begun = MaskedNames(recording), bursts(recording)
    for effect in ("create", "delete"):
        for change in _writes_of(recording, effect):
            yield effect, shape_of(change.place, change.object, names), begun[change.step]


def _extra(
    effect: str, shape: Shape, clean: CleanRuns, recording: RunRecording
) -> tuple[list[RecordedChange], RecordedChange, int]:
    """The writes of a shape, the one that the clean runs do not have, and the step with which its burst began."""
    names, begun, seen = MaskedNames(recording), bursts(recording), Counter[int]()
    writes = [
        change for change in _writes_of(recording, effect) if shape_of(change.place, change.object, names) == shape
    ]
    for write in writes:
        step = begun[write.step]
        seen[step] += 1
        if seen[step] > clean.in_bursts.get((effect, shape, step), 0):
            return writes, write, step
    return writes, writes[-1], begun[writes[-1].step]


def _uid(change: RecordedChange) -> str:
    return str((change.object.get("metadata") or {}).get("uid", ""))


def _begins(change: RecordedChange) -> bool:
    """Whether the controller has asked for a deletion that waits for finalizers, such as one that leaves pods behind."""
    return change.is_of_controller and change.verb == "delete" and change.effect == "update"


def _is_remarkable(change: RecordedChange, asked: Mapping[str, str]) -> bool:
    """Whether a deletion counts that a controller of the cluster has made: it follows from something."""
    followed = ("workload", "fault", *COLLECTORS)
    return asked.get(_uid(change)) not in followed and change.place.resource not in _TRANSIENT


def _planned(plan: RunPlan, shape: Shape) -> bool:
    """Whether a plan takes the object away, or changes it."""
    text = repr(plan.steps) + repr([fault for fault in plan.faults if "mutate" in fault])
    return bool(plan.steps or plan.faults) and f"'name': '{shape.name}'" in text and shape.resource in text


def _taken_away(clean: CleanRuns, plan: RunPlan, recording: RunRecording) -> Iterator[RunFinding]:
    for shape, number in _counts(recording, "delete").items():
        if number <= clean.deleted.get(shape, 0) or clean.mask.hides(shape) or shape.resource in _TRANSIENT:
            continue
        if _planned(plan, shape):
            continue
        writes, last, step = _extra("delete", shape, clean, recording)
        yield RunFinding(
            "deleted",
            str(shape),
            f"{_who(last)} deleted {shape} at revision {last.revision}"
            + (f", {number} times instead of {clean.deleted.get(shape, 0)}" if clean.deleted.get(shape) else "")
            + _because(last, recording),
            tuple(change.revision for change in writes),
            step=step,
        )


def _made_again(clean: CleanRuns, plan: RunPlan, recording: RunRecording) -> Iterator[RunFinding]:
    gone = _counts(recording, "delete")
    for shape, number in _counts(recording, "create").items():
        usual = clean.created.get(shape, 0)
        replaced = max(gone.get(shape, 0) - clean.deleted.get(shape, 0), 0) + _planned(plan, shape)
        if number <= usual + replaced or clean.mask.hides(shape):
            continue
        writes, last, step = _extra("create", shape, clean, recording)
        yield RunFinding(
            "created",
            str(shape),
            f"the controller created {shape} {number} times instead of {usual}, once more at revision {last.revision}"
            + _because(last, recording),
            tuple(change.revision for change in writes),
            step=step,
        )


def _who(change: RecordedChange) -> str:
    return "the controller" if change.is_of_controller else change.author


def _because(change: RecordedChange, recording: RunRecording) -> str:
    """What the client had been shown, and what was true by then."""
    stale = [(shown, newer) for shown in change.why if (newer := _newer(shown, change, recording)) is not None]
    if stale:
        shown, newer = stale[0]
        return f", after {_shown(shown)}; at {newer.revision} the object had been {_happened(newer)}"
    if change.why:
        return f", after {_shown(change.why[0])}"
    return ""


def _newer(shown: Shown, write: RecordedChange, recording: RunRecording) -> RecordedChange | None:
    """A later state of what was shown that was there before the write."""
    for change in recording.changes:
        if change.place == shown.place and shown.revision < change.revision < write.revision and shown.how != "list":
            return change
    return None


def _shown(shown: Shown) -> str:
    how = {"watch": "a watch had delivered", "get": "it had read", "list": "it had listed"}[shown.how]
    event = f" ({shown.event})" if shown.event else ""
    return f"{how} {shown.place}{event} at revision {shown.revision}"


def _happened(change: RecordedChange) -> str:
    return {"create": "created anew", "update": "changed", "delete": "deleted"}[change.effect]


# -- states -----------------------------------------------------------------------------------------------------------


def _end(clean: CleanRuns, plan: RunPlan, recording: RunRecording, named: set[str]) -> Iterator[RunFinding]:
    """How the state differs from that of the clean runs: after the first settled step where it does, and at the end.

    While a view is on, the controller cannot know the state, so only the end counts.
    """
    last = len(clean.ends) - 1
    known = [] if plan.steps else [step for step in clean.settled if step < len(recording.steps)]
    steps = [step for step in known if not recording.steps[step].is_outdated]
    for step in steps:
        found = list(
            _differences(clean.ends[step], plan, at_step(recording, step), clean.mask, named, f"after step {step}")
        )
        if found:
            yield from found
            return
    yield from _differences(clean.ends[last], plan, recording, clean.mask, named, "at the end")


def _differences(
    expected: States, plan: RunPlan, recording: RunRecording, mask: Mask, named: set[str], when: str
) -> Iterator[RunFinding]:
    """What the controller writes comes before what follows from it, and what is wanted before what is reported."""
    found = list(_compared(expected, end_state(recording, mask), plan, recording, named, when))
    yield from (finding for _, finding in sorted(found, key=lambda ranked: ranked[0]))


def _compared(
    expected: States, after: States, plan: RunPlan, recording: RunRecording, named: set[str], when: str
) -> Iterator[tuple[tuple[bool, bool], RunFinding]]:
    names = MaskedNames(recording)
    own = {shape_of(each.place, each.object, names) for each in recording.changes if each.is_of_controller}
    for shape in sorted(expected.keys() | after.keys()):
        one, two = expected.get(shape, ()), after.get(shape, ())
        if str(shape) in named or one == two:
            continue
        rank, word = (shape not in own, False), "left behind" if len(two) > len(one) else "missing"
        if not one or not two:
            said = f"is {word if not two else 'left'} {when}{_last_write(shape, recording)}"
            yield rank, RunFinding(word, str(shape), f"{shape} {said}")
            continue
        if shape.resource in _FOLLOWING or (plan.klass == "workload" and shape.resource == "pods"):
            continue  # pods remember that the plan has made them fail, and those that have failed stay
        if len(one) != len(two):
            yield rank, RunFinding(word, str(shape), f"there are {len(two)} of {shape} {when} instead of {len(one)}")
            continue
        if plan.klass == "workload" and shape.resource in WORKLOADS:
            one, two = _without_status(one), _without_status(two)  # it counts the pods that have failed
        if differing := [found for before, now in zip(one, two, strict=True) for found in _fields(before, now)]:
            lines = [line for _, line in differing]
            sentence = f"{shape} differs {when}: {lines[0]}{_last_write(shape, recording)}"
            is_report = all(path[0] == "status" for path, _ in differing)
            yield (rank[0], is_report), RunFinding("differs", str(shape), sentence, (), tuple(lines[1:MAX_FIELDS]))


def _without_status(states: Sequence[Mapping[Path, tuple[Any, ...]]]) -> list[dict[Path, tuple[Any, ...]]]:
    return [{path: held for path, held in each.items() if path[0] != "status"} for each in states]


def _fields(
    expected: Mapping[Path, tuple[Any, ...]], found: Mapping[Path, tuple[Any, ...]]
) -> Iterator[tuple[Path, str]]:
    """The paths that differ, with a sentence each."""
    for path in sorted(expected.keys() | found.keys()):
        before, after = expected.get(path), found.get(path)
        if before != after:
            yield path, f"{'.'.join(path)} is {_value(after)} instead of {_value(before)}"


def _value(values: tuple[Any, ...] | None) -> str:
    if values is None:
        return "absent"
    text = repr(values[0]) if len(values) == 1 else repr(list(values))
    return text if len(text) <= 80 else f"{text[:77]}…"


def _last_write(shape: Shape, recording: RunRecording) -> str:
    names = MaskedNames(recording)
    for change in reversed(recording.changes):
        if shape_of(change.place, change.object, names) == shape:
            return f" ({change.effect}d by {_who(change)} at revision {change.revision})"
    return ""


def _not_restored(clean: CleanRuns, plan: RunPlan, recording: RunRecording) -> Iterator[RunFinding]:
    """What was deleted or changed behind the controller's back has to be as before when the run is idle again."""
    if plan.klass != "drift" or not plan.steps:
        return
    [extra] = plan.steps
    drifted = int(extra["after"]) + 1  # the number of the step in this run
    before, after = _states(recording, drifted - 1, clean.mask), _states(recording, drifted, clean.mask)
    names = MaskedNames(recording)
    touched = {
        shape_of(change.place, change.object, names)
        for change in recording.changes
        if change.step == drifted and change.author == "workload"
    }
    for shape in touched:
        if shape in before and shape not in after:
            yield RunFinding(
                "not restored", str(shape), f"{shape} was deleted behind the controller's back, and is not made again"
            )
        elif shape in before and (lines := [line for _, line in _fields(before[shape], after[shape])]):
            yield RunFinding(
                "not restored",
                str(shape),
                f"{shape} was changed behind the controller's back, and stays so: {lines[0]}",
            )


def _not_led_back(clean: CleanRuns, plan: RunPlan, recording: RunRecording) -> Iterator[RunFinding]:
    """A field of a custom resource was changed, and changed back: what the controller makes of it has to be what it was.

    Only the custom resource is compared, and what the controller itself has written: a StatefulSet keeps the claims of the pods
    that are gone, and counts its revisions.
    """
    if plan.klass != "spec" or not plan.steps:
        return
    own = own_steps(plan)
    before, after = (_states(recording, step, clean.mask) for step in (own.start - 1, own.stop - 1))
    names = MaskedNames(recording)
    its_own = {
        shape_of(change.place, change.object, names)
        for change in recording.changes
        if change.is_of_controller or (change.author == WORKLOAD and change.step in own)
    }
    for shape in sorted(its_own & (before.keys() | after.keys())):
        if shape not in after:
            what = f"{shape} is gone{_last_write(shape, recording)}"
        elif shape not in before:
            what = f"{shape} is there{_last_write(shape, recording)}"
        else:
            one, two = (
                {path: held for path, held in each[shape].items() if _counts_nothing(path)} for each in (before, after)
            )
            if not (lines := [line for _, line in _fields(one, two)]):
                continue
            what = f"{lines[0]} in {shape}"
        yield RunFinding("not led back", str(shape), f"setting a field back does not lead back: {what}")


def _counts_nothing(path: Path) -> bool:
    """Whether a field says how an object is, and not how often it was changed."""
    return path[-1] != "observedGeneration" and not path[-1].endswith("/revision")


def _states(recording: RunRecording, step: int, mask: Mask) -> dict[Shape, dict[Path, tuple[Any, ...]]]:
    """What is there when a step is done."""
    newest: dict[Any, Object | None] = {}
    for change in recording.changes:
        if change.step <= step:
            newest[change.place] = change.after
    names = MaskedNames(recording)
    found = {}
    for place, value in newest.items():
        if value is not None:
            shape = shape_of(place, value, names)
            if not mask.hides(shape):
                found[shape] = state(value, shape, mask, names)
    return found
