"""Objects that a CRD refuses: valid ones in which one value is broken, and its field is among the errors.

What may be broken is looked for along the values of a valid object: required fields are removed, values leave their bounds,
enums and patterns, get another type, or are made again without regard to the rules of their schema, until one of these
fails. A change that the schema allows after all (a required field has a default, another branch of anyOf accepts the
value) is not used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final, NamedTuple

from noxu.api.field import FieldError, Path, child, index, key
from noxu.generation.kinds import errors_of, valid_object
from noxu.generation.texts import Choose
from noxu.generation.valid import CannotGenerate, ValueMaker
from noxu.registry.resource import Resource
from noxu.schema.structural import Structural
from noxu.values import Json, Object, copy

_TRIES: Final = 20
_MAX_ADDED: Final = 1000
"""Characters or items that a value may have to exceed its bound."""
_WRONG: Final = {"string": 1, "integer": "a", "number": "a", "boolean": "a", "object": "a", "array": "a"}
_OMITTED: Final = object()


class BrokenObject(NamedTuple):
    """An object that is refused. `field` is the path of what is broken, `why` the server's message about it."""

    value: Object
    field: str
    why: str


class _Break(NamedTuple):
    """A change of one value: `holder[member]` becomes `value`, or is removed. The error is expected at `field`."""

    holder: Json
    member: str | int
    value: object
    field: Path


def broken_object(resource: Resource, choose: Choose) -> BrokenObject:
    """An object that a server with the CRD refuses, with one broken value. Raises CannotGenerate."""
    for _ in range(_TRIES):
        value = valid_object(resource, choose)
        breaks = [*_of_content(resource, value, choose)] or [_Break(value["metadata"], "name", "A b", "metadata.name")]
        while breaks:
            chosen = breaks.pop(choose(len(breaks)))
            found = _apply(resource, value, chosen)
            if found is not None:
                return BrokenObject(value, chosen.field, found.body)
    raise CannotGenerate("", "no change is found that makes a valid object invalid")


def _apply(resource: Resource, value: Object, chosen: _Break) -> FieldError | None:
    """Change the object, in place; the error at the changed field. None: there is none, and the object is as before."""
    former = chosen.holder[chosen.member] if _has(chosen.holder, chosen.member) else _OMITTED
    _set(chosen.holder, chosen.member, chosen.value)
    found = next((error for error in errors_of(value, resource) if error.field == chosen.field), None)
    if found is None:
        _set(chosen.holder, chosen.member, former)
    return found


def _has(holder: Json, member: str | int) -> bool:
    return isinstance(holder, list) or member in holder


def _set(holder: Json, member: str | int, value: object) -> None:
    if value is _OMITTED:
        holder.pop(member, None)
    else:
        holder[member] = value


def _of_content(resource: Resource, value: Object, choose: Choose) -> Iterator[_Break]:
    """The changes of everything but apiVersion, kind and metadata: those of bounds first, then those of types and rules."""
    schema = resource.schema
    if schema is None:
        return
    for name in schema.validation.required:
        if name in value and name not in ("apiVersion", "kind", "metadata"):
            yield _Break(value, name, _OMITTED, name)
    places = [
        place
        for name, node in schema.properties.items()
        if name in value and name not in ("apiVersion", "kind", "metadata")
        for place in _places(value, name, node, name)
    ]
    for place in places:
        yield from _beyond(*place)
    for holder, member, node, path in places:
        if node.type and not node.int_or_string:
            yield _Break(holder, member, _WRONG[node.type], path)
        if node.rules:
            yield from _against_rules(holder, member, node, path, choose)


_Place = tuple[Json, str | int, Structural, Path]
"""(the map or list that has a value, its name or index there, its schema, its path)."""


def _places(holder: Json, member: str | int, node: Structural, path: Path) -> Iterator[_Place]:
    """A value and the values in it."""
    value = holder[member]
    yield holder, member, node, path
    if isinstance(value, dict):
        for name in value:
            if (inner := node.properties.get(name)) is not None:
                yield from _places(value, name, inner, child(path, name))
            elif node.values is not None:
                yield from _places(value, name, node.values, key(path, name))
    elif isinstance(value, list) and node.items is not None:
        for n in range(len(value)):
            yield from _places(value, n, node.items, index(path, n))


def _beyond(holder: Json, member: str | int, node: Structural, path: Path) -> Iterator[_Break]:
    """The changes by which a value leaves its bounds."""
    value, bounds = holder[member], node.validation
    for name in bounds.required:
        if isinstance(value, dict) and name in value:
            yield _Break(value, name, _OMITTED, child(path, name))
    for applies, make in _BEYOND:
        if applies(node):
            yield _Break(holder, member, make(node, value), path)
    if bounds.pattern and isinstance(value, str):
        for text in ("", "!", " ", "é\n"):
            yield _Break(holder, member, text, path)


_BEYOND: Final[tuple[tuple[Callable[[Structural], bool], Callable[[Structural, Json], Json]], ...]] = (
    (lambda node: bool(node.validation.enum) and node.type == "string", lambda _, value: f"{value}-other"),
    (lambda node: node.validation.minimum is not None, lambda node, _: math.floor(node.validation.minimum or 0) - 1),
    (lambda node: node.validation.maximum is not None, lambda node, _: math.ceil(node.validation.maximum or 0) + 1),
    (
        lambda node: 0 < (node.validation.min_length or 0) <= _MAX_ADDED,
        lambda node, _: "a" * ((node.validation.min_length or 1) - 1),
    ),
    (
        lambda node: node.validation.max_length is not None and node.validation.max_length <= _MAX_ADDED,
        lambda node, _: "a" * ((node.validation.max_length or 0) + 1),
    ),
    (lambda node: bool(node.validation.min_items), lambda node, value: value[: (node.validation.min_items or 1) - 1]),
    (
        lambda node: node.validation.max_items is not None and node.validation.max_items <= _MAX_ADDED,
        lambda node, value: [copy(item) for item in value[:1] * ((node.validation.max_items or 0) + 1)],
    ),
)


def _against_rules(holder: Json, member: str | int, node: Structural, path: Path, choose: Choose) -> Iterator[_Break]:
    """Other values of a node with rules, made without regard to them."""
    for _ in range(3):
        try:
            value = ValueMaker(choose).value(replace(node, rules=()), path)
        except CannotGenerate:
            continue
        yield _Break(holder, member, value, path)
