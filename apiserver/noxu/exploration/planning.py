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
that differ only in the name of an object are duplicates: the first and the last of them stay. All functions are pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

from noxu.exploration import mutations
from noxu.exploration.masks import Mask, MaskedNames
from noxu.exploration.plans import WORKLOADS, RunPlan
from noxu.exploration.recording import CONTROLLER, WORKLOAD, ObjectPlace, RecordedChange, RunRecording
from noxu.values import Object

USER: Final = f"{CONTROLLER}*"
VERBS: Final[Mapping[str, str]] = {"apply": "patch"}
"""The verb of the API for that of a recorded write."""
_MAX_DRIFTS: Final = 3  # fields of a kind of object


class Considered(NamedTuple):
    """What plans are made of. `watched`: the resources that the controller watches, in order."""

    recording: RunRecording
    mask: Mask
    names: MaskedNames
    watched: Sequence[str]
    uses_lease: bool = False
    has_nodes: bool = False
    steps: int = 0
    """How many the workload has."""

    @property
    def writes(self) -> list[RecordedChange]:
        return [change for change in self.recording.changes if change.is_of_controller]


def consider(recording: RunRecording, mask: Mask, *, steps: int, has_nodes: bool = False) -> Considered:
    asked = [(verb, resource) for verb, resource, _, _ in recording.requests]
    watched = [resource for verb, resource in asked if verb == "watch"]
    uses_lease = ("update", "leases.coordination.k8s.io") in asked or ("create", "leases.coordination.k8s.io") in asked
    return Considered(
        recording,
        mask,
        MaskedNames(recording),
        [resource for resource in watched if not resource.startswith(("leases.", "events"))],
        uses_lease,
        has_nodes,
        steps,
    )


def plans(considered: Considered, classes: Sequence[str] = ()) -> list[RunPlan]:
    """All plans, those of the greatest worth first; classes take turns, so that a small budget sees something of each."""
    found = [
        plan
        for klass, make in MAKERS.items()
        if not classes or klass in classes
        for plan in _without_duplicates(make(considered))
    ]
    by_class: dict[str, list[RunPlan]] = {}
    for plan in sorted(found, key=lambda plan: -plan.worth):
        by_class.setdefault(plan.klass, []).append(plan)
    ordered: list[RunPlan] = []
    while by_class:
        for klass in [*by_class]:
            ordered.append(by_class[klass].pop(0))
            if not by_class[klass]:
                del by_class[klass]
    return ordered


def _without_duplicates(found: Iterable[RunPlan]) -> list[RunPlan]:
    """The first and the last plan of each shape (`about`)."""
    by_shape: dict[tuple[str, ...], list[RunPlan]] = {}
    for plan in found:
        by_shape.setdefault(plan.about, []).append(plan)
    return [plan for same in by_shape.values() for plan in (same if len(same) < 3 else (same[0], same[-1]))]


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
    if change.effect != "create" or VERBS.get(change.verb) == "patch":
        match["name"] = change.place.name
    return match


def _is_generated(change: RecordedChange) -> bool:
    return change.effect == "create" and bool((change.object.get("metadata") or {}).get("generateName"))


def _described(change: RecordedChange) -> str:
    of = f" of {change.subresource}" if change.subresource else ""
    name = f"{(change.object.get('metadata') or {})['generateName']}*" if _is_generated(change) else change.place.name
    return f"the {change.verb}{of} of {change.place.resource.partition('.')[0]} {name}"


_WORTH: Final[Mapping[str, float]] = {"create": 2.0, "delete": 3.0, "update": 1.0}


def _worth(change: RecordedChange) -> float:
    """Writes whose loss costs most come first: deletions, creations, changes of what is not status."""
    has_lost_finalizer = _finalizers(change.before) > _finalizers(change.after)
    return _WORTH[change.effect] - (0.5 if change.subresource == "status" else 0.0) + (1.0 if has_lost_finalizer else 0)


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
    writes = considered.writes
    last_of_burst = {change.step: change.revision for change in writes}
    for change, nth in _requests_of(writes):
        if last_of_burst[change.step] == change.revision:
            continue
        yield RunPlan(
            "crash",
            f"the controller is killed after {_described(change)} (number {nth}) is committed",
            faults=({"name": "crash", "match": _match(change), "nth": nth, "process": {"kill": "after"}},),
            about=("crash", *_shape(change), str(change.step)),
            worth=_worth(change),
        )


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
    "patch": ("Conflict", "InternalError", "ServiceUnavailable", "TooManyRequests", "Forbidden"),
    "delete": ("InternalError", "ServiceUnavailable", "TooManyRequests"),
    "get": ("InternalError", "ServiceUnavailable", "TooManyRequests"),
    "list": ("InternalError", "ServiceUnavailable", "TooManyRequests", "Expired"),
}
_TIMES: Final = (1, 3)
_OFTEN: Final = 6
"""So many times in a row show whether a controller waits longer and longer: a third of a second with client-go, whose informers,
however, wait a minute then before they list again."""


