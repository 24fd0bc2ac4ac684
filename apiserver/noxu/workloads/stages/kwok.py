"""Stages of kwok (`kwok.x-k8s.io/v1alpha1`, kind Stage): the parts that make sense here; the others are refused with their path.

    resourceRef                  apiGroup (v1, or a group with or without its version) and kind
    selector                     matchLabels, matchAnnotations, matchExpressions: key, operator, values; jq; cel
    delay                        durationMilliseconds, jitterDurationMilliseconds, and both from an expression
    weight, weightFrom           as in kwok
    next, or steps               event, finalizers, delete, patches, statusTemplate, statusSubresource
    immediateNextStage           it is always so

Impersonation and `apply` are refused. Documentation: kwok's docs/user/stages-configuration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, cast

from noxu.go import yaml
from noxu.values import Object
from noxu.workloads.stages.conditions import expression
from noxu.workloads.stages.fields import DocumentFaults, DocumentFields
from noxu.workloads.stages.queries import Query, QueryError
from noxu.workloads.stages.stage import (
    Changing,
    Delay,
    PatchType,
    Selects,
    Stage,
    StageDelete,
    StageEvent,
    StageFinalizers,
    StagePatch,
    StageStep,
    StageTarget,
    Weight,
    from_template,
)
from noxu.workloads.stages.template_functions import NAMES
from noxu.workloads.stages.templates import GoTemplate

GROUP: Final = "kwok.x-k8s.io"
VERSION: Final = f"{GROUP}/v1alpha1"
NO_IMPERSONATION: Final = "stages write as the kubelet, and impersonate no other user"
_TYPES: Final = ("json", "merge", "strategic")
_EVENTS: Final = ("Normal", "Warning")
NOTHING: Final = GoTemplate("", ())


def read(value: Object, faults: DocumentFaults) -> Stage:
    """A stage, which is of no use if there are faults."""
    document = DocumentFields(value, "", faults)
    for name in ("apiVersion", "kind", "status"):
        document.take(name)
    metadata = document.inner("metadata")
    name = "" if metadata is None else metadata.required("name")
    spec = document.inner("spec")
    document.end()
    if spec is None:
        faults.add("spec", "it is required")
        spec = DocumentFields({}, "spec", DocumentFaults())
    stage = Stage(
        name,
        _target(spec),
        list(_selectors(spec)),
        _delay(spec),
        list(_steps(spec)),
        Weight(spec.integer("weight", 0) or 0, _query_in(spec, "weightFrom")),
        replaces=True,
    )
    spec.boolean("immediateNextStage")
    spec.end()
    return stage


def _target(spec: DocumentFields) -> StageTarget:
    fields = spec.inner("resourceRef")
    if fields is None:
        spec.faults.add(spec.place("resourceRef"), "it is required")
        return StageTarget("", "")
    group, kind = fields.text("apiGroup", "v1"), fields.required("kind")
    fields.end()
    above, _, _ = group.partition("/")
    return StageTarget("" if above == "v1" else above, kind)


# -- selector ---------------------------------------------------------------------------------------------------------


def _selectors(spec: DocumentFields) -> Iterator[Selects]:
    fields = spec.inner("selector")
    if fields is None:
        spec.faults.add(spec.place("selector"), "it is required: kwok ignores a stage without one")
        return
    for part, name in (("labels", "matchLabels"), ("annotations", "matchAnnotations")):
        if wanted := fields.texts(name):
            yield _has(part, wanted)
    for item in fields.items("matchExpressions"):
        yield _expression(item)
    fields.end()


def _has(part: str, wanted: Mapping[str, str]) -> Selects:
    return lambda value: wanted.items() <= (value["metadata"].get(part) or {}).items()


def _expression(item: DocumentFields) -> Selects:
    if (cel := item.inner("cel")) is not None:
        never: Selects = _never
        found = cel.parsed("expression", expression, never)
        cel.end()
        item.end()
        return found
    jq = item.inner("jq")
    fields = item if jq is None else jq
    query = fields.parsed("key", Query, None)
    operator, values = fields.text("operator"), fields.words("values")
    if operator not in _OPERATORS:
        fields.faults.add(fields.place("operator"), f"{operator!r} is none of {', '.join(_OPERATORS)}")
    elif bool(values) != (operator in ("In", "NotIn")):
        why = "In and NotIn have values, Exists and DoesNotExist have none"
        fields.faults.add(fields.place("values"), why)
    if query is None and not fields.faults:
        fields.faults.add(fields.place("key"), "it is required")
    fields.end()
    item.end()
    return _matches(query, operator, frozenset(values)) if query is not None else _never


def _never(_value: Object) -> bool:
    return False


def _matches(query: Query, operator: str, values: frozenset[str]) -> Selects:
    decide, otherwise = _OPERATORS.get(operator, (_exists, False))

    def selects(value: Object) -> bool:
        try:
            found = query.values(value)
        except QueryError:
            return otherwise
        return decide(found, values)

    return selects


def _exists(found: Sequence[object], _values: frozenset[str]) -> bool:
    return bool(found)


def _in(found: Sequence[object], values: frozenset[str]) -> bool:
    return any(_text(each) in values for each in found)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int) else ""


_OPERATORS: Final[Mapping[str, tuple[Callable[[Sequence[object], frozenset[str]], bool], bool]]] = {
    "In": (_in, False),
    "NotIn": (lambda found, values: not _in(found, values), True),
    "Exists": (_exists, False),
    "DoesNotExist": (lambda found, values: not _exists(found, values), True),
}
"""How a query's values decide, and what is so if it fails."""


