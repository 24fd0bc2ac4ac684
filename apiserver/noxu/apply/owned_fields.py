"""The fields of a set in an object: where they are, and the part of the object that they are.

A path that leads to no field, because the object has changed since, has no value. Nothing recurses: clients choose the depth
of sets.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from noxu.apply.fieldset import SELF, Element, FieldSet, Path
from noxu.values import Json, Object, equal


def leaves(fields: FieldSet) -> Iterator[Path]:
    """The paths of a set below which it has no others."""
    todo: list[tuple[Path, FieldSet]] = [((), fields)]
    while todo:
        path, node = todo.pop()
        below = [(element, child) for element, child in node.items() if element != SELF]
        if path and not below:
            yield path
        todo += [((*path, element), child) for element, child in reversed(below)]


def value_at(value: Json, path: Path) -> list[Json]:
    """The value at a path, alone in a list; an empty list if there is none."""
    for element in path:
        found = _step(value, element)
        if not found:
            return []
        value = found[0]
    return [value]


def owned_part(value: Object, fields: FieldSet) -> Object:
    """The part of an object that a set has. Of lists it has all items with their keys, so that a merge finds them.

    {a: 1, b: {c: 2, d: 3}}, .b.c    →    {b: {c: 2}}
    """
    top: Object = {}
    todo: list[tuple[Any, Any, FieldSet]] = [(value, top, fields)]
    while todo:
        source, target, node = todo.pop()
        for element, child in node.items():
            name = element[2:]
            if not element.startswith("f:") or name not in source:
                continue
            inner = source[name]
            if isinstance(inner, dict) and any(each.startswith("f:") for each in child):
                target[name] = {}
                todo.append((inner, target[name], child))
            else:
                target[name] = inner
    return top


def _step(value: Json, element: Element) -> list[Json]:
    kind, _, rest = element.partition(":")
    if kind == "f":
        return [value[rest]] if isinstance(value, dict) and rest in value else []
    if not isinstance(value, list):
        return []
    if kind == "i":
        return value[int(rest) : int(rest) + 1]
    wanted = orjson.loads(rest)
    if kind == "v":
        return [item for item in value if equal(item, wanted)][:1]
    return [
        item
        for item in value
        if isinstance(item, dict) and all(name in item and equal(item[name], each) for name, each in wanted.items())
    ][:1]