def _refused(considered: Considered) -> Iterator[RunPlan]:
    yield from _refused_later(considered)
    kinds = dict.fromkeys((verb, resource) for verb, resource, code, _ in considered.recording.requests if code < 400)
    for verb, resource in kinds:
        if resource.startswith(("leases.", "events")):
            continue
        for error in _ERRORS.get(verb, ()):
            for times in (*_TIMES, _OFTEN) if error == "InternalError" and verb != "list" else _TIMES:
                yield RunPlan(
                    "refused",
                    f"{verb} of {resource.partition('.')[0]} is refused with {error}"
                    + (" once" if times == 1 else f" {times} times"),
                    faults=(
                        {
                            "name": "refused",
                            "match": {"user": USER, "verbs": [verb], "resource": resource},
                            "times": times,
                            "error": error,
                        },
                    ),
                    about=("refused", verb, resource, error, str(times)),
                    worth=(2.0 if verb in ("create", "update", "patch", "delete") else 0.5) - 0.1 * times,
                )


def _refused_later(considered: Considered) -> Iterator[RunPlan]:
    """Reads are refused at the start, where caches are filled, and once more when there is something to do."""
    begins = next((each for each in _found_again(considered) if each.change.author == WORKLOAD), None)
    asked: Counter[tuple[str, str]] = Counter()
    for verb, resource, code, number in considered.recording.requests:
        asked[verb, resource] += number if code < 400 else 0
    for (verb, resource), number in asked.items():
        if begins is None or verb not in ("get", "list") or number < 2 or resource.startswith(("leases.", "events")):
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
                f"{' once' if times == 1 else f' {times} times'}, from when {_name(begins.change.place)}: {begins.what}",
                moves=({"when": begins.trigger, "faults": [rule]},),
                about=("refused", verb, resource, "later", str(times)),
                worth=1.5 - 0.1 * times,
            )


def _kind(change: RecordedChange) -> tuple[str, ...]:
    return VERBS.get(change.verb, change.verb), change.place.resource, change.subresource


def _shape(change: RecordedChange) -> tuple[str, ...]:
    """What kind of write it is, with the fields that it changes."""
    return (*_kind(change), *sorted({".".join(path[:3]) for path in _differing(change.before, change.after)})[:5])


# -- states -----------------------------------------------------------------------------------------------------------


class Transition(NamedTuple):
    """A change of an object that a controller watches, and a trigger that it fires once in each run."""

    change: RecordedChange
    trigger: Object
    what: str
    """In words: `its deletion began`, `spec.replicas went from 3 to 1`."""


def transitions(considered: Considered) -> dict[ObjectPlace, list[Transition]]:
    """Of each object of a watched resource, its changes that can be found again, in order."""
    found: dict[ObjectPlace, list[Transition]] = {}
    for transition in _found_again(considered):
        if transition.change.place.resource in considered.watched:
            found.setdefault(transition.change.place, []).append(transition)
    return found


def _found_again(considered: Considered) -> list[Transition]:
    """The changes since the first step that can be found again. Moves count from there, too."""
    found, counted = list[Transition](), Counter[str]()
    for change in considered.recording.changes:
        if not change.step or _is_generated_name(change.object):
            continue
        for trigger, what in _triggers(change):
            key = repr(trigger)
            counted[key] += 1
            numbered = {**trigger, "nth": counted[key]} if counted[key] > 1 else trigger
            found.append(Transition(change, numbered, what))
            break
    return found


def _is_generated_name(value: Object) -> bool:
    return bool((value.get("metadata") or {}).get("generateName"))


