"""What has happened to the objects that a controller watches, as triggers that come again in each run.

A *transition* is a change of an object, with the trigger that it fires: `{updated: widgets.example.com, name: a, changed:
{spec.replicas: {from: 3, to: 1}}}`. A *burst* is what a controller does about what was done to it: it ends where the workload does
something else. Steps of a workload that only wait belong to the burst before them. All functions are pure.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Final, NamedTuple, TypeVar

from noxu.control.faults import triggers
from noxu.exploration import shapes
from noxu.exploration.recording import ObjectPlace, RecordedChange, RunRecording, bursts
from noxu.values import Object, cached_property

_Key = TypeVar("_Key", bound=Hashable)


@dataclass(frozen=True)
class Considered:
    """What plans are made of. `watched`: the resources that the controller watches, in order."""

    recording: RunRecording
    watched: Sequence[str]
    uses_lease: bool = False
    has_nodes: bool = False

    @cached_property
    def writes(self) -> list[RecordedChange]:
        return [change for change in self.recording.changes if change.is_of_controller]

    @cached_property
    def bursts(self) -> list[int]:
        return bursts(self.recording)

    @cached_property
    def changes_of(self) -> Mapping[ObjectPlace, Sequence[RecordedChange]]:
        """Of each object, in order."""
        return _grouped(self.recording.changes, lambda change: change.place)

    @cached_property
    def writes_in(self) -> Mapping[int, Sequence[RecordedChange]]:
        """Those of the controller, by the step with which their burst has begun."""
        return _grouped(self.writes, lambda change: self.bursts[change.step])


def _grouped(
    changes: Iterable[RecordedChange], key: Callable[[RecordedChange], _Key]
) -> dict[_Key, list[RecordedChange]]:
    found: dict[_Key, list[RecordedChange]] = {}
    for change in changes:
        found.setdefault(key(change), []).append(change)
    return found


def consider(recording: RunRecording, *, has_nodes: bool = False) -> Considered:
    asked = [(verb, resource) for verb, resource, _, _ in recording.requests]
    watched = [resource for verb, resource in asked if verb == "watch"]
    uses_lease = ("update", "leases.coordination.k8s.io") in asked or ("create", "leases.coordination.k8s.io") in asked
    return Considered(
        recording,
        [resource for resource in watched if not resource.startswith(("leases.", "events"))],
        uses_lease,
        has_nodes,
    )


# -- transitions ------------------------------------------------------------------------------------------------------


class Transition(NamedTuple):
    """A change of an object that a controller watches, and a trigger that it fires once in each run."""

    change: RecordedChange
    trigger: Object
    what: str
    """In words: `its deletion began`, `spec.replicas went from 3 to 1`."""
    path: tuple[str, ...] | None = None
    """The field that an update has changed, as the trigger says; None: it was created or deleted."""


def transitions(considered: Considered) -> dict[ObjectPlace, list[Transition]]:
    """Of each object of a watched resource, its changes since the first step that can be found again, in order."""
    found: dict[ObjectPlace, list[Transition]] = {}
    for transition in found_again(considered):
        if transition.change.place.resource in considered.watched:
            found.setdefault(transition.change.place, []).append(transition)
    return found


def found_again(considered: Considered) -> Iterator[Transition]:
    """The changes since the first step that can be found again, of all objects, in order."""
    for change in considered.recording.changes:
        if change.step and not is_generated_name(change.object):
            for trigger, what in list(triggers_of(change))[:1]:
                changed = [triggers.steps_of(path) for path in trigger.get("changed") or ()]
                path = changed[0] if changed else None
                yield Transition(change, when(considered, change, trigger), what, path)


def is_wanted(path: Sequence[str]) -> bool:
    """Whether a field says what is wanted: some objects have no spec, and what is wanted of them stands beside the status."""
    return path[0] not in ("metadata", "status")


def is_generated_name(value: Object) -> bool:
    """Whether an object is called something else in each run, so that it cannot be found again by its name."""
    return bool(shapes.generated(value))


def triggers_of(change: RecordedChange) -> Iterator[tuple[Object, str]]:
    """The triggers that the change fires, the most telling one first."""
    place = change.place
    which: Object = {"name": place.name} | ({"namespace": place.namespace} if place.namespace else {})
    if change.effect != "update":
        happened = {"create": "created", "delete": "deleted"}[change.effect]
        yield {happened: place.resource, **which}, f"it was {happened}"
        return
    if is_deleting(change.after) and not is_deleting(change.before):
        yield {"updated": place.resource, **which, "changed": {"metadata.deletionTimestamp": {}}}, "its deletion began"
        return
    for path in sorted(differing(change.before, change.after), key=lambda path: _telling(change, path)):
        before, after = at(change.before, path), at(change.after, path)
        has_list = isinstance(before, list) or isinstance(after, list)
        if has_list and not is_wanted(path):
            continue  # lists of a status, such as conditions, report what other fields say
        if has_list or before is None or after is None or isinstance(before, dict) or isinstance(after, dict):
            states: Object = {}
        else:
            states = {"from": before, "to": after}
        if isinstance(before, str) and (path[0] == "metadata" or len(before) > 60 or len(str(after)) > 60):
            states = {}  # labels and annotations hold revisions, digests and times, which are others in each run
        name = triggers.path_of(path)
        yield {"updated": place.resource, **which, "changed": {name: states}}, _first_words(name, before, after)


def _first_words(name: str, before: Any, after: Any) -> str:
    """What has changed; of a list, where it differs first: `spec.racks[0].size went from 2 to 1`."""
    if isinstance(before, list) and isinstance(after, list):
        for n, (one, two) in enumerate(zip_longest(before, after)):
            if one != two:
                return _first_words(f"{name}[{n}]", one, two)
    if "[" in name and isinstance(before, dict) and isinstance(after, dict):
        [first, *_] = sorted(field for field in before.keys() | after.keys() if before.get(field) != after.get(field))
        return _first_words(f"{name}.{first}", before.get(first), after.get(first))
    return _words(name, before, after)


def _words(name: str, before: Any, after: Any) -> str:
    if name.endswith("]") and (before is None or after is None) and isinstance(before or after, dict | list):
        return f"{name} was added" if before is None else f"{name} went away"
    if isinstance(before, dict | list) or isinstance(after, dict | list):
        return f"{name} changed"
    if before is None:
        return f"{name} became {after}"
    return f"{name} went away" if after is None else f"{name} went from {before} to {after}"


def _telling(change: RecordedChange, path: tuple[str, ...]) -> tuple[int, bool, int, tuple[str, ...]]:
    """Fields of the spec come before those of the status, and those before the metadata; lists come last in each.

    What says where a pod runs comes after what says how it is.
    """
    rank = {"status": 1, "metadata": 2}.get(path[0], 0)
    if is_about_the_place(change, [path]):
        rank = 3
    return rank, isinstance(at(change.after, path), list), len(path), path


_PLACE_OF_A_POD: Final = (
    ("spec", "nodeName"),
    ("status", "conditions"),
    ("status", "hostIP"),
    ("status", "hostIPs"),
    ("status", "observedGeneration"),
    ("status", "podIP"),
    ("status", "podIPs"),
    ("status", "qosClass"),
    ("status", "startTime"),
)
"""What scheduler and kubelet write of each pod. Its phase, and the states of its containers, are something else."""


def is_about_the_place(change: RecordedChange, paths: Iterable[tuple[str, ...]]) -> bool:
    """Whether these fields of an object say only where it runs."""
    return change.place.resource == "pods" and all(path in _PLACE_OF_A_POD for path in paths)


def is_deleting(value: Object | None) -> bool:
    return bool(((value or {}).get("metadata") or {}).get("deletionTimestamp"))


_OF_THE_SERVER: Final = ("resourceVersion", "managedFields", "generation", "uid", "creationTimestamp", "selfLink")


def differing(before: Any, after: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The paths of the fields that differ. Lists are compared as a whole."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in before.keys() | after.keys():
            if not (path == ("metadata",) and name in _OF_THE_SERVER):
                yield from differing(before.get(name), after.get(name), (*path, name))
    elif before != after:
        yield path


def at(value: Any, path: Sequence[str]) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def named(place: ObjectPlace) -> str:
    return f"{place.resource.partition('.')[0]} {place.name}"


# -- bursts -----------------------------------------------------------------------------------------------------------


def burst_after(considered: Considered, change: RecordedChange) -> list[RecordedChange]:
    """What a controller writes after a change, until the workload does something else."""
    writes = considered.writes_in.get(considered.bursts[change.step], ())
    return [each for each in writes if each.revision > change.revision]


def when(considered: Considered, change: RecordedChange, trigger: Object) -> Object:
    """The trigger, with its number: moves count from the first step on."""
    parsed, _ = triggers.parse(trigger)
    assert parsed is not None
    until = [each for each in considered.changes_of[change.place] if each.step and each.revision <= change.revision]
    number = sum(triggers.fires(parsed, each.before, each.after) for each in until)
    return {**trigger, "nth": number} if number > 1 else trigger
