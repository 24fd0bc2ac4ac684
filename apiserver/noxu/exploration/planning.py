"""Which plans are worth a run: made of the recording of a clean run, each with a trigger that comes again.

    class        made of                                                     what happens
    crash        each write of the controller but the last of its burst      it is killed when the write is committed
    ambiguous    each kind of write                                          the connection breaks after the commit
    refused      each kind of request                                        an error, once and three times
    stale        an object state that a later one contradicts                the controller starts again, and sees the old state
    unobserved   a state that the controller has acted on                    it never sees that state
    order        each watched kind; the controller itself                    events come late; two run at once; the lease is lost
    drift        each kind of object that the controller makes               it is deleted, or a field changes, behind its back
    workload     each workload of simulated nodes                            its pods fail for a while
    spec         each field of a custom resource (`--mutate`)                it is changed, and changed back

A crash after the last write of a burst changes nothing, because the controller starts in the state that it has reached. Plans
that differ only in the name of an object are duplicates: the best and the last of them stay. What is created with other fields,
such as a Secret with other keys, is made by another part of the controller, and no duplicate. All functions are pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from noxu.control.faults.triggers import path_of
from noxu.exploration import mutations, outdated, shapes
from noxu.exploration.plans import WORKLOADS, RunPlan
from noxu.exploration.recording import CONTROLLER, VERBS, WORKLOAD, RecordedChange
from noxu.exploration.transitions import (
    Considered,
    at,
    differing,
    found_again,
    is_deleting,
    is_generated_name,
    named,
    triggers_of,
)
from noxu.values import Object

USER: Final = f"{CONTROLLER}*"
SEEN_BEFORE: Final = 0.4  # of the worth of a plan whose shape another one has
LOOKED_AT: Final = 0.15  # of the worth of a view of a resource, for each view of it that comes before
TURNS: Final[Mapping[str, int]] = {"crash": 2, "stale": 2, "unobserved": 2}
"""How many plans of a class come in its turn, one if it is not here. Most of the known bugs of public controllers are of these."""
_MAX_DRIFTS: Final = 3  # fields of a kind of object


def plans(considered: Considered, classes: Sequence[str] = ()) -> list[RunPlan]:
    """All plans, those of the greatest worth first; classes take turns, so that a small budget sees something of each."""
    by_class = {
        klass: _ordered(_without_duplicates(make(considered)))
        for klass, make in MAKERS.items()
        if not classes or klass in classes
    }
    left = sorted(filter(None, by_class.values()), key=lambda of_class: -of_class[0].worth)
    ordered: list[RunPlan] = []
    while left:
        for of_class in left:
            turns = TURNS.get(of_class[0].klass, 1)
            ordered += of_class[:turns]
            del of_class[:turns]
        left = [of_class for of_class in left if of_class]
    return ordered


def _ordered(of_class: Iterable[RunPlan]) -> list[RunPlan]:
    """Those of the greatest worth first. The more views there are of a resource, the less another one has to say."""
    before: Counter[str] = Counter()
    found: list[RunPlan] = []
    for plan in sorted(of_class, key=lambda plan: -plan.worth):
        resource = plan.about[1] if plan.klass in ("stale", "unobserved") else ""
        found.append(plan._replace(worth=plan.worth - LOOKED_AT * before[resource]))
        before[resource] += bool(resource)
    return sorted(found, key=lambda plan: -plan.worth)


def _without_duplicates(found: Iterable[RunPlan]) -> list[RunPlan]:
    """Of each shape (`about`) the first one of the greatest worth, and the last of the others, which has less to say."""
    by_shape: dict[tuple[str, ...], list[RunPlan]] = {}
    for plan in found:
        by_shape.setdefault(plan.about, []).append(plan)
    kept: list[RunPlan] = []
    for alike in by_shape.values():
        best = max(alike, key=lambda plan: plan.worth)
        others = [plan for plan in alike if plan is not best]
        kept += [best, *(other._replace(worth=other.worth - SEEN_BEFORE) for other in others[-1:])]
    return kept


# -- requests ---------------------------------------------------------------------------------------------------------


def _match(change: RecordedChange) -> Object:
    """The match of a rule about the request of a write. The name of a new object is in its body, so the URL has none."""
    match: Object = {
        "user": USER,
        "verbs": [VERBS.get(change.verb, change.verb)],
        "resource": change.place.resource,
        "subresource": change.subresource,
    }
    if change.place.namespace:
        match["namespace"] = change.place.namespace
    if (change.effect != "create" or VERBS.get(change.verb) == "patch") and not is_generated_name(change.object):
        match["name"] = change.place.name
    return match


def _described(change: RecordedChange) -> str:
    of = f" of {change.subresource}" if change.subresource else ""
    name = shapes.generated(change.object) or change.place.name
    return f"the {change.verb}{of} of {change.place.resource.partition('.')[0]} {name}"


_WORTH: Final[Mapping[str, float]] = {"create": 2.0, "delete": 3.0, "update": 1.0}


def _worth(change: RecordedChange) -> float:
    """Writes whose loss costs most come first: deletions, creations, changes of what is not status."""
    has_lost_finalizer = _finalizers(change.before) > _finalizers(change.after)
    effect = "delete" if change.verb == "delete" else change.effect  # it may have to wait for a finalizer
    return _WORTH[effect] - (0.5 if change.subresource == "status" else 0.0) + (1.0 if has_lost_finalizer else 0)


def _finalizers(value: Object | None) -> int:
    return len(((value or {}).get("metadata") or {}).get("finalizers") or ())


def _requests_of(writes: Sequence[RecordedChange]) -> Iterator[tuple[RecordedChange, int]]:
    """Each write that one request has made, and the number of that request among those that its rule matches."""
    seen: Counter[str] = Counter()
    for change in writes:
        if change.verb not in ("create", "update", "patch", "apply", "delete"):
            continue
        key = repr(_match(change))
        seen[key] += 1
        yield change, seen[key]


def _crash(considered: Considered) -> Iterator[RunPlan]:
    writes, begun = considered.writes, considered.bursts
    last_of_burst = {begun[change.step]: change.revision for change in writes}
    next_of = dict(zip(map(id, writes), writes[1:], strict=False))
    for change, nth in _requests_of(writes):
        if last_of_burst[begun[change.step]] == change.revision:
            continue
        yield RunPlan(
            "crash",
            f"the controller is killed after {_described(change)} (number {nth}) is committed",
            faults=({"name": "crash", "match": _match(change), "nth": nth, "process": {"kill": "after"}},),
            about=("crash", *_shape(change)),
            worth=_worth(change) + (0.5 if _are_of_a_set(change, next_of[id(change)]) else 0.0),
        )


def _are_of_a_set(change: RecordedChange, following: RecordedChange) -> bool:
    """Whether several objects of a kind are made, of which the first may stand for all."""
    return change.effect == following.effect == "create" and change.place.resource == following.place.resource


def _ambiguous(considered: Considered) -> Iterator[RunPlan]:
    for change, nth in _requests_of(considered.writes):
        yield RunPlan(
            "ambiguous",
            f"{_described(change)} (number {nth}) is committed, and the connection breaks before the answer",
            faults=({"name": "ambiguous", "match": _match(change), "nth": nth, "reset": "after"},),
            about=("ambiguous", *_kind(change)),
            worth=_worth(change),
        )


_ERRORS: Final[Mapping[str, Sequence[str]]] = {
    "create": ("InternalError", "ServiceUnavailable", "TooManyRequests", "Forbidden"),
    "update": ("Conflict", "InternalError", "ServiceUnavailable", "TooManyRequests", "Forbidden"),
    "patch": ("InternalError", "ServiceUnavailable", "TooManyRequests", "Forbidden"),
    "delete": ("InternalError", "ServiceUnavailable", "TooManyRequests"),
    "get": ("InternalError", "ServiceUnavailable", "TooManyRequests"),
    "list": ("InternalError", "ServiceUnavailable", "TooManyRequests"),
}
"""A patch is refused with Conflict only if others change the object meanwhile, again and again: their events follow, for which a
controller may wait. An update may be refused because of what its cache lacks."""
_TIMES: Final = (1, 3)
_TELLING: Final = ("Conflict", "InternalError")
"""A single one of another error shows what these show, or what three of it show: its plans come last."""
_OFTEN: Final = 6
"""So many times in a row show whether a controller waits longer and longer: a third of a second with client-go, whose informers,
however, wait a minute then before they list again."""


def _refused(considered: Considered) -> Iterator[RunPlan]:
    yield from _refused_later(considered)
    kinds = dict.fromkeys((verb, what) for verb, what, code, _ in considered.recording.requests if code < 400)
    for verb, what in kinds:
        if what.startswith(("leases.", "events")):
            continue
        resource, _, subresource = what.partition("/")
        of = f"{subresource} of " if subresource else ""
        match = {"user": USER, "verbs": [verb], "resource": resource, "subresource": subresource}
        for error in _ERRORS.get(verb, ()):
            for times in _times(verb, error):
                yield RunPlan(
                    "refused",
                    f"{verb} of {of}{resource.partition('.')[0]} is refused with {error}"
                    + (" once" if times == 1 else f" {times} times"),
                    faults=({"name": "refused", "match": match, "times": times, "error": error},),
                    about=("refused", verb, resource, subresource, error, str(times)),
                    worth=_worth_of_refusal(verb, error, times) - (0.5 if subresource else 0.0),
                )


def _times(verb: str, error: str) -> tuple[int, ...]:
    """How often in a row a request is refused with an error, for each plan."""
    return (*_TIMES, _OFTEN) if error == "InternalError" and verb != "list" else _TIMES


def _worth_of_refusal(verb: str, error: str, times: int) -> float:
    is_shown_elsewhere = (times == 1 and error not in _TELLING) or (
        times == _TIMES[1] and _OFTEN in _times(verb, error)
    )
    return (2.0 if verb in ("create", "update", "patch", "delete") else 0.5) - 0.1 * times - is_shown_elsewhere


def _refused_later(considered: Considered) -> Iterator[RunPlan]:
    """Reads are refused at the start, where caches are filled, and once more when there is something to do."""
    begins = next((each for each in found_again(considered) if each.change.author == WORKLOAD), None)
    asked: Counter[tuple[str, str]] = Counter()
    for verb, resource, code, number in considered.recording.requests:
        asked[verb, resource] += number if code < 400 else 0
    for (verb, resource), number in asked.items():
        if begins is None or verb not in ("get", "list") or number < 2 or "/" in resource:
            continue
        if resource.startswith(("leases.", "events")):
            continue
        for times in _TIMES:
            rule = {
                "name": "refused",
                "match": {"user": USER, "verbs": [verb], "resource": resource},
                "times": times,
                "error": "InternalError",
            }
            yield RunPlan(
                "refused",
                f"{verb} of {resource.partition('.')[0]} is refused with InternalError"
                f"{' once' if times == 1 else f' {times} times'}, from when {named(begins.change.place)}: {begins.what}",
                moves=({"when": begins.trigger, "faults": [rule]},),
                about=("refused", verb, resource, "", "later", str(times)),
                worth=1.5 - 0.1 * times,
            )


def _kind(change: RecordedChange) -> tuple[str, ...]:
    return VERBS.get(change.verb, change.verb), change.place.resource, change.subresource


def _shape(change: RecordedChange) -> tuple[str, ...]:
    """What kind of write it is, with the fields that it changes, or that a new object has."""
    if change.effect == "create":
        made = {name: change.object[name] for name in change.object if name not in _OF_EACH_OBJECT}
        return (*_kind(change), *sorted({".".join(path[:3]) for path in differing(_emptied(made), made)}))
    return (*_kind(change), *sorted({".".join(path[:3]) for path in differing(change.before, change.after)})[:5])


_OF_EACH_OBJECT: Final = ("apiVersion", "kind", "metadata", "status")


def _emptied(value: Any) -> Any:
    """The maps of a value, and nothing in them."""
    return {name: _emptied(item) for name, item in value.items() if isinstance(item, dict)}


# -- order ------------------------------------------------------------------------------------------------------------


def _order(considered: Considered) -> Iterator[RunPlan]:
    yield RunPlan(
        "order", "two instances of the controller run at once", instances=2, about=("order", "instances"), worth=2.0
    )
    if considered.uses_lease:
        yield RunPlan(
            "order",
            "the leader loses its lease, and another one becomes the leader",
            faults=(
                {"name": "lease", "match": {"user": f"{CONTROLLER}"}, "lease": "lost", "from": "1s", "until": "31s"},
            ),
            instances=2,
            about=("order", "lease"),
            worth=1.5,
        )
    made = {change.place.resource for change in considered.writes if change.effect == "create"}
    first = next((change for change in considered.recording.changes if change.why or change.step), None)
    if first is None:
        return
    trigger = next(iter(triggers_of(first)))[0]
    for resource in considered.watched:
        if resource != first.place.resource:
            yield RunPlan(
                "order",
                f"events of {resource.partition('.')[0]} come after all others: what the controller knows of them is old",
                moves=({"when": trigger, "view": {"resource": resource}},),
                about=("order", "late", resource),
                worth=2.0 if resource in made else 1.0,
            )


# -- drift ------------------------------------------------------------------------------------------------------------


def _drift(considered: Considered) -> Iterator[RunPlan]:
    for change in considered.writes:
        if change.effect != "create" or is_generated_name(change.object):
            continue
        place, at = change.place, {"kind": change.place.resource, "name": change.place.name}
        if place.namespace:
            at["namespace"] = place.namespace
        if not _lives_through(considered, change):
            continue
        yield RunPlan(
            "drift",
            f"{named(place)} is deleted behind the controller's back",
            steps=({"after": change.step, "steps": [{"delete": at}]},),
            about=("drift", place.resource, "deleted"),
            worth=2.0,
        )
        for path, value in _drifts(change.after or {}):
            patch: Any = value
            for name in reversed(path):
                patch = {name: patch}
            yield RunPlan(
                "drift",
                f"{path_of(path)} of {named(place)} becomes {value!r} behind the controller's back",
                steps=({"after": change.step, "steps": [{"patch": {**at, "merge": patch}}]},),
                about=("drift", place.resource, path_of(path)),
                worth=1.0,
            )


def _lives_through(considered: Considered, created: RecordedChange) -> bool:
    """Whether an object is still there when the step that has made it is done."""
    return not any(
        change.effect == "delete" and change.step == created.step and change.revision > created.revision
        for change in considered.changes_of[created.place]
    )


def _drifts(value: Object) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Some fields of an object that its maker has most likely set, and another value for each."""
    found = 0
    for path in (("spec", "replicas"), ("data",), ("spec", "selector"), ("spec", "ports"), ("metadata", "labels")):
        there = at(value, path)
        if isinstance(there, bool):
            continue
        if isinstance(there, int):
            yield path, there + 1
        elif isinstance(there, dict) and there and path[0] == "data":
            name, text = next(iter(there.items()))
            if not isinstance(text, str):
                continue
            yield (*path, name), _other_text(value, text)
        else:
            continue
        found += 1
        if found == _MAX_DRIFTS:
            return


