"""Changes of the fields of a custom resource that its schema allows, each with what takes it back: `--mutate`.

    schema                                      spec            changed to      taken back by
    paused: {type: boolean}                     paused: false   true            paused: false
    debug:  {type: boolean}                                     true            debug: null
    size:   {type: integer, maximum: 10}        size: 2         3, 10           size: 2
    mode:   {enum: [fast, safe]}                mode: fast      safe            mode: fast
    backup: {type: object}, not required        backup: {…}     absent          backup: {…}

A text without an enum stays what it is: which texts make sense, a schema does not say. Rules that a schema cannot express are the
server's and the webhooks': what they refuse is no change. (Acto, SOSP '23, changes fields in this way, and compares with the
state before.) All functions are pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from noxu.exploration.recording import ObjectPlace, RunRecording
from noxu.values import Object

CRDS: Final = "customresourcedefinitions.apiextensions.k8s.io"
MAX_DEPTH: Final = 5  # fields below `spec`
MAX_VALUES: Final = 2  # other values of a field
ABSENT: Final = None
"""In a merge patch: the field goes away."""


class TriedChange(NamedTuple):
    """`path` below the object. `value` and `back` are merge patches of the whole object: the change, and what takes it back."""

    path: tuple[str, ...]
    what: str
    value: Object
    back: Object


def schemas(recording: RunRecording) -> dict[str, Object]:
    """The schemas of custom resources by `plural.group`: those of the versions that are stored."""
    found: dict[str, Object] = {}
    for place, value in recording.objects:
        if place.resource != CRDS:
            continue
        for version in value["spec"]["versions"]:
            if version.get("storage"):
                found[place.name] = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    return found


def of_object(schema: Object, value: Object) -> Iterator[TriedChange]:
    """The changes of the spec of an object."""
    spec = (schema.get("properties") or {}).get("spec")
    if isinstance(spec, dict) and isinstance(value.get("spec"), dict):
        for path, new, old in _of_fields(spec, value["spec"], ("spec",)):
            yield TriedChange(path, _words(path, new, old), _nested(path, new), _back(value, path))


_Change = tuple[tuple[str, ...], Any, Any]
"""A path, the new value, the old one; None: there is none."""


def _of_fields(schema: Mapping[str, Any], value: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[_Change]:
    """The changes of the fields of an object that is there, or could be: an empty one."""
    if len(path) > MAX_DEPTH:
        return
    required = schema.get("required") or ()
    for name, field in (schema.get("properties") or {}).items():
        here, old = (*path, name), value.get(name)
        if not isinstance(field, dict) or "." in name:
            continue
        for new in _others(field, old):
            yield here, new, old
        if isinstance(old, dict):
            yield from _of_fields(field, old, here)
        elif old is None and field.get("type") == "object" and not field.get("required"):
            yield from _of_fields(_only_flags(field), {}, here)
        if old is not None and name not in required and "default" not in field:
            yield here, ABSENT, old


def _only_flags(schema: Mapping[str, Any]) -> dict[str, Any]:
    """What is absent is made of its flags alone: what else belongs together, a schema does not say."""
    fields = {
        name: field
        for name, field in (schema.get("properties") or {}).items()
        if field.get("type") in ("boolean", "object")
    }
    return {"properties": fields}


def _others(schema: Mapping[str, Any], old: Any) -> list[Any]:
    """Other values of a field, the most telling ones first."""
    if "enum" in schema:
        return [each for each in schema["enum"] if each not in (old, None)][:MAX_VALUES] if old is not None else []
    kind = schema.get("type")
    if kind == "boolean":
        return [not old]
    if kind in ("integer", "number") and isinstance(old, int) and not isinstance(old, bool):
        return [each for each in _numbers(schema, old) if each != old][:MAX_VALUES]
    return []


def _numbers(schema: Mapping[str, Any], old: int) -> Sequence[int]:
    """One more and one less; at a bound the other one only."""
    least, most = schema.get("minimum"), schema.get("maximum")
    step = schema.get("multipleOf") or 1
    over = least is not None and (old - step < least or (schema.get("exclusiveMinimum") and old - step == least))
    beyond = most is not None and (old + step > most or (schema.get("exclusiveMaximum") and old + step == most))
    less = [] if over or (least is None and old - step < 0) else [old - step]
    return [*([] if beyond else [old + step]), *less]


def _nested(path: Sequence[str], value: Any) -> Object:
    for name in reversed(path):
        value = {name: value}
    nested: Object = value
    return nested


def _back(value: Object, path: Sequence[str]) -> Object:
    """The patch that makes the field what it was: the first field above it that was absent goes away."""
    at: Any = value
    for n, name in enumerate(path):
        if not isinstance(at, dict) or name not in at:
            return _nested(path[: n + 1], ABSENT)
        at = at[name]
    return _nested(path, at)


def _words(path: Sequence[str], new: Any, old: Any) -> str:
    name = ".".join(path)
    if new is ABSENT:
        return f"{name} goes away"
    text = str(new).lower() if isinstance(new, bool) else repr(new)
    return f"{name} becomes {text}" + ("" if old is None or isinstance(old, bool) else f" instead of {old!r}")


def newest(recording: RunRecording, place: ObjectPlace, step: int) -> Object | None:
    """The state of an object when a step was done."""
    found: Object | None = None
    for change in recording.changes:
        if change.place == place and change.step <= step:
            found = change.after
    return found
