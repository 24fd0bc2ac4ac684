"""The trace of a write: what each stage did to the object, and why, for people who ask.

A draft that carries a trace goes through the same stages as any other; each becomes a `Step` with the JSON patch that it
amounts to and with notes: the field that was meant by one that was pruned, the schema node that a default comes from,
what a failed rule saw, the errors that ratcheting forgave.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from apiserver.api.difference import difference, field_path, steps
from apiserver.api.errors import ApiError
from apiserver.api.field import NIL
from apiserver.api.gotext import compact_json
from apiserver.api.types import Json, Object
from apiserver.api.values import copy
from apiserver.features import Features
from apiserver.registry.heavy import work
from apiserver.schema import declared

if TYPE_CHECKING:
    from apiserver.registry.pipeline import Draft, Stage
    from apiserver.schema.structural import Structural

SECRET: Final = ("", "secrets")
"""The resource whose values nobody gets to see in a trace."""


class Note(NamedTuple):
    """Something to tell about one field, or about the whole object if `path` is empty.

    `hint`: what to do about it. `rule` and `values`: the rule that failed, and what it saw.
    """

    path: str
    message: str
    hint: str = ""
    rule: str = ""
    values: dict[str, str] = {}  # noqa: RUF012 - nobody changes it


class Step(NamedTuple):
    """What one stage did. `patch` makes the object after it of the one before it."""

    stage: str
    seconds: float = 0.0
    patch: Sequence[Object] = ()
    notes: Sequence[Note] = ()


Trace = list[Step]


async def run(draft: Draft, stages: Sequence[Stage]) -> None:
    """Send a draft through stages, and write down what each does. Raises ApiError."""
    trace = draft.trace
    assert trace is not None
    for stage in stages:
        before = await work(draft.weight, copy, draft.new)
        warned, place = len(draft.warnings), len(trace)
        began = time.perf_counter()
        failure: ApiError | None = None
        try:
            waits = await work(draft.weight, stage, draft)
            if waits is not None:
                await waits
        except ApiError as error:
            failure = error
        seconds = time.perf_counter() - began
        nested = len(trace) > place  # plug-ins tell their own steps
        step = await work(draft.weight, _step, draft, stage.__name__, before, failure, nested)
        notes = [*step.notes, *(Note("", text) for text in draft.warnings[warned:])]
        trace.insert(place, step._replace(seconds=seconds, notes=notes))
        if failure is not None:
            raise failure


def _step(draft: Draft, stage: str, before: Object, failure: ApiError | None, nested: bool) -> Step:
    patch = [] if nested else difference(before, draft.new)
    explain = _EXPLAIN.get(stage)
    notes = list(explain(draft, before, patch)) if explain else []
    if failure is not None and not any(note.path for note in notes):
        notes.append(Note("", failure.message))
    return Step(stage, 0.0, shown(draft, patch), notes)


def shown(draft: Draft, patch: Sequence[Object]) -> list[Object]:
    """A patch as people get to see it: without values if the object is a secret."""
    what = draft.resource.what
    if (what.group, what.name) != SECRET:
        told: list[Object] = copy(list(patch))  # later stages work on the same values
        return told
    return [{name: item for name, item in change.items() if name != "value"} for change in patch]


# -- notes ------------------------------------------------------------------------------------------------------------


def _pruned(draft: Draft, before: Object, patch: list[Object]) -> Iterator[Note]:
    """What typing took out: fields that nothing describes, and nulls where null is no value."""
    schema = draft.resource.schema
    for change in patch:
        place = steps(change["path"])
        if change["op"] != "remove":
            continue
        if _at(before, place) is None and (schema is None or declared.at(schema, place)):
            yield Note(field_path(place), "null is dropped: the field is not nullable")
        else:
            yield Note(field_path(place), "unknown field: pruned", _meant(schema, place) if schema else "")


def _meant(schema: Structural, place: list[str]) -> str:
    if name := declared.nearest(schema, place):
        return f"did you mean {field_path([*place[:-1], name])}?"
    if path := declared.elsewhere(schema, place):
        return f"did you mean {path}?"
    parent = field_path(place[:-1])
    return f"no field of that name is described below {parent}" if parent else "the schema describes no such field"


def _defaulted(draft: Draft, _: Object, patch: list[Object]) -> Iterator[Note]:
    schema = draft.resource.schema
    if schema is None:
        return
    for change in patch:
        place = steps(change["path"])
        found = declared.at(schema, place)
        if found is not None:
            where = f"spec.versions[name={draft.resource.version}].schema.openAPIV3Schema.{found.where}.default"
            value = compact_json(change["value"])
            yield Note(field_path(place), f"filled in with its default: {value}", where)


def _judged(draft: Draft, *_: object) -> Iterator[Note]:
    """What is wrong, what rules saw, and what ratcheting forgave."""
    rules = {id(failed.error): failed for failed in draft.failed_rules}
    for error in draft.errors:
        failed = rules.get(id(error))
        if failed is None:
            yield Note(error.field, error.body)
        else:
            yield Note(error.field, error.body, rule=failed.rule.rule.rule, values=failed.witness())
    yield from _forgiven(draft)


def _forgiven(draft: Draft) -> Iterator[Note]:
    if draft.old is None or draft.resource.schema is None or not draft.features.ratcheting:
        return
    strict = replace(
        draft,
        errors=[],
        warnings=[],
        failed_rules=[],
        trace=None,
        new=copy(draft.new),
        features=Features(ratcheting=False),
    )
    strict.resource.behaviour.validate(strict)
    reported = set(map(str, draft.errors))
    for error in strict.errors:
        if error.field != NIL and str(error) not in reported:
            yield Note(error.field, error.body, "forgiven: the value has not changed (ratcheting)")


Explain = Callable[["Draft", Object, list[Object]], Iterator[Note]]
_EXPLAIN: Final[dict[str, Explain]] = {
    "decode": _pruned,
    "retype": _pruned,
    "prune_again": _pruned,
    "prune_applied": _pruned,
    "default": _defaulted,
    "validate": _judged,
}


def _at(value: Json, place: Sequence[str]) -> Json:
    for step in place:
        value = value[int(step)] if isinstance(value, list) else value[step]
    return value


# -- for the wire -----------------------------------------------------------------------------------------------------


def as_json(trace: Trace) -> list[Object]:
    """Steps as JSON; what is empty is left out."""
    return [_step_as_json(step) for step in trace]


def _step_as_json(step: Step) -> Object:
    told: Object = {"stage": step.stage, "milliseconds": round(step.seconds * 1000, 3)}
    if step.patch:
        told["patch"] = list(step.patch)
    if step.notes:
        told["notes"] = [{name: item for name, item in note._asdict().items() if item} for note in step.notes]
    return told
