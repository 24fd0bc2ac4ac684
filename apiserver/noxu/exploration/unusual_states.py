"""States of a run that clean runs do not have: at the end, and after a change behind the controller's back. All functions are pure.

missing      an object is not there at the end
left behind  an object is there at the end that is not there after a clean run
differs      an object is not at the end what it is after a clean run
not restored what was changed behind its back stays so
not led back what was changed and changed back has left something behind
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from noxu.exploration.findings import MADE, CleanRuns, RunFinding, author_of, own_steps
from noxu.exploration.masked_objects import MaskedObject, Path, Values
from noxu.exploration.masks import MaskedRun, States
from noxu.exploration.plans import WORKLOADS, RunPlan
from noxu.exploration.recording import WORKLOAD, ObjectPlace, RecordedChange
from noxu.exploration.shapes import TIME, Shape
from noxu.values import Object

MAX_FIELDS: Final = 5
_HISTORY: Final = ("controllerrevisions.apps", "replicasets.apps")
"""What controllers of the cluster keep of the past: it differs if a state was there for a while, and where the present differs, its
owner does, too. The program under test may make some of its own."""
_FOLLOWING: Final = ("endpoints", "endpointslices.discovery.k8s.io")
"""What follows from pods and Services: where it differs, they do."""

_ADVICE: Final = ("`resync: 30s` waits for a controller that looks at everything by itself after that time",)


def at_end(clean: CleanRuns, plan: RunPlan, run: MaskedRun, named: set[str]) -> Iterator[RunFinding]:
    """How the state differs from that of the clean runs: after the first settled step where it does, and at the end.

    While a view is on, the controller cannot know the state, so only the end counts; nor does a state before another attempt.
    """
    done = run.recording.steps
    known = [] if plan.steps else [step for step in clean.settled if step < len(done)]
    for step in known:
        if done[step].is_outdated or done[step].tries_again:
            continue
        if found := _differences(clean, clean.ends[step], plan, run.until(step), named, f"after step {step}"):
            yield from found
            return
    if not done[-1].tries_again:
        yield from _differences(clean, clean.ends[-1], plan, run, named, "at the end")


def _differences(
    clean: CleanRuns, expected: States, plan: RunPlan, run: MaskedRun, named: set[str], when: str
) -> list[RunFinding]:
    """What the controller writes comes before what follows from it, and what is wanted before what is reported."""
    found = _compared(clean, expected, plan, run, named, when)
    return [finding for _, finding in sorted(found, key=lambda ranked: ranked[0])]


def _compared(
    clean: CleanRuns, expected: States, plan: RunPlan, run: MaskedRun, named: set[str], when: str
) -> Iterator[tuple[tuple[bool, bool], RunFinding]]:
    after = run.end()
    own = {run.names.shape(each.place) for each in run.recording.changes if each.is_of_controller}
    for shape in sorted(expected.keys() | after.keys()):
        one, two = expected.get(shape, ()), after.get(shape, ())
        if one == two or str(shape) in named or (shape.resource in _HISTORY and shape not in own):
            continue
        rank, word = (shape not in own, False), "left behind" if len(two) > len(one) else "missing"
        if 0 < len(one) - len(two) <= _wanted_unseen(shape, clean, plan, run):
            continue
        if not one or not two:
            said = f"is {word if not two else 'left'} {when}{_last_write(shape, run)}"
            yield rank, RunFinding(word, str(shape), f"{shape} {said}")
            continue
        if shape.resource in _FOLLOWING or (plan.klass == "workload" and shape.resource == "pods"):
            continue  # pods remember that the plan has made them fail, and those that have failed stay
        if len(one) != len(two):
            yield rank, RunFinding(word, str(shape), f"there are {len(two)} of {shape} {when} instead of {len(one)}")
            continue
        differing = [found for before, now in zip(one, two, strict=True) for found in _fields(before, now)]
        if plan.klass == "workload" and shape.resource in WORKLOADS:  # its status counts the pods that have failed
            differing = [(path, line) for path, line in differing if path[0] != "status"]
        if differing:
            lines = [line for _, line in differing]
            sentence = f"{shape} differs {when}: {lines[0]}{_last_write(shape, run)}"
            is_report = all(path[0] == "status" for path, _ in differing)
            yield (rank[0], is_report), RunFinding("differs", str(shape), sentence, (), tuple(lines[1:MAX_FIELDS]))


def _wanted_unseen(shape: Shape, clean: CleanRuns, plan: RunPlan, run: MaskedRun) -> int:
    """How many of a shape are made in clean runs while the workload wants what the controller never sees: it owes none of these.

    It does if the object of the plan is created anew.
    """
    begins, view = next(((move.get("when", {}).get("step"), move.get("view")) for move in plan.moves), (None, None))
    if plan.klass != "unobserved" or begins is None or view is None:
        return 0
    place = ObjectPlace(view["resource"], view.get("namespace", ""), view["name"])
    changes = (change for change in run.recording.changes if change.step > begins)
    if any(change.place == place and change.effect == "create" for change in changes):
        return 0
    steps = range(begins, plan.moves[0]["through"])
    return sum(clean.in_bursts.get((MADE, shape, step), 0) for step in steps)


def _fields(expected: MaskedObject, found: MaskedObject) -> Iterator[tuple[Path, str]]:
    """The paths that differ, with a sentence each: what an item of a list is called comes first, and when it was so last."""
    differences = [*expected.differences(found)]
    # what is in another order belongs to other values, so it is said only if nothing else differs
    telling = [each for each in differences if not _is_another_order(*each[1:])] or differences
    differing = [(path, _said(path, before, after)) for path, before, after in telling]
    yield from sorted(differing, key=lambda each: (TIME in each[1], each[0][-1] not in _CALLS_AN_ITEM))


_CALLS_AN_ITEM: Final = ("type", "name")


def _said(path: Path, before: Values | None, after: Values | None) -> str:
    """`size is 2 instead of 1`; of the items of a list, and the lines of a text, which are there besides and which are not."""
    name = ".".join(path)
    if before is not None and after is not None and max(len(before), len(after)) > 1:
        more, less = _without(after, before), _without(before, after)
        if more and not less:
            return f"{name} is also {_value(more)}"
        if less and not more:
            return f"{name} is not {_value(less)}"
        before, after = less or before, more or after
    return f"{name} is {_value(after)} instead of {_value(before)}"


def _is_another_order(before: Values | None, after: Values | None) -> bool:
    return before is not None and after is not None and not _without(before, after) and not _without(after, before)


def _without(values: Values, others: Values) -> Values:
    """What is there more often than elsewhere."""
    found = list(values)
    for value in others:
        if value in found:
            found.remove(value)
    return tuple(found)


def _value(values: Values | None) -> str:
    if values is None:
        return "absent"
    text = repr(values[0]) if len(values) == 1 else repr(list(values))
    return text if len(text) <= 80 else f"{text[:77]}…"


def _last_write(shape: Shape, run: MaskedRun) -> str:
    for change in reversed(run.recording.changes):
        if run.names.shape(change.place) == shape:
            return f" ({change.effect}d by {author_of(change)} at revision {change.revision})"
    return ""


def not_restored(plan: RunPlan, run: MaskedRun) -> Iterator[RunFinding]:
    """What was deleted or changed behind the controller's back has to be as before when the run is idle again.

    A status that others write is not the controller's to restore: pods of a StatefulSet that was made again get ready in their time.
    """
    if plan.klass != "drift" or not plan.steps:
        return
    [extra] = plan.steps
    drifted = int(extra["after"]) + 1  # the number of the step in this run
    before, after = _states(run, drifted - 1), _states(run, drifted)
    touched = {
        run.names.shape(change.place)
        for change in run.recording.changes
        if change.step == drifted and change.author == "workload"
    }
    reported = {
        run.names.shape(change.place)
        for change in run.recording.changes
        if change.is_of_controller and change.effect == "update" and _has_new_status(change)
    }
    for shape in sorted(touched):
        if shape in before and shape not in after:
            yield RunFinding(
                "not restored",
                str(shape),
                f"{shape} was deleted behind the controller's back, and is not made again",
                (),
                _ADVICE,
            )
            continue
        differing = _fields(before[shape], after[shape]) if shape in before else ()
        if lines := [line for path, line in differing if path[0] != "status" or shape in reported]:
            yield RunFinding(
                "not restored",
                str(shape),
                f"{shape} was changed behind the controller's back, and stays so: {lines[0]}",
                (),
                _ADVICE,
            )


def _has_new_status(change: RecordedChange) -> bool:
    return (change.after or {}).get("status") != (change.before or {}).get("status")


def not_led_back(plan: RunPlan, run: MaskedRun) -> Iterator[RunFinding]:
    """A field of a custom resource was changed, and changed back: what the controller makes of it has to be what it was.

    Only the custom resource is compared, and what the controller itself has written: a StatefulSet keeps the claims of the pods
    that are gone, and counts its revisions.
    """
    if plan.klass != "spec" or not plan.steps:
        return
    own = own_steps(plan)
    before, after = (_states(run, step) for step in (own.start - 1, own.stop - 1))
    its_own = {
        run.names.shape(change.place)
        for change in run.recording.changes
        if change.is_of_controller or (change.author == WORKLOAD and change.step in own)
    }
    for shape in sorted(its_own & (before.keys() | after.keys())):
        if shape not in after:
            what = f"{shape} is gone{_last_write(shape, run)}"
        elif shape not in before:
            what = f"{shape} is there{_last_write(shape, run)}"
        else:
            lines = [line for path, line in _fields(before[shape], after[shape]) if _counts_nothing(path)]
            if not lines:
                continue
            what = f"{lines[0]} in {shape}"
        yield RunFinding("not led back", str(shape), f"setting a field back does not lead back: {what}")


def _counts_nothing(path: Path) -> bool:
    """Whether a field says how an object is, and not how often it was changed."""
    return path[-1] != "observedGeneration" and not path[-1].endswith("/revision")


def _states(run: MaskedRun, step: int) -> dict[Shape, MaskedObject]:
    """What has been written and is there when a step is done."""
    newest: dict[ObjectPlace, Object | None] = {}
    for change in run.recording.changes:
        if change.step <= step:
            newest[change.place] = change.after
    found: dict[Shape, MaskedObject] = {}
    for place, value in newest.items():
        shape = run.names.shape(place)
        if value is not None and not run.mask.hides(shape):
            found[shape] = run.masked(place, value)
    return found
