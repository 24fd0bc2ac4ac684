"""The unknown fields of a CRD, at any depth, with the known name that may have been meant.

Servers drop unknown fields. Strict mode reports those outside of `items`, `additionalProperties` and `dependencies` only:
upstream decodes these with methods of their own (see `go.structs.Union`). A dropped field may be a whole schema, so nothing
else may drop one silently.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Final, NamedTuple

from noxu.api.field import ROOT, FieldError, Path, child, forbidden, index, key
from noxu.crd import types, v1beta1
from noxu.go.structs import List, Map, Scalar, Type, Union, json_type
from noxu.values import Json

UNKNOWN: Final = "unknown field"
_CLOSE: Final = 0.7  # similarity; equal names have 1.0
_WORDS: Final = {"jsonschema": "openAPIV3Schema", "schema": "openAPIV3Schema"}
"""Words that are often written in place of a field's name."""


class Unknown(NamedTuple):
    """`meant` is the known field whose name is near, "" if none is."""

    path: Path
    meant: str = ""

    @property
    def error(self) -> FieldError:
        return forbidden(self.path, f'{UNKNOWN}: did you mean "{self.meant}"?' if self.meant else UNKNOWN)


def unknown_fields(crd: Json) -> list[Unknown]:
    """The unknown fields of a v1 or v1beta1 CRD as JSON, in the order of the document."""
    return list(_unknown(v1beta1.CRD if v1beta1.is_v1beta1(crd) else types.CRD, crd))


def _unknown(kind: Type, value: Json) -> Iterator[Unknown]:
    todo: list[tuple[Type, Json, Path]] = [(kind, value, ROOT)]
    while todo:
        kind, value, path = todo.pop()
        if value is None or isinstance(kind, Scalar):
            continue
        if isinstance(kind, Union):
            if (choice := kind.choices.get(json_type(value))) is not None:
                todo.append((choice.type, value, path))
        elif isinstance(kind, List):
            if isinstance(value, list):
                todo += reversed([(kind.element, item, index(path, n)) for n, item in enumerate(value)])
        elif not isinstance(value, dict):
            continue
        elif isinstance(kind, Map):
            todo += reversed([(kind.element, item, key(path, name)) for name, item in value.items()])
        else:
            fields = kind.fields
            for name in (name for name in value if name not in fields):
                yield Unknown(child(path, name), nearest(name, list(fields)))
            todo += reversed([(fields[name].type, value[name], child(path, name)) for name in value if name in fields])


def nearest(name: str, names: list[str]) -> str:
    """The known name that is nearest to another one, "" if none is near."""
    folded = {known_name.lower(): known_name for known_name in names}
    word = _WORDS.get(name.lower(), "")
    matches = difflib.get_close_matches(name.lower(), folded, n=1, cutoff=_CLOSE)
    return word if word in names else folded[matches[0]] if matches else ""
