"""Fill in defaults, and drop nulls that are not allowed (upstream's apiserver/schema/defaulting).

A default fills a property that is absent, or null without being nullable. Defaults do not create parents: a parent needs
a `default: {}` of its own. Defaulting descends into existing values (objects, items, additionalProperties) and into
defaults that it has just filled in; values of the wrong type are skipped. A null that is neither nullable nor replaced
by a default is dropped from maps beforehand; in lists it is left to validation.
"""

from __future__ import annotations

from noxu.apiserver.schema.structural import MISSING, Structural
from noxu.apiserver.values import Json, Object, copy


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


def has_null_default(schema: Structural | None) -> bool:
    """Whether a default contains a null. Such a null is stored, and dropped only when the object is read."""
    todo: list[Structural | None] = [schema]
    while todo:
        node = todo.pop()
        if node is None:
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
