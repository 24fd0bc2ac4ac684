"""Fill in defaults, and drop nulls that are not allowed (upstream's apiserver/schema/defaulting).

A default fills a property that is absent, or null without being nullable. Defaults do not create parents: a parent needs
a `default: {}` of its own. Defaulting descends into existing values (objects, items, additionalProperties) and into
defaults that it has just filled in; values of the wrong type are skipped. A null that is neither nullable nor replaced
by a default is dropped from maps beforehand; in lists it is left to validation.

What defaults add is counted before it is copied: a list of empty items takes three bytes for each of them, and a default
may have a megabyte. Upstream has no such limit; its objects are too large for etcd then.
"""

from __future__ import annotations

from typing import Final

from noxu.api.codec import encode
from noxu.schema.structural import MISSING, Structural, has_defaults, of_schema
from noxu.values import Json, Object, copy

MAX_ADDED: Final = 1_572_864
"""Bytes of JSON that defaults may add to an object: as many as an object may have that is stored."""


class TooMuchAdded(ValueError):
    """Defaults would add more than MAX_ADDED."""


def default(value: Json, schema: Structural | None) -> None:
    """Fill in `schema`'s defaults, in place. Raises TooMuchAdded; the defaults filled in until then remain."""
    if schema is not None:
        _default(value, schema, _Room())


class _Room:
    """What may still be added."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = MAX_ADDED

    def copy(self, name: str, schema: Structural) -> Json:
        """A copy of a node's default, for the member `name`."""
        self.left -= len(name) + default_size(schema)
        if self.left < 0:
            raise TooMuchAdded
        return copy(schema.default)


@of_schema
def default_size(schema: Structural) -> int:
    """The bytes of a node's default, with what surrounds it: `"":1,` has five."""
    return len(encode(schema.default, sort_keys=False)) + 4


def _default(value: Json, schema: Structural, room: _Room) -> None:
    if isinstance(value, dict):
        _default_map(value, schema, room)
    elif isinstance(value, list) and schema.items is not None:
        items = schema.items
        for n, item in enumerate(value):
            if item is None and not items.nullable and items.default is not MISSING:
                value[n] = room.copy("", items)
            _default(value[n], items, room)


def _default_map(value: Object, schema: Structural, room: _Room) -> None:
    properties = schema.properties
    for name, inner in properties.items():
        if inner.default is not MISSING and (name not in value or (value[name] is None and not inner.nullable)):
            value[name] = room.copy(name, inner)
    values = schema.values
    for name, item in value.items():
        item_schema = properties.get(name, values)
        if item_schema is None:
            continue
        if item is None and item_schema is values and not item_schema.nullable and item_schema.default is not MISSING:
            value[name] = item = room.copy("", item_schema)
        if isinstance(item, (dict, list)):
            _default(item, item_schema, room)


def has_null_default(schema: Structural | None) -> bool:
    """Whether a default contains a null. Such a null is stored, and dropped only when the object is read."""
    todo: list[Structural | None] = [schema]
    while todo:
        node = todo.pop()
        if node is None or not has_defaults(node):
            continue
        if node.default is not MISSING and _contains_null(node.default):
            return True
        todo += [node.items, node.values, *node.properties.values()]
    return False


def _contains_null(value: Json) -> bool:
    todo = [value]
    while todo:
        item = todo.pop()
        if item is None:
            return True
        if isinstance(item, (dict, list)):
            todo += item.values() if isinstance(item, dict) else item
    return False


def drop_nulls(value: Json, schema: Structural | None) -> None:
    """Remove members of maps that are null, but neither nullable nor defaulted, in place."""
    if schema is None:
        return
    if isinstance(value, dict):
        values = schema.values
        dropped = []
        for name, item in value.items():
            item_schema = schema.properties.get(name, values)
            if item_schema is None:
                continue
            if item is None:
                if not item_schema.nullable and item_schema.default is MISSING:
                    dropped.append(name)
            elif isinstance(item, (dict, list)):
                drop_nulls(item, item_schema)
        for name in dropped:
            del value[name]
    elif isinstance(value, list) and schema.items is not None:
        for item in value:
            if isinstance(item, (dict, list)):
                drop_nulls(item, schema.items)
