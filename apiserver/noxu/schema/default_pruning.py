"""Prune the defaults of a schema (upstream's apiserver/schema/defaulting/prune.go).

A served schema has only defaults that a write would keep: each one is put into an otherwise empty object, which is
coerced and pruned as objects are. So unknown fields in a stored default are not filled in, neither is a default of a
field that the metadata of an embedded resource does not have:

    {a: {x-kubernetes-embedded-resource: true, properties: {metadata: {properties: {other: {default: 1}}}}}}

    object with the default     {a: {metadata: {other: 1}}}
    coerced and pruned          {a: {metadata: {}}}          `other` is gone: it has no default
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final, TypeAlias

from noxu.schema import embedded
from noxu.schema.pruning import META, prune
from noxu.schema.structural import MISSING, Structural, has_defaults
from noxu.values import Json, copy, equal

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
    found = surround(copy(default), steps)
    if not isinstance(found, dict):
        return default
    embedded.coerce(found, root, drop_malformed=True)
    prune(found, root, root=True)
    for step in steps:
        if isinstance(step, str) and step not in found:
            return MISSING
        found = found[step]
    return found
