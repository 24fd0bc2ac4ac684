"""Prune unknown fields (KEP-2332).

A field is known if its parent lists it in `properties`; under `additionalProperties` every name is known, and its value
is pruned by that schema (`true` and `false` declare no fields, so that objects in such values are emptied).
`x-kubernetes-preserve-unknown-fields` keeps the unknown fields of a node; pruning starts again in the properties that it
lists. apiVersion, kind and metadata are known at the root and in embedded resources; the fields of metadata are coerced,
not pruned (see `embedded`). A value of the wrong type is pruned by the same schema: if an object is declared, objects in
a list lose the fields that it does not list.

Defaults are pruned, too (`prune_defaults`; upstream's apiserver/schema/defaulting/prune.go). A served schema has only
defaults that a write would keep: each default is put into an otherwise empty object, which is coerced and pruned as
objects are. So unknown fields in a stored default are not filled in, neither is a default of a field that the metadata
of an embedded resource does not have:

    {a: {x-kubernetes-embedded-resource: true, properties: {metadata: {properties: {other: {default: 1}}}}}}

    object with the default     {a: {metadata: {other: 1}}}
    coerced and pruned          {a: {metadata: {}}}          `other` is gone: it has no default
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final, TypeAlias

from noxu.schema import embedded
from noxu.schema.structural import MISSING, Structural, has_defaults
from noxu.values import Json, Object, copy, equal

META: Final = frozenset({"apiVersion", "kind", "metadata"})


def prune(value: Json, schema: Structural | None, *, root: bool = False) -> list[str]:
    """Remove unknown fields, in place; their paths (`spec.l[0].y`), sorted. Without a schema every field is unknown.

    `root`: the value is a whole object, in which apiVersion, kind and metadata are known whatever the schema says.
    """
    if schema is None:
        names = META if root else frozenset()
        removed = _prune_undescribed(value, names) if isinstance(value, (dict, list)) else []
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
        declared = properties.get(name)
        if declared is None and additional is None:
            if not keep:
                unknown.append(name)
        elif isinstance(item, (dict, list)):
            inner = declared or (additional if isinstance(additional, Structural) else None)
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


ITEM: Final = 0
"""A step into a list; other steps are names."""
Steps: TypeAlias = tuple[str | int, ...]


def surround(value: Json, steps: Steps) -> Json:
    """The smallest value with `value` at the end of `steps`: {"a": [value]} for ("a", 0)."""
    for step in reversed(steps):
        value = [value] if step == ITEM else {step: value}
    return value


def prune_defaults(schema: Structural) -> Structural:
    """The schema of a whole object with pruned defaults; the same one if nothing is pruned."""
    return _pruned(schema, (), replace(schema, embedded_resource=True), in_resource=False)


def _pruned(s: Structural, steps: Steps, root: Structural, *, in_resource: bool) -> Structural:
    """`in_resource`: there are metadata or an embedded resource around `s`. Elsewhere a scalar has nothing to prune."""
    if not has_defaults(s):
        return s
    changes: dict[str, Any] = {}
    in_resource = in_resource or s.embedded_resource or (len(steps) == 1 and steps[0] in META)
    if s.default is not MISSING and (in_resource or isinstance(s.default, (dict, list))):
        default = _without_unknown(s.default, steps, root)
        if default is MISSING or not equal(default, s.default):
            changes["default"] = default
    if (
        s.values is not None
        and (values := _pruned(s.values, (*steps, "*"), root, in_resource=in_resource)) is not s.values
    ):
        changes["additional_properties"] = values
    if (
        s.items is not None
        and (items := _pruned(s.items, (*steps, ITEM), root, in_resource=in_resource)) is not s.items
    ):
        changes["items"] = items
    properties = {
        name: _pruned(inner, (*steps, name), root, in_resource=in_resource) for name, inner in s.properties.items()
    }
    if any(properties[name] is not inner for name, inner in s.properties.items()):
        changes["properties"] = properties
    return replace(s, **changes) if changes else s


def _without_unknown(default: Json, steps: Steps, root: Structural) -> Json:
    """What remains of a default after pruning, MISSING if nothing does."""
    value = surround(copy(default), steps)
    if not isinstance(value, dict):
        return default
    embedded.coerce(value, root, drop_malformed=True)
    prune(value, root, root=True)
    for step in steps:
        if isinstance(step, str) and step not in value:
            return MISSING
        value = value[step]
    return value
