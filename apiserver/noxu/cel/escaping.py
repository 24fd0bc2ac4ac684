"""Field names as CEL identifiers (upstream's apiserver/pkg/cel/escaping.go).

my-field  ⇄  my__dash__field        for  ⇄  __for__        a__b  ⇄  a__underscores__b
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

KEYWORDS: Final = frozenset({
    "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let",
    "loop", "package", "namespace", "return", "var", "void", "while",
})  # fmt: skip
_SIGNS: Final = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_ESCAPES: Final = {escaped: sign for sign, escaped in _SIGNS.items()}
_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ESCAPABLE: Final = re.compile(r"[A-Za-z0-9_./-]*")
_SIGN: Final = re.compile(r"__|[-./]")
_ESCAPE: Final = re.compile(r"__[^_]+__")


@lru_cache(8192)
def escape(name: str) -> str | None:
    """The identifier of a field; None for a name that cannot be escaped."""
    if not name or name[0] in "0123456789":
        return None
    if name in KEYWORDS:
        return f"__{name}__"
    if _IDENTIFIER.fullmatch(name) and "__" not in name:
        return name
    if not _ESCAPABLE.fullmatch(name):
        return None
    return _SIGN.sub(lambda found: _SIGNS[found[0]], name)


@lru_cache(8192)
def unescape(identifier: str) -> str | None:
    """The field of an identifier; None if it is not escaped correctly."""
    if "__" not in identifier:
        return identifier
    for found in _ESCAPE.findall(identifier):
        keyword = found[2:-2] in KEYWORDS
        if found not in _ESCAPES and not (keyword and found == identifier):
            return None
    return _ESCAPE.sub(lambda found: _ESCAPES.get(found[0], found[0][2:-2]), identifier)
