"""Prune unknown fields (KEP-2332).

A field is known if its parent lists it in `properties`; under `additionalProperties` every name is known, and its value
is pruned by that schema (`true` and `false` declare no fields, so that objects in such values are emptied).
`x-kubernetes-preserve-unknown-fields` keeps the unknown fields of a node; pruning starts again in the properties that it
lists. apiVersion, kind and metadata are known at the root and in embedded resources; the fields of metadata are coerced,
not pruned (see `embedded`). A value of the wrong type is pruned by the same schema: if an object is declared, objects in
a list lose the fields that it does not list.
"""

from __future__ import annotations

from typing import Final

from noxu.schema.structural import Structural
from noxu.values import Json, Object

META: Final = frozenset({"apiVersion", "kind", "metadata"})


def prune(value: Json, schema: Structural | None, *, root: bool = False) -> list[str]:
    """Remove unknown fields, in place; their paths (`spec.l[0].y`), sorted. Without a schema every field is unknown.

    `root`: the value is a whole object, in which apiVersion, kind and metadata are known whatever the schema says.
    """
    if schema is None:
        known = META if root else frozenset()
        removed = _prune_undescribed(value, known) if isinstance(value, (dict, list)) else []
    elif root and isinstance(value, dict):
        removed = _prune_map(value, schema, embedded=True, keep=schema.preserve_unknown_fields)
    else:
        removed = _prune(value, schema)
    paths = [path.removeprefix(".") for path in removed]
    paths.sort()
    return paths


def _prune(value: Json, schema: Structural) -> list[str]:
    """The paths begin with a point or a bracket: `.spec.l[0].y`; a name may be empty, or look like an index."""
    if isinstance(value, dict):
        return _prune_map(value, schema, embedded=schema.embedded_resource, keep=schema.preserve_unknown_fields)
    if isinstance(value, list):
        return _prune_list(value, schema, keep=schema.preserve_unknown_fields)
    return []


def _prune_map(value: Object, schema: Structural, *, embedded: bool, keep: bool) -> list[str]:
    properties = schema.properties
    additional = schema.additional_properties
    removed: list[str] = []
    unknown: list[str] = []
    for name, item in value.items():
        if embedded and name in META:
            continue
        known = properties.get(name)
        if known is None and additional is None:
            if not keep:
                unknown.append(name)
        elif isinstance(item, (dict, list)):
            inner = known or (additional if isinstance(additional, Structural) else None)
            below = _prune_undescribed(item) if inner is None else _prune(item, inner)
            if below:
                removed += [f".{name}{path}" for path in below]
    for name in unknown:
        del value[name]
    return removed + [f".{name}" for name in unknown] if unknown else removed


def _prune_list(value: list[Json], schema: Structural, *, keep: bool) -> list[str]:
    items = schema.items
    removed: list[str] = []
    for n, item in enumerate(value):
        if not isinstance(item, (dict, list)):
            continue
        if items is None:
            below = [] if keep else _prune_undescribed(item)
        elif keep:  # lists pass it on: unknown fields of the items are kept, too
            below = _prune_preserving(item, items)
        else:
            below = _prune(item, items)
        removed += [f"[{n}]{path}" for path in below]
    return removed


def _prune_preserving(value: Json, schema: Structural) -> list[str]:
    if isinstance(value, dict):
        return _prune_map(value, schema, embedded=schema.embedded_resource, keep=True)
    return _prune_list(value, schema, keep=True)


def _prune_undescribed(value: Json, meta: frozenset[str] = frozenset()) -> list[str]:
    """Prune a value without schema: every field is unknown; lists are kept, with empty objects.

    Clients choose the depth of such a value, so this does not recurse.
    """
    removed: list[str] = []
    todo = [("", value)]
    while todo:
        path, item = todo.pop()
        if isinstance(item, dict):
            unknown = [name for name in item if name not in meta]
            removed += [f"{path}.{name}" for name in unknown]
            for name in unknown:
                del item[name]
        else:
            todo += [(f"{path}[{n}]", inner) for n, inner in enumerate(item) if isinstance(inner, (dict, list))]
    return removed
