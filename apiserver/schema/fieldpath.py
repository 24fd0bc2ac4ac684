"""Paths to fields as CRDs write them, `.spec.name` or `.spec['a.b']`, resolved along a schema.

selectableFields and the fieldPath of validation rules use them (upstream's cel.ValidFieldPath).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from apiserver.api.field import Path, child, key
from apiserver.schema.structural import Structural

# A quoted string ends at a quote that no backslash precedes; all else ends at the next delimiter.
_TOKEN: Final = re.compile(r"[.\[\]]|'(?:.*?(?<!\\)'|.*)|[^.\[\]]+", re.DOTALL)
_ESCAPED: Final = re.compile(r"\\(.)")
_ESCAPES: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "'": "'", "\\": "\\"}


class Resolved(NamedTuple):
    path: Path  # without the leading dot; values of maps in brackets
    root: str  # the first name
    schema: Structural | None  # None: under `additionalProperties: true`


def resolve(json_path: str, schema: Structural | None, *, brackets: bool = True) -> Resolved:
    """Follow a path. Raises ValueError with upstream's message; `brackets`: is `['name']` allowed?"""
    path, root = "", ""
    tokens = (match[0] for match in _TOKEN.finditer(json_path))
    for token in tokens:
        if token == "[":
            if not brackets:
                raise ValueError("array notation is not allowed")
            name = _unquote(_next(tokens))
        elif token == ".":
            name = _next(tokens)
        else:
            raise ValueError(f"expected [ or . but got: {token}")
        if schema is None or not (schema.properties or schema.additional_properties is not None):
            raise ValueError("does not refer to a valid field")
        if schema.properties:
            if name not in schema.properties:
                raise ValueError("does not refer to a valid field")
            path, schema = child(path, name), schema.properties[name]
        else:
            path, schema = key(path, name), schema.values
        root = root or path
        if token == "[" and (end := _next(tokens)) != "]":
            raise ValueError(f"expected ] but got {end}")
    return Resolved(path, root, schema)


def _next(tokens: Iterator[str]) -> str:
    token = next(tokens, None)
    if token is None:
        raise ValueError("unexpected end of JSON path")
    return token


def _unquote(token: str) -> str:
    if len(token) < 2 or not (token.startswith("'") and token.endswith("'")):
        raise ValueError(f"expected single quoted string but got {token}")
    inner = token[1:-1]
    if bad := [match[0] for match in _ESCAPED.finditer(inner) if match[1] not in _ESCAPES]:
        raise ValueError(f"invalid string literal: invalid escape char {bad[-1]}")
    return _ESCAPED.sub(lambda match: _ESCAPES[match[1]], inner)
