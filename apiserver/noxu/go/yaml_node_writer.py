"""YAML as go-yaml v3 writes a tree of nodes that it read from JSON (gnostic's `compiler.Marshal`).

The emitter is that of v2 with another layout: keys stay in the order of the mapping; the members of a collection are
indented by two columns in a list and to the next multiple of four in a mapping; lines are not folded. Strings are
quoted where YAML 1.2 reads something else, or a date.

    {"b": {"x": [1, {"c": []}]}, "a": ["yes", "2001-01-01"]}

    b:
        x:
            - 1
            - c: []
    a:
        - yes
        - "2001-01-01"
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import ClassVar, Final

from noxu.go.text import float_json, plain
from noxu.go.yaml_scalars import is_text
from noxu.go.yaml_writer import BREAKS, PRINTABLE, Writer
from noxu.values import Json, Object

_IN_LIST: Final = 2
_STEP: Final = 4
_unblockable: Final = re.compile(rf" [{BREAKS}]|[^\t{PRINTABLE}]| \Z").search


def write(value: Json) -> bytes:
    """One document, with a line end. Surrogates become question marks."""
    return _NodeWriter().document(value).encode("utf-8", "replace")


class _NodeWriter(Writer):
    indent_step: ClassVar[int] = _STEP
    width: ClassVar[int] = 2**31 - 1

    def keys(self, mapping: Object) -> Iterator[str]:
        return iter(mapping)

    def collection_indent(self, *, is_list: bool, in_mapping: bool) -> int:
        return 0 if self.indent < 0 else self.string_indent(in_mapping=in_mapping)

    def string_indent(self, *, in_mapping: bool) -> int:
        if self.indent >= 0 and not in_mapping:
            return self.indent + _IN_LIST
        return _STEP * ((self.indent + _STEP) // _STEP) if self.indent >= 0 else _STEP

    def is_text(self, text: str) -> bool:
        return is_text(text)

    def may_be_block(self, text: str) -> bool:
        return not _unblockable(text)

    def scalar(self, value: Json) -> str:
        """Numbers are as in JSON."""
        if isinstance(value, float):
            return float_json(value)
        if value is None:
            return "null"
        return super().scalar(value) if isinstance(value, (dict, list)) else plain(value)
