"""Conditions of a person that hold all the time, or whenever a run is idle: CEL over the objects that a run has recorded.

    invariants:
    - always: "objects('persistentvolumeclaims').all(c, objects('widgets').exists(w, w.metadata.name == c.metadata.labels.of))"
      message: a claim is left without its Widget
    - {idle: "objects('widgets').all(w, has(w.status) && w.status.ready)"}

`objects('widgets')`, or `objects('widgets.example.com')`, is the list of all objects of a resource. `always` holds at each revision
from the start of the program on, `idle` when the program has started, after each step, and at the end. They are evaluated
when the run is over, on its recording, so that a recording can be judged again. An expression that has no value, such as one about
a field that is not there, does not hold.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

from noxu import cel
from noxu.exploration.recording import CONTROLLER, ObjectPlace, RunRecording
from noxu.values import Object

_PART: Final = re.compile(
    r"""\bobjects\(\s*(?P<quote>['"])(?P<name>[a-z0-9.-]+)(?P=quote)\s*\)|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'""",
    re.DOTALL,
)
"""A list of objects, or a text, in which there is none."""
_BEFORE: Final = "self['"
_BEHIND: Final = "']"


@dataclass(frozen=True, slots=True)
class Invariant:
    """`expression` is CEL over `objects(…)`. `always`: at every revision; else whenever a run is idle."""

    expression: str
    message: str
    always: bool


class CompiledInvariant(NamedTuple):
    """`resources`: the names of those that it is about."""

    resources: tuple[str, ...]
    condition: cel.AwaitedCondition


@lru_cache(64)
def compiled(expression: str) -> CompiledInvariant:
    """Raises ValueError with what is wrong, and where."""
    names: dict[str, None] = {}

    def as_field(found: re.Match[str]) -> str:
        """As long as it was, so that what a compiler says of places is true."""
        name = found["name"]
        if name is None:
            return found[0]
        names[name] = None
        return f"{_BEFORE}{name}{_BEHIND}".ljust(len(found[0]))

    text = _PART.sub(as_field, expression)
    if not names:
        raise ValueError(f"{expression!r} is about no objects, such as objects('persistentvolumeclaims')")
    try:
        return CompiledInvariant(tuple(names), cel.AwaitedCondition(text))
    except ValueError as error:
        raise ValueError(str(error).replace(text, expression)) from None


class RunMoment(NamedTuple):
    """`at` says where, for a sentence."""

    objects: Mapping[ObjectPlace, Object]
    changed: ObjectPlace | None
    at: str


Broken: TypeAlias = tuple[str, str]
"""The message of an invariant, and where it does not hold."""


def broken(invariants: Sequence[Invariant], recording: RunRecording) -> list[Broken]:
    """The invariants that do not hold, each with the first moment."""
    found: list[Broken] = []
    for invariant in invariants:
        moments = _revisions(recording) if invariant.always else _idle(recording)
        where = next(_failures(compiled(invariant.expression), moments), "")
        if where:
            found.append((invariant.message, where))
    return found


def _failures(invariant: CompiledInvariant, moments: Iterator[RunMoment]) -> Iterator[str]:
    for moment in moments:
        if moment.changed is not None and not any(_is_of(moment.changed, name) for name in invariant.resources):
            continue
        given = {
            name: [value for place, value in moment.objects.items() if _is_of(place, name)]
            for name in invariant.resources
        }
        outcome = invariant.condition.evaluate(given)
        if outcome.error:
            yield f"{moment.at}: {outcome.error}"
        elif outcome.value is not True:
            yield moment.at


def _is_of(place: ObjectPlace, name: str) -> bool:
    return name in (place.resource, place.resource.partition(".")[0])


def _before(recording: RunRecording) -> dict[ObjectPlace, Object]:
    """What was there before the first change that is recorded."""
    first: dict[ObjectPlace, Object | None] = {}
    for change in recording.changes:
        first.setdefault(change.place, change.before)
    unchanged = {place: value for place, value in recording.objects if place not in first}
    return unchanged | {place: value for place, value in first.items() if value is not None}


def _revisions(recording: RunRecording) -> Iterator[RunMoment]:
    objects = _before(recording)
    yield RunMoment(objects, None, "at the start")
    for change in recording.changes:
        if change.after is None:
            objects.pop(change.place, None)
        else:
            objects[change.place] = change.after
        who = "the controller" if change.author.startswith(CONTROLLER) else change.author
        yield RunMoment(
            objects, change.place, f"at revision {change.revision}, when {who} {change.effect}d {change.place}"
        )


def _idle(recording: RunRecording) -> Iterator[RunMoment]:
    """After each step in which the run has become idle."""
    last = len(recording.steps) - 1
    objects, changes = _before(recording), iter(recording.changes)
    waiting = next(changes, None)
    for number, step in enumerate(recording.steps):
        while waiting is not None and (waiting.step <= number or number == last):
            if waiting.after is None:
                objects.pop(waiting.place, None)
            else:
                objects[waiting.place] = waiting.after
            waiting = next(changes, None)
        if not step.never_idle:
            yield RunMoment(objects, None, "at the end" if number == last else f"after {step.title}")
