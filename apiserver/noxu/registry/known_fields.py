"""The fields that objects of a kind can have, for messages about expressions in CEL that read others.

A field counts as impossible only if the schema has its name nowhere, and keeps no unknown fields.
"""

from __future__ import annotations

import re
from typing import Final

from noxu import cel
from noxu.features import meant
from noxu.go import structs
from noxu.registry.resource import Resource
from noxu.schema.fieldpath import METADATA, TYPE_META
from noxu.schema.structural import Structural

_UNDEFINED: Final = re.compile(r"undefined field '([^']+)'")


def unknown(expression: str, resource: Resource) -> str:
    """What is wrong with an expression in CEL that reads a field of `self` which its schema does not have; "" if nothing is."""
    struct, schema = resource.codec.struct, resource.schema
    fields = _of_struct(struct) if struct is not None else None if schema is None else _of_schema(schema)
    type_ = None if fields is None else cel.object_type(resource.kind, struct=struct, schema=schema)
    if fields is None or type_ is None:
        return ""
    for name in _UNDEFINED.findall(cel.compilation_error(expression, type_)):
        if name not in fields:
            return f"no {resource.kind} has a field {name!r}{meant(name, sorted(fields))}"
    return ""


def _of_schema(root: Structural) -> set[str] | None:
    """The names of all fields; None if unknown ones are kept somewhere, or in a schema without properties."""
    names: set[str] = {*METADATA, *TYPE_META}
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.preserve_unknown_fields or node.embedded_resource:
            return None
        names |= node.properties.keys()
        waiting += [*node.properties.values(), *filter(None, (node.items, node.values))]
    return names


def _of_struct(root: structs.Struct) -> set[str]:
    """The names of all fields, also of types that contain themselves."""
    names: set[str] = set()
    seen: set[int] = set()
    waiting: list[structs.Type] = [root]
    while waiting:
        type_ = waiting.pop()
        if id(type_) in seen:
            continue
        seen.add(id(type_))
        if isinstance(type_, (structs.List, structs.Map)):
            waiting.append(type_.element)
        elif isinstance(type_, (structs.Struct, structs.Union)):
            fields = type_.fields if isinstance(type_, structs.Struct) else type_.choices
            names |= fields.keys()
            waiting += [field.type for field in fields.values()]
    return names
