"""Fill in defaults, and drop the nulls that stand for nothing.

A default fills a property that is absent, or null where null is not allowed. Defaults never create parents: a parent
needs a `default: {}` of its own. Into what exists — objects, items, additionalProperties — defaulting descends, also
into what it has just filled in; at values of the wrong type it does nothing. A null that is neither nullable nor
defaulted is dropped from maps beforehand, and left to validation in lists.
"""

from __future__ import annotations

from apiserver.api.types import Json, Object
from apiserver.api.values import copy
from apiserver.schema.structural import MISSING, Structural


def default(value: Json, schema: Structural | None) -> None:
    """Fill in `schema`'s defaults, in place."""
    if schema is None:
        return
    if isinstance(value, dict):
        _default_map(value, schema)
    elif isinstance(value, list) and schema.items is not None:
        items = schema.items
        for n, item in enumerate(value):
            if item is None and not items.nullable and items.default is not MISSING:
                value[n] = copy(items.default)
            default(value[n], items)


def _default_map(value: Object, schema: Structural) -> None:
    properties = schema.properties
    for name, inner in properties.items():
        if inner.default is not MISSING and (name not in value or (value[name] is None and not inner.nullable)):
            value[name] = copy(inner.default)
    values = schema.values
    for name, item in value.items():
        known = properties.get(name, values)
        if known is None:
            continue
        if item is None and known is values and not known.nullable and known.default is not MISSING:
            value[name] = item = copy(known.default)
        if isinstance(item, (dict, list)):
            default(item, known)


def brings_nulls(schema: Structural | None) -> bool:
    """Whether a default somewhere holds a null. It is stored, and dropped only when it is read."""
    todo: list[Structural | None] = [schema]
    while todo:
        node = todo.pop()
        if node is None:
            continue
        if node.default is not MISSING and _holds_null(node.default):
            return True
        todo += [node.items, node.values, *node.properties.values()]
    return False


def _holds_null(value: Json) -> bool:
    todo = [value]
    while todo:
        one = todo.pop()
        if one is None:
            return True
        if isinstance(one, (dict, list)):
            todo += one.values() if isinstance(one, dict) else one
    return False


def drop_nulls(value: Json, schema: Structural | None) -> None:
    """Remove map entries that are null where null is neither allowed nor replaced by a default, in place."""
    if schema is None:
        return
    if isinstance(value, dict):
        values = schema.values
        dropped = []
        for name, item in value.items():
            known = schema.properties.get(name, values)
            if known is None:
                continue
            if item is None:
                if not known.nullable and known.default is MISSING:
                    dropped.append(name)
            elif isinstance(item, (dict, list)):
                drop_nulls(item, known)
        for name in dropped:
            del value[name]
    elif isinstance(value, list) and schema.items is not None:
        for item in value:
            if isinstance(item, (dict, list)):
                drop_nulls(item, schema.items)
