"""Paths to fields as CRDs write them, `.spec.name` or `.spec['a.b']`, resolved along a schema.

selectableFields and the fieldPath of validation rules use them (upstream's cel.ValidFieldPath).

The other way round, `declaration_at` finds the declaration of a location in an object, for hints such as "did you
mean". A location is a sequence of names and indexes, the steps of a JSON pointer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from noxu.api.field import Path, child, key
from noxu.expressions import expression
from noxu.schema.structural import Structural

# A quoted string ends at a quote that no backslash precedes; all else ends at the next delimiter.
_PART: Final = expression(r"[.\[\]]|'(?:.*?(?<!\\)'|.*)|[^.\[\]]+", re.DOTALL)
_ESCAPED: Final = expression(r"\\(.)")
_ESCAPES: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "'": "'", "\\": "\\"}

NOT_A_FIELD: Final = "does not refer to a valid field"


class Resolved(NamedTuple):
    """A field. `path` has no leading dot, and keys of maps in brackets; `root` is the path of its first step.

    `schema` is None under `additionalProperties: true`.
    """

    path: Path
    root: str
    schema: Structural | None


def resolve(json_path: str, schema: Structural | None, *, brackets: bool = True) -> Resolved:
    """Follow a path; `brackets` allows `['name']`. Raises ValueError with upstream's message."""
    path, root = "", ""
    parts = (match[0] for match in _PART.finditer(json_path))
    for part in parts:
        if part == "[":
            if not brackets:
                raise ValueError("array notation is not allowed")
            name = _unquote(_next(parts))
        elif part == ".":
            name = _next(parts)
        else:
            raise ValueError(f"expected [ or . but got: {part}")
        if schema is None or not (schema.properties or schema.additional_properties is not None):
            raise ValueError(NOT_A_FIELD)
        if schema.properties:
            if name not in schema.properties:
                raise ValueError(NOT_A_FIELD)
            path, schema = child(path, name), schema.properties[name]
        else:
            path, schema = key(path, name), schema.values
        root = root or path
        if part == "[" and (end := _next(parts)) != "]":
            raise ValueError(f"expected ] but got {end}")
    return Resolved(path, root, schema)


def _next(parts: Iterator[str]) -> str:
    part = next(parts, None)
    if part is None:
        raise ValueError("unexpected end of JSON path")
    return part


def _unquote(part: str) -> str:
    if len(part) < 2 or not (part.startswith("'") and part.endswith("'")):
        raise ValueError(f"expected single quoted string but got {part}")
    inner = part[1:-1]
    if bad := [match[0] for match in _ESCAPED.finditer(inner) if match[1] not in _ESCAPES]:
        raise ValueError(f"invalid string literal: invalid escape char {bad[-1]}")
    return _ESCAPED.sub(lambda match: _ESCAPES[match[1]], inner)


METADATA: Final = (
    "name", "generateName", "namespace", "labels", "annotations", "finalizers", "ownerReferences", "resourceVersion",
    "uid", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "managedFields",
    "selfLink",
)  # fmt: skip
TYPE_META: Final = ("apiVersion", "kind", "metadata")
_CLOSE: Final = 0.6  # similarity; equal names have 1.0


class DeclaredField(NamedTuple):
    """A node of a schema, and its path in the schema's document: `properties.spec.properties.size`."""

    schema: Structural | None
    where: str


def declaration_at(root: Structural, steps: Sequence[str]) -> DeclaredField | None:
    """The node that declares a location, None if no node does. A schema does not declare the metadata of resources."""
    schema, where = root, []
    for step in steps:
        if step in schema.properties:
            schema, keywords = schema.properties[step], ["properties", step]
        elif schema.values is not None:
            schema, keywords = schema.values, ["additionalProperties"]
        elif schema.items is not None and step.isdigit():
            schema, keywords = schema.items, ["items"]
        else:
            return None
        where += keywords
    return DeclaredField(schema, ".".join(where))


def nearest_declared(root: Structural, steps: Sequence[str]) -> str:
    """The declared sibling whose name is closest to an unknown field's, "" if none is close."""
    import difflib  # imported late: rarely needed

    *above, name = steps
    names = _names(root, above)
    folded = {name.lower(): name for name in names}
    matches = difflib.get_close_matches(name.lower(), folded, n=1, cutoff=_CLOSE)
    return folded[matches[0]] if matches else ""


def declared_elsewhere(root: Structural, steps: Sequence[str]) -> str:
    """The path of a declared field of the same name one level up or down, such as `spec.template.replicas`, or ""."""
    *above, name = steps
    if above and name in _names(root, above[:-1]):
        return ".".join([*above[:-1], name])
    parent = declaration_at(root, above)
    for step, schema in parent.schema.properties.items() if parent and parent.schema else ():
        if name in schema.properties:
            return ".".join([*above, step, name])
    return ""


def _names(root: Structural, steps: Sequence[str]) -> list[str]:
    """The fields that an object at a location may have."""
    if list(steps) == ["metadata"]:
        return list(METADATA)
    declaration = declaration_at(root, steps)
    names = list(declaration.schema.properties) if declaration and declaration.schema else []
    is_resource = not steps or (declaration and declaration.schema and declaration.schema.embedded_resource)
    return [*names, *(name for name in TYPE_META if name not in names)] if is_resource else names
