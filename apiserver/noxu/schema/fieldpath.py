"""Paths to fields as CRDs write them, `.spec.name` or `.spec['a.b']`, resolved along a schema.

selectableFields and the fieldPath of validation rules use them (upstream's cel.ValidFieldPath).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
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
