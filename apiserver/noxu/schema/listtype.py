"""Uniqueness in lists of type set and map (x-kubernetes-list-type; upstream's apiserver/schema/listtype).

The elements of a set, and the keys of a map's items, are compared as in Go: scalars by type and value, so that 1 and 1.0
are different; lists and objects by their JSON, so that {"a": 1} and {"a": 1.0} are equal. Only the second occurrence of
an element is reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from noxu.api.codec import encode
from noxu.api.field import FieldError, Path, duplicate, invalid
from noxu.schema.structural import Structural, of_schema
from noxu.schema.validation import is_enough
from noxu.values import Json, Object


def validate(value: Json, schema: Structural, path: Path = "") -> list[FieldError]:
    """All duplicates in a value, up to the number of errors that validation reports."""
    errors: list[FieldError] = []
    plan = _plan(schema)
    for error in _errors(value, plan) if plan else ():
        errors.append(error._replace(field=path + error.field if path else error.field.removeprefix(".")))
        if is_enough(errors):
            break
    return errors


def has_errors(value: Json, schema: Structural) -> bool:
    """Whether there are duplicates: an update may keep those that are stored (KEP-4008)."""
    plan = _plan(schema)
    return plan is not None and next(_errors(value, plan), None) is not None


class _Plan(NamedTuple):
    """The part of a schema that leads to sets and maps: a schema without them has no plan."""

    list_type: str | None
    keys: tuple[str, ...]
    items: _Plan | None
    properties: dict[str, _Plan]
    values: _Plan | None


@of_schema
def _plan(schema: Structural) -> _Plan | None:
    return _planned(schema)


def _planned(schema: Structural | None) -> _Plan | None:
    """None if there is no set or map at the node or below."""
    if schema is None:
        return None
    plan = _Plan(
        schema.list_type if schema.list_type in ("set", "map") else None,
        schema.list_map_keys,
        _planned(schema.items),
        {name: below for name, inner in schema.properties.items() if (below := _planned(inner))},
        _planned(schema.values),
    )
    return plan if plan.list_type or plan.items or plan.properties or plan.values else None


def _errors(value: Json, plan: _Plan) -> Iterator[FieldError]:
    """Errors with fields relative to the value: `[1]`, `.a[1]`. Each level prefixes its step on the way back."""
    if isinstance(value, list):
        if plan.list_type == "set":
            yield from (duplicate(f"[{n}]", value[n]) for n in _second_occurrences(value))
        elif plan.list_type == "map":
            yield from _map_errors(value, plan.keys)
        if plan.items:
            for n, item in enumerate(value):
                if isinstance(item, (dict, list)):
                    yield from _below(f"[{n}]", _errors(item, plan.items))
    elif isinstance(value, dict):
        for name, item in value.items():
            if not isinstance(item, (dict, list)):
                continue
            if plan.values:
                yield from _below(f"[{name}]", _errors(item, plan.values))
            if inner := plan.properties.get(name):
                yield from _below(f".{name}" if name else "[]", _errors(item, inner))


def _below(step: str, errors: Iterable[FieldError]) -> Iterator[FieldError]:
    return (error._replace(field=step + error.field) for error in errors)


def _map_errors(items: list[Json], names: tuple[str, ...]) -> Iterator[FieldError]:
    for n, item in enumerate(items):
        if item is not None and not isinstance(item, dict):
            yield invalid(f"[{n}]", item, "must be an object for an array of list-type map")
            return
    elements: Sequence[Json]
    if len(names) == 1:
        elements = [item.get(names[0], _NO_KEY) if item else _NO_KEY for item in items]
    else:
        keys = [_keys(item, names) for item in items]
        plain = {type(value) for composite in keys for value in composite.values()} <= {str, int}
        elements = (
            [tuple(composite.items()) for composite in keys] if plain else keys
        )  # hashable, so that no JSON is needed
    yield from (duplicate(f"[{n}]", _keys(items[n], names)) for n in _second_occurrences(elements))


def _keys(item: Object | None, names: tuple[str, ...]) -> Object:
    return {name: item[name] for name in names if name in item} if item else {}


_NO_KEY: Final = object()  # items without their only key are equal


def _second_occurrences(elements: Sequence[Json]) -> Iterator[int]:
    if set(map(type, elements)) == {str} and len(set(elements)) == len(elements):
        return  # the common case: distinct names
    counts: dict[object, int] = {}
    for n, element in enumerate(elements):
        identity = _identity(element)
        counts[identity] = count = counts.get(identity, 0) + 1
        if count == 2:
            yield n


def _identity(element: Json) -> object:
    """A hashable value that is equal for equal elements only."""
    kind = type(element)
    if kind is str or kind is int:
        return element
    if kind is dict or kind is list:
        return encode(element, sort_keys=True)
    return (kind, element)