# -- delay ------------------------------------------------------------------------------------------------------------


def _delay(spec: DocumentFields) -> Delay:
    fields = spec.inner("delay")
    if fields is None:
        return Delay()
    least = _changing(fields, "durationMilliseconds", "durationFrom", 0)
    most = _changing(fields, "jitterDurationMilliseconds", "jitterDurationFrom", None)
    fields.end()
    return Delay(least, most)


def _changing(fields: DocumentFields, name: str, from_: str, otherwise: int | None) -> Changing:
    milliseconds = fields.integer(name, otherwise)
    return Changing(None if milliseconds is None else milliseconds / 1000, _query_in(fields, from_))


def _query_in(fields: DocumentFields, name: str) -> Query | None:
    given = fields.inner(name)
    if given is None:
        return None
    given.refuse("cel", "a value is found by a query of jq only")
    jq = given.inner("jq")
    query = given.parsed("expressionFrom", Query, None) if jq is None else jq.parsed("expression", Query, None)
    if jq is not None:
        jq.end()
    given.end()
    return query


# -- what happens -----------------------------------------------------------------------------------------------------


def _steps(spec: DocumentFields) -> Iterator[StageStep]:
    if (fields := spec.inner("next")) is not None:
        yield from _next(fields)
    for item in spec.items("steps"):
        patch = item.inner("patch")
        yield from _common(item)
        if patch is not None:
            yield _patch(patch)
        item.refuse("apply", "stages change the object that they select, and no other one")
        item.end()


def _next(fields: DocumentFields) -> Iterator[StageStep]:
    patches = [_patch(item) for item in fields.items("patches")]
    status = fields.parsed("statusTemplate", _template, NOTHING)
    subresource = fields.text("statusSubresource", "status")
    fields.refuse("statusPatchAs", NO_IMPERSONATION)
    yield from _common(fields)
    yield from patches
    if status is not NOTHING:
        yield StagePatch(from_template(status, _yaml), root="status", subresource=subresource)
    fields.end()


def _common(fields: DocumentFields) -> Iterator[StageStep]:
    """Event, finalizers, delete."""
    if (event := fields.inner("event")) is not None:
        type_, reason, message = event.chosen("type", _EVENTS, "Normal"), event.text("reason"), event.text("message")
        event.end()
        yield StageEvent("Warning" if type_ == "Warning" else "Normal", reason, message)
    if (finalizers := fields.inner("finalizers")) is not None:
        yield StageFinalizers(
            _values(finalizers, "add"), _values(finalizers, "remove"), empty=finalizers.boolean("empty")
        )
        finalizers.end()
    if fields.boolean("delete"):
        yield StageDelete()


def _values(fields: DocumentFields, name: str) -> list[str]:
    values = []
    for item in fields.items(name):
        values.append(item.required("value"))
        item.end()
    return values


def _patch(fields: DocumentFields) -> StagePatch:
    type_ = fields.chosen("type", _TYPES)
    fields.refuse("impersonation", NO_IMPERSONATION)
    template = fields.parsed("template", _template, NOTHING)
    root, subresource = fields.text("root"), fields.text("subresource")
    fields.end()
    return StagePatch(from_template(template, _yaml), cast("PatchType", type_), root, subresource)


def _template(text: str) -> GoTemplate:
    return GoTemplate(text, NAMES)


def _yaml(text: bytes) -> object:
    return yaml.read(text).value
