"""Explain a write: the changes of each stage, and their reasons.

A traced write runs the same stages as any other. For each stage there is a `Step` with the JSON patch of its changes and
with notes: the field that was probably meant instead of a pruned one, the schema node of a default, the values in a failed
rule, the errors that ratcheting ignored. Decoding, pruning, defaulting and validation run one by one, because the fast path
does all of them in one pass; the times in the trace are those of this readable path.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from copy import copy as shallow_copy
from typing import Final, TypeAlias

from noxu.api.errors import ApiError
from noxu.api.field import NIL, FieldError
from noxu.api.json_patches import difference, field_path, steps
from noxu.crd import types
from noxu.crd.unknown import nearest
from noxu.expressions import expression
from noxu.features import Features
from noxu.go.structs import List, Map, Struct, Type, Union
from noxu.go.text import compact_json
from noxu.registry.draft import Draft, Outcome, Stage, Superseded
from noxu.registry.offload import offload
from noxu.registry.resource import DEFINITION, Resource
from noxu.registry.strategies import STRATEGIES
from noxu.registry.trace import Note, Step, shown_patch
from noxu.schema import fieldpath
from noxu.schema.structural import Structural
from noxu.values import Json, Object, copy

Driver: TypeAlias = Callable[[Draft, Sequence[Stage]], Awaitable[None]]
"""Runs stages (`write.run`)."""


async def run(draft: Draft, stages: Sequence[Stage], drive: Driver) -> None:
    """Let `drive` run stages on a draft, and record a step for each. Raises ApiError, StoreError, Superseded."""
    outcome = draft.outcome
    trace = outcome.trace
    assert trace is not None
    for stage in stages:
        before = await offload(draft.weight, _before, draft, stage)
        warned, place = len(outcome.warnings), len(trace)
        began = time.perf_counter()
        failure: ApiError | None = None
        try:
            await drive(draft, (stage,))
        except ApiError as error:
            failure = error
        except Superseded:
            trace.append(Step(stage.__name__, time.perf_counter() - began, notes=[Note("", SUPERSEDED)]))
            raise
        seconds = time.perf_counter() - began
        nested = len(trace) > place  # webhooks and policies record their own steps
        step = await offload(draft.weight, _step, draft, stage.__name__, before, failure, nested)
        notes = [*step.notes, *outcome.notes, *(Note("", text) for text in outcome.warnings[warned:])]
        outcome.notes.clear()  # they were those of this stage
        # before the steps of its webhooks, which are there already
        trace.insert(place, step._replace(seconds=seconds, notes=notes))
        if failure is not None:
            raise failure


SUPERSEDED: Final = "another write changed the object: restart with the new stored object"

_DERIVING: Final = ("patch", "merge", "set_scale", "patch_scale", "merge_scale", "await_grace", "finalize")
"""Stages that derive the new object from the stored one."""


def _before(draft: Draft, stage: Stage) -> Object:
    """The object to which the patch of a stage applies."""
    value: Object = copy((draft.old or {}) if stage.__name__ in _DERIVING else draft.new)  # stages change it in place
    return value


def _step(draft: Draft, stage: str, before: Object, failure: ApiError | None, nested: bool) -> Step:
    patch = [] if nested or stage in _UNSHOWN or not draft.new else difference(before, draft.new)
    explain = _EXPLAIN.get(stage)
    notes = list(explain(draft, before, patch)) if explain else []
    if failure is not None and not any(note.path for note in notes):
        notes.append(Note("", failure.message))
    return Step(stage, 0.0, shown_patch(draft.resource, patch), notes)


_UNSHOWN: Final = ("read_body", "persist")
"""Stages without a patch: it would be the whole object, or invisible to clients."""


# -- notes ------------------------------------------------------------------------------------------------------------


def _pruned(draft: Draft, before: Object, patch: list[Object]) -> Iterator[Note]:
    """Notes on unknown fields, and on nulls in fields that are not nullable."""
    schema = draft.resource.schema
    for change in patch:
        place = steps(change["path"])
        if change["op"] != "remove":
            continue
        if _at(before, place) is None and (schema is None or fieldpath.declaration_at(schema, place)):
            yield Note(field_path(place), "null is dropped: the field is not nullable")
        else:
            yield Note(field_path(place), "unknown field: pruned", _hint(draft.resource, field_path(place)))


def refusal(resource: Resource | None, outcome: Outcome) -> Iterator[Note]:
    """Notes on a write that was refused without a trace: its unknown fields, and the values in the rules that failed."""
    for path in outcome.unknown:
        yield Note(path, "unknown field: pruned", "" if resource is None else _hint(resource, path))
    for failed in outcome.failed_rules:
        yield Note(failed.error.field, failed.error.body, rule=failed.text, values=failed.observed_values())


_STEP: Final = expression(r"[^.\[\]]+")


def advice(schema: Structural, path: str) -> str:
    """Advice about an unknown field at a path such as `spec.ports[0].nmae`. The names of its parents have no dots."""
    return _advice(schema, _STEP.findall(path))


def meant(schema: Structural, path: str) -> str:
    """The path of the declared field that was probably meant by an unknown one, "" if there is none like it."""
    return _meant(schema, _STEP.findall(path))


def _hint(resource: Resource, path: str) -> str:
    """Advice about an unknown field of an object of any kind."""
    if resource.schema is not None:
        return advice(resource.schema, path)
    field_name = meant_in(resource, path)
    return f"did you mean {field_name}?" if field_name else ""


def meant_in(resource: Resource, path: str) -> str:
    """`meant` for an object of any kind: custom, built-in, or a definition."""
    if resource.schema is not None:
        return meant(resource.schema, path)
    struct = types.CRD if resource.type is DEFINITION else None if resource.table is None else resource.table.struct
    *above, name = _STEP.findall(path) or [""]
    field_name = nearest(name, _fields_of(struct, above))
    return field_path([*above, field_name]) if field_name else ""


def _fields_of(kind: Type | None, place: Sequence[str]) -> list[str]:
    """The fields of a struct at a place in an object, none if there is no struct."""
    for name in place:
        if isinstance(kind, Union):
            kind = next((choice.type for choice in kind.choices.values() if isinstance(choice.type, Struct)), None)
        if isinstance(kind, Struct):
            kind = kind.fields[name].type if name in kind.fields else None
        else:
            kind = kind.element if isinstance(kind, (List, Map)) else None
    return list(kind.fields) if isinstance(kind, Struct) else []


def _meant(schema: Structural, place: list[str]) -> str:
    if name := fieldpath.nearest_declared(schema, place):
        return field_path([*place[:-1], name])
    return fieldpath.declared_elsewhere(schema, place)


def _advice(schema: Structural, place: list[str]) -> str:
    if path := _meant(schema, place):
        return f"did you mean {path}?"
    parent = field_path(place[:-1])
    return f"no field of that name is described below {parent}" if parent else "the schema describes no such field"


def _defaulted(draft: Draft, _: Object, patch: list[Object]) -> Iterator[Note]:
    schema = draft.resource.schema
    if schema is None:
        return
    for change in patch:
        place = steps(change["path"])
        declaration = fieldpath.declaration_at(schema, place)
        if declaration is not None:
            where = f"spec.versions[name={draft.resource.version}].schema.openAPIV3Schema.{declaration.where}.default"
            value = compact_json(change["value"])
            yield Note(field_path(place), f"filled in with its default: {value}", where)


def _validated(draft: Draft, *_: object) -> Iterator[Note]:
    """Notes on errors, on the values in failed rules, and on errors that ratcheting ignores."""
    yield from (note for _, note in _notes_on_errors(draft.outcome))
    yield from _ratcheted(draft)


def _notes_on_errors(outcome: Outcome) -> Iterator[tuple[FieldError, Note]]:
    rules = {id(failed.error): failed for failed in outcome.failed_rules}
    for error in outcome.errors:
        note, failed = Note(error.field, error.body), rules.get(id(error))
        yield error, note if failed is None else note._replace(rule=failed.text, values=failed.observed_values())


def _ratcheted(draft: Draft) -> Iterator[Note]:
    if draft.old is None or draft.resource.schema is None or not draft.request.features.ratcheting:
        return
    strict = shallow_copy(draft)
    strict.request = draft.request._replace(features=Features(ratcheting=False))
    strict.new, strict.outcome = copy(draft.new), Outcome()  # validation must not add to what the client gets
    STRATEGIES[draft.resource.type].validate(strict)
    reported = set(map(str, draft.outcome.errors))
    for error, note in _notes_on_errors(strict.outcome):
        if error.field != NIL and str(error) not in reported:
            yield note._replace(hint=FORGIVEN)


FORGIVEN: Final = "ignored: the value has not changed (ratcheting)"


Explain = Callable[[Draft, Object, list[Object]], Iterator[Note]]
_EXPLAIN: Final[dict[str, Explain]] = {
    "decode": _pruned,
    "prune": _pruned,
    "retype": _pruned,
    "prune_mutated": _pruned,
    "prune_applied": _pruned,
    "default": _defaulted,
    "default_mutated": _defaulted,
    "validate": _validated,
}


def _at(value: Json, place: Sequence[str]) -> Json:
    for step in place:
        value = value[int(step)] if isinstance(value, list) else value[step]
    return value
