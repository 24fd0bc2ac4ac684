"""Plans about what a controller believes of the past: views that are old, and states that it never sees.

    stale        the workload changes an object, the controller acts on it, and then starts again with the view of before
    unobserved   what the workload changes, and changes again, is seen in its last state only

An old view is dangerous when the present contradicts it: the object is another one by now, or its spec is. It is most dangerous
when the controller has done what the present wants: only then is there something that the old state takes away. So the controller
starts again after the last creation with which it has answered the later state. All functions are pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from noxu.exploration.plans import RunPlan
from noxu.exploration.recording import WORKLOAD, RecordedChange, RunRecording
from noxu.exploration.transitions import (
    Considered,
    Transition,
    at,
    burst_after,
    differing,
    is_deleting,
    is_generated_name,
    named,
    transitions,
    triggers_of,
    when,
)
from noxu.values import Object


class _OldView(NamedTuple):
    """A state of an object that a later one contradicts. `old` None: the state just before the later one."""

    old: Transition | None
    later: Transition

    @property
    def what(self) -> str:
        return f"before {self.later.what}" if self.old is None else f"when {self.old.what}"


def stale(considered: Considered) -> Iterator[RunPlan]:
    """Freeze at a state that a later one contradicts; the controller starts again when it has acted on the later one."""
    for place, of_object in transitions(considered).items():
        for view in _old_views(of_object):
            acted = burst_after(considered.recording, view.later.change)
            for whole in (False, True):
                resources = considered.watched if whole else [place.resource]
                seen = "everything" if whole else place.resource.partition(".")[0]
                change, trigger, then = _restart(acted, view.later)
                yield RunPlan(
                    "stale",
                    f"the controller starts again when {named(place)}: {view.later.what}{then}, and sees {seen} as it was "
                    f"{view.what}",
                    moves=tuple(_moves(considered, view, change, trigger, resources)),
                    about=("stale", place.resource, view.what, view.later.what, str(whole)),
                    worth=_worth_of(view, acted) - (0.5 if whole else 0.0),
                )


def _old_views(of_object: Sequence[Transition]) -> Iterator[_OldView]:
    for n, later in enumerate(of_object):
        if later.change.is_of_controller:
            continue
        if later.change.effect == "create":
            earlier = of_object[:n]
            gone = next((each for each in reversed(earlier) if each.change.effect == "delete"), None)
            yield from (_OldView(each, later) for each in (_began(earlier), gone) if each is not None)
        elif later.change.effect == "delete" or _is_about_the_spec(later.change):
            yield _OldView(None, later)


def _began(of_object: Sequence[Transition]) -> Transition | None:
    """The newest beginning of a deletion."""
    began = (
        each for each in reversed(of_object) if is_deleting(each.change.after) and not is_deleting(each.change.before)
    )
    return next(began, None)


def _is_about_the_spec(change: RecordedChange) -> bool:
    """Whether it wants something else: a field of the spec that was there is another one, or the deletion begins."""
    if is_deleting(change.after):
        return not is_deleting(change.before)
    return any(
        path[0] in ("spec", "data") and at(change.before, path) is not None
        for path in differing(change.before, change.after)
    )


def _restart(acted: Sequence[RecordedChange], later: Transition) -> tuple[RecordedChange, Object, str]:
    """The change at which the controller starts again, its trigger, and in words what has happened by then."""
    found = [each for each in acted if not is_generated_name(each.object) and next(triggers_of(each), None) is not None]
    made = [each for each in found if each.effect == "create"] or found
    if not made:
        return later.change, later.trigger, ""
    verb = {"create": "has created", "update": "has written", "delete": "has deleted"}[made[-1].effect]
    return made[-1], next(triggers_of(made[-1]))[0], f" and it {verb} {named(made[-1].place)}"


def _moves(
    considered: Considered, view: _OldView, change: RecordedChange, trigger: Object, resources: Sequence[str]
) -> Iterator[Object]:
    recording = considered.recording
    marked = view.later if view.old is None else view.old
    mark: Object = {"when": when(recording, marked.change, marked.trigger), "mark": "old"}
    yield mark | ({"before": True} if view.old is None else {})
    first, *others = ({"resource": resource, "from": "old"} for resource in resources)
    yield {
        "when": when(recording, change, trigger, since=marked.change.revision),
        "view": first,
        **({"views": others} if others else {}),
        "restart": True,
    }


def _worth_of(view: _OldView, acted: Sequence[RecordedChange]) -> float:
    """What a person wants, and what makes the controller take something away, comes first."""
    takes_away = any(each.effect == "delete" or is_deleting(each.after) for each in acted)
    is_dangerous = takes_away or (view.old is not None and is_deleting(view.old.change.after))
    return 1.0 + (2.0 if view.later.change.author == WORKLOAD else 0.0) + (1.0 if is_dangerous else 0.0)


def unobserved(considered: Considered) -> Iterator[RunPlan]:
    """Hold the events of an object from a state on, that is wanted or that the controller has acted on, until the one after it.

    What the controller itself makes of an object does not come without it, so the states are those that others make.
    """
    recording = considered.recording
    acted = {(shown.place, shown.revision) for change in considered.writes for shown in change.why}
    for place, of_object in transitions(considered).items():
        by_others = [each for each in of_object if not each.change.is_of_controller]
        for missed, after in pairwise(by_others):
            if missed.change.author != WORKLOAD and (place, missed.change.revision) not in acted:
                continue
            begins = _just_before(missed, of_object, recording)
            if begins is None:
                continue
            since, trigger = begins
            view: Object = {"resource": place.resource, "name": place.name, "hold": True}
            if place.namespace:
                view["namespace"] = place.namespace
            yield RunPlan(
                "unobserved",
                f"the controller does not see of {named(place)} that {missed.what}: only what came before, and that then "
                f"{after.what}",
                moves=(
                    {"when": trigger, "view": view, "through": after.change.step},
                    {"when": when(recording, after.change, after.trigger, since=since), "release": True},
                ),
                about=("unobserved", place.resource, missed.what, after.what),
                worth=1.0 + sum(each.change.author == WORKLOAD for each in (missed, after)),
            )


def _just_before(
    missed: Transition, of_object: Sequence[Transition], recording: RunRecording
) -> tuple[int, Object] | None:
    """A revision before a state, and what happens then: the step begins that makes it, or the object is in the state before."""
    if missed.change.author == WORKLOAD:
        before = [change.revision for change in recording.changes if change.step < missed.change.step]
        return max(before, default=0), {"step": missed.change.step}
    earlier = [each for each in of_object if each.change.revision < missed.change.revision]
    if not earlier:
        return None
    return earlier[-1].change.revision, when(recording, earlier[-1].change, earlier[-1].trigger)