def _other_text(value: Object, text: str) -> str:
    return "ZHJpZnRlZA==" if value.get("kind") == "Secret" else f"{text[:20]}-drifted"


# -- workloads --------------------------------------------------------------------------------------------------------


def _workload(considered: Considered) -> Iterator[RunPlan]:
    if not considered.has_nodes:
        return
    for change in considered.recording.changes:
        if change.effect != "create" or change.place.resource not in WORKLOADS:
            continue
        name = shapes.generated(change.object) or change.place.name
        pods = f"{name}-*"
        for failure in ("crash-loop", "never-ready"):
            yield RunPlan(
                "workload",
                f"the pods of {named(change.place._replace(name=name))} fail for a while: {failure}",
                steps=(
                    {
                        "after": change.step,
                        "steps": [{"pod": {"name": pods, "fail": failure}}, {"pod": {"name": pods, "recover": True}}],
                    },
                ),
                about=("workload", change.place.resource, failure),
                worth=1.0,
            )


# -- fields of custom resources --------------------------------------------------------------------------------------


def _spec(considered: Considered) -> Iterator[RunPlan]:
    """Each field of what the workload has created is changed while nothing else happens, and changed back."""
    schemas = mutations.schemas(considered.recording)
    for change in considered.recording.changes:
        schema = schemas.get(change.place.resource)
        if schema is None or change.author != WORKLOAD or change.effect != "create" or not change.step:
            continue
        value = mutations.newest(considered.recording, change.place, change.step)
        if value is None or is_deleting(value):
            continue
        place = change.place
        at = {"kind": place.resource, "name": place.name}
        if place.namespace:
            at["namespace"] = place.namespace
        for field in mutations.of_object(schema, value):
            patches = [{"patch": {**at, "merge": patch}} for patch in (field.value, field.back)]
            yield RunPlan(
                "spec",
                f"{field.what} of {named(place)}, and is then what it was",
                steps=({"after": change.step, "steps": patches},),
                about=("spec", place.resource, field.what),
                worth=1.0,
            )


MAKERS: Final[Mapping[str, Callable[[Considered], Iterator[RunPlan]]]] = {
    "crash": _crash,
    "stale": outdated.stale,
    "unobserved": outdated.unobserved,
    "ambiguous": _ambiguous,
    "order": _order,
    "drift": _drift,
    "workload": _workload,
    "refused": _refused,
    "spec": _spec,
}
