"""Prune unknown fields (KEP-2332).

A field is known if its parent lists it in `properties`; under `additionalProperties` every name is known and its value
is pruned by that schema (`true` and `false` say nothing about what is inside, so everything in there goes).
`x-kubernetes-preserve-unknown-fields` keeps what is unknown at a node, and pruning starts again in the properties it
does list. apiVersion, kind and metadata are known at the root and in embedded resources; what is in metadata is
`coercion`'s business. Wrong types are pruned with the schema at hand: a list where an object is declared loses the keys
of its elements.
"""

from __future__ import annotations

from typing import Final

from apiserver.api.types import Json, Object
from apiserver.schema.structural import Structural

META: Final = frozenset({"apiVersion", "kind", "metadata"})


def prune(value: Json, schema: Structural | None, *, root: bool = False) -> list[str]:
    """Remove what `schema` does not describe, in place; the removed paths (`spec.l[0].y`), sorted.

    `root`: the value is a whole object, so apiVersion, kind and metadata stay whatever the schema says.
    """
    if schema is None:
        removed = _prune_undescribed(value, META if root else frozenset())
    elif root and isinstance(value, dict):
        removed = _prune_map(value, schema, embedded=True, keep=schema.preserve_unknown_fields)
    else:
        removed = _prune(value, schema)
    removed.sort()
    return removed


def _prune(value: Json, schema: Structural) -> list[str]:
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
                removed += [_join(name, path) for path in below]
    for name in unknown:
        del value[name]
    return removed + unknown if unknown else removed


def _prune_list(value: list[Json], schema: Structural, *, keep: bool) -> list[str]:
    items = schema.items
    removed: list[str] = []
    for n, item in enumerate(value):
        if not isinstance(item, (dict, list)):
            continue
        if items is None:
            below = [] if keep else _prune_undescribed(item)
        elif keep:  # the mode is inherited: the items' own unknown fields stay, too
            below = _keep(item, items)
        else:
            below = _prune(item, items)
        removed += [_join(f"[{n}]", path) for path in below]
    return removed


def _keep(value: Json, schema: Structural) -> list[str]:
    if isinstance(value, dict):
        return _prune_map(value, schema, embedded=schema.embedded_resource, keep=True)
    return _prune_list(value, schema, keep=True)


def _prune_undescribed(value: Json, meta: frozenset[str] = frozenset()) -> list[str]:
    """Where there is no schema every field is unknown; lists stay, emptied of fields. Depth is the data's: no recursion."""
    removed: list[str] = []
    todo = [("", value)]
    while todo:
        path, item = todo.pop()
        if isinstance(item, dict):
            unknown = [name for name in item if name not in meta]
            removed += [_join(path, name) for name in unknown]
            for name in unknown:
                del item[name]
        else:
            todo += [(f"{path}[{n}]", inner) for n, inner in enumerate(item) if isinstance(inner, (dict, list))]
    return removed


def _join(head: str, tail: str) -> str:
    if not head:
        return tail
    return head + tail if tail.startswith("[") else f"{head}.{tail}"
