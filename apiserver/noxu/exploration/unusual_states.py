"""States of a run that clean runs do not have: at the end, and after a change behind the controller's back. All functions are pure.

missing      an object is not there at the end
left behind  an object is there at the end that is not there after a clean run
differs      an object is not at the end what it is after a clean run
not restored what was changed behind its back stays so
not led back what was changed and changed back has left something behind
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from noxu.exploration.findings import CleanRuns, RunFinding, author_of, own_steps
from noxu.exploration.masks import Mask, MaskedNames, Path, Shape, States, end_state, shape_of, state
from noxu.exploration.plans import WORKLOADS, RunPlan
from noxu.exploration.recording import WORKLOAD, RunRecording, at_step
from noxu.values import Object

MAX_FIELDS: Final = 5
_FOLLOWING: Final = ("endpoints", "endpointslices.discovery.k8s.io")
"""What follows from pods and Services: where it differs, they do."""

_ADVICE: Final = ("`resync: 30s` waits for a controller that looks at everything by itself after that time",)


def at_end(clean: CleanRuns, plan: RunPlan, recording: RunRecording, named: set[str]) -> Iterator[RunFinding]:
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
            return f" ({change.effect}d by {author_of(change)} at revision {change.revision})"
    return ""


def not_restored(clean: CleanRuns, plan: RunPlan, recording: RunRecording) -> Iterator[RunFinding]:
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
                "not restored",
                str(shape),
                f"{shape} was deleted behind the controller's back, and is not made again",
                (),
                _ADVICE,
            )
        elif shape in before and (lines := [line for _, line in _fields(before[shape], after[shape])]):
            yield RunFinding(
                "not restored",
                str(shape),
                f"{shape} was changed behind the controller's back, and stays so: {lines[0]}",
                (),
                _ADVICE,
            )


def not_led_back(clean: CleanRuns, plan: RunPlan, recording: RunRecording) -> Iterator[RunFinding]:
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