def _triggers(change: RecordedChange) -> Iterator[tuple[Object, str]]:
    """The triggers that the change fires, the most telling one first."""
    place = change.place
    at: Object = {"name": place.name} | ({"namespace": place.namespace} if place.namespace else {})
    if change.effect != "update":
        happened = {"create": "created", "delete": "deleted"}[change.effect]
        yield {happened: place.resource, **at}, f"it was {happened}"
        return
    if _deleting(change.after) and not _deleting(change.before):
        yield {"updated": place.resource, **at, "changed": {"metadata.deletionTimestamp": {}}}, "its deletion began"
        return
    for path in sorted(_differing(change.before, change.after), key=_telling):
        before, after = _at(change.before, path), _at(change.after, path)
        if any("." in name for name in path) or isinstance(before, list) or isinstance(after, list):
            continue
        if before is None or after is None or isinstance(before, dict) or isinstance(after, dict):
            states: Object = {}
        else:
            states = {"from": before, "to": after}
        if isinstance(before, str) and (len(before) > 60 or len(str(after)) > 60):
            states = {}
        name = ".".join(path)
        yield {"updated": place.resource, **at, "changed": {name: states}}, _words(name, before, after)


def _words(name: str, before: Any, after: Any) -> str:
    if isinstance(before, dict) or isinstance(after, dict):
        return f"{name} changed"
    if before is None:
        return f"{name} became {after}"
    return f"{name} went away" if after is None else f"{name} went from {before} to {after}"


def _telling(path: tuple[str, ...]) -> tuple[int, int, tuple[str, ...]]:
    """Fields of the spec come before those of the status, and those before the metadata."""
    rank = {"spec": 0, "data": 0, "status": 1}.get(path[0], 2)
    return rank, len(path), path


def _deleting(value: Object | None) -> bool:
    return bool(((value or {}).get("metadata") or {}).get("deletionTimestamp"))


_UNTOLD: Final = ("resourceVersion", "managedFields", "generation", "uid", "creationTimestamp", "selfLink")


