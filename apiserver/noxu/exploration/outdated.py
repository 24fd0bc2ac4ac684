"""Plans about what a controller believes of the past: views that are old, and states that it never sees.

    stale        the workload changes an object, the controller acts on it, and then starts again with the view of before
    unobserved   what the workload changes, and changes again, is seen in its last state only

An old view is dangerous when the present contradicts it: the object is another one by now, or its spec is. It is most dangerous
when the controller has done what the present wants: only then is there something that the old state takes away. So the controller
starts again after the last creation with which it has answered the later state. All functions are pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from noxu.exploration.plans import RunPlan
from noxu.exploration.recording import WORKLOAD, ObjectPlace, RecordedChange
from noxu.exploration.transitions import (
    Considered,
    Transition,
    at,
    burst_after,
    differing,
    is_about_the_place,
    is_deleting,
    is_generated_name,
    is_wanted,
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
    """Freeze at a state that a later one contradicts; the controller starts again when it has acted on the later one, or before."""
    for place, of_object in transitions(considered).items():
        for view in _old_views(of_object):
            acted = burst_after(considered, view.later.change)
            before = _acted_before(considered, view, of_object)
            happened = f"{named(place)}: {view.later.what}"
            moments = [] if _hides_a_beginning_end(view) else [(view.later.trigger, happened, -0.7)]
            if (last := _last(acted)) is not None:
                change, trigger = last
                words = f"{happened}, and it has written {named(change.place)}"
                moments.insert(0, (when(considered, change, trigger), words, 0.0))
            for moment, words, worth in moments:
                for whole in (False, True):
                    resources = considered.watched if whole else [place.resource]
                    seen = "everything" if whole else place.resource.partition(".")[0]
                    yield RunPlan(
                        "stale",
                        f"the controller starts again when {words}, and sees {seen} as it was {view.what}",
                        moves=tuple(_moves(view, moment, resources)),
                        about=("stale", place.resource, view.what, words, str(whole)),
                        worth=_worth_of(view, before, acted) - (0.5 if whole else 0.0) + worth,
                    )


def _hides_a_beginning_end(view: _OldView) -> bool:
    """Whether the controller would not see what it has to end before the workload can go on: what waits for its finalizer."""
    return view.old is None and is_deleting(view.later.change.after)


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
    """Whether it wants something else: a field that is wanted and was there is another one, or the deletion begins."""
    if is_deleting(change.after):
        return not is_deleting(change.before)
    return any(
        is_wanted(path) and at(change.before, path) is not None for path in differing(change.before, change.after)
    )


def _acted_before(considered: Considered, view: _OldView, of_object: Sequence[Transition]) -> list[RecordedChange]:
    """What the controller has written in the old state, and would write again when it sees that."""
    if view.old is not None:
        return []
    until = view.later.change.revision
    others = [each.change for each in of_object if not each.change.is_of_controller and each.change.revision < until]
    if not others:
        return []
    return [each for each in burst_after(considered, others[-1]) if each.revision < until]


def _last(acted: Sequence[RecordedChange]) -> tuple[RecordedChange, Object] | None:
    """The last creation that can be found again, else the last write, with a trigger; None: there is none."""
    found = [
        (each, trigger)
        for each in acted
        if not is_generated_name(each.object)
        for trigger, _ in list(triggers_of(each))[:1]
    ]
    made = [(each, trigger) for each, trigger in found if each.effect == "create"] or found
    return made[-1] if made else None


def _moves(view: _OldView, moment: Object, resources: Sequence[str]) -> Iterator[Object]:
    first, *others = ({"resource": resource, "from": "old"} for resource in resources)
    if view.old is None:
        yield {"when": view.later.trigger, "mark": "old", "before": True}
    else:
        yield {"when": view.old.trigger, "mark": "old"}
    yield {"when": moment, "view": first, **({"views": others} if others else {}), "restart": True}


def _worth_of(view: _OldView, before: Sequence[RecordedChange], acted: Sequence[RecordedChange]) -> float:
    """What a person wants comes first, and of that the old states in which the controller takes something away that is there again."""
    takes_away = _take_away(before) or (view.old is not None and is_deleting(view.old.change.after))
    danger = 1.2 if takes_away else 1.0 if _take_away(acted) else 0.0
    return 1.0 + (2.0 if view.later.change.author == WORKLOAD else 0.0) + danger


def _take_away(writes: Sequence[RecordedChange]) -> bool:
    return any(each.effect == "delete" or is_deleting(each.after) for each in writes)


def unobserved(considered: Considered) -> Iterator[RunPlan]:
    """Hold the events of an object from a state on, that is wanted or that the controller has acted on, until it is another one.

    As long as later states show what has changed, it is not missed; if all of them do, the event is. What the controller itself makes
    of an object does not come without it, so the states are those that others make. Where a pod runs is no such state, unless the
    controller reads pods one by one: an informer of pods is shown that, too.
    """
    reads_pods = any(verb == "get" and resource == "pods" for verb, resource, _, _ in considered.recording.requests)
    acted: dict[tuple[ObjectPlace, int], list[RecordedChange]] = {}
    for change in considered.writes:
        for shown in change.why:
            acted.setdefault((shown.place, shown.revision), []).append(change)
    for place, of_object in transitions(considered).items():
        by_others = [
            each
            for each in of_object
            if not each.change.is_of_controller and (reads_pods or not _says_only_where(each.change))
        ]
        for n, missed in enumerate(by_others[:-1]):
            if missed.change.author != WORKLOAD and (place, missed.change.revision) not in acted:
                continue
            begins = _just_before(missed, of_object)
            later = by_others[n + 1 :]
            another = next((each for each in later if _is_another(missed, each)), later[0])
            possible = [each for each in (another, later[0]) if not _ends_between(missed, each, of_object)]
            if begins is None or not possible:
                continue
            after = possible[0]
            view: Object = {"resource": place.resource, "name": place.name, "hold": True}
            if place.namespace:
                view["namespace"] = place.namespace
            yield RunPlan(
                "unobserved",
                f"the controller does not see of {named(place)} that {missed.what}: only what came before, and that then "
                f"{after.what}",
                moves=(
                    {"when": begins, "view": view, "through": after.change.step},
                    {"when": after.trigger, "release": True},
                ),
                about=("unobserved", place.resource, missed.what, after.what),
                worth=1.0
                + sum(each.change.author == WORKLOAD for each in (missed, after))
                + _worth_of_acting(considered, missed, acted.get((place, missed.change.revision), ())),
            )


def _worth_of_acting(considered: Considered, missed: Transition, acted: Sequence[RecordedChange]) -> float:
    """A state costs most to miss if the controller takes something away at once when it sees it."""
    begun = considered.bursts
    if not any(begun[change.step] == begun[missed.change.step] for change in acted):
        return 0.0
    return 0.9 if _take_away(burst_after(considered, missed.change)) else 0.3


def _is_another(missed: Transition, later: Transition) -> bool:
    """Whether a later state of the object does not show what has changed."""
    if missed.path is None or later.change.effect != "update":
        return True
    if is_deleting(missed.change.after) and not is_deleting(missed.change.before):
        return False  # the time of a deletion may change, but not that it has begun
    return bool(at(later.change.after, missed.path) != at(missed.change.after, missed.path))


def _says_only_where(change: RecordedChange) -> bool:
    if change.effect != "update" or change.author == WORKLOAD or is_deleting(change.after):
        return False
    return is_about_the_place(change, differing(change.before, change.after))


def _ends_between(missed: Transition, after: Transition, of_object: Sequence[Transition]) -> bool:
    """Whether the object goes in between because the controller lets it go: it has to see the deletion, and nothing follows before."""
    return any(
        each.change.is_of_controller
        and each.change.effect == "delete"
        and missed.change.revision < each.change.revision < after.change.revision
        for each in of_object
    )


def _just_before(missed: Transition, of_object: Sequence[Transition]) -> Object | None:
    """What happens just before a state: the step begins that makes it, or the object is in the state before."""
    if missed.change.author == WORKLOAD:
        return {"step": missed.change.step}
    earlier = [each for each in of_object if each.change.revision < missed.change.revision]
    return earlier[-1].trigger if earlier else None