def _differing(before: Any, after: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The paths of the fields that differ. Lists are compared as a whole."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in before.keys() | after.keys():
            if not (path == ("metadata",) and name in _UNTOLD):
                yield from _differing(before.get(name), after.get(name), (*path, name))
    elif before != after:
        yield path


def _at(value: Any, path: Sequence[str]) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _is_dangerous(change: RecordedChange) -> bool:
    """A state that makes a controller take something away: a deletion, a smaller number, a flag that is off, a field that is gone."""
    if change.effect == "delete" or (_deleting(change.after) and not _deleting(change.before)):
        return True
    if change.effect == "create":
        return False
    for path in _differing(change.before, change.after):
        before, after = _at(change.before, path), _at(change.after, path)
        if isinstance(before, bool) or isinstance(after, bool):
            if before is True and after is not True:
                return True
        elif (isinstance(before, int) and isinstance(after, int) and after < before) or (
            path[0] in ("spec", "data") and before is not None and after is None
        ):
            return True
    return False


def _stale(considered: Considered) -> Iterator[RunPlan]:
    """Freeze at a state that a later one contradicts; the controller starts again when that is there, or when it has acted on it."""
    acted = {
        each.change.step: each for each in _found_again(considered) if each.change.is_of_controller
    }  # the last one of each step
    for place, of_object in transitions(considered).items():
        for n, old in enumerate(of_object):
            later = next((each for each in of_object[n + 1 :] if _contradicts(old.change, each.change)), None)
            if later is None:
                continue
            last = acted.get(later.change.step)
            moments = [(later, f"when {_name(place)}: {later.what}", 0.0)]
            if last is not None and last.change.revision > later.change.revision:
                words = f"when {_name(place)}: {later.what}, and it has written {_name(last.change.place)}"
                moments.append((last, words, 0.7))
            for moment, when, worth in moments:
                for whole in (False, True):
                    yield _stale_plan(considered, old, moment, when, whole, worth)


def _stale_plan(
    considered: Considered, old: Transition, moment: Transition, when: str, whole: bool, worth: float
) -> RunPlan:
    """`whole`: all that it watches is old, and not only the resource of the object."""
    resource = old.change.place.resource
    views = [{"resource": each, "from": "old"} for each in (considered.watched if whole else [resource])]
    others = {"views": views[1:]} if views[1:] else {}
    return RunPlan(
        "stale",
        f"the controller starts again {when}, and sees "
        f"{'everything' if whole else resource.partition('.')[0]} as it was when {old.what}",
        moves=(
            {"when": old.trigger, "mark": "old"},
            {"when": moment.trigger, "view": views[0], **others, "restart": True},
        ),
        about=("stale", resource, old.what, when, str(whole)),
        worth=(3.0 if _is_dangerous(old.change) else 1.0) - (0.5 if whole else 0.0) + worth,
    )


def _contradicts(old: RecordedChange, later: RecordedChange) -> bool:
    """Whether who acts on the old state does what the later one does not want."""
    if old.effect == "delete" or _deleting(old.after):
        return later.effect == "create"
    if old.effect == "create":
        return False
    changed = set(_differing(old.before, old.after))
    return later.effect == "delete" or any(
        path in changed and path[0] in ("spec", "data") for path in _differing(later.before, later.after)
    )


def _unobserved(considered: Considered) -> Iterator[RunPlan]:
    """Hold the events of an object from before a state that the controller has acted on until after it."""
    acted = {(shown.place, shown.revision) for change in considered.writes for shown in change.why}
    for place, of_object in transitions(considered).items():
        for n, (before, missed) in enumerate(pairwise(of_object[:-1])):
            if (place, missed.change.revision) not in acted or missed.change.is_of_controller:
                continue
            after = _unprompted(of_object[n + 2 :])
            view = {"resource": place.resource, "name": place.name, "hold": True}
            if place.namespace:
                view["namespace"] = place.namespace
            yield RunPlan(
                "unobserved",
                f"the controller does not see of {_name(place)} that {missed.what}: only what came before, and that then {after.what}",
                moves=({"when": before.trigger, "view": view}, {"when": after.trigger, "release": True}),
                about=("unobserved", place.resource, before.what, missed.what, after.what),
                worth=3.0 if _is_dangerous(missed.change) else 1.0,
            )


def _unprompted(following: Sequence[Transition]) -> Transition:
    """The first one that comes also if the controller has missed what was before: what it writes may be its answer to that."""
    return next((each for each in following if not each.change.is_of_controller), following[0])


def _name(place: ObjectPlace) -> str:
    return f"{place.resource.partition('.')[0]} {place.name}"


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
    trigger = next(iter(_triggers(first)))[0]
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
        if change.effect != "create" or _is_generated_name(change.object):
            continue
        place, at = change.place, {"kind": change.place.resource, "name": change.place.name}
        if place.namespace:
            at["namespace"] = place.namespace
        if not _lives_through(considered, change):
            continue
        yield RunPlan(
            "drift",
            f"{_name(place)} is deleted behind the controller's back",
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
                f"{'.'.join(path)} of {_name(place)} becomes {value!r} behind the controller's back",
                steps=({"after": change.step, "steps": [{"patch": {**at, "merge": patch}}]},),
                about=("drift", place.resource, ".".join(path)),
                worth=1.0,
            )


def _lives_through(considered: Considered, created: RecordedChange) -> bool:
    """Whether an object is still there when the step that has made it is done."""
    return not any(
        change.place == created.place
        and change.effect == "delete"
        and change.step == created.step
        and change.revision > created.revision
        for change in considered.recording.changes
    )


def _drifts(value: Object) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Some fields of an object that its maker has most likely set, and another value for each."""
    found = 0
    for path in (("spec", "replicas"), ("data",), ("spec", "selector"), ("spec", "ports"), ("metadata", "labels")):
        at = _at(value, path)
        if isinstance(at, bool):
            continue
        if isinstance(at, int):
            yield path, at + 1
        elif isinstance(at, dict) and at and path[0] == "data":
            name, text = next(iter(at.items()))
            if not isinstance(text, str) or "." in name:
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
        pods = f"{change.place.name}-*"
        for failure in ("crash-loop", "never-ready"):
            yield RunPlan(
                "workload",
                f"the pods of {_name(change.place)} fail for a while: {failure}",
                steps=(
                    {
                        "after": change.step,
                        "steps": [{"pod": {"name": pods, "fail": failure}}, {"pod": {"name": pods, "ready": True}}],
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
        if value is None or _deleting(value):
            continue
        place = change.place
        at = {"kind": place.resource, "name": place.name}
        if place.namespace:
            at["namespace"] = place.namespace
        for field in mutations.of_object(schema, value):
            patches = [{"patch": {**at, "merge": patch}} for patch in (field.value, field.back)]
            yield RunPlan(
                "spec",
                f"{field.what} of {_name(place)}, and is then what it was",
                steps=({"after": change.step, "steps": patches},),
                about=("spec", place.resource, field.what),
                worth=1.0,
            )


MAKERS: Final[Mapping[str, Callable[[Considered], Iterator[RunPlan]]]] = {
    "crash": _crash,
    "stale": _stale,
    "unobserved": _unobserved,
    "ambiguous": _ambiguous,
    "order": _order,
    "drift": _drift,
    "workload": _workload,
    "refused": _refused,
    "spec": _spec,
}
